"""The arbitrator: a table of rules over checked claims and evidence, whoever the debaters were."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from langgraph.runtime import Runtime

from agents.debate.speaking import transcript
from agents.debate.state import DebateContext, DebateState, DebateUpdate, Node
from trader.core.canonical import from_primitive, sha256_of, to_object
from trader.core.costs import Costs
from trader.core.decision import (
    Argument,
    Claim,
    Decision,
    EvidenceIndex,
    FlagCode,
    Rebuttal,
    RiskFlag,
    RuleCheck,
    Verdict,
)

REQUIRED_PRICES = ("close", "open", "high", "low", "atr", "entry_price", "stop_price")
STRONG_TREND_ADX = 25.0  # Wilder (1978) calls a market trending from about here


@dataclass(frozen=True, slots=True, kw_only=True)
class DebateLimits:
    """What the arbitrator asks of a trade; weights are fractions of equity."""

    min_reward_risk: float = 2.0
    max_position_weight: float = 0.15
    minimum_verified_claims: int = 3
    minimum_confidence: float = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Levels:
    entry: float
    stop: float
    target: float
    name: (
        str | None
    )  # of the target's evidence, without its prefix; None: not a level from the evidence
    reward_risk: float
    probability: float | None

    @property
    def expected_value(self) -> float | None:
        """P × reward:risk − (1 − p), in units of the risk."""
        if self.probability is None:
            return None
        return self.probability * self.reward_risk - (1.0 - self.probability)


def make_arbitrator(limits: DebateLimits, costs: Costs) -> Node:
    """The arbitrator's node: it reads the whole transcript once and leaves the verdict."""

    def arbitrator(state: DebateState, *, runtime: Runtime[DebateContext]) -> DebateUpdate:
        arguments, rebuttals = transcript(state)
        failures = tuple(from_primitive(RiskFlag, flag) for flag in state["failures"])
        verdict = decide(
            runtime.context, arguments, rebuttals, failures, limits=limits, costs=costs
        )
        return {"verdict": to_object(verdict)}

    return arbitrator


def decide(
    context: DebateContext,
    arguments: Sequence[Argument],
    rebuttals: Sequence[Rebuttal],
    failures: Sequence[RiskFlag],
    *,
    limits: DebateLimits,
    costs: Costs,
) -> Verdict:
    """GO when every rule passes, else NO_GO with one flag for each that does not.

    Levels come from the bull's last argument, but every number is taken again from the evidence.
    """
    evidence = context.evidence
    bull = tuple(claim for argument in arguments for claim in argument.claims)
    bear = tuple(claim for rebuttal in rebuttals for claim in rebuttal.claims)
    levels = _levels(arguments, evidence, costs)
    confidence = confidence_of(bull, bear)
    rules = (
        _data(evidence),
        _freshness(evidence),
        _signal(context),
        *_replies(failures, arguments, rebuttals),
        *_claims(bull, limits),
        *_trade(levels, evidence, limits),
        _cap(evidence, limits),
        _momentum_trap(context),
        RuleCheck(
            code=FlagCode.LOW_CONFIDENCE,
            rule="confidence from the verified claims of both sides",
            value=f"{confidence:.2f}",
            limit=f">= {limits.minimum_confidence:.2f}",
            passed=confidence >= limits.minimum_confidence,
        ),
    )
    return _verdict(context, rules, levels, confidence, failures)


def confidence_of(bull: Sequence[Claim], bear: Sequence[Claim]) -> float:
    """Share of the bull in all verified claims, in [0, 1]; a false claim counts for the other side.

    (b + 1) / (b + r + 2) with b the bull's verified and the bear's contradicted claims, r the
    reverse: the rule of succession, so that few claims give little confidence either way.
    """
    for_trade = _count(bull, "verified") + _count(bear, "contradicted")
    against = _count(bear, "verified") + _count(bull, "contradicted")
    return (for_trade + 1) / (for_trade + against + 2)


def _count(claims: Sequence[Claim], status: str) -> int:
    """How many facts were claimed with this status; saying a thing twice adds nothing."""
    return len({claim.field for claim in claims if claim.status == status})


def _levels(arguments: Sequence[Argument], evidence: EvidenceIndex, costs: Costs) -> _Levels | None:
    if not arguments:
        return None
    proposed = arguments[-1]
    aimed = next(
        (
            fact
            for fact in evidence.starting("target_")
            if fact.value is not None and _same(fact.value, proposed.target_price)
        ),
        None,
    )
    name = aimed.name.removeprefix("target_") if aimed else None
    # a proposal points at levels; the numbers are the evidence's, to the last digit
    entry = _pointed_at(proposed.entry_price, evidence.value("entry_price"))
    stop = _pointed_at(proposed.stop_price, evidence.value("stop_price"))
    target = _pointed_at(proposed.target_price, aimed.value if aimed else None)
    return _Levels(
        entry=entry,
        stop=stop,
        target=target,
        name=name,
        reward_risk=costs.reward_risk_ratio(entry=entry, stop=stop, target=target),
        probability=evidence.value(f"probability_{name}") if name else None,
    )


def _pointed_at(proposed: float, level: float | None) -> float:
    return level if level is not None and _same(level, proposed) else proposed


def _same(price: float, other: float) -> bool:
    """Whether two prices fall on the same tick."""
    return abs(price - other) < (0.005 if other >= 1.0 else 0.00005)


def _data(evidence: EvidenceIndex) -> RuleCheck:
    for name in REQUIRED_PRICES:
        fact = evidence.named(name)
        value = fact.value if fact else None
        if value is None or not math.isfinite(value) or value <= 0.0:
            shown = "missing" if value is None else f"{value:.2f}"
            return RuleCheck(
                code=FlagCode.DATA_INTEGRITY_FAILURE,
                rule="prices and ATR are finite and positive",
                value=f"{name} {shown}",
                limit="> 0",
                passed=False,
                evidence_ids=(fact.evidence_id,) if fact else (),
            )
    return RuleCheck(
        code=FlagCode.DATA_INTEGRITY_FAILURE,
        rule="prices and ATR are finite and positive",
        value="sound",
        limit="> 0",
        passed=True,
    )


def _freshness(evidence: EvidenceIndex) -> RuleCheck:
    fact = evidence.named("bars_behind")
    behind = fact.value if fact else None
    return RuleCheck(
        code=FlagCode.STALE_DATA,
        rule="the newest bar is the one that just closed",
        value="unknown" if behind is None else f"{behind:.0f} bars behind",
        limit="0",
        passed=behind == 0.0,
        evidence_ids=(fact.evidence_id,) if fact else (),
    )


def _signal(context: DebateContext) -> RuleCheck:
    candidate = context.candidate
    return RuleCheck(
        code=FlagCode.NO_SIGNAL,
        rule="signal of the strategy",
        value=candidate.signal.reason if candidate.fired else "did not fire",
        limit="fired",
        passed=candidate.fired,
    )


def _replies(
    failures: Sequence[RiskFlag], arguments: Sequence[Argument], rebuttals: Sequence[Rebuttal]
) -> tuple[RuleCheck, ...]:
    heard = bool(arguments) and bool(rebuttals)
    value = failures[0].detail if failures else ("both" if heard else "one side is missing")
    return (
        RuleCheck(
            code=failures[0].code if failures else FlagCode.INVALID_REPLY,
            rule="both sides gave a valid reply",
            value=value,
            limit="both",
            passed=heard and not failures,
        ),
    )


def _claims(bull: Sequence[Claim], limits: DebateLimits) -> tuple[RuleCheck, ...]:
    def bad(status: str) -> tuple[Claim, ...]:
        return tuple(claim for claim in bull if claim.status == status)

    def shown(claims: Sequence[Claim]) -> str:
        return f"{len(claims)}: {claims[0].text} ({claims[0].detail})" if claims else "0"

    unverifiable, contradicted = bad("unverifiable"), bad("contradicted")
    verified = _count(bull, "verified")
    return (
        RuleCheck(
            code=FlagCode.UNVERIFIABLE_THESIS,
            rule="claims of the bull that cannot be checked",
            value=shown(unverifiable),
            limit="0",
            passed=bool(bull) and not unverifiable,
            evidence_ids=unverifiable[0].evidence_ids if unverifiable else (),
        ),
        RuleCheck(
            code=FlagCode.CONTRADICTED_CLAIM,
            rule="claims of the bull that the data contradict",
            value=shown(contradicted),
            limit="0",
            passed=not contradicted,
            evidence_ids=contradicted[0].evidence_ids if contradicted else (),
        ),
        RuleCheck(
            code=FlagCode.INSUFFICIENT_EVIDENCE,
            rule="verified claims of the bull",
            value=str(verified),
            limit=f">= {limits.minimum_verified_claims}",
            passed=verified >= limits.minimum_verified_claims,
        ),
    )


def _trade(
    levels: _Levels | None, evidence: EvidenceIndex, limits: DebateLimits
) -> tuple[RuleCheck, ...]:
    entry, stop = evidence.value("entry_price"), evidence.value("stop_price")
    if levels is None or entry is None or stop is None:
        problem, ratio, value = "no levels", 0.0, None
    else:
        problem = _level_problem(levels, entry, stop)
        ratio, value = levels.reward_risk, levels.expected_value
    hits = evidence.named(f"hits_{levels.name}") if levels and levels.name else None
    return (
        RuleCheck(
            code=FlagCode.INVALID_LEVELS,
            rule="entry and stop are the ones computed, the target is a level from the evidence",
            value=problem or f"stop < entry < target ({levels.name if levels else ''})",
            limit="stop < entry < target",
            passed=not problem,
        ),
        RuleCheck(
            code=FlagCode.REWARD_RISK_BELOW_MINIMUM,
            rule="reward:risk from the price that will be paid, after costs",
            value=f"{ratio:.2f}",
            limit=f">= {limits.min_reward_risk:.2f}",
            passed=ratio >= limits.min_reward_risk,
        ),
        RuleCheck(
            code=FlagCode.NEGATIVE_EXPECTED_VALUE,
            rule="expected value by this signal's own closed past",
            value="unknown" if value is None else f"{value:+.2f} R",
            limit="> 0 R",
            passed=value is not None and value > 0.0,
            evidence_ids=(hits.evidence_id,) if hits else (),
        ),
    )


def _level_problem(levels: _Levels, entry: float, stop: float) -> str:
    if not all(math.isfinite(price) for price in (levels.entry, levels.stop, levels.target)):
        return "a level is not a finite price"
    if not _same(levels.entry, entry):
        return f"entry {levels.entry:.2f} is not the computed {entry:.2f}"
    if not _same(levels.stop, stop):
        return f"stop {levels.stop:.2f} is not the computed {stop:.2f}"
    if not 0.0 < levels.stop < levels.entry < levels.target:
        return f"{levels.stop:.2f}, {levels.entry:.2f}, {levels.target:.2f} are out of order"
    if levels.name is None:
        return f"target {levels.target:.2f} is no level in the evidence"
    return ""


def _cap(evidence: EvidenceIndex, limits: DebateLimits) -> RuleCheck:
    held, waiting = evidence.named("position_weight"), evidence.named("open_buy_weight")
    values = [fact.value for fact in (held, waiting) if fact is not None and fact.value is not None]
    weight = sum(values)
    return RuleCheck(
        code=FlagCode.POSITION_CAP,
        rule="weight of the symbol, held and ordered, leaves room",
        value=f"{weight:.1%}" if len(values) == 2 else "unknown",
        limit=f"< {limits.max_position_weight:.0%}",
        passed=len(values) == 2 and weight < limits.max_position_weight,
        evidence_ids=tuple(fact.evidence_id for fact in (held, waiting) if fact),
    )


def _momentum_trap(context: DebateContext) -> RuleCheck:
    evidence = context.evidence
    names = ("close", "sma_200", "adx_14", "plus_di_14", "minus_di_14")
    close, average, adx, plus, minus = (evidence.value(name) for name in names)
    ids = tuple(fact.evidence_id for name in names if (fact := evidence.named(name)))
    if context.candidate.signal.style != "mean_reversion":
        passed, value = True, "not a mean-reversion entry"
    elif close is None or average is None or adx is None or plus is None or minus is None:
        passed, value = False, "the trend is unknown"
    else:
        falling = close < average and minus > plus
        passed = not (falling and adx >= STRONG_TREND_ADX)
        value = f"{'down' if falling else 'no down'} trend, ADX {adx:.0f}"
    return RuleCheck(
        code=FlagCode.MOMENTUM_TRAP_RISK,
        rule="no mean reversion against a strong down trend",
        value=value,
        limit=f"no down trend of ADX {STRONG_TREND_ADX:.0f} or more",
        passed=passed,
        evidence_ids=ids,
    )


def _verdict(
    context: DebateContext,
    rules: tuple[RuleCheck, ...],
    levels: _Levels | None,
    confidence: float,
    failures: Sequence[RiskFlag],
) -> Verdict:
    failed = tuple(rule for rule in rules if not rule.passed)
    decision = Decision.NO_GO if failed else Decision.GO
    flags = tuple(
        RiskFlag(
            code=rule.code,
            detail=f"{rule.rule}: {rule.value}, wanted {rule.limit}",
            evidence_ids=rule.evidence_ids,
        )
        for rule in failed
    )
    known = {flag.code for flag in flags}
    flags += tuple(flag for flag in failures if flag.code not in known)
    prices = (levels.entry, levels.stop, levels.target) if levels else (None, None, None)
    return Verdict(
        verdict_id=f"V-{sha256_of([context.cycle_id, decision, prices, rules])[:16]}",
        symbol=context.candidate.signal.symbol,
        decision=decision,
        confidence=round(confidence, 4),
        entry_price=prices[0],
        stop_price=prices[1],
        target_price=prices[2],
        reward_risk_ratio=levels.reward_risk if levels else None,
        expected_value_r=levels.expected_value if levels else None,
        rationale=_rationale(rules, failed, levels, confidence),
        flags=flags,
        rules=rules,
        decided_at=_decided_at(context),
    )


def _rationale(
    rules: tuple[RuleCheck, ...],
    failed: tuple[RuleCheck, ...],
    levels: _Levels | None,
    confidence: float,
) -> str:
    if failed:
        reasons = "; ".join(f"{rule.rule} is {rule.value}, wanted {rule.limit}" for rule in failed)
        return f"NO_GO, {len(failed)} of {len(rules)} rules fail: {reasons}."
    if levels is None or levels.expected_value is None or levels.probability is None:
        raise ValueError("a GO without levels or expected value cannot be")
    return (
        f"GO, all {len(rules)} rules pass: {levels.reward_risk:.2f} R offered at a chance of "
        f"{levels.probability:.0%}, worth {levels.expected_value:+.2f} R; "
        f"confidence {confidence:.2f}."
    )


def _decided_at(context: DebateContext) -> datetime:
    return context.candidate.signal.as_of
