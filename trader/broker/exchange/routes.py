"""Alpaca's REST paths and what each of them does."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal

from trader.broker.exchange import wire
from trader.broker.exchange.desk import Desk
from trader.broker.exchange.order_form import read_form, read_number, read_quantity
from trader.broker.exchange.prices import start_of_day
from trader.broker.exchange.records import Holding, Ticket
from trader.broker.exchange.refusal import RefusalError, bad_field, not_found, not_offered
from trader.broker.exchange.request import Request

Answer = tuple[int, object]
MOST_ORDERS, USUAL_ORDERS = 500, 50
MOST_ACTIVITIES = 100
LAST = 2**62  # beyond every sequence number


def answer(desk: Desk, request: Request) -> Answer:
    """HTTP status and JSON; refusals become their status and error body."""
    try:
        return _handler(request)(desk, request)
    except RefusalError as refusal:
        return refusal.status, refusal.body


def _handler(request: Request) -> Callable[[Desk, Request], Answer]:
    match (request.method, *request.words):
        case ("GET" | "POST" | "DELETE" as method, "v2", path) if (method, path) in PLAIN:
            return PLAIN[method, path]
        case ("GET", "v2", "account", "activities"):
            return activities
        case ("GET", "v2", "account", "activities", "FILL"):
            return activities
        case ("GET" | "DELETE" as method, "v2", path, _) if (method, path) in NAMED:
            return NAMED[method, path]
        case ("PATCH", "v2", "orders", _):
            raise not_offered("replacing an order")
    raise not_found(f"endpoint not found: {request.method} /{'/'.join(request.words)}")


def account(desk: Desk, request: Request) -> Answer:
    """GET /v2/account."""
    request.only()
    return 200, wire.account_json(
        cash=desk.account.cash,
        equity=desk.equity(),
        last_equity=desk.last_equity(),
        buying_power=desk.account.buying_power(),
        created_ns=desk.store.begun_ns(),
    )


def clock(desk: Desk, request: Request) -> Answer:
    """GET /v2/clock."""
    request.only()
    return 200, wire.clock_json(desk.store.clock_ns(), desk.calendar)


def calendar(desk: Desk, request: Request) -> Answer:
    """GET /v2/calendar?start=&end=, every session by default."""
    request.only("start", "end")
    first = request.date("start") or desk.calendar.first
    last = request.date("end") or desk.calendar.last
    return 200, wire.calendar_json(desk.calendar, first, last)


def assets(desk: Desk, request: Request) -> Answer:
    """GET /v2/assets?status=&asset_class=; all are active US equities."""
    request.only("status", "asset_class")
    fits = (
        request.query.get("status", "active") == "active"
        and request.query.get("asset_class", wire.ASSET_CLASS) == wire.ASSET_CLASS
    )
    return 200, [wire.asset_json(symbol) for symbol in sorted(desk.prices.symbols) if fits]


def asset(desk: Desk, request: Request) -> Answer:
    """GET /v2/assets/{symbol or id}."""
    request.only()
    name = request.words[-1]
    symbol = _symbol(desk, name)
    if symbol is None:
        raise not_found(f"asset not found for {name}")
    return 200, wire.asset_json(symbol)


def submit(desk: Desk, request: Request) -> Answer:
    """POST /v2/orders."""
    request.only()
    head, legs = desk.submit(read_form(request.body))
    return 200, wire.order_json(head, legs)


def orders(desk: Desk, request: Request) -> Answer:
    """GET /v2/orders; nested=true shows legs under their parent, which is open while a leg is."""
    request.only("status", "limit", "after", "until", "direction", "nested", "symbols", "side")
    symbols = request.query.get("symbols")
    nested = request.flag("nested")
    found = desk.store.listed(
        status=request.choice("status", "open", "closed", "all"),
        limit=request.count("limit", USUAL_ORDERS, MOST_ORDERS),
        after=request.moment("after"),
        until=request.moment("until"),
        direction={"desc": -1, "asc": 1}[request.choice("direction", "desc", "asc")],
        nested=nested,
        symbols=json.dumps(symbols.split(",")) if symbols else None,
        side=request.choice("side", "buy", "sell") if "side" in request.query else None,
    )
    if not nested:
        return 200, [wire.order_json(ticket) for ticket in found]
    legs = desk.store.families(found)
    return 200, [wire.order_json(ticket, legs[ticket.order_id]) for ticket in found]


def order(desk: Desk, request: Request) -> Answer:
    """GET /v2/orders/{id}; legs are shown with nested=true."""
    request.only("nested")
    return 200, _family_json(desk, desk.ticket(request.order_id()), request.flag("nested"))


def order_by_client_id(desk: Desk, request: Request) -> Answer:
    """GET /v2/orders:by_client_order_id?client_order_id=."""
    request.only("client_order_id")
    client_order_id = request.query.get("client_order_id", "")
    found = desk.store.ticket_of_client(client_order_id)
    if found is None:
        raise not_found(f"order not found for {client_order_id}")
    return 200, _family_json(desk, found, True)


def cancel(desk: Desk, request: Request) -> Answer:
    """DELETE /v2/orders/{id}; at once, with everything that hangs together with it."""
    request.only()
    desk.cancel(request.order_id())
    return 204, None


def cancel_all(desk: Desk, request: Request) -> Answer:
    """DELETE /v2/orders."""
    request.only()
    return 207, [{"id": ticket.order_id, "status": 200} for ticket in desk.cancel_all()]


def positions(desk: Desk, request: Request) -> Answer:
    """GET /v2/positions."""
    request.only()
    return 200, [_position_json(desk, held) for held in desk.account.holdings.values()]


def position(desk: Desk, request: Request) -> Answer:
    """GET /v2/positions/{symbol or id}."""
    request.only()
    return 200, _position_json(desk, _holding(desk, request))


def close_position(desk: Desk, request: Request) -> Answer:
    """DELETE /v2/positions/{symbol or id}?qty= or ?percentage=; all of it by default."""
    request.only("qty", "percentage")
    held = _holding(desk, request)
    quantity = held.quantity
    if "qty" in request.query:
        quantity = read_quantity(request.query["qty"])
    elif "percentage" in request.query:
        quantity = _part(held.quantity, request.query["percentage"])
    return 200, wire.order_json(desk.close_position(held.symbol, quantity))


def close_all_positions(desk: Desk, request: Request) -> Answer:
    """DELETE /v2/positions?cancel_orders=; one answer per position."""
    request.only("cancel_orders")
    if request.flag("cancel_orders"):
        desk.cancel_all()
    answers = []
    for held in tuple(desk.account.holdings.values()):
        try:
            sold = wire.order_json(desk.close_position(held.symbol, held.quantity))
            answers.append({"symbol": held.symbol, "status": 200, "body": sold})
        except RefusalError as refusal:
            answers.append({"symbol": held.symbol, "status": refusal.status, "body": refusal.body})
    return 207, answers


def activities(desk: Desk, request: Request) -> Answer:
    """GET /v2/account/activities[/FILL]; fills are all there is."""
    request.only("direction", "page_size", "page_token", "activity_types")
    if request.query.get("activity_types", "FILL") != "FILL":
        raise not_offered(f"activity_types {request.query['activity_types']}")
    newest_first = request.choice("direction", "desc", "asc") == "desc"
    after = LAST if newest_first else 0
    token = request.query.get("page_token")
    if token:
        place = desk.store.trade_sequence(token)
        if place is None:
            raise bad_field(f"invalid page_token {token!r}")
        after = place
    found = desk.store.trades(
        after=after,
        limit=request.count("page_size", MOST_ACTIVITIES, MOST_ACTIVITIES),
        newest_first=newest_first,
    )
    return 200, [wire.trade_json(trade) for trade in found]


PLAIN: dict[tuple[str, str], Callable[[Desk, Request], Answer]] = {
    ("GET", "account"): account,
    ("GET", "clock"): clock,
    ("GET", "calendar"): calendar,
    ("GET", "assets"): assets,
    ("GET", "orders"): orders,
    ("POST", "orders"): submit,
    ("DELETE", "orders"): cancel_all,
    ("GET", "orders:by_client_order_id"): order_by_client_id,
    ("GET", "positions"): positions,
    ("DELETE", "positions"): close_all_positions,
}
NAMED: dict[tuple[str, str], Callable[[Desk, Request], Answer]] = {
    ("GET", "assets"): asset,
    ("GET", "orders"): order,
    ("DELETE", "orders"): cancel,
    ("GET", "positions"): position,
    ("DELETE", "positions"): close_position,
}


def _family_json(desk: Desk, ticket: Ticket, nested: bool) -> wire.Json:
    if not nested:
        return wire.order_json(ticket)
    return wire.order_json(ticket, desk.store.families([ticket])[ticket.order_id])


def _symbol(desk: Desk, name: str) -> str | None:
    """The symbol called `name`, by itself or by its asset id."""
    if name in desk.prices.symbols:
        return name
    return next((symbol for symbol in desk.prices.symbols if wire.asset_id(symbol) == name), None)


def _holding(desk: Desk, request: Request) -> Holding:
    held = desk.account.holdings.get(_symbol(desk, request.words[-1]) or "")
    if held is None:
        raise not_found("position does not exist")
    return held


def _position_json(desk: Desk, held: Holding) -> wire.Json:
    today_ns = start_of_day(desk.account.clock_ns)
    price = desk.price(held.symbol, desk.account.clock_ns)
    return wire.position_json(
        held,
        available=held.quantity - desk.account.held_for_orders(held.symbol),
        price=price,
        last_day=desk.prices.last_close(held.symbol, today_ns) or held.average_price,
        bought_today=held.opened_ns >= today_ns,
    )


def _part(quantity: Decimal, percentage: str) -> Decimal:
    """Whole shares that are `percentage` percent of `quantity`."""
    share = read_number("percentage", percentage)
    if share > 100:
        raise bad_field(f"percentage must be from 0 to 100, not {percentage}")
    return read_quantity(quantity * share / 100)
