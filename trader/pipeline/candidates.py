"""Candidates: fired signals with their levels and evidence, ready to be argued over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.dispatch import KernelSet
from trader.core.canonical import sha256_of
from trader.core.clock import SessionCalendar
from trader.core.costs import Costs
from trader.core.decision import Candidate, Evidence, Signal
from trader.core.instruments import instrument_of
from trader.core.market import BarSeries, Timeframe, from_ns, to_ns
from trader.core.ports import Crossings, History, Strategy
from trader.pipeline.evidence import AccountView, gather
from trader.pipeline.freshness import bars_behind
from trader.pipeline.history import BarHistory
from trader.pipeline.levels import entry_levels, track_record
from trader.pipeline.slots import Slot, bars_per_year
from trader.risk.gate import RiskLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleSettings:
    """What every decision of a run has in common."""

    run_id: str
    timeframe: Timeframe
    symbols: tuple[str, ...]
    strategies: tuple[str, ...]  # those that look for entries
    atr_window: int
    atr_multiple: float
    costs: Costs
    limits: RiskLimits
    indicators: tuple[str, ...]  # of the `ta` library, put in evidence besides the usual facts
    debated: bool  # False only for the baseline without debate


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A candidate with everything the debate and the gate will read."""

    cycle_id: str
    candidate: Candidate
    evidence: tuple[Evidence, ...]
    history: History
    account: AccountView
    bars: BarSeries
    atr: float


class Candidates:
    """Makes candidates from the bars known at a slot; the same bars always give the same ones.

    strategies  every strategy there is: a trade may be older than the choice of those enabled
    enabled     names of those that look for entries
    """

    def __init__(
        self,
        *,
        settings: CycleSettings,
        calendar: SessionCalendar,
        strategies: Sequence[Strategy],
        enabled: Sequence[str],
        kernels: KernelSet,
    ) -> None:
        self._settings, self._calendar, self._kernels = settings, calendar, kernels
        self.known = {strategy.name: strategy for strategy in strategies}
        self.strategies = {name: self.known[name] for name in enabled}

    def identity(self, symbol: str, strategy: str, series: BarSeries, index: int) -> str:
        """Cycle id of the decision on bar `index`; there is at most one with this id."""
        return cycle_id(self._settings.run_id, from_ns(series.timestamp[index]), symbol, strategy)

    def prepare(
        self,
        slot: Slot,
        series: BarSeries,
        strategy: Strategy,
        crossed: Crossings,
        *,
        index: int,
        account: AccountView,
        fired: bool = True,
    ) -> Prepared | None:
        """Levels, evidence and candidate of one signal; None without an ATR.

        series  bars known at the slot; index: the one that crossed
        fired   False for a debate that a person asked for although no signal fired
        """
        settings = self._settings
        atr = self._kernels.atr(series.high, series.low, series.close, settings.atr_window)
        newest = float(atr[-1])
        levels = entry_levels(
            float(series.close[-1]), newest, settings.atr_multiple, settings.costs
        )
        if levels is None:
            return None
        signal = self._signal(slot, series, strategy, index, fired=fired)
        evidence = gather(
            series,
            signal=signal,
            strategy=strategy,
            levels=levels,
            atr=atr,
            record=track_record(
                series,
                crossed,
                atr,
                atr_multiple=settings.atr_multiple,
                costs=settings.costs,
                kernels=self._kernels,
                before=index,
            ),
            index=index,
            account=account,
            bars_behind=bars_behind(series, self._calendar, slot),
            costs=settings.costs,
            indicators=settings.indicators,
            limits=settings.limits,
            kernels=self._kernels,
            periods_per_year=bars_per_year(self._calendar, settings.timeframe),
        )
        return Prepared(
            cycle_id=cycle_id(settings.run_id, signal.bar_at, signal.symbol, signal.strategy),
            candidate=Candidate(
                signal=signal,
                instrument=instrument_of(signal.symbol),
                entry_price=levels.entry,
                stop_price=levels.stop,
                fired=fired,
            ),
            evidence=evidence,
            history=BarHistory(series, self._kernels, atr=atr),
            account=account,
            bars=series,
            atr=newest,
        )

    def prepare_all(self, slot: Slot, series: BarSeries, account: AccountView) -> list[Prepared]:
        """Every strategy's candidate on these bars; `fired` says whether its rule crossed."""
        found = []
        for strategy in self.strategies.values():
            crossed = strategy.crossings(series)
            index = fired_bar(crossed.entry, series, slot)
            ready = self.prepare(
                slot,
                series,
                strategy,
                crossed,
                index=len(series) - 1 if index is None else index,
                account=account,
                fired=index is not None,
            )
            if ready is not None:
                found.append(ready)
        return found

    def _signal(
        self, slot: Slot, series: BarSeries, strategy: Strategy, index: int, *, fired: bool
    ) -> Signal:
        bar_at = from_ns(series.timestamp[index])
        identity = [self._settings.run_id, strategy.name, series.symbol, bar_at]
        return Signal(
            signal_id=f"S-{sha256_of(identity)[:16]}",
            strategy=strategy.name,
            style=strategy.style,
            symbol=series.symbol,
            side="buy",
            strength=1.0 if fired else 0.0,
            bar_at=bar_at,
            as_of=slot.as_of,
            features=dict(strategy.features(series, index)),
            reason=strategy.reason(series, index),
        )


def cycle_id(run_id: str, bar_at: datetime, symbol: str, strategy: str) -> str:
    """Id of the decision on one signal: run, signal bar, symbol, strategy."""
    return f"{run_id}-{bar_at:%Y%m%dT%H%M}-{symbol}-{strategy}"


def strategy_of(trade_id: str) -> str:
    """The strategy at the end of a cycle id."""
    return trade_id.rsplit("-", 1)[-1]


def fired_bar(mask: NDArray[np.bool_], series: BarSeries, slot: Slot) -> int | None:
    """Index of the newest True among the bars that became known since the slot before, or None."""
    first = int(series.available_at.searchsorted(to_ns(slot.since), side="right"))
    fired = np.flatnonzero(mask[first:])
    return first + int(fired[-1]) if fired.size else None


def bar_of(trade_id: str) -> datetime:
    """Opening time of the signal bar in a cycle id."""
    return datetime.strptime(trade_id.rsplit("-", 3)[1], "%Y%m%dT%H%M").replace(tzinfo=UTC)


def still_holds(strategy: Strategy, crossed: Crossings, series: BarSeries, index: int) -> bool:
    """Whether nothing since bar `index` took its signal back: no exit, no fall behind the line."""
    if crossed.exit[index:].any():
        return False
    if strategy.entry_rule is None or index == len(series) - 1:
        return True
    value, line = strategy.entry_rule
    seen = strategy.features(series, -1)
    return value in seen and line in seen and seen[value] > seen[line]
