"""The order that a request asks for: its fields, and what each type, class and life needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from trader.broker.exchange.body import (
    Fields,
    read_amount,
    read_client_order_id,
    read_fields,
    read_number,
    read_price,
    read_quantity,
    read_text,
    read_word,
)
from trader.broker.exchange.refusal import bad_field, not_offered, plain, unprocessable
from trader.core.instruments import is_crypto
from trader.core.trading import OrderClass, OrderType, Side, TimeInForce

FIELDS = frozenset(
    {
        "symbol",
        "qty",
        "notional",
        "side",
        "type",
        "time_in_force",
        "order_class",
        "limit_price",
        "stop_price",
        "trail_price",
        "trail_percent",
        "take_profit",
        "stop_loss",
        "client_order_id",
        "extended_hours",
        "position_intent",
    }
)
INTENTS = {Side.BUY: "buy_to_open", Side.SELL: "sell_to_close"}
LASTING = (TimeInForce.DAY, TimeInForce.GTC)
FRACTIONAL_TYPES = frozenset(set(OrderType) - {OrderType.TRAILING_STOP})
CRYPTO_TYPES = frozenset({OrderType.MARKET, OrderType.LIMIT, OrderType.STOP_LIMIT})
CRYPTO_LIVES = frozenset({TimeInForce.GTC, TimeInForce.IOC})


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderForm:
    """A well-formed wish; whether the account may have it is for the rules to say.

    quantity         shares, None for an order by amount
    notional         USD, None for an order by quantity
    stop_loss_limit  limit price of the stop leg, which makes it a stop-limit order
    """

    client_order_id: str | None
    symbol: str
    side: Side
    quantity: Decimal | None
    order_type: OrderType
    order_class: OrderClass
    time_in_force: TimeInForce
    notional: Decimal | None = None
    limit_price: Decimal | None = None
    stop_price: Decimal | None = None
    trail_price: Decimal | None = None
    trail_percent: Decimal | None = None
    take_profit: Decimal | None = None
    stop_loss: Decimal | None = None
    stop_loss_limit: Decimal | None = None
    extended_hours: bool = False

    @property
    def is_fractional(self) -> bool:
        """Whether it is for parts of a share; coins have no such rule."""
        if is_crypto(self.symbol):
            return False
        return self.quantity is None or self.quantity != self.quantity.to_integral_value()


def read_form(body: bytes | None) -> OrderForm:
    """The order asked for; RefusalError names the first field that is wrong or not offered."""
    fields = read_fields(body, FIELDS)
    side = read_word(fields, "side", Side)
    order_type = read_word(fields, "type", OrderType)
    order_class = OrderClass.SIMPLE
    if fields.get("order_class") == "mleg":
        raise not_offered("order_class mleg")
    if fields.get("order_class"):
        order_class = read_word(fields, "order_class", OrderClass)
    if fields.get("position_intent", INTENTS[side]) != INTENTS[side]:
        raise not_offered(f"position_intent {fields['position_intent']!r} with side {side}")
    symbol = read_text(fields, "symbol")
    quantity, notional = _size(fields)
    return consistent(
        OrderForm(
            client_order_id=read_client_order_id(fields),
            symbol=symbol,
            side=side,
            quantity=quantity,
            notional=notional,
            order_type=order_type,
            order_class=order_class,
            time_in_force=read_word(fields, "time_in_force", TimeInForce),
            limit_price=read_price(fields, "limit_price", symbol),
            stop_price=read_price(fields, "stop_price", symbol),
            trail_price=read_price(fields, "trail_price", symbol),
            trail_percent=_percent(fields),
            take_profit=_leg_price(fields, "take_profit", "limit_price", symbol),
            stop_loss=_leg_price(fields, "stop_loss", "stop_price", symbol),
            stop_loss_limit=_leg_price(fields, "stop_loss", "limit_price", symbol),
            extended_hours=_flag(fields, "extended_hours"),
        )
    )


def consistent(form: OrderForm) -> OrderForm:
    """The form with the prices its type, class and life need and no other; RefusalError else."""
    form = _with_legs(form)
    _check_prices(form)
    _check_life(form)
    if is_crypto(form.symbol):
        _check_crypto(form)
    elif form.is_fractional:
        _check_fractional(form)
    return form


def _size(fields: Fields) -> tuple[Decimal | None, Decimal | None]:
    """Quantity or amount, exactly one of them."""
    if "qty" in fields and "notional" in fields:
        raise bad_field("only one of qty or notional is accepted")
    if "notional" in fields:
        return None, read_amount("notional", fields["notional"])
    if "qty" not in fields:
        raise bad_field("qty or notional is required")
    return read_quantity(fields["qty"]), None


def _percent(fields: Fields) -> Decimal | None:
    if "trail_percent" not in fields:
        return None
    return read_number("trail_percent", fields["trail_percent"])


def _flag(fields: Fields, name: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise bad_field(f"{name} must be true or false, not {value!r}")
    return value


def _leg_price(fields: Fields, leg: str, name: str, symbol: str) -> Decimal | None:
    if leg not in fields:
        return None
    inner = fields[leg]
    needed = "limit_price" if leg == "take_profit" else "stop_price"
    if not isinstance(inner, dict):
        raise bad_field(f"{leg} must be an object with {needed}")
    given = {key: value for key, value in inner.items() if value is not None}
    for key in given:
        if key not in {needed, "limit_price"}:
            raise not_offered(f"{leg}.{key}")
    if needed not in given:
        raise unprocessable(f"{leg} requires {leg}.{needed}")
    return read_price(given, name, symbol, f"{leg}.{name}")


def _check_prices(form: OrderForm) -> None:
    kind = form.order_type
    wants_limit = kind in (OrderType.LIMIT, OrderType.STOP_LIMIT)
    wants_stop = kind in (OrderType.STOP, OrderType.STOP_LIMIT)
    if wants_limit and form.limit_price is None:
        raise unprocessable(f"{kind} orders require a limit price".replace("_", " "))
    if wants_stop and form.stop_price is None:
        raise unprocessable(f"{kind} orders require a stop price".replace("_", " "))
    if not wants_limit and form.limit_price is not None:
        raise unprocessable(f"{kind} orders must not have limit_price")
    if not wants_stop and form.stop_price is not None:
        raise unprocessable(f"{kind} orders must not have stop_price")
    trails = (form.trail_price is not None) + (form.trail_percent is not None)
    if kind is OrderType.TRAILING_STOP:
        if trails != 1:
            raise unprocessable("trailing stop orders require either trail_price or trail_percent")
        if form.trail_percent is not None and form.trail_percent >= 100:
            raise unprocessable(f"trail_percent must be below 100, not {plain(form.trail_percent)}")
    elif trails:
        raise unprocessable(f"{kind} orders must not have trail_price or trail_percent")


def _check_life(form: OrderForm) -> None:
    """Which classes and types may live only for a moment or beyond the session."""
    if form.order_class is not OrderClass.SIMPLE:
        if form.order_type is OrderType.TRAILING_STOP:
            raise unprocessable("trailing stop orders must be simple orders")
        if form.time_in_force not in LASTING:
            raise unprocessable(f"{form.order_class} orders must be DAY or GTC orders")
    at_once = form.time_in_force not in LASTING and not is_crypto(form.symbol)
    if at_once and form.order_type not in (OrderType.MARKET, OrderType.LIMIT):
        raise unprocessable(
            f"{form.order_type} orders must not have time_in_force {form.time_in_force}"
        )
    if form.extended_hours:
        if form.order_type is not OrderType.LIMIT or form.order_class is not OrderClass.SIMPLE:
            raise bad_field('only type="limit" is allowed for extended hours orders')
        if form.time_in_force is not TimeInForce.DAY:
            raise bad_field('only time_in_force="day" is allowed for extended hours orders')


def _check_crypto(form: OrderForm) -> None:
    if form.order_class is not OrderClass.SIMPLE:
        raise unprocessable(
            f"crypto orders not allowed for advanced order_class: {form.order_class}"
        )
    if form.order_type not in CRYPTO_TYPES:
        raise unprocessable("invalid order type for crypto order")
    if form.time_in_force not in CRYPTO_LIVES:
        raise unprocessable("invalid crypto time_in_force")


def _check_fractional(form: OrderForm) -> None:
    if form.order_class is not OrderClass.SIMPLE:
        raise unprocessable("fractional orders must be simple orders")
    if form.order_type not in FRACTIONAL_TYPES:
        raise unprocessable("fractional orders must be market, limit, stop, or stop_limit orders")
    if form.time_in_force is not TimeInForce.DAY:
        raise unprocessable("fractional orders must be DAY orders")


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
