"""What the event-driven engine knows of every bar beforehand, so that a trade is priced in O(1).

One row of `bars` holds what a fill at the open costs and brings, and prefix sums of the returns
from close to close. `spans` is a disjoint sparse table: level k cuts the bars into blocks of
2 × 2^k with a middle, and holds for every bar the highest and the lowest close and the deepest fall
of the stretch between the bar and the middle of its block. Any range a < b is exactly two
stretches, those of a and b at the level of the highest bit in which a and b differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strategies.kernels.engines.lanes import Prices, Terms
from strategies.kernels.engines.masks import clz, compiled, inlined, padded_rows
from strategies.kernels.runs import Array

MOST_BARS = 1 << 17  # 17 levels of 32 bytes a bar are 71 MB

# Columns of `bars`
BUY = 0  # USD a share bought at the open, slippage and fee included
SELL = 1  # fill of a share sold at the open, slippage included
CLOSE = 2
SUM, SQUARES, LOSSES = 3, 4, 5  # of the returns up to this close: r, r × r, min(r, 0)²
EXPECTED = 6  # close × (1 + slippage): what an entry decided at this close expects to pay
OPEN = 7
COLUMNS = 8  # one cache line a bar

# Columns of a level of `spans`
HIGHEST, LOWEST, DEEPEST = 0, 1, 2  # closes of the stretch, and its least close / highest before


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTables:
    """Bars as the event-driven engine reads them; all of them, whatever part is traded.

    bars     [T, 8], see the columns above
    spans    [levels, T, 4], see above
    reaches  [2, T padded with NaN]: row 0 the lows, row 1 the highs
    """

    bars: Array
    spans: Array
    reaches: Array

    def __len__(self) -> int:
        return int(self.bars.shape[0])


def event_tables(prices: Prices, terms: Terms) -> EventTables:
    """The tables of these prices; ValueError for more bars than they are made for."""
    size = len(prices)
    if size > MOST_BARS:
        raise ValueError(f"{size:,} bars are more than the {MOST_BARS:,} of the event engine")
    bars = np.empty((size, COLUMNS))
    spans = np.empty((max(1, (size - 1).bit_length()), size, 4))
    _fill_bars(prices.open, prices.close, terms.slippage, terms.fee_rate, bars)
    _fill_spans(prices.close, spans)
    return EventTables(bars=bars, spans=spans, reaches=padded_rows(prices.low, prices.high))


@compiled
def _fill_bars(opens: Array, close: Array, slippage: float, fee_rate: float, bars: Array) -> None:
    total = squares = losses = 0.0
    for t in range(close.size):
        if t > 0:
            change = close[t] / close[t - 1] - 1.0
            total += change
            squares += change * change
            if change < 0.0:
                losses += change * change
        bars[t, BUY] = opens[t] * (1.0 + slippage) * (1.0 + fee_rate)
        bars[t, SELL] = opens[t] * (1.0 - slippage)
        bars[t, CLOSE] = close[t]
        bars[t, SUM] = total
        bars[t, SQUARES] = squares
        bars[t, LOSSES] = losses
        bars[t, EXPECTED] = close[t] * (1.0 + slippage)
        bars[t, OPEN] = opens[t]


@compiled
def _fill_spans(close: Array, spans: Array) -> None:
    size = close.size
    for k in range(spans.shape[0]):
        half = 1 << k
        for middle in range(half, size, 2 * half):
            highest, lowest, deepest = 0.0, np.inf, 1.0
            for t in range(middle - 1, middle - half - 1, -1):  # the earliest close is the newest
                highest, lowest = max(highest, close[t]), min(lowest, close[t])
                deepest = min(deepest, lowest / close[t])
                spans[k, t, HIGHEST], spans[k, t, LOWEST] = highest, lowest
                spans[k, t, DEEPEST] = deepest
            highest, lowest, deepest = 0.0, np.inf, 1.0
            for t in range(middle, min(middle + half, size)):
                highest, lowest = max(highest, close[t]), min(lowest, close[t])
                deepest = min(deepest, close[t] / highest)
                spans[k, t, HIGHEST], spans[k, t, LOWEST] = highest, lowest
                spans[k, t, DEEPEST] = deepest


@inlined
def span(spans: Array, bars: Array, a: int, b: int) -> tuple[float, float, float]:
    """Highest close, lowest close and least close / highest before it over bars a..b, a <= b."""
    i, j = np.uint64(a), np.uint64(b)
    highest = lowest = bars[i, CLOSE]
    deepest = 1.0
    if a != b:
        k = np.uint64(63 - clz(i ^ j))
        across = spans[k, j, LOWEST] / spans[k, i, HIGHEST]
        deepest = min(spans[k, i, DEEPEST], spans[k, j, DEEPEST], across)
        highest = max(spans[k, i, HIGHEST], spans[k, j, HIGHEST])
        lowest = min(spans[k, i, LOWEST], spans[k, j, LOWEST])
    return highest, lowest, deepest
