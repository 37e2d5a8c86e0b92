"""Alpaca's JSON of everything the exchange shows; money and quantities are strings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from functools import lru_cache

from trader.broker.exchange.order_form import INTENTS
from trader.broker.exchange.postings import Standing
from trader.broker.exchange.records import Holding, Ticket, Trade, derived_id
from trader.broker.exchange.refusal import plain
from trader.core.clock import SessionCalendar
from trader.core.instruments import instrument_of, is_crypto
from trader.core.market import EXCHANGE_TIME_ZONE, from_ns
from trader.core.trading import OrderStatus

ASSET_CLASS, COIN_CLASS = "us_equity", "crypto"
EXCHANGES = {"NASDAQ": "NASDAQ", "NYSE": "NYSE", "NYSE Arca": "ARCA"}
SMALLEST_PART = "0.000000001"
RATIO_STEP = Decimal("1e-9")

Json = dict[str, object]


def order_json(ticket: Ticket, legs: Sequence[Ticket] | None = None) -> Json:
    """An order; `legs` is None where Alpaca would not nest them.

    An order by amount has no quantity until it is final, when it is what has traded.
    """
    quantity: Decimal | None = ticket.quantity
    if ticket.notional is not None:
        quantity = None if ticket.is_open else ticket.filled_quantity
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
        "replaced_at": _closed_at(ticket, OrderStatus.REPLACED),
        "replaced_by": ticket.replaced_by,
        "replaces": ticket.replaces,
        "asset_id": asset_id(ticket.symbol),
        "symbol": ticket.symbol,
        "asset_class": asset_class(ticket.symbol),
        "notional": _maybe(ticket.notional),
        "qty": _maybe(quantity),
        "filled_qty": plain(ticket.filled_quantity),
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
        "extended_hours": ticket.extended_hours,
        "legs": [order_json(leg) for leg in legs] if legs else None,
        "trail_percent": _maybe(ticket.trail_percent),
        "trail_price": _maybe(ticket.trail_price),
        "hwm": _maybe(ticket.high_water_mark),
        "reject_reason": ticket.reason or None,
    }


def position_json(
    holding: Holding,
    *,
    available: Decimal,
    price: Decimal,
    last_day: Decimal,
    today_cost: Decimal,
) -> Json:
    """A position marked at `price`; a coin's symbol has no slash here, as at Alpaca.

    last_day    USD per share, the last close of the day before
    today_cost  USD: what was held then at that close, and what came today at what it cost
    """
    cost = holding.quantity * holding.average_price
    value = holding.quantity * price
    return {
        "asset_id": asset_id(holding.symbol),
        "symbol": holding.symbol.replace("/", ""),
        "exchange": exchange_of(holding.symbol),
        "asset_class": asset_class(holding.symbol),
        "asset_marginable": False,
        "qty": plain(holding.quantity),
        "qty_available": plain(available),
        "avg_entry_price": plain(holding.average_price),
        "side": "long",
        "market_value": plain(value),
        "cost_basis": plain(cost),
        "unrealized_pl": plain(value - cost),
        "unrealized_plpc": _change(price, holding.average_price),
        "unrealized_intraday_pl": plain(value - today_cost),
        "unrealized_intraday_plpc": _change(value, today_cost),
        "current_price": plain(price),
        "lastday_price": plain(last_day),
        "change_today": _change(price, last_day),
    }


def account_json(
    *,
    cash: Decimal,
    equity: Decimal,
    last_equity: Decimal,
    buying_power: Decimal,
    created_ns: int,
    standing: Standing,
    blocked: str,
) -> Json:
    """The one account: cash only, no margin."""
    invested = plain(equity - cash)
    number = "" if standing.generation == 1 else str(standing.generation)
    return {
        "id": str(derived_id("account", standing.generation)),
        "account_number": f"PAEMBEDDED{number}",
        "status": "ACTIVE",
        "crypto_status": "ACTIVE",
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
        "last_maintenance_margin": "0",
        "sma": "0",
        "accrued_fees": "0",
        "multiplier": "1",
        "shorting_enabled": False,
        "trading_blocked": bool(blocked),
        "transfers_blocked": False,
        "account_blocked": bool(blocked),
        "trade_suspended_by_user": standing.suspended,
        "created_at": moment(created_ns),
    }


def configuration_json(standing: Standing) -> Json:
    """What the owner has set; only two of these can be anything else here."""
    return {
        "fractional_trading": standing.fractional,
        "suspend_trade": standing.suspended,
        "max_margin_multiplier": "1",
        "no_shorting": True,
        "trade_confirm_email": "none",
        "ptp_no_exception_entry": False,
        "max_options_trading_level": 0,
    }


def asset_json(symbol: str) -> Json:
    """A symbol of the data as a tradable asset."""
    told: Json = {
        "id": asset_id(symbol),
        "class": asset_class(symbol),
        "exchange": exchange_of(symbol),
        "symbol": symbol,
        "name": instrument_of(symbol).name,
        "status": "active",
        "tradable": True,
        "marginable": False,
        "shortable": False,
        "easy_to_borrow": False,
        "fractionable": True,
        "attributes": [],
    }
    if is_crypto(symbol):
        steps = ("min_order_size", "min_trade_increment", "price_increment")
        told |= dict.fromkeys(steps, SMALLEST_PART)
    return told


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
    partial = trade.remaining > 0
    return {
        "id": trade.execution_id,
        "activity_type": "FILL",
        "transaction_time": moment(trade.filled_ns),
        "type": "partial_fill" if partial else "fill",
        "order_status": "partially_filled" if partial else "filled",
        "order_id": trade.order_id,
        "symbol": trade.symbol,
        "side": trade.side.value,
        "qty": plain(trade.quantity),
        "cum_qty": plain(trade.cumulative),
        "leaves_qty": plain(trade.remaining),
        "price": plain(trade.price),
        "fee": plain(trade.fee),
    }


def asset_class(symbol: str) -> str:
    """Alpaca's word for shares or for coins."""
    return COIN_CLASS if is_crypto(symbol) else ASSET_CLASS


def exchange_of(symbol: str) -> str:
    """Alpaca's word for where a symbol trades; empty where that is not known."""
    if is_crypto(symbol):
        return "CRYPTO"
    return EXCHANGES.get(instrument_of(symbol).exchange, "")


@lru_cache(maxsize=4096)
def asset_id(symbol: str) -> str:
    """The UUID of a symbol."""
    return str(derived_id("asset", symbol))


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
