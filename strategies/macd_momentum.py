"""Momentum: buy when the MACD line overtakes its signal line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from strategies.indicators.crossing import crosses_above, crosses_below
from strategies.indicators.momentum import macd
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
class MacdMomentum:
    """Enters when the MACD line crosses above its signal line, leaves when it crosses below."""

    name: ClassVar[str] = "macd_momentum"
    style: ClassVar[Style] = "momentum"

    kernels: KernelSet
    fast: int = 12
    slow: int = 26
    signal: int = 9

    def __post_init__(self) -> None:
        require_bars(fast=self.fast, slow=self.slow, signal=self.signal)
        require_below(fast=self.fast, slow=self.slow)

    @property
    def parameters(self) -> Mapping[str, float]:
        """The parameters in force."""
        return parameters_of(self)

    @property
    def entry_rule(self) -> tuple[str, str] | None:
        """The MACD line against its signal line."""
        return ("macd_line", "macd_signal")

    def crossings(self, bars: BarSeries) -> Crossings:
        """Every bar on which the line crosses its signal line."""
        lines = self._lines(bars)
        return Crossings(
            entry=crosses_above(lines["macd_line"], lines["macd_signal"]),
            exit=crosses_below(lines["macd_line"], lines["macd_signal"]),
        )

    def features(self, bars: BarSeries, index: int) -> Mapping[str, float]:
        """`close`, `macd_line`, `macd_signal`, `macd_histogram` in USD, each also `_previous`."""
        return readings(self._lines(bars), index)

    def reason(self, bars: BarSeries, index: int) -> str:
        """Which way the line crossed its signal line on bar `index`, with both numbers."""
        seen, fired = self.features(bars, index), self.crossings(bars)
        line = f"MACD {self.fast}/{self.slow} line {text(seen.get('macd_line'), places=4)}"
        signal = f"signal {self.signal} = {text(seen.get('macd_signal'), places=4)}"
        return crossing_words(fired, index, line, signal)

    def _lines(self, bars: BarSeries) -> dict[str, Array]:
        line, signal_line, histogram = macd(bars, self.fast, self.slow, self.signal, self.kernels)
        return {
            "close": bars.close,
            "macd_line": line,
            "macd_signal": signal_line,
            "macd_histogram": histogram,
        }
