"""What the exchange shows, through the unmodified alpaca-py client and its strict models."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

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
    assert all(asset.fractionable and not asset.shortable for asset in assets)
    assert (assets[0].name, assets[0].exchange.value) == ("Apple", "NASDAQ")
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
    (flat,) = listed(market)  # a list that is not nested leaves out the stop that is held
    assert (flat.type, flat.legs) == (OrderType.LIMIT, None)
    everything = listed(market, status=QueryOrderStatus.ALL)
    assert {str(order.id) for order in everything} == {head, str(flat.id)}
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


@pytest.mark.parametrize(
    "query", ["qty=11", "qty=0", "qty=x", "percentage=101", "percentage=0", "qty=1&percentage=1"]
)
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


ORDER_FIELDS = {
    *("id", "client_order_id", "created_at", "updated_at", "submitted_at", "filled_at"),
    *("expired_at", "expires_at", "canceled_at", "failed_at", "replaced_at", "replaced_by"),
    *("replaces", "asset_id", "symbol", "asset_class", "notional", "qty", "filled_qty"),
    *("filled_avg_price", "order_class", "order_type", "type", "side", "position_intent"),
    *("time_in_force", "limit_price", "stop_price", "status", "extended_hours", "legs"),
    *("trail_percent", "trail_price", "hwm", "reject_reason"),
}


def raw(market: Floor, order_id: str) -> dict:
    return market.send("GET", f"/v2/orders/{order_id}?nested=true")[1]


def test_an_order_shows_every_field_that_alpaca_has(market):
    assert set(raw(market, market.buy())) == ORDER_FIELDS
    market.to_close(1)
    market.client.close_all_positions()
    trailing = raw(market, market.bracket(95, 120))
    assert [set(leg) for leg in trailing["legs"]] == [ORDER_FIELDS, ORDER_FIELDS]


def test_a_trailing_stop_shows_its_trail_and_its_mark(market):
    market.buy()
    market.to_close(1)
    stop = market.sell(type="trailing_stop", trail_percent="5", time_in_force="gtc")
    market.to_close(2)
    order = raw(market, stop)
    assert (order["trail_percent"], order["trail_price"], order["hwm"]) == ("5", None, "104")
    assert order["stop_price"] == "98.8"


def test_an_order_by_amount_has_no_quantity_until_it_has_traded(market):
    order_id = market.buy(qty=None, notional="250.50")
    order = raw(market, order_id)
    assert (order["notional"], order["qty"], order["filled_qty"]) == ("250.5", None, "0")
    market.to_close(1)
    order = raw(market, order_id)
    assert (order["qty"], order["filled_qty"], order["status"]) == ("2.505", "2.505", "filled")


def test_a_replaced_order_and_its_successor_name_each_other():
    market = Floor(*RISE, start=opening(1))
    old = market.buy(type="limit", limit_price=90, time_in_force="gtc")
    status, new = market.send("PATCH", f"/v2/orders/{old}", {"limit_price": 91, "qty": 3})
    assert (status, new["limit_price"], new["qty"], new["replaces"]) == (200, "91", "3", old)
    order = raw(market, old)
    assert (order["status"], order["replaced_by"]) == ("replaced", new["id"])
    assert order["replaced_at"] == order["updated_at"]
    assert new["client_order_id"] != order["client_order_id"]
    assert market.send("PATCH", f"/v2/orders/{old}", {"limit_price": 92})[0] == 422
    assert market.send("PATCH", f"/v2/orders/{new['id']}", {"limit_price": "x"})[0] == 422
    assert market.send("PATCH", "/v2/orders/00000000-0000-0000-0000-000000000000", {})[0] == 404


def test_orders_are_found_by_class_and_by_their_neighbours():
    market = Floor(rows={"AAPL": RISE, "BTC/USD": [(50_000,) * 4] * 6})
    first = market.buy(type="limit", limit_price=50)
    coin = market.buy(
        symbol="BTC/USD", qty="0.01", type="limit", limit_price=40_000, time_in_force="gtc"
    )
    last = market.buy(type="limit", limit_price=51)

    def ids(**query: str) -> list[str]:
        path = "/v2/orders?direction=asc&" + "&".join(f"{k}={v}" for k, v in query.items())
        return [row["id"] for row in market.send("GET", path)[1]]

    assert ids() == [first, coin, last]
    assert ids(asset_class="crypto") == [coin]
    assert ids(asset_class="us_equity") == [first, last]
    assert ids(symbols="BTC/USD") == [coin]
    assert ids(after_order_id=first) == [coin, last]
    assert ids(before_order_id=last) == [first, coin]
    for wrong in ("after_order_id=x", "asset_class=us_option", "status=x", "limit=501", "side=x"):
        assert market.send("GET", f"/v2/orders?{wrong}")[0] == 422


def test_a_coin_is_a_coin_everywhere():
    market = Floor(rows={"BTC/USD": [(50_000,) * 4] * 6})
    order = raw(market, market.buy(symbol="BTC/USD", qty="0.1", time_in_force="gtc"))
    assert (order["symbol"], order["asset_class"]) == ("BTC/USD", "crypto")
    market.to_close(1)
    position = market.client.get_open_position("BTCUSD")
    assert (position.symbol, position.asset_class.value, position.exchange.value) == (
        *("BTCUSD", "crypto", "CRYPTO"),
    )
    assert (position.qty, position.market_value) == ("0.1", "5000")
    assert market.send("GET", "/v2/positions/BTC/USD")[0] == 404
    assert market.send("GET", "/v2/positions/BTC%2FUSD")[0] == 200
    for name in ("BTC/USD", "BTCUSD"):
        asset = market.client.get_asset(name)
        assert (asset.symbol, asset.asset_class.value) == ("BTC/USD", "crypto")
        assert asset.min_trade_increment == 1e-9
    assert market.client.get_all_assets(GetAssetsRequest(asset_class="us_equity")) == []
    assert len(market.client.get_all_assets(GetAssetsRequest(exchange="CRYPTO"))) == 1
    assert market.broker.portfolio().position("BTC/USD").quantity == Decimal("0.1")
    market.client.close_position("BTCUSD")
    market.to_close(2)
    assert market.client.get_all_positions() == []


def test_a_flat_symbol_and_an_unknown_one_have_no_position(market):
    for name in ("AAPL", "XYZ", "00000000-0000-0000-0000-000000000000"):
        status, answer = market.send("GET", f"/v2/positions/{name}")
        assert (status, answer["code"], answer["message"]) == (
            *(404, 40410000, "position does not exist"),
        )
    assert market.send("GET", "/v2/assets/XYZ")[0] == 404


def test_todays_gain_counts_what_was_held_before_and_what_came_today():
    market = Floor(*RISE)
    market.buy()
    market.to_close(2)  # 10 at 100, close 103
    market.buy(qty=5)
    market.to_close(3)  # 5 more at 103, close 105
    position = market.client.get_open_position("AAPL")
    assert (position.unrealized_intraday_pl, position.unrealized_pl) == ("30", "60")
    assert position.unrealized_intraday_plpc == "0.019417476"  # 30 of 1545


def test_the_owner_may_suspend_trading_and_parts_of_a_share(market):
    before = market.client.get_account_configurations()
    assert (before.suspend_trade, before.fractional_trading, before.no_shorting) == (
        *(False, True, True),
    )
    market.client.set_account_configurations(before.model_copy(update={"suspend_trade": True}))
    assert market.client.get_account().trade_suspended_by_user
    assert market.post() == (
        403,
        {"code": 40310000, "message": "new orders are rejected by user request"},
    )
    after = before.model_copy(update={"fractional_trading": False})
    market.client.set_account_configurations(after)
    assert market.post(qty="0.5")[0] == 403
    assert market.post()[0] == 200
    for body in ({"no_shorting": False}, {"suspend_trade": "x"}, {"colour": "red"}, [], None):
        status, _ = market.send("PATCH", "/v2/account/configurations", body)
        assert status == 422
    assert market.client.get_account_configurations() == after


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v2/options/contracts"),
        ("GET", "/v2/watchlists"),
        ("PUT", "/v2/account"),
        ("POST", "/v2/clock"),
        ("GET", "/v3/account"),
        ("GET", "//v2/clock"),
        ("GET", "/"),
        ("GET", "/v2/account/portfolio"),
        ("DELETE", "/v2/account/activities/FILL"),
    ],
)
def test_an_unknown_path_is_not_found(market, method, path):
    status, answer = market.send(method, path)
    assert (status, answer["code"]) == (404, 40410000)
