"""The door to all sweep engines: which one works the sets of a grid, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any, Literal, get_args

import numpy as np

from strategies.kernels.dispatch import NUMBA_PAYS_FROM, Backend, KernelSet, kernels
from strategies.kernels.engines.lanes import Ints, Outcomes, Prices, Terms
from strategies.kernels.runs import Array
from strategies.sweep.bar_grids import BarGrid, Walker
from strategies.sweep.grid import Grid
from strategies.sweep.numbers import EXECUTION, Numbers, numbers_of, sweepable
from trader.core.errors import DataIntegrityError, UsageError
from trader.core.market import BarSeries

__all__ = ["EXECUTION", "EngineName", "Sweep", "open_sweep", "sweepable"]

EngineName = Literal["auto", "masks", "bars"]
PAYS_FROM = 50_000  # sets × bars; below, starting numba takes longer than the reference


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The sets of a grid on one symbol and one period.

    engine   "masks", which finds trades by bits, or "bars", which walks every bar
    backend  "cpu", "reference" or "cuda"
    reason   one sentence: what was taken and why
    first, last  bars of the period that is traded, both included
    """

    engine: Literal["masks", "bars"]
    backend: Walker
    reason: str
    numbers: Numbers
    bars: BarSeries
    first: int
    last: int
    terms: Terms
    kernels: KernelSet
    threads: int
    masks: Any = None  # a MaskGrid, with all that is computed once

    def __len__(self) -> int:
        return len(self.numbers.grid)

    @cached_property
    def valid(self) -> int:
        """How many sets have numbers that fit together."""
        return self.numbers.count_valid(self.kernels)

    def run(self, start: int, stop: int) -> Outcomes:
        """What becomes of the sets start..stop-1; trades -1 where numbers do not fit together."""
        if not 0 <= start <= stop <= len(self):
            raise ValueError(f"sets {start}..{stop - 1} are not all among {len(self):,}")
        if self.masks is not None and self.first <= self.last:
            found: Outcomes = self.masks.run(start, stop, self.first, self.last)
            return found
        return self._walked.run(np.arange(start, stop, dtype=np.int64), self.backend)

    def confirm(self, numbers: Ints) -> Outcomes:
        """What becomes of a few sets, in float64 on the CPU whoever ranked them."""
        return self._walked.confirm(self._known(numbers), self.backend)

    def over(self, first: int, last: int) -> Sweep:
        """The same sets traded on bars first..last only; bars before warm indicators up."""
        if not 0 <= first <= last + 1 <= len(self.bars):
            raise ValueError(f"bars {first}..{last} are not all among {len(self.bars):,}")
        return replace(self, first=first, last=last)

    def curves(self, numbers: Ints) -> Array:
        """[K, bars traded] equity of some sets at each close, USD; NaN where nothing was run."""
        return self._walked.curves(self._known(numbers), self.backend)

    def trades(self, number: int) -> tuple[Any, ...]:
        """The trades of one set, oldest first, an open one last: see `walk_money.LaneTrade`."""
        return self._walked.trades(int(self._known(np.array([number]))[0]), self.backend)

    def _known(self, numbers: Ints) -> Ints:
        asked = np.asarray(numbers, dtype=np.int64).reshape(-1)
        if asked.size and not ((asked >= 0) & (asked < len(self))).all():
            raise ValueError(f"set {asked.max()} is not among {len(self):,}")
        return asked

    @cached_property
    def _walked(self) -> BarGrid:
        return BarGrid(
            numbers=self.numbers,
            bars=self.bars.head(self.last + 1),
            first=self.first,
            terms=self.terms,
            kernels=self.kernels,
            threads=self.threads,
        )


def open_sweep(
    bars: BarSeries,
    strategy: str,
    grid: Grid,
    *,
    fixed: Mapping[str, float],
    first: int,
    terms: Terms,
    engine: EngineName = "auto",
    backend: Backend = "auto",
    threads: int,
) -> Sweep:
    """A sweep over bars from `first` on, ready to run.

    fixed    values over the defaults, of numbers that the grid does not sweep
    engine   auto: masks where the strategy and the ways to leave allow it, else bars
    backend  auto: the reference for few sets unless masks are asked for by name, else the compiled
             engines; cuda by name only
    threads  how many the CPU engines work with; no bit of any outcome depends on it
    raises   UsageError for names, numbers and engines that cannot be, DataIntegrityError for bars
             that are not sound, ConfigError where numba is missing, EndpointError where a device is
    """
    numbers = numbers_of(strategy, grid, fixed, len(bars))
    work = len(grid) * len(bars)
    if engine not in get_args(EngineName):
        known = ", ".join(get_args(EngineName))
        raise UsageError(f"--engine {engine!r} does not exist; choose one of {known}")
    masks_by_name = engine == "masks" and backend == "auto"  # which only compiled code has
    taken = kernels_for("cpu" if backend == "cuda" or masks_by_name else backend, work)
    walker: Walker = "cuda" if backend == "cuda" else "reference"
    if backend != "cuda" and taken.backend == "cpu":
        walker = "cpu"
    if walker == "cuda" and terms.whole_shares:
        raise UsageError("--backend cuda cannot count whole shares: use auto or cpu")
    if walker == "cuda":
        import_module("strategies.kernels.cuda.device").require_device()
    blank = Sweep(
        engine="bars",
        backend=walker,
        reason="",
        numbers=numbers,
        bars=bars,
        first=first,
        last=len(bars) - 1,
        terms=terms,
        kernels=taken,
        threads=threads,
    )
    prices = blank._walked.prices
    _require_sound(bars, prices, terms)
    hindrance = _hindrance(numbers, terms, walker, len(bars))
    if engine == "masks" and hindrance:
        raise UsageError(f"--engine masks cannot work this sweep: {hindrance}; use auto or bars")
    if engine == "bars" or hindrance:
        why = "asked for by name" if engine == "bars" else hindrance
        return replace(blank, reason=_backend_words(walker, taken, backend, why))
    from strategies.sweep.mask_grids import mask_grid

    masks = mask_grid(numbers, bars, prices, terms, taken, threads=threads)
    why = "asked for by name" if engine == "masks" else "one position, and levels that do not move"
    return replace(blank, engine="masks", reason=why, masks=masks)


def kernels_for(backend: Backend, work: int) -> KernelSet:
    """The kernels for so many sets × bars; their reason is told in these."""
    if backend != "auto":
        return kernels(backend)
    if work < PAYS_FROM:
        few = f"{work:,} sets × bars are fewer than {PAYS_FROM:,}"
        reason = f"{few}: starting numba would take longer than it saves"
        return replace(kernels("reference"), reason=reason)
    taken = kernels("auto", bars=NUMBA_PAYS_FROM)  # the reference where numba is missing
    return taken if taken.backend == "reference" else replace(taken, reason=f"{work:,} sets × bars")


def _hindrance(numbers: Numbers, terms: Terms, walker: Walker, bars: int) -> str:
    """Why the masks engine cannot work these sets; an empty text where it can."""
    if walker == "reference":
        return "the reference walks every bar"
    if walker == "cuda":
        return "a device walks every bar"
    from strategies.kernels.engines.events import unfit

    return unfit(bars, terms, trailing=numbers.uses("trail_atr"), timed=numbers.uses("max_bars"))


def _backend_words(walker: Walker, taken: KernelSet, backend: Backend, why: str) -> str:
    if walker == "reference" and backend == "auto":
        return f"{why} ({taken.reason})"
    return why


def _require_sound(bars: BarSeries, prices: Prices, terms: Terms) -> None:
    from strategies.kernels.engines.walk_checks import require_prices, require_terms

    require_terms(terms)
    try:
        require_prices(prices)
    except ValueError as exc:
        raise DataIntegrityError(f"{bars.symbol}: {exc}") from exc
