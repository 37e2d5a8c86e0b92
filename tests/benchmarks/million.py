"""A million sets in a process of its own, which prints its time and its peak memory as JSON.

Arguments: bars, symbols, fast windows, slow windows. The grid of each symbol is worked in blocks,
and what is kept of every block is its best set, as in a sweep that ranks.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from tests.benchmarks.market import lognormal
from tests.benchmarks.peers import Smas
from tests.benchmarks.sweeps import opened_sweep

BLOCK = 1 << 16  # sets, as in `trader sweep`
REPEATS = 9


def main(bars: int, symbols: int, fast: int, slow: int) -> None:
    """Sweep every symbol, several times; print the best time."""
    works = [
        Smas(
            market=lognormal(bars, seed=7 + number),
            fast=np.arange(2, 2 + fast),
            slow=np.arange(2 + fast, 2 + fast + slow),
        )
        for number in range(symbols)
    ]
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        trades, best = zip(*(_best_of(work) for work in works), strict=True)
        seconds.append(time.perf_counter() - began)
    sets = symbols * fast * slow
    body = {
        "sets": sets,
        "bars": bars,
        "symbols": symbols,
        "seconds": min(seconds),
        "first_seconds": seconds[0],
        "ns": min(seconds) / (sets * bars) * 1e9,
        "peak_mb": peak_mb(),
        "mean_trades": sum(trades) / sets,
        "best_sharpe": max(best),
    }
    print(json.dumps(body))  # noqa: T201


def _best_of(work: Smas) -> tuple[int, float]:
    """Closed trades of all sets of one symbol, and the best Sharpe ratio."""
    opened = opened_sweep(work)
    trades, best = 0, -np.inf
    for start in range(0, len(opened), BLOCK):
        found = opened.run(start, min(start + BLOCK, len(opened)))
        trades += int(found.trades.sum())
        best = max(best, float(np.nanmax(found.sharpe, initial=-np.inf)))
    return trades, best


def peak_mb() -> float:
    """Most memory that this process has had resident, in MB of 2**20 bytes.

    From the kernel's account of this program alone: `ru_maxrss` still has what the process was
    before it became this program, which is the whole benchmark.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (peak,) = (line for line in lines if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
