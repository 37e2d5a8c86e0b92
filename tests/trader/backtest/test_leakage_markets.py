"""Changed markets: each differs from the real one in what it says and in nothing else."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trader.backtest.audited import BARS, SLOTS, audit_of
from tests.trader.pipeline.bars import HandData, daily
from trader.backtest.leakage.markets import (
    ChangedData,
    mirrored_bars,
    poisoned_future,
    shuffle,
    white_noise_bars,
    without_future,
)
from trader.backtest.leakage.masks import PRICE_SCALE, SHIFT, disguised
from trader.core.canonical import canonical_json
from trader.core.errors import DataIntegrityError
from trader.core.market import Timeframe, from_ns, session_of
from trader.core.past import PastQuestion

COLUMNS = ("open", "high", "low", "close", "volume")
AT = SLOTS[10].as_of


@given(st.integers(0, 329))
def test_a_market_without_a_future_is_the_past_bit_for_bit_and_holds_nothing_else(last):
    as_of = from_ns(BARS.available_at[last])
    cut = without_future(as_of)(BARS)
    assert cut.sha256 == BARS.until(as_of).sha256
    for name in ("timestamp", "available_at", *COLUMNS):
        values = getattr(cut, name)
        assert values.base is None
        assert values.size == last + 1


def test_a_later_split_is_cut_off_with_the_later_bars():
    days = [session_of(from_ns(ns)) for ns in BARS.timestamp]
    split = replace(BARS, splits=((days[5], 2.0), (days[300], 4.0)))
    assert without_future(AT)(split).splits == ((days[5], 2.0),)


def test_before_the_first_bar_there_is_nothing_and_that_is_said():
    early = from_ns(BARS.timestamp[0])
    with pytest.raises(DataIntegrityError, match="no 1Day bars that early"):
        ChangedData(HandData(BARS), without_future(early)).bars("AAPL", Timeframe.DAY)


def test_a_false_future_leaves_the_past_and_turns_every_later_move_round():
    false = poisoned_future(AT)(BARS)
    known = len(BARS.until(AT))
    assert false.until(AT).sha256 == BARS.until(AT).sha256
    pivot = BARS.close[known - 1]
    real, told = BARS.close[known:] / pivot, false.close[known:] / pivot
    assert np.allclose(np.log(told), -3.0 * np.log(real))
    assert (false.high >= false.low).all()
    assert (false.low > 0.0).all()


def test_a_mirrored_market_falls_as_the_real_one_rose_and_mirrored_twice_is_the_real_one():
    upside_down = mirrored_bars(BARS)
    moves = np.diff(np.log(BARS.close))
    assert np.allclose(np.diff(np.log(upside_down.close)), -moves)
    assert upside_down.close[0] == BARS.close[0]
    assert (upside_down.high >= np.maximum(upside_down.open, upside_down.close)).all()
    again = mirrored_bars(upside_down)
    for name in COLUMNS:
        assert np.allclose(getattr(again, name), getattr(BARS, name))


def test_white_noise_has_the_deviation_of_the_real_returns_and_no_memory():
    rough = daily(100.0 * np.exp(np.cumsum(np.tile([0.02, -0.019, 0.001], 300))))
    noise = white_noise_bars(1)(rough)
    returns = np.diff(np.log(noise.close))
    assert returns.std() == pytest.approx(np.diff(np.log(rough.close)).std(), rel=0.1)
    assert abs(np.corrcoef(returns[1:], returns[:-1])[0, 1]) < 0.1
    assert (noise.high >= np.maximum(noise.open, noise.close)).all()
    assert (noise.low <= np.minimum(noise.open, noise.close)).all()
    assert sorted(noise.volume) == sorted(rough.volume)


def test_white_noise_is_the_same_for_a_seed_and_another_for_another():
    counted = replace(BARS, volume=np.arange(1.0, len(BARS) + 1))
    first, again, other = (white_noise_bars(seed)(counted) for seed in (1, 1, 2))
    assert first.sha256 == again.sha256
    assert all((getattr(first, name) != getattr(other, name)).any() for name in COLUMNS)


@given(st.integers(0, 1_000), st.integers(0, 60))
def test_a_shuffle_is_a_permutation(seed, count):
    assert sorted(shuffle(seed, count)) == list(range(count))


def test_a_changed_market_answers_as_the_one_behind_it():
    data = ChangedData(HandData(BARS), mirrored_bars)
    assert data.name == "hand"
    assert data.symbols(Timeframe.DAY) == ("AAPL",)
    assert len(data.bars("AAPL", Timeframe.DAY, AT)) == len(BARS.until(AT))


@pytest.fixture(scope="module")
def disguise():
    audit = audit_of(slots=SLOTS[:24])
    taken = audit.taken[0]
    return taken, audit, disguised(taken, audit.agent)


def test_a_disguise_holds_no_trace_of_name_symbol_or_date(disguise):
    taken, _, case = disguise
    text = canonical_json([case.cycle_id, case.candidate, case.evidence])
    assert not re.search(r"AAPL|Apple|NASDAQ", text)
    assert "2020" not in re.findall(r"\d{4}(?=-\d\d-\d\d)", text)
    assert not any(
        fact.unit == "date" and fact.value == float(f"{taken.record.as_of:%Y%m%d}")
        for fact in case.evidence
    )
    assert json.loads(text)[1]["signal"]["symbol"] == "XXXX"


def test_a_disguise_rescales_what_is_money_and_nothing_else(disguise):
    taken, _, case = disguise
    assert case.candidate.stop_price == taken.record.candidate.stop_price * PRICE_SCALE
    for real, hidden in zip(taken.record.evidence, case.evidence, strict=True):
        assert (real.name, real.unit, real.evidence_id) == (
            hidden.name,
            hidden.unit,
            hidden.evidence_id,
        )
        assert hidden.known_at == real.known_at - SHIFT
        if real.unit == "USD":
            assert hidden.value == (None if real.value is None else real.value * PRICE_SCALE)
        elif real.unit in ("fraction", "ratio", "R", "count", "index_0_100"):
            assert hidden.value == real.value


def test_the_past_of_a_disguise_is_asked_in_its_own_dates_and_prices(disguise):
    taken, audit, case = disguise
    real = audit.history(taken)
    day = session_of(taken.record.as_of)
    close = PastQuestion(statistic="value", field="close", last=day)
    hidden = PastQuestion(statistic="value", field="close", last=day - SHIFT)
    assert case.history.ask(hidden) == PRICE_SCALE * real.ask(close)
    assert case.history.ask(close) is None
    top = PastQuestion(statistic="session_of_highest", field="close", bars=50)
    told, true = case.history.ask(top), real.ask(top)
    assert told == float(f"{day_of(true) - SHIFT:%Y%m%d}")
    assert set(case.history.answers) == {hidden.key, close.key, top.key}


def day_of(number: float):
    """The date written as yyyymmdd."""
    return datetime.strptime(f"{number:.0f}", "%Y%m%d").date()
