"""The command that looks for sight of the future: audit-leak."""

from __future__ import annotations

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
from trader.cli.study import a_day

LEAK, UNANSWERED = 1, 4


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    add_command(
        app,
        audit_leak,
        epilog=(
            "Exit codes: 0 nothing changed that should not have, 1 something did, 4 nothing did "
            "but debates got no answer. Example: trader audit-leak --from 2026-01-02"
        ),
    )


def audit_leak(
    shared: Shared,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="DATE", help="First day; a year before the last."),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="DATE", help="Last day; the end of the data by default."),
    ] = None,
    sample: Annotated[
        int, typer.Option(metavar="N", help="Most decisions that each test takes again.")
    ] = 40,
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
) -> None:
    """Take past decisions again where they may not see the future, know a name or guess."""
    from trader.app.auditing import audit_leak as audited
    from trader.cli import audit_words, output, progress

    first = None if start is None else a_day("--from", start)
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
    )
    with progress.bar() as tell:
        result = audited(opened, start=first, end=last, sample=sample, progress=tell)
    output.notices(result.notices)
    shared.show(result, audit_words.tell_audit)
    if result.leak:
        raise typer.Exit(LEAK)
    if not result.complete:
        raise typer.Exit(UNANSWERED)
