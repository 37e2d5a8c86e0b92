"""Orders of the simulated market: what is true of each, and how it looks."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from trader.core.trading import (
    FINAL_STATUSES,
    Order,
    OrderClass,
    OrderStatus,
    OrderType,
    Side,
    TimeInForce,
)

NOTHING = Decimal(0)


@dataclass(slots=True, eq=False)
class Ticket:
    """One order at the market; `shown` is how it looks, until it changes."""

    order_id: str
    client_order_id: str
    symbol: str
    side: Side
    quantity: Decimal
    order_type: OrderType
    order_class: OrderClass
    time_in_force: TimeInForce
    limit: Decimal | None
    stop: Decimal | None
    at: datetime
    status: OrderStatus = OrderStatus.ACCEPTED
    filled: Decimal = NOTHING
    value: Decimal = NOTHING
    filled_at: datetime | None = None
    parent: Ticket | None = None
    legs: list[Ticket] = field(default_factory=list)
    replaced_by: str | None = None
    is_denied: bool = False  # the broker took it and said no
    unseen: int = 0  # lookups that will not find it
    cancel_in: int | None = None  # looks until it is canceled
    shown: Order | None = None

    @property
    def is_open(self) -> bool:
        return self.status not in FINAL_STATUSES

    @property
    def open_quantity(self) -> Decimal:
        return self.quantity - self.filled if self.is_open else NOTHING

    @property
    def is_armed(self) -> bool:
        """A leg trades once its entry is filled to its end."""
        return self.parent is None or self.parent.status is OrderStatus.FILLED

    def show(self) -> Order:
        """The order with its legs, as the broker shows it."""
        if self.shown is None:
            self.shown = Order(
                order_id=self.order_id,
                client_order_id=self.client_order_id,
                symbol=self.symbol,
                side=self.side,
                quantity=self.quantity,
                filled_quantity=self.filled,
                filled_average_price=self.value / self.filled if self.filled else None,
                order_type=self.order_type,
                order_class=self.order_class,
                time_in_force=self.time_in_force,
                status=self.status,
                limit_price=self.limit,
                stop_price=self.stop,
                submitted_at=self.at,
                filled_at=self.filled_at,
                legs=tuple(leg.show() for leg in self.legs),
                replaced_by=self.replaced_by,
            )
        return self.shown

    def changed(self) -> None:
        """It looks different now, and so does its parent."""
        self.shown = None
        if self.parent is not None:
            self.parent.shown = None
