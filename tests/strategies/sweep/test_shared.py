"""Sets on one account for several symbols: the signals of each, on a common time axis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strategies.kernels.dispatch import kernels
from strategies.kernels.engines.lanes import METRICS, Lanes, Prices, Signals, Terms, pack
from strategies.kernels.engines.shared_reference import curves_shared, walk_shared
from strategies.registry import make_strategy
from strategies.sweep.engine import EXECUTION, open_sweep
from strategies.sweep.grid import Grid
from strategies.sweep.shared import open_shared
from tests.strategies.market import walk
from trader.core.errors import UsageError
from trader.core.market import from_ns

GRID = Grid(names=("fast", "slow"), values=(np.array([2.0, 3.0, 9.0]), np.array([5.0, 8.0])))
FIXED = dict(EXECUTION)
TERMS = Terms(cash=10_000.0, fee_rate=0.001)


def market(bars: int = 160, *, drop=(40, 41, 100)):
    """One symbol with every bar, and one that begins later and has gaps."""
    one = replace(walk(bars, seed=1), symbol="ONE")
    whole = walk(bars, seed=2)
    kept = np.setdiff1d(np.arange(20, bars), drop)
    columns = ("timestamp", "available_at", "open", "high", "low", "close", "volume")
    cut = {name: getattr(whole, name)[kept] for name in columns}
    return {"ONE": one, "TWO": replace(whole, symbol="TWO", **cut)}, kept


def opened(series, grid=GRID, **given):
    return open_shared(
        series,
        "sma_cross",
        grid,
        **{"fixed": FIXED, "begin": -1, "terms": TERMS, "backend": "reference", "threads": 1}
        | given,
    )


def by_hand(series, kept, numbers, first, bars):
    """The same set with bits of the strategy itself, put on the axis one by one."""
    markets, signals, tables = {}, {}, {}
    for symbol, own in series.items():
        spots = np.arange(bars) if symbol == "ONE" else kept
        strategy = make_strategy("sma_cross", numbers, kernels("reference"))
        fired = strategy.crossings(own)
        columns = {}
        for name in ("open", "high", "low", "close", "volume"):
            columns[name] = np.full(bars, np.nan)
            columns[name][spots] = getattr(own, name)
        markets[symbol] = Prices(**columns, first=first)
        entry, leave = np.zeros((2, bars), dtype=np.bool_)
        entry[spots], leave[spots] = fired.entry, fired.exit
        signals[symbol] = Signals(entry=pack(entry[None]), exit=pack(leave[None]))
        tables[symbol] = np.full((1, bars), np.nan)
        tables[symbol][0, spots] = kernels("reference").atr(own.high, own.low, own.close, 14)
    one = np.ones(1)
    lanes = Lanes(
        signal=np.zeros(1, dtype=np.int64),
        atr=np.zeros(1, dtype=np.int64),
        stop=2.0 * one,
        target=0.0 * one,
        trail=0.0 * one,
        max_bars=np.zeros(1, dtype=np.int64),
    )
    return markets, signals, tables, lanes, TERMS


def test_every_set_equals_the_walk_of_its_own_bits():
    series, kept = market()
    begin = int(series["ONE"].available_at[29])
    sweep = opened(series, begin=begin)
    assert sweep.first == 30
    found = sweep.run(0, len(GRID))
    for number in range(len(GRID)):
        numbers = GRID.numbers(number)
        if numbers["fast"] >= numbers["slow"]:
            assert found.trades[number] == -1
            continue
        arguments = by_hand(series, kept, numbers, 30, 160)
        wanted = walk_shared(*arguments)
        for name in METRICS:
            np.testing.assert_array_equal(getattr(found, name)[number], getattr(wanted, name)[0])
        curve = sweep.curves(np.array([number]))
        np.testing.assert_array_equal(curve, curves_shared(*arguments))
    assert (found.trades > 3).any()


def test_one_symbol_alone_is_the_sweep_of_that_symbol():
    series, _ = market()
    alone = {"ONE": series["ONE"]}
    begin = int(series["ONE"].available_at[49])
    shared = opened(alone, begin=begin).run(0, len(GRID))
    plain = open_sweep(
        series["ONE"],
        "sma_cross",
        GRID,
        fixed=FIXED,
        first=50,
        terms=TERMS,
        backend="reference",
        threads=1,
    ).run(0, len(GRID))
    for name in METRICS:
        np.testing.assert_array_equal(getattr(shared, name), getattr(plain, name))


def test_a_period_ends_where_it_was_told_and_blocks_change_nothing(monkeypatch):
    series, _ = market()
    part = opened(series).over(60, 119)
    found = part.run(0, len(GRID))
    cut = {symbol: bars.until(_moment(series["ONE"], 119)) for symbol, bars in series.items()}
    begin = int(series["ONE"].available_at[59])
    wanted = opened(cut, begin=begin).run(0, len(GRID))
    for name in METRICS:
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    assert part.curves(np.array([0, 1])).shape == (2, 60)
    monkeypatch.setattr("strategies.sweep.shared.NUMBERS_AT_ONCE", 1)
    again = part.run(1, 4)
    for name in METRICS:
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name)[1:4])
    with pytest.raises(ValueError, match="not all among"):
        part.over(0, 160)


def _moment(bars, place):
    return from_ns(bars.available_at[place])


def test_the_order_of_symbols_changes_nothing():
    series, _ = market()
    turned = dict(reversed(series.items()))
    one, other = (opened(given).run(0, len(GRID)) for given in (series, turned))
    for name in METRICS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_trades_are_told_by_symbol():
    series, _ = market()
    found = opened(series).trades(0)
    assert set(found) == {"ONE", "TWO"}
    closed = sum(trade.exit_bar >= 0 for trades in found.values() for trade in trades)
    assert closed == opened(series).run(0, 1).trades[0]
    assert opened(series).trades(5) == {}


@pytest.mark.parametrize(("name", "value"), [("engine", "masks"), ("backend", "cuda")])
def test_engines_that_cannot_share_cash_are_refused(name, value):
    with pytest.raises(UsageError, match=f"--{name} {value} cannot share cash"):
        opened(market()[0], **{name: value})
