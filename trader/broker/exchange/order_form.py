"""The body of an order request, read without trusting it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar

from trader.broker.exchange.refusal import bad_field, not_offered, plain, unprocessable
from trader.core.trading import OrderClass, OrderType, Side, TimeInForce, tick_of

NUMBER = re.compile(r"-?\d{1,24}(\.\d{1,24})?([eE][+-]?\d{1,2})?")
LARGEST = Decimal(10) ** 12
LONGEST_CLIENT_ORDER_ID = 128
FIELDS = frozenset(
    {
        "symbol",
        "qty",
        "side",
        "type",
        "time_in_force",
        "order_class",
        "limit_price",
        "stop_price",
        "take_profit",
        "stop_loss",
        "client_order_id",
        "extended_hours",
        "position_intent",
    }
)
AT_ALPACA_ONLY = {  # known words of Alpaca that this market does not take
    "type": frozenset({"stop_limit", "trailing_stop"}),
    "time_in_force": frozenset({"opg", "cls", "ioc", "fok"}),
    "order_class": frozenset({"mleg"}),
}
INTENTS = {Side.BUY: "buy_to_open", Side.SELL: "sell_to_close"}

Word = TypeVar("Word", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderForm:
    """A well-formed wish; whether the account may have it is for the rules to say."""

    client_order_id: str | None
    symbol: str
    side: Side
    quantity: Decimal
    order_type: OrderType
    order_class: OrderClass
    time_in_force: TimeInForce
    limit_price: Decimal | None = None
    stop_price: Decimal | None = None
    take_profit: Decimal | None = None
    stop_loss: Decimal | None = None


def read_form(body: bytes | None) -> OrderForm:
    """The order asked for; RefusalError names the first field that is wrong or not offered."""
    fields = {key: value for key, value in read_object(body).items() if value is not None}
    for key in fields:
        if key not in FIELDS:
            raise not_offered(f"the order field {key}")
    if fields.get("extended_hours", False) is not False:
        raise not_offered("extended_hours")
    side = _word(fields, "side", Side)
    order_type = _word(fields, "type", OrderType)
    order_class = (
        _word(fields, "order_class", OrderClass) if fields.get("order_class") else OrderClass.SIMPLE
    )
    if fields.get("position_intent", INTENTS[side]) != INTENTS[side]:
        raise not_offered(f"position_intent {fields['position_intent']!r} with side {side}")
    form = OrderForm(
        client_order_id=_client_order_id(fields),
        symbol=_text(fields, "symbol"),
        side=side,
        quantity=read_quantity(fields.get("qty")),
        order_type=order_type,
        order_class=order_class,
        time_in_force=_word(fields, "time_in_force", TimeInForce),
        limit_price=_price(fields, "limit_price"),
        stop_price=_price(fields, "stop_price"),
        take_profit=_leg_price(fields, "take_profit", "limit_price"),
        stop_loss=_leg_price(fields, "stop_loss", "stop_price"),
    )
    return _with_consistent_prices(form)


def read_object(body: bytes | None) -> Mapping[str, Any]:
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


def read_quantity(value: object) -> Decimal:
    """A positive whole number of shares."""
    if value is None:
        raise bad_field("qty is required")
    quantity = read_number("qty", value)
    if quantity != quantity.to_integral_value():
        raise not_offered(f"the fractional quantity {plain(quantity)}")
    return Decimal(int(quantity))


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


def _price(fields: Mapping[str, Any], name: str, label: str = "") -> Decimal | None:
    """A price on a whole tick, or None when the field is absent."""
    if name not in fields:
        return None
    price = read_number(label or name, fields[name])
    if price != price.quantize(tick_of(price)):
        raise unprocessable(
            f"invalid {label or name} {plain(price)}. "
            "sub-penny increment does not fulfill minimum pricing criteria"
        )
    return price


def _leg_price(fields: Mapping[str, Any], leg: str, name: str) -> Decimal | None:
    if leg not in fields:
        return None
    inner = fields[leg]
    if not isinstance(inner, dict):
        raise bad_field(f"{leg} must be an object with {name}")
    given = {key: value for key, value in inner.items() if value is not None}
    for key in given:
        if key != name:
            raise not_offered(f"{leg}.{key}")
    if name not in given:
        raise unprocessable(f"{leg} requires {leg}.{name}")
    return _price(given, name, f"{leg}.{name}")


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if value is None or value == "":
        raise bad_field(f"{name} is required")
    if not isinstance(value, str):
        raise bad_field(f"{name} must be text, not {value!r}")
    if not value.isprintable():
        raise bad_field(f"{name} {value!r} has characters that cannot be printed")
    return value


def _word(fields: Mapping[str, Any], name: str, words: type[Word]) -> Word:
    value = _text(fields, name)
    if value in AT_ALPACA_ONLY.get(name, ()):
        raise not_offered(f"{name} {value}")
    if value not in set(words):
        raise bad_field(f"invalid {name} {value!r}")
    return words(value)


def _client_order_id(fields: Mapping[str, Any]) -> str | None:
    if "client_order_id" not in fields:
        return None
    value = _text(fields, "client_order_id")
    if len(value) > LONGEST_CLIENT_ORDER_ID:
        raise bad_field(
            f"client_order_id must be no more than {LONGEST_CLIENT_ORDER_ID} characters"
        )
    return value


def _with_consistent_prices(form: OrderForm) -> OrderForm:
    """Each type and class with the prices it needs and no other."""
    form = _with_legs(form)
    if form.order_type is OrderType.LIMIT:
        if form.limit_price is None:
            raise unprocessable("limit orders require a limit price")
        if form.stop_price is not None:
            raise unprocessable("limit orders must not have stop_price")
    elif form.limit_price is not None:
        raise unprocessable(f"{form.order_type} orders must not have limit_price")
    if form.order_type is OrderType.STOP:
        if form.stop_price is None:
            raise unprocessable("stop orders require a stop price")
    elif form.stop_price is not None:
        raise unprocessable(f"{form.order_type} orders must not have stop_price")
    return form


def _with_legs(form: OrderForm) -> OrderForm:
    """Legs that fit the class; the parent of an OCO order is its target."""
    word, target, stop = form.order_class, form.take_profit, form.stop_loss
    if word is OrderClass.SIMPLE:
        if target is not None or stop is not None:
            raise unprocessable("simple orders must not have take_profit or stop_loss")
        return form
    if word is OrderClass.OTO:
        if (target is None) == (stop is None):
            raise unprocessable("oto orders require either take_profit or stop_loss")
    elif target is None:
        raise unprocessable(f"{word} orders require take_profit.limit_price")
    elif stop is None:
        raise unprocessable(f"{word} orders require stop_loss.stop_price")
    if word is not OrderClass.OCO:
        if form.side is not Side.BUY:
            raise unprocessable(f"{word} orders must be entry orders")
        return form
    return _as_exit_pair(form)


def _as_exit_pair(form: OrderForm) -> OrderForm:
    if form.side is not Side.SELL:
        raise unprocessable("oco orders must be exit orders")
    if form.order_type is not OrderType.LIMIT:
        raise unprocessable("oco orders must be limit orders")
    if form.limit_price not in (None, form.take_profit):
        raise unprocessable("oco orders must not have a limit_price besides take_profit")
    return replace(form, limit_price=form.take_profit, take_profit=None)
