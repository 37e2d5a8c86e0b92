"""One request's or one advance's view of the exchange, and everything it can do to the account."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property

from trader.broker.exchange import rules
from trader.broker.exchange.account import Account
from trader.broker.exchange.happenings import Ahead
from trader.broker.exchange.liquidity import Liquidity
from trader.broker.exchange.matching import match
from trader.broker.exchange.order_form import OrderForm
from trader.broker.exchange.prices import Prices, start_of_day
from trader.broker.exchange.records import Ticket, derived_id
from trader.broker.exchange.refusal import bad_field, not_found, unprocessable
from trader.broker.exchange.replacement import (
    Replacement,
    changed_form,
    check_replaceable,
    family_form,
)
from trader.broker.exchange.state import Store
from trader.broker.exchange.tickets import head_of, legs_of
from trader.core.clock import SessionCalendar
from trader.core.costs import Costs
from trader.core.instruments import is_crypto
from trader.core.market import from_ns
from trader.core.trading import OrderClass, OrderStatus, OrderType, Side, TimeInForce


@dataclass(kw_only=True)
class Desk:
    """What a request works with; `account` is loaded when it is first needed."""

    store: Store
    prices: Prices
    calendar: SessionCalendar
    costs: Costs
    liquidity: Liquidity
    free_plan: bool = False  # market data without the newest of SIP

    @cached_property
    def account(self) -> Account:
        """The account as the transaction found it, with the changes made since."""
        return self.store.load()

    def advance(self, to_ns_: int) -> None:
        """Match every bar that became complete up to `to_ns_`, in time order across symbols.

        Splits and dividends come before the bars of their session.
        """
        account, ahead = self.account, Ahead(self, to_ns_)
        moments: dict[tuple[int, int], list[str]] = {}
        for symbol in sorted({ticket.symbol for ticket in account.open_tickets()}):
            for moment in self.prices.complete_between(symbol, account.clock_ns, to_ns_):
                moments.setdefault(moment, []).append(symbol)
        for known_ns, opened_ns in sorted(moments):
            ahead.before(opened_ns)
            account.expire(known_ns - 1)
            wanted = {ticket.symbol for ticket in account.open_tickets()}
            if not wanted:
                break
            trading = wanted - account.halted
            symbols = [name for name in moments[known_ns, opened_ns] if name in trading]
            bars = {symbol: self.prices.bar(symbol, known_ns) for symbol in symbols}
            match(
                account,
                bars,
                costs=self.costs,
                liquidity=self.liquidity,
                calendar=self.calendar,
            )
        ahead.before(to_ns_)
        account.expire(to_ns_)
        account.clock_ns = to_ns_

    def submit(self, form: OrderForm) -> tuple[Ticket, list[Ticket]]:
        """Book the order with its legs; RefusalError when the account may not have it."""
        account = self.account
        client_order_id = self._unused_id(form.client_order_id, account.order_count + 1)
        rules.check_open(account)
        last = self._tradable_price(form.symbol)
        rules.check_moment(form, from_ns(account.clock_ns), self.calendar)
        if form.order_class is not OrderClass.SIMPLE:
            rules.check_levels(form, last)
        rules.check_size(account, form, last)
        head = self._admit(form, client_order_id, last)
        legs = legs_of(form, head)
        account.put(head, head.status.value)
        for leg in legs:
            account.put(leg)
        return head, legs

    def replace(self, order_id: str, change: Replacement) -> Ticket:
        """Put another order in the place of an open one, whose legs it keeps; returns the new one.

        The shares that have traded stay with the old order; the new one is for the rest.
        """
        account = self.account
        old = account.tickets.get(order_id) or self.ticket(order_id)
        client_order_id = self._unused_id(change.client_order_id, f"replacement of {old.order_id}")
        rules.check_open(account)
        check_replaceable(old)
        form = changed_form(old, change)
        ended = account.end(old, OrderStatus.REPLACED, account.clock_ns)
        new = self._admit(form, client_order_id, self._tradable_price(form.symbol), old)
        account.put(replace(ended, replaced_by=new.order_id))
        account.put(new, "" if new.status is OrderStatus.HELD else new.status.value)
        return new

    def close_position(self, symbol: str, quantity: Decimal) -> Ticket:
        """Sell `quantity` at the next open; the order lives for a day, that of a coin for ever."""
        head, _ = self.submit(
            OrderForm(
                client_order_id=None,
                symbol=symbol,
                side=Side.SELL,
                quantity=quantity,
                order_type=OrderType.MARKET,
                order_class=OrderClass.SIMPLE,
                time_in_force=TimeInForce.GTC if is_crypto(symbol) else TimeInForce.DAY,
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
        """Equity at the last close before today in New York: what came today is taken back."""
        today_ns = start_of_day(self.account.clock_ns)
        cash = self.account.cash
        held = {symbol: held.quantity for symbol, held in self.account.holdings.items()}
        for trade in self.store.trades_since(today_ns):
            sign = 1 if trade.side is Side.BUY else -1
            cash += sign * trade.quantity * trade.price + trade.fee
            held[trade.symbol] = held.get(trade.symbol, Decimal(0)) - sign * trade.quantity
        for movement in self.store.postings.movements(after_ns=today_ns):
            cash -= movement.amount
            if movement.symbol is not None and movement.quantity:
                before = held.get(movement.symbol, Decimal(0))
                held[movement.symbol] = before - movement.quantity
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

    def _unused_id(self, client_order_id: str | None, number: object) -> str:
        """The caller's id, which must be new for ever, or one derived from `number`."""
        found = client_order_id or str(derived_id("unnamed", number))
        if self.store.ticket_of_client(found) is not None:
            raise bad_field("client_order_id must be unique")
        return found

    def _admit(
        self, form: OrderForm, client_order_id: str, last: Decimal, old: Ticket | None = None
    ) -> Ticket:
        """The order that the account may have for `form`, in the place of `old` if there is one.

        Orders that hang together share their shares: only simple ones are asked for them.
        """
        account = self.account
        quantity = rules.estimated_quantity(form, last)
        reserved = Decimal(0)
        hangs = old is not None and old.order_class is not OrderClass.SIMPLE
        if form.side is Side.SELL and not hangs:
            rules.check_shares(account, form, quantity)
        if not hangs:
            rules.check_wash_trade(account, form)
        if form.side is Side.BUY:
            reserved = rules.reservation(form, last, self.costs)
            rules.check_buying_power(account, reserved)
        head = head_of(
            form,
            client_order_id=client_order_id,
            sequence=account.order_count + 1,
            quantity=quantity,
            reserved=reserved,
            mark=(old and old.high_water_mark) or last,
            now_ns=account.clock_ns,
            calendar=self.calendar,
        )
        return head if old is None else self._in_place_of(old, head)

    def _in_place_of(self, old: Ticket, new: Ticket) -> Ticket:
        """`new` with the family of `old`; a parent's open legs move to it."""
        account = self.account
        new = replace(new, replaces=old.order_id, order_class=old.order_class)
        if old.is_leg:
            waits = old.status is OrderStatus.HELD
            status = OrderStatus.HELD if waits else new.status
            new = replace(new, family_id=old.family_id, live=old.live, status=status)
        others = [other for other in account.open_tickets() if other.family_id == old.family_id]
        if not old.is_leg:
            others = [replace(leg, family_id=new.order_id) for leg in others]
            for leg in others:
                account.put(leg)
        together = family_form([new, *others])
        if together is not None:
            rules.check_levels(together, self._tradable_price(new.symbol))
        return new
