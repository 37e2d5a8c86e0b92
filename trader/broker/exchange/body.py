"""The JSON body of a request, read field by field without trusting it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar

from trader.broker.exchange.refusal import bad_field, not_offered, plain, unprocessable
from trader.core.instruments import is_crypto
from trader.core.trading import tick_of

NUMBER = re.compile(r"-?\d{1,24}(\.\d{1,24})?([eE][+-]?\d{1,2})?")
LARGEST = Decimal(10) ** 12
FINEST = Decimal("1e-9")
LONGEST_CLIENT_ORDER_ID = 128

Fields = Mapping[str, Any]
Word = TypeVar("Word", bound=StrEnum)


def read_fields(body: bytes | None, known: frozenset[str]) -> Fields:
    """The fields that are given; RefusalError for one that is not `known` and would be ignored."""
    fields = {key: value for key, value in read_object(body).items() if value is not None}
    for key in fields:
        if key not in known:
            raise not_offered(f"the order field {key}")
    return fields


def read_object(body: bytes | None) -> Fields:
    """The JSON object in `body`, numbers as exact Decimals; NaN and infinity are refused."""
    try:
        value = json.loads(
            body or b"", parse_float=_number, parse_int=_number, parse_constant=_constant
        )
    except (ValueError, RecursionError) as exc:
        raise bad_field(f"request body format is invalid: {exc}") from exc
    if not isinstance(value, dict):
        raise bad_field("request body format is invalid: it is not a JSON object")
    return value


def _number(text: str) -> Decimal:
    if not NUMBER.fullmatch(text):
        raise ValueError(f"{text[:40]} is not a number that fits")
    return Decimal(text)


def _constant(text: str) -> Decimal:
    raise ValueError(f"{text} is not a number")


def read_number(name: str, value: object) -> Decimal:
    """A positive number, exact; RefusalError names the field and the value."""
    if isinstance(value, str) and NUMBER.fullmatch(value):
        value = Decimal(value)
    if not isinstance(value, Decimal):
        raise bad_field(f"{name} must be a number, not {value!r}")
    if not 0 < value < LARGEST:
        raise bad_field(f"{name} must be > 0 and below {plain(LARGEST)}, not {plain(value)}")
    return value


def read_amount(name: str, value: object) -> Decimal:
    """A positive number of at most nine decimals: shares, or USD of an order by amount."""
    number = read_number(name, value)
    if number != number.quantize(FINEST):
        raise bad_field(f"{name} must have at most 9 decimal places, not {plain(number)}")
    return Decimal(plain(number))


def read_quantity(value: object) -> Decimal:
    """A positive number of shares, of at most nine decimals."""
    if value is None:
        raise bad_field("qty is required")
    return read_amount("qty", value)


def read_price(fields: Fields, name: str, symbol: str, label: str = "") -> Decimal | None:
    """A price on a whole tick, or None when the field is absent; coins have nine decimals."""
    if name not in fields:
        return None
    price = read_number(label or name, fields[name])
    if price != price.quantize(FINEST if is_crypto(symbol) else tick_of(price)):
        raise unprocessable(
            f"invalid {label or name} {plain(price)}. "
            "sub-penny increment does not fulfill minimum pricing criteria"
        )
    return price


def read_text(fields: Fields, name: str) -> str:
    """A word that must be there."""
    value = fields.get(name)
    if value is None or value == "":
        raise bad_field(f"{name} is required")
    if not isinstance(value, str):
        raise bad_field(f"{name} must be text, not {value!r}")
    if not value.isprintable():
        raise bad_field(f"{name} {value!r} has characters that cannot be printed")
    return value


def read_word(fields: Fields, name: str, words: type[Word]) -> Word:
    """One of `words`."""
    value = read_text(fields, name)
    if value not in set(words):
        raise bad_field(f"invalid {name} {value!r}")
    return words(value)


def read_client_order_id(fields: Fields) -> str | None:
    """The caller's own id, or None when it is absent."""
    if "client_order_id" not in fields:
        return None
    value = read_text(fields, "client_order_id")
    if len(value) > LONGEST_CLIENT_ORDER_ID:
        raise bad_field(
            f"client_order_id must be no more than {LONGEST_CLIENT_ORDER_ID} characters"
        )
    return value
