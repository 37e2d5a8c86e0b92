"""Append-only SQLite records, each carrying the hash of the one before.

One row per event: `run`, `slot`, `cycle`, `approval`, `answer`, `intent`, `order`, `fill`,
`result`. The hash of a row is SHA-256(previous hash + kind + record id + canonical JSON of the
body), so that no row can be changed, dropped or put in between unseen. Host facts and durations are
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
from pathlib import Path
from typing import Any

from trader.core.canonical import canonical_json
from trader.core.errors import StateError

GENESIS = "0" * 64
FILE_MODE, FOLDER_MODE = 0o600, 0o700  # records name positions and money

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

    path     file of the ledger, made with its folder when missing; None keeps it in memory
    durable  True commits every record before `append` returns (WAL, synchronous FULL); False
             gathers records until `commit` or `close`, for a backtest that can be run again

    Raises StateError when the file cannot be opened, is newer than this code or is not a ledger.
    """

    def __init__(self, path: Path | None, *, durable: bool = True, read_only: bool = False) -> None:
        self.path = path
        self._durable = durable
        self._depth = 0
        try:
            self._db = self._open(path, read_only=read_only)
            last = self._db.execute(
                "SELECT seq, hash FROM records ORDER BY seq DESC LIMIT 1"
            ).fetchone()
        except (OSError, sqlite3.Error) as exc:
            raise StateError(f"the ledger {path} cannot be used: {exc}") from exc
        self._seq: int = last[0] if last else 0
        self.head: str = last[1] if last else GENESIS

    def _open(self, path: Path | None, *, read_only: bool) -> sqlite3.Connection:
        if read_only and path is not None:
            self._db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            self._known_version()
            return self._db
        if path is not None:
            path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE))
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA busy_timeout = 5000")
        self._migrate()
        return self._db

    def _known_version(self) -> int:
        version: int = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > len(MIGRATIONS):
            raise StateError(
                f"the ledger {self.path} has version {version}, this program knows "
                f"{len(MIGRATIONS)}: update it"
            )
        return version

    def _migrate(self) -> None:
        version = self._known_version()
        for number in range(version, len(MIGRATIONS)):
            self._db.executescript(
                f"BEGIN; {MIGRATIONS[number]} PRAGMA user_version = {number + 1}; COMMIT;"
            )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything appended inside is kept together or not at all; transactions may nest."""
        if self._depth:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
            return
        seq, head = self._seq, self.head
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
        self._db.execute("SAVEPOINT work")  # undoes this alone, not what `commit` still gathers
        self._depth = 1
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK TO work")
            self._seq, self.head = seq, head
            raise
        finally:
            self._depth = 0
            self._db.execute("RELEASE work")
            if self._durable:
                self.commit()

    def append(self, kind: str, record_id: str, body: Any) -> str:
        """Add one record and return its hash; StateError when this kind and id exist already."""
        text = canonical_json(body)
        digest = chain_hash(self.head, kind, record_id, text)
        with self.transaction():
            try:
                self._db.execute(
                    "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)",
                    (self._seq + 1, kind, record_id, text, self.head, digest),
                )
            except sqlite3.Error as exc:
                raise StateError(f"{kind} {record_id} cannot be recorded: {exc}") from exc
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
        """Make everything appended so far durable."""
        if self._db.in_transaction and self._depth == 0:
            try:
                self._db.execute("COMMIT")
            except sqlite3.Error as exc:
                raise StateError(f"the ledger {self.path} cannot be written: {exc}") from exc

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

    def since(self, seq: int, kind: str) -> Iterator[Record]:
        """Records of one kind that came after record `seq`, oldest first."""
        query = (
            "SELECT seq, kind, record_id, body, hash FROM records WHERE seq > ? AND kind = ? "
            "ORDER BY seq"
        )
        for row in self._rows(query, (seq, kind)):
            yield self._read(*row)

    def _rows(self, query: str, given: Sequence[object] = ()) -> Iterator[Any]:
        """Rows of a query; StateError for a file that is broken in its middle."""
        rows = None
        while True:
            try:
                rows = rows or self._db.execute(query, given)
                row = next(rows, None)
            except sqlite3.Error as exc:
                raise StateError(f"the ledger {self.path} cannot be read: {exc}") from exc
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
            raise StateError(f"record {seq} ({kind} {record_id}) of {self.path} is broken") from exc
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
                    f"record {seq} ({kind} {record_id}) of {self.path} does not fit the chain"
                )
            previous = digest
        return count


def chain_hash(previous: str, kind: str, record_id: str, body: str) -> str:
    """Hash of a record: SHA-256 of the previous hash, kind, id and canonical JSON, line by line."""
    return hashlib.sha256(f"{previous}\n{kind}\n{record_id}\n{body}".encode()).hexdigest()
