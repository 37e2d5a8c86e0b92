"""Where a trailing stop stands: its mark, and the stop price that follows it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from trader.broker.exchange.prices import PricedBar, booked
from trader.broker.exchange.records import Ticket
from trader.core.trading import Side


def trailing_stop_price(
    *,
    symbol: str,
    side: Side,
    mark: Decimal,
    trail_price: Decimal | None,
    trail_percent: Decimal | None,
) -> Decimal:
    """Stop price of a trailing stop, USD per share: below the mark of a sell, above that of a buy.

    mark           best price since the order came in
    trail_price    distance in USD, or None
    trail_percent  distance in percent of the mark, used where trail_price is None
    """
    distance = trail_price
    if distance is None:
        distance = mark * (trail_percent or Decimal(0)) / 100
    return booked(mark - distance if side is Side.SELL else mark + distance, symbol)


def advanced(ticket: Ticket, bar: PricedBar) -> Ticket | None:
    """The order after its mark has seen the bar, or None when the mark stays."""
    mark = ticket.high_water_mark
    assert mark is not None  # every trailing stop has one from the start
    best = bar.high if ticket.side is Side.SELL else bar.low
    if best <= mark if ticket.side is Side.SELL else best >= mark:
        return None
    return replace(
        ticket,
        high_water_mark=best,
        stop_price=trailing_stop_price(
            symbol=ticket.symbol,
            side=ticket.side,
            mark=best,
            trail_price=ticket.trail_price,
            trail_percent=ticket.trail_percent,
        ),
        updated_ns=bar.known_ns,
    )
