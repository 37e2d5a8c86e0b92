"""What `trader kernels` does: list kernels, compare them with their definition, compile, time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from trader.core.canonical import Primitive, to_object
from trader.core.clock import monotonic_seconds
from trader.core.errors import UsageError

if TYPE_CHECKING:
    from strategies.kernels.cuda.compile_only import Compiled
    from strategies.kernels.dispatch import Backend, KernelSet
    from strategies.kernels.spec import Case, KernelSpec

SCHEMA_VERSION = 1
VERIFIED = ("cpu", "cuda")
RANDOM_CASES, RANDOM_BARS = 5, 600
BENCH_BARS = 200_000  # of the compiled kernels; the definition walks bars in Python
BENCH_REFERENCE_BARS = 4_000
BENCH_SECONDS, BENCH_REPEATS = 0.05, 3  # of one timing at least, and how often


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedKernel:
    """One kernel; parameters as "window=14", warm_up in words."""

    name: str
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    warm_up: str
    backends: tuple[str, ...]
    shapes: str
    missing: str
    overflow: str
    empty: str
    rtol_f64: float
    rtol_f32: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelList:
    """Every kernel there is."""

    schema_version: int
    kernels: tuple[ListedKernel, ...]

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelDifference:
    """A result that is not that of the definition."""

    kernel: str
    case: str
    difference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedKernels:
    """What comparing kernels with their definition found.

    kernels, cases  how many were compared
    tolerance       in words
    """

    schema_version: int
    backend: str
    tolerance: str
    kernels: int
    cases: int
    differences: tuple[KernelDifference, ...]

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernel:
    """One CUDA kernel of one type for one architecture; fields as in `compile_only.Compiled`.

    occupancy  share of the warps of a multiprocessor that can be resident
    """

    name: str
    dtype: str
    arch: str
    registers: int
    register_budget: int
    spill_bytes: int
    shared_bytes: int
    instructions: int
    loop_instructions: int
    cubin_bytes: int
    occupancy: float
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernels:
    """Every CUDA kernel against its budget; assembler: what counted the registers."""

    schema_version: int
    assembler: str
    kernels: tuple[CompiledKernel, ...]

    @property
    def over_budget(self) -> tuple[CompiledKernel, ...]:
        """Those with a fault."""
        return tuple(each for each in self.kernels if each.faults)

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self) | {"over_budget": len(self.over_budget)}


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchedKernel:
    """Nanoseconds a bar on one core, and how many times the definition takes as long."""

    name: str
    cpu_ns: float
    reference_ns: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Benched:
    """How fast kernels are here; bars: of the compiled ones, load_before: of the machine."""

    schema_version: int
    bars: int
    reference_bars: int
    load_before: float
    kernels: tuple[BenchedKernel, ...]

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self)


def list_kernels() -> KernelList:
    """Every kernel with what it promises."""
    return KernelList(
        schema_version=SCHEMA_VERSION, kernels=tuple(_listed(spec) for spec in _specs(()))
    )


def verify_kernels(names: Sequence[str] = (), backend: str = "cpu") -> VerifiedKernels:
    """Compare kernels with their definition on random and on awkward inputs.

    names   of kernels; all where none is given
    raises  UsageError for a kernel or a backend that does not exist, EndpointError where there is
            no CUDA device, ConfigError where numba cannot be imported
    """
    from strategies.kernels.dispatch import NOT_ON_A_DEVICE, kernels

    if backend not in VERIFIED:
        raise UsageError(f"--backend {backend!r}: choose one of {', '.join(VERIFIED)}")
    specs = [
        spec for spec in _specs(names) if backend != "cuda" or spec.name not in NOT_ON_A_DEVICE
    ]
    ours = kernels(cast("Backend", backend))
    found: list[KernelDifference] = []
    cases = 0
    for spec in specs:
        for name, case in _cases(spec):
            cases += 1
            difference = _difference(spec, ours, case, exact=backend == "cpu")
            if difference is not None:
                found.append(KernelDifference(kernel=spec.name, case=name, difference=difference))
    return VerifiedKernels(
        schema_version=SCHEMA_VERSION,
        backend=backend,
        tolerance="bit for bit" if backend == "cpu" else "to the tolerance of each kernel",
        kernels=len(specs),
        cases=cases,
        differences=tuple(found),
    )


def compile_kernels(
    names: Sequence[str] = (), progress: Callable[[str], None] = lambda _: None
) -> CompiledKernels:
    """Compile and assemble CUDA kernels for every type and architecture; no device is needed.

    progress  called with a kernel's name, type and architecture after each
    raises    UsageError for a kernel that does not exist, EndpointError where the packages of the
              extra `cuda` are missing
    """
    from strategies.kernels.cuda.compile_only import compile_all, registry
    from strategies.names import unknown

    known = registry()
    for name in names:
        if name not in known:
            raise UsageError(unknown("CUDA kernel", name, known))
    made = compile_all(
        lambda each: progress(f"{each.name} {each.dtype} {each.arch}"), names=names or None
    )
    return CompiledKernels(
        schema_version=SCHEMA_VERSION,
        assembler=made[0].assembler if made else "",
        kernels=tuple(_compiled(each) for each in made),
    )


def bench_kernels(names: Sequence[str] = ()) -> Benched:
    """Time compiled kernels and their definition on random walks; UsageError for unknown names."""
    from strategies.kernels.dispatch import kernels

    load, ours = os.getloadavg()[0], kernels("cpu")
    return Benched(
        schema_version=SCHEMA_VERSION,
        bars=BENCH_BARS,
        reference_bars=BENCH_REFERENCE_BARS,
        load_before=load,
        kernels=tuple(_benched(spec, ours) for spec in _specs(names)),
    )


def _specs(names: Sequence[str]) -> list[KernelSpec]:
    from strategies.kernels.spec import SPECS
    from strategies.names import unknown

    for name in names:
        if name not in SPECS:
            raise UsageError(unknown("kernel", name, SPECS))
    return [SPECS[name] for name in (names or SPECS)]


def _listed(spec: KernelSpec) -> ListedKernel:
    from strategies.kernels.dispatch import NOT_ON_A_DEVICE

    first = spec.warm_up(*spec.usual)
    bars = dict.fromkeys(str(bar) for bar in first)
    none = "no warm-up" if set(first) == {0} else f"NaN before bar {', '.join(bars)}"
    return ListedKernel(
        name=spec.name,
        inputs=spec.inputs,
        parameters=tuple(f"{each.name}={each.usual:g}" for each in spec.parameters),
        outputs=spec.outputs,
        warm_up=none,
        backends=("reference", "cpu") + ("cuda",) * (spec.name not in NOT_ON_A_DEVICE),
        shapes=spec.shapes,
        missing=spec.missing,
        overflow=spec.overflow,
        empty=spec.empty,
        rtol_f64=spec.rtol_f64,
        rtol_f32=spec.rtol_f32,
    )


def _cases(spec: KernelSpec) -> Iterator[tuple[str, Case]]:
    """Random walks, of seeds that are in their names, and the spec's awkward inputs."""
    import numpy as np

    from strategies.kernels.spec import Case

    for seed in range(RANDOM_CASES):
        inputs = spec.make_inputs(np.random.default_rng(seed), RANDOM_BARS)
        yield f"random walk {seed}", Case(inputs=inputs, parameters=spec.usual)
    yield from spec.edge_cases().items()


def _difference(spec: KernelSpec, ours: KernelSet, case: Case, *, exact: bool) -> str | None:
    """Where a kernel's outputs are not those of the reference, in words; None where they are."""
    import numpy as np

    from strategies.kernels.spec import outputs_of

    with np.errstate(all="ignore"):  # awkward inputs overflow on purpose
        right = spec.compute(case)
        found = outputs_of(getattr(ours, spec.name)(*case.inputs, *case.parameters))
        for name, mine, other in zip(spec.outputs, found, right, strict=True):
            if mine.shape != other.shape:
                return f"{name} has {mine.size} values instead of {other.size}"
            same = (mine == other) | (np.isnan(mine) & np.isnan(other))
            if not exact:
                finite = np.abs(other[np.isfinite(other)])
                room = spec.rtol_f64 * finite.max(initial=0.0)
                same |= np.abs(mine - other) <= room
            if not same.all():
                bar = int(np.argmin(same))
                more = int((~same).sum()) - 1
                return (
                    f"{name}[{bar}] is {mine[bar]!r} instead of {other[bar]!r}"
                    f"{f', and {more} more' if more else ''}"
                )
    return None


def _compiled(made: Compiled) -> CompiledKernel:
    return CompiledKernel(
        name=made.name,
        dtype=made.dtype,
        arch=made.arch,
        registers=made.registers,
        register_budget=made.register_budget,
        spill_bytes=made.spill_bytes,
        shared_bytes=made.shared_bytes,
        instructions=made.instructions,
        loop_instructions=made.loop_instructions,
        cubin_bytes=made.cubin_bytes,
        occupancy=made.occupancy.fraction,
        faults=made.faults,
    )


def _benched(spec: KernelSpec, ours: KernelSet) -> BenchedKernel:
    import numpy as np

    def nanoseconds(function: Callable[..., Any], bars: int) -> float:
        inputs = spec.make_inputs(np.random.default_rng(7), bars)
        return _best_seconds(lambda: function(*inputs, *spec.usual)) / bars * 1e9

    cpu = nanoseconds(getattr(ours, spec.name), BENCH_BARS)
    slow = nanoseconds(spec.reference, BENCH_REFERENCE_BARS)
    return BenchedKernel(name=spec.name, cpu_ns=cpu, reference_ns=slow, ratio=slow / cpu)


def _best_seconds(work: Callable[[], object]) -> float:
    """Fewest seconds of one call, over timings that are long enough for the clock."""
    began = monotonic_seconds()
    work()  # compiles, or loads what was compiled
    calls = max(1, int(BENCH_SECONDS / max(monotonic_seconds() - began, 1e-9)))
    found = []
    for _ in range(BENCH_REPEATS):
        began = monotonic_seconds()
        for _ in range(calls):
            work()
        found.append((monotonic_seconds() - began) / calls)
    return min(found)
