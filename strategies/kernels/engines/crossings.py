"""Bits of the crossings of many rules at once, each row equal to the rule's own on single lines.

Rules are [R] arrays of rows of tables or of numbers; bits are [R, ceil(T / 64)] words, 0 from bar T
on. What crosses is defined in `strategies.indicators.crossing`.
"""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from strategies.kernels.engines.lanes import BITS, Ints, Words
from strategies.kernels.engines.masks import (
    compiled,
    cross_level,
    cross_rows,
    padded_bars,
    padded_rows,
)
from strategies.kernels.recursions import macd_lane
from strategies.kernels.runs import Array
from strategies.kernels.steps import ema_lane
from strategies.kernels.threads import in_parts


def row_crossings(
    line: Array, line_rows: Ints, level: Array, level_rows: Ints, *, threads: int = 1
) -> tuple[Words, Words]:
    """Where line[line_rows[r]] crosses level[level_rows[r]] upwards, and downwards.

    line, level  [*, T padded] tables of the same number of bars
    """
    return _both(_row_crossings, line.shape[1], threads, line, line_rows, level, level_rows)


def level_crossings(
    line: Array, rows: Ints, levels: Array, *, threads: int = 1
) -> tuple[Words, Words]:
    """Where line[rows[r]] crosses the number levels[r] upwards, and downwards."""
    return _both(_level_crossings, line.shape[1], threads, line, rows, levels)


def band_crossings(
    close: Array,
    middle: Array,
    middle_rows: Ints,
    swing: Array,
    swing_rows: Ints,
    widths: Array,
    *,
    threads: int = 1,
) -> tuple[Words, Words]:
    """Where the close crosses middle + width × swing upwards, and the middle itself downwards.

    close          [T]
    middle, swing  [*, T padded]
    """
    rules = (padded_rows(close), middle, middle_rows, swing, swing_rows, widths)
    return _both(_band_crossings, middle.shape[1], threads, *rules)


def macd_crossings(
    close: Array, fast: Ints, slow: Ints, signal: Ints, *, threads: int = 1
) -> tuple[Words, Words]:
    """Where each MACD line crosses its signal line; fast below slow, windows from 1 bar up.

    Rules of the same fast and slow windows next to each other share their line.
    """
    bars = padded_bars(close.size)
    return _both(_macd_crossings, bars, threads, np.ascontiguousarray(close), fast, slow, signal)


def _both(write: Callable[..., None], bars: int, threads: int, *rules: Any) -> tuple[Words, Words]:
    rules = tuple(np.ascontiguousarray(rule) for rule in rules)  # one layout, one compiled version
    rows = len(rules[-1])
    up = np.zeros((rows, bars // BITS), dtype=np.uint64)
    down = np.zeros_like(up)
    in_parts(lambda start, stop: write(*rules, up, down, start, stop), rows, threads)
    return up, down


@compiled
def _row_crossings(
    line: Array,
    line_rows: Ints,
    level: Array,
    level_rows: Ints,
    up: Words,
    down: Words,
    start: int,
    stop: int,
) -> None:
    for r in range(start, stop):
        cross_rows(line, line_rows[r], level, level_rows[r], up.shape[1], up, down, r)


@compiled
def _level_crossings(
    line: Array, rows: Ints, levels: Array, up: Words, down: Words, start: int, stop: int
) -> None:
    for r in range(start, stop):
        if not math.isnan(levels[r]):  # which nothing crosses
            cross_level(line, rows[r], levels[r], up.shape[1], up, down, r)


@compiled
def _band_crossings(
    close: Array,
    middle: Array,
    middle_rows: Ints,
    swing: Array,
    swing_rows: Ints,
    widths: Array,
    up: Words,
    down: Words,
    start: int,
    stop: int,
) -> None:
    edge = np.empty((1, close.shape[1]))
    words = up.shape[1]
    unused = np.empty((1, words), dtype=np.uint64)
    for r in range(start, stop):
        centre, reach = middle_rows[r], swing_rows[r]
        for t in range(edge.shape[1]):
            edge[0, t] = middle[centre, t] + widths[r] * swing[reach, t]
        cross_rows(close, 0, edge, 0, words, up[r : r + 1], unused, 0)
        cross_rows(close, 0, middle, centre, words, unused, down[r : r + 1], 0)


@compiled
def _macd_crossings(
    close: Array,
    fast: Ints,
    slow: Ints,
    signal: Ints,
    up: Words,
    down: Words,
    start: int,
    stop: int,
) -> None:
    size = close.size
    line, smooth = (
        np.full((1, up.shape[1] * BITS), math.nan),
        np.full((1, up.shape[1] * BITS), math.nan),
    )
    room = np.empty(size)
    for r in range(start, stop):
        begin = slow[r] - 1
        if r == start or fast[r] != fast[r - 1] or slow[r] != slow[r - 1]:
            macd_lane(close, fast[r], slow[r], 1, line[0, :size], smooth[0, :size], room)
        for t in range(size):
            smooth[0, t] = math.nan
        if size > begin + signal[r] - 1:
            ema_lane(line[0, begin:size], signal[r], smooth[0, begin:size])
        cross_rows(line, 0, smooth, 0, up.shape[1], up, down, r)
