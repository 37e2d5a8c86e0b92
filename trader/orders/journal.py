"""The order journal: what was meant, what the broker said, what was filled; intent before send."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from trader.core.canonical import from_primitive
from trader.core.costs import Costs
from trader.core.trading import Fill, Order, OrderIntent, OrderType, Side
from trader.ledger.book import Book, BookedFill, FillReason
from trader.ledger.store import Ledger

Purpose = Literal["entry", "exit", "protection"]
MEANING: dict[Purpose, FillReason] = {
    "entry": "entry",
    "exit": "signal",
    "protection": "protection",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JournaledIntent:
    """An intent with the trade it serves and the slot it comes from."""

    intent: OrderIntent
    trade_id: str
    purpose: Purpose
    as_of: datetime  # of the slot that wanted it


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderOutcome:
    """What became of a sent intent.

    Leg ids are the broker's; refusal holds its words when it said no.
    """

    client_order_id: str
    order_id: str | None
    take_profit_id: str | None = None
    stop_loss_id: str | None = None
    refusal: str = ""


class OrderJournal:
    """Intents, outcomes and fills in the ledger, with the book they add up to.

    Everything is rebuilt from the ledger on opening, so a new process knows what the last one knew.
    """

    def __init__(self, ledger: Ledger, *, cash: Decimal, costs: Costs) -> None:
        self._ledger, self._costs = ledger, costs
        self.book = Book(cash=cash)
        self.intents: dict[str, JournaledIntent] = {}
        self.outcomes: dict[str, OrderOutcome] = {}
        self.last_execution_id: str | None = None
        self._meaning: dict[str, tuple[str, FillReason, OrderType]] = {}
        for record in ledger.records("intent", "order", "fill"):
            if record.kind == "intent":
                self._know_intent(from_primitive(JournaledIntent, record.body))
            elif record.kind == "order":
                self._know_outcome(from_primitive(OrderOutcome, record.body))
            else:
                self._know_fill(from_primitive(BookedFill, record.body))

    def write_intent(self, journaled: JournaledIntent) -> None:
        """Record what is about to be sent; durable when this returns."""
        self._ledger.append("intent", journaled.intent.client_order_id, journaled)
        self._know_intent(journaled)

    def write_order(self, order: Order) -> None:
        """Record that the broker took the order, with the ids of its legs."""
        stop = next((leg.order_id for leg in order.legs if leg.order_type is OrderType.STOP), None)
        target = next(
            (leg.order_id for leg in order.legs if leg.order_type is OrderType.LIMIT), None
        )
        outcome = OrderOutcome(
            client_order_id=order.client_order_id,
            order_id=order.order_id,
            take_profit_id=target,
            stop_loss_id=stop,
        )
        self._ledger.append("order", order.client_order_id, outcome)
        self._know_outcome(outcome)

    def write_refusal(self, client_order_id: str, words: str) -> None:
        """Record that the broker said no."""
        outcome = OrderOutcome(client_order_id=client_order_id, order_id=None, refusal=words)
        self._ledger.append("order", client_order_id, outcome)
        self._know_outcome(outcome)

    def write_fill(self, fill: Fill) -> BookedFill:
        """Book a fill under its execution id; the ledger refuses a second booking of that id."""
        trade_id, reason, order_type = self._meaning.get(
            fill.order_id, (f"unknown-{fill.order_id}", "other", OrderType.MARKET)
        )
        booked = BookedFill(
            fill=fill, trade_id=trade_id, reason=reason, slippage=self._slippage(fill, order_type)
        )
        with self._ledger.transaction():
            self._ledger.append("fill", fill.execution_id, booked)
            self._know_fill(booked)
        return booked

    def unresolved(self) -> tuple[JournaledIntent, ...]:
        """Intents whose outcome is not known: perhaps sent, perhaps not."""
        return tuple(
            journaled for key, journaled in self.intents.items() if key not in self.outcomes
        )

    def outcome_of_entry(self, trade_id: str) -> OrderOutcome | None:
        """What became of the order that opened a trade."""
        return next(
            (
                self.outcomes[key]
                for key, journaled in self.intents.items()
                if journaled.trade_id == trade_id
                and journaled.purpose == "entry"
                and key in self.outcomes
            ),
            None,
        )

    def order_ids(self, trade_id: str) -> tuple[str, ...]:
        """Broker's ids of every order and leg that serves one trade."""
        return tuple(
            order_id for order_id, (owner, _, _) in self._meaning.items() if owner == trade_id
        )

    def of_trade(self, trade_id: str, purpose: Purpose) -> tuple[JournaledIntent, ...]:
        """Intents that serve one trade, oldest first."""
        return tuple(
            journaled
            for journaled in self.intents.values()
            if journaled.trade_id == trade_id and journaled.purpose == purpose
        )

    def _slippage(self, fill: Fill, order_type: OrderType) -> Decimal:
        if order_type is OrderType.LIMIT:
            return Decimal(0)  # a limit is never filled beyond its price
        rate = Decimal(str(self._costs.slippage))
        market = fill.price / (1 + rate if fill.side is Side.BUY else 1 - rate)
        return (abs(fill.price - market) * fill.quantity).quantize(Decimal("0.0001"))

    def _know_intent(self, journaled: JournaledIntent) -> None:
        self.intents[journaled.intent.client_order_id] = journaled

    def _know_outcome(self, outcome: OrderOutcome) -> None:
        self.outcomes[outcome.client_order_id] = outcome
        journaled = self.intents[outcome.client_order_id]
        reason = MEANING[journaled.purpose]
        if outcome.order_id is not None:
            self._meaning[outcome.order_id] = (
                journaled.trade_id,
                reason,
                journaled.intent.order_type,
            )
        if outcome.stop_loss_id is not None:
            self._meaning[outcome.stop_loss_id] = (journaled.trade_id, "stop", OrderType.STOP)
        if outcome.take_profit_id is not None:
            self._meaning[outcome.take_profit_id] = (journaled.trade_id, "target", OrderType.LIMIT)

    def _know_fill(self, booked: BookedFill) -> None:
        self.book.apply(booked)
        self.last_execution_id = booked.fill.execution_id
