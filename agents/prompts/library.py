"""The prompts' words: Markdown files with a name, a version and strict placeholders."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_FRONT = re.compile(r"\A---\nname: ([a-z_]+)\nversion: ([1-9][0-9]*)\n---\n\n?(.*)\Z", re.DOTALL)
_SECTION = re.compile(r"^# ([a-z]+)\n", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{([a-z][a-z_]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One file of prose; its words change only together with its version.

    text      the file without its front matter
    sections  what stands under `# system` and the like, by name, with {placeholders}
    sha256    of the text
    """

    name: str
    version: int
    text: str
    sections: Mapping[str, str]
    sha256: str

    @property
    def title(self) -> str:
        """Name and version, as records keep them: "bull 1"."""
        return f"{self.name} {self.version}"

    def fill(self, section: str, **values: str) -> str:
        """A section with every placeholder filled; nothing inside a value is looked at again.

        Raises ValueError for an unknown section, for a placeholder without a value and for a value
        without a placeholder.
        """
        text = self.sections.get(section)
        if text is None:
            raise ValueError(f"prompt {self.title} has no section {section}")
        wrong = set(_PLACEHOLDER.findall(text)) ^ set(values)
        if wrong:
            raise ValueError(f"prompt {self.title}, {section}: {sorted(wrong)} on one side only")
        return _PLACEHOLDER.sub(lambda found: values[found[1]], text)


@cache
def template(name: str) -> Template:
    """The template of this name; FileNotFoundError without its file, ValueError for a wrong one."""
    return read_template(name, files("agents.prompts").joinpath(f"{name}.md").read_text("utf-8"))


def read_template(name: str, content: str) -> Template:
    """A template from the content of its file.

    Raises ValueError without front matter, for another name in it, for a brace that is no
    placeholder and for a text that is not divided into sections.
    """
    front = _FRONT.match(content)
    if front is None or front[1] != name:
        raise ValueError(f"{name}.md does not begin with its name and version")
    text = front[3].strip()
    if set("{}") & set(_PLACEHOLDER.sub("", text)):
        raise ValueError(f"{name}.md holds a brace that is no placeholder")
    before, *parts = _SECTION.split(f"{text}\n")
    sections = {head: body.strip() for head, body in zip(parts[::2], parts[1::2], strict=True)}
    if before.strip() or not sections or 2 * len(sections) != len(parts):
        raise ValueError(f"{name}.md is not a row of sections with different names")
    return Template(
        name=name,
        version=int(front[2]),
        text=text,
        sections=sections,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
    )
