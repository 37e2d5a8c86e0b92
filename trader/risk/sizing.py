"""How many shares: risk per trade over the distance to the stop."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext

from trader.core.costs import CENT, Costs
from trader.core.errors import OrderRefusedError
from trader.core.instruments import is_crypto
from trader.core.trading import money

FREE = Costs(slippage_bps=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lot:
    """What may be ordered: multiples of `step` shares that are worth `least` USD or more."""

    step: Decimal
    least: Decimal


WHOLE = Lot(step=Decimal(1), least=Decimal(0))
PARTS = Lot(step=Decimal("1e-9"), least=Decimal(1))  # Alpaca's: nine decimals, one dollar
COINS = Lot(step=Decimal("1e-9"), least=Decimal(10))


def lot_of(symbol: str, *, fractional: bool) -> Lot:
    """What may be ordered of `symbol`; fractional: whether parts of a share are wanted."""
    if is_crypto(symbol):
        return COINS
    return PARTS if fractional else WHOLE


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


def affordable_shares(
    *, budget: Decimal, price: Decimal, costs: Costs = FREE, lot: Lot = WHOLE
) -> Decimal:
    """Shares that `budget` USD pays for at `price` USD with fees, rounded down to the lot's step.

    0 when they would be worth less than the least that may be ordered.
    """
    if price <= 0 or not price.is_finite():
        raise OrderRefusedError(f"price is {price}; a size needs it finite and above 0")
    with localcontext() as exact:
        exact.prec = 60  # nine decimals of a share times a float's digits is more than the usual 28
        left = max(budget - money(costs.commission_per_order), Decimal(0))
        steps = left / (price * (1 + money(costs.fee_rate)) * lot.step)
        shares = steps.to_integral_value(rounding=ROUND_FLOOR) * lot.step
        # a fee is charged to the cent, so the last share may be half a cent too dear
        while shares > 0 and shares * price + costs.fee(shares * price) > budget:
            cent = (CENT / price / lot.step).to_integral_value(rounding=ROUND_CEILING)
            shares -= cent * lot.step
        if shares <= 0 or shares * price < lot.least:
            return Decimal(0)
        whole = shares.to_integral_value()
        return whole if shares == whole else shares.normalize()
