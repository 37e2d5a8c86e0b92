"""Kill processes of `trader`, many times: `python -m tests.kills [--runs 200] [--durability]`.

A kill that goes wrong is printed as it can be told to `--kill` again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.kills.durability import damage_logs, kill_writers
from tests.kills.fuse import Death
from tests.kills.market import free_port
from tests.kills.nursery import Nursery
from tests.kills.walk import SCENES, Kill, Walk, kills, weight
from trader.core.clock import monotonic_seconds

RUNS, OF_EACH = 200, 5
WRITERS_KILLED, LOGS_DAMAGED = 400, 300
DEATHS_OF_A_DAEMON = 4  # in one walk


@contextmanager
def calm_walks(folder: Path) -> Iterator[dict[str, Walk]]:
    """Every scene, walked once without a death, by name."""
    with Nursery() as nursery:
        port = free_port()
        yield {
            scene.name: Walk(scene, folder / f"scene-{number}", nursery, port=port)
            for number, scene in enumerate(SCENES)
        }


def daemon_deaths(reached: Sequence[str]) -> Iterator[list[Death]]:
    """Every point of a daemon's walk once, a few to a walk; the next one lies behind the last."""
    names = sorted(dict.fromkeys(reached), key=weight)
    for number in range(-(-len(names) // DEATHS_OF_A_DAEMON)):
        chunk = names[number :: -(-len(names) // DEATHS_OF_A_DAEMON)]
        chunk.sort(key=reached.index)
        yield [Death(name=name, occurrence=1) for name in chunk]


def main(words: Sequence[str]) -> int:
    """Run what is asked for; 1 when anything was lost, doubled or left unprotected."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="kills of single slots")
    parser.add_argument("--kill", help="this one alone")
    parser.add_argument("--durability", action="store_true", help="the ledger's promise instead")
    given = parser.parse_args(words)
    began = monotonic_seconds()
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        if given.durability:
            bad = durability(folder)
        else:
            walks = held.enter_context(calm_walks(folder))
            bad = one(walks, given.kill) if given.kill else all_of(walks, given.runs)
    tell(f"{monotonic_seconds() - began:.0f} seconds, {bad} complaints")
    return int(bad > 0)


def one(walks: dict[str, Walk], text: str) -> int:
    """One kill, told in full."""
    kill = Kill.of(text)
    recovery = walks[kill.scene].kill(kill)
    tell(f"{recovery.calls} calls, {recovery.in_doubt} in doubt", *recovery.complaints)
    return len(recovery.complaints)


def all_of(walks: dict[str, Walk], runs: int) -> int:
    """Kills at every named point, of single slots and of daemons; the number of complaints."""
    bad, calls, doubts = 0, [0], 0
    chosen = kills(list(walks.values()), runs=runs, of_each=OF_EACH if runs >= RUNS else 0)
    for kill in chosen:
        recovery = walks[kill.scene].kill(kill)
        calls.append(recovery.calls)
        doubts += recovery.in_doubt
        bad += len(recovery.complaints)
        for complaint in recovery.complaints:
            tell(f"{complaint}\n  python -m tests.kills --kill {str(kill)!r}")
    times = Counter(kill.death.name for kill in chosen)
    tell(
        f"{len(chosen)} kills at {len(times)} named points, each at least {min(times.values())} "
        f"times; {doubts} orders in doubt; at most {max(calls)} requests before a new order"
    )
    died = 0
    for walk in walks.values():
        complaints = [*walk.follow([])]
        for deaths in daemon_deaths(walk.followed()):
            complaints += walk.follow(deaths)
            died += len(deaths)
        tell(*complaints)
        bad += len(complaints)
    tell(f"{died} kills of a daemon that follows the schedule")
    return bad


def durability(folder: Path) -> int:
    """Kill writers of a ledger and damage its log; the number of complaints."""
    killed = kill_writers(folder, WRITERS_KILLED)
    tell(
        f"{killed.kills} writers killed, {killed.acknowledged} records acknowledged, "
        f"{killed.lost} of them lost, {killed.unacknowledged} more kept",
        *killed.problems,
    )
    found = damage_logs(folder, LOGS_DAMAGED)
    tell(
        f"{found.trials} logs damaged: {found.whole} ledgers whole, {found.prefixes} a clean "
        f"prefix, {found.refused} refused",
        *found.problems,
    )
    return killed.lost + len(killed.problems) + len(found.problems)


def tell(*lines: str) -> None:
    """Say it now."""
    for line in lines:
        print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
