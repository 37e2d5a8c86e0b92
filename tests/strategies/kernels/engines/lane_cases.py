"""Bars, bits and lanes for the tests of the walking engines."""

from __future__ import annotations

import numpy as np

from strategies.kernels.engines.lanes import METRICS, Lanes, Prices, Signals, Terms, pack
from strategies.kernels.reference import atr

FREE = Terms(cash=1_000.0, slippage=0.0)
COSTS = Terms(fee_rate=0.001, commission_per_order=3.0)
WHOLE = Terms(cash=5_000.0, fee_rate=0.00123, commission_per_order=1.5, whole_shares=True)


def priced(rows, first=0) -> Prices:
    """Prices of (open, high, low, close) a bar."""
    columns = np.array(rows, dtype=np.float64).reshape((-1, 4)).T.copy()
    names = ("open", "high", "low", "close")
    volume = np.ones(columns.shape[1])
    return Prices(**dict(zip(names, columns, strict=True)), volume=volume, first=first)


def flat_bars(*opens) -> list[tuple[float, ...]]:
    """Bars that open, peak, bottom and close at one price."""
    return [(price,) * 4 for price in opens]


def fired(bars, *, enter=(), leave=()) -> Signals:
    """One rule that enters and leaves at these bars."""
    fires = np.zeros((2, 1, bars), dtype=bool)
    fires[0, 0, list(enter)] = True
    fires[1, 0, list(leave)] = True
    return Signals(entry=pack(fires[0]), exit=pack(fires[1]))


def lane(stop=0.0, target=0.0, trail=0.0, max_bars=0) -> Lanes:
    """One lane on rule 0 and ATR row 0."""
    return Lanes(
        signal=np.zeros(1, dtype=np.int64),
        atr=np.zeros(1, dtype=np.int64),
        stop=np.array([float(stop)]),
        target=np.array([float(target)]),
        trail=np.array([float(trail)]),
        max_bars=np.array([max_bars]),
    )


def units(bars, value=1.0):
    """An ATR that is the same everywhere: levels are then given in USD."""
    return np.full((1, bars), value)


def ran(engine, rows, *, enter, leave=(), terms=FREE, first=0, atr=None, **numbers):
    """The trades of one lane."""
    prices = priced(rows, first)
    signals = fired(len(prices), enter=enter, leave=leave)
    table = units(len(prices)) if atr is None else np.array([atr], dtype=float)
    return engine.trades(prices, signals, table, lane(**numbers), terms)


def told(trade):
    """When, at what and why a trade was opened and left."""
    return trade.entry_bar, trade.exit_bar, trade.entry_price, trade.exit_price, trade.left_by


def random_prices(bars, *, seed, scale=100.0, tick=None, volatility=0.02) -> Prices:
    """A random walk with gaps; `tick` rounds prices, so that ties happen."""
    random = np.random.default_rng(seed)
    close = scale * np.exp(np.cumsum(random.normal(0.0, volatility, bars)))
    open_ = close * np.exp(random.normal(0.0, volatility / 2, bars))
    high = np.maximum(open_, close) * np.exp(np.abs(random.normal(0.0, volatility / 2, bars)))
    low = np.minimum(open_, close) * np.exp(-np.abs(random.normal(0.0, volatility / 2, bars)))
    columns = (open_, high, low, close)
    if tick:
        columns = tuple(np.maximum(np.round(x / tick), 1.0) * tick for x in columns)
        columns = tuple(np.round(x, 10) for x in columns)
    first = int(random.integers(0, max(1, bars // 3)))
    return priced(np.array(columns).T, first)


def random_rules(bars, *, seed, rules=6, often=0.05) -> Signals:
    """Rules that fire on one bar in twenty."""
    fires = np.random.default_rng(seed).random((2, rules, bars)) < often
    return Signals(entry=pack(fires[0]), exit=pack(fires[1]))


def random_lanes(count, *, seed, rules=6) -> Lanes:
    """Lanes of which about half have each a stop, a target, a trailing and a time stop."""
    random = np.random.default_rng(seed)

    def some(most):
        return np.where(random.random(count) < 0.5, 0.0, random.uniform(0.2, most, count))

    return Lanes(
        signal=random.integers(0, rules, count),
        atr=random.integers(0, 2, count),
        stop=some(4.0),
        target=some(6.0),
        trail=some(4.0),
        max_bars=np.where(random.random(count) < 0.5, 0, random.integers(1, 20, count)),
    )


def ranges(prices: Prices):
    """ATR rows of two windows."""
    return np.array([atr(prices.high, prices.low, prices.close, window) for window in (3, 14)])


def assert_outcomes(found, expected, *, rtol=1e-12, atol=1e-13):
    """Counts equal and metrics close; a ratio of noise may differ by what its noise allows."""
    for name in METRICS:
        actual, wanted = getattr(found, name), getattr(expected, name)
        if name in {"trades", "open_trades", "exposure", "hit_rate"}:
            np.testing.assert_array_equal(actual, wanted, err_msg=name)
        else:
            np.testing.assert_allclose(actual, wanted, rtol=rtol, atol=atol, err_msg=name)


def assert_trades(found, expected, *, exact=False):
    """Trade by trade; `exact` also where rounding could hide a difference."""
    keys = ("entry_bar", "exit_bar", "left_by")
    assert [[getattr(t, k) for k in keys] for t in found] == [
        [getattr(t, k) for k in keys] for t in expected
    ]
    names = ("entry_price", "exit_price", "shares", "profit")
    actual = np.array([[getattr(t, k) for k in names] for t in found]).reshape((-1, 4))
    wanted = np.array([[getattr(t, k) for k in names] for t in expected]).reshape((-1, 4))
    if exact:
        np.testing.assert_array_equal(actual[:, :3], wanted[:, :3])
    np.testing.assert_allclose(actual, wanted, rtol=1e-12, atol=1e-7)
