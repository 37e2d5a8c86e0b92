"""What pydantic found wrong, said in one plain line with the remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pydantic_core import ErrorDetails

from trader.core.config.schema import Config, leaves, section_of
from trader.core.config.sections import Section
from trader.core.config.wording import closest, shown


def explain(error: ErrorDetails, top: type[Config]) -> str:
    """One line for an error of pydantic; `top` is ConfigFile, or Config inside a profile."""
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    location = [part for part in error["loc"] if isinstance(part, str)]
    if kind == "extra_forbidden":
        return _unknown(location, top)
    if kind == "literal_error":
        return _not_among(value, location)
    if kind in ("float_type", "int_type"):
        return _not_a_number(value, whole=kind == "int_type")
    if kind in BOUNDS:
        key, relation = BOUNDS[kind]
        return f"{shown(value)} must be {relation} {context[key]:g}{_as_fraction(value, location)}"
    if kind in SHAPES:
        return f"{shown(value)} {SHAPES[kind]}"
    return str(error["msg"])  # our own validators speak plainly already


BOUNDS: Mapping[str, tuple[str, str]] = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}
SHAPES: Mapping[str, str] = {
    "string_type": "is not text; put it in quotes",
    "string_pattern_mismatch": "must be one line of printable text",
    "tuple_type": "is not a list; write it in brackets, as in [A, B]",
    "model_type": "is no mapping; write the settings of this section below it, indented",
    "date_type": "is not a date; write year-month-day, as in 2026-07-01",
}


def _unknown(location: Sequence[str], top: type[Config]) -> str:
    *path, name = location
    section = _section_at(path, top)
    siblings = list(section.model_fields) if section else []
    close = closest(name, siblings)
    if close:
        return f"unknown setting, did you mean {close}?"
    elsewhere = [leaf.name for leaf in leaves() if leaf.name.rpartition(".")[2] == name]
    if elsewhere:
        return f"unknown setting here, did you mean {elsewhere[0]}?"
    known = ", ".join(siblings)
    return f"unknown setting; known here: {known}" if known else "unknown setting; there are none"


def _not_among(value: Any, location: Sequence[str]) -> str:
    known = _words_at(tuple(location))
    close = closest(str(value), known)
    hint = f", did you mean {close}?" if close else ""
    return f"{shown(value)} is none of {', '.join(known)}{hint}"


def _not_a_number(value: Any, *, whole: bool) -> str:
    expected = "whole number" if whole else "number"
    if isinstance(value, bool):
        return f"{shown(value)} is a boolean; a {expected} is expected"
    if isinstance(value, str):
        return f"{shown(value)} is text; a {expected} is expected, in digits and without quotes"
    if isinstance(value, float):
        return f"{shown(value)} is not a whole number"
    return f"{shown(value)} is not a {expected}"


def _as_fraction(value: Any, location: Sequence[str]) -> str:
    """The hint for the commonest slip, a percentage where a fraction belongs."""
    section = _section_at(location[:-1])
    extra = section.model_fields[location[-1]].json_schema_extra if section else None
    if not isinstance(extra, dict) or extra.get("unit") != "fraction" or not 1 <= value <= 100:
        return ""
    return f"; it is a fraction: write {value:g} % as {value / 100:g}"


def _section_at(path: Sequence[str], top: type[Config] = Config) -> type[Section] | None:
    section: type[Section] | None = top
    for name in path:
        field = section.model_fields.get(name) if section else None
        section = section_of(field) if field else None
    return section


@cache
def _words_at(location: tuple[str, ...]) -> list[str]:
    """The words a setting accepts, read from the JSON Schema so that they are written once."""
    schema = Config.model_json_schema()
    node: Any = schema
    for name in location:
        node = node["properties"][name]
        reference = node.get("$ref", "").rpartition("/")[2]
        node = schema["$defs"][reference] if reference else node
    words: list[str] = node.get("items", node)["enum"]
    return words
