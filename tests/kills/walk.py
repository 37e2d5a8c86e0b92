"""A walk over sessions with an entry, its fill, an exit and its sale, cut short by SIGKILL.

The calm walk is kept from slot to slot. A kill begins with the account as it was before one of the
slots, lets a process die in it, starts another one, and compares what the exchange then has in its
books with what the calm walk left there.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import sleep

from tests.kills.books import Books, complaints
from tests.kills.fuse import ANY, Death, points
from tests.kills.market import FIRST, Call, Market, copy_database, served, unresolved
from tests.kills.nursery import Nursery
from trader.core.clock import monotonic_seconds
from trader.core.config import Config
from trader.ledger.store import Ledger

MOST_CALLS = 25  # to the broker before the first new order, besides those for each intent in doubt
CALLS_FOR_EACH_DOUBT = 4  # three looks and the order sent again
NEEDED = ("/v2/account", "/v2/positions", "/v2/orders", "/v2/account/activities/FILL")
KILLED = -signal.SIGKILL
TERMINATED = 128 + signal.SIGTERM
DEADLINE_SECONDS = 300.0
LOOK_SECONDS = 0.02
OF_AN_ENTRY = (
    "before the commit of cycle+intent",
    "after the commit of cycle+intent",
    "before sending POST /v2/orders",
    "done, not answered: POST /v2/orders",
    "after the answer to POST /v2/orders",
)
AFTERMATHS = ("at once", "moved", "again")
FILES = ("ledger.db", "checkpoints.db")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A way to trade, and the sessions in which its orders come and go."""

    name: str
    sessions: int
    settings: tuple[str, ...] = ()

    def config(self) -> Config:
        """What the exchange has to know of it."""
        return Config.model_validate({"market": {"start": FIRST}})


SCENES = (
    Scene(name="whole shares", sessions=5),
    Scene(name="parts of a share", sessions=5, settings=("risk.fractional=true",)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One experiment.

    slot   number of the slot in which the process dies
    then   at once: the next process comes before anything moves; moved: the market is a session
           further by then; again: the next process dies as well
    """

    scene: str
    slot: int
    death: Death
    then: str

    def __str__(self) -> str:
        """As `--kill` takes it."""
        return "/".join((self.scene, str(self.slot), self.then, str(self.death.occurrence))) + (
            f"/{self.death.name}"
        )

    @staticmethod
    def of(text: str) -> Kill:
        """The kill that `str` has told."""
        scene, slot, then, occurrence, name = text.split("/", maxsplit=4)
        death = Death(name=name, occurrence=int(occurrence))
        return Kill(scene=scene, slot=int(slot), death=death, then=then)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """How it ended. calls: requests of the process that recovered before its first new order."""

    kill: Kill
    complaints: tuple[str, ...]
    calls: int
    in_doubt: int


class Walk:
    """One scene, walked calmly once, and then cut short as often as wanted."""

    def __init__(self, scene: Scene, folder: Path, nursery: Nursery, *, port: int) -> None:
        self.scene, self._folder, self._nursery, self._port = scene, folder, nursery, port
        self.stories: list[dict] = []  # after each slot
        self.reached: list[list[str]] = []  # points of each slot
        self._config = scene.config()
        self._walk_calmly()

    def _words(self, state: Path, *more: str) -> list[str]:
        settings = (
            f"broker.base_url=http://127.0.0.1:{self._port}",
            f"market.start={FIRST}",
            "kernels.backend=reference",
            "strategies.enabled=atr_trend",
            "daemon.bars_delay_minutes=0",
            *self.scene.settings,
        )
        words = ["run", "--paper", *more, "--broker", "alpaca", "--data", "sample", "--json"]
        words += ["--state-dir", str(state)]
        for setting in settings:
            words += ["--set", setting]
        return words

    def _kept(self, slot: int) -> Path:
        return self._folder / f"kept-{slot}"

    def _walk_calmly(self) -> None:
        state = self._folder / "calm"
        state.mkdir(parents=True)
        log = self._folder / "points"
        with served(state, self._config, port=self._port, ledger=state / "ledger.db") as market:
            for slot in range(self.scene.sessions):
                market.control("advance", slots=1)
                keep(state, self._kept(slot))
                known = len(points(log))
                assert self._run(market, state, log) == 0, said(state)
                self.reached.append(points(log)[known:])
                books = Books.of(market.exchange)
                assert complaints(books, state / "ledger.db") == []
                self.stories.append(books.story())

    def _run(self, market: Market, state: Path, log: Path, death: Death | None = None) -> int:
        """One process of `trader run --paper --once`, to whatever end; its exit status."""
        pid = self._nursery.start(state, self._words(state, "--once"), log=log, death=death)
        with market.watching(log, pid, death):
            return self._nursery.ended()

    def kill(self, kill: Kill) -> Recovery:
        """Carry out one kill and look at what is left."""
        state = self._folder / "killed"
        shutil.rmtree(state, ignore_errors=True)
        keep(self._kept(kill.slot), state)
        ledger, log = state / "ledger.db", state / "points"
        with served(state, self._config, port=self._port, ledger=ledger) as market:
            assert self._run(market, state, log, kill.death) == KILLED, (kill, said(state))
            if kill.then == "again":
                again = Death(name=ANY, occurrence=1 + len(points(log)) // 2)
                self._run(market, state, log, again)
            doubted = unresolved(ledger)
            if kill.then == "moved":
                market.control("advance", slots=1)
            market.calls.clear()
            status = self._run(market, state, log)
            found = [] if status == 0 else [f"exit status {status}: {said(state)}"]
            calls = tuple(market.calls)
            books = Books.of(market.exchange)
            found += complaints(books, ledger)
            if kill.then != "moved" and books.story() != self.stories[kill.slot]:
                found.append("the account is another one than after a calm walk")
            if kill.then == "at once":
                market.calls.clear()
                self._run(market, state, log)
                if any(call.is_new_order for call in market.calls):
                    found.append("doubled: one run more sent one order more")
        before, problem = _before_first_new_order(calls, doubted)
        return Recovery(
            kill=kill,
            complaints=tuple(found + problem),
            calls=len(before),
            in_doubt=len(doubted),
        )

    def followed(self) -> list[str]:
        """The points that the last daemon has reached."""
        return points(self._folder / "followed" / "points")

    def follow(self, deaths: Sequence[Death]) -> tuple[str, ...]:
        """The schedule instead of single slots: a daemon that dies at each of these; complaints."""
        state = self._folder / "followed"
        shutil.rmtree(state, ignore_errors=True)
        keep(self._kept(0), state)
        log, ledger, left = state / "points", state / "ledger.db", list(deaths)
        sessions, came_to = self.scene.sessions, 1
        ends = monotonic_seconds() + DEADLINE_SECONDS
        with served(state, self._config, port=self._port, ledger=ledger) as market:
            while slots_of(ledger) < sessions:
                death = left.pop(0) if left else None
                pid = self._nursery.start(state, self._words(state), log=log, death=death)
                with market.watching(log, pid, death):
                    while is_alive(pid) and (done := slots_of(ledger)) < sessions:
                        assert monotonic_seconds() < ends, said(state)
                        if done == came_to:
                            market.control("advance", slots=1)
                            came_to += 1
                        sleep(LOOK_SECONDS)
                    if is_alive(pid):
                        os.kill(pid, signal.SIGTERM)
                    status = self._nursery.ended()
                if status not in (KILLED, TERMINATED):
                    return (f"exit status {status}: {said(state)}",)
            books = Books.of(market.exchange)
        found = complaints(books, ledger)
        if books.story() != self.stories[-1]:
            found.append("the account is another one than after a calm walk")
        return (*found, *(f"never died at {death.name}" for death in left))


def is_alive(pid: int) -> bool:
    """Whether a process is there and not a corpse."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return False


def slots_of(ledger: Path) -> int:
    """Slots that a ledger has finished."""
    if not ledger.exists():
        return 0
    opened = Ledger(ledger, read_only=True)
    try:
        return sum(1 for _ in opened.records("slot"))
    finally:
        opened.close()


def _before_first_new_order(
    calls: Sequence[Call], doubted: frozenset[str]
) -> tuple[Sequence[Call], list[str]]:
    """Requests before the first order that nobody had meant before the death, and what is wrong.

    doubted  intents without an outcome at the death
    """
    before: list[Call] = []
    first: Call | None = None
    for call in calls:
        if call.is_new_order and call.client_order_id not in doubted:
            first = call
            break
        before.append(call)
    problem = []
    if first is not None:
        asked = {call.path for call in before}
        problem += [
            f"{path} was not asked before a new order" for path in NEEDED if path not in asked
        ]
        left = sorted(first.unresolved & doubted)
        problem += [f"{first.client_order_id} was sent while {key} was in doubt" for key in left]
    most = MOST_CALLS + CALLS_FOR_EACH_DOUBT * len(doubted)
    if len(before) > most:
        problem.append(f"{len(before)} requests before the first new order, {most} are allowed")
    return before, problem


def keep(source: Path, target: Path) -> None:
    """Copy an account: the trader's files and the exchange's."""
    target.mkdir(parents=True, exist_ok=True)
    for name in (*FILES, "exchange.db"):
        if (source / name).exists():
            copy_database(source / name, target / name)


def said(state: Path) -> str:
    """What the last process said on stderr."""
    path = state / "stderr"
    return path.read_text()[-2000:] if path.exists() else ""


def kills(walks: Sequence[Walk], *, runs: int, of_each: int = 0) -> list[Kill]:
    """Kills for every named point in turn, the weightiest names first.

    Those of a decision on the way to its order come before all others, with nothing moved since.
    The same name comes back in another slot, at another occurrence, with another aftermath.
    runs     how many; more, where every name is to come `of_each` times
    """
    places: dict[str, list[tuple[str, int, int]]] = {}
    for walk in walks:
        for slot, reached in enumerate(walk.reached):
            for name in dict.fromkeys(reached):
                for occurrence in range(1, reached.count(name) + 1):
                    places.setdefault(name, []).append((walk.scene.name, slot, occurrence))
    chosen = entry_kills(walks)
    names = sorted(places, key=weight)
    wanted = max(runs, len(chosen) + of_each * len(names))
    for turn in range(-(-wanted // len(names))):
        for number, name in enumerate(names):
            spots = places[name]
            # far apart from turn to turn, so that few turns see the first, middle and last
            scene, slot, occurrence = spots[(number + turn * (len(spots) // 3 + 1)) % len(spots)]
            chosen.append(
                Kill(
                    scene=scene,
                    slot=slot,
                    death=Death(name=name, occurrence=occurrence),
                    then=AFTERMATHS[(number + turn) % len(AFTERMATHS)],
                )
            )
    return chosen[:wanted]


def entry_kills(walks: Sequence[Walk]) -> list[Kill]:
    """A decision that is recorded has to become its order, in this very slot and once."""
    return [
        Kill(
            scene=walks[number % len(walks)].scene.name,
            slot=0,
            death=Death(name=name, occurrence=1),
            then="at once",
        )
        for number, name in enumerate(OF_AN_ENTRY)
    ]


def weight(name: str) -> tuple[int, str]:
    """Orders first, then what is written, then what is only asked."""
    if "POST" in name or "DELETE" in name:
        return 0, name
    return (1 if "commit" in name else 2), name
