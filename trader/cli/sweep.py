"""The command that tries every set of a grid of numbers: sweep."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from trader.cli.options import DataOption, Shared, SymbolsOption, TimeframeOption, add_command
from trader.cli.study import a_day

INTERRUPTED, REFUSED = 130, 6


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    add_command(
        app,
        sweep,
        epilog=(
            "Example: trader sweep --strategy sma_cross --from 2020-01-01 "
            '--grid "fast=5:50,slow=20:200"'
        ),
    )


def sweep(
    shared: Shared,
    strategy: Annotated[
        str, typer.Option("--strategy", metavar="NAME", help="Strategy whose numbers are tried.")
    ],
    start: Annotated[str, typer.Option("--from", metavar="DATE", help="First day, YYYY-MM-DD.")],
    grid: Annotated[
        str,
        typer.Option(
            "--grid",
            metavar="NAME=LO:HI[:STEP],…",
            help="Numbers to try: those of the strategy, and stop_atr, stop_window, target_atr, "
            "trail_atr, max_bars.",
        ),
    ],
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="DATE", help="Last day; the end of the data by default."),
    ] = None,
    symbols: SymbolsOption = None,
    timeframe: TimeframeOption = None,
    data: DataOption = None,
    top: Annotated[int, typer.Option("--top", metavar="N", help="How many sets are listed.")] = 10,
    rank_by: Annotated[
        str,
        typer.Option(
            "--rank-by",
            metavar="MEASURE",
            help="sharpe, sortino, final_equity, annual_return, max_drawdown or hit_rate.",
        ),
    ] = "sharpe",
    engine: Annotated[
        str,
        typer.Option(
            "--engine", metavar="auto|masks|bars", help="From event to event, or bar by bar."
        ),
    ] = "auto",
    backend: Annotated[
        str | None,
        typer.Option("--backend", metavar="auto|cpu|cuda|reference", help="Who computes."),
    ] = None,
    cash: Annotated[float | None, typer.Option(help="Paper money of an account, USD.")] = None,
    shared_cash: Annotated[
        bool, typer.Option("--shared-cash", help="One account for all symbols, not one for each.")
    ] = False,
    whole_shares: Annotated[
        bool, typer.Option("--whole-shares", help="Whole shares and ticks, as at the exchange.")
    ] = False,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write every set to a CSV file.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where the report folder goes; the state folder by default."
        ),
    ] = None,
    apply: Annotated[
        int | None,
        typer.Option(
            "--apply",
            metavar="RANK",
            help="Write the numbers of this rank to a file for --config, unless the best is luck.",
        ),
    ] = None,
    to_file: Annotated[
        Path | None,
        typer.Option("--to-file", metavar="PATH", help="That file; beside the report by default."),
    ] = None,
) -> None:
    """Try every set of a grid of numbers, and say how much of the best one is luck."""
    from trader.app.sweep_plan import SweepRequest
    from trader.cli import output, progress, sweep_words

    request = SweepRequest(
        strategy=strategy,
        start=a_day("--from", start),
        end=None if end is None else a_day("--to", end),
        grid=grid,
        engine=engine,
        backend=backend,
        rank_by=rank_by,
        top=top,
        shared_cash=shared_cash,
        whole_shares=whole_shares,
        csv=csv,
        out=out,
        apply_rank=apply,
        to_file=to_file,
        command=shlex.join(["trader", *sys.argv[1:]]),
    )
    opened = shared.open(
        symbols=symbols, data__timeframe=timeframe, data__source=data, account__cash=cash
    )
    with progress.count() as tell:
        result = opened.sweep(request, progress=tell)
    output.notices(result.notices)
    shared.show(result, sweep_words.tell_sweep)
    if result.partial:
        raise typer.Exit(INTERRUPTED)
    if result.applied is not None and result.applied.refused is not None:
        print(f"trader: {output.printable(result.applied.refused)}", file=sys.stderr)  # noqa: T201
        raise typer.Exit(REFUSED)
