"""Options that every command has, and opening the app with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from trader.app import App

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Configuration file; ./config.yaml by default."),
]
ProfileOption = Annotated[
    str | None, typer.Option("--profile", metavar="NAME", help="Profile of the configuration file.")
]
StateOption = Annotated[
    Path | None, typer.Option("--state-dir", metavar="DIR", help="Folder that holds all state.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Override one setting, e.g. risk.atr_multiple=3."
    ),
]


def open_with(
    config: Path | None,
    profile: str | None,
    state_dir: Path | None,
    settings: Sequence[str] | None = None,
    **overrides: object,
) -> App:
    """Open the app; options that were given override the configuration.

    overrides  dotted setting with `__` for the dot -> value, None where the option was not given
    """
    from trader.app import open_app

    given = list(settings or ())
    if state_dir is not None:
        given.append(f"state_dir={state_dir}")
    for name, value in overrides.items():
        if value is not None:
            given.append(f"{name.replace('__', '.')}={value}")
    return open_app(config_path=config, profile=profile, overrides=given)
