"""Trend following: buy a close that breaks out of the band above its moving average."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from strategies.indicators.crossing import crosses_above, crosses_below
from strategies.indicators.trend import sma
from strategies.indicators.volatility import atr
from strategies.kernels.dispatch import KernelSet
from strategies.kernels.runs import Array
from strategies.lines import parameters_of, readings, require_bars, text
from trader.core.decision import Style
from trader.core.market import BarSeries
from trader.core.ports import Crossings


@dataclass(frozen=True, slots=True, kw_only=True)
class AtrTrend:
    """Enters when the close crosses above SMA + `band_atr` × ATR, leaves when it falls below it."""

    name: ClassVar[str] = "atr_trend"
    style: ClassVar[Style] = "trend"

    kernels: KernelSet
    sma_window: int = 50
    atr_window: int = 14
    band_atr: float = 0.5  # half-width of the quiet band above the average, in ATR

    def __post_init__(self) -> None:
        require_bars(sma_window=self.sma_window, atr_window=self.atr_window)
        if not (math.isfinite(self.band_atr) and self.band_atr >= 0.0):
            raise ValueError(f"band_atr {self.band_atr!r} must be a finite number from 0 up")

    @property
    def parameters(self) -> Mapping[str, float]:
        """The parameters in force."""
        return parameters_of(self)

    @property
    def entry_rule(self) -> tuple[str, str] | None:
        """The close against the upper edge of the band."""
        return ("close", "entry_line")

    def crossings(self, bars: BarSeries) -> Crossings:
        """Every bar on which the close leaves the band upwards, or the average downwards."""
        lines = self._lines(bars)
        return Crossings(
            entry=crosses_above(bars.close, lines["entry_line"]),
            exit=crosses_below(bars.close, lines[f"sma_{self.sma_window}"]),
        )

    def features(self, bars: BarSeries, index: int) -> Mapping[str, float]:
        """`close`, `sma_N`, `atr_N` and `entry_line` in USD, each also `_previous`."""
        return readings(self._lines(bars), index)

    def reason(self, bars: BarSeries, index: int) -> str:
        """Which line the close crossed on bar `index`, with both numbers."""
        seen, fired = self.features(bars, index), self.crossings(bars)
        close, average = text(seen.get("close")), text(seen.get(f"sma_{self.sma_window}"))
        band = f"SMA {self.sma_window} + {self.band_atr:g} ATR = {text(seen.get('entry_line'))}"
        if fired.entry[index]:
            return f"close {close} crossed above {band}"
        if fired.exit[index]:
            return f"close {close} crossed below SMA {self.sma_window} = {average}"
        return f"no crossing: close {close}, {band}, SMA {self.sma_window} = {average}"

    def _lines(self, bars: BarSeries) -> dict[str, Array]:
        average = sma(bars, self.sma_window, self.kernels)
        swing = atr(bars, self.atr_window, self.kernels)
        return {
            "close": bars.close,
            f"sma_{self.sma_window}": average,
            f"atr_{self.atr_window}": swing,
            "entry_line": average + self.band_atr * swing,
        }
