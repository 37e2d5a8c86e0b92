"""What `trader sweep` answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from trader.core.canonical import Primitive, to_object
from trader.report.contents import SourceInfo
from trader.report.sweep_contents import (
    Axis,
    FoldRow,
    LuckFigures,
    Neighbours,
    SetFigures,
    SetRow,
)

__all__ = ["Applied", "FoldRow", "LuckFigures", "SetFigures", "SweepResult", "Timing"]

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What became of --apply: the file that was written, or why none was."""

    rank: int
    path: str | None
    refused: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long the grid took, and how fast it went; the only figures that differ run by run."""

    seconds: float
    sets_per_second: float
    set_bars_per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """What `trader sweep` prints.

    grid     as it was written; axes says what it means
    fixed    numbers that were not swept
    sets     in the grid; run and skipped are those that were reached before an interruption
    skipped  sets whose numbers do not fit together
    partial  whether it was interrupted before the end
    luck     None where it was interrupted before that was known
    csv      file with every set; None where none was asked for
    """

    schema_version: int
    run_id: str
    source: SourceInfo
    first_session: date
    last_session: date
    bars: int
    strategy: str
    grid: str
    axes: tuple[Axis, ...]
    fixed: Mapping[str, float]
    rank_by: str
    shared_cash: bool
    whole_shares: bool
    sets: int
    run: int
    skipped: int
    engine: str
    backend: str
    reason: str
    partial: bool
    top: tuple[SetRow, ...]
    defaults: SetFigures | None
    buy_and_hold: SetFigures
    neighbours: tuple[Neighbours, ...]
    luck: LuckFigures | None
    applied: Applied | None
    csv: str | None
    report: str
    notices: tuple[str, ...]
    timing: Timing

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command; a set has its figures on its own level."""
        whole = to_object(self)
        whole["top"] = [
            {
                "rank": row.rank,
                "number": row.number,
                "parameters": to_object(row.parameters),
                **to_object(row.figures),
            }
            for row in self.top
        ]
        return whole
