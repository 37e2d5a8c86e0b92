"""A scripted broker: one cash account with Alpaca's rules for legs, and faults on demand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from trader.core.errors import EndpointError, OrderRefusedError, RateLimitedError
from trader.core.trading import (
    AccountState,
    Activity,
    ActivityKind,
    Fill,
    MarketClock,
    Order,
    OrderClass,
    OrderIntent,
    OrderStatus,
    OrderType,
    Portfolio,
    Position,
    Side,
    TimeInForce,
)

NOW = datetime(2025, 3, 3, 21, tzinfo=UTC)
STOPS = (OrderType.STOP, OrderType.STOP_LIMIT)


@dataclass
class FakeBroker:
    """The truth about an account, and what its answers do with it.

    faults   what becomes of the next POSTs, one word each: lose_request, lose_answer, rate_limit,
             refuse, refuse_but_take, reject, drop_legs, "" (nothing)
    down     names of methods that raise EndpointError
    blind    lookups of an order that find nothing after it was taken
    hidden   execution ids that `fills` does not tell
    """

    cash: Decimal = Decimal(100_000)
    price: Decimal = Decimal(100)
    account_id: str = "account-1"
    blocked: str = ""
    faults: list[str] = field(default_factory=list)
    down: set[str] = field(default_factory=set)
    blind: int = 0
    hidden: set[str] = field(default_factory=set)
    shuffled: bool = False  # newest first
    doubled: bool = False  # every fill told twice
    shrinks: bool = True  # what one leg fills in part is taken off the other
    lasting_cancels: int = 0  # looks until a cancel has taken effect
    calls: list[str] = field(default_factory=list)
    sent: list[OrderIntent] = field(default_factory=list)
    held: dict[str, Decimal] = field(default_factory=dict)
    told: list[Fill] = field(default_factory=list)
    moved: list[Activity] = field(default_factory=list)
    book: dict[str, Order] = field(default_factory=dict)  # by order id, legs beside their parents
    family: dict[str, list[str]] = field(default_factory=dict)  # parent -> legs
    value: dict[str, Decimal] = field(default_factory=dict)  # order id -> USD traded
    _unseen: dict[str, int] = field(default_factory=dict)
    _canceling: dict[str, int] = field(default_factory=dict)

    # ---- the port

    def portfolio(self) -> Portfolio:
        self._called("portfolio")
        worth = sum((shares * self.price for shares in self.held.values()), Decimal(0))
        return Portfolio(
            cash=self.cash,
            equity=self.cash + worth,
            positions=tuple(
                Position(
                    symbol=symbol,
                    quantity=shares,
                    average_entry_price=Decimal(100),
                    current_price=self.price,
                )
                for symbol, shares in sorted(self.held.items())
                if shares
            ),
            as_of=NOW,
        )

    def account(self) -> AccountState:
        self._called("account")
        return AccountState(
            account_id=self.account_id,
            blocked=self.blocked,
            cash=self.cash,
            equity=self.cash,
            last_equity=self.cash,
            buying_power=self.cash,
        )

    def clock(self) -> MarketClock:
        self._called("clock")
        return MarketClock(now=NOW, is_open=True, next_open=NOW, next_close=NOW)

    def submit(self, intent: OrderIntent) -> Order:
        self._called("submit")
        self.sent.append(intent)
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "lose_request":
            raise EndpointError("no connection")
        if fault == "rate_limit":
            raise RateLimitedError("too many requests")
        if fault == "refuse":
            raise OrderRefusedError("not now", code=40310000)
        known = self._by_client(intent.client_order_id)
        if known is None:
            self._check(intent)
            known = self._take(intent, drop_legs=fault == "drop_legs")
            if fault == "reject":
                self._set(known.order_id, status=OrderStatus.REJECTED)
            self._unseen[intent.client_order_id] = self.blind
        if fault == "lose_answer":
            raise EndpointError("the answer was lost")
        if fault == "refuse_but_take":
            raise OrderRefusedError("order not found, they said", code=40410000)
        return self._shown(known.order_id)

    def order(self, client_order_id: str) -> Order | None:
        self._called("order")
        found = self._by_client(client_order_id)
        if found is None or self._is_unseen(found):
            return None
        return self._shown(found.order_id)

    def order_by_id(self, order_id: str) -> Order | None:
        self._called("order_by_id")
        found = self.book.get(order_id)
        if found is None:
            return None
        if order_id in self._canceling:
            self._canceling[order_id] -= 1
            if self._canceling[order_id] < 0:
                del self._canceling[order_id]
                self.end(order_id)
        return self._shown(order_id)

    def orders(self, *, open_only: bool = True) -> tuple[Order, ...]:
        self._called("orders")
        legs = {leg for members in self.family.values() for leg in members}
        trees = [self._shown(key) for key in self.book if key not in legs]
        return tuple(
            tree
            for tree in trees
            if not self._is_unseen(tree)
            and (not open_only or any(not one.status.is_final for one in tree.with_legs()))
        )

    def replace(self, order_id: str, **changes: Any) -> Order:
        raise AssertionError("the manager cancels and places anew")

    def cancel(self, order_id: str) -> None:
        self._called("cancel")
        if order_id not in self.book:
            raise EndpointError("404: order not found")
        if self.lasting_cancels:
            self._canceling[order_id] = self.lasting_cancels
        else:
            self.end(order_id)

    def fills(self, after: str | None = None) -> tuple[Fill, ...]:
        self._called("fills")
        ids = [fill.execution_id for fill in self.told]
        start = ids.index(after) + 1 if after in ids else 0
        found = [fill for fill in self.told[start:] if fill.execution_id not in self.hidden]
        if self.doubled:
            found = [fill for fill in found for _ in range(2)]
        return tuple(reversed(found) if self.shuffled else found)

    def activities(self, after: str | None = None) -> tuple[Activity, ...]:
        self._called("activities")
        ids = [item.activity_id for item in self.moved]
        return tuple(self.moved[ids.index(after) + 1 if after in ids else 0 :])

    # ---- what happens at the market

    def trade(self, order_id: str, quantity: int | str | None = None, price: str = "100") -> Fill:
        """Fill an open order, to its end when no quantity is given; legs arm and groups end."""
        order = self.book[order_id]
        assert not order.status.is_final, "a final order cannot be filled"
        shares = Decimal(quantity) if quantity is not None else order.open_quantity
        self.value[order_id] = self.value.get(order_id, Decimal(0)) + shares * Decimal(price)
        filled = order.filled_quantity + shares
        done = filled == order.quantity
        self._set(
            order_id,
            filled_quantity=filled,
            filled_average_price=self.value[order_id] / filled,
            status=OrderStatus.FILLED if done else OrderStatus.PARTIALLY_FILLED,
            filled_at=NOW,
        )
        sign = 1 if order.side is Side.BUY else -1
        self.cash -= sign * shares * Decimal(price)
        self.held[order.symbol] = self.held.get(order.symbol, Decimal(0)) + sign * shares
        assert self.held[order.symbol] >= 0, "more was sold than is held"
        fill = Fill(
            execution_id=f"x{len(self.told) + 1}",
            order_id=order_id,
            client_order_id=order.client_order_id,
            symbol=order.symbol,
            side=order.side,
            quantity=shares,
            price=Decimal(price),
            fee=Decimal(0),
            filled_at=NOW + timedelta(seconds=len(self.told)),
        )
        self.told.append(fill)
        if done:
            self._arm_or_end_group(order_id)
        elif self.shrinks:
            for sibling in self._siblings(order_id):
                self._set(sibling, quantity=self.book[sibling].quantity - shares)
        return fill

    def stop_of(self, client_order_id: str) -> str:
        """Broker's id of the stop leg of an order."""
        return self._leg(client_order_id, STOPS)

    def target_of(self, client_order_id: str) -> str:
        """Broker's id of the target leg of an order."""
        return self._leg(client_order_id, (OrderType.LIMIT,))

    def id_of(self, client_order_id: str) -> str:
        """Broker's id of an order."""
        found = self._by_client(client_order_id)
        assert found is not None
        return found.order_id

    def end(self, order_id: str, status: OrderStatus = OrderStatus.CANCELED) -> None:
        """End an order with all that hangs together with it."""
        for key in (order_id, *self.family.get(order_id, ()), *self._siblings(order_id)):
            if not self.book[key].status.is_final:
                self._set(key, status=status)

    def close_session(self) -> None:
        """Orders for the day expire."""
        for order in list(self.book.values()):
            if order.time_in_force is TimeInForce.DAY and not order.status.is_final:
                self.end(order.order_id, OrderStatus.EXPIRED)

    def replace_leg(self, order_id: str) -> str:
        """What Alpaca does to a triggered stop: another order takes its place."""
        old = self.book[order_id]
        new = f"{order_id}'"
        self.book[new] = replace(old, order_id=new, client_order_id=f"by the broker {new}")
        self._set(order_id, status=OrderStatus.REPLACED, replaced_by=new)
        return new

    def split(self, symbol: str, ratio: int) -> None:
        """A forward split that the broker carries over to open orders."""
        added = self.held[symbol] * (ratio - 1)
        self.held[symbol] += added
        self.price /= ratio
        self.move(ActivityKind.SPLIT, symbol=symbol, quantity=added)
        for order in list(self.book.values()):
            if order.symbol == symbol and not order.status.is_final:
                stop, limit = order.stop_price, order.limit_price
                self._set(
                    order.order_id,
                    quantity=order.quantity * ratio,
                    stop_price=stop and stop / ratio,
                    limit_price=limit and limit / ratio,
                )

    def move(
        self,
        kind: ActivityKind,
        *,
        amount: str = "0",
        symbol: str | None = None,
        quantity: Decimal = Decimal(0),
    ) -> None:
        """Cash or shares that come or go without a fill; shares are moved by the caller."""
        self.cash += Decimal(amount)
        self.moved.append(
            Activity(
                activity_id=f"a{len(self.moved) + 1}",
                kind=kind,
                symbol=symbol,
                amount=Decimal(amount),
                quantity=quantity,
                at=NOW,
            )
        )

    def by_hand(self, symbol: str, side: Side, quantity: str, price: str = "100") -> None:
        """A person trades at the broker, past this program."""
        name = f"by hand {len(self.book) + 1}"
        intent = OrderIntent(
            client_order_id=name,
            symbol=symbol,
            side=side,
            quantity=Decimal(quantity),
            order_type=OrderType.MARKET,
        )
        self.trade(self._take(intent, drop_legs=False).order_id, price=price)

    def open_sales(self, symbol: str) -> Decimal:
        """Shares that open sell orders could sell together; a group counts once."""
        groups: dict[str, Decimal] = {}
        for order in self.book.values():
            if order.symbol == symbol and order.side is Side.SELL and not order.status.is_final:
                group = self._parent(order.order_id) or order.order_id
                shares = order.open_quantity
                if not self._is_armed(order):
                    shares = min(shares, self.book[group].filled_quantity)
                groups[group] = max(groups.get(group, Decimal(0)), shares)
        return sum(groups.values(), Decimal(0))

    def guarded(self, symbol: str) -> Decimal:
        """Shares that live stops and market sales cover."""
        return sum(
            (
                order.open_quantity
                for order in self.book.values()
                if order.symbol == symbol
                and order.side is Side.SELL
                and order.order_type is not OrderType.LIMIT
                and not order.status.is_final
                and self._is_armed(order)
            ),
            Decimal(0),
        )

    # ---- inside

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if name in self.down:
            raise EndpointError(f"{name} is down")

    def _check(self, intent: OrderIntent) -> None:
        if intent.side is Side.SELL:
            held = self.held.get(intent.symbol, Decimal(0))
            free = held - self.open_sales(intent.symbol)
            if intent.quantity > free:
                raise OrderRefusedError(f"insufficient qty available: {free}", code=40310000)

    def _take(self, intent: OrderIntent, *, drop_legs: bool) -> Order:
        number = len(self.book) + 1
        parent = self._new(f"o{number}", intent.client_order_id, intent)
        legs = []
        if intent.order_class is not OrderClass.SIMPLE and not drop_legs:
            if intent.take_profit_price is not None:
                legs.append(("target", OrderType.LIMIT, intent.take_profit_price, None))
            legs.append(("stop", OrderType.STOP, None, intent.stop_loss_price))
        self.family[parent.order_id] = [f"{parent.order_id}/{leg[0]}" for leg in legs]
        for name, order_type, limit, stop in legs:
            key = f"{parent.order_id}/{name}"
            leg = replace(
                parent,
                order_id=key,
                client_order_id=f"{name} of {number}",
                side=Side.SELL,
                order_type=order_type,
                limit_price=limit,
                stop_price=stop,
                status=OrderStatus.HELD,
            )
            self.book[key] = leg
        return parent

    def _new(self, order_id: str, client_order_id: str, intent: OrderIntent) -> Order:
        self.book[order_id] = Order(
            order_id=order_id,
            client_order_id=client_order_id,
            symbol=intent.symbol,
            side=intent.side,
            quantity=intent.quantity,
            filled_quantity=Decimal(0),
            filled_average_price=None,
            order_type=intent.order_type,
            order_class=intent.order_class,
            time_in_force=intent.time_in_force,
            status=OrderStatus.ACCEPTED,
            limit_price=intent.limit_price,
            stop_price=intent.stop_price,
            submitted_at=NOW,
            filled_at=None,
        )
        return self.book[order_id]

    def _shown(self, order_id: str) -> Order:
        legs = tuple(self.book[leg] for leg in self.family.get(order_id, ()))
        return replace(self.book[order_id], legs=legs)

    def _set(self, order_id: str, **changes: Any) -> None:
        self.book[order_id] = replace(self.book[order_id], **changes)

    def _by_client(self, client_order_id: str) -> Order | None:
        found = (one for one in self.book.values() if one.client_order_id == client_order_id)
        return next(found, None)

    def _is_unseen(self, order: Order) -> bool:
        left = self._unseen.get(order.client_order_id, 0)
        if left:
            self._unseen[order.client_order_id] = left - 1
        return bool(left)

    def _parent(self, order_id: str) -> str | None:
        return next((key for key, legs in self.family.items() if order_id in legs), None)

    def _siblings(self, order_id: str) -> Iterator[str]:
        parent = self._parent(order_id)
        return (leg for leg in self.family.get(parent or "", ()) if leg != order_id)

    def _is_armed(self, order: Order) -> bool:
        parent = self._parent(order.order_id)
        return parent is None or self.book[parent].status is OrderStatus.FILLED

    def _leg(self, client_order_id: str, kinds: tuple[OrderType, ...]) -> str:
        legs = self.family[self.id_of(client_order_id)]
        return next(leg for leg in legs if self.book[leg].order_type in kinds)

    def _arm_or_end_group(self, order_id: str) -> None:
        for leg in self.family.get(order_id, ()):
            if self.book[leg].order_type is OrderType.LIMIT:
                self._set(leg, status=OrderStatus.NEW)  # the stop stays `held`
        for sibling in self._siblings(order_id):
            if not self.book[sibling].status.is_final:
                self._set(sibling, status=OrderStatus.CANCELED)
