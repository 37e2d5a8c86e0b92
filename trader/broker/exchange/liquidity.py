"""How much of an order trades on one bar: everything, a part of it, or a share of the volume."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal

from trader.broker.exchange.records import Ticket
from trader.core.trading import TimeInForce, money

SMALLEST_PART, LARGEST_PART = Decimal("0.1"), Decimal("0.9")
PARTS_OF_A_SHARE = Decimal("1e-9")


@dataclass(frozen=True, slots=True, kw_only=True)
class Liquidity:
    """What the market takes at once; by default everything.

    seed           of the draws; each order has its own, whatever else happens
    partial_fills  fraction of the orders that trade in two parts, on two bars; Alpaca's paper
                   market does so with 0.1
    volume_share   most of a bar's volume that all orders together may trade, a fraction; None: all

    ValueError for a fraction outside 0 to 1.
    """

    seed: int = 0
    partial_fills: float = 0.0
    volume_share: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("partial_fills", self.partial_fills), ("volume_share", self.share)):
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{name} must be a fraction from 0 to 1, not {value}")

    @property
    def share(self) -> float:
        """`volume_share`, 1 where there is no cap."""
        return 1.0 if self.volume_share is None else self.volume_share

    def of_bar(self, volume: float) -> Decimal | None:
        """Shares that may trade on a bar of `volume` shares; None: any number."""
        if self.volume_share is None:
            return None
        return money(max(0.0, volume)) * money(self.volume_share)

    def part(self, ticket: Ticket, left: Decimal | None) -> Decimal:
        """Shares of `ticket` that trade now, of the `left` that the bar still has; may be 0."""
        wanted = ticket.remaining
        if not self.partial_fills and left is None:
            return wanted
        part = wanted
        whole = ticket.time_in_force is TimeInForce.FOK
        if self.partial_fills and not ticket.filled_quantity and not whole:
            part = self._first_part(ticket)
        if left is not None and left < part:
            part = _rounded(left, ticket)
        return Decimal(0) if whole and part < wanted else part

    def _first_part(self, ticket: Ticket) -> Decimal:
        chance, share = self._draws(ticket.order_id)
        if chance >= money(self.partial_fills):
            return ticket.quantity
        part = ticket.quantity * (SMALLEST_PART + (LARGEST_PART - SMALLEST_PART) * share)
        return _rounded(part, ticket) or ticket.quantity

    def _draws(self, order_id: str) -> tuple[Decimal, Decimal]:
        """Two numbers in [0, 1) that belong to the seed and the order."""
        digest = hashlib.sha256(f"{self.seed}:{order_id}".encode()).digest()
        first, second = (int.from_bytes(digest[at : at + 8]) for at in (0, 8))
        return Decimal(first) / 2**64, Decimal(second) / 2**64


def _rounded(quantity: Decimal, ticket: Ticket) -> Decimal:
    """Whole shares of an order for whole shares, else nine decimals; rounded down."""
    is_whole = ticket.quantity == ticket.quantity.to_integral_value()
    step = Decimal(1) if is_whole else PARTS_OF_A_SHARE
    return quantity.quantize(step, rounding=ROUND_FLOOR)
