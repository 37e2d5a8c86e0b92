"""The search for crossings alone: every pair of averages of a sweep, on one core."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from strategies.kernels.engines.event_pairs import keys_of, toggles
from strategies.kernels.tables import sma_table
from tests.benchmarks.ceilings import best_seconds
from tests.benchmarks.peers import Smas

KEY_BYTES = 2  # of a value; both of a pair are read
TILE = 16  # slow windows that stay in the cache
LEAST_SECONDS = 0.1


def scan_seconds(work: Smas) -> tuple[float, int, int]:
    """Seconds of one search over all pairs, set·bars searched, bytes read for each of them."""
    windows = np.concatenate((work.fast, work.slow))
    table = sma_table(work.market.close, windows)
    bars, start = work.market.close.size, int(windows.max())
    arguments = (keys_of(table), table, work.fast.size, start, bars)
    places = np.empty(bars + 64, dtype=np.int64)
    seconds = best_seconds(lambda: _scan(*arguments, places), repeats=9, least=LEAST_SECONDS)
    return seconds, len(work) * (bars - start), 2 * KEY_BYTES


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]  # numba has no types
def _scan(keys: Any, table: Any, fast: int, start: int, bars: int, places: Any) -> int:
    found = 0
    for begin in range(fast, table.shape[0], TILE):
        for i in range(fast):
            for j in range(begin, min(begin + TILE, table.shape[0])):
                found += toggles(keys, table, i, j, start, bars, places)
    return found
