"""What the exchange books: tickets (its orders), holdings, trades and events; times are UTC ns."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from uuid import NAMESPACE_URL, UUID, uuid5

from trader.core.trading import OrderClass, OrderStatus, OrderType, Side, TimeInForce

NAMESPACE = uuid5(NAMESPACE_URL, "http://paper.invalid")
AVERAGE_STEP = Decimal("1e-9")
NOTHING = Decimal(0)


def derived_id(kind: str, name: object) -> UUID:
    """The UUID that belongs to `name`, the same in every run; nothing here is random."""
    return uuid5(NAMESPACE, f"{kind}:{name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """An order in the exchange's books; the legs of a family share `family_id`, its parent's id.

    quantity         shares; of an order by amount an estimate until its first fill
    stop_price       of a trailing stop where it stands now
    live             whether it may trade; the legs of an entry wait until the entry is filled
    reserved         USD an open buy keeps from being spent twice
    filled_notional  USD traded so far, `fees` not included
    notional         USD of an order by amount
    trail_percent    percent of the mark, 5 for 5 %
    high_water_mark  best price since a trailing stop came in: the highest of a sell, the lowest
                     of a buy
    triggered_ns     when its stop price was reached; it is a market or limit order from then on
    reason           why it ended, where that is not obvious
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
    filled_quantity: Decimal = NOTHING
    filled_notional: Decimal = NOTHING
    fees: Decimal = NOTHING
    notional: Decimal | None = None
    trail_price: Decimal | None = None
    trail_percent: Decimal | None = None
    high_water_mark: Decimal | None = None
    triggered_ns: int | None = None
    extended_hours: bool = False
    replaces: str | None = None  # id of the order whose place it took
    replaced_by: str | None = None  # id of the order that took its place
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

    @property
    def remaining(self) -> Decimal:
        """Shares that have not traded yet."""
        return self.quantity - self.filled_quantity

    @property
    def filled_price(self) -> Decimal | None:
        """Average price of what traded, USD per share; None before the first fill."""
        if not self.filled_quantity:
            return None
        average = self.filled_notional / self.filled_quantity
        return average.quantize(AVERAGE_STEP, rounding=ROUND_HALF_EVEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Shares of one symbol, never short."""

    symbol: str
    quantity: Decimal
    average_price: Decimal  # USD per share, fees not included
    opened_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    """One fill; `cumulative` and `remaining` are the order's shares after it."""

    sequence: int
    execution_id: str
    order_id: str
    symbol: str
    side: Side
    quantity: Decimal
    price: Decimal  # USD per share, slippage included
    fee: Decimal  # USD
    filled_ns: int
    cumulative: Decimal
    remaining: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change of an order, stored with it in the same transaction.

    name               Alpaca's word of the trade update: accepted (it waits for the opening), new,
                       fill, partial_fill, canceled, expired, rejected, replaced, restated (the
                       exchange changed its quantity or prices by itself)
    ticket             the order as it then was
    execution_id, price, quantity, position_quantity   of a fill; shares held after it
    """

    sequence: int
    name: str
    at_ns: int
    ticket: Ticket
    execution_id: str | None = None
    price: Decimal | None = None
    quantity: Decimal | None = None
    position_quantity: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One call that changed the market, with the market's time when it came.

    method  an HTTP method, or a word of the exchange's own: BEGIN (path: its cash), ADVANCE, DEED
    """

    clock_ns: int
    method: str
    path: str
    body: bytes | None
