"""Return, Sharpe and drawdown against vectors, the statistics module and brute force."""

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trader.core.metrics import (
    annual_return,
    drawdowns,
    max_drawdown,
    performance,
    returns,
    sharpe,
    sortino,
    total_return,
)

CURVES = st.lists(st.floats(1.0, 1e6), min_size=2, max_size=40)


def curve(*values):
    return np.array(values, dtype=np.float64)


def summary(equity, initial=100.0, profits=(), **kwargs):
    options = {"open_trades": 0, "bars_exposed": 0, "costs": 0.0, "periods_per_year": 252.0}
    return performance(
        equity=equity, initial=initial, trade_profits=list(profits), **{**options, **kwargs}
    )


@pytest.mark.parametrize(("periods", "expected"), [(252.0, 6.19699558564273), (365.0, 7.45809)])
def test_sharpe_divides_by_the_sample_deviation_and_counts_flat_bars(periods, expected):
    # the whole curve is 100, 101, 100, 102, 102; its first value is the initial cash
    found = sharpe(curve(101, 100, 102, 102), 100.0, periods)
    assert found == pytest.approx(expected, rel=1e-6)


def test_sharpe_is_exact_to_the_last_digits_of_the_vector():
    assert sharpe(curve(101, 100, 102, 102), 100.0, 252.0) == pytest.approx(
        6.19699558564273, rel=1e-13
    )


def test_sharpe_with_the_population_deviation_would_be_another_number():
    assert sharpe(curve(101, 100, 102, 102), 100.0, 252.0) != pytest.approx(7.15567, rel=1e-3)


@settings(deadline=None)
@given(CURVES, st.floats(1.0, 1e6))
def test_sharpe_agrees_with_the_statistics_module(values, initial):
    whole = [initial, *values]
    change = [b / a - 1.0 for a, b in itertools.pairwise(whole)]
    deviation = statistics.stdev(change)
    assume(deviation > 1e-9)
    expected = statistics.fmean(change) / deviation * math.sqrt(252.0)
    assert sharpe(np.array(values), initial, 252.0) == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(
    "equity",
    [
        curve(),
        curve(101),
        curve(100, 100, 100),
        100 * 1.01 ** np.arange(1, 60),  # equal returns, apart from rounding
        curve(90, 0, 10),
        curve(90, -5, 10),
    ],
    ids=["empty", "one bar", "flat", "constant growth", "nothing left", "in debt"],
)
def test_sharpe_is_unknown_rather_than_infinite(equity):
    assert sharpe(equity, 100.0, 252.0) is None


def test_sortino_divides_by_the_root_mean_square_of_the_losses_over_all_bars():
    # returns of +1 %, -1 %, 0 and +2 %: mean 0.5 %, downside sqrt(0.01² / 4) = 0.5 %
    equity = 100.0 * np.cumprod(curve(1.01, 0.99, 1.0, 1.02))
    assert sortino(equity, 100.0, 252.0) == pytest.approx(math.sqrt(252.0))
    assert sortino(equity, 100.0, 1.0) == pytest.approx(1.0)


def test_sortino_counts_a_loss_on_the_first_bar_from_the_initial_cash():
    assert sortino(curve(90, 90), 100.0, 1.0) == pytest.approx(-0.05 / math.sqrt(0.01 / 2))


@settings(deadline=None)
@given(CURVES, st.floats(1.0, 1e6))
def test_sortino_agrees_with_the_statistics_module(values, initial):
    whole = [initial, *values]
    change = [b / a - 1.0 for a, b in itertools.pairwise(whole)]
    downside = math.sqrt(statistics.fmean(min(each, 0.0) ** 2 for each in change))
    assume(downside > 1e-9)
    expected = statistics.fmean(change) / downside * math.sqrt(252.0)
    assert sortino(np.array(values), initial, 252.0) == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(
    "equity",
    [curve(), curve(90), curve(100, 100), curve(101, 105, 110), curve(90, 0, 10), curve(90, -5)],
    ids=["empty", "one bar", "flat", "no loss", "nothing left", "in debt"],
)
def test_sortino_is_unknown_rather_than_infinite(equity):
    assert sortino(equity, 100.0, 252.0) is None


def test_a_loss_on_the_first_bar_is_a_drawdown_from_the_initial_cash():
    assert drawdowns(curve(90, 95, 110, 99), 100.0) == pytest.approx([-0.1, -0.05, 0.0, -0.1])
    assert max_drawdown(curve(90, 95), 100.0) == pytest.approx(-0.1)


def test_a_gain_on_the_first_bar_is_no_drawdown():
    assert max_drawdown(curve(110, 120), 100.0) == 0.0
    assert max_drawdown(curve(), 100.0) == 0.0


@settings(deadline=None)
@given(CURVES, st.floats(1.0, 1e6))
def test_drawdown_is_the_worst_fall_between_any_two_moments(values, initial):
    whole = [initial, *values]
    worst = min(
        whole[later] / whole[earlier] - 1.0
        for later in range(len(whole))
        for earlier in range(later + 1)
    )
    assert max_drawdown(np.array(values), initial) == pytest.approx(worst, abs=1e-12)


@settings(deadline=None)
@given(CURVES, st.floats(1.0, 1e6))
def test_bar_returns_compound_to_the_total_return(values, initial):
    compounded = math.prod(1.0 + each for each in returns(np.array(values), initial)) - 1.0
    assert compounded == pytest.approx(total_return(np.array(values), initial), rel=1e-6, abs=1e-9)


def test_the_first_return_compares_with_the_initial_equity():
    assert returns(curve(110, 99), 100.0) == pytest.approx([0.1, -0.1])


def test_the_annual_return_compounds_and_needs_a_quarter_of_a_year():
    assert annual_return(0.21, 504, 252.0) == pytest.approx(0.1)
    assert annual_return(0.1, 63, 252.0) == pytest.approx(1.1**4 - 1.0)
    assert annual_return(0.1, 62, 252.0) is None
    assert annual_return(-1.0, 504, 252.0) is None


def test_an_open_trade_is_marked_at_the_last_close_and_not_counted_as_closed():
    found = summary(curve(100_010), initial=100_000.0, open_trades=1, bars_exposed=1)
    assert (found.final_equity, found.trades, found.open_trades) == (100_010.0, 0, 1)
    assert found.hit_rate is None
    assert found.exposure == 1.0


@pytest.mark.parametrize(("bars", "known"), [(29, False), (30, True)])
def test_a_summary_gives_a_sharpe_ratio_only_from_thirty_returns_on(bars, known):
    found = summary(100.0 + np.arange(bars) % 3)
    assert (found.sharpe is not None) == known
    assert found.sharpe_count == bars


def test_a_summary_of_nothing_is_the_initial_equity():
    found = summary(curve())
    assert (found.final_equity, found.total_return, found.max_drawdown) == (100.0, 0.0, 0.0)
    assert (found.sharpe, found.annual_return, found.exposure) == (None, None, 0.0)


def test_the_hit_rate_counts_trades_that_made_money():
    assert summary(curve(101), profits=[5.0, 0.0, -1.0, 2.0]).hit_rate == 0.5
