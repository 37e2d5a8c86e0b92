"""The command that offers the embedded exchange to other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from trader.cli.options import DataOption, Shared, SymbolsOption, TimeframeOption, add_command

EPILOG = (
    "Orders, positions and bars stand at the address of REST, the streams at the others; any key "
    "id that begins with PK is taken. The market stands still until --speed or POST "
    '/control/advance {"slots": 1} moves it. GET /control shows it; POST /control/faults, /drop, '
    "/halt, /split, /dividend, /deposit, /fee, /block and /reset make things happen. Only this "
    "computer is answered. Example: trader exchange serve --port 8765 --stream-port 8766, then "
    """curl -d '{"slots": 1}' http://127.0.0.1:8765/control/advance"""
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    group = typer.Typer(
        no_args_is_help=True,
        help="The embedded exchange for other programs.",
        rich_markup_mode=None,
    )

    @group.callback()
    def only_groups() -> None:  # with one command alone typer would make no group
        """The embedded exchange for other programs."""

    add_command(group, serve, epilog=EPILOG)
    app.add_typer(group, name="exchange")


def serve(
    shared: Shared,
    port: Annotated[
        int, typer.Option("--port", help="Port of REST on 127.0.0.1; 0 takes a free one.")
    ] = 0,
    stream_port: Annotated[
        int | None,
        typer.Option(
            "--stream-port",
            help="Port of the websockets, 0 for a free one; by default the one after --port.",
        ),
    ] = None,
    data: DataOption = None,
    timeframe: TimeframeOption = None,
    symbols: SymbolsOption = None,
    speed: Annotated[
        float, typer.Option("--speed", help="Market seconds per second; 0 stands still.")
    ] = 0.0,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin the market again; its orders are forgotten.")
    ] = False,
    database: Annotated[
        Path | None,
        typer.Option(
            "--database", metavar="FILE", help="The market's state; served.db of the state folder."
        ),
    ] = None,
) -> None:
    """Offer the embedded exchange on this computer, as Alpaca's REST and websockets."""
    from trader.cli import output

    opened = shared.open(data__source=data, data__timeframe=timeframe, symbols=symbols)
    with opened.serve_exchange(
        port=port,
        stream_port=stream_port,
        speed=speed,
        fresh=fresh,
        database=database,
        tell=output.notice,
    ) as served:
        try:
            if shared.as_json:
                output.show_json(served.as_json())
            else:
                speed = served.speed
                pace = f"{speed:g} market seconds a second" if speed else "stands still"
                now = f"{served.market_time:%Y-%m-%d %H:%M} UTC"
                output.lines(
                    f"REST           {served.rest}",
                    f"trade updates  {served.trade_updates}",
                    *(f"bars {name:<9} {url}" for name, url in served.market_data.items()),
                    f"control        {served.control}",
                    f"market         {served.source}, {now}, {pace}",
                    f"state          {served.database}",
                    *served.lines_for_alpaca(),
                )
            sys.stdout.flush()  # whoever started it waits for the addresses
            served.wait()
        except KeyboardInterrupt:
            output.notice(f"stopped; the market is kept in {served.database}")
            raise typer.Exit(130) from None
