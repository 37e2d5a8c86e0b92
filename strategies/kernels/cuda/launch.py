"""How a kernel is declared, compiled without fused multiply-add, and launched."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar, cast

import numpy as np
from numba import cuda as _cuda
from numpy.typing import DTypeLike, NDArray

from strategies.kernels.cuda.device import require_device, simulated

Signature = str  # "f2 i1 u0": a kernel's dtype, int64 or uint64, and how many dimensions
Float = type[np.float32] | type[np.float64]
cuda: Any = _cuda  # the simulator swaps the modules' globals that are numba's own module
F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One CUDA kernel: what is launched, and what is compiled and checked without a device.

    threads    a block; the launch and the occupancy figures use the same
    signature  of its arguments, see `Signature`
    registers  most that a thread may use, in float64 and in float32: a few more than it does on
               the architecture that needs most
    """

    name: str
    function: Callable[..., None]
    dispatcher: Any
    threads: int
    signature: Signature
    registers: tuple[int, int]

    def launch(self, blocks: int | tuple[int, int], *arguments: Any) -> None:
        """Run it on `blocks` blocks; arrays must lie on the device. Returns before it is done."""
        with separate_products():
            self.dispatcher[blocks, self.threads](*arguments)

    def over(self, lanes: int, *arguments: Any) -> None:
        """Run it with one thread for each of so many lanes; nothing where there is none."""
        if lanes:
            self.launch(-(-lanes // self.threads), *arguments)


KERNELS: dict[str, Kernel] = {}


def kernel(
    *, signature: Signature, registers: tuple[int, int], threads: int = 128
) -> Callable[[Callable[..., None]], Kernel]:
    """Declare a CUDA kernel and enter it in the registry that compiling and checking walk."""

    def declare(function: Callable[..., None]) -> Kernel:
        # PTX, for link-time optimisation would contract products again.
        options = {} if simulated() else {"lto": False}
        made = Kernel(
            name=function.__name__,
            function=function,
            dispatcher=cuda.jit(function, **options),
            threads=threads,
            signature=signature,
            registers=registers,
        )
        KERNELS[made.name] = made
        return made

    return declare


def device_function(function: F) -> F:
    """A function that kernels call and that needs CUDA itself: thread indices, barriers."""
    return cast(F, cuda.jit(function, device=True))


@contextlib.contextmanager
def separate_products() -> Iterator[None]:
    """Whatever is compiled in here rounds every product before it is added to something.

    A fused multiply-add would round once where the CPU's kernels round twice, and double
    precision would no longer agree to the last bit.
    """
    if simulated():
        yield
        return
    nvvm: Any = import_module("numba.cuda.cudadrv.nvvm")
    compile_ir = nvvm.compile_ir
    nvvm.compile_ir = lambda ir, **options: compile_ir(ir, **{**options, "fma": False})
    try:
        yield
    finally:
        nvvm.compile_ir = compile_ir


def upload(array: NDArray[Any], dtype: DTypeLike) -> Any:
    """A copy of `array` on the device, C-contiguous and of this dtype.

    raises  EndpointError where there is no device
    """
    require_device()
    return cuda.to_device(np.ascontiguousarray(array, dtype=dtype))
