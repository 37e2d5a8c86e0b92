"""The order manager: intent, send, outcome; in doubt it asks the broker, never resends blindly."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from trader.core.errors import EndpointError, OrderRefusedError
from trader.core.ports import Broker
from trader.core.trading import (
    Order,
    OrderClass,
    OrderIntent,
    OrderType,
    Side,
    TimeInForce,
)
from trader.ledger.book import BookedFill, Trade
from trader.orders.journal import JournaledIntent, OrderJournal, Purpose


class OrderManager:
    """Sends intents, books fills, leaves trades. One manager per account."""

    def __init__(self, broker: Broker, journal: OrderJournal) -> None:
        self._broker, self.journal = broker, journal

    def submit(
        self, intent: OrderIntent, *, trade_id: str, purpose: Purpose, as_of: datetime
    ) -> Order:
        """Write the intent down, send it once, write the outcome down.

        Raises OrderRefusedError when the broker says no (recorded), EndpointError when the outcome
        stays unknown (left open for `resolve`).
        """
        self.write(intent, trade_id=trade_id, purpose=purpose, as_of=as_of)
        return self.send(intent)

    def write(
        self, intent: OrderIntent, *, trade_id: str, purpose: Purpose, as_of: datetime
    ) -> None:
        """Write down what is about to be sent; from here on `resolve` sees to it.

        as_of  the slot that wants it
        """
        self.journal.write_intent(
            JournaledIntent(intent=intent, trade_id=trade_id, purpose=purpose, as_of=as_of)
        )

    def resolve(self, as_of: datetime) -> tuple[str, ...]:
        """Settle every intent without an outcome, by its client order id; the settled ids.

        An intent that the broker never saw is sent now under the same id, if it leaves or protects
        a position or was decided in this very slot. An entry of an earlier slot is not: its price,
        size and reward were those of then, and in doubt there is no new risk.
        """
        settled = []
        for journaled in self.journal.unresolved():
            key = journaled.intent.client_order_id
            order = self._broker.order(key)
            if order is not None:
                self.journal.write_order(order)
            elif journaled.purpose == "entry" and journaled.as_of < as_of:
                self.journal.write_refusal(key, "never reached the broker in its own slot")
            else:
                try:
                    self.send(journaled.intent)
                except (OrderRefusedError, EndpointError):
                    continue
            settled.append(key)
        return tuple(settled)

    def expire_entries(self, as_of: datetime, live: Sequence[Order]) -> tuple[str, ...]:
        """Cancel entries of earlier slots that are still open: their one bar never came.

        live  orders still open at the broker, legs included, flat
        """
        expired = []
        for order in live:
            journaled = self.journal.intents.get(order.client_order_id)
            if journaled is None or journaled.purpose != "entry" or journaled.as_of >= as_of:
                continue
            if order.filled_quantity == 0 and not order.status.is_final:
                self._broker.cancel(order.order_id)
                expired.append(order.client_order_id)
        return tuple(expired)

    def send(self, intent: OrderIntent) -> Order:
        """Send an intent that was written down, once, and write its outcome down; see `submit`."""
        try:
            order = self._broker.submit(intent)
        except OrderRefusedError as exc:
            self.journal.write_refusal(intent.client_order_id, str(exc))
            raise
        self.journal.write_order(order)
        return order

    def collect_fills(self) -> tuple[BookedFill, ...]:
        """Book every fill that the broker reports after the last one booked."""
        fills = self._broker.fills(after=self.journal.last_execution_id)
        return tuple(self.journal.write_fill(fill) for fill in fills)

    def leave(self, trade: Trade, live: Sequence[Order], as_of: datetime) -> Order:
        """Cancel what waits for a trade and sell its shares at the next open.

        live  orders still open at the broker, legs included, flat
        """
        outcome = self.journal.outcome_of_entry(trade.trade_id)
        legs = {outcome.stop_loss_id, outcome.take_profit_id} if outcome else set()
        guards = {
            self.journal.outcomes[guard.intent.client_order_id].order_id
            for guard in self.journal.of_trade(trade.trade_id, "protection")
            if guard.intent.client_order_id in self.journal.outcomes
        }
        for order in live:
            if order.order_id in legs | guards and not order.status.is_final:
                self._broker.cancel(order.order_id)
        number = len(self.journal.of_trade(trade.trade_id, "exit")) + 1
        intent = OrderIntent(
            client_order_id=f"{_stem(self.journal, trade)}-x{number}",
            symbol=trade.symbol,
            side=Side.SELL,
            quantity=trade.open_quantity,
            order_type=OrderType.MARKET,
            time_in_force=TimeInForce.DAY,
        )
        return self.submit(intent, trade_id=trade.trade_id, purpose="exit", as_of=as_of)

    def protect(self, trade: Trade, stop_price: Decimal, as_of: datetime) -> Order:
        """Place a stop for a trade that lost its own."""
        number = len(self.journal.of_trade(trade.trade_id, "protection")) + 1
        intent = OrderIntent(
            client_order_id=f"{_stem(self.journal, trade)}-p{number}",
            symbol=trade.symbol,
            side=Side.SELL,
            quantity=trade.open_quantity,
            order_type=OrderType.STOP,
            order_class=OrderClass.SIMPLE,
            time_in_force=TimeInForce.GTC,
            stop_price=stop_price,
        )
        return self.submit(intent, trade_id=trade.trade_id, purpose="protection", as_of=as_of)


def _stem(journal: OrderJournal, trade: Trade) -> str:
    """The entry's client order id without its last part, or one made from the trade."""
    entries = journal.of_trade(trade.trade_id, "entry")
    if entries:
        return entries[0].intent.client_order_id.rsplit("-", 1)[0]
    return f"tr-{trade.trade_id[-32:]}"
