"""Rows of the benchmark: what was measured, what was to be reached, and whether results agreed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-9  # of equity, Sharpe and drawdown between two engines
Status = Literal["measured", "skipped", "disagrees", "failed"]


class Metrics(Protocol):
    """What two engines are compared by; every array is [L]."""

    @property
    def final_equity(self) -> NDArray[np.float64]:
        """USD."""

    @property
    def sharpe(self) -> NDArray[np.float64]:
        """Annualised."""

    @property
    def max_drawdown(self) -> NDArray[np.float64]:
        """A fraction <= 0."""

    @property
    def trades(self) -> NDArray[np.int64]:
        """Closed ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far the results of two engines lie apart over the same sets.

    equity, sharpe, drawdown  the greatest differences: relative, absolute where the other is below
                              1 and relative above, absolute
    """

    sets: int
    other_trades: int
    equity: float
    sharpe: float
    drawdown: float

    @property
    def holds(self) -> bool:
        """Trade counts equal and every metric within the tolerance."""
        worst = max(self.equity, self.sharpe, self.drawdown)
        return self.other_trades == 0 and worst <= TOLERANCE

    def words(self) -> str:
        """One phrase for a person."""
        worst = max(self.equity, self.sharpe, self.drawdown)
        return f"{self.other_trades} of {self.sets:,} trade counts differ, worst metric {worst:.1e}"


def agreement(ours: Metrics, theirs: Metrics) -> Agreement:
    """Compare two results; NaN agrees with NaN, and with nothing else."""
    sizes = {ours.trades.size, theirs.trades.size}
    if len(sizes) > 1:
        raise ValueError(f"results of {ours.trades.size} and {theirs.trades.size} sets")
    scale = np.maximum(1.0, np.abs(theirs.sharpe))
    return Agreement(
        sets=ours.trades.size,
        other_trades=int((ours.trades != theirs.trades).sum()),
        equity=_greatest(ours.final_equity, theirs.final_equity, np.abs(theirs.final_equity)),
        sharpe=_greatest(ours.sharpe, theirs.sharpe, scale),
        drawdown=_greatest(ours.max_drawdown, theirs.max_drawdown, np.ones(ours.trades.size)),
    )


def _greatest(
    ours: NDArray[np.float64], theirs: NDArray[np.float64], scale: NDArray[np.float64]
) -> float:
    same = (np.isnan(ours) & np.isnan(theirs)) | (ours == theirs)
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(ours - theirs) / scale)
    return float(np.where(np.isnan(apart), math.inf, apart).max(initial=0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table.

    value, unit     what was measured; None where nothing was
    at_least, aim   the figures to reach, in the same unit
    less_is_better  whether the figures are upper bounds
    detail          the other figures of this work, for the JSON and the note
    """

    work: str
    unit: str
    at_least: float
    aim: float
    value: float | None = None
    less_is_better: bool = False
    status: Status = "measured"
    note: str = ""
    detail: dict[str, Any] = field(default_factory=dict)

    def reaches(self, figure: float) -> bool:
        """Whether the value is as good as `figure`; a row without a value reaches nothing."""
        if self.value is None or self.status != "measured":
            return False
        return self.value <= figure if self.less_is_better else self.value >= figure

    def verdict(self, figure: float) -> str:
        """`met` or `missed`; the status where nothing can be judged."""
        if self.status != "measured":
            return self.status
        return "met" if self.reaches(figure) else "missed"

    def as_json(self) -> dict[str, Any]:
        """The row as a JSON object."""
        body = asdict(self)
        return body | {"least": self.verdict(self.at_least), "aimed": self.verdict(self.aim)}


def compared(
    blank: Row,
    same: Agreement,
    *,
    seconds: float,
    peer: str,
    peer_seconds: float,
    bars: int,
    trades: float,
) -> Row:
    """`blank` with the ratio of two times for the same work, or with what does not agree.

    seconds, peer_seconds  of wall time for all sets
    trades                 a set, on average: what a sweep costs depends on them
    """
    cells = same.sets * bars
    ours, theirs = (each / cells * 1e9 for each in (seconds, peer_seconds))
    return replace(
        blank,
        value=peer_seconds / seconds,
        status="measured" if same.holds else "disagrees",
        note=(
            f"{same.sets:,} sets × {bars:,} bars, {trades:.1f} trades a set; "
            f"{seconds * 1e3:.3g} ms vs {peer_seconds * 1e3:,.4g} ms, "
            f"{ours:.3g} vs {theirs:.3g} ns per set·bar; "
            f"{peer}: {same.words()}"
        ),
        detail={
            "sets": same.sets,
            "bars": bars,
            "mean_trades": trades,
            "seconds": seconds,
            "peer_seconds": peer_seconds,
            "ns": ours,
            "peer_ns": theirs,
            "agreement": asdict(same),
        },
    )


HEADERS = ("work", "measured", "at least", "", "aim", "", "results and particulars")


def table(rows: Iterable[Row]) -> str:
    """The rows as aligned text."""
    lines = [HEADERS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADERS) - 1)]
    return "\n".join(_line(line, widths) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *middle = (
        cell.ljust(width) if number in {0, 3, 5} else cell.rjust(width)
        for number, (cell, width) in enumerate(zip(cells, widths, strict=False))
    )
    return "  ".join([first, *middle, cells[-1]]).rstrip()


def _cells(row: Row) -> tuple[str, ...]:
    value = "-" if row.value is None else f"{_short(row.value)} {row.unit}"
    return (
        row.work,
        value,
        f"{_short(row.at_least)}",
        row.verdict(row.at_least),
        f"{_short(row.aim)}",
        row.verdict(row.aim) if row.status == "measured" else "",
        row.note,
    )


def _short(value: float) -> str:
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
