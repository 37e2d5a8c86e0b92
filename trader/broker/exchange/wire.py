"""Alpaca's JSON of everything the exchange shows; money and quantities are strings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from functools import lru_cache

from trader.broker.exchange.order_form import INTENTS
from trader.broker.exchange.records import Holding, Ticket, Trade, derived_id
from trader.broker.exchange.refusal import plain
from trader.core.clock import SessionCalendar
from trader.core.market import EXCHANGE_TIME_ZONE, from_ns, to_ns
from trader.core.trading import OrderStatus

ASSET_CLASS = "us_equity"
RATIO_STEP = Decimal("1e-9")

Json = dict[str, object]


def order_json(ticket: Ticket, legs: Sequence[Ticket] | None = None) -> Json:
    """An order; `legs` is None where Alpaca would not nest them."""
    filled = ticket.status is OrderStatus.FILLED
    return {
        "id": ticket.order_id,
        "client_order_id": ticket.client_order_id,
        "created_at": moment(ticket.submitted_ns),
        "updated_at": moment(ticket.updated_ns),
        "submitted_at": moment(ticket.submitted_ns),
        "filled_at": _closed_at(ticket, OrderStatus.FILLED),
        "expired_at": _closed_at(ticket, OrderStatus.EXPIRED),
        "expires_at": moment(ticket.expires_ns),
        "canceled_at": _closed_at(ticket, OrderStatus.CANCELED),
        "failed_at": _closed_at(ticket, OrderStatus.REJECTED),
        "replaced_at": None,
        "replaced_by": None,
        "replaces": None,
        "asset_id": asset_id(ticket.symbol),
        "symbol": ticket.symbol,
        "asset_class": ASSET_CLASS,
        "notional": None,
        "qty": plain(ticket.quantity),
        "filled_qty": plain(ticket.quantity) if filled else "0",
        "filled_avg_price": _maybe(ticket.filled_price),
        "order_class": ticket.order_class.value,
        "order_type": ticket.order_type.value,
        "type": ticket.order_type.value,
        "side": ticket.side.value,
        "position_intent": INTENTS[ticket.side],
        "time_in_force": ticket.time_in_force.value,
        "limit_price": _maybe(ticket.limit_price),
        "stop_price": _maybe(ticket.stop_price),
        "status": ticket.status.value,
        "extended_hours": False,
        "legs": [order_json(leg) for leg in legs] if legs else None,
        "trail_percent": None,
        "trail_price": None,
        "hwm": None,
        "reject_reason": ticket.reason or None,
    }


def position_json(
    holding: Holding, *, available: Decimal, price: Decimal, last_day: Decimal, bought_today: bool
) -> Json:
    """A position marked at `price`; `last_day` is the last close of the day before."""
    base = holding.average_price if bought_today else last_day
    cost = holding.quantity * holding.average_price
    return {
        "asset_id": asset_id(holding.symbol),
        "symbol": holding.symbol,
        "exchange": "",
        "asset_class": ASSET_CLASS,
        "asset_marginable": False,
        "qty": plain(holding.quantity),
        "qty_available": plain(available),
        "avg_entry_price": plain(holding.average_price),
        "side": "long",
        "market_value": plain(holding.quantity * price),
        "cost_basis": plain(cost),
        "unrealized_pl": plain(holding.quantity * price - cost),
        "unrealized_plpc": _change(price, holding.average_price),
        "unrealized_intraday_pl": plain(holding.quantity * (price - base)),
        "unrealized_intraday_plpc": _change(price, base),
        "current_price": plain(price),
        "lastday_price": plain(last_day),
        "change_today": _change(price, last_day),
    }


def account_json(
    *, cash: Decimal, equity: Decimal, last_equity: Decimal, buying_power: Decimal, created_ns: int
) -> Json:
    """The one account: cash only, no margin."""
    invested = plain(equity - cash)
    return {
        "id": str(derived_id("account", 1)),
        "account_number": "PAEMBEDDED",
        "status": "ACTIVE",
        "currency": "USD",
        "cash": plain(cash),
        "equity": plain(equity),
        "portfolio_value": plain(equity),
        "last_equity": plain(last_equity),
        "long_market_value": invested,
        "short_market_value": "0",
        "position_market_value": invested,
        "buying_power": plain(buying_power),
        "regt_buying_power": plain(buying_power),
        "non_marginable_buying_power": plain(buying_power),
        "initial_margin": "0",
        "maintenance_margin": "0",
        "multiplier": "1",
        "shorting_enabled": False,
        "trading_blocked": False,
        "transfers_blocked": False,
        "account_blocked": False,
        "trade_suspended_by_user": False,
        "created_at": moment(created_ns),
    }


def asset_json(symbol: str) -> Json:
    """A symbol of the data as a tradable asset, whole shares only."""
    return {
        "id": asset_id(symbol),
        "class": ASSET_CLASS,
        "exchange": "",
        "symbol": symbol,
        "name": symbol,
        "status": "active",
        "tradable": True,
        "marginable": False,
        "shortable": False,
        "easy_to_borrow": False,
        "fractionable": False,
        "attributes": [],
    }


def clock_json(now_ns: int, calendar: SessionCalendar) -> Json:
    """Market time and the next opening and closing, with New York's offset."""
    now = from_ns(now_ns)
    session = calendar.at_or_after(now.astimezone(EXCHANGE_TIME_ZONE).date())
    if calendar.close(session) <= now:
        session = calendar.next(session)
    is_open = calendar.open(session) <= now
    following = calendar.next(session) if is_open else session
    return {
        "timestamp": now.astimezone(EXCHANGE_TIME_ZONE).isoformat(),
        "is_open": is_open,
        "next_open": calendar.open(following).astimezone(EXCHANGE_TIME_ZONE).isoformat(),
        "next_close": calendar.close(session).astimezone(EXCHANGE_TIME_ZONE).isoformat(),
    }


def calendar_json(calendar: SessionCalendar, first: date, last: date) -> list[Json]:
    """Sessions with New York times of day."""
    return [
        {
            "date": session.isoformat(),
            "open": f"{calendar.open(session).astimezone(EXCHANGE_TIME_ZONE):%H:%M}",
            "close": f"{calendar.close(session).astimezone(EXCHANGE_TIME_ZONE):%H:%M}",
        }
        for session in calendar.between(first, last)
    ]


def trade_json(trade: Trade) -> Json:
    """A FILL activity; `fee` is the embedded exchange's own field."""
    return {
        "id": trade.execution_id,
        "activity_type": "FILL",
        "transaction_time": moment(trade.filled_ns),
        "type": "fill",
        "order_status": "filled",
        "order_id": trade.order_id,
        "symbol": trade.symbol,
        "side": trade.side.value,
        "qty": plain(trade.quantity),
        "cum_qty": plain(trade.quantity),
        "leaves_qty": "0",
        "price": plain(trade.price),
        "fee": plain(trade.fee),
    }


@lru_cache(maxsize=4096)
def asset_id(symbol: str) -> str:
    """The UUID of a symbol."""
    return str(derived_id("asset", symbol))


def session_close_after(now_ns: int, calendar: SessionCalendar) -> int:
    """Closing time of the session that is open at `now_ns` or comes next, UTC nanoseconds."""
    now = from_ns(now_ns)
    session = calendar.at_or_after(now.astimezone(EXCHANGE_TIME_ZONE).date())
    if calendar.close(session) <= now:
        session = calendar.next(session)
    return to_ns(calendar.close(session))


@lru_cache(maxsize=4096)
def moment(ns: int | None) -> str | None:
    """A moment as RFC 3339 in UTC."""
    return None if ns is None else from_ns(ns).isoformat().replace("+00:00", "Z")


def _closed_at(ticket: Ticket, status: OrderStatus) -> str | None:
    return moment(ticket.closed_ns) if ticket.status is status else None


def _maybe(value: Decimal | None) -> str | None:
    return None if value is None else plain(value)


def _change(price: Decimal, base: Decimal) -> str:
    return plain((price / base - 1).quantize(RATIO_STEP)) if base else "0"
