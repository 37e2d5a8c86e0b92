"""The bundled bars: sound, complete, described truthfully, and never ahead of time."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trader.core.clock import new_york
from trader.core.errors import DataIntegrityError
from trader.core.market import Timeframe, session_of, to_ns
from trader.core.ports import MarketData
from trader.data.integrity import refused_sessions, require_sound
from trader.data.sample import SYMBOLS, SampleData

KNOWN = [
    ("AAPL", Timeframe.DAY, 2914, date(2015, 1, 2), date(2026, 8, 5), "splits and dividends"),
    ("NVDA", Timeframe.DAY, 2546, date(2015, 1, 2), date(2025, 2, 14), "splits"),
    ("MSFT", Timeframe.DAY, 1511, date(2015, 4, 1), date(2021, 3, 31), "splits"),
    ("AMZN", Timeframe.DAY, 1405, date(2015, 1, 2), date(2020, 7, 31), "splits up to 2020"),
    ("AAPL", Timeframe.HOUR, 3478, date(2024, 8, 6), date(2026, 8, 5), "none"),
]
GAPS = {
    date(2024, 11, 29): 1,
    date(2024, 12, 24): 1,
    date(2025, 7, 3): 1,
    date(2025, 11, 28): 1,
    date(2025, 12, 24): 1,
    date(2026, 1, 30): 5,
    date(2026, 2, 2): 4,
}


@pytest.fixture(scope="module")
def sample() -> SampleData:
    return SampleData(new_york())


@pytest.mark.parametrize("known", KNOWN)
def test_a_bundled_series_is_what_its_readme_says(sample, calendar, known):
    symbol, timeframe, count, first, last, adjustment = known
    series = sample.bars(symbol, timeframe)
    assert (len(series), series.adjustment, series.source) == (count, adjustment, "sample")
    assert session_of(series.bar(0).timestamp) == first
    assert session_of(series.bar(-1).timestamp) == last
    assert all(finding.severity == "warning" for finding in require_sound(series, calendar))
    require_sound(series, calendar, as_of=calendar.close(last))
    readme = files("trader.data.sample").joinpath("README.md").read_text()
    line = next(row for row in readme.splitlines() if f"`{symbol}_{timeframe}.csv.gz`" in row)
    assert f"{count:,}" in line
    assert f"{first} to {last}" in line


@pytest.mark.parametrize("symbol", SYMBOLS[Timeframe.DAY])
def test_daily_bars_are_exactly_the_sessions_of_the_exchange(sample, calendar, symbol):
    series = sample.bars(symbol, Timeframe.DAY)
    first, last = session_of(series.bar(0).timestamp), session_of(series.bar(-1).timestamp)
    sessions = calendar.between(first, last)
    assert [session_of(series.bar(index).timestamp) for index in range(len(series))] == sessions


def test_days_everybody_remembers_are_there(sample):
    nvidia = sample.bars("NVDA", Timeframe.DAY, until=datetime(2025, 1, 27, 21, tzinfo=UTC))
    assert nvidia.close[-1] / nvidia.close[-2] - 1 == pytest.approx(-0.17, abs=0.005)  # DeepSeek
    apple = sample.bars("AAPL", Timeframe.DAY)
    change = apple.close[1:] / apple.close[:-1] - 1
    best = apple.bar(int(np.argmax(change)) + 1)
    assert session_of(best.timestamp) == date(2025, 4, 9)  # tariffs postponed
    assert change.max() == pytest.approx(0.153, abs=0.001)


def test_hourly_and_daily_aapl_tell_the_same_story(sample):
    hourly, daily = (
        sample.bars("AAPL", timeframe) for timeframe in (Timeframe.HOUR, Timeframe.DAY)
    )
    last_of_day = np.flatnonzero(np.isin(hourly.available_at, daily.available_at))
    day = np.searchsorted(daily.available_at, hourly.available_at[last_of_day])
    ratio = daily.close[day] / hourly.close[last_of_day]
    assert last_of_day.size > 480
    assert ratio.min() > 0.98  # two years of dividends, about 0.9 %
    assert ratio.max() < 1.02


def test_hourly_gaps_are_listed_per_session_and_documented(sample, calendar):
    series = sample.bars("AAPL", Timeframe.HOUR)
    refused = refused_sessions(series, calendar)
    assert {day: reason.count("no bar at") for day, reason in refused.items()} == GAPS
    zero = [f for f in require_sound(series, calendar) if f.code == "zero_volume"]
    assert len(zero) == 8
    readme = files("trader.data.sample").joinpath("README.md").read_text()
    assert all(str(day) in readme for day in GAPS)


def test_symbols_are_listed_and_found_in_any_case(sample):
    assert sample.symbols(Timeframe.DAY) == ("AAPL", "AMZN", "MSFT", "NVDA")
    assert sample.symbols(Timeframe.HOUR) == ("AAPL",)
    assert sample.bars(" aapl ", Timeframe.DAY) is sample.bars("AAPL", Timeframe.DAY)
    assert sample.bars("nvda", Timeframe.DAY).symbol == "NVDA"


def test_an_unknown_symbol_is_answered_with_those_that_exist(sample):
    with pytest.raises(
        DataIntegrityError,
        match=r"sample has no 1Day bars of 'APPL', only of: AAPL, AMZN, MSFT, NVDA; "
        r"did you mean AAPL\?",
    ):
        sample.bars("APPL", Timeframe.DAY)
    with pytest.raises(DataIntegrityError, match=r"no 1Hour bars of 'MSFT', only of: AAPL$"):
        sample.bars("MSFT", Timeframe.HOUR)


def test_a_time_before_the_first_bar_is_refused(sample):
    with pytest.raises(DataIntegrityError, match="the first was complete at 2015-04-01 20:00 UTC"):
        sample.bars("MSFT", Timeframe.DAY, until=datetime(2015, 4, 1, 19, tzinfo=UTC))


def test_data_that_has_ended_is_stale_for_a_later_decision(sample, calendar):
    at = calendar.close(date(2025, 2, 18))
    with pytest.raises(DataIntegrityError, match="NVDA 1Day 2025-02-14: the newest bar, but one"):
        require_sound(sample.bars("NVDA", Timeframe.DAY, until=at), calendar, as_of=at)


@settings(deadline=None, max_examples=100)
@given(
    st.sampled_from([(symbol, timeframe) for symbol, timeframe, *_ in KNOWN]),
    st.datetimes(datetime(2015, 1, 5), datetime(2026, 12, 31)),
)
def test_until_never_shows_a_bar_before_it_is_complete(key, moment):
    sample, as_of = _SAMPLE, moment.replace(tzinfo=UTC)
    whole = sample.bars(*key)
    complete = int((whole.available_at <= to_ns(as_of)).sum())
    if complete == 0:
        with pytest.raises(DataIntegrityError, match="complete at"):
            sample.bars(*key, until=as_of)
        return
    seen = sample.bars(*key, until=as_of)
    assert len(seen) == complete
    assert seen.bar(-1).available_at <= as_of
    assert seen.sha256 == whole.head(complete).sha256


_SAMPLE = SampleData(new_york())


def test_a_daily_bar_is_hidden_until_its_session_has_closed(sample, calendar):
    half_day = date(2025, 11, 28)
    close = calendar.close(half_day)
    seen = sample.bars("AAPL", Timeframe.DAY, until=close)
    assert session_of(seen.bar(-1).timestamp) == half_day
    earlier = sample.bars("AAPL", Timeframe.DAY, until=close - timedelta(microseconds=1))
    assert session_of(earlier.bar(-1).timestamp) == date(2025, 11, 26)


def test_sample_fills_the_seam(sample):
    source: MarketData = sample
    assert source.name == "sample"


def test_importing_the_sample_loads_no_pandas():
    code = (
        "import sys, trader.data.source; "
        "sys.exit(any(name in sys.modules for name in ('pandas', 'exchange_calendars', 'numba')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
