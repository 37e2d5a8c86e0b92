"""Commands about the paper account: run, status, orders, positions, journal."""

from __future__ import annotations

from typing import Annotated

import typer

from trader.cli.options import (
    DataOption,
    Shared,
    StrategyOption,
    SymbolsOption,
    add_command,
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    add_command(app, run, epilog="Example: trader run --paper --once")
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
    data: DataOption = None,
    strategy: StrategyOption = None,
    symbols: SymbolsOption = None,
) -> None:
    """Trade paper money at the embedded exchange, one decision slot a call."""
    from trader.cli import output, telling
    from trader.core.errors import UsageError

    if not paper:
        raise UsageError("say `trader run --paper`: paper money is the only mode there is")
    if not once:
        raise UsageError("say `trader run --paper --once`: each call walks one decision slot")
    opened = shared.open(
        data__source=data,
        strategies__enabled=strategy,
        symbols=symbols,
    )
    result = opened.run_once(restart_market=restart_market)
    output.notices(result.notices)
    shared.show(result, telling.tell_run)


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
