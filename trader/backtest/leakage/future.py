"""The leakage lab, first room: whether anything that came later took part in a decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from trader.backtest.leakage.agent import Agent, Audit, Remembered, Taken
from trader.backtest.leakage.findings import (
    Changed,
    LeakTest,
    Tally,
    changed,
    different_facts,
    same_words,
    without_answer,
)
from trader.backtest.leakage.markets import Change, ChangedData, poisoned_future, without_future
from trader.core.canonical import canonical_json
from trader.core.errors import DataIntegrityError
from trader.pipeline.candidates import Prepared

NO_DECISION = "no decision was taken in the period"


def known_in_time(audit: Audit) -> LeakTest:
    """Every fact of every decision was public when the decision was taken."""
    tally, facts = Tally(changes=[]), 0
    for record in audit.run.cycles:
        facts += len(record.evidence)
        late = [
            fact.name
            for fact in record.evidence
            if fact.known_at > record.as_of or fact.as_of > record.as_of
        ]
        tally.note(record, None, f"known only later: {', '.join(late)}" if late else "")
    found = tally.finished(
        "known_in_time", "was every fact public when it was used?", nothing=NO_DECISION
    )
    return replace(found, of="facts", checked=facts)


def future_cut(audit: Audit) -> LeakTest:
    """Bars that physically end at the decision give the same case and the same verdict."""
    return _rebuilt(
        audit, "future_cut", "the same decision from bars that end there?", without_future
    )


def future_poisoned(audit: Audit) -> LeakTest:
    """So do bars whose future is false."""
    return _rebuilt(
        audit, "future_poisoned", "the same decision before a false future?", poisoned_future
    )


def signals(audit: Audit) -> LeakTest:
    """In every slot the same rules fire on bars that end there: none fires, or is silent,
    for what comes later.
    """
    tally = Tally(changes=[])
    seen: dict[datetime, set[tuple[str, str]]] = {}
    for cycle in audit.run.cycles:
        seen.setdefault(cycle.as_of, set()).add((cycle.symbol, cycle.strategy))
    for number, (slot, record) in enumerate(
        zip(audit.slots, audit.run.slots, strict=True), start=1
    ):
        told = seen.get(slot.as_of, set()) | {(s.symbol, s.strategy) for s in record.skipped}
        agent = audit.agent_over(ChangedData(audit.data, without_future(slot.as_of)))
        again = {
            (symbol, name)
            for symbol in audit.symbols
            if symbol not in record.refused
            for name in agent.fired(symbol, slot)
        }
        tally.checked += 1
        tally.changes += [
            Changed(
                cycle_id="",
                as_of=slot.as_of,
                symbol=symbol,
                strategy=name,
                before="fired" if (symbol, name) in told else "silent",
                after="fired" if (symbol, name) in again else "silent",
                detail="on bars that end there",
            )
            for symbol, name in sorted(told ^ again)
        ]
        audit.told("signals", number, len(audit.slots), slot)
    question = "the same signals from bars that end there?"
    return tally.finished("signals", question, of="slots", nothing=NO_DECISION)


def account(audit: Audit) -> LeakTest:
    """The whole walk again, account and orders included, over bars whose second half is false.

    Debates that were held about the very same evidence are not held again.
    """
    half = (len(audit.slots) + 1) // 2
    cut = audit.slots[half - 1].as_of
    again = audit.walk(
        "account",
        ChangedData(audit.data, poisoned_future(cut)),
        audit.slots[:half],
        Remembered(audit.agent.deliberation, "account", audit.run.cycles),
    )
    records = {cycle.cycle_id: cycle for cycle in again.cycles}
    known = {cycle.cycle_id for cycle in audit.run.cycles}
    tally = Tally(changes=[])
    for record in audit.run.cycles:
        if record.as_of <= cut:
            other = records.get(record.cycle_id)
            if other is None or canonical_json(other) != canonical_json(record):
                detail = "the walk before a false second half differs"
                tally.note(record, None if other is None else other.debate, detail)
    tally.changes += [
        changed(cycle, "no decision", str(cycle.debate.verdict.decision), "only before a lie")
        for cycle in again.cycles
        if cycle.cycle_id not in known
    ]
    tally.changes += [
        Changed(
            cycle_id="",
            as_of=first.as_of,
            symbol="",
            strategy="",
            before=f"equity {first.equity}",
            after=f"equity {second.equity}",
            detail="the account of this slot differs",
        )
        for first, second in zip(audit.run.slots, again.slots, strict=False)
        if canonical_json(first) != canonical_json(second)
    ]
    tally.checked = half
    question = "the same account before a false second half?"
    return tally.finished("account", question, of="slots", nothing=NO_DECISION)


def _rebuilt(
    audit: Audit, name: str, question: str, change: Callable[[datetime], Change]
) -> LeakTest:
    """Everything anew over a market changed behind each decision, compared bit for bit."""
    tally = Tally(changes=[])
    for number, taken in enumerate(audit.taken, start=1):
        record, slot = taken.record, taken.slot
        agent = audit.agent_over(ChangedData(audit.data, change(slot.as_of)))
        again, detail = _case(agent, taken)
        if again is None or detail:
            tally.note(record, None, detail)
        elif without_answer(record.debate):
            tally.unanswered += 1
        else:
            debate = agent.deliberation.deliberate(
                again.candidate, again.evidence, f"{record.cycle_id}~{name}", again.history
            )
            tally.compare(record, debate, same_words)
        audit.told(name, number, len(audit.taken), slot)
    return tally.finished(name, question, nothing=NO_DECISION)


def _case(agent: Agent, taken: Taken) -> tuple[Prepared | None, str]:
    """The case of a decision, made anew, and how it differs from the recorded one."""
    record, slot = taken.record, taken.slot
    try:
        series = agent.bars(record.symbol, slot)
    except DataIntegrityError as exc:
        return None, str(exc)
    if series.sha256 != record.data_hashes[record.symbol]:
        return None, "the bars themselves were others"
    again = agent.prepare(slot, series, record.strategy, taken.account)
    if again is None or not again.candidate.fired:
        return again, "the signal does not fire"
    if canonical_json(again.candidate) != canonical_json(record.candidate):
        return again, "another candidate"
    return again, different_facts(record.evidence, again.evidence)
