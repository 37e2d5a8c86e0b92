"""How long a fresh process takes to its first backtest, against importing numba alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.rows import Row

ROOT = Path(__file__).parents[2]
REPEATS = 7
# numba loads SciPy where it finds it; the project's own installation has none, the peers' has
OWN = "import sys; sys.modules['scipy'] = None\n"
ALONE = f"{OWN}import numba"
FIRST = f"""{OWN}
import numpy as np
from strategies.kernels.engines.lanes import Prices, Terms
from strategies.kernels.engines.walk_one import sma_cross_backtest
close = 100.0 * np.exp(np.cumsum(np.random.default_rng(7).normal(0.0, 0.02, 1260)))
prices = Prices(open=close, high=close, low=close, close=close, volume=close)
assert sma_cross_backtest(prices, 20, 50, Terms()).trades > 0
"""


def row(*, repeats: int = REPEATS) -> Row:
    """The ratio of the two processes, kernels compiled before and kept in a folder of this run."""
    with tempfile.TemporaryDirectory() as folder:
        cold = _seconds(FIRST, folder)
        warm, alone = [], []
        for _ in range(repeats):  # in turn, so that both meet the same load
            alone.append(_seconds(ALONE, folder))
            warm.append(_seconds(FIRST, folder))
    best, least = min(warm), min(alone)
    return Row(
        work="first backtest in a fresh process, warm cache, vs import numba",
        unit="×",
        at_least=3.0,
        aim=2.0,
        less_is_better=True,
        value=best / least,
        note=f"{best:.2f} s vs {least:.2f} s of wall time, "
        f"without the peers' SciPy; with an empty cache {cold:.1f} s",
        detail={"warm_seconds": best, "numba_seconds": least, "cold_seconds": cold},
    )


def _seconds(code: str, folder: str) -> float:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": folder},
        check=True,
    )
    return time.perf_counter() - began
