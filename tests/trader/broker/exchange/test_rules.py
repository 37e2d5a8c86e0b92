"""What the exchange refuses: status, code and words, through the unmodified alpaca-py client."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from alpaca.common.exceptions import APIError
from alpaca.trading.client import TradingClient
from alpaca.trading.enums import OrderClass, OrderSide, TimeInForce
from alpaca.trading.requests import (
    LimitOrderRequest,
    MarketOrderRequest,
    StopLossRequest,
    StopOrderRequest,
    TakeProfitRequest,
    TrailingStopOrderRequest,
)

from tests.trader.broker.floor import (
    FLAT,
    Floor,
    HandBars,
    closing,
    minutes_before_close,
    opening,
)
from trader.core.costs import Costs

QUIET = [FLAT] * 6
AAPL = {"symbol": "AAPL", "side": OrderSide.BUY, "time_in_force": TimeInForce.DAY}
SELL = {"symbol": "AAPL", "side": OrderSide.SELL, "time_in_force": TimeInForce.DAY}


@pytest.fixture
def market() -> Floor:
    return Floor(*QUIET)


@pytest.fixture
def holding(market: Floor) -> Floor:
    """Ten shares held, bought at 100."""
    market.buy()
    market.to_close(1)
    return market


def refused(call, *arguments) -> tuple[int, int, str, dict]:
    with pytest.raises(APIError) as caught:
        call(*arguments)
    body = json.loads(str(caught.value))
    return caught.value.status_code, body["code"], body["message"], body


def bracket(stop: float, target: float, **more):
    order = {"qty": 1, "order_class": OrderClass.BRACKET, **AAPL, **more}
    return MarketOrderRequest(
        take_profit=TakeProfitRequest(limit_price=target),
        stop_loss=StopLossRequest(stop_price=stop),
        **order,
    )


def test_a_client_order_id_is_never_taken_twice_even_after_a_cancel(market):
    request = MarketOrderRequest(qty=1, client_order_id="mine", **AAPL)
    market.client.cancel_order_by_id(market.client.submit_order(request).id)
    assert refused(market.client.submit_order, request)[:3] == (
        422,
        40010001,
        "client_order_id must be unique",
    )


def test_a_repeated_order_is_called_a_duplicate_even_when_the_first_one_used_up_the_cash(market):
    request = MarketOrderRequest(qty=96, client_order_id="all", **AAPL)
    market.client.submit_order(request)
    assert "must be unique" in refused(market.client.submit_order, request)[2]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"order_class": "mleg"}, "order_class mleg"),
        ({"position_intent": "sell_to_open"}, "position_intent 'sell_to_open' with side buy"),
        (
            {"order_class": "oto", "stop_loss": {"stop_price": 95, "trail_price": 1}},
            "stop_loss.trail_price",
        ),
    ],
)
def test_what_is_not_offered_is_refused_by_name(market, body, words):
    status, answer = market.post(**body)
    assert (status, answer["code"]) == (422, 42210000)
    assert answer["message"] == f"{words} is not offered by the embedded exchange"


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            MarketOrderRequest(qty=0.5, **AAPL | {"time_in_force": TimeInForce.GTC}),
            "fractional orders must be DAY orders",
        ),
        (
            MarketOrderRequest(notional=100, **AAPL | {"time_in_force": TimeInForce.GTC}),
            "fractional orders must be DAY orders",
        ),
        (bracket(95, 110, qty=1.5), "fractional orders must be simple orders"),
        (
            TrailingStopOrderRequest(qty=1.5, trail_percent=1, **AAPL),
            "fractional orders must be market, limit, stop, or stop_limit orders",
        ),
        (
            TrailingStopOrderRequest(qty=1, trail_percent=100, **AAPL),
            "trail_percent must be below 100, not 100",
        ),
        (
            StopOrderRequest(qty=1, stop_price=110, **AAPL | {"time_in_force": TimeInForce.IOC}),
            "stop orders must not have time_in_force ioc",
        ),
        (
            bracket(95, 110, time_in_force=TimeInForce.OPG),
            "bracket orders must be DAY or GTC orders",
        ),
    ],
)
def test_types_classes_and_lives_that_do_not_go_together(market, request_, message):
    assert refused(market.client.submit_order, request_)[:3] == (422, 42210000, message)


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"qty": None}, 40010001, "qty or notional is required"),
        ({"notional": 5}, 40010001, "only one of qty or notional is accepted"),
        ({"qty": "0.1234567891"}, 40010001, "qty must have at most 9 decimal places, not "),
        ({"qty": 0.1 + 0.2}, 40010001, "qty must have at most 9 decimal places, not 0.3000"),
        ({"type": "trailing_stop"}, 42210000, "trailing stop orders require either trail_price"),
        (
            {"type": "trailing_stop", "trail_price": 1, "trail_percent": 1},
            42210000,
            "trailing stop orders require either trail_price or trail_percent",
        ),
        ({"trail_price": 1}, 42210000, "market orders must not have trail_price"),
        ({"type": "stop_limit", "stop_price": 1}, 42210000, "stop limit orders require a limit"),
        ({"type": "stop_limit", "limit_price": 1}, 42210000, "stop limit orders require a stop"),
        (
            {
                "type": "trailing_stop",
                "trail_price": 1,
                "order_class": "oto",
                "stop_loss": {"stop_price": 95},
            },
            42210000,
            "trailing stop orders must be simple orders",
        ),
        ({"extended_hours": True}, 40010001, 'only type="limit" is allowed for extended hours'),
        (
            {"extended_hours": True, "type": "limit", "limit_price": 1, "time_in_force": "gtc"},
            40010001,
            'only time_in_force="day" is allowed for extended hours orders',
        ),
        ({"extended_hours": "yes"}, 40010001, "extended_hours must be true or false"),
    ],
)
def test_contradictory_sizes_prices_and_hours_are_refused(market, body, code, message):
    status, answer = market.post(**body)
    assert (status, answer["code"]) == (422, code)
    assert answer["message"].startswith(message)


def test_an_extended_hours_order_is_shown_as_one(market):
    order = market.buy(type="limit", limit_price=50, extended_hours=True)
    assert market.raw(order)["extended_hours"] is True


@pytest.mark.parametrize(
    ("quantity", "message"),
    [("1", "account is not allowed to short"), ("0.5", "fractional orders are not allowed")],
)
def test_nothing_is_sold_short(market, quantity, message):
    status, body = market.post(side="sell", qty=quantity)
    assert (status, body["code"]) == (403, 40310000)
    assert body["message"].startswith(message)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"qty": None, "notional": "0.99"}, 403),
        ({"qty": None, "notional": "1"}, 200),
        ({"qty": "0.009"}, 403),
        ({"qty": "0.01"}, 200),
        ({"qty": "0.5", "type": "limit", "limit_price": "1.99"}, 403),
        ({"qty": "1", "type": "limit", "limit_price": "0.5"}, 200),  # whole shares may be cheap
    ],
)
def test_parts_of_a_share_cost_a_dollar_at_least(market, body, status):
    answer = market.post(**body)
    assert answer[0] == status
    if status == 403:
        assert answer[1] == {
            "code": 40310000,
            "message": "cost basis must be >= minimal amount of order 1",
        }


def test_what_is_left_of_a_share_can_always_be_sold_whole():
    market = Floor(FLAT, (60, 60, 60, 60), FLAT)
    market.buy(qty="0.015")  # 1.50 USD, 0.90 after the fall
    market.to_close(1)
    assert market.post(side="sell", qty="0.005")[0] == 403
    assert market.post(side="sell", qty="0.015")[0] == 200


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({}, 200, ""),
        ({"time_in_force": "ioc"}, 200, ""),
        ({"time_in_force": "day"}, 422, "invalid crypto time_in_force"),
        ({"time_in_force": "fok"}, 422, "invalid crypto time_in_force"),
        ({"type": "stop", "stop_price": 90}, 422, "invalid order type for crypto order"),
        (
            {"order_class": "oto", "stop_loss": {"stop_price": 90}},
            422,
            "crypto orders not allowed for advanced order_class: oto",
        ),
        ({"qty": "0.0999"}, 403, "cost basis must be >= minimal amount of order 10"),
        ({"qty": None, "notional": "9.99"}, 403, "cost basis must be >= minimal amount"),
        ({"qty": None, "notional": "10"}, 200, ""),
        ({"type": "limit", "limit_price": "99.123456789"}, 200, ""),
        ({"type": "limit", "limit_price": "99.1234567891"}, 422, "invalid limit_price"),
        ({"side": "sell"}, 403, "insufficient qty available for order"),
    ],
)
def test_rules_of_coins(body, status, message):
    market = Floor(rows={"BTC/USD": QUIET})
    usual = {"symbol": "BTC/USD", "qty": "0.5", "time_in_force": "gtc"}
    answer = market.post(**usual | body)
    assert answer[0] == status
    assert answer[1].get("message", "").startswith(message)


@pytest.mark.parametrize(
    ("life", "minutes", "status"),
    [  # minutes after the opening at 9:30 of a session that closes at 16:00
        ("opg", -3, 200),
        ("opg", -2, 200),
        ("opg", -1, 422),
        ("opg", 0, 422),
        ("opg", 391, 422),
        ("opg", 569, 422),
        ("opg", 570, 200),  # 19:00: the next opening
        ("cls", -60, 200),
        ("cls", 380, 200),
        ("cls", 381, 422),
        ("cls", 391, 422),
        ("cls", 570, 200),
    ],
)
def test_orders_for_the_opening_and_the_close_have_their_hours(life, minutes, status):
    market = Floor(*QUIET, start=opening(1) + timedelta(minutes=minutes))
    answer = market.post(time_in_force=life)
    assert answer[0] == status
    if status == 422:
        assert answer[1]["message"].startswith(f"{life} orders must be submitted after 7:00pm")


def test_on_a_half_day_the_cut_off_for_the_close_is_earlier_and_on_a_holiday_there_is_none():
    assert Floor(*QUIET, start=minutes_before_close(4, 11)).post(time_in_force="cls")[0] == 200
    assert Floor(*QUIET, start=minutes_before_close(4, 9)).post(time_in_force="cls")[0] == 422
    holiday = closing(4) + timedelta(days=1)  # July 4, 13:00 in New York
    assert Floor(*QUIET, start=holiday).post(time_in_force="opg")[0] == 200


def test_a_blocked_account_may_cancel_but_neither_order_nor_replace(market):
    order = market.buy(type="limit", limit_price=90, client_order_id="mine")
    market.exchange.block("a hand was raised")
    refusal = {
        "code": 40310000,
        "message": "new orders are rejected by user request: a hand was raised",
    }
    assert market.post() == (403, refusal)
    assert market.replace(order, limit_price=91) == (403, refusal)
    assert "must be unique" in market.post(client_order_id="mine")[1]["message"]
    assert market.send("DELETE", f"/v2/orders/{order}")[0] == 204
    market.exchange.block("")
    assert market.post()[0] == 200


def test_trailing_stops_and_buys_do_not_wash(holding):
    holding.sell(qty=1, type="trailing_stop", trail_percent=5, time_in_force="gtc")
    assert holding.post(qty=1, type="limit", limit_price=50)[0] == 200


@pytest.mark.parametrize(
    ("trail", "status"), [({"trail_price": 60}, 200), ({"trail_price": 61}, 403)]
)
def test_a_trailing_buy_reserves_its_stop_and_four_percent(market, trail, status):
    """(100 + 60) x 1.04 x 60 = 9984 USD."""
    assert market.post(qty=60, type="trailing_stop", **trail)[0] == status


def test_an_order_by_amount_reserves_its_amount(market):
    market.buy(qty=None, notional="9000.5")
    assert market.client.get_account().buying_power == "999.5"
    status, body = market.post(qty=None, notional="999.51")
    assert (status, body["cost_basis"]) == (403, "999.51")


@pytest.mark.parametrize(
    ("price", "is_taken"),
    [
        (99.01, True),
        (99.015, False),
        (106.215, False),
        (0.1 + 0.2, False),
        (0.6013, True),
        (0.60131, False),
        (1.0001, False),
    ],
)
def test_prices_lie_on_ticks(market, price, is_taken):
    request = LimitOrderRequest(qty=1, limit_price=price, **AAPL)
    if is_taken:
        assert market.client.submit_order(request).limit_price == str(price)
        return
    status, code, message, _ = refused(market.client.submit_order, request)
    assert (status, code) == (422, 42210000)
    assert message.startswith(f"invalid limit_price {price}. sub-penny increment does not fulfill")


def test_stop_and_leg_prices_lie_on_ticks_too(market):
    stop = StopOrderRequest(qty=1, stop_price=105.005, **AAPL)
    assert "invalid stop_price 105.005" in refused(market.client.submit_order, stop)[2]
    leg = bracket(95.001, 110)
    assert "invalid stop_loss.stop_price 95.001" in refused(market.client.submit_order, leg)[2]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (bracket(95, 100.01), None),
        (bracket(95, 100), "take_profit.limit_price must be >= base_price + 0.01"),
        (bracket(99.99, 110), None),
        (bracket(100, 110), "stop_loss.stop_price must be <= base_price - 0.01"),
    ],
)
def test_bracket_levels_lie_a_cent_beyond_the_last_price(market, request_, message):
    if message is None:
        assert len(market.client.submit_order(request_).legs) == 2
        return
    answer = refused(market.client.submit_order, request_)
    assert answer[:3] == (422, 42210000, message)
    assert answer[3]["base_price"] == "100"


@pytest.mark.parametrize(
    ("limit", "stop", "target", "base"),
    [
        (90, 89.99, 100.01, None),
        (90, 90, 110, "90"),
        (90, 80, 100, "100"),  # above the limit but below the market
        (103, 99.99, 103.01, None),
        (103, 101, 110, "100"),
    ],
)
def test_levels_of_a_limit_entry_respect_the_limit_and_the_market(
    market, limit, stop, target, base
):
    request = LimitOrderRequest(
        qty=1,
        limit_price=limit,
        order_class=OrderClass.BRACKET,
        take_profit=TakeProfitRequest(limit_price=target),
        stop_loss=StopLossRequest(stop_price=stop),
        **AAPL,
    )
    if base is None:
        assert market.client.submit_order(request).legs
    else:
        assert refused(market.client.submit_order, request)[3]["base_price"] == base


def test_levels_of_a_stop_entry_are_measured_from_its_stop(market):
    good = {"stop_loss": {"stop_price": 102}, "take_profit": {"limit_price": 106}}
    market.buy(type="stop", stop_price=105, order_class="bracket", **good)
    bad = {"stop_loss": {"stop_price": 105}, "take_profit": {"limit_price": 106}}
    status, body = market.post(type="stop", stop_price=105, order_class="bracket", **bad)
    assert (status, body["base_price"]) == (422, "105")


def test_a_bracket_must_be_an_entry_and_an_oco_an_exit(holding):
    sale = bracket(95, 110, side=OrderSide.SELL)
    assert refused(holding.client.submit_order, sale)[2] == "bracket orders must be entry orders"
    pair = LimitOrderRequest(
        qty=1,
        order_class=OrderClass.OCO,
        take_profit=TakeProfitRequest(limit_price=110),
        stop_loss=StopLossRequest(stop_price=95),
        **AAPL,
    )
    assert refused(holding.client.submit_order, pair)[2] == "oco orders must be exit orders"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"order_class": "bracket", "stop_loss": {"stop_price": 95}},
            "bracket orders require take_profit.limit_price",
        ),
        (
            {"order_class": "bracket", "take_profit": {"limit_price": 110}},
            "bracket orders require stop_loss.stop_price",
        ),
        ({"order_class": "oto"}, "oto orders require either take_profit or stop_loss"),
        (
            {"stop_loss": {"stop_price": 95}},
            "simple orders must not have take_profit or stop_loss",
        ),
        ({"type": "limit"}, "limit orders require a limit price"),
        ({"type": "stop"}, "stop orders require a stop price"),
        ({"limit_price": 99}, "market orders must not have limit_price"),
        ({"stop_price": 99}, "market orders must not have stop_price"),
        ({"order_class": "oto", "stop_loss": {}}, "stop_loss requires stop_loss.stop_price"),
        ({"symbol": "NOPE"}, 'asset "NOPE" not found'),
    ],
)
def test_incomplete_orders_are_unprocessable(market, body, message):
    assert market.post(**body) == (422, {"code": 42210000, "message": message})


@pytest.mark.parametrize(
    "body",
    [
        {"qty": 0},
        {"qty": -1},
        {"qty": "NaN"},
        {"qty": "Infinity"},
        {"qty": "1_0"},
        {"qty": " 1"},
        {"qty": True},
        {"qty": [1]},
        {"qty": None},
        {"qty": "1e99"},
        {"qty": 10**12},
        {"symbol": None},
        {"symbol": 7},
        {"side": "hold"},
        {"side": None},
        {"type": "guess"},
        {"time_in_force": "ever"},
        {"order_class": "pair"},
        {"client_order_id": "x" * 129},
        {"client_order_id": "\ud800"},
        {"client_order_id": ""},
        {"client_order_id": 5},
        {"type": "limit", "limit_price": -1},
        {"type": "limit", "limit_price": 0},
        {"order_class": "oto", "stop_loss": 95},
    ],
)
def test_malformed_fields_are_refused_and_change_nothing(market, body):
    status, answer = market.post(**body)
    assert (status, answer["code"]) == (422, 40010001)
    assert market.all_orders() == ()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b'{"qty": NaN}',
        b'{"qty": -Infinity}',
        b'{"qty": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        None,
    ],
)
def test_a_body_that_is_no_json_object_is_refused(market, body):
    status, answer = market.exchange.handle("POST", "/v2/orders", body)
    assert (status, answer["code"]) == (422, 40010001)
    assert answer["message"].startswith("request body format is invalid")


def test_unknown_fields_and_parameters_are_refused_rather_than_ignored(market):
    assert "the order field color" in market.post(color="red")[1]["message"]
    status, answer = market.send("GET", "/v2/orders?page=2")
    assert status == 422
    assert "parameter page" in answer["message"]


def test_a_market_buy_reserves_four_percent_beyond_the_last_close(market):
    assert market.post(qty=96)[0] == 200
    status, body = Floor(*QUIET).post(qty=97)
    assert status == 403
    assert body == {
        "code": 40310000,
        "message": "insufficient buying power",
        "buying_power": "10000",
        "cost_basis": "10088",
    }


@pytest.mark.parametrize(("price", "status"), [("100", 200), ("100.01", 403)])
def test_a_limit_buy_reserves_its_limit(market, price, status):
    assert market.post(qty=100, type="limit", limit_price=price)[0] == status


@pytest.mark.parametrize(("price", "status"), [("192.3", 200), ("192.31", 403), ("90", 200)])
def test_a_stop_buy_reserves_its_stop_and_four_percent(market, price, status):
    assert market.post(qty=50, type="stop", stop_price=price)[0] == status


def test_open_buys_reduce_buying_power_until_they_are_canceled(market):
    first = market.buy(qty=60, type="limit", limit_price=100)
    assert market.client.get_account().buying_power == "4000"
    assert market.post(qty=41, type="limit", limit_price=100)[0] == 403
    market.client.cancel_order_by_id(first)
    assert market.client.get_account().buying_power == "10000"


def test_a_reservation_covers_the_fee():
    market = Floor(*QUIET, costs=Costs(slippage_bps=0.0, commission_per_order=1.0))
    assert market.post(qty=100, type="limit", limit_price=100)[1]["cost_basis"] == "10001"
    assert market.post(qty=100, type="limit", limit_price="99.99")[0] == 200


def test_shares_held_by_legs_cannot_be_sold_again_and_a_pair_holds_them_once(market):
    market.bracket(95, 110)
    market.to_close(1)
    status, body = market.post(side="sell", qty=1)
    assert (status, body) == (
        403,
        {
            "code": 40310000,
            "message": "insufficient qty available for order (requested: 1, available: 0)",
            "symbol": "AAPL",
            "available": "0",
            "existing_qty": "10",
            "held_for_orders": "10",
        },
    )
    answer = refused(market.client.close_position, "AAPL")
    assert answer[:2] == (403, 40310000)


@pytest.mark.parametrize(("quantity", "status"), [(6, 200), (7, 403)])
def test_only_shares_not_held_by_open_sells_can_be_sold(holding, quantity, status):
    holding.sell(qty=4, type="limit", limit_price=120)
    assert holding.post(side="sell", qty=quantity, type="limit", limit_price=120)[0] == status


@pytest.mark.parametrize(
    ("resting", "new", "meets"),
    [
        ({"type": "stop", "stop_price": 90}, {"type": "limit", "limit_price": 50}, True),
        ({"type": "stop", "stop_price": 90}, {}, True),
        ({}, {"type": "limit", "limit_price": 50}, True),
        (
            {"type": "limit", "limit_price": 110},
            {"type": "limit", "limit_price": "109.99"},
            False,
        ),
        ({"type": "limit", "limit_price": 110}, {"type": "limit", "limit_price": 110}, True),
        ({"type": "limit", "limit_price": 110}, {"type": "stop", "stop_price": 105}, True),
        (
            {"type": "limit", "limit_price": 110},
            {
                "order_class": "bracket",
                "stop_loss": {"stop_price": 95},
                "take_profit": {"limit_price": 120},
            },
            False,
        ),
    ],
)
def test_wash_trades_are_refused_and_complex_orders_are_exempt(holding, resting, new, meets):
    existing = holding.sell(qty=1, time_in_force="gtc", **resting)
    status, body = holding.post(qty=1, **new)
    if not meets:
        assert status == 200
        return
    assert (status, body["code"]) == (403, 40310000)
    assert body["message"] == "potential wash trade detected. use complex orders"
    assert body["existing_order_id"] == existing


def test_the_waiting_legs_of_an_unfilled_entry_hold_no_shares(holding):
    holding.bracket(40, 110, type="limit", limit_price=50)
    assert holding.client.get_open_position("AAPL").qty_available == "10"
    assert holding.post(side="sell")[0] == 200


def test_a_simple_buy_beside_the_legs_of_a_bracket_is_no_wash_trade(market):
    market.bracket(95, 110)
    market.to_close(1)
    assert market.post(qty=1)[0] == 200


def test_a_resting_buy_blocks_a_sell_that_could_meet_it(holding):
    holding.buy(qty=1, type="limit", limit_price=95, time_in_force="gtc")
    assert holding.post(side="sell", qty=1, type="limit", limit_price="95.01")[0] == 200
    assert holding.post(side="sell", qty=1, type="limit", limit_price=95)[0] == 403


def test_oco_levels_are_measured_against_each_other_only(holding):
    def pair(stop, target):
        legs = {"stop_loss": {"stop_price": stop}, "take_profit": {"limit_price": target}}
        return holding.post(side="sell", type="limit", order_class="oco", qty=1, **legs)

    assert pair(101, 100)[0] == 422
    assert pair(101, 101)[0] == 422
    assert pair(101, "101.01")[0] == 200  # above the market: it leaves at the next open


def test_a_final_order_cannot_be_canceled(market):
    filled = market.buy()
    canceled = market.buy()
    market.client.cancel_order_by_id(canceled)
    market.to_close(1)
    for order, state in ((filled, "filled"), (canceled, "canceled")):
        assert refused(market.client.cancel_order_by_id, order)[:3] == (
            422,
            42210000,
            f'order is already in "{state}" state',
        )


def test_what_does_not_exist_is_not_found(market):
    nobody = "11111111-2222-3333-4444-555555555555"
    for call, name, message in (
        (market.client.get_order_by_id, nobody, f"order not found for {nobody}"),
        (market.client.cancel_order_by_id, nobody, f"order not found for {nobody}"),
        (market.client.get_order_by_client_id, "nobody", "order not found for nobody"),
        (market.client.get_open_position, "AAPL", "position does not exist"),
        (market.client.close_position, "NOPE", "position does not exist"),
        (market.client.get_asset, "NOPE", "asset not found for NOPE"),
        (market.client.get, "/watchlists", "endpoint not found: GET /v2/watchlists"),
    ):
        assert refused(call, name)[:3] == (404, 40410000, message)
    assert market.send("DELETE", "/v2/orders/no-uuid")[0] == 422
    assert market.send("GET", "/")[0] == 404
    assert market.send("TRACE", "/v2/orders")[0] == 404


@pytest.mark.parametrize(
    "query",
    [
        "status=new",
        "limit=0",
        "limit=501",
        "limit=-1",
        "limit=x",
        "after=yesterday",
        "direction=up",
        "nested=maybe",
        "side=both",
    ],
)
def test_a_wrong_parameter_of_the_order_list_is_named(market, query):
    status, body = market.send("GET", f"/v2/orders?{query}")
    assert (status, body["code"]) == (422, 40010001)
    assert body["message"].startswith(query.split("=")[0])


def test_a_symbol_without_a_price_yet_cannot_be_ordered():
    data = HandBars({"AAPL": QUIET, "LATE": QUIET}, missing={"LATE": {0, 1}})
    market = Floor(data=data)
    assert 'asset "LATE" has no price yet' in market.post(symbol="LATE")[1]["message"]
    market.to_close(2)
    assert market.post(symbol="LATE")[0] == 200


def test_the_client_is_the_unmodified_one(market):
    assert type(market.client) is TradingClient
