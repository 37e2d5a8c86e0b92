"""The simulated market: what is true of one account, whatever any process believes about it."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random

from tests.simulation.oracle import Key, Truth
from tests.simulation.tickets import NOTHING, Ticket
from trader.core.errors import OrderRefusedError
from trader.core.instruments import is_crypto
from trader.core.trading import (
    Activity,
    ActivityKind,
    Fill,
    OrderClass,
    OrderIntent,
    OrderStatus,
    OrderType,
    Portfolio,
    Position,
    Side,
    TimeInForce,
)

START = datetime(2025, 3, 3, 21, tzinfo=UTC)
CASH = Decimal(1_000_000)
SYMBOLS = ("AAPL", "MSFT", "BTC/USD")
STOPS = (OrderType.STOP, OrderType.STOP_LIMIT)
PRICES = tuple(Decimal(cents) / 4 for cents in (372, 382, 388, 394, 398, 400, 402, 408, 420, 432))
SLICES = (Decimal("0.25"), Decimal("0.5"), Decimal("0.75"))
SOON, STUCK = (0, 0, 0, 1, 2, 3), 10**6  # looks until a cancel takes effect
BY_HAND = "by hand"


class Market:
    """Cash, shares, orders and trades, by Alpaca's rules; chance is drawn from one generator.

    strict  sales of more than is free, and orders of both sides in one symbol, are refused; where
            not, an account may fall below zero, and the oracle sees it
    """

    def __init__(self, rng: Random, *, strict: bool) -> None:
        self.rng, self.strict = rng, strict
        self.now = START
        self.cash = CASH
        self.held: dict[str, Decimal] = {}
        self.price = dict.fromkeys(SYMBOLS, Decimal(100))
        self.tickets: dict[str, Ticket] = {}
        self.roots: list[Ticket] = []
        self.by_client: dict[str, Ticket] = {}
        self.trades: list[Fill] = []  # all of them, as they happened
        self.feed: list[Fill] = []  # as they are told
        self.late: list[Fill] = []  # told one day
        self.moved: list[Activity] = []
        self.foreign: dict[str, Decimal] = {}  # shares a person bought here
        self.ours: dict[str, Decimal] = {}  # shares bought by decisions
        self.refused: set[Key] = set()  # buys that were definitely refused
        self.is_calm = False
        self.tell: Callable[[str], None] = lambda line: None
        self.hid_foreign = False  # whether a person's trade was never told

    # ---- orders

    def take(self, intent: OrderIntent, *, without_legs: bool = False) -> Ticket:
        """A new order, as the market takes it; OrderRefusedError when its rules forbid it."""
        if self.strict:
            self._check(intent)
        number = len(self.tickets) + 1
        root = self._add(
            Ticket(
                f"o{number}",
                intent.client_order_id,
                intent.symbol,
                intent.side,
                intent.quantity,
                intent.order_type,
                intent.order_class,
                intent.time_in_force,
                intent.limit_price,
                intent.stop_price,
                self.now,
            )
        )
        self.roots.append(root)
        if intent.order_class is not OrderClass.SIMPLE and not without_legs:
            if intent.take_profit_price is not None:
                self._leg(root, OrderType.LIMIT, limit=intent.take_profit_price)
            self._leg(root, OrderType.STOP, stop=intent.stop_loss_price)
        return root

    def _leg(
        self,
        root: Ticket,
        order_type: OrderType,
        *,
        limit: Decimal | None = None,
        stop: Decimal | None = None,
    ) -> None:
        number = len(self.tickets) + 1
        leg = Ticket(
            f"o{number}",
            f"leg {number}",
            root.symbol,
            Side.SELL,
            root.quantity,
            order_type,
            root.order_class,
            root.time_in_force,
            limit,
            stop,
            self.now,
            status=OrderStatus.HELD,
            parent=root,
        )
        root.legs.append(self._add(leg))

    def _add(self, ticket: Ticket) -> Ticket:
        self.tickets[ticket.order_id] = ticket
        self.by_client[ticket.client_order_id] = ticket
        return ticket

    def _check(self, intent: OrderIntent) -> None:
        symbol = intent.symbol
        if intent.side is Side.SELL:
            free = self.held.get(symbol, NOTHING) - self.reserved(symbol)
            if intent.quantity > free:
                raise OrderRefusedError(f"insufficient qty available: {free}", code=40310000)
        if intent.order_class is OrderClass.SIMPLE and any(
            one.side is not intent.side and one.order_class is OrderClass.SIMPLE
            for one in self.open_tickets(symbol)
        ):
            raise OrderRefusedError("potential wash trade detected", code=40310000)

    def open_tickets(self, symbol: str | None = None) -> Iterator[Ticket]:
        """Orders and legs that can still trade."""
        for ticket in self.tickets.values():
            if ticket.is_open and symbol in (None, ticket.symbol):
                yield ticket

    def reserved(self, symbol: str) -> Decimal:
        """Shares that open sell orders could sell together; a group counts once."""
        groups: dict[str, Decimal] = {}
        for ticket in self.open_tickets(symbol):
            if ticket.side is Side.SELL:
                root, shares = ticket.parent or ticket, ticket.open_quantity
                if not ticket.is_armed:
                    shares = min(shares, root.filled)
                groups[root.order_id] = max(groups.get(root.order_id, NOTHING), shares)
        return sum(groups.values(), NOTHING)

    def end(self, ticket: Ticket, status: OrderStatus = OrderStatus.CANCELED) -> None:
        """End an open order with all that hangs together with it."""
        if not ticket.is_open:
            return
        siblings = ticket.parent.legs if ticket.parent is not None else ()
        for one in (ticket, *ticket.legs, *siblings):
            if one.is_open:
                self._set(one, status)

    def ask_to_cancel(self, ticket: Ticket) -> None:
        """A request to cancel; the order may trade before it takes effect."""
        if not ticket.is_open:
            return
        if not self.is_calm and self.rng.random() < 0.1 and ticket.is_armed:
            self._move_to(ticket)
            self.trade(ticket, self._slice(ticket))
            if not ticket.is_open:
                return
        looks = 0 if self.is_calm else self.rng.choice(SOON)
        if looks == 0:
            self.end(ticket)
        else:
            ticket.cancel_in = looks
            self._set(ticket, OrderStatus.PENDING_CANCEL)

    def look_at(self, ticket: Ticket) -> None:
        """Time passes for an order that is being canceled."""
        if ticket.cancel_in is not None and ticket.is_open:
            ticket.cancel_in -= 1
            if ticket.cancel_in <= 0:
                self.end(ticket)

    def _set(self, ticket: Ticket, status: OrderStatus) -> None:
        ticket.status = status
        ticket.changed()

    # ---- trades

    def trade(self, ticket: Ticket, shares: Decimal) -> None:
        """Fill an order by so many shares at the market's price; legs arm and groups end."""
        symbol, buys = ticket.symbol, ticket.side is Side.BUY
        self.tell(
            f"    market: {ticket.side} {shares} of {ticket.quantity} {symbol}, "
            f"{ticket.order_type} {ticket.order_id}, {ticket.client_order_id}"
        )
        price = self.price[symbol]
        if ticket.order_type is OrderType.LIMIT and ticket.limit is not None:
            price = max(price, ticket.limit)
        ticket.filled += shares
        ticket.value += shares * price
        ticket.filled_at = self.now
        done = ticket.filled == ticket.quantity
        if done:
            ticket.status = OrderStatus.FILLED
        elif ticket.status is not OrderStatus.PENDING_CANCEL:
            ticket.status = OrderStatus.PARTIALLY_FILLED
        ticket.changed()
        sign = 1 if buys else -1
        self.cash -= sign * shares * price
        self.held[symbol] = self.held.get(symbol, NOTHING) + sign * shares
        self._attribute(ticket, shares)
        self._tell(
            Fill(
                execution_id=f"x{len(self.trades) + 1}",
                order_id=ticket.order_id,
                client_order_id=ticket.client_order_id,
                symbol=symbol,
                side=ticket.side,
                quantity=shares,
                price=price,
                fee=NOTHING,
                filled_at=self.now + timedelta(microseconds=len(self.trades)),
            )
        )
        if done:
            for leg in ticket.legs:  # the target begins to work, the stop goes on to be `held`
                if leg.is_open and leg.order_type is OrderType.LIMIT:
                    self._set(leg, OrderStatus.NEW)
        for sibling in ticket.parent.legs if ticket.parent is not None else ():
            if sibling is not ticket and sibling.is_open:
                if done:
                    self._set(sibling, OrderStatus.CANCELED)
                else:
                    sibling.quantity -= shares
                    sibling.changed()

    def _attribute(self, ticket: Ticket, shares: Decimal) -> None:
        """Whose shares came or went: a person sells a person's first, a decision its own."""
        mine = not ticket.client_order_id.startswith(BY_HAND)
        first, second = (self.ours, self.foreign) if mine else (self.foreign, self.ours)
        symbol = ticket.symbol
        if ticket.side is Side.BUY:
            first[symbol] = first.get(symbol, NOTHING) + shares
            return
        part = min(shares, first.get(symbol, NOTHING))
        first[symbol] = first.get(symbol, NOTHING) - part
        second[symbol] = second.get(symbol, NOTHING) - (shares - part)

    def _tell(self, fill: Fill) -> None:
        self.trades.append(fill)
        chance = 1.0 if self.is_calm else self.rng.random()
        if chance >= 0.1 or self.tickets[fill.order_id].is_denied:
            self.feed.append(fill)
            return
        self.hid_foreign |= fill.client_order_id.startswith(BY_HAND)
        if chance >= 0.05:
            self.late.append(fill)

    def _tell_late(self) -> None:
        """A fill that was not told takes its place in time: whoever has read on misses it."""
        bisect.insort(self.feed, self.late.pop(0), key=lambda fill: fill.filled_at)

    def is_tradable(self, ticket: Ticket) -> bool:
        """Whether an open order trades at the present price."""
        if not ticket.is_armed:
            return False
        price = self.price[ticket.symbol]
        reached = ticket.stop is None or price <= ticket.stop
        if ticket.limit is not None:
            return reached and price >= ticket.limit
        return reached

    def _slice(self, ticket: Ticket) -> Decimal:
        """How much of an order trades at once: often all of it."""
        shares = ticket.open_quantity
        if self.is_calm or self.rng.random() < 0.6:
            return shares
        if shares == shares.to_integral_value() and not is_crypto(ticket.symbol):
            return Decimal(self.rng.randint(1, int(shares)))
        return shares * self.rng.choice(SLICES)

    def _move_to(self, ticket: Ticket) -> None:
        """Let the price go where an order trades."""
        if not self.is_tradable(ticket):
            level = ticket.stop if ticket.stop is not None else ticket.limit
            self.price[ticket.symbol] = level or self.price[ticket.symbol]

    # ---- what happens between two looks

    def step(self, *, surprises: bool) -> None:
        """Prices move, orders trade, cancels take effect; with surprises, sometimes more."""
        rng = self.rng
        self.now += timedelta(minutes=5)
        for symbol in SYMBOLS:
            if rng.random() < 0.6:
                self.price[symbol] = rng.choice(PRICES)
        for ticket in tuple(self.open_tickets()):
            if ticket.is_open and rng.random() < 0.7 and self.is_tradable(ticket):
                replaced = ticket.order_type in STOPS and rng.random() < 0.15
                working = self.replace(ticket) if replaced else ticket
                self.trade(working, self._slice(working))
            if ticket.cancel_in is not None:
                self.end(ticket)
        chance = rng.random()
        if chance < 0.08:
            self.end_session()
        elif chance < 0.14 and surprises:
            self.move_cash(Decimal(rng.randint(1, 99)))
        elif chance < 0.2 and surprises:
            self.act_by_hand()
        if self.late and rng.random() < 0.4:
            self._tell_late()

    def settle(self) -> None:
        """One step of a market without surprises: what can trade trades to its end."""
        self.now += timedelta(minutes=5)
        for ticket in tuple(self.open_tickets()):
            if ticket.cancel_in is not None:
                self.end(ticket)
            elif ticket.is_open and self.is_tradable(ticket):
                self.trade(ticket, ticket.open_quantity)

    def calm(self) -> None:
        """From now on nothing is hidden, late or hasty."""
        self.is_calm = True
        while self.late:
            self._tell_late()
        for ticket in self.tickets.values():
            ticket.unseen = 0

    def end_session(self) -> None:
        """Orders for the day expire."""
        for ticket in tuple(self.open_tickets()):
            if ticket.time_in_force is TimeInForce.DAY:
                self.end(ticket, OrderStatus.EXPIRED)

    def replace(self, old: Ticket) -> Ticket:
        """What the market does to a triggered stop: another order takes its place."""
        number = len(self.tickets) + 1
        new = self._add(
            Ticket(
                f"o{number}",
                f"in place {number}",
                old.symbol,
                old.side,
                old.open_quantity,
                old.order_type,
                old.order_class,
                old.time_in_force,
                old.limit,
                old.stop,
                self.now,
                status=old.status,
                parent=old.parent,
            )
        )
        if old.parent is None:
            self.roots.append(new)
        else:
            old.parent.legs.append(new)
        old.replaced_by, old.cancel_in = new.order_id, None
        self._set(old, OrderStatus.REPLACED)
        return new

    def move_cash(self, amount: Decimal) -> None:
        """Money is paid in."""
        self.cash += amount
        self.moved.append(
            Activity(
                activity_id=f"a{len(self.moved) + 1}",
                kind=ActivityKind.TRANSFER,
                symbol=None,
                amount=amount,
                quantity=NOTHING,
                at=self.now,
            )
        )

    def act_by_hand(self) -> None:
        """A person buys, sells or cancels at the broker, past this program."""
        rng = self.rng
        symbol = rng.choice(SYMBOLS)
        deed = rng.random()
        working = [one for one in self.open_tickets(symbol) if one.side is Side.SELL]
        if deed < 0.5 and working:
            self.end(rng.choice(working))
        free = self.held.get(symbol, NOTHING) - self.reserved(symbol)
        if deed < 0.25 and free > 0:
            self._by_hand(symbol, Side.SELL, free)
        elif deed >= 0.5:
            self._by_hand(symbol, Side.BUY, Decimal(1000 + len(self.trades)))

    def _by_hand(self, symbol: str, side: Side, quantity: Decimal) -> None:
        number = len(self.tickets) + 1
        ticket = self._add(
            Ticket(
                f"o{number}",
                f"{BY_HAND} {number}",
                symbol,
                side,
                quantity,
                OrderType.MARKET,
                OrderClass.SIMPLE,
                TimeInForce.GTC,
                None,
                None,
                self.now,
            )
        )
        self.roots.append(ticket)
        self.trade(ticket, quantity)

    # ---- how it looks

    def truth(self) -> Truth:
        """The account from the broker's side."""
        trees = tuple(root.show() for root in self.roots)
        return Truth(trees=trees, held=self.held, ours=self.ours, cash=self.cash)

    def trees(self) -> Iterable[Ticket]:
        """Orders with anything in them that can still trade, oldest first."""
        return (
            root for root in self.roots if root.is_open or any(leg.is_open for leg in root.legs)
        )

    def portfolio(self) -> Portfolio:
        """Cash, equity and positions now."""
        positions = tuple(
            Position(
                symbol=symbol,
                quantity=shares,
                average_entry_price=Decimal(100),
                current_price=self.price[symbol],
            )
            for symbol, shares in self.held.items()
            if shares
        )
        worth = sum((held.market_value for held in positions), NOTHING)
        return Portfolio(
            cash=self.cash, equity=self.cash + worth, positions=positions, as_of=self.now
        )
