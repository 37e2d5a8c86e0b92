"""The canary: an order manager as many are written, which the oracle has to catch.

It makes a new id for every try, tries again when no answer comes, and places the stop once it has
heard of the fill.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from tests.simulation.desk import Book, Decision, Kept, World
from tests.simulation.line import Fate
from tests.simulation.world import CASH
from trader.core.errors import EndpointError, OrderRefusedError
from trader.core.trading import Order, OrderIntent, OrderType, Side, TimeInForce

TRIES = 3


class NaiveDesk:
    """Implements Desk."""

    def __init__(
        self, world: World, fate: Fate, kept: Kept, *, now: Callable[[], datetime]
    ) -> None:
        self._broker, self._fate, self._saved = world.broker_of(None), fate, kept.saved
        self._stops: dict[str, Decimal] = {}  # order id -> stop; forgotten with the process
        self.taken: set[str] = self._saved.setdefault("taken", set())
        held, self._cash = self._saved.get("book", ({}, CASH))
        self._quantities: dict[str, Decimal] = dict(held)
        self._seen: set[str] = set(self._saved.get("seen", ()))

    def slot(self, decisions: Sequence[Decision], leaving: set[str], as_of: datetime) -> None:
        self.watch(as_of)
        for decision in decisions:
            if decision.name in self.taken:
                continue
            self.taken.add(decision.name)
            self._fate.point("after the decision was saved")
            order = self._send(decision.symbol, Side.BUY, decision.quantity, None)
            if order is not None:
                self._stops[order.order_id] = decision.stop

    def watch(self, as_of: datetime) -> None:
        for fill in self._broker.fills():
            if fill.execution_id in self._seen:
                continue
            self._seen.add(fill.execution_id)
            sign = 1 if fill.side is Side.BUY else -1
            held = self._quantities.get(fill.symbol, Decimal(0)) + sign * fill.quantity
            self._quantities[fill.symbol] = held
            self._cash -= sign * fill.quantity * fill.price
            stop = self._stops.get(fill.order_id)
            if stop is not None:
                self._send(fill.symbol, Side.SELL, fill.quantity, stop)
        self._saved["book"] = dict(self._quantities), self._cash
        self._saved["seen"] = set(self._seen)

    def _send(
        self, symbol: str, side: Side, quantity: Decimal, stop: Decimal | None
    ) -> Order | None:
        for _ in range(TRIES):
            intent = OrderIntent(
                client_order_id=str(UUID(int=self._fate.rng.getrandbits(128), version=4)),
                symbol=symbol,
                side=side,
                quantity=quantity,
                order_type=OrderType.MARKET if stop is None else OrderType.STOP,
                time_in_force=TimeInForce.GTC,
                stop_price=stop,
            )
            with suppress(EndpointError):
                try:
                    return self._broker.submit(intent)
                except OrderRefusedError:
                    return None
        return None

    def wish_to_close(self, symbol: str, at: datetime) -> None:
        """It has no such wish."""

    def acknowledge(self, at: datetime) -> None:
        """It never compares."""

    @property
    def problem(self) -> str:
        return ""

    @property
    def frozen(self) -> str:
        return ""

    @property
    def closing(self) -> set[str]:
        return set()

    @property
    def has_begun(self) -> bool:
        return True

    def book(self) -> Book:
        held = {symbol: shares for symbol, shares in self._quantities.items() if shares}
        return Book(quantities=held, cash=self._cash, tolerance=Decimal("0.01"))

    def state(self) -> str:
        return f"{len(self._seen)}"

    def verify(self) -> None:
        """It has no chain."""
