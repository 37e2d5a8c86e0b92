"""What CUDA is found on a machine, with drivers made up for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from strategies.kernels.cuda import device
from strategies.kernels.cuda.device import cuda_report, require_device
from strategies.kernels.switches import DISABLED, SIMULATOR
from tests.strategies.kernels.processes import ROOT
from trader.core.errors import EndpointError

INSTALLED = dict.fromkeys(device.PACKAGES, "13.0.88")


class Driver:
    """A CUDA driver with some devices, called as ctypes calls the real one."""

    def __init__(self, *, version=13_000, devices=1, start=0, tells_version=True):
        self.version, self.devices, self.start = version, devices, start
        self.tells_version = tells_version

    def cuDriverGetVersion(self, number):  # noqa: N802 - the driver's names
        number._obj.value = self.version
        return 0 if self.tells_version else 1

    def cuInit(self, flags):  # noqa: N802
        return self.start

    def cuDeviceGetCount(self, number):  # noqa: N802
        number._obj.value = self.devices
        return 0

    def cuDeviceGet(self, handle, index):  # noqa: N802
        handle._obj.value = index
        return 0

    def cuDeviceGetName(self, name, size, handle):  # noqa: N802
        name.value = f"NVIDIA H200 {handle.value}".encode()
        return 0

    def cuDeviceTotalMem_v2(self, size, handle):  # noqa: N802
        size._obj.value = 141 << 30
        return 0

    def cuDeviceGetAttribute(self, value, number, handle):  # noqa: N802
        value._obj.value = {75: 9, 76: 0, 16: 132, 13: 1_980_000}[number]
        return 0


@pytest.fixture(autouse=True)
def _found_anew(monkeypatch):
    for name in (SIMULATOR, DISABLED):
        monkeypatch.delenv(name, raising=False)
    require_device.cache_clear()
    yield
    require_device.cache_clear()


@pytest.fixture
def machine(monkeypatch):
    """Puts a driver and packages on this machine."""

    def put(driver, packages=INSTALLED):
        monkeypatch.setattr(device, "_driver_library", lambda: driver)
        monkeypatch.setattr(device, "_version", packages.get)

    return put


def test_a_machine_with_everything_is_ready(machine):
    machine(Driver(devices=2))
    report = require_device()
    assert report.ready
    assert report.compiles
    assert report.missing == ()
    assert report.supports == (13, 0)
    assert [one.name for one in report.devices] == ["NVIDIA H200 0", "NVIDIA H200 1"]
    first = report.devices[0]
    assert first.compute_capability == (9, 0)
    assert first.multiprocessors == 132
    assert first.memory_bytes == 141 << 30
    assert first.clock_khz == 1_980_000


def test_a_missing_driver_and_missing_packages_are_both_named(machine):
    machine(None, {"cuda-bindings": "13.0.3"})
    report = cuda_report()
    assert not report.ready
    assert not report.compiles
    with pytest.raises(EndpointError) as caught:
        require_device()
    said = str(caught.value)
    assert "not installed: numba-cuda, nvidia-nvvm, nvidia-cuda-nvrtc, nvidia-nvjitlink" in said
    assert "pip install -e '.[cuda]'" in said
    assert "no NVIDIA driver was found; install one" in said


def test_without_a_driver_kernels_still_compile(machine):
    machine(None)
    report = cuda_report()
    assert report.compiles
    assert not report.ready
    assert report.driver is None
    assert report.supports is None


@pytest.mark.parametrize(
    ("driver", "visible", "said"),
    [
        (Driver(devices=0), None, "sees no device; plug one in"),
        (Driver(start=device.NO_DEVICE), "-1", "sees no device; CUDA_VISIBLE_DEVICES is '-1'"),
        (Driver(start=999), None, r"does not start \(error 999\); see nvidia-smi"),
        (Driver(tells_version=False), None, "does not tell its version; reinstall it"),
        (Driver(version=12_040), None, "up to 12.4 and the toolkit is 13.0; update the driver"),
    ],
)
def test_a_driver_that_is_no_use_is_named_with_its_remedy(
    machine, monkeypatch, driver, visible, said
):
    machine(driver)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(EndpointError, match=said):
        require_device()


def test_the_simulator_stands_in_for_a_device_but_compiles_nothing(machine, monkeypatch):
    machine(None)
    monkeypatch.setenv(SIMULATOR, "1")
    report = require_device()
    assert report.simulated
    assert report.ready
    assert not report.compiles


def test_a_numba_that_is_told_to_compile_nothing_is_named(machine, monkeypatch):
    machine(Driver())
    monkeypatch.setenv(DISABLED, "1")
    assert not cuda_report().compiles
    with pytest.raises(EndpointError, match="while NUMBA_DISABLE_JIT is set; unset it"):
        require_device()
    monkeypatch.setenv(DISABLED, "0")
    assert require_device().compiles


def test_this_machine_can_be_asked_whatever_it_has():
    report = cuda_report()
    assert {name for name, _ in report.packages} == set(device.PACKAGES)
    assert report.ready == bool(report.devices and not report.missing)


def test_nothing_imports_cuda_unasked():
    program = (
        "import sys, trader.cli.main, strategies.registry, strategies.kernels.dispatch, "
        "strategies.kernels.cpu, strategies.kernels.engines.walk, strategies.kernels.scan, "
        "strategies.kernels.cuda.compile_only, strategies.kernels.cuda.race_check, "
        "strategies.kernels.cuda.device;"
        "print([name for name in sys.modules if name.startswith('numba.cuda')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
