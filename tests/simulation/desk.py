"""The desk: what a process does with an account, by the real order manager and its ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Protocol

from tests.simulation.line import Fate
from tests.simulation.oracle import Key, Truth
from tests.simulation.world import CASH
from trader.core.costs import Costs
from trader.core.errors import EndpointError, OrderRefusedError
from trader.core.ports import Broker, TradingHalt
from trader.core.trading import Fill, OrderClass, OrderIntent, OrderType, Side, TimeInForce
from trader.ledger.controls import Controls
from trader.ledger.store import Ledger
from trader.orders.journal import OrderJournal
from trader.orders.manager import OrderManager
from trader.orders.protection import exit_waits
from trader.orders.wishes import carry_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A GO: so many shares of a symbol, with a stop and a target. name: unique in its episode."""

    name: str
    symbol: str
    quantity: Decimal
    stop: Decimal
    target: Decimal

    @property
    def trade_id(self) -> str:
        """Of the trade that it opens."""
        return f"run-{self.name}-{self.symbol}-atr_trend"


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """What a desk believes the account to hold. tolerance: USD of cash that may be off."""

    quantities: Mapping[str, Decimal]
    cash: Decimal
    tolerance: Decimal


class World(Protocol):
    """A market that an episode plays in; chance and faults are drawn from the episode's own.

    price        newest, by symbol
    trades       every fill so far, oldest first
    refused      buys to which the broker said no
    hid_foreign  whether a fill that a person caused was ever not told in time
    """

    now: datetime
    price: Mapping[str, Decimal]
    trades: Sequence[Fill]
    refused: set[Key]
    hid_foreign: bool

    def broker_of(self, halt: TradingHalt | None) -> Broker:
        """The broker as a new process sees it, through faults and crashes."""

    def wait(self, seconds: float) -> None:
        """Time passes while a process waits."""

    def step(self, *, surprises: bool) -> None:
        """What happens between two looks; with surprises also what only a person could cause."""

    def settle(self) -> None:
        """One step without surprises: what can trade trades to its end."""

    def calm(self) -> None:
        """From now on nothing is hidden, late or hasty."""

    def truth(self) -> Truth:
        """The account from the broker's side."""


INSIDE = 5  # weight of a crash point within a transaction
EMPTY = Ledger(None)._db.serialize()


def new_database() -> sqlite3.Connection:
    """The database of a new ledger, in memory."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.deserialize(EMPTY)
    return database


@dataclass(slots=True, kw_only=True)
class Kept:
    """What outlives a process: the database of its ledger, and all that the canary saves."""

    database: sqlite3.Connection = field(default_factory=new_database)
    saved: dict[str, Any] = field(default_factory=dict)


class Desk(Protocol):
    """Runs an account. Every method raises EndpointError when the broker cannot be asked."""

    def slot(self, decisions: Sequence[Decision], leaving: set[str], as_of: datetime) -> None:
        """One slot: look, leave the trades of these decisions (names), enter."""

    def watch(self, as_of: datetime) -> None:
        """Look after the account between two slots."""

    def wish_to_close(self, symbol: str, at: datetime) -> None:
        """A person wants a symbol closed; `watch` does it."""

    def acknowledge(self, at: datetime) -> None:
        """A person takes over the broker's numbers where trading is frozen."""

    @property
    def problem(self) -> str:
        """Why nothing may be bought; empty when it may."""

    @property
    def frozen(self) -> str:
        """Why a person has to look; empty when nobody has."""

    @property
    def closing(self) -> set[str]:
        """Symbols that a person wants closed and that are not yet."""

    @property
    def has_begun(self) -> bool:
        """Whether it has seen the account; what moves before belongs to what it begins with."""

    taken: set[str]  # names of the decisions that it has been told, by whichever process

    def book(self) -> Book:
        """What it believes."""

    def state(self) -> str:
        """Something that changes whenever it does or learns something."""

    def verify(self) -> None:
        """Raise StateError when its records do not fit."""


class MortalLedger(Ledger):
    """A ledger over a database that outlives the process, with a crash point at every write."""

    def __init__(self, database: sqlite3.Connection, fate: Fate) -> None:
        self._database, self._fate = database, fate
        super().__init__(None)

    def _open(self, path: Path | None, *, read_only: bool) -> sqlite3.Connection:
        return self._database

    def append(self, kind: str, record_id: str, body: Any) -> str:
        weight = INSIDE if self._depth else 1  # what belongs together must not be torn apart
        self._fate.point(f"before {kind} {record_id}", weight=weight)
        digest = super().append(kind, record_id, body)
        if self._fate.trace is not None:
            self._fate.tell(f"  {kind} {record_id}{_detail(body)}")
        return digest

    def commit(self) -> None:
        if self._db.in_transaction and self._depth == 0:
            self._fate.point("before the commit")
            super().commit()
            self._fate.point("after the commit")


def _detail(body: Any) -> str:
    """What a reader of the trace wants to know of a record."""
    fill = getattr(body, "fill", None)
    if fill is None:
        return ""
    return f": {fill.side} {fill.quantity} {fill.symbol} of {body.trade_id}"


def intent_of(decision: Decision) -> OrderIntent:
    """The order of a decision, as the cycle makes it: whole shares carry their legs."""
    coin = "/" in decision.symbol
    simple = OrderIntent(
        client_order_id=f"tr-{decision.name}-{decision.symbol.replace('/', '')}-e",
        symbol=decision.symbol,
        side=Side.BUY,
        quantity=decision.quantity,
        order_type=OrderType.MARKET,
        time_in_force=TimeInForce.GTC if coin else TimeInForce.DAY,
    )
    if coin or decision.quantity != decision.quantity.to_integral_value():
        return simple
    return replace(
        simple,
        order_class=OrderClass.BRACKET,
        time_in_force=TimeInForce.GTC,
        take_profit_price=decision.target,
        stop_loss_price=decision.stop,
    )


class ManagedDesk:
    """A process with the real order manager; it knows what its ledger and the broker tell.

    It walks as the cycle and the paper account do: compare, protect, leave, enter; in between,
    compare, protect, and do what a person wishes.
    """

    def __init__(
        self, world: World, fate: Fate, kept: Kept, *, now: Callable[[], datetime]
    ) -> None:
        if kept.database.in_transaction:  # what the last process did not commit died with it
            kept.database.execute("ROLLBACK")
        self.ledger = MortalLedger(kept.database, fate)
        self.controls = Controls(self.ledger, now=now)
        self.taken = {record.record_id for record in self.ledger.records("cycle")}
        journal = OrderJournal(self.ledger, cash=CASH, costs=Costs())
        broker = world.broker_of(self.controls)
        self.orders = OrderManager(broker, journal, controls=self.controls, wait=world.wait)

    def slot(self, decisions: Sequence[Decision], leaving: set[str], as_of: datetime) -> None:
        orders = self.orders
        compared = orders.reconcile(as_of)
        if orders.expire_entries(as_of, compared.live):
            compared = replace(compared, live=orders.open_orders())
        if orders.protect(compared, as_of).changed:
            compared = replace(compared, live=orders.open_orders())
        problems = False
        for trade in orders.journal.book.open_trades():
            if trade.trade_id not in leaving or exit_waits(orders.journal, trade, compared.live):
                continue
            try:
                orders.leave(trade, compared.live, as_of)
            except (OrderRefusedError, EndpointError):
                problems = True
        if problems:
            compared = replace(compared, live=orders.open_orders())
            orders.protect(compared, as_of)
        allowed = [
            decision
            for decision in decisions
            if not compared.problem and not self.controls.blocked(decision.symbol)
        ]
        with self.ledger.transaction():
            written = [decision for decision in allowed if self._write(decision, as_of)]
        self.taken.update(decision.name for decision in written)
        for decision in written:
            with suppress(OrderRefusedError, EndpointError):
                orders.send(intent_of(decision))

    def _write(self, decision: Decision, as_of: datetime) -> bool:
        if self.ledger.record("cycle", decision.name) is not None:
            return False
        self.ledger.append("cycle", decision.name, decision)
        self.orders.write(
            intent_of(decision),
            trade_id=decision.trade_id,
            purpose="entry",
            as_of=as_of,
            stop_price=decision.stop,
            target_price=decision.target,
        )
        return True

    def watch(self, as_of: datetime) -> None:
        self.orders.watch(as_of)
        if carry_out(self.controls, self.orders, as_of):
            self.orders.watch(as_of)

    def wish_to_close(self, symbol: str, at: datetime) -> None:
        self.controls.wish("close", symbol, "a person wants it", at=at)

    def acknowledge(self, at: datetime) -> None:
        if self.controls.frozen:
            self.controls.acknowledge("looked at", at=at)

    @property
    def problem(self) -> str:
        return self.orders.problem or self.controls.frozen

    @property
    def frozen(self) -> str:
        return self.controls.frozen

    @property
    def closing(self) -> set[str]:
        return {wish.target or "" for wish in self.controls.wishes() if wish.action == "close"}

    @property
    def has_begun(self) -> bool:
        return self.orders.journal.account is not None

    def book(self) -> Book:
        journal = self.orders.journal
        return Book(
            quantities=journal.book.quantities,
            cash=journal.book.cash,
            tolerance=Decimal("0.01") * (1 + journal.estimates),
        )

    def state(self) -> str:
        return self.ledger.head

    def verify(self) -> None:
        self.ledger.verify()


WorldOf = Callable[[Random, Fate], World]


class DeskOf(Protocol):
    """Opens a new process over what the last one kept."""

    def __call__(
        self, world: World, fate: Fate, kept: Kept, *, now: Callable[[], datetime]
    ) -> Desk: ...
