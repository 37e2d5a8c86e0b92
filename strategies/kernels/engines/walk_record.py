"""The record of a lane: its trades and its equity at every close."""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

import numpy as np

from strategies.kernels.engines.lanes import Ints, Words
from strategies.kernels.engines.masks import compiled
from strategies.kernels.engines.walk_legs import BY_TARGET, CLOSE, OPEN, next_leg
from strategies.kernels.engines.walk_money import LEFT_BY, UNITS, LaneTrade
from strategies.kernels.engines.walk_steps import CASH, LIMIT, SLIPPAGE, SLIPPED, cash_received
from strategies.kernels.engines.walk_whole import (
    BOUGHT,
    whole_cost,
    whole_fill,
    whole_sale,
)
from strategies.kernels.runs import Array

LEG_COLUMNS = 9
ENTRY, END, PAID_PRICE, LEFT_PRICE, SHARES, PROFIT, LEFT, REST, AFTER = range(LEG_COLUMNS)


def trades_of(legs: Array) -> tuple[LaneTrade, ...]:
    """Rows that `draw_lane` wrote, as trades."""
    return tuple(
        LaneTrade(
            entry_bar=int(leg[ENTRY]),
            exit_bar=int(leg[END]),
            entry_price=float(leg[PAID_PRICE]),
            exit_price=float(leg[LEFT_PRICE]),
            shares=float(leg[SHARES]),
            profit=float(leg[PROFIT]),
            left_by=LEFT_BY[int(leg[LEFT])],
        )
        for leg in legs
    )


@compiled
def draw_lanes(
    size: int,
    first: int,
    bars: Array,
    blocks: Array,
    entries: Words,
    exits: Words,
    fills: Ints | None,
    terms: Array,
    rates: Ints,
    atr_table: Array,
    signal: Ints,
    atr_row: Ints,
    stop: Array,
    target: Array,
    trail: Array,
    max_bars: Ints,
    legs: Array,
    equity: Array,
) -> int:
    """Write the equity [L, n] of every lane and the legs of the last one; returns their number."""
    count = 0
    for lane in range(signal.size):
        row = atr_row[lane]
        count = list_legs(
            size, first, bars, blocks, entries, exits, fills, terms, rates, signal[lane],
            atr_table[row] if 0 <= row < atr_table.shape[0] else bars[CLOSE],
            stop[lane], target[lane], trail[lane], max_bars[lane], legs,
        )  # fmt: skip
        cash, t = terms[CASH], first
        for leg in range(count):
            start = int(legs[leg, ENTRY])
            end = size if legs[leg, END] < 0.0 else int(legs[leg, END])
            equity[lane, t - first : start - first] = cash
            for bar in range(start, end):
                equity[lane, bar - first] = legs[leg, REST] + legs[leg, SHARES] * bars[CLOSE, bar]
            cash, t = legs[leg, AFTER], end
        equity[lane, t - first :] = cash
    return count


@compiled
def list_legs(
    size: int,
    first: int,
    bars: Array,
    blocks: Array,
    entries: Words,
    exits: Words,
    fills: Ints | None,
    terms: Array,
    rates: Ints,
    row: int,
    atr: Array,
    stop: float,
    target: float,
    trail: float,
    max_bars: int,
    legs: Array,
) -> int:
    """Write the legs of one lane, a row each of at most size + 1; returns their number."""
    cash, each = terms[CASH], 1.0
    if fills is not None:
        cash, each = round(terms[CASH] * UNITS) * 1.0, UNITS * 1.0  # of the cash in 1 USD
    count, t = 0, first
    while t < size:
        entry, end, shares, price, left_by = next_leg(
            size, bars, blocks, entries, exits, fills, terms, rates, row, atr,
            stop, target, trail, max_bars, t, cash,
        )  # fmt: skip
        if entry == size:
            break
        leg, limited = legs[count], left_by == BY_TARGET
        cost, paid_price = cash, bars[OPEN, entry] * (1.0 + terms[SLIPPAGE])
        if fills is not None:
            cost = whole_cost(int(shares), fills[BOUGHT, entry], rates) * 1.0
            paid_price = fills[BOUGHT, entry] / each
        rest, got, left_price = cash - cost, 0.0, np.nan
        if end == size:
            got = shares * bars[CLOSE, size - 1] * each
        elif fills is not None:
            fill = whole_fill(bars[OPEN, end], fills, end, price, limited, rates)
            got = whole_sale(int(shares), fill, int(rest), rates) * 1.0
            left_price = fill / each
        else:
            got = cash_received(shares, price, LIMIT if limited else SLIPPED, terms)
            left_price = price if limited else price * (1.0 - terms[SLIPPAGE])
        cash = rest + got
        leg[ENTRY], leg[END] = entry, end if end < size else -1
        leg[PAID_PRICE], leg[LEFT_PRICE], leg[SHARES] = paid_price, left_price, shares
        leg[PROFIT], leg[LEFT] = (got - cost) / each, left_by
        leg[REST], leg[AFTER] = rest / each, cash / each
        count, t = count + 1, end
    return count
