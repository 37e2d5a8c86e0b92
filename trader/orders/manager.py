"""The order manager: everything that one account's orders need, between a slot and the broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from trader.core.errors import EndpointError, OrderRefusedError, UsageError
from trader.core.ports import Broker
from trader.core.trading import Order, OrderIntent, Side
from trader.ledger.book import BookedFill, Trade
from trader.ledger.controls import Controls
from trader.orders.entries import SALES, JournaledIntent, Purpose
from trader.orders.journal import OrderJournal
from trader.orders.protection import Protected, Protection, exit_waits
from trader.orders.reconciliation import Comparison, Reconciler
from trader.orders.sending import CALLED_OFF, Sender
from trader.orders.tracking import Tracker, no_wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What a look between two slots found and did."""

    compared: Comparison
    protected: Protected


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """A trade that a person closed. problem: why its sale was not sent; empty when it was."""

    symbol: str
    trade_id: str
    client_order_id: str
    problem: str


class OrderManager:
    """Sends intents, books fills, guards and leaves trades. One manager per account.

    Methods take the moment `as_of` of the newest slot: its entries may still be sent, older ones
    that never arrived are given up.

    controls  where a disagreement with the broker freezes trading
    wait      called with seconds between two looks at an order that is being canceled
    """

    def __init__(
        self,
        broker: Broker,
        journal: OrderJournal,
        *,
        controls: Controls | None = None,
        wait: Callable[[float], object] = no_wait,
    ) -> None:
        self._broker, self.journal = broker, journal
        self._tracker = Tracker(broker, journal, wait)
        self._sender = Sender(broker, journal, self._tracker)
        self._protection = Protection(journal, self._sender)
        self._reconciler = Reconciler(broker, journal, self._tracker, self._sender, controls)
        self._lacking: Mapping[str, Decimal] = {}  # of the newest comparison

    @property
    def problem(self) -> str:
        """Why nothing may be bought: not compared, not agreed, blocked; empty when it may."""
        return self._reconciler.problem

    # ---- sending

    def write(
        self,
        intent: OrderIntent,
        *,
        trade_id: str,
        purpose: Purpose,
        as_of: datetime,
        stop_price: Decimal | None = None,
        target_price: Decimal | None = None,
    ) -> None:
        """Write down what is about to be sent; from here on `resolve` sees to it.

        as_of                     the slot that wants it
        stop_price, target_price  where the trade is to be left, for an entry without legs
        """
        self._sender.write(
            JournaledIntent(
                intent=intent,
                trade_id=trade_id,
                purpose=purpose,
                as_of=as_of,
                stop_price=stop_price,
                target_price=target_price,
            )
        )

    def send(self, intent: OrderIntent) -> Order:
        """Send an intent that was written down, once, and write its outcome down.

        Raises OrderRefusedError when the broker says no (recorded), EndpointError when the outcome
        stays unknown (left open for `resolve`).
        """
        return self._sender.send(intent)

    def submit(
        self,
        intent: OrderIntent,
        *,
        trade_id: str,
        purpose: Purpose,
        as_of: datetime,
        stop_price: Decimal | None = None,
        target_price: Decimal | None = None,
    ) -> Order:
        """`write`, then `send`."""
        self.write(
            intent,
            trade_id=trade_id,
            purpose=purpose,
            as_of=as_of,
            stop_price=stop_price,
            target_price=target_price,
        )
        return self.send(intent)

    def resolve(self, as_of: datetime) -> tuple[str, ...]:
        """Settle every intent without an outcome; see Sender.resolve."""
        return self._sender.resolve(as_of)

    def collect_fills(self) -> tuple[BookedFill, ...]:
        """Book every fill that the broker reports after the last one booked."""
        return self._tracker.collect_fills()

    # ---- looking after

    def reconcile(self, as_of: datetime, *, full: bool = False) -> Comparison:
        """Compare with the broker; see Reconciler.compare."""
        compared = self._reconciler.compare(as_of, full=full)
        self._lacking = compared.lacking
        return compared

    def protect(self, compared: Comparison, as_of: datetime) -> Protected:
        """Give every trade that lost its stop a new one, or an exit; see Protection."""
        prices = {held.symbol: held.current_price for held in compared.portfolio.positions}
        return self._protection.protect(
            compared.live,
            prices=prices,
            lacking=compared.lacking,
            surplus=compared.surplus,
            as_of=as_of,
        )

    def guard(self, trade: Trade, as_of: datetime) -> None:
        """Give one trade its stop, or an exit, without a comparison; raises as `send`."""
        lacking = self._lacking.get(trade.trade_id, Decimal(0))
        self._protection.guard(trade, lacking=lacking, as_of=as_of)

    def watch(self, as_of: datetime) -> Watched:
        """Between two slots: compare in full, then look after every stop.

        Raises EndpointError when the broker cannot be asked; the next look begins anew.
        """
        compared = self.reconcile(as_of, full=True)
        return Watched(compared=compared, protected=self.protect(compared, as_of))

    def acknowledge(self, reason: str) -> bool:
        """Make the book equal to the broker's now; whether that changed anything.

        Where there are controls, a recorded acknowledgement does this in the next comparison.
        """
        return self._reconciler.adjust(self._broker.portfolio(), reason)

    def open_orders(self) -> tuple[Order, ...]:
        """Orders open at the broker now, legs included, flat; new fills are booked."""
        return self._sender.open_orders()

    def orders_of(self, trade: Trade) -> tuple[Order, ...]:
        """Open orders of one trade, asked for one by one: for when the list cannot be had.

        What they have filled is booked; those that took the place of others are among them.
        """
        settled = {
            order_id
            for item in self.journal.of_trade(trade.trade_id, "entry", "protection", *SALES)
            for outcome in [self.journal.outcomes.get(item.intent.client_order_id)]
            if outcome is not None and outcome.settled
            for order_id in (outcome.order_id, outcome.stop_loss_id, outcome.take_profit_id)
        }
        found: dict[str, Order | None] = {order_id: None for order_id in settled if order_id}
        while new := [one for one in self.journal.order_ids(trade.trade_id) if one not in found]:
            found.update((order_id, self._broker.order_by_id(order_id)) for order_id in new)
            self._tracker.take_in(order for order in map(found.get, new) if order)
        return tuple(order for order in found.values() if order and not order.status.is_final)

    # ---- leaving

    def expire_entries(self, as_of: datetime, live: Sequence[Order]) -> tuple[str, ...]:
        """Cancel entries of earlier slots that are still open: their one bar never came.

        live  orders still open at the broker, legs included, flat
        """
        return self._call_off(
            [
                order
                for order in live
                if order.client_order_id in self.journal.intents
                and self.journal.intents[order.client_order_id].as_of < as_of
            ]
        )

    def cancel_entries(self, symbol: str | None = None) -> tuple[str, ...]:
        """Cancel every entry that has not been filled to its end, those in doubt included.

        symbol  None: of all symbols. Returns the client order ids.
        """
        doubtful = []
        for item in self.journal.unresolved():
            key = item.intent.client_order_id
            if item.purpose != "entry" or symbol not in (None, item.intent.symbol):
                continue
            if self._tracker.find(key) is None:  # should it appear after all, it is canceled
                self.journal.write_refusal(key, CALLED_OFF)
                doubtful.append(key)
        entries = [
            self._broker.order_by_id(outcome.order_id)  # a list may not show the newest yet
            for outcome in map(self.journal.outcomes.__getitem__, self.journal.unsettled())
            if outcome.order_id and self.journal.intents[outcome.client_order_id].purpose == "entry"
        ]
        live = [order for order in entries if order and symbol in (None, order.symbol)]
        return (*doubtful, *self._call_off(live))

    def _call_off(self, live: Sequence[Order]) -> tuple[str, ...]:
        entries = [
            order
            for order in live
            if order.client_order_id in self.journal.intents
            and self.journal.intents[order.client_order_id].purpose == "entry"
            and not order.status.is_final
        ]
        for order in entries:
            self._broker.cancel(order.order_id)
        return tuple(order.client_order_id for order in entries)

    def leave(
        self,
        trade: Trade,
        live: Sequence[Order],
        as_of: datetime,
        *,
        purpose: Purpose = "exit",
        reason: str = "",
    ) -> Order | None:
        """Cancel what waits for a trade, then sell its shares at the next open; see Sender.sell.

        Shares that the newest comparison found lacking at the broker are not sold.
        """
        lacking = self._lacking.get(trade.trade_id, Decimal(0))
        return self._sender.sell(
            trade, live, as_of, purpose=purpose, lacking=lacking, reason=reason
        )

    def close(self, symbol: str | None, reason: str, as_of: datetime) -> tuple[Closing, ...]:
        """A person's wish: no entry of a symbol (None: of all) stays, and what is held is sold.

        Shares that came without an order of ours are sold only where their symbol is named. A trade
        whose sale is on its way is left alone, so that the same wish twice sells once.
        Raises EndpointError when the broker cannot be asked.
        """
        self.cancel_entries(symbol)
        live = self.open_orders()
        closings = []
        for trade in self.journal.book.open_trades(symbol):
            if (trade.is_imported and symbol is None) or exit_waits(self.journal, trade, live):
                continue
            key, problem = "", ""
            try:
                sold = self.leave(trade, live, as_of, purpose="close", reason=reason)
                key = sold.client_order_id if sold else ""
            except (OrderRefusedError, EndpointError) as exc:
                problem = str(exc)
            closings.append(
                Closing(
                    symbol=trade.symbol,
                    trade_id=trade.trade_id,
                    client_order_id=key,
                    problem=problem,
                )
            )
        return tuple(closings)

    def cancel(self, name: str) -> Order:
        """A person's wish: cancel one order, named by its client id or the broker's id.

        The order as it then is. UsageError when there is none. A stop is placed again by the next
        look after it.
        """
        order = self._broker.order(name) or self._broker.order_by_id(name)
        if order is None:
            raise UsageError(f"there is no order {name}")
        if not order.status.is_final:
            self._sender.cancel([order])
        return self._broker.order_by_id(order.order_id) or order

    def holds_or_buys(self, symbol: str, live: Sequence[Order]) -> tuple[str, ...]:
        """Trade ids of ours that hold shares of a symbol, or whose entry is open or in doubt."""
        waiting = {order.client_order_id for order in live if order.side is Side.BUY}
        waiting |= {item.intent.client_order_id for item in self.journal.unresolved()}
        entries = (
            self.journal.intents[key].trade_id
            for key in waiting
            if key in self.journal.intents
            and self.journal.intents[key].intent.symbol == symbol
            and self.journal.intents[key].purpose == "entry"
        )
        held = (trade.trade_id for trade in self.journal.book.open_trades(symbol))
        return tuple(dict.fromkeys((*held, *entries)))
