"""The benchmark every rule has to beat: buy at once and keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strategies.kernels.dispatch import KernelSet
from strategies.lines import parameters_of, readings, text
from trader.core.decision import Style
from trader.core.market import BarSeries
from trader.core.ports import Crossings


@dataclass(frozen=True, slots=True, kw_only=True)
class BuyAndHold:
    """Wants to be long on every bar and never leaves; needs no history and has no parameters."""

    name: ClassVar[str] = "buy_and_hold"
    style: ClassVar[Style] = "benchmark"

    kernels: KernelSet

    @property
    def parameters(self) -> Mapping[str, float]:
        """None."""
        return parameters_of(self)

    @property
    def entry_rule(self) -> tuple[str, str] | None:
        """None: nothing has to cross."""
        return None

    def crossings(self, bars: BarSeries) -> Crossings:
        """An entry on every bar, so that a first fill that was missed is tried again."""
        size = len(bars)
        return Crossings(entry=np.ones(size, dtype=np.bool_), exit=np.zeros(size, dtype=np.bool_))

    def features(self, bars: BarSeries, index: int) -> Mapping[str, float]:
        """`close` in USD, also `close_previous`."""
        return readings({"close": bars.close}, index)

    def reason(self, bars: BarSeries, index: int) -> str:
        """The close that is bought, whatever it is."""
        return f"always long; close {text(self.features(bars, index).get('close'))}"
