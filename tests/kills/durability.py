"""What the ledger promises: a record that `append` has returned for is there after any SIGKILL.

Run as a program it makes the writers, because only a process without threads may fork:
`python -m tests.kills.durability FOLDER KILLS`.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from time import sleep
from typing import NoReturn

from trader.core.errors import StateError
from trader.ledger.store import Ledger

ROOT = Path(__file__).parents[2]
WRITERS = 4
KILLS_OF_A_FILE = 20  # then the next ledger is begun
LONGEST_LIFE_SECONDS = 0.06
HEADER = 32  # bytes of a write-ahead log before its first page
DAMAGES = ("torn", "flipped", "zeroed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """What became of the records of writers that were killed.

    unacknowledged  records that are there although the writer did not live to say so
    """

    kills: int
    acknowledged: int
    lost: int
    unacknowledged: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Damaged:
    """What became of ledgers whose write-ahead log was damaged.

    whole     those that lost nothing; prefixes: those that ended early; refused: with the remedy
    problems  a hole, a foreign record, a file that was overwritten
    """

    trials: int
    whole: int
    prefixes: int
    refused: int
    problems: tuple[str, ...]


def kill_writers(folder: Path, kills: int) -> Killed:
    """Let processes write to one ledger and kill them, one after the other, while others go on."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.kills.durability", str(folder), str(kills)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    told = json.loads(done.stdout)
    return Killed(**{**told, "problems": tuple(told["problems"])})


class _Writer:
    """A process that appends until it is killed, and says which records it has the word for."""

    def __init__(self, path: Path, name: str) -> None:
        reads, writes = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reads)
            _write_for_ever(path, name, writes)
        os.close(writes)
        self._pipe, self._heard = reads, b""

    def hear(self) -> None:
        """Take what it has said, so that it never waits for a reader."""
        while select.select([self._pipe], [], [], 0)[0] and (said := os.read(self._pipe, 1 << 16)):
            self._heard += said

    def kill(self) -> list[str]:
        """Kill it; the records that it was told were safe."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.hear()
        os.close(self._pipe)
        return self._heard.decode().split("\n")[:-1]


def _write_for_ever(path: Path, name: str, pipe: int) -> NoReturn:
    ledger = Ledger(path)
    number = 0
    while True:
        number += 1
        ids = [f"{name}-{number}"]
        if number % 3:
            ledger.append("slot", ids[0], {"by": name, "number": number})
        else:  # several records are one step
            ids += [f"{ids[0]}{part}" for part in "bc"]
            with ledger.transaction():
                for one in ids:
                    ledger.append("slot", one, {"by": name, "number": number})
        os.write(pipe, "".join(f"{one}\n" for one in ids).encode())


def _kill_writers(folder: Path, kills: int) -> Killed:
    chance = Random(kills)
    count = acknowledged = lost = extra = 0
    problems: list[str] = []
    while count < kills:
        path = folder / f"ledger-{count}.db"
        safe: list[str] = []
        writers = {n: _Writer(path, f"w{count}-{n}") for n in range(WRITERS)}
        for one in range(min(KILLS_OF_A_FILE, kills - count)):
            sleep(chance.uniform(0, LONGEST_LIFE_SECONDS))
            for writer in writers.values():
                writer.hear()
            victim = chance.randrange(WRITERS)
            safe += writers[victim].kill()
            count += 1
            writers[victim] = _Writer(path, f"w{count}-{victim}-{one}")
        for writer in writers.values():
            safe += writer.kill()
        ledger = Ledger(path)
        try:
            ledger.check()
        except StateError as exc:
            problems.append(str(exc))
        kept = {record.record_id for record in ledger.records()}
        ledger.close()
        problems += _halves(kept)
        acknowledged += len(safe)
        lost += len(set(safe) - kept)
        extra += len(kept - set(safe))
    return Killed(
        kills=count,
        acknowledged=acknowledged,
        lost=lost,
        unacknowledged=extra,
        problems=tuple(problems),
    )


def _halves(kept: set[str]) -> list[str]:
    """Transactions of which a part is there."""
    steps = {one.rstrip("bc") for one in kept if one[-1] in "bc"}
    return [step for step in steps if not {step, f"{step}b", f"{step}c"} <= kept]


def damage_logs(folder: Path, trials: int) -> Damaged:
    """Open ledgers whose write-ahead log is torn, flipped or zeroed somewhere."""
    chance = Random(trials)
    checkpointed = _crashed(folder / "half", stop=40, records=90)
    fresh = _crashed(folder / "all", stop=0, records=50)
    counts = {"whole": 0, "prefix": 0, "refused": 0}
    problems: list[str] = []
    for number in range(trials):
        source, records = (checkpointed, 90) if number % 2 else (fresh, 50)
        path = folder / "trial" / "ledger.db"
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir()
        shutil.copy(source, path)
        how = DAMAGES[number % len(DAMAGES)]
        log = path.with_name("ledger.db-wal")
        log.write_bytes(damaged(source.with_name("ledger.db-wal").read_bytes(), how, chance))
        before = contents(path)
        try:
            ledger = Ledger(path)
            ledger.check()
            numbers = [record.body["number"] for record in ledger.records()]
            ledger.append("slot", "next", {"number": -1})  # the next run goes on
            ledger.check()
            ledger.close()
            counts["whole" if len(numbers) == records else "prefix"] += 1
            if numbers != list(range(len(numbers))):
                problems.append(f"trial {number} ({how}): not a prefix")
        except StateError as exc:
            counts["refused"] += 1
            if "trader ledger restore" not in str(exc):
                problems.append(f"trial {number} ({how}): no remedy in {exc}")
            if contents(path) | before != contents(path):
                problems.append(f"trial {number} ({how}): refused, but written to")
    return Damaged(
        trials=trials,
        whole=counts["whole"],
        prefixes=counts["prefix"],
        refused=counts["refused"],
        problems=tuple(problems),
    )


def _crashed(folder: Path, *, stop: int, records: int) -> Path:
    """A ledger as a crash leaves it: the first `stop` records in the file, the rest in the log."""
    folder.mkdir(parents=True)
    path, kept = folder / "ledger.db", folder / "kept"
    kept.mkdir()
    ledger = Ledger(path)
    for number in range(records):
        ledger.append("slot", f"s{number}", {"number": number, "text": "x" * 200})
        if number + 1 == stop:
            with closing(sqlite3.connect(path)) as other:
                other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for name in ("ledger.db", "ledger.db-wal"):
        shutil.copy(folder / name, kept / name)
    ledger.close()
    return kept / "ledger.db"


def damaged(content: bytes, how: str, chance: Random) -> bytes:
    """A copy that was cut off, or with a few bits turned, or with a stretch of zeros."""
    changed = bytearray(content)
    place = chance.randrange(len(content))
    if how == "torn":
        del changed[place:]
    elif how == "flipped":
        for _ in range(chance.randint(1, 8)):
            changed[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    else:
        length = chance.randint(1, 4096)
        changed[place : place + length] = bytes(len(changed[place : place + length]))
    return bytes(changed)


def contents(path: Path) -> dict[str, bytes]:
    """A database and its log, as they lie there."""
    return {
        file.name: file.read_bytes()
        for file in path.parent.iterdir()
        if file.name in (path.name, f"{path.name}-wal")
    }


def main(words: list[str]) -> Iterator[str]:
    """Kill writers, and tell it as JSON."""
    folder, kills = words
    yield json.dumps(asdict(_kill_writers(Path(folder), int(kills))))


if __name__ == "__main__":
    print(*main(sys.argv[1:]), sep="\n")  # noqa: T201
