"""The body of a replace request: what is to be different about an open order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from trader.broker.exchange.body import (
    read_client_order_id,
    read_fields,
    read_price,
    read_quantity,
    read_word,
)
from trader.broker.exchange.order_form import OrderForm, consistent
from trader.broker.exchange.records import Ticket
from trader.broker.exchange.refusal import bad_field, forbidden, unprocessable
from trader.core.instruments import is_crypto
from trader.core.trading import OrderClass, OrderStatus, OrderType, Side, TimeInForce

FIELDS = frozenset(
    {"qty", "time_in_force", "limit_price", "stop_price", "trail", "client_order_id"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The new values; None leaves the old one.

    quantity  shares of the whole order, those already traded included
    trail     USD or percent, whichever the order has
    """

    client_order_id: str | None
    quantity: Decimal | None
    time_in_force: TimeInForce | None
    limit_price: Decimal | None
    stop_price: Decimal | None
    trail: Decimal | None


def read_replacement(body: bytes | None, symbol: str) -> Replacement:
    """The changes asked for; RefusalError names the first field that is wrong."""
    fields = read_fields(body, FIELDS)
    quantity = read_quantity(fields["qty"]) if "qty" in fields else None
    if quantity is not None and not is_crypto(symbol) and quantity != int(quantity):
        raise bad_field(f"qty must be integer, not {quantity}")
    return Replacement(
        client_order_id=read_client_order_id(fields),
        quantity=quantity,
        time_in_force=(
            read_word(fields, "time_in_force", TimeInForce) if "time_in_force" in fields else None
        ),
        limit_price=read_price(fields, "limit_price", symbol),
        stop_price=read_price(fields, "stop_price", symbol),
        trail=read_price(fields, "trail", symbol),
    )


def check_replaceable(ticket: Ticket) -> None:
    """Only what is on the exchange, whole in its kind, can be replaced."""
    if not ticket.is_open:
        raise unprocessable(f'order is already in "{ticket.status}" state')
    if ticket.status is OrderStatus.ACCEPTED:
        raise unprocessable("unable to replace order, order isn't sent to exchange yet")
    if ticket.notional is not None:
        raise unprocessable("notional orders cannot be replaced")


def changed_form(ticket: Ticket, change: Replacement) -> OrderForm:
    """What the order wants from now on, for the shares that have not traded.

    Of orders that hang together only prices can change: their quantities and lives are one.
    RefusalError when nothing changes or the result is no order.
    """
    if ticket.order_class is not OrderClass.SIMPLE and (change.quantity or change.time_in_force):
        raise unprocessable(
            f"only limit_price and stop_price of {ticket.order_class} orders can be replaced"
        )
    quantity = ticket.remaining
    if change.quantity is not None:
        if change.quantity <= ticket.filled_quantity:
            raise unprocessable(f"qty must be > filled_qty {ticket.filled_quantity}")
        quantity = change.quantity - ticket.filled_quantity
    trails = ticket.order_type is OrderType.TRAILING_STOP
    if change.trail is not None and not trails:
        raise unprocessable(f"{ticket.order_type} orders must not have trail")
    old = OrderForm(
        client_order_id=change.client_order_id,
        symbol=ticket.symbol,
        side=ticket.side,
        quantity=ticket.remaining,
        order_type=ticket.order_type,
        order_class=OrderClass.SIMPLE,  # the legs stay as they are
        time_in_force=ticket.time_in_force,
        limit_price=ticket.limit_price,
        stop_price=None if trails else ticket.stop_price,
        trail_price=ticket.trail_price,
        trail_percent=ticket.trail_percent,
        extended_hours=ticket.extended_hours,
    )
    new = replace(
        old,
        quantity=quantity,
        time_in_force=change.time_in_force or old.time_in_force,
        limit_price=change.limit_price or old.limit_price,
        stop_price=change.stop_price or old.stop_price,
    )
    if change.trail is not None:
        by_price = ticket.trail_price is not None
        name = "trail_price" if by_price else "trail_percent"
        new = replace(new, **{name: change.trail})  # type: ignore[arg-type]
    if new == old:
        raise forbidden("order parameters are not changed")
    return consistent(new)


def family_form(members: list[Ticket]) -> OrderForm | None:
    """Orders that hang together as the form that asks for them; None where no levels can clash."""
    exits = [one for one in members if one.side is Side.SELL]
    stop = next((one for one in exits if one.stop_price is not None), None)
    target = next((one for one in exits if one.stop_price is None), None)
    entry = next((one for one in members if one.side is Side.BUY), None)
    head = entry or (target if stop else None)
    if head is None or len(members) == 1:
        return None
    return OrderForm(
        client_order_id=None,
        symbol=head.symbol,
        side=head.side,
        quantity=head.quantity,
        order_type=head.order_type,
        order_class=OrderClass.BRACKET if entry else OrderClass.OCO,
        time_in_force=head.time_in_force,
        limit_price=head.limit_price,
        stop_price=head.stop_price,
        take_profit=target.limit_price if target and entry else None,
        stop_loss=stop.stop_price if stop else None,
    )
