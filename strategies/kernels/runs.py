"""Runs of finite bars, which both backends work on, so that one bad print poisons nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FLOAT64 = np.dtype(np.float64)
Excursions = tuple[NDArray[np.int64], NDArray[np.int64], Array, Array]


def require_window(window: int, *, name: str = "window", least: int = 1) -> None:
    """ValueError unless `window` is at least `least` bars."""
    if window < least:
        raise ValueError(f"{name} {window} is below {least}; give a number of bars from {least} up")


def require_fast_below_slow(fast: int, slow: int) -> None:
    """ValueError unless the fast window is shorter than the slow one."""
    require_window(fast, name="fast window")
    if fast >= slow:
        raise ValueError(f"fast window {fast} must be shorter than slow window {slow}")


def require_positive(value: float, *, name: str) -> None:
    """ValueError unless `value` is above zero."""
    if not value > 0.0:
        raise ValueError(f"{name} {value} must be above zero")


def float_arrays(*inputs: NDArray[np.generic]) -> tuple[Array, ...]:
    """The inputs as contiguous, writeable float64 [T], copied only where they are not.

    Raises ValueError when the lengths differ. One layout means one compiled version per kernel.
    """
    shape = getattr(inputs[0], "shape", ())
    if len(shape) == 1 and all(_as_wanted(x, shape) for x in inputs):  # the usual case
        return inputs  # type: ignore[return-value]
    arrays = tuple(np.require(x, dtype=np.float64, requirements=["C", "W"]) for x in inputs)
    sizes = {x.shape for x in arrays}
    if len(sizes) > 1 or arrays[0].ndim != 1:
        raise ValueError(f"inputs must be one-dimensional and equally long, not {sorted(sizes)}")
    return arrays


def _as_wanted(x: NDArray[np.generic], shape: tuple[int, ...]) -> bool:
    return type(x) is np.ndarray and x.dtype is FLOAT64 and x.shape == shape and x.flags.carray


def finite_runs(arrays: tuple[Array, ...]) -> Iterator[slice]:
    """Every longest stretch of bars on which all inputs are finite, oldest first."""
    finite = np.isfinite(arrays[0])
    for x in arrays[1:]:
        finite &= np.isfinite(x)
    if finite.all():  # the usual case: one run, nothing to search
        if finite.size:
            yield slice(0, finite.size)
        return
    edges = np.flatnonzero(np.diff(np.concatenate(([False], finite, [False]))))
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        yield slice(int(start), int(stop))


def over_runs(
    kernel: Callable[..., None], inputs: tuple[Array, ...], outputs: int, *parameters: Any
) -> tuple[Array, ...]:
    """`outputs` arrays [T], NaN where `kernel` wrote nothing.

    kernel  called as kernel(*inputs, *parameters, *outputs) once per run, with views of that run:
            a NaN or an infinity ends a series, and what follows it starts a new one
    """
    arrays = float_arrays(*inputs)
    results = tuple(np.full(arrays[0].shape, np.nan) for _ in range(outputs))
    with np.errstate(all="ignore"):  # what overflows becomes an infinity, as in compiled code
        for run in finite_runs(arrays):
            kernel(*(x[run] for x in arrays), *parameters, *(out[run] for out in results))
    return results


def bool_arrays(size: int, *inputs: NDArray[np.generic]) -> tuple[NDArray[np.bool_], ...]:
    """The inputs as contiguous, writeable bool [size]; ValueError when one is not that long."""
    arrays = tuple(np.require(x, dtype=np.bool_, requirements=["C", "W"]) for x in inputs)
    for x in arrays:
        if x.shape != (size,):
            raise ValueError(f"signals must be one-dimensional and {size} bars long, not {x.shape}")
    return arrays


def log_returns(close: NDArray[np.generic]) -> Array:
    """[T] ln(close / previous close); not finite at bar 0 and beside a close that is <= 0."""
    (prices,) = float_arrays(close)
    out = np.full(prices.shape, np.nan)
    with np.errstate(all="ignore"):  # a bad close becomes NaN or an infinity, which ends the run
        out[1:] = np.log(prices[1:] / prices[:-1])
    return out


def tradable(entry: NDArray[np.bool_], stop_distance: Array) -> NDArray[np.int64]:
    """[K] bars whose entry can be traded: a next bar to fill on, and a finite positive risk."""
    fires = entry & np.isfinite(stop_distance) & (stop_distance > 0.0)
    return np.flatnonzero(fires[:-1]).astype(np.int64)
