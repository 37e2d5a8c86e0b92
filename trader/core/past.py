"""A question to the past that a claim asks: which number of which field, over which sessions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal

Statistic = Literal[
    "value",
    "highest",
    "lowest",
    "session_of_highest",
    "session_of_lowest",
    "count_above",
    "count_below",
    "count_up",
    "count_down",
    "sessions",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastQuestion:
    """A number of the past that a claim quotes; the period ends at `last`, both ends included.

    field  open, high, low, close, volume, or the name of an indicator among the evidence
    first  None together with `bars`: that many sessions up to and with `last`
    last   None: the newest session known at the decision; `value` is of the first session
    line, line_field  what a session is compared with in a count: a number, or another field
    """

    statistic: Statistic
    field: str
    first: date | None = None
    last: date | None = None
    bars: int | None = None
    line: float | None = None
    line_field: str | None = None

    @property
    def key(self) -> str:
        """One line that names the question, for the record."""
        period = f"{self.first or ''}..{self.last or ''}"
        words = [self.statistic, self.field, period, f"{self.bars or ''}"]
        line = self.line_field or ("" if self.line is None else repr(self.line))
        return " ".join([*words, line]).strip()
