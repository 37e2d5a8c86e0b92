"""Quotes, snapshots, news and corporate actions, read without trusting them."""

from __future__ import annotations

from datetime import date

import pytest

from tests.servers.market_server import MarketServer, answer
from tests.trader.data.alpaca_rows import Clock, opener, utc
from trader.core.errors import DataIntegrityError, EndpointError
from trader.data.alpaca_reads import (
    CorporateAction,
    actions_from_json,
    actions_to_json,
    read_actions,
    read_news,
    read_quote,
    read_snapshot,
)

QUOTE = {"t": "2025-01-02T15:00:00.5Z", "bp": 10.0, "bs": 1, "ap": 12.0, "as": 2}


@pytest.fixture
def server():
    with MarketServer() as running:
        yield running


@pytest.fixture
def services(server):
    return opener(server, Clock(utc("2025-01-02T15:00")))


def test_a_quote_of_a_share_names_its_feed_and_one_of_a_coin_needs_no_key(server):
    services = opener(server, Clock(utc("2025-01-02T15:00")), keys=None)
    server.answers["/v1beta3/crypto/us/latest/quotes"] = {"quotes": {"BTC/USD": QUOTE}}
    assert read_quote(services, "BTC/USD", "crypto").price == 11.0
    assert server.requests[-1].params == {"symbols": "BTC/USD"}
    assert "apca-api-key-id" not in server.requests[-1].headers
    server.answers["/v2/stocks/quotes/latest"] = {"quotes": {"AAPL": QUOTE}}
    quote = read_quote(opener(server, Clock(utc("2025-01-02T15:00"))), "AAPL", "sip")
    assert (quote.bid, quote.ask, quote.at) == (10.0, 12.0, utc("2025-01-02T15:00:00.5"))
    assert server.requests[-1].params == {"symbols": "AAPL", "feed": "sip"}


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ({"quotes": {}}, DataIntegrityError, "no quote of AAPL"),
        ({"quotes": {"AAPL": None}}, DataIntegrityError, "no quote of AAPL"),
        ({"quotes": []}, EndpointError, "is no object"),
        ({}, EndpointError, "is no object"),
        ({"quotes": {"AAPL": QUOTE | {"ap": float("nan")}}}, DataIntegrityError, "ap is nan"),
        ({"quotes": {"AAPL": QUOTE | {"bp": -1}}}, DataIntegrityError, "bp is -1"),
        ({"quotes": {"AAPL": QUOTE | {"t": "2025-01-02"}}}, EndpointError, "the time t"),
    ],
)
def test_a_quote_that_is_none_is_refused(server, services, body, kind, words):
    server.answers["/v2/stocks/quotes/latest"] = body
    with pytest.raises(kind, match=words):
        read_quote(services, "AAPL", "iex")


def test_a_snapshot_shows_what_there_is(server, services):
    server.answers["/v2/stocks/snapshots"] = {
        "AAPL": {
            "latestTrade": {"t": "2025-01-02T15:00:00Z", "p": 11.5, "s": 3},
            "latestQuote": QUOTE,
            "minuteBar": None,
            "dailyBar": None,
            "prevDailyBar": {"t": "2024-12-31T05:00:00Z", "c": 9.0},
        },
        "NEW": {"latestTrade": None},
    }
    seen = read_snapshot(services, "AAPL", "iex")
    assert (seen.price, seen.traded_at, seen.previous_close) == (
        11.5,
        utc("2025-01-02T15:00"),
        9.0,
    )
    assert seen.quote is not None
    assert seen.quote.price == 11.0
    new = read_snapshot(services, "NEW", "iex")
    assert (new.price, new.quote, new.previous_close) == (None, None, None)
    with pytest.raises(DataIntegrityError, match="Alpaca knows nothing of OTHER"):
        read_snapshot(services, "OTHER", "iex")


def item(number: int, created: str = "2025-01-02T10:00:00Z", **changes):
    return {
        "id": number,
        "headline": f"headline {number}",
        "summary": "",
        "source": "wire",
        "symbols": ["AAPL"],
        "created_at": created,
        "updated_at": created,
        "author": "",
        "content": "",
        "url": None,
    } | changes


def news_page(items, token):
    return lambda _: answer({"news": items, "next_page_token": token})


def test_news_has_a_limit_and_no_page_beyond_it_is_asked_for(server, services):
    server.ways.extend(
        [
            news_page([item(n) for n in range(50)], "a"),
            news_page([item(n) for n in range(48, 98)], "b"),
        ]
    )
    found = read_news(services, "AAPL", 60)
    assert [one.news_id for one in found] == [str(n) for n in range(60)]
    assert [asked.params["limit"] for asked in server.requests] == ["50", "50"]
    assert server.requests[1].params["page_token"] == "a"
    server.ways.append(news_page([item(1), item(2), item(3)], "a"))
    assert len(read_news(services, "BTC/USD", 2)) == 2
    assert (server.requests[2].params["limit"], server.requests[2].params["symbols"]) == (
        "2",
        "BTCUSD",
    )
    assert len(server.requests) == 3


def test_news_is_known_when_its_words_became_what_they_are(server, services):
    corrected = item(1, updated_at="2025-01-02T12:00:00Z")
    server.answers["/v1beta1/news"] = {"news": [corrected, item(2, updated_at=None)]}
    first, second = read_news(services, "AAPL", 9)
    assert (first.created_at, first.known_at) == (
        utc("2025-01-02T10:00"),
        utc("2025-01-02T12:00"),
    )
    assert second.known_at == utc("2025-01-02T10:00")


def test_actions_are_read_page_by_page_each_once_and_in_order(server, services):
    split = {"symbol": "AAPL", "new_rate": 4, "old_rate": 1, "ex_date": "2024-08-31"}
    first = {
        "forward_splits": [split],
        "cash_dividends": [{"symbol": "AAPL", "rate": 0.2, "ex_date": "2024-09-10"}],
        "a_new_kind": [{"process_date": "2024-01-05"}, {"without": "a date"}],
    }
    second = {"reverse_splits": [split | {"new_rate": 1, "old_rate": 8, "ex_date": "2024-02-01"}]}
    server.ways.extend(
        [
            lambda _: answer({"corporate_actions": first, "next_page_token": "x"}),
            lambda _: answer({"corporate_actions": first | second, "next_page_token": None}),
        ]
    )
    found = read_actions(services, "AAPL", date(2024, 1, 1), date(2024, 12, 31))
    assert [(one.day, one.kind, one.ratio) for one in found] == [
        (date(2024, 1, 5), "a_new_kind", None),
        (date(2024, 2, 1), "reverse_splits", 0.125),
        (date(2024, 8, 31), "forward_splits", 4.0),
        (date(2024, 9, 10), "cash_dividends", None),
    ]
    assert actions_from_json(actions_to_json(found)) == found
    assert isinstance(found[0], CorporateAction)
    assert (server.requests[0].params["start"], server.requests[0].params["end"]) == (
        "2024-01-01",
        "2024-12-31",
    )


@pytest.mark.parametrize(
    "row",
    [
        {"symbol": "AAPL", "ex_date": "2024-08-31", "new_rate": 4},
        {"symbol": "AAPL", "ex_date": "2024-08-31", "new_rate": "4", "old_rate": 1},
        {"symbol": "AAPL", "ex_date": "2024-13-31", "new_rate": 4, "old_rate": 1},
        "a split",
    ],
)
def test_a_split_that_cannot_be_read_is_an_error(server, services, row):
    server.answers["/v1/corporate-actions"] = {"corporate_actions": {"forward_splits": [row]}}
    with pytest.raises(EndpointError, match="corporate actions of AAPL cannot be read"):
        read_actions(services, "AAPL", date(2024, 1, 1), date(2024, 12, 31))
