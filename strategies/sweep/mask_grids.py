"""Sets of a grid on the event-driven engine: tables once, then blocks of sets at any period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from strategies.kernels.dispatch import KernelSet
from strategies.kernels.engines.event_pairs import keys_of
from strategies.kernels.engines.event_tables import EventTables, event_tables
from strategies.kernels.engines.events import (
    Market,
    Roles,
    listed,
    run_pairs,
    run_rows,
    with_summary,
)
from strategies.kernels.engines.lanes import (
    BITS,
    METRICS,
    Ints,
    Outcomes,
    Prices,
    Terms,
    Words,
    empty_outcomes,
)
from strategies.kernels.runs import Array
from strategies.kernels.tables import atr_table, sma_table
from strategies.registry import default_parameters
from strategies.sweep.families import (
    FAMILIES,
    signals,
    valid,
    valid_alone,
    windows_of,
)
from strategies.sweep.numbers import Numbers
from trader.core.market import BarSeries

MOST_TABLE_BYTES = 1 << 28  # of lines or of bits; above, sets are worked in smaller blocks
MOST_PRICE = 1e150  # above, sums over a window may overflow and lines have holes


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Moving averages of every window of a grid.

    table, keys  [P, T padded], see `event_pairs`
    begins       [P] first bar with a value
    """

    table: Array
    keys: Any
    begins: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Bits:
    """Signals of every rule of a grid, [*, W + summary]."""

    entry: Words
    exits: Words


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskGrid:
    """The sets of a grid over bars of one symbol, with everything that is computed only once.

    roles   what each set is made of; None where the tables would not fit in memory
    tables  lines where a position is held while one is above another, else bits
    atr     table of the stops and targets, and the window of each of its rows
    """

    numbers: Numbers
    bars: BarSeries
    terms: Terms
    kernels: KernelSet
    threads: int
    events: EventTables
    roles: Roles | None
    tables: Lines | Bits | None
    atr: Array | None
    atr_windows: Ints

    def run(self, start: int, stop: int, first: int, last: int) -> Outcomes:
        """What becomes of the sets start..stop-1 over bars first..last."""
        market = Market(tables=self.events, first=first, last=last, terms=self.terms)
        if self.roles is None:
            return self._run_blocks(start, stop, market)
        shared: dict[str, Any] = {
            "market": market, "atr_table": self.atr, "threads": self.threads,
        }  # fmt: skip
        if isinstance(self.tables, Lines):
            lines = self.tables
            return run_pairs(
                self.roles, start, stop, table=lines.table, keys=lines.keys, begins=lines.begins,
                **shared,
            )  # fmt: skip
        assert self.tables is not None
        return run_rows(
            self.roles, start, stop, entry=self.tables.entry, exits=self.tables.exits, **shared
        )

    def _run_blocks(self, start: int, stop: int, market: Market) -> Outcomes:
        """Sets whose tables do not fit in memory together, some at a time."""
        out = empty_outcomes(stop - start)
        step = max(1, MOST_TABLE_BYTES // (len(self.bars) * 8 * max(1, len(self.numbers.own))))
        for begin in range(start, stop, step):
            numbers = np.arange(begin, min(begin + step, stop), dtype=np.int64)
            columns = self.numbers.columns(numbers)
            found, row = signals(
                self.numbers.strategy,
                self.bars,
                {name: columns[name] for name in self.numbers.own},
                sets=numbers.size,
                kernels=self.kernels,
                threads=self.threads,
            )
            atr_row = np.full(numbers.size, -1, dtype=np.int64)
            if self.atr is not None:
                atr_row = np.searchsorted(self.atr_windows, columns["stop_window"]).astype(np.int64)
            part = run_rows(
                listed(row, row, atr_row, columns["stop_atr"], columns["target_atr"]),
                0,
                numbers.size,
                entry=with_summary(found.entry, len(self.bars)),
                exits=with_summary(found.exit, len(self.bars)),
                market=market,
                atr_table=self.atr,
                threads=self.threads,
            )
            for name in METRICS:
                getattr(out, name)[begin - start : begin - start + numbers.size] = getattr(
                    part, name
                )
        return out


def mask_grid(
    numbers: Numbers,
    bars: BarSeries,
    prices: Prices,
    terms: Terms,
    kernels: KernelSet,
    *,
    threads: int,
) -> MaskGrid:
    """Everything that is computed once for a grid; the engine has been chosen before."""
    atr, atr_windows = None, np.zeros(0, dtype=np.int64)
    if numbers.uses("stop_atr") or numbers.uses("target_atr"):
        atr_windows, _ = windows_of(numbers.axis("stop_window"))
        atr = atr_table(prices.high, prices.low, prices.close, atr_windows, threads)
    made = _lines(numbers, prices, threads) or _bits(numbers, bars, kernels, threads)
    roles, tables = None, None
    if made is not None:
        tables, one_row, other_row, names = made
        roles = _roles(numbers, names, one_row, other_row, atr_windows)
    return MaskGrid(
        numbers=numbers,
        bars=bars,
        terms=terms,
        kernels=kernels,
        threads=threads,
        events=event_tables(prices, terms),
        roles=roles,
        tables=tables,
        atr=atr,
        atr_windows=atr_windows,
    )


Made = tuple[Lines | Bits, Ints, Ints, tuple[Sequence[str], Sequence[str]]]


def _roles(
    numbers: Numbers,
    names: tuple[Sequence[str], Sequence[str]],
    one_row: Ints,
    other_row: Ints,
    atr_windows: Ints,
) -> Roles:
    """What each set is made of, by the names of the numbers that its two rows depend on."""
    family = FAMILIES.get(numbers.strategy)
    low, high = np.zeros(1), np.ones(1)
    ordered: tuple[str, ...] = ()
    if family is not None and family.ordered is not None:
        ordered = family.ordered
        low, high = (numbers.axis(name) for name in ordered)
    atr_row = np.full(numbers.axis("stop_window").size, -1, dtype=np.int64)
    if atr_windows.size:
        atr_row = np.searchsorted(atr_windows, numbers.axis("stop_window")).astype(np.int64)
    dependent = [*names, ["stop_window"], ["stop_atr"], ["target_atr"], ordered[:1], ordered[1:]]
    return Roles(
        sizes=np.array(numbers.grid.shape, dtype=np.int64),
        strides=np.stack([numbers.strides(some) for some in dependent]),
        one_row=one_row,
        other_row=other_row,
        atr_row=atr_row,
        stop=numbers.axis("stop_atr"),
        target=numbers.axis("target_atr"),
        low=low,
        high=high,
    )


def _lines(numbers: Numbers, prices: Prices, threads: int) -> Made | None:
    """Averages of every window, where the strategy is a cross of two of them."""
    if numbers.strategy != "sma_cross" or not len(prices) or prices.close.max() > MOST_PRICE:
        return None
    fast, slow = numbers.axis("fast"), numbers.axis("slow")
    both = np.concatenate((fast, slow))
    sound = valid_alone(numbers.strategy, "fast", both)
    windows, place = windows_of(both[sound])
    if windows.size * len(prices) * 10 > MOST_TABLE_BYTES or not windows.size:
        return None
    row = np.full(both.size, -1, dtype=np.int64)
    row[sound] = place
    table = sma_table(prices.close, windows, threads)
    lines = Lines(table=table, keys=keys_of(table, threads), begins=windows - 1)
    return lines, row[: fast.size], row[fast.size :], (("fast",), ("slow",))


def _bits(numbers: Numbers, bars: BarSeries, kernels: KernelSet, threads: int) -> Made | None:
    """Signals of every combination of the numbers that they depend on."""
    family = FAMILIES.get(numbers.strategy)
    entry_names = exit_names = numbers.own
    if family is not None:
        entry_names, exit_names = family.entry, family.exit
    rules = numbers.product_size(entry_names) + numbers.product_size(exit_names)
    if rules * (len(bars) + BITS) > MOST_TABLE_BYTES * 8:
        return None
    entry, one_row = _some_bits(numbers, entry_names, bars, kernels, threads)
    if entry_names == exit_names:
        exits, other_row = entry, one_row
    else:
        exits, other_row = _some_bits(numbers, exit_names, bars, kernels, threads)
    size = len(bars)
    tables = Bits(entry=with_summary(entry[0], size), exits=with_summary(exits[1], size))
    return tables, one_row, other_row, (entry_names, exit_names)


def _some_bits(
    numbers: Numbers, names: tuple[str, ...], bars: BarSeries, kernels: KernelSet, threads: int
) -> tuple[tuple[Words, Words], Ints]:
    """Entry and exit bits of every combination of some numbers, and the row of each; -1 for none.

    Only those bits count that depend on these numbers alone; the other numbers stand at anything.
    """
    strategy, columns = numbers.strategy, numbers.product(names)
    family = FAMILIES.get(strategy)
    if family is None or not names:
        found, row = signals(
            strategy,
            bars,
            columns,
            sets=numbers.product_size(names),
            kernels=kernels,
            threads=threads,
        )
        return (found.entry, found.exit), row
    sound = np.ones(numbers.product_size(names), dtype=np.bool_)
    if set(names) == set(numbers.own):
        sound = valid(strategy, columns, kernels)
    else:
        for name in names:
            sound &= valid_alone(strategy, name, columns[name])
    anything = {
        name: np.full(int(sound.sum()), 1.0 if isinstance(value, int) else np.nan)
        for name, value in default_parameters(strategy).items()
    }
    row = np.where(sound, np.cumsum(sound) - 1, -1)
    rules = {**anything, **{name: values[sound] for name, values in columns.items()}}
    return family.bits(bars, rules, threads), row.astype(np.int64)
