"""The named lines a rule looks at: what they read on one bar, and what its parameters may be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from strategies.kernels.runs import Array
from trader.core.ports import Crossings


def readings(lines: Mapping[str, Array], index: int) -> dict[str, float]:
    """Every line on bar `index` by its name, and on the bar before as `<name>_previous`.

    A value that does not exist yet is left out, since a missing number cannot be recorded.
    Raises IndexError for a bar that does not exist; a negative index counts from the newest.
    """
    found: dict[str, float] = {}
    for name, line in lines.items():
        at = range(line.size)[index]
        found[name] = float(line[at])
        if at > 0:
            found[f"{name}_previous"] = float(line[at - 1])
    return {name: value for name, value in found.items() if math.isfinite(value)}


def text(value: float | None, *, places: int = 2) -> str:
    """A number as a sentence shows it; "unknown" while it has no value."""
    return "unknown" if value is None else f"{value:.{places}f}"


def crossing_words(fired: Crossings, index: int, value: str, line: str) -> str:
    """One sentence on which way `value` crossed `line` on bar `index`, if it did."""
    if fired.entry[index]:
        return f"{value} crossed above {line}"
    if fired.exit[index]:
        return f"{value} crossed below {line}"
    return f"no crossing: {value}, {line}"


def parameters_of(strategy: Any) -> dict[str, float]:
    """The parameters of a strategy dataclass, by name: every field but its kernels."""
    return {
        field.name: getattr(strategy, field.name)
        for field in fields(strategy)
        if field.name != "kernels"
    }


def require_bars(**windows: int) -> None:
    """ValueError for a window that is not a whole number of bars from 1 up."""
    for name, window in windows.items():
        if isinstance(window, bool) or not isinstance(window, int) or window < 1:
            raise ValueError(f"{name} {window!r} must be a whole number of bars from 1 up")


def require_below(**pair: float) -> None:
    """ValueError unless the first of two named values is below the second."""
    (low, lower), (high, higher) = pair.items()
    if not lower < higher:
        raise ValueError(f"{low} {lower!r} must be below {high} {higher!r}")
