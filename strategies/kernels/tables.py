"""Many windows at once: tables [P, T] whose rows are, bit for bit, the single-window indicators.

Row p belongs to windows[p]. T is padded with NaN to a multiple of 64 bars, so that every row is a
whole number of 64-bar words; a NaN compares false, so neither padding nor warm-up needs a branch.
"""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from strategies.kernels.compiling import step
from strategies.kernels.cpu_recursions import atr_lane, ema_lane, rsi_lane
from strategies.kernels.cpu_windows import sma_lane
from strategies.kernels.engines.lanes import BITS, Ints
from strategies.kernels.runs import Array, finite_runs, float_arrays, require_window
from strategies.kernels.threads import on_threads

Windows = Sequence[int] | Ints


def sma_table(x: Array, windows: Windows, threads: int = 1) -> Array:
    """[P, T padded] simple moving averages; row p is `sma(x, windows[p])`.

    threads  work the rows between them; the bits do not depend on how many
    raises   ValueError for a window or a number of threads below 1
    """
    return _table(_sma_rows, (x,), windows, threads)


def ema_table(x: Array, windows: Windows, threads: int = 1) -> Array:
    """[P, T padded] exponential moving averages; row p is `ema(x, windows[p])`."""
    return _table(_ema_rows, (x,), windows, threads)


def rsi_table(close: Array, windows: Windows, threads: int = 1) -> Array:
    """[P, T padded] relative strength indices; row p is `rsi(close, windows[p])`."""
    return _table(_rsi_rows, (close,), windows, threads)


def atr_table(high: Array, low: Array, close: Array, windows: Windows, threads: int = 1) -> Array:
    """[P, T padded] average true ranges; row p is `atr(high, low, close, windows[p])`."""
    return _table(_atr_rows, (high, low, close), windows, threads)


def _table(
    rows: Callable[..., None], inputs: tuple[Array, ...], windows: Windows, threads: int
) -> Array:
    arrays = float_arrays(*inputs)
    bars = arrays[0].size
    wanted = np.array(windows, dtype=np.int64).reshape(-1)
    for window in wanted.tolist():
        require_window(window)
    table = np.empty((wanted.size, -(-bars // BITS) * BITS))
    runs = list(finite_runs(arrays))
    if runs != [slice(0, bars)]:
        table[:, :bars] = np.nan
    table[:, bars:] = np.nan
    parts = min(threads, max(1, wanted.size))
    for run in runs:
        here = (x[run] for x in arrays)
        on_threads(partial(rows, *here, wanted, table, run.start, parts), parts)
    return table


@step
def _sma_rows(x: Array, windows: Ints, table: Array, start: int, parts: int, part: int) -> None:
    for p in range(part, windows.size, parts):
        sma_lane(x, windows[p], table[p][start : start + x.size])


@step
def _ema_rows(x: Array, windows: Ints, table: Array, start: int, parts: int, part: int) -> None:
    for p in range(part, windows.size, parts):
        ema_lane(x, windows[p], table[p][start : start + x.size])


@step
def _rsi_rows(x: Array, windows: Ints, table: Array, start: int, parts: int, part: int) -> None:
    for p in range(part, windows.size, parts):
        rsi_lane(x, windows[p], table[p][start : start + x.size])


@step
def _atr_rows(
    high: Array,
    low: Array,
    close: Array,
    windows: Ints,
    table: Array,
    start: int,
    parts: int,
    part: int,
) -> None:
    for p in range(part, windows.size, parts):
        atr_lane(high, low, close, windows[p], table[p][start : start + close.size])
