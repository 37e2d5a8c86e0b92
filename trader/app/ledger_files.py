"""The ledger as a file: verified, copied while it is written, brought back, written out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TextIO

from trader.app.context import Context
from trader.app.folder import LEDGER, locked, make_folder
from trader.app.viewing import NO_ACCOUNT
from trader.core.canonical import Primitive, to_object
from trader.core.errors import StateError, UsageError
from trader.ledger.store import FILE_MODE, Ledger

SCHEMA_VERSION = 1
BACKUPS, AFTER_CLOSE, ARCHIVE = "backups", "sessions", "archive"
KEPT_SESSIONS = 7  # of the backups that an unattended run makes by itself
LOGS = ("-wal", "-shm")  # beside a database that is in use


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFile:
    """What a command about the ledger has looked at or made.

    path      of the ledger, the backup or the export
    finished  moment of the last slot in it
    """

    schema_version: int
    path: str
    records: int
    ledger_head: str
    finished: datetime | None
    notices: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self)


def verify(app: Context) -> LedgerFile:
    """Look at every page and every record.

    StateError names what is damaged, or the first record that does not fit the chain.
    """
    with _opened(app) as ledger:
        return _told(ledger, app.state_dir / LEDGER, ledger.check())


def backup(app: Context, to: Path | None) -> LedgerFile:
    """Copy the ledger while others go on writing, and check the copy.

    to  a new file; None: in `backups`, named after its last slot; the same again is not copied
    """
    with _opened(app) as ledger:
        path = to.expanduser() if to else app.state_dir / BACKUPS / _name(ledger)
        if to or not path.exists():
            ledger.backup(path)
    return _checked(path)


def backup_after_close(ledger: Ledger, state_dir: Path, *, keep: int = KEPT_SESSIONS) -> Path:
    """The backup of an unattended run at the end of a session; older ones beyond `keep` go.

    Those that a person made stay. StateError when it cannot be made: nothing is removed then.
    """
    folder = state_dir / BACKUPS / AFTER_CLOSE
    path = folder / _name(ledger)
    if not path.exists():
        ledger.backup(path)
    for old in sorted(folder.glob("ledger-*.db"))[:-keep]:
        old.unlink()
    return path


def restore(app: Context, source: Path) -> LedgerFile:
    """Put a backup in the place of the ledger; the ledger that was there is kept aside.

    Raises UsageError for a file that is missing or the ledger itself, StateError for one that is
    no sound ledger, LockHeldError while a run is at work. Nothing is changed then.
    """
    source = source.expanduser()
    if not source.is_file():
        raise UsageError(f"there is no file {source}")
    with locked(app.state_dir):
        path = app.state_dir / LEDGER
        if path.exists() and source.samefile(path):
            raise UsageError(f"{source} is the ledger itself: name a backup of it")
        found = _checked(source)
        part = path.with_name(f"{LEDGER}.part")
        part.unlink(missing_ok=True)
        copy = Ledger(source, read_only=True)
        try:
            copy.backup(part)
        finally:
            copy.close()
        brought = Ledger(part)
        try:
            number = sum(1 for _ in brought.records("restored")) + 1
            body = {"backup": source.name, "records": found.records, "head": found.ledger_head}
            brought.append("restored", f"{number:06d}", body)
        finally:
            brought.close()
        aside = _set_aside(path)
        os.replace(part, path)
        _sync_folder(app.state_dir)
    notices = (
        *((f"the ledger that was here is kept in {aside}",) if aside else ()),
        "what happened since is with the broker alone: the next start compares and takes it over; "
        "where cash or shares differ, no entry is made until `trader acknowledge`",
    )
    return replace(_checked(path), notices=notices)


def export(app: Context, to: Path) -> LedgerFile:
    """Write every record to a new file, oldest first, each a JSON object on its own line.

    UsageError when the file exists, StateError when it cannot be written or a record is damaged.
    """
    to = to.expanduser()
    if to.exists():
        raise UsageError(f"{to} exists already: name a new file")
    part = to.with_name(f"{to.name}.part")
    with _opened(app) as ledger:
        records = ledger.check()
        try:
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
            with open(handle, "w", encoding="utf-8") as lines:
                _write(lines, ledger)
            os.rename(part, to)
        except OSError as exc:
            raise StateError(f"{to} cannot be written: {exc.strerror or exc}") from exc
        finally:
            part.unlink(missing_ok=True)
        return _told(ledger, to, records)


def _write(lines: TextIO, ledger: Ledger) -> None:
    for record in ledger.records():
        told = {
            "seq": record.seq,
            "kind": record.kind,
            "record_id": record.record_id,
            "body": record.body,
            "hash": record.hash,
        }
        lines.write(json.dumps(told, allow_nan=False, ensure_ascii=False) + "\n")


@contextmanager
def _opened(app: Context) -> Iterator[Ledger]:
    path = app.state_dir / LEDGER
    if not path.exists():
        raise UsageError(NO_ACCOUNT)
    ledger = Ledger(path, read_only=True)
    try:
        yield ledger
    finally:
        ledger.close()


def _checked(path: Path) -> LedgerFile:
    ledger = Ledger(path, read_only=True)
    try:
        return _told(ledger, path, ledger.check())
    finally:
        ledger.close()


def _told(ledger: Ledger, path: Path, records: int) -> LedgerFile:
    return LedgerFile(
        schema_version=SCHEMA_VERSION,
        path=str(path),
        records=records,
        ledger_head=ledger.head,
        finished=_finished(ledger),
    )


def _finished(ledger: Ledger) -> datetime | None:
    last = ledger.last("slot")
    return datetime.fromisoformat(last.body["as_of"]) if last else None


def _name(ledger: Ledger) -> str:
    """A name that sorts by time and is another one after every record."""
    finished = _finished(ledger)
    return f"ledger-{finished or datetime.min:%Y%m%dT%H%M}-{ledger.head[:8]}.db"


def _set_aside(path: Path) -> Path | None:
    """Move a ledger with its logs to a numbered folder; where to, or None when there is none.

    The file keeps its own name too, until another takes it: there is never a moment without a
    ledger, in which a run would begin another account.
    """
    files = [path.with_name(path.name + end) for end in ("", *LOGS)]
    files = [file for file in files if file.exists()]
    if not files:
        return None
    number = 1
    while (path.parent / ARCHIVE / str(number)).exists():
        number += 1
    aside = make_folder(path.parent / ARCHIVE / str(number))
    for file in files:
        if file == path:
            os.link(file, aside / file.name)
        else:
            os.rename(file, aside / file.name)
    _sync_folder(aside)
    return aside


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
