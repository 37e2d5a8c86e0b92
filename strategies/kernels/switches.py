"""The environment variables by which numba is told to compile nothing in this process."""

from __future__ import annotations

import os

SIMULATOR = "NUMBA_ENABLE_CUDASIM"  # a simulator stands in for a CUDA device
DISABLED = "NUMBA_DISABLE_JIT"


def switched_off() -> str | None:
    """The variable that is set; None where numba compiles."""
    for name in (SIMULATOR, DISABLED):
        if os.environ.get(name, "") not in {"", "0"}:
            return name
    return None
