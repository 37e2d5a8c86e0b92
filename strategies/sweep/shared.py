"""The sets of a grid on one account that trades several symbols with the same cash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal

import numpy as np

from strategies.kernels.dispatch import Backend
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
    empty_outcomes,
    pack,
)
from strategies.kernels.runs import Array
from strategies.sweep.bar_grids import BarGrid
from strategies.sweep.engine import EngineName, kernels_for
from strategies.sweep.grid import Grid
from strategies.sweep.numbers import numbers_of
from trader.core.errors import UsageError
from trader.core.market import BarSeries

NUMBERS_AT_ONCE = 1 << 25  # bits of signals; bounds the memory of one call to the engine
MODULES = {"cpu": "shared_cash", "reference": "shared_reference"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Some sets on the time axis of all symbols, ready to be walked.

    places  of the sets whose numbers fit together, among those that were asked for
    """

    places: Ints
    signals: Mapping[str, Signals]
    atr_tables: Mapping[str, Array | None]
    lanes: Lanes


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSweep:
    """The sets of a grid on one account and one period; it answers as `engine.Sweep` does.

    grids        by symbol, each over all of its own bars
    at           [U] when a bar of any symbol is complete, ns
    spots        by symbol: where in `at` its bars are
    first, last  moments of `at` that are traded, both included
    """

    backend: Literal["cpu", "reference"]
    reason: str
    grid: Grid
    grids: Mapping[str, BarGrid]
    at: Ints
    spots: Mapping[str, Ints]
    first: int
    last: int
    terms: Terms
    threads: int
    engine: Literal["bars"] = "bars"

    def __len__(self) -> int:
        return len(self.grid)

    def over(self, first: int, last: int) -> SharedSweep:
        """The same sets traded at moments first..last only; bars before warm indicators up."""
        if not 0 <= first <= last + 1 <= self.at.size:
            raise ValueError(f"moments {first}..{last} are not all among {self.at.size:,}")
        return replace(self, first=first, last=last)

    def run(self, start: int, stop: int) -> Outcomes:
        """What becomes of the sets start..stop-1; trades -1 where numbers do not fit together."""
        out, markets = empty_outcomes(stop - start), self._markets()
        more: dict[str, Any] = {"threads": self.threads} if self.backend == "cpu" else {}
        size = max(1, NUMBERS_AT_ONCE // (self.at.size * len(markets)))
        for begin in range(start, stop, size):
            joined = self._joined(np.arange(begin, min(begin + size, stop), dtype=np.int64))
            if not joined.places.size:
                continue
            found = self._engine().walk_shared(
                markets, joined.signals, joined.atr_tables, joined.lanes, self.terms, **more
            )
            for name in METRICS:
                getattr(out, name)[begin - start + joined.places] = getattr(found, name)
        return out

    def curves(self, numbers: Ints) -> Array:
        """[K, moments traded] equity of some sets, USD; NaN where numbers do not fit together."""
        out = np.full((numbers.size, self.last + 1 - self.first), np.nan)
        joined = self._joined(numbers)
        if joined.places.size:
            out[joined.places] = self._engine().curves_shared(
                self._markets(), joined.signals, joined.atr_tables, joined.lanes, self.terms
            )
        return out

    def trades(self, number: int) -> dict[str, tuple[Any, ...]]:
        """The trades of one set by symbol; their bars are places in `at`."""
        joined = self._joined(np.array([number], dtype=np.int64))
        if not joined.places.size:
            return {}
        found: dict[str, tuple[Any, ...]] = self._engine().trades_shared(
            self._markets(), joined.signals, joined.atr_tables, joined.lanes, self.terms
        )
        return found

    def _engine(self) -> Any:
        return import_module(f"strategies.kernels.engines.{MODULES[self.backend]}")

    def _markets(self) -> dict[str, Prices]:
        """Bars of every symbol on the common axis; NaN where it has none."""
        found = {}
        for symbol, one in self.grids.items():
            columns = {
                name: self._spread(symbol, getattr(one.bars, name), np.nan)
                for name in ("open", "high", "low", "close", "volume")
            }
            found[symbol] = Prices(**columns, first=self.first)
        return found

    def _spread(self, symbol: str, values: Any, blank: Any) -> Any:
        """[..., T] values of a symbol on the common axis up to the last moment that is traded."""
        spots = self.spots[symbol]
        count = int(np.searchsorted(spots, self.last, side="right"))
        out = np.full((*values.shape[:-1], self.last + 1), blank, dtype=values.dtype)
        out[..., spots[:count]] = values[..., :count]
        return out

    def _joined(self, numbers: Ints) -> Joined:
        rules = {symbol: one.rules(numbers) for symbol, one in self.grids.items()}
        first = next(iter(rules.values()))  # places and lanes follow from the numbers alone
        return Joined(
            places=first.places,
            signals={
                symbol: Signals(
                    entry=self._moved(symbol, one.signals.entry),
                    exit=self._moved(symbol, one.signals.exit),
                )
                for symbol, one in rules.items()
            },
            atr_tables={
                symbol: None
                if one.atr_table is None
                else self._spread(symbol, one.atr_table, np.nan)
                for symbol, one in rules.items()
            },
            lanes=first.lanes,
        )

    def _moved(self, symbol: str, words: Words) -> Words:
        """Bits [R, W] of a symbol's own bars on the common axis."""
        bars = len(self.grids[symbol].bars)
        octets = words.astype("<u8").view(np.uint8)
        own = np.unpackbits(octets, axis=1, bitorder="little", count=words.shape[1] * BITS)
        return pack(self._spread(symbol, own[:, :bars].astype(np.bool_), False))


def open_shared(
    series: Mapping[str, BarSeries],
    strategy: str,
    grid: Grid,
    *,
    fixed: Mapping[str, float],
    begin: int,
    terms: Terms,
    engine: EngineName = "auto",
    backend: Backend = "auto",
    threads: int,
) -> SharedSweep:
    """A sweep on one account over all symbols, from the first bar that ends after `begin` (ns).

    Arguments and errors are those of `engine.open_sweep`; UsageError for an engine or a device that
    does not work shared cash.
    """
    if engine == "masks":
        raise UsageError("--engine masks cannot share cash between symbols: use auto or bars")
    if backend == "cuda":
        raise UsageError("--backend cuda cannot share cash between symbols: use auto or cpu")
    at = np.unique(np.concatenate([bars.available_at for bars in series.values()]))
    work = len(grid) * sum(len(bars) for bars in series.values())
    taken = kernels_for(backend, work)
    numbers = numbers_of(strategy, grid, fixed, max(len(bars) for bars in series.values()))
    return SharedSweep(
        backend="cpu" if taken.backend == "cpu" else "reference",
        reason=f"shared cash is walked bar by bar ({taken.reason})",
        grid=grid,
        grids={
            symbol: BarGrid(
                numbers=numbers, bars=bars, first=0, terms=terms, kernels=taken, threads=threads
            )
            for symbol, bars in sorted(series.items())
        },
        at=at,
        spots={symbol: np.searchsorted(at, bars.available_at) for symbol, bars in series.items()},
        first=int(np.searchsorted(at, begin, side="right")),
        last=int(at.size - 1),
        terms=terms,
        threads=threads,
    )
