"""Processes of `trader`, forked from one that has imported everything: each real, each cheap.

One order a line comes in as JSON (`Nursery.start` writes it), the child's pid and then its exit
status go out.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from tests.kills.fuse import Death, Fuse, wrap_process

ROOT = Path(__file__).parents[2]
HEAVY = (
    "agents.debate.graph",
    "alpaca.trading.client",
    "alpaca.trading.stream",
    "apscheduler.schedulers.background",
    "trader.app.daemon",
    "trader.app.running",
    "trader.app.venue",
    "trader.broker.guard",
    "trader.broker.sockets",
    "trader.cli.main",
    "trader.cli.telling",
)


class Nursery:
    """Starts processes of `trader`, one at a time; a context manager."""

    def __enter__(self) -> Nursery:
        """Start the parent of all of them."""
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "tests.kills.nursery"],
            cwd=ROOT,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        self._parent.stdin.close()
        self._parent.wait()
        self._parent.stdout.close()

    def start(
        self,
        folder: Path,
        words: Sequence[str],
        *,
        log: Path,
        death: Death | None = None,
        largest_file: int | None = None,
    ) -> int:
        """Start `trader WORDS`; its pid. What it says goes to files in `folder`.

        largest_file  bytes beyond which no file can grow, as on a full disk
        """
        order = {
            "folder": str(folder),
            "words": list(words),
            "log": str(log),
            "death": None if death is None else [death.name, death.occurrence],
            "largest_file": largest_file,
        }
        self._parent.stdin.write(f"{json.dumps(order)}\n")
        self._parent.stdin.flush()
        return int(self._parent.stdout.readline())

    def ended(self) -> int:
        """Wait for the process that was started; its exit status, negative for a signal."""
        return int(self._parent.stdout.readline())


def main() -> None:
    """Fork a child for every line of stdin."""
    _import_everything()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become_trader(json.loads(line))
        print(child, flush=True)  # noqa: T201
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


def _import_everything() -> None:
    """What a process would import on its way, and what it would read that never changes."""
    for name in HEAVY:
        import_module(name)
    from trader.app.assembly import code_sha256
    from trader.core.clock import new_york

    new_york()
    code_sha256()


def _become_trader(order: dict) -> NoReturn:
    folder = Path(order["folder"])
    os.chdir(folder)  # no configuration lies here
    for number, name in ((0, os.devnull), (1, folder / "stdout"), (2, folder / "stderr")):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        handle = os.open(name, flags, 0o600)
        os.dup2(handle, number)
        os.close(handle)
    death = order["death"]
    wrap_process(
        Fuse(
            Path(order["log"]),
            None if death is None else Death(name=death[0], occurrence=death[1]),
        )
    )
    if order["largest_file"] is not None:
        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["largest_file"], unlimited))
    from trader.cli.main import main as trader

    sys.argv = ["trader", *order["words"]]
    status = 0
    try:
        trader()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
