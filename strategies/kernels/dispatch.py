"""The only public door to the kernels: which backend computes, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any, Literal, get_args

from strategies.kernels.runs import Array, Excursions
from strategies.kernels.switches import switched_off
from trader.core.errors import ConfigError

Backend = Literal["auto", "cuda", "cpu", "reference"]
Taken = Literal["cuda", "cpu", "reference"]
NUMBA_PAYS_FROM = 500_000  # bar-values; below, starting numba takes longer than it saves

Two = tuple[Array, Array]
Three = tuple[Array, Array, Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSet:
    """Every kernel on one backend; meanings, shapes and errors are those of the reference.

    backend  "cpu" and "reference" give the same numbers to the last bit, "cuda" to 1e-9 of them
    reason   one sentence saying why this backend was taken
    """

    backend: Taken
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
    rolling_max: Callable[[Array, int], Array]  # x, window
    rolling_min: Callable[[Array, int], Array]  # x, window
    stochastic: Callable[[Array, Array, Array, int, int], Two]  # high, low, close, window, smooth
    vwap: Callable[[Array, Array, Array, Array, int], Array]  # high, low, close, volume, window
    # open, high, low, close, entry, exit, stop_distance, slippage
    excursions: Callable[..., Excursions]


KERNELS = tuple(field.name for field in fields(KernelSet))[2:]  # all but backend and reason
NOT_ON_A_DEVICE = ("excursions",)


def kernels(backend: Backend = "auto", *, bars: int = 0) -> KernelSet:
    """The kernels of `backend`.

    bars    how many bar-values the caller is going to compute: bars × indicators × parameter sets
    auto    the reference below 500,000 bar-values, where starting numba does not pay, else the
            compiled kernels; where numba cannot be imported or is told to compile nothing, the
            reference, and the reason says so.
            Never a CUDA device: a decision has to be replayed to the last bit on any machine, and
            the last bits of a device are not proven to be those of the reference
    cuda    the device, by name only; `excursions`, whose trades are decisions, stay on the CPU
    raises  ConfigError when "cpu" or "cuda" was asked for by name and numba cannot be imported or
            is told to compile nothing,
            EndpointError when "cuda" was and there is no device, saying what is missing,
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
    if backend == "cuda":
        import_module("strategies.kernels.cuda.device").require_device()
    variable = switched_off()
    if variable is not None and backend != "cuda":
        if backend == "auto":
            return _load("reference", f"numba compiles nothing while {variable} is set")
        raise ConfigError(
            f"the {backend} kernels are not compiled while {variable} is set; "
            "unset it or choose the backend auto or reference"
        )
    try:
        if backend == "auto":
            return _load("cpu", f"{bars:,} bar-values")
        return _load(backend, "asked for by name")
    except ImportError as exc:
        if backend != "auto":
            raise ConfigError(
                f"the {backend} kernels need numba, which cannot be imported ({exc}); "
                "install it or choose the backend auto or reference"
            ) from exc
        return _load("reference", f"numba cannot be imported ({exc})")


def _load(name: Taken, reason: str) -> KernelSet:
    place = "cuda.indicators" if name == "cuda" else name
    module = import_module(f"strategies.kernels.{place}")  # numba is imported here, not before
    functions: dict[str, Any] = {
        kernel: getattr(module, kernel) for kernel in KERNELS if kernel not in NOT_ON_A_DEVICE
    }
    home = module
    if name == "cuda":  # the simulator stands in for a device, and for compiled code too
        beside = "cpu" if switched_off() is None else "reference"
        home = import_module(f"strategies.kernels.{beside}")
    functions |= {kernel: getattr(home, kernel) for kernel in NOT_ON_A_DEVICE}
    return KernelSet(backend=name, reason=reason, **functions)
