"""Options that every command has, said once, and opening the app with them."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, get_type_hints

import typer

from trader.core.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from trader.app import App
    from trader.app.checking import Check

DataOption = Annotated[
    str | None,
    typer.Option("--data", metavar="SOURCE", help="sample, synthetic, alpaca or csv:PATH."),
]
BrokerOption = Annotated[
    str | None,
    typer.Option(
        "--broker",
        metavar="embedded|alpaca",
        help="Who trades: the exchange inside this program, or Alpaca's paper API.",
    ),
]
SpeedOption = Annotated[
    float | None,
    typer.Option(
        "--speed",
        metavar="X",
        help="Seconds of the embedded market per second; 0 for as fast as it goes.",
    ),
]
TimeframeOption = Annotated[
    str | None, typer.Option("--timeframe", metavar="1Day|1Hour", help="Length of a bar.")
]
StrategyOption = Annotated[
    str | None,
    typer.Option("--strategy", metavar="NAME,…", help="Strategies that look for entries."),
]
SymbolsOption = Annotated[
    str | None,
    typer.Option(
        "--symbols",
        metavar="A,B",
        help="Symbols; AAPL on the sample by default.",
        callback=lambda text: text.upper() if text else None,
    ),
]
DebateOption = Annotated[
    str | None, typer.Option("--debate", metavar="rules|llm|off", help="Who debates.")
]
RoundsOption = Annotated[
    int | None, typer.Option("--rounds", help="Rebuttal rounds after the opening.")
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="OpenAI-compatible server of the models."),
]
ModelOption = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Model that debates.")
]
RecordOption = Annotated[
    bool, typer.Option("--record", help="Ask the models and keep their replies.")
]
FromRecordingOption = Annotated[
    bool,
    typer.Option(
        "--from-recording", help="Answer from kept replies; no model is asked, no key is needed."
    ),
]

SHARED: tuple[tuple[str, Any, Any], ...] = (  # name, type with its option, default
    (
        "as_json",
        Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")],
        False,
    ),
    (
        "config",
        Annotated[
            Path | None,
            typer.Option(
                "--config", metavar="FILE", help="Configuration file; ./config.yaml by default."
            ),
        ],
        None,
    ),
    (
        "profile",
        Annotated[
            str | None,
            typer.Option("--profile", metavar="NAME", help="Profile of the configuration file."),
        ],
        None,
    ),
    (
        "state_dir",
        Annotated[
            Path | None,
            typer.Option("--state-dir", metavar="DIR", help="Folder that holds all state."),
        ],
        None,
    ),
    (
        "settings",
        Annotated[
            list[str] | None,
            typer.Option(
                "--set",
                metavar="NAME=VALUE",
                help="Override one setting, e.g. risk.atr_multiple=3.",
            ),
        ],
        None,
    ),
    (
        "quiet",
        Annotated[bool, typer.Option("-q", "--quiet", help="No progress and no notes on stderr.")],
        False,
    ),
    (
        "verbose",
        Annotated[int, typer.Option("-v", "--verbose", count=True, help="-vv shows tracebacks.")],
        0,
    ),
)


class Shown(Protocol):
    """A result that can be printed as one JSON object."""

    def as_json(self) -> Any:
        """The JSON object of the command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What was given of the options that every command has."""

    as_json: bool
    config: Path | None
    profile: str | None
    state_dir: Path | None
    settings: list[str] | None
    quiet: bool
    verbose: int

    def again(self) -> str:
        """These options as they are typed, for a command about the same account."""
        words = []
        for option, value in (
            ("--config", self.config),
            ("--profile", self.profile),
            ("--state-dir", self.state_dir),
        ):
            words += [] if value is None else [option, str(value)]
        for setting in self.settings or ():
            words += ["--set", setting]
        return "".join(f" {shlex.quote(word)}" for word in words)

    def show(self, result: Shown, tell: Callable[[Any], None]) -> None:
        """Print a result: as JSON when that was asked for, else by `tell`."""
        from trader.cli import output

        if self.as_json:
            output.show_json(result.as_json())
        else:
            tell(result)

    def doctor(self, **overrides: object) -> tuple[Check, ...]:
        """Every check; a broken configuration is one of them and the others go on with defaults.

        overrides  as for `open`; UsageError where one of these is wrong
        """
        from trader.app.checking import broken_configuration
        from trader.app.opening import open_defaults

        try:
            return self.open(**overrides).doctor()
        except (ConfigError, UsageError) as exc:
            if isinstance(exc, UsageError) and str(exc).startswith("--"):
                raise
            others = open_defaults(self.state_dir).doctor()
            bad = broken_configuration(str(exc))
            return tuple(bad if check.name == bad.name else check for check in others)

    def open(self, **overrides: object) -> App:
        """Open the app; options that were given override the configuration.

        overrides  setting with `__` for its dots -> value, None where the option was not given
        """
        from trader.app import open_app
        from trader.cli import output

        given = list(self.settings or ())
        if self.state_dir is not None:
            given.append(f"state_dir={self.state_dir}")
        for name, value in overrides.items():
            if value is not None:
                given.append(f"{name.replace('__', '.')}={value}")
        try:
            opened = open_app(config_path=self.config, profile=self.profile, overrides=given)
        except ConfigError as exc:
            raise _as_usage(exc, overrides) from exc
        output.notices(opened.loaded.notices)
        if opened.config.debate.mode != "llm":
            output.notices(_idle(overrides))
        return opened


def recording(*, record: bool, from_recording: bool) -> str | None:
    """The setting that the two options about recordings ask for; None when neither was given."""
    if record and from_recording:
        raise UsageError("--record and --from-recording exclude each other: name one")
    return "write" if record else "read" if from_recording else None


OPTION_OF = {
    "symbols": "--symbols",
    "broker.name": "--broker",
    "data.source": "--data",
    "data.timeframe": "--timeframe",
    "strategies.enabled": "--strategy",
    "debate.mode": "--debate",
    "debate.rounds": "--rounds",
    "debate.recording": "--from-recording",
    "debate.approval": "--approve",
    "models.base_url": "--base-url",
    "models.model": "--model",
    "account.cash": "--cash",
    "daemon.speed": "--speed",
}


def _idle(overrides: Mapping[str, object]) -> list[str]:
    """A note on options about models, where no model debates."""
    given = {name: value for name, value in overrides.items() if value is not None}
    idle = [OPTION_OF[name.replace("__", ".")] for name in given if name.startswith("models__")]
    if "debate__recording" in given:
        idle.append("--record" if given["debate__recording"] == "write" else "--from-recording")
    if not idle:
        return []
    return [f"{', '.join(idle)}: without effect, no model debates; say --debate llm to let one"]


def _as_usage(error: ConfigError, overrides: Mapping[str, object]) -> ConfigError | UsageError:
    """The error in terms of the options typed; a usage error when nothing else is wrong."""
    typed = {
        f"--set: {name.replace('__', '.')}": OPTION_OF[name.replace("__", ".")]
        for name, value in overrides.items()
        if value is not None
    }
    said, others = [], False
    for line in error.problems:
        known = next((setting for setting in typed if line.startswith(setting)), None)
        others |= known is None
        said.append(line if known is None else typed[known] + line[len(known) :])
    return ConfigError(*said) if others else UsageError("\n".join(said))


def add_command(
    app: typer.Typer, function: Callable[..., None], *, epilog: str = "", name: str | None = None
) -> None:
    """Make `function` a command; its first parameter is `Shared`, the rest are its own options.

    name  of the command; None: that of the function
    """
    hints = get_type_hints(function, include_extras=True)
    own = [
        parameter.replace(annotation=hints[parameter.name], kind=parameter.KEYWORD_ONLY)
        for parameter in list(inspect.signature(function).parameters.values())[1:]
    ]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, kind, default in SHARED
    ]

    def command(**given: Any) -> None:
        from trader.cli import output

        said = Shared(**{name: given.pop(name) for name, _, _ in SHARED})
        output.SPEECH.quiet |= said.quiet
        output.SPEECH.verbose += said.verbose
        function(said, **given)

    # typer reads the options off the signature
    command.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    command.__annotations__ = {}
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    app.command(name, epilog=epilog or None)(command)
