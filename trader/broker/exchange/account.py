"""Cash, holdings and open orders of the one account, and every change they can go through."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import ROUND_HALF_EVEN, Decimal

from trader.broker.exchange.records import Holding, Ticket, Trade, derived_id
from trader.core.costs import Costs
from trader.core.market import from_ns
from trader.core.trading import OrderClass, OrderStatus, OrderType, Side, TimeInForce

AVERAGE_STEP = Decimal("1e-9")


class Account:
    """The account between loading and saving; `changed` and `trades` hold what is new.

    Cash never falls below zero and no holding below zero shares.
    """

    def __init__(
        self,
        *,
        clock_ns: int,
        cash: Decimal,
        holdings: Iterable[Holding],
        tickets: Iterable[Ticket],
        order_count: int,
        trade_count: int,
    ) -> None:
        self.clock_ns = clock_ns
        self.cash = cash
        self.holdings = {holding.symbol: holding for holding in holdings}
        self.tickets = {ticket.order_id: ticket for ticket in tickets}
        self.order_count = order_count
        self.trade_count = trade_count
        self.changed: dict[str, Ticket] = {}
        self.trades: list[Trade] = []

    def open_tickets(self) -> list[Ticket]:
        """Open orders in the order they came in."""
        return [ticket for ticket in self.tickets.values() if ticket.is_open]

    def put(self, ticket: Ticket) -> None:
        """Book a new or changed order."""
        self.tickets[ticket.order_id] = ticket
        self.changed[ticket.order_id] = ticket
        self.order_count = max(self.order_count, ticket.sequence)

    def family(self, ticket: Ticket) -> list[Ticket]:
        """The open orders that hang together with `ticket`, itself included."""
        return [other for other in self.open_tickets() if other.family_id == ticket.family_id]

    def reserved(self) -> Decimal:
        """USD kept for open buys."""
        return sum((ticket.reserved for ticket in self.open_tickets()), Decimal(0))

    def buying_power(self) -> Decimal:
        """USD that a new buy may cost."""
        return max(Decimal(0), self.cash - self.reserved())

    def quantity(self, symbol: str) -> Decimal:
        """Shares held."""
        holding = self.holdings.get(symbol)
        return holding.quantity if holding else Decimal(0)

    def held_for_orders(self, symbol: str) -> Decimal:
        """Shares that open sells will need; a stop and a target of one family need them once."""
        held = {
            ticket.family_id: ticket.quantity
            for ticket in self.open_tickets()
            if ticket.symbol == symbol and ticket.side is Side.SELL and ticket.live
        }
        return sum(held.values(), Decimal(0))

    def fill(self, ticket: Ticket, price: Decimal, costs: Costs, at_ns: int) -> bool:
        """Trade the whole order at `price`; False when a buy cannot be paid and was rejected.

        A fee that is larger than everything the account owns takes all of it and no more.
        """
        notional = ticket.quantity * price
        fee = costs.fee(notional)
        if ticket.side is Side.BUY:
            if notional + fee > self.cash:
                self._reject(ticket, notional + fee, at_ns)
                return False
            self.cash -= notional + fee
            self._add(ticket, price, at_ns)
        else:
            fee = min(fee, self.cash + notional)
            self.cash += notional - fee
            self._remove(ticket)
        self._book(ticket, price, fee, at_ns)
        if ticket.is_entry_with_legs:
            self._wake_legs(ticket, at_ns)
        else:
            self.close_family(ticket, OrderStatus.CANCELED, at_ns)
        return True

    def close_family(
        self, ticket: Ticket, status: OrderStatus, at_ns: int, reason: str = ""
    ) -> list[Ticket]:
        """End every open order of the family of `ticket`; returns them as they are now."""
        ended = [
            replace(
                other, status=status, closed_ns=at_ns, updated_ns=at_ns, live=False, reason=reason
            )
            for other in self.family(ticket)
        ]
        for other in ended:
            self.put(other)
        return ended

    def expire(self, before_ns: int) -> None:
        """End the DAY orders whose session closed at or before `before_ns`."""
        for ticket in self.open_tickets():
            if ticket.expires_ns is not None and ticket.expires_ns <= before_ns:
                self.close_family(ticket, OrderStatus.EXPIRED, ticket.expires_ns)

    def show_as_new(self, symbol: str, opened_ns: int) -> None:
        """An order accepted while the market was closed is on the exchange once it has opened."""
        for ticket in self.open_tickets():
            waiting = ticket.status is OrderStatus.ACCEPTED and ticket.submitted_ns <= opened_ns
            if waiting and ticket.symbol == symbol:
                self.put(replace(ticket, status=OrderStatus.NEW, updated_ns=opened_ns))

    def _reject(self, ticket: Ticket, cost: Decimal, at_ns: int) -> None:
        reason = f"insufficient buying power at the fill: cost {cost}, cash {self.cash}"
        legs = [other for other in self.family(ticket) if other.order_id != ticket.order_id]
        for leg in legs:
            self.put(replace(leg, status=OrderStatus.CANCELED, closed_ns=at_ns, updated_ns=at_ns))
        self.put(
            replace(
                ticket,
                status=OrderStatus.REJECTED,
                closed_ns=at_ns,
                updated_ns=at_ns,
                live=False,
                reason=reason,
            )
        )

    def _add(self, ticket: Ticket, price: Decimal, at_ns: int) -> None:
        held = self.holdings.get(ticket.symbol)
        before = held.quantity if held else Decimal(0)
        average = held.average_price if held else Decimal(0)
        after = before + ticket.quantity
        self.holdings[ticket.symbol] = Holding(
            symbol=ticket.symbol,
            quantity=after,
            average_price=((average * before + price * ticket.quantity) / after).quantize(
                AVERAGE_STEP, rounding=ROUND_HALF_EVEN
            ),
            opened_ns=held.opened_ns if held else at_ns,
        )

    def _remove(self, ticket: Ticket) -> None:
        held = self.holdings[ticket.symbol]
        left = held.quantity - ticket.quantity
        if left < 0:
            raise AssertionError(f"{ticket.symbol}: sold {ticket.quantity} of {held.quantity}")
        if left:
            self.holdings[ticket.symbol] = replace(held, quantity=left)
        else:
            del self.holdings[ticket.symbol]

    def _book(self, ticket: Ticket, price: Decimal, fee: Decimal, at_ns: int) -> None:
        self.trade_count += 1
        moment = from_ns(at_ns)
        stamp = f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"
        self.trades.append(
            Trade(
                sequence=self.trade_count,
                execution_id=f"{stamp}::{derived_id('execution', ticket.order_id)}",
                order_id=ticket.order_id,
                symbol=ticket.symbol,
                side=ticket.side,
                quantity=ticket.quantity,
                price=price,
                fee=fee,
                filled_ns=at_ns,
            )
        )
        self.put(
            replace(
                ticket,
                status=OrderStatus.FILLED,
                filled_price=price,
                closed_ns=at_ns,
                updated_ns=at_ns,
                live=False,
            )
        )

    def _wake_legs(self, entry: Ticket, at_ns: int) -> None:
        """The legs trade from now on; beside a target the stop still shows `held`, as at Alpaca."""
        for leg in self.family(entry):
            waits = leg.order_type is OrderType.STOP and entry.order_class is OrderClass.BRACKET
            status = OrderStatus.HELD if waits else OrderStatus.NEW
            self.put(replace(leg, live=True, status=status, updated_ns=at_ns))


def expiry(time_in_force: TimeInForce, session_close_ns: int) -> int | None:
    """When an order ends by itself; GTC orders stay until they are filled or canceled."""
    return session_close_ns if time_in_force is TimeInForce.DAY else None
