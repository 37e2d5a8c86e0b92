"""Envelopes: the words of strangers, marked with their origin and unable to act as anything else.

A text inside is quotation. It cannot close its envelope: every line of it begins with a bar, and
it holds none of the characters that boundaries, chat templates and tool calls are made of.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from typing import Literal, get_args

Origin = Literal["news", "paper", "disclosure", "memory", "bull", "bear"]
ORIGINS: tuple[str, ...] = get_args(Origin)
TEXT_BYTES = 900  # of one text
READ_CHARACTERS = 4 * TEXT_BYTES  # what lies beyond is not looked at
METADATA_BYTES = 160  # of one title, author or source

_BREAKS = dict.fromkeys(map(ord, "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), "\n")
# drawn as nothing, yet neither control nor format characters
_INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)
_DROPPED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
# chat templates, tool calls, mark-up and JSON replies are all made of these
_BRACKETS = str.maketrans("<>[]{}", "‹›()()")
_RULES = re.compile(r"#+|([`=*_~-])\1{2,}")
_ROLES = re.compile(
    r"\b(system|assistant|user|human|developer|tool|function|model|ai|bot|instructions?|prompt)"
    r"[^\w\n]*:",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"<(?=[|/A-Za-z<])|(?<=[|A-Za-z>])>")
_INSTRUCTION = re.compile(r"\[(/?[A-Z_]{2,})\]")
_SPACES = re.compile(r"[^\S\n]+")
_EMPTY_LINES = re.compile(r"\n\s*\n+")


def envelope(
    text: str,
    *,
    origin: Origin,
    metadata: Mapping[str, str] | None = None,
    limit: int = TEXT_BYTES,
) -> str:
    """The text as a quotation of `origin`, between two boundaries that only this content has.

    metadata  what came with the text: title, author, source; quoted like the text itself
    limit     UTF-8 bytes of the text, its bars not counted; the rest is cut
    Raises ValueError for an origin that is not one of ORIGINS.
    """
    if origin not in ORIGINS:
        raise ValueError(f"{origin!r} is no origin of a text: {', '.join(ORIGINS)}")
    heads = [
        f"{name}: {cut(one_line(words), METADATA_BYTES)}"
        for name, words in (metadata or {}).items()
        if words
    ]
    said = cut(inert(text[:READ_CHARACTERS]), limit) or "(empty)"
    body = "\n".join(f"| {line}" for line in (*heads, *said.split("\n")))
    name = hashlib.sha256(f"{origin}\n{body}".encode()).hexdigest()[:12]
    return f"<<<{origin} {name}\n{body}\n{origin} {name}>>>"


def inert(text: str) -> str:
    """The text as plain characters in which no role, template token or fence is left."""
    text = plain(text).translate(_BRACKETS)
    while True:
        calmed = _ROLES.sub(r"\1 -", _RULES.sub(_shortened, text))
        calmed = _EMPTY_LINES.sub("\n", _SPACES.sub(" ", calmed)).strip()
        if calmed == text:
            return text
        text = calmed


def one_line(text: str) -> str:
    """The inert text on one line."""
    joined = " ".join(plain(text[:READ_CHARACTERS]).split())  # first: a break may hide a role
    return " ".join(inert(joined).split())


def own_words(text: str) -> str:
    """A model's own reply to be shown to it again: JSON stays JSON, template tokens are no more."""
    return _INSTRUCTION.sub(r"(\1)", _TOKEN.sub("‹", plain(text)))


def plain(text: str) -> str:
    """The text in compatibility form (NFKC), without characters that are not seen.

    Control, direction, zero-width, private and unassigned characters and half surrogates go; every
    kind of line break becomes a newline, every kind of space a space.
    """
    if text.isascii() and text.isprintable():
        return text
    while True:
        shown = unicodedata.normalize("NFKC", text.replace("\r\n", "\n").translate(_BREAKS))
        shown = "".join(map(_visible, shown))
        if shown == text:
            return text
        text = shown


def cut(text: str, limit: int) -> str:
    """The beginning of a text, at most `limit` UTF-8 bytes."""
    raw = text.encode()
    return text if len(raw) <= limit else f"{raw[: limit - 3].decode(errors='ignore')}…"


def _visible(character: str) -> str:
    if character == "\n":
        return character
    if character.isspace():
        return " "
    gone = unicodedata.category(character) in _DROPPED or character in _INVISIBLE
    return "" if gone else character


def _shortened(found: re.Match[str]) -> str:
    return found[0][0]
