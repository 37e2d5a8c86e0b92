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
    title: str,
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: Sequence[int] = (0,),
    spare: Sequence[int] = (),
) -> None:
    """A table on stdout.

    left   numbers of the columns that are text; the rest are figures
    spare  numbers of the columns that a narrow terminal does without, the first one first; what is
           still too wide is folded
    """
    from rich import box
    from rich.table import Table

    screen = console()
    cells = [[printable(cell) for cell in row] for row in rows]
    kept = _kept(headers, cells, spare, screen.width)
    drawn = Table(
        title=title or None,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for number in kept:
        drawn.add_column(
            headers[number], justify="left" if number in left else "right", overflow="fold"
        )
    for row in cells:
        drawn.add_row(*(row[number] for number in kept))
    screen.print(drawn)


def _kept(
    headers: Sequence[str], cells: Sequence[Sequence[str]], spare: Sequence[int], width: int
) -> list[int]:
    """Columns that fit into `width` characters when spare ones are left out as far as needed."""
    kept = list(range(len(headers)))
    for number in spare:
        wide = sum(max(len(headers[n]), *(len(row[n]) for row in cells), 0) + 2 for n in kept)
        if wide <= width:
            break
        kept.remove(number)
    return kept


def percent(value: float | None, missing: str = "n/a") -> str:
    """A fraction as signed percent."""
    return missing if value is None else f"{value:+.2%}"


def usd(value: float | None) -> str:
    """An amount with thousands separators."""
    return "n/a" if value is None else f"{value:,.2f}"


def day(moment: datetime | None) -> str:
    """The UTC date of a moment."""
    return "" if moment is None else f"{moment:%Y-%m-%d}"
