"""Each fault of bars, on both sides of its boundary."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, date, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trader.data.damage import ARRAYS, PRICES, codes, scaled, set_at, without
from trader.core.clock import new_york
from trader.core.errors import DataIntegrityError
from trader.core.market import BarSeries, Timeframe, from_ns, to_ns
from trader.data.grid import HOUR_NS
from trader.data.integrity import inspect, refused_sessions, require_sound
from trader.data.sample import SampleData

HALF_DAY = date(2024, 11, 29)


@pytest.mark.parametrize("timeframe", Timeframe)
def test_a_sound_series_has_no_findings(calendar, sound, timeframe):
    series = sound(timeframe=timeframe)
    assert inspect(series, calendar) == ()
    assert require_sound(series, calendar) == ()
    assert refused_sessions(series, calendar) == {}


@pytest.mark.parametrize("name", PRICES)
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, -np.inf])
def test_a_price_that_is_none_is_refused_and_named(calendar, sound, name, value):
    series = set_at(sound(), 3, **{name: value})
    findings = inspect(series, calendar)
    assert ("error", "price") in codes(findings)
    finding = next(finding for finding in findings if finding.code == "price")
    assert (finding.bar, finding.symbol) == (3, "TEST")
    assert finding.at == from_ns(series.timestamp[3])
    with pytest.raises(DataIntegrityError, match=rf"TEST 1Day 2024-11-29: {name} {value:g} is not"):
        require_sound(series, calendar)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_a_volume_that_is_none_is_refused(calendar, sound, value):
    findings = inspect(set_at(sound(), 3, volume=value), calendar)
    assert codes(findings) == [("error", "volume")]
    assert "2024-11-29: volume" in findings[0].message


def test_zero_volume_is_only_a_warning(calendar, sound):
    warnings = require_sound(set_at(sound(), 3, volume=0.0), calendar)
    assert codes(warnings) == [("warning", "zero_volume")]


def test_high_below_low_is_refused(calendar, sound):
    series = set_at(sound(), 3, open=100.0, close=100.0, high=99.0, low=101.0)
    assert codes(inspect(series, calendar)) == [("error", "high_below_low")]


@pytest.mark.parametrize("name", ["open", "close"])
@pytest.mark.parametrize("edge", ["high", "low"])
def test_open_and_close_must_lie_in_the_range_up_to_rounding(calendar, sound, name, edge):
    series = sound()
    outwards = 1.0 if edge == "high" else -1.0
    limit = float(getattr(series, edge)[3])
    inside = set_at(series, 3, **{name: limit * (1.0 + outwards * 0.9e-9)})
    outside = set_at(series, 3, **{name: limit * (1.0 + outwards * 1.2e-9)})
    assert inspect(inside, calendar) == ()
    assert codes(inspect(outside, calendar)) == [("error", f"{name}_outside_range")]


def test_adjusted_closes_beside_raw_prices_are_called_that(calendar, sound):
    series = sound()
    findings = inspect(replace(series, close=series.close * 0.95), calendar)
    assert codes(findings) == [("error", "mixed_adjustment")]
    assert f"{len(series)} of {len(series)} closes" in findings[0].message


def test_two_stray_closes_are_no_adjustment(calendar, sound):
    series = set_at(set_at(sound(), 3, close=90.0), 7, close=91.0)
    assert codes(inspect(series, calendar)) == [("error", "close_outside_range")] * 2
    third = set_at(series, 9, close=91.0)
    assert codes(inspect(third, calendar)) == [("error", "mixed_adjustment")]
    other_side = set_at(series, 9, close=120.0)
    assert codes(inspect(other_side, calendar)) == [("error", "close_outside_range")] * 3


def test_unsorted_and_repeated_times_are_refused(calendar, sound):
    series = sound()
    swapped = series.timestamp.copy()
    swapped[[3, 4]] = swapped[[4, 3]]
    findings = inspect(replace(series, timestamp=swapped), calendar)
    assert codes(findings) == [("error", "unsorted")]
    assert "2024-11-29: comes after the bar of 2024-12-02" in findings[0].message
    repeated = set_at(series, 4, timestamp=series.timestamp[3])
    assert codes(inspect(repeated, calendar)) == [("error", "duplicate_time")]


def test_a_missing_session_is_refused_by_its_date(calendar, sound):
    series = without(sound(), 3)
    with pytest.raises(DataIntegrityError, match=r"2024-11-29: this session has no bar$"):
        require_sound(series, calendar)
    with pytest.raises(DataIntegrityError, match=r"2024-11-29: .* \(and 1 more error\)$"):
        require_sound(without(sound(), 3, 9), calendar)
    with pytest.raises(DataIntegrityError, match=r"2024-11-29: .* \(and 2 more errors\)$"):
        require_sound(without(sound(), 3, 9, 12), calendar)


def test_sessions_outside_the_range_are_not_missing(calendar, sound):
    assert inspect(sound().slice(4, 5), calendar) == ()
    assert inspect(sound().slice(2, 9), calendar) == ()


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2024, 11, 28, 14, 30, tzinfo=UTC),  # Thanksgiving
        datetime(2024, 11, 30, 14, 30, tzinfo=UTC),  # a Saturday
        datetime(2024, 11, 29, 18, tzinfo=UTC),  # the close of a half day
    ],
)
@pytest.mark.parametrize("timeframe", Timeframe)
def test_a_bar_while_the_exchange_is_closed_is_refused(calendar, sound, moment, timeframe):
    series = sound(timeframe=timeframe)
    bar = int(np.searchsorted(series.timestamp, to_ns(moment)))
    added = {name: np.insert(getattr(series, name), bar, getattr(series, name)[bar])
             for name in ARRAYS}  # fmt: skip
    added["timestamp"][bar] = to_ns(moment)
    added["available_at"][bar] = to_ns(moment) + HOUR_NS
    findings = inspect(replace(series, **added), calendar)
    assert codes(findings) == [("error", "outside_session")]
    assert findings[0].bar == bar


def test_a_daily_bar_must_open_with_its_session(calendar, sound):
    series = sound()
    late = set_at(series, 3, timestamp=series.timestamp[3] + 1)
    assert ("error", "off_grid") in codes(inspect(late, calendar))


@pytest.mark.parametrize("timeframe", Timeframe)
@pytest.mark.parametrize("shift", [-1, 1])
def test_a_bar_known_before_or_after_its_end_is_refused(calendar, sound, timeframe, shift):
    series = sound(timeframe=timeframe)
    series = set_at(series, 5, available_at=series.available_at[5] + shift)
    assert codes(inspect(series, calendar)) == [("error", "availability")]


def test_an_hourly_bar_may_not_run_past_the_close_of_a_half_day(calendar, sound):
    series = sound(HALF_DAY, HALF_DAY, Timeframe.HOUR)
    series = set_at(series, 3, available_at=series.timestamp[3] + HOUR_NS)
    with pytest.raises(DataIntegrityError, match=r"18:30 UTC, but it is at 2024-11-29 18:00 UTC"):
        require_sound(series, calendar)


RATIOS = [1.5, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0, 1 / 2, 1 / 3, 2 / 3, 1 / 4, 1 / 10, 1 / 20]


@pytest.mark.parametrize("split", RATIOS)
@pytest.mark.parametrize("off", [-0.0101, -0.0099, 0.0, 0.0099, 0.0101])
def test_an_overnight_cliff_within_one_percent_of_a_split_is_refused(calendar, sound, split, off):
    series = sound()
    before = float(series.close[9])
    wanted = before / split * (1.0 + off)
    series = scaled(series, 10, wanted / float(series.open[10]))
    findings = inspect(series, calendar)
    if abs(off) < 0.01:
        assert codes(findings) == [("error", "split_cliff")]
        assert "looks like a split" in findings[0].message
        assert findings[0].bar == 10
    else:
        assert all(finding.severity == "warning" for finding in findings)


def test_a_cliff_is_called_by_its_split(calendar, sound):
    for split, words in [(4.0, "4 for 1"), (1.5, "1.5 for 1"), (0.1, "1 for 10")]:
        series = sound()
        series = scaled(series, 10, series.close[9] / split / series.open[10])
        assert f"a split of {words} that is not on record" in inspect(series, calendar)[0].message


@pytest.mark.parametrize("timeframe", Timeframe)
def test_a_split_on_record_explains_its_cliff(calendar, sound, timeframe):
    day = date(2024, 12, 9)
    series = sound(timeframe=timeframe)
    bar = int(np.searchsorted(series.timestamp, to_ns(calendar.open(day))))
    cliff = scaled(series, bar, series.close[bar - 1] / 20.0 / series.open[bar])
    assert codes(inspect(cliff, calendar)) == [("error", "split_cliff")]
    assert inspect(replace(cliff, splits=((day, 20.0),)), calendar) == ()
    wrong_day = replace(cliff, splits=((date(2024, 12, 10), 20.0),))
    assert ("error", "split_cliff") in codes(inspect(wrong_day, calendar))
    wrong_way = replace(cliff, splits=((day, 0.05),))
    assert codes(inspect(wrong_way, calendar)) == [("error", "split_denied")]


def test_a_split_on_record_that_the_prices_deny_is_refused(calendar, sound):
    series = replace(sound(), splits=((date(2024, 12, 9), 4.0),))
    with pytest.raises(DataIntegrityError, match="4 new shares for one, does not explain"):
        require_sound(series, calendar)


def test_splits_before_the_first_bar_or_after_the_last_ask_for_nothing(calendar, sound):
    splits = ((date(2020, 8, 31), 4.0), (date(2025, 6, 2), 10.0))
    assert inspect(replace(sound(), splits=splits), calendar) == ()


def test_the_fall_of_aapl_in_september_2000_is_real_and_only_a_warning(calendar):
    real = {  # AAPL 2000-09-28 and 2000-09-29, adjusted for later splits and dividends
        "open": np.array([0.738095, 0.421902]),
        "high": np.array([0.805451, 0.434064]),
        "low": np.array([0.720321, 0.379806]),
        "close": np.array([0.800773, 0.385418]),
        "volume": np.array([979_585_600.0, 7_421_640_800.0]),
    }
    timestamp, available_at = calendar.hours_between(date(2000, 9, 28), date(2000, 9, 29))
    series = BarSeries(
        symbol="AAPL",
        timeframe=Timeframe.DAY,
        timestamp=timestamp,
        available_at=available_at,
        **real,
        source="history",
        adjustment="splits and dividends",
    )
    warnings = require_sound(series, calendar)
    assert codes(warnings) == [("warning", "extreme_move")]
    assert warnings[0].value == pytest.approx(-0.519, abs=0.001)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(("size", "is_extreme"), [(0.399, False), (0.401, True)])
def test_a_move_is_extreme_beyond_forty_percent(calendar, sound, sign, size, is_extreme):
    series = sound()
    price = float(series.close[9]) * (1 + sign * size)
    overnight = scaled(series, 11, price / float(series.close[10]))
    overnight = set_at(overnight, 10, open=price, high=price, low=price, close=price)
    expected = [("warning", "extreme_move")] if is_extreme else []
    assert codes(inspect(overnight, calendar)) == expected
    low, high = min(price, float(series.open[10])), max(price, float(series.open[10]))
    by_day = scaled(series, 11, price / float(series.close[10]))
    by_day = set_at(by_day, 10, close=price, low=low, high=high)
    assert codes(inspect(by_day, calendar)) == expected


def test_no_bars_are_refused_plainly(calendar, sound):
    with pytest.raises(DataIntegrityError, match="TEST 1Day: no bars"):
        require_sound(sound().head(0), calendar)
    with pytest.raises(DataIntegrityError, match="TEST 1Day: no bars"):
        require_sound(sound().head(0), calendar, as_of=datetime(2024, 1, 2, 15, tzinfo=UTC))
    assert refused_sessions(sound(timeframe=Timeframe.HOUR).head(0), calendar) == {}


def test_bars_before_the_calendar_are_refused(calendar, sound):
    old = sound()
    age = to_ns(datetime(1975, 1, 2, 14, 30, tzinfo=UTC)) - old.timestamp[0]
    old = replace(old, timestamp=old.timestamp + age, available_at=old.available_at + age)
    with pytest.raises(DataIntegrityError, match="1975-01-02 is outside the exchange calendar"):
        inspect(old, calendar)


def test_errors_come_before_warnings_and_each_oldest_first(calendar, sound):
    series = set_at(set_at(sound(), 2, volume=0.0), 5, volume=0.0)
    series = without(set_at(set_at(series, 9, volume=-1.0), 4, close=0.0), 7)
    found = [(finding.code, finding.bar) for finding in inspect(series, calendar)]
    assert found == [
        ("price", 4),
        ("close_outside_range", 4),
        ("missing_session", None),
        ("volume", 8),
        ("zero_volume", 2),
        ("zero_volume", 5),
    ]


damage = st.lists(
    st.tuples(
        st.sampled_from(ARRAYS[2:]),
        st.integers(0, 19),
        st.floats(allow_nan=True, allow_infinity=True),
    ),
    max_size=3,
)


@settings(deadline=None, max_examples=60)
@given(damage)
def test_no_damage_crashes_and_every_finding_is_one_line_about_its_bar(edits):
    calendar = new_york()
    series = SampleData(calendar).bars("MSFT", Timeframe.DAY).head(20)
    for name, bar, value in edits:
        series = set_at(series, bar, **{name: value})
    findings = inspect(series, calendar)
    for finding in findings:
        assert finding.message.startswith("MSFT 1Day")
        assert "\n" not in finding.message
        assert finding.bar is None or finding.at == from_ns(series.timestamp[finding.bar])
    bad = {
        (name, bar)
        for name in (*PRICES, "volume")
        for bar, value in enumerate(getattr(series, name).tolist())
        if not (0 <= value <= 1e15 if name == "volume" else 1e-4 <= value <= 1e9)
    }
    found = [finding for finding in findings if finding.code in ("price", "volume")]
    assert len(found) == len(bad)


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 1511))
def test_a_sound_series_is_sound_at_every_earlier_time(length):
    calendar = new_york()
    series = SampleData(calendar).bars("MSFT", Timeframe.DAY).head(length)
    assert inspect(series, calendar, as_of=from_ns(series.available_at[-1])) == ()


def test_findings_are_plain_values(calendar, sound):
    finding = inspect(set_at(sound(), 3, volume=0.0), calendar)[0]
    assert [field.name for field in fields(finding)] == [
        "severity", "symbol", "code", "at", "bar", "value", "message",
    ]  # fmt: skip
    assert finding == inspect(set_at(sound(), 3, volume=0.0), calendar)[0]


@pytest.mark.parametrize("factor", [1000.0, 26.0, 1 / 26.0, 0.001])
def test_a_price_that_no_share_reaches_overnight_is_refused_as_broken(calendar, sound, factor):
    series = sound()
    at = len(series) // 2
    prices = {name: float(getattr(series, name)[at]) * factor for name in PRICES}
    found = {
        f.code for f in inspect(set_at(series, at, **prices), calendar) if f.severity == "error"
    }
    assert "broken_price" in found


@pytest.mark.parametrize("price", [1e-12, 9e-5, 1.1e9, 1e150])
def test_numbers_that_are_no_price_of_a_share_are_refused(calendar, sound, price):
    series = set_at(sound(), 3, open=price, high=price, low=price, close=price)
    assert ("error", "price") in {(f.severity, f.code) for f in inspect(series, calendar)}
