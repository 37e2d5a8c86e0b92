"""Alpaca's REST paths and what each of them does."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_DOWN, Decimal

from trader.broker.exchange import market_data, market_facts, wire
from trader.broker.exchange.activities import activities
from trader.broker.exchange.body import read_number, read_object, read_quantity
from trader.broker.exchange.desk import Desk
from trader.broker.exchange.order_form import read_form
from trader.broker.exchange.portfolio_history import portfolio_history
from trader.broker.exchange.prices import start_of_day
from trader.broker.exchange.records import Holding, Ticket
from trader.broker.exchange.refusal import (
    RefusalError,
    bad_data_request,
    bad_field,
    forbidden,
    not_found,
    not_offered,
    plain,
)
from trader.broker.exchange.replacement import read_replacement
from trader.broker.exchange.request import Request
from trader.core.instruments import is_crypto
from trader.core.trading import Side

Answer = tuple[int, object]
Handler = Callable[[Desk, Request], Answer]
MOST_ORDERS, USUAL_ORDERS = 500, 50
SMALLEST_PART = Decimal("1e-9")


def answer(desk: Desk, request: Request) -> Answer:
    """HTTP status and JSON; refusals become their status and error body."""
    try:
        return _handler(request)(desk, request)
    except RefusalError as refusal:
        return refusal.status, refusal.body


def _handler(request: Request) -> Handler:
    match (request.method, *request.words):
        case ("GET" | "POST" | "DELETE" as method, "v2", path) if (method, path) in PLAIN:
            return PLAIN[method, path]
        case (method, "v2", "account", *path) if (method, *path) in OF_ACCOUNT:
            return OF_ACCOUNT[method, *path]
        case ("GET", "v2", "account", "activities", _):
            return activities
        case ("GET", "v2", "assets", _, _):  # BTC/USD has a slash
            return asset
        case ("GET" | "DELETE" | "PATCH" as method, "v2", path, _) if (method, path) in NAMED:
            return NAMED[method, path]
        case ("GET", "v2", "positions", _, _):
            raise not_found("position does not exist")
        case ("GET", *_):
            data = market_data.handler(request.words) or market_facts.handler(request.words)
            if data is not None:
                return _of_data(data)
    raise not_found(f"endpoint not found: {request.method} /{'/'.join(request.words)}")


def _of_data(handler: Callable[[Desk, Request], wire.Json]) -> Handler:
    """A path of the data host, whose refusals name no code."""

    def tell(desk: Desk, request: Request) -> Answer:
        try:
            return 200, handler(desk, request)
        except RefusalError as refusal:
            if refusal.status == 422:
                raise bad_data_request(str(refusal)) from refusal
            raise

    return tell


def account(desk: Desk, request: Request) -> Answer:
    """GET /v2/account."""
    request.only()
    return 200, wire.account_json(
        cash=desk.account.cash,
        equity=desk.equity(),
        last_equity=desk.last_equity(),
        buying_power=desk.account.buying_power(),
        created_ns=desk.store.begun_ns(),
        standing=desk.store.postings.standing(),
        blocked=desk.account.blocked,
    )


def configuration(desk: Desk, request: Request) -> Answer:
    """GET /v2/account/configurations."""
    request.only()
    return 200, wire.configuration_json(desk.store.postings.standing())


def configure(desk: Desk, request: Request) -> Answer:
    """PATCH /v2/account/configurations: suspend_trade and fractional_trading."""
    request.only()
    standing = desk.store.postings.standing()
    now = wire.configuration_json(standing)
    wanted = {name: value for name, value in read_object(request.body).items() if value is not None}
    for name, value in wanted.items():
        if name not in now:
            raise not_offered(f"the account configuration {name}")
        if name in ("suspend_trade", "fractional_trading"):
            if not isinstance(value, bool):
                raise bad_field(f"{name} must be true or false, not {value!r}")
        elif value != now[name]:
            raise not_offered(f"{name} {value!r}")
    changed = replace(
        standing,
        suspended=wanted.get("suspend_trade", standing.suspended),
        fractional=wanted.get("fractional_trading", standing.fractional),
    )
    desk.store.postings.stand(changed)
    return 200, wire.configuration_json(changed)


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
    """GET /v2/assets?status=&asset_class=&exchange=&attributes=; all are active."""
    request.only("status", "asset_class", "exchange", "attributes")
    wanted = {
        name: value
        for name, value in (
            ("class", request.query.get("asset_class")),
            ("exchange", request.query.get("exchange")),
            ("status", request.query.get("status")),
        )
        if value not in (None, "all")
    }
    found = [wire.asset_json(symbol) for symbol in sorted(desk.prices.symbols)]
    if request.query.get("attributes"):
        return 200, []  # no asset here has any
    return 200, [one for one in found if wanted.items() <= one.items()]


def asset(desk: Desk, request: Request) -> Answer:
    """GET /v2/assets/{symbol or id}."""
    request.only()
    name = "/".join(request.words[2:])
    symbol = _symbol(desk, name)
    if symbol is None:
        raise not_found(f"asset not found for {name}")
    return 200, wire.asset_json(symbol)


def submit(desk: Desk, request: Request) -> Answer:
    """POST /v2/orders."""
    request.only()
    form = read_form(request.body)
    _check_standing(desk, fractional=form.is_fractional)
    head, legs = desk.submit(form)
    return 200, wire.order_json(head, legs)


def replace_order(desk: Desk, request: Request) -> Answer:
    """PATCH /v2/orders/{id}: the order that takes its place."""
    request.only()
    order_id = request.order_id()
    change = read_replacement(request.body, desk.ticket(order_id).symbol)
    return 200, wire.order_json(desk.replace(order_id, change))


def orders(desk: Desk, request: Request) -> Answer:
    """GET /v2/orders; nested=true shows legs under their parent, which is open while a leg is.

    A list that is not nested leaves out the legs that are `held`.
    """
    request.only(
        *("status", "limit", "after", "until", "direction", "nested", "symbols", "side"),
        *("asset_class", "after_order_id", "before_order_id"),
    )
    symbols = request.query.get("symbols")
    nested = request.flag("nested")
    asset_class = request.choice("asset_class", "all", wire.ASSET_CLASS, wire.COIN_CLASS)
    found = desk.store.listed(
        status=request.choice("status", "open", "closed", "all"),
        limit=request.count("limit", USUAL_ORDERS, MOST_ORDERS),
        after=request.moment("after"),
        until=request.moment("until"),
        direction={"desc": -1, "asc": 1}[request.choice("direction", "desc", "asc")],
        nested=nested,
        symbols=json.dumps(symbols.split(",")) if symbols else None,
        side=request.choice("side", "buy", "sell") if "side" in request.query else None,
        coins=None if asset_class == "all" else asset_class == wire.COIN_CLASS,
        later=_sequence(desk, request, "after_order_id"),
        earlier=_sequence(desk, request, "before_order_id"),
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
    if len(request.query) > 1:
        raise bad_field("qty and percentage cannot be given together")
    held = _holding(desk, request)
    quantity = held.quantity
    if "qty" in request.query:
        quantity = read_quantity(request.query["qty"])
    elif "percentage" in request.query:
        quantity = _part(held.quantity, request.query["percentage"])
    _check_standing(desk)
    return 200, wire.order_json(desk.close_position(held.symbol, quantity))


def close_all_positions(desk: Desk, request: Request) -> Answer:
    """DELETE /v2/positions?cancel_orders=; one answer per position."""
    request.only("cancel_orders")
    if request.flag("cancel_orders"):
        desk.cancel_all()
    _check_standing(desk)
    answers = []
    for held in tuple(desk.account.holdings.values()):
        try:
            sold = wire.order_json(desk.close_position(held.symbol, held.quantity))
            answers.append({"symbol": held.symbol, "status": 200, "body": sold})
        except RefusalError as refusal:
            answers.append({"symbol": held.symbol, "status": refusal.status, "body": refusal.body})
    return 207, answers


PLAIN: dict[tuple[str, str], Handler] = {
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
OF_ACCOUNT: dict[tuple[str, ...], Handler] = {
    ("GET", "configurations"): configuration,
    ("PATCH", "configurations"): configure,
    ("GET", "activities"): activities,
    ("GET", "portfolio", "history"): portfolio_history,
}
NAMED: dict[tuple[str, str], Handler] = {
    ("GET", "assets"): asset,
    ("GET", "orders"): order,
    ("DELETE", "orders"): cancel,
    ("PATCH", "orders"): replace_order,
    ("GET", "positions"): position,
    ("DELETE", "positions"): close_position,
}


def _family_json(desk: Desk, ticket: Ticket, nested: bool) -> wire.Json:
    if not nested:
        return wire.order_json(ticket)
    return wire.order_json(ticket, desk.store.families([ticket])[ticket.order_id])


def _check_standing(desk: Desk, *, fractional: bool = False) -> None:
    """The owner may have said that nothing new is ordered."""
    standing = desk.store.postings.standing()
    if standing.suspended:
        raise forbidden("new orders are rejected by user request")
    if fractional and not standing.fractional:
        raise forbidden("fractional trading is switched off in the account configurations")


def _sequence(desk: Desk, request: Request, name: str) -> int | None:
    """Where the order that a parameter names stands in the order of arrival."""
    if not request.query.get(name):
        return None
    found = desk.store.ticket(request.query[name])
    if found is None:
        raise bad_field(f"{name} {request.query[name]!r} is not an order")
    return found.sequence


def _symbol(desk: Desk, name: str) -> str | None:
    """The symbol called `name`, by itself, by its asset id or, of a coin, without its slash."""
    if name in desk.prices.symbols:
        return name
    spellings = ((symbol, wire.asset_id(symbol)) for symbol in desk.prices.symbols)
    return next(
        (
            symbol
            for symbol, known_id in spellings
            if name == known_id or (is_crypto(symbol) and name == symbol.replace("/", ""))
        ),
        None,
    )


def _holding(desk: Desk, request: Request) -> Holding:
    held = desk.account.holdings.get(_symbol(desk, request.words[-1]) or "")
    if held is None:
        raise not_found("position does not exist")
    return held


def _position_json(desk: Desk, held: Holding) -> wire.Json:
    """A position; of what was there the day before and of what came today the oldest is sold."""
    now_ns = desk.account.clock_ns
    today_ns = start_of_day(now_ns)
    last_day = desk.prices.last_close(held.symbol, today_ns) or held.average_price
    for split in desk.prices.splits(held.symbol):
        if today_ns < split.at_ns <= now_ns:
            last_day = last_day * split.ratio.denominator / split.ratio.numerator
    today = [one for one in desk.store.trades_since(today_ns) if one.symbol == held.symbol]
    bought = [trade for trade in today if trade.side is Side.BUY]
    shares = sum((trade.quantity for trade in bought), Decimal(0))
    fresh = min(shares, held.quantity)
    cost = sum((trade.quantity * trade.price for trade in bought), Decimal(0))
    paid = cost * fresh / shares if shares else Decimal(0)
    return wire.position_json(
        held,
        available=held.quantity - desk.account.held_for_orders(held.symbol),
        price=desk.price(held.symbol, now_ns),
        last_day=last_day,
        today_cost=(held.quantity - fresh) * last_day + paid,
    )


def _part(quantity: Decimal, percentage: str) -> Decimal:
    """What `percentage` percent of `quantity` are, nine decimals."""
    share = read_number("percentage", percentage)
    if share > 100:
        raise bad_field(f"percentage must be from 0 to 100, not {percentage}")
    part = (quantity * share / 100).quantize(SMALLEST_PART, rounding=ROUND_DOWN)
    return read_quantity(plain(part))
