"""The leakage lab, second room: who knows a name, a date, an order or the news is caught."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from math import comb

import pytest

from tests.trader.backtest.audited import SLOTS, Cheating, Saying, audit_of, honest
from trader.app.debaters import Debaters
from trader.backtest.leakage import controls as lab
from trader.backtest.leakage.agent import Taken
from trader.core.config import Config
from trader.core.decision import ChatCall, Evidence, FlagCode
from trader.core.market import BarSeries
from trader.core.ports import Crossings

CASH = Decimal(100_000)
CALL = ChatCall(
    role="bull", round=0, model="m", prompt="bull 1", call_id="C-1", reply_sha256="0" * 64
)


@pytest.fixture(scope="module")
def audit():
    return audit_of(slots=SLOTS[:24])


def saying(yes, **more):
    """An audit of an agent that says GO when `yes` does."""
    return audit_of(deliberation=lambda _: Saying(yes, **more), slots=SLOTS[:24])


def test_an_honest_agent_passes_every_control(audit):
    swapped = Debaters(Config()).deliberation("rules", bear_first=True)
    found = [
        lab.masked(audit),
        lab.order_swapped(audit, swapped),
        lab.news_shuffled(audit, 7),
        lab.mirrored(audit),
        lab.white_noise(audit, 8, CASH),
    ]
    assert [(test.name, test.status, test.changed) for test in found] == [
        ("masked", "passed", 0),
        ("order_swapped", "passed", 0),
        ("news_shuffled", "not applicable", 0),
        ("mirrored", "statement", 0),
        ("white_noise", "passed", 0),
    ]
    assert found[0].checked == found[1].checked == len(audit.taken) > 2
    assert found[2].detail == "no foreign text in the evidence: nothing to shuffle"
    assert found[3].detail.startswith("GO ")
    assert found[4].checked == 8


@pytest.mark.parametrize(
    "knows",
    [
        lambda candidate, _: candidate.signal.symbol == "AAPL",
        lambda candidate, _: candidate.instrument.name == "Apple",
        lambda candidate, _: candidate.instrument.exchange == "NASDAQ",
        lambda candidate, _: candidate.signal.as_of > datetime.fromisoformat("2015-01-01T00:00Z"),
        lambda candidate, _: candidate.entry_price < 300.0,
        lambda _, evidence: {fact.symbol for fact in evidence} == {"AAPL"},
        lambda _, evidence: any(fact.name == "cash" and fact.value < 2e5 for fact in evidence),
        lambda _, evidence: any(fact.unit == "date" and fact.value > 2.01e7 for fact in evidence),
    ],
)
def test_an_agent_that_decides_by_name_date_or_price_is_caught(knows):
    found = lab.masked(saying(knows))
    assert (found.status, found.changed) == ("leak", found.checked)
    assert found.changes[0].before == "GO"
    assert found.changes[0].after == "NO_GO"


def test_of_a_model_it_is_said_that_it_may_know_the_instrument():
    found = lab.masked(saying(lambda candidate, _: candidate.signal.symbol == "AAPL", call=CALL))
    assert found.status == "leak"
    assert "the model may know this instrument" in found.detail


def test_a_rule_that_fires_at_some_prices_only_is_caught():
    def entry(bars: BarSeries, found: Crossings) -> Crossings:
        return Crossings(entry=found.entry & (bars.close < 300.0), exit=found.exit)

    found = lab.masked(
        audit_of(strategy=lambda other: Cheating(other, entry=entry), slots=SLOTS[:24])
    )
    assert {change.detail for change in found.changes} == {"the signal does not fire any more"}


def test_an_agent_that_believes_whoever_speaks_last_is_caught():
    found = lab.order_swapped(saying(lambda *_: True), Saying(lambda *_: False))
    assert (found.status, found.changed) == ("leak", found.checked)


def test_other_confidence_is_a_change_too_where_no_model_spoke(audit):
    def surer(candidate, evidence, cycle_id, history):
        held = honest(None).deliberate(candidate, evidence, cycle_id, history)
        return replace(held, verdict=replace(held.verdict, confidence=0.99))

    swapped = Saying(lambda *_: True)
    swapped.deliberate = surer
    found = lab.order_swapped(audit, swapped)
    assert found.status == "leak"
    assert "confidence" in found.changes[0].detail


def with_news(audit, texts):
    """The audit of decisions that have a news item each."""

    def informed(taken: Taken, text: str) -> Taken:
        record = taken.record
        item = Evidence(
            evidence_id=f"E{len(record.evidence) + 1}",
            symbol=record.symbol,
            kind="news",
            name="news_1",
            value=None,
            unit="text",
            as_of=record.as_of,
            known_at=record.as_of,
            source="news",
            text=text,
        )
        evidence = (*record.evidence, item)
        debate = audit.agent.deliberation.deliberate(
            record.candidate, evidence, record.cycle_id, audit.history(taken)
        )
        return replace(taken, record=replace(record, evidence=evidence, debate=debate))

    taken = [informed(item, text) for item, text in zip(audit.taken, texts, strict=False)]
    return replace(audit, taken=taken)


def test_an_honest_agent_decides_the_same_on_facts_with_the_news_of_another_day(audit):
    told = with_news(audit, ["good news", "bad news", "no news", "old news", "new news", "news"])
    found = lab.news_shuffled(told, 7)
    assert (found.status, found.checked) == ("passed", len(told.taken))


def test_an_agent_that_trades_on_the_news_is_caught():
    def reads(_, evidence):
        return any("good" in fact.text for fact in evidence)

    told = with_news(saying(reads), ["good", "bad"])
    found = lab.news_shuffled(told, 7)
    assert (found.status, found.changed, found.checked) == ("leak", 2, 2)


def test_what_a_hearing_takes_away_is_no_leak():
    def reads(_, evidence):
        return not any("bad" in fact.text for fact in evidence)

    told = with_news(saying(reads, flag=FlagCode.FOREIGN_TEXT_AGAINST), ["good", "bad"])
    found = lab.news_shuffled(told, 7)
    assert (found.status, found.checked) == ("passed", 2)


def test_texts_are_dealt_within_their_kind_and_none_stays(audit):
    told = with_news(audit, ["a", "b", "c"])
    cases = [taken.record.evidence for taken in told.taken]
    dealt = lab.shuffled_texts(cases, 3)
    before, after = [case[-1].text for case in cases], [case[-1].text for case in dealt]
    assert sorted(after) == before == ["a", "b", "c"]
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert [case[:-1] for case in dealt] == [case[:-1] for case in cases]
    assert lab.shuffled_texts(cases[:1], 3) == cases[:1]


def test_an_agent_that_says_go_to_everything_is_caught_twice():
    audit = audit_of(deliberation=lambda _: Saying(lambda *_: True))
    upside_down = lab.mirrored(audit)
    assert upside_down.status == "leak"
    assert upside_down.changed == upside_down.checked >= 5
    noise = lab.white_noise(audit, 8, CASH)
    assert (noise.status, noise.changed, noise.detail) == ("leak", 8, "GO 8 of 8 (100%)")


def test_an_agent_that_says_go_to_nothing_is_left_to_a_person():
    found = lab.mirrored(saying(lambda *_: False))
    assert found.status == "statement"
    assert "(0%)" in found.detail


def test_noise_is_judged_by_an_exact_binomial_tail():
    exact = sum(comb(12, k) * 0.25**k * 0.75 ** (12 - k) for k in range(7, 13))
    assert lab.at_least(7, 12, 0.25) == pytest.approx(exact, rel=1e-12)
    assert lab.at_least(0, 0, 0.3) == pytest.approx(1.0)
    assert 0.0 <= lab.at_least(2_000, 3_000, 1 / 3) < 1e-100
    # of 8 candidates 6 GO are too many for a third, 5 are not
    assert (
        lab.at_least(6, 8, lab.NOISE_CEILING)
        < lab.CERTAINTY
        <= lab.at_least(5, 8, lab.NOISE_CEILING)
    )


def test_the_sample_is_spread_from_the_first_to_the_last():
    assert lab.evenly(range(10), 4) == [0, 3, 6, 9]
    assert lab.evenly(range(3), 4) == [0, 1, 2]
    assert lab.evenly(range(5), 1) == [0]
    assert lab.evenly([], 4) == []
