"""Commands about the installation: config, doctor, init."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trader.cli.options import (
    BaseUrlOption,
    BrokerOption,
    DataOption,
    ModelOption,
    Shared,
    SymbolsOption,
    add_command,
)

SCHEMA_VERSION = 1


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    add_command(
        app,
        doctor,
        epilog="Example: trader doctor --broker alpaca --data alpaca",
    )
    add_command(app, init)
    group = typer.Typer(
        no_args_is_help=True, help="Show or check the configuration.", rich_markup_mode=None
    )
    add_command(group, show)
    add_command(group, validate)
    app.add_typer(group, name="config")


def doctor(
    shared: Shared,
    broker: BrokerOption = None,
    data: DataOption = None,
    symbols: SymbolsOption = None,
    base_url: BaseUrlOption = None,
    model: ModelOption = None,
) -> None:
    """Check this installation, the broker and the models named, and say what to do about what
    fails; nothing is ordered.
    """
    from trader.cli import output, telling

    asked = base_url is not None or model is not None
    found = shared.doctor(
        broker__name=broker,
        data__source=data,
        symbols=symbols,
        debate__mode="llm" if asked else None,
        models__base_url=base_url,
        models__model=model,
    )
    failed = [check for check in found if check.status == "failed"]
    if shared.as_json:
        checks = [
            {"name": c.name, "status": c.status, "found": c.found, "remedy": c.remedy}
            for c in found
        ]
        output.show_json({"schema_version": SCHEMA_VERSION, "ok": not failed, "checks": checks})
    else:
        telling.tell_checks(found)
    if failed:
        raise typer.Exit(4)


def init(
    shared: Shared,
    path: Annotated[Path, typer.Argument(help="File to write.")] = Path("config.yaml"),
) -> None:
    """Write a config.yaml with every default and make the state folder;
    an existing file is left alone.
    """
    from trader.cli import output

    made = shared.open().init(path)
    if shared.as_json:
        output.show_json({"schema_version": SCHEMA_VERSION, **made.as_json()})
    else:
        written = "written" if made.written else "is there already and was left alone"
        output.lines(f"{made.path} {written}", f"state folder {made.state_dir}")


def show(shared: Shared) -> None:
    """Show every setting, its value and where it comes from."""
    from trader.cli import output, telling
    from trader.core.canonical import to_object
    from trader.core.config import describe

    opened = shared.open()
    found = describe(opened.loaded)
    if shared.as_json:
        rows = {
            item.name: {"value": item.value, "origin": item.origin, "description": item.description}
            for item in found
        }
        output.show_json(to_object({"schema_version": SCHEMA_VERSION, "settings": rows}))
    else:
        telling.tell_settings(found)


def validate(shared: Shared) -> None:
    """Check the configuration; every mistake is one line with its position."""
    from trader.cli import output

    loaded = shared.open().loaded
    where = str(loaded.path) if loaded.path else "built-in defaults"
    if shared.as_json:
        output.show_json({"schema_version": SCHEMA_VERSION, "valid": True, "file": where})
    else:
        output.lines(f"{where}: valid")
