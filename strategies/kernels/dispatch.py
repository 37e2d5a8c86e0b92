"""The only public door to the kernels: which backend computes, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any, Literal, get_args

from strategies.kernels.runs import Array, Excursions
from trader.core.errors import ConfigError

Backend = Literal["auto", "cpu", "reference"]
NUMBA_PAYS_FROM = 500_000  # bar-values; below, starting numba takes longer than it saves

Three = tuple[Array, Array, Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSet:
    """Every kernel on one backend; meanings, shapes and errors are those of the reference.

    backend  "cpu" or "reference"; both give the same numbers to the last bit
    reason   one sentence saying why this backend was taken
    """

    backend: Literal["cpu", "reference"]
    reason: str
    sma: Callable[[Array, int], Array]  # x, window
    ema: Callable[[Array, int], Array]  # x, window
    rsi: Callable[[Array, int], Array]  # close, window
    macd: Callable[[Array, int, int, int], Three]  # close, fast, slow, signal
    true_range: Callable[[Array, Array, Array], Array]  # high, low, close
    atr: Callable[[Array, Array, Array, int], Array]  # high, low, close, window
    bollinger: Callable[[Array, int, float], Three]  # x, window, deviations
    adx: Callable[[Array, Array, Array, int], Three]  # high, low, close, window
    obv: Callable[[Array, Array], Array]  # close, volume
    realised_volatility: Callable[[Array, int, float], Array]  # close, window, periods per year
    # open, high, low, close, entry, exit, stop_distance, slippage
    excursions: Callable[..., Excursions]


KERNELS = tuple(field.name for field in fields(KernelSet))[2:]  # all but backend and reason


def kernels(backend: Backend = "auto", *, bars: int = 0) -> KernelSet:
    """The kernels of `backend`.

    bars    how many bar-values the caller is going to compute: bars × indicators × parameter sets
    auto    the reference below 500,000 bar-values, where starting numba does not pay, else the
            compiled kernels; where numba cannot be imported, the reference, and the reason says so
    raises  ConfigError when "cpu" was asked for by name and numba cannot be imported,
            ValueError for a backend that does not exist
    """
    if backend not in get_args(Backend):
        known = ", ".join(get_args(Backend))
        raise ValueError(f"kernel backend {backend!r} does not exist; choose one of {known}")
    if backend == "reference":
        return _load("reference", "asked for by name")
    if backend == "auto" and bars < NUMBA_PAYS_FROM:
        few = f"{bars:,} bar-values are fewer than {NUMBA_PAYS_FROM:,}"
        return _load("reference", f"{few}: starting numba would take longer than it saves")
    try:
        return _load("cpu", "asked for by name" if backend == "cpu" else f"{bars:,} bar-values")
    except ImportError as exc:
        if backend == "cpu":
            raise ConfigError(
                f"the cpu kernels need numba, which cannot be imported ({exc}); "
                "install it or choose the backend auto or reference"
            ) from exc
        return _load("reference", f"numba cannot be imported ({exc})")


def _load(name: Literal["cpu", "reference"], reason: str) -> KernelSet:
    module = import_module(f"strategies.kernels.{name}")  # numba is imported here, not before
    functions: dict[str, Any] = {kernel: getattr(module, kernel) for kernel in KERNELS}
    return KernelSet(backend=name, reason=reason, **functions)
