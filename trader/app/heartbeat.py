"""The heartbeat of a daemon: a small file that says how it is, and who may believe it."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Literal

from trader.core.canonical import from_primitive, to_object, to_primitive
from trader.core.clock import SystemClock
from trader.core.errors import StateError
from trader.pipeline.daemon import Beat

log = logging.getLogger(__name__)

HEARTBEAT, LOCK = "heartbeat.json", "lock"
BEAT_SECONDS = 5.0
STALE_SECONDS = 60.0  # a daemon that has not been heard for so long hangs, or its computer slept
OVER = ("ended", "stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """What the file says. at: system time, UTC. metrics: address of the metrics, or empty."""

    pid: int
    at: datetime
    started_at: datetime
    simulated: bool
    metrics: str
    beat: Beat


def write(state_dir: Path, heartbeat: Heartbeat) -> None:
    """Put a heartbeat in the place of the last one; a reader sees one of both, whole."""
    path = state_dir / HEARTBEAT
    fresh = path.with_suffix(".new")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(to_primitive(heartbeat), file)
    os.replace(fresh, path)


def read(state_dir: Path) -> Heartbeat | None:
    """The last heartbeat, or None where there is none that can be read."""
    try:
        body = json.loads((state_dir / HEARTBEAT).read_text(encoding="utf-8"))
        return from_primitive(Heartbeat, body)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def holder(state_dir: Path) -> int | None:
    """The process that holds the lock of a state folder; None when nobody does.

    0 for a holder that has not said its number.
    """
    try:
        handle = os.open(state_dir / LOCK, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        said = os.pread(handle, 32, 0).decode(errors="replace").strip()
        return int(said) if said.isdecimal() else 0
    finally:
        os.close(handle)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStatus:
    """How the daemon of a state folder is; ages in seconds.

    state  running; stale (it lives and is not heard); stopped; never (none has run here)
    """

    state: Literal["running", "stale", "stopped", "never"]
    pid: int | None = None
    heartbeat_age: float | None = None
    last_cycle_age: float | None = None
    busy_seconds: float | None = None
    heartbeat: Heartbeat | None = None

    @property
    def well(self) -> bool:
        """Whether it runs and is heard."""
        return self.state == "running"

    def as_json(self) -> dict[str, Any]:
        """The JSON object of `trader daemon status`."""
        return {"schema_version": 1, **to_object(self)}


def status_of(state_dir: Path, *, now: datetime | None = None) -> DaemonStatus:
    """How the daemon of a state folder is. now: system time."""
    heartbeat = read(state_dir)
    if heartbeat is None:
        return DaemonStatus(state="never", pid=holder(state_dir) or None)
    moment = now or SystemClock().now()
    beat = heartbeat.beat

    def age(at: datetime | None) -> float | None:
        return None if at is None else max((moment - at).total_seconds(), 0.0)

    fresh = abs(moment - heartbeat.at) <= timedelta(seconds=STALE_SECONDS)
    lives = beat.state not in OVER and _lives(heartbeat.pid) and holder(state_dir) == heartbeat.pid
    return DaemonStatus(
        state=("running" if fresh else "stale") if lives else "stopped",
        pid=heartbeat.pid if lives else None,
        heartbeat_age=age(heartbeat.at),
        last_cycle_age=age(beat.last_cycle_at),
        busy_seconds=age(beat.busy_since) if lives else None,
        heartbeat=heartbeat,
    )


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Pulse:
    """Writes the heartbeat whenever it changes, and every five seconds by a thread.

    The thread falls silent once the daemon does not answer for itself any more, so that a daemon
    that hangs is seen, and is started again by the system's watchdog where there is one.

    alive    whether the daemon still moves
    written  is told when, system time
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        simulated: bool,
        metrics: str,
        alive: Callable[[], bool],
        written: Callable[[datetime], None],
    ) -> None:
        self._state_dir, self._alive, self._written = state_dir, alive, written
        self._simulated, self._metrics = simulated, metrics
        self._started_at, self._beat = SystemClock().now(), Beat()
        self._over, self._one = Event(), Lock()
        self._thread = Thread(target=self._keep, name="heartbeat", daemon=True)

    def __enter__(self) -> Pulse:
        self.beat(self._beat)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._beat.state not in OVER:  # an error ended it
            self.beat(replace(self._beat, state="stopped"))
        notify("STOPPING=1")

    def beat(self, beat: Beat) -> None:
        """Write how the daemon is; StateError when its folder is gone.

        What cannot be written for another reason is written with the next beat: a daemon does not
        end for want of a heartbeat, and a full disk is told by what has to be written.
        """
        if self._beat.state == "starting" != beat.state:
            notify("READY=1")
        self._beat = beat
        try:
            self._write()
        except FileNotFoundError as exc:
            raise StateError(
                f"the state folder {self._state_dir} is gone: bring it back, and start again"
            ) from exc
        except OSError as exc:
            log.warning("the heartbeat cannot be written: %s", exc.strerror or exc)

    def _write(self) -> None:
        with self._one:
            at = SystemClock().now()
            self._written(at)
            write(
                self._state_dir,
                Heartbeat(
                    pid=os.getpid(),
                    at=at,
                    started_at=self._started_at,
                    simulated=self._simulated,
                    metrics=self._metrics,
                    beat=self._beat,
                ),
            )

    def _keep(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            if self._alive():
                notify("WATCHDOG=1")
                with suppress(OSError):  # told by the next change
                    self._write()


def notify(message: str) -> None:
    """Tell the system's service manager, where one listens (sd_notify)."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.sendto(message.encode(), address)
