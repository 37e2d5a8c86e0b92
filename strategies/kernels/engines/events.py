"""The event-driven engine: finds the trades of a lane by bit scans and prices each of them in O(1).

For one position at a time and levels that do not move: neither trailing stops nor time stops, and
shares of any fraction. Equal to `walk_reference` trade by trade, whatever the
number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from strategies.kernels.engines.event_lanes import ANNUAL, EQUITY, ROWS
from strategies.kernels.engines.event_tables import MOST_BARS, EventTables, event_tables
from strategies.kernels.engines.event_tiles import ROLES, pair_tiles, row_tiles
from strategies.kernels.engines.lanes import (
    BITS,
    METRICS,
    Ints,
    Lanes,
    Outcomes,
    Prices,
    Signals,
    Terms,
    Words,
)
from strategies.kernels.engines.masks import compiled, summarise
from strategies.kernels.engines.walk import outcomes_of
from strategies.kernels.engines.walk_checks import require_sound
from strategies.kernels.engines.walk_steps import terms_row
from strategies.kernels.runs import Array
from strategies.kernels.threads import on_threads
from trader.core.metrics import MINIMUM_PERIODS_FOR_ANNUAL

PAIRS: Callable[..., None] = pair_tiles
ROWS_OF_BITS: Callable[..., None] = row_tiles


def walk_events(
    prices: Prices,
    signals: Signals,
    atr_table: Array | None,
    lanes: Lanes,
    terms: Terms,
    *,
    threads: int = 1,
) -> Outcomes:
    """What becomes of every lane; arguments and errors are those of the reference.

    threads  how many work between them; it changes no bit of the outcome
    raises   ValueError too for what this engine is not made for, see `unfit`
    """
    require_sound(prices, signals, atr_table, lanes, terms)
    moving = bool(lanes.trail.any()), bool(lanes.max_bars.any())
    reason = unfit(len(prices), terms, trailing=moving[0], timed=moving[1])
    if reason:
        raise ValueError(f"the event engine does not walk these lanes: {reason}")
    market = Market(
        tables=event_tables(prices, terms), first=prices.first, last=len(prices) - 1, terms=terms
    )
    return run_rows(
        listed(lanes.signal, lanes.signal, lanes.atr, lanes.stop, lanes.target),
        0,
        len(lanes),
        entry=with_summary(signals.entry, len(prices)),
        exits=with_summary(signals.exit, len(prices)),
        market=market,
        atr_table=atr_table,
        threads=threads,
    )


def unfit(bars: int, terms: Terms, *, trailing: bool, timed: bool) -> str:
    """Why the event engine cannot walk such lanes; an empty text where it can."""
    if terms.whole_shares:
        return "whole shares and ticks are counted bar by bar"
    if trailing:
        return "a trailing stop moves with every bar"
    if timed:
        return "max_bars ends a position by its age"
    if bars > MOST_BARS:
        return f"{bars:,} bars are more than the {MOST_BARS:,} its tables are made for"
    return ""


def listed(one_row: Ints, other_row: Ints, atr_row: Ints, stop: Array, target: Array) -> Roles:
    """Roles of a plain list of lanes, every array [L]; row -1 for numbers that mean nothing."""
    strides = np.ones((ROLES, 1), dtype=np.int64)
    strides[5:] = 0
    return Roles(
        sizes=np.array([one_row.size], dtype=np.int64),
        strides=strides,
        one_row=one_row,
        other_row=other_row,
        atr_row=atr_row,
        stop=stop,
        target=target,
        low=np.zeros(1),
        high=np.ones(1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """What each set of a grid is made of; role r of a set is looked up at Σ place × strides[r].

    sizes      [A] places on each axis; the last axis runs fastest
    strides    [7, A], of the seven arrays below, in their order
    one_row    line that is above, or row of entry bits; -1 for numbers that mean nothing
    other_row  line that is below, or row of exit bits; -1 likewise
    atr_row    row of the ATR table; -1 where none is used
    stop, target  in ATR, 0 for none
    low, high  a set is valid only where low < high; NaN never is
    """

    sizes: Ints
    strides: Ints
    one_row: Ints
    other_row: Ints
    atr_row: Ints
    stop: Array
    target: Array
    low: Array
    high: Array

    def arrays(self) -> tuple[Any, ...]:
        """As the compiled functions take them."""
        return tuple(np.ascontiguousarray(getattr(self, field.name)) for field in fields(self))


def run_pairs(
    roles: Roles,
    start: int,
    stop: int,
    *,
    table: Array,
    keys: Any,
    begins: Ints,
    market: Market,
    atr_table: Array | None,
    threads: int,
) -> Outcomes:
    """Sets start..stop-1 that are in while their line one_row is above their line other_row.

    table, keys  lines [P, T padded] and their keys
    begins       [P] first bar on which each line has a value; it has one on every bar after
    """
    out = np.empty((ROWS, stop - start))
    counter = np.zeros(1, dtype=np.int64)

    def work(_: int) -> None:
        PAIRS(
            counter, *roles.arrays(), start, stop, table, keys, begins, market.atr(atr_table),
            *market.arrays, out,
        )  # fmt: skip

    return market.outcomes(out, work, threads)


def run_rows(
    roles: Roles,
    start: int,
    stop: int,
    *,
    entry: Words,
    exits: Words,
    market: Market,
    atr_table: Array | None,
    threads: int,
) -> Outcomes:
    """Sets start..stop-1 that trade by row one_row of the entry and other_row of the exit bits."""
    out = np.empty((ROWS, stop - start))
    counter = np.zeros(1, dtype=np.int64)

    def work(_: int) -> None:
        ROWS_OF_BITS(
            counter, *roles.arrays(), start, stop, entry, exits, market.atr(atr_table),
            *market.arrays, out,
        )  # fmt: skip

    return market.outcomes(out, work, threads)


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """Bars, the part of them that is traded, and on what terms."""

    tables: EventTables
    first: int
    last: int
    terms: Terms

    @property
    def arrays(self) -> tuple[Any, ...]:
        """As the compiled functions take them."""
        tables = self.tables
        bounds = (self.first, self.last, terms_row(self.terms))
        return (tables.bars, tables.spans, tables.reaches, *bounds)

    def atr(self, table: Array | None) -> Array:
        """The ATR table, or something that is never read."""
        return self.tables.reaches if table is None else np.ascontiguousarray(table)

    def outcomes(self, out: Array, work: Callable[[int], object], threads: int) -> Outcomes:
        """What `work` makes of the columns of `out`, on so many threads."""
        if threads < 1:
            raise ValueError(f"threads {threads} is below 1")
        bars = self.last - self.first + 1
        if bars > 0 and out.shape[1] > 0:
            on_threads(work, threads)
        else:
            out[:] = np.array([self.terms.cash, *[np.nan] * 3, *[0.0] * 3, np.nan, 0.0, 0.0])[
                :, None
            ]
        growth = out[EQUITY] / self.terms.cash - 1.0
        years = bars / self.terms.periods_per_year
        out[ANNUAL] = np.nan
        if years >= MINIMUM_PERIODS_FOR_ANNUAL:
            some = growth > -1.0
            np.power(1.0 + growth, 1.0 / years, out=out[ANNUAL], where=some)
            out[ANNUAL] -= 1.0
        return outcomes_of(out[: len(METRICS)])


def with_summary(rows: Words, bars: int) -> Words:
    """Rows of bits [R, W or more] with the summary words that `seek` reads after ceil(T / 64)."""
    words = -(-bars // BITS)
    found = np.zeros((rows.shape[0], words + -(-words // BITS)), dtype=np.uint64)
    found[:, :words] = rows[:, :words]
    _summarise_all(found, words)
    return found


@compiled
def _summarise_all(rows: Words, words: int) -> None:
    for row in range(rows.shape[0]):
        summarise(rows, row, words)
