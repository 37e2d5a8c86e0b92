"""Commands about the daemon: start, stop, status, install."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from trader.cli.options import (
    BrokerOption,
    DataOption,
    Shared,
    SpeedOption,
    StrategyOption,
    SymbolsOption,
    add_command,
)

if TYPE_CHECKING:
    from trader.app.heartbeat import DaemonStatus
    from trader.app.service import Done, Unit

NOT_WELL = 4
DebatersOption = Annotated[
    str | None, typer.Option("--debate", metavar="rules|llm", help="Who debates.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    group = typer.Typer(
        no_args_is_help=True,
        help="Run the schedule of `trader run --paper` as a service.",
        rich_markup_mode=None,
    )
    add_command(group, start, epilog="Example: trader daemon start --speed 3600")
    add_command(group, stop)
    add_command(group, status)
    add_command(group, install, epilog="Example: trader daemon install --print")
    app.add_typer(group, name="daemon")


def start(
    shared: Shared,
    broker: BrokerOption = None,
    data: DataOption = None,
    strategy: StrategyOption = None,
    symbols: SymbolsOption = None,
    debate_by: DebatersOption = None,
    speed: SpeedOption = None,
) -> None:
    """Start the schedule apart from this terminal; any setting can be given with --set."""
    opened = shared.open(
        broker__name=broker,
        data__source=data,
        strategies__enabled=strategy,
        symbols=symbols,
        debate__mode=debate_by,
        daemon__speed=speed,
    )
    words = _words(shared, broker, data, strategy, symbols, debate_by, speed)
    shared.show(opened.daemon_start(words), _tell_done)


def stop(
    shared: Shared,
    seconds: Annotated[
        float, typer.Option("--wait", min=0, metavar="SECONDS", help="How long to wait for it.")
    ] = 120.0,
) -> None:
    """End the daemon after the job at hand, and wait for it."""
    shared.show(shared.open().daemon_stop(seconds), _tell_done)


def status(shared: Shared) -> None:
    """Show how the daemon is; exit 0 when it runs and is heard, else 4."""
    found = shared.open().daemon_status()
    shared.show(found, tell_daemon)
    if not found.well:
        raise typer.Exit(NOT_WELL)


def install(
    shared: Shared,
    system: Annotated[
        bool, typer.Option("--system", help="For the whole computer, not for this user alone.")
    ] = False,
    only_print: Annotated[
        bool, typer.Option("--print", help="Only show the unit; nothing is written.")
    ] = False,
    broker: BrokerOption = None,
    data: DataOption = None,
    strategy: StrategyOption = None,
    symbols: SymbolsOption = None,
    debate_by: DebatersOption = None,
    speed: SpeedOption = None,
) -> None:
    """Write a systemd unit that runs the schedule, and say how it is switched on."""
    opened = shared.open(
        broker__name=broker,
        data__source=data,
        strategies__enabled=strategy,
        symbols=symbols,
        debate__mode=debate_by,
        daemon__speed=speed,
    )
    words = _words(shared, broker, data, strategy, symbols, debate_by, speed)
    shared.show(opened.daemon_install(words, system=system, write=not only_print), _tell_unit)


def _words(
    shared: Shared,
    broker: str | None,
    data: str | None,
    strategy: str | None,
    symbols: str | None,
    debate_by: str | None,
    speed: float | None,
) -> list[str]:
    """The options as `trader run --paper` takes them."""
    words = shlex.split(shared.again())
    for option, value in (
        ("--broker", broker),
        ("--data", data),
        ("--strategy", strategy),
        ("--symbols", symbols),
        ("--debate", debate_by),
        ("--speed", None if speed is None else f"{speed:g}"),
    ):
        words += [] if value is None else [option, value]
    return words


def _tell_done(done: Done) -> None:
    from trader.cli.output import lines

    if done.state == "running":
        lines(f"the daemon runs as process {done.pid}; its log is {done.log}")
    elif done.state == "ended":
        lines("the bars of the embedded market are over: nothing is left to run")
    elif done.changed:
        lines(f"the daemon (process {done.pid}) has ended")
    else:
        lines("no daemon runs")


def _tell_unit(unit: Unit) -> None:
    from trader.cli.output import lines

    if unit.path is None:
        lines(unit.text.rstrip())
        return
    lines(f"wrote {unit.path}; switch it on with", *(f"  {line}" for line in unit.next))


def tell_daemon(found: DaemonStatus) -> None:
    """The daemon in a few lines."""
    from trader.cli.output import lines

    age = _age(found.heartbeat_age)
    words = {
        "never": "none has run here; `trader daemon start` starts one",
        "stopped": "stopped",
        "stale": f"STALE: process {found.pid} lives and has not been heard for {age}",
        "running": f"running as process {found.pid}, heard {age} ago",
    }
    lines(f"daemon         {words[found.state]}")
    if found.heartbeat is None:
        return
    beat = found.heartbeat.beat
    if beat.market_time is not None:
        kind = " (simulated)" if found.heartbeat.simulated else ""
        lines(f"  market time  {beat.market_time:%Y-%m-%d %H:%M} UTC{kind}")
    if beat.job:
        lines(f"  at work      {beat.job}, for {_age(found.busy_seconds)}")
    if beat.last_cycle:
        lines(f"  last cycle   {beat.last_cycle}, {_age(found.last_cycle_age)} ago")
    if beat.next_job_at is not None and found.well:
        lines(f"  next         {beat.next_job} at {beat.next_job_at:%Y-%m-%d %H:%M} UTC")
    if beat.state == "asking":
        lines("  waits        for a person: `trader status` says for what")
    if beat.problem:
        lines(f"  last problem {beat.problem}")
    if found.heartbeat.metrics and found.well:
        lines(f"  metrics      http://{found.heartbeat.metrics}/metrics")


def _age(seconds: float | None) -> str:
    """An age in the largest fitting unit."""
    if seconds is None:
        return "an unknown time"
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {name}"
    return f"{seconds:.0f} s"
