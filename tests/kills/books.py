"""What is wrong with an account, judged by the exchange's own books and not by the trader's."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from trader.broker.exchange.exchange import Exchange
from trader.core.costs import Costs
from trader.core.errors import StateError
from trader.ledger.store import Ledger
from trader.orders.journal import OrderJournal
from trader.orders.sending import NEVER_ARRIVED, NOT_NEEDED, OTHERS_WAIT

Json = dict[str, Any]
GIVEN_UP = (NEVER_ARRIVED, NOT_NEEDED, OTHERS_WAIT)
ALIVE = ("new", "accepted", "pending_new", "partially_filled", "held")
SOLD_AT_ONCE = ("market", "stop", "stop_limit", "trailing_stop")  # what guards shares
OF_AN_ORDER = (
    "side",
    "type",
    "order_class",
    "time_in_force",
    "status",
    "qty",
    "stop_price",
    "limit_price",
    "filled_qty",
    "filled_avg_price",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """All that the exchange knows of an account."""

    account: Json
    positions: tuple[Json, ...]
    orders: tuple[Json, ...]  # newest first, legs nested
    fills: tuple[Json, ...]

    @staticmethod
    def of(exchange: Exchange) -> Books:
        """Read them past the trader's adapter."""
        return Books(
            account=_get(exchange, "/v2/account"),
            positions=tuple(_get(exchange, "/v2/positions")),
            orders=tuple(_get(exchange, "/v2/orders?status=all&nested=true&limit=500")),
            fills=tuple(_get(exchange, "/v2/account/activities/FILL?page_size=100")),
        )

    def story(self) -> Json:
        """What was traded and what is in force.

        Not how it came to that: a process that finds shares whose legs are canceled gives them
        a stop before it sells them, and that order is gone again in the end.
        """
        return {
            "cash": self.account["cash"],
            "positions": {held["symbol"]: held["qty"] for held in self.positions},
            "orders": [
                {name: order[name] for name in OF_AN_ORDER}
                | {"legs": [leg["status"] for leg in order["legs"] or ()]}
                for order in self.orders
                if order["status"] in ALIVE or Decimal(order["filled_qty"] or 0)
            ],
            "fills": [(fill["side"], fill["qty"], fill["price"]) for fill in self.fills],
        }


def _get(exchange: Exchange, path: str) -> Any:
    status, payload = exchange.handle("GET", path, None)
    assert status == 200, payload
    return payload


def complaints(books: Books, ledger: Path) -> list[str]:
    """Lost, doubled, unprotected: one line for each; empty when all is well."""
    opened = Ledger(ledger, read_only=True)
    try:
        opened.check()
        journal = OrderJournal(opened, cash=_cash(opened), costs=Costs())
        cycles = [record.record_id for record in opened.records("cycle")]
    finally:
        opened.close()
    return [
        *_lost(books, journal),
        *_doubled(books, journal, cycles),
        *_unprotected(books),
        *_different(books, journal),
    ]


def _cash(ledger: Ledger) -> Decimal:
    begun = next(ledger.records("run"), None)
    if begun is None:
        raise StateError("the ledger has no run")
    return Decimal(begun.body["cash"])


def _lost(books: Books, journal: OrderJournal) -> list[str]:
    """Orders that were meant and neither arrived nor were given up, and fills nobody booked."""
    there = {order["client_order_id"] for order in books.orders}
    found = [f"{item.intent.client_order_id} is in doubt" for item in journal.unresolved()]
    for key, outcome in journal.outcomes.items():
        if outcome.order_id is not None and key not in there:
            found.append(f"lost: {key} was taken, says the ledger")
        if outcome.order_id is None and key in there:
            found.append(f"lost: {key} was refused, says the ledger")
        if outcome.order_id is None and outcome.refusal not in GIVEN_UP:
            found.append(f"lost: {key} was refused: {outcome.refusal}")
    found += [
        f"lost: nobody booked the fill {fill['id']}"
        for fill in books.fills
        if not journal.has_booked(fill["id"])
    ]
    return found


def _doubled(books: Books, journal: OrderJournal, cycles: list[str]) -> list[str]:
    """More than one order for one decision, more bought than decided, more sold than bought."""
    found = []
    for key, count in Counter(order["client_order_id"] for order in books.orders).items():
        if count > 1:
            found.append(f"doubled: {count} orders {key}")
        if key not in journal.intents:
            found.append(f"doubled: nobody meant {key}")
    held = {order["client_order_id"]: order for order in books.orders}
    for cycle in cycles:
        entries = journal.of_trade(cycle, "entry")
        bought = sum(_filled(held.get(item.intent.client_order_id)) for item in entries)
        sales = [
            held.get(item.intent.client_order_id)
            for item in journal.of_trade(
                cycle, "exit", "target", "protection", "emergency", "close"
            )
        ]
        legs = [
            leg
            for item in entries
            for leg in (held.get(item.intent.client_order_id) or {}).get("legs") or ()
        ]
        sold = sum(_filled(order) for order in (*sales, *legs))
        for item in entries:
            order = held.get(item.intent.client_order_id)
            if order and order["submitted_at"][:10] != f"{item.as_of:%Y-%m-%d}":
                key, day = item.intent.client_order_id, order["submitted_at"][:10]
                found.append(f"doubled: {key} of {item.as_of:%Y-%m-%d} was sent on {day}")
        if len(entries) > 1:
            found.append(f"doubled: {len(entries)} entries of {cycle}")
        if bought > sum(item.intent.quantity for item in entries):
            found.append(f"doubled: {bought} bought for {cycle}")
        if sold > bought:
            found.append(f"doubled: {sold} sold of {bought} bought for {cycle}")
    return found


def _filled(order: Json | None) -> Decimal:
    return Decimal(order["filled_qty"] or 0) if order else Decimal(0)


def _unprotected(books: Books) -> list[str]:
    """Shares held that no stop and no sale at market covers, or that are sold more than once."""
    found = []
    for held in books.positions:
        quantity, covered = Decimal(held["qty"]), Decimal(0)
        if quantity < 0:
            found.append(f"doubled: {quantity} {held['symbol']} are held")
        for order in books.orders:
            for one in (order, *(order["legs"] or ())):
                armed = one["status"] != "held" or order["status"] == "filled"
                guards = one["side"] == "sell" and one["type"] in SOLD_AT_ONCE and armed
                if one["symbol"] == held["symbol"] and guards and one["status"] in ALIVE:
                    covered += Decimal(one["qty"]) - Decimal(one["filled_qty"] or 0)
        if covered != quantity:
            found.append(f"unprotected: {covered} of {quantity} {held['symbol']} have a stop")
    return found


def _different(books: Books, journal: OrderJournal) -> list[str]:
    """Cash and shares that the ledger counts otherwise."""
    theirs = {held["symbol"]: Decimal(held["qty"]) for held in books.positions}
    ours = {symbol: quantity for symbol, quantity in journal.book.quantities.items() if quantity}
    found = [] if ours == theirs else [f"lost: the ledger holds {ours}, the exchange {theirs}"]
    cash = Decimal(books.account["cash"])
    if abs(journal.book.cash - cash) > Decimal("0.01"):
        found.append(f"lost: the ledger has {journal.book.cash} USD, the exchange {cash}")
    return found
