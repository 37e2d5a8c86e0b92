"""The state folder: where things lie in it, and the lock that lets one run in at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from trader.core.errors import LockHeldError

FOLDER_MODE = 0o700
LEDGER, EXCHANGE, CHECKPOINTS = "ledger.db", "exchange.db", "checkpoints.db"
LOOKS, LOOK_SECONDS = 100, 0.01  # who only asks for the holder has the lock for a moment


def make_folder(path: Path) -> Path:
    """Make a folder for this user alone; LockHeldError when the place cannot be written."""
    try:
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    except OSError as exc:
        raise _unwritable(path, exc) from exc
    if not os.access(path, os.W_OK):
        raise _unwritable(path, PermissionError("it is read-only"))
    return path


@contextmanager
def locked(state_dir: Path) -> Iterator[None]:
    """Hold the state folder for one run; LockHeldError at once when another run holds it.

    The lock is the kernel's and goes with the process, however it ends; nothing has to be cleaned
    up.
    """
    path = make_folder(state_dir) / "lock"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as exc:
        raise _unwritable(path, exc) from exc
    try:
        if not _taken(handle):
            holder = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
            raise LockHeldError(
                f"the state folder {state_dir} is in use by another run (process {holder}): "
                "wait for it, or name another folder with --state-dir"
            )
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    """Take the lock; False when another run holds it, which one that shares it does not."""
    for _ in range(LOOKS):
        if _locks(handle, fcntl.LOCK_EX):
            return True
        if not _locks(handle, fcntl.LOCK_SH):
            return False
        fcntl.flock(handle, fcntl.LOCK_UN)
        Event().wait(LOOK_SECONDS)
    return False


def _locks(handle: int, mode: int) -> bool:
    try:
        fcntl.flock(handle, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unwritable(path: Path, exc: OSError) -> LockHeldError:
    reason = exc.strerror or str(exc)
    return LockHeldError(
        f"the state folder {path} cannot be written ({reason}): nothing was changed; "
        "make it writable or name another with --state-dir"
    )
