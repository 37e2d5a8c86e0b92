"""Orders: written before sent, never sent twice, filled once."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.trader.orders.desk import ENTRY, KEY, LATER, TRADE, bought, enter, manager, simple
from tests.trader.orders.fake_broker import NOW, FakeBroker
from trader.core.errors import EndpointError, OrderRefusedError, StateError, UsageError
from trader.core.trading import OrderStatus, OrderType, Side
from trader.ledger.store import Ledger
from trader.orders.protection import exit_waits


def test_the_intent_is_in_the_ledger_before_the_broker_hears_of_it():
    ledger = Ledger(None)

    class Watching(FakeBroker):
        def submit(self, intent):
            assert ledger.record("intent", intent.client_order_id) is not None
            return super().submit(intent)

    broker = Watching()
    enter(manager(broker, ledger))
    assert ledger.record("order", KEY).body["stop_loss_id"] == broker.stop_of(KEY)


def test_while_the_broker_stays_silent_the_outcome_stays_open():
    broker = FakeBroker(faults=["lose_request"] * 3, down={"order"})
    orders = manager(broker)
    with pytest.raises(EndpointError):
        enter(orders)
    assert orders.resolve(NOW) == ()
    assert orders.journal.unresolved()
    assert len(broker.sent) == 1, "what cannot be looked up is not sent again"


def test_a_refusal_is_final_and_recorded():
    broker, ledger = FakeBroker(faults=["refuse"]), Ledger(None)
    orders = manager(broker, ledger)
    with pytest.raises(OrderRefusedError):
        enter(orders)
    assert orders.resolve(NOW) == ()
    assert "not now" in ledger.record("order", KEY).body["refusal"]
    assert len(broker.sent) == 1


def test_the_same_intent_twice_is_refused_by_the_journal_before_anything_is_sent():
    broker = FakeBroker()
    orders = manager(broker)
    enter(orders)
    with pytest.raises(StateError):
        enter(orders)
    assert len(broker.sent) == 1


@pytest.mark.parametrize("blind", [1, 2])
def test_an_order_that_becomes_visible_late_is_found_and_not_sent_again(blind):
    broker = FakeBroker(faults=["lose_answer"], blind=blind)
    orders = manager(broker)
    with pytest.raises(EndpointError):
        enter(orders)
    assert orders.resolve(LATER) == (KEY,)
    assert orders.journal.outcomes[KEY].order_id == broker.id_of(KEY)
    assert len(broker.sent) == 1


def test_an_entry_that_never_arrived_is_not_sent_in_a_later_slot():
    broker, ledger = FakeBroker(faults=["lose_request"]), Ledger(None)
    with pytest.raises(EndpointError):
        enter(manager(broker, ledger))
    later = manager(broker, ledger)
    assert later.resolve(LATER) == (KEY,)
    assert broker.book == {}
    assert "never reached" in ledger.record("order", KEY).body["refusal"]


@pytest.mark.parametrize("filled", [False, True])
def test_an_entry_that_appears_after_it_was_given_up_is_adopted(filled):
    broker, ledger = FakeBroker(faults=["lose_answer"], blind=5), Ledger(None)
    orders = manager(broker, ledger)
    orders.reconcile(NOW)
    with pytest.raises(EndpointError):
        enter(orders)
    assert orders.resolve(LATER) == (KEY,)
    assert orders.journal.outcomes[KEY].order_id is None
    if filled:
        broker.trade(broker.id_of(KEY))
    for _ in range(3):
        orders = manager(broker, ledger)
        watched = orders.watch(LATER)
    assert orders.journal.outcomes[KEY].order_id == broker.id_of(KEY)
    assert ledger.record("order", f"{KEY}#2") is not None
    assert watched.compared.problem == ""
    if filled:
        assert orders.journal.book.quantities == {"AAPL": Decimal(10)}
        assert broker.guarded("AAPL") == 10
    else:
        assert broker.book[broker.id_of(KEY)].status is OrderStatus.CANCELED


@pytest.mark.parametrize("intent", [ENTRY, simple("AAPL", "10.5")])
def test_an_order_that_was_refused_and_taken_all_the_same_is_ours(intent):
    broker = FakeBroker(faults=["refuse_but_take"])
    orders = manager(broker)
    orders.reconcile(NOW)
    with pytest.raises(OrderRefusedError):
        enter(orders, intent)
    broker.trade(broker.id_of(KEY))
    orders.watch(NOW)
    assert orders.journal.outcomes[KEY].order_id == broker.id_of(KEY)
    assert orders.journal.outcomes[KEY].refusal == ""
    assert orders.journal.book.trades[TRADE].open_quantity == intent.quantity
    assert broker.guarded("AAPL") == intent.quantity


def test_fills_are_booked_once_and_know_what_they_were():
    broker, ledger = FakeBroker(), Ledger(None)
    orders = manager(broker, ledger)
    enter(orders)
    broker.trade(broker.id_of(KEY), price="100.05")
    assert [b.reason for b in orders.collect_fills()] == ["entry"]
    assert orders.collect_fills() == ()
    broker.trade(broker.target_of(KEY), price="110")

    reborn = manager(broker, ledger)
    booked = reborn.collect_fills()
    assert [b.reason for b in booked] == ["target"]
    assert booked[0].slippage == 0
    assert reborn.journal.book.cash == Decimal(100_000) + Decimal("99.5")
    assert manager(broker, ledger).journal.book.cash == reborn.journal.book.cash


def test_slippage_is_what_the_price_lost_against_the_market():
    broker = FakeBroker()
    orders = manager(broker)
    enter(orders)
    broker.trade(broker.id_of(KEY), price="100.05")
    assert orders.collect_fills()[0].slippage == Decimal("0.5000")


def test_leaving_cancels_both_legs_and_sells_what_is_held():
    broker = FakeBroker()
    orders, trade = bought(broker)
    live = orders.open_orders()
    assert not exit_waits(orders.journal, trade, live)
    sold = orders.leave(trade, live, NOW)
    assert broker.book[broker.stop_of(KEY)].status is OrderStatus.CANCELED
    assert broker.book[broker.target_of(KEY)].status is OrderStatus.CANCELED
    assert (sold.side, sold.quantity, sold.order_type) == (Side.SELL, Decimal(10), OrderType.MARKET)
    assert sold.client_order_id == "tr-20250303-AAPL-0123456789-x1"
    assert exit_waits(orders.journal, trade, (sold,))


def test_shares_are_sold_only_once_their_stop_is_surely_canceled():
    broker = FakeBroker(lasting_cancels=3)
    orders, trade = bought(broker)
    waits = []
    orders._tracker._wait = waits.append
    assert orders.leave(trade, orders.open_orders(), NOW).quantity == 10
    assert waits, "the manager waits between two looks"

    stuck = FakeBroker(lasting_cancels=1000)
    orders, trade = bought(stuck)
    with pytest.raises(EndpointError, match="not canceled yet"):
        orders.leave(trade, orders.open_orders(), NOW)
    assert len(stuck.sent) == 1


def test_a_sale_whose_answer_was_lost_is_not_sent_again_under_another_id():
    broker, ledger = FakeBroker(), Ledger(None)
    orders, trade = bought(broker, ledger)
    broker.faults, live = ["lose_answer"], orders.open_orders()
    with pytest.raises(EndpointError):
        orders.leave(trade, live, NOW)
    with pytest.raises(EndpointError, match="not known yet"):
        orders.leave(trade, live, NOW)
    again = manager(broker, ledger)
    watched = again.watch(NOW)
    assert watched.compared.resolved == ("tr-20250303-AAPL-0123456789-x1",)
    assert not watched.protected.changed, "an exit on its way is a guard"
    assert broker.open_sales("AAPL") == 10


def test_a_sale_that_never_arrived_is_not_sent_once_its_shares_are_gone():
    broker, ledger = FakeBroker(), Ledger(None)
    orders, trade = bought(broker, ledger)
    broker.faults = ["lose_request"]
    with pytest.raises(EndpointError):
        orders.leave(trade, orders.open_orders(), NOW)
    broker.by_hand("AAPL", Side.SELL, "10")
    again = manager(broker, ledger)
    assert again.watch(NOW).compared.problem == ""
    assert "have gone" in again.journal.outcomes["tr-20250303-AAPL-0123456789-x1"].refusal
    assert again.journal.book.trades[TRADE].exit_reason == "other"


def test_an_entry_whose_bar_never_came_is_canceled_and_one_of_this_slot_is_not():
    broker = FakeBroker()
    orders = manager(broker)
    enter(orders)
    assert orders.expire_entries(NOW, orders.open_orders()) == ()
    assert orders.expire_entries(LATER, orders.open_orders()) == (KEY,)
    assert broker.book[broker.id_of(KEY)].status is OrderStatus.CANCELED


def test_orders_that_took_the_place_of_others_are_followed():
    broker, ledger = FakeBroker(), Ledger(None)
    orders, _ = bought(broker, ledger)
    new = broker.replace_leg(broker.stop_of(KEY))
    orders.watch(NOW)
    assert orders.journal.outcomes[KEY].stop_loss_id == new
    assert not orders.watch(NOW).protected.changed, "the follower is the stop now"
    newer = broker.replace_leg(new)
    broker.trade(newer, price="95")  # it fills before anyone has heard of it
    again = manager(broker, ledger)
    assert again.watch(NOW).compared.problem == ""
    trade = again.journal.book.trades[TRADE]
    assert (trade.exit_reason, trade.is_open) == ("stop", False)


def test_the_follower_of_a_stop_that_stood_alone_is_ours_and_no_stranger():
    broker = FakeBroker()
    orders, trade = bought(broker)
    broker.end(broker.stop_of(KEY))
    orders.watch(NOW)
    new = broker.replace_leg(broker.id_of("tr-20250303-AAPL-0123456789-p1"))
    watched = orders.watch(NOW)
    assert watched.compared.news is None
    assert not watched.protected.changed
    broker.trade(new, price="95")
    orders.watch(NOW)
    assert (trade.is_open, trade.exit_reason) == (False, "stop")


def test_a_person_closes_a_symbol_and_its_entries_once():
    broker = FakeBroker()
    orders, _ = bought(broker)
    (closing,) = orders.close("AAPL", "enough", NOW)
    assert (closing.client_order_id, closing.problem) == ("tr-20250303-AAPL-0123456789-c1", "")
    assert orders.journal.intents[closing.client_order_id].reason == "enough"
    assert orders.close("AAPL", "enough", NOW) == ()
    broker.trade(broker.id_of(closing.client_order_id))
    orders.watch(NOW)
    assert orders.journal.book.quantities == {}
    assert orders.close("AAPL", "enough", NOW) == ()


@pytest.mark.parametrize("fault", ["", "lose_request", "lose_answer"])
def test_a_person_who_closes_stops_entries_too_also_those_in_doubt(fault):
    broker = FakeBroker(faults=[fault], blind=1)
    orders = manager(broker)
    orders.reconcile(NOW)
    if fault:
        with pytest.raises(EndpointError):
            enter(orders)
    else:
        enter(orders)
    orders.close(None, "enough", NOW)
    for _ in range(3):
        orders.watch(NOW)
    assert all(order.status.is_final for order in broker.book.values())
    assert len(broker.sent) == 1


def test_imported_shares_are_sold_only_where_they_are_named():
    broker = FakeBroker(held={"AAPL": Decimal(7)})
    orders = manager(broker)
    orders.reconcile(NOW)
    assert orders.close(None, "all of it", NOW) == ()
    (closing,) = orders.close("AAPL", "those too", NOW)
    assert broker.book[broker.id_of(closing.client_order_id)].quantity == 7


def test_a_person_cancels_an_order_by_either_id_and_learns_of_one_that_is_not_there():
    broker = FakeBroker()
    orders = manager(broker)
    orders.reconcile(NOW)
    enter(orders)
    assert orders.cancel(KEY).status is OrderStatus.CANCELED
    assert orders.cancel(broker.id_of(KEY)).status is OrderStatus.CANCELED
    with pytest.raises(UsageError, match="no order nothing"):
        orders.cancel("nothing")


def test_an_entry_of_ours_does_not_stand_in_the_way_of_an_exit():
    class NoBothSides(FakeBroker):
        def submit(self, intent):
            other = Side.BUY if intent.side is Side.SELL else Side.SELL
            if any(
                one.side is other and not one.status.is_final and one.order_class == "simple"
                for one in self.book.values()
            ):
                raise OrderRefusedError("potential wash trade detected", code=40310000)
            return super().submit(intent)

    broker = NoBothSides()
    orders, trade = bought(broker)
    rival = replace(simple("AAPL", "0.5"), client_order_id="tr-20250303-AAPL-rival-e")
    broker.close_session()
    enter(orders, rival, "run-20250303T1430-AAPL-rsi_reversion")
    sold = orders.leave(trade, orders.open_orders(), NOW)
    assert sold.quantity == 10
    assert broker.book[broker.id_of(rival.client_order_id)].status is OrderStatus.CANCELED
