"""One request's or one advance's view of the exchange, and everything it can do to the account."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from trader.broker.exchange import rules
from trader.broker.exchange.account import Account, expiry
from trader.broker.exchange.matching import match
from trader.broker.exchange.order_form import OrderForm
from trader.broker.exchange.prices import Prices, start_of_day
from trader.broker.exchange.records import Ticket, derived_id
from trader.broker.exchange.refusal import bad_field, not_found, unprocessable
from trader.broker.exchange.state import Store
from trader.broker.exchange.wire import session_close_after
from trader.core.clock import SessionCalendar
from trader.core.costs import Costs
from trader.core.market import from_ns
from trader.core.trading import OrderClass, OrderStatus, OrderType, Side, TimeInForce


@dataclass(kw_only=True)
class Desk:
    """What a request works with; `account` is loaded when it is first needed."""

    store: Store
    prices: Prices
    calendar: SessionCalendar
    costs: Costs

    @cached_property
    def account(self) -> Account:
        """The account as the transaction found it, with the changes made since."""
        return self.store.load()

    def advance(self, to_ns_: int) -> None:
        """Match every bar that became complete up to `to_ns_`, in time order across symbols."""
        account = self.account
        moments: dict[tuple[int, int], list[str]] = {}
        for symbol in sorted({ticket.symbol for ticket in account.open_tickets()}):
            for moment in self.prices.complete_between(symbol, account.clock_ns, to_ns_):
                moments.setdefault(moment, []).append(symbol)
        for known_ns, opened_ns in sorted(moments):
            account.expire(known_ns - 1)
            wanted = {ticket.symbol for ticket in account.open_tickets()}
            symbols = [name for name in moments[known_ns, opened_ns] if name in wanted]
            if not wanted:
                break
            bars = {symbol: self.prices.bar(symbol, known_ns) for symbol in symbols}
            match(account, bars, self.costs)
        account.expire(to_ns_)
        account.clock_ns = to_ns_

    def submit(self, form: OrderForm) -> tuple[Ticket, list[Ticket]]:
        """Book the order with its legs; RefusalError when the account may not have it."""
        account = self.account
        number = account.order_count + 1
        client_order_id = form.client_order_id or str(derived_id("unnamed", number))
        if self.store.ticket_of_client(client_order_id) is not None:
            raise bad_field("client_order_id must be unique")
        last = self._tradable_price(form.symbol)
        if form.order_class is not OrderClass.SIMPLE:
            rules.check_levels(form, last)
        reserved = Decimal(0)
        if form.side is Side.SELL:
            rules.check_shares(account, form.symbol, form.quantity)
        rules.check_wash_trade(account, form)
        if form.side is Side.BUY:
            reserved = rules.reservation(form, last, self.costs)
            rules.check_buying_power(account, reserved)
        head = self._head(form, client_order_id, number, reserved)
        legs = self._legs(form, head)
        for ticket in (head, *legs):
            account.put(ticket)
        return head, legs

    def close_position(self, symbol: str, quantity: Decimal) -> Ticket:
        """Sell `quantity` at the next open; the order lives for a day."""
        head, _ = self.submit(
            OrderForm(
                client_order_id=None,
                symbol=symbol,
                side=Side.SELL,
                quantity=quantity,
                order_type=OrderType.MARKET,
                order_class=OrderClass.SIMPLE,
                time_in_force=TimeInForce.DAY,
            )
        )
        return head

    def cancel(self, order_id: str) -> list[Ticket]:
        """End the order and what hangs together with it."""
        ticket = self.account.tickets.get(order_id) or self.ticket(order_id)
        rules.check_cancelable(ticket)
        return self.account.close_family(ticket, OrderStatus.CANCELED, self.account.clock_ns)

    def cancel_all(self) -> list[Ticket]:
        """End every open order."""
        return [
            ended
            for ticket in self.account.open_tickets()
            if self.account.tickets[ticket.order_id].is_open
            for ended in self.cancel(ticket.order_id)
        ]

    def ticket(self, order_id: str) -> Ticket:
        """The stored order; RefusalError 404 when there is none."""
        found = self.store.ticket(order_id)
        if found is None:
            raise not_found(f"order not found for {order_id}")
        return found

    def equity(self) -> Decimal:
        """Cash and holdings at the newest closes, USD."""
        return self.account.cash + sum(
            (
                holding.quantity * self.price(symbol, self.account.clock_ns)
                for symbol, holding in self.account.holdings.items()
            ),
            Decimal(0),
        )

    def last_equity(self) -> Decimal:
        """Equity at the last close before today in New York: today's trades are taken back."""
        today_ns = start_of_day(self.account.clock_ns)
        cash = self.account.cash
        held = {symbol: held.quantity for symbol, held in self.account.holdings.items()}
        for trade in self.store.trades_since(today_ns):
            sign = 1 if trade.side is Side.BUY else -1
            cash += sign * trade.quantity * trade.price + trade.fee
            held[trade.symbol] = held.get(trade.symbol, Decimal(0)) - sign * trade.quantity
        worth = (shares * self.price(symbol, today_ns) for symbol, shares in held.items() if shares)
        return cash + sum(worth, Decimal(0))

    def price(self, symbol: str, at_ns: int) -> Decimal:
        """The newest close at `at_ns`, of a symbol that was held by then."""
        price = self.prices.last_close(symbol, at_ns)
        if price is None:
            raise unprocessable(f'asset "{symbol}" has no price yet at {from_ns(at_ns)}')
        return price

    def _tradable_price(self, symbol: str) -> Decimal:
        if symbol not in self.prices.symbols:
            raise unprocessable(f'asset "{symbol}" not found')
        return self.price(symbol, self.account.clock_ns)

    def _head(
        self, form: OrderForm, client_order_id: str, number: int, reserved: Decimal
    ) -> Ticket:
        order_id = str(derived_id("order", client_order_id))
        now_ns = self.account.clock_ns
        close_ns = session_close_after(now_ns, self.calendar)
        is_open = self.calendar.session_at(from_ns(now_ns)) is not None
        return Ticket(
            sequence=number,
            order_id=order_id,
            client_order_id=client_order_id,
            family_id=order_id,
            symbol=form.symbol,
            side=form.side,
            quantity=form.quantity,
            order_type=form.order_type,
            order_class=form.order_class,
            time_in_force=form.time_in_force,
            limit_price=form.limit_price,
            stop_price=form.stop_price,
            status=OrderStatus.NEW if is_open else OrderStatus.ACCEPTED,
            live=True,
            reserved=reserved,
            submitted_ns=now_ns,
            updated_ns=now_ns,
            expires_ns=expiry(form.time_in_force, close_ns),
        )

    def _legs(self, form: OrderForm, head: Ticket) -> list[Ticket]:
        wanted = (("take_profit", form.take_profit), ("stop_loss", form.stop_loss))
        given = [(name, price) for name, price in wanted if price is not None]
        return [
            Ticket(
                sequence=head.sequence + place,
                order_id=str(derived_id(name, head.order_id)),
                client_order_id=str(derived_id(f"{name} client", head.order_id)),
                family_id=head.order_id,
                symbol=head.symbol,
                side=Side.SELL,
                quantity=head.quantity,
                order_type=OrderType.LIMIT if name == "take_profit" else OrderType.STOP,
                order_class=head.order_class,
                time_in_force=head.time_in_force,
                limit_price=price if name == "take_profit" else None,
                stop_price=price if name == "stop_loss" else None,
                status=OrderStatus.HELD,
                live=head.order_class is OrderClass.OCO,
                reserved=Decimal(0),
                submitted_ns=head.submitted_ns,
                updated_ns=head.updated_ns,
                expires_ns=head.expires_ns,
            )
            for place, (name, price) in enumerate(given, start=1)
        ]
