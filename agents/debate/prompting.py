"""What each speaker of a debate reads."""

from __future__ import annotations

from collections.abc import Sequence

from agents.debate.state import DebateContext
from trader.core.decision import Argument, Rebuttal, Role
from trader.core.ports import Prompt


def write_prompt(
    role: Role,
    turn: int,
    context: DebateContext,
    arguments: Sequence[Argument],
    rebuttals: Sequence[Rebuttal],
) -> Prompt:
    """The prompt of one turn."""
    raise NotImplementedError
