"""News, corporate actions and screeners through the unmodified clients."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from alpaca.data.enums import CorporateActionsType, MarketType, MostActivesBy
from alpaca.data.historical import NewsClient, ScreenerClient
from alpaca.data.historical.corporate_actions import CorporateActionsClient
from alpaca.data.requests import (
    CorporateActionsRequest,
    MarketMoversRequest,
    MostActivesRequest,
    NewsRequest,
)

from tests.trader.broker.exchange.market import bars_with_splits, data_client
from tests.trader.broker.floor import FLAT, SESSIONS, Floor

ROWS = {
    "AAPL": [FLAT, FLAT, (50, 50, 50, 50), (50, 60, 50, 60), *[(60,) * 4] * 4],
    "MSFT": [(300,) * 4, (300,) * 4, (300,) * 4, (300, 300, 290, 291), *[(291,) * 4] * 4],
    "BTC/USD": [(50_000,) * 4] * 3 + [(51_000,) * 4] * 5,
}


@pytest.fixture
def market() -> Floor:
    """AAPL shows a split on session 2; more is announced."""
    market = Floor(data=bars_with_splits(ROWS, {"AAPL": ((SESSIONS[2], 2.0),)}))
    market.exchange.pay_dividend("MSFT", Decimal("0.25"), SESSIONS[5])
    market.exchange.split("MSFT", Decimal("0.1"), SESSIONS[6])
    return market


def actions(market: Floor, **wanted):
    client = data_client(market.exchange, CorporateActionsClient)
    asked = {"start": date(2025, 6, 1), "end": date(2025, 8, 1)} | wanted
    return client.get_corporate_actions(CorporateActionsRequest(**asked)).data


def test_there_are_no_news(market):
    client = data_client(market.exchange, NewsClient)
    assert client.get_news(NewsRequest(symbols="AAPL", limit=5)).data == {"news": []}
    for query in ("limit=51", "sort=up", "start=x", "colour=red"):
        status, answer = market.send("GET", f"/v1beta1/news?{query}")
        assert (status, list(answer)) == (400, ["message"])


def test_what_was_announced_is_known_and_what_the_bars_show_only_when_they_do(market):
    found = actions(market)
    assert set(found) == {"cash_dividends", "reverse_splits"}
    (dividend,) = found["cash_dividends"]
    assert (dividend.symbol, dividend.rate, dividend.ex_date) == ("MSFT", 0.25, SESSIONS[5])
    (reverse,) = found["reverse_splits"]
    assert (reverse.new_rate, reverse.old_rate) == (1, 10)
    market.to_close(2)
    (split,) = actions(market, symbols=["AAPL"])["forward_splits"]
    assert (split.new_rate, split.old_rate, split.ex_date) == (2, 1, SESSIONS[2])
    assert actions(market)["forward_splits"] == [split]


def test_corporate_actions_can_be_asked_for_by_symbol_kind_day_and_id(market):
    market.to_close(2)
    assert actions(market, symbols=["ZZZ"]) == {}
    kinds = [CorporateActionsType.CASH_DIVIDEND, CorporateActionsType.SPIN_OFF]
    assert set(actions(market, types=kinds)) == {"cash_dividends"}
    assert set(actions(market, start=SESSIONS[6], end=SESSIONS[6])) == {"reverse_splits"}
    status, answer = market.send("GET", "/v1/corporate-actions")  # without dates, only today
    assert (status, list(answer["corporate_actions"])) == (200, ["forward_splits"])
    split = answer["corporate_actions"]["forward_splits"][0]
    status, answer = market.send("GET", f"/v1/corporate-actions?ids={split['id']}")
    assert answer["corporate_actions"] == {"forward_splits": [split]}
    assert market.send("GET", "/v1/corporate-actions?types=gift")[0] == 400


def test_pages_of_corporate_actions_join(market):
    market.to_close(2)
    path = "/v1/corporate-actions?start=2025-06-01&end=2025-08-01&limit=1&sort="
    seen = {"asc": [], "desc": []}
    for sort, found in seen.items():
        token = ""
        while token is not None:
            _, page = market.send("GET", f"{path}{sort}&page_token={token}")
            found += [(kind, rows) for kind, rows in page["corporate_actions"].items()]
            token = page["next_page_token"]
    assert [kind for kind, _ in seen["asc"]] == [
        *("forward_splits", "cash_dividends", "reverse_splits")
    ]
    assert seen["desc"] == seen["asc"][::-1]


def test_the_most_active_shares_lead(market):
    client = data_client(market.exchange, ScreenerClient)
    found = client.get_most_actives(MostActivesRequest(by=MostActivesBy.VOLUME, top=1))
    assert [(one.symbol, one.volume) for one in found.most_actives] == [("AAPL", 1e6)]
    assert found.last_updated == market.exchange.now()


def test_movers_are_measured_in_shares_of_today(market):
    client = data_client(market.exchange, ScreenerClient)
    market.to_close(2)
    calm = client.get_market_movers(MarketMoversRequest(top=5))
    assert (calm.gainers, calm.losers) == ([], [])  # the split is no loss
    market.to_close(3)
    moved = client.get_market_movers(MarketMoversRequest(top=5))
    assert [(one.symbol, one.percent_change, one.price) for one in moved.gainers] == [
        ("AAPL", 20, 60)
    ]
    assert [(one.symbol, one.percent_change, one.change) for one in moved.losers] == [
        ("MSFT", -3, -9)
    ]
    coins = client.get_market_movers(MarketMoversRequest(market_type=MarketType.CRYPTO))
    assert [one.symbol for one in coins.gainers] == ["BTC/USD"]
    assert market.send("GET", "/v1beta1/screener/stocks/movers?top=51")[0] == 400
    assert market.send("GET", "/v1beta1/screener/options/movers")[0] == 404
