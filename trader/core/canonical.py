"""One way to write a value as JSON, so that equal values have equal hashes, and one way back."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin

T = TypeVar("T")
Reader = Callable[[Any], Any]
Primitive = None | bool | int | float | str | list["Primitive"] | dict[str, "Primitive"]


def to_primitive(value: Any) -> Primitive:
    """Dataclasses, Decimals (as strings), datetimes (UTC, ISO 8601), enums and containers as JSON.

    A float without a fraction is written as an integer, so that 1 and 1.0, 0.0 and -0.0, which are
    equal, are one text. Raises TypeError for a type it does not know and ValueError for NaN,
    infinity or a naive datetime: such a value has no single way to be written.
    """
    return _writer(typing.cast(Any, type(value)))(value)


@cache
def _writer(kind: type) -> Callable[[Any], Primitive]:
    """How values of one type are written; found once, since records are written by the thousand."""
    if issubclass(kind, Enum):
        return lambda value: to_primitive(value.value)
    if issubclass(kind, bool | str | int | types.NoneType):
        return lambda value: value
    if issubclass(kind, float):
        return _write_float
    if issubclass(kind, Decimal):
        return _decimal_text
    if issubclass(kind, datetime):
        return _write_datetime
    if issubclass(kind, date):
        return lambda value: value.isoformat()
    if dataclasses.is_dataclass(kind):
        names = _names(kind)
        return lambda value: {name: to_primitive(getattr(value, name)) for name in names}
    if issubclass(kind, Mapping):
        return lambda value: {str(key): to_primitive(item) for key, item in value.items()}
    if issubclass(kind, list | tuple):
        return lambda value: [to_primitive(item) for item in value]
    raise TypeError(f"{kind.__name__} cannot be recorded")


def _write_float(value: float) -> float | int:
    if not math.isfinite(value):
        raise ValueError(f"{value!r} cannot be recorded")
    return int(value) if value.is_integer() else float(value)


def _write_datetime(value: datetime) -> str:
    if value.tzinfo is None:
        raise ValueError(f"a time zone is missing from {value!r}")
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


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
    return typing.cast(T, _reader(typing.cast(Any, kind))(value))


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


@cache
def _reader(kind: Any) -> Reader:
    """How values of one type are read back; found once, as transcripts are read at every turn."""
    origin = get_origin(kind)
    if origin is Union or origin is types.UnionType:
        (inner,) = [
            option for option in get_args(kind) if option is not type(None)
        ]  # X | None only
        read = _reader(inner)
        return lambda value: None if value is None else read(value)
    if origin is typing.Literal:
        return _literal_reader(get_args(kind))
    if origin is not None:
        return _container_reader(origin, get_args(kind))
    if dataclasses.is_dataclass(kind):
        return _dataclass_reader(typing.cast(type, kind))
    if kind is datetime:
        return _read_datetime
    if kind is date:
        return date.fromisoformat
    if issubclass(kind, Enum):
        return typing.cast(Reader, kind)
    if kind in (Decimal, float):
        return lambda value: _read_number(kind, value)
    return lambda value: _read_plain(kind, value)


def _literal_reader(words: tuple[Any, ...]) -> Reader:
    def read(value: Any) -> Any:
        if value not in words:
            raise ValueError(f"{value!r} is none of {words}")
        return value

    return read


def _container_reader(origin: type, items: tuple[Any, ...]) -> Reader:
    if issubclass(origin, Mapping):
        read_item = _reader(items[1])

        def read_mapping(value: Any) -> Any:
            if not isinstance(value, dict):
                raise TypeError(f"expected a mapping, got {value!r}")
            return {key: read_item(item) for key, item in value.items()}

        return read_mapping
    endless = len(items) == 2 and items[1] is Ellipsis
    readers = tuple(_reader(item) for item in (items[:1] if endless else items))

    def read_tuple(value: Any) -> Any:
        if not isinstance(value, list):
            raise TypeError(f"expected a list, got {value!r}")
        if endless:
            return tuple([readers[0](item) for item in value])
        return tuple([read(item) for read, item in zip(readers, value, strict=True)])

    return read_tuple


def _dataclass_reader(kind: type) -> Reader:
    readers: dict[str, Reader] = {}  # filled at the first value: a type may hold others of itself

    def read(value: Any) -> Any:
        if not readers:
            hints = typing.get_type_hints(kind)
            readers.update({name: _reader(hints[name]) for name in _names(kind)})
        if not isinstance(value, dict) or value.keys() != readers.keys():
            raise ValueError(f"not a {kind.__name__}: {value!r}")
        return kind(**{name: readers[name](item) for name, item in value.items()})

    return read


def _read_datetime(value: Any) -> datetime:
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError(f"a time zone is missing from {value!r}")
    return moment


def _read_plain(kind: type, value: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return value


def _read_number(kind: type[Decimal] | type[float], value: Any) -> Decimal | float:
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
