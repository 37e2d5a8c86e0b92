"""Levels and track record: exact small cases and the law that the future is never in them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies.kernels.dispatch import kernels
from strategies.registry import default_parameters, make_strategy
from tests.trader.pipeline.bars import daily, wave
from trader.core.costs import Costs
from trader.pipeline.levels import Levels, TrackRecord, entry_levels, target_levels, track_record

FREE = Costs(slippage_bps=0)
REFERENCE = kernels("reference")


def test_entry_is_what_will_be_paid_and_the_stop_lies_on_a_tick():
    levels = entry_levels(100.0, 1.2345, 2.0, Costs(slippage_bps=5))
    assert levels.entry == pytest.approx(100.05)
    assert levels.stop == 97.58  # 100.05 - 2.469 = 97.581, down to the tick


@pytest.mark.parametrize("atr", [0.0, -1.0, np.nan, np.inf, 50.0, 60.0])
def test_there_are_no_levels_without_an_atr_or_room_above_zero(atr):
    assert entry_levels(100.0, atr, 2.0, FREE) is None


def test_targets_are_prior_highs_the_measured_move_and_the_quartile_of_past_excursions():
    bars = daily(
        [100.0] * 300, spread=2.0, high={-100: 130.0, -30: 120.0, -10: 110.0}, low={-40: 90.0}
    )
    record = TrackRecord(fired=12, result_r=np.ones(12), mfe_r=np.arange(12, dtype=float))
    found = target_levels(bars, Levels(entry=105.0, stop=100.0), record)
    assert found == {
        "high_20": 110.0,
        "high_60": 120.0,
        "high_252": 130.0,
        "measured_move": 105.0 + 0.5 * (120.0 - 90.0),
        "excursion_quartile": 105.0 + 8.25 * 5.0,
    }


def test_a_high_below_the_entry_is_no_target_and_ten_excursions_are_needed():
    bars = daily([100.0] * 300)
    few = TrackRecord(fired=9, result_r=np.ones(9), mfe_r=np.ones(9))
    found = target_levels(bars, Levels(entry=105.0, stop=100.0), few)
    assert found["high_20"] is None
    assert found["excursion_quartile"] is None
    assert target_levels(daily([100.0] * 19), Levels(entry=50.0, stop=40.0), few)["high_20"] is None


def test_the_base_rate_is_cautious():
    record = TrackRecord(fired=3, result_r=np.zeros(3), mfe_r=np.array([0.5, 2.0, 3.0]))
    assert record.hits(2.0) == 2
    assert record.probability(2.0) == 3 / 6
    nothing = TrackRecord(fired=0, result_r=np.zeros(0), mfe_r=np.zeros(0))
    assert nothing.probability(1.0) == 1 / 3


@pytest.mark.parametrize("name", ["atr_trend", "rsi_reversion", "macd_momentum", "sma_cross"])
@given(cut=st.integers(80, 260), seed=st.integers(0, 5))
@settings(deadline=None, max_examples=25)
def test_a_track_record_does_not_change_when_the_future_is_cut_off(name, cut, seed):
    noise = np.random.default_rng(seed).normal(0, 1.5, 300).cumsum()
    whole = daily([round(float(c), 2) for c in np.array(wave(300)) + np.abs(noise.min()) + noise])
    strategy = make_strategy(name, default_parameters(name), REFERENCE)

    def record(bars):
        crossed = strategy.crossings(bars)
        atr = REFERENCE.atr(bars.high, bars.low, bars.close, 14)
        return track_record(
            bars,
            crossed,
            atr,
            atr_multiple=2.0,
            costs=FREE,
            kernels=REFERENCE,
            before=len(bars) - 1,
        )

    early, late = record(whole.head(cut)), record(whole)
    assert early.closed <= late.closed
    # every trade that was closed by then is the same trade later on
    remaining = list(zip(late.result_r.tolist(), late.mfe_r.tolist(), strict=True))
    for known in zip(early.result_r.tolist(), early.mfe_r.tolist(), strict=True):
        assert known in remaining
        remaining.remove(known)


def test_the_signal_under_debate_and_what_fired_after_it_are_no_part_of_its_past():
    bars = daily(wave(300))
    strategy = make_strategy("sma_cross", default_parameters("sma_cross"), REFERENCE)
    crossed = strategy.crossings(bars)
    atr = REFERENCE.atr(bars.high, bars.low, bars.close, 14)
    fired = [int(index) for index in np.flatnonzero(crossed.entry)]
    for number, index in enumerate(fired):
        record = track_record(
            bars,
            crossed,
            atr,
            atr_multiple=2.0,
            costs=FREE,
            kernels=REFERENCE,
            before=index,
        )
        assert record.fired == number
    assert len(fired) > 2
