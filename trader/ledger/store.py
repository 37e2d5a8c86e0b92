"""Append-only SQLite records, each carrying the hash of the one before.

One row per event, of a kind such as `slot`, `cycle`, `intent`, `order`, `fill` or `control`.
Several processes may append: each transaction first looks where the chain ends. The hash of a row
is SHA-256(previous hash + kind + record id + canonical JSON of the body), so that no row can be
changed, dropped or put in between unseen. Host facts and durations are
kept in `telemetry`, outside the chain.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trader.core.canonical import canonical_json
from trader.core.errors import StateError

GENESIS = "0" * 64
FILE_MODE, FOLDER_MODE = 0o600, 0o700  # records name positions and money
PATIENCE_SECONDS = 30.0  # how long a transaction waits for another process to finish its own
REMEDY = (
    "nothing in it was changed; bring a backup back with `trader ledger restore`, or begin again "
    "with --restart-market"
)

MIGRATIONS = (
    """
    CREATE TABLE records (
        seq INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        record_id TEXT NOT NULL,
        body TEXT NOT NULL,
        previous TEXT NOT NULL,
        hash TEXT NOT NULL UNIQUE,
        UNIQUE (kind, record_id)
    );
    CREATE TRIGGER records_never_change BEFORE UPDATE ON records
        BEGIN SELECT RAISE(ABORT, 'ledger records are never changed'); END;
    CREATE TRIGGER records_never_go BEFORE DELETE ON records
        BEGIN SELECT RAISE(ABORT, 'ledger records are never deleted'); END;
    CREATE TABLE telemetry (seq INTEGER PRIMARY KEY, name TEXT NOT NULL, body TEXT NOT NULL);
    """,
    "CREATE INDEX records_by_kind ON records (kind, seq);",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One row of the chain."""

    seq: int
    kind: str
    record_id: str
    body: dict[str, Any]
    hash: str


class Ledger:
    """The records of one state folder or of one backtest.

    path              file of the ledger, made with its folder when missing; None: in memory
    durable           True commits every record before `append` returns (WAL, synchronous FULL);
                      False gathers records until `commit` or `close`, for a backtest that can be
                      run again
    patience_seconds  how long to wait for another process that is writing

    Raises StateError when the file cannot be opened, is newer than this code or is not a ledger.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        durable: bool = True,
        read_only: bool = False,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self.path = path
        self._durable, self._patience_seconds = durable, patience_seconds
        self._depth = 0
        self._seq, self.head = 0, GENESIS
        try:
            self._db = self._open(path, read_only=read_only)
            self._find_end()
        except (OSError, sqlite3.Error) as exc:
            raise self._unusable("used", exc) from exc

    def _open(self, path: Path | None, *, read_only: bool) -> sqlite3.Connection:
        if read_only and path is not None:
            self._db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            if self._known_version() or self._db.execute("SELECT 1 FROM sqlite_master").fetchone():
                return self._db
            self._db.close()  # who made the file died before there was anything in it
        if path is None or read_only:
            self._db = sqlite3.connect(":memory:", isolation_level=None)
            self._db.deserialize(empty_ledger())
            return self._db
        path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        if not path.exists():  # closing a file that SQLite has open would undo its locks
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE))
        self._db = sqlite3.connect(path, isolation_level=None, timeout=self._patience_seconds)
        self._known_version()  # a file that is no ledger is found out before anything is written
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        if self._known_version() < len(MIGRATIONS):
            migrate(self._db)
        return self._db

    def _known_version(self) -> int:
        version: int = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > len(MIGRATIONS):
            raise StateError(
                f"the ledger {self.path} has version {version}, this program knows "
                f"{len(MIGRATIONS)}: update it"
            )
        return version

    def _find_end(self) -> None:
        """Learn where the chain ends; another process may have gone on with it."""
        last = self._db.execute("SELECT seq, hash FROM records ORDER BY seq DESC LIMIT 1")
        self._seq, self.head = last.fetchone() or (0, GENESIS)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything appended inside is kept together or not at all; transactions may nest.

        Raises StateError when the file cannot be written; nothing of the transaction is kept then.
        """
        if self._depth:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
            return
        gathered = self._db.in_transaction  # what `commit` still waits for must not be undone
        try:
            self._db.execute("SAVEPOINT work" if gathered else "BEGIN IMMEDIATE")
            if not gathered and self.path is not None:
                self._find_end()
        except sqlite3.Error as exc:
            self._roll_back()
            raise self._unusable("written", exc) from exc
        seq, head = self._seq, self.head
        self._depth = 1
        try:
            yield
        except BaseException:
            if self._db.in_transaction:  # a full disk may have ended it already
                self._db.execute("ROLLBACK TO work" if gathered else "ROLLBACK")
            self._seq, self.head = seq, head
            raise
        finally:
            self._depth = 0
            if gathered and self._db.in_transaction:
                self._db.execute("RELEASE work")
            if self._durable:
                self.commit()

    def append(self, kind: str, record_id: str, body: Any) -> str:
        """Add one record and return its hash; StateError when this kind and id exist already."""
        text = canonical_json(body)
        with self.transaction():
            digest = chain_hash(self.head, kind, record_id, text)
            try:
                self._db.execute(
                    "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)",
                    (self._seq + 1, kind, record_id, text, self.head, digest),
                )
            except sqlite3.IntegrityError as exc:
                raise StateError(f"{kind} {record_id} cannot be recorded: {exc}") from exc
            except sqlite3.Error as exc:
                raise self._unusable("written", exc) from exc
            self._seq += 1
            self.head = digest
        return digest

    def note(self, name: str, body: Any) -> None:
        """Keep a host fact (a duration, a version) outside the chain."""
        with self.transaction():
            self._db.execute(
                "INSERT INTO telemetry (name, body) VALUES (?, ?)", (name, canonical_json(body))
            )

    def commit(self) -> None:
        """Make everything appended so far durable; StateError, and nothing of it kept, if not."""
        if self._db.in_transaction and self._depth == 0:
            try:
                self._db.execute("COMMIT")
            except sqlite3.Error as exc:
                self._roll_back()
                self._find_end()
                raise self._unusable("written", exc) from exc

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def _unusable(self, what: str, exc: Exception) -> StateError:
        """What is wrong with the file, and what a person can do about it."""
        if isinstance(exc, sqlite3.OperationalError) and "decode" in str(exc):
            # Python's own words, without a code, would tell the whole record
            return StateError(f"the ledger {self.path} holds text that is none; {REMEDY}")
        words = f"the ledger {self.path} cannot be {what}: {exc}"
        code = getattr(exc, "sqlite_errorcode", 0) & 0xFF  # without the finer kind
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StateError(f"{words}; another program has been writing for too long")
        if code == sqlite3.SQLITE_FULL:
            return StateError(f"{words}; make room on the disk, nothing was lost")
        if code == sqlite3.SQLITE_IOERR:
            return StateError(
                f"{words}; is the disk full, over its quota or failing? What was recorded is kept"
            )
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR):
            return StateError(f"{words}; {REMEDY}")
        return StateError(words)

    def close(self) -> None:
        """Commit and let go of the file."""
        self.commit()
        self._db.close()

    def records(self, *kinds: str) -> Iterator[Record]:
        """Records of the given kinds (all when none is given), oldest first."""
        marks = ",".join("?" for _ in kinds)
        where = f"WHERE kind IN ({marks})" if kinds else ""
        query = f"SELECT seq, kind, record_id, body, hash FROM records {where} ORDER BY seq"  # noqa: S608
        for seq, kind, record_id, body, digest in self._rows(query, kinds):
            yield self._read(seq, kind, record_id, body, digest)

    def since(self, seq: int, *kinds: str) -> Iterator[Record]:
        """Records of the given kinds that came after record `seq`, oldest first."""
        marks = ",".join("?" for _ in kinds)
        query = (
            f"SELECT seq, kind, record_id, body, hash FROM records WHERE seq > ? "  # noqa: S608
            f"AND kind IN ({marks}) ORDER BY seq"
        )
        for row in self._rows(query, (seq, *kinds)):
            yield self._read(*row)

    def _rows(self, query: str, given: Sequence[object] = ()) -> Iterator[Any]:
        """Rows of a query; StateError for a file that is broken in its middle."""
        rows = None
        while True:
            try:
                rows = rows or self._db.execute(query, given)
                row = next(rows, None)
            except sqlite3.Error as exc:
                raise self._unusable("read", exc) from exc
            if row is None:
                return
            yield row

    def record(self, kind: str, record_id: str) -> Record | None:
        """One record, or None."""
        query = "SELECT seq, body, hash FROM records WHERE kind = ? AND record_id = ?"
        row = next(self._rows(query, (kind, record_id)), None)
        if row is None:
            return None
        return self._read(row[0], kind, record_id, row[1], row[2])

    def _read(self, seq: int, kind: str, record_id: str, text: str, digest: str) -> Record:
        try:
            body = json.loads(text)
        except (TypeError, ValueError) as exc:
            raise StateError(
                f"record {seq} ({kind} {record_id}) of {self.path} is broken; {REMEDY}"
            ) from exc
        return Record(seq=seq, kind=kind, record_id=record_id, body=body, hash=digest)

    def last(self, kind: str) -> Record | None:
        """The newest record of a kind, or None."""
        query = "SELECT record_id FROM records WHERE kind = ? ORDER BY seq DESC LIMIT 1"
        row = next(self._rows(query, (kind,)), None)
        return self.record(kind, row[0]) if row else None

    def verify(self) -> int:
        """Walk the whole chain; the number of records.

        Raises StateError naming the first record that does not fit.
        """
        previous, count = GENESIS, 0
        rows = self._rows(
            "SELECT seq, kind, record_id, body, previous, hash FROM records ORDER BY seq"
        )
        for seq, kind, record_id, body, said, digest in rows:
            count += 1
            fits = said == previous and digest == chain_hash(previous, kind, record_id, body)
            if seq != count or not fits:
                raise StateError(
                    f"record {seq} ({kind} {record_id}) of {self.path} does not fit the chain; "
                    f"{REMEDY}"
                )
            previous = digest
        return count

    def check(self) -> int:
        """Look at every page of the file, then walk the chain; the number of records.

        Raises StateError naming what is damaged and the way to restore it.
        """
        found = next(self._rows("PRAGMA integrity_check"))[0]
        if found != "ok":
            raise StateError(f"the ledger {self.path} is damaged ({found}); {REMEDY}")
        return self.verify()

    def backup(self, path: Path) -> int:
        """Copy everything committed to a new file while others go on writing; its records.

        The copy appears under its name only once it is whole and has been checked. StateError when
        the file exists or cannot be written.
        """
        part = path.with_name(f"{path.name}.part")
        try:
            path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC, FILE_MODE)
            try:
                copy = sqlite3.connect(part)
                try:
                    copy.execute("PRAGMA synchronous = OFF")  # made safe below, once
                    self._db.backup(copy)
                    copy.execute("PRAGMA journal_mode = DELETE")  # one file, no log beside it
                finally:
                    copy.close()
                os.fsync(handle)
            finally:
                os.close(handle)
            checked = Ledger(part, read_only=True)
            count = checked.check()
            checked.close()
            os.link(part, path)  # refuses a name that is taken
        except (OSError, sqlite3.Error) as exc:
            raise StateError(f"{path} cannot hold a backup of {self.path}: {exc}") from exc
        finally:
            part.unlink(missing_ok=True)
        return count


def migrate(database: sqlite3.Connection) -> None:
    """Bring a database to the newest version; of two processes that open a new file one does."""
    database.execute("BEGIN IMMEDIATE")
    try:
        version: int = database.execute("PRAGMA user_version").fetchone()[0]
        for number in range(version, len(MIGRATIONS)):
            for statement in statements(MIGRATIONS[number]):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {number + 1}")
        database.execute("COMMIT")
    except sqlite3.Error:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


@cache
def empty_ledger() -> bytes:
    """A database without records; copying it is quicker than making one for each simulated life."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    migrate(database)
    return database.serialize()


def statements(script: str) -> Iterator[str]:
    """The single statements of an SQL script; the body of a trigger stays whole."""
    gathered = ""
    for line in script.splitlines(keepends=True):
        gathered += line
        if sqlite3.complete_statement(gathered):
            yield gathered
            gathered = ""


def chain_hash(previous: str, kind: str, record_id: str, body: str) -> str:
    """Hash of a record: SHA-256 of the previous hash, kind, id and canonical JSON, line by line."""
    return hashlib.sha256(f"{previous}\n{kind}\n{record_id}\n{body}".encode()).hexdigest()
