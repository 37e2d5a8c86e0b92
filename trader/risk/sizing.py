"""How many shares: risk per trade over the distance to the stop."""

from __future__ import annotations

import math
from decimal import Decimal

from trader.core.costs import Costs
from trader.core.errors import OrderRefusedError
from trader.core.trading import money, whole_shares

FREE = Costs(slippage_bps=0)


def position_weight(*, risk_per_trade: float, atr_fraction: float, atr_multiple: float) -> float:
    """Weight of a position that loses `risk_per_trade` of equity when the price falls to the stop.

    risk_per_trade  fraction of equity
    atr_fraction    ATR over price
    atr_multiple    distance to the stop in ATR
    returns         fraction of equity, risk_per_trade / (atr_fraction × atr_multiple); may exceed 1
    raises          OrderRefusedError for anything not finite and positive: an ATR of 0 would ask
                    for infinity
    """
    for name, value in (
        ("risk per trade", risk_per_trade),
        ("ATR over price", atr_fraction),
        ("ATR multiple", atr_multiple),
    ):
        if not (math.isfinite(value) and value > 0.0):
            raise OrderRefusedError(f"{name} is {value}; a size needs it finite and above 0")
    weight = risk_per_trade / (atr_fraction * atr_multiple)
    if not math.isfinite(weight):
        raise OrderRefusedError(
            f"ATR over price is {atr_fraction}; too small to size a position by"
        )
    return weight


def affordable_shares(*, budget: Decimal, price: Decimal, costs: Costs = FREE) -> int:
    """Whole shares that `budget` USD pays for at `price` USD with fees; 0 when it pays for none."""
    if price <= 0 or not price.is_finite():
        raise OrderRefusedError(f"price is {price}; a size needs it finite and above 0")
    left = budget - money(costs.commission_per_order)
    shares = whole_shares(max(left, Decimal(0)) / (price * (1 + money(costs.fee_rate))))
    # a fee is charged to the cent, so the last share may be half a cent too dear
    while shares and shares * price + costs.fee(shares * price) > budget:
        shares -= 1
    return shares
