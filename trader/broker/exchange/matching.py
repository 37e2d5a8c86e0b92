"""The rules of fills: which open orders trade on a bar, in what order and at what price.

What happens at the open is known, so it comes first. The order of events inside a bar is unknown,
so the reading that is worse for the trader is taken:

1. exits pending at the open           open, slippage against the trader
2. stops and targets gapped over       open; with slippage for a stop, without for a target
3. entries pending at the open         open; with slippage for a market order, without for a limit
4. buy stops gapped over               open, slippage against the trader
5. legs of entries 3 and 4 gapped over open, as 2: an entry below its own stop leaves at once
6. entries inside the bar              buy stop at its level with slippage, buy limit at its limit
7. protective stops, entry bar too     stop level with slippage
8. targets                             limit price
9. orders for the close                close, exits first; as 1 and 3 otherwise

After an entry at a limit inside the bar, the high may lie before the entry: its target counts on
that bar only when the close has reached it. Inside one step orders trade in the order they came in.

A stop-limit order whose stop the open has passed is a limit order from then on; one whose stop is
reached inside the bar trades at the stop, with slippage but not beyond its limit, and where the
limit lies on the far side of the stop only when the close, which comes last, has reached it.
The mark of a trailing stop moves after the bar, so that a bar cannot raise the stop it then hits.
Orders for the opening, IOC and FOK trade at the open only; what is left of them is canceled there,
and what is left of an order for the close ends with its session.
An order trades once on a bar; the rest of a partial fill waits for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal

from trader.broker.exchange.account import STOPS, Account
from trader.broker.exchange.liquidity import PARTS_OF_A_SHARE, Liquidity
from trader.broker.exchange.prices import PricedBar
from trader.broker.exchange.pricing import AT_OPEN, INSIDE, at_close
from trader.broker.exchange.records import Ticket
from trader.broker.exchange.trailing import advanced
from trader.core.clock import SessionCalendar
from trader.core.costs import Costs
from trader.core.market import from_ns, session_of, to_ns
from trader.core.trading import OrderStatus, OrderType, Side, TimeInForce

AT_ONCE = frozenset({TimeInForce.OPG, TimeInForce.IOC, TimeInForce.FOK})


def match(
    account: Account,
    bars: Mapping[str, PricedBar],
    *,
    costs: Costs,
    liquidity: Liquidity,
    calendar: SessionCalendar,
) -> None:
    """Trade the open orders on the bars of one moment, by symbol; orders newer than a bar wait."""
    for bar in bars.values():
        account.show_as_new(bar.symbol, bar.opened_ns)
    Round(account, bars, costs=costs, liquidity=liquidity, calendar=calendar).run()


class Round:
    """The open orders against the bars of one moment."""

    def __init__(
        self,
        account: Account,
        bars: Mapping[str, PricedBar],
        *,
        costs: Costs,
        liquidity: Liquidity,
        calendar: SessionCalendar,
    ) -> None:
        self._account = account
        self._bars = bars
        self._costs = costs
        self._liquidity = liquidity
        self._calendar = calendar
        self._traded: set[str] = set()
        self._dipped: set[str] = set()  # families entered at a limit inside the bar
        self._left = {symbol: liquidity.of_bar(bar.volume) for symbol, bar in bars.items()}

    def run(self) -> None:
        """Every step, in the order the module says."""
        self._trigger(lambda bar: bar.open, lambda bar: bar.open, at_open=True)
        for pricing in AT_OPEN:
            for ticket, bar in self._waiting(self._trades_at_open):
                self._trade(ticket, bar, pricing(ticket, bar, self._costs), bar.opened_ns)
        self._end_at_open()
        for pricing in INSIDE:
            for ticket, bar in self._waiting(_trades_inside):
                seen = replace(bar, high=bar.close) if ticket.family_id in self._dipped else bar
                price = pricing(ticket, seen, self._costs)
                if self._trade(ticket, bar, price, bar.known_ns) and _entered_at_limit(ticket):
                    self._dipped.add(ticket.family_id)
        self._trigger(lambda bar: bar.low, lambda bar: bar.high, at_open=False)
        self._at_close()
        for ticket, bar in self._waiting(_trails):
            moved = advanced(ticket, bar)
            if moved is not None:
                self._account.put(moved)

    def _waiting(
        self, fits: Callable[[Ticket, PricedBar], bool]
    ) -> Iterator[tuple[Ticket, PricedBar]]:
        """Live orders that have not traded yet, with a bar that opened no earlier than they came.

        The oldest come first.
        """
        for ticket in self._account.open_tickets():
            bar = self._bars.get(ticket.symbol)
            if bar is None or not ticket.live or not fits(ticket, bar):
                continue
            if ticket.order_id in self._traded:
                continue
            if self._account.tickets[ticket.order_id] is ticket:  # not ended meanwhile
                yield ticket, bar

    def _trades_at_open(self, ticket: Ticket, bar: PricedBar) -> bool:
        if ticket.submitted_ns > bar.opened_ns or ticket.time_in_force is TimeInForce.CLS:
            return False
        return ticket.time_in_force is not TimeInForce.OPG or self._opens_session(bar)

    def _trade(self, ticket: Ticket, bar: PricedBar, price: Decimal | None, at_ns: int) -> bool:
        """Fill as much as the market takes at `price`; False when nothing traded."""
        if price is None:
            return False
        if ticket.notional is not None and not ticket.filled_quantity:
            ticket = _counted(ticket, price)
        left = self._left[bar.symbol]
        quantity = self._liquidity.part(ticket, left)
        if quantity <= 0:
            return False
        self._traded.add(ticket.order_id)
        if not self._account.fill(ticket, quantity, price, self._costs, at_ns):
            return False
        if left is not None:
            self._left[bar.symbol] = left - quantity
        return True

    def _trigger(
        self,
        lowest: Callable[[PricedBar], Decimal],
        highest: Callable[[PricedBar], Decimal],
        *,
        at_open: bool,
    ) -> None:
        """Mark the stops that were reached; at the open only of stop-limit orders."""
        for ticket, bar in self._waiting(_waits_for_stop):
            assert ticket.stop_price is not None  # what waits for its stop has one
            if at_open and ticket.order_type is not OrderType.STOP_LIMIT:
                continue
            is_sell = ticket.side is Side.SELL
            if lowest(bar) <= ticket.stop_price if is_sell else highest(bar) >= ticket.stop_price:
                at_ns = bar.opened_ns if at_open else bar.known_ns
                self._account.put(replace(ticket, triggered_ns=at_ns, updated_ns=at_ns))

    def _at_close(self) -> None:
        for side in (Side.SELL, Side.BUY):
            for ticket, bar in self._waiting(self._trades_at_close):
                if ticket.side is not side:
                    continue
                price = at_close(ticket, bar, self._costs)
                self._trade(ticket, bar, price, bar.known_ns)

    def _trades_at_close(self, ticket: Ticket, bar: PricedBar) -> bool:
        """An order for the close may be younger than the bar, whose close it cannot have known."""
        return (
            ticket.time_in_force is TimeInForce.CLS
            and ticket.submitted_ns < bar.known_ns
            and self._closes_session(bar)
        )

    def _end_at_open(self) -> None:
        """Cancel what is left of the orders whose moment this was."""
        for ticket in self._account.open_tickets():
            bar = self._bars.get(ticket.symbol)
            if bar is None or ticket.time_in_force not in AT_ONCE:
                continue
            if ticket.submitted_ns <= bar.opened_ns:
                self._account.close_family(ticket, OrderStatus.CANCELED, bar.opened_ns)

    def _opens_session(self, bar: PricedBar) -> bool:
        session = session_of(from_ns(bar.opened_ns))
        return to_ns(self._calendar.open(session)) == bar.opened_ns

    def _closes_session(self, bar: PricedBar) -> bool:
        session = session_of(from_ns(bar.opened_ns))
        return to_ns(self._calendar.close(session)) == bar.known_ns


def _entered_at_limit(ticket: Ticket) -> bool:
    return ticket.side is Side.BUY and ticket.limit_price is not None


def _trades_inside(ticket: Ticket, bar: PricedBar) -> bool:
    return ticket.submitted_ns <= bar.opened_ns and ticket.time_in_force is not TimeInForce.CLS


def _waits_for_stop(ticket: Ticket, bar: PricedBar) -> bool:
    return (
        ticket.order_type in STOPS
        and ticket.triggered_ns is None
        and ticket.submitted_ns <= bar.opened_ns
    )


def _trails(ticket: Ticket, bar: PricedBar) -> bool:
    return ticket.order_type is OrderType.TRAILING_STOP and _waits_for_stop(ticket, bar)


def _counted(ticket: Ticket, price: Decimal) -> Ticket:
    """An order by amount with the shares its amount is worth; a sell never beyond what it holds."""
    assert ticket.notional is not None
    quantity = (ticket.notional / price).quantize(PARTS_OF_A_SHARE, rounding=ROUND_FLOOR)
    if ticket.side is Side.SELL:
        quantity = min(quantity, ticket.quantity)
    return replace(ticket, quantity=quantity)
