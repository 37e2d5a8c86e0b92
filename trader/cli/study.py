"""Commands that look at history: backtest, debate, replay, compare."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from trader.cli.options import (
    BaseUrlOption,
    DataOption,
    DebateOption,
    FromRecordingOption,
    ModelOption,
    RecordOption,
    RoundsOption,
    Shared,
    StrategyOption,
    SymbolsOption,
    TimeframeOption,
    add_command,
    recording,
)
from trader.core.errors import UsageError

DATE = "%Y-%m-%d"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    add_command(app, backtest, epilog="Example: trader backtest --from 2025-01-01 --symbols AAPL")
    add_command(app, debate, epilog="Example: trader debate AAPL --as-of 2026-03-02")
    add_command(
        app, replay, epilog="Example: trader replay bt-0123456789-20260302T1430-AAPL-atr_trend"
    )
    add_command(app, compare, epilog="Example: trader compare bt-0123456789 paper")


def a_day(option: str, text: str) -> date:
    """The day that was typed; UsageError naming the option."""
    try:
        return datetime.strptime(text, DATE).date()
    except ValueError as exc:
        raise UsageError(f"{option} {text}: write a day as YYYY-MM-DD, e.g. 2025-01-31") from exc


def a_moment(option: str, text: str) -> datetime:
    """The moment that was typed, UTC; a day alone means its end."""
    try:
        return datetime.strptime(text, f"{DATE}T%H:%M").replace(tzinfo=UTC)
    except ValueError:
        day = a_day(option, text)
        return datetime(day.year, day.month, day.day, 23, 59, tzinfo=UTC)


def backtest(
    shared: Shared,
    start: Annotated[str, typer.Option("--from", metavar="DATE", help="First day, YYYY-MM-DD.")],
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="DATE", help="Last day; the end of the data by default."),
    ] = None,
    symbols: SymbolsOption = None,
    timeframe: TimeframeOption = None,
    data: DataOption = None,
    strategy: StrategyOption = None,
    debate_by: DebateOption = None,
    rounds: RoundsOption = None,
    base_url: BaseUrlOption = None,
    model: ModelOption = None,
    record: RecordOption = False,
    from_recording: FromRecordingOption = False,
    sizing: Annotated[
        str,
        typer.Option(
            "--sizing",
            metavar="risk|all_in",
            help="How much a trade buys; all_in measures one strategy alone, with --debate off.",
        ),
    ] = "risk",
    cash: Annotated[float | None, typer.Option(help="Paper money at the start, USD.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where the report folder goes; the state folder by default."
        ),
    ] = None,
) -> None:
    """Replay history through the same pipeline as a paper run, beside simpler ways to trade."""
    from trader.cli import backtest_words, output, progress

    first = a_day("--from", start)
    last = None if end is None else a_day("--to", end)
    opened = shared.open(
        symbols=symbols,
        data__timeframe=timeframe,
        data__source=data,
        strategies__enabled=strategy,
        debate__mode=debate_by,
        debate__rounds=rounds,
        debate__recording=recording(record=record, from_recording=from_recording),
        models__base_url=base_url,
        models__model=model,
        account__cash=cash,
    )
    with progress.bar() as tell:
        result = opened.backtest(start=first, end=last, out=out, sizing=sizing, progress=tell)
    output.notices(result.notices)
    shared.show(result, backtest_words.tell_backtest)


def debate(
    shared: Shared,
    symbol: Annotated[str, typer.Argument(metavar="SYMBOL", help="Symbol to argue about.")],
    as_of: Annotated[
        str | None,
        typer.Option(metavar="DATE|TIME", help="UTC, YYYY-MM-DD[THH:MM]; a date means its end."),
    ] = None,
    data: DataOption = None,
    timeframe: TimeframeOption = None,
    strategy: StrategyOption = None,
    debate_by: DebateOption = None,
    rounds: RoundsOption = None,
    base_url: BaseUrlOption = None,
    model: ModelOption = None,
    record: RecordOption = False,
    from_recording: FromRecordingOption = False,
) -> None:
    """Hold a debate about one symbol; nothing is ordered."""
    from trader.cli import output, panels, telling

    opened = shared.open(
        data__source=data,
        data__timeframe=timeframe,
        strategies__enabled=strategy,
        debate__mode=debate_by,
        debate__rounds=rounds,
        debate__recording=recording(record=record, from_recording=from_recording),
        models__base_url=base_url,
        models__model=model,
    )
    moment = None if as_of is None else a_moment("--as-of", as_of)
    with panels.watching() as listener:
        result = opened.debate(symbol.upper(), moment, listener=listener)
    output.notices(result.notices)
    turns = not (panels.drawn(listener) and sys.stdout.isatty())
    shared.show(result, partial(telling.tell_debates, turns=turns))


def replay(
    shared: Shared,
    cycle_id: Annotated[
        str,
        typer.Argument(
            metavar="CYCLE_ID",
            help="Id of a decision, from a report, cycles.jsonl or the journal.",
        ),
    ],
) -> None:
    """Take a recorded decision again and compare it bit for bit."""
    from trader.cli import telling

    opened = shared.open()
    result = opened.replay(cycle_id)
    shared.show(result, telling.tell_replay)
    if any(part.equal is False for part in result.comparisons):
        raise typer.Exit(1)


def compare(
    shared: Shared,
    a: Annotated[
        str,
        typer.Argument(
            metavar="A", help="A run: its id, paper, archive/N, or the folder of a report."
        ),
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The run to compare it with.")],
) -> None:
    """Show what differs between two runs: settings, columns, and where decisions changed."""
    from trader.cli import compare_words

    shared.show(shared.open().compare(a, b), compare_words.tell_compare)
