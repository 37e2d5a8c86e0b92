"""Signal bits of many sets at once: those of each strategy itself, where it can be made."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from strategies.kernels.dispatch import kernels
from strategies.kernels.engines import crossings
from strategies.kernels.engines.lanes import pack
from strategies.kernels.tables import rsi_table
from strategies.registry import STRATEGIES, default_parameters, make_strategy
from strategies.sweep import families
from tests.strategies.market import closes, reference_bars, walk
from trader.core.clock import new_york
from trader.core.errors import ConfigError
from trader.core.market import Timeframe
from trader.data.source import open_data

VALUES = {
    "sma_cross": {"fast": [0, 1, 2, 5.5, 9, 40], "slow": [1, 3, 9, 40, 400]},
    "rsi_reversion": {
        "rsi_window": [0, 1, 2, 14, 500],
        "oversold": [-1, 0, 30, 45.5, 50, 100, np.nan],
        "overbought": [30, 50, 70, 100, np.inf],
    },
    "macd_momentum": {"fast": [0, 1, 3, 12], "slow": [3, 12, 26, 300], "signal": [0, 1, 9, 300]},
    "atr_trend": {
        "sma_window": [0, 1, 5, 50],
        "atr_window": [1, 14, 2.5, np.nan],
        "band_atr": [-1, 0, 0.5, 3, np.inf, np.nan],
    },
    "buy_and_hold": {},
}


def sample():
    return open_data("sample", new_york(), seed=7).bars("AAPL", Timeframe.DAY)


SERIES = {
    "sample": sample,
    "regression test": reference_bars,
    "ties": lambda: walk(260, seed=260, tick=1.0),
    "few bars": lambda: walk(5, seed=5),
    "a word and a bar": lambda: walk(65, seed=65),
    "constant": lambda: closes(np.full(130, 7.0)),
}


def columns_of(strategy):
    sets = list(product(*VALUES[strategy].values()))
    table = np.array(sets, dtype=np.float64).reshape(len(sets), -1)
    return dict(zip(VALUES[strategy], table.T, strict=True)), len(sets)


def test_every_registered_strategy_is_tested_here():
    assert set(VALUES) == set(STRATEGIES)
    for strategy, values in VALUES.items():
        assert set(values) == set(default_parameters(strategy))


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("strategy", sorted(VALUES))
@pytest.mark.parametrize("series", sorted(SERIES))
def test_bits_are_those_of_the_strategy_and_sets_are_valid_where_it_can_be_made(
    series, strategy, backend
):
    bars, asked = SERIES[series](), kernels("reference")
    columns, sets = columns_of(strategy)
    if backend == "reference":
        some = slice(0, None, 7)
        columns = {name: values[some] for name, values in columns.items()}
        sets = len(range(sets)[some])
    found, row = families.signals(
        strategy, bars, columns, sets=sets, kernels=kernels(backend), threads=2
    )
    assert found.entry.shape == found.exit.shape == (row.max() + 1, -(-len(bars) // 64))
    for number in range(sets):
        numbers = {name: float(values[number]) for name, values in columns.items()}
        try:
            made = make_strategy(strategy, numbers, asked)
        except ConfigError:
            assert row[number] == -1, numbers
            continue
        assert row[number] >= 0, numbers
        fired = made.crossings(bars)
        expected = pack(np.stack([fired.entry, fired.exit]))
        np.testing.assert_array_equal(found.entry[row[number]], expected[0], err_msg=str(numbers))
        np.testing.assert_array_equal(found.exit[row[number]], expected[1], err_msg=str(numbers))


def test_sets_with_the_same_numbers_share_one_row():
    columns = {"fast": np.array([3.0, 5.0, 3.0, 9.0]), "slow": np.array([9.0, 9.0, 9.0, 5.0])}
    found, row = families.signals(
        "sma_cross", walk(100), columns, sets=4, kernels=kernels("cpu"), threads=1
    )
    assert row.tolist() == [0, 1, 0, -1]
    assert found.entry.shape == (2, 2)


def test_the_number_of_threads_changes_no_bit():
    bars = walk(300, seed=9, tick=0.5)
    for strategy in sorted(set(VALUES) - {"buy_and_hold"}):
        columns, sets = columns_of(strategy)
        one, two = (
            families.signals(
                strategy, bars, columns, sets=sets, kernels=kernels("cpu"), threads=threads
            )[0]
            for threads in (1, 2)
        )
        np.testing.assert_array_equal(one.entry, two.entry)
        np.testing.assert_array_equal(one.exit, two.exit)


def test_numbers_of_any_layout_give_the_same_bits_by_the_same_compiled_version():
    bars = walk(130, seed=4)
    table = rsi_table(bars.close, np.array([3, 5]))
    rows, levels = np.array([0, 1, 1]), np.array([30.0, 40.0, 50.0])
    known = crossings.level_crossings(table, rows, levels)
    versions = len(crossings._level_crossings.signatures)
    for spread in (np.repeat(levels, 3)[::3], np.stack([levels, levels]).T[:, 0]):
        found = crossings.level_crossings(table, np.repeat(rows, 2)[::2], spread)
        for words, expected in zip(found, known, strict=True):
            np.testing.assert_array_equal(words, expected)
    assert len(crossings._level_crossings.signatures) == versions
