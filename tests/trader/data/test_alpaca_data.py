"""Alpaca's bars on our grid: what is asked for, what is refused, what is known when."""

from __future__ import annotations

import contextlib
import resource
from datetime import date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.servers.market_server import MarketServer, answer
from tests.trader.data.alpaca_rows import (
    Clock,
    Impatient,
    alpaca,
    days,
    hours,
    local,
    row,
    utc,
)
from trader.broker.market_reads import MarketReads
from trader.core.clock import always_open
from trader.core.errors import (
    DataIntegrityError,
    EndpointError,
    RateLimitedError,
    TimedOutError,
    UsageError,
)
from trader.core.market import Timeframe, from_ns, session_of, to_ns
from trader.data.alpaca_reads import NoKeyError
from trader.data.alpaca_rows import fetch_bars
from trader.data.cache import BARS, BarKey

KEY = BarKey(symbol="AAPL", timeframe="1Day", adjustment="all", feed="iex")
HALF_HOUR, HOUR = timedelta(minutes=30), timedelta(hours=1)
EVENING = local("2024-12-31T20:00")


@pytest.fixture
def server():
    with MarketServer() as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock(EVENING)


@pytest.fixture
def data(server, clock, tmp_path):
    server.put("AAPL", "1Day", days("2024-11-25", "2024-12-31"))
    return alpaca(server, clock, tmp_path)


# what is asked for, and where its bars lie


def test_daily_bars_open_with_their_session_and_are_known_at_its_close(data, calendar):
    series = data.bars("AAPL", Timeframe.DAY)
    sessions = calendar.between(date(2024, 11, 25), date(2024, 12, 31))
    assert series.timestamp.tolist() == calendar.opens_ns(sessions).tolist()
    assert series.available_at.tolist() == calendar.closes_ns(sessions).tolist()
    half_day = sessions.index(date(2024, 11, 29))
    assert from_ns(series.available_at[half_day]) == local("2024-11-29T13:00")
    assert series.bar(0).open == 99.5
    assert series.bar(0).high == 101.0
    assert series.bar(0).low == 98.5
    assert series.bar(0).volume == 1000.0
    assert (series.source, series.adjustment, data.name) == (
        "alpaca iex",
        "splits and dividends",
        "alpaca iex",
    )


def test_one_symbol_is_asked_for_with_everything_named(data, server):
    data.bars("AAPL", Timeframe.DAY)
    (asked,) = server.requests
    assert asked.path == "/v2/stocks/bars"
    assert asked.params == {
        "symbols": "AAPL",
        "timeframe": "1Day",
        "start": "2016-01-01T05:00:00Z",
        "end": "2025-01-01T01:00:00Z",
        "limit": "10000",
        "sort": "asc",
        "adjustment": "all",
        "feed": "iex",
    }
    assert asked.headers["apca-api-key-id"] == "PKTEST"


@pytest.mark.parametrize(
    ("word", "meaning"), [("all", "splits and dividends"), ("split", "splits"), ("raw", "none")]
)
def test_adjustment_and_feed_are_asked_for_stored_and_kept_apart(
    server, clock, tmp_path, word, meaning
):
    server.put("AAPL", "1Day", days("2024-11-25", "2024-12-31"))
    server.answers["/v1/corporate-actions"] = {"corporate_actions": {}, "next_page_token": None}
    made = alpaca(server, clock, tmp_path, adjustment=word, feed="sip").bars("AAPL", Timeframe.DAY)
    assert (made.source, made.adjustment) == ("alpaca sip", meaning)
    assert (server.bars()[0].params["adjustment"], server.bars()[0].params["feed"]) == (word, "sip")
    assert [path.name for path in tmp_path.glob("*.bars")] == [f"AAPL_1Day_{word}_sip.bars"]
    alpaca(server, clock, tmp_path, adjustment=word, feed="iex").bars("AAPL", Timeframe.DAY)
    assert server.bars()[-1].params["start"] == "2016-01-01T05:00:00Z"  # nothing taken from sip


def test_hours_are_made_of_half_hours_and_none_crosses_the_opening(server, tmp_path):
    # Alpaca's half hours of 2024-12-02 from 09:00 to 16:30, closes 1, 2, 3 … 15
    rows = hours(
        local("2024-12-02T09:00"), local("2024-12-02T16:30"), HALF_HOUR, lambda n: 10.0 + n
    )
    rows[3] |= {"h": 30.0, "v": 5.0}  # 10:30
    rows[4] |= {"l": 2.0}  # 11:00
    server.put("AAPL", "30Min", rows)
    made = alpaca(server, Clock(local("2024-12-02T17:00")), tmp_path).bars("AAPL", Timeframe.HOUR)
    opened = [
        f"{from_ns(ns).astimezone(local('2024-01-01').tzinfo):%H:%M}" for ns in made.timestamp
    ]
    assert opened == ["14:30", "15:30", "16:30", "17:30", "18:30", "19:30", "20:30"]
    assert made.open.tolist() == [10.5, 12.5, 14.5, 16.5, 18.5, 20.5, 22.5]
    assert made.close.tolist() == [12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 23.0]
    assert made.high.tolist() == [13.0, 30.0, 17.0, 19.0, 21.0, 23.0, 24.0]
    assert made.low.tolist() == [9.5, 2.0, 13.5, 15.5, 17.5, 19.5, 21.5]
    assert made.volume.tolist() == [2000.0, 1005.0, 2000.0, 2000.0, 2000.0, 2000.0, 1000.0]
    assert from_ns(made.available_at[-1]) == local("2024-12-02T16:00")
    assert server.bars()[0].params["timeframe"] == "30Min"


def test_the_last_hour_of_a_half_day_ends_at_one(server, tmp_path):
    server.put(
        "AAPL", "30Min", hours(local("2024-11-29T04:00"), local("2024-11-29T17:00"), HALF_HOUR)
    )
    made = alpaca(server, Clock(EVENING), tmp_path).bars("AAPL", Timeframe.HOUR)
    assert len(made) == 4
    assert from_ns(made.timestamp[-1]) == local("2024-11-29T12:30")
    assert from_ns(made.available_at[-1]) == local("2024-11-29T13:00")


def test_an_hour_of_which_one_half_was_not_traded_is_made_of_the_other(server, tmp_path):
    rows = hours(
        local("2024-12-02T09:30"), local("2024-12-02T16:00"), HALF_HOUR, lambda n: 10.0 + n
    )
    del rows[2], rows[-4]
    server.put("AAPL", "30Min", rows)
    made = alpaca(server, Clock(EVENING), tmp_path).bars("AAPL", Timeframe.HOUR)
    assert len(made) == 7
    assert (made.bar(1).open, made.bar(1).close, made.bar(1).volume) == (12.5, 13.0, 1000.0)


def test_a_half_hour_off_the_clock_is_refused(server, tmp_path):
    server.put("AAPL", "30Min", [row(local("2024-12-02T09:45"))])
    with pytest.raises(DataIntegrityError, match="begins at 2024-12-02 14:45:00 UTC, between"):
        alpaca(server, Clock(EVENING), tmp_path).bars("AAPL", Timeframe.HOUR)


def test_a_bar_of_a_holiday_is_refused(server, clock, tmp_path):
    server.put("AAPL", "1Day", [row(local("2024-12-25T00:00"))])
    with pytest.raises(DataIntegrityError, match="2024-12-25 is not a session"):
        alpaca(server, clock, tmp_path).bars("AAPL", Timeframe.DAY)


# what is known when


def test_no_bar_is_given_away_before_it_is_complete_at_the_clock(server, tmp_path):
    server.put("AAPL", "1Day", days("2024-11-25", "2024-12-31"))
    for clock, last in [("15:59:59", date(2024, 12, 30)), ("16:00", date(2024, 12, 31))]:
        made = alpaca(server, Clock(local(f"2024-12-31T{clock}")), tmp_path / clock)
        newest = made.bars("AAPL", Timeframe.DAY).timestamp[-1]
        assert session_of(from_ns(newest)) == last


def test_an_hour_is_not_made_of_its_first_half(server, tmp_path):
    server.put(
        "AAPL", "30Min", hours(local("2024-12-02T09:30"), local("2024-12-02T11:30"), HALF_HOUR)
    )
    clock = Clock(local("2024-12-02T11:29"))
    made = alpaca(server, clock, tmp_path).bars("AAPL", Timeframe.HOUR)
    assert len(made) == 1
    clock.at = local("2024-12-02T13:00")
    server.ways.append("outage")
    server.ways.extend(["outage"] * 20)
    offline = alpaca(server, clock, tmp_path)  # 11:00 is kept; the other half was never seen
    assert len(offline.bars("AAPL", Timeframe.HOUR)) == 1


def test_the_free_plan_of_all_exchanges_ends_sixteen_minutes_ago(server, tmp_path):
    server.put("AAPL", "1Day", days("2024-11-25", "2024-12-31"))
    clock = Clock(local("2024-12-31T16:15:59"))
    made = alpaca(server, clock, tmp_path, feed="sip")
    assert session_of(from_ns(made.bars("AAPL", Timeframe.DAY).timestamp[-1])) == date(2024, 12, 30)
    assert server.bars()[0].params["end"] == "2024-12-31T20:59:59Z"
    assert made.notices == (
        "bars of the feed sip end 16 minutes ago: the free plan gives no newer ones",
    )
    clock.at = local("2024-12-31T16:16")
    assert session_of(from_ns(made.bars("AAPL", Timeframe.DAY).timestamp[-1])) == date(2024, 12, 31)


@pytest.mark.parametrize("words", ["recent", "old recent"])
def test_recent_bars_that_the_plan_refuses_are_asked_for_once_more_and_older(data, server, words):
    server.ways.append(words)
    series = data.bars("AAPL", Timeframe.DAY)
    assert session_of(from_ns(series.timestamp[-1])) == date(2024, 12, 31)
    assert [asked.params["end"] for asked in server.bars()] == [
        "2025-01-01T01:00:00Z",
        "2025-01-01T00:44:00Z",
    ]
    assert "they end at 2025-01-01 00:44 UTC" in data.notices[0]


def test_a_clock_that_is_fast_is_given_one_more_hour_and_then_told(server, clock, tmp_path):
    server.put("AAPL", "1Day", days("2024-11-25", "2024-12-31"))
    made = alpaca(server, clock, tmp_path, feed="sip")
    server.ways.extend(["recent", "recent"])
    with pytest.raises(EndpointError, match=r"403 .*recent SIP data; say data.feed: iex"):
        made.bars("AAPL", Timeframe.DAY)
    assert [asked.params["end"][11:16] for asked in server.bars()] == ["00:44", "23:44"]


@settings(max_examples=25)
@given(
    until=st.datetimes(datetime(2024, 11, 27), datetime(2024, 12, 31)),
    later=st.integers(0, 40),
)
def test_cutting_the_future_off_never_changes_the_past(tmp_path_factory, until, later):
    with MarketServer() as server:
        server.put("AAPL", "1Day", days("2024-11-25", "2024-12-31"))
        moment = utc(until.isoformat())
        then = alpaca(server, Clock(moment), tmp_path_factory.mktemp("then"))
        now = alpaca(server, Clock(moment + timedelta(days=later)), tmp_path_factory.mktemp("now"))
        known = then.bars("AAPL", Timeframe.DAY)
        assert known.sha256 == now.bars("AAPL", Timeframe.DAY, moment).sha256
        assert known.available_at[-1] <= to_ns(moment)


def test_a_naive_moment_is_no_moment(data):
    with pytest.raises(ValueError, match="time zone"):
        data.bars("AAPL", Timeframe.DAY, datetime(2024, 12, 20))


# pages and other answers


@pytest.mark.parametrize("page", [1, 7, 24, 25])
def test_every_page_is_followed(server, clock, tmp_path, page):
    rows = days("2024-11-25", "2024-12-31")
    server.page = page
    server.put("AAPL", "1Day", rows)
    made = alpaca(server, clock, tmp_path).bars("AAPL", Timeframe.DAY)
    assert made.close.tolist() == [one["c"] for one in rows]
    assert len(server.requests) == -(-len(rows) // page)


def page(rows, token=None):
    return lambda asked: answer({"bars": {asked.params["symbols"]: rows}, "next_page_token": token})


def test_pages_that_come_twice_or_out_of_order_are_the_same_bars(data, server):
    rows = days("2024-11-25", "2024-12-31")
    server.ways.extend([page(rows[10:], "a"), page(rows[:12], "b"), page(rows[::-1])])
    assert data.bars("AAPL", Timeframe.DAY).close.tolist() == [one["c"] for one in rows]


def test_bars_that_were_not_asked_for_are_left_out(data, server):
    rows = days("2024-11-25", "2024-12-31")
    strangers = [rows[0] | {"t": text} for text in ("0001-01-01T05:00:00Z", "2999-01-02T05:00:00Z")]
    server.ways.append(page([*rows, *strangers]))
    assert data.bars("AAPL", Timeframe.DAY).close.tolist() == [one["c"] for one in rows]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["AAPL", "bars", "t", *"ohlcv"]), inner, max_size=6)
    ),
    max_leaves=12,
)
ROW = st.fixed_dictionaries({"t": st.datetimes().map(str) | JSON, **dict.fromkeys("ohlcv", JSON)})
BODY = st.fixed_dictionaries(
    {"bars": JSON | st.fixed_dictionaries({"AAPL": JSON | st.lists(ROW | JSON, max_size=3)})}
)


class Saying:
    """A client whose every answer is the same."""

    def __init__(self, body: object) -> None:
        self.body = body

    def get(self, path: str, data: object = None) -> object:
        return self.body


@settings(max_examples=150)
@given(JSON | BODY)
def test_any_json_at_all_is_bars_or_an_error_of_ours(body):
    with contextlib.suppress(EndpointError, DataIntegrityError):
        found = fetch_bars(MarketReads(Saying(body)), KEY, 0, to_ns(EVENING))
        assert found.dtype == BARS


def test_two_different_bars_of_one_moment_are_refused(data, server):
    rows = days("2024-11-25", "2024-12-31")
    server.ways.append(page([*rows, rows[3] | {"c": 101.5}]))
    with pytest.raises(DataIntegrityError, match="two different 1Day bars of AAPL of 2024-11-29"):
        data.bars("AAPL", Timeframe.DAY)


def test_pages_without_end_are_an_error(data, server):
    rows = days("2024-11-25", "2024-12-31")
    server.ways.extend([page(rows[:9], "a"), page(rows[9:], "a")])
    with pytest.raises(EndpointError, match="no last page"):
        data.bars("AAPL", Timeframe.DAY)
    server.ways.extend([page(rows, "1"), page(rows, "2"), page(rows, "3")])
    with pytest.raises(EndpointError, match="no last page: one brought nothing new"):
        data.download("AAPL", Timeframe.DAY, first=None, last=None)


@pytest.mark.parametrize(
    ("way", "kind", "words"),
    [
        ("html", EndpointError, "are no JSON: Expecting value"),
        ("empty", EndpointError, "no JSON object"),
        ("deep", EndpointError, "are no JSON"),
        ("long number", EndpointError, "are no JSON"),
        ("not utf-8", EndpointError, "cannot be read"),
        ("a list", EndpointError, "no JSON object"),
        ("odd bars", EndpointError, "`bars` is"),
        ("odd rows", EndpointError, "they are 'nothing'"),
        ("odd row", EndpointError, "one is 7"),
        ("other symbol", EndpointError, "they are of 'EVIL'"),
        ("no key", EndpointError, "401"),
        ("wrong key", EndpointError, "the key is not taken"),
        ("redirect", EndpointError, "redirect"),
        ("no bars", DataIntegrityError, "no 1Day bars of AAPL in the feed iex"),
        ("null bars", DataIntegrityError, "coins like BTC/USD"),
        ("invalid symbol", DataIntegrityError, "invalid symbol: AAPL"),
    ],
)
def test_an_answer_that_is_none_is_refused_and_nothing_is_kept(
    data, server, tmp_path, way, kind, words
):
    server.ways.append(way)
    with pytest.raises(kind, match=words):
        data.bars("AAPL", Timeframe.DAY)
    assert list(tmp_path.glob("*.bars")) == []
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"o": "99.5"}, EndpointError, "2024-11-29 05:00 UTC cannot be read: o is '99.5'"),
        ({"h": None}, EndpointError, "2024-11-29 05:00 UTC cannot be read: h is None"),
        ({"v": True}, EndpointError, "2024-11-29 05:00 UTC cannot be read: v is True"),
        ({"c": float("nan")}, DataIntegrityError, "2024-11-29 05:00 UTC: c is nan"),
        ({"l": float("-inf")}, DataIntegrityError, "2024-11-29 05:00 UTC: l is -inf"),
        ({"v": 10**400}, DataIntegrityError, "2024-11-29 05:00 UTC: v is inf"),
        ({"c": -3.0}, DataIntegrityError, "close -3 is not a price"),
        ({"h": 50.0}, DataIntegrityError, "high 50 is below low"),
        ({"t": "2024-11-29T05:00:00"}, EndpointError, "the time t is"),
        ({"t": 1732856400}, EndpointError, "the time t is 1732856400"),
        ({"t": "soon"}, EndpointError, "the time t is 'soon'"),
    ],
)
def test_a_number_or_time_that_is_none_is_refused(data, server, change, kind, words):
    rows = days("2024-11-25", "2024-12-31")
    rows[3] |= change
    server.put("AAPL", "1Day", rows)
    with pytest.raises(kind, match=words):
        data.bars("AAPL", Timeframe.DAY)


def test_what_may_pass_is_asked_again_and_the_rest_is_not(data, server, clock):
    server.ways.extend(["busy", "outage", "bad gateway"])
    assert len(data.bars("AAPL", Timeframe.DAY)) == 25
    assert len(server.requests) == 4
    assert clock.slept
    server.ways.extend(["busy"] * 60)
    with pytest.raises(RateLimitedError):
        data.bars("MSFT", Timeframe.DAY)


def test_a_server_that_never_answers_is_given_up(server, clock, tmp_path):
    server.ways.append("hang")
    made = alpaca(server, clock, tmp_path, adapter=Impatient())
    with pytest.raises(TimedOutError, match="could not be asked for the 1Day bars of AAPL"):
        made.bars("AAPL", Timeframe.DAY)


def test_one_silence_is_enough_for_every_symbol(server, clock, tmp_path):
    server.ways.extend(["no key"])
    made = alpaca(server, clock, tmp_path)
    for symbol in ("AAPL", "MSFT", "SPY"):
        with pytest.raises(EndpointError, match="401"):
            made.bars(symbol, Timeframe.DAY)
    assert len(server.requests) == 1
    clock.at += timedelta(minutes=2)
    server.put("SPY", "1Day", days("2024-11-25", "2024-12-31"))
    assert len(made.bars("SPY", Timeframe.DAY)) == 25


# symbols


@pytest.mark.parametrize(
    ("written", "asked"), [("BRK.B", "BRK.B"), (" brk-b ", "BRK.B"), ("aapl", "AAPL")]
)
def test_shares_are_asked_for_in_alpacas_spelling(server, clock, tmp_path, written, asked):
    server.put(asked, "1Day", days("2024-11-25", "2024-12-31"))
    made = alpaca(server, clock, tmp_path).bars(written, Timeframe.DAY)
    assert made.symbol == server.requests[0].params["symbols"] == asked
    assert [path.name for path in tmp_path.glob("*.bars")] == [f"{asked}_1Day_all_iex.bars"]


@pytest.mark.parametrize("written", ["", "AA PL", "../AAPL", "AAPL,MSFT", "A" * 50, "A_1Day"])
def test_what_is_no_symbol_is_never_asked_for(data, server, written):
    with pytest.raises(DataIntegrityError, match="shares are written like"):
        data.bars(written, Timeframe.DAY)
    assert server.requests == []


def test_a_coin_among_shares_is_refused(data, server):
    for written, words in (
        ("BTC/USD", "BTC/USD cannot be looked at beside AAPL, NVDA"),
        ("BTCUSD", "BTCUSD is a pair of coins, which is written BTC/USD here"),
    ):
        with pytest.raises(UsageError, match=words):
            data.bars(written, Timeframe.DAY)
    assert server.requests == []


def test_the_symbols_are_those_configured(server, clock, tmp_path):
    assert alpaca(server, clock, tmp_path).symbols(Timeframe.DAY) == (
        "AAPL",
        "NVDA",
        "QQQ",
        "SPY",
        "TSLA",
    )
    own = alpaca(server, clock, tmp_path, symbols=("MSFT", "IBM"))
    assert own.symbols(Timeframe.HOUR) == ("IBM", "MSFT")


# coins


def coins(server, clock, folder, **how):
    return alpaca(server, clock, folder, calendar=always_open(), symbols=("BTC/USD",), **how)


def test_coins_need_no_key_and_their_days_are_new_yorks(server, tmp_path):
    first, last = local("2024-06-01T00:00"), local("2024-06-04T13:00")
    server.put("BTC/USD", "1Hour", hours(first, last, HOUR, lambda n: 1000.0 + n))
    clock = Clock(last)
    made = coins(server, clock, tmp_path, keys=None, feed="sip")
    daily = made.bars("BTC/USD", Timeframe.DAY)
    assert [from_ns(ns) for ns in daily.timestamp] == [
        local(f"2024-06-0{day}T00:00") for day in (1, 2, 3)
    ]
    assert daily.open.tolist() == [999.5, 1023.5, 1047.5]
    assert daily.close.tolist() == [1023.0, 1047.0, 1071.0]
    assert daily.high.tolist() == [1024.0, 1048.0, 1072.0]
    assert daily.low.tolist() == [998.5, 1022.5, 1046.5]
    assert daily.volume.tolist() == [24_000.0] * 3
    assert (daily.source, daily.adjustment) == ("alpaca crypto", "none")
    hourly = made.bars("BTC/USD", Timeframe.HOUR)
    assert len(hourly) == 85
    asked = server.requests[0]
    assert asked.path == "/v1beta3/crypto/us/bars"
    assert "apca-api-key-id" not in asked.headers
    assert "feed" not in asked.params
    assert len(server.requests) == 1  # days and hours are made of the same bars


@pytest.mark.parametrize(
    ("day", "count"), [("2024-03-10", 23), ("2024-11-03", 25), ("2024-06-01", 24)]
)
def test_the_days_on_which_clocks_change_have_their_own_length(server, tmp_path, day, count):
    first = local(f"{day}T00:00")
    last = first + count * HOUR
    assert last.astimezone(local(day).tzinfo).minute == 0
    server.put("BTC/USD", "1Hour", hours(first - HOUR, last + HOUR, HOUR))
    made = coins(server, Clock(last + HOUR), tmp_path)
    assert len(made.bars("BTC/USD", Timeframe.HOUR)) == count + 2
    daily = made.bars("BTC/USD", Timeframe.DAY)
    assert daily.volume.tolist() == [1000.0, count * 1000.0]


def test_a_day_of_coins_is_not_made_of_its_first_hours(server, tmp_path):
    first = local("2024-06-01T00:00")
    server.put("BTC/USD", "1Hour", hours(first, first + 40 * HOUR, HOUR))
    clock = Clock(first + 30 * HOUR)
    assert len(coins(server, clock, tmp_path).bars("BTC/USD", Timeframe.DAY)) == 1
    clock.at = first + 90 * HOUR
    server.ways.extend(["outage"] * 30)
    offline = coins(server, clock, tmp_path)
    assert len(offline.bars("BTC/USD", Timeframe.DAY)) == 1
    assert "BTC/USD: bars as known at 2024-06-02 09:44 UTC, because" in offline.notices[0]


# what is kept


def test_only_what_is_new_is_asked_for_and_what_may_change_is_not_kept(server, tmp_path):
    rows = days("2024-11-25", "2024-12-31")
    server.put("AAPL", "1Day", rows[:-1])
    clock = Clock(local("2024-12-30T17:00"))
    alpaca(server, clock, tmp_path).bars("AAPL", Timeframe.DAY)
    clock.at = local("2024-12-31T17:00")
    grown = [*rows[:-2], rows[-2] | {"v": 7777.0}, rows[-1]]  # volume of the evening of the 30th
    server.put("AAPL", "1Day", grown)
    again = alpaca(server, clock, tmp_path)
    series = again.bars("AAPL", Timeframe.DAY)
    assert len(series) == 25
    assert series.volume[-2] == 7777.0
    assert again.notices == ()
    assert server.requests[-1].params["start"] == "2024-12-20T05:00:00Z"  # five kept bars
    assert len(server.requests) == 2


def test_bars_are_asked_for_when_a_newer_one_is_due_and_not_before(data, server, clock):
    data.bars("AAPL", Timeframe.DAY)
    for until in (None, utc("2024-12-15T12:00"), EVENING):
        data.bars("AAPL", Timeframe.DAY, until)
    clock.at = local("2025-01-02T15:59")
    data.bars("AAPL", Timeframe.DAY)
    assert len(server.requests) == 1
    clock.at = local("2025-01-02T16:00")
    assert len(data.bars("AAPL", Timeframe.DAY)) == 25  # Alpaca does not have it yet
    data.bars("AAPL", Timeframe.DAY)
    assert len(server.requests) == 2
    server.put("AAPL", "1Day", days("2024-11-25", "2025-01-02"))
    clock.at += timedelta(seconds=59)
    assert len(data.bars("AAPL", Timeframe.DAY)) == 25
    clock.at += timedelta(seconds=1)
    assert len(data.bars("AAPL", Timeframe.DAY)) == 26
    assert len(server.requests) == 3


def test_a_bar_that_never_came_is_not_asked_for_again_and_again(data, server, clock):
    clock.at = local("2025-01-10T20:00")  # nothing since the end of 2024
    for day in range(2, 10):
        assert len(data.bars("AAPL", Timeframe.DAY, local(f"2025-01-0{day}T20:00"))) == 25
    assert len(server.requests) == 1


def test_an_adjusted_past_that_changed_is_fetched_whole(server, clock, tmp_path):
    rows = days("2024-11-25", "2024-12-30")
    server.put("AAPL", "1Day", rows)
    alpaca(server, clock, tmp_path).bars("AAPL", Timeframe.DAY)
    clock.at = local("2025-01-03T20:00")
    adjusted = [
        one | {name: one[name] * 0.99 for name in "ohlc"}
        for one in days("2024-11-25", "2025-01-03")
    ]
    server.put("AAPL", "1Day", adjusted)
    again = alpaca(server, clock, tmp_path)
    assert again.bars("AAPL", Timeframe.DAY).close.tolist() == [one["c"] for one in adjusted]
    assert "AAPL: Alpaca's past has changed (a split, a dividend" in again.notices[0]
    offline = alpaca(server, clock, tmp_path)
    server.ways.extend(["no key"])
    assert offline.bars("AAPL", Timeframe.DAY).close[0] == adjusted[0]["c"]


def test_without_the_service_bars_come_from_the_cache_and_it_is_told(data, server, clock, tmp_path):
    whole = data.bars("AAPL", Timeframe.DAY)
    clock.at = local("2025-01-06T20:00")
    server.ways.append("no key")
    offline = alpaca(server, clock, tmp_path)
    kept = offline.bars("AAPL", Timeframe.DAY)
    assert kept.sha256 == whole.head(24).sha256  # the daily bar of that evening was not final
    assert "AAPL: bars as known at 2024-12-31 05:00 UTC, because Alpaca" in offline.notices[0]
    keyless = alpaca(server, clock, tmp_path, keys=None)
    assert keyless.bars("AAPL", Timeframe.DAY).sha256 == kept.sha256
    assert "because no key" in keyless.notices[0]
    with pytest.raises(NoKeyError):
        keyless.bars("MSFT", Timeframe.DAY)


@pytest.mark.parametrize(
    "rows", [[], days("2024-12-24", "2025-01-03"), days("2024-11-25", "2024-12-27")]
)
def test_fewer_bars_than_before_never_replace_what_is_kept(server, clock, tmp_path, rows):
    server.put("AAPL", "1Day", days("2024-11-25", "2024-12-30"))
    before = alpaca(server, clock, tmp_path).bars("AAPL", Timeframe.DAY)
    clock.at = local("2025-01-03T20:00")
    server.put("AAPL", "1Day", [one | {"v": 1.0} for one in rows])
    again = alpaca(server, clock, tmp_path)
    assert again.bars("AAPL", Timeframe.DAY).sha256 == before.sha256
    assert "AAPL: bars as known at" in again.notices[-1]


def test_a_damaged_end_is_fetched_again_and_it_is_told(data, server, clock, tmp_path):
    data.bars("AAPL", Timeframe.DAY)
    clock.at = local("2025-01-03T20:00")
    server.put("AAPL", "1Day", days("2024-11-25", "2025-01-03"))
    whole = alpaca(server, clock, tmp_path).bars("AAPL", Timeframe.DAY)
    path = tmp_path / "AAPL_1Day_all_iex.bars"
    path.write_bytes(path.read_bytes()[:-10])
    again = alpaca(server, clock, tmp_path)
    assert again.bars("AAPL", Timeframe.DAY).sha256 == whole.sha256
    assert "cut short or damaged and removed; their bars are fetched again" in again.notices[0]


def test_a_damaged_middle_is_refused_by_name_with_the_remedy(data, server, clock, tmp_path):
    data.bars("AAPL", Timeframe.DAY)
    clock.at = local("2025-01-03T20:00")
    server.put("AAPL", "1Day", days("2024-11-25", "2025-01-03"))
    alpaca(server, clock, tmp_path).bars("AAPL", Timeframe.DAY)
    path = tmp_path / "AAPL_1Day_all_iex.bars"
    raw = bytearray(path.read_bytes())
    raw[500] ^= 1
    path.write_bytes(raw)
    with pytest.raises(
        DataIntegrityError, match=r"AAPL_1Day_all_iex.bars: .*`trader data drop AAPL`"
    ):
        alpaca(server, clock, tmp_path).bars("AAPL", Timeframe.DAY)


def test_a_download_keeps_the_days_asked_for(server, clock, tmp_path):
    server.put("AAPL", "1Day", days("2024-11-25", "2024-12-31"))
    made = alpaca(server, clock, tmp_path)

    def span(first, last):
        series = made.download("AAPL", Timeframe.DAY, first=first, last=last)
        return tuple(str(session_of(from_ns(series.timestamp[at]))) for at in (0, -1))

    assert span(date(2024, 12, 2), date(2024, 12, 6)) == ("2024-12-02", "2024-12-06")
    assert span(None, date(2024, 12, 13)) == ("2024-12-02", "2024-12-13")
    assert span(None, date(2024, 12, 10)) == ("2024-12-02", "2024-12-13")
    assert span(date(2024, 11, 25), None) == ("2024-11-25", "2024-12-31")
    assert span(date(2024, 12, 9), None) == ("2024-12-09", "2024-12-31")
    assert span(date(1, 1, 1), date.max) == ("2024-11-25", "2024-12-31")
    assert server.bars()[-1].params["start"] == "0001-01-01T04:56:02Z"
    with pytest.raises(UsageError, match="--to 2024-12-01 is before --from 2024-12-02"):
        span(date(2024, 12, 2), date(2024, 12, 1))


def test_bars_go_on_when_the_cache_cannot_be_written(server, clock, tmp_path):
    server.put("AAPL", "1Day", days("2024-11-25", "2024-12-31"))
    made = alpaca(server, clock, tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # a disk that is full
    try:
        assert len(made.bars("AAPL", Timeframe.DAY)) == 25
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "AAPL_1Day_all_iex.bars could not be written" in made.notices[0]
    assert list(tmp_path.iterdir()) == [tmp_path / ".lock"]


# splits and leaps


def actions(**kinds):
    return {"corporate_actions": kinds, "next_page_token": None}


def test_a_split_that_raw_prices_show_is_on_record(server, clock, tmp_path):
    rows = days("2024-11-25", "2024-12-31", lambda n: 400.0 if n < 10 else 100.0)
    server.put("AAPL", "1Day", rows)
    server.answers["/v1/corporate-actions"] = actions(
        forward_splits=[
            {"symbol": "AAPL", "new_rate": 4, "old_rate": 1, "ex_date": "2024-12-10"},
            {"symbol": "OTHER", "new_rate": 9, "old_rate": 1, "ex_date": "2024-12-12"},
        ],
        cash_dividends=[{"symbol": "AAPL", "rate": 0.25, "ex_date": "2024-12-12"}],
    )
    made = alpaca(server, clock, tmp_path, adjustment="raw")
    series = made.bars("AAPL", Timeframe.DAY)
    assert series.splits == ((date(2024, 12, 10), 4.0),)
    assert made.bars("AAPL", Timeframe.DAY, local("2024-12-09T20:00")).splits == ()
    asked = next(one for one in server.requests if one.path == "/v1/corporate-actions")
    assert (asked.params["symbols"], asked.params["start"]) == ("AAPL", "2016-01-01")
    server.ways.extend(["no key"])
    clock.at = local("2025-01-03T20:00")
    assert alpaca(server, clock, tmp_path, adjustment="raw").bars("AAPL", Timeframe.DAY).splits == (
        (date(2024, 12, 10), 4.0),
    )


def test_a_cliff_of_a_split_that_nobody_adjusted_is_refused(server, clock, tmp_path):
    rows = days("2024-11-25", "2024-12-31", lambda n: 400.0 if n < 10 else 20.0)
    rows[10] |= {"o": 20.0}
    server.put("AAPL", "1Day", rows)
    with pytest.raises(DataIntegrityError, match=r"looks like a split of 20 for 1.*data drop AAPL"):
        alpaca(server, clock, tmp_path).bars("AAPL", Timeframe.DAY)


def test_a_split_that_was_adjusted_the_wrong_way_round_is_no_explanation(server, clock, tmp_path):
    rows = days("2024-11-25", "2024-12-31", lambda n: 300.0 if n < 10 else 155.0)
    server.put("AAPL", "1Day", rows)
    server.answers["/v1/corporate-actions"] = actions(
        reverse_splits=[{"symbol": "AAPL", "new_rate": 1, "old_rate": 8, "ex_date": "2024-12-10"}]
    )
    with pytest.raises(
        DataIntegrityError, match=r"open 154\.5 after close 300, and Alpaca knows no"
    ):
        alpaca(server, clock, tmp_path).bars("AAPL", Timeframe.DAY)


def test_a_leap_over_night_needs_a_corporate_action(server, clock, tmp_path):
    rows = days("2024-11-25", "2024-12-31", lambda n: 100.0 if n < 10 else 155.0)
    server.put("AAPL", "1Day", rows)
    server.answers["/v1/corporate-actions"] = actions()
    made = alpaca(server, clock, tmp_path)
    with pytest.raises(
        DataIntegrityError, match=r"2024-12-10: open 154\.5 after close 100, and Alpaca knows no"
    ):
        made.bars("AAPL", Timeframe.DAY)
    server.answers["/v1/corporate-actions"] = actions(
        cash_mergers=[{"acquiree_symbol": "AAPL", "rate": 155.0, "effective_date": "2024-12-10"}]
    )
    assert len(alpaca(server, clock, tmp_path).bars("AAPL", Timeframe.DAY)) == 25
    asked = len(server.requests)
    clock.at = local("2025-01-02T12:00")  # what explained it is kept
    server.ways.extend(["no key"] * 2)
    assert len(alpaca(server, clock, tmp_path).bars("AAPL", Timeframe.DAY)) == 24
    assert len(server.requests) == asked + 1


def test_a_leap_inside_a_session_needs_none(server, tmp_path):
    rows = hours(
        local("2024-12-02T09:30"),
        local("2024-12-02T16:00"),
        HALF_HOUR,
        lambda n: 100.0 if n < 6 else 155.0,
    )
    server.put("AAPL", "30Min", rows)
    made = alpaca(server, Clock(EVENING), tmp_path)
    assert len(made.bars("AAPL", Timeframe.HOUR)) == 7


def test_a_session_without_a_bar_is_refused(data, server):
    rows = days("2024-11-25", "2024-12-31")
    del rows[5]
    server.put("AAPL", "1Day", rows)
    with pytest.raises(
        DataIntegrityError, match=r"2024-12-03: this session has no bar.*--from DAY` begins later"
    ):
        data.bars("AAPL", Timeframe.DAY)


def test_the_newest_price_comes_with_its_moment(data, server):
    quotes = {"AAPL": {"t": "2024-12-31T20:59:59.123456789Z", "bp": 99.0, "ap": 101.0}}
    server.answers["/v2/stocks/quotes/latest"] = {"quotes": quotes}
    at = utc("2024-12-31T20:59:59.123456")
    assert data.latest_price("AAPL") == (100.0, at)
    quotes["AAPL"]["ap"] = 0
    assert data.latest_price("AAPL") == (99.0, at)
    quotes["AAPL"]["bp"] = 0
    with pytest.raises(DataIntegrityError, match="no quote of AAPL"):
        data.latest_price("AAPL")
    quotes["AAPL"]["bp"] = "99"
    with pytest.raises(EndpointError, match="bp is '99'"):
        data.latest_price("AAPL")


def test_arrays_are_what_they_say(data):
    series = data.bars("AAPL", Timeframe.DAY)
    assert series.timestamp.dtype == series.available_at.dtype == np.int64
    assert all(
        getattr(series, name).dtype == np.float64
        for name in ("open", "high", "low", "close", "volume")
    )
