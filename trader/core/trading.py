"""Orders, fills, positions and money. Booked money is Decimal; this is where floats cross over."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, InvalidOperation
from enum import StrEnum

TICK_FROM_ONE_DOLLAR = Decimal("0.01")
TICK_BELOW_ONE_DOLLAR = Decimal("0.0001")
PRICE_STEP = Decimal("0.0001")  # fills may fall between ticks; nothing finer is kept


class Side(StrEnum):
    """Which way an order trades."""

    BUY = "buy"
    SELL = "sell"


class OrderType(StrEnum):
    """How an order is priced."""

    MARKET = "market"
    LIMIT = "limit"
    STOP = "stop"
    STOP_LIMIT = "stop_limit"
    TRAILING_STOP = "trailing_stop"


class OrderClass(StrEnum):
    """How orders hang together.

    simple: alone; oto: entry with stop; bracket: entry with stop and target; oco: stop or target.
    """

    SIMPLE = "simple"
    OTO = "oto"
    BRACKET = "bracket"
    OCO = "oco"


class TimeInForce(StrEnum):
    """How long an order lives: a session, until canceled, or only at one moment."""

    DAY = "day"
    GTC = "gtc"
    OPG = "opg"  # at the opening
    CLS = "cls"  # at the close
    IOC = "ioc"  # at once, what is left is canceled
    FOK = "fok"  # at once and whole, or not at all


class OrderStatus(StrEnum):
    """Alpaca's states of an order."""

    NEW = "new"
    ACCEPTED = "accepted"
    PENDING_NEW = "pending_new"
    PARTIALLY_FILLED = "partially_filled"
    FILLED = "filled"
    DONE_FOR_DAY = "done_for_day"
    CANCELED = "canceled"
    EXPIRED = "expired"
    REPLACED = "replaced"
    PENDING_CANCEL = "pending_cancel"
    PENDING_REPLACE = "pending_replace"
    PENDING_REVIEW = "pending_review"
    ACCEPTED_FOR_BIDDING = "accepted_for_bidding"
    STOPPED = "stopped"
    REJECTED = "rejected"
    SUSPENDED = "suspended"
    CALCULATED = "calculated"
    HELD = "held"

    @property
    def is_final(self) -> bool:
        """Whether nothing more can happen to the order."""
        return self in FINAL_STATUSES


FINAL_STATUSES = frozenset(
    {
        OrderStatus.FILLED,
        OrderStatus.CANCELED,
        OrderStatus.EXPIRED,
        OrderStatus.REPLACED,
        OrderStatus.REJECTED,
    }
)


def money(value: float | int | str | Decimal) -> Decimal:
    """The Decimal a finite number is written as; ValueError for NaN, infinity or no number."""
    try:
        amount = value if isinstance(value, Decimal) else Decimal(str(value))
    except InvalidOperation as exc:
        raise ValueError(f"{value!r} is not an amount of money") from exc
    if not amount.is_finite():
        raise ValueError(f"{value!r} is not an amount of money")
    return amount


def tick_of(price: Decimal) -> Decimal:
    """Smallest price step of an order: 0.01 USD from 1 USD on, 0.0001 USD below (SEC Rule 612)."""
    return TICK_FROM_ONE_DOLLAR if price >= 1 else TICK_BELOW_ONE_DOLLAR


def tick_down(price: float | Decimal) -> Decimal:
    """`price` rounded down to a whole tick."""
    exact = money(price)
    return exact.quantize(tick_of(exact), rounding=ROUND_FLOOR)


def fill_price(price: float | Decimal) -> Decimal:
    """`price` rounded to the step that fills are booked in, 0.0001 USD."""
    return money(price).quantize(PRICE_STEP, rounding=ROUND_HALF_EVEN)


def whole_shares(quantity: float | Decimal) -> int:
    """Shares rounded down to whole ones; 0 for a negative number; ValueError for NaN, infinity."""
    if not math.isfinite(quantity):
        raise ValueError(f"{quantity!r} is not a number of shares")
    return max(0, math.floor(quantity))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderIntent:
    """What plain code wants done, before anyone is told.

    order_class BRACKET needs take_profit_price and stop_loss_price, OTO needs stop_loss_price, OCO
    both (and trades against a position). A STOP_LIMIT order has a stop_price and a limit_price.
    Prices in USD per share, quantity in shares, parts of a share included.
    """

    client_order_id: str  # derived from the decision, so that sending twice cannot trade twice
    symbol: str
    side: Side
    quantity: Decimal
    order_type: OrderType
    order_class: OrderClass = OrderClass.SIMPLE
    time_in_force: TimeInForce = TimeInForce.DAY
    limit_price: Decimal | None = None
    stop_price: Decimal | None = None
    take_profit_price: Decimal | None = None
    stop_loss_price: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order as the broker shows it, with its legs."""

    order_id: str
    client_order_id: str
    symbol: str
    side: Side
    quantity: Decimal
    filled_quantity: Decimal
    filled_average_price: Decimal | None
    order_type: OrderType
    order_class: OrderClass
    time_in_force: TimeInForce
    status: OrderStatus
    limit_price: Decimal | None
    stop_price: Decimal | None
    submitted_at: datetime
    filled_at: datetime | None
    legs: tuple[Order, ...] = ()
    replaced_by: str | None = None  # id of the order that took its place

    @property
    def open_quantity(self) -> Decimal:
        """Shares that can still trade; zero once the order is final."""
        return Decimal(0) if self.status.is_final else self.quantity - self.filled_quantity

    def with_legs(self) -> tuple[Order, ...]:
        """The order and its legs, flat."""
        return (self, *(order for leg in self.legs for order in leg.with_legs()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """Shares that changed hands."""

    execution_id: str
    order_id: str
    client_order_id: str
    symbol: str
    side: Side
    quantity: Decimal
    price: Decimal  # USD per share, slippage included
    fee: Decimal  # USD for the whole fill
    filled_at: datetime


class ActivityKind(StrEnum):
    """What moves cash or shares besides fills."""

    DIVIDEND = "dividend"
    SPLIT = "split"
    FEE = "fee"
    TRANSFER = "transfer"  # money paid in or out, a paper account topped up
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """Cash or shares that came or went without a fill.

    activity_id  the broker's; the same activity always has the same one
    amount       USD, negative when it was paid
    quantity     shares that were added, negative when they were taken; 0 where none moved
    """

    activity_id: str
    kind: ActivityKind
    symbol: str | None
    amount: Decimal
    quantity: Decimal
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountState:
    """The account itself: who it is, what it may do, what it is worth.

    account_id     another one means another account, for instance one that was reset
    blocked        why it may not trade; empty when it may
    last_equity    USD at the close of the session before
    """

    account_id: str
    blocked: str
    cash: Decimal
    equity: Decimal
    last_equity: Decimal
    buying_power: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketClock:
    """The broker's clock; times are UTC."""

    now: datetime
    is_open: bool
    next_open: datetime
    next_close: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Shares held of one symbol."""

    symbol: str
    quantity: Decimal
    average_entry_price: Decimal
    current_price: Decimal

    @property
    def market_value(self) -> Decimal:
        """Worth at the current price, USD."""
        return self.quantity * self.current_price


@dataclass(frozen=True, slots=True, kw_only=True)
class Portfolio:
    """The account at one moment, as the broker tells it."""

    cash: Decimal
    equity: Decimal
    positions: tuple[Position, ...]
    as_of: datetime

    def position(self, symbol: str) -> Position | None:
        """The position in `symbol`, or None when flat."""
        return next((held for held in self.positions if held.symbol == symbol), None)

    def value_of(self, symbol: str) -> Decimal:
        """Market value held in `symbol`, USD; zero when flat."""
        held = self.position(symbol)
        return held.market_value if held else Decimal(0)
