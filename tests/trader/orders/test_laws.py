"""Laws that hold after any order of events: the book is the broker's, nothing doubled or naked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trader.orders.desk import ENTRY, enter, manager, simple
from tests.trader.orders.fake_broker import NOW, FakeBroker
from trader.core.errors import EndpointError, OrderRefusedError
from trader.core.trading import ActivityKind, Side
from trader.ledger.store import Ledger
from trader.orders.manager import OrderManager

FAULTS = ("", "", "lose_request", "lose_answer", "rate_limit", "refuse", "drop_legs", "reject")
ENDPOINTS = ("portfolio", "orders", "order", "order_by_id", "fills", "cancel", "activities")
STYLES = (ENTRY, simple("MSFT", "2.5"), simple("BTC/USD", "0.25"))


class Life:
    """One account through a list of events, each chosen by small numbers."""

    def __init__(self) -> None:
        self.broker, self.ledger, self.entries = FakeBroker(), Ledger(None), 0
        self.orders: OrderManager = manager(self.broker, self.ledger)
        self.orders.reconcile(NOW)

    def enter(self, a: int, b: int) -> None:
        self.entries += 1
        intent = STYLES[a % len(STYLES)]
        quantity = intent.quantity * (1 + b % 4)
        name = f"{intent.client_order_id[:-1]}{self.entries}-e"
        self.broker.faults = [FAULTS[b % len(FAULTS)]]
        with suppress(EndpointError, OrderRefusedError):
            enter(
                self.orders,
                replace(intent, client_order_id=name, quantity=quantity),
                f"run-20250303T1430-{intent.symbol}{self.entries}-atr_trend",
            )

    def trade(self, a: int, b: int) -> None:
        tradable = [
            order
            for order in self.broker.book.values()
            if not order.status.is_final and self.broker._is_armed(order)
        ]
        if tradable:
            order = tradable[a % len(tradable)]
            part = order.open_quantity if b % 3 else order.open_quantity / 2
            self.broker.trade(order.order_id, str(part), str(97 + b % 7))

    def lose_leg(self, a: int, b: int) -> None:
        live = [one for one in self.broker.book.values() if not one.status.is_final]
        if live:
            self.broker.end(live[a % len(live)].order_id)

    def by_hand(self, a: int, b: int) -> None:
        symbol = STYLES[a % len(STYLES)].symbol
        free = self.broker.held.get(symbol, Decimal(0)) - self.broker.open_sales(symbol)
        if b % 2 or free <= 0:
            self.broker.by_hand(symbol, Side.BUY, str(1 + b % 3))
        else:
            self.broker.by_hand(symbol, Side.SELL, str(free))

    def tell_badly(self, a: int, b: int) -> None:
        self.broker.shuffled, self.broker.doubled = bool(a % 2), bool(b % 2)
        self.broker.blind = a % 3
        self.broker.lasting_cancels = b % 3

    def hide_fill(self, a: int, b: int) -> None:
        ours = [one for one in self.broker.told if not one.client_order_id.startswith("by hand")]
        if ours:  # what is hidden of a stranger's is a difference, and freezes trading
            self.broker.hidden.add(ours[a % len(ours)].execution_id)

    def show_fills(self, a: int, b: int) -> None:
        self.broker.hidden.clear()

    def pay(self, a: int, b: int) -> None:
        self.broker.move(ActivityKind.TRANSFER, amount=str(1 + a))

    def end_session(self, a: int, b: int) -> None:
        self.broker.close_session()

    def crash(self, a: int, b: int) -> None:
        self.orders = manager(self.broker, self.ledger)

    def leave(self, a: int, b: int) -> None:
        trades = self.orders.journal.book.open_trades()
        own = [trade for trade in trades if not trade.is_imported]
        self.broker.faults = [FAULTS[b % len(FAULTS)]]
        if own:
            with suppress(EndpointError, OrderRefusedError):
                self.orders.leave(own[a % len(own)], self.orders.open_orders(), NOW)

    def watch(self, a: int, b: int) -> None:
        self.broker.down = {ENDPOINTS[b % len(ENDPOINTS)]} if a % 3 == 0 else set()
        self.broker.faults = [FAULTS[a % len(FAULTS)]]
        with suppress(EndpointError):
            self.orders.watch(NOW)
        self.broker.down = set()

    def settle(self) -> None:
        """The storm is over: a new process looks a few times."""
        self.broker.faults, self.broker.blind, self.broker.lasting_cancels = [], 0, 0
        self.broker._unseen.clear()
        self.broker.shuffled = self.broker.doubled = False
        for _ in range(3):
            self.orders = manager(self.broker, self.ledger)
            self.watched = self.orders.watch(NOW)


EVENTS: dict[str, Callable[[Life, int, int], None]] = {
    name: getattr(Life, name)
    for name in (
        "enter",
        "trade",
        "lose_leg",
        "by_hand",
        "tell_badly",
        "hide_fill",
        "show_fills",
        "pay",
        "end_session",
        "crash",
        "leave",
        "watch",
    )
}
OFTEN = ("enter", "trade", "trade", "watch", "leave")
event = st.tuples(st.sampled_from((*EVENTS, *OFTEN)), st.integers(0, 20), st.integers(0, 20))


def check(life: Life) -> None:
    broker, journal = life.broker, life.orders.journal
    assert life.watched.compared.problem == ""
    assert not life.watched.protected.naked
    held = {symbol: shares for symbol, shares in broker.held.items() if shares}
    assert journal.book.quantities == held, "no share lost or doubled"
    assert abs(journal.book.cash - broker.cash) < Decimal("0.01") * (1 + journal.estimates)
    for symbol, shares in held.items():
        ours = sum(
            trade.open_quantity
            for trade in journal.book.open_trades(symbol)
            if not trade.is_imported
        )
        assert broker.guarded(symbol) >= ours, "every share of ours has a stop or an exit"
        assert broker.open_sales(symbol) <= shares, "no share is sold twice"
    posted = [one.client_order_id for one in broker.book.values()]
    assert len(posted) == len(set(posted)), "one order for each intent"
    told = [record.body["fill"]["execution_id"] for record in life.ledger.records("fill")]
    parts = {record.record_id for record in life.ledger.records("fill")}
    assert len(told) == len(parts)
    assert all(item.intent.client_order_id not in posted for item in journal.unresolved())
    assert life.ledger.verify()


@given(st.lists(event, min_size=5, max_size=40))
@settings(deadline=None, max_examples=150)
def test_the_book_is_the_brokers_and_every_share_is_guarded_after_any_order_of_events(events):
    life = Life()
    for name, a, b in events:
        EVENTS[name](life, a, b)
    life.settle()
    check(life)
    head = life.ledger.head
    life.orders.watch(NOW)
    assert life.ledger.head == head, "when all is settled, nothing more is done"


def test_the_laws_fail_for_a_book_that_counts_twice():
    life = Life()
    life.enter(0, 0)
    life.trade(0, 1)
    life.settle()
    check(life)
    life.orders.journal.book.quantities["AAPL"] += 1
    with pytest.raises(AssertionError, match="lost or doubled"):
        check(life)
