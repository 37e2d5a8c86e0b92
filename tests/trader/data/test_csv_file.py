"""The CSV format: what is read, and each fault named by file, line, column and value."""

from __future__ import annotations

import gzip
from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trader.core.clock import new_york
from trader.core.errors import DataIntegrityError
from trader.core.market import Timeframe, from_ns
from trader.data.csv_file import UNKNOWN_ADJUSTMENT, read_bars, read_header

DAILY = """date,open,high,low,close,volume
2024-11-25,100,102,99,101,1000
2024-11-26,101,103,100,102,1100
2024-11-27,102,104,101,103,1200
2024-11-29,103,105,102,104,600
2024-12-02,104,106,103,105,1300
"""
HOURLY = """timestamp,open,high,low,close,volume
2024-11-29T09:30:00-05:00,100,102,99,101,1000
2024-11-29T10:30:00-05:00,101,103,100,102,1100
2024-11-29T16:30:00Z,102,104,101,103,1200
2024-11-29T17:30:00Z,103,105,102,104,600
"""


def read(text: str | bytes):
    raw = text.encode() if isinstance(text, str) else text
    return read_bars(raw, where="F.csv", symbol="F", source="csv:F.csv", calendar=new_york())


def refusal(text: str | bytes) -> str:
    with pytest.raises(DataIntegrityError) as caught:
        read(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_daily_bars_open_and_close_with_their_session(calendar):
    series = read(DAILY)
    assert (series.symbol, series.timeframe, len(series)) == ("F", Timeframe.DAY, 5)
    half_day = series.bar(3)
    assert half_day.timestamp == datetime(2024, 11, 29, 14, 30, tzinfo=UTC)
    assert half_day.available_at == datetime(2024, 11, 29, 18, 0, tzinfo=UTC)
    assert (half_day.open, half_day.high, half_day.low) == (103.0, 105.0, 102.0)
    assert (half_day.close, half_day.volume) == (104.0, 600.0)
    assert series.source == "csv:F.csv"


def test_hourly_bars_end_after_an_hour_or_with_the_session():
    series = read(HOURLY)
    assert series.timeframe is Timeframe.HOUR
    assert [from_ns(ns).strftime("%H:%M") for ns in series.timestamp] == [
        "14:30", "15:30", "16:30", "17:30",
    ]  # fmt: skip
    assert [from_ns(ns).strftime("%H:%M") for ns in series.available_at] == [
        "15:30", "16:30", "17:30", "18:00",
    ]  # fmt: skip


def test_columns_are_found_by_name_in_any_order_and_case():
    lines = [
        "Adj Close, VOLUME ,Close,low,High,Open,Session,note",
        "1,1000,101,99,102,100,2024-11-25,quiet",
        '2,1100,102,100,103,101,2024-11-26,"loud, or not"',
    ]
    expected = read("\n".join(DAILY.splitlines()[:3]))
    assert read("\n".join(lines)).sha256 == expected.sha256


@pytest.mark.parametrize(
    "variant",
    [
        gzip.compress(DAILY.encode()),
        b"\xef\xbb\xbf" + DAILY.encode(),  # as Excel saves UTF-8
        DAILY.replace("\n", "\r\n").encode(),
        DAILY.replace("\n", "\n\n").encode(),
        (DAILY + ",,,,,\n").encode(),  # an empty line of a spreadsheet
        DAILY.replace("2024-11-26", "2024-11-26 00:00:00").encode(),
        DAILY.replace("2024-11-26", "2024-11-26 00:00:00-05:00").encode(),
        DAILY.replace("date", "session").replace("101,1000", "1.01e2, 1000.0").encode(),
    ],
)
def test_ways_of_writing_the_same_bars_read_alike(variant):
    assert read(variant).sha256 == read(DAILY).sha256


def test_nobody_knows_the_adjustment_unless_the_file_says_it():
    assert read(DAILY).adjustment == UNKNOWN_ADJUSTMENT
    told = read("# from my broker\n# Adjustment: splits and dividends\n\n" + DAILY)
    assert told.adjustment == "splits and dividends"


def test_a_split_line_explains_a_cliff():
    rows = DAILY.splitlines()
    cliff = "\n".join([*rows[:4], "2024-11-29,25.75,26,25,26,2400", "2024-12-02,26,27,25,26,5200"])
    assert "F.csv:5: F 1Day 2024-11-29: open 25.75 after close 103" in refusal(cliff)
    assert "looks like a split of 4 for 1 that is not on record" in refusal(cliff)
    series = read("# split: 2024-11-29 4\n" + cliff)
    assert series.splits == ((date(2024, 11, 29), 4.0),)
    assert "does not explain" in refusal("# split: 2024-11-29 4\n" + DAILY)


@pytest.mark.parametrize(
    "split", ["2024-11-29", "4 2024-11-29", "2024-11-29 0", "2024-11-29 -2", "2024-11-29 1",
              "2024-11-29 nan", "2024-11-29 inf", "2024-13-29 4", ""],
)  # fmt: skip
def test_a_split_line_that_says_nothing_is_refused(split):
    message = refusal(f"# split: {split}\n{DAILY}")
    assert message.startswith(f"F.csv:1: split {split!r} is not")


def test_a_split_on_a_holiday_is_refused():
    message = refusal("# split: 2024-11-28 4\n" + DAILY)
    assert "line '# split: 2024-11-28" in message
    assert "not a session" in message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("102,1100", "abc,1100", "F.csv:3: column close: 'abc' is not a number"),
        ("102,1100", ",1100", "F.csv:3: column close: '' is not a number"),
        ("102,1100", "1_02,1100", "F.csv:3: column close: '1_02' is not a number"),
        ("102,1100", "１02,1100", "F.csv:3: column close: '１02' is not a number"),
        ("102,1100", '"1,102",1100', "F.csv:3: column close: '1,102' is not a number"),
        ("102,1100", "102,1.1M", "F.csv:3: column volume: '1.1M' is not a number"),
        ("102,1100", "102", "F.csv:3: 5 cells where the header has 6"),
        ("102,1100", "102,1100,9", "F.csv:3: 7 cells where the header has 6"),
        ("2024-11-26", "26.11.2024", "F.csv:3: column date: '26.11.2024' is not a date"),
        ("2024-11-26", "", "F.csv:3: column date: '' is not a date"),
        ("2024-11-26", "2024-11-26 09:30:00", "F.csv:3: column date: '2024-11-26 09:30:00' has a"),
        ("2024-11-27", "2024-11-28", "F.csv:4: column date: 2024-11-28 is not a session"),
        ("2024-11-25", "1975-01-02", "F.csv:2: column date: 1975-01-02 is outside the exchange"),
        ("2024-11-27", "2024-11-26", "F.csv:4: F 1Day 2024-11-26: there are two bars"),
        ("2024-11-26", "2024-12-03", "F.csv:4: F 1Day 2024-11-27: comes after the bar of"),
        ("2024-11-26,101,103,100,102,1100\n", "", "F.csv: F 1Day 2024-11-26: this session has no"),
        ("103,100,102,", "103,100,0,", "F.csv:3: F 1Day 2024-11-26: close 0 is not a price"),
        ("103,100,102,", "103,100,-1,", "F.csv:3: F 1Day 2024-11-26: close -1 is not a price"),
        ("103,100,102,", "103,100,nan,", "F.csv:3: F 1Day 2024-11-26: close nan is not a price"),
        ("103,100,102,", "inf,100,102,", "F.csv:3: F 1Day 2024-11-26: high inf is not a price"),
        ("103,100,102,", "99,100,102,", "F.csv:3: F 1Day 2024-11-26: high 99 is below low 100"),
        ("103,100,102,", "103,100,107,", "F.csv:3: F 1Day 2024-11-26: close 107 is outside low"),
        ("26,101,", "26,99,", "F.csv:3: F 1Day 2024-11-26: open 99 is outside low 100 to high 103"),
        ("102,1100", "102,-5", "F.csv:3: F 1Day 2024-11-26: volume -5 is not a number of shares"),
        ("102,1100", "102,nan", "F.csv:3: F 1Day 2024-11-26: volume nan is not a number of shares"),
        ("volume", "turnover", "F.csv:1: 0 of the columns date, open, high, low, close, turnover"),
        ("low", "close", "F.csv:1: 0 of the columns date, open, high, close, close, volume are"),
        ("open", "close", "F.csv:1: 0 of the columns date, close, high, low, close, volume are"),
        ("date", "day", "F.csv:1: 0 of the columns day, open, high, low, close, volume tell"),
        ("date,open", "date,timestamp", "F.csv:1: 2 of the columns date, timestamp, high"),
        (",", ";", "F.csv:1: 0 of the columns date;open;high;low;close;volume tell the time"),
    ],
)  # fmt: skip
def test_a_fault_of_a_daily_file_is_named_by_its_place(old, new, message):
    assert old in DAILY
    damaged = DAILY.replace(old, new) if old == "," else DAILY.replace(old, new, 1)
    assert refusal(damaged).startswith(message)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("10:30:00-05:00", "10:30:00", "F.csv:3: column timestamp: '2024-11-29T10:30:00' has no"),
        ("2024-11-29T10:30:00-05:00", "noon", "F.csv:3: column timestamp: 'noon' is not a time"),
        ("17:30:00Z", "18:00:00Z", "F.csv:5: F 1Hour 2024-11-29 18:00 UTC: the exchange is closed"),
        ("2024-11-29T09", "2024-11-28T09", "F.csv:2: F 1Hour 2024-11-28 14:30 UTC: the exchange"),
        ("2024-11-29T09", "1950-11-29T09", "F.csv: 1950-11-29 is outside the exchange calendar"),
        ("10:30:00-05:00", "10:45:00-05:00", "F.csv: F 1Hour: no session has its hourly bars"),
    ],
)  # fmt: skip
def test_a_fault_of_an_hourly_file_is_named_by_its_place(old, new, message):
    assert old in HOURLY
    assert refusal(HOURLY.replace(old, new, 1)).startswith(message)


def test_adjusted_closes_beside_raw_opens_are_refused():
    rows = DAILY.splitlines()
    adjusted = [row.rsplit(",", 2)[0] + ",90,1000" for row in rows[1:]]
    message = refusal("\n".join([rows[0], *adjusted]))
    assert message.startswith("F.csv: F 1Day: 5 of 5 closes lie outside their bar's low to high")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "F.csv: no header line"),
        (b"# adjustment: none\n", "F.csv: no header line"),
        (b"date,open,high,low,close,volume\n", "F.csv: no bars under the header"),
        (gzip.compress(DAILY.encode())[:-9], "F.csv: damaged gzip file"),
        (b"\x1f\x8b and no more", "F.csv: damaged gzip file"),
        (DAILY.replace("1100", "11\xe4").encode("latin-1"), "F.csv: byte 92 is not UTF-8 text"),
    ],
)
def test_a_file_without_bars_in_it_is_refused(raw, message):
    assert refusal(raw).startswith(message)


def test_the_header_alone_tells_the_timeframe():
    assert read_header(HOURLY.encode(), where="F.csv").timeframe is Timeframe.HOUR
    assert read_header(gzip.compress(DAILY.encode()), where="F").timeframe is Timeframe.DAY


def test_one_session_is_enough():
    assert len(read("\n".join(DAILY.splitlines()[:2]))) == 1


prices = st.floats(1.0, 1.3)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(prices, prices, prices, st.integers(0, 10**9)), min_size=1, max_size=20))
def test_what_is_written_is_read_back_to_the_last_bit(bars):
    calendar = new_york()
    days = calendar.between(date(2024, 11, 25), date(2024, 12, 31))
    rows = ["date,open,high,low,close,volume"]
    for day, (opening, middle, close, volume) in zip(days, bars, strict=False):
        high, low = max(opening, middle, close), min(opening, middle, close)
        rows.append(f"{day},{opening!r},{high!r},{low!r},{close!r},{volume}")
    series = read("\n".join(rows))
    assert series.open.tolist() == [bar[0] for bar in bars]
    assert series.close.tolist() == [bar[2] for bar in bars]
    assert series.volume.tolist() == [float(bar[3]) for bar in bars]
    assert [from_ns(ns) for ns in series.available_at] == [calendar.close(day) for day in days][
        : len(bars)
    ]
