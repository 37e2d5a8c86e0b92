"""Where a debate is kept while it goes on, so that a run that dies can go on with it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from trader.core.errors import StateError

Kept = TypeVar("Kept")
# what LangGraph raises over a row that is not as it wrote it
UNREADABLE = (AttributeError, LookupError, RuntimeError, sqlite3.Error, TypeError, ValueError)


class Checkpoints:
    """LangGraph's SQLite checkpointer on one file that only its owner can read.

    The state of a debate is JSON primitives, so the serialiser may rebuild no type at all: a
    crafted row comes back inert, whatever LANGGRAPH_STRICT_MSGPACK says. Raises StateError for a
    file that is no such database.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        # LangGraph writes in a thread of its own
        self._connection = sqlite3.connect(path, check_same_thread=False)
        self.saver = SqliteSaver(
            self._connection,
            serde=JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=()),
        )
        try:
            with self.sound():
                self.saver.setup()
        except StateError:
            self._connection.close()
            raise

    @contextmanager
    def sound(self) -> Iterator[None]:
        """What the file cannot do becomes a StateError."""
        try:
            yield
        except sqlite3.Error as exc:
            raise self._unfit(exc) from exc

    def kept(self, read: Callable[[], Kept]) -> Kept:
        """What `read` finds; StateError for rows that nobody can make sense of."""
        try:
            return read()
        except UNREADABLE as exc:
            raise self._unfit(exc) from exc

    def _unfit(self, error: Exception) -> StateError:
        return StateError(
            f"{self._path} cannot be used: {error}; if that stays so move it away, and debates "
            "under way begin again"
        )

    def forget(self, threads: Iterable[str]) -> None:
        """Drop what is kept of these debates; their records are in the ledger."""
        for thread in threads:
            self.saver.delete_thread(thread)

    def forget_all(self) -> None:
        """Drop every debate, also of runs that died or had other settings."""
        with self.sound(), self.saver.cursor() as cursor:
            cursor.execute("DELETE FROM checkpoints")
            cursor.execute("DELETE FROM writes")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
