"""Times in nanoseconds, and the guard that hides bars not yet complete."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trader.core.market import BarSeries, Timeframe, from_ns, session_of, to_ns

START = datetime(2024, 3, 4, 14, 30, tzinfo=UTC)
DAY_NS = 86_400 * 10**9


def series(length: int = 5) -> BarSeries:
    close = 100.0 + np.arange(length)
    timestamp = to_ns(START) + np.arange(length) * DAY_NS
    return BarSeries(
        symbol="AAPL",
        timeframe=Timeframe.DAY,
        timestamp=timestamp,
        available_at=timestamp + 23_400 * 10**9,
        open=close - 0.5,
        high=close + 1.0,
        low=close - 1.0,
        close=close,
        volume=1e6 + close,
        source="made up",
        adjustment="none",
    )


aware = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)).map(
    lambda moment: moment.replace(tzinfo=UTC)
)


@settings(deadline=None)
@given(aware, st.integers(-14 * 60, 14 * 60))
def test_nanoseconds_keep_every_microsecond_in_any_zone(moment, offset_minutes):
    elsewhere = moment.astimezone(timezone(timedelta(minutes=offset_minutes)))
    assert from_ns(to_ns(elsewhere)) == moment
    assert from_ns(to_ns(moment) + 999) == moment


def test_to_ns_agrees_with_numpy():
    assert to_ns(START) == int(np.datetime64("2024-03-04T14:30", "ns").astype(np.int64))


def test_naive_times_are_refused():
    with pytest.raises(ValueError, match="time zone is missing"):
        to_ns(datetime(2024, 3, 4, 14, 30))
    with pytest.raises(ValueError, match="time zone is missing"):
        series().until(datetime(2024, 3, 4, 14, 30))


def test_session_is_the_new_york_date():
    assert session_of(datetime(2024, 3, 5, 2, tzinfo=UTC)) == date(2024, 3, 4)
    assert session_of(datetime(2024, 3, 5, 14, tzinfo=UTC)) == date(2024, 3, 5)


def test_a_bar_appears_exactly_when_it_is_complete():
    bars = series()
    complete = bars.bar(2).available_at
    assert len(bars.until(complete)) == 3
    assert len(bars.until(complete - timedelta(microseconds=1))) == 2
    assert len(bars.until(START)) == 0


@settings(deadline=None)
@given(st.integers(-3 * 24 * 60, 9 * 24 * 60))
def test_until_never_leaks_and_never_withholds(minutes):
    bars, as_of = series(), START + timedelta(minutes=minutes)
    seen = bars.until(as_of)
    assert (seen.available_at <= to_ns(as_of)).all()
    assert (bars.available_at[len(seen) :] > to_ns(as_of)).all()
    for name in ("timestamp", "available_at", "open", "high", "low", "close", "volume"):
        assert getattr(seen, name).tolist() == getattr(bars, name)[: len(seen)].tolist()


def test_until_copies_nothing():
    bars = series()
    assert np.shares_memory(bars.close, bars.until(START + timedelta(days=3)).close)


def test_splits_of_later_sessions_are_hidden_like_later_bars():
    splits = ((date(2024, 3, 5), 2.0), (date(2024, 3, 7), 4.0))
    bars = replace(series(), splits=splits)
    assert bars.until(START).splits == ()
    assert bars.head(1).splits == ()
    assert bars.head(2).splits == splits[:1]
    assert bars.head(4).splits == splits
    without = replace(series(), splits=splits[:1])
    assert bars.head(3).sha256 == without.head(3).sha256


def test_bar_reads_one_column_and_counts_from_the_newest():
    bars = series()
    newest = bars.bar(-1)
    assert newest == bars.bar(4)
    assert (newest.open, newest.high, newest.low, newest.close) == (103.5, 105.0, 103.0, 104.0)
    assert newest.timestamp == START + timedelta(days=4)
    with pytest.raises(IndexError):
        bars.bar(5)


def test_hash_tells_any_number_but_not_the_source():
    bars = series()
    assert bars.sha256 == series().sha256
    assert bars.sha256 == replace(bars, source="elsewhere").sha256
    assert bars.sha256 != bars.head(4).sha256
    assert bars.sha256 != replace(bars, adjustment="splits").sha256
    assert bars.sha256 != replace(bars, splits=((date(2024, 3, 5), 2.0),)).sha256
    for name in ("timestamp", "available_at", "open", "high", "low", "close", "volume"):
        changed = getattr(bars, name).copy()
        changed[1] = np.nextafter(changed[1], 1e9) if changed.dtype == float else changed[1] + 1
        assert replace(bars, **{name: changed}).sha256 != bars.sha256, name
