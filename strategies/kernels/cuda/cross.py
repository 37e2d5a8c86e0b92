"""Where rows of tables cross, as words of bits, on a CUDA device."""

from __future__ import annotations

from typing import Any

import numpy as np

from strategies.kernels.cuda.launch import Float, cuda, device_function, kernel, upload
from strategies.kernels.engines.lanes import BITS, Ints, Signals
from strategies.kernels.engines.masks import padded_bars
from strategies.kernels.runs import Array

THREADS = BITS  # neighbouring threads compare neighbouring bars
WORDS = 32  # of one tile
TILE = WORDS * BITS  # bars
ROW = BITS + 4  # bytes of a word's codes; the padding keeps the threads on different banks
CODES = WORDS * ROW + 1  # one more for the bar before the tile

UNKNOWN, ABOVE, BELOW, EQUAL = range(4)  # how two numbers compare; NaN is unknown


@device_function
def _compared(line: Any, level: Any) -> int:
    code = UNKNOWN
    if line > level:
        code = ABOVE
    elif line < level:
        code = BELOW
    elif line == level:
        code = EQUAL
    return code


@device_function
def _write_words(codes: Any, first: int, bars: int, words: Any) -> None:
    """One thread a word: up where it is above and was not, down where it is below and was not."""
    lane = cuda.threadIdx.x
    if lane < WORDS and first + lane * BITS < bars:
        before = codes[0]
        if lane > 0:
            before = codes[(lane - 1) * ROW + BITS]
        up = np.uint64(0)
        down = np.uint64(0)
        for k in range(BITS):
            now = codes[lane * ROW + k + 1]
            bit = np.uint64(1) << np.uint64(k)
            if before != UNKNOWN and before != now:  # noqa: PLR1714 - no sets on a device
                if now == ABOVE:
                    up |= bit
                if now == BELOW:
                    down |= bit
            before = now
        words[first // BITS + lane, cuda.blockIdx.x, 0] = up
        words[first // BITS + lane, cuda.blockIdx.x, 1] = down


@kernel(signature="f2 f2 i1 i1 u3", threads=THREADS, registers=(46, 46))
def cross_rows(line: Any, level: Any, line_row: Any, level_row: Any, words: Any) -> None:
    """Words [W, R, 2]: where line[line_row[r]] crosses level[level_row[r]], upwards and downwards.

    Tables are [*, T padded with NaN to a multiple of 64]. A block has one rule and one tile.
    """
    codes = cuda.shared.array(CODES, np.uint8)
    rule = cuda.blockIdx.x
    first = cuda.blockIdx.y * TILE
    lane = cuda.threadIdx.x
    i = line_row[rule]
    j = level_row[rule]
    for k in range(WORDS):
        t = first + k * BITS + lane
        if t < line.shape[1]:
            codes[k * ROW + lane + 1] = _compared(line[i, t], level[j, t])
    if lane == 0:
        codes[0] = UNKNOWN
        if first > 0:
            codes[0] = _compared(line[i, first - 1], level[j, first - 1])
    cuda.syncthreads()
    _write_words(codes, first, line.shape[1], words)


@kernel(signature="f2 f1 i1 u3", threads=THREADS, registers=(46, 46))
def cross_levels(line: Any, level: Any, line_row: Any, words: Any) -> None:
    """As `cross_rows`, every rule r against its own number level[r]."""
    codes = cuda.shared.array(CODES, np.uint8)
    rule = cuda.blockIdx.x
    first = cuda.blockIdx.y * TILE
    lane = cuda.threadIdx.x
    i = line_row[rule]
    for k in range(WORDS):
        t = first + k * BITS + lane
        if t < line.shape[1]:
            codes[k * ROW + lane + 1] = _compared(line[i, t], level[rule])
    if lane == 0:
        codes[0] = UNKNOWN
        if first > 0:
            codes[0] = _compared(line[i, first - 1], level[rule])
    cuda.syncthreads()
    _write_words(codes, first, line.shape[1], words)


def crossings(
    line: Array, level: Array, line_row: Ints, level_row: Ints | None, *, dtype: Float = np.float64
) -> Signals:
    """Where lines cross levels: entry the upward crossings, exit the downward ones, [R, W].

    line       [P, T] table; NaN where a row has no value
    level      [Q, T] table, or [R] one number a rule where `level_row` is None
    line_row, level_row  [R] rows of the tables that rule r compares
    dtype      what is compared; in float32 two numbers may be equal that are not
    raises     ValueError for a row that does not exist and tables of different length,
               EndpointError where there is no device
    """
    _require_rows(line_row, line.shape[0], "line")
    if level_row is None:
        if level.shape != line_row.shape:
            raise ValueError(f"{line_row.size} rules need as many levels, not {level.shape}")
    else:
        _require_rows(level_row, level.shape[0], "level")
        if level.shape[1] != line.shape[1] or level_row.shape != line_row.shape:
            raise ValueError(f"tables {line.shape} and {level.shape} do not belong together")
    bars = padded_bars(line.shape[1])
    words = np.zeros((bars // BITS, line_row.size, 2), dtype=np.uint64)
    if words.size:
        on_device = upload(words, np.uint64)
        tiles = (line_row.size, -(-bars // TILE))
        rows = upload(line_row, np.int64)
        lines = upload(_padded(line, bars), dtype)
        if level_row is None:
            cross_levels.launch(tiles, lines, upload(level, dtype), rows, on_device)
        else:
            levels = upload(_padded(level, bars), dtype)
            cross_rows.launch(tiles, lines, levels, rows, upload(level_row, np.int64), on_device)
        words = on_device.copy_to_host()
    return Signals(
        entry=np.ascontiguousarray(words[:, :, 0].T), exit=np.ascontiguousarray(words[:, :, 1].T)
    )


def _padded(table: Array, bars: int) -> Array:
    if table.shape[1] == bars:
        return table
    return np.pad(table, ((0, 0), (0, bars - table.shape[1])), constant_values=np.nan)


def _require_rows(rows: Ints, count: int, name: str) -> None:
    if not ((rows >= 0) & (rows < count)).all():
        raise ValueError(f"a rule names a row of the {name} table that is not one of {count}")
