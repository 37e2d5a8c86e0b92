"""At what price an order trades on a bar, in each of the steps of `matching`; None: it does not."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from trader.broker.exchange.prices import PricedBar, booked, slipped
from trader.broker.exchange.records import Ticket
from trader.core.costs import Costs
from trader.core.trading import OrderType, Side

Pricing = Callable[[Ticket, PricedBar, Costs], Decimal | None]


def pending_exit(ticket: Ticket, bar: PricedBar, costs: Costs) -> Decimal | None:
    """A market sell trades at the open."""
    if ticket.side is Side.SELL and _is_market(ticket):
        return slipped(costs, bar.open, ticket)
    return None


def gapped_exit(ticket: Ticket, bar: PricedBar, costs: Costs) -> Decimal | None:
    """A stop or target that the open has already passed trades at the open."""
    if ticket.side is not Side.SELL:
        return None
    stop = _stop_of(ticket)
    if stop is not None and bar.open <= stop:
        return slipped(costs, bar.open, ticket)
    limit = _limit_of(ticket)
    if limit is not None and bar.open >= limit:
        return booked(bar.open, ticket.symbol)
    return None


def pending_entry(ticket: Ticket, bar: PricedBar, costs: Costs) -> Decimal | None:
    """A market buy trades at the open, and a limit buy whose limit the open does not exceed."""
    if ticket.side is not Side.BUY:
        return None
    if _is_market(ticket):
        return slipped(costs, bar.open, ticket)
    limit = _limit_of(ticket)
    if limit is not None and bar.open <= limit:
        return booked(bar.open, ticket.symbol)
    return None


def gapped_entry_stop(ticket: Ticket, bar: PricedBar, costs: Costs) -> Decimal | None:
    """A buy stop that the open has already passed trades at the open, the worse price."""
    stop = _stop_of(ticket)
    if ticket.side is Side.BUY and stop is not None and bar.open >= stop:
        return slipped(costs, bar.open, ticket)
    return None


def entry_inside(ticket: Ticket, bar: PricedBar, costs: Costs) -> Decimal | None:
    """A buy stop trades at its level, a buy limit at its limit, when the bar reaches it."""
    if ticket.side is not Side.BUY:
        return None
    stop, limit = _stop_of(ticket), _limit_of(ticket)
    if stop is not None and bar.high >= stop:
        return slipped(costs, stop, ticket)
    if limit is not None and bar.low <= limit:
        return limit
    return _stop_limit_inside(ticket, bar, costs)


def protective_stop(ticket: Ticket, bar: PricedBar, costs: Costs) -> Decimal | None:
    """A sell stop trades at its level when the bar reaches it."""
    if ticket.side is not Side.SELL:
        return None
    stop = _stop_of(ticket)
    if stop is not None and bar.low <= stop:
        return slipped(costs, stop, ticket)
    return _stop_limit_inside(ticket, bar, costs)


def target(ticket: Ticket, bar: PricedBar, _: Costs) -> Decimal | None:
    """A sell limit trades at its limit when the bar reaches it."""
    limit = _limit_of(ticket)
    if ticket.side is Side.SELL and limit is not None and bar.high >= limit:
        return limit
    return None


def at_close(ticket: Ticket, bar: PricedBar, costs: Costs) -> Decimal | None:
    """An order for the close trades at it, unless its limit forbids."""
    limit = ticket.limit_price
    if limit is None:
        return slipped(costs, bar.close, ticket)
    fits = bar.close <= limit if ticket.side is Side.BUY else bar.close >= limit
    return booked(bar.close, ticket.symbol) if fits else None


AT_OPEN: tuple[Pricing, ...] = (
    pending_exit,
    gapped_exit,
    pending_entry,
    gapped_entry_stop,
    gapped_exit,
)
INSIDE: tuple[Pricing, ...] = (entry_inside, protective_stop, target)


def _stop_limit_inside(ticket: Ticket, bar: PricedBar, costs: Costs) -> Decimal | None:
    """What a stop-limit order whose stop the bar reaches trades at."""
    stop, limit = ticket.stop_price, ticket.limit_price
    if ticket.triggered_ns is not None or stop is None or limit is None:
        return None
    if ticket.side is Side.BUY:
        if bar.high < stop:
            return None
        if limit >= stop:
            return min(slipped(costs, stop, ticket), limit)
        return limit if bar.close <= limit else None
    if bar.low > stop:
        return None
    if limit <= stop:
        return max(slipped(costs, stop, ticket), limit)
    return limit if bar.close >= limit else None


def _is_market(ticket: Ticket) -> bool:
    """A market order, or a stop that was reached and has not traded whole."""
    if ticket.order_type is OrderType.MARKET:
        return True
    is_stop = ticket.order_type in (OrderType.STOP, OrderType.TRAILING_STOP)
    return is_stop and ticket.triggered_ns is not None


def _stop_of(ticket: Ticket) -> Decimal | None:
    """Level at which the order becomes a market order."""
    if ticket.triggered_ns is not None or ticket.order_type is OrderType.STOP_LIMIT:
        return None
    return ticket.stop_price


def _limit_of(ticket: Ticket) -> Decimal | None:
    """Limit of an order that is one now."""
    waits = ticket.order_type is OrderType.STOP_LIMIT and ticket.triggered_ns is None
    return None if waits else ticket.limit_price
