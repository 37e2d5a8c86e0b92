"""Whole shares, ticks, fills to 0.0001 USD and cents in integers, for the compiled engine.

Money is counted in units of 0.0001 USD, rates in billionths, so that every rounding is exact and
equal to the Decimal arithmetic of `walk_money`. Counts stay below 2^53: a float
holds each of them.
"""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.engines.lanes import Ints, Terms
from strategies.kernels.engines.masks import compiled
from strategies.kernels.engines.walk_money import MOST, RATE_STEP, UNITS, Whole
from strategies.kernels.runs import Array
from trader.core.trading import money

BILLION = 1_000_000_000
CENT = 100  # units
NEAR_TIE = 1e-6  # of a unit: further away than this, float rounding cannot cross a tie
BOUGHT, SOLD, LIMITED, LAST = range(4)  # rows of fills: three at the open, then the closes
AWAYS = (1, -1, 0)
SLIP, FEE, ORDER = range(3)  # places in a row of rates


def rates_row(terms: Terms) -> Ints:
    """Slippage and fee rate in billionths, commission in billionths of a USD."""
    amounts = (terms.slippage, terms.fee_rate, terms.commission_per_order)
    return np.array([int(money(x).quantize(RATE_STEP) / RATE_STEP) for x in amounts])


def fills_of(open_: Array, close: Array, terms: Terms) -> Ints:
    """Fills at every open, and every close as the exchange tells it, in units, [4, T]."""
    return np.concatenate((fills_at_open(open_, terms), fills_at_open(close, terms)[LIMITED:]))


def fills_at_open(open_: Array, terms: Terms) -> Ints:
    """Fills at every open in units, [3, T]: bought, sold by a market order, sold by a limit one.

    Rounded half-even from the decimals that the prices are written with. Only near a tie that needs
    Decimal. ValueError for a price beyond what is counted.
    """
    whole, open_ = Whole(terms), np.where(np.isnan(open_), 0.0, open_)
    for amount in (terms.cash, open_.max(initial=0.0)):
        if amount * 2 * UNITS >= MOST:
            raise ValueError(f"{amount} USD is beyond what is counted in whole shares")
    slippage = float(money(terms.slippage).quantize(RATE_STEP))
    fills = np.empty((len(AWAYS), open_.size), dtype=np.int64)
    for row, away in enumerate(AWAYS):
        exact = open_ * (1.0 + away * slippage) * UNITS
        fills[row] = np.rint(exact).astype(np.int64)
        for bar in np.flatnonzero(_near_tie(exact)):
            fills[row, bar] = int(whole.fill(float(open_[bar]), away) * UNITS)
    return fills


def _near_tie(units: Array) -> NDArray[np.bool_]:
    off = np.abs(units - np.floor(units) - 0.5)
    return np.less(off, NEAR_TIE + units * 1e-15)


@compiled
def tick_units(price: float) -> int:
    """A price rounded down to a tick (0.01 USD from 1 USD on, else 0.0001 USD), in units."""
    per_usd, each = (100.0, 100) if price >= 1.0 else (10_000.0, 1)
    ticks = math.floor(price * per_usd)
    if (ticks + 1) / per_usd <= price:  # the decimal that the price is written as
        ticks += 1
    elif ticks / per_usd > price:
        ticks -= 1
    return int(ticks * each)


@compiled
def tick_level(price: float) -> float:
    """A price rounded down to a tick, USD; as it is where it is not finite or beyond all counts."""
    if not abs(price) < MOST / UNITS:
        return price
    return tick_units(price) / UNITS


@compiled
def whole_levels(last: int, stop: float, target: float) -> tuple[bool, float, float]:
    """Whether the exchange takes an entry with these levels, and their whole ticks.

    last    price of the close, in units
    stop    USD; 0 for none
    target  USD; infinite for none
    """
    stopped = stop > 0.0
    stop, target = tick_level(stop), tick_level(target)
    allowed = np.rint(target * UNITS) >= last + CENT
    if stopped:
        allowed = allowed and stop > 0.0 and np.rint(stop * UNITS) <= last - CENT
    return allowed, stop, target


@compiled
def sold_at(level: int, slip: int) -> int:
    """Fill in units of a market sale at a level in units, rounded half-even."""
    high, low = level // BILLION, level % BILLION
    off = low * slip
    fill = level - high * slip - off // BILLION
    rest = off % BILLION  # billionths of a unit still to come off
    if rest * 2 > BILLION or (rest * 2 == BILLION and fill % 2 != 0):
        fill -= 1
    return fill


@compiled
def fee_of(notional: int, fee: int, order: int) -> int:
    """Fee and commission in units of an order, rounded half-even to a cent."""
    units = notional // BILLION * fee + order // 100_000
    rest = notional % BILLION * fee + order % 100_000 * 10_000  # billionths of a unit
    units += rest // BILLION
    rest = units % 100 * BILLION + rest % BILLION  # billionths of a unit beyond whole cents
    cents = units // 100
    half = 50 * BILLION
    if rest > half or (rest == half and cents % 2 != 0):
        cents += 1
    return cents * 100


@compiled
def whole_purchase(budget: int, fill: int, rates: Ints) -> int:
    """Most whole shares that the budget, in units, pays for with their fee."""
    if fill <= 0:
        return 0
    spend = budget - rates[ORDER] / 100_000
    shares = max(0, int(spend / (fill * (1.0 + rates[FEE] / BILLION))))
    while shares > 0 and whole_cost(shares, fill, rates) > budget:
        shares -= 1
    while whole_cost(shares + 1, fill, rates) <= budget:
        shares += 1
    return shares


@compiled
def whole_cost(shares: int, fill: int, rates: Ints) -> int:
    """What these shares cost with their fee, in units."""
    return shares * fill + fee_of(shares * fill, rates[FEE], rates[ORDER])


@compiled
def whole_fill(
    open_: float, fills: Ints, bar: int, price: float, limited: bool, rates: Ints
) -> int:
    """Fill in units of a sale on a bar, at its open or at a level of whole ticks."""
    if price == open_:
        return int(fills[LIMITED if limited else SOLD, bar])
    level = tick_units(price)
    return level if limited else sold_at(level, rates[SLIP])


@compiled
def whole_sale(shares: int, fill: int, cash: int, rates: Ints) -> int:
    """What a sale adds to the cash, in units; a fee beyond all that there is takes that."""
    if float(shares) * float(fill) + cash >= MOST:
        raise ValueError("an account grew beyond what is counted in whole shares: 9e11 USD")
    notional = shares * fill
    return max(notional - fee_of(notional, rates[FEE], rates[ORDER]), -cash)
