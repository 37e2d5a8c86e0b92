"""What the exchange books: tickets (its orders), holdings and trades; times are UTC nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from uuid import NAMESPACE_URL, UUID, uuid5

from trader.core.trading import OrderClass, OrderStatus, OrderType, Side, TimeInForce

NAMESPACE = uuid5(NAMESPACE_URL, "http://paper.invalid")


def derived_id(kind: str, name: object) -> UUID:
    """The UUID that belongs to `name`, the same in every run; nothing here is random."""
    return uuid5(NAMESPACE, f"{kind}:{name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """An order in the exchange's books; the legs of a family share `family_id`, its parent's id.

    live      whether it may trade; the legs of an entry wait until the entry is filled
    reserved  USD an open buy keeps from being spent twice
    reason    why it ended, where that is not obvious
    """

    sequence: int
    order_id: str
    client_order_id: str
    family_id: str
    symbol: str
    side: Side
    quantity: Decimal
    order_type: OrderType
    order_class: OrderClass
    time_in_force: TimeInForce
    limit_price: Decimal | None
    stop_price: Decimal | None
    status: OrderStatus
    live: bool
    reserved: Decimal
    submitted_ns: int
    updated_ns: int
    expires_ns: int | None  # None: good till canceled
    closed_ns: int | None = None
    filled_price: Decimal | None = None
    reason: str = ""

    @property
    def is_open(self) -> bool:
        """Whether something can still happen to it."""
        return not self.status.is_final

    @property
    def is_leg(self) -> bool:
        """Whether it hangs under another order."""
        return self.family_id != self.order_id

    @property
    def is_entry_with_legs(self) -> bool:
        """Whether its fill brings legs to life."""
        return not self.is_leg and self.order_class in (OrderClass.BRACKET, OrderClass.OTO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Whole shares of one symbol, never short."""

    symbol: str
    quantity: Decimal
    average_price: Decimal  # USD per share, fees not included
    opened_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    """One complete fill."""

    sequence: int
    execution_id: str
    order_id: str
    symbol: str
    side: Side
    quantity: Decimal
    price: Decimal  # USD per share, slippage included
    fee: Decimal  # USD
    filled_ns: int
