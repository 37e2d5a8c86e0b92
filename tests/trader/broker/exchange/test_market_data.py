"""Market data through the unmodified clients: Alpaca's shapes, and nothing shown too early."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest
from alpaca.common.exceptions import APIError
from alpaca.data.enums import Adjustment, DataFeed
from alpaca.data.historical import CryptoHistoricalDataClient, StockHistoricalDataClient
from alpaca.data.requests import (
    CryptoBarsRequest,
    CryptoLatestOrderbookRequest,
    CryptoLatestQuoteRequest,
    CryptoLatestTradeRequest,
    CryptoSnapshotRequest,
    StockBarsRequest,
    StockLatestBarRequest,
    StockLatestQuoteRequest,
    StockLatestTradeRequest,
    StockQuotesRequest,
    StockSnapshotRequest,
    StockTradesRequest,
)
from alpaca.data.timeframe import TimeFrame, TimeFrameUnit
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trader.broker.exchange.market import bars_with_splits, data_client
from tests.trader.broker.floor import FLAT, SESSIONS, Floor, HandBars, closing, opening
from trader.broker.exchange.bar_frames import Frame, framed
from trader.broker.exchange.refusal import RefusalError
from trader.core.costs import Costs
from trader.core.market import Timeframe, to_ns

AAPL = [FLAT, (101, 106, 99, 104), (104, 112, 103, 110), (110, 111, 95, 96), *[(96,) * 4] * 6]
MSFT = [(300, 300, 300, 300), (301, 305, 299, 302), *[(302,) * 4] * 8]
COIN = [(50_000,) * 4, (50_100, 51_000, 49_000, 50_500), *[(50_500,) * 4] * 8]
EARLY = datetime(2025, 1, 1, tzinfo=UTC)
HOURS = [(100 + hour, 101 + hour, 99 + hour, 100.5 + hour) for hour in range(7 * 4)]


@pytest.fixture
def market() -> Floor:
    market = Floor(rows={"AAPL": AAPL, "MSFT": MSFT, "BTC/USD": COIN})
    market.to_close(3)
    return market


def hourly(**floor) -> Floor:
    """AAPL by the hour; 7 bars a session, the last of half an hour."""
    data = HandBars({"AAPL": HOURS}, timeframe=Timeframe.HOUR)
    return Floor(data=data, timeframe=Timeframe.HOUR, start=closing(0), **floor)


def bars(market: Floor, symbols="AAPL", frame=TimeFrame.Day, **wanted):
    client = data_client(market.exchange, StockHistoricalDataClient)
    request = StockBarsRequest(
        **{"symbol_or_symbols": symbols, "timeframe": frame, "start": EARLY} | wanted
    )
    return client.get_stock_bars(request).data


def asked(market: Floor, path: str):
    return market.exchange.handle("GET", path, None)


def test_daily_bars_carry_midnight_in_new_york_and_end_at_the_clock(market):
    found = bars(market)["AAPL"]
    assert [(bar.open, bar.high, bar.low, bar.close) for bar in found] == AAPL[:4]
    assert found[0].timestamp == datetime(2025, 6, 27, 4, tzinfo=UTC)
    assert [bar.timestamp.date() for bar in found] == SESSIONS[:4]
    assert (found[0].volume, found[0].vwap, found[0].trade_count) == (1e6, None, None)


def test_a_bar_is_not_shown_before_it_is_complete(market):
    market.exchange.advance(closing(4) - timedelta(seconds=1))
    assert len(bars(market)["AAPL"]) == 4
    market.to_close(4)
    assert len(bars(market)["AAPL"]) == 5


def test_start_and_end_are_both_included(market):
    first = datetime(2025, 6, 30, 4, tzinfo=UTC)
    found = bars(market, start=first, end=first + timedelta(days=1))["AAPL"]
    assert [bar.timestamp.day for bar in found] == [30, 1]
    found = bars(market, start=first + timedelta(seconds=1), end=first + timedelta(hours=23))
    assert found == {}


def test_without_a_start_only_today_is_shown(market):
    assert [bar.timestamp.date() for bar in bars(market, start=None)["AAPL"]] == [SESSIONS[3]]


def test_a_limit_counts_over_all_symbols_and_sort_turns_the_order(market):
    found = bars(market, ["MSFT", "AAPL"], limit=3)
    assert {symbol: len(rows) for symbol, rows in found.items()} == {"AAPL": 3}
    found = bars(market, ["MSFT", "AAPL"], limit=5, sort="desc")
    assert [bar.close for bar in found["AAPL"]] == [96, 110, 104, 100]
    assert [bar.close for bar in found["MSFT"]] == [302]


@pytest.mark.parametrize("sort", ["asc", "desc"])
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 8, 100])
def test_pages_join_to_the_whole(market, sort, limit):
    path = f"/v2/stocks/bars?symbols=MSFT,AAPL&timeframe=1Day&start=2025-01-01&sort={sort}"
    whole = asked(market, path)[1]["bars"]
    joined: dict[str, list] = {}
    token = ""
    while token is not None:
        status, page = asked(market, f"{path}&limit={limit}&page_token={token}")
        assert status == 200
        assert sum(map(len, page["bars"].values())) <= limit
        for symbol, rows in page["bars"].items():
            joined.setdefault(symbol, []).extend(rows)
        token = page["next_page_token"]
    assert joined == whole


def test_days_weeks_and_months_are_put_together_from_hours():
    market = hourly()
    market.to_close(3)
    days = bars(market)["AAPL"]
    assert [(bar.open, bar.high, bar.low, bar.close) for bar in days] == [
        (100 + 7 * day, 107 + 7 * day, 99 + 7 * day, 106.5 + 7 * day) for day in range(4)
    ]
    assert days[0].volume == 7e6
    weeks = bars(market, frame=TimeFrame.Week)["AAPL"]
    assert [(bar.timestamp.date(), bar.open, bar.close) for bar in weeks] == [
        (date(2025, 6, 23), 100, 106.5),
        (date(2025, 6, 30), 107, 127.5),
    ]
    months = bars(market, frame=TimeFrame.Month)["AAPL"]
    assert [(bar.timestamp.date(), bar.volume) for bar in months] == [
        (date(2025, 6, 1), 14e6),
        (date(2025, 7, 1), 14e6),
    ]
    quarters = bars(market, frame=TimeFrame(3, TimeFrameUnit.Month))["AAPL"]
    assert [bar.timestamp.month for bar in quarters] == [4, 7]


def test_the_day_under_way_is_shown_as_far_as_it_has_come():
    market = hourly()
    market.exchange.advance(opening(1) + timedelta(hours=2))
    newest = bars(market)["AAPL"][-1]
    assert (newest.open, newest.close, newest.volume) == (107, 108.5, 2e6)


def test_longer_hours_begin_with_the_session_and_shorter_bars_are_the_last_piece_of_an_hour():
    market = hourly()
    market.to_close(1)
    own = bars(market, frame=TimeFrame.Hour)["AAPL"]
    assert [bar.timestamp for bar in own[:2]] == [opening(0), opening(0) + timedelta(hours=1)]
    two = bars(market, frame=TimeFrame(2, TimeFrameUnit.Hour))["AAPL"]
    assert [(bar.open, bar.close) for bar in two[:4]] == [
        *((100, 101.5), (102, 103.5), (104, 105.5), (106, 106.5))
    ]
    assert two[4].timestamp == opening(1)
    half = bars(market, frame=TimeFrame(30, TimeFrameUnit.Minute))["AAPL"]
    assert len(half) == 14
    assert half[0].timestamp == opening(0) + timedelta(minutes=30)
    assert half[6].timestamp == closing(0) - timedelta(minutes=30)
    assert [(bar.open, bar.high, bar.low, bar.close) for bar in half] == HOURS[:14]


def test_a_daily_bar_in_shorter_ones_ends_with_its_session(market):
    found = bars(market, frame=TimeFrame.Minute)["AAPL"]
    assert [bar.timestamp for bar in found] == [
        closing(session) - timedelta(minutes=1) for session in range(4)
    ]
    long = bars(market, frame=TimeFrame(23, TimeFrameUnit.Hour))["AAPL"]
    assert [bar.timestamp for bar in long] == [opening(session) for session in range(4)]


SPANS = st.tuples(st.integers(0, 40), st.integers(0, 40))
FRAMES = st.sampled_from(["1Min", "30Min", "1Hour", "2Hour", "1Day", "1Week", "1Month"])


@settings(deadline=None)
@given(span=SPANS, frame=FRAMES, cut=st.integers(0, 28))
def test_a_window_shows_what_the_whole_does_and_the_future_changes_no_finished_bar(
    span, frame, cut
):
    market = hourly()
    series = market.data.bars("AAPL", Timeframe.HOUR)
    calendar, parsed = market.exchange._calendar, Frame.of(frame)
    edges = [to_ns(opening(0) + timedelta(hours=3 * hour)) for hour in span]
    whole = framed(series, parsed, calendar, 0, 2**61)
    part = framed(series, parsed, calendar, *edges)
    inside = (whole.at >= edges[0]) & (whole.at <= edges[1])
    for name in ("at", "open", "high", "low", "close", "volume"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[inside])
    early = framed(series.head(cut), parsed, calendar, 0, 2**61)
    finished = max(0, len(early) - 1)
    assert early.at.tolist() == whole.at[: len(early)].tolist()
    assert early.close[:finished].tolist() == whole.close[:finished].tolist()
    assert whole.volume.sum() == series.volume.sum()


def test_an_adjustment_is_for_what_has_happened_by_now():
    rows = {"AAPL": [FLAT, FLAT, (50, 50, 50, 50), (50, 50, 50, 50), *[(49,) * 4] * 4]}
    market = Floor(data=bars_with_splits(rows, {"AAPL": ((SESSIONS[2], 2.0),)}))
    market.exchange.pay_dividend("AAPL", Decimal(1), SESSIONS[4])

    def closes(adjustment=None):
        return [bar.close for bar in bars(market, adjustment=adjustment)["AAPL"]]

    market.to_close(1)
    assert closes(Adjustment.ALL) == [100, 100]
    market.to_close(5)
    assert closes() == closes(Adjustment.RAW) == [100, 100, 50, 50, 49, 49]
    assert closes(Adjustment.SPLIT) == [50, 50, 50, 50, 49, 49]
    assert closes(Adjustment.DIVIDEND) == pytest.approx([98, 98, 49, 49, 49, 49])
    assert closes(Adjustment.ALL) == pytest.approx([49] * 6)
    assert bars(market, adjustment=Adjustment.SPLIT)["AAPL"][0].volume == 2e6


def test_the_newest_quote_stands_around_the_close_from_the_moment_it_was_known():
    market = Floor(rows={"AAPL": AAPL}, costs=Costs(slippage_bps=10.0))
    market.exchange.advance(closing(3) + timedelta(hours=5))
    client = data_client(market.exchange, StockHistoricalDataClient)
    quote = client.get_stock_latest_quote(StockLatestQuoteRequest(symbol_or_symbols="AAPL"))["AAPL"]
    assert (quote.bid_price, quote.ask_price) == (95.952, 96.048)
    assert (quote.timestamp, quote.bid_size, quote.ask_size) == (closing(3), 1, 1)
    trade = client.get_stock_latest_trade(StockLatestTradeRequest(symbol_or_symbols="AAPL"))["AAPL"]
    assert (trade.price, trade.size, trade.timestamp) == (96, 1e6, closing(3))
    bar = client.get_stock_latest_bar(StockLatestBarRequest(symbol_or_symbols="AAPL"))["AAPL"]
    assert (bar.close, bar.timestamp) == (96, closing(3) - timedelta(minutes=1))


def test_past_quotes_and_trades_stand_at_the_closes(market):
    client = data_client(market.exchange, StockHistoricalDataClient)
    quotes = client.get_stock_quotes(
        StockQuotesRequest(symbol_or_symbols=["AAPL", "MSFT"], start=closing(1), end=closing(2))
    )
    assert [quote.bid_price for quote in quotes.data["AAPL"]] == [104, 110]
    assert [quote.timestamp for quote in quotes.data["MSFT"]] == [closing(1), closing(2)]
    trades = client.get_stock_trades(
        StockTradesRequest(symbol_or_symbols="AAPL", start=EARLY, limit=2)
    )
    assert [trade.price for trade in trades.data["AAPL"]] == [100, 104]


def test_a_snapshot_shows_today_and_the_day_before(market):
    client = data_client(market.exchange, StockHistoricalDataClient)
    found = client.get_stock_snapshot(StockSnapshotRequest(symbol_or_symbols=["AAPL", "ZZZ"]))
    assert list(found) == ["AAPL"]
    snapshot = found["AAPL"]
    assert (snapshot.daily_bar.close, snapshot.previous_daily_bar.close) == (96, 110)
    assert snapshot.daily_bar.timestamp == datetime(2025, 7, 2, 4, tzinfo=UTC)
    assert (snapshot.latest_trade.price, snapshot.latest_quote.ask_price) == (96, 96)
    assert snapshot.minute_bar.high == 111


def test_the_first_day_has_none_before():
    market = Floor(rows={"AAPL": AAPL})
    client = data_client(market.exchange, StockHistoricalDataClient)
    found = client.get_stock_snapshot(StockSnapshotRequest(symbol_or_symbols="AAPL"))
    assert found["AAPL"].previous_daily_bar is None


def test_coins_need_no_key_and_have_the_same_things(market):
    client = data_client(market.exchange, CryptoHistoricalDataClient)
    found = client.get_crypto_bars(
        CryptoBarsRequest(symbol_or_symbols="BTC/USD", timeframe=TimeFrame.Day, start=EARLY)
    )
    assert [bar.close for bar in found.data["BTC/USD"]] == [50_000, 50_500, 50_500, 50_500]
    one = {"symbol_or_symbols": "BTC/USD"}
    assert (
        client.get_crypto_latest_trade(CryptoLatestTradeRequest(**one))["BTC/USD"].price == 50_500
    )
    assert client.get_crypto_latest_quote(CryptoLatestQuoteRequest(**one))["BTC/USD"].bid_size == 1
    book = client.get_crypto_latest_orderbook(CryptoLatestOrderbookRequest(**one))["BTC/USD"]
    assert (book.bids[0].price, book.asks[0].price) == (50_500, 50_500)
    snapshot = client.get_crypto_snapshot(CryptoSnapshotRequest(**one))["BTC/USD"]
    assert snapshot.daily_bar.close == 50_500


def test_the_free_plan_does_not_show_the_newest_of_sip(market):
    market.exchange.free_plan = True
    for path in (
        "/v2/stocks/bars?symbols=AAPL&timeframe=1Day&feed=sip&start=2025-06-01&end=2025-07-02T20:00:00Z",
        "/v2/stocks/quotes/latest?symbols=AAPL&feed=sip",
        "/v2/stocks/snapshots?symbols=AAPL&feed=sip",
    ):
        assert asked(market, path) == (
            403,
            {"message": "subscription does not permit querying recent SIP data"},
        )
    with pytest.raises(APIError, match="recent SIP"):
        bars(market, feed=DataFeed.SIP, end=closing(3))
    hour = {"symbols": "AAPL", "frame": TimeFrame.Minute}
    fifteen = closing(3) - timedelta(minutes=15)
    assert len(bars(market, **hour, feed=DataFeed.SIP, end=fifteen)["AAPL"]) == 3
    assert len(bars(market, **hour, feed=DataFeed.SIP)["AAPL"]) == 3  # cut by itself
    assert len(bars(market, **hour, feed=DataFeed.IEX, end=closing(3))["AAPL"]) == 4
    assert len(bars(market, **hour, end=closing(3))["AAPL"]) == 4
    assert asked(market, "/v2/stocks/quotes/latest?symbols=AAPL")[0] == 200
    market.exchange.free_plan = False
    assert len(bars(market, **hour, feed=DataFeed.SIP, end=closing(3))["AAPL"]) == 4


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/v2/stocks/bars?timeframe=1Day", "symbols"),
        ("/v2/stocks/bars?symbols=AAPL", "timeframe"),
        ("/v2/stocks/bars?symbols=AAPL&timeframe=2Day", "timeframe"),
        ("/v2/stocks/bars?symbols=AAPL&timeframe=60Min", "timeframe"),
        ("/v2/stocks/bars?symbols=AAPL&timeframe=24Hour", "timeframe"),
        ("/v2/stocks/bars?symbols=AAPL&timeframe=5Month", "timeframe"),
        ("/v2/stocks/bars?symbols=AAPL&timeframe=1Day&limit=10001", "limit"),
        ("/v2/stocks/bars?symbols=AAPL&timeframe=1Day&limit=0", "limit"),
        ("/v2/stocks/bars?symbols=AAPL&timeframe=1Day&start=x", "start"),
        ("/v2/stocks/bars?symbols=AAPL&timeframe=1Day&start=2025-07-02&end=2025-07-01", "end"),
        ("/v2/stocks/bars?symbols=AAPL&timeframe=1Day&feed=x", "feed"),
        ("/v2/stocks/bars?symbols=AAPL&timeframe=1Day&adjustment=x", "adjustment"),
        ("/v2/stocks/bars?symbols=AAPL&timeframe=1Day&sort=up", "sort"),
        ("/v2/stocks/bars?symbols=AAPL&timeframe=1Day&page_token=x", "page_token"),
        ("/v2/stocks/bars?symbols=AAPL&timeframe=1Day&currency=EUR", "currency"),
        ("/v2/stocks/bars?symbols=AAPL&timeframe=1Day&colour=red", "colour"),
        ("/v2/stocks/bars?symbols=BRK-B&timeframe=1Day", "invalid symbol: BRK-B"),
        ("/v2/stocks/bars?symbols=aapl&timeframe=1Day", "invalid symbol: aapl"),
        ("/v2/stocks/bars?symbols=BTC/USD&timeframe=1Day", "invalid symbol: BTC/USD"),
        ("/v2/stocks/quotes/latest?symbols=", "symbols"),
        ("/v1beta3/crypto/us/bars?symbols=BTCUSD&timeframe=1Day", "invalid symbol: BTCUSD"),
        ("/v1beta3/crypto/us/latest/quotes?symbols=AAPL", "invalid symbol: AAPL"),
    ],
)
def test_a_wrong_question_is_refused_without_a_code(market, path, word):
    status, answer = asked(market, path)
    assert status == 400
    assert list(answer) == ["message"]
    assert word in answer["message"]


def test_an_unknown_symbol_has_no_bars_and_an_unknown_path_is_not_found(market):
    assert bars(market, "ZZZ") == {}
    assert bars(market, "BRK.B") == {}
    for path in ("/v2/stocks/news", "/v2/stocks/bars/latest/x", "/v1beta3/crypto/eu/bars"):
        assert asked(market, path)[0] == 404
    assert market.exchange.handle("POST", "/v2/stocks/bars", None)[0] == 404


@pytest.mark.parametrize(
    "text", ["1Day", "1D", "1Week", "1W", "12Month", "6M", "59Min", "15T", "23Hour", "1H"]
)
def test_timeframes_in_alpacas_spellings_are_read(text):
    assert Frame.of(text).longest_ns >= 0


@pytest.mark.parametrize("text", ["", "Day", "0Min", "1day", "1Days", "-1Day", "1.5Hour", "１Day"])
def test_other_timeframes_are_not(text):
    with pytest.raises(RefusalError):
        Frame.of(text)
