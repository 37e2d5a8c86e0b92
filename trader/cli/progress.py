"""Progress of a backtest on stderr: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from trader.cli import output
from trader.core.clock import monotonic_seconds

SECONDS_BETWEEN_LINES = 5.0

Tell = Callable[[str, int, int, Any], None]


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
