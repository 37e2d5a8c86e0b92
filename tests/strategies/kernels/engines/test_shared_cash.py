"""Several symbols on one account: the rules of sharing, the compiled twin, and its laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from strategies.kernels.engines import shared_cash, shared_reference, walk, walk_reference
from strategies.kernels.engines.lanes import METRICS, Terms
from tests.strategies.kernels.engines.lane_cases import (
    COSTS,
    FREE,
    WHOLE,
    assert_outcomes,
    assert_trades,
    fired,
    flat_bars,
    lane,
    priced,
    random_lanes,
    random_prices,
    random_rules,
    ranges,
    units,
)

ALL_TERMS = pytest.mark.parametrize("terms", [FREE, COSTS, WHOLE], ids=["free", "costs", "whole"])


@pytest.fixture(params=[shared_reference, shared_cash], ids=["reference", "cpu"])
def engine(request):
    return request.param


def ran(engine, rows, *, enter, leave=None, terms=FREE, **numbers):
    """The trades of one lane over symbols given by their bars and bits."""
    markets = {symbol: priced(bars) for symbol, bars in rows.items()}
    signals = {
        symbol: fired(len(bars), enter=enter.get(symbol, ()), leave=(leave or {}).get(symbol, ()))
        for symbol, bars in rows.items()
    }
    tables = {symbol: units(len(bars)) for symbol, bars in rows.items()}
    return engine.trades_shared(markets, signals, tables, lane(**numbers), terms)


def first_spent(trades, symbol):
    trade = trades[symbol][0]
    return trade.shares * trade.entry_price


def test_the_cash_of_an_open_is_split_evenly_over_the_flat_symbols(engine):
    rows = {"A": flat_bars(10, 10, 10), "B": flat_bars(20, 20, 20), "C": flat_bars(5, 5, 5)}
    trades = ran(engine, rows, enter={"A": [0], "B": [0]})
    assert first_spent(trades, "A") == pytest.approx(1000.0 / 3)
    assert first_spent(trades, "B") == pytest.approx(1000.0 / 3)
    assert trades["C"] == ()


def test_a_symbol_that_holds_takes_no_part_in_the_split(engine):
    rows = {"A": flat_bars(10, 10, 10, 10), "B": flat_bars(20, 20, 20, 20)}
    trades = ran(engine, rows, enter={"A": [0], "B": [1]})
    assert first_spent(trades, "A") == pytest.approx(500.0)
    assert first_spent(trades, "B") == pytest.approx(500.0)  # all that is left


def test_what_leaves_at_an_open_is_free_at_that_open(engine):
    rows = {"A": flat_bars(10, 10, 20, 20), "B": flat_bars(5, 5, 5, 5)}
    trades = ran(engine, rows, enter={"A": [0], "B": [1]}, leave={"A": [1]})
    assert first_spent(trades, "B") == pytest.approx((500.0 + 1000.0) / 2)


def test_what_leaves_inside_a_bar_is_free_at_the_next_open_only(engine):
    rows = {
        "A": [*flat_bars(10, 10), (10, 10, 8, 10), *flat_bars(10, 10)],
        "B": flat_bars(5, 5, 5, 5, 5),
    }
    at_once = ran(engine, rows, enter={"A": [0], "B": [1]}, stop=1)
    assert first_spent(at_once, "B") == pytest.approx(500.0)
    later = ran(engine, rows, enter={"A": [0], "B": [2]}, stop=1)
    assert first_spent(later, "B") == pytest.approx((500.0 + 450.0) / 2)


GAP = (np.nan,) * 4


def test_a_symbol_without_a_bar_is_marked_at_its_last_close_and_its_orders_wait(engine):
    rows = {"A": [*flat_bars(10, 10), GAP, GAP, (12, 12, 12, 12)], "B": flat_bars(5, 5, 5, 5, 5)}
    (trade,) = ran(engine, rows, enter={"A": [0]}, leave={"A": [1]})["A"]
    assert (trade.entry_bar, trade.exit_bar, trade.exit_price) == (1, 4, 12.0)
    markets = {symbol: priced(bars) for symbol, bars in rows.items()}
    signals = {"A": fired(5, enter=[0], leave=[1]), "B": fired(5)}
    curve = engine.curves_shared(markets, signals, {}, lane(), FREE)
    assert_allclose(curve, [[1000.0, 1000.0, 1000.0, 1000.0, 1100.0]])


def test_a_pending_entry_waits_for_a_bar_and_time_counts_own_bars(engine):
    rows = {
        "A": [*flat_bars(10), GAP, *flat_bars(11), GAP, *flat_bars(12, 13)],
        "B": flat_bars(5, 5, 5, 5, 5, 5),
    }
    (trade,) = ran(engine, rows, enter={"A": [0]}, max_bars=2)["A"]
    assert (trade.entry_bar, trade.entry_price) == (2, 11.0)
    assert (trade.exit_bar, trade.exit_price, trade.left_by) == (5, 13.0, "time")


def test_bits_on_a_bar_that_is_not_there_mean_nothing(engine):
    rows = {"A": [*flat_bars(10), GAP, *flat_bars(11, 12)]}
    assert ran(engine, rows, enter={"A": [1]})["A"] == ()


def test_whole_shares_of_a_part_leave_the_rest_as_cash(engine):
    terms = Terms(cash=1_000.0, slippage=0.0, whole_shares=True)
    rows = {"A": flat_bars(301, 301, 301), "B": flat_bars(400, 400, 400)}
    trades = ran(engine, rows, enter={"A": [0], "B": [0]}, terms=terms)
    assert [trades[symbol][0].shares for symbol in "AB"] == [1.0, 1.0]


def test_outcomes_count_symbols_and_bars_with_any_position(engine):
    rows = {"A": flat_bars(10, 10, 10, 10), "B": flat_bars(5, 5, 5, 5)}
    markets = {symbol: priced(bars) for symbol, bars in rows.items()}
    signals = {"A": fired(4, enter=[0]), "B": fired(4, enter=[1])}
    found = engine.walk_shared(markets, signals, {}, lane(), FREE)
    assert (found.open_trades[0], found.trades[0], found.exposure[0]) == (2, 0, 0.75)


# The twin and the laws


def shared_case(symbols, bars, lanes, *, seed, tick=None, gaps=0.0):
    """Symbols S0, S1, ... with gaps on one axis, and lanes for them."""
    random = np.random.default_rng(seed)
    markets, signals, tables = {}, {}, {}
    for k in range(symbols):
        prices = random_prices(bars, seed=seed + 31 * k, tick=tick)
        gone = random.random(bars) < gaps
        columns = {
            name: np.where(gone, np.nan, getattr(prices, name))
            for name in ("open", "high", "low", "close")
        }
        markets[f"S{k}"] = replace(prices, **columns, first=seed % 7)
        signals[f"S{k}"] = random_rules(bars, seed=seed + 31 * k)
        tables[f"S{k}"] = ranges(prices)
    return markets, signals, tables, random_lanes(lanes, seed=seed)


CASES = pytest.mark.parametrize(
    ("symbols", "tick", "gaps"), [(1, None, 0.0), (2, 0.25, 0.1), (5, None, 0.1), (5, 0.01, 0.3)]
)


@ALL_TERMS
@CASES
def test_the_shared_walk_equals_its_definition(symbols, tick, gaps, terms):
    given = shared_case(symbols, 150, 25, seed=symbols, tick=tick, gaps=gaps)
    assert_outcomes(
        shared_cash.walk_shared(*given, terms), shared_reference.walk_shared(*given, terms)
    )
    wanted = shared_reference.curves_shared(*given, terms)
    assert_allclose(shared_cash.curves_shared(*given, terms), wanted, rtol=1e-13)
    *market, lanes = given
    for k in range(5):
        one = (*market, lanes.part(k, k + 1), terms)
        found, expected = shared_cash.trades_shared(*one), shared_reference.trades_shared(*one)
        assert found.keys() == expected.keys()
        for symbol in expected:
            assert_trades(found[symbol], expected[symbol], exact=terms.whole_shares)


@ALL_TERMS
@pytest.mark.parametrize(
    ("shared", "alone"), [(shared_reference, walk_reference), (shared_cash, walk)],
    ids=["reference", "cpu"],
)  # fmt: skip
def test_one_symbol_alone_is_the_walk_of_its_lanes(shared, alone, terms):
    markets, signals, tables, lanes = shared_case(1, 200, 40, seed=5, tick=0.01)
    expected = alone.walk(markets["S0"], signals["S0"], tables["S0"], lanes, terms)
    assert_outcomes(shared.walk_shared(markets, signals, tables, lanes, terms), expected)


def assert_same_bits(one, other):
    for name in METRICS:
        assert_array_equal(getattr(one, name), getattr(other, name))


@ALL_TERMS
def test_the_order_the_symbols_are_given_in_changes_no_bit(engine, terms):
    markets, signals, tables, lanes = shared_case(5, 120, 20, seed=9, gaps=0.1)
    shuffled = ["S3", "S0", "S4", "S2", "S1"]
    moved = [{symbol: each[symbol] for symbol in shuffled} for each in (markets, signals, tables)]
    assert_same_bits(
        engine.walk_shared(markets, signals, tables, lanes, terms),
        engine.walk_shared(*moved, lanes, terms),
    )


def test_two_threads_give_the_bits_of_one():
    given = shared_case(4, 100, 100, seed=3, gaps=0.1)
    one, two = (shared_cash.walk_shared(*given, COSTS, threads=k) for k in (1, 2))
    assert_same_bits(one, two)
    assert_array_equal(*(shared_cash.curves_shared(*given, COSTS, threads=k) for k in (1, 2)))


def test_arguments_that_do_not_fit_together_are_refused_with_the_symbol(engine):
    markets, signals, tables, lanes = shared_case(2, 50, 3, seed=1)

    def refused(message, **change):
        parts = {"markets": markets, "signals": signals, "tables": tables, **change}
        with pytest.raises(ValueError, match=message):
            engine.walk_shared(parts["markets"], parts["signals"], parts["tables"], lanes, FREE)

    refused("at least one symbol", markets={}, signals={}, tables={})
    refused("signals are of", signals={"S0": signals["S0"]})
    refused("ATR tables are of", tables={**tables, "X": tables["S0"]})
    refused("different time axes", markets={**markets, "S1": random_prices(40, seed=1)})
    refused("S1: lanes with a stop", tables={"S0": tables["S0"]})
    bad = replace(markets["S1"], high=np.where(np.arange(50) == 7, np.nan, markets["S1"].high))
    refused("S1: high of bar 7 is nan", markets={**markets, "S1": bad})
    with pytest.raises(ValueError, match="for one lane, not for 3"):
        engine.trades_shared(markets, signals, tables, lanes, FREE)


def test_an_entry_that_the_exchange_does_not_take_leaves_its_part_as_cash(engine):
    terms = replace(WHOLE, slippage=0.0, commission_per_order=0.0, fee_rate=0.0)
    rows = {"A": flat_bars(50, 50, 50), "B": flat_bars(50.005, 50.005, 50.005)}
    trades = ran(engine, rows, enter={"A": [0], "B": [0]}, terms=terms, target=0.01)
    assert [trade.shares for trade in trades["A"]] == [50.0]
    assert trades["B"] == ()
