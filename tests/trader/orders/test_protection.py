"""Protection: every share that was bought has its stop, and no two orders sell the same share."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.trader.orders.desk import KEY, LATER, TRADE, bought, enter, manager, simple
from tests.trader.orders.fake_broker import NOW, FakeBroker
from trader.core.errors import OrderRefusedError
from trader.core.trading import OrderStatus, OrderType, Side, TimeInForce
from trader.ledger.store import Ledger
from trader.orders.protection import stop_order, target_waits, unprotected

STEM = "tr-20250303-AAPL-0123456789"


def held(broker: FakeBroker, intent, trade_id: str = TRADE):
    orders = manager(broker)
    orders.reconcile(NOW)
    enter(orders, intent, trade_id)
    broker.trade(broker.id_of(intent.client_order_id))
    return orders


def test_shares_without_a_live_stop_are_found_and_a_held_stop_counts_as_one():
    broker = FakeBroker()
    orders, trade = bought(broker)
    journal = orders.journal
    stop, target = broker.book[broker.stop_of(KEY)], broker.book[broker.target_of(KEY)]
    assert unprotected(journal, (stop, target)) == ()
    assert unprotected(journal, (target,)) == ((trade, Decimal(96)),)
    gone = replace(stop, status=OrderStatus.CANCELED)
    assert unprotected(journal, (gone, target)) == ((trade, Decimal(96)),)
    half = replace(stop, quantity=Decimal(5))
    assert unprotected(journal, (half,)) == ((trade, Decimal(96)),)


@pytest.mark.parametrize(
    ("symbol", "quantity", "kind", "lives", "limit"),
    [
        ("AAPL", "10", OrderType.STOP, TimeInForce.GTC, None),
        ("AAPL", "10.5", OrderType.STOP, TimeInForce.DAY, None),
        ("BTC/USD", "0.25", OrderType.STOP_LIMIT, TimeInForce.GTC, Decimal("91.20")),
        ("BTC/USD", "2", OrderType.STOP_LIMIT, TimeInForce.GTC, Decimal("91.20")),
    ],
)
def test_each_instrument_has_its_kind_of_stop(symbol, quantity, kind, lives, limit):
    stop = stop_order("id", symbol, Decimal(quantity), Decimal(96))
    assert (stop.order_type, stop.time_in_force, stop.limit_price) == (kind, lives, limit)
    assert (stop.side, stop.stop_price, stop.quantity) == (
        Side.SELL,
        Decimal(96),
        Decimal(quantity),
    )


def test_the_limit_of_a_coin_below_a_dollar_keeps_its_digits():
    stop = stop_order("id", "SHIB/USD", Decimal(1000), Decimal("0.000012345"))
    assert stop.limit_price == Decimal("0.000011727")


@pytest.mark.parametrize(("symbol", "quantity"), [("AAPL", "2.5"), ("BTC/USD", "0.125")])
def test_what_carries_no_legs_gets_its_stop_once_it_is_bought(symbol, quantity):
    broker = FakeBroker()
    intent = simple(symbol, quantity)
    orders = held(broker, intent)
    assert orders.watch(NOW).protected.placed == [TRADE]
    assert broker.guarded(symbol) == Decimal(quantity)
    assert not orders.watch(NOW).protected.changed


def test_a_part_of_a_share_gets_a_new_stop_in_every_session():
    broker = FakeBroker()
    orders = held(broker, simple("AAPL", "2.5"))
    for number in range(1, 5):
        assert orders.watch(LATER).protected.placed == [TRADE]
        assert broker.id_of(f"{STEM}-p{number}")
        broker.close_session()
    assert len(broker.sent) == 5


def test_the_legs_of_an_entry_filled_in_part_guard_nothing_so_its_rest_goes_and_a_stop_comes():
    broker = FakeBroker()
    orders = manager(broker)
    orders.reconcile(NOW)
    enter(orders)
    broker.trade(broker.id_of(KEY), 4)
    assert orders.watch(NOW).protected.placed == [TRADE]
    assert broker.book[broker.id_of(KEY)].status is OrderStatus.CANCELED
    assert broker.guarded("AAPL") == 4
    assert orders.journal.book.trades[TRADE].open_quantity == 4
    assert not orders.watch(NOW).protected.changed


def test_legs_that_outlive_an_entry_filled_in_part_are_no_guard():
    broker = FakeBroker()
    orders = manager(broker)
    orders.reconcile(NOW)
    enter(orders)
    broker.trade(broker.id_of(KEY), 4)
    broker._set(broker.id_of(KEY), status=OrderStatus.CANCELED)  # and its legs stay `held`
    compared = orders.reconcile(NOW)
    trade = orders.journal.book.trades[TRADE]
    assert unprotected(orders.journal, compared.live) == ((trade, Decimal(96)),)
    broker._set(broker.stop_of(KEY), quantity=Decimal(4))
    assert orders.watch(NOW).protected.placed == [TRADE]
    assert broker.guarded("AAPL") == 4


def test_a_rest_that_fills_while_it_is_canceled_is_guarded_by_its_own_legs():
    class Late(FakeBroker):
        def cancel(self, order_id):
            if not self.book[order_id].status.is_final:
                self.trade(order_id)

    broker = Late()
    orders = manager(broker)
    orders.reconcile(NOW)
    enter(orders)
    broker.trade(broker.id_of(KEY), 4)
    orders.watch(NOW)
    assert broker.guarded("AAPL") == 10
    assert len(broker.sent) == 1


def test_a_stop_filled_in_part_covers_the_rest():
    broker = FakeBroker()
    orders, trade = bought(broker)
    broker.trade(broker.stop_of(KEY), 3, "96")
    assert not orders.watch(NOW).protected.changed
    assert trade.open_quantity == 7


def test_a_target_filled_in_part_leaves_no_stop_for_more_than_is_held():
    broker = FakeBroker(shrinks=False)
    orders, _ = bought(broker)
    broker.trade(broker.target_of(KEY), 3, "110")
    orders.watch(NOW)
    assert broker.guarded("AAPL") == 7
    assert broker.open_sales("AAPL") == 7
    assert broker.book[broker.stop_of(KEY)].status is OrderStatus.CANCELED


def test_a_sale_that_ended_half_way_leaves_the_rest_guarded():
    broker = FakeBroker()
    orders, trade = bought(broker)
    sold = orders.leave(trade, orders.open_orders(), NOW)
    broker.trade(sold.order_id, 4, "99")
    assert not orders.watch(NOW).protected.changed, "the rest of the sale is on its way"
    broker.close_session()
    assert orders.watch(LATER).protected.placed == [TRADE]
    assert broker.guarded("AAPL") == 6


def test_a_target_that_holds_the_shares_gives_way_to_the_stop():
    broker = FakeBroker()
    orders, trade = bought(broker)
    broker._set(broker.stop_of(KEY), status=OrderStatus.CANCELED)  # the stop alone is lost
    assert target_waits(orders.journal, trade, orders.open_orders())
    assert orders.watch(NOW).protected.placed == [TRADE]
    assert broker.guarded("AAPL") == 10
    assert not target_waits(orders.journal, trade, orders.open_orders())


def test_stop_and_shares_follow_a_split():
    broker, ledger = FakeBroker(), Ledger(None)
    orders, trade = bought(broker, ledger)
    broker.split("AAPL", 4)
    watched = orders.watch(NOW)
    assert watched.compared.problem == ""
    assert not watched.protected.changed, "the broker carried the stop over"
    assert (trade.open_quantity, trade.entry_price) == (Decimal(40), Decimal(25))
    again = manager(broker, ledger)
    assert again.journal.levels(TRADE) == (Decimal(24), Decimal("27.5"))

    broker.end(broker.stop_of(KEY))
    again.watch(NOW)
    guard = broker.book[broker.id_of(f"{STEM}-p1")]
    assert (guard.quantity, guard.stop_price) == (Decimal(40), Decimal(24))


def test_a_stop_that_a_split_left_at_the_old_price_is_placed_anew():
    broker = FakeBroker()
    orders, _ = bought(broker)
    stop = broker.book[broker.stop_of(KEY)]
    broker.split("AAPL", 2)
    broker._set(stop.order_id, stop_price=stop.stop_price)
    assert orders.watch(NOW).protected.placed == [TRADE]
    guard = broker.book[broker.id_of(f"{STEM}-p1")]
    assert (guard.quantity, guard.stop_price) == (Decimal(20), Decimal(48))
    assert broker.open_sales("AAPL") == 20


def test_a_stop_that_followed_a_split_stands_until_the_split_is_told():
    broker = FakeBroker()
    orders, _ = bought(broker)
    broker.split("AAPL", 4)
    told = broker.moved.pop()
    watched = orders.watch(NOW)
    assert watched.compared.problem == "the broker holds 40 AAPL, the ledger 10"
    assert not watched.protected.changed
    broker.moved.append(told)
    watched = orders.watch(NOW)
    assert watched.compared.problem == ""
    assert not watched.protected.changed
    assert broker.guarded("AAPL") == broker.open_sales("AAPL") == 40


def test_a_stop_that_is_refused_becomes_a_sale_at_market():
    broker = FakeBroker()
    orders, _ = bought(broker)
    broker.end(broker.stop_of(KEY))
    broker.faults = ["refuse"]
    watched = orders.watch(NOW)
    assert watched.protected.emergencies == {TRADE: "not now"}
    sale = broker.book[broker.id_of(f"{STEM}-m1")]
    assert (sale.order_type, sale.quantity) == (OrderType.MARKET, Decimal(10))
    assert orders.journal.intents[f"{STEM}-m1"].reason == "not now"
    assert not orders.watch(NOW).protected.changed
    broker.trade(sale.order_id, price="95")
    orders.watch(NOW)
    assert orders.journal.book.trades[TRADE].exit_reason == "protection"


def test_a_trade_that_can_be_neither_guarded_nor_sold_is_told_and_tried_again():
    broker = FakeBroker()
    orders, _ = bought(broker)
    broker.end(broker.stop_of(KEY))
    broker.faults = ["refuse", "refuse"]
    assert orders.watch(NOW).protected.naked == {TRADE: "not now"}
    assert orders.watch(NOW).protected.placed == [TRADE]


def test_a_stop_above_the_price_is_not_placed_but_sold():
    broker = FakeBroker()
    orders, _ = bought(broker)
    broker.end(broker.stop_of(KEY))
    broker.price = Decimal(95)
    watched = orders.watch(NOW)
    assert "not above the stop 96" in watched.protected.emergencies[TRADE]
    assert broker.book[broker.id_of(f"{STEM}-m1")].order_type is OrderType.MARKET


def test_a_coin_that_fell_through_the_limit_of_its_stop_is_sold():
    broker = FakeBroker()
    orders = held(broker, simple("BTC/USD", "0.5"))
    orders.watch(NOW)
    broker.price = Decimal(93)
    assert not orders.watch(NOW).protected.changed, "the stop sells down to its limit"
    broker.price = Decimal(91)
    assert TRADE in orders.watch(NOW).protected.emergencies
    assert broker.open_sales("BTC/USD") == Decimal("0.5")
    sale = broker.book[broker.id_of("tr-20250303-BTCUSD-0123456789-m1")]
    assert (sale.order_type, sale.time_in_force) == (OrderType.MARKET, TimeInForce.GTC)


@pytest.mark.parametrize("fault", ["lose_request", "lose_answer", "rate_limit"])
def test_a_stop_in_doubt_is_not_placed_twice(fault):
    broker = FakeBroker(blind=1)
    orders, _ = bought(broker)
    broker.end(broker.stop_of(KEY))
    broker.faults = [fault]
    assert TRADE in orders.watch(NOW).protected.naked
    watched = orders.watch(NOW)
    assert not watched.protected.changed
    assert watched.compared.resolved == (f"{STEM}-p1",)
    assert broker.guarded("AAPL") == broker.open_sales("AAPL") == 10


def test_while_a_stop_is_in_doubt_no_other_one_is_placed():
    broker = FakeBroker()
    orders, _ = bought(broker)
    broker.end(broker.stop_of(KEY))
    broker.faults = ["lose_request"]
    orders.watch(NOW)
    broker.down = {"order"}  # nobody can say whether it arrived
    assert "not known yet" in orders.watch(NOW).protected.naked[TRADE]
    assert len(broker.sent) == 2


def test_two_trades_in_one_symbol_have_a_stop_each():
    broker = FakeBroker()
    orders, _ = bought(broker)
    other = replace(simple("AAPL", "5"), client_order_id="tr-20250303-AAPL-other-e")
    enter(orders, other, "run-20250303T1430-AAPL-rsi_reversion")
    broker.trade(broker.id_of(other.client_order_id))
    assert orders.watch(NOW).protected.placed == ["run-20250303T1430-AAPL-rsi_reversion"]
    assert broker.guarded("AAPL") == 15
    assert broker.id_of("tr-20250303-AAPL-other-p1")


def test_imported_shares_are_left_as_they_are():
    broker = FakeBroker(held={"AAPL": Decimal(7)})
    orders = manager(broker)
    assert not orders.watch(NOW).protected.changed
    assert broker.sent == []


def test_one_trade_that_cannot_be_mended_does_not_keep_the_others_from_it():
    class Choosy(FakeBroker):
        def submit(self, intent):
            if intent.symbol == "AAPL" and intent.side is Side.SELL:
                raise OrderRefusedError("not this one")
            return super().submit(intent)

    broker = FakeBroker()
    orders, _ = bought(broker)
    other = simple("MSFT", "5")
    enter(orders, other, "run-20250303T1430-MSFT-atr_trend")
    broker.trade(broker.id_of(other.client_order_id))
    broker.end(broker.stop_of(KEY))
    broker.__class__ = Choosy
    watched = orders.watch(NOW)
    assert set(watched.protected.naked) == {TRADE}
    assert watched.protected.placed == ["run-20250303T1430-MSFT-atr_trend"]
