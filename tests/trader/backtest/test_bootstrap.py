"""The block bootstrap: seeded, exact where nothing can vary, honest about how often it is right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trader.backtest.bootstrap import CONFIDENCE, block_length, intervals
from trader.core.metrics import annual_return, returns, sharpe

YEAR = 252.0


def curve(change, start=100.0):
    return start * np.cumprod(1.0 + np.asarray(change))


def of(change, **options):
    return intervals({"a": curve(change)}, initial=100.0, periods_per_year=YEAR, **options)


def naive(change, *, resamples, seed, measure):
    """The definition, resample by resample and period by period."""
    periods = len(change)
    length = block_length(periods)
    blocks = -(-periods // length)
    starts = np.random.Generator(np.random.PCG64(seed)).integers(
        0, periods, size=(resamples, blocks)
    )
    found = []
    for row in starts:
        drawn = [change[(start + step) % periods] for start in row for step in range(length)]
        found.append(measure(np.array(drawn[:periods])))
    return np.quantile(found, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])


@pytest.mark.parametrize("periods", [97, 100, 343])
def test_block_sums_are_the_resamples_they_stand_for(periods):
    change = np.random.default_rng(periods).normal(0.001, 0.01, periods)
    found = of(change, resamples=200, seed=5).columns["a"]
    ratio = naive(
        change,
        resamples=200,
        seed=5,
        measure=lambda drawn: sharpe(curve(drawn), 100.0, YEAR),
    )
    annual = naive(
        change,
        resamples=200,
        seed=5,
        measure=lambda drawn: annual_return(curve(drawn)[-1] / 100.0 - 1.0, periods, YEAR),
    )
    assert (found.sharpe.low, found.sharpe.high) == pytest.approx(tuple(ratio))
    assert (found.annual_return.low, found.annual_return.high) == pytest.approx(tuple(annual))
    assert found.sharpe.estimate == sharpe(curve(change), 100.0, YEAR)


def test_equal_seeds_give_equal_intervals_and_the_seed_is_told():
    change = np.random.default_rng(1).normal(0.0, 0.01, 300)
    assert of(change, seed=9) == of(change, seed=9)
    assert of(change, seed=9).columns != of(change, seed=10).columns
    assert (of(change, seed=9).seed, of(change, seed=9).block_length) == (9, 7)


def test_returns_that_never_vary_leave_nothing_to_chance():
    found = of(np.full(252, 0.001)).columns["a"]
    assert found.sharpe is None  # no deviation, so no ratio
    assert found.annual_return.estimate == pytest.approx(1.001**252 - 1)
    assert found.annual_return.low == pytest.approx(found.annual_return.high)
    still = of(np.zeros(252)).columns["a"]
    assert (still.annual_return.low, still.annual_return.high, still.sharpe) == (0.0, 0.0, None)


def test_resamples_in_which_nothing_moves_count_as_a_ratio_of_zero():
    change = np.zeros(400)
    change[7:9] = 0.01, 0.02
    found = of(change).columns["a"].sharpe
    assert found.low == 0.0
    assert found.high > found.estimate


def test_too_few_periods_and_lost_accounts_have_no_interval():
    change = np.random.default_rng(2).normal(0.0, 0.01, 62)
    assert of(change).columns["a"].annual_return is None
    assert of(change).columns["a"].sharpe is not None
    assert of(change[:29]).columns["a"].sharpe is None
    assert of(change[:1]).columns["a"].sharpe is None
    lost = intervals({"a": np.array([100.0] * 90 + [0.0])}, initial=100.0, periods_per_year=YEAR)
    assert (lost.columns["a"].sharpe, lost.columns["a"].annual_return) == (None, None)
    empty = intervals({"a": np.array([])}, initial=100.0, periods_per_year=YEAR)
    assert empty.columns["a"].sharpe is None


def test_a_difference_draws_the_same_blocks_for_both():
    base = np.random.default_rng(3).normal(0.0005, 0.02, 400)
    found = intervals(
        {"one": curve(base + 0.0002), "other": curve(base), "same": curve(base + 0.0002)},
        initial=100.0,
        periods_per_year=YEAR,
        against={"other": "one", "same": "one"},
    )
    shift = found.differences["other"].annual_return
    assert shift.low > 0.0  # the market moves both alike, so a small steady edge shows
    assert found.columns["one"].annual_return.low < 0.0 < found.columns["one"].annual_return.high
    assert not shift.holds_zero
    same = found.differences["same"]
    assert (same.sharpe.low, same.sharpe.estimate, same.sharpe.high) == (0.0, 0.0, 0.0)
    assert same.sharpe.holds_zero


@given(
    st.lists(st.floats(-0.2, 0.25), min_size=64, max_size=130),
    st.integers(0, 2**31),
)
def test_intervals_are_finite_and_in_order(change, seed):
    found = of(change, seed=seed, resamples=50).columns["a"]
    for item in (found.annual_return, found.sharpe):
        if item is not None:
            assert np.isfinite([item.low, item.estimate, item.high]).all()
            assert item.low <= item.high


def test_nine_of_ten_intervals_hold_the_truth_where_returns_are_independent():
    generator = np.random.default_rng(4)
    mean, deviation, trials = 0.0006, 0.01, 200
    truth = mean / deviation * np.sqrt(YEAR)
    held = 0
    for trial in range(trials):
        found = of(generator.normal(mean, deviation, 300), resamples=300, seed=trial)
        held += found.columns["a"].sharpe.low <= truth <= found.columns["a"].sharpe.high
    assert 0.83 <= held / trials <= 0.96


def test_blocks_keep_what_hangs_together():
    """Returns that follow each other spread a sum wider than shuffled ones would."""
    generator = np.random.default_rng(6)
    noise = generator.normal(0.0, 0.01, 1_000)
    trending = np.convolve(noise, np.ones(6) / 6, mode="same")

    def width(change):
        found = of(change).columns["a"].annual_return
        return found.high - found.low

    assert width(trending) > 1.3 * width(generator.permutation(trending))


@pytest.mark.parametrize(("periods", "length"), [(0, 1), (1, 1), (8, 2), (27, 3), (398, 8)])
def test_blocks_are_as_long_as_the_cube_root(periods, length):
    assert block_length(periods) == length


def test_the_returns_are_those_of_the_metrics():
    change = np.random.default_rng(7).normal(0.0, 0.01, 70)
    assert returns(curve(change), 100.0) == pytest.approx(change)
