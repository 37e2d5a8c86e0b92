"""What the exchange shows, through the unmodified alpaca-py client and its strict models."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from alpaca.trading.enums import OrderSide, OrderStatus, OrderType, QueryOrderStatus
from alpaca.trading.requests import (
    ClosePositionRequest,
    GetAssetsRequest,
    GetCalendarRequest,
    GetOrderByIdRequest,
    GetOrdersRequest,
)

from tests.trader.broker.floor import FLAT, Floor, closing, opening

RISE = [FLAT, (100, 101, 99, 100), (102, 104, 101, 103), (103, 106, 103, 105), *[FLAT] * 6]


@pytest.fixture
def market() -> Floor:
    return Floor(rows={"AAPL": RISE, "MSFT": RISE})


def listed(market: Floor, **wanted):
    return market.client.get_orders(GetOrdersRequest(**wanted))


def test_the_account_adds_up_and_remembers_yesterday(market):
    market.buy()
    market.to_close(1)
    market.to_close(2)
    account = market.client.get_account()
    assert (account.cash, account.equity, account.last_equity) == ("9000", "10030", "10000")
    market.to_close(3)
    account = market.client.get_account()
    assert (account.equity, account.last_equity) == ("10050", "10030")
    assert account.account_number.startswith("PA")
    assert account.status.value == "ACTIVE"


def test_yesterdays_equity_takes_todays_trades_back(market):
    market.buy()
    market.to_close(2)
    market.sell(qty=4)
    market.buy(symbol="MSFT", qty=2)
    market.to_close(3)
    assert market.client.get_account().last_equity == "10030"


def test_a_position_shows_its_gain_since_the_purchase_and_since_yesterday(market):
    market.buy()
    market.to_close(2)
    market.to_close(3)
    position = market.client.get_open_position("AAPL")
    assert (position.qty, position.avg_entry_price, position.current_price) == ("10", "100", "105")
    assert (position.market_value, position.cost_basis) == ("1050", "1000")
    assert (position.unrealized_pl, position.unrealized_plpc) == ("50", "0.05")
    assert (position.lastday_price, position.unrealized_intraday_pl) == ("103", "20")
    assert market.client.get_open_position(position.asset_id) == position
    assert [held.symbol for held in market.client.get_all_positions()] == ["AAPL"]


def test_a_position_bought_today_has_gained_since_its_purchase(market):
    market.to_close(1)
    market.buy()
    market.to_close(2)
    position = market.client.get_open_position("AAPL")
    assert (position.unrealized_intraday_pl, position.lastday_price) == ("10", "100")


def test_the_clock_follows_sessions_half_days_and_weekends():
    market = Floor(*RISE, start=opening(4))
    clock = market.client.get_clock()
    assert clock.is_open
    assert clock.next_close == closing(4) == datetime(2025, 7, 3, 17, tzinfo=UTC)
    assert clock.next_open == opening(5) == datetime(2025, 7, 7, 13, 30, tzinfo=UTC)
    market.to_close(4)
    clock = market.client.get_clock()
    assert not clock.is_open
    assert (clock.next_open, clock.next_close) == (opening(5), closing(5))
    assert market.client.get("/clock")["timestamp"] == "2025-07-03T13:00:00-04:00"


def test_the_calendar_shows_half_days_and_leaves_holidays_out(market):
    days = market.client.get_calendar(
        GetCalendarRequest(start=date(2025, 7, 3), end=date(2025, 7, 7))
    )
    assert [(day.date.day, day.open.hour, day.close.hour) for day in days] == [
        (3, 9, 13),
        (7, 9, 16),
    ]


def test_assets_are_the_symbols_of_the_data_and_have_stable_ids(market):
    assets = market.client.get_all_assets(GetAssetsRequest())
    assert [asset.symbol for asset in assets] == ["AAPL", "MSFT"]
    assert not any(asset.fractionable or asset.shortable for asset in assets)
    assert market.client.get_asset(assets[1].id) == market.client.get_asset("MSFT")


def test_a_bracket_shows_its_legs_through_its_whole_life(market):
    head = market.bracket(95, 104)
    nested = GetOrderByIdRequest(nested=True)

    def states():
        order = market.client.get_order_by_id(head, nested)
        return order.status.value, [leg.status.value for leg in order.legs]

    assert states() == ("accepted", ["held", "held"])
    market.to_close(1)
    assert states() == ("filled", ["new", "held"])
    market.to_close(2)
    assert states() == ("filled", ["filled", "canceled"])
    legs = market.client.get_order_by_id(head, nested).legs
    assert [leg.type for leg in legs] == [OrderType.LIMIT, OrderType.STOP]
    assert legs[1].canceled_at == legs[0].filled_at


def test_the_stop_of_an_oto_order_is_new_once_it_is_live(market):
    head = market.buy(order_class="oto", stop_loss={"stop_price": 95}, time_in_force="gtc")
    market.to_close(1)
    order = market.client.get_order_by_id(head, GetOrderByIdRequest(nested=True))
    assert [leg.status for leg in order.legs] == [OrderStatus.NEW]


def test_an_oco_order_is_its_target_with_the_stop_as_leg(market):
    market.buy()
    market.to_close(1)
    legs = {"stop_loss": {"stop_price": 95}, "take_profit": {"limit_price": 104}}
    head = market.sell(type="limit", order_class="oco", time_in_force="gtc", **legs)
    order = market.client.get_order_by_id(head, GetOrderByIdRequest(nested=True))
    assert (order.limit_price, order.legs[0].stop_price) == ("104", "95")
    assert order.legs[0].status is OrderStatus.HELD
    assert market.client.get_open_position("AAPL").qty_available == "0"
    market.to_close(2)
    order = market.client.get_order_by_id(head, GetOrderByIdRequest(nested=True))
    assert (order.status, order.legs[0].status) == (OrderStatus.FILLED, OrderStatus.CANCELED)


def test_the_stop_of_an_oco_order_cancels_its_target():
    market = Floor(FLAT, FLAT, (100, 100, 94, 100))
    market.buy()
    market.to_close(1)
    legs = {"stop_loss": {"stop_price": 95}, "take_profit": {"limit_price": 104}}
    head = market.sell(type="limit", order_class="oco", time_in_force="gtc", **legs)
    market.to_close(2)
    order = market.client.get_order_by_id(head, GetOrderByIdRequest(nested=True))
    assert (order.status, order.legs[0].status) == (OrderStatus.CANCELED, OrderStatus.FILLED)


def test_canceling_one_of_a_family_cancels_what_is_open_of_it(market):
    waiting = market.bracket(95, 120)
    market.client.cancel_order_by_id(waiting)
    order = market.client.get_order_by_id(waiting, GetOrderByIdRequest(nested=True))
    assert {one.status for one in (order, *order.legs)} == {OrderStatus.CANCELED}
    live = market.bracket(95, 120)
    market.to_close(1)
    order = market.client.get_order_by_id(live, GetOrderByIdRequest(nested=True))
    market.client.cancel_order_by_id(order.legs[1].id)
    order = market.client.get_order_by_id(live, GetOrderByIdRequest(nested=True))
    assert order.status is OrderStatus.FILLED
    assert {leg.status for leg in order.legs} == {OrderStatus.CANCELED}


def test_the_order_list_filters_by_state_side_symbol_time_and_size(market):
    old = market.buy()
    market.to_close(1)
    market.buy(symbol="MSFT", type="limit", limit_price=50, time_in_force="gtc")
    new = market.sell(type="limit", limit_price=200, time_in_force="gtc")

    def ids(**wanted):
        return [str(order.id) for order in listed(market, **wanted)]

    assert ids()[0] == new
    assert len(ids()) == 2
    assert ids(status=QueryOrderStatus.CLOSED) == [old]
    assert len(ids(status=QueryOrderStatus.ALL)) == 3
    assert ids(status=QueryOrderStatus.ALL, direction="asc")[0] == old
    assert ids(status=QueryOrderStatus.ALL, direction="asc", limit=1) == [old]
    assert ids(side=OrderSide.SELL) == [new]
    assert ids(symbols=["AAPL"]) == [new]
    assert len(ids(symbols=["AAPL", "MSFT"])) == 2
    assert ids(status=QueryOrderStatus.ALL, until=closing(1)) == [old]
    assert ids(status=QueryOrderStatus.ALL, after=closing(0)) == ids()
    assert ids(after=closing(1)) == []
    assert ids(after=datetime(9999, 1, 1, tzinfo=UTC)) == []


def test_a_nested_list_keeps_a_filled_parent_open_while_a_leg_is(market):
    head = market.bracket(95, 120)
    market.to_close(1)
    (family,) = listed(market, nested=True)
    assert (str(family.id), len(family.legs)) == (head, 2)
    flat = listed(market)
    assert [order.legs for order in flat] == [None, None]
    assert head not in {str(order.id) for order in flat}
    assert listed(market, nested=True, status=QueryOrderStatus.CLOSED) == []


def test_canceling_all_orders_names_each_of_them(market):
    market.buy(type="limit", limit_price=50)
    market.bracket(95, 120)
    answers = market.client.cancel_orders()
    assert len(answers) == 4
    assert {answer.status for answer in answers} == {200}
    assert listed(market) == []
    assert market.client.cancel_orders() == []


def test_closing_positions_sells_them_at_the_next_open(market):
    market.buy()
    market.buy(symbol="MSFT", qty=8)
    market.to_close(1)
    part = market.client.close_position("AAPL", ClosePositionRequest(qty="4"))
    assert (part.side, part.type, part.qty) == (OrderSide.SELL, OrderType.MARKET, "4")
    half = market.client.close_position("MSFT", ClosePositionRequest(percentage="50"))
    assert half.qty == "4"
    market.to_close(2)
    assert market.client.get_open_position("AAPL").qty == "6"
    answers = market.client.close_all_positions()
    assert {(answer.symbol, answer.status) for answer in answers} == {("AAPL", 200), ("MSFT", 200)}
    market.to_close(3)
    assert market.client.get_all_positions() == []


@pytest.mark.parametrize("query", ["qty=11", "qty=0", "qty=x", "percentage=101", "percentage=33"])
def test_a_wrong_part_of_a_position_cannot_be_closed(market, query):
    market.buy()
    market.to_close(1)
    assert market.send("DELETE", f"/v2/positions/AAPL?{query}")[0] in (403, 422)
    assert listed(market) == []


def test_closing_everything_with_protected_positions_needs_the_orders_canceled(market):
    market.bracket(95, 120)
    market.to_close(1)
    (refusal,) = market.client.close_all_positions()
    assert (refusal.status, refusal.body.code) == (403, 40310000)
    (sold,) = market.client.close_all_positions(cancel_orders=True)
    assert (sold.status, sold.body.side) == (200, OrderSide.SELL)
    market.to_close(2)
    assert market.client.get_all_positions() == []


def test_fills_can_be_paged_in_both_directions(market):
    for session in range(1, 6):
        market.buy(qty=session)
        market.to_close(session)
    get = market.client.get
    rows = get("/account/activities/FILL", {"direction": "asc"})
    assert [row["qty"] for row in rows] == ["1", "2", "3", "4", "5"]
    page = {"direction": "asc", "page_size": 2, "page_token": rows[1]["id"]}
    assert get("/account/activities/FILL", page) == rows[2:4]
    assert get("/account/activities", {}) == rows[::-1]
    page = {"direction": "desc", "page_size": 2, "page_token": rows[2]["id"]}
    assert get("/account/activities", page) == [rows[1], rows[0]]
    assert rows[0].keys() >= {"order_id", "price", "side", "symbol", "transaction_time", "fee"}
    assert rows[0]["id"].startswith("20250630133000000::")
    assert market.send("GET", "/v2/account/activities/FILL?page_token=x")[0] == 422


def test_an_order_is_new_while_the_market_is_open_and_accepted_while_it_is_closed():
    assert Floor(FLAT, start=closing(0)).post()[1]["status"] == "accepted"
    market = Floor(FLAT, FLAT, FLAT, start=opening(1))
    assert market.post()[1]["status"] == "new"
    market.to_close(1)
    waiting = market.buy(type="limit", limit_price=50, time_in_force="gtc")
    assert market.client.get_order_by_id(waiting).status is OrderStatus.ACCEPTED
    market.to_close(2)
    assert market.client.get_order_by_id(waiting).status is OrderStatus.NEW


def test_an_order_without_a_client_id_gets_one_and_ids_are_the_same_in_every_run():
    answers = [Floor(*RISE).post(client_order_id=None)[1] for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0]["client_order_id"]
    assert Floor(*RISE).bracket(95, 110) == Floor(*RISE).bracket(95, 110)
