"""YAML text as a tree in which every value knows its line and column; nothing is guessed or merged.

Only the plain core of YAML 1.2 is understood, so ON, NO and 1:30 stay text. Positions are those of
the key, or of the item in a list, counted from 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from trader.core.config.wording import cut, word

DEEPEST = 20  # config.yaml needs 5
MOST_VALUES = 10_000  # config.yaml has about 50
UNPRINTABLE = re.compile(
    r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
INTEGER = re.compile(r"[-+]?[0-9]+")
NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
SURROGATE = re.compile(r"[\ud800-\udfff]")  # half a character, which no file can hold
NO_CHARACTER = re.compile(r"\\U(?!0010|000)[0-9A-Fa-f]{8}")
PLAIN_WORDS = {  # for what ruamel says about a syntax error
    "expected <block end>": "the indentation does not fit the lines above",
    "mapping values are not allowed here": "a second colon, or indentation that does not fit; "
    "put text with a colon in quotes",
    "found unexpected end of stream": "a quotation mark is not closed",
    "expected ',' or": "a comma is missing, or a bracket is not closed",
    "could not find expected ':'": "a colon is missing after the name",
}
NULLS = ("", "~", "null", "Null", "NULL")
BOOLEANS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}

Scalar = None | bool | int | float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something was written: a file with line and column, a variable, or --set."""

    source: str
    line: int = 0
    column: int = 0
    profile: str = ""

    @property
    def label(self) -> str:
        """How an error message begins."""
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source

    @property
    def origin(self) -> str:
        """How `config show` names it."""
        where = f"{self.source}:{self.line}" if self.line else self.source
        return f"profile {self.profile} ({where})" if self.profile else where


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One mistake and where it was made."""

    place: Place
    name: str  # dotted, or empty when no setting is concerned
    what: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.place.label, self.name, self.what) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A value with the place of its key, or of itself when it is an item of a list."""

    value: Scalar | tuple[Located, ...] | dict[str, Located]
    place: Place


class NotFiniteError(ValueError):
    """A number without a finite value, such as .nan or 1e999."""


def scalar(text: str) -> Scalar:
    """What an unquoted word means; NotFiniteError for .nan, .inf and numbers like 1e999."""
    if text in NULLS:
        return None
    if text in BOOLEANS:
        return BOOLEANS[text]
    if NOT_FINITE.fullmatch(text):
        raise NotFiniteError(text)
    if not NUMBER.fullmatch(text):
        return text
    number = float(text)
    if not math.isfinite(number):
        raise NotFiniteError(text)
    return int(text) if INTEGER.fullmatch(text) and abs(number) < 2**53 else number


class _UnreadableError(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def locate(text: str, source: str) -> tuple[Located, list[Problem]]:
    """The tree of a YAML text and every mistake in its form.

    A value that cannot be used (alias, tag, second key of the same name, number that is not finite)
    is left out of the tree. After a syntax error nothing is known: the tree is empty and that is
    the only problem.
    """
    problems: list[Problem] = []
    top = Place(source=source, line=1, column=1)
    odd = UNPRINTABLE.search(text)
    try:
        if odd:
            at = _place_at(text[: odd.start()], source)
            what = f"the character {odd.group()!a} may not stand here; remove it"
            raise _UnreadableError(Problem(place=at, name="", what=what))
        root = _Tree(text, source, problems).read()
    except _UnreadableError as exc:
        return Located(value={}, place=top), [exc.problem]
    except MarkedYAMLError as exc:
        return Located(value={}, place=top), [_syntax_problem(exc, text, source)]
    except (YAMLError, ValueError, OverflowError) as exc:
        # ruamel passes an escape beyond Unicode on to chr(), which knows no position
        escape = NO_CHARACTER.search(text)
        at = _place_at(text[: escape.start()], source) if escape else top
        what = f"{escape.group()} is no character" if escape else cut(" ".join(str(exc).split()))
        return Located(value={}, place=top), [Problem(place=at, name="", what=what)]
    return root, problems


def _place_at(before: str, source: str) -> Place:
    """The place just after the text `before`."""
    lines = re.split(r"\r\n|[\r\n]", before)
    return Place(source=source, line=len(lines), column=len(lines[-1]) + 1)


def _syntax_problem(error: MarkedYAMLError, text: str, source: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    place = Place(source=source, line=1, column=1)
    said = " ".join((error.problem or error.context or "not readable as YAML").split())
    what = next((ours for theirs, ours in PLAIN_WORDS.items() if said.startswith(theirs)), said)
    if mark is not None:
        place = Place(source=source, line=mark.line + 1, column=mark.column + 1)
        lines = text.splitlines()
        if mark.line < len(lines) and re.match(" *\t", lines[mark.line]):
            what = "a tab may not indent YAML; use spaces"
    return Problem(place=place, name="", what=what)


class _Tree:
    """Reads the events of one document; recursion is bounded by DEEPEST."""

    def __init__(self, text: str, source: str, problems: list[Problem]) -> None:
        self._events: Iterator[Event] = YAML(typ="safe", pure=True).parse(text)
        self._source = source
        self._problems = problems
        self._count = 0

    def read(self) -> Located:
        """The top level, which must be a mapping or nothing at all."""
        root = Located(value={}, place=Place(source=self._source, line=1, column=1))
        for event in self._events:
            if isinstance(event, StreamStartEvent):
                continue
            if isinstance(event, StreamEndEvent):
                break
            if isinstance(event, DocumentStartEvent):
                self._start(event)
                continue
            found = self._value(event, self._place(event), ())
            if isinstance(event, MappingStartEvent) and found is not None:
                root = found
            elif found is not None and found.value is not None:
                self._refuse(
                    found.place, (), "the file must hold settings, as in `symbols: [AAPL]`"
                )
            next(self._events)  # the end of the document
            self._only()
            break
        return root

    def _start(self, event: DocumentStartEvent) -> None:
        if event.version or event.tags:
            self._refuse(self._place(event), (), "% directives are not supported; remove the line")

    def _only(self) -> None:
        event = next(self._events)
        if isinstance(event, DocumentStartEvent):
            self._refuse(self._place(event), (), "a second document begins; keep one, without ---")

    def _place(self, event: Event) -> Place:
        mark = event.start_mark
        return Place(source=self._source, line=mark.line + 1, column=mark.column + 1)

    def _refuse(self, place: Place, path: tuple[str, ...], what: str) -> None:
        self._problems.append(Problem(place=place, name=".".join(filter(None, path)), what=what))

    def _value(self, event: Event, place: Place, path: tuple[str, ...]) -> Located | None:
        """The value that begins with `event`, or None when it is refused."""
        self._count += 1
        if self._count > MOST_VALUES:
            what = f"more than {MOST_VALUES} values; is it the right file?"
            raise _UnreadableError(Problem(place=place, name="", what=what))
        if isinstance(event, AliasEvent):
            what = f"the alias *{word(event.anchor)} is not supported; write the value out"
            self._refuse(place, path, what)
            return None
        known = self._untagged(event, place, path)
        value: Scalar | tuple[Located, ...] | dict[str, Located]
        if isinstance(event, ScalarEvent):
            if self._has_surrogate(event, place, path):
                return None
            try:
                value = scalar(event.value) if event.implicit[0] else event.value
            except NotFiniteError as exc:
                self._refuse(place, path, f"{word(str(exc))} is not a finite number")
                return None
        elif len(path) >= DEEPEST:
            what = f"nested more than {DEEPEST} levels deep"
            raise _UnreadableError(Problem(place=place, name="", what=what))
        elif isinstance(event, SequenceStartEvent):
            items = self._items(path)
            value = tuple(item for item in items if item is not None)
            known = known and (not items or bool(value))  # a list of which nothing is left
        else:
            value = self._mapping(path)
        return Located(value=value, place=place) if known else None

    def _untagged(self, event: Any, place: Place, path: tuple[str, ...]) -> bool:
        """Whether a value carries no tag; anchors are refused too, but leave the value known."""
        if event.anchor is not None:
            self._refuse(
                place, path, f"the anchor &{word(event.anchor)} is not supported; remove it"
            )
        if event.tag is not None:
            tag = word(event.tag.replace("tag:yaml.org,2002:", "!!"))
            self._refuse(place, path, f"the tag {tag} is not supported; remove it")
        return event.tag is None

    def _has_surrogate(self, event: ScalarEvent, place: Place, path: tuple[str, ...]) -> bool:
        found = SURROGATE.search(event.value)
        if found:
            self._refuse(place, path, f"{found.group()!a} is half a character; remove it")
        return found is not None

    def _items(self, path: tuple[str, ...]) -> list[Located | None]:
        items: list[Located | None] = []
        for event in self._events:
            if isinstance(event, SequenceEndEvent):
                break
            items.append(self._value(event, self._place(event), (*path, "")))
        return items

    def _mapping(self, path: tuple[str, ...]) -> dict[str, Located]:
        found: dict[str, Located] = {}
        seen: dict[str, int] = {}
        for event in self._events:
            if isinstance(event, MappingEndEvent):
                break
            place = self._place(event)
            key = self._key(event, place, path)
            item = self._value(next(self._events), place, (*path, word(key) if key else ""))
            if key is None:
                continue
            if key in seen:
                what = f"written twice, first on line {seen[key]}; keep one"
                self._refuse(place, (*path, word(key)), what)
            elif item is not None:
                found[key] = item
            seen.setdefault(key, place.line)
        return found

    def _key(self, event: Event, place: Place, path: tuple[str, ...]) -> str | None:
        """The text of a key, or None when it is refused."""
        if not isinstance(event, ScalarEvent):
            self._value(event, place, (*path, ""))
            self._refuse(place, path, "a name of a setting is expected here")
            return None
        if not self._untagged(event, place, path) or self._has_surrogate(event, place, path):
            return None
        if event.value == "<<" and event.implicit[0]:
            self._refuse(place, path, "the merge key << is not supported; write the settings out")
            return None
        return str(event.value)


def in_profile(node: Located, profile: str) -> Located:
    """The same tree, marked as part of a profile."""
    value = node.value
    if isinstance(value, dict):
        value = {key: in_profile(item, profile) for key, item in value.items()}
    elif isinstance(value, tuple):
        value = tuple(in_profile(item, profile) for item in value)
    return Located(value=value, place=replace(node.place, profile=profile))


def plain(node: Located) -> Any:
    """The tree as bare values."""
    if isinstance(node.value, dict):
        return {key: plain(item) for key, item in node.value.items()}
    if isinstance(node.value, tuple):
        return [plain(item) for item in node.value]
    return node.value
