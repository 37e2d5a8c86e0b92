"""Printing: results on stdout, progress and notices on stderr, JSON on demand, no piped colour."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = 240  # columns, where there is no terminal to ask: a table is never folded into a pipe


@dataclass
class Speech:
    """How much is said on stderr."""

    quiet: bool = False
    verbose: int = 0


SPEECH = Speech()


def console(stream: TextIO | None = None) -> Console:
    """A rich console on a stream; plain text of a fixed width where it is not a terminal.

    Obeys NO_COLOR.
    """
    from rich.console import Console

    target = stream or sys.stdout
    width = None if target.isatty() else PLAIN_WIDTH
    return Console(
        file=target, width=width, highlight=False, soft_wrap=not target.isatty(), markup=False
    )


def show_json(body: dict[str, Any]) -> None:
    """One JSON object, one line, stdout."""
    print(json.dumps(body, allow_nan=False, ensure_ascii=False))  # noqa: T201


def printable(text: str) -> str:
    """`text` without characters that would steer a terminal; they may come from files and ids."""
    return "".join(
        char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text
    )


def notice(text: str) -> None:
    """A remark on stderr; silent with -q."""
    if not SPEECH.quiet:
        print(printable(text), file=sys.stderr)  # noqa: T201


def notices(lines: Iterable[str]) -> None:
    """Remarks on stderr, one a line."""
    for line in lines:
        notice(f"note: {line}")


def lines(*texts: str) -> None:
    """Result lines on stdout."""
    for text in texts:
        print(printable(text))  # noqa: T201


def table(
    title: str, headers: Sequence[str], rows: Iterable[Sequence[str]], *, left: Sequence[int] = (0,)
) -> None:
    """A table on stdout; columns whose number is in `left` are text, the rest are figures."""
    from rich import box
    from rich.table import Table

    drawn = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for number, header in enumerate(headers):
        drawn.add_column(header, justify="left" if number in left else "right", overflow="fold")
    for row in rows:
        drawn.add_row(*(printable(cell) for cell in row))
    console().print(drawn)


def percent(value: float | None, missing: str = "n/a") -> str:
    """A fraction as signed percent."""
    return missing if value is None else f"{value:+.2%}"


def usd(value: float | None) -> str:
    """An amount with thousands separators."""
    return "n/a" if value is None else f"{value:,.2f}"


def day(moment: datetime | None) -> str:
    """The UTC date of a moment."""
    return "" if moment is None else f"{moment:%Y-%m-%d}"
