"""Numbers that belong to a fact and may stand beside it: a target's entry, a part's whole."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agents.debate.claims.quoting import Finding, Measure
from agents.debate.claims.written import Numeral
from trader.core.decision import Claim, EvidenceIndex

_COUNTED = re.compile(
    r"\s(?:of|out of|past|closed|earlier|previous|prior|trades?|signals?|entries|times|cases)\b"
)
_COUNTED_BEFORE = re.compile(r"\bof\s(?:the\s|its\s|all\s)?$")
# before the second number of: 23 of the 89, 5 out of its last 10
_PART_OF = re.compile(
    r"\d\s(?:out\s)?of\s(?:(?:the|its|all|these|last|past|previous|closed|prior)\s){0,3}$"
)
OTHERWISE = re.compile(
    r"\b(?:not|without|fail\w*|los[est]\w*|losing|miss\w*|stopped|calmer)\b|n't\b", re.IGNORECASE
)
_BESIDE = {"atr_fraction": "atr", "atr": "atr_fraction", "volume_ratio_20": "volume"}
_LEVELS = ("target_", "reward_risk_", "hits_", "probability_", "expected_value_")


def is_total(text: str, numeral: Numeral) -> bool:
    """Whether it is said to be the whole of the number before it: 23 of the 89."""
    start = numeral.start
    return numeral.bare and bool(_PART_OF.search(text, max(0, start - 50), start))


def totals(claim: Claim, finding: Finding, evidence: EvidenceIndex) -> list[Measure]:
    """What a part may be of: trades that closed or fired, or sessions; none where not known."""
    if claim.operator.startswith("count_"):
        return list(finding.said[1:2])
    if not claim.field.startswith(("hits_", "probability_", "signal_")):
        return []
    sizes = (evidence.value(name) for name in ("signal_closed", "signal_fired"))
    return [Measure(value=size, unit="count") for size in sizes if size is not None]


def companions(
    text: str, numeral: Numeral, name: str, evidence: EvidenceIndex
) -> Iterator[Measure]:
    """Levels and counts that belong to the fact of this name, as a target to its reward:risk."""
    level = next((name.removeprefix(lead) for lead in _LEVELS if name.startswith(lead)), None)
    wanted: tuple[str, ...] = ()
    if level is not None:
        wanted = (f"target_{level}", "entry_price", "stop_price")
    elif name in _BESIDE:
        wanted = (_BESIDE[name],)
    elif name in ("entry_price", "stop_price", "risk_per_share", "risk_fraction"):
        wanted = ("entry_price", "stop_price", "risk_per_share", "risk_fraction")
    counted = numeral.bare and (
        _COUNTED.match(text, numeral.stop) or _COUNTED_BEFORE.search(text, 0, numeral.start)
    )
    if counted and (level is not None or name.startswith("signal_")):
        wanted += (f"hits_{level}", "signal_closed", "signal_fired")
    for other in wanted:
        fact = evidence.named(other)
        if fact is not None and fact.value is not None:
            yield Measure(value=fact.value, unit=fact.unit)
    if level is not None and numeral.mark == "%":
        yield from _of_a_target(level, evidence)
    closed, rate = evidence.value("signal_closed"), evidence.value("signal_hit_rate")
    if counted and name == "signal_hit_rate" and closed is not None and rate is not None:
        won = float(round(rate * closed))
        yield Measure(value=won, unit="count")
        if OTHERWISE.search(text):
            yield Measure(value=closed - won, unit="count")


def _of_a_target(level: str, evidence: EvidenceIndex) -> Iterator[Measure]:
    """Percentages that belong to a target: its chance, and how far it is from the entry."""
    chance, target, entry = (
        evidence.value(name) for name in (f"probability_{level}", f"target_{level}", "entry_price")
    )
    if chance is not None:
        yield Measure(value=chance, unit="fraction")
    if target is not None and entry:
        yield Measure(value=target / entry - 1.0, unit="fraction")
