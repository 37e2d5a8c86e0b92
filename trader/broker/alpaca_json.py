"""Alpaca's JSON read without trusting it, into the product's own types.

alpaca-py's models refuse a whole list for one new word. Here a word that cannot be traded by
(side, type, class, time in force) is an EndpointError that names it; an unknown order status is
read as `pending_review`, an open state: the order is neither lost nor taken for finished.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, TypeVar

from trader.core.errors import EndpointError
from trader.core.trading import (
    Fill,
    Order,
    OrderClass,
    OrderStatus,
    OrderType,
    Position,
    Side,
    TimeInForce,
)

log = logging.getLogger(__name__)

Word = TypeVar("Word", bound=StrEnum)
Row = Mapping[str, Any]


def read_order(row: Row) -> Order:
    """An order with its legs."""
    quantity = row.get("qty")  # null for an order by amount of money, placed by hand
    return Order(
        order_id=text(row, "id"),
        client_order_id=text(row, "client_order_id"),
        symbol=text(row, "symbol"),
        side=word(row, "side", Side),
        quantity=amount(row, "filled_qty" if quantity is None else "qty"),
        filled_quantity=amount(row, "filled_qty"),
        filled_average_price=maybe_amount(row, "filled_avg_price"),
        order_type=word(row, "type", OrderType),
        order_class=word(row, "order_class", OrderClass, empty=OrderClass.SIMPLE),
        time_in_force=word(row, "time_in_force", TimeInForce),
        status=_status(row),
        limit_price=maybe_amount(row, "limit_price"),
        stop_price=maybe_amount(row, "stop_price"),
        submitted_at=moment(row, "submitted_at"),
        filled_at=moment(row, "filled_at") if row.get("filled_at") else None,
        legs=tuple(read_order(leg) for leg in rows(row.get("legs") or [], "legs")),
    )


def read_position(row: Row) -> Position:
    """A position; short ones have a negative quantity."""
    return Position(
        symbol=text(row, "symbol"),
        quantity=amount(row, "qty"),
        average_entry_price=amount(row, "avg_entry_price"),
        current_price=amount(row, "current_price"),
    )


def read_fill(row: Row, client_order_id: str) -> Fill:
    """A FILL activity, which names its order by id only; Alpaca charges no fee and sends none."""
    return Fill(
        execution_id=text(row, "id"),
        order_id=text(row, "order_id"),
        client_order_id=client_order_id,
        symbol=text(row, "symbol"),
        side=word(row, "side", Side),
        quantity=amount(row, "qty"),
        price=amount(row, "price"),
        fee=maybe_amount(row, "fee") or Decimal(0),
        filled_at=moment(row, "transaction_time"),
    )


def rows(answer: object, what: str) -> list[Row]:
    """A JSON list of objects."""
    if not isinstance(answer, list):
        raise EndpointError(f"the broker's {what} are not a list: {_short(answer)}")
    return [record(row, what) for row in answer]


def record(answer: object, what: str) -> Row:
    """A JSON object."""
    if not isinstance(answer, dict):
        raise EndpointError(f"the broker's {what} is not an object: {_short(answer)}")
    return answer


def text(row: Row, name: str) -> str:
    """A field that must be a word."""
    value = row.get(name)
    if not isinstance(value, str) or not value:
        raise _unreadable(row, name)
    return value


def amount(row: Row, name: str) -> Decimal:
    """A field that must be a finite number; Alpaca sends strings."""
    value = maybe_amount(row, name)
    if value is None:
        raise _unreadable(row, name)
    return value


def maybe_amount(row: Row, name: str) -> Decimal | None:
    """A finite number, or None when the field is absent."""
    value = row.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _unreadable(row, name)
    try:
        number = Decimal(str(value))
    except InvalidOperation as exc:
        raise _unreadable(row, name) from exc
    if not number.is_finite():
        raise _unreadable(row, name)
    return number


def moment(row: Row, name: str) -> datetime:
    """An RFC 3339 moment as UTC; nanoseconds are cut to microseconds."""
    try:
        parsed = datetime.fromisoformat(text(row, name))
    except ValueError as exc:
        raise _unreadable(row, name) from exc
    if parsed.tzinfo is None:
        raise _unreadable(row, name)
    return parsed.astimezone(UTC)


def word(row: Row, name: str, words: type[Word], *, empty: Word | None = None) -> Word:
    """One of the product's own words; `empty` stands for a blank, where that has a meaning."""
    if not row.get(name) and empty is not None:
        return empty
    try:
        return words(text(row, name))
    except ValueError as exc:
        raise _unreadable(row, name) from exc


def _status(row: Row) -> OrderStatus:
    status = text(row, "status")
    if status not in set(OrderStatus):
        log.warning(
            "order %s has the unknown status %r, read as pending_review", row.get("id"), status
        )
        return OrderStatus.PENDING_REVIEW
    return OrderStatus(status)


def _unreadable(row: Row, name: str) -> EndpointError:
    subject = row.get("symbol") or row.get("id") or "an answer"
    return EndpointError(f"the broker sent {subject} with the unreadable {name} {row.get(name)!r}")


def _short(value: object) -> str:
    return repr(value)[:80]
