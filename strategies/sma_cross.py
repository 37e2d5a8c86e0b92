"""Trend following: buy when the short moving average overtakes the long one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from strategies.indicators.crossing import crosses_above, crosses_below
from strategies.indicators.trend import sma
from strategies.kernels.dispatch import KernelSet
from strategies.kernels.runs import Array
from strategies.lines import (
    crossing_words,
    parameters_of,
    readings,
    require_bars,
    require_below,
    text,
)
from trader.core.decision import Style
from trader.core.market import BarSeries
from trader.core.ports import Crossings


@dataclass(frozen=True, slots=True, kw_only=True)
class SmaCross:
    """Enters when the fast average crosses above the slow one, leaves when it crosses below."""

    name: ClassVar[str] = "sma_cross"
    style: ClassVar[Style] = "trend"

    kernels: KernelSet
    fast: int = 20
    slow: int = 50

    def __post_init__(self) -> None:
        require_bars(fast=self.fast, slow=self.slow)
        require_below(fast=self.fast, slow=self.slow)

    @property
    def parameters(self) -> Mapping[str, float]:
        """The parameters in force."""
        return parameters_of(self)

    @property
    def entry_rule(self) -> tuple[str, str] | None:
        """The fast average against the slow one."""
        return (f"sma_{self.fast}", f"sma_{self.slow}")

    def crossings(self, bars: BarSeries) -> Crossings:
        """Every bar on which the two averages cross."""
        near, far = (sma(bars, window, self.kernels) for window in (self.fast, self.slow))
        return Crossings(entry=crosses_above(near, far), exit=crosses_below(near, far))

    def features(self, bars: BarSeries, index: int) -> Mapping[str, float]:
        """`close`, `sma_FAST` and `sma_SLOW` in USD, each also `_previous`."""
        return readings(self._lines(bars), index)

    def reason(self, bars: BarSeries, index: int) -> str:
        """Which way the averages crossed on bar `index`, with both numbers."""
        seen, fired = self.features(bars, index), self.crossings(bars)
        near = f"SMA {self.fast} {text(seen.get(f'sma_{self.fast}'))}"
        far = f"SMA {self.slow} = {text(seen.get(f'sma_{self.slow}'))}"
        return crossing_words(fired, index, near, far)

    def _lines(self, bars: BarSeries) -> dict[str, Array]:
        return {
            "close": bars.close,
            f"sma_{self.fast}": sma(bars, self.fast, self.kernels),
            f"sma_{self.slow}": sma(bars, self.slow, self.kernels),
        }
