"""The arbitrator: a table of rules over checked claims and evidence, whoever the debaters were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from langgraph.runtime import Runtime

from agents.chat.bull_rules import best_target
from agents.debate.claims.checker import side_record
from agents.debate.numbering import numbered_claims
from agents.debate.rules import (
    DebateLimits,
    Levels,
    checked_claims,
    count_fields,
    current_data,
    levels_at,
    levels_of,
    no_momentum_trap,
    room_below_cap,
    signal_fired,
    sound_data,
    valid_replies,
    worthwhile_trade,
)
from agents.debate.schemas import parse_weighing
from agents.debate.speaking import (
    after,
    ask,
    request,
    require_identity,
    tell,
    transcript,
)
from agents.debate.state import DebateContext, DebateState, DebateUpdate, Node
from trader.core.canonical import from_primitive, sha256_of, to_object
from trader.core.costs import Costs
from trader.core.decision import (
    Argument,
    Claim,
    Decision,
    Rebuttal,
    RiskFlag,
    RuleCheck,
    Verdict,
    Weighing,
)
from trader.core.flags import FlagCode
from trader.core.ports import ChatModel


def make_arbitrator(limits: DebateLimits, costs: Costs, chat: ChatModel | None) -> Node:
    """The arbitrator's node: it reads the whole transcript once and leaves the verdict.

    chat  the arbitrator's model. It is asked only when the table would let the trade through: its
          GO adds nothing to the table, its NO_GO ends the matter. None: the table alone decides.
    """

    def arbitrator(state: DebateState, *, runtime: Runtime[DebateContext]) -> DebateUpdate:
        context = runtime.context
        arguments, rebuttals = transcript(state)
        failures = tuple(from_primitive(RiskFlag, flag) for flag in state["failures"])
        table = partial(decide, context, arguments, rebuttals, limits=limits, costs=costs)
        verdict = table(failures)
        if chat is None or verdict.decision is Decision.NO_GO:
            return {"verdict": to_object(verdict)}
        claims = numbered_claims(arguments, rebuttals)

        def parse(text: str) -> Weighing:
            weighing = parse_weighing(text, claims)
            require_identity(context, weighing.rationale)
            return weighing

        tell(runtime, "arbitrator", state["round"])
        heard = ask(chat, request("arbitrator", state, context), parse)
        tell(runtime, "arbitrator", state["round"], heard.said or heard.failure)
        if heard.failure is not None:
            verdict = table((*failures, heard.failure))
        else:
            verdict = table(failures, weighing=heard.said)
        weighing = None if heard.said is None else to_object(heard.said)
        return {
            "weighing": weighing,
            "verdict": to_object(verdict),
            **after(state, context, heard),
        }

    return arbitrator


def decide(
    context: DebateContext,
    arguments: Sequence[Argument],
    rebuttals: Sequence[Rebuttal],
    failures: Sequence[RiskFlag],
    *,
    limits: DebateLimits,
    costs: Costs,
    weighing: Weighing | None = None,
) -> Verdict:
    """GO when every rule passes, else NO_GO with one flag for each that does not.

    Levels come from the bull's last argument, but every number is taken again from the evidence.
    weighing  what the arbitrator's model said; its confidence can lower the table's, not raise it
    """
    evidence = context.evidence
    bull = tuple(claim for argument in arguments for claim in argument.claims)
    bear = tuple(claim for rebuttal in rebuttals for claim in rebuttal.claims)
    levels = levels_of(arguments, evidence, costs)
    confidence = confidence_of(bull, bear)
    if weighing is not None:
        confidence = min(confidence, weighing.confidence)
    enough = RuleCheck(
        code=FlagCode.LOW_CONFIDENCE,
        rule="confidence from the verified claims of both sides",
        value=f"{confidence:.2f}",
        limit=f">= {limits.minimum_confidence:.2f}",
        passed=confidence >= limits.minimum_confidence,
    )
    case = (*checked_claims(bull, limits), *worthwhile_trade(levels, evidence, limits))
    heard = bool(arguments)  # else there is no case to hold these rules against, and no GO either
    rules = (
        sound_data(evidence),
        current_data(evidence),
        signal_fired(context),
        *valid_replies(failures, arguments, rebuttals),
        *(case if heard else ()),
        room_below_cap(evidence, limits),
        no_momentum_trap(context),
        *((enough,) if heard else ()),
    )
    if weighing is not None:
        rules += (
            RuleCheck(
                code=FlagCode.ARBITRATOR_AGAINST,
                rule="the arbitrator's own weighing of the verified claims",
                value=f"{weighing.decision} at {weighing.confidence:.2f}",
                limit="GO",
                passed=weighing.decision is Decision.GO,
            ),
        )
    return _verdict(context, rules, levels, confidence, failures)


def overrule(verdict: Verdict, code: FlagCode, rule: str, value: str, limit: str) -> Verdict:
    """The same verdict as a NO_GO, for a reason that came after the table."""
    failed = RuleCheck(code=code, rule=rule, value=value, limit=limit, passed=False)
    detail = f"{rule}: {value}, wanted {limit}"
    return replace(
        verdict,
        verdict_id=f"V-{sha256_of([verdict.verdict_id, failed])[:16]}",
        decision=Decision.NO_GO,
        flags=(*verdict.flags, RiskFlag(code=code, detail=detail)),
        rules=(*verdict.rules, failed),
        rationale=f"NO_GO, {rule} is {value}, wanted {limit}.",
    )


def decide_alone(context: DebateContext, *, limits: DebateLimits, costs: Costs) -> Verdict:
    """The verdict without debaters: the rules about data and levels, at the best level there is.

    Its confidence is the chance of reaching the target, by this signal's own closed past.
    """
    evidence, candidate = context.evidence, context.candidate
    best = best_target(evidence)
    levels = None
    if best is not None:
        levels = levels_at(
            evidence,
            costs,
            entry=candidate.entry_price,
            stop=candidate.stop_price,
            target=best.price,
        )
    rules = (
        sound_data(evidence),
        current_data(evidence),
        signal_fired(context),
        *worthwhile_trade(levels, evidence, limits),
        room_below_cap(evidence, limits),
        no_momentum_trap(context),
    )
    chance = levels.probability if levels and levels.probability is not None else 0.0
    return _verdict(context, rules, levels, chance, ())


def confidence_of(bull: Sequence[Claim], bear: Sequence[Claim]) -> float:
    """Share of the bull in the weight of all verified claims, in [0, 1].

    w (b + 1) / (w (b + 1) + v r + 1) with b and r the facts that bull and bear verified, w and v
    their weights, which false claims have lowered. Where nobody was wrong it is the rule of
    succession (b + 1) / (b + r + 2), so that few claims give little confidence either way. A bear
    that is wrong weighs less, but never speaks for the trade.
    """
    for_trade = (count_fields(bull, "verified") + 1) * side_record("bull", bull).weight
    against = count_fields(bear, "verified") * side_record("bear", bear).weight + 1
    return for_trade / (for_trade + against)


def _verdict(
    context: DebateContext,
    rules: tuple[RuleCheck, ...],
    levels: Levels | None,
    confidence: float,
    failures: Sequence[RiskFlag],
) -> Verdict:
    failed = tuple(rule for rule in rules if not rule.passed)
    decision = Decision.NO_GO if failed else Decision.GO
    said = {flag.code: flag for flag in reversed(failures)}  # what went wrong, in its own words
    flags = tuple(
        said.pop(rule.code)
        if rule.code in said
        else RiskFlag(
            code=rule.code,
            detail=f"{rule.rule}: {rule.value}, wanted {rule.limit}",
            evidence_ids=rule.evidence_ids,
        )
        for rule in failed
    )
    flags += tuple(said[code] for code in sorted(said))
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
        rationale=_rationale(rules, failed, levels, confidence, failures),
        flags=flags,
        rules=rules,
        decided_at=_decided_at(context),
    )


def _rationale(
    rules: tuple[RuleCheck, ...],
    failed: tuple[RuleCheck, ...],
    levels: Levels | None,
    confidence: float,
    failures: Sequence[RiskFlag],
) -> str:
    if failed:
        said = {flag.code: flag.detail for flag in reversed(failures)}
        reasons = "; ".join(
            said.get(rule.code) or f"{rule.rule} is {rule.value}, wanted {rule.limit}"
            for rule in failed
        )
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
