"""The doctor on kernels: whether both backends agree, where compiled ones lie, what CUDA finds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trader.app.checking import Check
from trader.core.errors import TraderError

if TYPE_CHECKING:
    from strategies.kernels.cache import KernelCache
    from strategies.kernels.cuda.device import CudaReport

NOT_NEEDED = "not needed: the CPU computes everything"


def kernel_checks() -> tuple[Check, ...]:
    """The compiled kernels, their cache, and CUDA: driver, toolkit, device."""
    from strategies.kernels.cache import in_use
    from strategies.kernels.cuda.device import cuda_report

    compiled = _compiled()
    return (compiled, cache_check(in_use()), *cuda_checks(cuda_report()))


def _compiled() -> Check:
    from strategies.kernels.switches import switched_off

    variable = switched_off()
    remedy = "reinstall numba" if variable is None else f"unset {variable}"
    remedy += ", or set kernels.backend to reference"
    try:
        import numpy as np

        from strategies.kernels.dispatch import kernels

        prices = np.linspace(100.0, 120.0, 64)
        reference, compiled = kernels("reference"), kernels("cpu")
        if not np.array_equal(reference.rsi(prices, 14), compiled.rsi(prices, 14), equal_nan=True):
            raise TraderError("the compiled kernels and the reference disagree")
    except (TraderError, ImportError) as exc:
        return Check(name="kernels", status="failed", found=str(exc), remedy=remedy)
    return Check(name="kernels", status="ok", found="compiled kernels agree with the reference")


def cache_check(cache: KernelCache | None) -> Check:
    """Where compiled kernels are kept; a warning where that is not the folder that was wanted."""
    name = "kernel cache"
    if cache is None:
        return Check(name=name, status="ok", found="nothing has been compiled")
    kept = f"{cache.folder} holds {_size(cache.folder)}"
    if cache.refused is None:
        return Check(name=name, status="ok", found=kept)
    return Check(
        name=name,
        status="warning",
        found=f"no kernel can be kept in {cache.refused}; {kept}",
        remedy="make the folder writable, or name another by NUMBA_CACHE_DIR",
    )


def _size(folder: Path) -> str:
    sizes = [path.stat().st_size for path in folder.rglob("*.nbc")]
    return f"compiled functions: {len(sizes)}, {sum(sizes) / 1000:,.0f} kB"


def cuda_checks(report: CudaReport) -> tuple[Check, ...]:
    """Driver, toolkit and device; only a device that cannot be used as it stands is a warning."""
    idle = bool(report.devices) and not report.ready
    remedy = "; ".join(report.missing) if idle else ""
    return (
        _driver(report),
        Check(
            name="CUDA toolkit",
            status="warning" if idle else "ok",
            found=_toolkit(report),
            remedy=remedy,
        ),
        Check(name="CUDA device", status="ok", found=_devices(report)),
    )


def _driver(report: CudaReport) -> Check:
    found = f"no NVIDIA driver, {NOT_NEEDED}"
    if report.supports is not None:
        release = "" if report.driver is None else f"{report.driver}, "
        found = f"{release}runs CUDA up to {report.supports[0]}.{report.supports[1]}"
    elif report.driver is not None:
        found = f"{report.driver}, tells no CUDA version"
    return Check(name="CUDA driver", status="ok", found=found)


def _toolkit(report: CudaReport) -> str:
    there = ", ".join(f"{name} {version}" for name, version in report.packages if version)
    absent = ", ".join(name for name, version in report.packages if not version)
    simulated = "the CUDA simulator stands in; " if report.simulated else ""
    if not absent:
        return simulated + there
    only = f"{there}; " if there else ""
    needed = "" if report.devices else f", {NOT_NEEDED}"
    return f"{simulated}{only}without {absent}{needed}"


def _devices(report: CudaReport) -> str:
    if not report.devices:
        return f"none, {NOT_NEEDED}"
    return ", ".join(
        f"{device.name} (sm_{device.compute_capability[0]}{device.compute_capability[1]}, "
        f"{device.multiprocessors} multiprocessors, {device.memory_bytes / 2**30:.0f} GiB)"
        for device in report.devices
    )
