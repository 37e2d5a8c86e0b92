"""The rules of fills: at which price, on which bar, and on both sides of every boundary."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.trader.broker.floor import FLAT, Floor, HandBars, closing, opening
from trader.core.costs import Costs
from trader.core.errors import DataIntegrityError
from trader.core.market import Timeframe
from trader.core.trading import OrderStatus

SLIPPED = Costs(slippage_bps=10.0)  # a tenth of a percent


def bought_at_100(*bars, **floor):
    """A bracket with stop 95 and target 110, entered at 100 on session 1; `bars` come after."""
    market = Floor(FLAT, FLAT, *bars, **floor)
    market.bracket(95, 110)
    market.to_close(1)
    assert market.fills() == [("buy", Decimal(100))] or floor
    return market


def test_an_order_decided_at_a_close_fills_at_the_next_open_and_never_at_that_close():
    market = Floor(
        (10, 10, 10, 10), (11, 20, 11, 20), (12, 12, 12, 12), cash=1000, start=closing(1)
    )
    market.buy(qty=48)
    market.to_close(2)
    assert market.last_fill().price == 12
    assert market.last_fill().filled_at == opening(2)
    assert market.broker.portfolio().equity == 1000


def test_an_order_after_the_last_bar_never_fills():
    market = Floor(FLAT, FLAT)
    market.to_close(1)
    day, gtc = market.buy(), market.buy(time_in_force="gtc")
    market.to_close(5)
    assert market.fills() == []
    assert market.order(day).status is OrderStatus.EXPIRED
    assert not market.order(gtc).status.is_final


def test_an_order_cannot_trade_on_a_bar_that_opened_before_it_was_sent():
    market = Floor(FLAT, FLAT, (120, 120, 120, 120), start=opening(1).replace(second=1))
    market.buy(time_in_force="gtc")
    market.to_close(1)
    assert market.fills() == []
    market.to_close(2)
    assert market.fills() == [("buy", Decimal(120))]


def test_an_order_sent_at_the_very_opening_trades_on_that_bar():
    market = Floor(FLAT, (101, 101, 101, 101), start=opening(1))
    market.buy()
    market.to_close(1)
    assert market.fills() == [("buy", Decimal(101))]


def test_a_gap_through_the_stop_exits_at_the_open():
    market = bought_at_100((90, 91, 89, 90))
    market.to_close(2)
    assert market.last_fill().price == 90


def test_stop_and_target_inside_one_bar_exit_at_the_stop():
    market = bought_at_100((100, 112, 94, 100))
    market.to_close(2)
    assert market.fills()[1:] == [("sell", Decimal(95))]


def test_a_favourable_gap_through_the_target_fills_at_the_open():
    market = bought_at_100((115, 116, 114, 115))
    market.to_close(2)
    assert market.last_fill().price == 115
    assert market.last_fill().filled_at == opening(2)


def test_a_stop_inside_the_bar_exits_at_its_level_not_at_the_close():
    market = bought_at_100((100, 101, 80, 85))
    market.to_close(2)
    assert market.last_fill().price == 95
    assert market.last_fill().filled_at == closing(2)


@pytest.mark.parametrize(
    ("bar", "exit_price"),
    [
        ((100, 100, 95, 100), 95),
        ((100, 100, 95.01, 100), None),
        ((95, 95, 95, 95), 95),
        ((94.99, 96, 94, 95), 94.99),
        ((100, 110, 100, 100), 110),
        ((100, 109.99, 100, 100), None),
        ((110, 110, 110, 110), 110),
        ((110.01, 111, 110, 110), 110.01),
        ((110, 111, 80, 90), 110),  # the open is known to come before the low
        ((95, 120, 90, 110), 95),
    ],
)
def test_stop_and_target_trade_exactly_when_the_bar_reaches_them(bar, exit_price):
    market = bought_at_100(bar)
    market.to_close(2)
    expected = [] if exit_price is None else [("sell", Decimal(str(exit_price)))]
    assert market.fills()[1:] == expected


@pytest.mark.parametrize(
    ("entry_bar", "fills"),
    [
        ((100, 100, 95, 97), [100, 95]),
        ((100, 100, 95.01, 97), [100]),
        ((100, 111, 99, 100), [100, 110]),
        ((100, 111, 94, 100), [100, 95]),
        ((94, 120, 93, 110), [94, 94]),  # below its own stop: out at the same open
        ((95, 95, 95, 95), [95, 95]),
        ((112, 113, 90, 100), [112, 112]),  # above its own target: out at the same open
    ],
)
def test_legs_live_on_the_entry_bar(entry_bar, fills):
    market = Floor(FLAT, entry_bar)
    market.bracket(95, 110)
    market.to_close(1)
    assert [price for _, price in market.fills()] == fills
    assert market.all_orders()[0].filled_average_price == fills[0]


def test_slippage_moves_market_and_stop_fills_against_the_trader_and_no_limit_fill():
    entry = Floor(FLAT, (100, 100, 95, 97), costs=SLIPPED)
    entry.bracket(95, 110)
    entry.to_close(1)
    assert entry.fills() == [("buy", Decimal("100.1")), ("sell", Decimal("94.905"))]
    gap = bought_at_100((90, 91, 89, 90), costs=SLIPPED)
    gap.to_close(2)
    assert gap.last_fill().price == Decimal("89.91")
    for bar, price in (((100, 112, 100, 111), 110), ((115, 116, 115, 115), 115)):
        target = bought_at_100(bar, costs=SLIPPED)
        target.to_close(2)
        assert target.last_fill().price == price
    plain = bought_at_100(FLAT, costs=SLIPPED)
    for leg in plain.broker.orders()[0].legs[:1]:
        plain.broker.cancel(leg.order_id)
    plain.sell()
    plain.to_close(2)
    assert plain.last_fill().price == Decimal("99.9")


@pytest.mark.parametrize(
    ("bar", "price"),
    [
        ((98, 99, 97, 98), 98),  # an open below the limit is the better price
        ((99, 99, 99, 99), 99),
        ((100, 101, 99, 100), 99),
        ((100, 101, 99.01, 100), None),
    ],
)
def test_a_buy_limit_fills_at_its_limit_or_better(bar, price):
    market = Floor(FLAT, bar, costs=SLIPPED)
    market.buy(type="limit", limit_price="99")
    market.to_close(1)
    assert [filled for _, filled in market.fills()] == ([] if price is None else [price])


@pytest.mark.parametrize(
    ("bar", "price"),
    [
        ((100, 105, 100, 104), 105),
        ((100, 104.99, 100, 104), None),
        ((105, 106, 104, 105), 105),
        ((107, 108, 100, 105), 107),  # gapped over: the open, the worse price
    ],
)
def test_a_buy_stop_fills_at_its_level_when_the_bar_reaches_it(bar, price):
    market = Floor(FLAT, bar)
    market.buy(type="stop", stop_price="105")
    market.to_close(1)
    assert [filled for _, filled in market.fills()] == ([] if price is None else [price])


def test_a_buy_stop_and_its_own_stop_can_both_trade_on_one_bar_in_that_order():
    market = Floor(FLAT, (100, 106, 99, 101), costs=SLIPPED)
    market.bracket(101, 120, type="stop", stop_price=105)
    market.to_close(1)
    assert market.fills() == [("buy", Decimal("105.105")), ("sell", Decimal("100.899"))]


@pytest.mark.parametrize(
    ("bar", "fills"),
    [
        ((100, 111, 98, 100), [99]),  # the high may lie before the entry
        ((100, 111, 98, 110), [99, 110]),  # the close is after it
        ((100, 111, 94, 110), [99, 95]),
    ],
)
def test_a_limit_entered_inside_the_bar_reaches_its_target_only_by_the_close(bar, fills):
    market = Floor(FLAT, bar, FLAT)
    market.bracket(95, 110, type="limit", limit_price=99)
    market.to_close(1)
    assert [price for _, price in market.fills()] == fills


def test_a_pending_exit_trades_at_the_open_before_any_stop_of_that_bar():
    market = Floor(FLAT, FLAT, (97, 98, 90, 92))
    market.buy()
    market.to_close(1)
    market.sell(qty=4, type="stop", stop_price=95, time_in_force="gtc")
    market.sell(qty=6)
    market.to_close(2)
    assert market.fills()[1:] == [("sell", Decimal(97)), ("sell", Decimal(95))]


def test_an_exit_at_the_open_pays_for_an_entry_at_the_same_open_of_another_symbol():
    rows = {"AAPL": [FLAT, FLAT, FLAT], "MSFT": [FLAT, FLAT, FLAT]}
    market = Floor(rows=rows, cash=1500)
    market.buy()
    market.to_close(1)
    market.buy(symbol="MSFT", qty=4)
    market.sell(symbol="AAPL")
    market.to_close(2)
    assert market.cash() == 1100


def test_scarce_cash_goes_to_the_order_that_came_first_not_to_the_alphabet():
    jump = (140, 140, 140, 140)
    market = Floor(rows={"AAPL": [FLAT, jump], "MSFT": [FLAT, jump]}, cash=1000)
    first = market.buy(symbol="MSFT", qty=4)
    second = market.buy(symbol="AAPL", qty=4)
    market.to_close(1)
    assert market.order(first).status is OrderStatus.FILLED
    assert market.order(second).status is OrderStatus.REJECTED


def test_an_open_above_the_deciding_close_does_not_reject_an_order_that_can_be_paid():
    market = Floor(FLAT, (104, 104, 104, 104), cash=10_400)
    market.buy(qty=100)
    market.to_close(1)
    assert market.cash() == 0


def test_an_entry_that_cannot_be_paid_is_rejected_visibly_with_its_legs():
    market = Floor(FLAT, (104.01, 105, 104, 104), cash=10_400)
    entry = market.bracket(95, 110, qty=100)
    market.to_close(1)
    order = market.order(entry)
    assert order.status is OrderStatus.REJECTED
    assert {leg.status for leg in order.legs} == {OrderStatus.CANCELED}
    raw = market.client.get(f"/orders/{entry}")
    assert raw["reject_reason"].startswith("insufficient buying power at the fill: cost 10401")
    assert raw["failed_at"] == "2025-06-30T13:30:00Z"
    assert market.cash() == 10_400


def test_fees_are_charged_on_both_sides():
    low, high = 0.2166, 0.2183
    market = Floor((low,) * 4, (low,) * 4, (high,) * 4, costs=Costs(slippage_bps=0.0, fee_bps=40.0))
    market.buy(qty=1500)
    market.to_close(1)
    market.sell(qty=1500)
    market.to_close(2)
    assert market.cash() - 10_000 == Decimal("-0.06")  # -0.0594 with fees rounded to cents


def test_a_commission_is_charged_per_order_and_is_no_part_of_the_price():
    market = Floor(FLAT, FLAT, costs=Costs(slippage_bps=0.0, commission_per_order=5.0))
    market.buy()
    market.to_close(1)
    assert market.cash() == 10_000 - 1005
    assert market.broker.portfolio().positions[0].average_entry_price == 100
    assert market.last_fill().fee == 5


def test_a_fee_beyond_everything_owned_leaves_nothing_and_no_debt():
    market = Floor(
        (1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1), cash=6, costs=Costs(commission_per_order=4.9)
    )
    market.buy(qty=1)
    market.to_close(1)
    market.sell(qty=1)
    market.to_close(2)
    assert market.cash() == 0


def test_an_open_position_is_marked_at_the_last_close():
    market = Floor(FLAT, (100, 112, 99, 110), cash=100_000)
    market.buy(qty=1)
    market.to_close(1)
    portfolio = market.broker.portfolio()
    assert portfolio.equity == 100_010
    assert portfolio.positions[0].current_price == 110
    assert portfolio.as_of == closing(1)


def test_a_day_order_sees_every_bar_of_its_session_and_expires_at_its_close():
    hours = [FLAT] * 14 + [(100, 100, 90, 100)] + [FLAT] * 7
    market = Floor(*hours, timeframe=Timeframe.HOUR, start=opening(1))
    early = market.buy(type="limit", limit_price=95)
    market.to_close(1)
    assert market.order(early).status is OrderStatus.EXPIRED
    late = market.buy(type="limit", limit_price=95)
    market.to_close(2)
    assert market.order(late).status is OrderStatus.FILLED


def test_a_day_order_trades_on_the_last_short_bar_of_a_session():
    last = [FLAT] * 6 + [(90, 90, 90, 90)]
    market = Floor(*last, timeframe=Timeframe.HOUR, start=opening(0).replace(hour=18))
    order = market.buy(type="limit", limit_price=95)
    market.to_close(0)
    assert market.order(order).status is OrderStatus.FILLED
    assert market.last_fill().filled_at == closing(0).replace(hour=19, minute=30)


def test_a_day_order_expires_at_the_early_close_of_a_half_day():
    market = Floor(*[FLAT] * 6, start=closing(3))  # session 4 is July 3, closing at 13:00
    order = market.buy(type="limit", limit_price=50)
    market.to_close(5)
    raw = market.client.get(f"/orders/{order}")
    assert (raw["status"], raw["expired_at"]) == ("expired", "2025-07-03T17:00:00Z")


def test_the_legs_of_a_day_bracket_expire_with_the_session_of_their_entry():
    market = Floor(FLAT, FLAT, (90, 90, 90, 90))
    market.bracket(95, 110, time_in_force="day")
    market.to_close(2)
    assert {leg.status for leg in market.all_orders()[0].legs} == {OrderStatus.EXPIRED}
    assert market.fills() == [("buy", Decimal(100))]


def test_a_session_without_a_bar_trades_nothing_and_ends_day_orders():
    data = HandBars({"AAPL": [FLAT, FLAT, FLAT]}, missing={"AAPL": {1}})
    market = Floor(data=data)
    day, gtc = market.buy(), market.buy(time_in_force="gtc")
    market.to_close(2)
    assert market.order(day).status is OrderStatus.EXPIRED
    assert market.order(gtc).filled_at == opening(2)


@pytest.mark.parametrize("bad", [0.0, float("nan"), float("inf"), -1.0])
def test_an_unsound_bar_is_an_error_that_names_the_symbol_and_the_bar(bad):
    market = Floor(FLAT, (bad, 100, 100, 100))
    market.buy()
    with pytest.raises(DataIntegrityError, match=r"AAPL bar 2025-06-30 13:30"):
        market.to_close(1)
    assert market.exchange.now() == closing(0)


def test_the_average_price_weighs_purchases_and_a_sale_does_not_change_it():
    market = Floor(FLAT, FLAT, (130, 130, 130, 130), FLAT)
    market.buy(qty=20)
    market.to_close(1)
    market.buy(qty=10)
    market.to_close(2)
    market.sell(qty=5)
    market.to_close(3)
    position = market.broker.portfolio().positions[0]
    assert (position.quantity, position.average_entry_price) == (25, 110)


def test_the_market_cannot_go_back_and_may_stand_still():
    market = Floor(FLAT, FLAT)
    market.to_close(1)
    market.to_close(1)
    with pytest.raises(ValueError, match="cannot go back"):
        market.to_close(0)
    with pytest.raises(ValueError, match="time zone"):
        market.exchange.advance(closing(2).replace(tzinfo=None))
