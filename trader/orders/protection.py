"""The protection invariant: shares held are shares with a live stop, or with an exit on its way."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from trader.core.trading import Order, OrderType, Side
from trader.ledger.book import Trade
from trader.orders.journal import OrderJournal


def unprotected(journal: OrderJournal, live: Sequence[Order]) -> tuple[tuple[Trade, Decimal], ...]:
    """Open trades whose shares no live stop and no live exit covers, each with its due stop price.

    live  orders still open at the broker, legs included, flat
    """
    by_id = {order.order_id: order for order in live if not order.status.is_final}
    found = []
    for trade in journal.book.open_trades():
        covered = sum((order.open_quantity for order in _guards(journal, trade, by_id)), Decimal(0))
        stop = _stop_price(journal, trade)
        if covered < trade.open_quantity and stop is not None:
            found.append((trade, stop))
    return tuple(found)


def exit_waits(journal: OrderJournal, trade: Trade, live: Sequence[Order]) -> bool:
    """Whether an exit order of this trade is already on its way."""
    mine = {item.intent.client_order_id for item in journal.of_trade(trade.trade_id, "exit")}
    return any(order.client_order_id in mine and not order.status.is_final for order in live)


def _guards(journal: OrderJournal, trade: Trade, live: dict[str, Order]) -> list[Order]:
    ids = set()
    outcome = journal.outcome_of_entry(trade.trade_id)
    if outcome is not None and outcome.stop_loss_id is not None:
        ids.add(outcome.stop_loss_id)
    for item in (
        *journal.of_trade(trade.trade_id, "exit"),
        *journal.of_trade(trade.trade_id, "protection"),
    ):
        known = journal.outcomes.get(item.intent.client_order_id)
        if known is not None and known.order_id is not None:
            ids.add(known.order_id)
    return [
        live[order_id]
        for order_id in ids
        if order_id in live
        and live[order_id].side is Side.SELL
        and live[order_id].order_type in (OrderType.STOP, OrderType.MARKET)
    ]


def _stop_price(journal: OrderJournal, trade: Trade) -> Decimal | None:
    entries = journal.of_trade(trade.trade_id, "entry")
    return entries[0].intent.stop_loss_price if entries else None
