"""The claims checker: every quoted number is held against its evidence before anyone reads it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal

from trader.core.decision import Claim, ClaimStatus, Evidence, EvidenceIndex
from trader.core.ports import History

ROUNDING_TOLERANCE = 0.05  # a rounded figure may be off by this fraction, never by more

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
    "<=": lambda left, right: left <= right,
    ">=": lambda left, right: left >= right,
}


def check_claims(
    claims: Iterable[Claim], evidence: EvidenceIndex, _history: History
) -> tuple[Claim, ...]:
    """The claims with their status: verified, contradicted or unverifiable, and why."""
    return tuple(_checked(claim, evidence) for claim in claims)


def quotes(quoted: float, value: float) -> bool:
    """Whether `quoted` is `value` as a person would round it.

    200, 200.1 and 200.10 all quote 200.1; 201 and 181.3 do not. The last digit quoted may be off by
    half, and the whole by no more than 5 %, so that 0 does not quote 0.3.
    """
    if quoted == value:
        return True
    exponent = Decimal(repr(quoted)).normalize().as_tuple().exponent
    step = 10.0 ** min(0, exponent) if isinstance(exponent, int) else 0.0
    error = abs(quoted - value)
    return error <= 0.5 * step * (1 + 1e-9) and error <= ROUNDING_TOLERANCE * abs(value)


def _checked(claim: Claim, evidence: EvidenceIndex) -> Claim:
    status, detail = _judge(claim, evidence)
    return replace(claim, status=status, detail=detail)


def _judge(claim: Claim, evidence: EvidenceIndex) -> tuple[ClaimStatus, str]:
    if not math.isfinite(claim.quoted_value):
        return "unverifiable", f"{claim.quoted_value} is not a number that can be checked"
    facts: list[Evidence] = []
    for evidence_id in claim.evidence_ids:
        fact = evidence.by_id(evidence_id)
        if fact is None:
            return "unverifiable", f"there is no evidence {evidence_id}"
        facts.append(fact)
    if not facts:
        return "unverifiable", "no evidence is named"
    for fact in facts:
        if fact.value is None:
            return "unverifiable", f"{fact.evidence_id} {fact.name} is missing"
        if fact.known_at > fact.as_of:
            return "unverifiable", f"{fact.evidence_id} {fact.name} was not known yet"
        if fact.unit != claim.unit:
            return (
                "unverifiable",
                f"{fact.evidence_id} {fact.name} is in {fact.unit}, not in {claim.unit}",
            )
    if facts[0].name != claim.field:
        return "unverifiable", f"{facts[0].evidence_id} is {facts[0].name}, not {claim.field}"
    values = [fact.value for fact in facts if fact.value is not None]
    if claim.operator == "=":
        return _judge_equal(claim, facts, values)
    if claim.operator in _COMPARE:
        return _judge_comparison(claim, facts, values)
    return _judge_crossing(claim, facts, values)


def _judge_equal(
    claim: Claim, facts: list[Evidence], values: list[float]
) -> tuple[ClaimStatus, str]:
    if len(values) != 1:
        return "unverifiable", "an equality names one piece of evidence"
    true = quotes(claim.quoted_value, values[0])
    return _status(true), f"{facts[0].evidence_id} {claim.field} is {values[0]:.6g}"


def _judge_comparison(
    claim: Claim, facts: list[Evidence], values: list[float]
) -> tuple[ClaimStatus, str]:
    compare = _COMPARE[claim.operator]
    if len(values) == 1:
        return _status(
            compare(values[0], claim.quoted_value)
        ), f"{facts[0].evidence_id} {claim.field} is {values[0]:.6g}"
    if len(values) != 2:
        return "unverifiable", "a comparison names one or two pieces of evidence"
    detail = (
        f"{facts[0].evidence_id} {claim.field} is {values[0]:.6g}, "
        f"{facts[1].evidence_id} {facts[1].name} is {values[1]:.6g}"
    )
    return _status(quotes(claim.quoted_value, values[1]) and compare(values[0], values[1])), detail


def _judge_crossing(
    claim: Claim, facts: list[Evidence], values: list[float]
) -> tuple[ClaimStatus, str]:
    before_names = [fact.name for fact in facts[1::2]]
    if before_names != [f"{fact.name}_previous" for fact in facts[0 : len(facts) - 1 : 2]]:
        return "unverifiable", "a crossing names each fact and the same one on the bar before"
    if len(values) == 2:
        now, before = values
        line_now = line_before = claim.quoted_value
    elif len(values) == 4:
        now, before, line_now, line_before = values
        if not quotes(claim.quoted_value, line_now):
            return (
                "contradicted",
                f"{facts[2].evidence_id} {facts[2].name} is {line_now:.6g}, "
                f"not {claim.quoted_value:.6g}",
            )
    else:
        return (
            "unverifiable",
            "a crossing names now and before, of the value and, if it moves, of the line",
        )
    if claim.operator == "crosses_above":
        true = before <= line_before and now > line_now
    else:
        true = before >= line_before and now < line_now
    return (
        _status(true),
        f"{claim.field} went from {before:.6g} to {now:.6g}, "
        f"the line from {line_before:.6g} to {line_now:.6g}",
    )


def _status(true: bool) -> ClaimStatus:
    return "verified" if true else "contradicted"
