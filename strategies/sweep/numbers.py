"""The numbers of every set of a grid: those that are swept, and those that stay as they are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.dispatch import KernelSet
from strategies.kernels.engines.lanes import Ints
from strategies.kernels.runs import Array
from strategies.names import unknown
from strategies.registry import default_parameters
from strategies.sweep.families import FAMILIES, valid, valid_alone
from strategies.sweep.grid import Grid
from trader.core.errors import UsageError

# How a position leaves but for the strategy's own exit; 0 switches off. Distances are in ATR of
# `stop_window` bars, max_bars is a number of bars.
EXECUTION: Mapping[str, float] = MappingProxyType(
    {"stop_atr": 2.0, "stop_window": 14, "target_atr": 0.0, "trail_atr": 0.0, "max_bars": 0}
)
DISTANCES = ("stop_atr", "target_atr", "trail_atr")
SETS_AT_ONCE = 1 << 14
MOST_BARS = 10**12  # of a window or an age: more than any data have, and exact in every type


def sweepable(strategy: str) -> dict[str, float]:
    """Every number of a strategy that may be swept, with its default; UsageError if unknown."""
    return {**default_parameters(strategy), **EXECUTION}


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Every set of a grid of one strategy.

    fixed  the value of each number that the grid does not sweep
    """

    strategy: str
    grid: Grid
    fixed: Mapping[str, float]

    @property
    def own(self) -> tuple[str, ...]:
        """Names of the strategy's own parameters."""
        return tuple(default_parameters(self.strategy))

    def axis(self, name: str) -> Array:
        """The values of a number, one where it is not swept."""
        if name in self.grid.names:
            return self.grid.values[self.grid.names.index(name)]
        return np.array([float(self.fixed[name])])

    def strides(self, names: Iterable[str]) -> Ints:
        """[A] such that Σ place × stride is the place of a set in the product of these numbers."""
        strides = np.zeros(len(self.grid.names), dtype=np.int64)
        step = 1
        for axis in range(strides.size - 1, -1, -1):
            if self.grid.names[axis] in names:
                strides[axis] = step
                step *= self.grid.shape[axis]
        return strides

    def product_size(self, names: Iterable[str]) -> int:
        """How many combinations these numbers have."""
        return math.prod(self.axis(name).size for name in names)

    def product(self, names: Sequence[str]) -> dict[str, Array]:
        """Every combination of these numbers, as columns in the order of `strides`."""
        swept = tuple(name for name in self.grid.names if name in names)
        size = self.product_size(names)
        grid = Grid(names=swept, values=tuple(self.axis(name) for name in swept))
        columns = grid.columns(0, size) if swept else {}
        return {
            name: columns[name] if name in columns else np.full(size, self.axis(name)[0])
            for name in names
        }

    def columns(self, numbers: Ints) -> dict[str, Array]:
        """Every number of some sets, as one array each."""
        places = np.unravel_index(numbers, self.grid.shape)
        swept = {
            name: axis[place]
            for name, axis, place in zip(self.grid.names, self.grid.values, places, strict=True)
        }
        steady = {name: np.full(numbers.size, float(value)) for name, value in self.fixed.items()}
        return {**steady, **swept}

    def uses(self, name: str) -> bool:
        """Whether any set has a number above 0 here."""
        return bool((self.axis(name) > 0.0).any())

    def count_valid(self, kernels: KernelSet) -> int:
        """How many sets have numbers that fit together."""
        family = FAMILIES.get(self.strategy)
        free = math.prod(self.axis(name).size for name in EXECUTION)
        if family is None:
            return free * self._count_made(kernels)
        for name in self.own:
            if family.ordered is None or name not in family.ordered:
                free *= int(valid_alone(self.strategy, name, self.axis(name)).sum())
        if family.ordered is None:
            return free
        low, high = (
            self.axis(name)[valid_alone(self.strategy, name, self.axis(name))]
            for name in family.ordered
        )
        return free * int(np.searchsorted(low, high, side="left").sum())

    def _count_made(self, kernels: KernelSet) -> int:
        if not self.own:
            return 1
        own = self.product(self.own)
        return int(valid(self.strategy, own, kernels).sum())


def numbers_of(strategy: str, grid: Grid, fixed: Mapping[str, float], bars: int) -> Numbers:
    """The numbers of a grid, checked.

    fixed  values over the defaults, of numbers that the grid does not sweep
    bars   how many there are to warm windows up
    raises UsageError for names that do not exist, a swept window longer than the bars, values that
           no position can leave by, and a number of which the strategy takes no value at all
    """
    known = sweepable(strategy)
    for name in (*grid.names, *fixed):
        if name not in known:
            raise UsageError(unknown(f"parameter of {strategy}", name, known))
    whole = {name for name, value in known.items() if isinstance(value, int)} - {"max_bars"}
    for name, values in zip(grid.names, grid.values, strict=True):
        if name in whole and values[-1] > bars:
            raise UsageError(
                f"{name}: a window of {values[-1]:,.0f} bars is longer than the {bars:,} bars of "
                f"the data; end {name} at {bars:,} or before"
            )
    numbers = Numbers(
        strategy=strategy,
        grid=grid,
        fixed={
            name: fixed.get(name, value) for name, value in known.items() if name not in grid.names
        },
    )
    for name in DISTANCES:
        values = numbers.axis(name)
        _require(name, values, np.isfinite(values) & (values >= 0.0), "a finite number from 0 up")
    for name, least in (("stop_window", 1), ("max_bars", 0)):
        values = numbers.axis(name)
        sound = (values >= least) & (values == np.floor(values)) & (values <= MOST_BARS)
        _require(name, values, sound, f"a whole number of bars from {least} to {MOST_BARS:,}")
    for name in numbers.own if strategy in FAMILIES else ():
        values = numbers.axis(name)
        if not valid_alone(strategy, name, values).any():
            make = f"a number that {strategy} takes; its default is {known[name]:g}"
            _require(name, values, np.zeros(values.size, dtype=np.bool_), make)
    return numbers


def _require(name: str, values: Array, sound: NDArray[np.bool_], what: str) -> None:
    """UsageError naming the first value that is not sound, and what it must be."""
    if not sound.all():
        raise UsageError(f"{name} {values[np.argmin(sound)]:g} must be {what}")
