"""The order journal: what was meant, what the broker said, what was filled; intent before send."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from trader.core.canonical import from_primitive
from trader.core.costs import Costs
from trader.core.trading import (
    Fill,
    Order,
    OrderStatus,
    OrderType,
    Side,
    tick_down,
)
from trader.ledger.book import IMPORTED, BookedFill, FillReason
from trader.ledger.store import Ledger, Record
from trader.orders.account_journal import ACCOUNT_READERS, NOTHING, AccountJournal
from trader.orders.entries import (
    MEANING,
    JournaledIntent,
    LateFill,
    OrderOutcome,
    Purpose,
    read_intent,
    read_outcome,
)

STOPS = (OrderType.STOP, OrderType.STOP_LIMIT, OrderType.TRAILING_STOP)
ESTIMATE = "@"  # between order id and cumulative quantity in the id of an estimated fill


class Meaning(NamedTuple):
    """What an order of the broker is for."""

    trade_id: str
    reason: FillReason
    order_type: OrderType


@dataclass(slots=True)
class Tally:
    """Shares of one order: booked by whatever means, and seen in the broker's own fills."""

    trade_id: str = ""
    booked: Decimal = NOTHING
    booked_value: Decimal = NOTHING
    booked_fee: Decimal = NOTHING
    seen: Decimal = NOTHING
    seen_value: Decimal = NOTHING
    seen_fee: Decimal = NOTHING


class OrderJournal(AccountJournal):
    """Intents, outcomes and fills in the ledger, with the book they add up to.

    Everything is rebuilt from the ledger on opening, so a new process knows what the last one knew.
    """

    def __init__(self, ledger: Ledger, *, cash: Decimal, costs: Costs) -> None:
        super().__init__(ledger, cash=cash)
        self._costs = costs
        self.intents: dict[str, JournaledIntent] = {}
        self.outcomes: dict[str, OrderOutcome] = {}
        self.estimates = 0  # fills booked without the broker's own
        self._unresolved: dict[str, JournaledIntent] = {}
        self._unsettled: dict[str, None] = {}  # client ids of orders that may still change
        self._outcome_counts: dict[str, int] = {}
        self._of_trade: dict[str, list[JournaledIntent]] = {}
        self._meaning: dict[str, Meaning] = {}  # by the broker's order id
        self._order_ids: dict[str, list[str]] = {}  # by trade
        self._intent_of: dict[str, str] = {}  # the broker's order id -> client id of the intent
        self._tallies: dict[str, Tally] = {}
        self._executions: set[str] = set()
        for record in ledger.records(*READERS):
            READERS[record.kind](self, record)

    # ---- intents and what became of them

    def write_intent(self, journaled: JournaledIntent) -> None:
        """Record what is about to be sent; durable when this returns."""
        self.ledger.append("intent", journaled.intent.client_order_id, journaled)
        self._know_intent(journaled)

    def write_order(self, order: Order) -> bool:
        """Record that the broker has the order, with the ids of its legs; whether that is news."""
        key = order.client_order_id
        known = self.outcomes.get(key)
        if known is None or known.order_id is None:
            rejected = order.status is OrderStatus.REJECTED
            known = OrderOutcome(
                client_order_id=key,
                order_id=order.order_id,
                refusal="the broker took the order and rejected it" if rejected else "",
                settled=rejected,
            )
        for leg in order.legs:
            if leg.order_type in STOPS and known.stop_loss_id is None:
                known = replace(known, stop_loss_id=leg.order_id)
            elif leg.order_type is OrderType.LIMIT and known.take_profit_id is None:
                known = replace(known, take_profit_id=leg.order_id)
        return self._write_outcome(known)

    def write_replacement(self, old_id: str, new_id: str) -> None:
        """Record that the order `new_id` took the place of one of ours."""
        known = self.outcomes[self._intent_of[old_id]]
        if known.order_id == old_id:
            known = replace(known, order_id=new_id)
        elif known.stop_loss_id == old_id:
            known = replace(known, stop_loss_id=new_id)
        elif known.take_profit_id == old_id:
            known = replace(known, take_profit_id=new_id)
        self._write_outcome(known)

    def write_refusal(self, client_order_id: str, words: str) -> None:
        """Record that the broker said no, or why the order was never sent."""
        self._write_outcome(
            OrderOutcome(client_order_id=client_order_id, order_id=None, refusal=words)
        )

    def settle(self, client_order_id: str) -> None:
        """Record that an order and its legs are final and that all their shares are booked."""
        self._write_outcome(replace(self.outcomes[client_order_id], settled=True))

    def _write_outcome(self, outcome: OrderOutcome) -> bool:
        key = outcome.client_order_id
        if self.outcomes.get(key) == outcome:
            return False
        number = self._outcome_counts.get(key, 0) + 1
        self.ledger.append("order", key if number == 1 else f"{key}#{number}", outcome)
        self._know_outcome(outcome)
        return True

    def unresolved(self) -> tuple[JournaledIntent, ...]:
        """Intents whose outcome is not known: perhaps sent, perhaps not."""
        return tuple(self._unresolved.values())

    def unsettled(self) -> tuple[str, ...]:
        """Client ids of the orders that may still change, oldest first."""
        return tuple(self._unsettled)

    def symbols_waiting(self) -> tuple[str, ...]:
        """Symbols of the orders that may still change, those in doubt included."""
        return tuple(
            self.intents[key].intent.symbol for key in (*self._unsettled, *self._unresolved)
        )

    def intent_of(self, order: Order) -> str | None:
        """Client id of the intent that an order, or the order of a leg, belongs to; None: not ours.

        An order is ours by its client id even where we never heard that the broker took it.
        """
        if order.client_order_id in self.intents:
            return order.client_order_id
        return self._intent_of.get(order.order_id)

    def outcome_of_entry(self, trade_id: str) -> OrderOutcome | None:
        """What became of the order that opened a trade."""
        for journaled in self.of_trade(trade_id, "entry"):
            found = self.outcomes.get(journaled.intent.client_order_id)
            if found is not None:
                return found
        return None

    def order_ids(self, trade_id: str) -> tuple[str, ...]:
        """Broker's ids of every order and leg that serves one trade."""
        return tuple(self._order_ids.get(trade_id, ()))

    def of_trade(self, trade_id: str, *purposes: Purpose) -> tuple[JournaledIntent, ...]:
        """Intents that serve one trade, oldest first."""
        return tuple(
            journaled
            for journaled in self._of_trade.get(trade_id, ())
            if journaled.purpose in purposes
        )

    def levels(self, trade_id: str) -> tuple[Decimal | None, Decimal | None]:
        """Stop and target that a trade was entered with, USD per share, splits since included."""
        for journaled in self.of_trade(trade_id, "entry"):
            scale = self._scales.get(trade_id)
            plan = (
                journaled.stop_price or journaled.intent.stop_loss_price,
                journaled.target_price or journaled.intent.take_profit_price,
            )
            if scale is None:
                return plan
            stop, target = (price and tick_down(price * scale) for price in plan)
            return stop, target
        return None, None

    def was_split(self, trade_id: str) -> bool:
        """Whether the shares of a trade were split since it was entered."""
        return trade_id in self._scales

    # ---- fills

    def meaning(self, fill: Fill) -> Meaning | None:
        """What a fill is for; None for an order that is not ours or not known yet."""
        if fill.order_id in self.strangers:
            return Meaning(f"{IMPORTED}{fill.order_id}", "other", OrderType.MARKET)
        known = self._meaning.get(fill.order_id)
        journaled = self.intents.get(fill.client_order_id)
        if known is None and journaled is not None:  # its order's answer has not come yet
            reason = MEANING[journaled.purpose]
            return Meaning(journaled.trade_id, reason, journaled.intent.order_type)
        return known

    def has_booked(self, execution_id: str) -> bool:
        """Whether the broker's own fill with this id was recorded."""
        return execution_id in self._executions

    def booked_quantity(self, order_id: str) -> Decimal:
        """Shares of an order booked so far, by fills and by estimates."""
        tally = self._tallies.get(order_id)
        return tally.booked if tally else NOTHING

    def write_fill(self, fill: Fill) -> tuple[BookedFill, ...]:
        """Book a fill once, under its execution id; the parts that were new.

        Shares that an estimate booked before are not booked again. A sale of more than its trade
        holds goes on with the other shares of the symbol; what nobody holds is imported first.
        """
        if fill.execution_id in self._executions:
            return ()
        tally = self._tallies.get(fill.order_id, Tally())
        late = min(fill.quantity, max(NOTHING, tally.booked - tally.seen))
        fresh = fill.quantity - late
        with self.ledger.transaction():
            booked: tuple[BookedFill, ...] = ()
            if fresh:
                fee = fill.fee if not late else NOTHING
                booked = self._write_parts(replace(fill, quantity=fresh, fee=fee))
            if late:
                self._write_late(replace(fill, quantity=late))
        return booked

    def write_estimate(self, order: Order, at: datetime) -> tuple[BookedFill, ...]:
        """Book the shares that an order shows as filled and no fill has told of.

        Their price makes the order's average right; the id is derived from order and quantity, so
        that it can be booked once only.
        """
        tally = self._tallies.get(order.order_id, Tally())
        missing = order.filled_quantity - tally.booked
        average = order.filled_average_price
        if missing <= 0 or average is None:
            return ()
        price = (average * order.filled_quantity - tally.booked_value) / missing
        fill = Fill(
            execution_id=f"{order.order_id}{ESTIMATE}{order.filled_quantity.normalize():f}",
            order_id=order.order_id,
            client_order_id=order.client_order_id,
            symbol=order.symbol,
            side=order.side,
            quantity=missing,
            price=price if price > 0 else average,
            fee=NOTHING,
            filled_at=order.filled_at or at,
        )
        with self.ledger.transaction():
            return self._write_parts(fill)

    def _write_parts(self, fill: Fill) -> tuple[BookedFill, ...]:
        meaning = self.meaning(fill) or Meaning(
            f"{IMPORTED}{fill.order_id}", "other", OrderType.MARKET
        )
        parts = [(meaning.trade_id, fill.quantity)]
        if fill.side is Side.SELL:
            parts = self._sellers(fill, meaning.trade_id)
        written = []
        for number, (trade_id, quantity) in enumerate(parts, start=1):
            part = replace(fill, quantity=quantity, fee=fill.fee if number == 1 else NOTHING)
            booked = BookedFill(
                fill=part,
                trade_id=trade_id,
                reason=meaning.reason,
                slippage=self._slippage(part, meaning.order_type),
            )
            name = fill.execution_id if number == 1 else f"{fill.execution_id}/{number}"
            self.ledger.append("fill", name, booked)
            self._know_fill(booked)
            written.append(booked)
        return tuple(written)

    def _sellers(self, fill: Fill, trade_id: str) -> list[tuple[str, Decimal]]:
        held = sum((one.open_quantity for one in self.book.open_trades(fill.symbol)), NOTHING)
        if held < fill.quantity:  # shares that came without our knowledge
            self._write_import(fill.symbol, fill.quantity - held, fill.price, fill.filled_at)
        return [
            (trade.trade_id, part)
            for trade, part in self.book.sellers(fill.symbol, fill.quantity, first=trade_id)
        ]

    def _write_late(self, fill: Fill) -> None:
        tally = self._tallies[fill.order_id]
        value = fee = NOTHING
        if tally.seen + fill.quantity == tally.booked:  # now the true price of all is known
            value = tally.seen_value + fill.quantity * fill.price - tally.booked_value
            fee = tally.seen_fee + fill.fee - tally.booked_fee
        late = LateFill(fill=fill, trade_id=tally.trade_id, value=value, fee=fee)
        self.ledger.append("late_fill", fill.execution_id, late)
        self._know_late(late)

    def _slippage(self, fill: Fill, order_type: OrderType) -> Decimal:
        if order_type is OrderType.LIMIT:
            return NOTHING  # a limit is never filled beyond its price
        rate = Decimal(str(self._costs.slippage))
        market = fill.price / (1 + rate if fill.side is Side.BUY else 1 - rate)
        return (abs(fill.price - market) * fill.quantity).quantize(Decimal("0.0001"))

    # ---- rebuilding

    def _know_intent(self, journaled: JournaledIntent) -> None:
        key = journaled.intent.client_order_id
        self.intents[key] = self._unresolved[key] = journaled
        self._of_trade.setdefault(journaled.trade_id, []).append(journaled)

    def _know_outcome(self, outcome: OrderOutcome) -> None:
        key = outcome.client_order_id
        self.outcomes[key] = outcome
        self._outcome_counts[key] = self._outcome_counts.get(key, 0) + 1
        self._unresolved.pop(key, None)
        self._unsettled.pop(key, None)
        if outcome.order_id is not None and not outcome.settled:
            self._unsettled[key] = None
        journaled = self.intents[key]
        kinds: tuple[tuple[str | None, FillReason, OrderType], ...] = (
            (outcome.order_id, MEANING[journaled.purpose], journaled.intent.order_type),
            (outcome.stop_loss_id, "stop", OrderType.STOP),
            (outcome.take_profit_id, "target", OrderType.LIMIT),
        )
        for order_id, reason, order_type in kinds:
            if order_id is not None and order_id not in self._intent_of:
                self._meaning[order_id] = Meaning(journaled.trade_id, reason, order_type)
                self._intent_of[order_id] = key
                self.strangers.discard(order_id)  # one that took the place of ours
                self._order_ids.setdefault(journaled.trade_id, []).append(order_id)

    def _know_fill(self, booked: BookedFill) -> None:
        self.book.apply(booked)
        fill = booked.fill
        tally = self._tallies.setdefault(fill.order_id, Tally())
        tally.trade_id = booked.trade_id
        tally.booked += fill.quantity
        tally.booked_value += fill.quantity * fill.price
        tally.booked_fee += fill.fee
        if fill.execution_id.startswith(f"{fill.order_id}{ESTIMATE}"):
            self.estimates += 1
        else:
            self._know_execution(fill, tally)

    def _know_late(self, late: LateFill) -> None:
        tally = self._tallies[late.fill.order_id]
        self._know_execution(late.fill, tally)
        tally.booked_value += late.value
        tally.booked_fee += late.fee
        self.book.correct(late.trade_id, late.fill.side, value=late.value, fee=late.fee)

    def _know_execution(self, fill: Fill, tally: Tally) -> None:
        tally.seen += fill.quantity
        tally.seen_value += fill.quantity * fill.price
        tally.seen_fee += fill.fee
        self._executions.add(fill.execution_id)
        self.last_execution_id = fill.execution_id


READERS: dict[str, Callable[[Any, Record], None]] = {
    **ACCOUNT_READERS,
    "intent": lambda own, record: own._know_intent(read_intent(record.body)),
    "order": lambda own, record: own._know_outcome(read_outcome(record.body)),
    "fill": lambda own, record: own._know_fill(from_primitive(BookedFill, record.body)),
    "late_fill": lambda own, record: own._know_late(from_primitive(LateFill, record.body)),
}
