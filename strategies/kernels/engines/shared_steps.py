"""The bar-by-bar walk of accounts that several symbols share, compiled."""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.engines.lanes import Ints
from strategies.kernels.engines.masks import compiled
from strategies.kernels.engines.walk import summarise
from strategies.kernels.engines.walk_legs import (
    BY_EXIT,
    BY_STOP,
    BY_TARGET,
    BY_TIME,
    BY_TRAIL,
    STILL_OPEN,
    added,
)
from strategies.kernels.engines.walk_money import UNITS
from strategies.kernels.engines.walk_record import (
    END,
    ENTRY,
    LEFT,
    LEFT_PRICE,
    LEG_COLUMNS,
    PAID_PRICE,
)
from strategies.kernels.engines.walk_record import PROFIT as PROFIT_
from strategies.kernels.engines.walk_record import SHARES as SHARES_
from strategies.kernels.engines.walk_steps import (
    CASH,
    COMMISSION,
    FEE_RATE,
    HOLD,
    LIMIT,
    SLIPPAGE,
    SLIPPED,
    entry_levels,
    exit_of,
    fallen,
    stop_in_force,
)
from strategies.kernels.engines.walk_whole import (
    BOUGHT,
    tick_level,
    whole_cost,
    whole_fill,
    whole_levels,
    whole_purchase,
    whole_sale,
)
from strategies.kernels.engines.walk_whole import LAST as LAST_PRICE
from strategies.kernels.runs import Array

OPEN, HIGH, LOW, CLOSE = range(4)  # rows of a symbol's prices
LEG_SYMBOL, SHARED_COLUMNS = LEG_COLUMNS, LEG_COLUMNS + 1

# a symbol's position, as numbers: columns of a lane's book
(
    SHARES, PAID, PAID_FILL, STOP, TARGET, TRAIL, MARK, LAST, HELD, ENTERED, WANTS_IN, LEAVES_BY,
    BUYS, COST,
) = range(14)  # fmt: skip
COLUMNS = 14

Cube = NDArray[np.float64]  # [N, *, T]
Bits = NDArray[np.uint64]  # [N, R, W]
Fills = NDArray[np.int64]  # [N, 4, T] where shares are whole, else empty


@compiled
def walk_accounts(
    first: int,
    prices: Cube,
    entries: Bits,
    exits: Bits,
    fills: Fills,
    terms: Array,
    rates: Ints,
    atr_tables: Cube,
    signal: Ints,
    atr_row: Ints,
    stop: Array,
    target: Array,
    trail: Array,
    max_bars: Ints,
    out: Array,
    equity: Array,
    legs: Array,
    start: int,
) -> int:
    """Write metrics [9, L], and where they have room equity [L, n] and the legs of the last lane.

    start  column of the first lane here

    Returns how many legs there are.
    """
    count = 0
    book = np.empty((prices.shape[0], COLUMNS))
    levels = np.empty(4)
    for lane in range(signal.size):
        levels[0], levels[1], levels[2] = stop[lane], target[lane], trail[lane]
        levels[3] = max_bars[lane]
        count = _walk_account(
            first, prices, entries, exits, fills, terms, rates, atr_tables,
            signal[lane], atr_row[lane], levels, book, out, equity, legs, start + lane,
        )  # fmt: skip
    return count


@compiled
def _walk_account(
    first: int,
    prices: Cube,
    entries: Bits,
    exits: Bits,
    fills: Fills,
    terms: Array,
    rates: Ints,
    atr_tables: Cube,
    rule: int,
    atr_row: int,
    levels: Array,
    book: Array,
    out: Array,
    equity: Array,
    legs: Array,
    lane: int,
) -> int:
    symbols, size = prices.shape[0], prices.shape[2]
    whole = fills.shape[0] > 0
    each = UNITS if whole else 1.0  # of the cash in 1 USD
    cash = float(round(terms[CASH] * UNITS)) if whole else terms[CASH]
    book[:] = 0.0
    book[:, TARGET : TRAIL + 1] = np.inf
    peak = worth = terms[CASH]
    worst, total, squares, downs = 1.0, 0.0, 0.0, 0.0
    trades = wins = exposed = first - first  # a literal 0 would be compiled anew
    for t in range(first, size):
        sold, won, cash = _trade_bar(t, prices, fills, terms, rates, book, cash, legs, trades)
        trades, wins = trades + sold, wins + won
        held, before, worth = 0, worth, cash / each
        for i in range(symbols):
            if not np.isnan(prices[i, CLOSE, t]):
                _mark(book, i, prices[i, HIGH, t], prices[i, CLOSE, t])
                if t < size - 1:
                    at = atr_tables[i, atr_row, t] if _has(atr_tables, atr_row) else 1.0
                    _decide(
                        book, i, _bit(entries, i, rule, t), _bit(exits, i, rule, t),
                        prices[i, CLOSE, t], fills[i, LAST_PRICE, t] if whole else -1, at, levels,
                        terms,
                    )  # fmt: skip
            if book[i, SHARES] > 0.0:
                held = 1
        assets = 0.0
        for i in range(symbols):
            if book[i, SHARES] > 0.0:
                assets += book[i, SHARES] * book[i, LAST]
        worth += assets
        exposed += held
        if worth != before:
            total, squares, downs = added(worth / before - 1.0, total, squares, downs)
            peak, worst = fallen(worth, peak, worst)
        if equity.shape[1]:
            equity[lane, t - first] = worth
    still = 0
    for i in range(symbols):
        if book[i, SHARES] > 0.0:
            if legs.shape[0]:
                got = book[i, SHARES] * book[i, LAST]
                _list(legs, trades + still, book, i, -1, np.nan, got * each, each, STILL_OPEN)
            still += 1
    summarise(
        size - first, worth, total, squares, downs, worst,
        trades, still, wins, exposed, terms, out, lane,
    )  # fmt: skip
    return trades + still


@compiled
def _has(atr_tables: Cube, row: int) -> bool:
    return bool(0 <= row < atr_tables.shape[1])


@compiled
def _bit(words: Bits, i: int, rule: int, t: int) -> bool:
    return bool((words[i, rule, t >> 6] >> np.uint64(t & 63)) & np.uint64(1) != np.uint64(0))


@compiled
def _trade_bar(
    t: int,
    prices: Cube,
    fills: Fills,
    terms: Array,
    rates: Ints,
    book: Array,
    cash: float,
    legs: Array,
    trades: int,
) -> tuple[int, int, float]:
    """Rules 1 to 4 for all symbols: positions closed, those of them that won, and the cash then."""
    symbols = prices.shape[0]
    sold = won = flat = t - t  # as above
    for i in range(symbols):
        if book[i, SHARES] > 0.0 and not np.isnan(prices[i, CLOSE, t]):
            how, price, left_by = _leaves_at_open(book, i, prices[i, OPEN, t], fills.shape[0] > 0)
            if how != HOLD:
                cash, good = _sell(
                    t, prices, fills, terms, rates, book, cash, legs, trades + sold,
                    i, how, price, left_by,
                )  # fmt: skip
                sold, won = sold + 1, won + good
        flat += not book[i, SHARES] > 0.0
    for i in range(symbols):
        book[i, BUYS] = 0.0
        if book[i, WANTS_IN] > 0.0 and not np.isnan(prices[i, CLOSE, t]):
            book[i, WANTS_IN] = 0.0
            _order(t, prices[i, OPEN, t], fills, terms, rates, book, i, cash, flat)
    for i in range(symbols):
        if book[i, BUYS] > 0.0:
            cash = max(cash - book[i, COST], 0.0)
            _enter(t, prices[i, OPEN, t], fills, terms, book, i)
    for i in range(symbols):
        if book[i, SHARES] > 0.0 and not np.isnan(prices[i, CLOSE, t]):
            level, left_by = _stop_of(book, i, fills.shape[0] > 0)
            how, price = exit_of(
                prices[i, OPEN, t], prices[i, HIGH, t], prices[i, LOW, t], level, book[i, TARGET]
            )
            if how != HOLD:
                cash, good = _sell(
                    t, prices, fills, terms, rates, book, cash, legs, trades + sold,
                    i, how, price, BY_TARGET if how == LIMIT else left_by,
                )  # fmt: skip
                sold, won = sold + 1, won + good
    return sold, won, cash


@compiled
def _stop_of(book: Array, i: int, whole: bool) -> tuple[float, int]:
    """Stop in force and how a position that it sells has left."""
    level = stop_in_force(book[i, STOP], book[i, MARK], book[i, TRAIL])
    if whole and level > book[i, STOP]:
        level = max(tick_level(level), book[i, STOP])
    return level, BY_TRAIL if level > book[i, STOP] else BY_STOP


@compiled
def _leaves_at_open(book: Array, i: int, open_: float, whole: bool) -> tuple[int, float, int]:
    if book[i, LEAVES_BY] > 0.0:
        return SLIPPED, open_, int(book[i, LEAVES_BY])
    level, left_by = _stop_of(book, i, whole)
    how, price = exit_of(open_, open_, open_, level, book[i, TARGET])
    return how, price, BY_TARGET if how == LIMIT else left_by


@compiled
def _order(
    t: int,
    open_: float,
    fills: Fills,
    terms: Array,
    rates: Ints,
    book: Array,
    i: int,
    cash: float,
    parts: int,
) -> None:
    """Rule 12: what one of so many parts of the cash buys, and what it costs."""
    if fills.shape[0]:
        fill = fills[i, BOUGHT, t]
        shares = whole_purchase(int(cash) // parts, fill, rates)
        book[i, BUYS], book[i, COST] = shares, whole_cost(shares, fill, rates)
        return
    budget = cash / parts
    spend = budget - terms[COMMISSION]
    if spend > 0.0:
        paid = open_ * (1.0 + terms[SLIPPAGE]) * (1.0 + terms[FEE_RATE])
        book[i, BUYS], book[i, COST] = spend / paid, budget


@compiled
def _enter(t: int, open_: float, fills: Fills, terms: Array, book: Array, i: int) -> None:
    book[i, SHARES], book[i, PAID], book[i, ENTERED] = book[i, BUYS], book[i, COST], t
    book[i, PAID_FILL] = open_ * (1.0 + terms[SLIPPAGE])
    if fills.shape[0]:
        book[i, PAID_FILL] = fills[i, BOUGHT, t] / UNITS
    book[i, MARK] = book[i, HELD] = book[i, LEAVES_BY] = 0.0


@compiled
def _sell(
    t: int,
    prices: Cube,
    fills: Fills,
    terms: Array,
    rates: Ints,
    book: Array,
    cash: float,
    legs: Array,
    row: int,
    i: int,
    how: int,
    price: float,
    left_by: int,
) -> tuple[float, int]:
    """Cash after a sale, and 1 where the position made money."""
    shares, each = book[i, SHARES], 1.0
    if fills.shape[0]:
        each = UNITS * 1.0
        units = whole_fill(prices[i, OPEN, t], fills[i], t, price, how == LIMIT, rates)
        got, fill = float(whole_sale(int(shares), units, int(cash), rates)), units / each
    else:
        fill = price * (1.0 - terms[SLIPPAGE]) if how == SLIPPED else price
        got = max(shares * fill * (1.0 - terms[FEE_RATE]) - terms[COMMISSION], -cash)
    if legs.shape[0]:
        _list(legs, row, book, i, t, fill, got, each, left_by)
    book[i, SHARES] = book[i, LEAVES_BY] = 0.0
    return cash + got, 1 if got > book[i, PAID] else 0


@compiled
def _list(
    legs: Array,
    row: int,
    book: Array,
    i: int,
    end: int,
    left_price: float,
    got: float,
    each: float,
    left_by: int,
) -> None:
    legs[row, ENTRY], legs[row, END] = book[i, ENTERED], end
    legs[row, PAID_PRICE], legs[row, LEFT_PRICE] = book[i, PAID_FILL], left_price
    legs[row, SHARES_], legs[row, PROFIT_] = book[i, SHARES], (got - book[i, PAID]) / each
    legs[row, LEFT], legs[row, LEG_SYMBOL] = left_by, i


@compiled
def _mark(book: Array, i: int, high: float, close: float) -> None:
    """Rule 5."""
    book[i, LAST] = close
    if book[i, SHARES] > 0.0:
        book[i, HELD] += 1.0
        book[i, MARK] = max(book[i, MARK], high)


@compiled
def _decide(
    book: Array,
    i: int,
    enters: bool,
    leaves: bool,
    close: float,
    last: int,
    atr: float,
    levels: Array,
    terms: Array,
) -> None:
    """Rule 6.

    last    price of the close in units where shares are whole, else -1
    levels  stop, target and trail in ATR, and the most bars
    """
    if book[i, SHARES] > 0.0:
        if leaves:
            book[i, LEAVES_BY] = BY_EXIT
        elif levels[3] > 0.0 and book[i, HELD] >= levels[3]:
            book[i, LEAVES_BY] = BY_TIME
    elif enters:
        allowed, stop, target, trail = entry_levels(
            close, atr, levels[0], levels[1], levels[2], terms
        )
        if last >= 0 and allowed:
            allowed, stop, target = whole_levels(last, stop, target)
        book[i, STOP], book[i, TARGET], book[i, TRAIL] = stop, target, trail
        book[i, WANTS_IN] = 1.0 if allowed else 0.0
