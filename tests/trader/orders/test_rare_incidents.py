"""What a simulation of faults and crashes has found, each played by hand."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.trader.orders.desk import ENTRY, KEY, LATER, TRADE, bought, enter, manager, simple
from tests.trader.orders.fake_broker import NOW, FakeBroker
from trader.core.errors import EndpointError, OrderRefusedError
from trader.core.trading import OrderStatus, OrderType, Side
from trader.ledger.controls import Controls
from trader.ledger.store import Ledger
from trader.orders.protection import stop_order

OTHER = replace(ENTRY, client_order_id="tr-20250304-AAPL-9876543210-e", quantity=Decimal(4))
OTHER_TRADE = "run-20250304T1430-AAPL-rsi_reversion"
STEM = KEY.removesuffix("-e")


def agreed(orders, broker) -> bool:
    return orders.journal.book.differences(broker.portfolio()) == {}


def coin(broker: FakeBroker, ledger: Ledger | None = None):
    """A manager that holds a quarter of a coin, not looked after yet."""
    orders, intent = manager(broker, ledger), simple("BTC/USD", "0.25")
    orders.reconcile(NOW)
    enter(orders, intent)
    broker.trade(broker.id_of(intent.client_order_id))
    return orders, intent.client_order_id.removesuffix("-e")


def test_what_took_the_place_of_a_stop_and_is_shown_beside_it_belongs_to_the_same_trade():
    broker = FakeBroker()
    orders, trade = bought(broker)
    enter(orders, OTHER, OTHER_TRADE)
    entry = broker.id_of(OTHER.client_order_id)
    broker.trade(entry)
    new = broker.replace_leg(broker.stop_of(OTHER.client_order_id))
    broker.family[entry].append(new)
    broker.hidden.add(broker.trade(new, price="96").execution_id)
    orders.watch(NOW)
    assert trade.is_open, "the older trade keeps its shares"
    assert not orders.journal.book.trades[OTHER_TRADE].is_open
    assert broker.guarded("AAPL") == trade.open_quantity == 10


def test_what_an_order_filled_before_another_took_its_place_is_booked_while_that_one_lives():
    broker, ledger = FakeBroker(), Ledger(None)
    orders, stem = coin(broker, ledger)
    orders.watch(NOW)
    stop = broker.id_of(f"{stem}-p1")
    broker.hidden = {broker.trade(stop, "0.1", "96").execution_id}
    new = broker.replace_leg(stop)
    broker._set(new, quantity=Decimal("0.15"), filled_quantity=Decimal(0))
    orders.journal.write_replacement(stop, new)  # and there the process died
    again = manager(broker, ledger)
    assert again.watch(NOW).compared.problem == ""
    assert again.journal.book.trades[TRADE].open_quantity == Decimal("0.15")
    assert broker.guarded("BTC/USD") == Decimal("0.15")


def test_a_stop_that_the_list_does_not_show_yet_is_neither_placed_again_nor_left_behind():
    broker = FakeBroker()
    orders, stem = coin(broker)
    orders.watch(NOW)
    stop = f"{stem}-p1"
    trade = orders.journal.book.trades[TRADE]
    broker._unseen[stop] = 2
    assert not orders.watch(NOW).protected.changed
    broker._unseen[stop] = 2
    assert orders.leave(trade, orders.open_orders(), NOW).quantity == Decimal("0.25")
    assert broker.book[broker.id_of(stop)].status is OrderStatus.CANCELED


@pytest.mark.parametrize(("fault", "arrived"), [("lose_answer", True), ("lose_request", False)])
def test_a_stop_in_doubt_does_not_survive_the_sale_of_its_shares(fault, arrived):
    broker = FakeBroker()
    orders, stem = coin(broker)
    broker.faults = [fault]
    assert orders.watch(NOW).protected.naked
    trade = orders.journal.book.trades[TRADE]
    sold = orders.leave(trade, (), NOW)
    assert sold.quantity == Decimal("0.25")
    orders.watch(NOW)
    stops = [one for one in broker.book.values() if one.client_order_id == f"{stem}-p1"]
    assert [one.status for one in stops] == [OrderStatus.CANCELED] * arrived
    assert broker.open_sales("BTC/USD") == Decimal("0.25")


def test_shares_are_not_sold_while_an_entry_whose_legs_may_sell_them_cannot_be_seen():
    broker, ledger = FakeBroker(faults=["lose_answer"]), Ledger(None)
    orders = manager(broker, ledger)
    orders.reconcile(NOW)
    with pytest.raises(EndpointError):
        enter(orders)
    broker.trade(broker.id_of(KEY))
    broker._unseen[KEY] = 60
    orders.collect_fills()  # the fill has the client id of the entry
    trade = orders.journal.book.trades[TRADE]
    with pytest.raises(EndpointError, match="not known yet"):
        orders.leave(trade, (), NOW)
    assert broker.calls.count("submit") == 1
    broker._unseen[KEY] = 2
    compared = orders.reconcile(NOW)
    protected = orders.protect(replace(compared, live=()), NOW)  # as if it were seen only now
    assert protected.changed, "whoever goes on reads the orders again"
    assert orders.leave(trade, orders.open_orders(), NOW).quantity == 10
    assert broker.open_sales("AAPL") == 10


def test_a_stop_that_arrives_when_its_trade_is_over_is_canceled():
    broker, ledger = FakeBroker(), Ledger(None)
    orders, _ = bought(broker, ledger)
    broker.trade(broker.stop_of(KEY), price="96")
    broker.by_hand("AAPL", Side.BUY, "10")
    late = stop_order(f"{STEM}-p1", "AAPL", Decimal(10), Decimal(96))
    orders.write(late, trade_id=TRADE, purpose="protection", as_of=NOW)
    broker.submit(late)
    watched = orders.watch(NOW)
    assert watched.protected.orphans == [late.client_order_id]
    assert watched.protected.changed
    assert broker.open_sales("AAPL") == 0, "a person's shares are not ours to sell"


def test_an_entry_in_the_way_that_is_canceled_by_now_makes_the_sale_worth_another_try():
    broker = FakeBroker()
    orders, trade = bought(broker)
    enter(orders, OTHER, OTHER_TRADE)
    live = orders.open_orders()
    broker.end(broker.id_of(OTHER.client_order_id))
    broker.faults = ["refuse"]  # as a wash trade, a moment before
    assert orders.leave(trade, live, NOW).quantity == 10


def test_a_sale_that_was_taken_though_the_broker_said_no_is_not_sent_twice():
    broker = FakeBroker()
    orders, trade = bought(broker)
    enter(orders, OTHER, OTHER_TRADE)
    live = orders.open_orders()
    broker.faults = ["refuse_but_take"]
    assert orders.leave(trade, live, NOW).client_order_id == broker.sent[-1].client_order_id
    assert [one.side for one in broker.sent].count(Side.SELL) == 1
    assert broker.open_sales("AAPL") == 10


def test_a_lost_sale_is_not_sent_again_while_a_stop_waits_for_the_same_shares():
    broker = FakeBroker()
    orders, stem = coin(broker)
    orders.watch(NOW)
    sale = replace(
        stop_order(f"{stem}-x1", "BTC/USD", Decimal("0.25"), Decimal(96)),
        order_type=OrderType.MARKET,
        stop_price=None,
        limit_price=None,
    )
    orders.write(sale, trade_id=TRADE, purpose="exit", as_of=NOW)
    orders.watch(NOW)
    assert broker.sent[-1].client_order_id == f"{stem}-p1"
    assert "other orders wait" in orders.journal.outcomes[sale.client_order_id].refusal
    assert broker.guarded("BTC/USD") == Decimal("0.25")


def test_a_lost_sale_is_not_sent_again_when_a_person_has_sold_the_shares():
    broker = FakeBroker()
    orders, trade = bought(broker)
    broker.faults = ["lose_request"]
    with pytest.raises(EndpointError):
        orders.leave(trade, orders.open_orders(), NOW)
    broker.by_hand("AAPL", Side.SELL, "10")
    broker.hidden = {broker.told[-1].execution_id}
    posts = broker.calls.count("submit")
    orders.watch(NOW)
    assert broker.calls.count("submit") == posts


def test_a_strangers_trade_that_is_told_after_its_numbers_were_taken_over_is_not_booked_again():
    broker, ledger = FakeBroker(), Ledger(None)
    controls = Controls(ledger, now=lambda: NOW)
    orders, trade = bought(broker, ledger, controls)
    broker.by_hand("MSFT", Side.BUY, "7")
    broker.told[-1] = replace(broker.told[-1], filled_at=NOW)
    broker.hidden = {broker.told[-1].execution_id}
    orders.watch(NOW)
    controls.acknowledge("the seven are mine")
    orders.watch(NOW)
    assert agreed(orders, broker)
    broker.hidden.clear()
    for one in (orders, manager(broker, ledger, controls)):
        assert one.watch(NOW).compared.problem == ""
        assert one.journal.book.quantities == {"AAPL": Decimal(10), "MSFT": Decimal(7)}
    assert trade.open_quantity == 10


def test_a_sale_is_not_booked_before_its_purchase_can_be_seen():
    broker = FakeBroker()
    orders = manager(broker)
    orders.reconcile(NOW)
    enter(orders)
    broker.hidden = {broker.trade(broker.id_of(KEY)).execution_id}
    broker.trade(broker.stop_of(KEY), 6, "96")
    broker._unseen[KEY] = 3
    orders.watch(NOW)
    assert agreed(orders, broker)
    assert not [one for one in orders.journal.book.trades.values() if one.is_imported]


def test_a_sale_of_an_order_that_cannot_be_seen_waits_and_freezes_nothing():
    broker, ledger = FakeBroker(), Ledger(None)
    controls = Controls(ledger, now=lambda: NOW)
    orders, _ = bought(broker, ledger, controls)
    new = broker.replace_leg(broker.stop_of(KEY))
    broker.trade(new, 4, "96")
    broker._unseen[KEY] = 40
    assert "fills wait for an order that is in doubt" in orders.watch(NOW).compared.problem
    assert controls.frozen == ""
    broker._unseen.clear()
    assert orders.watch(NOW).compared.problem == ""
    assert orders.journal.book.trades[TRADE].open_quantity == 6


def test_what_was_taken_for_a_strangers_order_becomes_ours_once_it_is_known_to_follow_ours():
    broker, ledger = FakeBroker(), Ledger(None)
    orders, _ = bought(broker, ledger)
    new = broker.replace_leg(broker.stop_of(KEY))
    broker._unseen[KEY] = 30
    orders.watch(NOW)
    broker._unseen.clear()
    orders.watch(NOW)
    broker.trade(new, price="96")
    orders.watch(NOW)
    for one in (orders, manager(broker, ledger)):
        assert not one.journal.book.open_trades()
        assert one.journal.book.trades[TRADE].exit_reason == "stop"


def test_shares_that_one_stop_holds_too_many_of_are_freed_for_the_stop_that_needs_them():
    broker = FakeBroker()
    orders, trade = bought(broker)
    enter(orders, OTHER, OTHER_TRADE)
    broker.trade(broker.id_of(OTHER.client_order_id))
    orders.watch(NOW)
    broker.end(broker.stop_of(KEY))  # a person takes the stop of the ten away and sells four
    broker.by_hand("AAPL", Side.SELL, "4")
    broker.hidden = {broker.told[-1].execution_id}
    orders.watch(NOW)
    assert broker.held["AAPL"] == broker.guarded("AAPL") == broker.open_sales("AAPL") == 10
    assert trade.is_open


def test_a_sale_at_market_that_would_sell_more_than_is_left_is_taken_back():
    broker = FakeBroker()
    orders, trade = bought(broker)
    sold = orders.leave(trade, orders.open_orders(), NOW)
    broker.by_hand("AAPL", Side.SELL, "4")
    orders.watch(NOW)
    assert broker.book[sold.order_id].status is OrderStatus.CANCELED
    assert trade.open_quantity == broker.guarded("AAPL") == broker.open_sales("AAPL") == 6


def test_a_stop_that_was_taken_though_the_broker_said_no_is_the_stop():
    broker = FakeBroker()
    orders, stem = coin(broker)
    broker.faults = ["refuse_but_take"]
    watched = orders.watch(NOW)
    assert watched.protected.placed == [TRADE]
    assert not watched.protected.emergencies
    assert broker.sent[-1].client_order_id == f"{stem}-p1"
    assert broker.guarded("BTC/USD") == Decimal("0.25")


def test_a_person_who_closes_sells_no_more_than_the_broker_has():
    broker = FakeBroker()
    orders, _ = bought(broker)
    broker.end(broker.stop_of(KEY))
    broker.by_hand("AAPL", Side.SELL, "4")
    broker.hidden = {broker.told[-1].execution_id}
    orders.watch(LATER)
    (closing,) = orders.close("AAPL", "enough", LATER)
    assert closing.problem == ""
    assert broker.sent[-1].quantity == 6


def test_what_a_stop_sells_while_it_is_canceled_is_not_sold_again_though_the_numbers_differ():
    broker = FakeBroker()
    orders, trade = bought(broker)
    broker.held["AAPL"] -= 4  # nobody knows how
    orders.watch(NOW)
    live = orders.open_orders()
    broker.trade(broker.id_of(f"{STEM}-p1"), 2, "96")
    assert orders.leave(trade, live, NOW).quantity == broker.held["AAPL"] == 4


def test_an_entry_in_doubt_that_shows_late_is_not_called_off():
    broker = FakeBroker(faults=["lose_answer"])
    orders = manager(broker)
    orders.reconcile(NOW)
    with pytest.raises(EndpointError):
        enter(orders)
    broker.hidden = {broker.trade(broker.id_of(KEY)).execution_id}
    broker._unseen[KEY] = 2
    assert orders.cancel_entries() == ()
    assert orders.journal.book.quantities == {"AAPL": Decimal(10)}


def test_a_refused_sale_with_nothing_in_its_way_is_not_repeated():
    broker = FakeBroker()
    orders, trade = bought(broker)
    broker.faults = ["refuse", "refuse"]
    with pytest.raises(OrderRefusedError):
        orders.leave(trade, orders.open_orders(), NOW)
    assert broker.faults == ["refuse"]
