"""Cash, holdings and open orders of the one account, and every change they can go through."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal

from trader.broker.exchange.records import AVERAGE_STEP, Event, Holding, Ticket, Trade, derived_id
from trader.core.costs import Costs
from trader.core.market import from_ns
from trader.core.trading import OrderClass, OrderStatus, OrderType, Side, TimeInForce

ENDINGS = {
    OrderStatus.CANCELED: "canceled",
    OrderStatus.EXPIRED: "expired",
    OrderStatus.REJECTED: "rejected",
    OrderStatus.REPLACED: "replaced",
}
STOPS = frozenset({OrderType.STOP, OrderType.STOP_LIMIT, OrderType.TRAILING_STOP})


class Account:
    """The account between loading and saving; `changed`, `trades` and `events` hold what is new.

    Cash never falls below zero and no holding below zero shares.
    halted   symbols that do not trade; their orders wait
    blocked  why the account may not order at all; empty when it may
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
        event_count: int,
        halted: Iterable[str] = (),
        blocked: str = "",
    ) -> None:
        self.clock_ns = clock_ns
        self.cash = cash
        self.holdings = {holding.symbol: holding for holding in holdings}
        self.holdings_before = dict(self.holdings)
        self.tickets = {ticket.order_id: ticket for ticket in tickets}
        self.order_count = order_count
        self.trade_count = trade_count
        self.event_count = event_count
        self.halted = set(halted)
        self.blocked = blocked
        self.changed: dict[str, Ticket] = {}
        self.trades: list[Trade] = []
        self.events: list[Event] = []

    def open_tickets(self) -> list[Ticket]:
        """Open orders in the order they came in."""
        return [ticket for ticket in self.tickets.values() if ticket.is_open]

    def put(self, ticket: Ticket, event: str = "", at_ns: int | None = None) -> None:
        """Book a new or changed order; with an `event`, tell of it as of `at_ns` (else now)."""
        self.tickets[ticket.order_id] = ticket
        self.changed[ticket.order_id] = ticket
        self.order_count = max(self.order_count, ticket.sequence)
        if event:
            self._tell(event, ticket, self.clock_ns if at_ns is None else at_ns)

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
        held: dict[str, Decimal] = {}
        for ticket in self.open_tickets():
            if ticket.symbol == symbol and ticket.side is Side.SELL and ticket.live:
                before = held.get(ticket.family_id, Decimal(0))
                held[ticket.family_id] = max(before, ticket.remaining)
        return sum(held.values(), Decimal(0))

    def fill(
        self, ticket: Ticket, quantity: Decimal, price: Decimal, costs: Costs, at_ns: int
    ) -> bool:
        """Trade `quantity` shares of the order; False when a buy cannot be paid and has ended.

        The fee is that of the whole order so far, less what was charged before. One that is larger
        than everything the account owns takes all of it and no more.
        """
        notional = quantity * price
        fee = costs.fee(ticket.filled_notional + notional) - ticket.fees
        if ticket.side is Side.BUY:
            if notional + fee > self.cash:
                self._reject(ticket, notional + fee, at_ns)
                return False
            self.cash -= notional + fee
            self._add(ticket.symbol, quantity, price, at_ns)
        else:
            fee = min(fee, self.cash + notional)
            self.cash += notional - fee
            self._remove(ticket.symbol, quantity)
        filled = self._book(ticket, quantity, price, fee, at_ns)
        if filled.is_open:
            self._shrink_siblings(filled, at_ns)
        elif ticket.is_entry_with_legs:
            self._wake_legs(ticket, at_ns)
        else:
            self.close_family(ticket, OrderStatus.CANCELED, at_ns)
        return True

    def end(self, ticket: Ticket, status: OrderStatus, at_ns: int, reason: str = "") -> Ticket:
        """End one order; returns it as it is now."""
        ended = replace(
            ticket, status=status, closed_ns=at_ns, updated_ns=at_ns, live=False, reason=reason
        )
        self.put(ended, ENDINGS[status], at_ns)
        return ended

    def close_family(
        self, ticket: Ticket, status: OrderStatus, at_ns: int, reason: str = ""
    ) -> list[Ticket]:
        """End every open order of the family of `ticket`; returns them as they are now."""
        return [self.end(other, status, at_ns, reason) for other in self.family(ticket)]

    def expire(self, before_ns: int) -> None:
        """End the orders of sessions that closed at or before `before_ns`.

        DAY orders expire; those that waited for one moment that never came are canceled.
        """
        for ticket in self.open_tickets():
            if ticket.expires_ns is None or ticket.expires_ns > before_ns:
                continue
            is_day = ticket.time_in_force is TimeInForce.DAY
            status = OrderStatus.EXPIRED if is_day else OrderStatus.CANCELED
            self.close_family(ticket, status, ticket.expires_ns)

    def show_as_new(self, symbol: str, opened_ns: int) -> None:
        """An order accepted while the market was closed is on the exchange once it has opened."""
        for ticket in self.open_tickets():
            waiting = ticket.status is OrderStatus.ACCEPTED and ticket.submitted_ns <= opened_ns
            if waiting and ticket.symbol == symbol:
                new = replace(ticket, status=OrderStatus.NEW, updated_ns=opened_ns)
                self.put(new, "new", opened_ns)

    def _reject(self, ticket: Ticket, cost: Decimal, at_ns: int) -> None:
        """What has traded stays; an order of which something has is canceled, not rejected."""
        reason = f"insufficient buying power at the fill: cost {cost}, cash {self.cash}"
        for other in self.family(ticket):
            if other.order_id != ticket.order_id:
                self.end(other, OrderStatus.CANCELED, at_ns)
        rejected = OrderStatus.CANCELED if ticket.filled_quantity else OrderStatus.REJECTED
        self.end(ticket, rejected, at_ns, reason)

    def _add(self, symbol: str, quantity: Decimal, price: Decimal, at_ns: int) -> None:
        held = self.holdings.get(symbol)
        before = held.quantity if held else Decimal(0)
        average = held.average_price if held else Decimal(0)
        after = before + quantity
        self.holdings[symbol] = Holding(
            symbol=symbol,
            quantity=after,
            average_price=((average * before + price * quantity) / after).quantize(
                AVERAGE_STEP, rounding=ROUND_HALF_EVEN
            ),
            opened_ns=held.opened_ns if held else at_ns,
        )

    def _remove(self, symbol: str, quantity: Decimal) -> None:
        held = self.holdings[symbol]
        left = held.quantity - quantity
        if left < 0:
            raise AssertionError(f"{symbol}: sold {quantity} of {held.quantity}")
        if left:
            self.holdings[symbol] = replace(held, quantity=left)
        else:
            del self.holdings[symbol]

    def _book(
        self, ticket: Ticket, quantity: Decimal, price: Decimal, fee: Decimal, at_ns: int
    ) -> Ticket:
        self.trade_count += 1
        moment = from_ns(at_ns)
        stamp = f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"
        cumulative = ticket.filled_quantity + quantity
        left = ticket.quantity - cumulative
        name = f"{ticket.order_id}:{cumulative}" if ticket.filled_quantity else ticket.order_id
        trade = Trade(
            sequence=self.trade_count,
            execution_id=f"{stamp}::{derived_id('execution', name)}",
            order_id=ticket.order_id,
            symbol=ticket.symbol,
            side=ticket.side,
            quantity=quantity,
            price=price,
            fee=fee,
            filled_ns=at_ns,
            cumulative=cumulative,
            remaining=left,
        )
        self.trades.append(trade)
        filled = replace(
            ticket,
            filled_quantity=cumulative,
            filled_notional=ticket.filled_notional + quantity * price,
            fees=ticket.fees + fee,
            updated_ns=at_ns,
        )
        if ticket.order_type in STOPS and ticket.triggered_ns is None:
            filled = replace(filled, triggered_ns=at_ns)
        if left:
            kept = (ticket.reserved * left / ticket.remaining).quantize(
                AVERAGE_STEP, rounding=ROUND_CEILING
            )
            filled = replace(filled, status=OrderStatus.PARTIALLY_FILLED, reserved=kept)
        else:
            filled = replace(filled, status=OrderStatus.FILLED, closed_ns=at_ns, live=False)
        self.put(filled)
        self._tell("partial_fill" if left else "fill", filled, at_ns, trade)
        return filled

    def _shrink_siblings(self, exit_: Ticket, at_ns: int) -> None:
        """What a target has sold its stop needs no more, and the reverse."""
        if exit_.side is not Side.SELL:
            return
        for other in self.family(exit_):
            quantity = other.filled_quantity + exit_.remaining
            if other.order_id != exit_.order_id and other.quantity != quantity:
                silent = other.status is OrderStatus.HELD
                shrunk = replace(other, quantity=quantity, updated_ns=at_ns)
                self.put(shrunk, "" if silent else "restated", at_ns)

    def _wake_legs(self, entry: Ticket, at_ns: int) -> None:
        """The legs trade from now on; beside a target the stop still shows `held`, as at Alpaca."""
        for leg in self.family(entry):
            waits = leg.order_type in STOPS and entry.order_class is OrderClass.BRACKET
            status = OrderStatus.HELD if waits else OrderStatus.NEW
            awake = replace(leg, live=True, status=status, updated_ns=at_ns)
            self.put(awake, "" if waits else "new", at_ns)

    def _tell(self, name: str, ticket: Ticket, at_ns: int, trade: Trade | None = None) -> None:
        self.event_count += 1
        self.events.append(
            Event(
                sequence=self.event_count,
                name=name,
                at_ns=at_ns,
                ticket=ticket,
                execution_id=trade.execution_id if trade else None,
                price=trade.price if trade else None,
                quantity=trade.quantity if trade else None,
                position_quantity=self.quantity(ticket.symbol) if trade else None,
            )
        )
