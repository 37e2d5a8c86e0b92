"""Comparing with the broker: it is right, strangers are imported, a lasting difference freezes."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.trader.orders.desk import KEY, TRADE, bought, enter, manager, simple
from tests.trader.orders.fake_broker import NOW, FakeBroker
from trader.core.costs import Costs
from trader.core.errors import EndpointError, StateError
from trader.core.trading import ActivityKind, Side
from trader.ledger.controls import Controls
from trader.ledger.store import Ledger
from trader.orders.journal import OrderJournal
from trader.orders.manager import OrderManager


def agreed(orders, broker) -> bool:
    return orders.journal.book.differences(broker.portfolio()) == {}


def controlled(broker: FakeBroker):
    ledger = Ledger(None)
    controls = Controls(ledger, now=lambda: NOW)
    orders, trade = bought(broker, ledger, controls)
    return orders, controls, ledger, trade


def test_the_broker_is_asked_in_the_order_in_which_nothing_is_missed():
    broker = FakeBroker()
    orders, _ = bought(broker)
    broker.calls.clear()
    orders.watch(NOW)
    assert broker.calls == ["account", "portfolio", "orders", "fills", "activities"]
    broker.calls.clear()
    orders.reconcile(NOW)
    assert broker.calls == ["portfolio", "orders", "fills"], "a slot asks for no more than it needs"


def test_nothing_is_recorded_when_nothing_was_found():
    broker = FakeBroker()
    orders, *_ = bought(broker)
    head = orders.journal.ledger.head
    orders.watch(NOW)
    assert orders.journal.ledger.head == head


def test_what_the_account_held_before_is_imported_and_its_past_is_not_booked_again():
    broker = FakeBroker(cash=Decimal(1_000))
    broker.by_hand("MSFT", Side.BUY, "3", "100")
    broker.move(ActivityKind.TRANSFER, amount="99300")
    ledger = Ledger(None)
    orders = manager(broker, ledger)
    compared = orders.reconcile(NOW)
    assert compared.problem == ""
    assert compared.news.imported == ("import-MSFT-1",)
    assert orders.journal.book.quantities == {"MSFT": Decimal(3)}
    assert orders.journal.book.transfers == 0
    again = manager(broker, ledger)
    assert again.reconcile(NOW).news is None
    assert again.journal.book.quantities == {"MSFT": Decimal(3)}


def test_shares_and_orders_of_a_person_are_counted_and_never_touched():
    broker = FakeBroker()
    orders, _ = bought(broker)
    broker.by_hand("AAPL", Side.BUY, "5", "101")
    broker.submit(simple("MSFT", "2"))  # straight at the broker, past the manager
    watched = orders.watch(NOW)
    assert watched.compared.problem == ""
    assert len(watched.compared.news.imported) == 1
    assert not watched.protected.changed
    assert orders.journal.book.quantities == {"AAPL": Decimal(15)}
    assert broker.guarded("AAPL") == 10
    stranger = broker.id_of(simple("MSFT", "2").client_order_id)
    assert any(order.order_id == stranger for order in watched.compared.live)
    assert orders.watch(NOW).compared.news is None, "a stranger is told once"


def test_a_sale_by_hand_is_booked_to_imports_first_and_then_to_ours():
    broker = FakeBroker(held={"AAPL": Decimal(2)})
    orders, trade = bought(broker)
    for leg in (broker.stop_of(KEY),):
        broker.end(leg)
    broker.by_hand("AAPL", Side.SELL, "5", "90")
    watched = orders.watch(NOW)
    assert watched.compared.problem == ""
    assert trade.open_quantity == 7
    assert (trade.exit_quantity, trade.exit_reason) == (Decimal(3), "other")
    assert agreed(orders, broker)
    assert broker.guarded("AAPL") == 7


def test_a_fill_that_comes_after_its_estimate_moves_no_shares_but_makes_the_price_right():
    broker, ledger = FakeBroker(), Ledger(None)
    orders = manager(broker, ledger)
    orders.reconcile(NOW)
    enter(orders)
    first = broker.trade(broker.id_of(KEY), 4, "100")
    second = broker.trade(broker.id_of(KEY), 6, "100.33")
    broker.hidden = {first.execution_id, second.execution_id}
    assert orders.watch(NOW).compared.problem == ""
    broker.hidden.clear()
    again = manager(broker, ledger)
    assert again.watch(NOW).compared.news.late == (first.execution_id, second.execution_id)
    trade = again.journal.book.trades[TRADE]
    assert trade.entry_value == 400 + 6 * Decimal("100.33")
    assert trade.entry_quantity == 10
    assert again.journal.book.cash == broker.cash
    assert again.watch(NOW).compared.news is None


def test_an_average_that_the_broker_rounds_is_made_right_by_the_fills_themselves():
    broker, ledger = FakeBroker(), Ledger(None)
    orders = manager(broker, ledger)
    orders.reconcile(NOW)
    enter(orders)
    fill = broker.trade(broker.id_of(KEY), price="100.0033")
    broker._set(broker.id_of(KEY), filled_average_price=Decimal("100.0029"))
    broker.hidden = {fill.execution_id}
    assert orders.watch(NOW).compared.problem == "", "less than a cent is no difference"
    assert orders.journal.book.cash != broker.cash
    broker.hidden.clear()
    orders.watch(NOW)
    assert orders.journal.book.cash == broker.cash
    assert manager(broker, ledger).journal.book.cash == broker.cash


def test_fills_told_newest_first_to_a_process_that_dies_between_them_are_all_found_again():
    broker, ledger = FakeBroker(shuffled=True), Ledger(None)
    orders = manager(broker, ledger)
    orders.reconcile(NOW)
    enter(orders)
    broker.by_hand("MSFT", Side.BUY, "1")
    broker.trade(broker.id_of(KEY))
    broker.by_hand("MSFT", Side.BUY, "2")

    class Dying(Ledger):
        def append(self, kind, record_id, body):
            if kind == "fill" and self.last("fill") is not None:
                raise RuntimeError("the second one is not written any more")
            return super().append(kind, record_id, body)

    ledger.__class__ = Dying
    with pytest.raises(RuntimeError):
        orders.collect_fills()
    ledger.__class__ = Ledger
    again = manager(broker, ledger)
    assert again.watch(NOW).compared.problem == ""
    assert agreed(again, broker)


def test_a_fill_that_an_estimate_covers_in_part_is_booked_for_the_rest():
    broker, ledger = FakeBroker(), Ledger(None)
    orders = manager(broker, ledger)
    orders.reconcile(NOW)
    enter(orders)
    hidden = broker.trade(broker.id_of(KEY), 4, "100")
    broker.hidden = {hidden.execution_id}
    orders.reconcile(NOW)
    broker.told[0] = type(hidden)(
        **{name: getattr(hidden, name) for name in hidden.__slots__} | {"quantity": Decimal(10)}
    )
    broker.trade(broker.id_of(KEY), 6, "100")
    broker.told.pop()  # the broker tells both at once, as one fill of ten
    broker.hidden.clear()
    again = manager(broker, ledger)
    again.reconcile(NOW)
    assert again.journal.book.quantities == {"AAPL": Decimal(10)}
    assert again.journal.book.cash == broker.cash
    assert manager(broker, ledger).journal.book.cash == broker.cash


def test_money_that_comes_and_goes_is_booked_and_no_profit():
    broker = FakeBroker()
    orders, trade = bought(broker)
    broker.move(ActivityKind.TRANSFER, amount="5000")
    broker.move(ActivityKind.DIVIDEND, amount="2.50", symbol="AAPL")
    broker.move(ActivityKind.FEE, amount="-0.02")
    compared = orders.reconcile(NOW)  # the difference makes it ask for activities
    assert compared.problem == ""
    assert compared.news.activities == ("a1", "a2", "a3")
    book = orders.journal.book
    assert (book.transfers, book.income) == (Decimal(5000), Decimal("2.48"))
    assert (book.cash, trade.profit) == (broker.cash, -trade.entry_value)
    rebuilt = manager(broker, orders.journal.ledger).journal.book
    assert (rebuilt.cash, rebuilt.transfers, rebuilt.income) == (
        book.cash,
        book.transfers,
        book.income,
    )


def test_another_account_is_refused_with_the_way_out():
    broker, ledger = FakeBroker(), Ledger(None)
    bought(broker, ledger)
    broker.account_id = "account-2"
    with pytest.raises(StateError, match=r"belongs to account-1: .*begin again"):
        manager(broker, ledger).reconcile(NOW)


def test_a_blocked_account_buys_nothing():
    broker = FakeBroker(blocked="trading is blocked")
    orders, _ = bought(broker)
    assert "trading is blocked" in orders.problem


def test_before_the_first_comparison_and_after_a_failed_one_nothing_may_be_bought():
    broker = FakeBroker()
    orders = manager(broker)
    assert orders.problem
    orders.reconcile(NOW)
    assert orders.problem == ""
    for name in ("portfolio", "orders", "fills"):
        broker.down = {name}
        with pytest.raises(EndpointError):
            orders.reconcile(NOW)
        assert orders.problem
    broker.down = set()
    orders.reconcile(NOW)
    assert orders.problem == ""


@pytest.mark.parametrize("endpoint", ["orders", "fills", "portfolio", "activities", "account"])
def test_exits_and_cancels_work_while_the_comparison_fails(endpoint):
    broker = FakeBroker()
    orders, trade = bought(broker)
    broker.down = {endpoint}
    with pytest.raises(EndpointError):
        orders.watch(NOW)
    sold = orders.leave(trade, orders.orders_of(trade), NOW)
    assert sold.quantity == 10
    assert orders.cancel(sold.client_order_id).status.is_final


@pytest.mark.parametrize("replaced", [False, True])
def test_what_its_stop_has_sold_is_not_sold_again_while_the_comparison_fails(replaced):
    broker = FakeBroker()
    orders, trade = bought(broker)
    stop = broker.stop_of(KEY)
    broker.trade(broker.replace_leg(stop) if replaced else stop, price="96")
    broker.down = {"portfolio", "fills"}
    already = len(broker.sent)
    assert orders.leave(trade, orders.orders_of(trade), NOW) is None
    assert len(broker.sent) == already
    assert not trade.is_open


def test_what_took_the_place_of_a_stop_is_canceled_before_a_sale_while_the_comparison_fails():
    broker = FakeBroker()
    orders, trade = bought(broker)
    new = broker.replace_leg(broker.stop_of(KEY))
    broker.down = {"portfolio", "orders"}
    assert orders.leave(trade, orders.orders_of(trade), NOW).quantity == 10
    assert broker.book[new].status.is_final


def test_an_entry_that_has_not_arrived_is_not_sent_while_the_numbers_differ():
    broker = FakeBroker()
    ledger = Ledger(None)
    controls = Controls(ledger, now=lambda: NOW)
    orders = manager(broker, ledger, controls)
    orders.reconcile(NOW)
    broker.faults = ["lose_request"]
    with pytest.raises(EndpointError):
        enter(orders)
    broker.cash -= 500
    reborn = manager(broker, ledger, controls)
    assert "cash" in reborn.reconcile(NOW).problem
    assert len(broker.sent) == 1
    controls.acknowledge("a fee that nobody told of", at=NOW)
    assert reborn.reconcile(NOW).problem == ""
    assert reborn.reconcile(NOW).problem == ""
    assert [order.client_order_id for order in broker.orders()] == [KEY]


def test_a_blocked_account_is_not_sent_an_entry_that_has_not_arrived():
    broker = FakeBroker(blocked="trading is blocked")
    orders = manager(broker)
    orders.reconcile(NOW)
    broker.faults = ["lose_request"]
    with pytest.raises(EndpointError):
        enter(orders)
    orders.watch(NOW)
    assert len(broker.sent) == 1


def test_a_difference_is_given_a_moment_to_go_away():
    broker, waited = FakeBroker(), []
    journal = OrderJournal(Ledger(None), cash=Decimal(100_000), costs=Costs())
    controls = Controls(journal.ledger, now=lambda: NOW)

    def wait(seconds: float) -> None:
        waited.append(seconds)
        broker.cash = Decimal(100_000)

    orders = OrderManager(broker, journal, controls=controls, wait=wait)
    broker.cash -= 7  # of an answer that is older than the others
    assert orders.reconcile(NOW).problem == ""
    assert len(waited) == 1
    assert not controls.frozen


def test_a_lasting_difference_freezes_trading_until_a_person_takes_the_brokers_numbers():
    broker = FakeBroker()
    orders, controls, ledger, trade = controlled(broker)
    broker.held["AAPL"] -= 4  # nobody knows how
    broker.cash += 300
    watched = orders.watch(NOW)
    assert "the broker holds 6 AAPL, the ledger 10" in watched.compared.problem
    assert controls.frozen == watched.compared.problem
    assert controls.blocked("MSFT")
    assert watched.compared.lacking == {TRADE: Decimal(4)}
    orders.watch(NOW)
    assert len([*ledger.records("reconciliation")]) == 1, "the same difference is told once"
    assert len([*ledger.records("control")]) == 1

    controls.acknowledge("an error of the broker, they say", at=NOW)
    assert orders.watch(NOW).compared.problem == ""
    assert controls.frozen == ""
    assert agreed(orders, broker)
    assert (trade.open_quantity, orders.journal.book.corrections) == (Decimal(6), Decimal(0))
    rebuilt = manager(broker, ledger)
    assert agreed(rebuilt, broker)
    assert rebuilt.reconcile(NOW).problem == ""


@pytest.mark.parametrize(
    ("shares", "cash", "transfer"),
    [
        (-10, 1_000, 0),  # sold without a word
        (-10, 900, 0),
        (-4, 5_400, 5_000),  # sold, and money paid in
        (0, 700, 700),
        (0, -700, -700),
        (5, -500, 0),  # bought without a word
        (5, -800, -300),
        (5, 0, 0),
        (-5, 0, 0),  # shares that are gone are a loss
        (-5, -100, -100),
    ],
)
def test_a_trade_that_nobody_told_of_is_no_money_paid_in_or_out(shares, cash, transfer):
    broker, ledger = FakeBroker(), Ledger(None)
    orders, _ = bought(broker, ledger)
    broker.held["AAPL"] += shares
    broker.cash += cash
    assert orders.acknowledge("seen")
    assert orders.journal.book.corrections == transfer
    assert manager(broker, ledger).journal.book.corrections == transfer
    assert agreed(orders, broker)


@pytest.mark.parametrize("told", [True, False])
def test_shares_that_cover_a_short_of_a_person_are_none_to_be_sold(told):
    broker, ledger = FakeBroker(), Ledger(None)
    orders, _ = bought(broker, ledger)
    broker.held["TSLA"] = Decimal(-5)
    broker.cash += 500
    orders.acknowledge("a short of mine")
    if told:
        broker.held["TSLA"] = Decimal(0)  # the scripted broker knows no shorts
        broker.by_hand("TSLA", Side.BUY, "8")
        broker.held["TSLA"] -= 5
    else:
        broker.held["TSLA"] = Decimal(3)
        broker.cash -= 800
        orders.acknowledge("covered")
    assert orders.watch(NOW).compared.problem == ""
    for book in (orders.journal.book, manager(broker, ledger).journal.book):
        assert book.quantities["TSLA"] == 3
        assert [trade.open_quantity for trade in book.open_trades("TSLA")] == [3]


def test_an_acknowledgement_is_good_for_the_difference_it_was_given_for():
    broker = FakeBroker()
    orders, controls, *_ = controlled(broker)
    broker.cash -= 1
    orders.watch(NOW)
    controls.acknowledge("one dollar, so be it", at=NOW)
    broker.cash -= 1000
    orders.watch(NOW)
    assert "cash" in controls.frozen
    assert not agreed(orders, broker)


def test_a_difference_that_goes_away_leaves_the_book_alone_and_waits_for_the_person():
    broker = FakeBroker()
    orders, controls, *_ = controlled(broker)
    broker.cash -= 1
    orders.watch(NOW)
    broker.cash += 1
    assert orders.watch(NOW).compared.problem == ""
    assert controls.frozen
    controls.acknowledge("it came back", at=NOW)
    orders.watch(NOW)
    assert controls.frozen == ""
    assert orders.journal.book.corrections == 0


def test_stops_cover_what_the_broker_has_even_while_the_numbers_differ():
    broker = FakeBroker()
    orders, _ = bought(broker)
    broker.end(broker.stop_of(KEY))
    broker.held["AAPL"] -= 4
    watched = orders.watch(NOW)
    assert watched.protected.placed == [TRADE]
    assert broker.guarded("AAPL") == 6


def test_a_fill_between_two_answers_is_no_difference():
    class Busy(FakeBroker):
        def orders(self, *, open_only=True):
            found = super().orders(open_only=open_only)
            stop = self.stop_of(KEY)
            if not self.book[stop].status.is_final:
                self.trade(stop, price="96")
            return found

    broker = FakeBroker()
    ledger = Ledger(None)
    controls = Controls(ledger, now=lambda: NOW)
    orders, trade = bought(broker, ledger, controls)
    broker.__class__ = Busy
    assert orders.reconcile(NOW).problem == ""
    assert controls.frozen == ""
    assert not trade.is_open


def test_a_settled_order_is_never_asked_for_again():
    broker, ledger = FakeBroker(), Ledger(None)
    orders, _ = bought(broker, ledger)
    broker.trade(broker.stop_of(KEY), price="96")
    orders.watch(NOW)
    again = manager(broker, ledger)
    again.reconcile(NOW)
    broker.calls.clear()
    again.reconcile(NOW)
    assert "order" not in broker.calls
    assert "order_by_id" not in broker.calls
