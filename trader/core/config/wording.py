"""How values and suggestions are put into the one-line messages about a configuration."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from typing import Any

LONGEST_SHOWN = 60


def shown(value: Any) -> str:
    """A value as a person wrote it, on one line and not too long."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return cut(str(value)) if abs(value) < 10**17 else f"{value:g}"
    if isinstance(value, str):
        return cut(json.dumps(value, ensure_ascii=not value.isprintable()))
    return "a mapping" if isinstance(value, dict) else "a list"


def word(text: str) -> str:
    """A name as it stands in a dotted path; odd ones are quoted so that the line stays one line."""
    return cut(text) if text.isprintable() and text.strip() else shown(text)


def cut(text: str) -> str:
    """`text`, shortened in the middle when it is very long."""
    if len(text) <= LONGEST_SHOWN:
        return text
    half = LONGEST_SHOWN // 2 - 1
    return f"{text[:half]}…{text[-half:]}"


def closest(text: str, names: Iterable[str]) -> str | None:
    """The name a person most likely meant, or None."""
    by_lower = {name.lower(): name for name in names}
    found = difflib.get_close_matches(cut(text).lower(), by_lower, n=1)
    return by_lower[found[0]] if found else None
