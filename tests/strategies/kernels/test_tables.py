"""Many windows at once: every row is, to the last bit, the single window."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from strategies.kernels import tables
from strategies.kernels.dispatch import kernels
from tests.strategies.market import adversarial, walk, with_holes

REFERENCE = kernels("reference")
WINDOWS = (1, 2, 3, 14, 37, 64, 200, 3)


def built(bars, windows, threads=1):
    """Every table of these bars, by name, with the kernel whose rows it holds."""
    close, prices = bars.close, (bars.high, bars.low, bars.close)
    return {
        "sma": (tables.sma_table(close, windows, threads), lambda w: REFERENCE.sma(close, w)),
        "ema": (tables.ema_table(close, windows, threads), lambda w: REFERENCE.ema(close, w)),
        "rsi": (tables.rsi_table(close, windows, threads), lambda w: REFERENCE.rsi(close, w)),
        "atr": (tables.atr_table(*prices, windows, threads), lambda w: REFERENCE.atr(*prices, w)),
    }


def assert_rows(bars, windows, threads=1):
    padded = -(-len(bars) // 64) * 64
    for name, (table, single) in built(bars, windows, threads).items():
        assert table.shape == (len(windows), padded)
        assert table.flags.c_contiguous
        assert np.isnan(table[:, len(bars) :]).all()
        for row, window in zip(table, windows, strict=True):
            message = f"{name} {window}"
            assert_array_equal(row[: len(bars)], single(window), err_msg=message)


@pytest.mark.parametrize("name", adversarial())
def test_rows_equal_single_windows_where_kernels_break(name):
    assert_rows(adversarial()[name], WINDOWS)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 260])
@pytest.mark.parametrize("threads", [1, 2, 5, 40])
def test_the_number_of_threads_changes_no_bit(size, threads):
    assert_rows(with_holes(walk(size, seed=3), *([("close", 30, np.nan)] * (size > 30))), WINDOWS)
    one, many = built(walk(size), WINDOWS), built(walk(size), WINDOWS, threads)
    for name, (table, _) in one.items():
        assert_array_equal(table, many[name][0])


@settings(deadline=None, max_examples=40)
@given(
    windows=st.lists(st.integers(1, 90), max_size=6),
    holes=st.lists(st.integers(0, 149), max_size=3),
)
def test_rows_equal_single_windows_with_holes_anywhere(windows, holes):
    bars = with_holes(walk(150, seed=9), *(("close", bar, np.inf) for bar in holes))
    assert_rows(bars, windows, threads=2)


def test_windows_may_be_an_array_and_none_gives_an_empty_table():
    close = walk(100).close
    given_as_array = tables.sma_table(close, np.array([3, 9]))
    assert_array_equal(given_as_array, tables.sma_table(close, [3, 9]))
    assert tables.ema_table(close, []).shape == (0, 128)


def test_a_window_below_one_and_uneven_inputs_are_refused():
    x = np.ones(70)
    with pytest.raises(ValueError, match="window 0 is below 1"):
        tables.rsi_table(x, [5, 0])
    with pytest.raises(ValueError, match="threads 0 is below 1"):
        tables.sma_table(x, [5], threads=0)
    with pytest.raises(ValueError, match="equally long"):
        tables.atr_table(x, x, x[:69], [5])
