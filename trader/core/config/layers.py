"""The environment and `--set` as trees of settings, and laying one tree over another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trader.core.config.positions import (
    SURROGATE,
    Located,
    NotFiniteError,
    Place,
    Problem,
    Scalar,
    scalar,
)
from trader.core.config.schema import Leaf, leaves
from trader.core.config.wording import closest, shown, word

PREFIX = "TRADER_"
CHOOSE_FILE = "TRADER_CONFIG"
CHOOSE_PROFILE = "TRADER_PROFILE"
SET = "--set"


def variable(name: str) -> str:
    """The environment variable of a setting: risk.atr_window is TRADER_RISK__ATR_WINDOW."""
    return PREFIX + name.upper().replace(".", "__")


def from_environment(environ: Mapping[str, str]) -> tuple[list[Located], list[Problem]]:
    """One tree per variable that begins with TRADER_, in alphabetical order, and every mistake."""
    settings = {variable(leaf.name): leaf for leaf in leaves()}
    trees: list[Located] = []
    problems: list[Problem] = []
    for key in sorted(name for name in environ if name.startswith(PREFIX)):
        place = Place(source=key if key.isprintable() else shown(key))
        text = environ[key]
        if key not in settings and key not in (CHOOSE_FILE, CHOOSE_PROFILE):
            what = _unknown(key, list(settings), "__")
            problems.append(Problem(place=place, name="", what=what))
        elif SURROGATE.search(text):
            problems.append(Problem(place=place, name="", what="is not UTF-8; write it as UTF-8"))
        elif not text.strip():
            what = "is empty; unset it or give it a value"
            problems.append(Problem(place=place, name="", what=what))
        elif key in settings:
            _add(trees, problems, settings[key], text, place)
    return trees, problems


def from_overrides(overrides: Sequence[str]) -> tuple[list[Located], list[Problem]]:
    """One tree per `name=value`, in the order given (the last one wins), and every mistake."""
    settings = {leaf.name: leaf for leaf in leaves()}
    trees: list[Located] = []
    problems: list[Problem] = []
    place = Place(source=SET)
    for override in overrides:
        name, equals, text = override.partition("=")
        name = name.strip()
        if not equals:
            what = "write it as name=value, as in risk.atr_window=14"
        elif name not in settings:
            what = _unknown(name, list(settings), ".")
        elif not text.strip():
            what = "is empty; give it a value or leave it out"
        elif SURROGATE.search(text):
            what = "is not UTF-8; write it as UTF-8"
        else:
            _add(trees, problems, settings[name], text, place)
            continue
        problems.append(Problem(place=place, name=word(name), what=what))
    return trees, problems


def lay_over(lower: Located, upper: Located) -> Located:
    """Both trees in one; where both say something the upper one holds, down to single settings.

    A mapping takes the place of the upper tree, the last one that touched it.
    """
    if not isinstance(lower.value, dict):
        return upper
    if upper.value is None:  # a section that is written but left empty says nothing
        return lower
    if not isinstance(upper.value, dict):
        return upper
    merged = dict(lower.value)
    for key, item in upper.value.items():
        merged[key] = lay_over(merged[key], item) if key in merged else item
    return Located(value=merged, place=upper.place)


def _unknown(name: str, known: list[str], separator: str) -> str:
    inside = [other for other in known if other.startswith(name + separator)]
    if inside:
        return f"is a section; name one of its settings, such as {inside[0]}"
    close = closest(name, known)
    return f"unknown setting, did you mean {close}?" if close else "unknown setting; remove it"


def _add(
    trees: list[Located], problems: list[Problem], leaf: Leaf, text: str, place: Place
) -> None:
    try:
        node = Located(value=_value(leaf, text, place), place=place)
    except NotFiniteError as exc:
        what = f"{word(str(exc))} is not a finite number"
        problems.append(Problem(place=place, name=leaf.name, what=what))
        return
    for part in reversed(leaf.name.split(".")):
        node = Located(value={part: node}, place=place)
    trees.append(node)


def _value(leaf: Leaf, text: str, place: Place) -> Scalar | tuple[Located, ...]:
    """A word read as its setting expects: text as it stands, numbers as YAML writes them, lists
    separated by commas.
    """
    text = text.strip()
    if leaf.optional and text in ("null", "~"):
        return None
    if leaf.kind == "text":
        return text
    if leaf.kind == "number":
        return scalar(text)
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    return tuple(Located(value=_unquoted(item), place=place) for item in text.split(","))


def _unquoted(item: str) -> str:
    item = item.strip()
    quoted = len(item) >= 2 and item[0] == item[-1] and item[0] in "\"'"
    return item[1:-1] if quoted else item
