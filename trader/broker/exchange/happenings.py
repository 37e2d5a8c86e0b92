"""Splits, dividends, payments and resets: what changes the account without an order of its own."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from trader.broker.exchange.postings import Happening
from trader.broker.exchange.records import AVERAGE_STEP, Ticket
from trader.core.trading import OrderStatus, Side, tick_down, tick_of

if TYPE_CHECKING:
    from trader.broker.exchange.desk import Desk

CENT = Decimal("0.01")
WHOLE = Decimal(1)
SMALLEST_PART = Decimal("1e-9")  # of a share


class Ahead:
    """What happens to the account between its clock and `until_ns`, in order of time.

    A dividend comes before a split of the same session: it belongs to the shares of the close
    before.
    """

    def __init__(self, desk: Desk, until_ns: int) -> None:
        self._desk = desk
        account = desk.account
        symbols = account.holdings.keys() | {one.symbol for one in account.open_tickets()}
        due = [
            happening
            for symbol in symbols
            for happening in desk.prices.happenings(symbol)
            if account.clock_ns < happening.at_ns <= until_ns
        ]
        due.sort(key=lambda one: (one.at_ns, one.symbol, one.ratio != 1))
        self._due = deque(due)

    def before(self, moment_ns: int) -> None:
        """Let everything happen that takes effect up to `moment_ns`."""
        while self._due and self._due[0].at_ns <= moment_ns:
            happening = self._due.popleft()
            self._desk.account.expire(happening.at_ns)
            if happening.ratio == 1:
                pay_dividend(self._desk, happening)
            else:
                apply_split(self._desk, happening)


def pay_dividend(desk: Desk, dividend: Happening) -> None:
    """Cash for every share held at the close before, to the cent."""
    account = desk.account
    shares = account.quantity(dividend.symbol)
    if not shares:
        return
    amount = (shares * dividend.per_share).quantize(CENT, rounding=ROUND_HALF_EVEN)
    account.cash += amount
    desk.store.postings.book(
        "DIV",
        at_ns=dividend.at_ns,
        after_trade=account.trade_count,
        symbol=dividend.symbol,
        amount=amount,
        shares=shares,
        per_share=dividend.per_share,
        description=f"cash dividend of {dividend.per_share} USD per share",
    )


def apply_split(desk: Desk, split: Happening) -> None:
    """Turn shares and open orders into those after the split.

    Where only whole shares are held and ordered they stay whole; a fraction left over is paid in
    cash at the close before the split. Prices of orders are rounded away from the market, so that
    none of them is reached by the rounding alone; an order that has no share left is canceled.
    """
    account, symbol = desk.account, split.symbol
    orders = [ticket for ticket in account.open_tickets() if ticket.symbol == symbol]
    before = account.quantity(symbol)
    quantities = [before, *(ticket.remaining for ticket in orders)]
    step = WHOLE if all(_is_whole(quantity) for quantity in quantities) else SMALLEST_PART
    for ticket in orders:
        after = _split_ticket(ticket, split, step)
        if not account.tickets[ticket.order_id].is_open:
            continue  # ended with another of its family
        if after.remaining > 0:
            account.put(after, "restated", split.at_ns)
        else:
            reason = f"no share is left of it after the split of {split.session}"
            account.close_family(ticket, OrderStatus.CANCELED, split.at_ns, reason)
    if not before:
        return
    exact = _times(before, split.ratio)
    after_split = exact.quantize(step, rounding=ROUND_DOWN)
    in_lieu = (exact - after_split) * desk.price(symbol, split.at_ns)
    amount = in_lieu.quantize(CENT, rounding=ROUND_HALF_EVEN)
    held = account.holdings[symbol]
    if after_split:
        account.holdings[symbol] = replace(
            held,
            quantity=after_split,
            average_price=_divided(held.average_price, split.ratio).quantize(AVERAGE_STEP),
        )
    else:
        del account.holdings[symbol]
    account.cash += amount
    desk.store.postings.book(
        "SPLIT",
        at_ns=split.at_ns,
        after_trade=account.trade_count,
        symbol=symbol,
        amount=amount,
        quantity=after_split - before,
        description=f"split {split.ratio.numerator} for {split.ratio.denominator}",
    )


def _split_ticket(ticket: Ticket, split: Happening, step: Decimal) -> Ticket:
    remaining = _times(ticket.remaining, split.ratio).quantize(step, rounding=ROUND_DOWN)
    mark = ticket.high_water_mark
    return replace(
        ticket,
        quantity=ticket.filled_quantity + remaining,
        limit_price=_level(ticket.limit_price, split.ratio, down=ticket.side is Side.BUY),
        stop_price=_level(ticket.stop_price, split.ratio, down=ticket.side is Side.SELL),
        trail_price=_level(ticket.trail_price, split.ratio, down=False),
        high_water_mark=None
        if mark is None
        else _divided(mark, split.ratio).quantize(AVERAGE_STEP),
        updated_ns=split.at_ns,
    )


def _level(price: Decimal | None, ratio: Fraction, *, down: bool) -> Decimal | None:
    """A price after the split on a whole tick, never zero."""
    if price is None:
        return None
    exact = _divided(price, ratio)
    tick = tick_of(exact)
    return max(tick, tick_down(exact) if down else exact.quantize(tick, rounding=ROUND_CEILING))


def _times(quantity: Decimal, ratio: Fraction) -> Decimal:
    return quantity * ratio.numerator / ratio.denominator


def _divided(price: Decimal, ratio: Fraction) -> Decimal:
    return price * ratio.denominator / ratio.numerator


def _is_whole(quantity: Decimal) -> bool:
    return quantity == quantity.to_integral_value()
