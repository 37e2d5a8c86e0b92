"""The definition of a lane: one account, bar after bar, in plain Python; every engine equals it.

For every bar t from `first` on, in this order (in brackets: the numbers of the rules of fills):

1. An exit pending at the open sells at the open (1, 3).
2. A position whose stop the open has passed sells at the open, else one whose target it has passed
   (4, 7). The stop is the higher of the protective and the trailing one.
3. An entry pending at the open buys at the open for all free cash, costs included (1, 12). Where
   the open is beyond its own stop, or its target, it is sold again at the open.
4. A stop the low reaches sells at its level, on the entry bar too, else a target the high reaches
   (5, 6, 8).
5. The close marks the account. The trailing stop follows the highest high since the entry, from the
   next bar on.
6. The close decides for the next open, so the newest bar decides nothing (2): a position leaves by
   its exit bit, or after max_bars; a flat account enters by its entry bit, with levels measured
   from the expected entry, close × (1 + slippage). Where levels are asked for, the ATR, the stop
   and the target must be finite and above 0, or nothing is entered. Where shares are whole, nothing
   is entered either with a stop above close − 0.01 USD or a target below close + 0.01 USD, both in
   whole ticks and the close to 0.0001 USD: the exchange takes no such order.

Market and stop orders pay slippage, targets do not; both sides pay the fee (10), and the commission
once per order (11). A fee above all that the account owns takes all of it and no more. A position
open at the end is marked at the last close and listed as open (13).

Several symbols may share one account: the cash that is free at an open, after the exits there, is
split evenly over the symbols that are flat. A symbol without a bar at t is left as it is.
"""

# ruff: noqa: PLR0917 - engines take prices, signals, ATR, lanes and terms by position

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.engines.lanes import (
    Lanes,
    Outcomes,
    Prices,
    Signals,
    Terms,
    Words,
    empty_outcomes,
)
from strategies.kernels.engines.walk_checks import require_one, require_sound
from strategies.kernels.engines.walk_money import LaneTrade, LeftBy, Money, money_of
from strategies.kernels.runs import Array
from trader.core.metrics import annual_return, max_drawdown, sharpe, sortino, total_return


def walk(
    prices: Prices, signals: Signals, atr_table: Array | None, lanes: Lanes, terms: Terms
) -> Outcomes:
    """What becomes of every lane.

    atr_table  [A, T or more] USD, the rows that `lanes.atr` names; None where no lane has levels
    raises     ValueError for arguments that do not fit together
    """
    require_sound(prices, signals, atr_table, lanes, terms)
    out = empty_outcomes(len(lanes))
    for lane in range(len(lanes)):
        account = _account(prices, signals, atr_table, lanes, lane, terms)
        note(out, lane, account, terms)
    return out


def curves(
    prices: Prices, signals: Signals, atr_table: Array | None, lanes: Lanes, terms: Terms
) -> Array:
    """Equity of every lane at every close, [L, n] USD with n = prices.traded; raises as `walk`."""
    require_sound(prices, signals, atr_table, lanes, terms)
    equity = np.empty((len(lanes), prices.traded))
    for lane in range(len(lanes)):
        equity[lane] = _account(prices, signals, atr_table, lanes, lane, terms).equity
    return equity


def trades(
    prices: Prices, signals: Signals, atr_table: Array | None, lanes: Lanes, terms: Terms
) -> tuple[LaneTrade, ...]:
    """The trades of one lane, oldest first, an open one last; raises as `walk`."""
    require_sound(prices, signals, atr_table, lanes, terms)
    require_one(lanes)
    return tuple(_account(prices, signals, atr_table, lanes, 0, terms).legs[0].trades)


def _account(
    prices: Prices,
    signals: Signals,
    atr_table: Array | None,
    lanes: Lanes,
    lane: int,
    terms: Terms,
) -> Account:
    leg = leg_of(prices, signals, atr_table, lanes, lane)
    return Account((leg,), first=prices.first, terms=terms).run()


def note(out: Outcomes, lane: int, account: Account, terms: Terms) -> None:
    """Write the metrics of a finished account into row `lane`."""
    equity = np.array(account.equity, dtype=np.float64)
    closed = [trade for leg in account.legs for trade in leg.trades if trade.exit_bar >= 0]
    winners = sum(trade.profit > 0.0 for trade in closed)
    bars, periods = equity.size, terms.periods_per_year
    initial, total = account.initial, total_return(equity, account.initial)
    out.final_equity[lane] = equity[-1] if bars else initial
    out.annual_return[lane] = _number(annual_return(total, bars, periods))
    out.sharpe[lane] = _number(sharpe(equity, initial, periods))
    out.sortino[lane] = _number(sortino(equity, initial, periods))
    out.max_drawdown[lane] = max_drawdown(equity, initial)
    out.trades[lane] = len(closed)
    out.open_trades[lane] = sum(leg.holding for leg in account.legs)
    out.hit_rate[lane] = winners / len(closed) if closed else math.nan
    out.exposure[lane] = account.exposed / bars if bars else 0.0


def _number(value: float | None) -> float:
    return math.nan if value is None else value


@dataclass(slots=True, kw_only=True)
class Leg:
    """One symbol of a lane: its bars, its rule, its orders and its position."""

    open: Array
    high: Array
    low: Array
    close: Array
    entry_bits: NDArray[np.bool_]
    exit_bits: NDArray[np.bool_]
    atr: Array | None
    stop_atrs: float
    target_atrs: float
    trail_atrs: float
    max_bars: int

    wants_in: bool = False  # an entry is pending
    leaves_by: LeftBy | None = None  # an exit is pending
    stop: float = -math.inf  # USD a share
    target: float = math.inf
    trail_distance: float = math.inf  # USD below the highest high
    mark: float = math.nan  # highest high since the entry; NaN until its bar has closed
    shares: float = 0.0  # 0: flat
    paid: float | Decimal = 0.0  # USD, costs included
    entry_price: float = math.nan
    entry_bar: int = -1
    bars_held: int = 0
    last_close: float = math.nan
    trades: list[LaneTrade] = field(default_factory=list)

    @property
    def holding(self) -> bool:
        """Whether there is a position."""
        return self.shares > 0.0

    def trades_at(self, t: int) -> bool:
        """Whether the symbol has a bar t."""
        return not math.isnan(self.close[t])

    def trail(self, cash: Money) -> float:
        """Level of the trailing stop; -inf where there is none yet."""
        if math.isnan(self.mark) or math.isinf(self.trail_distance):
            return -math.inf
        return cash.level(self.mark - self.trail_distance)

    def leave_at_open(self, t: int, cash: Money) -> None:
        """Rules 1 and 2."""
        if self.leaves_by is not None:
            self._sell(t, cash, self.open[t], -1, self.leaves_by)
        else:
            self.leave_gapped(t, cash)

    def leave_gapped(self, t: int, cash: Money) -> None:
        """Rule 2, which a new position meets as well."""
        stop, left_by = self._stop(cash)
        if not self.holding:
            return
        if self.open[t] <= stop:
            self._sell(t, cash, self.open[t], -1, left_by)
        elif self.open[t] >= self.target:
            self._sell(t, cash, self.open[t], 0, "target")

    def enter(self, t: int, shares: float, cost: float | Decimal, fill: float | Decimal) -> None:
        """Rule 3, the purchase."""
        self.shares, self.paid, self.entry_price, self.entry_bar = shares, cost, float(fill), t
        self.mark, self.bars_held = math.nan, 0

    def leave_inside(self, t: int, cash: Money) -> None:
        """Rule 4."""
        stop, left_by = self._stop(cash)
        if not self.holding:
            return
        if self.low[t] <= stop:
            self._sell(t, cash, stop, -1, left_by)
        elif self.high[t] >= self.target:
            self._sell(t, cash, self.target, 0, "target")

    def mark_close(self, t: int) -> None:
        """Rule 5, this symbol's part."""
        self.last_close = float(self.close[t])
        if self.holding:
            self.bars_held += 1
            self.mark = float(np.fmax(self.mark, self.high[t]))

    def decide(self, t: int, cash: Money, slippage: float) -> None:
        """Rule 6."""
        if self.holding:
            if self.exit_bits[t]:
                self.leaves_by = "exit"
            elif self.bars_held >= self.max_bars > 0:
                self.leaves_by = "time"
        elif self.entry_bits[t]:
            self.wants_in = self._set_levels(t, cash, slippage)

    def list_open(self) -> None:
        """Rule 13: list the position that is left at the end."""
        if self.holding:
            profit = self.shares * self.last_close - float(self.paid)
            self._list(-1, math.nan, profit, "open")

    def _set_levels(self, t: int, cash: Money, slippage: float) -> bool:
        self.stop, self.target, self.trail_distance = -math.inf, math.inf, math.inf
        if self.atr is None:
            return True
        atr, expected = float(self.atr[t]), float(self.close[t]) * (1.0 + slippage)
        if not (math.isfinite(atr) and atr > 0.0):
            return False
        if self.stop_atrs > 0.0:
            self.stop = cash.level(expected - self.stop_atrs * atr)
        if self.target_atrs > 0.0:
            self.target = cash.level(expected + self.target_atrs * atr)
        if self.trail_atrs > 0.0:
            self.trail_distance = self.trail_atrs * atr
        asked = ((self.stop_atrs, self.stop), (self.target_atrs, self.target))
        if not all(0.0 < level < math.inf for multiple, level in asked if multiple > 0.0):
            return False
        return cash.takes(float(self.close[t]), self.stop, self.target)

    def _stop(self, cash: Money) -> tuple[float, LeftBy]:
        trail = self.trail(cash)
        return (trail, "trail") if trail > self.stop else (self.stop, "stop")

    def _sell(self, t: int, cash: Money, price: float, away: int, left_by: LeftBy) -> None:
        fill = cash.fill(float(price), away)
        profit = float(cash.sell(self.shares, fill) - self.paid)  # type: ignore[operator]
        self._list(t, float(fill), profit, left_by)
        self.shares, self.leaves_by = 0.0, None

    def _list(self, exit_bar: int, exit_price: float, profit: float, left_by: LeftBy) -> None:
        self.trades.append(
            LaneTrade(
                entry_bar=self.entry_bar,
                exit_bar=exit_bar,
                entry_price=self.entry_price,
                exit_price=exit_price,
                shares=self.shares,
                profit=profit,
                left_by=left_by,
            )
        )


Purchase = tuple[Leg, float, float | Decimal, float | Decimal]  # shares, cost and fill, USD


class Account:
    """One account that trades its legs, in their order, by the rules of this module."""

    def __init__(self, legs: Sequence[Leg], *, first: int, terms: Terms) -> None:
        self.legs = tuple(legs)
        self.first, self.terms = first, terms
        self.cash = money_of(terms)
        self.initial = float(self.cash.cash)  # USD, to 0.0001 where shares are whole
        self.equity: list[float] = []  # at every close from `first` on
        self.exposed = 0  # bars that end with a position

    def run(self) -> Account:
        """Walk over all bars; returns itself."""
        bars = self.legs[0].close.size
        for t in range(self.first, bars):
            trading = [leg for leg in self.legs if leg.trades_at(t)]
            self._trade(t, trading)
            for leg in trading:
                leg.mark_close(t)
            held = sum(leg.shares * leg.last_close for leg in self.legs if leg.holding)
            self.equity.append(float(self.cash.cash) + held)
            self.exposed += any(leg.holding for leg in self.legs)
            if t < bars - 1:
                for leg in trading:
                    leg.decide(t, self.cash, self.terms.slippage)
        for leg in self.legs:
            leg.list_open()
        return self

    def _trade(self, t: int, trading: Sequence[Leg]) -> None:
        for leg in trading:
            leg.leave_at_open(t, self.cash)
        flat = sum(not leg.holding for leg in self.legs)
        for leg, shares, cost, fill in [self._bought(leg, t, flat) for leg in trading]:
            if shares > 0.0:
                self.cash.take(cost)
                leg.enter(t, shares, cost, fill)
                leg.leave_gapped(t, self.cash)
        for leg in trading:
            leg.leave_inside(t, self.cash)

    def _bought(self, leg: Leg, t: int, flat: int) -> Purchase:
        if not leg.wants_in:
            return leg, 0.0, 0.0, 0.0
        leg.wants_in = False
        fill = self.cash.fill(float(leg.open[t]), 1)
        shares, cost = self.cash.buy(fill, flat)
        return leg, shares, cost, fill


def leg_of(
    prices: Prices, signals: Signals, atr_table: Array | None, lanes: Lanes, lane: int
) -> Leg:
    """The leg that a lane trades on these prices."""
    rule, row = int(lanes.signal[lane]), int(lanes.atr[lane])
    stop, target, trail = (float(x[lane]) for x in (lanes.stop, lanes.target, lanes.trail))
    levels = atr_table is not None and max(stop, target, trail) > 0.0
    return Leg(
        open=prices.open,
        high=prices.high,
        low=prices.low,
        close=prices.close,
        entry_bits=_bits(signals.entry[rule], len(prices)),
        exit_bits=_bits(signals.exit[rule], len(prices)),
        atr=atr_table[row] if levels and atr_table is not None else None,
        stop_atrs=stop,
        target_atrs=target,
        trail_atrs=trail,
        max_bars=int(lanes.max_bars[lane]),
    )


def _bits(words: Words, bars: int) -> NDArray[np.bool_]:
    octets = np.ascontiguousarray(words).astype("<u8").view(np.uint8)
    return np.unpackbits(octets, count=bars, bitorder="little").astype(np.bool_)
