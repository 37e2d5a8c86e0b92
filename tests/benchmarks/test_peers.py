"""The work that peers are given: markets, crossings, indicators, and what a missing peer means."""

from __future__ import annotations

import numpy as np
import pytest

from strategies.indicators.crossing import crosses_above, crosses_below
from strategies.kernels import reference
from tests.benchmarks import ceilings, indicators, market, peers, sweeps


@pytest.mark.parametrize("make", [market.lognormal, market.shallow, market.minutes])
def test_invented_bars_are_sound_and_always_the_same(make):
    found, again = make(500), make(500)
    for mine, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(mine, other)
    inside = np.array([found.open, found.close])
    assert (found.high >= inside.max(axis=0)).all()
    assert (found.low <= inside.min(axis=0)).all()
    assert (found.low > 0.0).all()
    assert not np.array_equal(found.close, make(500, seed=8).close)


def test_no_stop_of_the_atr_sweep_is_touched_on_the_bar_of_its_entry():
    work = sweeps.Scale().atr_stops()
    bars = work.market
    swing = reference.atr(bars.high, bars.low, bars.close, peers.ATR_WINDOW)
    floor = bars.close * (1.0 + peers.SLIPPAGE) - work.stops.min() * swing
    fires = np.zeros(bars.close.size, np.bool_)
    for window in work.windows:
        average = reference.sma(bars.close, int(window))
        up, _ = peers.crossings(bars.close, average + work.bands[:, None] * swing)
        fires |= up.any(axis=0)
    assert fires.sum() > 50
    assert not (bars.low[1:] <= floor[:-1])[fires[:-1]].any()


def test_crossings_of_the_peers_are_ours():
    near, far = np.random.default_rng(7).integers(0, 4, (2, 5, 300)).astype(float)  # with many ties
    near[:, :7] = np.nan
    up, down = peers.crossings(near, far)
    for row in range(5):
        np.testing.assert_array_equal(up[row], crosses_above(near[row], far[row]))
        np.testing.assert_array_equal(down[row], crosses_below(near[row], far[row]))


def test_a_peer_that_is_not_installed_has_no_version():
    assert peers.installed("no-such-library") is None
    assert peers.installed("numpy") == np.__version__


def test_indicators_equal_those_of_ta_and_ta_lib():
    talib, ta = indicators.rows(bars=5_000, loop_bars=3_000, seconds=0.0)
    for row in (talib, ta):
        assert row.status in {"measured", "failed"}, row.note  # failed: too slow, on few bars
        assert len(row.detail) == 8
        assert all(each["apart"] <= indicators.AGREES for each in row.detail.values())


def test_a_wrong_indicator_is_a_disagreement(monkeypatch):
    wrong = indicators.INDICATORS[0]
    shifted = type(wrong)(
        name=wrong.name, ours=lambda k, m: k.sma(m.close, 21), talib=wrong.talib, ta=wrong.ta
    )
    monkeypatch.setattr(indicators, "INDICATORS", (shifted,))
    for row in indicators.rows(bars=3_000, loop_bars=3_000, seconds=0.0):
        assert row.status == "disagrees"
        assert wrong.name in row.note


def test_ceilings_are_those_of_a_machine():
    found = ceilings.measure(seconds=0.001)
    assert list(found.read_gb_s) == ["L1", "L2", "L3", "DRAM"]
    assert all(0.1 < rate < 10_000 for rate in found.read_gb_s.values())
    assert 0.1 < found.fma_gflop_s < 10_000
