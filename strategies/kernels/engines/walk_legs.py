"""The legs of a lane, one position after the other: where it starts, where and how it ends.

Flat stretches are skipped by the next entry bit, held ones are searched for the bar that leaves
with whole words of compares, and summed in blocks.
"""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

from typing import Any

import numpy as np

from strategies.kernels.engines.lanes import Ints, Words
from strategies.kernels.engines.masks import ALL, compiled, cttz, ge64_level, le64_level, next_bit
from strategies.kernels.engines.walk_steps import (
    LIMIT,
    entry_levels,
    exit_of,
    fallen,
    shares_bought,
    stop_in_force,
)
from strategies.kernels.engines.walk_whole import (
    BOUGHT,
    LAST,
    tick_level,
    whole_levels,
    whole_purchase,
)
from strategies.kernels.runs import Array

# rows of bars
OPEN, HIGH, LOW, CLOSE, CHANGE, DIP, TOP = range(7)
# rows of blocks of bars
SUM, SQUARES, DOWNS, HIGHEST, LOWEST, WORST, DEEPEST, HIGH_MARK, REACH = range(9)
BLOCK = 8  # bars summed together
lowest_bit: Any = cttz
STILL_OPEN, BY_EXIT, BY_TIME, BY_STOP, BY_TRAIL, BY_TARGET = range(6)  # places in LEFT_BY


@compiled
def fill_bars(open_: Array, high: Array, low: Array, close: Array, bars: Array) -> None:
    """Fill the rows of bars, [7, T padded to a multiple of 64 with NaN]."""
    size = close.size
    fill_marks(open_, close, bars)
    for t in range(size):
        bars[HIGH, t] = high[t]
    for t in range(size):
        bars[LOW, t] = low[t]
    for t in range(size):
        bars[DIP, t] = min(low[t], open_[t])
    for t in range(size):
        bars[TOP, t] = max(high[t], open_[t])
    for row in range(bars.shape[0]):
        for t in range(size, bars.shape[1]):
            bars[row, t] = np.nan


@compiled
def fill_marks(open_: Array, close: Array, bars: Array) -> None:
    """Fill those rows of bars that a lane without levels reads."""
    size = close.size
    for t in range(size):  # loops: assigning slices costs seconds of compilation
        bars[OPEN, t] = open_[t]
    for t in range(size):
        bars[CLOSE, t] = close[t]
    if size:
        bars[CHANGE, 0] = 0.0
    for t in range(1, size):
        bars[CHANGE, t] = close[t] / close[t - 1] - 1.0


@compiled
def fill_blocks(size: int, bars: Array, blocks: Array) -> None:
    """Fill the rows of blocks, [9, ceil(T / BLOCK)], from those of `size` bars."""
    for block in range(blocks.shape[1]):
        start = block * BLOCK
        total = squares = downs = 0.0
        highest, mark, reach = bars[CLOSE, start], bars[HIGH, start], bars[TOP, start]
        lowest, deepest, worst = highest, bars[DIP, start], 1.0
        for t in range(start, min(start + BLOCK, size)):
            close = bars[CLOSE, t]
            total, squares, downs = added(bars[CHANGE, t], total, squares, downs)
            highest, lowest = max(highest, close), min(lowest, close)
            worst = min(worst, close / highest)  # cheaper than a branch nobody can predict
            mark, reach = max(mark, bars[HIGH, t]), max(reach, bars[TOP, t])
            deepest = min(deepest, bars[DIP, t])
        blocks[SUM, block], blocks[SQUARES, block], blocks[DOWNS, block] = total, squares, downs
        blocks[HIGHEST, block], blocks[LOWEST, block], blocks[WORST, block] = highest, lowest, worst
        blocks[HIGH_MARK, block], blocks[DEEPEST, block] = mark, deepest
        blocks[REACH, block] = reach


@compiled
def added(r: float, total: float, squares: float, downs: float) -> tuple[float, float, float]:
    """The sums of r, r² and min(r, 0)² with one more bar return."""
    down = min(r, 0.0)
    return total + r, squares + r * r, downs + down * down


@compiled
def held_through(
    bars: Array,
    start: int,
    stop: int,
    total: float,
    squares: float,
    downs: float,
    peak: float,
    worst: float,
) -> tuple[float, float, float, float, float]:
    """Sums of r, r² and min(r, 0)², highest close, deepest close / peak: bars start..stop-1 too."""
    for t in range(start, stop):
        total, squares, downs = added(bars[CHANGE, t], total, squares, downs)
        peak, worst = fallen(bars[CLOSE, t], peak, worst)
    return total, squares, downs, peak, worst


@compiled
def held_by_blocks(
    bars: Array, blocks: Array, start: int, stop: int, peak: float, worst: float
) -> tuple[float, float, float, float, float]:
    """`held_through` from sums of 0 on, by whole blocks where there are some that fit."""
    first, last = -(-start // BLOCK), min(stop // BLOCK, blocks.shape[1])
    if first >= last:
        return held_through(bars, start, stop, 0.0, 0.0, 0.0, peak, worst)
    total, squares, downs, peak, worst = held_through(
        bars, start, first * BLOCK, 0.0, 0.0, 0.0, peak, worst
    )
    for block in range(first, last):
        total += blocks[SUM, block]
        squares += blocks[SQUARES, block]
        downs += blocks[DOWNS, block]
        worst = min(worst, blocks[WORST, block])
        if blocks[LOWEST, block] < worst * peak:
            worst = blocks[LOWEST, block] / peak
        peak = max(peak, blocks[HIGHEST, block])
    return held_through(bars, last * BLOCK, stop, total, squares, downs, peak, worst)


@compiled
def _touched(bars: Array, start: int, stop: int, level: float, target: float) -> int:
    """First of bars start..stop-1 that reaches a fixed stop or target; `stop` for none."""
    if start >= stop:
        return stop
    word = start >> 6
    bits = ALL << np.uint64(start & 63)
    last = (stop - 1) >> 6
    while word <= last:
        at = word << 6
        bits &= le64_level(bars, DIP, at, level) | ge64_level(bars, TOP, at, target)
        if bits != 0:
            return int(min(at + lowest_bit(bits), stop))
        bits = ALL
        word += 1
    return stop


@compiled
def _trailed(
    bars: Array,
    blocks: Array,
    start: int,
    stop: int,
    level: float,
    target: float,
    trail: float,
    whole: bool,
) -> tuple[int, float]:
    """First of bars start..stop-1 that reaches the trailing stop, the stop or the target.

    With the stop in force there, which follows the highest high from bar `start` to the bar before;
    on bar `start`, that of the entry, it does not trail yet.
    """
    mark = 0.0
    t = start
    while t < stop:
        block = t // BLOCK
        if t % BLOCK == 0 and t + BLOCK <= stop and block < blocks.shape[1]:
            ahead = max(mark, blocks[HIGH_MARK, block])
            above = stop_in_force(level, ahead, trail)
            if blocks[DEEPEST, block] > above and blocks[REACH, block] < target:
                mark = ahead
                t += BLOCK
                continue
        above = stop_in_force(level, mark, trail)
        if bars[DIP, t] <= above or bars[TOP, t] >= target:
            if whole and above > level:
                above = max(level, tick_level(mark - trail))
            if bars[DIP, t] <= above or bars[TOP, t] >= target:
                return t, above
        mark = max(mark, bars[HIGH, t])
        t += 1
    return stop, level


@compiled
def next_leg(
    size: int,
    bars: Array,
    blocks: Array,
    entries: Words,
    exits: Words,
    fills: Ints | None,
    terms: Array,
    rates: Ints,
    row: int,
    atr: Array | None,
    stop_atrs: float,
    target_atrs: float,
    trail_atrs: float,
    max_bars: int,
    t: int,
    cash: float,
) -> tuple[int, int, float, float, int]:
    """The next position of an account that is flat at the close of bar t.

    fills    of `walk_whole`; None where shares are not whole
    atr      None where there are no levels. What is None is not compiled at all
    cash     USD; units where shares are whole
    returns  bar of the entry, `size` for none; bar of the exit, `size` while open; shares; price
             left at before slippage; how it left, an index of LEFT_BY of the reference
    """
    newest = size - 1
    allowed, shares, stop, target, trail = True, 0.0, 0.0, np.inf, np.inf
    while not shares > 0.0:
        t = next_bit(entries, row, t, newest)
        if t >= newest:
            return size, size, 0.0, 0.0, 0
        if atr is not None:
            allowed, stop, target, trail = entry_levels(
                bars[CLOSE, t], atr[t], stop_atrs, target_atrs, trail_atrs, terms
            )
            if fills is not None and allowed:
                allowed, stop, target = whole_levels(fills[LAST, t], stop, target)
        t += 1
        if fills is not None:
            if allowed:
                shares = float(whole_purchase(int(cash), fills[BOUGHT, t], rates))
        elif allowed:
            shares = shares_bought(cash, bars[OPEN, t], terms)
    entry, left_by = t, BY_EXIT
    leave = next_bit(exits, row, entry, newest)
    if max_bars > 0 and entry + max_bars - 1 < leave:
        leave, left_by = entry + max_bars - 1, BY_TIME
    leave = leave + 1 if leave < newest else size
    if atr is not None:
        end, level = leave, stop
        if trail < np.inf:
            whole = fills is not None
            end, level = _trailed(bars, blocks, entry, leave, stop, target, trail, whole)
        elif stop > 0.0 or target < np.inf:
            end = _touched(bars, entry, leave, stop, target)
        if end < leave:
            how, price = exit_of(bars[OPEN, end], bars[HIGH, end], bars[LOW, end], level, target)
            left_by = BY_TARGET if how == LIMIT else (BY_TRAIL if level > stop else BY_STOP)
            return entry, end, shares, price, left_by
    if leave == size:
        return entry, size, shares, 0.0, STILL_OPEN
    return entry, leave, shares, bars[OPEN, leave], left_by
