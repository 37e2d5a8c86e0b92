"""Commands about the kernels: what there is, whether it is right, what it costs, how fast it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trader.cli.options import Shared, add_command

if TYPE_CHECKING:
    from trader.app.kernel_work import (
        Benched,
        CompiledKernels,
        KernelList,
        VerifiedKernels,
    )

NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]…", help="Kernels; all of them by default.")
]
SHOWN = 20  # differences on a terminal; --json has them all


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    group = typer.Typer(
        no_args_is_help=True,
        help="The arithmetic under indicators and sweeps: list, verify, compile, measure.",
        rich_markup_mode=None,
    )
    add_command(group, listing, name="list")
    add_command(
        group, verify, epilog="Example: trader kernels verify rsi adx; exit 1 on a difference"
    )
    add_command(
        group,
        compile_kernels,
        name="compile",
        epilog="No GPU is needed; the extra is: pip install -e '.[cuda]'",
    )
    add_command(group, bench)
    app.add_typer(group, name="kernels")


def listing(shared: Shared) -> None:
    """List every kernel with its inputs, parameters, warm-up and backends."""
    shared.show(shared.open().list_kernels(), _tell_list)


def verify(
    shared: Shared,
    names: NamesArgument = None,
    backend: Annotated[
        str, typer.Option("--backend", metavar="cpu|cuda", help="Whose results are checked.")
    ] = "cpu",
) -> None:
    """Compare kernels with their definition on random and on awkward inputs."""
    found = shared.open().verify_kernels(names or (), backend)
    shared.show(found, _tell_verified)
    if found.differences:
        raise typer.Exit(1)


def compile_kernels(shared: Shared, names: NamesArgument = None) -> None:
    """Compile and assemble every CUDA kernel for every type and architecture, against budgets."""
    from trader.cli import output

    done = 0

    def tell(name: str) -> None:
        nonlocal done
        done += 1
        output.notice(f"{done}: {name}")

    found = shared.open().compile_kernels(names or (), tell)
    shared.show(found, _tell_compiled)
    if found.over_budget:
        raise typer.Exit(1)


def bench(shared: Shared, names: NamesArgument = None) -> None:
    """Measure the compiled kernels and their definition on this machine, for a few seconds."""
    shared.show(shared.open().bench_kernels(names or ()), _tell_bench)


def _tell_list(found: KernelList) -> None:
    from trader.cli import output

    output.table(
        "",
        ("kernel", "inputs", "parameters", "results", "warm-up", "backends"),
        [
            (
                each.name,
                ", ".join(each.inputs),
                ", ".join(each.parameters) or "none",
                ", ".join(each.outputs),
                each.warm_up,
                ", ".join(each.backends),
            )
            for each in found.kernels
        ],
        left=range(6),
        spare=(3, 4),
    )


def _tell_verified(found: VerifiedKernels) -> None:
    from trader.cli import output

    for each in found.differences[:SHOWN]:
        output.lines(f"{each.kernel}: {each.case}: {each.difference}")
    more = len(found.differences) - SHOWN
    if more > 0:
        output.lines(f"and {more} more")
    verdict = "every result equal" if not found.differences else "DIFFERENT"
    output.lines(
        f"{verdict}: {found.kernels} kernels on {found.backend}, {found.cases} cases, "
        f"against the reference, {found.tolerance}"
    )


def _tell_compiled(found: CompiledKernels) -> None:
    from trader.cli import output

    output.table(
        f"compiled with {found.assembler}" if found.assembler else "",
        (
            "kernel",
            "type",
            "arch",
            "registers",
            "of",
            "spills",
            "shared",
            "instructions",
            "in loop",
            "occupancy",
        ),
        [
            (
                each.name,
                each.dtype,
                each.arch,
                str(each.registers),
                str(each.register_budget),
                str(each.spill_bytes),
                str(each.shared_bytes),
                str(each.instructions),
                str(each.loop_instructions),
                f"{each.occupancy:.0%}",
            )
            for each in found.kernels
        ],
        left=range(3),
        spare=(7, 8),
    )
    for each in found.over_budget:
        output.lines(f"{each.name} {each.dtype} {each.arch}: {'; '.join(each.faults)}")
    over = len(found.over_budget)
    output.lines(f"{len(found.kernels)} compiled, {over or 'none'} over budget")


def _tell_bench(found: Benched) -> None:
    from trader.cli import output

    output.table(
        f"{found.bars:,} bars, one core; load before {found.load_before:.1f}",
        ("kernel", "cpu ns/bar", "reference ns/bar", "ratio"),
        [
            (
                each.name,
                f"{each.cpu_ns:.2f}",
                f"{each.reference_ns:,.1f}",
                f"{each.ratio:,.0f} ×",
            )
            for each in found.kernels
        ],
    )
