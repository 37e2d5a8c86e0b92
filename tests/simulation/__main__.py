"""Episodes of the order path by the thousand: `python -m tests.simulation --episodes 5000`.

--naive runs the canary instead, which has to be caught. A failing seed prints the command that
replays it, and its trace.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from random import Random

from tests.simulation.episodes import Outcome, World, run_episode
from tests.simulation.line import Fate, SimulatedWorld
from trader.core.clock import monotonic_seconds

SHOWN = 3  # failing episodes that are traced
CHUNK = 50


def outcomes(
    seeds: Iterable[int], *, naive: bool = False, exchange: bool = False, jobs: int = 1
) -> Iterator[Outcome]:
    """Each episode's outcome, in order."""
    world_of: Callable[[Random, Fate], World] = SimulatedWorld
    if exchange:
        from tests.simulation.exchange_world import ExchangeWorld

        world_of = ExchangeWorld
    run = partial(run_episode, world_of=world_of, naive=naive)
    if jobs == 1:
        yield from map(run, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run, seeds, chunksize=CHUNK)


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
    counts: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    failed = 0
    began = monotonic_seconds()
    seeds = range(chosen.seed, chosen.seed + chosen.episodes)
    told = {"naive": chosen.naive, "exchange": chosen.exchange}
    for outcome in outcomes(seeds, jobs=chosen.jobs, **told):
        counts.update(outcome.counts)
        failures.update(failure.kind for failure in outcome.failures)
        failed += bool(outcome.failures)
        if outcome.failures and not chosen.naive and failed <= SHOWN:
            print("\n".join(outcome.trace or ()))  # noqa: T201
            for failure in outcome.failures:
                print(f"FAILED seed {outcome.seed}: {failure.kind}: {failure.what}")  # noqa: T201
            print(f"replay: {command(outcome.seed, exchange=chosen.exchange)}")  # noqa: T201
    seconds = monotonic_seconds() - began
    for name in sorted(counts):
        print(f"{counts[name]:>10,} {name}")  # noqa: T201
    for kind in sorted(failures):
        print(f"{failures[kind]:>10,} FAILED {kind}")  # noqa: T201
    print(f"{failed:,} of {chosen.episodes:,} failed; {chosen.episodes / seconds:.0f} a second")  # noqa: T201
    caught = all(failures[kind] for kind in ("lost", "doubled", "unprotected"))
    return int(not caught if chosen.naive else failed > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
