"""A simulated year of the daemon, and what it leaves behind: `python -m tests.soak`.

Memory, file handles and the database are measured after every session. The second half of the run
must need no more memory than the first has, no more handles, and as much database as it.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from trader.app import open_app
from trader.app.logs import LOGGER
from trader.core.clock import monotonic_seconds, new_york

LAST_SESSION = date(2026, 8, 5)  # of the bundled sample
SESSIONS, SECONDS = 251, 60.0
MEGABYTE = 1_000_000
LARGEST_GROWTH = 20 * MEGABYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What the process holds after one session. memory, database: bytes."""

    memory: int
    handles: int
    database: int


class Meter(logging.Handler):
    """Measures this process whenever the daemon tells that a session is over."""

    def __init__(self, state_dir: Path) -> None:
        super().__init__()
        self._state_dir = state_dir
        self.samples: list[Sample] = []

    def emit(self, record: logging.LogRecord) -> None:
        """One sample after each session."""
        facts = getattr(record, "facts", {})
        if record.getMessage() == "job" and facts["job"].startswith("reflection"):
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            files = [self._state_dir / f"ledger.db{end}" for end in ("", "-wal")]
            self.samples.append(
                Sample(
                    memory=pages * os.sysconf("SC_PAGE_SIZE"),
                    handles=len(os.listdir("/proc/self/fd")),
                    database=sum(path.stat().st_size for path in files if path.exists()),
                )
            )


def soak(state_dir: Path, sessions: int) -> tuple[list[Sample], float]:
    """Run the daemon over the last so many sessions of the sample; samples, and seconds taken."""
    calendar = new_york()
    first = LAST_SESSION
    for _ in range(sessions - 1):
        first = calendar.previous(first)
    app = open_app(
        overrides=[
            f"state_dir={state_dir}",
            f"market.start={first}",
            "daemon.speed=0",
            "kernels.backend=reference",
        ],
        environ={},
    )
    meter = Meter(state_dir)
    logger = logging.getLogger(LOGGER)
    logger.addHandler(meter)
    began = monotonic_seconds()
    try:
        app.follow(log=state_dir / "daemon.log")
    finally:
        logger.removeHandler(meter)
    return meter.samples, monotonic_seconds() - began


def faults(samples: list[Sample]) -> list[str]:
    """What grew that should not have; the first fifth is for warming up."""
    warm, half, last = samples[len(samples) // 5], samples[len(samples) // 2], samples[-1]
    said = []
    if last.memory - warm.memory >= LARGEST_GROWTH:
        said.append(f"memory grew by {(last.memory - warm.memory) / MEGABYTE:.1f} MB")
    if last.handles > warm.handles:
        said.append(f"{last.handles - warm.handles} file handles were left open")
    if last.database > 2.5 * half.database:
        said.append(f"the database grew from {half.database} to {last.database} bytes by half")
    return said


def main(arguments: list[str]) -> int:
    """Run it and print what was measured; 1 when something grew or it took too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    sessions = parser.parse_args(arguments).sessions
    with tempfile.TemporaryDirectory() as folder:
        samples, seconds = soak(Path(folder), sessions)
    warm, last = samples[len(samples) // 5], samples[-1]
    print(  # noqa: T201
        f"{len(samples)} sessions in {seconds:.1f} s; memory {last.memory / MEGABYTE:.0f} MB, "
        f"{(last.memory - warm.memory) / MEGABYTE:+.1f} MB since warm; {last.handles} handles; "
        f"ledger {last.database / MEGABYTE:.2f} MB, {last.database / len(samples):.0f} bytes a "
        "session"
    )
    said = faults(samples)
    if len(samples) != sessions:
        said.append(f"{len(samples)} sessions were run, {sessions} were wanted")
    if seconds > SECONDS * max(1.0, sessions / SESSIONS):
        said.append(f"it took {seconds:.1f} s")
    for fault in said:
        print(f"FAILED {fault}")  # noqa: T201
    return 1 if said else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
