"""Alpaca's JSON read without trusting it, into the product's own types.

alpaca-py's models refuse a whole list for one new word. Here an order with a word that this product
never sends (side, type, class, time in force) is foreign: it can be told apart before it is read,
and reading it is an EndpointError that names the word. An unknown order status is read as
`pending_review`, an open state: the order is neither lost nor taken for finished. A number or a
time that cannot be read is an EndpointError always: it may stand in an order of ours.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, TypeVar

from trader.core.errors import EndpointError
from trader.core.instruments import standard_symbol
from trader.core.market import EXCHANGE_TIME_ZONE
from trader.core.trading import (
    AccountState,
    Activity,
    ActivityKind,
    Fill,
    MarketClock,
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
WORDS = {
    "side": frozenset(Side),
    "type": frozenset(OrderType),
    "order_class": frozenset(OrderClass),
    "time_in_force": frozenset(TimeInForce),
}
STATUSES = frozenset(OrderStatus)
KINDS = {  # Alpaca's types of activities; every other one is `other`
    "DIV": ActivityKind.DIVIDEND,
    "DIVCGL": ActivityKind.DIVIDEND,
    "DIVCGS": ActivityKind.DIVIDEND,
    "DIVFEE": ActivityKind.FEE,
    "DIVFT": ActivityKind.DIVIDEND,
    "DIVNRA": ActivityKind.DIVIDEND,
    "DIVROC": ActivityKind.DIVIDEND,
    "DIVTW": ActivityKind.DIVIDEND,
    "DIVTXEX": ActivityKind.DIVIDEND,
    "SPLIT": ActivityKind.SPLIT,
    "SSP": ActivityKind.SPLIT,
    "FEE": ActivityKind.FEE,
    "CFEE": ActivityKind.FEE,
    "PTC": ActivityKind.FEE,
    "ACATC": ActivityKind.TRANSFER,
    "CSD": ActivityKind.TRANSFER,
    "CSW": ActivityKind.TRANSFER,
    "JNL": ActivityKind.TRANSFER,
    "JNLC": ActivityKind.TRANSFER,
    "TRANS": ActivityKind.TRANSFER,
}
CASH_ONLY = (ActivityKind.DIVIDEND, ActivityKind.TRANSFER)  # a dividend's qty is what was held
BLOCKS = {  # what an account says of itself -> in words
    "trading_blocked": "trading is blocked",
    "account_blocked": "the account is blocked",
    "trade_suspended_by_user": "trading is suspended in the account's settings",
}


def foreign_word(row: Row) -> str:
    """The word that this product never sends, as in "type new_type"; empty where there is none.

    An order that holds one cannot be ours: several legs of options, for instance.
    """
    for name, words in WORDS.items():
        value = row.get(name)
        if not value and name == "order_class":  # blank stands for simple
            continue
        if not isinstance(value, str) or value not in words:
            return f"{name} {value!r}"
    return ""


def read_order(row: Row) -> Order:
    """An order with its legs."""
    quantity = row.get("qty")  # null for an order by amount of money, placed by hand
    return Order(
        order_id=text(row, "id"),
        client_order_id=text(row, "client_order_id"),
        symbol=_symbol(row),
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
        replaced_by=text(row, "replaced_by") if row.get("replaced_by") else None,
    )


def read_position(row: Row) -> Position:
    """A position; short ones have a negative quantity. One without a price has the last known."""
    prices = ("current_price", "lastday_price", "avg_entry_price")
    priced = next((name for name in prices if row.get(name) is not None), "current_price")
    return Position(
        symbol=_symbol(row),
        quantity=amount(row, "qty"),
        average_entry_price=amount(row, "avg_entry_price"),
        current_price=amount(row, priced),
    )


def read_account(row: Row) -> AccountState:
    """The account; day-trading fields are not read, Alpaca has taken them away."""
    status = text(row, "status")
    reasons = [words for name, words in BLOCKS.items() if row.get(name)]
    if status != "ACTIVE":
        reasons.append(f"the account is {status}")
    return AccountState(
        account_id=text(row, "id"),
        blocked=", ".join(reasons),
        cash=amount(row, "cash"),
        equity=amount(row, "equity"),
        last_equity=amount(row, "last_equity"),
        buying_power=amount(row, "buying_power"),
    )


def read_clock(row: Row) -> MarketClock:
    """The broker's clock."""
    if not isinstance(row.get("is_open"), bool):
        raise _unreadable(row, "is_open")
    return MarketClock(
        now=moment(row, "timestamp"),
        is_open=row["is_open"],
        next_open=moment(row, "next_open"),
        next_close=moment(row, "next_close"),
    )


def read_activity(row: Row) -> Activity:
    """An activity that is no fill; one with a date only happened at its midnight in New York."""
    kind = KINDS.get(text(row, "activity_type"), ActivityKind.OTHER)
    moved = None if kind in CASH_ONLY else maybe_amount(row, "qty")
    return Activity(
        activity_id=text(row, "id"),
        kind=kind,
        symbol=_symbol(row) if row.get("symbol") else None,
        amount=maybe_amount(row, "net_amount") or Decimal(0),
        quantity=moved or Decimal(0),
        at=moment(row, "transaction_time") if row.get("transaction_time") else _midnight(row),
    )


def read_fill(row: Row, client_order_id: str) -> Fill:
    """A FILL activity, which names its order by id only; Alpaca charges no fee and sends none."""
    return Fill(
        execution_id=text(row, "id"),
        order_id=text(row, "order_id"),
        client_order_id=client_order_id,
        symbol=_symbol(row),
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


def _symbol(row: Row) -> str:
    return standard_symbol(text(row, "symbol"), asset_class=row.get("asset_class"))


def _midnight(row: Row) -> datetime:
    try:
        day = datetime.fromisoformat(text(row, "date"))
    except ValueError as exc:
        raise _unreadable(row, "date") from exc
    return (day if day.tzinfo else day.replace(tzinfo=EXCHANGE_TIME_ZONE)).astimezone(UTC)


def _status(row: Row) -> OrderStatus:
    status = text(row, "status")
    if status not in STATUSES:
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
