"""Commands about the ledger as a file: verify, backup, restore, export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trader.cli.options import Shared, add_command

if TYPE_CHECKING:
    from trader.app.ledger_files import LedgerFile


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    group = typer.Typer(
        no_args_is_help=True,
        help="The account's records: check, copy, bring back, write out.",
        rich_markup_mode=None,
    )
    add_command(group, verify)
    add_command(group, backup, epilog="Example: trader ledger backup before-update.db")
    add_command(group, restore)
    add_command(group, export, epilog="Example: trader ledger export ledger.jsonl")
    app.add_typer(group, name="ledger")


def verify(shared: Shared) -> None:
    """Check every page of the file and the chain of every record."""
    shared.show(shared.open().verify_ledger(), lambda found: _tell("whole", found))


def backup(
    shared: Shared,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A new file; in backups/ of the state folder."),
    ] = None,
) -> None:
    """Copy the ledger, also while a run writes to it, and check the copy."""
    shared.show(shared.open().back_up_ledger(file), lambda found: _tell("copied", found))


def restore(
    shared: Shared,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `ledger backup` has made.")],
) -> None:
    """Put a backup in the ledger's place; what was there is kept aside."""
    from trader.cli import output

    found = shared.open().restore_ledger(file)
    output.notices(found.notices)
    shared.show(found, lambda brought: _tell("restored", brought))


def export(
    shared: Shared,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file, one record a line.")],
) -> None:
    """Write every record as one line of JSON."""
    shared.show(shared.open().export_ledger(file), lambda found: _tell("exported", found))


def _tell(what: str, found: LedgerFile) -> None:
    from trader.cli import output

    last = f"last slot {found.finished:%Y-%m-%d %H:%M} UTC" if found.finished else "no slot yet"
    output.lines(
        f"{what}: {found.path}", f"{found.records} records, {last}, head {found.ledger_head}"
    )
