"""Replay: the cycle of a paper run, slot after slot over history."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from trader.core.decision import CycleRecord
from trader.ledger.book import Book
from trader.ledger.store import Ledger
from trader.pipeline.cycle import Cycle
from trader.pipeline.records import SlotRecord
from trader.pipeline.slots import Slot

SLOTS_PER_COMMIT = 50  # a backtest can be run again; its ledger need not survive each slot

Progress = Callable[[int, int, SlotRecord], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Everything a replay left behind, oldest first."""

    slots: tuple[SlotRecord, ...]
    cycles: tuple[CycleRecord, ...]
    book: Book


def replay(
    cycle: Cycle,
    slots: Sequence[Slot],
    *,
    book: Book,
    ledger: Ledger,
    progress: Progress | None = None,
) -> Replay:
    """Run every slot in order. book: the journal's, which the cycle books into."""
    records: list[SlotRecord] = []
    decisions: list[CycleRecord] = []
    with _calm_collector():
        for number, slot in enumerate(slots, start=1):
            result = cycle.run(slot)
            records.append(result.slot)
            decisions.extend(result.cycles)
            if number % SLOTS_PER_COMMIT == 0:
                ledger.commit()
            if progress is not None:
                progress(number, len(slots), result.slot)
    ledger.commit()
    return Replay(slots=tuple(records), cycles=tuple(decisions), book=book)


@contextmanager
def _calm_collector() -> Iterator[None]:
    """Let Python look for cyclic garbage less often while records pile up.

    A replay makes none to speak of, and every search walks all records kept so far: a quarter of
    the time.
    """
    usual = gc.get_threshold()
    gc.set_threshold(100_000, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
