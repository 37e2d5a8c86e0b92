"""The claims checker: every quoted number is held against its evidence before anyone reads it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agents.debate.claims.bounds import says_nothing
from agents.debate.claims.past import (
    COMPARE,
    NOW,
    crossed,
    decision_day,
    inside,
    judge_past,
    period_of,
)
from agents.debate.claims.quoting import (
    Finding,
    as_shown,
    found,
    quotes,
    retells,
    shown,
    unverifiable,
    worth,
)
from agents.debate.claims.sentences import Judged, disagreement
from trader.core.decision import (
    FOREIGN_KINDS,
    Claim,
    Evidence,
    EvidenceIndex,
    Role,
    SideRecord,
)
from trader.core.ports import History

__all__ = ["check_claims", "quotes", "side_record"]


def check_claims(
    claims: Iterable[Claim], evidence: EvidenceIndex, history: History, *, hearing: bool = False
) -> tuple[Claim, ...]:
    """The claims with their status: verified, contradicted or unverifiable, and why.

    The typed fields are judged first; a claim they verify is unverifiable all the same when its
    sentence says a number, a date or a direction that they do not, or when it would hold whatever
    the fact is.

    hearing  whether facts of strangers may be cited: in the debate that decides there are none
    """
    ours = evidence
    if not hearing and any(fact.kind in FOREIGN_KINDS for fact in evidence.items):
        ours = EvidenceIndex([fact for fact in evidence.items if fact.kind not in FOREIGN_KINDS])
    return tuple(_checked(claim, ours, history) for claim in claims)


def side_record(role: Role, claims: Sequence[Claim]) -> SideRecord:
    """How one side's claims fared; its weight is the share of the checked ones that are true."""
    count = Counter(claim.status for claim in claims)
    checked = count["verified"] + count["contradicted"]
    return SideRecord(
        role=role,
        verified=count["verified"],
        contradicted=count["contradicted"],
        unverifiable=count["unverifiable"],
        weight=count["verified"] / checked if checked else 1.0,
    )


def _checked(claim: Claim, evidence: EvidenceIndex, history: History) -> Claim:
    facts = _cited(claim, evidence)
    if isinstance(facts, str):
        return replace(claim, status="unverifiable", detail=facts)
    decided_on = decision_day(facts[0].as_of)
    period = NOW if claim.when is None else period_of(claim.when, decided_on)
    if isinstance(period, str):
        return replace(claim, status="unverifiable", detail=period)
    today = period.single and period.last == decided_on and facts[0].kind != "technical"
    if claim.when is None or today:  # of accounts, levels and records only today's value is known
        finding = _judge_now(claim, facts, history)
    else:
        finding = judge_past(claim, facts, period, history)
    if finding.status != "verified":
        return replace(claim, status=finding.status, detail=finding.detail)
    if says_nothing(claim, facts):
        nothing = f"it holds whatever {claim.field} is, so it says nothing"
        return replace(claim, status="unverifiable", detail=nothing)
    wrong = disagreement(
        Judged(claim=claim, facts=facts, period=period, finding=finding), evidence, history
    )
    if wrong:
        return replace(claim, status="unverifiable", detail=f"{wrong}; {finding.detail}")
    return replace(claim, status="verified", detail=finding.detail)


def _cited(claim: Claim, evidence: EvidenceIndex) -> tuple[Evidence, ...] | str:
    """The facts that a claim cites, or why it cannot be looked up."""
    numbers = (claim.quoted_value, claim.upper_value or 0.0)
    if not all(math.isfinite(number) for number in numbers):
        return f"{claim.quoted_value} is not a number that can be checked"
    facts: list[Evidence] = []
    for evidence_id in claim.evidence_ids:
        fact = evidence.by_id(evidence_id)
        if fact is None:
            return f"there is no evidence {evidence_id}"
        if fact.value is None:
            return f"{fact.evidence_id} {fact.name} is missing"
        if fact.known_at > fact.as_of:
            return f"{fact.evidence_id} {fact.name} was not known yet"
        facts.append(fact)
    if not facts:
        return "no evidence is named"
    if facts[0].name != claim.field:
        return f"{facts[0].evidence_id} is {facts[0].name}, not {claim.field}"
    return tuple(facts)


def _judge_now(claim: Claim, facts: tuple[Evidence, ...], history: History) -> Finding:
    """A claim about the decision's own bar."""
    if claim.operator in ("=", "between", *COMPARE):
        scales = []
        for fact in facts:
            scale = worth(claim.unit, fact.unit)
            if scale is None or fact.unit != facts[0].unit:
                return unverifiable(
                    f"{fact.evidence_id} {fact.name} is in {fact.unit}, not in {claim.unit}"
                )
            scales.append(scale)
        return _judge_value(claim, facts, scales[0])
    if claim.operator in ("crosses_above", "crosses_below"):
        return _judge_crossing(claim, facts, history)
    return unverifiable(f"{claim.operator} speaks of a period: name it in `when`, as in last 20")


def _judge_value(claim: Claim, facts: tuple[Evidence, ...], scale: float) -> Finding:
    fact, quoted = facts[0], claim.quoted_value
    value = _value(fact)
    detail = f"{fact.evidence_id} {claim.field} is {shown(value)}"
    if claim.operator == "=":
        if len(facts) != 1:
            return unverifiable("an equality names one piece of evidence")
        true = quoted == value if fact.unit == "date" else retells(quoted, value, scale)
        return found(true, detail)
    if claim.operator == "between":
        upper = claim.upper_value
        if len(facts) != 1 or upper is None or upper < quoted:
            return unverifiable("`between` names one fact, quoted_value and a larger upper_value")
        return found(inside(quoted, value / scale, value / scale, upper), detail)
    compare = COMPARE[claim.operator]
    if len(facts) == 1:
        even = claim.operator in (">=", "<=") and as_shown(quoted, value, scale)
        return found(even or compare(value, quoted * scale), detail)
    if len(facts) != 2:
        return unverifiable("a comparison names one or two pieces of evidence")
    line = _value(facts[1])
    detail += f", {facts[1].evidence_id} {facts[1].name} is {shown(line)}"
    return found(retells(quoted, line, scale) and compare(value, line), detail)


def _judge_crossing(claim: Claim, facts: tuple[Evidence, ...], history: History) -> Finding:
    """Now and before are facts where they are cited; otherwise the past is asked."""
    scale = worth(claim.unit, facts[0].unit)
    if scale is None or any(fact.unit != facts[0].unit for fact in facts):
        return unverifiable(f"{claim.field} is in {facts[0].unit}, not in {claim.unit}")
    names = [fact.name for fact in facts]
    values = [_value(fact) for fact in facts]
    if names[1::2] == [f"{name}_previous" for name in names[0::2]] and len(facts) in (2, 4):
        now, before = values[:2]
        line, line_before = values[2:] or (claim.quoted_value * scale,) * 2
        return crossed(claim, (before, now), (line_before, line), facts[0].unit, scale)
    if len(facts) > 2:
        return unverifiable(
            "a crossing names now and before, of the value and, if it moves, of the line"
        )
    return judge_past(claim, facts, NOW, history)


def _value(fact: Evidence) -> float:
    if fact.value is None:
        raise ValueError(f"{fact.evidence_id} has no value")
    return fact.value
