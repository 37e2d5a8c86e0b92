"""A recursive mean over one long series, worked by several threads at once.

mean[t] = mean[t-1] + (x[t] - mean[t-1]) × alpha is an affine map of mean[t-1]. The maps of a
stretch of bars fold into one pair (scale, offset), and pairs fold likewise: so every stretch learns
what it starts from without waiting for the one before it, and is then replayed by the plain
recursion.
"""

# ruff: noqa: PLR0917 - steps take arrays by position

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from strategies.kernels.compiling import Real, step
from strategies.kernels.engines.lanes import Ints
from strategies.kernels.runs import Array, over_runs, require_window

STRETCHES = 4  # chains a thread works on at once: one alone would wait for its own last result
FORGOTTEN = 1e-300  # a share this small of what was before is nothing, whatever stood there


@step
def _seed(x: Array, window: int) -> Real:
    """Mean of the first window, as distances from its newest bar: equal prices cancel."""
    newest = x[window - 1]
    total = 0.0
    for t in range(window):
        total += x[t] - newest
    return newest + total / window


@step
def _fold(
    x: Array, start: int, stop: int, alpha: float, base: float, memory: int
) -> tuple[float, float]:
    """Scale and offset of bars start..stop-1; older ones than `memory` are forgotten by the end.

    Both are of distances from `base`, which are exactly 0 where nothing moves.
    """
    if stop - start > memory:
        scale, first = 0.0, stop - memory
    else:
        scale, first = (1.0 - alpha) ** (stop - start), start
    offset = 0.0
    for t in range(first, stop):
        offset += (x[t] - base - offset) * alpha
    return scale, offset


@step
def _replay(x: Array, edges: Ints, means: Array, alpha: float, out: Array) -> None:
    """Four stretches, edges[k] to edges[k + 1], each from means[k] on; the last is the shortest."""
    a, b, c, d = edges[0], edges[1], edges[2], edges[3]
    whole = edges[4] - d  # bars that all four have
    m0, m1, m2, m3 = means[0], means[1], means[2], means[3]
    for i in range(whole):
        m0 += (x[a + i] - m0) * alpha
        m1 += (x[b + i] - m1) * alpha
        m2 += (x[c + i] - m2) * alpha
        m3 += (x[d + i] - m3) * alpha
        out[a + i] = m0
        out[b + i] = m1
        out[c + i] = m2
        out[d + i] = m3
    for t in range(a + whole, b):
        m0 += (x[t] - m0) * alpha
        out[t] = m0
    for t in range(b + whole, c):
        m1 += (x[t] - m1) * alpha
        out[t] = m1
    for t in range(c + whole, d):
        m2 += (x[t] - m2) * alpha
        out[t] = m2


def memory_of(alpha: float) -> int:
    """Bars after which what stood before them is forgotten: (1 - alpha) ** bars < 1e-300."""
    if alpha >= 1.0:
        return 1
    return math.ceil(math.log(FORGOTTEN) / math.log1p(-alpha))


def _scan(x: Array, window: int, alpha: float, threads: int, out: Array) -> None:
    if x.size < window:
        return
    base = out[window - 1] = _seed(x, window)
    count = STRETCHES * threads
    length = -(-(x.size - window) // count)
    edges = np.minimum(window + length * np.arange(count + 1), x.size).astype(np.int64)
    memory = memory_of(alpha)

    def fold(k: int) -> tuple[float, float]:
        return _fold(x, int(edges[k]), int(edges[k + 1]), alpha, base, memory)

    def replay(thread: int) -> None:
        part = slice(thread * STRETCHES, (thread + 1) * STRETCHES + 1)
        _replay(x, edges[part], means[part], alpha, out)

    with ThreadPoolExecutor(threads) as pool:
        maps = list(pool.map(fold, range(count - 1)))
        means = np.empty(count + 1)
        means[0] = base
        for k, (scale, offset) in enumerate(maps):
            means[k + 1] = base + (scale * (means[k] - base) + offset)
        list(pool.map(replay, range(threads)))


def recursive_mean(x: Array, window: int, alpha: float, *, threads: int = 2) -> Array:
    """Exponential mean of weight `alpha`, seeded by the mean of the first window.

    x        [T] float64; a NaN or an infinity ends a series, and what follows it starts anew
    alpha    weight of the newest bar, above 0 and at most 1
    threads  how many work at once
    returns  [T] in the unit of `x`, NaN before bar window-1; within 1e-12 of the sequential mean of
             values of one sign, and the same to the last bit for the same number of threads
    raises   ValueError for a window or a number of threads below 1 and an alpha outside (0, 1]
    """
    require_window(window)
    require_window(threads, name="threads")
    if not 0.0 < alpha <= 1.0:
        raise ValueError(f"alpha {alpha} is outside (0, 1]")
    (out,) = over_runs(_scan, (x,), 1, window, alpha, threads)
    return out


def ema(x: Array, window: int, *, threads: int = 2) -> Array:
    """Exponential moving average of one long series; `reference.ema` within 1e-12."""
    require_window(window)
    return recursive_mean(x, window, 2.0 / (window + 1.0), threads=threads)


def wilder(x: Array, window: int, *, threads: int = 2) -> Array:
    """Wilder's mean (alpha 1 / window) of one long series within 1e-12 of the sequential one."""
    require_window(window)
    return recursive_mean(x, window, 1.0 / window, threads=threads)
