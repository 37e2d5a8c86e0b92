"""Sets of a grid on the bar-by-bar engines: any strategy, and every way to leave."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np

from strategies.kernels.dispatch import KernelSet
from strategies.kernels.engines.lanes import (
    METRICS,
    Ints,
    Lanes,
    Outcomes,
    Prices,
    Signals,
    Terms,
    empty_outcomes,
)
from strategies.kernels.runs import Array
from strategies.sweep.families import signals
from strategies.sweep.numbers import DISTANCES, SETS_AT_ONCE, Numbers
from trader.core.market import BarSeries

Walker = Literal["reference", "cpu", "cuda"]
BITS_AT_ONCE = 1 << 28  # of signals, so that memory does not grow with sets × bars
MODULES = {
    "reference": "engines.walk_reference",
    "cpu": "engines.walk",
    "cuda": "cuda.sweep",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Some sets ready to be walked.

    places  of the sets whose numbers fit together, among those that were asked for
    """

    places: Ints
    signals: Signals
    atr_table: Array | None
    lanes: Lanes


@dataclass(frozen=True, slots=True, kw_only=True)
class BarGrid:
    """The sets of a grid over bars of one symbol up to the newest that is traded."""

    numbers: Numbers
    bars: BarSeries
    first: int
    terms: Terms
    kernels: KernelSet
    threads: int

    @property
    def prices(self) -> Prices:
        """The bars as the engines take them."""
        bars = self.bars
        columns = (bars.open, bars.high, bars.low, bars.close, bars.volume)
        names = ("open", "high", "low", "close", "volume")
        arrays: dict[str, Any] = {
            name: np.ascontiguousarray(x, dtype=np.float64)
            for name, x in zip(names, columns, strict=True)
        }
        return Prices(**arrays, first=self.first)

    def rules(self, numbers: Ints) -> Rules:
        """Signals and lanes of some sets."""
        columns = self.numbers.columns(numbers)
        own = {name: columns[name] for name in self.numbers.own}
        found, row = signals(
            self.numbers.strategy,
            self.bars,
            own,
            sets=numbers.size,
            kernels=self.kernels,
            threads=self.threads,
        )
        places = np.flatnonzero(row >= 0)
        at = {name: values[places] for name, values in columns.items()}
        levels = np.any([at[name] > 0.0 for name in DISTANCES], axis=0)
        windows, window = np.unique(at["stop_window"][levels], return_inverse=True)
        atr = np.full(places.size, -1, dtype=np.int64)
        atr[levels] = window
        bars = self.bars
        table = [self.kernels.atr(bars.high, bars.low, bars.close, int(size)) for size in windows]
        return Rules(
            places=places,
            signals=found,
            atr_table=np.stack(table) if table else None,
            lanes=Lanes(
                signal=row[places],
                atr=atr,
                stop=at["stop_atr"],
                target=at["target_atr"],
                trail=at["trail_atr"],
                max_bars=at["max_bars"].astype(np.int64),
            ),
        )

    def run(self, numbers: Ints, walker: Walker) -> Outcomes:
        """What becomes of some sets; a device works in float32, which is good enough to rank."""
        out = empty_outcomes(numbers.size)
        walk = import_module(f"strategies.kernels.{MODULES[walker]}").walk
        more: dict[Walker, dict[str, Any]] = {
            "reference": {},
            "cpu": {"threads": self.threads},
            "cuda": {"dtype": np.float32},
        }
        prices = self.prices
        size = max(1, min(SETS_AT_ONCE, BITS_AT_ONCE // max(len(self.bars), 1)))
        for begin in range(0, numbers.size, size):
            rules = self.rules(numbers[begin : begin + size])
            if not rules.places.size:
                continue
            found = walk(
                prices, rules.signals, rules.atr_table, rules.lanes, self.terms, **more[walker]
            )
            for name in METRICS:
                getattr(out, name)[begin + rules.places] = getattr(found, name)
        return out

    def confirm(self, numbers: Ints, walker: Walker) -> Outcomes:
        """As `run`, in float64 where that was not what ranked them."""
        return self.run(numbers, _on_cpu(walker))

    def curves(self, numbers: Ints, walker: Walker) -> Array:
        """[K, n] equity of some sets at every close, USD; NaN where numbers do not fit together."""
        engine = import_module(f"strategies.kernels.{MODULES[_on_cpu(walker)]}")
        out = np.full((numbers.size, len(self.bars) - self.first), np.nan)
        rules = self.rules(numbers)
        if rules.places.size:
            out[rules.places] = engine.curves(
                self.prices, rules.signals, rules.atr_table, rules.lanes, self.terms
            )
        return out

    def trades(self, number: int, walker: Walker) -> tuple[Any, ...]:
        """The trades of one set, oldest first, an open one last; none where numbers do not fit."""
        engine = import_module(f"strategies.kernels.{MODULES[_on_cpu(walker)]}")
        rules = self.rules(np.array([number], dtype=np.int64))
        if not rules.places.size:
            return ()
        found: tuple[Any, ...] = engine.trades(
            self.prices, rules.signals, rules.atr_table, rules.lanes, self.terms
        )
        return found


def _on_cpu(walker: Walker) -> Walker:
    """What is shown is computed on the CPU, and a few lanes are not worth a device."""
    return "cpu" if walker == "cuda" else walker
