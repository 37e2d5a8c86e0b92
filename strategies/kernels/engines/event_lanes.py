"""One lane of the event-driven engine: its trades from bits, each priced in O(1).

Between two trades nothing depends on a lane's numbers but where the trades are. Their bars come
from the signal bits, their profit from the two fills, the moments of the returns from prefix sums
and the drawdown from a sparse table. Money is counted by the operations of `walk_reference`, in
their order: final equity and winners are equal in every bit, other metrics differ by rounding.
"""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

import math

import numpy as np

from strategies.kernels.engines.event_tables import (
    BUY,
    CLOSE,
    EXPECTED,
    LOSSES,
    OPEN,
    SELL,
    SQUARES,
    SUM,
    span,
)
from strategies.kernels.engines.lanes import Words
from strategies.kernels.engines.masks import (
    ALL,
    ZERO,
    compiled,
    cttz,
    ge64_level,
    inlined,
    le64_level,
    seek,
)
from strategies.kernels.engines.walk_steps import CASH, COMMISSION, FEE_RATE, SLIPPAGE
from strategies.kernels.runs import Array
from trader.core.metrics import ROUNDING_NOISE

# Below these shares the differences of prefix sums have lost digits, and a lane is counted again
# bar by bar: of the squares that are left after the mean is taken off, and of all the series' own.
LEFT_AFTER_MEAN = 1e-3
SHARE_OF_SERIES = 1e-6

# What a lane amounts to: rows of the output, each where `finish` puts the metric it makes of it.
EQUITY, AGAIN, TOTAL, LOST, WORST, CLOSED, STILL, WINNERS, HELD, SPREAD = range(10)
ANNUAL, SHARPE, SORTINO = AGAIN, TOTAL, LOST
ROWS = 10  # SPREAD, the squares off their mean, is no metric

# sums of r, r × r and min(r, 0)², highest equity, least equity / highest before
Sums = tuple[float, float, float, float, float]
# equity, sums, closed trades, open trades, winners, bars held
Walked = tuple[float, Sums, int, int, int, int]


@inlined
def first_passage(reaches: Array, start: int, stop: int, floor: float, ceiling: float) -> int:
    """First bar of start..stop-1 whose low is at or below `floor` or high at or above `ceiling`.

    returns  `stop` where there is none; infinite levels are never reached
    """
    w = start >> 6
    keep = ALL << np.uint64(start & 63)
    passed, search = stop, start < stop
    while search:
        hit = le64_level(reaches, 0, w << 6, floor)
        if ceiling < np.inf:
            hit |= ge64_level(reaches, 1, w << 6, ceiling)
        hit &= keep
        keep = ALL
        if hit != ZERO:
            passed = min((w << 6) + cttz(hit), stop)
        w += 1
        search = hit == ZERO and w << 6 < stop
    return passed


@inlined
def left_at(
    bars: Array, reaches: Array, t: int, floor: float, ceiling: float, slippage: float
) -> float:
    """Fill of a position that leaves on bar t by its stop or target: gaps first, the stop first."""
    at = np.uint64(t)  # an index that cannot be negative needs no look from the end
    price: float = bars[at, OPEN]
    if price <= floor or (price < ceiling and reaches[0, at] <= floor):
        price = min(price, floor) * (1.0 - slippage)
    elif price < ceiling:
        price = ceiling
    return price


@inlined
def levels(
    bars: Array, atr: Array, row: int, u: int, stop: float, target: float
) -> tuple[float, float, bool]:
    """Stop and target of an entry decided on bar u, and whether it may be entered at all."""
    at = np.uint64(u)
    swing, expected = atr[np.uint64(row), at], bars[at, EXPECTED]
    floor = expected - stop * swing if stop > 0.0 else -np.inf
    ceiling = expected + target * swing if target > 0.0 else np.inf
    usable = swing > 0.0 and swing < np.inf and (stop <= 0.0 or floor > 0.0)
    return floor, ceiling, usable and (target <= 0.0 or ceiling < np.inf)


@inlined
def kept(
    sums: Sums, bars: Array, spans: Array, a: int, x: int, cash: float, shares: float
) -> tuple[Sums, float]:
    """The sums after holding from the open of bar a to the close of bar x - 1, and that equity."""
    total, squares, losses, peak, worst = sums
    i, j = np.uint64(a), np.uint64(x - 1)
    gain = shares * bars[i, CLOSE] / cash - 1.0
    lost = min(gain, 0.0)
    total += gain + (bars[j, SUM] - bars[i, SUM])
    squares += gain * gain + (bars[j, SQUARES] - bars[i, SQUARES])
    losses += lost * lost + (bars[j, LOSSES] - bars[i, LOSSES])
    highest, lowest, deepest = span(spans, bars, a, x - 1)
    worst = min(worst, deepest, shares * lowest / peak)
    peak = max(peak, shares * highest)
    return (total, squares, losses, peak, worst), shares * bars[j, CLOSE]


@inlined
def sold(sums: Sums, before: float, left: float) -> Sums:
    """The sums after a bar that took the equity from `before` to `left`."""
    total, squares, losses, peak, worst = sums
    gain = left / before - 1.0
    lost = min(gain, 0.0)
    worst = min(worst, left / peak)
    return (
        total + gain,
        squares + gain * gain,
        losses + lost * lost,
        max(peak, left),
        worst,
    )


@inlined
def walk_bits(
    entry: Words,
    entry_row: int,
    exits: Words,
    exit_row: int,
    bars: Array,
    spans: Array,
    reaches: Array,
    atr: Array,
    atr_row: int,
    stop: float,
    target: float,
    first: int,
    last: int,
    terms: Array,
    curve: Array,
    record: bool,
) -> Walked:
    """Trade one lane over bars first..last by rows of entry and exit bits with their summaries.

    stop, target  in ATR of row `atr_row`; 0 for none
    curve         [T] scratch; with `record`, equity at every close is written to it
    returns       see `Walked`
    """
    cash, commission = terms[CASH], terms[COMMISSION]
    keep, slippage = 1.0 - terms[FEE_RATE], terms[SLIPPAGE]
    sums, equity = (0.0, 0.0, 0.0, cash, 1.0), cash
    closed = still = held = winners = 0
    guarded = stop > 0.0 or target > 0.0
    floor, ceiling = -np.inf, np.inf
    words = (bars.shape[0] + 63) >> 6
    t = flat_from = first
    while cash > commission:
        u = seek(entry, entry_row, words, t, last)
        if u >= last:
            break
        if guarded:
            floor, ceiling, allowed = levels(bars, atr, atr_row, u, stop, target)
            if not allowed:
                t = u + 1
                continue
        a = u + 1
        shares = (cash - commission) / bars[np.uint64(a), BUY]
        x = seek(exits, exit_row, words, a, last) + 1  # last + 1: there is no exit order
        fill = 0.0
        if guarded:
            p = first_passage(reaches, a, x, floor, ceiling)
            if p < x:
                x = p
                fill = left_at(bars, reaches, p, floor, ceiling, slippage)
        if record:
            draw(curve, bars, flat_from, a, min(x, last + 1), cash, shares)
            flat_from = x
        before = cash
        if x > a:
            sums, before = kept(sums, bars, spans, a, x, cash, shares)
            held += x - a
        if x > last:
            equity, still = before, 1
            break
        if fill == 0.0:
            fill = bars[np.uint64(x), SELL]
        left = max(shares * fill * keep - commission, 0.0)
        sums = sold(sums, before, left)
        closed += 1
        winners += left > cash
        cash = equity = left
        t = x
    if record:
        draw(curve, bars, flat_from, last + 1, last + 1, cash, 0.0)
    return equity, sums, closed, still, winners, held


@compiled
def draw(curve: Array, bars: Array, flat: int, a: int, x: int, cash: float, shares: float) -> None:
    """Write equity at every close: cash on bars flat..a-1, the shares' worth on bars a..x-1."""
    for t in range(flat, a):
        curve[t] = cash
    for t in range(a, x):
        curve[t] = shares * bars[t, CLOSE]


@compiled
def moments(curve: Array, first: int, last: int, cash: float) -> tuple[float, float, float]:
    """Sum of the returns of an equity curve, of their squares off the mean, and of min(r, 0)²."""
    total = spread = losses = 0.0
    before = cash
    for t in range(first, last + 1):
        gain = curve[t] / before - 1.0
        total += gain
        losses += min(gain, 0.0) ** 2
        before = curve[t]
    mean = total / (last - first + 1)
    before = cash
    for t in range(first, last + 1):
        off = curve[t] / before - 1.0 - mean
        spread += off * off
        before = curve[t]
    return total, spread, losses


@inlined
def put(out: Array, lane: int, walked: Walked, bars: Array, first: int, last: int) -> None:
    """Write a walked lane into its column, for `finish`; row AGAIN: whether to count it again."""
    equity, (total, squares, losses, _, worst), closed, still, winners, held = walked
    count = last - first + 1
    spread = squares - total * total / count
    lossy = (
        spread < LEFT_AFTER_MEAN * squares
        or squares < SHARE_OF_SERIES * bars[last, SQUARES]
        or losses < SHARE_OF_SERIES * bars[last, LOSSES]  # 0 too: a small one may be swallowed
    )
    column = np.uint64(lane)
    out[EQUITY, column], out[TOTAL, column] = equity, total
    out[SPREAD, column], out[LOST, column], out[WORST, column] = spread, losses, worst
    out[CLOSED, column], out[STILL, column] = closed, still
    out[WINNERS, column], out[HELD, column] = winners, held
    out[AGAIN, column] = 1.0 if closed + still > 0 and lossy else 0.0


@compiled
def count_again(
    entry: Words,
    entry_row: int,
    exits: Words,
    exit_row: int,
    bars: Array,
    spans: Array,
    reaches: Array,
    atr: Array,
    atr_row: int,
    stop: float,
    target: float,
    first: int,
    last: int,
    terms: Array,
    curve: Array,
    out: Array,
    lane: int,
) -> None:
    """Put the exact moments of a lane's returns into its column."""
    walk_bits(
        entry, entry_row, exits, exit_row, bars, spans, reaches, atr, atr_row, stop, target,
        first, last, terms, curve, True,
    )  # fmt: skip
    total, spread, losses = moments(curve, first, last, terms[CASH])
    out[TOTAL, lane], out[SPREAD, lane], out[LOST, lane] = total, spread, losses


@compiled
def finish(out: Array, start: int, stop: int, bars: int, periods: float) -> None:
    """Turn columns start..stop-1 from what lanes amount to into metrics; not the annual return."""
    scale = math.sqrt(periods)
    for lane in range(start, stop):
        mean = out[TOTAL, lane] / bars * scale
        deviation = math.sqrt(max(out[SPREAD, lane], 0.0) / max(bars - 1, 1))
        down = math.sqrt(out[LOST, lane] / bars)
        usable = bars >= 2 and out[WORST, lane] > 0.0
        out[SHARPE, lane] = mean / deviation if usable and deviation > ROUNDING_NOISE else np.nan
        out[SORTINO, lane] = mean / down if usable and down > ROUNDING_NOISE else np.nan
        out[WORST, lane] -= 1.0
        closed = out[CLOSED, lane]
        out[WINNERS, lane] = out[WINNERS, lane] / closed if closed > 0.0 else np.nan
        out[HELD, lane] /= bars
