"""The exchange's state in one SQLite file or in memory; each change is one transaction."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from trader.broker.exchange.account import Account
from trader.broker.exchange.liquidity import Liquidity
from trader.broker.exchange.postings import Postings
from trader.broker.exchange.records import Command, Event, Ticket, Trade
from trader.broker.exchange.rows import (
    EVENT_COLUMNS,
    HOLDING_COLUMNS,
    TICKET_COLUMNS,
    TRADE_COLUMNS,
    event_of,
    event_values,
    holding_of,
    ticket_of,
    trade_of,
    values_of,
)
from trader.broker.exchange.schema import MIGRATIONS
from trader.core.errors import StateError


def _insert(table: str, columns: tuple[str, ...]) -> str:
    """INSERT by column name; tables and columns are this package's own words."""
    names, places = ", ".join(columns), ", ".join(f":{column}" for column in columns)
    return f"INSERT INTO {table} ({names}) VALUES ({places})"  # noqa: S608


TICKETS = "SELECT " + ", ".join(TICKET_COLUMNS) + " FROM tickets "  # noqa: S608
TRADES = "SELECT " + ", ".join(TRADE_COLUMNS) + " FROM trades "  # noqa: S608
HOLDINGS = "SELECT " + ", ".join(HOLDING_COLUMNS) + " FROM holdings "  # noqa: S608
EVENTS = "SELECT " + ", ".join(EVENT_COLUMNS) + " FROM events "  # noqa: S608
PUT_TICKET = (
    _insert("tickets", (*TICKET_COLUMNS, "is_open"))
    + " ON CONFLICT (sequence) DO UPDATE SET "
    + ", ".join(f"{column} = excluded.{column}" for column in (*TICKET_COLUMNS[1:], "is_open"))
)
PUT_TRADE = _insert("trades", TRADE_COLUMNS)
PUT_HOLDING = _insert("holdings", HOLDING_COLUMNS)
PUT_EVENT = _insert("events", EVENT_COLUMNS)
BEGIN = "BEGIN"
CHOSEN = """WHERE (:after IS NULL OR submitted_ns > :after)
      AND (:until IS NULL OR submitted_ns < :until)
      AND (:side IS NULL OR side = :side)
      AND (:coins IS NULL OR (instr(symbol, '/') > 0) = :coins)
      AND (:later IS NULL OR sequence > :later)
      AND (:earlier IS NULL OR sequence < :earlier)
      AND (:symbols IS NULL OR symbol IN (SELECT value FROM json_each(:symbols)))
      AND CASE WHEN :nested THEN family_id = order_id ELSE status <> 'held' END
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
    liquidity: Liquidity


def erase(database: Path) -> None:
    """Forget a market for good, so that the next one begins anew; StateError if it cannot be."""
    for name in ("", "-wal", "-shm"):
        try:
            database.with_name(database.name + name).unlink(missing_ok=True)
        except OSError as exc:
            raise StateError(f"{database}{name} cannot be removed: {exc}") from exc


def _remedy(error: Exception) -> str:
    """What to do about a damaged file; empty for what a person can see to otherwise."""
    if type(error) is not sqlite3.DatabaseError:  # a full disk or a lock is a kind of it
        return ""
    return "; bring a copy of it back, or begin again with --restart-market"


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
            self.postings = Postings(self._connection)
        except (sqlite3.Error, OSError) as exc:
            problem = f"{self._name} cannot be opened as the market's state: {exc}"
            raise StateError(problem + _remedy(exc)) from exc

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
            problem = f"{self._name} cannot be used, nothing was changed: {exc}"
            raise StateError(problem + _remedy(exc)) from exc

    def market(self) -> Market | None:
        """What the state was begun with, or None when it is new."""
        row = self._one(
            "SELECT source, timeframe, slippage_bps, fee_bps, commission_per_order, initial_cash,"
            " liquidity_seed, partial_fills, volume_share FROM market"
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
            liquidity=Liquidity(seed=row[6], partial_fills=row[7], volume_share=row[8]),
        )

    def begin(self, market: Market, clock_ns: int) -> None:
        """Write the first state; inside a transaction."""
        self._connection.execute(
            "INSERT INTO market (only_row, source, timeframe, slippage_bps, fee_bps,"
            " commission_per_order, initial_cash, cash, begun_ns, clock_ns, liquidity_seed,"
            " partial_fills, volume_share) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
                market.liquidity.seed,
                market.liquidity.partial_fills,
                market.liquidity.volume_share,
            ),
        )
        cash = str(market.initial_cash)
        self.log(Command(clock_ns=clock_ns, method=BEGIN, path=cash, body=None))

    def clock_ns(self) -> int:
        """Market time, UTC nanoseconds."""
        return int(self._one("SELECT clock_ns FROM market")[0])

    def begun_ns(self) -> int:
        """When the market began, UTC nanoseconds."""
        return int(self._one("SELECT begun_ns FROM market")[0])

    def initial_cash(self) -> Decimal:
        """USD the account began with."""
        return Decimal(self._one("SELECT initial_cash FROM market")[0])

    def reset(self, cash: Decimal, clock_ns: int) -> None:
        """Another account takes the place of this one; orders, fills and movements are gone.

        Events and announcements stay: those are the market's.
        """
        for table in ("tickets", "trades", "holdings", "movements"):
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608
        self._connection.execute(
            "UPDATE market SET cash = ?, initial_cash = ?, begun_ns = ?, blocked = ''",
            (str(cash), str(cash), clock_ns),
        )
        self._connection.execute(
            "UPDATE standing SET generation = generation + 1, suspended = 0, fractional = 1"
        )

    def load(self) -> Account:
        """The account with its open orders."""
        cash, clock_ns, halted, blocked, orders, trades, events = self._one(
            "SELECT cash, clock_ns, halted, blocked, (SELECT max(sequence) FROM tickets),"
            " (SELECT max(sequence) FROM trades), (SELECT max(sequence) FROM events) FROM market"
        )
        return Account(
            clock_ns=clock_ns,
            cash=Decimal(cash),
            holdings=map(holding_of, self._connection.execute(HOLDINGS + "ORDER BY symbol")),
            tickets=self._tickets("WHERE is_open = 1 ORDER BY sequence"),
            order_count=orders or 0,
            trade_count=trades or 0,
            event_count=events or 0,
            halted=json.loads(halted),
            blocked=blocked,
        )

    def save(self, account: Account) -> None:
        """Write what changed; inside a transaction."""
        run = self._connection.execute
        run(
            "UPDATE market SET cash = ?, clock_ns = ?, halted = ?, blocked = ?",
            (
                str(account.cash),
                account.clock_ns,
                json.dumps(sorted(account.halted)),
                account.blocked,
            ),
        )
        for ticket in account.changed.values():
            run(PUT_TICKET, values_of(ticket, TICKET_COLUMNS) | {"is_open": ticket.is_open})
        for trade in account.trades:
            run(PUT_TRADE, values_of(trade, TRADE_COLUMNS))
        for event in account.events:
            run(PUT_EVENT, event_values(event))
        if account.holdings != account.holdings_before:
            run("DELETE FROM holdings")
            for holding in account.holdings.values():
                run(PUT_HOLDING, values_of(holding, HOLDING_COLUMNS))

    def log(self, command: Command) -> None:
        """Remember a call that changed the market; inside its transaction."""
        self._connection.execute(
            "INSERT INTO commands (clock_ns, method, path, body) VALUES (?, ?, ?, ?)",
            (command.clock_ns, command.method, command.path, command.body),
        )

    def commands(self) -> list[Command]:
        """The beginning and every call that changed the market, oldest first.

        StateError where the beginning is missing.
        """
        rows = self._connection.execute(
            "SELECT clock_ns, method, path, body FROM commands ORDER BY sequence"
        )
        found = [Command(clock_ns=row[0], method=row[1], path=row[2], body=row[3]) for row in rows]
        if not found or found[0].method != BEGIN:
            raise StateError(
                f"{self._name} was begun by an older version that kept no log of commands; it "
                "cannot be replayed"
            )
        return found

    def events(self, after: int) -> list[Event]:
        """Changes of orders beyond the sequence number `after`, oldest first."""
        rows = self._connection.execute(EVENTS + "WHERE sequence > ? ORDER BY sequence", (after,))
        return [event_of(row) for row in rows]

    def sha256(self) -> str:
        """Hash of every row of every table: two markets with the same one are the same."""
        digest = hashlib.sha256()
        tables = self._connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
        ).fetchall()
        for (table,) in tables:
            digest.update(f"{table}:".encode())
            rows = self._connection.execute(f"SELECT * FROM {table} ORDER BY 1")  # noqa: S608
            for row in rows:
                digest.update(repr(row).encode())
        return digest.hexdigest()

    def listed(self, **wanted: Any) -> list[Ticket]:
        """Orders by status, after, until, side, symbols, coins, later, earlier and nested.

        after, until are UTC nanoseconds, later, earlier sequence numbers, all excluded; direction
        is 1 or -1; a limit is needed.
        """
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

    def trade(self, sequence: int) -> Trade:
        """The fill with this number."""
        return self._trades("WHERE sequence = ?", sequence)[0]

    def trades_since(self, moment_ns: int) -> list[Trade]:
        """Trades filled after `moment_ns`."""
        return self._trades("WHERE filled_ns > ?", moment_ns)

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
        return [ticket_of(row) for row in self._connection.execute(sql, values)]

    def _trades(self, where: str, *values: object) -> list[Trade]:
        return [trade_of(row) for row in self._connection.execute(TRADES + where, values)]
