"""`trader`: the front door of the command line, with its exit codes."""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from trader.cli import (
    account,
    audit,
    control,
    daemon,
    data,
    exchange,
    kernels,
    ledger,
    setup,
    study,
    sweep,
)
from trader.core.errors import (
    ApprovalPendingError,
    BudgetError,
    ConfigError,
    DataIntegrityError,
    EndpointError,
    LockHeldError,
    OrderRefusedError,
    RecordingError,
    StateError,
    TraderError,
    UsageError,
)

EXIT_CODES: tuple[tuple[type[TraderError], int], ...] = (
    (UsageError, 2),
    (ConfigError, 3),
    (EndpointError, 4),
    (DataIntegrityError, 5),
    (OrderRefusedError, 6),
    (BudgetError, 6),
    (RecordingError, 4),
    (ApprovalPendingError, 6),
    (LockHeldError, 7),
    (StateError, 7),
    (TraderError, 1),
)
INTERNAL, INTERRUPTED, TERMINATED = 1, 130, 143
LONGEST_LINE = 600
EPILOG = (
    "Exit codes: 0 ok, also when nothing was traded; 1 internal error, or a check that found a "
    "difference; 2 usage; 3 configuration; "
    "4 endpoint or dependency unavailable; 5 data refused; 6 risk or budget refusal; "
    "7 state folder in use, not writable or damaged; 130 interrupted; 143 told to end."
)


class FrontDoor(TyperGroup):
    """The group of all commands, which says one line when a person interrupts it."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; exit 130 on Ctrl-C, after the command has cleaned up behind itself."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _fail("interrupted; nothing that was recorded is lost", INTERRUPTED)


app = typer.Typer(
    cls=FrontDoor,
    name="trader",
    help=(
        "A paper-trading bot whose every trade is argued over first. Paper money only; not advice."
    ),
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"debate-trader {version('debate-trader')}")
        raise typer.Exit


@app.callback()
def front_door(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="No progress and no notes on stderr.")
    ] = False,
    verbose: Annotated[
        int, typer.Option("-v", "--verbose", count=True, help="Say more; -vv shows tracebacks.")
    ] = 0,
) -> None:
    """Set how much is said; results go to stdout, everything else to stderr."""
    from trader.cli import output

    output.SPEECH.quiet, output.SPEECH.verbose = quiet, verbose


study.register(app)
sweep.register(app)
audit.register(app)
account.register(app)
control.register(app)
daemon.register(app)
data.register(app)
exchange.register(app)
kernels.register(app)
ledger.register(app)
setup.register(app)


def main() -> None:
    """Run the command line; every error becomes one line on stderr and its exit code."""
    try:
        _prepare_streams()
        signal.signal(signal.SIGTERM, _terminated)
        app(standalone_mode=True)
    except KeyboardInterrupt:
        _fail("interrupted; nothing that was recorded is lost", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except TraderError as exc:
        _fail(str(exc), next(code for kind, code in EXIT_CODES if isinstance(exc, kind)), exc)
    except OSError as exc:
        _fail(f"the output cannot be written: {exc.strerror or exc}", INTERNAL, exc)
    except Exception as exc:  # noqa: BLE001 - the one place where an unknown error becomes a line
        hint = "(run again with -vv for the traceback)"
        _fail(f"internal error: {type(exc).__name__}: {exc} {hint}", INTERNAL, exc)


def _prepare_streams() -> None:
    """Make any text printable on any terminal, and missing streams harmless."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - lives as long as the process
        else:
            stream.reconfigure(errors="backslashreplace")


def _terminated(*_: object) -> NoReturn:
    raise SystemExit(TERMINATED)  # on the way out every command cleans up behind itself


def _fail(message: str, code: int, error: Exception | None = None) -> NoReturn:
    from trader.cli import output

    if error is not None and output.SPEECH.verbose > 1:
        import traceback

        traceback.print_exception(error)
    lines = [output.printable(line)[:LONGEST_LINE] for line in message.splitlines()]
    for line in lines:
        print(f"trader: {line}", file=sys.stderr)  # noqa: T201
    if "--json" in sys.argv:
        output.show_json({"schema_version": 1, "ok": False, "exit_code": code, "errors": lines})
    raise SystemExit(code)
