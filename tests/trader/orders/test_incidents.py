"""What has gone wrong in other programs, one incident each, and what has to happen here."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.trader.orders.desk import ENTRY, KEY, LATER, TRADE, bought, enter, manager
from tests.trader.orders.fake_broker import NOW, FakeBroker
from trader.core.errors import EndpointError, OrderRefusedError, RateLimitedError, StateError
from trader.core.trading import OrderStatus, OrderType, Side
from trader.ledger.store import Ledger


def agreed(orders, broker) -> bool:
    return orders.journal.book.differences(broker.portfolio()) == {}


@pytest.mark.parametrize("fault", ["lose_request", "lose_answer"])
def test_1_a_timeout_is_no_failure_the_order_is_looked_up_and_sent_again_under_its_own_id(fault):
    broker, ledger = FakeBroker(faults=[fault]), Ledger(None)
    with pytest.raises(EndpointError):
        enter(manager(broker, ledger))
    reborn = manager(broker, ledger)
    assert reborn.resolve(NOW) == (KEY,)
    assert {intent.client_order_id for intent in broker.sent} == {KEY}
    assert len([one for one in broker.book.values() if one.side is Side.BUY]) == 1


@pytest.mark.parametrize("dies", ["before the intent", "after the intent", "after the order"])
def test_2_a_decision_that_is_run_again_is_one_order(dies):
    broker, ledger = FakeBroker(), Ledger(None)
    if dies != "before the intent":
        orders = manager(broker, ledger)
        orders.write(ENTRY, trade_id=TRADE, purpose="entry", as_of=NOW)
        if dies == "after the order":
            broker.submit(ENTRY)  # taken; the process dies before it can write that down
    again = manager(broker, ledger)
    again.reconcile(NOW)
    if KEY not in again.journal.intents:
        enter(again)
    assert [key for key, legs in broker.family.items() if legs] == [broker.id_of(KEY)]


def test_3_a_post_is_never_repeated_by_itself():
    broker = FakeBroker(faults=["lose_answer"])
    with pytest.raises(EndpointError):
        enter(manager(broker))
    assert broker.calls.count("submit") == 1


def test_4_an_order_that_was_seen_meanwhile_is_not_sent_again():
    broker = FakeBroker(faults=["lose_answer"])
    orders = manager(broker)
    orders.reconcile(NOW)
    with pytest.raises(EndpointError):
        enter(orders)
    broker.trade(broker.id_of(KEY))  # its fill is told before its answer
    orders.collect_fills()
    orders.resolve(NOW)
    assert broker.calls.count("submit") == 1
    assert orders.journal.book.quantities == {"AAPL": Decimal(10)}


@pytest.mark.parametrize(("shuffled", "doubled"), [(True, False), (False, True), (True, True)])
def test_5_fills_told_twice_or_in_another_order_are_booked_once(shuffled, doubled):
    broker, ledger = FakeBroker(shuffled=shuffled, doubled=doubled), Ledger(None)
    orders = manager(broker, ledger)
    orders.reconcile(NOW)
    enter(orders)
    broker.trade(broker.id_of(KEY), 4)
    broker.trade(broker.id_of(KEY), 6, "101")
    orders.watch(NOW)
    broker.trade(broker.stop_of(KEY), price="96")
    for _ in range(2):
        orders.watch(NOW)
        orders = manager(broker, ledger)
    assert agreed(orders, broker)
    assert orders.journal.book.trades[TRADE].profit == 960 - 400 - 606


def test_6_working_orders_survive_a_restart():
    broker, ledger = FakeBroker(), Ledger(None)
    bought(broker, ledger)
    before = {key: one.status for key, one in broker.book.items()}
    again = manager(broker, ledger)
    compared = again.reconcile(NOW)
    again.protect(compared, NOW)
    assert {key: one.status for key, one in broker.book.items()} == before
    assert {one.order_id for one in compared.live} == {
        broker.stop_of(KEY),
        broker.target_of(KEY),
    }


def test_7_a_fill_and_the_mark_that_it_was_booked_are_kept_together_or_not_at_all():
    class Dying(Ledger):
        dies = False

        def append(self, kind, record_id, body):
            digest = super().append(kind, record_id, body)
            if self.dies and kind == "fill":
                raise RuntimeError("the process dies inside the transaction")
            return digest

    broker, ledger = FakeBroker(), Dying(None)
    orders = manager(broker, ledger)
    orders.reconcile(NOW)
    enter(orders)
    fill = broker.trade(broker.id_of(KEY))
    ledger.dies = True
    with pytest.raises(RuntimeError):
        orders.collect_fills()
    ledger.dies = False
    assert ledger.record("fill", fill.execution_id) is None
    again = manager(broker, ledger)
    assert [part.fill.execution_id for part in again.collect_fills()] == [fill.execution_id]
    assert agreed(again, broker)


def test_8_a_network_error_never_means_that_an_order_is_gone():
    broker = FakeBroker()
    orders, trade = bought(broker)
    broker.down = {"orders", "order", "order_by_id", "fills", "portfolio", "cancel"}
    for _ in range(5):
        with pytest.raises(EndpointError):
            orders.watch(NOW)
        assert orders.problem
    broker.trade(broker.stop_of(KEY), price="95")  # filled while nobody could see it
    broker.down = set()
    assert orders.watch(NOW).compared.problem == ""
    assert not trade.is_open
    assert agreed(orders, broker)


def test_9_an_order_that_was_taken_and_rejected_is_refused_and_never_open():
    broker, ledger = FakeBroker(faults=["reject"]), Ledger(None)
    orders = manager(broker, ledger)
    with pytest.raises(OrderRefusedError, match="rejected"):
        enter(orders)
    assert orders.journal.outcomes[KEY].refusal
    assert orders.journal.unresolved() == ()
    assert orders.journal.unsettled() == ()


def test_10_a_fill_that_could_not_be_recorded_is_found_again(tmp_path):
    broker, path = FakeBroker(), tmp_path / "ledger.db"
    ledger = Ledger(path, patience_seconds=0)
    orders = manager(broker, ledger)
    orders.reconcile(NOW)
    enter(orders)
    broker.trade(broker.id_of(KEY))
    other = Ledger(path)
    with other.transaction(), pytest.raises(StateError, match="another program"):
        orders.collect_fills()
    again = manager(broker, Ledger(path))
    again.watch(NOW)
    assert agreed(again, broker)
    assert again.journal.book.quantities == {"AAPL": Decimal(10)}


def test_11_a_stop_that_was_dropped_without_a_word_is_placed_once_shares_are_held():
    broker = FakeBroker(faults=["drop_legs"])
    orders = manager(broker)
    orders.reconcile(NOW)
    enter(orders)
    broker.trade(broker.id_of(KEY))
    assert orders.watch(NOW).protected.placed == [TRADE]
    guard = broker.book[broker.id_of("tr-20250303-AAPL-0123456789-p1")]
    assert (guard.order_type, guard.quantity, guard.stop_price) == (
        OrderType.STOP,
        Decimal(10),
        Decimal(96),
    )


def test_12_a_held_stop_leg_is_a_stop():
    broker = FakeBroker()
    orders, _ = bought(broker)
    assert broker.book[broker.stop_of(KEY)].status is OrderStatus.HELD
    assert not orders.watch(NOW).protected.changed
    assert broker.calls.count("submit") == 1


def test_13_a_stop_that_ended_with_the_session_is_placed_again():
    broker = FakeBroker()
    orders, _ = bought(broker)
    broker.end(broker.stop_of(KEY), OrderStatus.EXPIRED)
    assert broker.guarded("AAPL") == 0
    assert orders.watch(LATER).protected.placed == [TRADE]
    assert broker.guarded("AAPL") == 10


def test_14_a_stop_that_was_filled_or_lost_while_nobody_looked_is_no_exception():
    broker, ledger = FakeBroker(), Ledger(None)
    orders, trade = bought(broker, ledger)
    live = orders.open_orders()
    broker.trade(broker.stop_of(KEY), price="95.5")
    assert orders.leave(trade, live, NOW) is None
    assert not trade.is_open
    assert agreed(orders, broker)
    gone = replace(live[0], order_id="nowhere")
    orders._sender.cancel([gone])  # not found: looked for, and then forgotten


def test_15_what_the_fills_do_not_tell_is_learned_from_the_orders():
    broker, ledger = FakeBroker(), Ledger(None)
    orders = manager(broker, ledger)
    orders.reconcile(NOW)
    enter(orders)
    broker.hidden = {broker.trade(broker.id_of(KEY), price="100.50").execution_id}
    first = orders.watch(NOW).compared
    assert first.problem == ""
    assert first.news.estimated == (f"{broker.id_of(KEY)}@10",)
    broker.hidden.add(broker.trade(broker.target_of(KEY), price="110").execution_id)
    orders.watch(NOW)
    assert agreed(orders, broker)
    assert orders.journal.book.trades[TRADE].exit_reason == "target"
    assert broker.book[broker.stop_of(KEY)].status is OrderStatus.CANCELED
    assert orders.journal.unsettled() == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"quantity": Decimal("NaN")},
        {"quantity": Decimal("Infinity")},
        {"quantity": Decimal(0)},
        {"quantity": Decimal(-1)},
        {"stop_loss_price": Decimal(0)},
        {"take_profit_price": Decimal("NaN")},
        {"client_order_id": "x" * 49},
    ],
)
def test_16_numbers_that_no_broker_should_see_are_refused_before_anything_is_written(changes):
    broker, ledger = FakeBroker(), Ledger(None)
    with pytest.raises(OrderRefusedError):
        enter(manager(broker, ledger), replace(ENTRY, **changes))
    assert broker.sent == []
    assert ledger.verify() == 0


def test_16_a_part_that_is_filled_at_the_moment_of_the_cancel_is_not_sold_twice():
    broker = FakeBroker()
    orders, trade = bought(broker)

    class Racing(FakeBroker):
        def cancel(self, order_id):
            stop = self.stop_of(KEY)
            if not self.book[stop].filled_quantity:
                self.trade(stop, 3, "95.9")
            super().cancel(order_id)

    broker.__class__ = Racing
    sold = orders.leave(trade, orders.open_orders(), NOW)
    assert sold.quantity == 7
    broker.trade(sold.order_id)
    orders.watch(NOW)
    assert not trade.is_open
    assert agreed(orders, broker)


def test_nothing_was_done_when_the_broker_had_too_many_requests():
    broker, ledger = FakeBroker(faults=["rate_limit"]), Ledger(None)
    orders = manager(broker, ledger)
    with pytest.raises(RateLimitedError):
        enter(orders)
    assert broker.book == {}
    assert orders.resolve(NOW) == (KEY,)
    assert broker.id_of(KEY)
