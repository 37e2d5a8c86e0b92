"""Every CUDA kernel compiled and assembled without a device, and held against its budget.

numba-cuda asks the current device for its architecture whenever a kernel calls a function; here
that question is answered for it. The PTX then goes through nvJitLink, which assembles it as the
driver would and says what it used. Types, LLVM code and PTX are worked out once for all
architectures: the PTX of our kernels differs in the line that names its target, and in no other.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from strategies.kernels.cuda.device import INSTALL, cuda_report
from strategies.kernels.cuda.occupancy import Occupancy, occupancy
from strategies.kernels.cuda.ptx import instructions, loop_instructions
from strategies.kernels.switches import switched_off
from trader.core.errors import EndpointError

if TYPE_CHECKING:
    from strategies.kernels.cuda.launch import Kernel

Capability = tuple[int, int]
DTYPES = ("float64", "float32")
CAPABILITIES: tuple[Capability, ...] = ((7, 5), (8, 0), (9, 0))
MODULES = ("indicators", "cross", "scan", "sweep")  # importing them fills the registry
MOST_SHARED = 48 << 10  # bytes a block gets without asking the driver for more
STUBBED = {  # what answers for the device, by module of numba.cuda; a test watches the names
    "compiler": "get_current_device",
    "dispatcher": "get_current_device",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What one kernel of one dtype became for one architecture.

    arch               "sm_90"
    assembler          what counted registers, with its version: counts differ between assemblers
    registers          a thread
    spill_bytes        of registers kept in memory for want of room, a thread
    local_bytes        of arrays a thread has for itself, in memory too
    shared_bytes       of static shared memory a block has
    instructions       PTX instructions of the kernel
    loop_instructions  PTX instructions of its biggest loop, 0 without one
    faults             what its budget does not allow, one sentence each
    """

    name: str
    dtype: str
    arch: str
    ptx: str
    assembler: str
    cubin_bytes: int
    registers: int
    register_budget: int
    spill_bytes: int
    local_bytes: int
    shared_bytes: int
    instructions: int
    loop_instructions: int
    occupancy: Occupancy
    faults: tuple[str, ...]


def registry() -> dict[str, Kernel]:
    """Every kernel of the product by its name."""
    _require_compiler()
    for module in MODULES:
        import_module(f"strategies.kernels.cuda.{module}")
    from strategies.kernels.cuda.launch import KERNELS

    return dict(KERNELS)


def compile_kernel(name: str, dtype: str, compute_capability: Capability) -> Compiled:
    """One kernel of the registry, compiled and assembled; no device is needed.

    dtype   "float64" or "float32"
    raises  EndpointError where the packages of the extra `cuda` are missing,
            ValueError for a kernel that does not exist
    """
    kernels = registry()
    if name not in kernels:
        raise ValueError(f"kernel {name!r} does not exist; there are {', '.join(sorted(kernels))}")
    (made,) = compile_for(kernels[name], dtype, (compute_capability,))
    return made


def compile_all(
    progress: Callable[[Compiled], None] | None = None,
    *,
    names: Iterable[str] | None = None,
    dtypes: Iterable[str] = DTYPES,
    capabilities: tuple[Capability, ...] = CAPABILITIES,
) -> tuple[Compiled, ...]:
    """Every kernel × dtype × architecture; `progress` is called after each.

    raises  EndpointError where the packages of the extra `cuda` are missing
    """
    kernels = registry()
    found: list[Compiled] = []
    for name in kernels if names is None else names:
        for dtype in dtypes:
            for made in compile_for(kernels[name], dtype, capabilities):
                found.append(made)
                if progress is not None:
                    progress(made)
    return tuple(found)


def compile_for(
    kernel: Kernel, dtype: str, capabilities: tuple[Capability, ...]
) -> Iterator[Compiled]:
    """`kernel` for every architecture in turn; PTX is made for the first, and read by the others.

    So what is asked for first must be the oldest.
    """
    from strategies.kernels.cuda.launch import separate_products

    with answering_for_the_device(capabilities[0]), separate_products():
        library, _ = import_module("numba.cuda.compiler")._compile_pyfunc_with_fixup(
            kernel.function,
            numba_signature(kernel.signature, dtype),
            device=False,
            abi="numba",
            cc=capabilities[0],
        )
        (ptx,) = library.get_asm_strs(cc=capabilities[0])
    for capability in capabilities:
        target = ".target sm_{}{}".format(*capability)
        yield _assembled(kernel, dtype, capability, re.sub(r"\.target sm_\d+", target, ptx))


@contextlib.contextmanager
def answering_for_the_device(compute_capability: Capability) -> Iterator[None]:
    """Let numba-cuda believe in a current device of this architecture, for compiling only."""

    class Stub:
        pass

    stub = Stub()
    stub.compute_capability = compute_capability  # type: ignore[attr-defined]
    modules = [
        (import_module(f"numba.cuda.{name}"), function) for name, function in STUBBED.items()
    ]
    saved = [(module, function, getattr(module, function)) for module, function in modules]
    for module, function in modules:
        setattr(module, function, lambda: stub)
    try:
        yield
    finally:
        for module, function, original in saved:
            setattr(module, function, original)


def numba_signature(signature: str, dtype: str) -> Any:
    """The types behind "f2 i1 u0": f is `dtype`; i, u and h are int64, uint64 and int32."""
    from numba import from_dtype, types

    letters = {
        "f": from_dtype(np.dtype(dtype)),
        "i": types.int64,
        "u": types.uint64,
        "h": types.int32,
    }
    return types.void(
        *(
            types.Array(letters[code[0]], int(code[1]), "C") if code[1] != "0" else letters[code[0]]
            for code in signature.split()
        )
    )


def _require_compiler() -> None:
    report = cuda_report()
    variable = switched_off()
    if variable is not None:
        raise EndpointError(f"numba compiles nothing while {variable} is set; unset it")
    if not report.compiles:
        absent = ", ".join(name for name, version in report.packages if version is None)
        raise EndpointError(f"CUDA kernels cannot be compiled without {absent}; {INSTALL}")


@lru_cache(maxsize=1)
def _assembler() -> str:
    return f"nvjitlink {metadata.version('nvidia-nvjitlink')}"


def assemble(ptx: str, arch: str, *options: str) -> tuple[str, int]:
    """What nvJitLink says about `ptx`, and how many bytes of machine code it made of it.

    raises  EndpointError, with its words, where it refuses
    """
    nvjitlink = import_module("cuda.bindings.nvjitlink")
    flags = [f"-arch={arch}", "-verbose", *options]
    handle = nvjitlink.create(len(flags), flags)
    try:
        data = ptx.encode()
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), "kernel")
        try:
            nvjitlink.complete(handle)
        except nvjitlink.nvJitLinkError as exc:
            said = bytearray(nvjitlink.get_error_log_size(handle))
            nvjitlink.get_error_log(handle, said)
            words = " ".join(said.decode(errors="replace").replace("\0", "").split())
            raise EndpointError(f"a kernel does not assemble for {arch}: {words}") from exc
        log = bytearray(nvjitlink.get_info_log_size(handle))
        nvjitlink.get_info_log(handle, log)
        return log.decode(errors="replace"), int(nvjitlink.get_linked_cubin_size(handle))
    finally:
        nvjitlink.destroy(handle)


def spilled(log: str) -> int:
    """Bytes of the stack and of local memory that a thread has, registers and arrays together."""
    return _said(log, r"(\d+) stack") + _said(log, r"(\d+) bytes lmem")


def _said(log: str, pattern: str) -> int:
    """Sum of the numbers that `pattern` finds in the assembler's log."""
    return sum(int(number) for number in re.findall(pattern, log))


def _assembled(kernel: Kernel, dtype: str, capability: Capability, ptx: str) -> Compiled:
    arch = "sm_{}{}".format(*capability)
    log, cubin_bytes = assemble(ptx, arch)
    registers = _said(log, r"used (\d+) registers")
    if not registers:
        raise EndpointError(f"{_assembler()} says nothing about registers: {log.strip()[-200:]!r}")
    shared = sum(int(size) for size in re.findall(r"\.shared[^;]*\[(\d+)\]", ptx))
    local = sum(int(size) for size in re.findall(r"\.local[^;]*\[(\d+)\]", ptx))
    spills = max(spilled(log) - local, 0)
    body = instructions(ptx)
    budget = kernel.registers[DTYPES.index(dtype)]
    checks = (
        (registers <= budget, f"{registers} registers; its budget is {budget}"),
        (spills == 0, f"{spills} bytes of spilled registers"),
        (local == 0, f"{local} bytes of local memory"),
        (shared <= MOST_SHARED, f"{shared} bytes of shared memory; a block has {MOST_SHARED}"),
        (dtype != "float32" or not _doubles(body), "double precision in single-precision code"),
        (not any(re.match(r"(@!?%\w+ )?call\b", line) for line in body), "a call not inlined"),
        (not any("fma." in line for line in body), "a fused multiply-add"),
    )
    return Compiled(
        name=kernel.name,
        dtype=dtype,
        arch=arch,
        ptx=ptx,
        assembler=_assembler(),
        cubin_bytes=cubin_bytes,
        registers=registers,
        register_budget=budget,
        spill_bytes=spills,
        local_bytes=local,
        shared_bytes=shared,
        instructions=len(body),
        loop_instructions=loop_instructions(ptx),
        occupancy=occupancy(
            capability, threads=kernel.threads, registers=registers, shared_bytes=shared
        ),
        faults=tuple(fault for holds, fault in checks if not holds),
    )


def _doubles(body: list[str]) -> bool:
    return any(".f64" in line for line in body)
