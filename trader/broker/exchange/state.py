"""The exchange's state in one SQLite file or in memory; each change is one transaction."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

from trader.broker.exchange.account import Account
from trader.broker.exchange.records import Holding, Ticket, Trade
from trader.broker.exchange.schema import MIGRATIONS
from trader.core.errors import StateError
from trader.core.trading import OrderClass, OrderStatus, OrderType, Side, TimeInForce

TICKET_COLUMNS = tuple(field.name for field in fields(Ticket))
TRADE_COLUMNS = tuple(field.name for field in fields(Trade))
HOLDING_COLUMNS = tuple(field.name for field in fields(Holding))


def _insert(table: str, columns: tuple[str, ...]) -> str:
    """INSERT by column name; tables and columns are this package's own words."""
    names, places = ", ".join(columns), ", ".join(f":{column}" for column in columns)
    return f"INSERT INTO {table} ({names}) VALUES ({places})"  # noqa: S608


TICKETS = "SELECT " + ", ".join(TICKET_COLUMNS) + " FROM tickets "  # noqa: S608
TRADES = "SELECT " + ", ".join(TRADE_COLUMNS) + " FROM trades "  # noqa: S608
HOLDINGS = "SELECT " + ", ".join(HOLDING_COLUMNS) + " FROM holdings "  # noqa: S608
PUT_TICKET = (
    _insert("tickets", (*TICKET_COLUMNS, "is_open"))
    + " ON CONFLICT (sequence) DO UPDATE SET "
    + ", ".join(f"{column} = excluded.{column}" for column in (*TICKET_COLUMNS[1:], "is_open"))
)
PUT_TRADE = _insert("trades", TRADE_COLUMNS)
PUT_HOLDING = _insert("holdings", HOLDING_COLUMNS)
CHOSEN = """WHERE (:after IS NULL OR submitted_ns > :after)
      AND (:until IS NULL OR submitted_ns < :until)
      AND (:side IS NULL OR side = :side)
      AND (:symbols IS NULL OR symbol IN (SELECT value FROM json_each(:symbols)))
      AND (NOT :nested OR family_id = order_id)
      AND (:status = 'all' OR (:status = 'open') = CASE WHEN :nested THEN EXISTS (
            SELECT 1 FROM tickets AS member
            WHERE member.family_id = tickets.family_id AND member.is_open = 1) ELSE is_open END)
    ORDER BY sequence * :direction LIMIT :limit"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """What a file of state was begun with; it holds for as long as the file lives."""

    source: str
    timeframe: str
    slippage_bps: float
    fee_bps: float
    commission_per_order: float
    initial_cash: Decimal


def erase(database: Path) -> None:
    """Forget a market for good, so that the next one begins anew; StateError if it cannot be."""
    for name in ("", "-wal", "-shm"):
        try:
            database.with_name(database.name + name).unlink(missing_ok=True)
        except OSError as exc:
            raise StateError(f"{database}{name} cannot be removed: {exc}") from exc


class Store:
    """The SQLite connection; sqlite3's errors leave it as StateError."""

    def __init__(self, database: Path | None) -> None:
        self._name = str(database) if database else "the market in memory"
        try:
            if database is not None and not database.exists():
                os.close(os.open(database, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            self._connection = sqlite3.connect(
                database or ":memory:", isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._migrate()
        except (sqlite3.Error, OSError) as exc:
            raise StateError(f"{self._name} cannot be opened as the market's state: {exc}") from exc

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything inside is written, or nothing."""
        with self._scope("BEGIN IMMEDIATE", "COMMIT"):
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything inside reads one state; nothing is written."""
        with self._scope("BEGIN", "ROLLBACK"):
            yield

    @contextmanager
    def _scope(self, begin: str, end: str) -> Iterator[None]:
        try:
            self._connection.execute(begin)
            try:
                yield
                self._connection.execute(end)
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        except sqlite3.Error as exc:
            raise StateError(f"{self._name} cannot be used, nothing was changed: {exc}") from exc

    def market(self) -> Market | None:
        """What the state was begun with, or None when it is new."""
        row = self._one(
            "SELECT source, timeframe, slippage_bps, fee_bps, commission_per_order, initial_cash"
            " FROM market"
        )
        if row is None:
            return None
        return Market(
            source=row[0],
            timeframe=row[1],
            slippage_bps=row[2],
            fee_bps=row[3],
            commission_per_order=row[4],
            initial_cash=Decimal(row[5]),
        )

    def begin(self, market: Market, clock_ns: int) -> None:
        """Begin a new market; inside a transaction."""
        self._connection.execute(
            "INSERT INTO market VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                market.source,
                market.timeframe,
                market.slippage_bps,
                market.fee_bps,
                market.commission_per_order,
                str(market.initial_cash),
                str(market.initial_cash),
                clock_ns,
                clock_ns,
            ),
        )

    def clock_ns(self) -> int:
        """Market time, UTC nanoseconds."""
        return int(self._one("SELECT clock_ns FROM market")[0])

    def begun_ns(self) -> int:
        """When the market began, UTC nanoseconds."""
        return int(self._one("SELECT begun_ns FROM market")[0])

    def load(self) -> Account:
        """The account with its open orders."""
        cash, clock_ns, orders, trades = self._one(
            "SELECT cash, clock_ns, (SELECT max(sequence) FROM tickets),"
            " (SELECT max(sequence) FROM trades) FROM market"
        )
        return Account(
            clock_ns=clock_ns,
            cash=Decimal(cash),
            holdings=[
                Holding(
                    symbol=row[0],
                    quantity=Decimal(row[1]),
                    average_price=Decimal(row[2]),
                    opened_ns=row[3],
                )
                for row in self._connection.execute(HOLDINGS + "ORDER BY symbol")
            ],
            tickets=self._tickets("WHERE is_open = 1 ORDER BY sequence"),
            order_count=orders or 0,
            trade_count=trades or 0,
        )

    def save(self, account: Account) -> None:
        """Write what changed; inside a transaction."""
        run = self._connection.execute
        run("UPDATE market SET cash = ?, clock_ns = ?", (str(account.cash), account.clock_ns))
        for ticket in account.changed.values():
            run(PUT_TICKET, _values(ticket, TICKET_COLUMNS) | {"is_open": ticket.is_open})
        for trade in account.trades:
            run(PUT_TRADE, _values(trade, TRADE_COLUMNS))
        if account.trades:
            run("DELETE FROM holdings")
            for holding in account.holdings.values():
                run(PUT_HOLDING, _values(holding, HOLDING_COLUMNS))

    def listed(self, **wanted: Any) -> list[Ticket]:
        """Orders by status, after, until, side, symbols, nested, direction (1, -1) and limit."""
        return self._tickets_of(TICKETS + CHOSEN, wanted)

    def families(self, heads: list[Ticket]) -> dict[str, list[Ticket]]:
        """The legs of each of `heads`, by the id of the head."""
        legs: dict[str, list[Ticket]] = {head.order_id: [] for head in heads}
        marks = ", ".join("?" * len(legs))
        where = f"WHERE family_id IN ({marks}) AND family_id <> order_id ORDER BY sequence"
        for leg in self._tickets(where, *legs):
            legs[leg.family_id].append(leg)
        return legs

    def ticket(self, order_id: str) -> Ticket | None:
        """The order with this id."""
        return next(iter(self._tickets("WHERE order_id = ?", order_id)), None)

    def ticket_of_client(self, client_order_id: str) -> Ticket | None:
        """The order with this client id; one that was ever used stays found."""
        return next(iter(self._tickets("WHERE client_order_id = ?", client_order_id)), None)

    def trades(self, *, after: int, limit: int, newest_first: bool) -> list[Trade]:
        """Trades beyond the sequence number `after`, or before it when the newest come first."""
        where = (
            "WHERE sequence < ? ORDER BY sequence DESC LIMIT ?"
            if newest_first
            else "WHERE sequence > ? ORDER BY sequence LIMIT ?"
        )
        return self._trades(where, after, limit)

    def trades_since(self, moment_ns: int) -> list[Trade]:
        """Trades filled after `moment_ns`."""
        return self._trades("WHERE filled_ns > ?", moment_ns)

    def trade_sequence(self, execution_id: str) -> int | None:
        """Where in the row of trades this one stands."""
        row = self._one("SELECT sequence FROM trades WHERE execution_id = ?", execution_id)
        return None if row is None else int(row[0])

    def _migrate(self) -> None:
        version = int(self._one("PRAGMA user_version")[0])
        if version > len(MIGRATIONS):
            raise StateError(
                f"{self._name} was written by a newer version of the trader (schema {version}, "
                f"known {len(MIGRATIONS)}); update the trader or use --restart-market"
            )
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            self._connection.executescript(
                f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;"
            )

    def _one(self, sql: str, *values: object) -> Any:
        return self._connection.execute(sql, values).fetchone()

    def _tickets(self, where: str, *values: object) -> list[Ticket]:
        return self._tickets_of(TICKETS + where, values)

    def _tickets_of(self, sql: str, values: Any) -> list[Ticket]:
        return [_ticket(row) for row in self._connection.execute(sql, values)]

    def _trades(self, where: str, *values: object) -> list[Trade]:
        rows = self._connection.execute(TRADES + where, values)
        return [
            Trade(
                sequence=row[0],
                execution_id=row[1],
                order_id=row[2],
                symbol=row[3],
                side=Side(row[4]),
                quantity=Decimal(row[5]),
                price=Decimal(row[6]),
                fee=Decimal(row[7]),
                filled_ns=row[8],
            )
            for row in rows
        ]


def _values(record: object, columns: tuple[str, ...]) -> dict[str, object]:
    """Fields of a record as SQLite takes them; amounts and words become text."""
    values: dict[str, object] = {}
    for column in columns:
        value = getattr(record, column)
        values[column] = str(value) if isinstance(value, Decimal | StrEnum) else value
    return values


def _ticket(row: tuple[Any, ...]) -> Ticket:
    named = dict(zip(TICKET_COLUMNS, row, strict=True))
    return Ticket(
        **named
        | {
            "side": Side(named["side"]),
            "quantity": Decimal(named["quantity"]),
            "order_type": OrderType(named["order_type"]),
            "order_class": OrderClass(named["order_class"]),
            "time_in_force": TimeInForce(named["time_in_force"]),
            "limit_price": _amount(named["limit_price"]),
            "stop_price": _amount(named["stop_price"]),
            "status": OrderStatus(named["status"]),
            "live": bool(named["live"]),
            "reserved": Decimal(named["reserved"]),
            "filled_price": _amount(named["filled_price"]),
        }
    )


def _amount(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)
