"""From config.yaml, profile, environment and command line to one checked configuration."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from trader.core.config.explain import explain
from trader.core.config.layers import (
    CHOOSE_FILE,
    CHOOSE_PROFILE,
    from_environment,
    from_overrides,
    lay_over,
)
from trader.core.config.positions import Located, Place, Problem, in_profile, locate, plain
from trader.core.config.schema import Config, ConfigFile, leaves
from trader.core.config.wording import closest, shown, word
from trader.core.errors import ConfigError

DEFAULT_FILE = Path("config.yaml")
LARGEST = 1_000_000  # bytes
PROFILES = "profiles"
PROFILE_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
UNRECORDED = ("state_dir", "kernels", "broker", "daemon")  # where, when, how fast; never what


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedConfig:
    """A checked configuration and where each of its values comes from.

    origins   dotted name -> "default", "config.yaml:4", "profile cautious (config.yaml:9)",
              "TRADER_RISK__ATR_WINDOW" or "--set"
    path      the file that was read, or None
    profile   the profile in force, or None; `profiles` are all that the file defines
    notices   lines worth telling a person, none of them an error
    """

    config: Config
    origins: Mapping[str, str]
    path: Path | None
    profile: str | None
    profiles: tuple[str, ...]
    notices: tuple[str, ...]


class Setting(NamedTuple):
    """One line of `config show`."""

    name: str
    value: Any
    origin: str
    description: str


def load_config(
    path: Path | None,
    *,
    profile: str | None,
    overrides: Sequence[str],
    environ: Mapping[str, str],
) -> LoadedConfig:
    """Read and check: --set over environment over profile over file over defaults.

    path       the file a person named; None means TRADER_CONFIG, else ./config.yaml if it exists
    profile    the profile a person named; None means TRADER_PROFILE, else none
    overrides  each "name=value", as in "risk.atr_window=14"
    environ    the process environment; every TRADER_ variable in it must be known

    Raises ConfigError with one line for every mistake found, in the order of the file.
    """
    from_variables, problems = from_environment(environ)
    from_command, problems_set = from_overrides(overrides)
    variable = environ.get(CHOOSE_FILE, "").strip()
    read = path or (Path(variable) if variable else None)
    if read is None and DEFAULT_FILE.exists():
        read = DEFAULT_FILE
    root, problems_form = _read(read) if read else (_nothing(str(DEFAULT_FILE)), [])
    base, profiles, problems_shape = _split(root)
    problems += [*problems_set, *problems_form, *problems_shape]

    asked_by = "--profile" if profile is not None else CHOOSE_PROFILE
    chosen = environ.get(CHOOSE_PROFILE, "").strip() or None if profile is None else profile
    if chosen is not None and chosen not in profiles and not problems_form:
        problems.append(_unknown_profile(chosen, asked_by, profiles, root.place.source))

    for each in (base, *(lay_over(base, overlay) for overlay in profiles.values())):
        problems += _check(each)[1]
    upper = [profiles[chosen]] if chosen in profiles else []
    merged = reduce(lay_over, [*upper, *from_variables, *from_command], base)
    config, problems_merged = _check(merged)
    problems += problems_merged
    if problems or config is None:
        raise ConfigError(*_lines(problems))
    return LoadedConfig(
        config=config,
        origins=_origins(merged),
        path=read,
        profile=chosen,
        profiles=tuple(profiles),
        notices=() if read else (f"no {DEFAULT_FILE} here: the defaults are used",),
    )


def config_schema() -> dict[str, Any]:
    """The JSON Schema of config.yaml."""
    return ConfigFile.model_json_schema()


def describe(loaded: LoadedConfig) -> list[Setting]:
    """Every setting with its value, origin and meaning, in the order of the file."""
    return [
        Setting(
            leaf.name,
            reduce(getattr, leaf.name.split("."), loaded.config),
            loaded.origins[leaf.name],
            leaf.description,
        )
        for leaf in leaves()
    ]


def config_primitives(config: Config) -> dict[str, Any]:
    """Everything in `config` that can change a decision, as JSON primitives, for hashing.

    The settings of models are left out where no model debates; whether replies are asked for or
    read from their recordings changes nothing.
    """
    unread = set(UNRECORDED) if config.debate.mode == "llm" else {*UNRECORDED, "models"}
    found = config.model_dump(mode="json", exclude=unread)
    del found["debate"]["recording"]
    return found


def _read(path: Path) -> tuple[Located, list[Problem]]:
    """The tree of a file; a file that cannot be read gives an empty tree and the reason."""
    source = str(path)
    try:
        if path.exists() and not path.is_file() and path != Path(os.devnull):
            raise OSError(errno.EINVAL, "it is no regular file")  # a pipe would wait for ever
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as exc:
        what = f"cannot be read ({exc.strerror or exc}); name an existing file"
        return _nothing(source), [Problem(place=Place(source=source), name="", what=what)]
    if len(content) > LARGEST:
        what = f"is larger than {LARGEST // 1_000_000} MB; is it the right file?"
        return _nothing(source), [Problem(place=Place(source=source), name="", what=what)]
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        sound = content[: exc.start].decode("utf-8", errors="ignore")
        lines = sound.split("\n")
        place = Place(source=source, line=len(lines), column=len(lines[-1]) + 1)
        what = f"byte 0x{content[exc.start]:02x} is not UTF-8; save the file as UTF-8"
        return _nothing(source), [Problem(place=place, name="", what=what)]
    return locate(text, source)


def _nothing(source: str) -> Located:
    return Located(value={}, place=Place(source=source))


def _split(root: Located) -> tuple[Located, dict[str, Located], list[Problem]]:
    """The settings of a file, its profiles, and profiles that are not made of settings."""
    assert isinstance(root.value, dict)
    rest = {key: item for key, item in root.value.items() if key != PROFILES}
    base = Located(value=rest, place=root.place)
    node = root.value.get(PROFILES)
    if node is None or node.value is None:
        return base, {}, []
    if not isinstance(node.value, dict):
        what = f"{shown(plain(node))} is no mapping; write a name and, below it, its settings"
        return base, {}, [Problem(place=node.place, name=PROFILES, what=what)]
    profiles: dict[str, Located] = {}
    problems: list[Problem] = []
    for name, item in node.value.items():
        if not PROFILE_NAME.fullmatch(name):
            what = "a profile is named in letters, digits, - and _, 40 at most"
            problems.append(Problem(place=item.place, name=f"{PROFILES}.{word(name)}", what=what))
        elif item.value is None or isinstance(item.value, dict):
            profiles[name] = in_profile(item, name)
        else:
            profiles[name] = Located(value={}, place=item.place)
            what = f"{shown(plain(item))} is no mapping; write the settings of the profile below it"
            problems.append(Problem(place=item.place, name=f"{PROFILES}.{word(name)}", what=what))
    return base, profiles, problems


def _unknown_profile(
    name: str, asked_by: str, profiles: Mapping[str, Located], source: str
) -> Problem:
    close = closest(name, profiles)
    if close:
        what = f"unknown profile {word(name)}, did you mean {close}?"
    elif profiles:
        known = ", ".join(map(word, profiles))
        what = f"unknown profile {word(name)}; {source} defines {known}"
    else:
        what = f"unknown profile {word(name)}; {source} defines none"
    return Problem(place=Place(source=asked_by), name="", what=what)


def _check(tree: Located) -> tuple[Config | None, list[Problem]]:
    """The configuration of a tree, or every mistake in it, each at the nearest value written."""
    try:
        return Config.model_validate(plain(tree)), []
    except ValidationError as exc:
        found = []
        for error in exc.errors(include_url=False):
            parts = [word(str(part)) for part in error["loc"] if isinstance(part, str)]
            place = _nearest(tree, error["loc"]).place
            top = Config if place.profile else ConfigFile
            if place.profile:
                parts = [PROFILES, word(place.profile), *parts]
            found.append(Problem(place=place, name=".".join(parts), what=explain(error, top)))
        return None, found


def _nearest(tree: Located, location: Sequence[str | int]) -> Located:
    """The value at `location`, or the innermost one written around it."""
    for part in location:
        value: Any = tree.value
        inside = part in value if isinstance(value, dict) else isinstance(value, tuple)
        if not inside:
            break
        tree = value[part]
    return tree


def _lines(problems: list[Problem]) -> Iterator[str]:
    """Each problem once: those of the file from top to bottom, then the others as they came."""
    ordered = sorted(
        problems, key=lambda each: (each.place.line == 0, each.place.line, each.place.column)
    )
    yield from dict.fromkeys(map(str, ordered))


def _origins(tree: Located) -> dict[str, str]:
    origins = {}
    for leaf in leaves():
        node: Located | None = tree
        for part in leaf.name.split("."):
            node = node.value.get(part) if node and isinstance(node.value, dict) else None
        origins[leaf.name] = node.place.origin if node else "default"
    return origins
