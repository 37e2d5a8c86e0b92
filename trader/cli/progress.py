"""Progress of long work on stderr: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from trader.cli import output
from trader.core.clock import monotonic_seconds

SECONDS_BETWEEN_LINES = 5.0

Tell = Callable[[str, int, int, Any], None]
Count = Callable[[str, int, int], None]


@contextmanager
def bar() -> Iterator[Tell | None]:
    """A function to call after each slot; None with -q."""
    if output.SPEECH.quiet:
        yield None
    elif sys.stderr.isatty():
        with _drawn() as tell:
            yield tell
    else:
        yield _plain()


@contextmanager
def _drawn() -> Iterator[Tell]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=output.console(sys.stderr), transient=True) as drawn:
        tasks: dict[str, Any] = {}

        def tell(name: str, number: int, of: int, slot: Any) -> None:
            if name not in tasks:
                tasks[name] = drawn.add_task(name, total=of)
            drawn.update(tasks[name], completed=number, description=f"{name} {slot.session}")

        yield tell


def _plain() -> Tell:
    began = last = monotonic_seconds()

    def tell(name: str, number: int, of: int, slot: Any) -> None:
        nonlocal last
        now = monotonic_seconds()
        if now - last >= SECONDS_BETWEEN_LINES:
            last = now
            output.notice(f"{name}: {slot.session}, {number} of {of} slots, {now - began:.0f} s")

    return tell


@contextmanager
def count() -> Iterator[Count | None]:
    """A function to call as sets are done; it shows how many a second. None with -q."""
    if output.SPEECH.quiet:
        yield None
    elif sys.stderr.isatty():
        with _drawn_count() as tell:
            yield tell
    else:
        yield _plain_count()


@contextmanager
def _drawn_count() -> Iterator[Count]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=output.console(sys.stderr), transient=True) as drawn:
        tasks: dict[str, tuple[Any, float]] = {}

        def tell(name: str, number: int, of: int) -> None:
            if name not in tasks:
                tasks[name] = drawn.add_task(name, total=of), monotonic_seconds()
            task, began = tasks[name]
            drawn.update(task, completed=number, description=_counted(name, number, of, began))

        yield tell


def _plain_count() -> Count:
    began: dict[str, float] = {}  # a stage begins with its call at 0
    last = monotonic_seconds()

    def tell(name: str, number: int, of: int) -> None:
        nonlocal last
        now = monotonic_seconds()
        since = began.setdefault(name, now)
        first = name == next(iter(began))  # its end is told however fast it came
        if number and (now - last >= SECONDS_BETWEEN_LINES or (first and number == of)):
            output.notice(_counted(name, number, of, since))
            last = now

    return tell


def _counted(name: str, number: int, of: int, began: float) -> str:
    seconds = max(monotonic_seconds() - began, 1e-9)
    return f"{name}: {number:,} of {of:,}, {number / seconds:,.0f} combos a second"
