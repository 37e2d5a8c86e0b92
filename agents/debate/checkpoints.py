"""Where a debate is kept while it goes on, so that a run that dies can go on with it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from trader.core.errors import StateError


class Checkpoints:
    """LangGraph's SQLite checkpointer on one file that only its owner can read.

    The state of a debate is JSON primitives, so the serialiser may rebuild no type at all: a
    crafted row comes back inert, whatever LANGGRAPH_STRICT_MSGPACK says. Raises StateError for a
    file that is no such database.
    """

    def __init__(self, path: Path) -> None:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        # nodes run in the graph's own threads, one at a time
        self._connection = sqlite3.connect(path, check_same_thread=False)
        self.saver = SqliteSaver(
            self._connection,
            serde=JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=()),
        )
        try:
            self.saver.setup()
        except sqlite3.DatabaseError as exc:
            self._connection.close()
            raise StateError(f"{path} cannot be used: {exc}; move it away") from exc

    def forget(self, threads: Iterable[str]) -> None:
        """Drop what is kept of these debates; their records are in the ledger."""
        for thread in threads:
            self.saver.delete_thread(thread)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
