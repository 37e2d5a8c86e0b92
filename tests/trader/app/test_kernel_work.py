"""Kernels listed, compared with their definition, compiled and timed; and what the doctor says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strategies.kernels import cpu, dispatch
from strategies.kernels.cache import KernelCache
from strategies.kernels.cuda.device import CudaReport, Device, cuda_report
from trader.app import kernel_work
from trader.app.kernel_checks import cache_check, cuda_checks, kernel_checks
from trader.core.errors import EndpointError, UsageError

WITHOUT_CUDA = not cuda_report().compiles
QUICK = ("obv", "true_range")  # of the kernels, for what is the same for all


def test_every_kernel_is_listed_with_all_that_it_promises():
    found = kernel_work.list_kernels()
    assert tuple(each.name for each in found.kernels) == dispatch.KERNELS
    for each in found.kernels:
        assert each.inputs
        assert each.outputs
        assert all((each.shapes, each.missing, each.overflow, each.empty, each.warm_up))
        assert set(each.backends) >= {"reference", "cpu"}
    rsi = next(each for each in found.kernels if each.name == "rsi")
    assert (rsi.parameters, rsi.warm_up) == (("window=14",), "NaN before bar 14")
    assert found.as_json()["schema_version"] == 1


def test_kernels_that_equal_their_definition_are_verified():
    found = kernel_work.verify_kernels(QUICK)
    assert not found.differences
    assert (found.kernels, found.backend, found.tolerance) == (2, "cpu", "bit for bit")
    assert found.cases > 2 * 15
    assert found.as_json()["differences"] == []


def in_last_bit(close, volume):
    return np.nextafter(OBV(close, volume), np.inf)


def of_ties(close, volume):
    """Wrong on flat bars only, as a sign of zero that is one."""
    moved = np.diff(close, prepend=close[:1])
    moved[1:][moved[1:] == 0.0] = 1.0
    return OBV(100.0 + np.cumsum(moved), volume)


def of_length(close, volume):
    return OBV(close, volume)[:-1]


OBV = cpu.obv


@pytest.mark.parametrize(
    ("fault", "case", "words"),
    [
        (in_last_bit, "random walk 0", "obv[0] is"),
        (of_ties, "constant", "obv[1] is"),
        (of_length, "rising", "obv has 159 values instead of 160"),
    ],
)
def test_a_planted_fault_is_named_with_its_kernel_and_case(monkeypatch, fault, case, words):
    monkeypatch.setattr(cpu, "obv", fault)
    found = kernel_work.verify_kernels(QUICK)
    assert {each.kernel for each in found.differences} == {"obv"}
    assert any(each.case == case and words in each.difference for each in found.differences)


def test_a_tolerance_is_kept_where_the_last_bits_are_free():
    spec = kernel_work._specs(("obv",))[0]
    case = spec.edge_cases()["rising"]

    def compared(share: float, *, exact: bool) -> str | None:
        ours = replace(dispatch.kernels("cpu"), obv=lambda *x: OBV(*x) * (1.0 + share))
        return kernel_work._difference(spec, ours, case, exact=exact)

    assert compared(1e-12, exact=True)
    assert compared(1e-12, exact=False) is None
    assert compared(1e-6, exact=False)


@pytest.mark.parametrize("work", [kernel_work.verify_kernels, kernel_work.bench_kernels])
def test_a_kernel_that_does_not_exist_is_a_usage_error_with_a_guess(work):
    with pytest.raises(UsageError, match="did you mean rsi"):
        work(("rsy",))


def test_a_backend_that_does_not_exist_is_a_usage_error():
    with pytest.raises(UsageError, match="choose one of cpu, cuda"):
        kernel_work.verify_kernels((), "gpu")


@pytest.mark.skipif(cuda_report().ready, reason="there is a device")
def test_without_a_device_cuda_cannot_be_verified():
    with pytest.raises(EndpointError, match="no CUDA device"):
        kernel_work.verify_kernels((), "cuda")


def test_the_ratio_of_a_kernel_is_that_of_its_two_times(monkeypatch):
    for name, bars in (("BENCH_BARS", 2_000), ("BENCH_REFERENCE_BARS", 200)):
        monkeypatch.setattr(kernel_work, name, bars)
    monkeypatch.setattr(kernel_work, "BENCH_SECONDS", 0.0)
    (found,) = kernel_work.bench_kernels(("obv",)).kernels
    assert found.ratio == found.reference_ns / found.cpu_ns
    assert min(found.reference_ns, found.cpu_ns) > 0.0


@pytest.mark.skipif(WITHOUT_CUDA, reason="the extra cuda is not installed")
def test_a_cuda_kernel_is_compiled_for_every_type_and_architecture():
    told: list[str] = []
    found = kernel_work.compile_kernels(("true_range_bars",), told.append)
    assert len(found.kernels) == len(told) == 6
    assert {each.dtype for each in found.kernels} == {"float32", "float64"}
    assert {each.arch for each in found.kernels} == {"sm_75", "sm_80", "sm_90"}
    assert not found.over_budget
    assert found.as_json()["over_budget"] == 0
    over = replace(found, kernels=(replace(found.kernels[0], faults=("too many",)),))
    assert over.as_json()["over_budget"] == 1


@pytest.mark.skipif(WITHOUT_CUDA, reason="the extra cuda is not installed")
def test_a_cuda_kernel_that_does_not_exist_is_a_usage_error():
    with pytest.raises(UsageError, match="did you mean true_range_bars"):
        kernel_work.compile_kernels(("true_range_bar",))


@pytest.mark.skipif(not WITHOUT_CUDA, reason="the extra cuda is installed")
def test_without_the_extra_nothing_is_compiled_and_the_remedy_is_named():
    with pytest.raises(EndpointError, match=r"pip install -e '\.\[cuda\]'"):
        kernel_work.compile_kernels()


# --- the doctor -----------------------------------------------------------------------------------

NOTHING = CudaReport(
    driver=None,
    supports=None,
    packages=(("numba-cuda", None), ("nvidia-nvvm", None)),
    devices=(),
    simulated=False,
    missing=("not installed: numba-cuda; install the extra", "no NVIDIA driver was found"),
)
H200 = Device(
    name="NVIDIA H200",
    compute_capability=(9, 0),
    memory_bytes=139 << 30,
    multiprocessors=132,
    clock_khz=1_980_000,
)
READY = CudaReport(
    driver="580.65.06",
    supports=(13, 0),
    packages=(("numba-cuda", "0.30.4"), ("nvidia-nvvm", "13.0.88")),
    devices=(H200,),
    simulated=False,
    missing=(),
)


def test_a_machine_without_a_gpu_lacks_nothing():
    driver, toolkit, device = cuda_checks(NOTHING)
    assert [check.status for check in (driver, toolkit, device)] == ["ok"] * 3
    assert all("not needed" in check.found for check in (driver, toolkit, device))
    assert "without numba-cuda, nvidia-nvvm" in toolkit.found


def test_a_gpu_is_told_with_its_driver_toolkit_and_versions():
    driver, toolkit, device = cuda_checks(READY)
    assert [check.status for check in (driver, toolkit, device)] == ["ok"] * 3
    assert driver.found == "580.65.06, runs CUDA up to 13.0"
    assert toolkit.found == "numba-cuda 0.30.4, nvidia-nvvm 13.0.88"
    assert device.found == "NVIDIA H200 (sm_90, 132 multiprocessors, 139 GiB)"


def test_a_gpu_that_cannot_be_used_is_a_warning_with_the_remedy():
    lacking = replace(READY, packages=NOTHING.packages, missing=("not installed: x; install y",))
    _, toolkit, device = cuda_checks(lacking)
    assert (toolkit.status, toolkit.remedy) == ("warning", "not installed: x; install y")
    assert "not needed" not in toolkit.found
    assert "H200" in device.found


def test_the_kernel_cache_is_told_with_what_it_holds(tmp_path):
    (tmp_path / "kernels_1").mkdir()
    (tmp_path / "kernels_1" / "a.1.nbc").write_bytes(bytes(3_000))
    check = cache_check(KernelCache(folder=tmp_path))
    assert check.status == "ok"
    assert check.found == f"{tmp_path} holds compiled functions: 1, 3 kB"


def test_a_refused_kernel_cache_is_a_warning_with_the_remedy(tmp_path):
    check = cache_check(KernelCache(folder=tmp_path, refused="/proc/x (Read-only file system)"))
    assert check.status == "warning"
    assert "/proc/x (Read-only file system)" in check.found
    assert "NUMBA_CACHE_DIR" in check.remedy


def test_a_numba_that_is_told_to_compile_nothing_is_a_failure_with_its_remedy(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    compiled, *_ = kernel_checks()
    assert compiled.status == "failed"
    assert compiled.remedy == "unset NUMBA_DISABLE_JIT, or set kernels.backend to reference"


def test_nothing_compiled_is_nothing_wrong():
    assert cache_check(None).status == "ok"
