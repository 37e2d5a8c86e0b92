"""Grids as they are written, and the sets in them."""

from __future__ import annotations

import itertools
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies.sweep.grid import Grid, parse_grid
from trader.core.errors import UsageError

KNOWN = {"fast": 20, "slow": 50, "band": 0.5}


def test_a_range_has_both_ends():
    grid = parse_grid("fast=5:50,slow=20:200:5", KNOWN)
    assert grid.names == ("fast", "slow")
    assert grid.values[0].tolist() == list(range(5, 51))
    assert grid.values[1].tolist() == list(range(20, 201, 5))
    assert len(grid) == 46 * 37


def test_one_value_spaces_and_fractions():
    grid = parse_grid(" fast = 7 , band=0.1:0.5:0.1", KNOWN)
    assert grid.values[0].tolist() == [7]
    assert grid.values[1].tolist() == [0.1, 0.2, 0.3, 0.4, 0.5]


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**6), st.integers(0, 300), st.integers(0, 6))
def test_every_value_is_the_number_that_its_decimals_are(first, units, more, decimals):
    scale = Decimal(1).scaleb(-decimals)
    wanted = [(first + units * at) * scale for at in range(more + 1)]
    (axis,) = parse_grid(f"band={wanted[0]}:{wanted[-1]}:{units * scale}", KNOWN).values
    assert axis.tolist() == [float(value) for value in wanted]


@pytest.mark.parametrize("text", ["1e-13:5e-13:1e-13", "999999999999:1e12", "1e-300", "0:0:1e-320"])
def test_numbers_of_any_size_keep_their_ends(text):
    low, high, *_ = (*(float(end) for end in text.split(":")), float(text.split(":")[0]))
    (axis,) = parse_grid(f"band={text}", KNOWN).values
    assert (axis[0], axis[-1]) == (low, high)


def test_a_step_that_does_not_meet_the_end_stops_before_it():
    assert parse_grid("fast=5:12:3", KNOWN).values[0].tolist() == [5, 8, 11]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_the_last_axis_runs_fastest_and_blocks_equal_single_sets(shape, data):
    names = tuple("abcd"[: len(shape)])
    grid = Grid(names=names, values=tuple(np.arange(1.0, size + 1) for size in shape))
    every = list(itertools.product(*(axis.tolist() for axis in grid.values)))
    assert len(grid) == len(every)
    start = data.draw(st.integers(0, len(grid)))
    stop = data.draw(st.integers(start, len(grid)))
    columns = grid.columns(start, stop)
    for place, number in enumerate(range(start, stop)):
        numbers = dict(zip(names, every[number], strict=True))
        assert {name: column[place] for name, column in columns.items()} == numbers
        assert grid.numbers(number) == numbers


def test_a_set_that_does_not_exist_is_refused():
    grid = parse_grid("fast=5:6", KNOWN)
    for number in (-1, 2):
        with pytest.raises(IndexError):
            grid.numbers(number)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "write name=low:high"),
        ("fast", "write name=low:high"),
        ("fast=", "write name=low:high"),
        ("=5", "write name=low:high"),
        ("fast=5:50,", "write name=low:high"),
        ("fats=5:50", "did you mean fast"),
        ("fast=5,fast=6", "given twice"),
        ("fast=50:5", "the low end is above the high"),
        ("fast=5:50:0", "step 0 must be above 0"),
        ("fast=5:50:-1", "step -1 must be above 0"),
        ("fast=5:50:1:2", "write low:high"),
        ("fast=five", "'five' is not a number"),
        ("fast=nan", "'nan' is not a number"),
        ("fast=5:inf", "'inf' is not a number"),
        ("fast=5:50:0.5", "whole numbers only"),
        ("fast=0.5", "whole numbers only"),
        ("fast=1:2000001", "more than 1,000,000 values"),
        ("fast=5:50:1e-320", "more than 1,000,000 values"),
        ("band=0:1:1e-15", "more than 1,000,000 values"),
        ("band=-1e12:1e12:1e-12", "more than 1,000,000 values"),
        ("band=9e11:900000000000.0005:1e-5", "more digits than numbers keep"),
        ("band=-1e308:1e308", "'-1e308' is beyond 1e+12"),
        ("band=1e300", "'1e300' is beyond 1e+12"),
        ("fast=9223372036854775808", "is beyond 1e+12"),
        ("fast=1:1000000,slow=1:1000000,band=0:9:0.001", "sets are more than"),
    ],
)
def test_each_mistake_is_named_with_its_remedy(text, words):
    with pytest.raises(UsageError, match="--grid") as caught:
        parse_grid(text, KNOWN)
    assert words in str(caught.value)
