"""Sending and canceling: intent, one POST, outcome; in doubt the broker is asked by client id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from trader.core.errors import EndpointError, OrderRefusedError, RateLimitedError
from trader.core.instruments import is_crypto
from trader.core.ports import Broker
from trader.core.trading import (
    Order,
    OrderClass,
    OrderIntent,
    OrderStatus,
    OrderType,
    Side,
    TimeInForce,
)
from trader.ledger.book import Trade
from trader.orders.entries import JournaledIntent, Purpose
from trader.orders.journal import STOPS, OrderJournal
from trader.orders.tracking import LOOKUPS, Tracker, flat

LONGEST_CLIENT_ORDER_ID = 48  # what Alpaca has always taken
CANCEL_LOOKS = 10
NEVER_ARRIVED = "never reached the broker in its own slot"
CALLED_OFF = "called off before it was known to have reached the broker"
NOT_NEEDED = "never reached the broker, and its shares have gone since"
OTHERS_WAIT = "never reached the broker, and other orders wait to sell its shares"
LETTERS: dict[Purpose, str] = {"protection": "p", "close": "c", "emergency": "m", "target": "t"}


class Sender:
    """Sends intents once and cancels orders; what happened is in the journal when it returns."""

    def __init__(self, broker: Broker, journal: OrderJournal, tracker: Tracker) -> None:
        self._broker, self._journal, self._tracker = broker, journal, tracker

    def write(self, journaled: JournaledIntent) -> None:
        """Write down what is about to be sent; from here on `resolve` sees to it.

        OrderRefusedError, and nothing written, for numbers that no broker should ever see.
        """
        intent = journaled.intent
        prices = (
            intent.limit_price,
            intent.stop_price,
            intent.take_profit_price,
            intent.stop_loss_price,
        )
        for number in (intent.quantity, *(price for price in prices if price is not None)):
            if not number.is_finite() or number <= 0:
                raise OrderRefusedError(
                    f"{intent.symbol}: {number} is no quantity or price of an order"
                )
        if len(intent.client_order_id) > LONGEST_CLIENT_ORDER_ID:
            raise OrderRefusedError(
                f"{intent.symbol}: the client order id {intent.client_order_id} is longer than "
                f"{LONGEST_CLIENT_ORDER_ID} characters"
            )
        self._journal.write_intent(journaled)

    def send(self, intent: OrderIntent) -> Order:
        """Send an intent that was written down, once, and write its outcome down.

        Raises OrderRefusedError when the broker says no (recorded), EndpointError when the outcome
        stays unknown (left open for `resolve`).
        """
        try:
            order = self._broker.submit(intent)
        except OrderRefusedError as exc:
            self._journal.write_refusal(intent.client_order_id, str(exc))
            raise
        if intent.order_class is not OrderClass.SIMPLE and not _has_stop(order):
            # legs that were dropped without a word, or not told yet; the fill will be looked after
            order = self._broker.order(intent.client_order_id) or order
        self._journal.write_order(order)
        if order.status is OrderStatus.REJECTED:
            raise OrderRefusedError(f"{intent.symbol}: the broker took the order and rejected it")
        return order

    def submit(self, journaled: JournaledIntent) -> Order:
        """Write an intent down, send it once, write its outcome down; errors as in `send`."""
        self.write(journaled)
        return self.send(journaled.intent)

    def resolve(
        self,
        as_of: datetime,
        live: Sequence[Order] = (),
        held: Mapping[str, Decimal] | None = None,
        *,
        buying: bool = True,
    ) -> tuple[str, ...]:
        """Settle every intent without an outcome, by its client order id; the settled ids.

        An intent that the broker has not shown in several lookups is sent now under the same id, if
        it leaves or protects shares that are still held, or was decided in this very slot. An entry
        of an earlier slot is not: its price, size and reward were those of then, and in doubt there
        is no new risk. Should its order appear after all, it is adopted.

        live    orders open at the broker, legs included, flat
        held    shares of each symbol at the broker, where that is known
        buying  False: what would have to be sent to buy stays in doubt
        """
        settled = []
        for journaled in self._journal.unresolved():
            key = journaled.intent.client_order_id
            if key in self._journal.outcomes:
                continue  # taken in while another one was looked for
            try:
                if self._tracker.find(key) is None:
                    refusal = self._unwanted(journaled, as_of, live, held)
                    if refusal:
                        self._journal.write_refusal(key, refusal)
                    elif journaled.purpose == "entry" and not buying:
                        continue
                    else:
                        self.send(journaled.intent)
            except OrderRefusedError:
                pass  # recorded, and so settled
            except RateLimitedError:
                break
            except EndpointError:
                continue
            settled.append(key)
        return tuple(settled)

    def _unwanted(
        self,
        journaled: JournaledIntent,
        as_of: datetime,
        live: Sequence[Order],
        held: Mapping[str, Decimal] | None,
    ) -> str:
        if journaled.purpose == "entry":
            return NEVER_ARRIVED if journaled.as_of < as_of else ""
        trade, quantity = (
            self._journal.book.trades.get(journaled.trade_id),
            journaled.intent.quantity,
        )
        if trade is None or trade.open_quantity < quantity:
            return NOT_NEEDED
        if held is not None and held.get(trade.symbol, Decimal(0)) < quantity:
            return NOT_NEEDED
        mine = set(self._journal.order_ids(journaled.trade_id))
        waits = any(order.order_id in mine and order.side is Side.SELL for order in live)
        return OTHERS_WAIT if waits else ""

    def cancel(self, orders: Sequence[Order]) -> None:
        """Cancel orders, wait until they are final and book what they filled meanwhile.

        Raises EndpointError when one of them stays open: its shares must not be sold twice.
        """
        for number, order in enumerate(orders):
            if number and self._final(order) is not None:
                continue  # it hung together with one before
            try:
                self._broker.cancel(order.order_id)
            except RateLimitedError:
                raise
            except EndpointError:
                found = self._broker.order_by_id(order.order_id)
                if found is not None and not found.status.is_final:
                    raise
        ended = [self._wait_for(order) for order in orders]
        if ended:
            with suppress(EndpointError):  # then what the orders themselves show has to do
                self._tracker.collect_fills()
        for order in ended:
            self._tracker.estimate(order)

    def _final(self, order: Order) -> Order | None:
        """The order at its end, or None while it is open or cannot be seen.

        One that was replaced is over as well: its follower is found by the next look.
        """
        found = self._broker.order_by_id(order.order_id)
        return found if found is not None and found.status.is_final else None

    def _wait_for(self, order: Order) -> Order:
        unseen = 0
        for look in range(CANCEL_LOOKS):
            if look:
                self._tracker.pause()
            found = self._broker.order_by_id(order.order_id)
            if found is not None and found.status.is_final:
                return found
            unseen = unseen + 1 if found is None else 0
            if unseen == LOOKUPS:  # what the broker does not know any more sells nothing
                return replace(order, status=OrderStatus.CANCELED)
        raise EndpointError(
            f"{order.symbol}: order {order.order_id} is not canceled yet; its shares are sold "
            "once it is"
        )

    def sell(
        self,
        trade: Trade,
        live: Sequence[Order],
        as_of: datetime,
        *,
        purpose: Purpose,
        lacking: Decimal = Decimal(0),
        reason: str = "",
    ) -> Order | None:
        """Cancel what waits for a trade and sell the shares it still has, at market.

        Returns None when nothing is left to sell. Raises EndpointError when the outcome of an
        earlier sale is in doubt or a canceled order stays open, and as `send` does.

        live     orders still open at the broker, legs included, flat
        lacking  shares of it in the book that the broker does not have
        reason   for the record
        """
        journal = self._journal
        self.require_known(trade, but="protection")
        stops = self._doubtful_stops(trade)
        mine = set(journal.order_ids(trade.trade_id))
        self.cancel([*stops, *(order for order in live if order.order_id in mine)])
        quantity = trade.open_quantity - lacking
        if quantity <= 0:
            return None
        intent = OrderIntent(
            client_order_id=self.next_id(trade, purpose),
            symbol=trade.symbol,
            side=Side.SELL,
            quantity=quantity,
            order_type=OrderType.MARKET,
            time_in_force=TimeInForce.GTC if is_crypto(trade.symbol) else TimeInForce.DAY,
        )
        return self.place_sale(intent, trade, live, as_of, purpose=purpose, reason=reason)

    def require_known(self, trade: Trade, *, but: Purpose | None = None) -> None:
        """Raise EndpointError while an order that sells shares of a trade is in doubt.

        The legs of its entry do so too.
        but  orders of this purpose may be
        """
        for item in self._journal.unresolved():
            sells = item.purpose != "entry" or item.intent.order_class is not OrderClass.SIMPLE
            if item.trade_id == trade.trade_id and item.purpose != but and sells:
                raise EndpointError(
                    f"{trade.symbol}: whether order {item.intent.client_order_id} arrived is not "
                    "known yet"
                )

    def _doubtful_stops(self, trade: Trade) -> list[Order]:
        """Stops of a trade that were in doubt and are open; one that is not found is called off."""
        found = []
        for item in self._journal.unresolved():
            key = item.intent.client_order_id
            if item.trade_id != trade.trade_id or item.purpose != "protection":
                continue
            order = self._tracker.find(key)
            if order is None:
                self._journal.write_refusal(key, CALLED_OFF)
            elif not order.status.is_final:
                found.append(order)
        return found

    def place_sale(
        self,
        intent: OrderIntent,
        trade: Trade,
        live: Sequence[Order],
        as_of: datetime,
        *,
        purpose: Purpose,
        reason: str = "",
    ) -> Order:
        """Send an order that sells or guards a trade; entries of ours that stand in its way go.

        A broker refuses orders of both sides in one symbol as a wash trade: leaving comes first.
        """
        journaled = JournaledIntent(
            intent=intent, trade_id=trade.trade_id, purpose=purpose, as_of=as_of, reason=reason
        )
        try:
            return self.submit(journaled)
        except OrderRefusedError:
            buys = [
                order
                for order in live
                if order.symbol == trade.symbol
                and order.side is Side.BUY
                and order.client_order_id in self._journal.intents
            ]
            if not buys:
                raise
        self.cancel(buys)
        taken = self._tracker.look_up(intent.client_order_id)  # although the broker said no
        if taken is not None and not taken.status.is_final:
            return taken
        again = replace(intent, client_order_id=self.next_id(trade, purpose))
        return self.submit(replace(journaled, intent=again))

    def next_id(self, trade: Trade, purpose: Purpose) -> str:
        """The client order id of the next order of this purpose for a trade."""
        entries = self._journal.of_trade(trade.trade_id, "entry")
        stem = f"tr-{trade.trade_id.replace('/', '')[-32:]}"
        if entries:
            stem = entries[0].intent.client_order_id.rsplit("-", 1)[0]
        number = len(self._journal.of_trade(trade.trade_id, purpose)) + 1
        return f"{stem}-{LETTERS.get(purpose, 'x')}{number}"

    def open_orders(self) -> tuple[Order, ...]:
        """Orders that are open at the broker now, legs included, flat; new fills are booked."""
        return flat(self._tracker.open_trees())


def _has_stop(order: Order) -> bool:
    return any(leg.order_type in STOPS for leg in order.legs)


def whole(quantity: Decimal) -> bool:
    """Whether a quantity is a number of whole shares."""
    return quantity == quantity.to_integral_value()
