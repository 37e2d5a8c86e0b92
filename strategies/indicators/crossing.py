"""Where one line crosses another.

A tie is neither above nor below: a line that touches and turns back has not crossed, and one that
rests on the other and then leaves it has. A bar without a value, or after one, never crosses.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.runs import Array


def crosses_above(line: Array, level: Array | float) -> NDArray[np.bool_]:
    """[T] True where `line` is above `level` and was not above it one bar before."""
    return _on_the_bar(line > level, line <= level)


def crosses_below(line: Array, level: Array | float) -> NDArray[np.bool_]:
    """[T] True where `line` is below `level` and was not below it one bar before."""
    return _on_the_bar(line < level, line >= level)


def _on_the_bar(now: NDArray[np.bool_], before: NDArray[np.bool_]) -> NDArray[np.bool_]:
    crossed = np.zeros(now.shape, dtype=np.bool_)
    np.logical_and(now[1:], before[:-1], out=crossed[1:])
    return crossed
