"""From an approved verdict to an order, and what waiting orders may still cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from trader.core.canonical import sha256_of
from trader.core.decision import Candidate, Debate, RiskDecision
from trader.core.trading import (
    Order,
    OrderClass,
    OrderIntent,
    OrderType,
    Side,
    TimeInForce,
    money,
    tick_down,
)
from trader.risk.gate import CASH_COLLAR


def order_intent(candidate: Candidate, debate: Debate, risk: RiskDecision) -> OrderIntent:
    """The order that an approved verdict becomes: a market buy, its stop, its target if any.

    The client order id is derived from the verdict: the same decision can never become two orders.
    """
    verdict, signal = debate.verdict, candidate.signal
    if verdict.stop_price is None:
        raise ValueError(f"verdict {verdict.verdict_id} has no stop; nothing is bought without one")
    target = verdict.target_price
    digest = sha256_of([verdict.verdict_id, signal.signal_id])[:10]
    return OrderIntent(
        client_order_id=f"tr-{signal.as_of:%Y%m%d}-{signal.symbol}-{digest}-e",
        symbol=signal.symbol,
        side=Side.BUY,
        quantity=Decimal(risk.quantity),
        order_type=OrderType.MARKET,
        order_class=OrderClass.BRACKET if target is not None else OrderClass.OTO,
        time_in_force=TimeInForce.GTC,  # the legs inherit it; a DAY stop would end at the close
        take_profit_price=tick_down(target) if target is not None else None,
        stop_loss_price=tick_down(verdict.stop_price),
    )


def reserved(order: Order, close: float | None) -> Decimal:
    """USD that an open buy may still cost, at its limit or a collar above the close."""
    if order.side is not Side.BUY:
        return Decimal(0)
    market = money(close) * CASH_COLLAR if close is not None else Decimal(0)
    return order.open_quantity * (order.limit_price or market)


def reserved_by_symbol(orders: Sequence[Order], closes: Mapping[str, float]) -> dict[str, Decimal]:
    """USD that open buys may still cost, by symbol; `closes` in USD per share."""
    found: dict[str, Decimal] = {}
    for order in orders:
        cost = reserved(order, closes.get(order.symbol))
        if cost:
            found[order.symbol] = found.get(order.symbol, Decimal(0)) + cost
    return found
