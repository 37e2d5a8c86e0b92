"""What is kept of a stream of sets equals what one sees with all of them at hand."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies.kernels.engines.lanes import METRICS
from strategies.sweep.grid import Grid
from strategies.sweep.results import (
    HeatMap,
    Moments,
    Results,
    Sample,
    over_symbols,
    steps_around,
)
from tests.strategies.sweep.fakes import outcomes

GRID_OF_FOUR = Grid(names=("window",), values=(np.arange(1.0, 5.0),))


def grid_of(*sizes):
    names = tuple("abcdef"[: len(sizes)])
    return Grid(names=names, values=tuple(10.0 * np.arange(1, size + 1) for size in sizes))


def streamed(grid, scores, *, block, top=5, trades=None):
    results = Results(grid, rank_by="sharpe", top=top)
    for start in range(0, len(grid), block):
        stop = min(start + block, len(grid))
        part = {"sharpe": scores[start:stop]}
        if trades is not None:
            part["trades"] = trades[start:stop]
        results.add(start, [outcomes(**part)])
    return results


SCORES = st.lists(
    st.one_of(st.integers(-3, 3).map(float), st.just(float("nan"))), min_size=60, max_size=60
)


@given(scores=SCORES, block=st.integers(1, 61), top=st.integers(1, 70))
def test_the_best_are_the_best_of_all_whatever_the_blocks(scores, block, top):
    scores = np.array(scores)
    found = streamed(grid_of(6, 10), scores, block=block, top=top).best()
    ranked = np.where(np.isnan(scores), -np.inf, scores)
    wanted = sorted(range(60), key=lambda number: (-ranked[number], number))[:top]
    assert [one.number for one in found] == wanted
    assert [one.rank for one in found] == list(range(1, len(wanted) + 1))
    for one in found:
        assert one.outcome["sharpe"] == pytest.approx(scores[one.number], nan_ok=True)
        assert set(one.outcome) == set(METRICS)


def test_sets_that_do_not_fit_together_are_counted_and_never_ranked():
    scores = np.array([1.0, 9.0, 2.0, np.nan])
    results = streamed(grid_of(4), scores, block=2, trades=np.array([3, -1, 3, 0]))
    assert (results.seen, results.valid, results.skipped) == (4, 3, 1)
    assert [one.number for one in results.best()] == [2, 0, 3]
    assert results.sharpes.count == 3 - 1 + 1  # the ratio of the skipped set is not looked at


def test_each_measure_ranks_by_its_highest_value():
    grid = grid_of(3)
    for rank_by, values in (
        ("max_drawdown", [-0.3, -0.1, -0.2]),
        ("final_equity", [90.0, 120.0, 100.0]),
        ("hit_rate", [0.1, 0.9, np.nan]),
    ):
        results = Results(grid, rank_by=rank_by, top=1)
        results.add(0, [outcomes(**{rank_by: values})])
        assert results.best()[0].number == 1


@given(
    values=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=50),
    cuts=st.lists(st.integers(0, 50), max_size=5),
)
def test_moments_equal_those_of_all_numbers(values, cuts):
    values = np.array(values)
    found = Moments()
    for part in np.split(values, sorted(cut for cut in cuts if cut <= values.size)):
        found.add(np.concatenate((part, [np.nan, np.inf])))
    assert found.count == values.size
    assert found.mean == pytest.approx(values.mean(), abs=1e-9)
    expected = values.var(ddof=1) if values.size > 1 else 0.0
    assert found.variance == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(
    least=st.integers(1, 20), parts=st.lists(st.integers(0, 40), max_size=8), gap=st.integers(1, 3)
)
def test_a_sample_is_evenly_spread_and_not_too_small(least, parts, gap):
    sample, sent = Sample(least), np.arange(0, gap * sum(parts), gap, dtype=np.int64)
    at = 0
    for size in parts:
        sample.add(sent[at : at + size])
        at += size
    assert sample.kept == sent[:: sample.every].tolist()
    assert len(sample.kept) < 2 * least or len(sample.kept) == 1
    assert len(sample.kept) >= min(least, sent.size)


@given(seed=st.integers(0, 999), shape=st.sampled_from([(7,), (4, 9), (3, 5, 2), (2, 2, 2, 3)]))
def test_the_heat_map_equals_one_made_cell_by_cell(seed, shape):
    grid = grid_of(*shape)
    scores = np.random.default_rng(seed).normal(size=len(grid))
    scores[::5] = np.nan
    heat = HeatMap(grid)
    half = len(grid) // 2
    heat.add(grid.places(0, half), scores[:half])
    heat.add(grid.places(half, len(grid)), scores[half:])
    cells = {}
    for number, score in enumerate(scores):
        cell = heat.cell(number)
        if not np.isnan(score):
            cells.setdefault(cell, []).append(score)
    for row in range(heat.shape[0]):
        for column in range(heat.shape[1]):
            inside = cells.get((row, column), [])
            assert heat.count[row, column] == len(inside)
            if inside:
                assert heat.best[row, column] == max(inside)
                assert heat.mean[row, column] == pytest.approx(np.mean(inside))
            else:
                assert np.isnan(heat.best[row, column])
                assert np.isnan(heat.mean[row, column])


def test_the_heat_map_is_over_the_two_axes_with_the_most_values():
    heat = HeatMap(grid_of(2, 9, 4))
    assert (heat.rows, heat.columns, heat.shape) == (1, 2, (9, 4))
    assert heat.ends(0)[0] == (10.0, 10.0)
    assert HeatMap(grid_of(5)).rows is None
    assert HeatMap(grid_of(5)).ends(0) == ()


def test_long_axes_are_binned_and_every_value_is_in_one_bin():
    heat = HeatMap(grid_of(1_000, 121))
    assert heat.shape == (112, 61)
    assert HeatMap(grid_of(120, 240)).shape == (120, 120)
    ends = heat.ends(0)
    assert ends[0][0] == 10.0
    assert ends[-1][1] == 10_000.0
    assert all(before[1] + 10.0 == after[0] for before, after in pairwise(ends))
    held = [round((high - low) / 10) + 1 for low, high in ends]
    assert sum(held) == 1_000
    assert set(held[:-1]) == {9}


def test_neighbours_are_one_or_two_steps_away_on_one_axis():
    grid = grid_of(3, 4)
    assert steps_around(grid, 5) == {
        "a": (None, 1, 5, 9, None),
        "b": (None, 4, 5, 6, 7),
    }
    for axis, numbers in steps_around(grid, 5).items():
        for number in (n for n in numbers if n is not None):
            changed = {k for k, v in grid.numbers(number).items() if v != grid.numbers(5)[k]}
            assert changed <= {axis}


def test_several_symbols_are_one_mean():
    one = outcomes(
        sharpe=[1.0, np.nan, np.nan],
        hit_rate=[0.5, np.nan, np.nan],
        final_equity=[110.0, 100.0, 100.0],
        sortino=[3.0, np.nan, np.nan],
        trades=[4, 0, 0],
        open_trades=[1, 0, 0],
    )
    two = outcomes(
        sharpe=[2.0, 0.5, np.nan],
        hit_rate=[1.0, 0.25, np.nan],
        final_equity=[130.0, 90.0, 100.0],
        sortino=[np.nan, 1.0, np.nan],
        trades=[1, 8, 0],
        open_trades=[1, 1, 0],
    )
    found = over_symbols([one, two])
    assert found.sharpe.tolist()[:2] == [1.5, 0.25]
    assert np.isnan(found.sharpe[2])
    assert found.final_equity.tolist() == [120.0, 95.0, 100.0]
    assert found.sortino.tolist()[:2] == [3.0, 1.0]
    assert found.hit_rate.tolist()[:2] == [3 / 5, 0.25]
    assert np.isnan(found.hit_rate[2])
    assert found.trades.tolist() == [5, 8, 0]
    assert found.open_trades.tolist() == [2, 1, 0]
    swapped = over_symbols([two, one])
    assert all(
        np.array_equal(getattr(found, name), getattr(swapped, name), equal_nan=True)
        for name in METRICS
    )


def test_a_set_that_fits_no_symbol_has_not_run():
    one, two = outcomes(sharpe=[1.0], trades=[3]), outcomes(sharpe=[9.0], trades=[-1])
    found = over_symbols([one, two])
    assert found.trades.tolist() == [-1]
    assert np.isnan(found.sharpe[0])


def test_memory_does_not_grow_with_the_sets():
    grid = grid_of(4_000, 1_000)
    results = Results(grid, rank_by="sharpe", top=10)
    block = 1 << 14
    part = outcomes(sharpe=np.random.default_rng(1).normal(size=block))
    peaks = []
    tracemalloc.start()
    for start in range(0, 100 * block, block):
        results.add(start, [part])
        if start in (4 * block, 99 * block):
            peaks.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert results.seen == 100 * block
    assert peaks[1] < peaks[0] + 200_000


def test_exact_outcomes_take_the_place_of_those_that_ranked_and_rank_anew():
    results = Results(GRID_OF_FOUR, rank_by="sharpe", top=3)
    results.add(0, [outcomes(sharpe=[0.1, 0.5, 0.500001, 0.3], trades=[9, 9, 9, 9])])
    assert [one.number for one in results.best()] == [2, 1, 3]
    results.confirm([outcomes(sharpe=[0.5, 0.6, np.nan], final_equity=[5.0, 6.0, 7.0])])
    assert [one.number for one in results.best()] == [1, 2, 3]
    assert [one.outcome["final_equity"] for one in results.best()] == [6.0, 5.0, 7.0]
    with pytest.raises(ValueError, match="2 outcomes are not those of 3 kept sets"):
        results.confirm([outcomes(sharpe=[0.5, 0.6])])


def test_a_set_that_never_traded_is_not_the_best_by_drawdown():
    results = Results(GRID_OF_FOUR, rank_by="max_drawdown", top=4)
    results.add(
        0,
        [
            outcomes(
                max_drawdown=[0.0, -0.2, -0.1, 0.0], trades=[0, 3, 0, 0], open_trades=[0, 0, 1, 0]
            )
        ],
    )
    assert [one.number for one in results.best()] == [2, 1, 0, 3]
