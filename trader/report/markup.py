"""A small HTML builder in which every text is escaped unless it was built here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from urllib.parse import quote

Attribute = str | int | bool | None

# what no page of ours may hold: control characters, halves of characters that UTF-8 cannot write,
# and marks that turn the direction of what is read, or show nothing
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff"
    "\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)


class Html(str):
    """Text that is HTML already; a plain str beside it is still to be escaped."""

    __slots__ = ()


def join(parts: Iterable[str]) -> Html:
    """The parts one after another, each escaped unless it is Html."""
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts))


def tag(name: str, /, *children: str, **attributes: Attribute) -> Html:
    """An element with its children.

    attributes  `class_` becomes class, `aria_label` aria-label; None and False are left out, True
                stands without a value
    """
    return Html(f"<{name}{_attributes(attributes)}>{join(children)}</{name}>")


def void(name: str, /, **attributes: Attribute) -> Html:
    """An element that has no end tag, such as meta or input."""
    return Html(f"<{name}{_attributes(attributes)}>")


def _attributes(attributes: dict[str, Attribute]) -> str:
    if not attributes:
        return ""
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        name = key.rstrip("_").replace("_", "-")
        written.append(f" {name}" if value is True else f' {name}="{escape(str(value))}"')
    return "".join(written)


def anchor(text: str) -> str:
    """An id for `text`: itself, without the white space that an id may not hold."""
    return re.sub(r"\s+", "_", text)


def link(target: str, *children: str, **attributes: Attribute) -> Html:
    """A link to the element of this page whose id is `target`."""
    return tag("a", *children, href=f"#{quote(target)}", **attributes)


def printable(page: str) -> str:
    """The page with every character that it may not hold shown as U+FFFD."""
    return UNPRINTABLE.sub("�", page)


def table(
    caption: str, headers: Iterable[str], rows: Iterable[str], *, class_: str, foot: str = ""
) -> Html:
    """A table with a caption and a head; `headers` that start with "#" stand over numbers."""
    head = join(
        tag("th", name.lstrip("#"), scope="col", class_="n" if name.startswith("#") else None)
        for name in headers
    )
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", head)),
        tag("tbody", join(rows)),
        tag("tfoot", foot) if foot else "",
        class_=class_,
    )


def pairs(items: Iterable[tuple[str, str]], *, class_: str) -> Html:
    """A list of names and what each one is."""
    return tag(
        "dl",
        join(tag("div", tag("dt", name), tag("dd", value)) for name, value in items),
        class_=class_,
    )
