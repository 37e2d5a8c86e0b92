"""What the order journal writes down: intents, outcomes, late fills, imports, adjustments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from trader.core.canonical import from_primitive
from trader.core.trading import Fill, OrderIntent
from trader.ledger.book import FillReason

Purpose = Literal["entry", "exit", "target", "protection", "emergency", "close"]
MEANING: dict[Purpose, FillReason] = {
    "entry": "entry",
    "exit": "signal",
    "target": "target",
    "protection": "stop",
    "emergency": "protection",
    "close": "other",
}
SALES: tuple[Purpose, ...] = (
    "exit",
    "target",
    "emergency",
    "close",
)  # purposes of market orders that end a trade


@dataclass(frozen=True, slots=True, kw_only=True)
class JournaledIntent:
    """An intent with the trade it serves and the slot it comes from.

    stop_price, target_price  where an entry is to be left, also where its order cannot say so
    reason                    why shares are sold, where that is not the strategy's own exit
    """

    intent: OrderIntent
    trade_id: str
    purpose: Purpose
    as_of: datetime  # of the slot that wanted it
    stop_price: Decimal | None = None
    target_price: Decimal | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderOutcome:
    """What became of a sent intent; a later outcome of the same intent takes its place.

    order_id, leg ids  the broker's; those of the order that took another's place, where one did
    refusal            the broker's words when it said no, or why it was not sent
    settled            the order and its legs are final and every share of theirs is booked
    """

    client_order_id: str
    order_id: str | None
    take_profit_id: str | None = None
    stop_loss_id: str | None = None
    refusal: str = ""
    settled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LateFill:
    """A fill whose shares had been booked by an estimate before it came: it moves no shares.

    value, fee  USD that the true fills of the order are worth, or cost, more than the estimate
    """

    fill: Fill
    trade_id: str
    value: Decimal
    fee: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """Shares, or an order, that the account has without an order of ours.

    price     USD per share at which shares are entered; no cash moves
    order_id  the broker's, for an order; its shares come with its fills
    """

    trade_id: str
    symbol: str
    quantity: Decimal
    price: Decimal
    order_id: str | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """The book made equal to the broker's, because a person acknowledged that they differ.

    quantities  symbol -> shares added (negative: taken); prices: USD per share of those added
    cash        USD added
    transfer    the part of it that no shares were traded for: paid in, negative when paid out
    """

    at: datetime
    reason: str
    quantities: Mapping[str, Decimal]
    prices: Mapping[str, Decimal]
    cash: Decimal
    transfer: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountBegun:
    """The broker's account that a ledger belongs to, and what had happened in it before.

    execution_id, activity_id  the newest ones then; what is older is in the account's cash already
    """

    account_id: str
    at: datetime
    execution_id: str | None
    activity_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """A comparison with the broker that changed or found something.

    adopted      client order ids of orders that appeared after they had been given up
    estimated    ids of fills booked from what an order shows, without the broker's own fill
    late         execution ids of fills that came after their estimate
    imported     trades and orders that are not ours
    activities   ids of what moved cash or shares besides fills
    differences  symbol or "cash" -> (the broker's number, the ledger's); empty when they agree
    problem      why nothing may be bought; empty when something may
    """

    at: datetime
    adopted: tuple[str, ...]
    estimated: tuple[str, ...]
    late: tuple[str, ...]
    imported: tuple[str, ...]
    activities: tuple[str, ...]
    differences: Mapping[str, tuple[Decimal, Decimal]]
    problem: str


def read_intent(body: Mapping[str, Any]) -> JournaledIntent:
    """An intent from its record; older records have no levels besides those of their order."""
    absent = {"stop_price": None, "target_price": None, "reason": ""}
    return from_primitive(JournaledIntent, {**absent, **body})


def read_outcome(body: Mapping[str, Any]) -> OrderOutcome:
    """An outcome from its record; older records do not say that an order is settled."""
    return from_primitive(OrderOutcome, {"settled": False, **body})
