"""What is kept of a sweep while its sets stream by: the best, moments, a heat map, a sample."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.engines.lanes import METRICS, Ints, Outcomes
from strategies.kernels.runs import Array
from strategies.sweep.grid import Grid

RANKINGS = ("sharpe", "sortino", "final_equity", "annual_return", "max_drawdown", "hit_rate")
MOST_CELLS = 120  # of the heat map, along each axis
SUMMED = ("trades", "open_trades")  # over symbols; everything else is a mean


def is_valid(outcomes: Outcomes) -> NDArray[np.bool_]:
    """[L] whether the numbers of a set fit together, so that it was run."""
    return outcomes.trades >= 0


def over_symbols(by_symbol: Sequence[Outcomes]) -> Outcomes:
    """Outcomes of the same sets on several symbols as one: means, and sums of the trades.

    A set must have run on every symbol to have run. A Sharpe ratio that does not exist (nothing was
    traded there) counts as 0 unless it exists nowhere; the hit rate is that of all closed trades
    together; other figures that do not exist are left out of their mean.
    """
    if len(by_symbol) == 1:
        return by_symbol[0]
    valid = np.all([is_valid(one) for one in by_symbol], axis=0)
    found: dict[str, NDArray[np.float64] | Ints] = {}
    closed = np.array([one.trades for one in by_symbol])
    for name in METRICS:
        each = np.array([getattr(one, name) for one in by_symbol])
        if name in SUMMED:
            found[name] = np.where(valid, each.sum(axis=0), -1 if name == "trades" else 0)
            continue
        known = np.isfinite(each)
        count = known.sum(axis=0)
        if name == "hit_rate":
            won, of = np.where(known, each * closed, 0.0).sum(axis=0), closed.sum(axis=0)
            found[name] = np.where(valid & (of > 0), won / np.maximum(of, 1), np.nan)
            continue
        total = np.where(known, each, 0.0).sum(axis=0)
        over = np.full_like(count, len(by_symbol)) if name == "sharpe" else count
        found[name] = np.where(valid & (count > 0), total / np.maximum(over, 1), np.nan)
    return Outcomes(**found)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One set among the best: its place from 1, its number in the grid, and what became of it.

    outcome  a number for each name of METRICS; NaN where the measure does not exist
    """

    rank: int
    number: int
    outcome: Mapping[str, float]


@dataclass(slots=True)
class Moments:
    """Count, mean and variance of numbers that stream by; the numbers are not kept."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # of the distances from the mean

    def add(self, values: Array) -> None:
        """Take `values` in; those that are not finite are passed over.

        source  Chan, Golub and LeVeque (1979), updating formulae for sample variances
        """
        known = values[np.isfinite(values)]
        if not known.size:
            return
        mean = float(known.mean())
        away = mean - self.mean
        count = self.count + known.size
        self.squares += float(((known - mean) ** 2).sum())
        self.squares += away * away * self.count * known.size / count
        self.mean += away * known.size / count
        self.count = count

    @property
    def variance(self) -> float:
        """With ddof 1; 0.0 for fewer than two numbers."""
        return self.squares / (self.count - 1) if self.count > 1 else 0.0


@dataclass(slots=True)
class Sample:
    """At least `least` of the numbers that stream by in ascending order, evenly spread over them.

    Every k-th is kept; when twice as many as wanted are, every other one is dropped and k doubles.
    """

    least: int
    kept: list[int] = field(default_factory=list)
    every: int = 1
    seen: int = 0

    def add(self, numbers: Ints) -> None:
        """Look at `numbers`, ascending and above all that came before."""
        begin = -self.seen % self.every
        self.kept += numbers[begin :: self.every].tolist()
        self.seen += numbers.size
        while len(self.kept) >= 2 * self.least:
            del self.kept[1::2]
            self.every *= 2


class HeatMap:
    """Best and mean score over the two axes with the most values, in at most 120 × 120 cells.

    rows, columns  numbers of the axes in the grid; rows is None where the grid has one axis
    best           [R, C] highest score in the cell; NaN where no set has one
    count, total   [R, C] sets with a score, and the sum of their scores
    """

    def __init__(self, grid: Grid) -> None:
        by_size = sorted(range(len(grid.names)), key=lambda axis: (-grid.shape[axis], axis))
        chosen = sorted(by_size[:2])
        self.grid = grid
        self.columns = chosen[-1]
        self.rows = chosen[0] if len(chosen) > 1 else None
        sizes = (1 if self.rows is None else grid.shape[self.rows], grid.shape[self.columns])
        # as many values in each cell as in any other: the best of more would be higher by itself
        self._steps = tuple(-(-size // MOST_CELLS) for size in sizes)
        self.shape = (-(-sizes[0] // self._steps[0]), -(-sizes[1] // self._steps[1]))
        cells = self.shape[0] * self.shape[1]
        self._best = np.full(cells, -np.inf)
        self._total = np.zeros(cells)
        self._count = np.zeros(cells, dtype=np.int64)

    def add(self, places: Sequence[Ints], scores: Array) -> None:
        """Take in the scores [L] of sets at `places` on each axis; NaN has none."""
        known = np.isfinite(scores)
        cell = self._bin(places[self.columns], 1)
        if self.rows is not None:
            cell = cell + self.shape[1] * self._bin(places[self.rows], 0)
        cell, scores = cell[known], scores[known]
        size = self._best.size
        np.maximum.at(self._best, cell, scores)
        self._total += np.bincount(cell, weights=scores, minlength=size)
        self._count += np.bincount(cell, minlength=size)

    def _bin(self, place: Ints, side: int) -> Ints:
        return place // self._steps[side]

    @property
    def best(self) -> Array:
        """[R, C] highest score; NaN where there is none."""
        best = np.where(self._count > 0, self._best, np.nan)
        return best.reshape(self.shape)

    @property
    def mean(self) -> Array:
        """[R, C] mean score; NaN where there is none."""
        mean = np.where(self._count > 0, self._total / np.maximum(self._count, 1), np.nan)
        return mean.reshape(self.shape)

    @property
    def count(self) -> Ints:
        """[R, C] sets with a score."""
        return self._count.reshape(self.shape)

    def ends(self, side: int) -> tuple[tuple[float, float], ...]:
        """Lowest and highest value of the axis in each row (side 0) or column (side 1)."""
        axis = self.rows if side == 0 else self.columns
        if axis is None:
            return ()
        values, cells = self.grid.values[axis], self.shape[side]
        cell = self._bin(np.arange(values.size, dtype=np.int64), side)
        first = np.searchsorted(cell, np.arange(cells))
        last = np.searchsorted(cell, np.arange(cells), side="right") - 1
        return tuple(
            (float(values[low]), float(values[high])) for low, high in zip(first, last, strict=True)
        )

    def cell(self, number: int) -> tuple[int, int]:
        """Row and column of set `number`."""
        places = self.grid.places(number, number + 1)
        row = 0 if self.rows is None else int(self._bin(places[self.rows], 0)[0])
        return row, int(self._bin(places[self.columns], 1)[0])


class Results:
    """Everything that is kept of a sweep, in memory that does not grow with the sets.

    top            how many of the best are kept
    rank_by        one of RANKINGS; sets without that measure or a trade come last, equals by
                   their number
    least_sampled  sets of the evenly spread sample
    """

    def __init__(self, grid: Grid, *, rank_by: str, top: int, least_sampled: int = 2_000) -> None:
        self.grid, self.rank_by, self.top = grid, rank_by, top
        self.seen = self.valid = self.trials = 0
        self.sharpes = Moments()  # of every set on every symbol, annualised
        self.heat = HeatMap(grid)
        self.sample = Sample(least_sampled)
        # numbers, scores and rows of METRICS in one name: an interruption finds all old or all new
        self._kept = np.empty(0, dtype=np.int64), np.empty(0), np.empty((len(METRICS), 0))

    def add(self, start: int, by_symbol: Sequence[Outcomes]) -> Outcomes:
        """Take in the sets from `start` on, one Outcomes a symbol; return them over all symbols."""
        merged = over_symbols(by_symbol)
        valid = is_valid(merged)
        numbers = np.arange(start, start + len(merged), dtype=np.int64)
        for one in by_symbol:
            self.sharpes.add(one.sharpe)
        self.sample.add(numbers[valid])
        traded = (merged.trades > 0) | (merged.open_trades > 0)  # doing nothing draws nothing down
        scores: Array = np.where(valid & traded, getattr(merged, self.rank_by), np.nan)
        self.heat.add(self.grid.places(start, start + len(merged)), scores)
        self._keep(numbers, np.where(np.isfinite(scores), scores, -np.inf), valid, merged)
        # counted when all is kept: an interruption leaves no set that is counted and lost
        self.trials += sum(int(is_valid(one).sum()) for one in by_symbol)
        self.valid += int(valid.sum())
        self.seen += len(merged)
        return merged

    def _keep(
        self, numbers: Ints, scores: Array, valid: NDArray[np.bool_], merged: Outcomes
    ) -> None:
        kept_numbers, kept_scores, kept_rows = self._kept
        if kept_scores.size >= self.top:
            valid = valid & (scores > kept_scores[-1])
        chosen = np.flatnonzero(valid)
        if chosen.size > self.top:
            chosen = chosen[np.argsort(-scores[chosen], kind="stable")[: self.top]]
        rows = np.array([getattr(merged, name)[chosen] for name in METRICS], dtype=np.float64)
        numbers = np.concatenate((kept_numbers, numbers[chosen]))
        scores = np.concatenate((kept_scores, scores[chosen]))
        rows = np.concatenate((kept_rows, rows), axis=1)
        order = np.lexsort((numbers, -scores))[: self.top]
        self._kept = numbers[order], scores[order], rows[:, order]

    def confirm(self, by_symbol: Sequence[Outcomes]) -> None:
        """Take exact outcomes of the best sets, in their order, for those that ranked them.

        The kept sets are ranked anew by them; moments, heat map and sample stay as they are.
        """
        numbers, _, rows = self._kept
        merged = over_symbols(by_symbol)
        if len(merged) != numbers.size:
            raise ValueError(f"{len(merged)} outcomes are not those of {numbers.size} kept sets")
        rows = np.array([getattr(merged, name) for name in METRICS], dtype=np.float64)
        scores = np.array(getattr(merged, self.rank_by), dtype=np.float64)
        scores[~np.isfinite(scores)] = -np.inf
        order = np.lexsort((numbers, -scores))
        self._kept = numbers[order], scores[order], rows[:, order]

    @property
    def skipped(self) -> int:
        """Sets whose numbers do not fit together."""
        return self.seen - self.valid

    def best(self) -> tuple[Ranked, ...]:
        """The best sets so far, the very best first."""
        numbers, _, rows = self._kept
        return tuple(
            Ranked(
                rank=place + 1,
                number=int(number),
                outcome=dict(zip(METRICS, rows[:, place].tolist(), strict=True)),
            )
            for place, number in enumerate(numbers)
        )


def steps_around(grid: Grid, number: int, *, reach: int = 2) -> dict[str, tuple[int | None, ...]]:
    """For each axis the sets that differ from set `number` by -reach..reach steps on it alone.

    None where the axis ends; the middle is the set itself.
    """
    places = [int(place[0]) for place in grid.places(number, number + 1)]
    found: dict[str, tuple[int | None, ...]] = {}
    for axis, name in enumerate(grid.names):
        stride = math.prod(grid.shape[axis + 1 :])
        found[name] = tuple(
            number + step * stride if 0 <= places[axis] + step < grid.shape[axis] else None
            for step in range(-reach, reach + 1)
        )
    return found
