"""How a rule debater makes a checkable claim: a catalogue row, tried against the facts."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

from trader.core.decision import Evidence, EvidenceIndex, Operator, Style
from trader.core.ports import ChatRequest

ClaimFields = dict[str, object]

_HOLDS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
}
ALL_STYLES: tuple[Style, ...] = ("trend", "mean_reversion", "momentum", "benchmark")
FOLLOWING: tuple[Style, ...] = ("trend", "momentum", "benchmark")
REVERTING: tuple[Style, ...] = ("mean_reversion",)
LEVEL_WORDS = {
    "high_20": "20-bar high",
    "high_60": "60-bar high",
    "high_252": "252-bar high",
    "measured_move": "measured move",
    "excursion_quartile": "upper quartile of past gains",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One row: the fact `field` compared with a constant or with the fact named by `line`.

    text  a sentence with {value} and {line} where the numbers go
    """

    field: str
    operator: Operator
    line: float | str
    text: str
    styles: tuple[Style, ...] = ALL_STYLES

    def claim(self, evidence: EvidenceIndex, style: Style) -> ClaimFields | None:
        """The claim if the row suits the style and is true, else None: rule debaters never lie."""
        fact = evidence.named(self.field)
        if style not in self.styles or fact is None or fact.value is None:
            return None
        ids = [fact.evidence_id]
        if isinstance(self.line, str):
            other = evidence.named(self.line)
            if other is None or other.value is None:
                return None
            ids.append(other.evidence_id)
            line = other.value
        else:
            line = self.line
        if not _HOLDS[self.operator](fact.value, line):
            return None
        return {
            "text": self.text.format(
                value=shown(fact.value, fact.unit), line=shown(line, fact.unit)
            ),
            "evidence_ids": ids,
            "field": self.field,
            "operator": self.operator,
            "quoted_value": rounded(line),
            "unit": fact.unit,
        }


def rounded(value: float) -> float:
    """A number as a person quotes it: cents from 1 on, three significant digits below."""
    return round(value, 2) if abs(value) >= 1.0 else float(f"{value:.3g}")


def shown(value: float, unit: str) -> str:
    """A number with its unit, for a sentence."""
    if unit == "fraction":
        return f"{value:.1%}"
    if unit in {"count", "bars", "shares"}:
        return f"{value:.0f}"
    if unit == "USD":
        return f"{value:,.2f} USD"
    if unit == "R":
        return f"{value:+.2f} R"
    return f"{value:.2f}"


def level_words(name: str) -> str:
    """A target level by the name a person would use."""
    return LEVEL_WORDS.get(name, name.replace("_", " "))


def crossing(evidence: EvidenceIndex, text: str) -> ClaimFields | None:
    """The claim that the strategy's own rule crossed on its signal bar."""
    facts: list[Evidence] = []
    for name in ("rule_value", "rule_value_previous", "rule_line", "rule_line_previous"):
        fact = evidence.named(name)
        if fact is None or fact.value is None:
            return None
        facts.append(fact)
    now, before, line, line_before = (fact.value or 0.0 for fact in facts)
    if not (before <= line_before and now > line):
        return None
    return {
        "text": text,
        "evidence_ids": [fact.evidence_id for fact in facts],
        "field": "rule_value",
        "operator": "crosses_above",
        "quoted_value": rounded(line),
        "unit": facts[0].unit,
    }


def used_fields(request: ChatRequest, role: str) -> set[str]:
    """Fields that this side has already made claims about."""
    said = request.arguments if role == "bull" else request.rebuttals
    return {claim.field for turn in said for claim in turn.claims}
