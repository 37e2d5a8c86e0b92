"""How much of the best of many is luck: walk-forward folds, deflated Sharpe ratio, overfitting.

Sharpe ratios in here are those of one bar, mean / standard deviation, never annualised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

EULER_MASCHERONI = 0.5772156649015329
NORMAL = NormalDist()
NO_VARIANCE = 1e-28  # of bar returns; below it is the rounding of equal ones
ALL_EQUAL = 1.0 - 1e-12  # squared mean over mean square; above, returns are equal but for rounding
SCORES_AT_ONCE = 1 << 15  # of the symmetric cross-validation: small enough to stay in the cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """One step of a walk-forward test: choose on bars train[0]..train[1]-1, see on the later ones.

    train, test  first bar and the one after the last; the bars between them are the embargo
    """

    train: tuple[int, int]
    test: tuple[int, int]


def walk_forward(bars: int, *, folds: int, embargo: int, shortest: int = 30) -> tuple[Fold, ...]:
    """Folds over bars 0..bars-1: every one trains on all bars before its test but the embargo.

    The bars are cut into `folds` + 1 stretches of equal length, bars that are left over going to
    the first; each stretch but the first is tested on once, after the stretches before it.

    folds     how many, >= 1
    embargo   bars between training and test that belong to neither, >= 0
    shortest  fewest bars of a training and of a test
    returns   oldest first; empty where the bars are too few for folds of that length
    raises    ValueError for folds below 1 or an embargo below 0
    source    Lopez de Prado (2018), Advances in Financial Machine Learning, chapters 7 and 12
    """
    if folds < 1 or embargo < 0:
        raise ValueError(f"{folds} folds with an embargo of {embargo} bars do not exist")
    length = bars // (folds + 1)
    begins = [bars - length * (folds - number) for number in range(folds)]
    if length < shortest or begins[0] - embargo < shortest:
        return ()
    return tuple(Fold(train=(0, begin - embargo), test=(begin, begin + length)) for begin in begins)


def bar_sharpe(returns: Array) -> float:
    """Mean over standard deviation (ddof 1) of bar returns [T]; NaN without variance."""
    if returns.size < 2:
        return math.nan
    variance = float(returns.var(ddof=1))
    return float(returns.mean()) / math.sqrt(variance) if variance > NO_VARIANCE else math.nan


def expected_best(trials: int, variance: float, mean: float = 0.0) -> float:
    """Sharpe ratio that the best of `trials` has by luck alone when none has an edge.

    trials    tried, >= 1; one alone is no choice, and luck adds nothing to it
    variance  of the Sharpe ratios of the trials
    mean      what a trial has without an edge
    source    Bailey and Lopez de Prado (2014), The Deflated Sharpe Ratio, equation 1
    """
    if trials < 1 or not variance >= 0.0:
        raise ValueError(f"{trials} trials with a variance of {variance} do not exist")
    if trials == 1:
        return mean
    # -inv_cdf(p) is inv_cdf(1 - p) without the rounding of 1 - p
    high, higher = -NORMAL.inv_cdf(1.0 / trials), -NORMAL.inv_cdf(1.0 / (trials * math.e))
    best = (1.0 - EULER_MASCHERONI) * high + EULER_MASCHERONI * higher
    return mean + math.sqrt(variance) * best


def probabilistic_sharpe(
    sharpe: float, benchmark: float, *, bars: int, skewness: float, kurtosis: float
) -> float:
    """Probability that the true Sharpe ratio is above `benchmark`, both of one bar.

    bars                returns behind `sharpe`, >= 2
    skewness, kurtosis  of these returns; 0 and 3 for normal ones
    source              Bailey and Lopez de Prado (2012), The Sharpe Ratio Efficient Frontier
    """
    spread = 1.0 - skewness * sharpe + (kurtosis - 1.0) / 4.0 * sharpe * sharpe
    # kurtosis >= skewness² + 1 of any sample keeps the spread at or above 0
    scale = math.sqrt(max(spread, 1e-12))
    return NORMAL.cdf((sharpe - benchmark) * math.sqrt(bars - 1) / scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deflated:
    """A Sharpe ratio against what the best of many trials has by luck; ratios of one bar.

    probability  that the true ratio is above `by_luck`: the deflated Sharpe ratio
    by_luck      what the best of the trials has when none has an edge
    """

    probability: float
    sharpe: float
    by_luck: float
    trials: int
    bars: int
    skewness: float
    kurtosis: float


def deflated_sharpe(
    returns: Array, *, trials: int, variance: float, mean: float = 0.0
) -> Deflated | None:
    """The deflated Sharpe ratio of bar returns [T] that were the best of `trials`.

    variance  of the Sharpe ratios of the trials
    mean      what a trial has without an edge; the source has 0
    returns   None where the returns have no variance
    source    Bailey and Lopez de Prado (2014), The Deflated Sharpe Ratio
    """
    sharpe = bar_sharpe(returns)
    if math.isnan(sharpe):
        return None
    away = returns - returns.mean()
    second = float((away**2).mean())
    skewness = float((away**3).mean()) / second**1.5
    kurtosis = float((away**4).mean()) / second**2
    by_luck = expected_best(trials, variance, mean)
    return Deflated(
        probability=probabilistic_sharpe(
            sharpe, by_luck, bars=int(returns.size), skewness=skewness, kurtosis=kurtosis
        ),
        sharpe=sharpe,
        by_luck=by_luck,
        trials=trials,
        bars=int(returns.size),
        skewness=skewness,
        kurtosis=kurtosis,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMoments:
    """Bar returns of N sets, summed over S blocks of equal length.

    sums, squares  [N, S] of the returns and of their squares
    bars           in each block
    """

    sums: Array
    squares: Array
    bars: int


def block_moments(returns: Array, blocks: int) -> BlockMoments:
    """Sums over blocks of bar returns [N, T]; the oldest T % blocks bars are left out.

    raises ValueError where a block would have less than two bars
    """
    bars = returns.shape[1] // blocks
    if bars < 2:
        raise ValueError(f"{returns.shape[1]} bars are too few for {blocks} blocks")
    cut = returns[:, returns.shape[1] - blocks * bars :].reshape(len(returns), blocks, bars)
    return BlockMoments(sums=cut.sum(axis=2), squares=(cut * cut).sum(axis=2), bars=bars)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overfitting:
    """Combinatorially symmetric cross-validation of a choice by Sharpe ratio.

    probability  share of splits whose best half-sample set is, in the other half, at or below the
                 median of all sets
    loss         share of splits whose best has a Sharpe ratio of 0 or less in the other half
    sets         compared
    splits       of the blocks into two halves
    """

    probability: float
    loss: float
    sets: int
    blocks: int
    splits: int


def overfitting(moments: BlockMoments) -> Overfitting:
    """Probability of backtest overfitting of the sets behind `moments`.

    Every way to take half of the blocks is one split: the set with the best Sharpe ratio there is
    ranked among all sets in the other half. Of sets that are equal in the first half the first is
    taken; equal ones in the other half share their mean rank; a set that never moves has ratio 0.

    raises ValueError for fewer than two sets or an odd number of blocks
    source Bailey, Borwein, Lopez de Prado and Zhu (2017), The Probability of Backtest Overfitting
    """
    sets, blocks = moments.sums.shape
    if sets < 2 or blocks < 2 or blocks % 2:
        raise ValueError(f"{sets} sets in {blocks} blocks cannot be cross-validated")
    halves = _halves(blocks)
    below = lost = 0
    # the complement of a split is a split too: both are judged by the same two rows of scores
    size = max(1, SCORES_AT_ONCE // sets)
    for start in range(0, len(halves) // 2, size):
        chosen = halves[start : min(start + size, len(halves) // 2)]
        one, other = _scores(moments, chosen), _scores(moments, 1.0 - chosen)
        for inside, outside in ((one, other), (other, one)):
            found = _judged(inside, outside)
            below, lost = below + found[0], lost + found[1]
    return Overfitting(
        probability=below / len(halves),
        loss=lost / len(halves),
        sets=sets,
        blocks=blocks,
        splits=len(halves),
    )


@cache
def _halves(blocks: int) -> Array:
    """[splits, blocks] 1 where a block is in the first half, for every way to take half of them.

    The second half of the rows are the complements of the first one.
    """
    chosen = np.array(list(combinations(range(blocks), blocks // 2)))
    halves = np.zeros((len(chosen), blocks))
    np.put_along_axis(halves, chosen, 1.0, axis=1)
    return halves


def _judged(inside: Array, outside: Array) -> tuple[int, int]:
    """In how many splits the best inside is no better than the median outside, and where it lost.

    inside, outside  [splits, sets] scores
    """
    best = inside.argmax(axis=1)
    seen = np.take_along_axis(outside, best[:, None], axis=1)
    worse = np.count_nonzero(outside < seen, axis=1)
    equal = np.count_nonzero(outside == seen, axis=1)  # itself included
    rank = worse + (equal + 1) / 2
    # logit(rank / (sets + 1)) <= 0
    below = np.count_nonzero(2.0 * rank <= outside.shape[1] + 1)
    return int(below), int(np.count_nonzero(seen <= 0.0))


def _scores(moments: BlockMoments, chosen: Array) -> Array:
    """[splits, sets] what orders sets as their Sharpe ratio S over the chosen blocks does.

    It is S |S| / (1 + S²) = mean |mean| / mean square, which needs no root and loses no digits to a
    difference; 0 for a set that never moves and for one whose returns are all equal.
    """
    bars = moments.bars * moments.sums.shape[1] // 2
    score: Array = chosen @ (moments.sums.T / bars)
    square = chosen @ (moments.squares.T / bars)
    np.multiply(score, np.abs(score), out=score)
    np.divide(score, square, out=score, where=square > 0.0)
    score[np.abs(score) > ALL_EQUAL] = 0.0
    return score
