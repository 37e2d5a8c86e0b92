"""The past that a claim may quote: what each question means, and that no later bar ever answers."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trader.pipeline.accounts import CALENDAR, REFERENCE
from tests.trader.pipeline.bars import daily, wave
from trader.core.errors import StateError
from trader.core.market import BarSeries, Timeframe, from_ns, session_of
from trader.core.past import PastQuestion
from trader.data.synthetic import SyntheticData
from trader.pipeline.history import BarHistory, RecordedHistory

CLOSES = [10.0, 11.0, 10.5, 12.0, 12.0, 9.0, 13.0]
BARS = daily(CLOSES, first=date(2020, 1, 2))  # 2, 3, 6, 7, 8, 9, 10 January 2020


def ask(statistic, field="close", series: BarSeries = BARS, **more) -> float | None:
    return BarHistory(series, REFERENCE).ask(PastQuestion(statistic=statistic, field=field, **more))


def test_a_value_is_that_of_its_session_and_of_no_other_day():
    assert ask("value") == 13.0
    assert ask("value", last=date(2020, 1, 7)) == 12.0
    assert ask("value", last=date(2020, 1, 3)) == 11.0
    assert ask("value", last=date(2020, 1, 4)) is None  # a Saturday
    assert ask("value", last=date(2020, 1, 1)) is None  # before the bars
    assert ask("value", last=date(2020, 1, 13)) is None  # after them
    assert ask("value", bars=3) == 12.0  # the first of the last three
    assert ask("value", last=date(2020, 1, 4), bars=1) == 11.0  # the newest at or before
    assert ask("value", last=date(2020, 1, 7), bars=2) == 10.5
    assert ask("value", bars=7) == 10.0
    assert ask("value", bars=8) is None


def test_extremes_and_their_sessions():
    assert ask("highest") == ask("lowest") == 13.0
    assert ask("highest", first=date(2020, 1, 2), last=date(2020, 1, 9)) == 12.0
    assert ask("session_of_highest", first=date(2020, 1, 2), last=date(2020, 1, 9)) == 20200107.0
    assert ask("lowest", bars=4) == 9.0
    assert ask("session_of_lowest", bars=4) == 20200109.0
    assert ask("highest", first=date(2020, 1, 4)) == 13.0  # from the next session on
    assert ask("highest", first=date(2020, 1, 1)) is None  # the bars do not reach back
    assert ask("highest", first=date(2020, 1, 2), last=date(2020, 1, 13)) is None  # nor so far on
    assert ask("highest", first=date(2020, 1, 9), last=date(2020, 1, 7)) is None
    assert ask("sessions", first=date(2020, 1, 4), last=date(2020, 1, 9)) == 4.0


def test_counts_compare_with_the_session_before_or_with_a_line():
    assert ask("count_up", bars=6) == 3.0
    assert ask("count_down", bars=6) == 2.0
    assert ask("count_up", bars=7) is None  # what came before the first bar is not known
    assert ask("count_above", bars=7, line=12.0) == 1.0
    assert ask("count_below", bars=7, line=12.0) == 4.0
    assert ask("count_above", bars=7, line_field="open") == 3.0
    assert ask("count_above", bars=7, line_field="sma_20") is None
    assert ask("count_above", bars=7) is None


def test_what_is_not_known_is_none():
    assert ask("value", "rsi_7") is None
    assert ask("value", "cash") is None
    assert ask("value", "atr") is None
    assert ask("value", "sma_20") is None  # seven bars
    assert ask("value", series=BARS.head(0)) is None
    assert ask("highest", bars=0) is None


def test_indicators_have_the_values_of_their_kernels_and_atr_the_one_in_force():
    bars = daily(wave(260))
    atr = REFERENCE.atr(bars.high, bars.low, bars.close, 5)
    history = BarHistory(bars, REFERENCE, atr=atr)
    expected = {
        "sma_50": REFERENCE.sma(bars.close, 50),
        "rsi_14": REFERENCE.rsi(bars.close, 14),
        "macd_signal": REFERENCE.macd(bars.close, 12, 26, 9)[1],
        "minus_di_14": REFERENCE.adx(bars.high, bars.low, bars.close, 14)[2],
        "bollinger_lower": REFERENCE.bollinger(bars.close, 20, 2.0)[2],
        "atr": atr,
    }
    for name, values in expected.items():
        day = session_of(from_ns(bars.timestamp[-30]))
        assert history.ask(PastQuestion(statistic="value", field=name, last=day)) == values[-30]
        best = history.ask(PastQuestion(statistic="highest", field=name, bars=100))
        assert best == values[-100:].max()
    assert history.ask(PastQuestion(statistic="lowest", field="sma_50", bars=250)) is None


@pytest.fixture(scope="module")
def hourly() -> BarSeries:
    whole = SyntheticData(CALENDAR, seed=3).bars("SYNB", Timeframe.HOUR)
    return whole.slice(1_000, 1_700)


def test_a_session_of_hourly_bars_is_one_session(hourly):
    days = [session_of(from_ns(at)) for at in hourly.timestamp]
    for day in sorted(set(days))[2:40:6]:
        at = [index for index, known in enumerate(days) if known == day]
        expected = {
            "open": hourly.open[at[0]],
            "high": hourly.high[at].max(),
            "low": hourly.low[at].min(),
            "close": hourly.close[at[-1]],
            "volume": hourly.volume[at].sum(),
            "sma_20": REFERENCE.sma(hourly.close, 20)[at[-1]],
        }
        for field, value in expected.items():
            if np.isfinite(value):
                assert ask("value", field, hourly, last=day) == pytest.approx(value), field
    sessions = sorted(set(days))
    assert len(at) > 1
    assert ask("sessions", "close", hourly, first=sessions[5]) == len(sessions) - 5
    closes = [ask("value", "close", hourly, last=day) for day in sessions[-6:]]
    assert ask("count_up", "close", hourly, bars=5) == sum(b > a for a, b in pairwise(closes))
    assert ask("value", "close", hourly, bars=6) == closes[0]


DAYS = st.integers(0, 700).map(lambda days: date(2021, 1, 4) + timedelta(days=days))
FIELDS = st.sampled_from(["open", "high", "low", "close", "volume", "sma_20", "rsi_14", "macd"])
QUESTIONS = st.builds(
    PastQuestion,
    statistic=st.sampled_from(
        [
            *("value", "highest", "lowest", "session_of_highest", "sessions"),
            *("count_above", "count_below", "count_up", "count_down"),
        ]
    ),
    field=FIELDS,
    first=st.none() | DAYS,
    last=st.none() | DAYS,
    bars=st.none() | st.integers(1, 300),
    line=st.floats(50, 150),
    line_field=st.none() | FIELDS,
)
LONG = daily(wave(480), first=date(2021, 1, 4))


@given(QUESTIONS, st.integers(60, 480))
@settings(max_examples=200)
def test_no_later_bar_ever_changes_an_answer(question, known):
    as_of = from_ns(LONG.available_at[known - 1])
    changed = LONG.close.copy()
    changed[known:] *= 3.0
    later = BarSeries(
        **{
            name: getattr(LONG, name)
            for name in ("symbol", "timeframe", "timestamp", "available_at", "source", "adjustment")
        },
        open=LONG.open,
        high=np.maximum(LONG.high, changed),
        low=LONG.low,
        close=changed,
        volume=LONG.volume,
    )
    answers = {
        BarHistory(bars, REFERENCE).ask(question)
        for bars in (LONG.until(as_of), later.until(as_of), LONG.head(known))
    }
    assert len(answers) == 1
    whole = BarHistory(LONG, REFERENCE).ask(question)
    newest = session_of(as_of)
    if question.last is not None and question.last <= newest:
        assert answers == {whole}  # a period that had ended then has the answer it had then


@given(QUESTIONS)
@settings(max_examples=50)
def test_a_record_repeats_its_answers_and_knows_no_others(question):
    history = BarHistory(LONG, REFERENCE)
    answer = history.ask(question)
    assert history.answers == {question.key: answer}
    recorded = RecordedHistory(history.answers)
    assert recorded.ask(question) == answer
    assert recorded.answers == history.answers
    with pytest.raises(StateError, match="does not hold"):
        recorded.ask(PastQuestion(statistic="value", field="never_asked"))
