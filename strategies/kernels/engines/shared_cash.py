"""Several symbols on one account, compiled: the twin of `shared_reference`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from strategies.kernels.engines.lanes import (
    BITS,
    METRICS,
    Lanes,
    Outcomes,
    Prices,
    Signals,
    Terms,
    Words,
)
from strategies.kernels.engines.shared_steps import LEG_SYMBOL, SHARED_COLUMNS, walk_accounts
from strategies.kernels.engines.walk import lane_columns, outcomes_of, over_tiles
from strategies.kernels.engines.walk_checks import require_one, require_shared
from strategies.kernels.engines.walk_money import LaneTrade
from strategies.kernels.engines.walk_record import trades_of
from strategies.kernels.engines.walk_steps import terms_row
from strategies.kernels.engines.walk_whole import fills_of, rates_row
from strategies.kernels.runs import Array

Tables = Mapping[str, Array | None]
LANES_A_TILE = 16
COLUMNS = ("open", "high", "low", "close")
WALK: Callable[..., int] = walk_accounts
NO_CURVE = np.empty((0, 0))
NO_LEGS = np.empty((0, SHARED_COLUMNS))


def walk_shared(
    markets: Mapping[str, Prices],
    signals: Mapping[str, Signals],
    atr_tables: Tables,
    lanes: Lanes,
    terms: Terms,
    *,
    threads: int = 1,
) -> Outcomes:
    """What becomes of every lane; arguments and errors are those of the reference.

    threads  how many lanes are walked at once; it changes no bit of the outcome
    """
    require_shared(markets, signals, atr_tables, lanes, terms)
    shared = _arrays(markets, signals, atr_tables, terms)
    out = np.empty((len(METRICS), len(lanes)))

    def walk_tile(start: int) -> None:
        part = slice(start, start + LANES_A_TILE)
        columns = lane_columns(lanes.part(part.start, part.stop))
        WALK(*shared, *columns, out, NO_CURVE, NO_LEGS, start)

    over_tiles(walk_tile, len(lanes), threads, LANES_A_TILE)
    return outcomes_of(out)


def curves_shared(
    markets: Mapping[str, Prices],
    signals: Mapping[str, Signals],
    atr_tables: Tables,
    lanes: Lanes,
    terms: Terms,
    *,
    threads: int = 1,
) -> Array:
    """Equity of every lane at every close, [L, n] USD; raises as `walk_shared`."""
    require_shared(markets, signals, atr_tables, lanes, terms)
    shared = _arrays(markets, signals, atr_tables, terms)
    out = np.empty((len(METRICS), len(lanes)))
    equity = np.empty((len(lanes), next(iter(markets.values())).traded))

    def walk_tile(start: int) -> None:
        part = slice(start, start + LANES_A_TILE)
        columns = lane_columns(lanes.part(part.start, part.stop))
        WALK(*shared, *columns, out, equity, NO_LEGS, start)

    over_tiles(walk_tile, len(lanes), threads, LANES_A_TILE)
    return equity


def trades_shared(
    markets: Mapping[str, Prices],
    signals: Mapping[str, Signals],
    atr_tables: Tables,
    lanes: Lanes,
    terms: Terms,
) -> dict[str, tuple[LaneTrade, ...]]:
    """The trades of one lane by symbol, oldest first, an open one last; raises as `walk_shared`."""
    require_shared(markets, signals, atr_tables, lanes, terms)
    require_one(lanes)
    bars = len(next(iter(markets.values())))
    legs = np.empty((len(markets) * (bars + 1), SHARED_COLUMNS))
    count = WALK(
        *_arrays(markets, signals, atr_tables, terms),
        *lane_columns(lanes),
        np.empty((len(METRICS), 1)),
        np.empty((1, 0)),
        legs,
        0,
    )
    listed = legs[:count]
    return {
        symbol: trades_of(listed[listed[:, LEG_SYMBOL] == place])
        for place, symbol in enumerate(sorted(markets))
    }


def _arrays(
    markets: Mapping[str, Prices],
    signals: Mapping[str, Signals],
    atr_tables: Tables,
    terms: Terms,
) -> tuple[Any, ...]:
    """All symbols in the order of their names: prices [N, 4, T], bits [N, R, W], ATR [N, A, T]."""
    names = sorted(markets)
    prices = np.array([[getattr(markets[s], k) for k in COLUMNS] for s in names], dtype=np.float64)
    bars = prices.shape[2]
    tables = [table for symbol in names if (table := atr_tables.get(symbol)) is not None]
    atr = np.empty((0, 0, 0))
    if len(tables) == len(names):
        rows = min(table.shape[0] for table in tables)
        atr = np.array([table[:rows, :bars] for table in tables])
    fills = np.empty((0, 0, 0), dtype=np.int64)
    if terms.whole_shares:
        fills = np.array([fills_of(markets[s].open, markets[s].close, terms) for s in names])
    return (
        next(iter(markets.values())).first,
        prices,
        _words([signals[symbol].entry for symbol in names], bars),
        _words([signals[symbol].exit for symbol in names], bars),
        fills,
        terms_row(terms),
        rates_row(terms),
        atr,
    )


def _words(bits: list[Words], bars: int) -> Words:
    rules = min(words.shape[0] for words in bits)
    return np.array([words[:rules, : -(-bars // BITS)] for words in bits])
