"""The doctor: what works here, what does not, and what to do about it."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from trader.app.assembly import program_version
from trader.app.context import Context
from trader.app.folder import make_folder
from trader.core.clock import SystemClock
from trader.core.errors import TraderError

PACKAGES = (
    "alpaca-py",
    "pandas",
    "numpy",
    "ta",
    "langgraph",
    "openai",
    "arxiv",
    "numba",
    "apscheduler",
    "exchange-calendars",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check: what was found, and what to do when it is not ok."""

    name: str
    status: Literal["ok", "warning", "failed"]
    found: str
    remedy: str = ""


def checks(app: Context) -> tuple[Check, ...]:
    """Every check, in the order in which they matter; those of model endpoints come last."""
    from trader.app.broker_checks import broker_checks  # they make a Check too
    from trader.app.endpoint_checks import endpoint_checks
    from trader.app.kernel_checks import kernel_checks

    here = tuple(
        check(app)
        for check in (
            _program,
            _packages,
            _configuration,
            _state,
            _calendar,
            _data,
        )
    )
    return (
        *here,
        *kernel_checks(),
        _strict_langgraph(app),
        _paper_only(app),
        *broker_checks(app.config, app.environ),
        *endpoint_checks(app.config, app.environ),
    )


def _program(_: Context) -> Check:
    python, machine = platform.python_version(), platform.machine()
    found = f"debate-trader {program_version()}, Python {python}, {machine}"
    return Check(name="program", status="ok", found=found)


def _packages(_: Context) -> Check:
    found, missing = [], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        return Check(
            name="packages",
            status="failed",
            found=f"missing: {', '.join(missing)}",
            remedy="install the project again: pip install -e .",
        )
    return Check(name="packages", status="ok", found=", ".join(found))


def _configuration(app: Context) -> Check:
    loaded = app.loaded
    where = str(loaded.path) if loaded.path else "built-in defaults"
    changed = sum(origin != "default" for origin in loaded.origins.values())
    return Check(
        name="configuration",
        status="warning" if loaded.path is None else "ok",
        found=f"{where}, {changed} values set",
        remedy="`trader init` writes a config.yaml with every default"
        if loaded.path is None
        else "",
    )


def broken_configuration(problems: str) -> Check:
    """The check of a configuration that cannot be loaded; problems: one a line."""
    return Check(
        name="configuration",
        status="failed",
        found="; ".join(problems.splitlines()),
        remedy="correct it; `trader config validate` tells every mistake with its position",
    )


def _state(app: Context) -> Check:
    return _tried(
        "state folder",
        lambda: f"{make_folder(app.state_dir)} can be written",
        "make the folder writable, or name another with --state-dir",
    )


def _calendar(app: Context) -> Check:
    def look() -> str:
        today = SystemClock().now().date()
        following = app.calendar.at_or_after(today)
        whose = (
            "days of a market that never closes," if app.calendar.never_closes else "NYSE sessions"
        )
        return f"{whose} {app.calendar.first} to {app.calendar.last}; next {following}"

    return _tried("calendar", look, "update exchange-calendars")


def _data(app: Context) -> Check:
    def look() -> str:
        parts = []
        for symbol in app.symbols():
            bars = app.data.bars(symbol, app.timeframe)
            parts.append(f"{symbol} {len(bars)} bars to {bars.bar(-1).timestamp:%Y-%m-%d}")
        return f"{app.data.name}, {app.timeframe}: {', '.join(parts)}"

    return _tried("data", look, "name symbols that the source has, or repair the bars it names")


def _strict_langgraph(_: Context) -> Check:
    strict = os.environ.get("LANGGRAPH_STRICT_MSGPACK", "").lower() == "true"
    return Check(
        name="strict LangGraph",
        status="ok" if strict else "failed",
        found="a checkpoint cannot run code"
        if strict
        else "LANGGRAPH_STRICT_MSGPACK is switched off",
        remedy="" if strict else "unset LANGGRAPH_STRICT_MSGPACK",
    )


def _paper_only(app: Context) -> Check:
    from trader.broker.session import EMBEDDED_URL, PAPER_URL

    broker = app.config.broker
    where = f"the exchange inside this process ({EMBEDDED_URL})"
    if broker.name == "alpaca":
        where = broker.base_url or f"Alpaca's paper account ({PAPER_URL})"
    found = f"orders reach {where} and no other host"
    return Check(name="paper only", status="ok", found=found)


def _tried(name: str, look: Callable[[], str], remedy: str) -> Check:
    try:
        return Check(name=name, status="ok", found=look())
    except (TraderError, ImportError) as exc:
        return Check(name=name, status="failed", found=str(exc), remedy=remedy)
