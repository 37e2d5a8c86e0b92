"""Records of the account itself: whose it is, and what comes and goes without an order of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from trader.core.canonical import from_primitive
from trader.core.trading import Activity, ActivityKind, Order, Position
from trader.ledger.book import IMPORTED, Book
from trader.ledger.store import Ledger, Record
from trader.orders.entries import AccountBegun, Adjustment, Import, Reconciliation

NOTHING = Decimal(0)


class AccountJournal:
    """Imports, activities, adjustments and comparisons in the ledger, and the book they change."""

    def __init__(self, ledger: Ledger, *, cash: Decimal) -> None:
        self.ledger = ledger
        self.book = Book(cash=cash)
        self.account: AccountBegun | None = None
        self.last_execution_id: str | None = None
        self.last_activity_id: str | None = None
        self.reconciliation: Reconciliation | None = None  # the newest one that found something
        self.adjusted_at: datetime | None = None  # when the book was last made the broker's
        self.strangers: set[str] = set()  # the broker's ids of orders that are not ours
        self._activities: set[str] = set()
        self._scales: dict[str, Decimal] = {}  # trade -> what splits made of a price of its plan
        self._imports = 0

    def begin_account(self, begun: AccountBegun, positions: Sequence[Position]) -> tuple[str, ...]:
        """Record whose account this is, and import the shares it holds; ids of the imports.

        positions  those held before the ledger began
        """
        with self.ledger.transaction():
            self.ledger.append("account", begun.account_id, begun)
            self._know_account(begun)
            return tuple(
                self._write_import(held.symbol, held.quantity, held.average_entry_price, begun.at)
                for held in positions
                if held.quantity > 0
            )

    def import_order(self, order: Order) -> str | None:
        """Record an order that is not ours, once; the id of its trade, None when it was known."""
        trade_id = f"{IMPORTED}{order.order_id}"
        if order.order_id in self.strangers:
            return None
        found = Import(
            trade_id=trade_id,
            symbol=order.symbol,
            quantity=order.quantity,
            price=NOTHING,
            order_id=order.order_id,
            at=order.submitted_at,
        )
        self.ledger.append("import", trade_id, found)
        self._know_import(found)
        return trade_id

    def _write_import(self, symbol: str, quantity: Decimal, price: Decimal, at: datetime) -> str:
        found = Import(
            trade_id=self._next_import(symbol),
            symbol=symbol,
            quantity=quantity,
            price=price,
            order_id=None,
            at=at,
        )
        self.ledger.append("import", found.trade_id, found)
        self._know_import(found)
        return found.trade_id

    def _next_import(self, symbol: str) -> str:
        return f"{IMPORTED}{symbol}-{self._imports + 1}"

    def write_activity(self, activity: Activity) -> bool:
        """Book what moved cash or shares without a fill, once; whether it was new."""
        if activity.activity_id in self._activities:
            return False
        with self.ledger.transaction():
            self.ledger.append("activity", activity.activity_id, activity)
            self._know_activity(activity)
        return True

    def write_adjustment(self, adjustment: Adjustment) -> None:
        """Make the book equal to the broker's; see Adjustment."""
        with self.ledger.transaction():
            number = sum(1 for _ in self.ledger.records("adjustment")) + 1
            self.ledger.append("adjustment", f"{number:06d}", adjustment)
            self._know_adjustment(adjustment)

    def write_reconciliation(self, found: Reconciliation) -> None:
        """Record a comparison with the broker that changed or found something."""
        last = self.ledger.last("reconciliation")
        number = 1 if last is None else int(last.record_id) + 1
        self.ledger.append("reconciliation", f"{number:08d}", found)
        self.reconciliation = found

    # ---- rebuilding

    def _know_account(self, begun: AccountBegun) -> None:
        self.account = begun
        self.last_execution_id = begun.execution_id or self.last_execution_id
        self.last_activity_id = begun.activity_id

    def _know_import(self, found: Import) -> None:
        self._imports += 1
        if found.order_id is None:
            self.book.bring(found.trade_id, found.symbol, found.quantity, found.price, found.at)
        else:
            self.strangers.add(found.order_id)

    def _know_activity(self, activity: Activity) -> None:
        self._activities.add(activity.activity_id)
        self.last_activity_id = activity.activity_id
        symbol = activity.symbol or ""
        before = self.book.quantities.get(symbol, NOTHING)
        if activity.kind is ActivityKind.SPLIT and before > 0 and before + activity.quantity > 0:
            for trade in self.book.open_trades(symbol):
                scale = self._scales.get(trade.trade_id, Decimal(1))
                self._scales[trade.trade_id] = scale * before / (before + activity.quantity)
        self.book.apply_activity(activity)

    def _know_adjustment(self, adjustment: Adjustment) -> None:
        self.adjusted_at = adjustment.at
        for symbol, quantity in adjustment.quantities.items():
            price = adjustment.prices.get(symbol, NOTHING)
            self.book.adjust(self._next_import(symbol), symbol, quantity, price, adjustment.at)
            self._imports += 1
        self.book.cash += adjustment.cash
        self.book.corrections += adjustment.transfer

    def _read_reconciliation(self, body: dict[str, Any]) -> None:
        self.reconciliation = from_primitive(Reconciliation, body)


ACCOUNT_READERS: dict[str, Callable[[Any, Record], None]] = {
    "account": lambda own, record: own._know_account(from_primitive(AccountBegun, record.body)),
    "import": lambda own, record: own._know_import(from_primitive(Import, record.body)),
    "activity": lambda own, record: own._know_activity(from_primitive(Activity, record.body)),
    "adjustment": lambda own, record: own._know_adjustment(from_primitive(Adjustment, record.body)),
    "reconciliation": lambda own, record: own._read_reconciliation(record.body),
}
