"""Orders through the unmodified client: what it sends, what comes back, how each order ends."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from alpaca.common.exceptions import APIError
from alpaca.trading.enums import OrderClass, OrderSide, OrderStatus, OrderType, TimeInForce
from alpaca.trading.requests import (
    ClosePositionRequest,
    GetOrderByIdRequest,
    GetOrdersRequest,
    LimitOrderRequest,
    MarketOrderRequest,
    ReplaceOrderRequest,
    StopLimitOrderRequest,
    StopLossRequest,
    StopOrderRequest,
    TakeProfitRequest,
    TrailingStopOrderRequest,
)

from tests.trader.broker.floor import closing, opening

USUAL = {"symbol": "AAPL", "qty": 3, "side": OrderSide.BUY, "time_in_force": TimeInForce.DAY}
EXIT = {
    "take_profit": TakeProfitRequest(limit_price=120),
    "stop_loss": StopLossRequest(stop_price=90),
}


def market(**more):
    return MarketOrderRequest(**(USUAL | more))


def bracket(**more):
    gtc = {"time_in_force": TimeInForce.GTC, "order_class": OrderClass.BRACKET}
    return MarketOrderRequest(**(USUAL | gtc | EXIT | more))


def buy(venue, quantity=3, **more):
    """Buy at the next open, 101 for AAPL, and walk to that close."""
    order = venue.trading.submit_order(market(qty=quantity, **more))
    venue.to_close(1)
    return order


BASE = {"symbol": "AAPL", "qty": 3.0, "side": "buy", "time_in_force": "day"}
SELL = {"symbol": "AAPL", "qty": 3.0, "side": "sell", "time_in_force": "gtc"}
GOLDEN = {
    "market": (market(), BASE | {"type": "market"}),
    "notional": (
        MarketOrderRequest(symbol="AAPL", notional=50.5, side="buy", time_in_force="day"),
        {
            "symbol": "AAPL",
            "notional": 50.5,
            "side": "buy",
            "type": "market",
            "time_in_force": "day",
        },
    ),
    "limit": (
        LimitOrderRequest(**USUAL, limit_price=99.5),
        BASE | {"type": "limit", "limit_price": 99.5},
    ),
    "stop": (
        StopOrderRequest(**USUAL, stop_price=101.25),
        BASE | {"type": "stop", "stop_price": 101.25},
    ),
    "stop limit": (
        StopLimitOrderRequest(**USUAL, stop_price=101, limit_price=102),
        BASE | {"type": "stop_limit", "stop_price": 101.0, "limit_price": 102.0},
    ),
    "trailing by price": (
        TrailingStopOrderRequest(**USUAL, trail_price=2.5),
        BASE | {"type": "trailing_stop", "trail_price": 2.5},
    ),
    "trailing by percent": (
        TrailingStopOrderRequest(**USUAL, trail_percent=5),
        BASE | {"type": "trailing_stop", "trail_percent": 5.0},
    ),
    "bracket": (
        bracket(),
        BASE
        | {
            "type": "market",
            "time_in_force": "gtc",
            "order_class": "bracket",
            "take_profit": {"limit_price": 120.0},
            "stop_loss": {"stop_price": 90.0},
        },
    ),
    "oto": (
        MarketOrderRequest(
            **USUAL, order_class=OrderClass.OTO, stop_loss=StopLossRequest(stop_price=90)
        ),
        BASE | {"type": "market", "order_class": "oto", "stop_loss": {"stop_price": 90.0}},
    ),
    "oco": (
        LimitOrderRequest(
            **USUAL
            | {"side": OrderSide.SELL, "time_in_force": TimeInForce.GTC}
            | EXIT
            | {"order_class": OrderClass.OCO, "limit_price": 120}
        ),
        SELL
        | {
            "type": "limit",
            "limit_price": 120.0,
            "order_class": "oco",
            "take_profit": {"limit_price": 120.0},
            "stop_loss": {"stop_price": 90.0},
        },
    ),
}


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_every_kind_of_order_goes_out_as_measured_and_is_taken(venue, name):
    if name == "oco":
        buy(venue)
    request, body = GOLDEN[name]
    order = venue.trading.submit_order(request.model_copy(update={"client_order_id": "golden"}))
    assert venue.last_body() == body | {"client_order_id": "golden"}
    assert isinstance(order.id, UUID)
    assert order.client_order_id == "golden"
    assert order.status in {OrderStatus.ACCEPTED, OrderStatus.NEW}
    assert order.order_class == OrderClass(body.get("order_class", "simple"))
    assert order.type == OrderType(body["type"])
    for field in ("limit_price", "stop_price", "trail_price", "trail_percent", "notional"):
        if field in body and name != "oco":
            assert float(getattr(order, field)) == body[field], field
    assert len(order.legs or ()) == {"bracket": 2, "oto": 1, "oco": 1}.get(name, 0)


def test_a_float_goes_out_as_it_is_and_may_have_nine_decimals(venue):
    with pytest.raises(APIError) as caught:
        venue.trading.submit_order(market(qty=0.1 + 0.2))
    assert venue.last_body()["qty"] == 0.30000000000000004
    assert caught.value.status_code == 422
    assert venue.trading.submit_order(market(qty=0.300000001)).qty == "0.300000001"


def test_an_order_made_without_a_client_id_gets_one(venue):
    order = venue.trading.submit_order(market())
    assert venue.trading.get_order_by_client_id(order.client_order_id).id == order.id


def test_a_market_order_fills_at_the_next_open_and_money_comes_as_text(venue):
    order = buy(venue, client_order_id="c1")
    for found in (
        venue.trading.get_order_by_id(order.id),
        venue.trading.get_order_by_id(str(order.id), GetOrderByIdRequest(nested=True)),
        venue.trading.get_order_by_client_id("c1"),
    ):
        assert found.id == order.id
        assert found.status is OrderStatus.FILLED
        assert (found.qty, found.filled_qty, found.filled_avg_price) == ("3", "3", "101")
        assert found.filled_at == opening(1)
    assert venue.trading.get_account().cash == "9697"


def test_prices_decide_when_the_others_fill(venue):
    held = buy(venue, 10)
    sell = USUAL | {"side": OrderSide.SELL, "time_in_force": TimeInForce.GTC, "qty": 1}
    wanted = {
        "limit": LimitOrderRequest(**sell, limit_price=111.5),
        "stop": StopOrderRequest(**sell, stop_price=100),
        "stop_limit": StopLimitOrderRequest(**sell, stop_price=100, limit_price=99),
        "trailing": TrailingStopOrderRequest(**sell, trail_price=5),
    }
    ids = {name: venue.trading.submit_order(order).id for name, order in wanted.items()}
    venue.to_close(2)  # 104 112 103 110
    orders = {name: venue.trading.get_order_by_id(one) for name, one in ids.items()}
    assert orders["limit"].filled_avg_price == "111.5"
    assert orders["stop"].status is OrderStatus.NEW
    venue.to_close(3)  # 110 111 95 96
    orders = {name: venue.trading.get_order_by_id(one) for name, one in ids.items()}
    assert orders["stop"].filled_avg_price == "100"
    assert orders["stop_limit"].filled_avg_price == "100"
    assert orders["trailing"].filled_avg_price == "107"  # 5 below the high of 112
    assert orders["trailing"].hwm == "112"
    assert venue.trading.get_order_by_id(held.id).filled_qty == "10"
    assert venue.trading.get_open_position("AAPL").qty == "6"


def test_the_legs_of_a_bracket_wait_are_nested_and_end_together(venue):
    head = venue.trading.submit_order(bracket(client_order_id="b"))
    assert {leg.status for leg in head.legs} == {OrderStatus.HELD}
    assert len(venue.trading.get_orders(GetOrdersRequest(status="open"))) == 1
    venue.to_close(1)
    nested = venue.trading.get_order_by_id(head.id, GetOrderByIdRequest(nested=True))
    legs = {leg.type: leg for leg in nested.legs}
    assert legs[OrderType.LIMIT].status is OrderStatus.NEW
    assert legs[OrderType.STOP].stop_price == "90"
    venue.trading.cancel_order_by_id(legs[OrderType.STOP].id)
    nested = venue.trading.get_order_by_id(head.id, GetOrderByIdRequest(nested=True))
    assert {leg.status for leg in nested.legs} == {OrderStatus.CANCELED}


def test_a_replaced_order_has_new_ids_and_the_old_one_names_its_follower(venue):
    waiting = venue.trading.submit_order(LimitOrderRequest(**USUAL, limit_price=80))
    with pytest.raises(APIError, match="order isn't sent to exchange yet"):
        venue.trading.replace_order_by_id(waiting.id, ReplaceOrderRequest(limit_price=81))
    venue.to(opening(1) + timedelta(hours=1))
    old = venue.trading.submit_order(LimitOrderRequest(**USUAL, limit_price=90))
    new = venue.trading.replace_order_by_id(old.id, ReplaceOrderRequest(limit_price=151))
    assert venue.last_body() == {"limit_price": 151.0}
    assert new.id != old.id
    assert new.client_order_id != old.client_order_id
    assert (new.limit_price, new.replaces) == ("151", old.id)
    left = venue.trading.get_order_by_id(old.id)
    assert (left.status, left.replaced_by) == (OrderStatus.REPLACED, new.id)
    named = venue.trading.replace_order_by_id(
        new.id, ReplaceOrderRequest(qty=2, client_order_id="mine")
    )
    assert (named.qty, named.client_order_id, named.limit_price) == ("2", "mine", "151")
    with pytest.raises(APIError) as caught:
        venue.trading.replace_order_by_id(old.id, ReplaceOrderRequest(limit_price=152))
    assert caught.value.status_code == 422


def test_orders_are_canceled_one_by_one_and_all_at_once(venue):
    first, second, third = (
        venue.trading.submit_order(LimitOrderRequest(**USUAL, limit_price=90 + step))
        for step in range(3)
    )
    assert venue.trading.cancel_order_by_id(first.id) is None
    answers = venue.trading.cancel_orders()
    assert {answer.id for answer in answers} == {second.id, third.id}
    assert {answer.status for answer in answers} == {200}
    assert venue.trading.get_orders() == []
    closed = venue.trading.get_orders(GetOrdersRequest(status="closed"))
    assert {order.status for order in closed} == {OrderStatus.CANCELED}


def test_orders_are_listed_by_every_filter(venue):
    early = venue.trading.submit_order(market(client_order_id="early"))
    venue.to_close(1)
    late = venue.trading.submit_order(
        LimitOrderRequest(**USUAL | {"symbol": "MSFT"}, limit_price=250, client_order_id="late")
    )

    def listed(**wanted):
        found = venue.trading.get_orders(GetOrdersRequest(**wanted))
        return [order.client_order_id for order in found]

    assert listed() == ["late"]
    assert listed(status="all") == ["late", "early"]
    assert listed(status="closed") == ["early"]
    assert listed(status="all", direction="asc") == ["early", "late"]
    assert listed(status="all", limit=1) == ["late"]
    assert listed(status="all", symbols=["AAPL", "TSLA"]) == ["early"]
    assert listed(status="all", side="sell") == []
    assert listed(status="all", after=early.submitted_at) == ["late"]
    assert listed(status="all", until=late.submitted_at) == ["early"]
    assert listed(status="all", nested=True) == ["late", "early"]
    assert "nested=True" in venue.exchange.asked[-1][1]  # with a capital, as the client writes it


def test_positions_are_shown_and_closed_in_part_by_percent_and_whole(venue):
    buy(venue, 8)
    position = venue.trading.get_open_position("AAPL")
    assert (position.qty, position.avg_entry_price, position.current_price) == ("8", "101", "104")
    assert (position.cost_basis, position.market_value) == ("808", "832")
    assert position.unrealized_pl == "24"
    assert [one.symbol for one in venue.trading.get_all_positions()] == ["AAPL"]
    by_id = venue.trading.get_open_position(position.asset_id)
    assert by_id.symbol == "AAPL"

    part = venue.trading.close_position("AAPL", ClosePositionRequest(qty="3"))
    assert (part.qty, part.side) == ("3", OrderSide.SELL)
    half = venue.trading.close_position("AAPL", ClosePositionRequest(percentage="50"))
    assert half.qty == "4"
    assert venue.trading.get_open_position("AAPL").qty_available == "1"
    venue.to_close(2)
    assert venue.trading.get_open_position("AAPL").qty == "1"
    assert venue.trading.close_position("AAPL").qty == "1"
    venue.to_close(3)
    with pytest.raises(APIError) as caught:
        venue.trading.get_open_position("AAPL")
    assert (caught.value.status_code, caught.value.code) == (404, 40410000)
    assert caught.value.message == "position does not exist"


def test_all_positions_are_closed_with_their_orders(venue):
    venue.trading.submit_order(bracket(qty=5))
    venue.trading.submit_order(market(symbol="MSFT", qty=1))
    venue.to_close(1)
    answers = venue.trading.close_all_positions(cancel_orders=True)
    assert {answer.symbol: answer.status for answer in answers} == {"AAPL": 200, "MSFT": 200}
    venue.to_close(2)
    assert venue.trading.get_all_positions() == []
    assert venue.trading.get_orders() == []


def test_coins_are_bought_in_parts_and_found_without_their_slash(venue):
    order = venue.trading.submit_order(
        market(symbol="BTC/USD", qty=0.01, time_in_force=TimeInForce.GTC)
    )
    assert order.symbol == "BTC/USD"
    venue.to_close(1)
    assert venue.trading.get_open_position("BTCUSD").qty == "0.01"
    with pytest.raises(APIError) as caught:
        venue.trading.get_open_position("BTC/USD")
    assert caught.value.status_code == 404


SELL_ONE = USUAL | {"side": OrderSide.SELL, "qty": 1}
GTC = {"time_in_force": TimeInForce.GTC}
REFUSED = {
    "duplicate id": (
        market(client_order_id="held"),
        422,
        40010001,
        "client_order_id must be unique",
    ),
    "unknown asset": (market(symbol="NOPE"), 422, 42210000, 'asset "NOPE" not found'),
    "no money": (market(qty=1000), 403, 40310000, "insufficient buying power"),
    "no shares": (MarketOrderRequest(**SELL_ONE | {"qty": 99}), 403, 40310000, "insufficient qty"),
    "part, gtc": (market(qty=0.5, **GTC), 422, 42210000, "fractional orders must be DAY orders"),
    "part, bracket": (
        bracket(qty=1.5, time_in_force=TimeInForce.DAY),
        422,
        42210000,
        "fractional orders must be simple orders",
    ),
    "part, trailing": (
        TrailingStopOrderRequest(**USUAL | {"qty": 1.5}, trail_price=1),
        422,
        42210000,
        "fractional orders must be market, limit, stop, or stop_limit orders",
    ),
    "under a dollar": (
        MarketOrderRequest(symbol="AAPL", notional=0.99, side="buy", time_in_force="day"),
        403,
        40310000,
        "cost basis must be >= minimal amount of order 1",
    ),
    "coin under ten": (
        MarketOrderRequest(symbol="BTC/USD", notional=9.99, side="buy", time_in_force="gtc"),
        403,
        40310000,
        "cost basis must be >= minimal amount of order 10",
    ),
    "coin, day": (market(symbol="BTC/USD", qty=0.1), 422, 42210000, "invalid crypto time_in_force"),
    "sub-penny": (
        LimitOrderRequest(**USUAL, limit_price=99.085),
        422,
        42210000,
        "invalid limit_price 99.085. sub-penny increment does not fulfill minimum pricing criteria",
    ),
    "target too low": (
        bracket(take_profit=TakeProfitRequest(limit_price=95)),
        422,
        42210000,
        "take_profit.limit_price must be >= base_price + 0.01",
    ),
    "stop too high": (
        bracket(stop_loss=StopLossRequest(stop_price=105)),
        422,
        42210000,
        "stop_loss.stop_price must be <= base_price - 0.01",
    ),
    "bracket that sells": (
        bracket(side=OrderSide.SELL),
        422,
        42210000,
        "bracket orders must be entry",
    ),
    "wash trade": (
        StopOrderRequest(**SELL_ONE | GTC, stop_price=80),
        403,
        40310000,
        "potential wash trade detected. use complex orders",
    ),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_every_refusal_has_alpacas_status_code_and_words(venue, name):
    buy(venue, 2, client_order_id="held")
    if name == "wash trade":
        venue.trading.submit_order(LimitOrderRequest(**USUAL | {"qty": 1} | GTC, limit_price=85))
    request, status, code, words = REFUSED[name]
    with pytest.raises(APIError) as caught:
        venue.trading.submit_order(request)
    assert (caught.value.status_code, caught.value.code) == (status, code)
    assert words in caught.value.message
    if name == "no money":
        assert '"buying_power": "9798"' in str(caught.value)
    if name == "no shares":
        assert '"available": "2"' in str(caught.value)


def test_what_is_not_there_is_a_404_and_what_has_ended_cannot_be_canceled(venue):
    filled = buy(venue)
    for look in (
        lambda: venue.trading.get_order_by_id(uuid4()),
        lambda: venue.trading.get_order_by_client_id("nobody"),
        lambda: venue.trading.cancel_order_by_id(uuid4()),
    ):
        with pytest.raises(APIError) as caught:
            look()
        assert (caught.value.status_code, caught.value.code) == (404, 40410000)
    with pytest.raises(APIError) as caught:
        venue.trading.cancel_order_by_id(filled.id)
    assert caught.value.status_code == 422
    assert caught.value.message == 'order is already in "filled" state'


def test_day_orders_end_with_their_session_and_others_stay(venue):
    day = venue.trading.submit_order(LimitOrderRequest(**USUAL, limit_price=50))
    gtc = venue.trading.submit_order(LimitOrderRequest(**USUAL | GTC, limit_price=50))
    venue.to_close(1)
    assert venue.trading.get_order_by_id(day.id).status is OrderStatus.EXPIRED
    assert venue.trading.get_order_by_id(day.id).expired_at == closing(1)
    assert venue.trading.get_order_by_id(gtc.id).status is OrderStatus.NEW
