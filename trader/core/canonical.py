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
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin

T = TypeVar("T")
Primitive = None | bool | int | float | str | list["Primitive"] | dict[str, "Primitive"]


def to_primitive(value: Any) -> Primitive:
    """Dataclasses, Decimals (as strings), datetimes (UTC, as ISO 8601), enums and containers as JSON primitives.

    Raises TypeError for a type it does not know and ValueError for NaN, infinity or a naive datetime: such a
    value has no single way to be written.
    """
    if value is None or (isinstance(value, bool | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return to_primitive(value.value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value!r} cannot be recorded")
        return value
    if isinstance(value, int):
        return value
    if isinstance(value, Decimal):
        return format(value.normalize(), "f") if value else "0"
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


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, ASCII."""
    return json.dumps(to_primitive(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def sha256_of(value: Any) -> str:
    """SHA-256 of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def from_primitive(kind: type[T], value: Any) -> T:
    """Rebuild a value of type `kind` (a dataclass of this product, or a type used in one) from JSON primitives.

    Raises TypeError or ValueError when `value` does not have that shape; unknown and missing fields are refused.
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
        return _rebuild(next(option for option in options if option is not type(None)), value)
    if origin is tuple:
        items = get_args(kind)
        if len(items) == 2 and items[1] is Ellipsis:
            return tuple(_rebuild(items[0], item) for item in value)
        return tuple(_rebuild(item_kind, item) for item_kind, item in zip(items, value, strict=True))
    if origin is typing.Literal:
        if value not in get_args(kind):
            raise ValueError(f"{value!r} is none of {get_args(kind)}")
        return value
    if origin is not None and issubclass(origin, Mapping):
        item_kind = get_args(kind)[1]
        return {key: _rebuild(item_kind, item) for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        hints = _hints(typing.cast(type, kind))
        if not isinstance(value, dict) or value.keys() != set(_names(typing.cast(type, kind))):
            raise ValueError(f"not a {typing.cast(type, kind).__name__}: {value!r}")
        return typing.cast(type, kind)(**{name: _rebuild(hints[name], item) for name, item in value.items()})
    if kind is Decimal:
        return Decimal(value)
    if kind is datetime:
        return datetime.fromisoformat(value)
    if kind is date:
        return date.fromisoformat(value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return value
