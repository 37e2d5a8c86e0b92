"""The leakage lab, second room: whether a name, a memory or an order counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TypeVar

import numpy as np

from trader.backtest.leakage.agent import Agent, Audit, Remembered, Taken
from trader.backtest.leakage.findings import (
    Changed,
    LeakTest,
    Tally,
    by_model,
    changed,
    same_on_facts,
    same_outcome,
    share,
    without_answer,
)
from trader.backtest.leakage.markets import ChangedData, mirrored_bars, shuffle, white_noise_bars
from trader.backtest.leakage.masks import disguised
from trader.core.decision import FOREIGN_KINDS, Debate, Decision, Evidence
from trader.core.market import BarSeries, to_ns
from trader.core.ports import Crossings, Deliberation
from trader.core.trading import Portfolio
from trader.pipeline.candidates import Prepared
from trader.pipeline.evidence import AccountView
from trader.pipeline.slots import Slot

T = TypeVar("T")

NOISE_SERIES = 5  # of each symbol
# Most that an honest debate may say GO to on white noise: the chance that the base rate, (hits + 1)
# / (closed + 3), gives a signal without a past. The rule table said it to 1 % after ten years of
# noise, to 7 % after five, to 20 % after less than two: the fewer past trades, the nearer.
NOISE_CEILING = 1 / 3
CERTAINTY = 0.05  # a share above the ceiling counts when chance brings it more rarely than this
FEWEST_ALIKE = 5  # GO on every candidate of both a market and its mirror: from so many on a leak
KNOWN = "the model may know this instrument, unless it also answers one question in two ways"
NO_DECISION = "no decision was taken in the period"
NO_TEXT = "no foreign text in the evidence: nothing to shuffle"


def masked(audit: Audit) -> LeakTest:
    """Name and dates hidden, prices rescaled: the facts are the same and so is the decision."""

    def again(taken: Taken) -> Debate | None:
        case = disguised(taken, audit.agent)
        if case is None:
            return None
        return audit.agent.deliberation.deliberate(
            case.candidate, case.evidence, case.cycle_id, case.history
        )

    question = "the same decision without name and date, at other prices?"
    found = _held_again(audit, "masked", question, again)
    if found.changes and any(by_model(taken.record.debate) for taken in audit.taken):
        return replace(found, detail=KNOWN)
    return found


def order_swapped(audit: Audit, swapped: Deliberation) -> LeakTest:
    """The arbitrator reads the bear before the bull. swapped: such a deliberation."""

    def again(taken: Taken) -> Debate:
        record = taken.record
        return swapped.deliberate(
            record.candidate,
            record.evidence,
            f"{record.cycle_id}~bear-first",
            audit.history(taken),
        )

    question = "the same decision when the bear is read first?"
    return _held_again(audit, "order_swapped", question, again)


def news_shuffled(audit: Audit, seed: int) -> LeakTest:
    """Texts of strangers belong to other decisions; the facts decide as before.

    What a hearing takes away is not compared: it may take a GO away for any text.
    """
    other = shuffled_texts([taken.record.evidence for taken in audit.taken], seed)
    tally = Tally(changes=[])
    for number, (taken, evidence) in enumerate(zip(audit.taken, other, strict=True), start=1):
        record = taken.record
        if evidence == record.evidence:
            continue
        if without_answer(record.debate):
            tally.unanswered += 1
            continue
        debate = audit.agent.deliberation.deliberate(
            record.candidate, evidence, f"{record.cycle_id}~news", audit.history(taken)
        )
        tally.compare(record, debate, same_on_facts)
        audit.told("news_shuffled", number, len(audit.taken), taken.slot)
    question = "the same decision on facts with the news of another day?"
    return tally.finished("news_shuffled", question, nothing=NO_TEXT)


def mirrored(audit: Audit) -> LeakTest:
    """The walk over the market upside down, its share of GO beside the real one.

    Other signals fire there, so no decision can be compared with one. What must not be: GO on
    every candidate of both. Who likes a market as well as its opposite has read neither.
    """
    market = ChangedData(audit.data, mirrored_bars)
    again = audit.walk(
        "mirrored",
        market,
        audit.slots,
        Remembered(audit.agent_over(market).deliberation, "mirrored"),
    )
    go, of = share(cycle.debate for cycle in audit.run.cycles)
    mirror_go, mirror_of = share(cycle.debate for cycle in again.cycles)
    alike = go == of >= FEWEST_ALIKE and mirror_go == mirror_of >= FEWEST_ALIKE
    changes = [
        changed(cycle, "a market", "its mirror", "GO on everything in both")
        for cycle in again.cycles
        if alike
    ]
    found = Tally(checked=mirror_of, changes=changes).finished(
        "mirrored", "what share of GO, upside down?", nothing=""
    )
    return replace(
        found,
        status="leak" if alike else "statement",
        unanswered=len(again.cycles) - mirror_of,
        detail=f"GO {_share(mirror_go, mirror_of)}, as it was {_share(go, of)}",
    )


def white_noise(audit: Audit, sample: int, cash: Decimal) -> LeakTest:
    """Candidates on bars without information; most must be refused.

    Symbol and dates stay the real ones, so that a memory of them shows. Each candidate is
    argued over with an account that holds `cash` and nothing else. A leak when GO is said to
    more of them than an agent that says it to `NOISE_CEILING` of all would by chance (5 %).
    """
    found = evenly(_noise_candidates(audit, cash), sample)
    said: list[tuple[Prepared, Debate]] = []
    for number, (agent, item, slot, subject) in enumerate(found, start=1):
        debate = agent.deliberation.deliberate(item.candidate, item.evidence, subject, item.history)
        said.append((item, debate))
        audit.told("white_noise", number, len(found), slot)
    go, of = share(debate for _, debate in said)
    too_many = at_least(go, of, NOISE_CEILING) < CERTAINTY
    changes = tuple(
        Changed(
            cycle_id=item.cycle_id,
            as_of=item.candidate.signal.as_of,
            symbol=item.candidate.signal.symbol,
            strategy=item.candidate.signal.strategy,
            before="noise",
            after="GO",
            detail=debate.verdict.rationale,
        )
        for item, debate in said
        if too_many and debate.verdict.decision is Decision.GO
    )
    tested = Tally(checked=of, unanswered=len(said) - of, changes=list(changes)).finished(
        "white_noise",
        f"GO to no more than {NOISE_CEILING:.0%} on bars without information?",
        of="candidates",
        nothing="no rule fired on the noise",
    )
    return replace(tested, detail=f"GO {_share(go, of)}" if of else tested.detail)


def _held_again(
    audit: Audit, name: str, question: str, again: Callable[[Taken], Debate | None]
) -> LeakTest:
    """Each decision debated again in other circumstances; the outcome must be the same."""
    tally = Tally(changes=[])
    for number, taken in enumerate(audit.taken, start=1):
        record = taken.record
        if without_answer(record.debate):
            tally.unanswered += 1
        elif (debate := again(taken)) is None:
            tally.note(record, None, "the signal does not fire any more")
        else:
            tally.compare(record, debate, same_outcome)
        audit.told(name, number, len(audit.taken), taken.slot)
    return tally.finished(name, question, nothing=NO_DECISION)


def _noise_candidates(audit: Audit, cash: Decimal) -> list[tuple[Agent, Prepared, Slot, str]]:
    """Every candidate of every noise series: agent, case, slot, name of the case."""
    found = []
    for seed in range(NOISE_SERIES):
        agent = audit.agent_over(ChangedData(audit.data, white_noise_bars(seed)))
        for symbol in audit.symbols:
            for name, slot in _firings(agent, symbol, audit.slots):
                account = AccountView(
                    portfolio=Portfolio(cash=cash, equity=cash, positions=(), as_of=slot.as_of),
                    open_buy_value_symbol=Decimal(0),
                )
                item = agent.prepare(slot, agent.bars(symbol, slot), name, account)
                if item is not None and item.candidate.fired:
                    found.append((agent, item, slot, f"{item.cycle_id}~noise{seed}"))
    return found


def _firings(agent: Agent, symbol: str, slots: Sequence[Slot]) -> list[tuple[str, Slot]]:
    """Strategy and slot of every firing; one look at the whole series finds them."""
    series = agent.data.bars(symbol, agent.timeframe, slots[-1].as_of)
    known = {
        name: strategy.crossings(series) for name, strategy in agent.candidates.strategies.items()
    }
    return [
        (name, slot)
        for slot in slots
        for name, crossed in known.items()
        if _fires(crossed, series, slot)
    ]


def shuffled_texts(cases: Sequence[tuple[Evidence, ...]], seed: int) -> list[tuple[Evidence, ...]]:
    """The same cases with the texts of each foreign kind dealt out to other facts of that kind.

    They are put in a seeded order and each goes to the next place, so that none stays where it was
    unless it is the only one of its kind.
    """
    places: dict[str, list[tuple[int, int]]] = {}
    for case, evidence in enumerate(cases):
        for index, fact in enumerate(evidence):
            if fact.kind in FOREIGN_KINDS and fact.text:
                places.setdefault(fact.kind, []).append((case, index))
    dealt = [list(evidence) for evidence in cases]
    for found in places.values():
        order = [found[at] for at in shuffle(seed, len(found))]
        for (case, index), (other, place) in zip(order, (*order[1:], order[0]), strict=True):
            dealt[case][index] = replace(cases[case][index], text=cases[other][place].text)
    return [tuple(evidence) for evidence in dealt]


def evenly(items: Sequence[T], most: int) -> list[T]:
    """At most `most` items, spread evenly from the first to the last."""
    if len(items) <= most:
        return list(items)
    return [items[int(at)] for at in np.linspace(0, len(items) - 1, most).round()]


def at_least(successes: int, trials: int, chance: float) -> float:
    """Probability of `successes` or more in `trials` that each succeed with `chance`, (0, 1)."""
    ways = [
        math.lgamma(trials + 1) - math.lgamma(count + 1) - math.lgamma(trials - count + 1)
        for count in range(successes, trials + 1)
    ]
    return math.fsum(
        math.exp(way + count * math.log(chance) + (trials - count) * math.log1p(-chance))
        for count, way in enumerate(ways, start=successes)
    )


def _fires(crossed: Crossings, series: BarSeries, slot: Slot) -> bool:
    """Whether the rule crosses on a bar that became known in this slot."""
    first, last = series.available_at.searchsorted([to_ns(slot.since), to_ns(slot.as_of)], "right")
    return bool(crossed.entry[first:last].any())


def _share(go: int, of: int) -> str:
    return f"{go} of {of} ({go / of:.0%})" if of else "0 of 0"
