"""Records of the exchange as rows of SQLite and back; amounts and words are kept as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from enum import StrEnum
from typing import Any

from trader.broker.exchange.records import Event, Holding, Ticket, Trade
from trader.core.trading import OrderClass, OrderStatus, OrderType, Side, TimeInForce

TICKET_COLUMNS = tuple(field.name for field in fields(Ticket))
TRADE_COLUMNS = tuple(field.name for field in fields(Trade))
HOLDING_COLUMNS = tuple(field.name for field in fields(Holding))
EVENT_COLUMNS = (
    "sequence",
    "name",
    "at_ns",
    "order_id",
    "ticket",
    "execution_id",
    "price",
    "quantity",
    "position_quantity",
)
READERS: dict[str, Any] = {  # columns that are more than text or a number
    "side": Side,
    "quantity": Decimal,
    "order_type": OrderType,
    "order_class": OrderClass,
    "time_in_force": TimeInForce,
    "limit_price": Decimal,
    "stop_price": Decimal,
    "status": OrderStatus,
    "live": bool,
    "reserved": Decimal,
    "filled_quantity": Decimal,
    "filled_notional": Decimal,
    "fees": Decimal,
    "notional": Decimal,
    "trail_price": Decimal,
    "trail_percent": Decimal,
    "high_water_mark": Decimal,
    "extended_hours": bool,
    "average_price": Decimal,
    "price": Decimal,
    "fee": Decimal,
    "cumulative": Decimal,
    "remaining": Decimal,
    "position_quantity": Decimal,
}


def _readers(columns: tuple[str, ...]) -> tuple[tuple[int, Any], ...]:
    return tuple((place, READERS[name]) for place, name in enumerate(columns) if name in READERS)


TICKET_READERS = _readers(TICKET_COLUMNS)
TRADE_READERS = _readers(TRADE_COLUMNS)
HOLDING_READERS = _readers(HOLDING_COLUMNS)


def values_of(record: object, columns: tuple[str, ...]) -> dict[str, object]:
    """Fields of a record as SQLite takes them."""
    values: dict[str, object] = {}
    for column in columns:
        value = getattr(record, column)
        values[column] = str(value) if isinstance(value, Decimal | StrEnum) else value
    return values


def event_values(event: Event) -> dict[str, object]:
    """An event as a row; the order as it was is kept as JSON."""
    ticket = values_of(event.ticket, TICKET_COLUMNS)
    return {
        "sequence": event.sequence,
        "name": event.name,
        "at_ns": event.at_ns,
        "order_id": event.ticket.order_id,
        "ticket": json.dumps({name: value for name, value in ticket.items() if value is not None}),
        "execution_id": event.execution_id,
        "price": _text(event.price),
        "quantity": _text(event.quantity),
        "position_quantity": _text(event.position_quantity),
    }


def ticket_of(row: tuple[Any, ...]) -> Ticket:
    """A row of `TICKET_COLUMNS`."""
    return Ticket(**_read(row, TICKET_COLUMNS, TICKET_READERS))


def trade_of(row: tuple[Any, ...]) -> Trade:
    """A row of `TRADE_COLUMNS`."""
    return Trade(**_read(row, TRADE_COLUMNS, TRADE_READERS))


def holding_of(row: tuple[Any, ...]) -> Holding:
    """A row of `HOLDING_COLUMNS`."""
    return Holding(**_read(row, HOLDING_COLUMNS, HOLDING_READERS))


def event_of(row: tuple[Any, ...]) -> Event:
    """A row of `EVENT_COLUMNS`."""
    kept: Mapping[str, Any] = json.loads(row[4])
    return Event(
        sequence=row[0],
        name=row[1],
        at_ns=row[2],
        ticket=ticket_of(tuple(kept.get(name) for name in TICKET_COLUMNS)),
        execution_id=row[5],
        price=_amount(row[6]),
        quantity=_amount(row[7]),
        position_quantity=_amount(row[8]),
    )


def _read(
    row: tuple[Any, ...], columns: tuple[str, ...], readers: tuple[tuple[int, Any], ...]
) -> dict[str, Any]:
    values = list(row)
    for place, reader in readers:
        if values[place] is not None:
            values[place] = reader(values[place])
    return dict(zip(columns, values, strict=True))


def _text(value: Decimal | None) -> str | None:
    return None if value is None else str(value)


def _amount(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)
