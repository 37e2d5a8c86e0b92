"""Every CUDA kernel compiled and assembled for three architectures, without a device."""

from __future__ import annotations

import contextlib
import re
from importlib import import_module

import numpy as np
import pytest

from strategies.kernels.cuda import compile_only
from strategies.kernels.cuda.compile_only import CAPABILITIES, DTYPES, compile_for
from strategies.kernels.cuda.device import cuda_report
from trader.core.errors import EndpointError

REPORT = cuda_report()
needs_compiler = pytest.mark.skipif(
    not REPORT.compiles, reason="the packages of the extra cuda are not installed"
)
SPARE = 8  # registers that a budget may have over what is used
NAMES = (
    "adx_rows",
    "atr_rows",
    "carry_tiles",
    "cross_levels",
    "cross_rows",
    "deviation_rows",
    "ema_rows",
    "extreme_rows",
    "fold_tiles",
    "macd_rows",
    "obv_bars",
    "replay_tiles",
    "rsi_rows",
    "sma_rows",
    "stochastic_rows",
    "true_range_bars",
    "vwap_rows",
    "walk_lanes",
)


@needs_compiler
@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_compiles_for_every_architecture_within_its_budget(name):
    made = compile_only.compile_all(names=[name])
    assert [(one.dtype, one.arch) for one in made] == [
        (dtype, "sm_{}{}".format(*capability)) for dtype in DTYPES for capability in CAPABILITIES
    ]
    for one in made:
        assert one.faults == (), f"{one.dtype} {one.arch}"
        assert one.ptx.count(".visible .entry") == 1
        assert f".target {one.arch}" in one.ptx
        assert 0 < one.registers <= one.register_budget
        assert one.spill_bytes == one.local_bytes == 0
        assert one.cubin_bytes > 1_000
        assert one.occupancy.blocks >= 1
        assert 0 < one.loop_instructions < one.instructions or name == "true_range_bars"
        assert one.assembler.startswith("nvjitlink 13.")
    for dtype in DTYPES:
        most = max(one.registers for one in made if one.dtype == dtype)
        assert all(one.register_budget <= most + SPARE for one in made if one.dtype == dtype)
    for one in made:
        if name == "walk_lanes":  # of a bar: both sides of every branch, though it takes one
            assert 100 < one.loop_instructions <= 225


@needs_compiler
@pytest.mark.parametrize(
    ("name", "dtype"),
    [("fold_tiles", "float32"), ("walk_lanes", "float64"), ("obv_bars", "float64")],
)
def test_a_kernel_has_one_ptx_for_all_architectures_but_for_the_target(name, dtype):
    oldest, *others = compile_only.compile_all(names=[name], dtypes=[dtype])
    assert [other.ptx.replace(other.arch, oldest.arch) for other in others] == [oldest.ptx] * 2
    newest = compile_only.compile_kernel(name, dtype, CAPABILITIES[-1])
    assert statements(newest.ptx) == statements(others[-1].ptx)


def statements(ptx):
    """What is in PTX besides comments and what numba names by the order it compiles in."""
    names = r"//.*|_ZN\w+?(?=_param_\d+\b|\b)|(?<=_smem_)\d+"
    return [re.sub(names, "", line).rstrip() for line in ptx.splitlines()]


@needs_compiler
def test_every_kernel_of_the_product_is_compiled_here():
    assert set(compile_only.registry()) == set(NAMES)


@needs_compiler
def test_progress_hears_of_every_kernel_compiled():
    heard = []
    made = compile_only.compile_all(heard.append, names=["sma_rows"], dtypes=["float32"])
    assert tuple(heard) == made
    assert len(made) == 3


@needs_compiler
def test_a_kernel_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"'ema_row' does not exist; there are adx_rows, "):
        compile_only.compile_kernel("ema_row", "float64", (9, 0))


@needs_compiler
def test_the_names_that_answer_for_the_device_are_where_they_were():
    """Where this fails, numba-cuda has moved what `answering_for_the_device` replaces."""
    for module, name in compile_only.STUBBED.items():
        assert callable(getattr(import_module(f"numba.cuda.{module}"), name))
    compiler = import_module("numba.cuda.compiler")
    assert callable(compiler._compile_pyfunc_with_fixup)
    assert callable(import_module("numba.cuda.cudadrv.nvvm").compile_ir)


@needs_compiler
def test_the_device_is_answered_for_only_while_compiling():
    dispatcher = import_module("numba.cuda.dispatcher")
    before = dispatcher.get_current_device
    with contextlib.suppress(RuntimeError), compile_only.answering_for_the_device((8, 6)):
        assert dispatcher.get_current_device().compute_capability == (8, 6)
        raise RuntimeError  # whatever happens, what was there comes back
    assert dispatcher.get_current_device is before


def planted(function, signature, registers=(64, 64)):
    """A kernel that is not the product's."""
    launched = import_module("strategies.kernels.cuda.launch")
    return launched.Kernel(
        name=function.__name__,
        function=function,
        dispatcher=None,
        threads=128,
        signature=signature,
        registers=registers,
    )


def faults(function, signature="f1 f1", dtype="float32", **budget):
    (made,) = compile_for(planted(function, signature, **budget), dtype, ((9, 0),))
    return made.faults


@needs_compiler
def test_planted_faults_are_named():
    cuda = import_module("numba.cuda")

    def sound(x, out):
        t = cuda.grid(1)
        if t < out.size:
            out[t] = x[t] + x[t]

    def doubles(x, out):
        t = cuda.grid(1)
        if t < out.size:
            out[t] = x[t] * 0.1

    def contracts(x, out):
        t = cuda.grid(1)
        if t < out.size:
            out[t] = cuda.fma(x[t], x[t], x[t])

    def has_local_memory(x, out):
        t = cuda.grid(1)
        room = cuda.local.array(32, np.float32)
        for k in range(32):
            room[k] = x[k]
        out[t] = room[int(x[t]) % 32]

    def calls(x, out):
        t = cuda.grid(1)
        if t < out.size:
            out[t] = x[t] ** x[t + 1]

    assert faults(sound) == ()
    assert faults(doubles) == ("double precision in single-precision code",)
    assert "a fused multiply-add" in faults(contracts)
    assert "128 bytes of local memory" in faults(has_local_memory)
    assert "a call not inlined" in faults(calls, dtype="float64")
    (few,) = faults(sound, registers=(4, 4))
    assert few.endswith("registers; its budget is 4")


@needs_compiler
def test_too_much_shared_memory_does_not_assemble():
    cuda = import_module("numba.cuda")

    def greedy(x, out):
        room = cuda.shared.array(20_000, np.float32)
        room[cuda.threadIdx.x] = x[0]
        cuda.syncthreads()
        out[0] = room[0]

    with pytest.raises(EndpointError, match="does not assemble for sm_90"):
        faults(greedy)


@needs_compiler
def test_spilled_registers_are_counted():
    made = compile_only.compile_kernel("walk_lanes", "float64", (9, 0))
    log, size = compile_only.assemble(made.ptx, "sm_90", "-maxrregcount=40")
    assert compile_only.spilled(log) > 0
    assert compile_only.spilled(compile_only.assemble(made.ptx, "sm_90")[0]) == 0
    assert size > 1_000


@needs_compiler
def test_products_are_rounded_before_they_are_added_only_where_we_say_so():
    launch = import_module("strategies.kernels.cuda.launch")
    nvvm = import_module("numba.cuda.cudadrv.nvvm")
    cuda = import_module("numba.cuda")
    before = nvvm.compile_ir

    def multiplies_and_adds(x, out):
        t = cuda.grid(1)
        if t < out.size:
            out[t] = x[t] * x[t] + x[t]

    signature = compile_only.numba_signature("f1 f1", "float64")
    theirs, _ = cuda.compile(multiplies_and_adds, signature, cc=(9, 0), device=False, abi="numba")
    assert "fma.rn.f64" in theirs
    with launch.separate_products():
        ours, _ = cuda.compile(multiplies_and_adds, signature, cc=(9, 0), device=False, abi="numba")
    assert "fma" not in ours
    assert "mul.rn.f64" in ours
    assert nvvm.compile_ir is before


def test_without_the_compiler_the_extra_is_named(monkeypatch):
    absent = type(REPORT)(
        driver=None,
        supports=None,
        packages=(("numba-cuda", None), ("nvidia-nvvm", "13.0.88")),
        devices=(),
        simulated=False,
        missing=("not installed: numba-cuda",),
    )
    monkeypatch.setattr(compile_only, "cuda_report", lambda: absent)
    with pytest.raises(EndpointError, match=r"without numba-cuda; install the extra: pip install"):
        compile_only.registry()
