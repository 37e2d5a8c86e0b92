"""The leakage lab, first room: an honest agent passes, and who sees the future is caught."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from tests.trader.backtest.audited import BARS, SLOTS, Cheating, Saying, audit_of
from trader.backtest.leakage import future
from trader.backtest.leakage.agent import Remembered, Taken
from trader.backtest.leakage.findings import different_facts, same_words, without_answer
from trader.core.decision import ChatCall, FlagCode, Hearing, RiskFlag
from trader.core.errors import DataIntegrityError
from trader.core.market import BarSeries, Timeframe, to_ns
from trader.core.ports import Crossings

CALL = ChatCall(
    role="bull", round=0, model="m", prompt="bull 1", call_id="C-1", reply_sha256="0" * 64
)


@pytest.fixture(scope="module")
def honest():
    return audit_of(slots=SLOTS[:60])


def behind(bars: BarSeries, name: str = "close"):
    """The whole array that a series is a view of: the classic way to look ahead by accident."""
    values = getattr(bars, name)
    return values if values.base is None else values.base


def next_close(data, as_of):
    """The close after a moment as a market tells it to whoever does not say until when."""
    bars = data.bars("AAPL", Timeframe.DAY)
    at = int(np.searchsorted(bars.available_at, to_ns(as_of), side="right"))
    return float(bars.close[at]) if at < len(bars) else None


def peeks_at_tomorrow(data):
    """Says GO before a rise."""

    def yes(candidate, _):
        close = next_close(data, candidate.signal.as_of)
        return close is not None and close > candidate.entry_price

    return Saying(yes)


def test_an_honest_agent_passes_every_test_of_the_future(honest):
    found = [
        test(honest)
        for test in (
            future.known_in_time,
            future.future_cut,
            future.future_poisoned,
            future.signals,
            future.account,
        )
    ]
    assert [(test.name, test.status, test.changed) for test in found] == [
        ("known_in_time", "passed", 0),
        ("future_cut", "passed", 0),
        ("future_poisoned", "passed", 0),
        ("signals", "passed", 0),
        ("account", "passed", 0),
    ]
    assert [test.checked for test in found] == [
        sum(len(cycle.evidence) for cycle in honest.run.cycles),
        len(honest.run.cycles),
        len(honest.run.cycles),
        60,
        30,
    ]


def test_a_fact_that_was_not_public_yet_is_named(honest):
    first, *rest = honest.run.cycles
    fact = first.evidence[3]
    late = replace(fact, known_at=first.as_of + timedelta(seconds=1))
    evidence = (*first.evidence[:3], late, *first.evidence[4:])
    run = replace(honest.run, cycles=(replace(first, evidence=evidence), *rest))
    found = future.known_in_time(replace_run(honest, run))
    assert (found.status, found.changed) == ("leak", 1)
    assert found.changes[0].detail == f"known only later: {fact.name}"


def test_a_rule_that_fires_for_what_comes_next_is_caught():
    def entry(bars: BarSeries, found: Crossings) -> Crossings:
        whole = behind(bars)
        rises = np.zeros(len(bars), dtype=bool)
        known = min(len(bars), whole.size - 5)
        rises[:known] = whole[5 : known + 5] > whole[:known] * 1.04
        return Crossings(entry=found.entry & rises, exit=found.exit)

    audit = audit_of(strategy=lambda other: Cheating(other, entry=entry), slots=SLOTS[:62])
    assert audit.taken
    cut, poisoned = future.future_cut(audit), future.future_poisoned(audit)
    assert cut.status == poisoned.status == "leak"
    assert {change.detail for change in cut.changes} == {"the signal does not fire"}
    silent = future.signals(audit)
    assert silent.status == "leak"
    assert ("fired", "silent") in {(change.before, change.after) for change in silent.changes}


def test_a_rule_that_is_silent_for_what_comes_next_is_caught_though_it_decides_nothing():
    def entry(bars: BarSeries, found: Crossings) -> Crossings:
        later = np.full(len(bars), behind(bars).size > len(bars))
        return Crossings(entry=found.entry & ~later, exit=found.exit)

    audit = audit_of(strategy=lambda other: Cheating(other, entry=entry), slots=SLOTS[:24])
    assert not audit.run.cycles
    assert future.future_cut(audit).status == "not applicable"
    found = future.signals(audit)
    assert found.status == "leak"
    assert {(change.before, change.after) for change in found.changes} == {("silent", "fired")}


def test_evidence_from_the_future_is_caught():
    def feature(bars: BarSeries, index: int) -> float:
        return float(behind(bars)[min(len(bars) + 2, behind(bars).size - 1)])

    audit = audit_of(strategy=lambda other: Cheating(other, feature=feature), slots=SLOTS[:62])
    for test in (future.future_cut, future.future_poisoned):
        found = test(audit)
        assert (found.status, found.changed) == ("leak", len(audit.taken))
        assert {change.detail for change in found.changes} == {"another candidate"}


def test_a_fact_that_differs_is_named(honest):
    first = honest.taken[0]
    seen = first.record.evidence
    other = (*seen[:5], replace(seen[5], value=1.0), *seen[6:])
    taken = [Taken(record=replace(first.record, evidence=other), slot=first.slot)]
    found = future.future_cut(replace(honest, taken=taken))
    assert [change.detail for change in found.changes] == [f"other evidence: {seen[5].name}"]
    many = (*(replace(fact, value=None) for fact in seen[:5]), *seen[5:])
    names = ", ".join(fact.name for fact in seen[:3])
    assert different_facts(seen, many) == f"other evidence: {names} and 2 more"


def test_other_words_about_the_same_evidence_are_a_change_but_another_id_is_not(honest):
    debate = honest.run.cycles[0].debate
    renamed = replace(debate, verdict=replace(debate.verdict, verdict_id="V-0"))
    assert same_words(debate, renamed) == ""
    first, *rest = debate.arguments
    reworded = replace(debate, arguments=(replace(first, thesis="Buy."), *rest))
    assert same_words(debate, reworded) == "the same evidence is argued in other words"
    by_models = replace(debate, calls=(CALL,))
    assert same_words(by_models, replace(reworded, calls=(CALL,))) == ""


def test_what_was_said_is_repeated_about_the_very_same_case_only(honest):
    cycle = honest.run.cycles[0]
    other = Saying(lambda *_: False)
    memory = Remembered(other, "again", honest.run.cycles)
    case = (cycle.candidate, cycle.evidence, cycle.cycle_id, None)
    assert memory.deliberate(*case) is cycle.debate
    assert other.asked == []
    memory.deliberate(cycle.candidate, cycle.evidence[1:], cycle.cycle_id, None)
    assert other.asked == [f"{cycle.cycle_id}~again"]


def test_a_debater_that_sees_the_future_is_caught():
    audit = audit_of(deliberation=peeks_at_tomorrow)
    said = [str(taken.record.debate.verdict.decision) for taken in audit.taken]
    assert "GO" in said
    cut = future.future_cut(audit)
    assert (cut.status, cut.changed) == ("leak", said.count("GO"))
    assert {(change.before, change.after) for change in cut.changes} == {("GO", "NO_GO")}
    poisoned = future.future_poisoned(audit)
    assert (poisoned.status, poisoned.changed) == ("leak", len(audit.taken))


def test_a_market_that_shows_a_later_bar_is_caught():
    audit = audit_of(slots=SLOTS[:24])
    first = audit.taken[0]
    hashes = {"AAPL": BARS.until(SLOTS[24].as_of).sha256}
    taken = [Taken(record=replace(first.record, data_hashes=hashes), slot=first.slot)]
    audit.taken = taken
    assert future.future_cut(audit).changes[0].detail == "the bars themselves were others"


def test_an_account_that_trades_on_later_bars_is_caught(honest):
    """The equity of a slot is that of another: as if the exchange had matched a later bar."""
    first, *rest = honest.run.slots
    run = replace(honest.run, slots=(replace(first, equity=first.equity + 1), *rest))
    found = future.account(replace_run(honest, run))
    assert (found.status, found.changed) == ("leak", 1)
    assert found.changes[0].detail == "the account of this slot differs"


def test_a_decision_that_the_second_walk_takes_or_misses_is_listed(honest):
    fewer = replace(honest.run, cycles=honest.run.cycles[1:])
    assert future.account(replace_run(honest, fewer)).changes[0].before == "no decision"
    extra = replace(honest.run.cycles[0], cycle_id="test-20200102T1430-AAPL-none")
    more = replace(honest.run, cycles=(extra, *honest.run.cycles))
    assert future.account(replace_run(honest, more)).changes[0].after == "another case"


def test_the_second_walk_asks_no_model_about_what_it_has_heard():
    speaker = Saying(lambda *_: False)
    audit = audit_of(deliberation=lambda _: speaker, slots=SLOTS[:24])
    before = len(speaker.asked)
    assert future.account(audit).status == "passed"
    assert len(speaker.asked) == before


def test_each_debate_that_is_held_again_has_a_name_of_its_own():
    speaker = Saying(lambda *_: False)
    audit = audit_of(deliberation=lambda _: speaker, slots=SLOTS[:24])
    future.future_cut(audit)
    future.future_poisoned(audit)
    assert len(speaker.asked) == len(set(speaker.asked)) == 3 * len(audit.taken)


def test_a_debate_without_an_answer_proves_nothing():
    silent = Saying(lambda *_: False, flag=FlagCode.ENDPOINT_FAILURE)
    audit = audit_of(deliberation=lambda _: silent, slots=SLOTS[:24])
    found = future.future_cut(audit)
    assert (found.status, found.checked, found.unanswered) == ("incomplete", 0, len(audit.taken))
    assert len(silent.asked) == len(audit.taken)  # it is not asked a second time in vain


def test_a_hearing_without_an_answer_and_a_fallback_prove_nothing_either(honest):
    debate = honest.run.cycles[0].debate
    silent = replace(
        debate.verdict, flags=(RiskFlag(code=FlagCode.TIMED_OUT, detail="bear: too slow"),)
    )
    heard = Hearing(arguments=(), rebuttals=(), verdict=silent, weighing=None, calls=())
    assert not without_answer(debate)
    assert without_answer(replace(debate, hearing=heard))
    assert without_answer(replace(debate, fallback="the model failed"))


def test_a_model_that_answers_one_question_in_two_ways_is_unstable_and_no_leak():
    answers = iter([True, False] * 50)
    fickle = Saying(lambda *_: next(answers), call=CALL)
    audit = audit_of(deliberation=lambda _: fickle, slots=SLOTS[:24], sample=1)
    if len(fickle.asked) % 2 == 0:
        next(answers)
    found = future.future_cut(audit)
    assert (found.status, found.changed) == ("unstable", 1)
    assert found.changes[0].detail.startswith("another answer to the same question")


def test_a_symbol_without_bars_there_is_a_change_and_no_crash():
    audit = audit_of(slots=SLOTS[:24])

    class Gone:
        name = "hand"

        def symbols(self, timeframe):
            return ("AAPL",)

        def bars(self, symbol, timeframe, until=None):
            raise DataIntegrityError("AAPL: gone")

    over = audit.agent_over
    audit.agent_over = lambda data: replace(over(data), data=Gone())
    assert {change.detail for change in future.future_cut(audit).changes} == {"AAPL: gone"}


def replace_run(audit, run):
    """The same audit of another record of its walk."""
    return replace(audit, run=run)
