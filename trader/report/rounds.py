"""What bull and bear said in turn, each claim with the mark that the checker gave it."""

from __future__ import annotations

from trader.core.decision import Argument, Claim, Evidence, Rebuttal
from trader.report.facts import DebateView, references
from trader.report.markup import Html, join, tag
from trader.report.wording import measured, plain

STATUS_MARKS = {"verified": "✓", "contradicted": "✗", "unverifiable": "?", "unchecked": "–"}


def rounds_section(view: DebateView, facts: dict[str, Evidence]) -> Html:
    """Bull, bear, bull, bear: in the order in which they spoke."""
    debate = view.cycle.debate
    turns: list[Argument | Rebuttal] = sorted(
        (*debate.arguments, *debate.rebuttals), key=lambda turn: (turn.round, turn.stance == "bear")
    )
    if not turns:
        said = "No debate was held." if debate.debater == "off" else "Neither side was heard."
        return tag("section", tag("h3", "Debate"), tag("p", said))
    return tag(
        "section",
        tag("h3", "Debate"),
        tag("div", join(_turn(view, turn, facts) for turn in turns), class_="rounds"),
    )


def _turn(view: DebateView, turn: Argument | Rebuttal, facts: dict[str, Evidence]) -> Html:
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
    claims = join(_claim(view, claim, facts) for claim in turn.claims)
    return tag(
        "div",
        tag("h4", title),
        said,
        tag("ul", claims, class_="claims")
        if turn.claims
        else tag("p", "No claims.", class_="fine"),
        class_=f"turn {turn.stance}",
    )


def _claim(view: DebateView, claim: Claim, facts: dict[str, Evidence]) -> Html:
    said = f"{claim.field} {plain(claim.operator)} {measured(claim.quoted_value, claim.unit)}"
    return tag(
        "li",
        tag("span", f"{STATUS_MARKS[claim.status]} {claim.status}", class_=f"mark {claim.status}"),
        " ",
        claim.text,
        tag(
            "small",
            references(view, claim.evidence_ids, facts),
            f" {said}",
            f" — {claim.detail}" if claim.detail else "",
        ),
    )
