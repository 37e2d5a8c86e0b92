"""Work that compiled functions do without the GIL, shared between threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """Threads that stay, since starting them takes longer than a small sweep."""
    return ThreadPoolExecutor(max_workers=workers, thread_name_prefix="kernels")


def on_threads(work: Callable[[int], object], threads: int) -> None:
    """Call work(0), work(1), ... at once on so many threads, this one included.

    Returns when all are done, and raises what any of them raised; ValueError below one thread.
    """
    if threads < 1:
        raise ValueError(f"threads {threads} is below 1")
    others = [_pool(threads - 1).submit(work, number) for number in range(1, threads)]
    try:
        work(0)
    finally:
        for other in others:
            other.result()


def in_parts(work: Callable[[int, int], object], count: int, threads: int) -> None:
    """Call work(start, stop) for as many even parts of `count` things as there are threads."""
    parts = max(1, min(threads, count))
    on_threads(lambda part: work(count * part // parts, count * (part + 1) // parts), parts)
