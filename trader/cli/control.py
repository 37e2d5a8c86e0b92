"""Commands by which a person forbids, leaves and cancels; there is none that enters."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from trader.cli.options import Shared, add_command

if TYPE_CHECKING:
    from trader.app.controlling import Controlled, Order

UNSAID = "no reason given"
ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Kept in the ledger with the order.")
]
ReasonWanted = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Required; kept in the ledger.")
]
SymbolArgument = Annotated[
    str | None, typer.Argument(metavar="[SYMBOL]", help="One symbol; all of them without it.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    add_command(app, halt)
    add_command(app, resume)
    add_command(app, pause)
    add_command(app, unpause)
    add_command(app, close)
    add_command(app, cancel)
    add_command(app, acknowledge)


def halt(shared: Shared, reason: ReasonOption = UNSAID) -> None:
    """Stop all entries and cancel those that wait; exits and stops go on."""
    _control(shared, "halt", reason=reason)


def resume(
    shared: Shared,
    reason: ReasonWanted,
    force: Annotated[
        bool, typer.Option("--force", help="Also on the day on which the kill switch tripped.")
    ] = False,
) -> None:
    """Allow entries again after a halt."""
    _control(shared, "resume", reason=reason, force=force)


def pause(
    shared: Shared,
    symbol: SymbolArgument = None,
    until: Annotated[
        datetime | None,
        typer.Option(
            "--until",
            metavar="DATE",
            formats=["%Y-%m-%d"],
            help="Ends by itself when this session opens.",
        ),
    ] = None,
    reason: ReasonOption = UNSAID,
) -> None:
    """Stop entries in one symbol or in all; exits and orders that wait go on."""
    _control(shared, "pause", target=_symbol(symbol), reason=reason, until=until)


def unpause(shared: Shared, reason: ReasonWanted, symbol: SymbolArgument = None) -> None:
    """End a pause."""
    _control(shared, "unpause", target=_symbol(symbol), reason=reason)


def close(
    shared: Shared,
    symbol: Annotated[str, typer.Argument(metavar="SYMBOL|all", help="What to sell.")],
    reason: ReasonOption = UNSAID,
) -> None:
    """Cancel the entries of a symbol and sell what is held of it; `all` for everything."""
    target = None if symbol == "all" else _symbol(symbol)
    _control(shared, "close", target=target, reason=reason)


def cancel(
    shared: Shared,
    order: Annotated[
        str, typer.Argument(metavar="ORDER", help="Its id or client order id (`trader orders`).")
    ],
    reason: ReasonOption = UNSAID,
) -> None:
    """Cancel one order that waits; a protective one is left by closing its position."""
    _control(shared, "cancel", target=order, reason=reason)


def acknowledge(shared: Shared, reason: ReasonWanted) -> None:
    """Go on with the broker's numbers after it disagreed with the ledger."""
    _control(shared, "acknowledge", reason=reason)


def _symbol(given: str | None) -> str | None:
    return None if given is None else given.upper()


def _control(
    shared: Shared,
    order: Order,
    *,
    reason: str,
    target: str | None = None,
    until: datetime | None = None,
    force: bool = False,
) -> None:
    from trader.cli import output

    result = shared.open().control(
        order,
        target=target,
        reason=reason,
        until=None if until is None else until.date(),
        force=force,
    )
    output.notices(result.notices)
    shared.show(result, _tell)


def _tell(result: Controlled) -> None:
    from trader.cli import output

    output.lines(result.words)
    if result.outcome:
        output.lines(result.outcome)
