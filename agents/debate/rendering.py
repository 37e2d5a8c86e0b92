"""Facts and claims in the words of code: typed fields only, never a word of a speaker.

What a model reads of the other side is made here. A field that no evidence has, an unknown unit and
a past that is not written as a date or a count are named as such, never repeated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.debate.claims.quoting import SPELLINGS, shown_number
from trader.core.decision import FOREIGN_KINDS, Claim, Evidence, EvidenceIndex

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.]{0,79}")
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_WHEN = re.compile(rf"{_DAY}(?: ?\.\. ?{_DAY})?|since {_DAY}|last [1-9][0-9]{{0,3}}(?: sessions)?")
_UNITS = frozenset({*SPELLINGS, *(word for words in SPELLINGS.values() for word in words)})
_STATUSES = {"contradicted": "CONTRADICTED", "unverifiable": "UNVERIFIABLE"}
# what is known of every target level, with its unit, in the order of the table
_OF_A_TARGET: Mapping[str, str] = {
    "target": "USD",
    "reward_risk": "ratio",
    "hits": "count",
    "probability": "fraction",
    "expected_value": "R",
}


def shown_price(value: float) -> str:
    """A level, USD per share, to a hundredth of a tick: it must be given back as it is."""
    return repr(round(value, 4 if value >= 1.0 else 6)).removesuffix(".0")


def fact_lines(facts: Sequence[Evidence]) -> str:
    """Every known fact on one line, number, field and value, under the unit of its group.

    Facts about targets share a table, a line for each price. Missing ones are named at the end.
    """
    known = [fact for fact in facts if fact.value is not None and _listed(fact)]
    tables = _targets(known)
    in_table = {fact.evidence_id for row in tables.values() for fact in row}
    groups: dict[str, list[str]] = {}
    for fact in known:
        if fact.evidence_id not in in_table:
            groups.setdefault(fact.unit, []).append(_fact_line(fact))
    lines = [line for unit, rows in groups.items() for line in (f"[{unit}]", *rows)]
    if tables:
        heads = (f"{kind}_X {unit}" for kind, unit in _OF_A_TARGET.items())
        lines.append(f"[X: {', '.join(heads)}]")
        prices = [row[0].value for row in tables.values()]
        lines += [
            _table_line(name, row)
            for at, (name, row) in enumerate(tables.items())
            if row[0].value not in prices[:at]
        ]
    missing = [
        fact.name
        for fact in facts
        if fact.value is None and fact.kind not in FOREIGN_KINDS and _NAME.fullmatch(fact.name)
    ]
    if missing:
        lines.append(f"[missing] {', '.join(missing)}")
    return "\n".join(lines)


def render_claim(claim: Claim, evidence: EvidenceIndex) -> str:
    """A checked claim from its typed fields, with the fact's value where it speaks of now.

    sma_50 265.32 > sma_200 241.24 USD
    """
    facts = [fact for name in claim.evidence_ids if (fact := evidence.by_id(name)) is not None]
    # only in the hearing is a claim about a stranger's fact ever verified
    ours = claim.status == "verified" or all(fact.kind not in FOREIGN_KINDS for fact in facts)
    named = ours and all(_NAME.fullmatch(fact.name) for fact in facts)
    if not facts or facts[0].name != claim.field or not named:
        return "something that the evidence does not hold"
    value = "" if facts[0].value is None else shown_number(facts[0].value)
    quoted, unit = shown_number(claim.quoted_value), _unit(claim.unit)
    before = f"{claim.field}_previous"
    line = next((fact.name for fact in facts[1:] if fact.name != before), "")
    upper = "" if claim.upper_value is None else shown_number(claim.upper_value)
    match claim.operator:
        case "count_above" | "count_below" | "count_up" | "count_down":
            way = claim.operator.removeprefix("count_")
            words = [way, line or upper, "in", quoted, "sessions"]
        case "between":
            words = ["between", quoted, "and", upper, unit]
        case "highest" | "lowest" | "change" | "=":
            words = [claim.operator, quoted, unit]
        case "<" | ">" | "<=" | ">=" | "crosses_above" | "crosses_below":
            words = [claim.operator.replace("_", " "), line, quoted, unit]
        case _:
            words = ["in a way that cannot be checked"]
    if claim.when is not None:
        words.append(_when(claim.when))
    elif claim.operator != "=":
        words.insert(0, value)
    elif claim.status == "contradicted":
        words.append(f"but is {value}")
    return " ".join((claim.field, *filter(None, words)))


def claim_lines(claims: Mapping[str, Claim], evidence: EvidenceIndex, *, none: str = "none") -> str:
    """Claims by number, one a line; a status stands there unless it is `verified`."""
    lines = []
    for number, claim in claims.items():
        status = (
            "" if claim.status == "verified" else f" {_STATUSES.get(claim.status, 'UNCHECKED')}"
        )
        lines.append(f"{number}{status} {render_claim(claim, evidence)}")
    return "\n".join(lines) or none


def claimed_fields(claims: Mapping[str, Claim], evidence: EvidenceIndex) -> str:
    """The facts that a speaker has used up, and in full those of its claims that do not stand."""
    known = dict.fromkeys(
        fact.name
        for claim in claims.values()
        if (fact := evidence.named(claim.field)) is not None
        and (fact.kind not in FOREIGN_KINDS or claim.status == "verified")
    )
    failed = {number: said for number, said in claims.items() if said.status != "verified"}
    fields = ", ".join(name for name in known if _NAME.fullmatch(name)) or "nothing"
    return f"{fields}; not verified:\n{claim_lines(failed, evidence)}" if failed else fields


def _listed(fact: Evidence) -> bool:
    """Whether a fact's name, and a stranger's unit, are such as code gives."""
    unit = fact.kind not in FOREIGN_KINDS or fact.unit in SPELLINGS
    return unit and bool(_NAME.fullmatch(fact.name))


def _fact_line(fact: Evidence) -> str:
    value = fact.value or 0.0
    exact = fact.kind == "level" and fact.unit == "USD"
    return f"{fact.evidence_id} {fact.name} {shown_price(value) if exact else shown_number(value)}"


def _unit(spelling: str) -> str:
    words = " ".join(spelling.split())
    return words if words in _UNITS or words.lower() in _UNITS else "in an unknown unit"


def _when(said: str) -> str:
    words = " ".join(said.lower().split())
    return words if _WHEN.fullmatch(words) else "at an unclear time"


def _targets(facts: Sequence[Evidence]) -> dict[str, list[Evidence]]:
    """Target levels by name, each with all five of its facts; one that lacks some is no row."""
    named = {(fact.name, fact.unit): fact for fact in facts}
    found: dict[str, list[Evidence]] = {}
    for fact in facts:
        level = fact.name.removeprefix("target_")
        wanted = [(f"{kind}_{level}", unit) for kind, unit in _OF_A_TARGET.items()]
        if fact.name != level and all(name in named for name in wanted):
            found[level] = [named[name] for name in wanted]
    return found


def _table_line(name: str, row: Sequence[Evidence]) -> str:
    values = (fact.value or 0.0 for fact in row)
    shown = [shown_price(next(values)), *(shown_number(value) for value in values)]
    cells = (f"{fact.evidence_id} {value}" for fact, value in zip(row, shown, strict=True))
    return f"{name}: {', '.join(cells)}"
