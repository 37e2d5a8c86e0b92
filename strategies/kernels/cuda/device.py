"""What CUDA finds on this machine: driver, toolkit packages and devices, asked without numba."""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from strategies.kernels.switches import DISABLED, SIMULATOR, switched_off
from trader.core.errors import EndpointError

INSTALL = "install the extra: pip install -e '.[cuda]'"
PACKAGES = (  # what compiling and launching a kernel needs, and the extra `cuda` brings
    "numba-cuda",
    "nvidia-nvvm",
    "nvidia-cuda-nvrtc",
    "nvidia-nvjitlink",
    "cuda-bindings",
)
NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
MINOR, MAJOR, MULTIPROCESSORS, CLOCK_KHZ = 76, 75, 16, 13  # CUdevice_attribute


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One CUDA device.

    compute_capability  (9, 0) for sm_90
    memory_bytes        of the whole device
    clock_khz           of its multiprocessors at best; 0 where the driver does not say
    """

    name: str
    compute_capability: tuple[int, int]
    memory_bytes: int
    multiprocessors: int
    clock_khz: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaReport:
    """What is there for CUDA, and what is not.

    driver     release of the NVIDIA driver ("580.65.06"), None where none is loaded
    supports   newest CUDA version the driver runs, (13, 0); None without a driver
    packages   (name, version or None where it is not installed), one a package of the extra
    devices    as the driver counts them, CUDA_VISIBLE_DEVICES included
    simulated  whether numba's CUDA simulator stands in for a device in this process
    missing    one sentence each, with its remedy; empty where kernels can be launched
    """

    driver: str | None
    supports: tuple[int, int] | None
    packages: tuple[tuple[str, str | None], ...]
    devices: tuple[Device, ...]
    simulated: bool
    missing: tuple[str, ...]

    @property
    def ready(self) -> bool:
        """Whether a kernel can be launched here, on a device or in the simulator."""
        return not self.missing

    @property
    def compiles(self) -> bool:
        """Whether kernels can be compiled and assembled here; that needs no device."""
        there = all(version is not None for _, version in self.packages)
        return there and switched_off() is None


def cuda_report() -> CudaReport:
    """What CUDA finds on this machine; never raises, and imports no numba."""
    packages = tuple((name, _version(name)) for name in PACKAGES)
    library = _driver_library()
    supports, devices, refusal = (None, (), "") if library is None else _ask(library)
    missing: list[str] = []
    absent = [name for name, version in packages if version is None]
    if absent:
        missing.append(f"not installed: {', '.join(absent)}; {INSTALL}")
    if library is None:
        missing.append("no NVIDIA driver was found; install one (580 or newer for CUDA 13)")
    elif refusal:
        missing.append(refusal)
    if switched_off() == DISABLED:
        missing.append(f"numba compiles nothing while {DISABLED} is set; unset it")
    needed = _toolkit(dict(packages))
    if devices and supports is not None and needed is not None and supports < needed:
        missing.append(
            f"the driver runs CUDA up to {_dotted(supports)} and the toolkit is {_dotted(needed)}; "
            "update the driver, or install a toolkit of its version"
        )
    return CudaReport(
        driver=_release() if library is not None else None,
        supports=supports,
        packages=packages,
        devices=devices,
        simulated=simulated(),
        missing=() if simulated() else tuple(missing),
    )


@lru_cache(maxsize=1)  # of what was found; what is missing is asked for again
def require_device() -> CudaReport:
    """The report of a machine that can launch kernels.

    raises  EndpointError naming everything that is missing, and what to do about each
    """
    report = cuda_report()
    if not report.ready:
        raise EndpointError("no CUDA device: " + "; ".join(report.missing))
    return report


def simulated() -> bool:
    """Whether numba's CUDA simulator stands in for a device in this process."""
    return switched_off() == SIMULATOR


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _toolkit(packages: dict[str, str | None]) -> tuple[int, int] | None:
    """CUDA version of the compiler, which the driver has to run."""
    version = packages["nvidia-nvvm"]
    if version is None:
        return None
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _release() -> str | None:
    """Release of the loaded kernel module, where the system shows it."""
    path = Path("/sys/module/nvidia/version")
    try:
        return path.read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _driver_library() -> ctypes.CDLL | None:
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def _ask(library: ctypes.CDLL) -> tuple[tuple[int, int] | None, tuple[Device, ...], str]:
    """Newest CUDA version, devices, and why there is none where there is none."""
    number = ctypes.c_int()
    if library.cuDriverGetVersion(ctypes.byref(number)) != 0:
        return None, (), "the NVIDIA driver does not tell its version; reinstall it"
    supports = (number.value // 1000, number.value % 1000 // 10)
    code = library.cuInit(0)
    if code == 0:
        code = library.cuDeviceGetCount(ctypes.byref(number))
    if code == NO_DEVICE or (code == 0 and number.value == 0):
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        remedy = "plug one in" if hidden is None else f"CUDA_VISIBLE_DEVICES is {hidden!r}"
        return supports, (), f"the NVIDIA driver sees no device; {remedy}"
    if code != 0:
        return supports, (), f"the NVIDIA driver does not start (error {code}); see nvidia-smi"
    return supports, tuple(_device(library, index) for index in range(number.value)), ""


def _device(library: ctypes.CDLL, index: int) -> Device:
    handle, memory = ctypes.c_int(), ctypes.c_size_t()
    name = ctypes.create_string_buffer(256)
    library.cuDeviceGet(ctypes.byref(handle), index)
    library.cuDeviceGetName(name, len(name), handle)
    library.cuDeviceTotalMem_v2(ctypes.byref(memory), handle)

    def attribute(number: int) -> int:
        value = ctypes.c_int()
        library.cuDeviceGetAttribute(ctypes.byref(value), number, handle)
        return value.value

    return Device(
        name=name.value.decode(errors="replace"),
        compute_capability=(attribute(MAJOR), attribute(MINOR)),
        memory_bytes=memory.value,
        multiprocessors=attribute(MULTIPROCESSORS),
        clock_khz=attribute(CLOCK_KHZ),
    )
