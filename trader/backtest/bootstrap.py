"""Block bootstrap of equity curves: how far the order of chance could have moved a result."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trader.core.metrics import (
    MINIMUM_PERIODS_FOR_ANNUAL,
    MINIMUM_RETURNS_FOR_SHARPE,
    ROUNDING_NOISE,
    annual_return,
    returns,
    sharpe,
    total_return,
)
from trader.report.contents import Interval, Intervals, Spread

METHOD = "circular block bootstrap of the returns, percentile interval"
CONFIDENCE = 0.9
RESAMPLES = 2_000
DECIMALS = 12  # NumPy's logarithms differ in the last digits from one processor to another
SEED = 20_251

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measures:
    """A measure of one curve: as it was, and in every resample [B]; None where it has no value."""

    annual_return: tuple[float, Floats] | None
    sharpe: tuple[float, Floats] | None


def block_length(periods: int) -> int:
    """Periods drawn together: the cube root of their number, rounded up.

    source  Hall, Horowitz & Jing (1995), On blocking rules for the bootstrap with dependent data:
            the best length for a variance grows as n^(1/3)
    """
    return max(1, math.ceil(round(math.cbrt(periods), 9)))


def intervals(
    curves: Mapping[str, Floats],
    *,
    initial: float,
    periods_per_year: float,
    against: Mapping[str, str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Intervals:
    """90 % intervals of annual return and Sharpe ratio of every curve, and of differences.

    curves   key -> equity [T] USD, all over the same periods; the resamples draw the same blocks
             for all of them, so that a difference is compared period by period
    initial  USD before the first period
    against  key of another curve -> key of the curve that it is taken from

    The periods lie on a circle and blocks of equal length are drawn from it until there are as many
    again; the last block is cut. A resample in which nothing moves has a Sharpe ratio of 0.
    source   Politis & Romano (1992), A circular block-resampling procedure for stationary data
    """
    periods = min((curve.size for curve in curves.values()), default=0)
    length = block_length(periods)
    generator = np.random.Generator(np.random.PCG64(seed))
    starts = generator.integers(0, max(periods, 1), size=(resamples, -(-periods // length)))
    found = {
        key: _measures(curve, initial, periods_per_year, starts, length)
        for key, curve in curves.items()
    }
    return Intervals(
        method=METHOD,
        confidence=CONFIDENCE,
        resamples=resamples,
        block_length=length,
        seed=seed,
        periods=periods,
        columns={key: _spread(item) for key, item in found.items()},
        differences={
            other: _spread(_minus(found[one], found[other]))
            for other, one in (against or {}).items()
        },
    )


def _measures(
    equity: Floats, initial: float, periods_per_year: float, starts: NDArray[np.int64], length: int
) -> Measures:
    periods = equity.size
    years = periods / periods_per_year
    if initial <= 0.0 or years <= 0.0 or not bool((equity > 0.0).all()):
        return Measures(annual_return=None, sharpe=None)
    change = returns(equity, initial)
    annual = ratio = None
    known = annual_return(total_return(equity, initial), periods, periods_per_year)
    if known is not None and years >= MINIMUM_PERIODS_FOR_ANNUAL:
        growth = _sums(np.log1p(change), starts, length)
        annual = (known, np.expm1(growth / years))
    known = sharpe(equity, initial, periods_per_year)
    if known is not None and periods >= MINIMUM_RETURNS_FOR_SHARPE:
        middle = float(change.mean())  # taken off first: the squares of what is left stay exact
        first = _sums(change - middle, starts, length) / periods
        second = _sums((change - middle) ** 2, starts, length)
        deviation = np.sqrt(np.maximum(second - periods * first**2, 0.0) / (periods - 1))
        moved = deviation > ROUNDING_NOISE
        scaled = np.divide(middle + first, deviation, out=np.zeros_like(first), where=moved)
        ratio = (known, scaled * math.sqrt(periods_per_year))
    return Measures(annual_return=annual, sharpe=ratio)


def _sums(values: Floats, starts: NDArray[np.int64], length: int) -> Floats:
    """[B] sum of each resample of `values` [T]: of whole blocks, and of a last one that is cut."""
    rest = values.size - length * (starts.shape[1] - 1)
    whole, cut = _circular_sums(values, length), _circular_sums(values, rest)
    total: Floats = whole[starts[:, :-1]].sum(axis=1) + cut[starts[:, -1]]
    return total


def _circular_sums(values: Floats, length: int) -> Floats:
    """[T] sum of the `length` values that begin at each place of the circle."""
    places = (np.arange(values.size)[:, None] + np.arange(length)) % values.size
    sums: Floats = values[places].sum(axis=1)
    return sums


def _minus(one: Measures, other: Measures) -> Measures:
    def less(
        left: tuple[float, Floats] | None, right: tuple[float, Floats] | None
    ) -> tuple[float, Floats] | None:
        return None if left is None or right is None else (left[0] - right[0], left[1] - right[1])

    return Measures(
        annual_return=less(one.annual_return, other.annual_return),
        sharpe=less(one.sharpe, other.sharpe),
    )


def _spread(found: Measures) -> Spread:
    return Spread(annual_return=_interval(found.annual_return), sharpe=_interval(found.sharpe))


def _interval(measure: tuple[float, Floats] | None) -> Interval | None:
    if measure is None:
        return None
    outside = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(measure[1], (outside, 1.0 - outside))
    return Interval(
        estimate=measure[0], low=round(float(low), DECIMALS), high=round(float(high), DECIMALS)
    )
