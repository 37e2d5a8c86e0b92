"""Replacing an order: what it becomes, what it keeps, and when it is refused."""

from __future__ import annotations

from decimal import Decimal

import pytest
from alpaca.trading.requests import ReplaceOrderRequest

from tests.trader.broker.floor import FLAT, Floor, HandBars, opening
from trader.broker.exchange.liquidity import Liquidity
from trader.core.trading import OrderStatus

QUIET = [FLAT] * 6


@pytest.fixture
def market() -> Floor:
    """Open, so that orders are on the exchange at once."""
    return Floor(*QUIET, start=opening(1))


def legs_of(market: Floor, head: str) -> dict[str, dict]:
    """The open legs by their type."""
    return {leg["type"]: leg for leg in market.raw(head)["legs"] if leg["status"] != "replaced"}


def test_another_order_takes_the_place_of_the_old_one(market):
    old = market.buy(type="limit", limit_price=90, client_order_id="old")
    change = ReplaceOrderRequest(limit_price=91, qty=7, client_order_id="new")
    new = market.client.replace_order_by_id(old, change)
    assert (new.client_order_id, new.limit_price, new.qty) == ("new", "91", "7")
    assert (str(new.replaces), new.status) == (old, "new")
    before = market.raw(old)
    assert (before["status"], before["replaced_by"]) == ("replaced", str(new.id))
    assert (before["limit_price"], before["replaced_at"]) == ("90", "2025-06-30T13:30:00Z")
    assert market.events() == ["new old", "replaced old", "new new"]
    assert market.client.get_account().buying_power == str(10_000 - 7 * 91)


def test_an_id_is_found_when_none_is_given_and_each_id_is_used_once(market):
    first = market.buy(type="limit", limit_price=90)
    status, second = market.replace(first, limit_price=91)
    assert status == 200
    assert second["client_order_id"] not in ("c1", None)
    assert market.replace(second["id"], limit_price=92)[0] == 200
    again = market.buy(type="limit", limit_price=80, client_order_id="mine")
    status, body = market.replace(again, limit_price=81, client_order_id="c1")
    assert (status, body["code"]) == (422, 40010001)
    assert body["message"] == "client_order_id must be unique"


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({}, 403, "order parameters are not changed"),
        ({"limit_price": "90.00"}, 403, "order parameters are not changed"),
        ({"client_order_id": "other"}, 403, "order parameters are not changed"),
        ({"limit_price": 90.005}, 422, "invalid limit_price 90.005. sub-penny increment"),
        ({"stop_price": 95}, 422, "limit orders must not have stop_price"),
        ({"trail": 1}, 422, "limit orders must not have trail"),
        ({"qty": "1.5"}, 422, "qty must be integer, not 1.5"),
        ({"qty": 0}, 422, "qty must be > 0"),
        ({"qty": 112}, 403, "insufficient buying power"),
        ({"time_in_force": "ever"}, 422, "invalid time_in_force 'ever'"),
        ({"side": "sell"}, 422, "the order field side is not offered"),
    ],
)
def test_what_cannot_be_replaced_is_refused_and_changes_nothing(market, changes, status, message):
    order = market.buy(type="limit", limit_price=90)
    before = (market.raw(order), market.events())
    answer = market.replace(order, **changes)
    assert answer[0] == status
    assert answer[1]["message"].startswith(message)
    assert (market.raw(order), market.events()) == before


def test_only_an_order_on_the_exchange_can_be_replaced(market):
    order = market.buy(type="limit", limit_price=90)
    market.client.cancel_order_by_id(order)
    message = 'order is already in "canceled" state'
    assert market.replace(order, limit_price=91)[1]["message"] == message
    amount = market.buy(qty=None, notional=100)
    assert "notional orders" in market.replace(amount, qty=5)[1]["message"]
    night = Floor(*QUIET)
    waiting = night.buy(type="limit", limit_price=90)
    status, body = night.replace(waiting, limit_price=91)
    assert (status, body["code"]) == (422, 42210000)
    assert body["message"] == "unable to replace order, order isn't sent to exchange yet"
    nobody = "11111111-2222-3333-4444-555555555555"
    assert night.replace(nobody, limit_price=91)[0] == 404


def test_the_new_order_does_not_trade_on_the_bar_that_was_open_when_it_came():
    market = Floor(*[FLAT] * 2, (100, 100, 80, 90), FLAT, start=opening(1))
    old = market.buy(type="limit", limit_price=85, time_in_force="gtc")
    market.exchange.advance(opening(2).replace(hour=18))
    new = market.replace(old, limit_price=99)[1]["id"]
    market.to_close(2)
    assert market.fills() == []
    market.to_close(3)
    assert market.order(new).status is OrderStatus.NEW  # the open of 100 and low of 100


def test_a_stop_and_a_trail_are_replaced_and_a_trailing_stop_keeps_its_mark(market):
    market.buy(qty=20)
    market.to_close(1)
    market.exchange.advance(opening(2))
    stop = market.sell(type="stop", stop_price=90, time_in_force="gtc")
    assert market.replace(stop, stop_price=95, qty=9)[1]["stop_price"] == "95"
    trailing = market.sell(type="trailing_stop", trail_percent=5, time_in_force="gtc")
    new = market.replace(trailing, trail=10)[1]
    assert (new["trail_percent"], new["stop_price"], new["hwm"]) == ("10", "90", "100")
    assert market.client.get_open_position("AAPL").qty_available == "1"
    assert market.replace(new["id"], qty=12)[1]["message"].startswith("insufficient qty available")
    assert market.replace(new["id"], trail=100)[0] == 422


def test_a_replaced_trailing_stop_keeps_its_mark_when_the_price_has_fallen():
    market = Floor(FLAT, FLAT, (100, 110, 99, 106), FLAT)
    market.buy()
    market.to_close(1)
    trailing = market.sell(type="trailing_stop", trail_price=20, time_in_force="gtc")
    market.to_close(2)
    new = market.replace(trailing, trail=6)[1]
    assert (new["trail_price"], new["hwm"], new["stop_price"]) == ("6", "110", "104")


def test_a_replaced_entry_keeps_its_legs(market):
    old = market.bracket(85, 110, type="limit", limit_price=90)
    new = market.replace(old, limit_price=95)[1]["id"]
    assert market.raw(old)["legs"] is None
    legs = market.raw(new)["legs"]
    assert [leg["status"] for leg in legs] == ["held", "held"]
    assert len(market.client.get_orders()) == 1
    wrong = market.replace(new, limit_price=85)[1]
    assert wrong["message"] == "stop_loss.stop_price must be <= base_price - 0.01"
    market.client.cancel_order_by_id(new)
    assert {leg["status"] for leg in market.raw(new)["legs"]} == {"canceled"}


def test_legs_are_replaced_by_their_prices_and_go_on_together():
    market = Floor(FLAT, FLAT, FLAT, (100, 108, 97, 98))
    head = market.bracket(95, 110)
    market.to_close(1)
    market.exchange.advance(opening(2))
    legs = legs_of(market, head)
    stop = market.replace(legs["stop"]["id"], stop_price=97)[1]
    assert (stop["status"], stop["order_class"]) == ("held", "bracket")
    target = market.replace(legs["limit"]["id"], limit_price=107)[1]
    assert target["status"] == "new"
    assert "must be >= base_price" in market.replace(target["id"], limit_price=97)[1]["message"]
    for change in ({"qty": 5}, {"time_in_force": "day"}):
        message = market.replace(target["id"], **change)[1]["message"]
        assert message == "only limit_price and stop_price of bracket orders can be replaced"
    assert market.client.get_open_position("AAPL").qty_available == "0"
    market.to_close(3)
    assert market.fills()[1:] == [("sell", Decimal(97))]  # the stop, and it alone
    assert market.order(target["id"]).status is OrderStatus.CANCELED
    assert len(market.raw(head)["legs"]) == 4


def test_the_parent_of_a_pair_of_exits_is_replaced_with_its_stop():
    market = Floor(FLAT, FLAT, FLAT, (100, 106, 99, 100))
    market.buy()
    market.to_close(1)
    market.exchange.advance(opening(2))
    legs = {"stop_loss": {"stop_price": 95}, "take_profit": {"limit_price": 110}}
    pair = market.sell(type="limit", order_class="oco", time_in_force="gtc", **legs)
    new = market.replace(pair, limit_price=105)[1]["id"]
    assert market.replace(new, limit_price=95)[0] == 422
    market.to_close(3)
    assert market.fills()[1:] == [("sell", Decimal(105))]
    assert market.raw(new)["legs"][0]["status"] == "canceled"


def test_what_has_traded_stays_with_the_old_order_and_the_new_one_is_for_the_rest():
    data = HandBars({"AAPL": [FLAT] * 5}, volume=100)
    market = Floor(data=data, liquidity=Liquidity(volume_share=0.04), start=opening(1))
    old = market.buy(time_in_force="gtc", type="limit", limit_price=101)
    market.to_close(1)
    assert (market.raw(old)["status"], market.raw(old)["filled_qty"]) == ("partially_filled", "4")
    assert market.replace(old, qty=4)[1]["message"] == "qty must be > filled_qty 4"
    new = market.replace(old, qty=9)[1]
    assert (new["qty"], new["filled_qty"]) == ("5", "0")
    market.to_close(3)
    assert market.raw(new["id"])["status"] == "filled"
    assert (market.raw(old)["status"], market.raw(old)["filled_qty"]) == ("replaced", "4")
    assert market.client.get_open_position("AAPL").qty == "9"
