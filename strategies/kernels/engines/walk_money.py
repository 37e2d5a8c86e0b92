"""The trades of a lane, and how it counts: in fractions of a share, or as the exchange does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, Protocol

from strategies.kernels.engines.lanes import Terms
from trader.core.costs import CENT
from trader.core.trading import PRICE_STEP, fill_price, money, tick_down, whole_shares

RATE_STEP = Decimal("1e-9")  # rates and commissions are read to this step where shares are whole
UNITS = 10_000  # of 0.0001 USD in 1 USD: whole shares are counted in these
MOST = 2**53  # units in any price or account

LeftBy = Literal["exit", "stop", "target", "trail", "time", "open"]
LEFT_BY: tuple[LeftBy, ...] = ("open", "exit", "time", "stop", "trail", "target")  # by code


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneTrade:
    """One round trip.

    entry_bar, exit_bar      bars of the fills; exit_bar -1 while open
    entry_price, exit_price  USD a share, slippage included; exit_price NaN while open
    profit                   USD after all costs; while open against the last close, before the
                             costs of leaving
    """

    entry_bar: int
    exit_bar: int
    entry_price: float
    exit_price: float
    shares: float
    profit: float
    left_by: LeftBy


class Money(Protocol):
    """The cash of one account and the prices it trades at."""

    @property
    def cash(self) -> float | Decimal:
        """USD."""

    def level(self, price: float) -> float:
        """The price that an order at `price` can be given."""

    def takes(self, close: float, stop: float, target: float) -> bool:
        """Whether an entry with these levels is taken at `close`; -inf and inf for none."""

    def fill(self, price: float, away: int) -> float | Decimal:
        """Fill at `price`: 1 slips it up (a buy), -1 down (a sale), 0 not at all (a target)."""

    def buy(self, fill: float | Decimal, parts: int) -> tuple[float, float | Decimal]:
        """Shares bought with one of `parts` equal parts of the cash, and their cost in USD.

        It is not taken from the cash yet, and 0 shares are no trade.
        """

    def take(self, cost: float | Decimal) -> None:
        """Take what was bought from the cash."""

    def sell(self, shares: float, fill: float | Decimal) -> float | Decimal:
        """Add what is left of a sale after its costs to the cash; returns it."""


class Fractional:
    """Any fraction of a share, every price as it is."""

    def __init__(self, terms: Terms) -> None:
        self.cash = terms.cash
        self._terms = terms

    def level(self, price: float) -> float:
        """The price itself."""
        return price

    def takes(self, close: float, stop: float, target: float) -> bool:  # noqa: ARG002
        """Always: nobody stands between this account and its market."""
        return True

    def fill(self, price: float, away: int) -> float:
        """The price, slipped."""
        return price * (1.0 + away * self._terms.slippage)

    def buy(self, fill: float, parts: int) -> tuple[float, float]:
        """All of the part is paid."""
        budget = self.cash / parts
        for_shares = budget - self._terms.commission_per_order
        if not for_shares > 0.0:
            return 0.0, 0.0
        return for_shares / (fill * (1.0 + self._terms.fee_rate)), budget

    def take(self, cost: float) -> None:
        """Take the cost; rounding never leaves a debt."""
        self.cash = max(self.cash - cost, 0.0)

    def sell(self, shares: float, fill: float) -> float:
        """Fee and commission go off, but never more than there is."""
        left = shares * fill * (1.0 - self._terms.fee_rate) - self._terms.commission_per_order
        left = max(left, -self.cash)
        self.cash += left
        return left


class Whole:
    """Whole shares, whole ticks, fills to 0.0001 USD and fees to the cent, as at the exchange.

    Cash is read to 0.0001 USD; slippage, fee and commission are read to nine decimals.
    """

    def __init__(self, terms: Terms) -> None:
        self.cash = money(terms.cash).quantize(PRICE_STEP)
        self._slippage = money(terms.slippage).quantize(RATE_STEP)
        self._fee_rate = money(terms.fee_rate).quantize(RATE_STEP)
        self._commission = money(terms.commission_per_order).quantize(RATE_STEP)

    def level(self, price: float) -> float:
        """The price rounded down to a tick; as it is where it is beyond all that is counted."""
        return float(tick_down(price)) if abs(price) < MOST / UNITS else price

    def takes(self, close: float, stop: float, target: float) -> bool:
        """The exchange wants a cent at least between the last price and a stop or a target."""
        last = fill_price(close)  # prices at the exchange are no finer
        below = math.isinf(stop) or money(stop) <= last - CENT
        return below and (math.isinf(target) or money(target) >= last + CENT)

    def fill(self, price: float, away: int) -> Decimal:
        """The price, slipped and rounded half-even to 0.0001 USD."""
        return fill_price(money(price) * (1 + away * self._slippage))

    def buy(self, fill: Decimal, parts: int) -> tuple[float, Decimal]:
        """As many whole shares as the part pays for, with their fee."""
        budget = self.cash / parts
        fewest, most = 0, whole_shares(budget / fill) if fill > 0 else 0
        while fewest < most:
            middle = (fewest + most + 1) // 2
            if middle * fill + self._fee(middle * fill) <= budget:
                fewest = middle
            else:
                most = middle - 1
        return float(fewest), fewest * fill + self._fee(fewest * fill)

    def take(self, cost: Decimal) -> None:
        """Take the cost."""
        self.cash -= cost

    def sell(self, shares: float, fill: Decimal) -> Decimal:
        """The fee goes off, but never more than there is."""
        notional = int(shares) * fill
        left = max(notional - self._fee(notional), -self.cash)
        self.cash += left
        return left

    def _fee(self, notional: Decimal) -> Decimal:
        """USD of one order that traded `notional`, its commission included, half-even to a cent."""
        return (notional * self._fee_rate + self._commission).quantize(CENT)


def money_of(terms: Terms) -> Money:
    """Money as the terms count it."""
    return Whole(terms) if terms.whole_shares else Fractional(terms)  # type: ignore[return-value]
