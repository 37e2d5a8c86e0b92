"""Whether the best of a sweep is better than luck: walk-forward, deflated Sharpe, overfitting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from strategies.kernels.engines.lanes import Ints
from strategies.kernels.runs import Array
from strategies.sweep.accounts import Account, blocks_of, moments_of, pooled, returns_of
from strategies.sweep.results import Moments, Ranked, Results, over_symbols
from strategies.validation import (
    BlockMoments,
    Deflated,
    Fold,
    Overfitting,
    bar_sharpe,
    block_moments,
    deflated_sharpe,
    overfitting,
    walk_forward,
)

NUMBERS_AT_ONCE = 1 << 22  # equity points; bounds the memory of curves
CROSS_VALIDATED = 2_000  # sets at most, besides the best one
BLOCKS = 16  # of the symmetric cross-validation
SHORTEST_EMBARGO = 20  # bars

DEFLATED_FROM = 0.95  # probability that the best is above the best of luck
OVERFIT_TO = 0.5  # probability that choosing the best by its past does not help
TRADES_FROM = 20  # closed ones; with fewer a single position decides the figures

Tell = Callable[[str, int, int], None]  # what is worked on, sets done, sets in all


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldResult:
    """The set that was best in one training stretch, and what it did afterwards; times in ns.

    number      None where no set traded in training: the test is then spent in cash
    in_sample, out_of_sample  annualised Sharpe ratios; None without variance
    total_return  of the test, a fraction
    """

    train: tuple[int, int]
    test: tuple[int, int]
    number: int | None
    in_sample: float | None
    out_of_sample: float | None
    total_return: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """Sharpe ratios, of one bar, of the sets that were tried, on all accounts together.

    Ratios of single accounts are no measure for several: what moves them apart cancels out, and the
    same drift gives a higher ratio together.
    """

    mean: float
    variance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Luck:
    """How much of the best set of a sweep is luck.

    better         whether it is better than luck: every one of the limits above is kept
    sentence       the same for a person
    tried          the sets among which the best is the best
    without_edge   annualised Sharpe ratio that a set has without an edge in this market
    deflated       against luck in this market; see `without_edge` and `luck_variance`
    plain          as published: no drift, and the variance of the trials whatever it is
    sharpe         of all tests of the walk-forward one after another, annualised
    total_return   of the same
    against        limits that are not kept, in words
    """

    better: bool
    sentence: str
    against: tuple[str, ...]
    deflated: Deflated | None
    plain: Deflated | None
    tried: Trials
    without_edge: float
    overfitting: Overfitting | None
    folds: tuple[FoldResult, ...]
    embargo: int
    sharpe: float | None
    total_return: float | None
    trades: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What speaks for and against one set; None where the bars do not tell.

    sets    that were run
    sharpe  out of sample, annualised
    trades  closed ones of the set
    rank    of the set; 1 is the best
    """

    sets: int
    deflated: Deflated | None
    overfitting: Overfitting | None
    sharpe: float | None
    trades: int
    rank: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """What is asked of a sweep, and how.

    market     annualised Sharpe ratio of holding the same symbols
    look_back  bars that the longest indicator of the grid reaches back
    folds      of the walk-forward
    """

    accounts: Sequence[Account]
    results: Results
    periods_per_year: float
    market: float
    look_back: int
    folds: int = 4


def look_into(inquiry: Inquiry, tell: Tell) -> Luck | None:
    """How much of the best set is luck; None where no set has run."""
    ranked = inquiry.results.best()
    if not ranked:
        return None
    best = ranked[0]
    at = moments_of(inquiry.accounts)
    embargo, folds = _folds(inquiry, at.size)
    walked, tests = _walk(inquiry, folds, at, tell)
    ratios, overfit = _cross_validate(inquiry, best.number, at, tell)
    tried = _trials(inquiry, ratios)
    found, plain = _deflated(inquiry, tried, best.number, at)
    annual = math.sqrt(inquiry.periods_per_year)
    sharpe = _annual(tests, annual)
    findings = Findings(
        sets=inquiry.results.valid,
        deflated=found,
        overfitting=overfit,
        sharpe=sharpe,
        trades=int(best.outcome["trades"]),
    )
    against = limits_broken(findings)
    return Luck(
        better=not against,
        sentence=verdict(findings),
        against=against,
        deflated=found,
        plain=plain,
        tried=tried,
        without_edge=without_edge(inquiry, tried) * annual,
        overfitting=overfit,
        folds=walked,
        embargo=embargo,
        sharpe=sharpe,
        total_return=float(np.prod(1.0 + tests) - 1.0) if tests.size else None,
        trades=findings.trades,
    )


def look_at(inquiry: Inquiry, luck: Luck, ranked: Ranked) -> Findings:
    """What speaks for and against a set that is not the best, after `luck` was found for that one.

    Its own are the deflated Sharpe ratio and the trades; overfitting and the walk-forward are those
    of choosing from the grid.
    """
    return Findings(
        sets=inquiry.results.valid,
        deflated=_deflated(inquiry, luck.tried, ranked.number, moments_of(inquiry.accounts))[0],
        overfitting=luck.overfitting,
        sharpe=luck.sharpe,
        trades=int(ranked.outcome["trades"]),
        rank=ranked.rank,
    )


def _deflated(
    inquiry: Inquiry, tried: Trials, number: int, at: Ints
) -> tuple[Deflated | None, Deflated | None]:
    """The deflated Sharpe ratio of a set, against luck in this market and as published."""
    cash = sum(one.cash for one in inquiry.accounts)
    returns = returns_of(pooled(inquiry.accounts, np.array([number]), at), cash)[0]
    trials = inquiry.results.trials
    found = deflated_sharpe(
        returns,
        trials=trials,
        variance=luck_variance(tried, at.size),
        mean=without_edge(inquiry, tried),
    )
    return found, deflated_sharpe(returns, trials=trials, variance=tried.variance)


def _trials(inquiry: Inquiry, ratios: Array) -> Trials:
    """Mean and variance of the trials: of every set, or of the sampled `ratios` of all accounts."""
    periods = inquiry.periods_per_year
    if len(inquiry.accounts) == 1:
        seen = inquiry.results.sharpes
        return Trials(mean=seen.mean / math.sqrt(periods), variance=seen.variance / periods)
    known = Moments()
    known.add(ratios)
    return Trials(mean=known.mean, variance=known.variance)


def without_edge(inquiry: Inquiry, tried: Trials) -> float:
    """Sharpe ratio, of one bar, of a set without an edge: what the market gives anybody, from 0 up.

    Sets that are long at random times earn the market's drift, and more or less of it by luck: it
    is what the trials have on average, as long as that is no more than holding has. Counting it as
    an edge, as a mean of 0 would, calls the luckiest of random sets in a bull market skilled.
    """
    return max(0.0, min(tried.mean, inquiry.market / math.sqrt(inquiry.periods_per_year)))


def luck_variance(tried: Trials, bars: int) -> float:
    """Variance of the trials' Sharpe ratios, of one bar, as far as luck can have made it.

    Trials that are equally good differ by their sampling error alone, 1 / (bars - 1) or less where
    they resemble each other. What they differ beyond that is skill, or the lack of it; counting it
    as luck, as published, hides a true edge behind the worst sets of its own grid.
    source  Lo (2002), The Statistics of Sharpe Ratios, for the sampling error at 0
    """
    return min(tried.variance, 1.0 / (bars - 1))


def _folds(inquiry: Inquiry, bars: int) -> tuple[int, tuple[Fold, ...]]:
    """Embargo and folds: the longest look-back and 20 bars at least, a quarter of a test at most.

    A longer embargo would leave the first fold little to learn from.
    """
    length = bars // (inquiry.folds + 1)
    embargo = min(max(inquiry.look_back, SHORTEST_EMBARGO), length // 4)
    return embargo, walk_forward(bars, folds=inquiry.folds, embargo=embargo)


def _walk(
    inquiry: Inquiry, folds: Sequence[Fold], at: Ints, tell: Tell
) -> tuple[tuple[FoldResult, ...], Array]:
    """Every fold, and the bar returns of all tests one after another."""
    sets = len(inquiry.results.grid)
    walked, tests = [], [np.empty(0)]
    annual = math.sqrt(inquiry.periods_per_year)
    if folds:
        tell("walk-forward", 0, len(folds) * sets)
    for place, fold in enumerate(folds):
        train = (int(at[fold.train[0]]), int(at[fold.train[1] - 1]))
        test = (int(at[fold.test[0]]), int(at[fold.test[1] - 1]))
        earlier = _between(inquiry.accounts, *train)
        number = _best_of(earlier, sets, partial(_tell_fold, tell, place * sets, len(folds) * sets))
        before = _changes(earlier, number, at[fold.train[0] : fold.train[1]])
        later = _between(inquiry.accounts, *test)
        change = _changes(later, number, at[fold.test[0] : fold.test[1]])
        tests.append(change)
        walked.append(
            FoldResult(
                train=train,
                test=test,
                number=number,
                in_sample=_annual(before, annual),
                out_of_sample=_annual(change, annual),
                total_return=float(np.prod(1.0 + change) - 1.0),
            )
        )
    return tuple(walked), np.concatenate(tests)


def _changes(accounts: Sequence[Account], number: int | None, at: Ints) -> Array:
    """Bar returns [U] of a set on all accounts together; 0 where it has no account or no number."""
    if number is None or not accounts:
        return np.zeros(at.size)
    cash = sum(one.cash for one in accounts)
    changes: Array = returns_of(pooled(accounts, np.array([number]), at), cash)[0]
    return changes


def _annual(changes: Array, root: float) -> float | None:
    """Annualised Sharpe ratio of bar returns; None without variance."""
    ratio = bar_sharpe(changes) * root
    return None if math.isnan(ratio) else ratio


def _tell_fold(tell: Tell, before: int, total: int, done: int) -> None:
    tell("walk-forward", before + done, total)


def _between(accounts: Sequence[Account], begin: int, end: int) -> list[Account]:
    parts = (one.over(begin, end) for one in accounts)
    return [part for part in parts if part is not None]


def _best_of(accounts: Sequence[Account], sets: int, tell: Callable[[int], None]) -> int | None:
    """Number of the best set by its Sharpe ratio, the first of equal ones."""
    number, best = None, -math.inf
    for start, stop in blocks_of(sets) if accounts else ():
        ratios = over_symbols([one.sweep.run(start, stop) for one in accounts]).sharpe
        known = np.where(np.isfinite(ratios), ratios, -np.inf)
        place = int(known.argmax())
        if known[place] > best:
            number, best = start + place, float(known[place])
        tell(stop)
    return number


def _cross_validate(
    inquiry: Inquiry, best: int, at: Ints, tell: Tell
) -> tuple[Array, Overfitting | None]:
    """Sharpe ratios and overfitting of evenly spread sets and the best one.

    More of the best would be compared with each other instead of with what the grid holds, and
    the outcome would depend on how many are listed.

    returns  bar ratios on all accounts together, NaN without variance; no overfitting for one set
             or very few bars
    """
    kept = np.array(inquiry.results.sample.kept, dtype=np.int64)
    if kept.size > CROSS_VALIDATED:
        kept = kept[np.linspace(0, kept.size - 1, CROSS_VALIDATED).round().astype(np.int64)]
    numbers = np.union1d(kept, np.array([best], dtype=np.int64))
    enough = numbers.size > 1 and at.size >= 2 * BLOCKS
    cash = sum(one.cash for one in inquiry.accounts)
    size = max(1, NUMBERS_AT_ONCE // at.size)
    parts, ratios = [], [np.empty(0)]
    tell("cross-validation", 0, numbers.size)
    for start in range(0, numbers.size, size):
        curves = pooled(inquiry.accounts, numbers[start : start + size], at)
        returns = returns_of(curves, cash)
        ratios.append(np.array([bar_sharpe(one) for one in returns]))
        if enough:
            parts.append(block_moments(returns, BLOCKS))
        tell("cross-validation", min(start + size, numbers.size), numbers.size)
    if not enough:
        return np.concatenate(ratios), None
    return np.concatenate(ratios), overfitting(
        BlockMoments(
            sums=np.concatenate([part.sums for part in parts]),
            squares=np.concatenate([part.squares for part in parts]),
            bars=parts[0].bars,
        )
    )


def limits_broken(found: Findings) -> tuple[str, ...]:
    """The limits that the best set does not keep, in words; with none it is better than luck."""
    said = []
    deflated, overfit = found.deflated, found.overfitting
    if deflated is None:
        said.append("its equity never moves")
    elif deflated.probability < DEFLATED_FROM:
        said.append(f"deflated Sharpe {deflated.probability:.2f} is below {DEFLATED_FROM}")
    if overfit is None and found.sets > 1:  # one set alone was not chosen
        said.append("the bars are too few to cross-validate")
    elif overfit is not None and overfit.probability > OVERFIT_TO:
        said.append(f"overfitting probability {overfit.probability:.2f} is above {OVERFIT_TO}")
    if found.sharpe is None:
        said.append("nothing is known out of sample")
    elif found.sharpe <= 0.0:
        said.append(f"out-of-sample Sharpe {found.sharpe:.2f} is not above 0")
    if found.trades < TRADES_FROM:
        said.append(f"{found.trades} closed trades are fewer than {TRADES_FROM}")
    return tuple(said)


def verdict(found: Findings) -> str:
    """Whether the best set is better than luck, in one sentence with its figures."""
    deflated, overfit = found.deflated, found.overfitting
    figures = (
        "no deflated Sharpe" if deflated is None else f"deflated Sharpe {deflated.probability:.2f}",
        "overfitting probability unknown"
        if overfit is None
        else f"overfitting probability {100.0 * overfit.probability:.0f} %",
        "no out-of-sample Sharpe"
        if found.sharpe is None
        else f"out-of-sample Sharpe {found.sharpe:.2f}",
        f"{found.trades} closed trades",
    )
    broken = limits_broken(found)
    unknown = (overfit is None and found.sets > 1) + (found.sharpe is None)
    few = found.trades < TRADES_FROM
    if not broken:
        said = "is better than luck"
    elif deflated is None:
        said = "has equity that never moves, so there is nothing to tell from luck"
    elif len(broken) == few:
        said = "has traded too little to be told from luck"
    elif len(broken) == few + unknown:
        said = "has too little behind it to be told from luck"
    else:
        said = "is what luck alone would give"
    if found.sets == 1:
        subject = "the one set"
    elif found.rank == 1:
        subject = f"the best of {found.sets:,} sets"
    else:
        subject = f"rank {found.rank:,} of {found.sets:,} sets"
    return f"{subject} {said} ({', '.join(figures)})"
