"""Every type and life of an order against bars worked out by hand."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.trader.broker.floor import FLAT, Floor, HandBars, closing, opening
from trader.broker.exchange.liquidity import Liquidity
from trader.core.costs import Costs
from trader.core.market import Timeframe
from trader.core.trading import OrderStatus, OrderType

SLIPPED = Costs(slippage_bps=100.0)  # one percent
HOURS = 7  # bars of a full session; the last is half an hour long


def prices(market: Floor) -> list[Decimal]:
    return [price for _, price in market.fills()]


def holding(*bars, quantity: object = 10, **floor) -> Floor:
    """Shares bought at 100 on session 1; `bars` come after."""
    market = Floor(FLAT, FLAT, *bars, **floor)
    market.buy(qty=quantity)
    market.to_close(1)
    return market


@pytest.mark.parametrize(
    ("bar", "expected"),
    [  # buy, stop 105, limit 106
        ((100, 104.99, 99, 104), []),
        ((100, 105, 99, 104), [105]),
        ((105, 107, 104, 106), [105]),  # the open has passed the stop and keeps the limit
        ((106, 107, 105, 106), [106]),
        ((107, 108, 106.01, 107), []),  # gapped beyond the limit and never back
        ((107, 108, 105, 107), [106]),  # back to the limit
    ],
)
def test_a_buy_stop_limit_trades_between_its_prices(bar, expected):
    market = Floor(FLAT, bar)
    order = market.buy(type="stop_limit", stop_price=105, limit_price=106)
    market.to_close(1)
    assert prices(market) == expected
    assert market.order(order).order_type is OrderType.STOP_LIMIT


@pytest.mark.parametrize(
    ("bar", "expected"),
    [  # sell, stop 95, limit 94
        ((100, 101, 95.01, 96), []),
        ((100, 101, 95, 96), [95]),
        ((95, 96, 93, 95), [95]),
        ((94, 95, 93, 94), [94]),
        ((93, 93.99, 92, 93), []),
        ((93, 95, 92, 93), [94]),
    ],
)
def test_a_sell_stop_limit_trades_between_its_prices(bar, expected):
    market = holding(bar)
    market.sell(type="stop_limit", stop_price=95, limit_price=94)
    market.to_close(2)
    assert prices(market)[1:] == expected


def test_slippage_never_carries_a_stop_limit_beyond_its_limit():
    buy = Floor(FLAT, (100, 106, 99, 104), costs=SLIPPED)
    buy.buy(type="stop_limit", stop_price=105, limit_price="105.5")
    buy.to_close(1)
    assert prices(buy) == [Decimal("105.5")]  # 106.05 with all its slippage
    sale = holding((100, 101, 90, 91), costs=SLIPPED)
    sale.sell(type="stop_limit", stop_price=95, limit_price="94.5")
    sale.to_close(2)
    assert sale.last_fill().price == Decimal("94.5")


@pytest.mark.parametrize(
    ("close", "expected"), [(103, [103]), (102, [103]), (103.01, [])], ids=["at", "below", "above"]
)
def test_a_limit_on_the_far_side_of_its_stop_counts_only_by_the_close(close, expected):
    """Bought above 105 but at 103 at most: the low may lie before the stop was reached."""
    market = Floor(FLAT, (100, 106, 99, close))
    market.buy(type="stop_limit", stop_price=105, limit_price=103)
    market.to_close(1)
    assert prices(market) == expected
    sale = holding((100, 101, 94, 200 - close))
    sale.sell(type="stop_limit", stop_price=95, limit_price=97)
    sale.to_close(2)
    assert prices(sale)[1:] == [200 - price for price in expected]


def test_a_triggered_stop_limit_is_a_limit_order_on_the_bars_that_follow():
    market = Floor(FLAT, (107, 108, 107, 107), (104, 104, 103, 104))
    order = market.buy(type="stop_limit", stop_price=105, limit_price=106, time_in_force="gtc")
    market.to_close(1)
    assert market.order(order).status is OrderStatus.NEW
    market.to_close(2)
    assert prices(market) == [104]  # at the open, though it lies below the stop


def test_the_stop_leg_of_a_bracket_may_have_a_limit():
    market = Floor(FLAT, FLAT, (93, 93, 92, 93), (95, 95, 95, 95))
    market.buy(
        order_class="bracket",
        time_in_force="gtc",
        take_profit={"limit_price": 110},
        stop_loss={"stop_price": 95, "limit_price": 94},
    )
    market.to_close(2)
    assert prices(market) == [100]  # gapped over: nobody buys at 94 on that bar
    market.to_close(3)
    assert prices(market) == [100, 95]


@pytest.mark.parametrize("trail", [{"trail_price": 5}, {"trail_percent": 5}])
def test_a_trailing_stop_follows_the_highest_price_after_each_bar(trail):
    """100 -> stop 95; high 110 -> stop 105 or 104.5, not yet on that bar; then hit at its level."""
    market = holding((100, 110, 96, 109), (109, 109, 106, 107), (107, 108, 104, 104))
    order = market.sell(type="trailing_stop", time_in_force="gtc", **trail)
    assert (market.raw(order)["stop_price"], market.raw(order)["hwm"]) == ("95", "100")
    market.to_close(2)
    stop = "105" if "trail_price" in trail else "104.5"
    assert (market.raw(order)["stop_price"], market.raw(order)["hwm"]) == (stop, "110")
    market.to_close(3)
    assert not market.order(order).status.is_final
    market.to_close(4)
    assert market.last_fill().price == Decimal(stop)


@pytest.mark.parametrize(
    ("bar", "price"),
    [((100, 120, 95, 119), 95), ((94, 120, 90, 119), 94), ((100, 120, 95.01, 119), None)],
)
def test_a_bar_cannot_raise_the_stop_that_it_then_hits(bar, price):
    market = holding(bar)
    market.sell(type="trailing_stop", trail_price=5, time_in_force="gtc")
    market.to_close(2)
    assert prices(market)[1:] == ([] if price is None else [price])


def test_a_trailing_buy_follows_the_lowest_price():
    market = Floor(FLAT, (98, 99, 90, 92), (92, 96, 91, 95), cash=10_000)
    market.buy(type="trailing_stop", trail_price=5, time_in_force="gtc")
    market.to_close(1)
    assert market.fills() == []
    market.to_close(2)
    assert prices(market) == [95]


def hourly(*bars, session: int = 1, **floor) -> Floor:
    """Hourly bars of `session`, quiet ones before; the market stands at the close before."""
    quiet = [FLAT] * (HOURS * session)
    return Floor(*quiet, *bars, timeframe=Timeframe.HOUR, start=closing(session - 1), **floor)


def test_an_order_for_the_opening_trades_at_the_open_or_is_canceled_there():
    market = hourly((101, 105, 99, 100), FLAT)
    market.exchange.advance(opening(1).replace(hour=13, minute=0))
    orders = [
        market.buy(qty=1, time_in_force="opg"),
        market.buy(qty=1, time_in_force="opg", type="limit", limit_price=101),
        market.buy(qty=1, time_in_force="opg", type="limit", limit_price=100),
    ]
    market.to_close(1)
    assert prices(market) == [101, 101]
    raw = market.raw(orders[2])
    assert (raw["status"], raw["canceled_at"]) == ("canceled", "2025-06-30T13:30:00Z")


def test_an_order_for_the_opening_waits_over_a_weekend_and_for_no_later_bar():
    data = HandBars({"AAPL": [FLAT] * 21}, timeframe=Timeframe.HOUR, missing={"AAPL": {7}})
    market = Floor(
        data=data, timeframe=Timeframe.HOUR, start=opening(0).replace(day=28)
    )  # a Saturday
    order = market.buy(time_in_force="opg")
    market.exchange.advance(opening(1).replace(hour=16))
    assert market.fills() == []
    assert market.order(order).status is OrderStatus.CANCELED


def test_an_order_for_the_close_trades_at_the_close_of_the_last_bar():
    bars = [FLAT] * 6 + [(100, 109, 90, 104)]
    market = hourly(*bars, costs=SLIPPED)
    market.exchange.advance(opening(1))
    market.buy(qty=1, time_in_force="cls")
    bought = market.buy(qty=1, time_in_force="cls", type="limit", limit_price=104)
    missed = market.buy(qty=1, time_in_force="cls", type="limit", limit_price="103.99")
    market.to_close(1)
    assert prices(market) == [Decimal("105.04"), 104]
    assert market.order(bought).filled_at == closing(1)
    assert market.raw(missed)["canceled_at"] == "2025-06-30T20:00:00Z"


def test_an_order_for_the_close_may_come_during_the_bar_that_it_trades_on():
    market = Floor(FLAT, (100, 120, 90, 111), start=opening(1).replace(hour=18))
    market.buy(time_in_force="cls")
    market.to_close(1)
    assert prices(market) == [111]


def test_exits_at_the_close_pay_for_entries_there():
    market = Floor(rows={"AAPL": [FLAT] * 3, "MSFT": [FLAT] * 3}, cash=1100)
    market.buy()
    market.to_close(1)
    market.exchange.advance(opening(2).replace(hour=12))
    market.buy(symbol="MSFT", qty=None, notional="90")
    market.sell(time_in_force="cls")
    market.to_close(2)
    assert market.cash() == 1010


@pytest.mark.parametrize("life", ["ioc", "fok"])
@pytest.mark.parametrize(("limit", "filled"), [(100, True), (99, False)])
def test_an_order_for_now_trades_at_the_next_open_or_not_at_all(life, limit, filled):
    """The low of 98 comes too late for it."""
    market = Floor(FLAT, (100, 101, 98, 99), FLAT)
    order = market.buy(time_in_force=life, type="limit", limit_price=limit)
    market.to_close(1)
    raw = market.raw(order)
    assert raw["status"] == ("filled" if filled else "canceled")
    assert raw["filled_at" if filled else "canceled_at"] == "2025-06-30T13:30:00Z"


def test_an_order_for_now_ends_with_a_session_that_has_no_bar():
    market = Floor(data=HandBars({"AAPL": [FLAT] * 3}, missing={"AAPL": {1}}))
    order = market.buy(time_in_force="ioc")
    market.to_close(2)
    assert market.fills() == []
    assert market.raw(order)["canceled_at"] == "2025-06-30T20:00:00Z"


def test_what_is_left_of_an_order_for_now_is_canceled_and_a_whole_one_takes_all_or_nothing():
    thin = Liquidity(volume_share=0.05)
    for life, filled in (("ioc", "5"), ("fok", "0")):
        data = HandBars({"AAPL": [FLAT] * 3}, volume=100)
        market = Floor(data=data, liquidity=thin)
        order = market.buy(time_in_force=life)
        market.to_close(1)
        raw = market.raw(order)
        assert (raw["status"], raw["filled_qty"]) == ("canceled", filled)


def test_parts_of_a_share_trade_like_whole_ones():
    market = Floor(FLAT, FLAT, (100, 100, 95, 96), (110, 111, 109, 110))
    market.buy(qty="1.5")
    market.to_close(1)
    market.sell(qty="0.4", type="stop", stop_price=96)
    market.sell(qty="0.1", type="stop_limit", stop_price=96, limit_price=95)
    market.to_close(2)
    market.sell(qty="1", type="limit", limit_price=105)
    market.to_close(3)
    assert market.cash() == 10_000 - 150 + Decimal("48") + 110
    assert market.broker.portfolio().positions == ()


def test_an_order_by_amount_buys_what_its_amount_is_worth_at_the_fill():
    market = Floor(FLAT, (103, 104, 102, 103), FLAT)
    order = market.buy(qty=None, notional="1000")
    raw = market.raw(order)
    assert (raw["qty"], raw["notional"], raw["filled_qty"]) == (None, "1000", "0")
    market.to_close(1)
    raw = market.raw(order)
    assert (raw["status"], raw["filled_qty"]) == ("filled", "9.708737864")  # 1000 / 103, cut
    assert market.cash() == 10_000 - Decimal("9.708737864") * 103
    assert market.client.get_open_position("AAPL").qty_available == "9.708737864"


def test_a_sale_by_amount_never_takes_more_than_it_was_estimated_at():
    """Half of what is held for 500 USD at 100; after a fall to 50 the same shares bring 250."""
    market = holding((50, 51, 49, 50))
    market.sell(qty=None, notional="500")
    assert market.client.get_open_position("AAPL").qty_available == "5"
    market.to_close(2)
    assert market.last_fill().quantity == 5
    assert market.cash() == 9000 + 250


def test_a_coin_trades_at_any_hour_at_prices_finer_than_a_tick():
    low = (0.000012345, 0.000012345, 0.000012345, 0.000012345)
    half = (0.000011, 0.000011, 0.000006, 0.00001)
    market = Floor(rows={"SHIB/USD": [low, low, half]}, costs=SLIPPED)
    order = market.buy(symbol="SHIB/USD", qty="2000000", time_in_force="gtc")
    assert market.raw(order)["status"] == "new"
    market.to_close(1)
    assert market.last_fill().price == Decimal("0.000012468")  # 0.00001246845
    market.sell(
        symbol="SHIB/USD",
        qty="2000000",
        time_in_force="gtc",
        type="stop_limit",
        stop_price="0.000009",
        limit_price="0.000008",
    )
    market.to_close(2)
    assert market.last_fill().price == Decimal("0.00000891")
    assert market.cash() == 10_000 + 2_000_000 * (Decimal("0.00000891") - Decimal("0.000012468"))


def test_a_halted_symbol_does_not_trade_and_its_orders_wait():
    market = Floor(rows={"AAPL": [FLAT] * 5, "MSFT": [FLAT] * 5})
    waits, expires, other = (
        market.buy(time_in_force="gtc"),
        market.buy(),
        market.buy(symbol="MSFT"),
    )
    market.exchange.halt("AAPL", on=True)
    late = market.buy(time_in_force="gtc")
    market.to_close(1)
    assert [fill.symbol for fill in market.broker.fills()] == ["MSFT"]
    assert market.order(waits).status is OrderStatus.ACCEPTED
    assert market.order(expires).status is OrderStatus.EXPIRED
    assert market.order(other).status is OrderStatus.FILLED
    market.exchange.halt("AAPL", on=False)
    market.to_close(2)
    assert {market.order(one).filled_at for one in (waits, late)} == {opening(2)}
