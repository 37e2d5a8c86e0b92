"""What the broker shows becomes what the journal knows: orders, their followers, their fills."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trader.core.ports import Broker
from trader.core.trading import Fill, Order, OrderStatus, Side
from trader.ledger.book import BookedFill
from trader.orders.journal import OrderJournal

LOOKUPS = 3  # an order may be invisible for a while after it was taken
PAUSE_SECONDS = 0.5  # between two looks
LONGEST_CHAIN = 20  # replacements of one order that are followed in one look


def no_wait(seconds: float) -> None:
    """The pause of a market whose time does not pass by itself."""


@dataclass(slots=True, kw_only=True)
class News:
    """What a look at the broker brought besides the usual."""

    resolved: list[str] = field(default_factory=list)
    adopted: list[str] = field(default_factory=list)
    estimated: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    imported: list[str] = field(default_factory=list)
    activities: list[str] = field(default_factory=list)


class Tracker:
    """Reads orders and fills of the broker into the journal; sends nothing.

    Every method raises EndpointError when the broker cannot be asked.
    wait  called with seconds between two looks at the same order
    """

    def __init__(
        self, broker: Broker, journal: OrderJournal, wait: Callable[[float], object] = no_wait
    ) -> None:
        self._broker, self._journal, self._wait = broker, journal, wait
        self.news = News()
        self.waits_for = ""  # why not every fill that was told is booked

    def fresh_news(self) -> News:
        """What was new since the last call."""
        told, self.news = self.news, News()
        return told

    def collect_fills(self) -> tuple[BookedFill, ...]:
        """Book every fill that the broker reports after the last one booked.

        A sale by an order that nobody knows yet, in a symbol with an order of ours that the broker
        does not show at the moment, waits with all later fills until it does: it may be a leg's.
        """
        booked: list[BookedFill] = []
        self.waits_for = ""
        told = self._broker.fills(after=self._journal.last_execution_id)
        for fill in sorted(told, key=lambda one: one.filled_at):  # the last one is where to go on
            if self._journal.has_booked(fill.execution_id):
                continue
            if not self._place(fill):
                self.waits_for = f"{fill.symbol}: fills wait for an order that is in doubt"
                break
            if self._was_taken_over(fill):
                continue
            parts = self._journal.write_fill(fill)
            booked.extend(parts)
            if sum(part.fill.quantity for part in parts) != fill.quantity:
                self.news.late.append(fill.execution_id)
        return tuple(booked)

    def _place(self, fill: Fill) -> bool:
        """Learn what a fill is for, from the broker where need be; False while it is in doubt."""
        journal = self._journal
        if journal.meaning(fill) is None and fill.side is Side.SELL:
            known = [journal.intents[key] for key in journal.unsettled()]
            for item in (*journal.unresolved(), *known):
                if item.intent.symbol != fill.symbol:
                    continue
                key = item.intent.client_order_id  # is it a leg, or a follower, of this one?
                shown = self.find(key) is not None
                if journal.meaning(fill) is not None:
                    break
                if key in journal.outcomes and not shown:
                    return False
        outcome = journal.outcomes.get(fill.client_order_id)
        if fill.client_order_id in journal.intents and (outcome is None or not outcome.order_id):
            self.look_up(fill.client_order_id)  # filled before we heard that it was taken
        meaning = journal.meaning(fill)
        if meaning is not None and fill.side is Side.SELL:
            trade = journal.book.trades.get(meaning.trade_id)
            if trade is None or trade.open_quantity < fill.quantity:
                for item in journal.of_trade(meaning.trade_id, "entry"):
                    if self.find(item.intent.client_order_id) is None:
                        return False  # what it sells was bought by an order that is not shown yet
        return True

    def _was_taken_over(self, fill: Fill) -> bool:
        """Whether a fill of a stranger is in the numbers that were taken over from the broker."""
        adjusted_at = self._journal.adjusted_at
        if adjusted_at is None or fill.filled_at > adjusted_at:
            return False
        return self._journal.meaning(fill) is None or fill.order_id in self._journal.strangers

    def look_up(self, client_order_id: str) -> Order | None:
        """The order of an intent as the broker has it now, taken in; None where it has none."""
        order = self._broker.order(client_order_id)
        if order is not None:
            self.take_in([order])
        return order

    def take_in(self, trees: Iterable[Order], at: datetime | None = None) -> None:
        """Know orders of ours with their legs: what they became, what they filled.

        Entries come first, so that no sale is booked before its purchase.
        """
        for tree in sorted(trees, key=lambda order: order.side is Side.SELL):
            key = self._journal.intent_of(tree)
            if key is not None:
                self._take_in(key, tree, at or tree.submitted_at)

    def _take_in(self, key: str, tree: Order, at: datetime) -> None:
        known = self._journal.outcomes.get(key)
        if tree.client_order_id == key and (known is None or not known.settled):
            if known is None:
                self.news.resolved.append(key)
            elif known.order_id is None:
                self.news.adopted.append(key)
            self._journal.write_order(tree)
        family = self._family(tree)
        for order in family:
            self.estimate(order, at)
        if tree.client_order_id == key and all(self._is_done(order) for order in family):
            self._journal.settle(key)

    def estimate(self, order: Order, at: datetime | None = None) -> None:
        """Book what an order shows as filled and no fill has told of."""
        booked = self._journal.write_estimate(order, at or order.submitted_at)
        self.news.estimated += [part.fill.execution_id for part in booked]

    def _family(self, tree: Order) -> list[Order]:
        """The order, its legs and whatever took their places."""
        family = list(tree.with_legs())
        present = {order.order_id for order in family}
        for order in family:  # grows while it is walked
            follower = order.replaced_by
            if follower is None or len(family) > LONGEST_CHAIN:
                continue
            if follower not in present:
                found = self._broker.order_by_id(follower)
                if found is None:
                    continue
                family += found.with_legs()
                present.add(follower)
            self._journal.write_replacement(order.order_id, follower)
        return family

    def _is_done(self, order: Order) -> bool:
        if order.status is OrderStatus.REPLACED and order.replaced_by is None:
            return False  # its follower is not told yet
        booked = self._journal.booked_quantity(order.order_id)
        return order.status.is_final and booked >= order.filled_quantity

    def open_trees(self, at: datetime | None = None) -> tuple[Order, ...]:
        """Orders open at the broker now with their legs; they and new fills are taken in.

        A list may not show the newest orders yet, so those of ours that are open in the journal and
        not in the list are looked up: what is not seen would be placed, or sold, a second time.
        """
        trees = self._broker.orders()
        self.collect_fills()
        self.take_in(trees, at)
        shown = {tree.client_order_id for tree in trees}  # a follower alone tells of itself only
        absent = [self.find(key) for key in self._journal.unsettled() if key not in shown]
        return (*trees, *(tree for tree in absent if tree is not None and flat([tree])))

    def import_strangers(self, trees: Iterable[Order]) -> None:
        """Record the orders that are not ours; followers of ours have to be known before."""
        for tree in trees:
            if self._journal.intent_of(tree) is None:
                imported = self._journal.import_order(tree)
                self.news.imported += [imported] if imported else []

    def find(self, client_order_id: str) -> Order | None:
        """`look_up`, several times; None when the broker does not show the order in any."""
        for attempt in range(LOOKUPS):
            if attempt:
                self.pause()
            order = self.look_up(client_order_id)
            if order is not None:
                return order
        return None

    def pause(self) -> None:
        """Wait a moment before the next look at the same order."""
        self._wait(PAUSE_SECONDS)


def flat(trees: Sequence[Order]) -> tuple[Order, ...]:
    """Orders and their legs that can still trade."""
    return tuple(order for tree in trees for order in tree.with_legs() if not order.status.is_final)
