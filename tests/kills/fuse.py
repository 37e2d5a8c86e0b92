"""Where a process may die: every point it reaches is written down, and at one of them it is killed.

The product has no hook for this: a process of `trader` is wrapped from outside, at its ledger's
commits and at the requests that leave it.
"""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

ANY = "*"  # of a point's name: any point that the process itself reaches
IDENTITY = re.compile(r"(?<=/v2/orders/)[0-9a-f-]{36}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """The point at which a process is killed.

    occurrence  how often the walk has reached it by then, over all of its processes; of ANY point:
                how many the process that dies has reached
    """

    name: str
    occurrence: int


class Fuse:
    """Writes points to a file that outlives the process, and kills at one of them.

    pid  whom to kill; None: the process itself
    """

    def __init__(self, log: Path, death: Death | None, *, pid: int | None = None) -> None:
        self._death, self._pid = death, pid
        self._seen = Counter(points(log))
        self._seen[ANY] = 0
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def reach(self, name: str) -> None:
        """Write the point down; it is the last thing the process does if it dies here."""
        os.write(self._log, f"{name}\n".encode())
        self._seen.update((name, ANY))
        death = self._death
        if death and death.name in (name, ANY) and self._seen[death.name] == death.occurrence:
            os.kill(self._pid or os.getpid(), signal.SIGKILL)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._log)


def points(log: Path) -> list[str]:
    """The points that were reached so far, in order."""
    return log.read_text().splitlines() if log.exists() else []


def request_name(method: str, url: str) -> str:
    """A request without what is different every time."""
    return f"{method} {IDENTITY.sub('ID', urlsplit(url).path)}"


def wrap_process(fuse: Fuse) -> None:
    """Put points before and after every commit of the ledger and every request of this process."""
    from requests.adapters import HTTPAdapter

    from trader.ledger.store import Ledger

    append, commit, send, opened = Ledger.append, Ledger.commit, HTTPAdapter.send, Ledger._open
    kinds: list[str] = []

    def made(self, path, **options):
        if path.exists() or options["read_only"]:
            return opened(self, path, **options)
        path.touch(0o600)
        fuse.reach("before an empty file is a ledger")
        database = opened(self, path, **options)
        fuse.reach("after an empty file is a ledger")
        return database

    def noted(self, kind, record_id, body):
        kinds.append(kind)
        return append(self, kind, record_id, body)

    def committed(self):
        name = "+".join(dict.fromkeys(kinds)) if self._db.in_transaction else ""
        if self._depth or not name:
            commit(self)
            return
        kinds.clear()
        fuse.reach(f"before the commit of {name}")
        commit(self)
        fuse.reach(f"after the commit of {name}")

    def sent(self, request, *args, **options):
        name = request_name(request.method, request.url)
        fuse.reach(f"before sending {name}")
        answer = send(self, request, *args, **options)
        fuse.reach(f"after the answer to {name}")
        return answer

    Ledger.append, Ledger.commit, Ledger._open = noted, committed, made
    HTTPAdapter.send = sent
