"""Orders as the exchange books them, made from the forms that ask for them."""

from __future__ import annotations

from decimal import Decimal

from trader.broker.exchange.order_form import OrderForm
from trader.broker.exchange.records import Ticket, derived_id
from trader.broker.exchange.trailing import trailing_stop_price
from trader.core.clock import SessionCalendar
from trader.core.instruments import is_crypto
from trader.core.market import EXCHANGE_TIME_ZONE, from_ns, to_ns
from trader.core.trading import OrderClass, OrderStatus, OrderType, Side, TimeInForce


def head_of(
    form: OrderForm,
    *,
    client_order_id: str,
    sequence: int,
    quantity: Decimal,
    reserved: Decimal,
    mark: Decimal,
    now_ns: int,
    calendar: SessionCalendar,
) -> Ticket:
    """The order itself, without its legs.

    quantity  shares, of an order by amount what it is worth now
    reserved  USD it keeps back
    mark      USD per share a trailing stop begins from
    """
    order_id = str(derived_id("order", client_order_id))
    trails = form.order_type is OrderType.TRAILING_STOP
    stop_price = form.stop_price
    if trails:
        stop_price = trailing_stop_price(
            symbol=form.symbol,
            side=form.side,
            mark=mark,
            trail_price=form.trail_price,
            trail_percent=form.trail_percent,
        )
    is_open = is_crypto(form.symbol) or calendar.session_at(from_ns(now_ns)) is not None
    return Ticket(
        sequence=sequence,
        order_id=order_id,
        client_order_id=client_order_id,
        family_id=order_id,
        symbol=form.symbol,
        side=form.side,
        quantity=quantity,
        order_type=form.order_type,
        order_class=form.order_class,
        time_in_force=form.time_in_force,
        limit_price=form.limit_price,
        stop_price=stop_price,
        status=OrderStatus.NEW if is_open else OrderStatus.ACCEPTED,
        live=True,
        reserved=reserved,
        submitted_ns=now_ns,
        updated_ns=now_ns,
        expires_ns=expiry(form.symbol, form.time_in_force, now_ns, calendar),
        notional=form.notional,
        trail_price=form.trail_price,
        trail_percent=form.trail_percent,
        high_water_mark=mark if trails else None,
        extended_hours=form.extended_hours,
    )


def legs_of(form: OrderForm, head: Ticket) -> list[Ticket]:
    """The target and the stop that hang under the order; those of a pair trade at once."""
    wanted = (("take_profit", form.take_profit), ("stop_loss", form.stop_loss))
    given = [(name, price) for name, price in wanted if price is not None]
    stop_type = OrderType.STOP if form.stop_loss_limit is None else OrderType.STOP_LIMIT
    return [
        Ticket(
            sequence=head.sequence + place,
            order_id=str(derived_id(name, head.order_id)),
            client_order_id=str(derived_id(f"{name} client", head.order_id)),
            family_id=head.order_id,
            symbol=head.symbol,
            side=Side.SELL,
            quantity=head.quantity,
            order_type=OrderType.LIMIT if name == "take_profit" else stop_type,
            order_class=head.order_class,
            time_in_force=head.time_in_force,
            limit_price=price if name == "take_profit" else form.stop_loss_limit,
            stop_price=price if name == "stop_loss" else None,
            status=OrderStatus.HELD,
            live=head.order_class is OrderClass.OCO,
            reserved=Decimal(0),
            submitted_ns=head.submitted_ns,
            updated_ns=head.updated_ns,
            expires_ns=head.expires_ns,
        )
        for place, (name, price) in enumerate(given, start=1)
    ]


def expiry(
    symbol: str, time_in_force: TimeInForce, now_ns: int, calendar: SessionCalendar
) -> int | None:
    """When an order ends by itself, UTC nanoseconds; GTC orders and coins have no such moment."""
    if time_in_force is TimeInForce.GTC or is_crypto(symbol):
        return None
    return session_close_after(now_ns, calendar)


def session_close_after(now_ns: int, calendar: SessionCalendar) -> int:
    """Closing time of the session that is open at `now_ns` or comes next, UTC nanoseconds."""
    now = from_ns(now_ns)
    session = calendar.at_or_after(now.astimezone(EXCHANGE_TIME_ZONE).date())
    if calendar.close(session) <= now:
        session = calendar.next(session)
    return to_ns(calendar.close(session))
