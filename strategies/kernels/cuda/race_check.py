"""Races, reads of unwritten memory and indices below zero, found while the CUDA simulator runs.

The simulator's threads take turns, its memory holds no garbage, and an index below zero quietly
counts from the end: a kernel without its barrier gets everything right there. This watches every
access to shared, device and local memory instead. Two threads that touch one element between the
same two barriers, one of them writing, would have been in each other's way on a device. Atomic
operations count as reads and writes like any other.
"""

from __future__ import annotations

import ast
import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.cuda.device import simulated
from strategies.kernels.switches import SIMULATOR
from trader.core.errors import EndpointError

Place = tuple[tuple[int, int], ...]  # a call: code and offset in it, outwards from the innermost
Memory = Literal["shared", "device", "local"]
GARBAGE = 0x5A  # every byte of shared integers before they are written; floats are NaN


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a device would do differently.

    kind  "race"; "unwritten", read before any write; "negative", an index below zero; "barrier",
          threads of one block that did not wait at the same barriers
    text  one sentence
    """

    kind: str
    text: str


@dataclass(slots=True)
class Watch:
    """What the kernels launched so far did; `findings` judges it."""

    accesses: dict[tuple[int, int, int], dict[int, bool]] = field(default_factory=dict)
    blocks: dict[tuple[int, int], dict[int, bool]] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)
    blank: list[tuple[int, int]] = field(default_factory=list)  # addresses nobody has filled yet
    passed: dict[int, dict[int, list[Place]]] = field(default_factory=dict)  # of a block's threads
    kept: list[Any] = field(default_factory=list)  # arrays, so that no address is given out twice
    found: set[tuple[str, str]] = field(default_factory=set)
    launch: int = 0
    block: int = 0
    lock: Any = field(default_factory=threading.Lock)

    def findings(self) -> tuple[Finding, ...]:
        """Every kind of fault at every array once, in a fixed order."""
        found = set(self.found)
        for (_, _, address), threads in self.accesses.items():
            if len(threads) > 1 and any(threads.values()):
                found.add(("race", f"threads of one block meet at {self._name(address)}"))
        for (_, address), blocks in self.blocks.items():
            if len(blocks) > 1 and any(blocks.values()):
                found.add(("race", f"blocks meet at {self._name(address)}"))
        for threads_of_block in self.passed.values():
            counts = {len(places) for places in threads_of_block.values()}
            if len(counts) > 1:
                text = f"threads of one block passed {sorted(counts)} barriers"
                found.add(("barrier", text))
            elif len({tuple(places) for places in threads_of_block.values()}) > 1:
                found.add(("barrier", "threads of one block waited at different barriers"))
        return tuple(Finding(kind=kind, text=text) for kind, text in sorted(found))

    def see(self, array: NDArray[Any], index: Any, *, wrote: bool, memory: Memory) -> None:
        """One access of the current thread; of the host's, only that it wrote."""
        thread = threading.current_thread()
        block = getattr(thread, "watched_block", None)
        if block is None:
            if wrote:
                self.written.update(_addresses(array, index))
            return
        number = int(thread.thread_id)  # type: ignore[attr-defined]
        with self.lock:
            if _negative(index):
                self.found.add(("negative", f"index {index} of {_shape(array, memory)}"))
            epoch = len(self.passed[block][number])
            for address in _addresses(array, index):
                if memory != "local":
                    threads = self.accesses.setdefault((block, epoch, address), {})
                    threads[number] = threads.get(number, False) or wrote
                if memory == "device":
                    blocks = self.blocks.setdefault((self.launch, address), {})
                    blocks[block] = blocks.get(block, False) or wrote
                if wrote:
                    self.written.add(address)
                elif address not in self.written and self._blank(address):
                    self.found.add(("unwritten", f"an element of {_shape(array, memory)}"))

    def see_all(self, value: Any) -> None:
        """A read of every element, where `value` is an array that is watched."""
        plain = getattr(value, "_item", value)
        if isinstance(plain, _Watched):
            self.see(plain, ..., wrote=False, memory=plain.memory)
        elif hasattr(plain, "_ary"):
            self.see(plain._ary, ..., wrote=False, memory="device")

    def expect_nothing_in(self, array: NDArray[Any]) -> None:
        """Nobody has filled `array`: reading it before writing it is a fault."""
        start = array.__array_interface__["data"][0]
        self.kept.append(array)
        self.blank.append((start, start + array.nbytes))
        # An array that is gone may have been written at the same place.
        self.written.difference_update(range(start, start + array.nbytes))

    def _blank(self, address: int) -> bool:
        return any(start <= address < stop for start, stop in self.blank)

    def _name(self, address: int) -> str:
        for array in self.kept:
            start = array.__array_interface__["data"][0]
            if start <= address < start + array.nbytes:
                return _shape(array, getattr(array, "memory", "device"))
        return "an array of the host's"


class _Watched(np.ndarray[Any, Any]):
    """Shared or local memory, or a part of it; every access is seen."""

    watch: Watch | None = None
    memory: Memory = "shared"

    def __array_finalize__(self, parent: Any) -> None:
        self.watch = getattr(parent, "watch", None)
        self.memory = getattr(parent, "memory", "shared")

    def __getitem__(self, index: Any) -> Any:
        value = super().__getitem__(index)
        if self.watch is not None and not isinstance(value, np.ndarray):
            self.watch.see(self, index, wrote=False, memory=self.memory)
        return value

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.watch is not None:
            self.watch.see_all(value)
            self.watch.see(self, index, wrote=True, memory=self.memory)
            value = _plain(value)
        super().__setitem__(index, value)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Sums and the like read all that they are given; a kernel has no other use for them."""
        if self.watch is not None:
            for value in inputs:
                self.watch.see_all(value)
        options["out"] = tuple(_plain(value) for value in options.get("out") or ()) or None
        return getattr(ufunc, method)(*(_plain(value) for value in inputs), **options)


def _plain(value: Any) -> Any:
    """The NumPy array in `value`, where it is an array that is watched."""
    value = getattr(value, "_item", value)
    value = getattr(value, "_ary", value)
    return value.view(np.ndarray) if isinstance(value, _Watched) else value


@contextlib.contextmanager
def watching() -> Iterator[Watch]:
    """Watch every kernel that is launched in here.

    raises  EndpointError outside the simulator: a device's accesses cannot be watched from here
    """
    if not simulated():
        raise EndpointError(f"races are looked for in the CUDA simulator; set {SIMULATOR}=1")
    from numba import cuda
    from numba.cuda.simulator import kernel, kernelapi
    from numba.cuda.simulator.cudadrv import devicearray

    device, inside = devicearray.FakeCUDAArray, devicearray.FakeWithinKernelCUDAArray
    watch = Watch()
    changes: list[tuple[Any, str, Callable[..., Any]]] = [
        (kernelapi.FakeCUDAModule, "__init__", _counting_launches(watch, kernelapi)),
        (kernelapi.FakeCUDAShared, "array", _shared_array(watch)),
        (kernelapi.FakeCUDALocal, "array", _local_array(watch)),
        (kernel.BlockManager, "run", _numbering_blocks(watch, kernel)),
        (kernel.BlockThread, "run", _starting_at_no_barrier(watch, kernel)),
        (kernel.BlockThread, "syncthreads", _counting_barriers(watch, kernel)),
        (device, "__getitem__", _seeing_reads(watch, device)),
        (device, "__setitem__", _seeing_writes(watch, device)),
        (device, "copy_to_device", _seeing_copies(watch, device)),
        (inside, "__getattr__", _seeing_methods(watch, inside)),
        (cuda, "device_array", _blank_arrays(watch, cuda)),
        (devicearray, "device_array", _blank_arrays(watch, devicearray)),
    ]
    saved = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, changed in changes:
        setattr(owner, name, changed)
    try:
        yield watch
    finally:
        for owner, name, original in saved:
            setattr(owner, name, original)


def crowded_lines(source: str) -> tuple[int, ...]:
    """Lines of `source` with more than one `shared.array`: the simulator would make them one."""
    lines = [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("shared.array")
    ]
    return tuple(sorted({line for line in lines if lines.count(line) > 1}))


def _shape(array: NDArray[Any], memory: Memory) -> str:
    return f"a {memory} array {array.dtype}{list(array.shape)}"


def _negative(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    ends = [end for part in parts if isinstance(part, slice) for end in (part.start, part.stop)]
    whole = [part for part in parts if not isinstance(part, slice) and part is not ...]
    return any(end is not None and end < 0 for end in ends + whole)


def _addresses(array: NDArray[Any], index: Any) -> list[int]:
    start = int(array.__array_interface__["data"][0])
    parts = index if isinstance(index, tuple) else (index,)
    if len(parts) == array.ndim and all(isinstance(part, (int, np.integer)) for part in parts):
        wrapped = (int(k) % size for k, size in zip(parts, array.shape, strict=True))
        return [start + sum(k * s for k, s in zip(wrapped, array.strides, strict=True))]
    offsets = np.zeros(array.shape, dtype=np.int64)
    for axis, (size, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        shape = [1] * array.ndim
        shape[axis] = size
        offsets += (np.arange(size) * stride).reshape(shape)
    return [start + int(offset) for offset in np.ravel(offsets[index])]


def _counting_launches(watch: Watch, kernelapi: Any) -> Callable[..., None]:
    original = kernelapi.FakeCUDAModule.__init__

    def init(module: Any, *sizes: Any) -> None:
        watch.launch += 1
        original(module, *sizes)

    return init


def _numbering_blocks(watch: Watch, kernel: Any) -> Callable[..., None]:
    original = kernel.BlockManager.run

    def run(manager: Any, *arguments: Any) -> None:
        watch.block += 1
        watch.passed[watch.block] = {}
        original(manager, *arguments)

    return run


def _starting_at_no_barrier(watch: Watch, kernel: Any) -> Callable[..., None]:
    original = kernel.BlockThread.run

    def run(thread: Any) -> None:
        thread.watched_block = watch.block  # blocks run one after the other
        with watch.lock:
            watch.passed[watch.block][thread.thread_id] = []
        original(thread)

    return run


def _counting_barriers(watch: Watch, kernel: Any) -> Callable[..., None]:
    original = kernel.BlockThread.syncthreads

    def syncthreads(thread: Any) -> None:
        place, frame = [], sys._getframe(1).f_back
        while frame is not None:
            place.append((id(frame.f_code), frame.f_lasti))
            frame = frame.f_back
        original(thread)
        with watch.lock:
            watch.passed[thread.watched_block][thread.thread_id].append(tuple(place))

    return syncthreads


def _shared_array(watch: Watch) -> Callable[..., NDArray[Any]]:
    def array(owner: Any, shape: Any, dtype: Any, alignment: Any = None) -> NDArray[Any]:
        if shape == 0:
            raise ValueError("shared memory of a size that the launch gives is not watched")
        caller = sys._getframe(1)  # the kernel; the call's place in it names the array
        thread: Any = threading.current_thread()
        place = (thread.watched_block, caller.f_code, caller.f_lasti)
        with watch.lock:
            if place not in owner._allocations:
                owner._allocations[place] = _unwritten(watch, shape, dtype, alignment, "shared")
            found: NDArray[Any] = owner._allocations[place]
        return found

    return array


def _local_array(watch: Watch) -> Callable[..., NDArray[Any]]:
    def array(_owner: Any, shape: Any, dtype: Any, alignment: Any = None) -> NDArray[Any]:
        with watch.lock:
            return _unwritten(watch, shape, dtype, alignment, "local")

    return array


def _unwritten(
    watch: Watch, shape: Any, dtype: Any, alignment: Any, memory: Memory
) -> NDArray[Any]:
    """A watched array full of what a device might hold."""
    if alignment is not None:
        raise ValueError("the simulator aligns nothing")
    kind = dtype if isinstance(dtype, (np.dtype, type)) else _numpy_type(dtype)
    plain = np.empty(shape, kind)
    plain.view(np.uint8)[...] = GARBAGE
    if plain.dtype.kind == "f":
        plain[...] = np.nan
    made = plain.view(_Watched)
    watch.expect_nothing_in(made)
    made.watch, made.memory = watch, memory
    return made


def _numpy_type(dtype: Any) -> Any:
    from numba.np.numpy_support import as_dtype

    return as_dtype(dtype)


def _seeing_reads(watch: Watch, array: Any) -> Callable[..., Any]:
    original = array.__getitem__

    def getitem(fake: Any, index: Any) -> Any:
        value = original(fake, index)
        if not isinstance(value, array):
            watch.see(fake._ary, index, wrote=False, memory="device")
        return value

    return getitem


def _seeing_writes(watch: Watch, array: Any) -> Callable[..., None]:
    original = array.__setitem__

    def setitem(fake: Any, index: Any, value: Any) -> None:
        watch.see_all(value)
        watch.see(fake._ary, index, wrote=True, memory="device")
        original(fake, index, _plain(value))

    return setitem


def _seeing_copies(watch: Watch, array: Any) -> Callable[..., None]:
    original = array.copy_to_device

    def copy_to_device(fake: Any, *arguments: Any, **options: Any) -> None:
        original(fake, *arguments, **options)
        watch.see(fake._ary, ..., wrote=True, memory="device")

    return copy_to_device


def _seeing_methods(watch: Watch, inside: Any) -> Callable[..., Any]:
    original = inside.__getattr__

    def getattribute(fake: Any, name: str) -> Any:
        value = original(fake, name)
        if callable(value) and not isinstance(value, type):  # a sum and the like
            watch.see_all(fake)
        return value

    return getattribute


def _blank_arrays(watch: Watch, cuda: Any) -> Callable[..., Any]:
    original = cuda.device_array

    def device_array(*arguments: Any, **options: Any) -> Any:
        made = original(*arguments, **options)
        watch.expect_nothing_in(made._ary)
        return made

    return device_array
