"""Ways to damage a sound series."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trader.core.market import BarSeries

PRICES = ("open", "high", "low", "close")
ARRAYS = ("timestamp", "available_at", *PRICES, "volume")


def codes(findings) -> list[tuple[str, str]]:
    return [(finding.severity, finding.code) for finding in findings]


def set_at(series: BarSeries, bar: int, **values: float) -> BarSeries:
    changed = {}
    for name, value in values.items():
        changed[name] = getattr(series, name).copy()
        changed[name][bar] = value
    return replace(series, **changed)


def without(series: BarSeries, *bars: int) -> BarSeries:
    kept = {name: np.delete(getattr(series, name), bars) for name in ARRAYS}
    return replace(series, **kept)


def scaled(series: BarSeries, from_bar: int, factor: float) -> BarSeries:
    """Prices times `factor` from `from_bar` on, as an unadjusted split leaves them."""
    changed = {name: getattr(series, name).copy() for name in PRICES}
    for values in changed.values():
        values[from_bar:] *= factor
    return replace(series, **changed)
