"""How claims are called in prompts and in the arbitrator's reply: B1, B2 …, R1, R2 …."""

from __future__ import annotations

from collections.abc import Sequence

from trader.core.decision import Argument, Claim, Rebuttal


def numbered_claims(
    arguments: Sequence[Argument], rebuttals: Sequence[Rebuttal]
) -> dict[str, Claim]:
    """Every claim by its number, counted through the whole debate: B the bull's, R the bear's."""
    found: dict[str, Claim] = {}
    for letter, turns in (("B", arguments), ("R", rebuttals)):
        claims = [claim for turn in turns for claim in turn.claims]
        found |= {f"{letter}{number}": claim for number, claim in enumerate(claims, start=1)}
    return found
