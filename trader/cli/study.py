"""Commands that look at history: backtest, debate, replay."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from trader.cli.options import Shared, add_command

DATE = "%Y-%m-%d"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    add_command(app, backtest, epilog="Example: trader backtest --from 2025-01-01 --symbols AAPL")
    add_command(app, debate, epilog="Example: trader debate AAPL --as-of 2026-03-02")
    add_command(
        app, replay, epilog="Example: trader replay bt-0123456789-20260302T1430-AAPL-atr_trend"
    )


def backtest(
    shared: Shared,
    start: Annotated[datetime, typer.Option("--from", formats=[DATE], help="First day.")],
    end: Annotated[
        datetime | None,
        typer.Option("--to", formats=[DATE], help="Last day; the end of the data by default."),
    ] = None,
    symbols: Annotated[
        str | None, typer.Option(metavar="A,B", help="Symbols; AAPL on the sample by default.")
    ] = None,
    timeframe: Annotated[
        str | None, typer.Option(metavar="1Day|1Hour", help="Length of a bar.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="sample, synthetic or csv:PATH.")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="Strategies that look for entries.")
    ] = None,
    debate_by: Annotated[
        str | None, typer.Option("--debate", metavar="rules|off", help="Who debates.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="Rebuttal rounds after the opening.")] = None,
    cash: Annotated[float | None, typer.Option(help="Paper money at the start, USD.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where the report folder goes; the state folder by default."
        ),
    ] = None,
) -> None:
    """Replay history through the same pipeline as a paper run, beside two baselines."""
    from trader.cli import output, progress, telling

    opened = shared.open(
        symbols=symbols,
        data__timeframe=timeframe,
        data__source=data,
        strategies__enabled=strategy,
        debate__mode=debate_by,
        debate__rounds=rounds,
        account__cash=cash,
    )
    with progress.bar() as tell:
        result = opened.backtest(
            start=start.date(), end=end.date() if end else None, out=out, progress=tell
        )
    output.notices(result.notices)
    shared.show(result, telling.tell_backtest)


def debate(
    shared: Shared,
    symbol: Annotated[str, typer.Argument(help="Symbol to argue about.")],
    as_of: Annotated[
        datetime | None,
        typer.Option(formats=[DATE, "%Y-%m-%dT%H:%M"], help="Moment, UTC; a date means its end."),
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="sample, synthetic or csv:PATH.")
    ] = None,
    timeframe: Annotated[
        str | None, typer.Option(metavar="1Day|1Hour", help="Length of a bar.")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="Strategies to debate for.")
    ] = None,
) -> None:
    """Hold a debate about one symbol; nothing is ordered."""
    from trader.cli import output, telling

    opened = shared.open(
        data__source=data,
        data__timeframe=timeframe,
        strategies__enabled=strategy,
    )
    moment = None
    if as_of is not None:
        whole_day = (as_of.hour, as_of.minute) == (0, 0)
        moment = (
            as_of.replace(hour=23, minute=59, tzinfo=UTC)
            if whole_day
            else as_of.replace(tzinfo=UTC)
        )
    result = opened.debate(symbol, moment)
    output.notices(result.notices)
    shared.show(result, telling.tell_debates)


def replay(
    shared: Shared,
    cycle_id: Annotated[
        str, typer.Argument(help="Id of a decision, from a report, cycles.jsonl or the journal.")
    ],
) -> None:
    """Take a recorded decision again and compare it bit for bit."""
    from trader.cli import telling

    opened = shared.open()
    result = opened.replay(cycle_id)
    shared.show(result, telling.tell_replay)
    if not result.reproduced:
        raise typer.Exit(1)
