"""The arbitrator's rules, one function each: what is looked at, the limit, pass or fail."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agents.debate.state import DebateContext
from trader.core.costs import Costs
from trader.core.decision import Argument, Claim, EvidenceIndex, Rebuttal, RiskFlag, RuleCheck
from trader.core.flags import FlagCode

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
class Levels:
    """What is proposed, USD per share. name: of the target's evidence; None when it is no level."""

    entry: float
    stop: float
    target: float
    name: str | None
    reward_risk: float
    probability: float | None

    @property
    def expected_value(self) -> float | None:
        """Probability × reward:risk − (1 − probability), in units of the risk."""
        if self.probability is None:
            return None
        return self.probability * self.reward_risk - (1.0 - self.probability)


def levels_of(
    arguments: Sequence[Argument], evidence: EvidenceIndex, costs: Costs
) -> Levels | None:
    """The levels of the bull's last argument, with the evidence's own numbers; None before any."""
    if not arguments:
        return None
    proposed = arguments[-1]
    return levels_at(
        evidence,
        costs,
        entry=proposed.entry_price,
        stop=proposed.stop_price,
        target=proposed.target_price,
    )


def levels_at(
    evidence: EvidenceIndex, costs: Costs, *, entry: float, stop: float, target: float
) -> Levels:
    """A proposal's levels, USD per share, with the evidence's own numbers where it points at them.

    A proposal points at levels; the numbers are the evidence's, to the last digit.
    """
    aimed = next(
        (
            fact
            for fact in evidence.starting("target_")
            if fact.value is not None and same_price(fact.value, target)
        ),
        None,
    )
    name = aimed.name.removeprefix("target_") if aimed else None
    entry = _pointed_at(entry, evidence.value("entry_price"))
    stop = _pointed_at(stop, evidence.value("stop_price"))
    target = _pointed_at(target, aimed.value if aimed else None)
    return Levels(
        entry=entry,
        stop=stop,
        target=target,
        name=name,
        reward_risk=costs.reward_risk_ratio(entry=entry, stop=stop, target=target),
        probability=evidence.value(f"probability_{name}") if name else None,
    )


def _pointed_at(proposed: float, level: float | None) -> float:
    return level if level is not None and same_price(level, proposed) else proposed


def same_price(price: float, other: float) -> bool:
    """Whether two prices fall on the same tick."""
    return abs(price - other) < (0.005 if other >= 1.0 else 0.00005)


def sound_data(evidence: EvidenceIndex) -> RuleCheck:
    """Every price that the decision rests on is there, finite and above zero."""
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


def current_data(evidence: EvidenceIndex) -> RuleCheck:
    """The newest bar is the one that just closed."""
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


def signal_fired(context: DebateContext) -> RuleCheck:
    """The strategy's own rule crossed; nobody trades on a whim."""
    candidate = context.candidate
    return RuleCheck(
        code=FlagCode.NO_SIGNAL,
        rule="signal of the strategy",
        value=candidate.signal.reason if candidate.fired else "did not fire",
        limit="fired",
        passed=candidate.fired,
    )


def valid_replies(
    failures: Sequence[RiskFlag], arguments: Sequence[Argument], rebuttals: Sequence[Rebuttal]
) -> tuple[RuleCheck, ...]:
    """Both sides were heard, and nothing they said was unusable."""
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


def checked_claims(bull: Sequence[Claim], limits: DebateLimits) -> tuple[RuleCheck, ...]:
    """No claim of the bull is false or beyond checking, and enough facts are claimed."""

    def bad(status: str) -> tuple[Claim, ...]:
        return tuple(claim for claim in bull if claim.status == status)

    def shown(claims: Sequence[Claim]) -> str:
        return f"{len(claims)}: {claims[0].text} ({claims[0].detail})" if claims else "0"

    unverifiable, contradicted = bad("unverifiable"), bad("contradicted")
    verified = count_fields(bull, "verified")
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


def worthwhile_trade(
    levels: Levels | None, evidence: EvidenceIndex, limits: DebateLimits
) -> tuple[RuleCheck, ...]:
    """Levels from the evidence, enough reward for the risk, and a past that pays."""
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


def _level_problem(levels: Levels, entry: float, stop: float) -> str:
    if not all(math.isfinite(price) for price in (levels.entry, levels.stop, levels.target)):
        return "a level is not a finite price"
    if not same_price(levels.entry, entry):
        return f"entry {levels.entry:.2f} is not the computed {entry:.2f}"
    if not same_price(levels.stop, stop):
        return f"stop {levels.stop:.2f} is not the computed {stop:.2f}"
    if not 0.0 < levels.stop < levels.entry < levels.target:
        return f"{levels.stop:.2f}, {levels.entry:.2f}, {levels.target:.2f} are out of order"
    if levels.name is None:
        return f"target {levels.target:.2f} is no level in the evidence"
    return ""


def room_below_cap(evidence: EvidenceIndex, limits: DebateLimits) -> RuleCheck:
    """What is held and ordered leaves room below the cap."""
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


def no_momentum_trap(context: DebateContext) -> RuleCheck:
    """No mean reversion against a strong down trend."""
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


def count_fields(claims: Sequence[Claim], status: str) -> int:
    """How many facts were claimed with this status; saying a thing twice adds nothing."""
    return len({claim.field for claim in claims if claim.status == status})
