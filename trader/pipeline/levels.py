"""Entry, stop and the targets that may be proposed, with what this signal's past says of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.dispatch import KernelSet
from trader.core.costs import Costs
from trader.core.market import BarSeries
from trader.core.ports import Crossings
from trader.core.trading import tick_down

HIGH_WINDOWS = (20, 60, 252)
RANGE_WINDOW = 60
FEWEST_EXCURSIONS = 10  # below this a quartile of them says nothing
UPPER_QUARTILE = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """What an entry would cost and where it would be given up, USD per share."""

    entry: float
    stop: float

    @property
    def risk(self) -> float:
        """R: what a share loses between entry and stop, before costs."""
        return self.entry - self.stop


def entry_levels(close: float, atr: float, atr_multiple: float, costs: Costs) -> Levels | None:
    """Levels of an entry decided at `close`; None when ATR or price leave no stop above zero.

    entry = close × (1 + slippage); stop = entry − atr_multiple × ATR, rounded down to a tick.
    """
    if not (np.isfinite(atr) and atr > 0.0 and close > 0.0):
        return None
    entry = costs.expected_entry(close)
    if entry - atr_multiple * atr <= 0.0:
        return None
    stop = float(tick_down(entry - atr_multiple * atr))
    return Levels(entry=entry, stop=stop) if 0.0 < stop < entry else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrackRecord:
    """What became of every earlier firing of a signal, as far as it was known.

    fired     how often the signal fired before this bar
    result_r  [K] result of each closed hypothetical trade, in units of its risk, costs included
    mfe_r     [K] the best it ever showed before it closed, same units
    """

    fired: int
    result_r: NDArray[np.float64]
    mfe_r: NDArray[np.float64]

    @property
    def closed(self) -> int:
        """Closed hypothetical trades."""
        return int(self.result_r.size)

    def hits(self, distance_r: float) -> int:
        """How many closed ones reached a target `distance_r` times their risk above the entry."""
        return int(np.count_nonzero(self.mfe_r >= distance_r))

    def probability(self, distance_r: float) -> float:
        """(hits + 1) / (closed + 3): a cautious estimate that one past success proves little."""
        return (self.hits(distance_r) + 1) / (self.closed + 3)


def track_record(
    bars: BarSeries,
    crossings: Crossings,
    atr: NDArray[np.float64],
    *,
    atr_multiple: float,
    costs: Costs,
    kernels: KernelSet,
    before: int,
) -> TrackRecord:
    """The past of a signal, as far as the last bar of `bars` tells it.

    before  the bar whose signal is under debate; it and what fired later are left out
    """
    entry = crossings.entry.copy()
    entry[before:] = False
    _, exits, mfe_r, result_r = kernels.excursions(
        bars.open,
        bars.high,
        bars.low,
        bars.close,
        entry,
        crossings.exit,
        atr * atr_multiple,
        costs.slippage,
    )
    closed = exits >= 0
    return TrackRecord(fired=int(entry.sum()), result_r=result_r[closed], mfe_r=mfe_r[closed])


def target_levels(bars: BarSeries, levels: Levels, record: TrackRecord) -> dict[str, float | None]:
    """Targets by name, USD rounded down to a tick; None where no such level lies above the entry.

    Prior highs of 20, 60 and 252 bars; the measured move, half the 60-bar range above the entry;
    the upper quartile of this signal's own favourable excursions. Never a plain multiple of the
    risk: then reward:risk would test nothing.
    """
    found: dict[str, float | None] = {}
    for window in HIGH_WINDOWS:
        enough = len(bars) >= window
        found[f"high_{window}"] = float(bars.high[-window:].max()) if enough else None
    if len(bars) >= RANGE_WINDOW:
        span = float(bars.high[-RANGE_WINDOW:].max() - bars.low[-RANGE_WINDOW:].min())
        found["measured_move"] = levels.entry + 0.5 * span
    else:
        found["measured_move"] = None
    quartile = None
    if record.closed >= FEWEST_EXCURSIONS:
        quartile = levels.entry + float(np.quantile(record.mfe_r, UPPER_QUARTILE)) * levels.risk
    found["excursion_quartile"] = quartile
    return {
        name: None if price is None or price <= levels.entry else _above(price, levels.entry)
        for name, price in found.items()
    }


def _above(price: float, entry: float) -> float | None:
    rounded = float(tick_down(price))
    return rounded if rounded > entry else None
