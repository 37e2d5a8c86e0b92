"""The arithmetic of one lane, bar by bar, as scalar steps that the CPU and CUDA engines share.

No step allocates. Numbers have the type of `terms`, a row of the engine's own precision, so that a
float32 engine does nothing in float64; prices are above 0, so a stop of 0 and a target of infinity
are never reached. The rules are those of `strategies.kernels.engines.walk_reference`.
"""

# ruff: noqa: PLR0917 - steps take scalars by position

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.engines.lanes import Terms
from strategies.kernels.engines.walk_money import money_of
from strategies.kernels.steps import step
from trader.core.metrics import MINIMUM_PERIODS_FOR_ANNUAL, ROUNDING_NOISE

CASH, SLIPPAGE, FEE_RATE, COMMISSION, PERIODS = range(5)  # places in a row of terms
NONE, ENTER, LEAVE = 0, 1, 2  # orders pending at an open
HOLD, SLIPPED, LIMIT = 0, 1, 2  # how a bar is left: not, at a market price, at a limit
STATE_INTS, STATE_FLOATS = 5, 12  # parts of a lane's state

Floats = NDArray[Any]  # float64, or float32 on a device


def terms_row(terms: Terms, dtype: Any = np.float64) -> Floats:
    """Terms as the row that steps read."""
    return np.array(
        [
            float(money_of(terms).cash),
            terms.slippage,
            terms.fee_rate,
            terms.commission_per_order,
            terms.periods_per_year,
        ],
        dtype=dtype,
    )


@step
def entry_levels(
    close: Any, atr: Any, stop_atrs: Any, target_atrs: Any, trail_atrs: Any, terms: Floats
) -> tuple[bool, Any, Any, Any]:
    """Rule 6: whether an entry decided at `close` may be sent, its stop, target and trail, USD."""
    number = terms.dtype.type
    zero, one, infinite = number(0.0), number(1.0), number(math.inf)
    allowed, stop, target, trail = True, zero, infinite, infinite
    if stop_atrs > zero or target_atrs > zero or trail_atrs > zero:
        allowed = atr > zero and atr < infinite
        expected = close * (one + terms[SLIPPAGE])
        if stop_atrs > zero:
            stop = expected - stop_atrs * atr
            allowed = allowed and stop > zero and stop < infinite
        if target_atrs > zero:
            target = expected + target_atrs * atr
            allowed = allowed and target > zero and target < infinite
        if trail_atrs > zero:
            trail = trail_atrs * atr
    return allowed, stop, target, trail


@step
def shares_bought(cash: Any, price: Any, terms: Floats) -> Any:
    """Rules 3 and 12: shares that all the cash buys at an open, costs included; 0 for no trade."""
    number = terms.dtype.type
    zero, one = number(0.0), number(1.0)
    spend = cash - terms[COMMISSION]
    shares = zero
    if spend > zero:
        shares = spend / (price * (one + terms[SLIPPAGE]) * (one + terms[FEE_RATE]))
    return shares


@step
def cash_received(shares: Any, price: Any, how: int, terms: Floats) -> Any:
    """What a sale at `price` leaves after costs, USD, never below 0; `how` as `exit_of` says."""
    number = terms.dtype.type
    zero, one = number(0.0), number(1.0)
    fill = price
    if how == SLIPPED:
        fill = price * (one - terms[SLIPPAGE])
    cash = shares * fill * (one - terms[FEE_RATE]) - terms[COMMISSION]
    if not cash > zero:
        cash = zero
    return cash


@step
def stop_in_force(stop: Any, mark: Any, trail: Any) -> Any:
    """The higher of the protective stop and the trailing one; `mark` is 0 before one moved."""
    trailing = mark - trail
    if trailing > stop:
        return trailing
    return stop


@step
def exit_of(open_: Any, high: Any, low: Any, stop: Any, target: Any) -> tuple[int, Any]:
    """Rules 2 to 4: how a position leaves on a bar, and the price it leaves at before slippage."""
    how, price = HOLD, open_
    if open_ <= stop:
        how = SLIPPED
    elif open_ >= target:
        how = LIMIT
    elif low <= stop:
        how, price = SLIPPED, stop
    elif high >= target:
        how, price = LIMIT, target
    return how, price


@step
def fallen(equity: Any, peak: Any, worst: Any) -> tuple[Any, Any]:
    """Highest equity and deepest equity / peak after one more close; divides only for a new one."""
    if equity > peak:
        peak = equity
    elif equity < worst * peak:
        worst = equity / peak
    return peak, worst


@step
def ratios(bars: int, total: Any, squares: Any, downs: Any, worst: Any, terms: Floats) -> Any:
    """Sharpe and Sortino ratio from sums over the bar returns; NaN as `Outcomes` says.

    total, squares, downs  sums of r, r² and min(r, 0)²
    worst                  deepest equity / peak: 0 for an account that was worth nothing
    """
    number = terms.dtype.type
    zero, one, noise = number(0.0), number(1.0), number(ROUNDING_NOISE)
    sharpe, sortino = number(math.nan), number(math.nan)
    if bars >= 2 and worst > zero:
        count = number(bars)
        mean = total / count
        annual = math.sqrt(terms[PERIODS])
        variance = (squares - total * mean) / (count - one)
        if variance > noise * noise:
            sharpe = mean / math.sqrt(variance) * annual
        downside = downs / count
        if downside > noise * noise:
            sortino = mean / math.sqrt(downside) * annual
    return sharpe, sortino


@step
def annual_growth(bars: int, equity: Any, terms: Floats) -> Any:
    """Compound annual growth rate, a fraction; NaN for a short period or nothing left."""
    number = terms.dtype.type
    one = number(1.0)
    years = number(bars) / terms[PERIODS]
    total = equity / terms[CASH] - one  # rounded as `trader.core.metrics` rounds it
    annual = number(math.nan)
    if years >= number(MINIMUM_PERIODS_FOR_ANNUAL) and total > -one:
        annual = (one + total) ** (one / years) - one
    return annual


@step
def opening_state(terms: Floats) -> Any:
    """A lane before its first bar: (counters, sums and levels), to be passed through `walk_bar`.

    counters  pending order, bars held, closed trades, winners, bars that ended with a position
    numbers   cash (what was paid, while holding), shares, stop, target, trail, mark, equity, peak,
              deepest equity / peak, sums of r, r² and min(r, 0)²
    """
    number, count = terms.dtype.type, np.int32
    zero, one = number(0.0), number(1.0)
    cash = terms[CASH]
    counters = (count(0), count(0), count(0), count(0), count(0))
    return counters, (cash, zero, zero, zero, zero, zero, cash, cash, one, zero, zero, zero)


@step
def walk_bar(
    state: Any,
    open_: Any,
    high: Any,
    low: Any,
    close: Any,
    change: Any,
    atr: Any,
    enters: bool,
    leaves: bool,
    newest: bool,
    stop_atrs: Any,
    target_atrs: Any,
    trail_atrs: Any,
    max_bars: int,
    terms: Floats,
) -> Any:
    """The state of a lane after one more bar.

    state           from `opening_state` or the bar before
    change          close / previous close - 1
    atr             of this bar; any number where the lane has no levels
    enters, leaves  bits of this bar
    newest          whether this is the last bar, which decides nothing
    """
    number, count = terms.dtype.type, np.int32
    zero, one = number(0.0), number(1.0)
    (pending, held, trades, wins, exposed), floats = state
    (cash, shares, stop, target, trail, mark, equity, peak, worst, total, squares, downs) = floats
    is_new = False
    if pending == ENTER:
        pending = count(NONE)
        shares = shares_bought(cash, open_, terms)
        is_new = shares > zero
        held, mark = count(0), zero
    if shares > zero:
        how, price = exit_of(open_, high, low, stop_in_force(stop, mark, trail), target)
        if pending == LEAVE:
            how, price, pending = SLIPPED, open_, count(NONE)
        before = equity
        if how != HOLD:
            equity = cash_received(shares, price, how, terms)
            trades = count(trades + 1)
            if equity > cash:
                wins = count(wins + 1)
            cash, shares = equity, zero
        else:
            equity = shares * close
            held, exposed = count(held + 1), count(exposed + 1)
            mark = max(mark, high)
        if is_new or how != HOLD:
            change = equity / before - one
        total += change
        squares += change * change
        if change < zero:
            downs += change * change
        peak, worst = fallen(equity, peak, worst)
    if not newest:
        if shares > zero:
            if leaves or (max_bars > 0 and held >= max_bars):
                pending = count(LEAVE)
        elif enters:
            allowed, stop, target, trail = entry_levels(
                close, atr, stop_atrs, target_atrs, trail_atrs, terms
            )
            if allowed:
                pending = count(ENTER)
    return (
        (pending, held, trades, wins, exposed),
        (cash, shares, stop, target, trail, mark, equity, peak, worst, total, squares, downs),
    )


@step
def write_metrics(state: Any, bars: int, terms: Floats, out: Floats, lane: int) -> None:
    """Write `Outcomes` into out[:, lane]; the annual return is NaN until the host has raised it.

    A power on a device is a call that spills, and not the CPU's to the last bit.
    """
    number = terms.dtype.type
    counters, floats = state
    trades, wins, exposed = counters[2], counters[3], counters[4]
    zero, one = number(0.0), number(1.0)
    sharpe, sortino = ratios(bars, floats[9], floats[10], floats[11], floats[8], terms)
    out[0, lane] = floats[6]
    out[1, lane] = number(math.nan)
    out[2, lane] = sharpe
    out[3, lane] = sortino
    out[4, lane] = floats[8] - one
    out[5, lane] = number(trades)
    out[6, lane] = one if floats[1] > zero else zero
    out[7, lane] = number(wins) / number(trades) if trades > 0 else number(math.nan)
    out[8, lane] = number(exposed) / number(bars) if bars > 0 else zero
