"""Which backend is taken, why, and what is not imported until it is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from strategies.kernels.cuda import device
from strategies.kernels.dispatch import KERNELS, NUMBA_PAYS_FROM, kernels
from trader.core.errors import ConfigError, EndpointError


def run(code):
    """What a fresh interpreter prints for `code`."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_auto_takes_the_reference_while_numba_would_not_pay_and_says_so():
    few = kernels("auto", bars=NUMBA_PAYS_FROM - 1)
    assert few.backend == "reference"
    assert few.reason.startswith("499,999 bar-values are fewer than 500,000")
    many = kernels("auto", bars=NUMBA_PAYS_FROM)
    assert many.backend == "cpu"
    assert many.reason == "500,000 bar-values"


def test_a_backend_asked_for_by_name_is_taken_whatever_the_size():
    assert kernels("reference", bars=10**9).backend == "reference"
    assert kernels("cpu", bars=1).backend == "cpu"
    assert kernels("cpu").reason == "asked for by name"


def test_an_unknown_backend_is_refused_with_the_ones_there_are():
    with pytest.raises(
        ValueError, match="'gpu' does not exist; choose one of auto, cuda, cpu, reference"
    ):
        kernels("gpu")  # type: ignore[arg-type]


def test_strategies_start_without_numba_pandas_or_ta():
    code = (
        "import sys, strategies.registry, strategies.indicators.library\n"
        "from strategies.kernels.dispatch import kernels\n"
        "kernels('auto', bars=10)\n"
        "print([name for name in ('numba', 'pandas', 'ta') if name in sys.modules])"
    )
    assert run(code) == "[]"


def test_without_numba_cpu_is_an_error_and_auto_says_why_it_fell_back():
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "from strategies.kernels.dispatch import kernels\n"
        "from trader.core.errors import ConfigError\n"
        "print(kernels('auto', bars=10**9).backend, kernels('auto', bars=10**9).reason[:24])\n"
        "try: kernels('cpu')\n"
        "except ConfigError as exc: print(exc)"
    )
    first, second = run(code).splitlines()
    assert first == "reference numba cannot be imported"
    assert second.startswith("the cpu kernels need numba")
    assert "choose the backend auto or reference" in second


@pytest.mark.parametrize("variable", ["NUMBA_ENABLE_CUDASIM", "NUMBA_DISABLE_JIT"])
def test_a_numba_told_to_compile_nothing_is_said_and_not_asked(monkeypatch, variable):
    monkeypatch.setenv(variable, "1")
    taken = kernels("auto", bars=10**9)
    assert (taken.backend, taken.reason) == (
        "reference",
        f"numba compiles nothing while {variable} is set",
    )
    with pytest.raises(ConfigError, match=f"while {variable} is set; unset it or choose"):
        kernels("cpu")


def no_device():
    raise EndpointError("CUDA: no driver; install one")


def test_cuda_by_name_without_a_device_is_an_error_that_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(device, "require_device", no_device)
    with pytest.raises(EndpointError, match="no driver; install one"):
        kernels("cuda")


def test_auto_never_asks_for_a_device_however_much_there_is_to_do(monkeypatch):
    monkeypatch.setattr(device, "require_device", no_device)
    assert kernels("auto", bars=10**15).backend == "cpu"
    assert kernels("auto").backend == "reference"


def test_every_backend_offers_every_kernel():
    for backend in ("cpu", "reference"):
        chosen = kernels(backend)
        assert all(callable(getattr(chosen, name)) for name in KERNELS)
    assert {"stochastic", "rolling_max", "rolling_min", "vwap"} < set(KERNELS)
