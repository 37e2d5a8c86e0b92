"""Commands about the paper account: run, approve, reject, status, orders, positions, journal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trader.cli.options import (
    BaseUrlOption,
    BrokerOption,
    DataOption,
    FromRecordingOption,
    ModelOption,
    RecordOption,
    RoundsOption,
    Shared,
    SpeedOption,
    StrategyOption,
    SymbolsOption,
    add_command,
    recording,
)

if TYPE_CHECKING:
    from trader.app import App
    from trader.app.paper import RunResult

CycleArgument = Annotated[
    str, typer.Argument(metavar="CYCLE_ID", help="Id of the decision, as `trader run` printed it.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    add_command(app, run, epilog="Example: trader run --paper --once")
    add_command(app, approve)
    add_command(app, reject)
    add_command(app, status)
    add_command(app, orders)
    add_command(app, positions)
    add_command(app, journal)


def run(
    shared: Shared,
    paper: Annotated[
        bool, typer.Option("--paper", help="Required: there is no other mode.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Walk one decision slot and stop.")] = False,
    restart_market: Annotated[
        bool,
        typer.Option(
            "--restart-market",
            help="Begin the embedded market again; the old account is kept aside.",
        ),
    ] = False,
    broker: BrokerOption = None,
    data: DataOption = None,
    strategy: StrategyOption = None,
    symbols: SymbolsOption = None,
    debate_by: Annotated[
        str | None, typer.Option("--debate", metavar="rules|llm", help="Who debates.")
    ] = None,
    rounds: RoundsOption = None,
    approve: Annotated[
        bool, typer.Option("--approve", help="Ask a person before a GO becomes an order.")
    ] = False,
    base_url: BaseUrlOption = None,
    model: ModelOption = None,
    record: RecordOption = False,
    from_recording: FromRecordingOption = False,
    speed: SpeedOption = None,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log", metavar="FILE", help="Write the log there, not to stderr; 1 MB, 3 kept."
        ),
    ] = None,
) -> None:
    """Trade paper money on the schedule of the market, or one decision slot with --once."""
    from trader.cli import output, panels
    from trader.core.errors import UsageError

    if not paper:
        raise UsageError("say `trader run --paper`: paper money is the only mode there is")
    if once and (speed is not None or log is not None):
        raise UsageError("--speed and --log go with the schedule: leave them out, or --once")
    opened = shared.open(
        broker__name=broker,
        data__source=data,
        strategies__enabled=strategy,
        symbols=symbols,
        debate__mode=debate_by,
        debate__rounds=rounds,
        debate__approval="true" if approve else None,
        debate__recording=recording(record=record, from_recording=from_recording),
        models__base_url=base_url,
        models__model=model,
        daemon__speed=speed,
    )
    if not once:
        _follow(shared, opened, restart_market=restart_market, log=log)
        return
    with panels.watching() as listener:
        result = opened.run_once(restart_market=restart_market, listener=listener)
    output.notices(result.notices)
    _show_run(shared, result)


def _follow(shared: Shared, opened: App, *, restart_market: bool, log: Path | None) -> None:
    """The schedule until it ends; a signal that ended it is the exit code."""
    from trader.cli import output, panels, telling

    with panels.watching() as listener:
        result = opened.follow(
            restart_market=restart_market,
            log=log,
            quiet=output.SPEECH.quiet,
            listener=listener if panels.drawn(listener) else None,
        )
    shared.show(result, telling.tell_schedule)
    if result.signal:
        raise typer.Exit(128 + result.signal)


def approve(shared: Shared, cycle_id: CycleArgument) -> None:
    """Approve a GO that waits: its order is sent, and the slot goes on."""
    _answer(shared, cycle_id, approved=True)


def reject(shared: Shared, cycle_id: CycleArgument) -> None:
    """Reject a GO that waits: nothing is ordered, and the slot goes on."""
    _answer(shared, cycle_id, approved=False)


def _answer(shared: Shared, cycle_id: str, *, approved: bool) -> None:
    from trader.app.running import AnswerRecorded
    from trader.cli import output, panels, telling

    opened = shared.open()
    with panels.watching() as listener:
        result = opened.answer_approval(cycle_id, approved=approved, listener=listener)
    if isinstance(result, AnswerRecorded):
        shared.show(result, telling.tell_answer)
        return
    output.notices(result.notices)
    _show_run(shared, result)


def _show_run(shared: Shared, result: RunResult) -> None:
    from trader.cli import telling

    shared.show(result, lambda found: telling.tell_run(found, shared.again()))


def status(shared: Shared) -> None:
    """Show the paper account in short and verify its ledger."""
    from trader.cli import telling

    shared.show(shared.open().status(), telling.tell_status)


def orders(shared: Shared) -> None:
    """List the orders of the paper account with their legs."""
    from trader.cli import telling

    shared.show(shared.open().orders(), telling.tell_orders)


def positions(shared: Shared) -> None:
    """List the positions of the paper account, each with its stop."""
    from trader.cli import telling

    shared.show(shared.open().positions(), telling.tell_positions)


def journal(
    shared: Shared,
    last: Annotated[int, typer.Option("-n", "--last", min=1, help="How many records.")] = 20,
) -> None:
    """Show the newest records of the ledger."""
    from trader.cli import telling

    shared.show(shared.open().journal(last), telling.tell_journal)
