"""What became of every entry: by hand, by an oracle written another way, and by law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from strategies.kernels.dispatch import kernels
from tests.strategies.market import series, walk

BACKENDS = pytest.mark.parametrize(
    "backend", [kernels("reference"), kernels("cpu")], ids=["reference", "cpu"]
)
R = 5.0  # USD of risk in every hand-made case, decided at a close of 100: the stop is 95


def trade(backend, *bars, leave=(), slippage=0.0):
    """The one trade of a signal on bar 0; bars after it are (open, high, low, close)."""
    rows = np.array([(100.0, 100.0, 100.0, 100.0), *bars])
    entry, exit_ = np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
    entry[0] = True
    exit_[list(leave)] = True
    found = backend.excursions(*rows.T, entry, exit_, np.full(len(rows), R), slippage)
    assert [part.size for part in found] == [1, 1, 1, 1]
    assert found[0][0] == 1
    return int(found[1][0]), float(found[2][0]), float(found[3][0])


QUIET = (100.0, 101.0, 99.0, 100.0)


@BACKENDS
def test_a_gap_below_the_stop_leaves_at_the_open(backend):
    assert trade(backend, QUIET, (90.0, 91.0, 89.0, 90.0)) == (2, 0.2, -2.0)


@BACKENDS
def test_a_stop_inside_a_bar_leaves_at_the_stop_not_at_the_close(backend):
    assert trade(backend, QUIET, (100.0, 100.0, 94.0, 99.0)) == (2, 0.2, -1.0)


@BACKENDS
def test_a_low_that_just_touches_the_stop_fills_it_and_one_above_does_not(backend):
    assert trade(backend, QUIET, (100.0, 100.0, 95.0, 99.0))[0] == 2
    assert trade(backend, QUIET, (100.0, 100.0, 95.01, 99.0))[0] == -1


@BACKENDS
def test_a_stop_on_the_entry_bar_leaves_on_the_entry_bar(backend):
    assert trade(backend, (101.0, 120.0, 94.0, 110.0), QUIET) == (1, 0.0, -1.2)


@BACKENDS
def test_an_entry_already_below_its_stop_leaves_at_that_open(backend):
    assert trade(backend, (93.0, 99.0, 92.0, 98.0), QUIET) == (1, 0.0, 0.0)


@BACKENDS
def test_an_exit_pending_at_the_open_comes_before_the_stop_of_that_bar(backend):
    assert trade(backend, QUIET, (98.0, 99.0, 80.0, 81.0), leave=[1]) == (2, 0.2, -0.4)


@BACKENDS
def test_an_exit_signal_on_the_entry_signals_own_bar_is_not_this_trades(backend):
    assert trade(backend, QUIET, QUIET, leave=[0]) == (
        -1,
        0.2,
        pytest.approx(math.nan, nan_ok=True),
    )


@BACKENDS
def test_a_trade_open_at_the_end_has_no_result_but_what_it_has_seen(backend):
    index, best, result = trade(backend, QUIET, (100.0, 115.0, 99.0, 105.0), leave=[2])
    assert (index, best) == (-1, 3.0)  # the exit signal on the last bar never fills
    assert math.isnan(result)


@BACKENDS
def test_of_the_exit_bar_only_the_open_counts_as_seen(backend):
    stopped = trade(backend, QUIET, (104.0, 130.0, 90.0, 95.0))
    assert stopped == (2, 0.8, -1.0)
    left = trade(backend, QUIET, (110.0, 130.0, 109.0, 120.0), leave=[1])
    assert left == (2, 2.0, 2.0)


@BACKENDS
def test_slippage_goes_against_the_trader_on_both_sides_and_moves_the_stop_up(backend):
    index, best, result = trade(backend, QUIET, (100.0, 103.0, 95.5, 96.0), slippage=0.01)
    paid, stop = 101.0, 101.0 - R  # the stop hangs below the expected fill, not below the close
    assert (index, best) == (2, 0.0)
    assert result == pytest.approx((stop * 0.99 - paid) / R)


@BACKENDS
def test_a_signal_on_the_last_bar_or_without_a_risk_is_not_traded(backend):
    bars = walk(6)
    entry = np.ones(6, dtype=bool)
    distance = np.array([np.nan, 0.0, -1.0, np.inf, 1.0, 1.0])
    prices = (bars.open, bars.high, bars.low, bars.close)
    found = backend.excursions(*prices, entry, ~entry, distance, 0.0)
    assert_array_equal(found[0], [5])
    empty = backend.excursions(*(np.zeros(0),) * 4, entry[:0], entry[:0], np.zeros(0), 0.0)
    assert [part.size for part in empty] == [0, 0, 0, 0]


def oracle(bars, entry, exit_, distance, slippage):
    """The same trades from whole slices: where would it stop, where leave, which is first."""
    rows = []
    for i in range(len(bars) - 1):
        if not entry[i] or not (np.isfinite(distance[i]) and distance[i] > 0.0):
            continue
        paid = bars.open[i + 1] * (1.0 + slippage)
        stop = bars.close[i] * (1.0 + slippage) - distance[i]
        stops = [t for t in range(i + 1, len(bars)) if bars.low[t] <= stop]
        exits = [t for t in range(i + 2, len(bars)) if exit_[t - 1]]
        last = min(stops + exits, default=len(bars))
        seen = [0.0, *(bars.high[i + 1 : last] - paid), *(bars.open[last : last + 1] - paid)]
        if last == len(bars):
            rows.append((i + 1, -1, max(seen) / distance[i], np.nan))
            continue
        price = bars.open[last] if last in exits else min(stop, bars.open[last])
        result = (price * (1.0 - slippage) - paid) / distance[i]
        rows.append((i + 1, last, max(seen) / distance[i], result))
    return [np.array(column) for column in zip(*rows, strict=True)] or [np.array([])] * 4


@BACKENDS
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_every_trade_equals_an_oracle_written_another_way(backend, data):
    size = data.draw(st.integers(2, 40))
    prices = st.lists(st.integers(8, 14), min_size=4 * size, max_size=4 * size)
    drawn = np.array(data.draw(prices), dtype=np.float64).reshape(4, size)
    drawn.sort(axis=0)  # low, two between, high
    flip = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    open_, close = np.where(flip, drawn[1], drawn[2]), np.where(flip, drawn[2], drawn[1])
    bars = series(open_, drawn[3], drawn[0], close, np.ones(size))
    flags = st.lists(st.booleans(), min_size=size, max_size=size)
    entry, exit_ = (np.array(data.draw(flags)) for _ in range(2))
    risks = st.lists(st.sampled_from([1.0, 2.0, 3.5, 0.0, np.nan]), min_size=size, max_size=size)
    distance = np.array(data.draw(risks))
    slippage = data.draw(st.sampled_from([0.0, 0.0005, 0.01]))
    found = backend.excursions(
        bars.open, bars.high, bars.low, bars.close, entry, exit_, distance, slippage
    )
    for mine, its in zip(found, oracle(bars, entry, exit_, distance, slippage), strict=True):
        assert_allclose(mine, its, rtol=1e-12, atol=1e-12)


@BACKENDS
def test_later_bars_change_no_closed_trade(backend):
    bars = walk(200, seed=9)
    entry, exit_ = np.zeros(200, dtype=bool), np.zeros(200, dtype=bool)
    entry[::9], exit_[::31] = True, True
    distance = bars.close * 0.04

    def known(size):
        part = bars.head(size)
        prices = (part.open, part.high, part.low, part.close)
        return backend.excursions(*prices, entry[:size], exit_[:size], distance[:size], 0.0005)

    full = known(200)
    for size in range(2, 200, 13):
        part = known(size)
        closed = part[1] >= 0
        for mine, final in zip(part, full, strict=True):
            assert_array_equal(mine[closed], final[: mine.size][closed])
        assert (part[2] <= full[2][: part[2].size]).all()
