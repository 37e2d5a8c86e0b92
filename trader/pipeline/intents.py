"""From an approved verdict to an order, and what waiting orders may still cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal

from trader.core.canonical import sha256_of
from trader.core.decision import Candidate, Debate, RiskDecision, Verdict
from trader.core.instruments import is_crypto
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
from trader.orders.entries import JournaledIntent
from trader.risk.gate import CASH_COLLAR

COIN_STEP = Decimal("1e-9")  # USD, of coins below one dollar


def order_intent(candidate: Candidate, debate: Debate, risk: RiskDecision) -> OrderIntent:
    """The order that an approved verdict becomes: a market buy, its stop, its target if any.

    Whole shares carry both as legs. Alpaca takes no legs for parts of a share, which live for a
    day, nor for coins, which live until canceled: their stop is placed once they are bought, and
    they are left when a close has reached the target. The client order id is derived from the
    verdict: the same decision can never become two orders.
    """
    verdict, signal = debate.verdict, candidate.signal
    stop, target = exit_levels(signal.symbol, verdict)
    digest = sha256_of([verdict.verdict_id, signal.signal_id])[:10]
    name = signal.symbol.replace("/", "")
    coin = is_crypto(signal.symbol)
    simple = OrderIntent(
        client_order_id=f"tr-{signal.as_of:%Y%m%d}-{name}-{digest}-e",
        symbol=signal.symbol,
        side=Side.BUY,
        quantity=risk.quantity,
        order_type=OrderType.MARKET,
        time_in_force=TimeInForce.GTC if coin else TimeInForce.DAY,
    )
    if coin or risk.quantity != risk.quantity.to_integral_value():
        return simple
    return replace(
        simple,
        order_class=OrderClass.BRACKET if target is not None else OrderClass.OTO,
        time_in_force=TimeInForce.GTC,  # the legs inherit it; a DAY stop would end at the close
        take_profit_price=target,
        stop_loss_price=stop,
    )


def exit_levels(symbol: str, verdict: Verdict) -> tuple[Decimal, Decimal | None]:
    """Stop and target at which a trade of this verdict is left, USD, on prices that are quoted.

    ValueError without a stop: nothing is bought without one.
    """
    if verdict.stop_price is None:
        raise ValueError(f"verdict {verdict.verdict_id} has no stop; nothing is bought without one")
    target = verdict.target_price
    return (
        _quoted(symbol, verdict.stop_price),
        None if target is None else _quoted(symbol, target),
    )


def _quoted(symbol: str, price: float) -> Decimal:
    if is_crypto(symbol) and price < 1:
        return money(price).quantize(COIN_STEP, rounding=ROUND_FLOOR)
    return tick_down(price)


def reserved(order: Order, close: float | None) -> Decimal:
    """USD that an open buy may still cost, at its limit or a collar above the close."""
    if order.side is not Side.BUY:
        return Decimal(0)
    market = money(close) * CASH_COLLAR if close is not None else Decimal(0)
    return order.open_quantity * (order.limit_price or market)


def reserved_by_symbol(
    orders: Sequence[Order],
    closes: Mapping[str, float],
    doubtful: Sequence[JournaledIntent] = (),
) -> dict[str, Decimal]:
    """USD that open buys may still cost, by symbol; `closes` in USD per share.

    doubtful  intents that perhaps are orders
    """
    found: dict[str, Decimal] = {}
    for order in orders:
        cost = reserved(order, closes.get(order.symbol))
        if cost:
            found[order.symbol] = found.get(order.symbol, Decimal(0)) + cost
    for item in doubtful:
        symbol, close = item.intent.symbol, closes.get(item.intent.symbol)
        if item.intent.side is Side.BUY and close is not None:
            cost = item.intent.quantity * money(close) * CASH_COLLAR
            found[symbol] = found.get(symbol, Decimal(0)) + cost
    return found
