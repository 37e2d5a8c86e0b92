"""Episodes of the order path by the thousand: `python -m tests.simulation --episodes 5000`.

--naive runs the canary instead, which has to be caught. A failing seed prints the command that
replays it, and its trace.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from tests.simulation.desk import ManagedDesk, WorldOf
from tests.simulation.episodes import Outcome, run_episode
from tests.simulation.line import SimulatedWorld
from tests.simulation.naive import NaiveDesk
from trader.core.clock import monotonic_seconds

SHOWN = 3  # failing episodes that are traced
CHUNK = 50


@dataclass(slots=True, kw_only=True)
class Report:
    """What many episodes came to."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    failed: list[Outcome] = field(default_factory=list)  # the first of them
    episodes_failed: int = 0

    def add(self, outcome: Outcome) -> None:
        """One more."""
        self.counts.update(outcome.counts)
        self.failures.update(failure.kind for failure in outcome.failures)
        self.episodes_failed += bool(outcome.failures)
        if outcome.failures and len(self.failed) < SHOWN:
            self.failed.append(outcome)

    @property
    def caught(self) -> bool:
        """Whether this is what the canary has to come to."""
        return all(self.failures[kind] for kind in ("lost", "doubled", "unprotected"))


def simulate(
    seeds: Iterable[int], *, naive: bool = False, exchange: bool = False, jobs: int = 1
) -> Report:
    """Run an episode for each seed. jobs: processes."""
    world_of: WorldOf = SimulatedWorld
    if exchange:
        from tests.simulation.exchange_world import ExchangeWorld

        world_of = ExchangeWorld
    run = partial(run_episode, world_of=world_of, desk_of=NaiveDesk if naive else ManagedDesk)
    report = Report()
    if jobs == 1:
        for outcome in map(run, seeds):
            report.add(outcome)
        return report
    with ProcessPoolExecutor(jobs) as pool:
        for outcome in pool.map(run, seeds, chunksize=CHUNK):
            report.add(outcome)
    return report


def told(report: Report, *, exchange: bool = False) -> str:
    """The failing episodes, each with its trace and the command that replays it."""
    lines: list[str] = []
    for outcome in report.failed:
        lines += outcome.trace or ()
        lines += [f"FAILED {failure.kind}: {failure.what}" for failure in outcome.failures]
        lines.append(f"replay: {command(outcome.seed, exchange=exchange)}")
    return "\n".join(lines)


def command(seed: int, *, exchange: bool) -> str:
    """What replays one episode."""
    through = " --exchange" if exchange else ""
    return f"python -m tests.simulation --seed {seed} --episodes 1{through}"


def main(arguments: list[str]) -> int:
    """Run them and print what was counted; 1 when the real desk failed, or the canary did not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first episode")
    parser.add_argument("--naive", action="store_true", help="run the canary")
    parser.add_argument(
        "--exchange", action="store_true", help="through alpaca-py and the embedded exchange"
    )
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args(arguments)
    began = monotonic_seconds()
    report = simulate(
        range(chosen.seed, chosen.seed + chosen.episodes),
        naive=chosen.naive,
        exchange=chosen.exchange,
        jobs=chosen.jobs,
    )
    seconds = monotonic_seconds() - began
    if not chosen.naive:
        print(told(report, exchange=chosen.exchange))  # noqa: T201
    for name in sorted(report.counts):
        print(f"{report.counts[name]:>10,} {name}")  # noqa: T201
    for kind in sorted(report.failures):
        print(f"{report.failures[kind]:>10,} FAILED {kind}")  # noqa: T201
    print(  # noqa: T201
        f"{report.episodes_failed:,} of {chosen.episodes:,} episodes failed; "
        f"{chosen.episodes / seconds:.0f} a second"
    )
    return int(not report.caught if chosen.naive else report.episodes_failed > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
