"""Commands about the paper account: run, status, orders, positions, journal."""

from __future__ import annotations

from typing import Annotated

import typer

from trader.cli.options import (
    ConfigOption,
    JsonOption,
    ProfileOption,
    SetOption,
    StateOption,
    open_with,
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(epilog="Example: trader run --paper --once")(run)
    app.command()(status)
    app.command()(orders)
    app.command()(positions)
    app.command()(journal)


def run(
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
    data: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="sample, synthetic or csv:PATH.")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="Strategies that look for entries.")
    ] = None,
    symbols: Annotated[
        str | None, typer.Option(metavar="A,B", help="Symbols; AAPL on the sample by default.")
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    profile: ProfileOption = None,
    state_dir: StateOption = None,
    settings: SetOption = None,
) -> None:
    """Trade paper money at the embedded exchange, one decision slot a call."""
    from trader.cli import output, telling
    from trader.core.errors import UsageError

    if not paper:
        raise UsageError("say `trader run --paper`: paper money is the only mode there is")
    if not once:
        raise UsageError("say `trader run --paper --once`: each call walks one decision slot")
    opened = open_with(
        config,
        profile,
        state_dir,
        settings,
        data__source=data,
        strategies__enabled=strategy,
        symbols=symbols,
    )
    output.notices(opened.loaded.notices)
    result = opened.run_once(restart_market=restart_market)
    output.notices(result.notices)
    if as_json:
        output.show_json(result.as_json())
    else:
        telling.tell_run(result)


def status(
    as_json: JsonOption = False,
    config: ConfigOption = None,
    profile: ProfileOption = None,
    state_dir: StateOption = None,
    settings: SetOption = None,
) -> None:
    """Show the paper account in short and verify its ledger."""
    from trader.cli import output, telling

    view = open_with(config, profile, state_dir, settings).status()
    if as_json:
        output.show_json(view.as_json())
    else:
        telling.tell_status(view)


def orders(
    as_json: JsonOption = False,
    config: ConfigOption = None,
    profile: ProfileOption = None,
    state_dir: StateOption = None,
    settings: SetOption = None,
) -> None:
    """List the orders of the paper account with their legs."""
    from trader.cli import output, telling

    view = open_with(config, profile, state_dir, settings).orders()
    if as_json:
        output.show_json(view.as_json())
    else:
        telling.tell_orders(view)


def positions(
    as_json: JsonOption = False,
    config: ConfigOption = None,
    profile: ProfileOption = None,
    state_dir: StateOption = None,
    settings: SetOption = None,
) -> None:
    """List the positions of the paper account, each with its stop."""
    from trader.cli import output, telling

    view = open_with(config, profile, state_dir, settings).positions()
    if as_json:
        output.show_json(view.as_json())
    else:
        telling.tell_positions(view)


def journal(
    last: Annotated[int, typer.Option("-n", "--last", min=1, help="How many records.")] = 20,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    profile: ProfileOption = None,
    state_dir: StateOption = None,
    settings: SetOption = None,
) -> None:
    """Show the newest records of the ledger."""
    from trader.cli import output, telling

    view = open_with(config, profile, state_dir, settings).journal(last)
    if as_json:
        output.show_json(view.as_json())
    else:
        telling.tell_journal(view)
