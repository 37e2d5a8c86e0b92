"""What bull and bear said in turn, each claim with the mark that the checker gave it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from trader.core.decision import (
    Argument,
    Claim,
    Debate,
    Evidence,
    Hearing,
    Rebuttal,
    SideRecord,
    Weighing,
    debater_words,
)
from trader.report.facts import DebateView, references
from trader.report.markup import Html, join, table, tag
from trader.report.wording import counted, measured, number, percent, plain

STATUS_MARKS = {"verified": "✓", "contradicted": "✗", "unverifiable": "?", "unchecked": "–"}


def rounds_section(view: DebateView, facts: dict[str, Evidence]) -> Html:
    """Bull, bear, bull, bear: in the order in which they spoke; then how their claims fared."""
    debate = view.cycle.debate
    if not debate.arguments and not debate.rebuttals:
        said = "No debate was held." if debate.debater == "off" else "Neither side was heard."
        return tag("section", tag("h3", "Debate"), speakers(debate), tag("p", said))
    return tag(
        "section",
        tag("h3", "Debate"),
        speakers(debate),
        _rounds(view, debate.arguments, debate.rebuttals, facts),
        _sides(debate.sides),
    )


def speakers(debate: Debate) -> Html:
    """Who debated, and why it was not the model where rules stood in for it."""
    if debate.fallback:
        return tag("p", tag("b", "Rules debated in place of the model"), f": {debate.fallback}")
    models: dict[str, list[str]] = {}
    for call in debate.calls:
        roles = models.setdefault(call.model, [])
        if call.role not in roles:
            roles.append(call.role)
    if not models:
        return tag("p", f"Debated by {debater_words(debate.debater)}.", class_="fine")
    told = "; ".join(f"{', '.join(roles)}: {model}" for model, roles in models.items())
    return tag("p", f"{counted(len(debate.calls), 'call')} to models. {told}.", class_="fine")


def _rounds(
    view: DebateView,
    arguments: Sequence[Argument],
    rebuttals: Sequence[Rebuttal],
    facts: dict[str, Evidence],
) -> Html:
    turns: list[Argument | Rebuttal] = sorted(
        (*arguments, *rebuttals), key=lambda turn: (turn.round, turn.stance == "bear")
    )
    numbers = {"bull": count(1), "bear": count(1)}
    return tag(
        "div",
        join(_turn(view, turn, facts, numbers[turn.stance]) for turn in turns),
        class_="rounds",
    )


def _sides(sides: Sequence[SideRecord]) -> Html:
    """How the claims of each side fared, and the weight that it had for that."""
    if not sides:
        return Html("")
    rows = (
        tag(
            "tr",
            tag("th", side.role.capitalize(), scope="row"),
            tag("td", f"{side.verified:,}", class_="n"),
            tag("td", f"{side.contradicted:,}", class_="n"),
            tag("td", f"{side.unverifiable:,}", class_="n"),
            tag("td", percent(side.weight, 0), class_="n"),
        )
        for side in sides
    )
    return table(
        "Claims of each side; its weight is the share of them that is true",
        ("Side", "#Verified", "#Contradicted", "#Unverifiable", "#Weight"),
        rows,
        class_="sides",
    )


def weighing_section(weighing: Weighing | None) -> Html:
    """What the arbitrator's model said; the rules decide, and it can only add a no."""
    if weighing is None:
        return Html("")
    rests = f", resting on {', '.join(weighing.decisive)}" if weighing.decisive else ""
    return tag(
        "div",
        tag("h4", "The arbitrator's model"),
        tag(
            "p",
            tag("b", weighing.decision.value),
            f" at a confidence of {number(weighing.confidence)}{rests}.",
        ),
        tag("blockquote", weighing.rationale),
        class_="weighing",
    )


def hearing_section(view: DebateView, hearing: Hearing | None, facts: dict[str, Evidence]) -> Html:
    """The debate held again with foreign texts in it: it can take a GO away, never give one."""
    if hearing is None:
        return Html("")
    stands = hearing.verdict.decision.value == "GO"
    outcome = "The GO stands." if stands else "It took the GO away."
    return tag(
        "section",
        tag("h3", "Hearing with foreign texts"),
        tag("p", tag("b", outcome), f" {hearing.verdict.rationale}"),
        weighing_section(hearing.weighing),
        tag(
            "details",
            tag("summary", f"What was said, {counted(len(hearing.calls), 'call')} to models"),
            _rounds(view, hearing.arguments, hearing.rebuttals, facts),
        ),
    )


def calls_section(debate: Debate) -> Html:
    """Every call to a model, by the id under which its reply is kept."""
    calls = (*debate.calls, *(debate.hearing.calls if debate.hearing else ()))
    if not calls:
        return Html("")
    rows = (
        tag(
            "tr",
            tag("th", call.role, scope="row"),
            tag("td", f"{call.round}", class_="n"),
            tag("td", call.model),
            tag("td", call.prompt),
            tag("td", tag("code", call.call_id)),
        )
        for call in calls
    )
    return tag(
        "details",
        tag("summary", f"{counted(len(calls), 'call')} to models"),
        table(
            "In the order in which they were made",
            ("Role", "#Round", "Model", "Prompt", "Call"),
            rows,
            class_="calls",
        ),
    )


def _turn(
    view: DebateView,
    turn: Argument | Rebuttal,
    facts: dict[str, Evidence],
    numbers: Iterator[int],
) -> Html:
    opening = turn.round == 0
    if isinstance(turn, Argument):
        title = "Bull opens" if opening else f"Bull answers, round {turn.round}"
        said = tag("p", turn.thesis)
    else:
        title = "Bear attacks" if opening else f"Bear again, round {turn.round}"
        said = join(
            (
                tag("p", "The weakest claim:", class_="fine"),
                tag("blockquote", turn.weakest_claim),
                tag("p", turn.counter),
            )
        )
    letter = "B" if turn.stance == "bull" else "R"
    claims = join(_claim(view, claim, facts, f"{letter}{next(numbers)}") for claim in turn.claims)
    return tag(
        "div",
        tag("h4", title),
        said,
        tag("ul", claims, class_="claims")
        if turn.claims
        else tag("p", "No claims.", class_="fine"),
        class_=f"turn {turn.stance}",
    )


def _claim(view: DebateView, claim: Claim, facts: dict[str, Evidence], name: str) -> Html:
    said = f"{claim.field} {plain(claim.operator)} {measured(claim.quoted_value, claim.unit)}"
    if claim.upper_value is not None:
        said += f" and {measured(claim.upper_value, claim.unit)}"
    if claim.when is not None:
        said += f", {claim.when}"
    return tag(
        "li",
        tag("span", f"{STATUS_MARKS[claim.status]} {claim.status}", class_=f"mark {claim.status}"),
        " ",
        claim.text,
        tag(
            "small",
            tag("b", name),
            " ",
            references(view, claim.evidence_ids, facts),
            f" {said}",
            f" — {claim.detail}" if claim.detail else "",
        ),
    )
