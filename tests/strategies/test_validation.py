"""The statistics of luck against closed forms, published examples, hand cases and noise."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies.validation import (
    Fold,
    bar_sharpe,
    block_moments,
    deflated_sharpe,
    expected_best,
    overfitting,
    probabilistic_sharpe,
    walk_forward,
)


def noise(seed: int, sets: int, bars: int, *, drift: float = 0.0):
    return np.random.default_rng(seed).normal(drift, 0.01, (sets, bars))


# walk-forward


def test_folds_of_a_hand_case():
    assert walk_forward(1_000, folds=4, embargo=20) == (
        Fold(train=(0, 180), test=(200, 400)),
        Fold(train=(0, 380), test=(400, 600)),
        Fold(train=(0, 580), test=(600, 800)),
        Fold(train=(0, 780), test=(800, 1_000)),
    )


@given(
    bars=st.integers(0, 3_000),
    folds=st.integers(1, 9),
    embargo=st.integers(0, 300),
    shortest=st.integers(1, 60),
)
def test_no_training_reaches_into_its_embargo_and_tests_cover_the_end_once(
    bars, folds, embargo, shortest
):
    found = walk_forward(bars, folds=folds, embargo=embargo, shortest=shortest)
    assert found == () or len(found) == folds
    for fold in found:
        assert fold.train[0] == 0
        assert fold.train[1] + embargo == fold.test[0]
        assert fold.train[1] - fold.train[0] >= shortest
        assert fold.test[1] - fold.test[0] >= shortest
    for before, after in pairwise(found):
        assert before.test[1] == after.test[0]
        assert before.test[1] - before.test[0] == after.test[1] - after.test[0]
    if found:
        assert found[-1].test[1] == bars


def test_too_few_bars_have_no_folds():
    assert walk_forward(149, folds=4, embargo=0) == ()
    assert walk_forward(150, folds=4, embargo=0) != ()
    assert walk_forward(150, folds=4, embargo=1) == ()


@pytest.mark.parametrize(("folds", "embargo"), [(0, 5), (-1, 5), (4, -1)])
def test_folds_that_do_not_exist_are_refused(folds, embargo):
    with pytest.raises(ValueError, match="do not exist"):
        walk_forward(1_000, folds=folds, embargo=embargo)


# deflated Sharpe ratio


def test_the_example_of_the_paper():
    """Bailey and Lopez de Prado (2014), "A numerical example": 0.1132 and 0.9004."""
    variance, daily = 0.5 / 250, 2.5 / math.sqrt(250)
    by_luck = expected_best(100, variance)
    assert by_luck == pytest.approx(0.1132, abs=5e-5)
    found = probabilistic_sharpe(daily, by_luck, bars=1_250, skewness=-3.0, kurtosis=10.0)
    assert found == pytest.approx(0.9004, abs=5e-5)
    fewer = expected_best(46, variance)
    assert probabilistic_sharpe(
        daily, fewer, bars=1_250, skewness=-3.0, kurtosis=10.0
    ) == pytest.approx(0.9505, abs=5e-5)
    normal = expected_best(88, variance)
    assert probabilistic_sharpe(
        daily, normal, bars=1_250, skewness=0.0, kurtosis=3.0
    ) == pytest.approx(0.9505, abs=5e-5)


@pytest.mark.parametrize("trials", [10, 100, 1_000])
def test_the_best_of_noise_is_what_was_expected(trials):
    drawn = np.random.default_rng(3).normal(0.2, 0.5, (4_000, trials)).max(axis=1)
    assert expected_best(trials, 0.25, 0.2) == pytest.approx(drawn.mean(), rel=0.03)


def test_more_trials_and_more_variance_ask_for_more():
    assert expected_best(1, 0.3) == 0.0
    assert expected_best(1, 0.3, 0.1) == 0.1
    asked = [expected_best(trials, 0.3) for trials in (2, 10, 1_000, 10**9, 10**15)]
    assert asked == sorted(asked)
    assert asked[-1] < 10.0
    assert expected_best(10, 0.0) == 0.0
    assert expected_best(10, 1.2) == pytest.approx(2.0 * expected_best(10, 0.3))


@pytest.mark.parametrize(("trials", "variance"), [(0, 0.1), (5, -0.1), (5, math.nan)])
def test_trials_that_do_not_exist_are_refused(trials, variance):
    with pytest.raises(ValueError, match="do not exist"):
        expected_best(trials, variance)


def test_a_ratio_at_its_benchmark_is_even_odds():
    found = probabilistic_sharpe(0.1, 0.1, bars=500, skewness=-1.0, kurtosis=6.0)
    assert found == pytest.approx(0.5)


def test_skewness_and_kurtosis_are_those_of_the_returns():
    returns = np.array([0.01, -0.02, 0.03, 0.0, 0.01, -0.01, 0.04, -0.03])
    found = deflated_sharpe(returns, trials=1, variance=0.0)
    away = returns - returns.mean()
    assert found.sharpe == pytest.approx(returns.mean() / returns.std(ddof=1))
    assert found.skewness == pytest.approx((away**3).mean() / (away**2).mean() ** 1.5)
    assert found.kurtosis == pytest.approx((away**4).mean() / (away**2).mean() ** 2)
    assert (found.by_luck, found.trials, found.bars) == (0.0, 1, 8)
    assert found.probability == pytest.approx(
        probabilistic_sharpe(
            found.sharpe, 0.0, bars=8, skewness=found.skewness, kurtosis=found.kurtosis
        )
    )


def test_equity_that_never_moves_has_no_ratio():
    assert deflated_sharpe(np.zeros(100), trials=5, variance=0.1) is None
    assert math.isnan(bar_sharpe(np.full(50, 0.01)))
    assert math.isnan(bar_sharpe(np.array([0.01])))


def test_the_best_of_pure_noise_is_rarely_called_skill():
    called = 0
    for seed in range(200):
        returns = noise(seed, 50, 250)
        ratios = np.array([bar_sharpe(row) for row in returns])
        best = returns[ratios.argmax()]
        found = deflated_sharpe(best, trials=50, variance=float(ratios.var(ddof=1)))
        called += found.probability >= 0.95
    assert called <= 10


def test_a_planted_edge_is_called_skill():
    returns = noise(5, 50, 1_000)
    returns[17] += 0.002
    ratios = np.array([bar_sharpe(row) for row in returns])
    assert ratios.argmax() == 17
    found = deflated_sharpe(returns[17], trials=50, variance=float(ratios.var(ddof=1)))
    assert found.probability > 0.99


# probability of backtest overfitting


def plain_overfitting(returns, blocks):
    """The published procedure, step by step, over whole return series."""
    bars = returns.shape[1] // blocks
    cut = returns[:, returns.shape[1] - blocks * bars :].reshape(len(returns), blocks, bars)
    below = lost = count = 0
    for chosen in combinations(range(blocks), blocks // 2):
        others = [block for block in range(blocks) if block not in chosen]
        halves = []
        for taken in (chosen, others):
            half = cut[:, list(taken)].reshape(len(returns), -1)
            spread = half.std(axis=1)
            halves.append(
                np.where(spread > 0, half.mean(axis=1) / np.where(spread > 0, spread, 1), 0)
            )
        best = int(halves[0].argmax())
        rank = 1 + (halves[1] < halves[1][best]).sum()
        share = rank / (len(returns) + 1)
        below += math.log(share / (1 - share)) <= 0
        lost += halves[1][best] <= 0
        count += 1
    return below / count, lost / count


@given(
    seed=st.integers(0, 10_000),
    sets=st.integers(2, 12),
    blocks=st.sampled_from([2, 4, 6]),
    bars=st.integers(24, 80),
)
def test_overfitting_equals_the_published_procedure(seed, sets, blocks, bars):
    returns = noise(seed, sets, bars)
    found = overfitting(block_moments(returns, blocks))
    assert (found.probability, found.loss) == pytest.approx(plain_overfitting(returns, blocks))
    assert (found.sets, found.blocks) == (sets, blocks)
    assert found.splits == math.comb(blocks, blocks // 2)


def test_a_hand_case_of_two_sets():
    # the first wins in both blocks, so the best of one half is the best of the other
    steady = np.array([[0.02, 0.01, 0.02, 0.01], [0.01, -0.01, 0.01, -0.01]])
    assert overfitting(block_moments(steady, 2)).probability == 0.0
    # each wins one block and loses the other
    turning = np.array([[0.02, 0.01, -0.02, -0.01], [-0.02, -0.01, 0.02, 0.01]])
    found = overfitting(block_moments(turning, 2))
    assert (found.probability, found.loss) == (1.0, 1.0)


def test_choosing_among_noise_overfits_half_of_the_time():
    found = [overfitting(block_moments(noise(s, 40, 320), 8)).probability for s in range(60)]
    assert 0.42 < np.mean(found) < 0.58


def test_a_planted_edge_is_not_overfitted():
    returns = noise(2, 40, 960)
    returns[3] += 0.003
    assert overfitting(block_moments(returns, 16)).probability < 0.02


def test_sets_that_are_equal_share_the_middle_rank():
    same = np.repeat(noise(1, 1, 64), 5, axis=0)
    assert overfitting(block_moments(same, 4)).probability == 1.0  # at the median, not above it
    idle = np.zeros((5, 64))
    found = overfitting(block_moments(idle, 4))
    assert (found.probability, found.loss) == (1.0, 1.0)


def test_a_set_that_never_moves_does_not_win_by_dividing_by_nothing():
    returns = noise(4, 3, 128, drift=0.01)
    returns[1] = 0.0
    returns[2] = 1e-3  # equal returns have no ratio either, however round they are not
    assert overfitting(block_moments(returns, 8)).probability == 0.0


@pytest.mark.parametrize("equal", [0.01, 0.0137, 1.0 / 3.0, 1e-7, 0.1 + 0.2])
def test_returns_that_are_all_equal_have_no_ratio_however_they_round(equal):
    returns = noise(4, 3, 1_600, drift=0.002)
    returns[1] = equal
    assert overfitting(block_moments(returns, 16)).probability < 0.7
    returns[1] = 0.0
    idle = overfitting(block_moments(returns, 16))
    returns[1] = equal
    assert overfitting(block_moments(returns, 16)) == idle


def test_moments_can_be_made_in_parts():
    returns = noise(9, 10, 100)
    whole = block_moments(returns, 8)
    parts = [block_moments(returns[:4], 8), block_moments(returns[4:], 8)]
    assert np.array_equal(whole.sums, np.concatenate([part.sums for part in parts]))
    assert np.array_equal(whole.squares, np.concatenate([part.squares for part in parts]))
    assert whole.bars == 12
    # the four bars that are left over are the oldest
    assert whole.sums[0, 0] == pytest.approx(returns[0, 4:16].sum())


def test_what_cannot_be_cross_validated_is_refused():
    with pytest.raises(ValueError, match="too few"):
        block_moments(noise(1, 3, 31), 16)
    with pytest.raises(ValueError, match="cannot be cross-validated"):
        overfitting(block_moments(noise(1, 1, 64), 4))
    with pytest.raises(ValueError, match="cannot be cross-validated"):
        overfitting(block_moments(noise(1, 3, 64), 5))
