"""Orders: written before sent, never sent twice, filled once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from trader.core.costs import Costs
from trader.core.errors import EndpointError, OrderRefusedError, StateError
from trader.core.trading import (
    Fill,
    Order,
    OrderClass,
    OrderIntent,
    OrderStatus,
    OrderType,
    Side,
    TimeInForce,
)
from trader.ledger.store import Ledger
from trader.orders.journal import OrderJournal
from trader.orders.manager import OrderManager
from trader.orders.protection import exit_waits, unprotected

NOW = datetime(2025, 3, 3, 21, tzinfo=UTC)
TRADE = "run-20250303T1430-AAPL-atr_trend"
ENTRY = OrderIntent(
    client_order_id="tr-20250303-AAPL-0123456789-e",
    symbol="AAPL",
    side=Side.BUY,
    quantity=Decimal(10),
    order_type=OrderType.MARKET,
    order_class=OrderClass.BRACKET,
    time_in_force=TimeInForce.GTC,
    take_profit_price=Decimal(110),
    stop_loss_price=Decimal(96),
)


def shown(intent: OrderIntent, status: OrderStatus = OrderStatus.ACCEPTED) -> Order:
    """How a broker shows an intent that it took, with its legs."""

    def leg(name, order_type, limit, stop):
        return Order(
            order_id=f"{intent.client_order_id}/{name}",
            client_order_id=f"{name} of {intent.client_order_id}",
            symbol=intent.symbol,
            side=Side.SELL,
            quantity=intent.quantity,
            filled_quantity=Decimal(0),
            filled_average_price=None,
            order_type=order_type,
            order_class=intent.order_class,
            time_in_force=intent.time_in_force,
            status=OrderStatus.HELD,
            limit_price=limit,
            stop_price=stop,
            submitted_at=NOW,
            filled_at=None,
        )

    legs = ()
    if intent.order_class is OrderClass.BRACKET:
        legs = (
            leg("target", OrderType.LIMIT, intent.take_profit_price, None),
            leg("stop", OrderType.STOP, None, intent.stop_loss_price),
        )
    parent = leg("", intent.order_type, intent.limit_price, intent.stop_price)
    return replace(
        parent,
        order_id=f"broker-{intent.client_order_id}",
        client_order_id=intent.client_order_id,
        side=intent.side,
        status=status,
        legs=legs,
    )


@dataclass
class OneBroker:
    """Takes orders by client id, once each; loses answers or refuses on demand."""

    taken: dict[str, Order] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)
    reported: list[Fill] = field(default_factory=list)
    canceled: list[str] = field(default_factory=list)
    fail_before: bool = False
    fail_after: bool = False
    refuse: bool = False

    def submit(self, intent: OrderIntent) -> Order:
        self.sent.append(intent.client_order_id)
        if self.refuse:
            raise OrderRefusedError("insufficient buying power", code=40310000)
        if self.fail_before:
            raise EndpointError("no connection")
        self.taken[intent.client_order_id] = shown(intent)
        if self.fail_after:
            raise EndpointError("the answer was lost")
        return self.taken[intent.client_order_id]

    def order(self, client_order_id: str) -> Order | None:
        return self.taken.get(client_order_id)

    def orders(self, *, open_only: bool = True) -> tuple[Order, ...]:
        return tuple(self.taken.values())

    def cancel(self, order_id: str) -> None:
        self.canceled.append(order_id)

    def fills(self, after: str | None = None) -> tuple[Fill, ...]:
        ids = [fill.execution_id for fill in self.reported]
        return tuple(self.reported[ids.index(after) + 1 if after else 0 :])

    def portfolio(self):
        raise AssertionError("not asked for here")


def manager(broker: OneBroker, ledger: Ledger | None = None) -> OrderManager:
    journal = OrderJournal(ledger or Ledger(None), cash=Decimal(10_000), costs=Costs())
    return OrderManager(broker, journal)


def fill(order_id: str, number: int, side: Side, price: str, quantity: int = 10) -> Fill:
    return Fill(
        execution_id=f"x{number}",
        order_id=order_id,
        client_order_id="",
        symbol="AAPL",
        side=side,
        quantity=Decimal(quantity),
        price=Decimal(price),
        fee=Decimal(0),
        filled_at=NOW,
    )


def test_the_intent_is_in_the_ledger_before_the_broker_hears_of_it():
    ledger = Ledger(None)

    class Watching(OneBroker):
        def submit(self, intent):
            assert ledger.record("intent", intent.client_order_id) is not None
            return super().submit(intent)

    manager(Watching(), ledger).submit(ENTRY, trade_id=TRADE, purpose="entry", as_of=NOW)
    assert ledger.record("order", ENTRY.client_order_id).body["stop_loss_id"].endswith("/stop")


@pytest.mark.parametrize("fault", ["fail_before", "fail_after"])
def test_an_unknown_outcome_is_settled_by_client_id_in_a_new_process(fault):
    broker, ledger = OneBroker(), Ledger(None)
    setattr(broker, fault, True)
    with pytest.raises(EndpointError):
        manager(broker, ledger).submit(ENTRY, trade_id=TRADE, purpose="entry", as_of=NOW)
    setattr(broker, fault, False)

    reborn = manager(broker, ledger)
    assert [item.intent for item in reborn.journal.unresolved()] == [ENTRY]
    assert reborn.resolve(NOW) == (ENTRY.client_order_id,)
    assert reborn.resolve(NOW) == ()
    assert list(broker.taken) == [ENTRY.client_order_id]
    assert len(broker.sent) == (2 if fault == "fail_before" else 1)


def test_while_the_broker_stays_silent_the_outcome_stays_open():
    broker = OneBroker(fail_before=True)
    orders = manager(broker)
    with pytest.raises(EndpointError):
        orders.submit(ENTRY, trade_id=TRADE, purpose="entry", as_of=NOW)
    assert orders.resolve(NOW) == ()
    assert orders.journal.unresolved()


def test_a_refusal_is_final_and_recorded():
    broker, ledger = OneBroker(refuse=True), Ledger(None)
    orders = manager(broker, ledger)
    with pytest.raises(OrderRefusedError):
        orders.submit(ENTRY, trade_id=TRADE, purpose="entry", as_of=NOW)
    assert orders.resolve(NOW) == ()
    assert "buying power" in ledger.record("order", ENTRY.client_order_id).body["refusal"]
    assert len(broker.sent) == 1


def test_the_same_intent_twice_is_refused_by_the_journal_before_anything_is_sent():
    broker = OneBroker()
    orders = manager(broker)
    orders.submit(ENTRY, trade_id=TRADE, purpose="entry", as_of=NOW)
    with pytest.raises(StateError):
        orders.submit(ENTRY, trade_id=TRADE, purpose="entry", as_of=NOW)
    assert len(broker.sent) == 1


def test_fills_are_booked_once_and_know_what_they_were():
    broker, ledger = OneBroker(), Ledger(None)
    orders = manager(broker, ledger)
    order = orders.submit(ENTRY, trade_id=TRADE, purpose="entry", as_of=NOW)
    broker.reported.append(fill(order.order_id, 1, Side.BUY, "100.05"))
    assert [b.reason for b in orders.collect_fills()] == ["entry"]
    assert orders.collect_fills() == ()
    broker.reported.append(fill(order.legs[0].order_id, 2, Side.SELL, "110"))

    reborn = manager(broker, ledger)
    booked = reborn.collect_fills()
    assert [b.reason for b in booked] == ["target"]
    assert booked[0].slippage == 0
    assert reborn.journal.book.cash == Decimal(10_000) + Decimal("99.5")
    assert manager(broker, ledger).journal.book.cash == reborn.journal.book.cash


def test_slippage_is_what_the_price_lost_against_the_market():
    broker = OneBroker()
    orders = manager(broker)
    order = orders.submit(ENTRY, trade_id=TRADE, purpose="entry", as_of=NOW)
    broker.reported.append(fill(order.order_id, 1, Side.BUY, "100.05"))
    assert orders.collect_fills()[0].slippage == Decimal("0.5000")


def test_leaving_cancels_both_legs_and_sells_what_is_held():
    broker = OneBroker()
    orders = manager(broker)
    order = orders.submit(ENTRY, trade_id=TRADE, purpose="entry", as_of=NOW)
    broker.reported.append(fill(order.order_id, 1, Side.BUY, "100.05"))
    orders.collect_fills()
    trade = orders.journal.book.open_trades()[0]
    live = broker.taken[ENTRY.client_order_id].with_legs()
    assert not exit_waits(orders.journal, trade, live)
    sold = orders.leave(trade, live, NOW)
    assert set(broker.canceled) == {leg.order_id for leg in order.legs}
    assert (sold.side, sold.quantity, sold.order_type) == (Side.SELL, Decimal(10), OrderType.MARKET)
    assert sold.client_order_id == "tr-20250303-AAPL-0123456789-x1"
    assert exit_waits(orders.journal, trade, (sold,))


def test_shares_without_a_live_stop_are_found_and_a_held_stop_counts_as_one():
    broker = OneBroker()
    orders = manager(broker)
    order = orders.submit(ENTRY, trade_id=TRADE, purpose="entry", as_of=NOW)
    broker.reported.append(fill(order.order_id, 1, Side.BUY, "100.05"))
    orders.collect_fills()
    stop, target = order.legs[1], order.legs[0]
    trade = orders.journal.book.open_trades()[0]
    assert unprotected(orders.journal, (stop, target)) == ()
    assert unprotected(orders.journal, (target,)) == ((trade, Decimal(96)),)
    gone = replace(stop, status=OrderStatus.CANCELED)
    assert unprotected(orders.journal, (gone, target)) == ((trade, Decimal(96)),)
    half = replace(stop, quantity=Decimal(5))
    assert unprotected(orders.journal, (half,)) == ((trade, Decimal(96)),)
    guard = orders.protect(trade, Decimal(96), NOW)
    assert unprotected(orders.journal, (guard,)) == ()
    assert (guard.order_type, guard.time_in_force) == (OrderType.STOP, TimeInForce.GTC)


def test_an_entry_that_never_arrived_is_not_sent_in_a_later_slot():
    broker, ledger = OneBroker(fail_before=True), Ledger(None)
    with pytest.raises(EndpointError):
        manager(broker, ledger).submit(ENTRY, trade_id=TRADE, purpose="entry", as_of=NOW)
    broker.fail_before = False
    later = manager(broker, ledger)
    assert later.resolve(NOW + timedelta(days=1)) == (ENTRY.client_order_id,)
    assert broker.taken == {}
    assert "never reached" in ledger.record("order", ENTRY.client_order_id).body["refusal"]


def test_an_entry_whose_bar_never_came_is_canceled_and_one_of_this_slot_is_not():
    broker = OneBroker()
    orders = manager(broker)
    order = orders.submit(ENTRY, trade_id=TRADE, purpose="entry", as_of=NOW)
    assert orders.expire_entries(NOW, order.with_legs()) == ()
    later = NOW + timedelta(days=1)
    assert orders.expire_entries(later, order.with_legs()) == (ENTRY.client_order_id,)
    assert broker.canceled == [order.order_id]
