"""Mean reversion: buy when selling has worn itself out, leave when buying has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strategies.indicators.crossing import crosses_above, crosses_below
from strategies.indicators.momentum import rsi
from strategies.kernels.dispatch import KernelSet
from strategies.kernels.runs import Array
from strategies.lines import parameters_of, readings, require_bars, require_below, text
from trader.core.decision import Style
from trader.core.market import BarSeries
from trader.core.ports import Crossings


@dataclass(frozen=True, slots=True, kw_only=True)
class RsiReversion:
    """Enters when RSI rises through `oversold`, leaves when it falls through `overbought`."""

    name: ClassVar[str] = "rsi_reversion"
    style: ClassVar[Style] = "mean_reversion"

    kernels: KernelSet
    rsi_window: int = 14
    oversold: float = 30.0  # index 0 to 100
    overbought: float = 70.0  # index 0 to 100

    def __post_init__(self) -> None:
        require_bars(rsi_window=self.rsi_window)
        require_below(oversold=self.oversold, overbought=self.overbought)
        for name, level in (("oversold", self.oversold), ("overbought", self.overbought)):
            if not 0.0 < level < 100.0:
                raise ValueError(f"{name} {level!r} must lie between 0 and 100")

    @property
    def parameters(self) -> Mapping[str, float]:
        """The parameters in force."""
        return parameters_of(self)

    @property
    def entry_rule(self) -> tuple[str, str] | None:
        """The RSI against the oversold level."""
        return (f"rsi_{self.rsi_window}", "oversold")

    def crossings(self, bars: BarSeries) -> Crossings:
        """Every bar on which RSI rises through the lower level or falls through the upper one."""
        strength = rsi(bars, self.rsi_window, self.kernels)
        return Crossings(
            entry=crosses_above(strength, self.oversold),
            exit=crosses_below(strength, self.overbought),
        )

    def features(self, bars: BarSeries, index: int) -> Mapping[str, float]:
        """`close` in USD and `rsi_N` as an index 0 to 100, each also `_previous`."""
        return readings(self._lines(bars), index)

    def reason(self, bars: BarSeries, index: int) -> str:
        """Which level RSI crossed on bar `index`, and from where."""
        seen, fired = self.features(bars, index), self.crossings(bars)
        name = f"rsi_{self.rsi_window}"
        now, before = text(seen.get(name)), text(seen.get(f"{name}_previous"))
        if fired.entry[index]:
            return f"RSI {self.rsi_window} crossed up through {self.oversold:g}: {before} to {now}"
        if fired.exit[index]:
            level = f"{self.overbought:g}"
            return f"RSI {self.rsi_window} crossed down through {level}: {before} to {now}"
        return f"no crossing: RSI {self.rsi_window} {before} to {now}"

    def _lines(self, bars: BarSeries) -> dict[str, Array]:
        strength = rsi(bars, self.rsi_window, self.kernels)
        return {
            "close": bars.close,
            f"rsi_{self.rsi_window}": strength,
            "oversold": np.full(strength.shape, self.oversold),
        }
