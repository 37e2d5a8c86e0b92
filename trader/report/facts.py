"""The facts of one decision as rows that claims and rules link to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trader.core.decision import Argument, CycleRecord, Evidence, Rebuttal
from trader.report.contents import TradeRow
from trader.report.markup import Html, anchor, join, link, table, tag
from trader.report.wording import counted, fact, minute


@dataclass(frozen=True, slots=True, kw_only=True)
class DebateView:
    """A debate and its place on the page; its number, from 1, makes ids of evidence unique."""

    cycle: CycleRecord
    number: int
    trade: TradeRow | None
    refusal: str  # the broker's words, when it refused the order
    with_time: bool

    def row_id(self, evidence_id: str) -> str:
        """Id of the row that shows this fact."""
        return anchor(f"d{self.number}-{evidence_id}")

    def facts(self) -> dict[str, Evidence]:
        """The evidence by its number."""
        return {item.evidence_id: item for item in self.cycle.evidence}


def references(view: DebateView, ids: Iterable[str], facts: dict[str, Evidence]) -> Html:
    """Links to the rows of the evidence; a number that has no row is said to be missing."""
    written = []
    for evidence_id in ids:
        found = facts.get(evidence_id)
        if found is None:
            written.append(tag("span", f"{evidence_id} (no such evidence)", class_="unknown"))
        else:
            title = f"{found.name} {fact(found)}"
            written.append(link(view.row_id(evidence_id), evidence_id, title=title))
    return join(between(written, " "))


def evidence_section(view: DebateView) -> Html:
    """Facts that someone referred to stand open; the others, which were looked at, fold away."""
    cycle = view.cycle
    if not cycle.evidence:
        return tag(
            "section", tag("h3", "Evidence"), tag("p", "No evidence was gathered.", class_="fine")
        )
    turns: tuple[Argument | Rebuttal, ...] = (*cycle.debate.arguments, *cycle.debate.rebuttals)
    named = {name for turn in turns for claim in turn.claims for name in claim.evidence_ids}
    named |= {name for rule in cycle.debate.verdict.rules for name in rule.evidence_ids}
    named |= {name for flag in cycle.debate.verdict.flags for name in flag.evidence_ids}
    quoted = [item for item in cycle.evidence if item.evidence_id in named]
    others = [item for item in cycle.evidence if item.evidence_id not in named]
    return tag(
        "section",
        tag("h3", "Evidence"),
        _facts(view, f"{counted(len(quoted), 'fact')} referred to above", quoted),
        tag(
            "details",
            tag("summary", f"{counted(len(others), 'other fact')} that could have been quoted"),
            _facts(view, "Known at the decision and not quoted", others),
        )
        if others
        else "",
    )


def _facts(view: DebateView, caption: str, items: Sequence[Evidence]) -> Html:
    if not items:
        return Html("")
    rows = (
        tag(
            "tr",
            tag("th", item.evidence_id, scope="row"),
            tag("td", item.name, tag("small", item.text) if item.text else ""),
            tag("td", fact(item)),
            tag("td", minute(item.known_at)),
            tag("td", item.source),
            id=view.row_id(item.evidence_id),
        )
        for item in items
    )
    return table(caption, ("Id", "Name", "#Value", "Known at, UTC", "Source"), rows, class_="facts")


def between(parts: Sequence[str], separator: str) -> list[str]:
    """The parts with the separator between them."""
    return [item for part in parts for item in (separator, part)][1:]
