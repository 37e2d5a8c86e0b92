"""Recorded calls to models, and what each day has spent: one SQLite file of the state folder."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from threading import RLock

from agents.chat.calls import Outcome, text_sha256
from trader.core.decision import ChatCall, Role
from trader.core.errors import RecordingError, StateError
from trader.core.ports import Usage

FILE_MODE, FOLDER_MODE = 0o600, 0o700  # prompts name positions and money
APPLICATION = 0x43484154  # "CHAT": tells this file from any other database
VERSION = 1
PATIENCE_MILLISECONDS = 10_000  # how long another process may hold the file

SCHEMA = (
    "CREATE TABLE requests (call_id TEXT PRIMARY KEY, asked TEXT NOT NULL)",
    """
    CREATE TABLE calls (
        seq INTEGER PRIMARY KEY,
        call_id TEXT NOT NULL,
        reply_sha256 TEXT NOT NULL,
        role TEXT NOT NULL,
        round INTEGER NOT NULL,
        model TEXT NOT NULL,
        base_url TEXT NOT NULL,
        prompt TEXT NOT NULL,
        subject TEXT NOT NULL,
        outcome TEXT NOT NULL,
        text BLOB NOT NULL,  -- UTF-8; a reply may hold what no TEXT can
        input_tokens INTEGER,
        output_tokens INTEGER,
        estimated INTEGER,
        cost TEXT  -- USD; null like the three before where nobody counted
    )
    """,
    "CREATE INDEX calls_by_id ON calls (call_id, seq)",
    """
    CREATE TABLE spending (
        day TEXT PRIMARY KEY,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cost TEXT NOT NULL
    )
    """,
    *(
        f"CREATE TRIGGER {table}_never_{word} BEFORE {event} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'recordings are never {words}'); END"
        for table in ("requests", "calls")
        for word, event, words in (("change", "UPDATE", "changed"), ("go", "DELETE", "deleted"))
    ),
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)

RECORD = """
    INSERT INTO calls (call_id, reply_sha256, role, round, model, base_url, prompt, subject,
                       outcome, text, input_tokens, output_tokens, estimated, cost)
    SELECT :call_id, :reply_sha256, :role, :round, :model, :base_url, :prompt, :subject,
           :outcome, :text, :input_tokens, :output_tokens, :estimated, :cost
    WHERE :reply_sha256 IS NOT (
        SELECT reply_sha256 FROM calls WHERE call_id = :call_id AND subject = :subject
        ORDER BY seq DESC LIMIT 1
    )
"""
FIND = """
    SELECT reply_sha256, outcome, text, input_tokens, output_tokens, estimated, cost FROM calls
    WHERE call_id = :call_id AND (:reply_sha256 IS NULL OR reply_sha256 = :reply_sha256)
    ORDER BY subject = :subject DESC, subject <> :subject AND outcome = 'reply' DESC, seq DESC
    LIMIT 1
"""
NEAREST = """
    SELECT subject, call_id FROM calls WHERE role = ? AND round = ?
    ORDER BY subject = ? DESC, seq DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Tokens and money, spent or to be spent. cost: USD."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal = Decimal(0)

    @property
    def tokens(self) -> int:
        """In and out."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=self.cost + other.cost,
        )

    def __sub__(self, other: Amount) -> Amount:
        return Amount(
            input_tokens=self.input_tokens - other.input_tokens,
            output_tokens=self.output_tokens - other.output_tokens,
            cost=self.cost - other.cost,
        )


class ChatStore:
    """Calls to models with what came of them, append-only, and the spending of each day.

    Threads may share one store and processes one file. It keeps a rollback journal: the file alone
    is the whole recording and may be copied or read from where nothing can be written.

    path  file, made with its folder when missing; None keeps everything in memory

    Raises StateError when the file is broken, newer than this code or something else, and
    RecordingError when it is to be read only and is not there.
    """

    def __init__(self, path: Path | None, *, read_only: bool = False) -> None:
        self.path = path
        self._lock = RLock()
        with self._sound(), ExitStack() as undo:
            address = ":memory:" if path is None else _address(path, read_only=read_only)
            self._db = sqlite3.connect(
                address, uri=True, isolation_level=None, check_same_thread=False
            )
            undo.callback(self._db.close)
            self._db.execute(f"PRAGMA busy_timeout = {PATIENCE_MILLISECONDS}")
            if read_only:
                self._db.execute("PRAGMA query_only = ON")
            else:
                self._make()
            self._require_known()
            undo.pop_all()

    def _make(self) -> None:
        with self._transaction():
            if self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
                for statement in SCHEMA:
                    self._db.execute(statement)

    def _require_known(self) -> None:
        application: int = self._db.execute("PRAGMA application_id").fetchone()[0]
        version: int = self._db.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION:
            raise StateError(f"{self.path} holds no recordings of model calls")
        if version > VERSION:
            raise StateError(
                f"the recordings {self.path} have version {version}, this program knows "
                f"{VERSION}: update it"
            )

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """One thread at a time; what the database cannot do becomes a StateError."""
        with self._lock:
            try:
                yield
            except (OSError, sqlite3.Error) as exc:
                raise StateError(f"the recordings {self.path} cannot be used: {exc}") from exc

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, and no other process in between."""
        with self._sound(), self._db:  # the connection commits, or undoes what an error left
            self._db.execute("BEGIN IMMEDIATE")
            yield

    def close(self) -> None:
        """Let go of the file."""
        with self._sound():
            self._db.close()

    def record(
        self, call: ChatCall, outcome: Outcome, *, asked: str, base_url: str, subject: str
    ) -> None:
        """Keep what came of a call, unless this decision's newest outcome of it was the same.

        asked    `asked_json` of the call, kept once
        subject  the decision that asked
        """
        usage = outcome.usage
        row = {
            "call_id": call.call_id,
            "reply_sha256": outcome.sha256,
            "role": call.role,
            "round": call.round,
            "model": call.model,
            "base_url": base_url,
            "prompt": call.prompt,
            "subject": subject,
            "outcome": outcome.kind,
            "text": outcome.text.encode(errors="surrogatepass"),
            "input_tokens": usage and usage.input_tokens,
            "output_tokens": usage and usage.output_tokens,
            "estimated": usage and usage.estimated,
            "cost": usage and f"{usage.cost:f}",
        }
        with self._transaction():
            self._db.execute("INSERT OR IGNORE INTO requests VALUES (?, ?)", (call.call_id, asked))
            self._db.execute(RECORD, row)

    def outcome(
        self, call_id: str, reply_sha256: str | None = None, *, subject: str = ""
    ) -> Outcome | None:
        """The newest outcome of a call, or the one with this hash; None when it is not there.

        What this decision was answered comes first, whatever another run has been told since; then
        any reply, and a failure of another decision only where nothing else is known.
        Raises StateError for a row that does not fit its hash.
        """
        wanted = {"call_id": call_id, "reply_sha256": reply_sha256, "subject": subject}
        with self._sound():
            row = self._db.execute(FIND, wanted).fetchone()
        if row is None:
            return None
        digest, kind, text, *counted = row
        try:
            found = Outcome(
                kind=kind, text=text.decode(errors="surrogatepass"), usage=_usage(*counted)
            )
        except (AttributeError, TypeError, ValueError, InvalidOperation) as exc:
            raise self._unfit(call_id) from exc
        if found.sha256 != digest:
            raise self._unfit(call_id)
        return found

    def asked(self, call_id: str) -> str | None:
        """`asked_json` of a recorded call; StateError when it does not fit its hash."""
        with self._sound():
            row = self._db.execute(
                "SELECT asked FROM requests WHERE call_id = ?", (call_id,)
            ).fetchone()
        if row is not None and text_sha256(str(row[0])) != call_id:
            raise self._unfit(call_id)
        return row[0] if row else None

    def nearest(self, role: Role, turn: int, subject: str) -> tuple[str, str] | None:
        """Subject and id of the newest call of a role in a round.

        One about `subject` if there is any, else one about another; None when there is none.
        """
        with self._sound():
            found: tuple[str, str] | None = self._db.execute(
                NEAREST, (role, turn, subject)
            ).fetchone()
        return found

    def _unfit(self, call_id: str) -> StateError:
        return StateError(
            f"call {call_id[:12]} in the recordings {self.path} does not fit its hash: "
            "the file was changed"
        )

    def spent(self, day: str) -> Amount:
        """What a day has spent and reserved. day: UTC, yyyy-mm-dd."""
        with self._sound():
            row = self._db.execute(
                "SELECT input_tokens, output_tokens, cost FROM spending WHERE day = ?", (day,)
            ).fetchone()
        if row is None:
            return Amount()
        try:
            return Amount(input_tokens=row[0], output_tokens=row[1], cost=Decimal(row[2]))
        except (TypeError, InvalidOperation) as exc:
            raise StateError(f"the spending of {day} in {self.path} is broken") from exc

    def spend(self, day: str, change: Callable[[Amount], Amount]) -> None:
        """Replace what a day has spent by `change` of it; an error inside leaves it as it was.

        No other process can write in between, so two runs never take the same last tokens.
        """
        with self._transaction():
            now = change(self.spent(day))
            self._db.execute(
                "INSERT OR REPLACE INTO spending VALUES (?, ?, ?, ?)",
                (day, now.input_tokens, now.output_tokens, f"{now.cost:f}"),
            )


def _usage(
    input_tokens: int | None, output_tokens: int | None, estimated: int | None, cost: str | None
) -> Usage | None:
    if input_tokens is None or output_tokens is None or cost is None:
        return None
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        estimated=bool(estimated),
        cost=Decimal(cost),
    )


def _address(path: Path, *, read_only: bool) -> str:
    """The file as SQLite opens it; made, for its owner only, unless it is only to be read."""
    mode = "rw"
    if not read_only:
        path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE))
    elif not path.exists():
        raise RecordingError(
            f"there are no recordings at {path}: make them with debate.recording: write"
        )
    elif not os.access(path, os.W_OK):
        mode = "ro"  # else a commit that a crash cut short is undone first, which is a write
    return f"{path.absolute().as_uri()}?mode={mode}"
