"""What trading costs, defined once for the exchange, the gate, the debate and every baseline."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from trader.core.trading import Side, fill_price, money

BPS = Decimal("0.0001")
CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Slippage and fees of one side of a trade.

    slippage_bps          how far a market or stop order trades away from the price, basis points
    fee_bps               fee on the traded notional, basis points
    commission_per_order  USD per filled order, never part of the share price
    """

    slippage_bps: float = 5.0
    fee_bps: float = 0.0
    commission_per_order: float = 0.0

    @property
    def slippage(self) -> float:
        """Slippage as a fraction of the price."""
        return self.slippage_bps / 10_000

    @property
    def fee_rate(self) -> float:
        """Fee as a fraction of the notional."""
        return self.fee_bps / 10_000

    def slipped(self, price: float | Decimal, side: Side) -> Decimal:
        """Fill price of a market or stop order that trades at `price`, moved against the trader."""
        away = money(self.slippage_bps) * BPS
        return fill_price(money(price) * (1 + away if side is Side.BUY else 1 - away))

    def fee(self, notional: Decimal) -> Decimal:
        """USD charged for one order that traded `notional`, to the cent."""
        exact = abs(notional) * money(self.fee_bps) * BPS + money(self.commission_per_order)
        return exact.quantize(CENT, rounding=ROUND_HALF_EVEN)

    def expected_entry(self, close: float) -> float:
        """USD per share a market buy decided at `close` is expected to pay, slippage included."""
        return close * (1.0 + self.slippage)

    def reward_risk_ratio(self, *, entry: float, stop: float, target: float) -> float:
        """Reward over risk per share, after costs on both sides.

        entry   USD per share really paid, slippage included
        stop    sell stop; fills with slippage
        target  sell limit; fills at its price
        returns reward / risk; 0.0 when the levels are not stop < entry < target

        Commissions per order are left out: they depend on the size, which is not known yet.
        """
        if not 0.0 < stop < entry < target:
            return 0.0
        paid = entry * (1.0 + self.fee_rate)
        reward = target * (1.0 - self.fee_rate) - paid
        risk = paid - stop * (1.0 - self.slippage) * (1.0 - self.fee_rate)
        return max(0.0, reward / risk)
