"""From a model's words to the one JSON object in them; none, two or a quoted one is no answer.

Thoughts in tags, fences and prose around the object are passed over. The object itself is strict
JSON but for raw newlines and tabs inside texts: a trailing comma, a comment or a single quote is
refused, because a repair turn costs less than a guess. Every step is linear in the reply's length,
and what is refused does not depend on how deep the interpreter's stack already is.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

MAXIMUM_REPLY_CHARACTERS = 60_000
LONGEST_MESSAGE = 300  # characters; the repair turn reads it
DEEPEST = 8  # a sound reply is nested four deep
LONGEST_INTEGER = 15  # digits; more are not exact as a float, and thousands are slow to read

_THOUGHT = re.compile(r"[<\[](/?)(?:think|thinking|thought|reasoning)[>\]]", re.IGNORECASE)
# a text, closed or running to the end, or a bracket; possessive, so that nothing is read twice
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
# controls, format and direction marks, surrogates, private use, tags, what is no character at all;
# written out, since what Python calls printable changes with its version
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ud800-\uf8ff"
    "\ufdd0-\ufdef\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
_LANGUAGE = re.compile(r"\w*")  # what a fence may say after its marks
_OPENING = ("'", "`", ">", "‘", "„", "‹")  # just before the object: someone else's words
_CLOSING = ('"', "'", "<", "”", "’", "»", "›", "」", "]", ")")  # just after it, the same
_PAIRS = (("“", "”"), ("«", "»"), ("「", "」"), ("[", "]"), ("(", ")"))
_ALONE = "answer with one JSON object and nothing else"


class InvalidReplyError(ValueError):
    """A reply that is not what was asked for; the message is one printable line with the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message)[:LONGEST_MESSAGE])


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """The object that a reply holds, and the words spoken around it, without the thoughts."""

    fields: dict[str, Any]
    around: str


def extract(text: str) -> Extract:
    """The only JSON object outside the thoughts of a reply of at most 60,000 characters.

    Keys are unique and plain ASCII, numbers finite, nesting at most eight deep. Raises
    InvalidReplyError for anything else, also when the object stands inside a quotation, a list or
    a bracket.
    """
    if len(text) > MAXIMUM_REPLY_CHARACTERS:
        raise InvalidReplyError(
            f"the reply has {len(text)} characters, {MAXIMUM_REPLY_CHARACTERS} is the limit: "
            "be shorter"
        )
    spoken = _spoken(text)
    holding = [part for part in spoken if "{" in part or "}" in part]
    if not holding:
        raise InvalidReplyError(f"the reply holds no JSON object: {_ALONE}")
    part = holding[0]
    before, brace, _ = part.partition("{")
    second = f"braces stand outside the first JSON object, or there is a second one: {_ALONE}"
    if len(holding) > 1 or "}" in before or not brace:
        raise InvalidReplyError(second)
    start, end = len(before), _end(part, len(before))
    after = part[end:]
    if "{" in after or "}" in after:
        raise InvalidReplyError(second)
    if _quoted(before, after):
        raise InvalidReplyError(
            f"the JSON object stands inside a quotation, a list or a bracket: {_ALONE}"
        )
    others = [words for words in spoken if words is not part]
    return Extract(fields=_read(part[start:end]), around="\n".join([*others, before, after]))


def one_line(text: str) -> str:
    """The text on one line, safe to print, hash and store.

    What is no visible character becomes a space, and runs of white space become one.
    """
    return " ".join(_UNSAFE.sub(" ", text).split())


def _spoken(text: str) -> list[str]:
    """What stands outside the thoughts.

    A closing tag alone ends a thought that began with the reply: its opening was in the prompt.
    """
    parts: list[str] = []
    depth = at = 0
    for tag in _THOUGHT.finditer(text):
        if not depth:
            parts.append(text[at : tag.start()])
        if not tag[1]:
            depth += 1
        elif depth:
            depth -= 1
        else:
            parts.clear()
        at = tag.end()
    if depth:
        raise InvalidReplyError(f"the reply ends inside its thoughts: {_ALONE}")
    return [*parts, text[at:]]


def _end(text: str, start: int) -> int:
    """Where the object that opens at `start` is over."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] in "{[":
            depth += 1
            if depth > DEEPEST:
                raise InvalidReplyError(
                    f"the JSON object is nested more than {DEEPEST} deep: keep to the schema"
                )
        elif token[0] in "}]":
            depth -= 1
            if not depth:
                return token.end()
    raise InvalidReplyError("the JSON object is not closed: be shorter and close every quote")


def _quoted(before: str, after: str) -> bool:
    """Whether an object stands inside a quotation or bracket, by the words on both its sides.

    A fence is neither.
    """
    head = before.rstrip()
    lead, fence, language = head.rpartition("```")
    if fence and _LANGUAGE.fullmatch(language):
        head = lead.rstrip("`").rstrip()
    return (
        head.endswith(_OPENING)
        or after.lstrip().startswith(_CLOSING)
        or head.count('"') % 2 == 1
        or any(head.count(opening) > head.count(closing) for opening, closing in _PAIRS)
    )


def _read(text: str) -> dict[str, Any]:
    try:
        fields: dict[str, Any] = json.loads(
            text,
            strict=False,
            object_pairs_hook=_unique,
            parse_constant=_no_number,
            parse_float=_finite,
            parse_int=_whole,
        )
    except json.JSONDecodeError as exc:
        raise InvalidReplyError(
            f"line {exc.lineno}, column {exc.colno} of the JSON object: {exc.msg}; "
            "write strict JSON: double quotes, no comments, no trailing commas"
        ) from exc
    return fields


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidReplyError(f"the key {_shown(key)} is repeated: write each key once")
        if not (key.isascii() and key.isprintable()):
            raise InvalidReplyError(f"{_shown(key)} is no key of the schema: leave it out")
        found[key] = value
    return found


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        _no_number(digits)
    return number


def _whole(digits: str) -> int:
    if len(digits.lstrip("-")) > LONGEST_INTEGER:
        _no_number(digits)
    return int(digits)


def _no_number(digits: str) -> NoReturn:
    raise InvalidReplyError(
        f"{_shown(digits)} is not a usable number: quote it as the evidence does"
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
