"""Reads a page back with the standard library's parser and refuses what is not well formed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "input", "br", "hr", "img"})
BLOCKS = frozenset({"div", "p", "ul", "dl", "table", "section", "blockquote", "details", "figure"})
NO_BLOCKS_INSIDE = ("p", "summary", "span", "h1", "h2", "h3", "h4", "small", "b")
RAW = ("script", "style")


@dataclass
class Element:
    name: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    def all(self, name: str = "", **attributes: str) -> Iterator[Element]:
        """Elements below this one; `class_` asks for one class among several."""
        for child in self.children:
            if isinstance(child, str):
                continue
            classes = child.attributes.get("class", "").split()
            wanted = {key: value for key, value in attributes.items() if key != "class_"}
            if (
                name in ("", child.name)
                and ("class_" not in attributes or attributes["class_"] in classes)
                and all(child.attributes.get(key) == value for key, value in wanted.items())
            ):
                yield child
            yield from child.all(name, **attributes)

    def one(self, name: str = "", **attributes: str) -> Element:
        found = list(self.all(name, **attributes))
        assert len(found) == 1, (name, attributes, len(found))
        return found[0]

    @property
    def text(self) -> str:
        """What a reader sees; scripts and styles are not for reading."""
        if self.name in RAW:
            return ""
        return "".join(
            child if isinstance(child, str) else f" {child.text} " for child in self.children
        )

    @property
    def words(self) -> str:
        """The text with single spaces."""
        return " ".join(self.text.split())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("root", {})
        self.stack = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> repeats an attribute: {names}"
        if tag in BLOCKS:
            inside = [element.name for element in self.stack]
            inline = [name for name in NO_BLOCKS_INSIDE if name in inside]
            assert not inline, f"<{tag}> inside <{inline[0]}>"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.stack[-1].children.append(element)
        if tag not in VOID:
            self.stack.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert any(element.name == "svg" for element in self.stack), f"<{tag}/> outside a drawing"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.stack[-1].children.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack[-1].name == tag, f"</{tag}> closes <{self.stack[-1].name}>"
        self.stack.pop()

    def handle_data(self, data: str) -> None:
        self.stack[-1].children.append(data)


def read(page: str) -> Element:
    """The page as a tree; AssertionError where tags do not balance or nest as they may not."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert reader.stack == [reader.root], [element.name for element in reader.stack]
    return reader.root
