"""Luck of a sweep: noise is called luck, a planted edge is not, and each limit is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strategies.sweep.accounts import moments_of, pooled, returns_of
from strategies.sweep.grid import Grid
from strategies.sweep.luck import (
    Findings,
    Inquiry,
    limits_broken,
    look_at,
    look_into,
    verdict,
)
from strategies.sweep.results import Results
from strategies.validation import Deflated, Overfitting, bar_sharpe, deflated_sharpe
from tests.strategies.sweep.fakes import CASH, DAY, PERIODS, account
from trader.core.metrics import sharpe


def silent(_name, _done, _of):
    """Nobody wants to know."""


def inquiry_of(*accounts, market=0.0, look_back=20, top=5):
    sets = accounts[0].sweep.returns.shape[0]
    grid = Grid(names=("n",), values=(np.arange(1.0, sets + 1),))
    results = Results(grid, rank_by="sharpe", top=top, least_sampled=100)
    results.add(0, [one.sweep.run(0, sets) for one in accounts])
    return Inquiry(
        accounts=accounts,
        results=results,
        periods_per_year=PERIODS,
        market=market,
        look_back=look_back,
    )


def noise(seed, sets, bars):
    return np.random.default_rng(seed).normal(0.0, 0.01, (sets, bars))


def test_noise_is_luck_and_a_planted_edge_is_not():
    returns = noise(1, 60, 1_200)
    luck = look_into(inquiry_of(account(returns)), silent)
    assert not luck.better
    assert "is what luck alone would give" in luck.sentence
    returns[23] += 0.002
    luck = look_into(inquiry_of(account(returns)), silent)
    assert luck.better
    assert luck.against == ()
    assert luck.sentence.startswith("the best of 60 sets is better than luck (deflated Sharpe ")
    assert {fold.number for fold in luck.folds} == {23}
    assert luck.overfitting.probability < 0.05
    assert luck.sharpe > 1.0


def test_noise_is_rarely_called_better_than_luck():
    called = sum(
        look_into(inquiry_of(account(noise(seed, 30, 400))), silent).better for seed in range(100)
    )
    assert called <= 4


def test_random_sets_in_a_bull_market_are_not_called_better_than_luck():
    """Being long at random times earns the drift; the luckiest of many earns more of it."""
    called = naive = 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        market = rng.normal(0.001, 0.012, 1_000)
        long = np.repeat(rng.random((60, 100)) < 0.5, 10, axis=1)
        held = sharpe(CASH * np.cumprod(1.0 + market), CASH, PERIODS)
        found = inquiry_of(account(np.where(long, market, 0.0)), market=held)
        called += look_into(found, silent).better
        naive += look_into(replace(found, market=0.0), silent).better
    assert called <= 1
    assert naive > called


def test_random_sets_on_many_rising_symbols_are_not_called_better_than_luck():
    """What moves single symbols cancels out in many: their drift is a high ratio, and no edge."""
    called = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        stocks = rng.normal(0.001, 0.015, (8, 800))
        held = returns_of(CASH * np.cumprod(1.0 + stocks, axis=1), CASH)
        together = sharpe(np.cumprod(1.0 + held.mean(axis=0)), 1.0, PERIODS)
        each = [account(row * (rng.random((20, 800)) < 0.6)) for row in stocks]
        luck = look_into(inquiry_of(*each, market=together), silent)
        assert luck.without_edge > 1.0
        called += luck.better
    assert called <= 2


def test_a_fold_is_measured_on_all_accounts_together_before_and_after():
    each = [account(noise(seed, 3, 1_000) + 0.001) for seed in range(6)]
    fold = look_into(inquiry_of(*each), silent).folds[0]
    for span, seen in ((fold.train, fold.in_sample), (fold.test, fold.out_of_sample)):
        begin, end = (moment // DAY for moment in span)
        curves = [one.sweep.over(begin, end).curves(np.array([fold.number]))[0] for one in each]
        assert seen == pytest.approx(sharpe(sum(curves), 6 * CASH, PERIODS))


def test_sets_that_differ_by_skill_do_not_hide_the_edge_of_the_best():
    """Half of the sets lose for sure: that spread is no luck, though it is a variance of trials."""
    returns = noise(1, 60, 1_200)
    returns[:30] -= 0.004
    returns[40] += 0.002
    luck = look_into(inquiry_of(account(returns)), silent)
    assert luck.better
    assert luck.plain.probability < 0.5
    assert luck.plain.by_luck > luck.deflated.by_luck


def test_both_deflated_ratios_follow_their_formulas():
    returns = noise(5, 40, 800) / 3.0 + 0.0002
    found = inquiry_of(account(returns), market=0.3)
    luck = look_into(found, silent)
    ratios = np.array([bar_sharpe(row) for row in returns])
    curve = account(returns).sweep.curves(np.array([ratios.argmax()]))[0]
    best = returns_of(curve[None, :], CASH)[0]
    plain = deflated_sharpe(best, trials=40, variance=float(ratios.var(ddof=1)))
    assert luck.plain.probability == pytest.approx(plain.probability, rel=1e-6)
    assert luck.without_edge == pytest.approx(min(0.3, ratios.mean() * np.sqrt(PERIODS)))
    market = deflated_sharpe(
        best,
        trials=40,
        variance=min(float(ratios.var(ddof=1)), 1 / 799),
        mean=luck.without_edge / np.sqrt(PERIODS),
    )
    assert luck.deflated.probability == pytest.approx(market.probability, rel=1e-6)


@pytest.mark.parametrize(("drift", "market"), [(0.0005, -0.5), (-0.0005, 0.4)])
def test_a_market_or_trials_that_lose_give_nothing_away(drift, market):
    found = inquiry_of(account(noise(2, 20, 400) / 5.0 + drift), market=market)
    assert look_into(found, silent).without_edge == 0.0


def test_a_fold_is_chosen_by_its_training_alone():
    rng = np.random.default_rng(4)
    returns = rng.normal(0.0, 0.001, (3, 1_000))
    returns[0, :100] += 0.01  # best in the first training only
    returns[1, 200:] += 0.02  # best from the first test on
    luck = look_into(inquiry_of(account(returns)), silent)
    first = luck.folds[0]
    assert luck.embargo == 20
    assert (first.train, first.test) == ((0, 179 * DAY), (200 * DAY, 399 * DAY))
    assert first.number == 0
    assert [fold.number for fold in luck.folds[1:]] == [1, 1, 1]
    curve = account(returns).sweep.over(200, 399).curves(np.array([0]))[0]
    assert first.out_of_sample == pytest.approx(sharpe(curve, CASH, PERIODS))
    assert first.total_return == pytest.approx(curve[-1] / CASH - 1.0)
    curve = account(returns).sweep.over(0, 179).curves(np.array([0]))[0]
    assert first.in_sample == pytest.approx(sharpe(curve, CASH, PERIODS))


def test_what_happens_in_the_embargo_chooses_nothing():
    returns = noise(6, 4, 1_000) / 10.0
    before = look_into(inquiry_of(account(returns)), silent).folds
    returns[2, 180:200] += 0.5
    after = look_into(inquiry_of(account(returns)), silent).folds
    assert before[0] == after[0]
    assert after[1].number == 2


def test_the_embargo_is_the_longest_look_back_within_reason():
    returns = noise(2, 5, 1_000)
    embargo = {
        look_back: look_into(inquiry_of(account(returns), look_back=look_back), silent).embargo
        for look_back in (5, 33, 5_000)
    }
    assert embargo == {5: 20, 33: 33, 5_000: 50}


def test_too_few_bars_are_not_better_than_luck():
    returns = noise(3, 5, 28) + 0.02
    luck = look_into(inquiry_of(account(returns)), silent)
    assert (luck.folds, luck.overfitting, luck.sharpe, luck.total_return) == ((), None, None, None)
    assert not luck.better
    assert "the bars are too few to cross-validate" in luck.against
    assert "nothing is known out of sample" in luck.against


def test_sets_that_never_trade_are_luck():
    luck = look_into(inquiry_of(account(np.zeros((4, 400)), trades=0)), silent)
    assert not luck.better
    assert "its equity never moves" in luck.against
    assert all(fold.number is None and fold.total_return == 0.0 for fold in luck.folds)


def test_no_set_has_no_luck():
    returns = np.full((3, 200), np.nan)
    assert look_into(inquiry_of(account(returns)), silent) is None


def test_sets_that_do_not_fit_together_are_never_cross_validated():
    returns = noise(8, 40, 400)
    returns[::2] = np.nan  # the fake fails when it is asked for one of them
    luck = look_into(inquiry_of(account(returns)), silent)
    assert luck.overfitting.sets == 20


def test_the_best_set_is_cross_validated_with_evenly_spread_ones(monkeypatch):
    monkeypatch.setattr("strategies.sweep.luck.CROSS_VALIDATED", 10)
    returns = noise(8, 60, 400)
    returns[37] += 0.004
    luck = look_into(inquiry_of(account(returns), top=5), silent)
    assert luck.overfitting.sets == 11
    assert luck.overfitting.probability < 0.05  # the planted one is among them


def test_how_many_sets_are_listed_changes_no_verdict(monkeypatch):
    monkeypatch.setattr("strategies.sweep.luck.CROSS_VALIDATED", 10)
    asked = account(noise(8, 60, 400))
    assert look_into(inquiry_of(asked, top=1), silent) == look_into(
        inquiry_of(asked, top=60), silent
    )


def test_a_rank_is_judged_by_its_own_ratio_and_trades():
    returns = noise(1, 60, 1_200)
    returns[23] += 0.002
    returns[41] -= 0.002
    inquiry = inquiry_of(account(returns), top=60)
    luck, ranked = look_into(inquiry, silent), inquiry.results.best()
    assert luck.better
    first, last = (look_at(inquiry, luck, ranked[place]) for place in (0, -1))
    assert verdict(first) == luck.sentence
    assert ranked[-1].number == 41
    assert last.deflated.probability < 0.01
    assert limits_broken(last)
    assert verdict(last).startswith("rank 60 of 60 sets is what luck alone would give")


def test_warm_up_bars_are_never_traded():
    one = account(noise(1, 3, 100), first=40)
    assert one.over(0, 60 * DAY).first == 40
    assert one.over(0, 60 * DAY).sweep.last == 60
    assert one.over(50 * DAY, 60 * DAY).first == 50
    assert one.over(0, 41 * DAY).sweep.last == 41
    assert one.over(0, 40 * DAY) is None  # one bar is no period


def test_one_set_was_not_chosen_and_needs_no_cross_validation():
    returns = noise(7, 1, 1_000) + 0.003
    luck = look_into(inquiry_of(account(returns)), silent)
    assert luck.overfitting is None
    assert luck.better
    assert luck.sentence.startswith("the one set is better than luck")


def test_accounts_are_pooled_by_time_and_wait_in_cash():
    early = account(np.array([[0.1, 0.1, 0.0]]), begins=0)
    late = account(np.array([[1.0, 0.0]]), begins=2)
    at = moments_of([early, late])
    assert at.tolist() == [0, DAY, 2 * DAY, 3 * DAY]
    equity = pooled([early, late], np.array([0]), at)
    assert equity[0].tolist() == pytest.approx([2_100, 2_210, 3_210, 3_210])
    change = returns_of(equity, 2 * CASH)
    assert change[0].tolist() == pytest.approx([0.05, 110 / 2_100, 1_000 / 2_210, 0.0])


def test_the_order_of_symbols_changes_nothing():
    first, second = account(noise(1, 20, 600)), account(noise(2, 20, 500), name="Y", begins=100)
    ahead = look_into(inquiry_of(first, second), silent)
    behind = look_into(inquiry_of(second, first), silent)
    assert ahead.folds == behind.folds
    assert ahead.overfitting == behind.overfitting
    assert ahead.sharpe == pytest.approx(behind.sharpe)
    assert ahead.deflated.trials == behind.deflated.trials == 40


def test_progress_tells_what_is_done_of_how_much():
    told = []
    look_into(
        inquiry_of(account(noise(1, 30, 400))), lambda name, done, of: told.append((name, done, of))
    )
    assert [one for one in told if one[0] == "walk-forward"] == [
        ("walk-forward", 30 * fold, 120) for fold in (0, 1, 2, 3, 4)
    ]
    assert told[-1] == ("cross-validation", 30, 30)


GOOD = Findings(
    sets=100,
    deflated=Deflated(
        probability=0.95, sharpe=0.1, by_luck=0.05, trials=100, bars=500, skewness=0, kurtosis=3
    ),
    overfitting=Overfitting(probability=0.5, loss=0.1, sets=100, blocks=16, splits=12_870),
    sharpe=0.01,
    trades=20,
)


def test_findings_at_every_limit_are_better_than_luck():
    assert limits_broken(GOOD) == ()
    assert verdict(GOOD) == (
        "the best of 100 sets is better than luck (deflated Sharpe 0.95, overfitting probability "
        "50 %, out-of-sample Sharpe 0.01, 20 closed trades)"
    )


@pytest.mark.parametrize(
    ("worse", "reason", "words"),
    [
        (
            {"deflated": replace(GOOD.deflated, probability=0.949)},
            "deflated Sharpe 0.95 is below",
            "luck",
        ),
        ({"deflated": None}, "never moves", "never moves, so there is nothing to tell from luck"),
        (
            {"overfitting": replace(GOOD.overfitting, probability=0.501)},
            "overfitting probability 0.50 is above",
            "luck alone",
        ),
        ({"overfitting": None}, "too few", "too little behind it to be told from luck"),
        ({"sharpe": 0.0}, "not above 0", "luck alone"),
        ({"sharpe": None}, "nothing is known", "too little behind it to be told from luck"),
        ({"trades": 19}, "19 closed trades", "has traded too little to be told from luck"),
    ],
)
def test_one_broken_limit_is_enough(worse, reason, words):
    found = replace(GOOD, **worse)
    broken = limits_broken(found)
    assert len(broken) == 1
    assert reason in broken[0]
    assert words in verdict(found)
    assert "better than luck" not in verdict(found)
