"""Every CUDA kernel on numba's simulator against the reference, in a process of its own."""

from __future__ import annotations

from tests.strategies.kernels.processes import told_by

SAME_BITS = {"unequal": 0, "missing": 0, "error": 0.0}
SINGLE_PRECISION = 2e-5
ROUNDING = 1e-12


def test_every_kernel_does_on_the_simulator_what_the_reference_says():
    told = told_by("tests.strategies.kernels.cuda.simulated", simulator=True)
    both = {f"{name} {dtype}" for name in told["kernels"] for dtype in ("float32", "float64")}
    assert set(told["launched"]) == both, "a kernel is not tested"
    assert len(told["kernels"]) >= 18
    assert len(told["indicators"]) == 14
    for name, cases in told["indicators"].items():
        assert len(cases) > 15
        off = {case: found for case, found in cases.items() if any(x != SAME_BITS for x in found)}
        assert not off, name
    for many in (told["tables"], told["rows"]):
        assert_same_bits({"several lanes": many["float64"]})
        assert_close(many["float32"], SINGLE_PRECISION)
    assert_sweep(told["sweep"])
    for dtype in ("float32", "float64"):
        for name, found in told["cross"][dtype].items():
            assert found["equal"], f"{name} {dtype}"
            assert found["ups"] > 100
    assert told["scan"]["flat float64"] == SAME_BITS
    double = {name: found for name, found in told["scan"].items() if "64" in name}
    assert_close(double, ROUNDING)
    assert_close(told["scan"], SINGLE_PRECISION)


def assert_same_bits(cases):
    off = [
        f"{name} of {case}: {found}"
        for case, kernels in cases.items()
        for name, found in kernels.items()
        if found != SAME_BITS
    ]
    assert not off, "\n".join(off)


def assert_close(found, tolerance):
    off = {
        name: value
        for name, value in found.items()
        if value["missing"] or not value["error"] <= tolerance
    }
    assert not off


def assert_sweep(sweep):
    double, single = sweep["float64"], sweep["float32"]
    assert double.pop("trades_in_all") == single.pop("trades_in_all") > 300
    summed = {name: double.pop(name) for name in ("sharpe", "sortino")}  # in another order
    assert_same_bits({"the sweep": double})
    assert_close(summed, ROUNDING)
    assert single["trades"] == single["open_trades"] == SAME_BITS
    assert_close(single, SINGLE_PRECISION)
