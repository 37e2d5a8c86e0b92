"""Beginning: a configuration file with every default, and the state folder."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from trader.app.folder import make_folder
from trader.core.canonical import Primitive, to_object
from trader.core.errors import StateError


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What `trader init` did. written is False when the file was there already."""

    path: str
    written: bool
    state_dir: str

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self)


def begin(path: Path, state_dir: Path) -> Made:
    """Write the defaults to `path` unless it exists; StateError when it cannot be written."""
    text = (files("trader.core.config") / "default.yaml").read_text(encoding="utf-8")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        written = True
    except FileExistsError:
        written = False
    except OSError as exc:
        raise StateError(f"{path} cannot be written: {exc.strerror}") from exc
    return Made(path=str(path), written=written, state_dir=str(make_folder(state_dir)))
