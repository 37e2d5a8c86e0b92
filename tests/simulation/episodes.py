"""Episodes: twelve steps of decisions, trades, faults and crashes, then calm, then the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random

from tests.simulation.desk import Decision, Desk, DeskOf, Kept, ManagedDesk, WorldOf
from tests.simulation.line import CrashError, Fate, SimulatedWorld
from tests.simulation.oracle import Failure, exposed, settled, stale
from tests.simulation.world import START, SYMBOLS
from trader.core.errors import EndpointError, TraderError
from trader.core.trading import Side

STEPS = 12
LONGEST_REST = 40
RESTARTED = 4  # of so many episodes one ends with another restart
SLOT = timedelta(hours=2)


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What one episode came to."""

    seed: int
    failures: list[Failure] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    trace: list[str] | None = None


class Episode:
    """One account through faults and crashes. Everything follows from the seed.

    A decision is taken when the desk's records hold it, and then it is lost when the broker has no
    order of it, unless
    - the broker, or a halt, said no to it;
    - a person wanted its symbol closed before it arrived;
    - its slot ended before the desk had one action without any fault or crash at whose end it saw
      broker and ledger agree: what never arrived in its own slot is given up, since price, size and
      reward were those of then.
    An order of a decision that is sent after its slot is stale.
    Shares are unprotected when no stop and no market sale at the broker covers them after an action
    without any fault or crash; those bought during that action have until the next one.
    """

    def __init__(
        self,
        seed: int,
        *,
        world_of: WorldOf = SimulatedWorld,
        desk_of: DeskOf = ManagedDesk,
        traced: bool = False,
    ) -> None:
        rng = self.rng = Random(seed)
        self.outcome = Outcome(seed=seed, trace=[] if traced else None)
        self.fate = Fate(rng, trace=self.outcome.trace)
        self.market = world_of(rng, self.fate)
        self.desk_of, self.kept = desk_of, Kept()
        self.skew = timedelta(0)  # of this computer's clock
        self.desk = self._open()
        self.thought_of = 0  # decisions
        self.number = 0  # of the slot
        self.ended: dict[int, datetime] = {}  # slot -> market time
        self.is_finished = False  # or it is run again: a crash or a lost answer cut it short
        self.pending: list[Decision] = []  # of this slot
        self.taken: dict[str, tuple[Decision, int]] = {}  # with its slot
        self.due: set[str] = set()  # taken, and the desk had an undisturbed action for it
        self.excused: set[str] = set()  # called off by a person
        self.leaving: set[str] = set()

    def _open(self) -> Desk:
        """A new process."""
        return self.desk_of(
            self.market, self.fate, self.kept, now=lambda: self.market.now + self.skew
        )

    @property
    def as_of(self) -> datetime:
        return START + self.number * SLOT

    # ---- the storm

    def run(self) -> Outcome:
        """Twelve steps, rest, judgement."""
        try:
            for number in range(STEPS):
                self.fate.tell(f"step {number}, slot {self.number}")
                self._step()
                self.market.step(surprises=self.desk.has_begun)
            self._rest()
            self._judge()
        except TraderError as exc:
            self._fail("error", f"{type(exc).__name__}: {exc}")
        self.outcome.counts.update(self.fate.counts)
        self.outcome.counts.update(episodes=1, decisions=len(self.taken))
        return self.outcome

    def _fail(self, kind: str, what: str) -> None:
        self.outcome.failures.append(Failure(kind=kind, what=what))
        self.fate.tell(f"  FAILED {kind}: {what}")

    def _step(self) -> None:
        rng, desk = self.rng, self.desk
        decides = rng.random() < 0.5
        if rng.random() < 0.3 or (decides and self.is_finished):
            self.ended[self.number] = self.market.now
            self.number += 1
            self.is_finished = False
            self.pending.clear()
        if decides:
            self.pending.append(self._decide())
        if rng.random() < 0.25 and self.taken:
            self.leaving.add(rng.choice(list(self.taken.values()))[0].trade_id)
        if rng.random() < 0.05:
            self.skew = timedelta(hours=rng.choice((-1, 0, 1)))
        if rng.random() < 0.06:
            symbol = rng.choice(SYMBOLS)
            self._act("wish", lambda: self.desk.wish_to_close(symbol, self.market.now))
        if desk.frozen and rng.random() < 0.5:
            self._act("acknowledge", lambda: self.desk.acknowledge(self.market.now))
        if not self.is_finished:
            self.is_finished = self._act("slot", self._slot)
        elif rng.random() < 0.7:
            self._act("watch", lambda: self.desk.watch(self.as_of))

    def _decide(self) -> Decision:
        rng, market = self.rng, self.market
        self.thought_of += 1
        number = self.thought_of
        symbol = rng.choice(SYMBOLS)
        quantity = Decimal(number + 2)
        if "/" in symbol:
            quantity /= 4
        elif rng.random() < 0.4:
            quantity += Decimal("0.5")
        price = market.price[symbol]
        return Decision(
            name=f"{number:04d}",
            symbol=symbol,
            quantity=quantity,
            stop=price - 4,
            target=price + 6,
        )

    def _slot(self) -> None:
        self.desk.slot(tuple(self.pending), self.leaving, self.as_of)

    def _act(self, name: str, action: Callable[[], None]) -> bool:
        """Let the desk do something, and whether it did; after a crash another process goes on."""
        self.fate.disturbed = False
        self.fate.tell(f" {name}")
        before, closing = len(self.market.trades), self.desk.closing
        done = False
        try:
            action()
            done = True
        except CrashError:
            self.desk = self._open()
        except EndpointError as exc:
            self.fate.tell(f"  given up: {exc}")
        self._note_taken()
        for decision, _ in self.taken.values() if closing else ():
            if decision.symbol in closing:  # what has not arrived there need not any more
                self.excused.add(decision.name)
        if done and name in ("slot", "watch"):
            self.outcome.counts["actions"] += 1
            if not self.fate.disturbed:
                self._check(before)
        return done

    def _note_taken(self) -> None:
        told = self.desk.taken
        if len(told) == len(self.taken):
            return
        for decision in self.pending:
            if decision.name in told and decision.name not in self.taken:
                self.taken[decision.name] = decision, self.number

    def _check(self, before: int) -> None:
        """After an undisturbed action: nothing naked, and what was decided is at the broker."""
        self.outcome.counts["undisturbed actions"] += 1
        if not self.desk.problem:  # while the numbers differ, nothing is bought
            self.due |= {name for name, (_, slot) in self.taken.items() if slot == self.number}
        bought: dict[str, Decimal] = {}
        for fill in self.market.trades[before:]:
            if fill.side is Side.BUY:
                bought[fill.symbol] = bought.get(fill.symbol, Decimal(0)) + fill.quantity
        for failure in exposed(self.market.truth(), bought):
            self._fail(failure.kind, failure.what)

    # ---- the calm

    def _rest(self) -> None:
        """Faults off; the market trades what it can, the desk looks until nothing changes."""
        self.fate.tell("calm")
        self.fate.calm()
        self.market.calm()
        quiet = ""
        for _ in range(LONGEST_REST):
            state = f"{self.desk.state()} {len(self.market.trades)}"
            if state == quiet:
                break
            quiet = state
            if self.desk.frozen:
                self._freeze()
            self._act("watch", lambda: self.desk.watch(self.as_of))
            self.market.settle()
        else:
            self._fail("restless", f"still busy after {LONGEST_REST} looks")

    def _freeze(self) -> None:
        if not self.market.hid_foreign:
            self._fail("frozen", self.desk.frozen)
        self.outcome.counts["acknowledged"] += 1
        self.desk.acknowledge(self.market.now)

    def _judge(self) -> None:
        truth, book = self.market.truth(), self.desk.book()
        held = {symbol: shares for symbol, shares in truth.held.items() if shares}
        if dict(book.quantities) != held:
            self._fail("mismatch", f"the broker has {held}, the desk {dict(book.quantities)}")
        if abs(book.cash - truth.cash) >= book.tolerance:
            self._fail("mismatch", f"cash {truth.cash} at the broker, {book.cash} at the desk")
        due = {(one.symbol, one.quantity): one.name for one, _ in self.taken.values()}
        excused = set(self.market.refused)
        for decision, slot in self.taken.values():
            current = slot == self.number or decision.name in self.due
            if not current or decision.name in self.excused:
                excused.add((decision.symbol, decision.quantity))
        until = {
            (one.symbol, one.quantity): self.ended[slot]
            for one, slot in self.taken.values()
            if slot in self.ended
        }
        for failure in (*settled(truth, due, excused), *stale(truth, until)):
            self._fail(failure.kind, failure.what)
        if self.desk.problem:
            self._fail("frozen", self.desk.problem)
        self.desk.verify()
        if self.outcome.seed % RESTARTED == 0:
            again = self._open().book()
            if again != book:
                self._fail("forgotten", f"{book} before and {again} after a restart")


def run_episode(
    seed: int, *, world_of: WorldOf = SimulatedWorld, desk_of: DeskOf = ManagedDesk
) -> Outcome:
    """One episode; one that fails is run once more, to be traced."""
    outcome = Episode(seed, world_of=world_of, desk_of=desk_of).run()
    if outcome.failures:
        return Episode(seed, world_of=world_of, desk_of=desk_of, traced=True).run()
    return outcome
