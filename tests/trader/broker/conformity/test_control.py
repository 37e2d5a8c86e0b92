"""What /control makes happen, as the unmodified client sees it."""

from __future__ import annotations

import pytest
import requests
from alpaca.common.exceptions import APIError
from alpaca.trading.requests import MarketOrderRequest

from tests.trader.broker.conformity.venue import HTTP, open_venue
from tests.trader.broker.conformity.watched import StockBars, market_data, running, trade_updates
from tests.trader.broker.floor import SESSIONS


@pytest.fixture
def venue():
    with open_venue(HTTP, rows={"AAPL": [(100,) * 4] * 6}) as opened:
        order = MarketOrderRequest(symbol="AAPL", qty=10, side="buy", time_in_force="day")
        opened.trading.submit_order(order)
        control(opened, "advance", slots=1)
        yield opened


def control(venue, word, **body):
    answer = requests.post(f"{venue.server.url}/control/{word}", json=body, timeout=20)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_split_multiplies_the_shares_and_moves_no_money(venue):
    control(venue, "split", symbol="AAPL", ratio=2, session=SESSIONS[2].isoformat())
    stream = market_data(StockBars, venue.server.market_data_urls["iex"])
    stream.subscribe_bars(stream.hear, "AAPL")
    with running(stream):
        control(venue, "advance", slots=2)
        assert [stream.next().close for _ in range(2)] == [50, 50]
    assert venue.trading.get_open_position("AAPL").qty == "20"
    assert venue.trading.get_account().equity == "10000"
    [row] = venue.trading.get("/account/activities", {"activity_types": "SPLIT"})
    assert row["symbol"] == "AAPL"


def test_money_comes_and_goes_without_an_order(venue):
    control(venue, "dividend", symbol="AAPL", per_share="0.5", session=SESSIONS[2].isoformat())
    control(venue, "advance", slots=1)
    assert venue.trading.get_account().cash == "9005"
    control(venue, "deposit", amount="95")
    assert venue.trading.get_account().cash == "9100"
    control(venue, "fee", amount="0.35", description="by law")
    assert venue.trading.get_account().cash == "9099.65"


def test_a_halted_symbol_takes_orders_and_fills_none(venue):
    control(venue, "halt", symbol="AAPL", on=True)
    sold = venue.trading.close_position("AAPL", None)
    control(venue, "advance", slots=1)
    assert venue.trading.get_open_position("AAPL").qty == "10"
    control(venue, "halt", symbol="AAPL", on=False)
    assert sold.symbol == "AAPL"


def test_a_blocked_account_says_so_and_orders_nothing(venue):
    control(venue, "block", reason="by hand")
    assert venue.trading.get_account().trading_blocked is True
    with pytest.raises(APIError) as caught:
        venue.trading.close_position("AAPL")
    assert caught.value.status_code == 403
    control(venue, "block", reason="")
    assert venue.trading.close_position("AAPL").qty == "10"


def test_a_reset_account_is_another_one(venue):
    before = venue.trading.get_account()
    control(venue, "reset", cash=500)
    after = venue.trading.get_account()
    assert (after.cash, venue.trading.get_all_positions()) == ("500", [])
    assert after.id != before.id
    assert after.account_number != before.account_number


def test_streams_go_on_with_the_new_account(venue):
    with running(trade_updates(venue.server.trade_updates_url)) as stream:
        control(venue, "reset", cash=500)
        order = MarketOrderRequest(symbol="AAPL", qty=1, side="buy", time_in_force="day")
        venue.trading.submit_order(order)
        assert stream.next().event == "accepted"


def test_a_drop_breaks_the_streams_and_they_come_back(venue):
    with running(trade_updates(venue.server.trade_updates_url)) as stream:
        control(venue, "drop")
        stream.subscribed.get(timeout=20)


def test_what_the_market_does_not_know_is_refused(venue):
    for word, body in (
        ("halt", {"symbol": "NOPE", "on": True}),
        ("split", {"symbol": "AAPL", "ratio": 1, "session": SESSIONS[2].isoformat()}),
        ("deposit", {"amount": 0}),
        ("reset", {"cash": -1}),
    ):
        answer = requests.post(f"{venue.server.url}/control/{word}", json=body, timeout=20)
        assert (answer.status_code, answer.json()["code"]) == (422, 40010001)
