"""Episodes of the order path by the thousand: `python -m tests.simulation --episodes 5000`.

--naive runs the canary instead, which has to be caught. A failing seed prints the command that
replays it, and its trace.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.simulation.episodes import Outcome, run_episode
from trader.core.clock import monotonic_seconds

SHOWN = 3  # failing episodes that are traced
CHUNK = 50


def outcomes(seeds: Iterable[int], *, naive: bool, jobs: int) -> Iterator[Outcome]:
    """Each episode's outcome, in order."""
    run = partial(run_episode, naive=naive)
    if jobs == 1:
        yield from map(run, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run, seeds, chunksize=CHUNK)


def main(arguments: list[str]) -> int:
    """Run them and print what was counted; 1 when the real desk failed, or the canary did not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first episode")
    parser.add_argument("--naive", action="store_true", help="run the canary")
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    failed = 0
    began = monotonic_seconds()
    seeds = range(chosen.seed, chosen.seed + chosen.episodes)
    for outcome in outcomes(seeds, naive=chosen.naive, jobs=chosen.jobs):
        counts.update(outcome.counts)
        failures.update(failure.kind for failure in outcome.failures)
        failed += bool(outcome.failures)
        if outcome.failures and not chosen.naive and failed <= SHOWN:
            print("\n".join(outcome.trace or ()))  # noqa: T201
            for failure in outcome.failures:
                print(f"FAILED seed {outcome.seed}: {failure.kind}: {failure.what}")  # noqa: T201
            print(f"replay: python -m tests.simulation --seed {outcome.seed} --episodes 1")  # noqa: T201
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
