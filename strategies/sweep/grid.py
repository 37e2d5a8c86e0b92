"""Grids of numbers: `fast=5:50,slow=20:200:5` as axes, and every set in them by its number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.runs import Array
from strategies.names import unknown
from trader.core.errors import UsageError

MOST_VALUES = 1_000_000  # of one axis
MOST_SETS = 10**12  # hours of work on any machine
GREATEST = 1e12  # number of an axis; no window, distance or threshold is near it
MOST_DECIMALS, MOST_UNITS = 22, 2**53  # powers of ten and whole numbers that float64 has exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Every combination of the values of some axes.

    names   of the axes, in the order they were written
    values  one array for each axis, ascending
    Set number n is the n-th combination; the last axis runs fastest.
    """

    names: tuple[str, ...]
    values: tuple[Array, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each axis has."""
        return tuple(int(axis.size) for axis in self.values)

    def __len__(self) -> int:
        return math.prod(self.shape)

    def columns(self, start: int, stop: int) -> dict[str, Array]:
        """The sets start..stop-1 as one array [stop - start] of each axis."""
        places = self.places(start, stop)
        return {
            name: axis[place]
            for name, axis, place in zip(self.names, self.values, places, strict=True)
        }

    def places(self, start: int, stop: int) -> tuple[NDArray[np.int64], ...]:
        """The sets start..stop-1 as positions on each axis, one array [stop - start] an axis."""
        numbers = np.arange(start, stop, dtype=np.int64)
        return tuple(place.astype(np.int64) for place in np.unravel_index(numbers, self.shape))

    def numbers(self, number: int) -> dict[str, float]:
        """The numbers of set `number`; IndexError where there is none."""
        if not 0 <= number < len(self):
            raise IndexError(f"set {number} of {len(self)}")
        places = np.unravel_index(number, self.shape)
        return {
            name: float(axis[place])
            for name, axis, place in zip(self.names, self.values, places, strict=True)
        }


def parse_grid(text: str, known: Mapping[str, float]) -> Grid:
    """The grid that is written as `name=lo:hi[:step],name=value`.

    known  parameters that may be swept -> their defaults; one whose default is a whole number takes
           whole numbers only
    raises UsageError for an unknown name (did you mean), a name given twice, a range without
           values, anything that is not a number and more sets than can be worked
    """
    names: list[str] = []
    values: list[Array] = []
    for part in text.split(","):
        name, equals, written = (piece.strip() for piece in part.partition("="))
        if not equals or not name or not written:
            raise UsageError(f"--grid {part.strip()!r}: write name=low:high[:step], e.g. fast=5:50")
        if name not in known:
            raise UsageError(f"--grid: {unknown('parameter', name, known)}")
        if name in names:
            raise UsageError(f"--grid: {name} is given twice")
        names.append(name)
        values.append(_axis(name, written.split(":"), whole=isinstance(known[name], int)))
    grid = Grid(names=tuple(names), values=tuple(values))
    if math.prod(grid.shape) > MOST_SETS:
        raise UsageError(
            f"--grid: {math.prod(grid.shape):,} sets are more than {MOST_SETS:,}: "
            "take longer steps or fewer values"
        )
    return grid


def _axis(name: str, written: Sequence[str], *, whole: bool) -> Array:
    said = f"--grid {name}={':'.join(written)}"
    if len(written) > 3:
        raise UsageError(f"{said}: write low:high[:step]")
    numbers = [_number(name, piece) for piece in written]
    low, high = numbers[0], numbers[min(1, len(numbers) - 1)]
    step = numbers[2] if len(numbers) == 3 else 1.0
    if not step > 0.0:
        raise UsageError(f"--grid {name}: the step {step:g} must be above 0")
    if high < low:
        raise UsageError(f"--grid {name}={low:g}:{high:g} is empty: the low end is above the high")
    if not (high - low) / step < MOST_VALUES:
        raise UsageError(f"{said} has more than {MOST_VALUES:,} values: take a longer step")
    axis = _spaced(low, high, step)
    if axis is None:
        raise UsageError(f"{said}: its values have more digits than numbers keep: write fewer")
    if whole and not bool((axis == np.rint(axis)).all()):
        raise UsageError(f"{said}: {name} takes whole numbers only")
    return axis


def _spaced(low: float, high: float, step: float) -> Array | None:
    """low, low + step, … up to high, each the number nearest to its decimal; None beyond digits.

    Counted in whole units of the last decimal, so that no sum of rounded steps drifts.
    """
    begin, end, stride = (Decimal(repr(number)) for number in (low, high, step))
    count = int((end - begin) // stride) + 1
    if count == 1:
        return np.array([low])
    decimals = max(0, *(-int(one.normalize().as_tuple().exponent) for one in (begin, stride)))
    first, units = int(begin.scaleb(decimals)), int(stride.scaleb(decimals))
    if decimals > MOST_DECIMALS or max(-first, first + units * (count - 1)) > MOST_UNITS:
        return None
    axis: Array = (first + units * np.arange(count)) / 10.0**decimals
    return axis


def _number(name: str, piece: str) -> float:
    try:
        number = float(piece)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"--grid {name}: {piece.strip()!r} is not a number")
    if abs(number) > GREATEST:
        raise UsageError(f"--grid {name}: {piece.strip()!r} is beyond {GREATEST:g}")
    return number
