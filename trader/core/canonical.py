"""One way to write a value as JSON, so that equal values have equal hashes, and one way back."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import types
import typing
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin

T = TypeVar("T")
Primitive = None | bool | int | float | str | list["Primitive"] | dict[str, "Primitive"]


def to_primitive(value: Any) -> Primitive:
    """Dataclasses, Decimals (as strings), datetimes (UTC, ISO 8601), enums and containers as JSON.

    A float without a fraction is written as an integer, so that 1 and 1.0, 0.0 and -0.0, which are
    equal, are one text. Raises TypeError for a type it does not know and ValueError for NaN,
    infinity or a naive datetime: such a value has no single way to be written.
    """
    if value is None or (isinstance(value, bool | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return to_primitive(value.value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value!r} cannot be recorded")
        return int(value) if value.is_integer() else float(value)
    if isinstance(value, int):
        return value
    if isinstance(value, Decimal):
        return _decimal_text(value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"a time zone is missing from {value!r}")
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: to_primitive(getattr(value, name)) for name in _names(type(value))}
    if isinstance(value, Mapping):
        return {str(key): to_primitive(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_primitive(item) for item in value]
    raise TypeError(f"{type(value).__name__} cannot be recorded")


def _decimal_text(value: Decimal) -> str:
    """Every digit, no exponent, no trailing zeros; normalize() would round to 28 digits."""
    if not value.is_finite():
        raise ValueError(f"{value!r} cannot be recorded")
    if not value:
        return "0"
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def to_object(value: Any) -> dict[str, Primitive]:
    """`to_primitive` of a dataclass or mapping; TypeError for anything that is no JSON object."""
    found = to_primitive(value)
    if not isinstance(found, dict):
        raise TypeError(f"{type(value).__name__} is no JSON object")
    return found


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, ASCII."""
    return json.dumps(to_primitive(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def sha256_of(value: Any) -> str:
    """SHA-256 of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def from_primitive(kind: type[T], value: Any) -> T:
    """Rebuild a value of type `kind`, a dataclass or a type used in one, from JSON primitives.

    Raises TypeError or ValueError when `value` does not have that shape; unknown and missing
    fields, NaN, infinity and naive datetimes are refused.
    """
    return typing.cast(T, _rebuild(kind, value))


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _rebuild(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if origin is Union or origin is types.UnionType:
        options = get_args(kind)
        if value is None and type(None) in options:
            return None
        (kind,) = [
            option for option in options if option is not type(None)
        ]  # only X | None is used
        return _rebuild(kind, value)
    if origin is typing.Literal:
        if value not in get_args(kind):
            raise ValueError(f"{value!r} is none of {get_args(kind)}")
        return value
    if origin is not None:
        return _rebuild_container(kind, origin, value)
    if dataclasses.is_dataclass(kind):
        return _rebuild_dataclass(typing.cast(type, kind), value)
    if kind is datetime:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError(f"a time zone is missing from {value!r}")
        return moment
    if kind is date:
        return date.fromisoformat(value)
    if issubclass(kind, Enum):
        return kind(value)
    if kind in (Decimal, float):
        return _rebuild_number(kind, value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return value


def _rebuild_container(kind: Any, origin: type, value: Any) -> Any:
    items = get_args(kind)
    if issubclass(origin, Mapping):
        if not isinstance(value, dict):
            raise TypeError(f"expected a mapping, got {value!r}")
        return {key: _rebuild(items[1], item) for key, item in value.items()}
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got {value!r}")
    if len(items) == 2 and items[1] is Ellipsis:
        return tuple(_rebuild(items[0], item) for item in value)
    return tuple(_rebuild(of, item) for of, item in zip(items, value, strict=True))


def _rebuild_dataclass(kind: type, value: Any) -> Any:
    hints = _hints(kind)
    if not isinstance(value, dict) or value.keys() != set(_names(kind)):
        raise ValueError(f"not a {kind.__name__}: {value!r}")
    return kind(**{name: _rebuild(hints[name], item) for name, item in value.items()})


def _rebuild_number(kind: type[Decimal] | type[float], value: Any) -> Decimal | float:
    """Decimals are written as strings, floats as JSON numbers; both must be finite."""
    written = isinstance(value, str if kind is Decimal else int | float)
    if not written or isinstance(value, bool):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    try:
        number = kind(value)
    except (InvalidOperation, OverflowError) as exc:
        raise ValueError(f"{value!r} is not a {kind.__name__}") from exc
    if not (number.is_finite() if isinstance(number, Decimal) else math.isfinite(number)):
        raise ValueError(f"{value!r} is not finite")
    return number
