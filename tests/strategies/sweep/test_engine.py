"""The door to the sweep engines: all of them give the same figures, and it says which it takes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strategies.kernels.engines.lanes import METRICS, Terms
from strategies.registry import default_parameters
from strategies.sweep.engine import EXECUTION, open_sweep, sweepable
from strategies.sweep.grid import Grid, parse_grid
from tests.strategies.market import walk, with_holes
from trader.core.errors import DataIntegrityError, UsageError

ROOT = Path(__file__).parents[3]

EXACT = ("final_equity", "trades", "open_trades", "hit_rate", "exposure")
DEAR = Terms(slippage=0.001, fee_rate=0.002, commission_per_order=3.0)
GRIDS = {
    "sma_cross": (
        "fast=2:12,slow=5:40:5",
        "slow=5:40:7,fast=2:12:3,stop_atr=0:3:1.5,target_atr=0:4:2",
        "stop_window=2:14:6,fast=3:9:3,stop_atr=1:2,slow=20:60:20",
    ),
    "rsi_reversion": (
        "rsi_window=2:14:3,oversold=20:60:10,overbought=50:80:10",
        "overbought=40:80:10,stop_atr=0:2,oversold=30:45:5",
    ),
    "macd_momentum": (
        "fast=3:12:3,slow=8:26:6,signal=4:9:5",
        "slow=5:50:5,fast=12:14,target_atr=0:3:1.5",
    ),
    "atr_trend": (
        "sma_window=5:50:15,atr_window=5:14:9,band_atr=0:1:0.5",
        "band_atr=0:2:0.25,stop_atr=0:3,sma_window=10:20:5",
    ),
    "buy_and_hold": ("target_atr=0:2:0.5,stop_window=5:9", "stop_atr=0"),
}
CASES = [(strategy, grid) for strategy, grids in GRIDS.items() for grid in grids]


def opened(strategy="sma_cross", grid="fast=2:12,slow=5:40:5", *, bars=None, **options):
    bars = walk(330, seed=3, tick=0.5, scale=50.0) if bars is None else bars
    asked = {
        "fixed": {}, "first": min(60, len(bars)), "terms": DEAR, "backend": "cpu", "threads": 1,
    } | options  # fmt: skip
    return open_sweep(bars, strategy, parse_grid(grid, sweepable(strategy)), **asked)


def assert_equal(found, expected):
    for name in METRICS:
        one, other = getattr(found, name), getattr(expected, name)
        if name in EXACT:
            np.testing.assert_array_equal(one, other, err_msg=name)
        else:
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=name)


def assert_same_bits(found, expected):
    for name in METRICS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


@pytest.mark.parametrize(("strategy", "grid"), CASES)
def test_masks_equal_the_reference_on_every_set_and_any_period(strategy, grid):
    """More than 1,000 sets of the strategies together, twice."""
    masks, by_bars, reference = (
        opened(strategy, grid, engine=engine, backend=backend)
        for engine, backend in (("masks", "cpu"), ("bars", "cpu"), ("bars", "reference"))
    )
    assert (masks.engine, by_bars.engine, reference.backend) == ("masks", "bars", "reference")
    sets = len(masks)
    for first, last in ((60, 329), (100, 250)):
        expected = reference.over(first, last).run(0, sets)
        assert_equal(masks.over(first, last).run(0, sets), expected)
        assert_equal(by_bars.over(first, last).run(0, sets), expected)
    assert masks.valid == reference.valid == (expected.trades >= 0).sum()


@pytest.mark.parametrize(("strategy", "grid"), CASES)
def test_neither_threads_nor_blocks_change_a_bit(strategy, grid):
    one = opened(strategy, grid, engine="masks")
    sets = len(one)
    expected = one.run(0, sets)
    assert_same_bits(opened(strategy, grid, engine="masks", threads=2).run(0, sets), expected)
    for start, stop in ((0, 1), (sets // 3, 2 * sets // 3), (sets - 1, sets), (0, 0)):
        part = one.run(start, stop)
        for name in METRICS:
            np.testing.assert_array_equal(getattr(part, name), getattr(expected, name)[start:stop])


@pytest.mark.parametrize(("strategy", "grid"), CASES)
def test_tables_too_large_for_memory_give_the_same_figures_block_by_block(strategy, grid):
    sweep = opened(strategy, grid, engine="masks")
    without = replace(sweep, masks=replace(sweep.masks, roles=None, tables=None))
    assert_equal(without.run(1, len(sweep)), sweep.run(1, len(sweep)))


def test_the_default_stop_is_the_execution_s_own_and_fixed_overrides_it():
    assert sweepable("sma_cross") == {**default_parameters("sma_cross"), **EXECUTION}
    stopped, loose = opened(), opened(fixed={"stop_atr": 0.0})
    assert (stopped.run(0, 88).final_equity != loose.run(0, 88).final_equity).any()
    named = opened(fixed={"stop_atr": EXECUTION["stop_atr"], "stop_window": 14})
    assert_same_bits(named.run(0, 88), stopped.run(0, 88))


def test_sets_whose_numbers_do_not_fit_together_are_marked_and_not_run():
    found = opened(grid="fast=4:6,slow=5").run(0, 3)
    assert found.trades.tolist()[1:] == [-1, -1]
    assert found.trades[0] >= 0
    assert np.isnan(found.final_equity[1:]).all()
    nothing = opened(grid="fast=7:9", fixed={"slow": 7})
    assert nothing.valid == 0
    assert (nothing.run(0, 3).trades == -1).all()
    assert np.isnan(nothing.curves(np.arange(3))).all()
    assert nothing.trades(0) == ()


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_curves_and_trades_are_those_of_the_figures(backend):
    sweep = opened(grid="fast=2:12,slow=5:40:5,stop_atr=0:2", backend=backend, engine="bars")
    found, numbers = sweep.run(0, len(sweep)), np.array([7, 100, 0, 263])
    curves = sweep.curves(numbers)
    assert curves.shape == (4, 270)
    for number, curve in zip(numbers, curves, strict=True):
        trades = sweep.trades(number)
        if found.trades[number] < 0:
            assert np.isnan(curve).all()
            continue
        assert curve[-1] == pytest.approx(found.final_equity[number], rel=1e-12)
        closed = [trade for trade in trades if trade.exit_bar >= 0]
        assert len(closed) == found.trades[number]
        assert len(trades) - len(closed) == found.open_trades[number]
    masks = opened(grid="fast=2:12,slow=5:40:5,stop_atr=0:2", engine="masks")
    np.testing.assert_allclose(masks.curves(numbers), curves, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"fixed": {"trail_atr": 1.0}}, "trailing stop"),
        ({"fixed": {"max_bars": 5}}, "max_bars"),
        ({"terms": replace(DEAR, whole_shares=True)}, "whole shares"),
        ({"backend": "reference"}, "reference"),
    ],
)
def test_auto_walks_bars_where_masks_cannot_work_and_masks_by_name_are_refused(options, why):
    sweep = opened(**options)
    assert sweep.engine == "bars"
    assert why in sweep.reason
    assert (sweep.run(0, 88).trades >= -1).all()
    with pytest.raises(UsageError, match=why):
        opened(engine="masks", **options)


def test_what_was_taken_is_said():
    assert (opened().engine, opened().backend) == ("masks", "cpu")
    assert "one position" in opened().reason
    assert opened(engine="bars").reason == "asked for by name"
    few = opened(grid="fast=5", backend="auto")
    assert (few.engine, few.backend) == ("bars", "reference")
    assert "330 sets × bars are fewer than 50,000: starting numba" in few.reason
    named = opened(grid="fast=5", backend="auto", engine="masks")  # however few they are
    assert (named.engine, named.backend, named.reason) == ("masks", "cpu", "asked for by name")
    assert opened(grid="fast=2:40,slow=41:90", backend="auto").backend == "cpu"


@pytest.mark.parametrize(
    ("grid", "options", "message"),
    [
        ("fast=2:12", {"fixed": {"fsat": 3}}, "did you mean fast"),
        ("slow=300:331", {}, "331 bars is longer than the 330 bars"),
        ("stop_window=10:400", {}, "400 bars is longer than the 330 bars"),
        ("stop_atr=-1:1", {}, "stop_atr -1"),
        ("fast=3", {"fixed": {"trail_atr": np.inf}}, "trail_atr inf"),
        ("fast=3", {"fixed": {"stop_window": 0}}, "stop_window 0"),
        ("fast=3", {"fixed": {"max_bars": 2.5}}, "max_bars 2.5"),
        ("fast=3", {"fixed": {"max_bars": 1e30}}, "max_bars 1e.30 must be .* to 1,000,000,000,000"),
        ("fast=3", {"fixed": {"stop_window": 1e25}}, "stop_window 1e.25 must be a whole number"),
        ("slow=30", {"fixed": {"fast": 5.5}}, "fast 5.5 must be .* its default is 20"),
        ("slow=30", {"fixed": {"fast": np.nan}}, "fast nan must be"),
        ("fast=0", {}, "fast 0 must be"),
        ("fast=3", {"engine": "mask"}, "'mask' does not exist; choose one of auto, masks, bars"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_name_and_the_value(grid, options, message):
    with pytest.raises(UsageError, match=message):
        opened(grid=grid, **options)


def test_an_unknown_strategy_is_refused():
    with pytest.raises(UsageError, match="did you mean sma_cross"):
        open_sweep(
            walk(90),
            "sma_crossing",
            Grid(names=("fast",), values=(np.array([3.0]),)),
            fixed={},
            first=0,
            terms=DEAR,
            threads=1,
        )


def test_bars_that_must_not_be_traded_on_are_refused_by_symbol_and_bar():
    with pytest.raises(DataIntegrityError, match="TEST: close of bar 70 is nan"):
        opened(bars=with_holes(walk(330), ("close", 70, np.nan)))
    with pytest.raises(DataIntegrityError, match="TEST: open of bar 5 is 0"):
        opened(bars=with_holes(walk(330), ("open", 5, 0.0)))


def test_sets_and_bars_that_do_not_exist_are_refused():
    sweep = opened()
    with pytest.raises(ValueError, match="not all among 88"):
        sweep.run(0, 89)
    with pytest.raises(ValueError, match="set 88"):
        sweep.curves(np.array([88]))
    with pytest.raises(ValueError, match="set -1"):
        sweep.trades(-1)
    with pytest.raises(ValueError, match=r"bars 0\.\.330"):
        sweep.over(0, 330)


def test_a_period_without_bars_leaves_the_cash():
    found = opened(first=330).run(0, 88)
    assert (found.final_equity[found.trades >= 0] == DEAR.cash).all()
    assert (found.exposure[found.trades >= 0] == 0.0).all()


@pytest.mark.parametrize("engine", ["masks", "bars"])
def test_a_period_is_what_the_same_bars_cut_off_behind_it_give_to_the_bit(engine):
    bars = walk(330, seed=3, tick=0.5, scale=50.0)
    for first, last in ((60, 200), (63, 128), (64, 127), (200, 200)):
        period = opened(grid=GRIDS["sma_cross"][1], bars=bars, engine=engine).over(first, last)
        alone = opened(
            grid=GRIDS["sma_cross"][1], bars=bars.head(last + 1), first=first, engine=engine
        )
        assert_same_bits(period.run(0, len(period)), alone.run(0, len(alone)))


@pytest.mark.parametrize("engine", ["masks", "bars"])
def test_a_period_without_bars_leaves_the_cash_of_the_sets_that_fit_together(engine):
    found = opened(grid="fast=4:6,slow=5", engine=engine).over(70, 69).run(0, 3)
    assert found.trades.tolist() == [0, -1, -1]
    assert found.final_equity[0] == DEAR.cash
    assert np.isnan(found.final_equity[1:]).all()


def test_whole_shares_are_not_asked_of_a_device():
    with pytest.raises(UsageError, match="cannot count whole shares: use auto or cpu"):
        opened("sma_cross", "fast=5:6,slow=20", backend="cuda", terms=Terms(whole_shares=True))


RANKED_IN_FLOAT32 = """
import numpy as np
from strategies.kernels.engines.lanes import Terms
from strategies.sweep.engine import EXECUTION, open_sweep
from strategies.sweep.grid import Grid
from tests.strategies.market import walk
grid = Grid(names=("fast", "slow"), values=(np.array([3.0, 5.0]), np.array([5.0, 12.0])))
asked = {"fixed": {}, "first": 0, "terms": Terms(), "backend": "reference", "threads": 1}
sweep = open_sweep(walk(160, seed=3), "sma_cross", grid, **asked)
numbers = np.arange(4)
ranked, exact = sweep._walked.run(numbers, "cuda"), sweep.run(0, 4)
assert (ranked.trades == exact.trades).all() and (ranked.trades == -1).sum() == 1, ranked.trades
assert np.allclose(ranked.final_equity, exact.final_equity, rtol=2e-5, equal_nan=True)
assert not np.array_equal(ranked.final_equity, exact.final_equity, equal_nan=True)
"""


def test_a_device_ranks_in_float32_what_the_reference_counts_exactly():
    done = subprocess.run(
        [sys.executable, "-c", RANKED_IN_FLOAT32],
        cwd=ROOT,
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
