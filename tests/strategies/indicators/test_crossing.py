"""Crossings fire once, on the bar, and never on a tie that is not left."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from strategies.indicators.crossing import crosses_above, crosses_below

NAN = np.nan


def test_a_crossing_fires_on_its_bar_only():
    line = np.array([1.0, 3.0, 3.0, 1.0, 1.0, 3.0])
    assert_array_equal(np.flatnonzero(crosses_above(line, 2.0)), [1, 5])
    assert_array_equal(np.flatnonzero(crosses_below(line, 2.0)), [3])


def test_a_touch_is_no_crossing_but_leaving_a_tie_is():
    line = np.array([1.0, 2.0, 1.0, 2.0, 3.0, 2.0, 3.0, 2.0, 1.0])
    assert_array_equal(np.flatnonzero(crosses_above(line, 2.0)), [4, 6])
    assert_array_equal(np.flatnonzero(crosses_below(line, 2.0)), [2, 8])


def test_a_missing_value_on_either_bar_is_no_crossing():
    line = np.array([NAN, 3.0, 1.0, NAN, 3.0, 1.0, 3.0])
    level = np.array([2.0, 2.0, 2.0, 2.0, 2.0, NAN, 2.0])
    assert_array_equal(np.flatnonzero(crosses_above(line, level)), [])
    assert_array_equal(np.flatnonzero(crosses_below(line, level)), [2])


def test_no_bars_have_no_crossings():
    assert crosses_above(np.zeros(0), np.zeros(0)).shape == (0,)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_crossing_below_is_crossing_above_upside_down(pairs):
    line, level = np.array(pairs, dtype=np.float64).T
    assert_array_equal(crosses_below(line, level), crosses_above(level, line))
    assert_array_equal(crosses_below(line, level), crosses_above(-line, -level))
