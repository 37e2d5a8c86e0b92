"""One backtest at a time, without the tables that only pay for themselves over many lanes."""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from strategies.kernels.cpu_windows import sma_lane
from strategies.kernels.engines.lanes import BITS, Prices, Terms, Words
from strategies.kernels.engines.masks import compiled, cross_rows
from strategies.kernels.engines.walk import plain, walk_lane
from strategies.kernels.engines.walk_checks import require_prices, require_terms
from strategies.kernels.engines.walk_legs import CLOSE, REACH, TOP, fill_bars, fill_marks
from strategies.kernels.engines.walk_steps import PERIODS
from strategies.kernels.runs import Array, require_fast_below_slow

NOT_SOUND = (0.0, 0.0, 0.0, 0.0, 0.0, 0, -1, 0.0, 0.0)
ONE = np.uint64(1)
LOWEST_NORMAL = np.uint64(0x0010000000000000)
NO_ATR = np.empty(0)


class OneOutcome(NamedTuple):
    """What became of one lane; meanings are those of `Outcomes`."""

    final_equity: float
    annual_return: float
    sharpe: float
    sortino: float
    max_drawdown: float
    trades: int
    open_trades: int
    hit_rate: float
    exposure: float


def backtest_one(
    prices: Prices,
    entry: Words,
    exit_: Words,
    terms: Terms,
    *,
    atr: Array | None = None,
    stop: float = 0.0,
    target: float = 0.0,
    trail: float = 0.0,
    max_bars: int = 0,
) -> OneOutcome:
    """One lane in fractions of a share.

    entry, exit_   [W] uint64, one rule's bits
    atr            [T] USD, where there is a stop, target or trail, which are in ATR
    raises         ValueError for whole shares, which `walk` counts, and as `walk` does
    """
    _require_fractions(terms)
    _require_rule(len(prices), entry, exit_, atr, stop, target, trail, max_bars)
    run: Callable[..., Found] = _backtest_one
    found = run(
        *_plain(prices.open, prices.high, prices.low, prices.close), prices.first,
        *_plain(entry, exit_, NO_ATR if atr is None else atr), float(stop), float(target),
        float(trail), int(max_bars), *_numbers(terms),
    )  # fmt: skip
    return _outcome(found, prices)


def sma_cross_backtest(prices: Prices, fast: int, slow: int, terms: Terms) -> OneOutcome:
    """The SMA cross with all cash, indicators and crossings included; raises as `backtest_one`."""
    _require_fractions(terms)
    require_fast_below_slow(fast, slow)
    run: Callable[..., Found] = _sma_cross_one
    found = run(
        *_plain(prices.open, prices.high, prices.low, prices.close), prices.first,
        int(fast), int(slow), *_numbers(terms),
    )  # fmt: skip
    return _outcome(found, prices)


def _plain(*arrays: Any) -> tuple[Any, ...]:
    """As `walk.plain`, where most arrays are so already: one layout is one compiled version."""
    return tuple(x if x.flags.carray else plain(x) for x in arrays)


def _numbers(terms: Terms) -> tuple[float, ...]:
    return (
        float(terms.cash),
        float(terms.slippage),
        float(terms.fee_rate),
        float(terms.commission_per_order),
        float(terms.periods_per_year),
    )


def _require_fractions(terms: Terms) -> None:
    require_terms(terms)
    if terms.whole_shares:
        raise ValueError("one backtest counts fractions of a share; walk counts whole ones")


def _require_rule(
    bars: int,
    entry: Words,
    exit_: Words,
    atr: Array | None,
    stop: float,
    target: float,
    trail: float,
    max_bars: int,
) -> None:
    numbers = {"stop": stop, "target": target, "trail": trail, "max_bars": max_bars}
    for name, number in numbers.items():
        if not 0.0 <= number < math.inf:
            raise ValueError(f"{name} {number} is not 0 or a finite number")
    for words in (entry, exit_):
        if words.size * BITS < bars:
            raise ValueError(f"{words.size} words hold fewer than {bars} bars")
    reach = 0 if atr is None else atr.size
    if max(stop, target, trail) > 0.0 and reach < bars:
        raise ValueError(f"a stop, target or trail needs an ATR of {bars} bars: {reach}")


def _outcome(found: Found, prices: Prices) -> OneOutcome:
    if found[6] < 0:  # the bars were not sound
        require_prices(prices)
    return OneOutcome(*found)


Found = tuple[float, float, float, float, float, int, int, float, float]


@compiled
def _backtest_one(
    open_: Array,
    high: Array,
    low: Array,
    close: Array,
    first: int,
    entry: Words,
    exit_: Words,
    atr: Array,
    stop: float,
    target: float,
    trail: float,
    max_bars: int,
    cash: float,
    slippage: float,
    fee_rate: float,
    commission: float,
    periods: float,
) -> Found:
    if not (_are_sound(open_) and _are_sound(high) and _are_sound(low) and _are_sound(close)):
        return NOT_SOUND
    words = -(-close.size // 64)
    bars = np.empty((TOP + 1, words * 64))
    if max(stop, target, trail) > 0.0:
        fill_bars(open_, high, low, close, bars)
    else:
        fill_marks(open_, close, bars)
    terms = np.empty(PERIODS + 1)
    terms[0], terms[1], terms[2], terms[3], terms[4] = cash, slippage, fee_rate, commission, periods
    return _one(
        close.size, first, bars, entry.reshape((1, -1)), exit_.reshape((1, -1)),
        atr if atr.size else bars[CLOSE], stop, target, trail, max_bars, terms,
    )  # fmt: skip


@compiled
def _sma_cross_one(
    open_: Array,
    high: Array,
    low: Array,
    close: Array,
    first: int,
    fast: int,
    slow: int,
    cash: float,
    slippage: float,
    fee_rate: float,
    commission: float,
    periods: float,
) -> Found:
    if not (_are_sound(open_) and _are_sound(high) and _are_sound(low) and _are_sound(close)):
        return NOT_SOUND
    words = -(-close.size // 64)
    bars = np.empty((TOP + 1, words * 64))
    fill_marks(open_, close, bars)
    lines = np.empty((2, words * 64))
    for t in range(close.size, words * 64):  # a loop: assigning slices is slow to compile
        lines[0, t] = lines[1, t] = np.nan
    sma_lane(close, fast, lines[0, : close.size])
    sma_lane(close, slow, lines[1, : close.size])
    bits = np.empty((2, words), dtype=np.uint64)
    cross_rows(lines, 0, lines, 1, words, bits[:1], bits[1:], 0)
    terms = np.empty(PERIODS + 1)
    terms[0], terms[1], terms[2], terms[3], terms[4] = cash, slippage, fee_rate, commission, periods
    return _one(close.size, first, bars, bits[:1], bits[1:], None, 0.0, 0.0, 0.0, 0, terms)


@compiled
def _one(
    size: int,
    first: int,
    bars: Array,
    entries: Words,
    exits: Words,
    atr: Array | None,
    stop: float,
    target: float,
    trail: float,
    max_bars: int,
    terms: Array,
) -> Found:
    out = np.empty((9, 1))
    only = out.shape[1] - 1  # row 0; a literal 0 would be compiled anew
    walk_lane(
        size, first, bars, np.empty((REACH + 1, 0)), entries, exits,
        None, terms, np.empty(0, dtype=np.int64), only, atr,
        stop, target, trail, max_bars, out, only,
    )  # fmt: skip
    return (
        out[0, 0], out[1, 0], out[2, 0], out[3, 0], out[4, 0],
        int(out[5, 0]), int(out[6, 0]), out[7, 0], out[8, 0],
    )  # fmt: skip


@compiled
def _are_sound(x: Array) -> bool:
    """Whether all prices are finite and above 0, by their bits: that takes eight at a time."""
    bits = x.view(np.uint64)
    seen = np.uint64(0)
    for t in range(bits.size):  # the sign bit of the first is set by 0, of the second by infinity
        seen |= (bits[t] - ONE) | (bits[t] + LOWEST_NORMAL) | bits[t]
    return bool(seen >> np.uint64(63) == np.uint64(0))
