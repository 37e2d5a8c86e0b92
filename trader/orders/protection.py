"""The protection invariant: shares held are shares with a live stop, or with an exit on its way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_FLOOR, Decimal

from trader.core.errors import EndpointError, OrderRefusedError
from trader.core.instruments import is_crypto
from trader.core.trading import (
    Order,
    OrderIntent,
    OrderStatus,
    OrderType,
    Side,
    TimeInForce,
    tick_down,
)
from trader.ledger.book import Trade
from trader.orders.entries import SALES
from trader.orders.journal import STOPS, OrderJournal
from trader.orders.sending import Sender, whole

COIN_SLACK = Decimal("0.05")  # how far below its stop a coin is still sold by the stop's limit
COIN_STEP = Decimal("1e-9")
MOST_OFF = Decimal("0.005")  # a stop further from its due price than this was left by a split


@dataclass(slots=True, kw_only=True)
class Protected:
    """What a look after every trade's stop has done.

    placed        trades that got a stop
    orphans       client ids of sell orders canceled, since their trade has no shares any more
    emergencies   trades sold at market because no stop could stand -> why
    naked         trades that have neither -> why; the next look tries again
    looked_again  whether orders were read anew: those read before may be too old to act on
    """

    placed: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    emergencies: dict[str, str] = field(default_factory=dict)
    naked: dict[str, str] = field(default_factory=dict)
    looked_again: bool = False

    @property
    def changed(self) -> bool:
        """Whether orders have changed, or should have, or are better known."""
        return bool(
            self.looked_again or self.placed or self.orphans or self.emergencies or self.naked
        )


def unprotected(journal: OrderJournal, live: Sequence[Order]) -> tuple[tuple[Trade, Decimal], ...]:
    """Open trades whose shares no live stop and no live exit covers, each with its due stop price.

    live  orders still open at the broker, legs included, flat
    """
    found = []
    for trade in journal.book.open_trades():
        stop, _ = journal.levels(trade.trade_id)
        if stop is not None and _covered(_guards(journal, trade, live)) < trade.open_quantity:
            found.append((trade, stop))
    return tuple(found)


def exit_waits(journal: OrderJournal, trade: Trade, live: Sequence[Order]) -> bool:
    """Whether an exit order of this trade is already on its way."""
    mine = {item.intent.client_order_id for item in journal.of_trade(trade.trade_id, *SALES)}
    return any(order.client_order_id in mine and not order.status.is_final for order in live)


def target_waits(journal: OrderJournal, trade: Trade, live: Sequence[Order]) -> bool:
    """Whether an order at the trade's target is open at the broker."""
    return any(order.order_type is OrderType.LIMIT for order in _sales(journal, trade, live))


class Protection:
    """Gives every share that was bought its stop, and takes away stops without shares.

    Whole shares: a stop good till canceled. Parts of a share: a stop for the day, placed again in
    each session. Coins: a stop with a limit below it. A stop is only placed once what stood in its
    way is final, so that two orders together never sell more than is held.
    """

    def __init__(self, journal: OrderJournal, sender: Sender) -> None:
        self._journal, self._sender = journal, sender

    def protect(
        self,
        live: Sequence[Order],
        *,
        prices: Mapping[str, Decimal],
        lacking: Mapping[str, Decimal],
        surplus: Mapping[str, Decimal],
        as_of: datetime,
    ) -> Protected:
        """Look after every open trade; what could not be done is told, not raised.

        live      orders still open at the broker, legs included, flat
        prices    newest price of each symbol held, USD
        lacking   trade -> shares of it in the book that the broker does not have
        surplus   symbol -> shares the broker has beyond the book's, as in a split not told yet
        """
        done = Protected()
        with suppress(EndpointError):  # the next look tries again
            live = self._end_orphans(done, live)
        for trade in self._too_much_first(live, lacking):
            stop, _ = self._journal.levels(trade.trade_id)
            if stop is None:
                continue  # shares that are not ours to sell
            gone = lacking.get(trade.trade_id, Decimal(0))
            price, more = prices.get(trade.symbol), surplus.get(trade.symbol, Decimal(0))
            try:
                if self._is_sound(trade, stop, live, gone=gone, price=price, more=more):
                    continue
                self._mend(done, trade, stop, gone=gone, price=price, more=more, as_of=as_of)
            except (OrderRefusedError, EndpointError) as exc:
                done.naked[trade.trade_id] = str(exc)
        return done

    def _too_much_first(
        self, live: Sequence[Order], lacking: Mapping[str, Decimal]
    ) -> Sequence[Trade]:
        """Open trades, before all others those whose stops hold shares that another one's needs."""

        def has_room(trade: Trade) -> bool:
            held = trade.open_quantity - lacking.get(trade.trade_id, Decimal(0))
            return _covered(_guards(self._journal, trade, live)) <= held

        trades = self._journal.book.open_trades()
        return sorted(trades, key=has_room) if len(trades) > 1 else trades

    def guard(self, trade: Trade, *, lacking: Decimal, as_of: datetime) -> None:
        """Mend one trade alone. lacking: shares of it that the broker does not have.

        Raises OrderRefusedError and EndpointError where it could not be done.
        """
        stop, _ = self._journal.levels(trade.trade_id)
        if stop is not None:
            self._mend(
                Protected(), trade, stop, gone=lacking, price=None, more=Decimal(0), as_of=as_of
            )

    def _end_orphans(self, done: Protected, live: Sequence[Order]) -> Sequence[Order]:
        """Cancel what would sell shares of a trade that has none, such as a stop that came late.

        Returns the orders open then.
        """
        journal = self._journal
        for order in live:
            key = journal.intent_of(order)
            if key is None or order.side is Side.BUY:
                continue
            item = journal.intents[key]
            trade = journal.book.trades.get(item.trade_id)
            waits = item.purpose == "entry" and not _armed(journal, item.trade_id)
            if trade is not None and not trade.is_open and not waits:
                self._sender.cancel([order])
                done.orphans.append(order.client_order_id)
        return self._sender.open_orders() if done.orphans else live

    def _is_sound(
        self,
        trade: Trade,
        stop: Decimal,
        live: Sequence[Order],
        *,
        gone: Decimal,
        price: Decimal | None,
        more: Decimal,
    ) -> bool:
        guards = _guards(self._journal, trade, live)
        quantity = trade.open_quantity - gone
        enough = quantity <= _covered(guards) <= quantity + more
        return enough and not self._any_stale(trade, stop, guards, price)

    def _any_stale(
        self, trade: Trade, stop: Decimal, guards: Sequence[Order], price: Decimal | None
    ) -> bool:
        split = self._journal.was_split(trade.trade_id)
        return any(
            (split and _misplaced(guard, stop)) or _jumped_over(guard, price) for guard in guards
        )

    def _mend(
        self,
        done: Protected,
        trade: Trade,
        stop: Decimal,
        *,
        gone: Decimal,
        price: Decimal | None,
        more: Decimal,
        as_of: datetime,
    ) -> None:
        journal, sender = self._journal, self._sender
        live = sender.open_orders()  # what is canceled must not be what has just been filled
        done.looked_again = True
        sender.require_known(trade)
        mine = set(journal.order_ids(trade.trade_id))
        rest = [one for one in live if one.order_id in mine and one.side is Side.BUY]
        if rest:  # its legs arm only once it is filled to its end
            sender.cancel(rest)
            live = sender.open_orders()
        if not trade.is_open or self._is_sound(
            trade, stop, live, gone=gone, price=price, more=more
        ):
            return
        guards = _guards(journal, trade, live)
        quantity = trade.open_quantity - gone
        bad = _covered(guards) > quantity + more or self._any_stale(trade, stop, guards, price)
        # what goes: stops when one of them is wrong, and targets, which hold the shares that the
        # stop needs; a sale at market stays, unless it would sell more than is left
        leaving = [order for order in guards if order.order_type is OrderType.MARKET]
        stays = leaving if _covered(leaving) <= quantity + more else []
        going = [
            order
            for order in _sales(journal, trade, live)
            if order not in stays and (bad or order not in guards)
        ]
        if going:
            sender.cancel(going)
            if not trade.is_open:
                return
            live = sender.open_orders()
        missing = trade.open_quantity - gone - _covered(_guards(journal, trade, live))
        if missing <= 0:
            return
        reason = ""
        if price is not None and price <= stop:
            reason = f"the price {price:f} is not above the stop {stop:f}"
        else:
            intent = stop_order(sender.next_id(trade, "protection"), trade.symbol, missing, stop)
            try:
                sender.place_sale(intent, trade, live, as_of, purpose="protection")
                done.placed.append(trade.trade_id)
            except OrderRefusedError as exc:
                reason = str(exc)
                live = sender.open_orders()  # the broker may have taken what it said no to
                if self._is_sound(trade, stop, live, gone=gone, price=price, more=more):
                    done.placed.append(trade.trade_id)
                    return
        if reason:
            done.emergencies[trade.trade_id] = reason
            sender.sell(trade, live, as_of, purpose="emergency", lacking=gone, reason=reason)


def stop_order(client_order_id: str, symbol: str, quantity: Decimal, stop: Decimal) -> OrderIntent:
    """The order that guards shares, by what they are. stop: USD per share."""
    coin = is_crypto(symbol)
    day = not coin and not whole(quantity)
    return OrderIntent(
        client_order_id=client_order_id,
        symbol=symbol,
        side=Side.SELL,
        quantity=quantity,
        order_type=OrderType.STOP_LIMIT if coin else OrderType.STOP,
        time_in_force=TimeInForce.DAY if day else TimeInForce.GTC,
        stop_price=stop,
        limit_price=_coin_limit(stop) if coin else None,
    )


def _coin_limit(stop: Decimal) -> Decimal:
    limit = stop * (1 - COIN_SLACK)
    if stop >= 1:
        return tick_down(limit)
    return limit.quantize(COIN_STEP, rounding=ROUND_FLOOR)


def _misplaced(guard: Order, stop: Decimal) -> bool:
    """Whether a stop was left at a price of before a split."""
    return (
        guard.order_type in STOPS
        and guard.stop_price is not None
        and abs(guard.stop_price - stop) > stop * MOST_OFF
    )


def _jumped_over(guard: Order, price: Decimal | None) -> bool:
    """Whether the price has fallen through the limit of a stop, which then sells nothing."""
    limit = guard.limit_price if guard.order_type is OrderType.STOP_LIMIT else None
    return limit is not None and price is not None and price < limit


def _covered(guards: Sequence[Order]) -> Decimal:
    return sum((order.open_quantity for order in guards), Decimal(0))


def _sales(journal: OrderJournal, trade: Trade, live: Sequence[Order]) -> list[Order]:
    mine = set(journal.order_ids(trade.trade_id))
    return [
        order
        for order in live
        if order.order_id in mine and order.side is Side.SELL and not order.status.is_final
    ]


def _guards(journal: OrderJournal, trade: Trade, live: Sequence[Order]) -> list[Order]:
    """Live stops and exits of a trade. A `held` leg is one once its entry is filled to its end."""
    armed = _armed(journal, trade.trade_id)
    return [
        order
        for order in _sales(journal, trade, live)
        if order.order_type is OrderType.MARKET
        or (order.order_type in STOPS and (armed or order.status is not OrderStatus.HELD))
    ]


def _armed(journal: OrderJournal, trade_id: str) -> bool:
    """Whether the entry of a trade is filled to its end, and its legs work."""
    return all(
        outcome is not None
        and outcome.order_id is not None
        and journal.booked_quantity(outcome.order_id) >= item.intent.quantity
        for item in journal.of_trade(trade_id, "entry")
        for outcome in [journal.outcomes.get(item.intent.client_order_id)]
    )
