"""How the steps are compiled: for the CPU, for a CUDA kernel that calls them, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from strategies.kernels.switches import SIMULATOR, switched_off

F = TypeVar("F", bound=Callable[..., Any])
Slice = Any  # [T] float32 or float64, on the CPU or on a device
Real = Any  # a scalar of the slice's type

SIMULATED = switched_off() == SIMULATOR


def step(function: F) -> F:
    """`function` compiled on first call and cached on disk; plain Python on the CUDA simulator.

    It divides by zero as NumPy does, never contracts or reorders, and lets other threads run.
    """
    if SIMULATED:
        return function
    return cast(F, numba.njit(function, cache=True, error_model="numpy", nogil=True))
