"""Claims about the past, by hand: what each operator says of a session and of a period."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from agents.debate.claims.checker import check_claims, side_record
from agents.debate.claims.past import Period, period_of
from tests.agents.facts import NoPast, evidence, id_of
from tests.trader.pipeline.accounts import REFERENCE
from tests.trader.pipeline.bars import daily
from trader.core.decision import Claim, Evidence, EvidenceIndex, Operator
from trader.pipeline.history import BarHistory

# 2, 3, 6, 7, 8, 9, 10 January 2020; the decision falls on the 10th
BARS = daily([10.0, 11.0, 10.5, 12.0, 12.0, 9.0, 13.0], first=date(2020, 1, 2))
DECIDED = datetime(2020, 1, 10, 21, tzinfo=UTC)
FACTS = tuple(
    replace(fact, as_of=DECIDED, known_at=DECIDED)
    for fact in evidence(close=13.0, open=9.0, high=14.0, low=8.0, volume=1e6, session=20200110.0)
)


def checked(
    operator: Operator,
    quoted: float,
    when: str | None,
    *more: str,
    field: str = "close",
    unit: str = "USD",
    upper: float | None = None,
    text: str = "said",
    facts: tuple[Evidence, ...] = FACTS,
) -> Claim:
    claim = Claim(
        text=text,
        evidence_ids=tuple(id_of(facts, name) for name in (field, *more)),
        field=field,
        operator=operator,
        quoted_value=quoted,
        unit=unit,
        upper_value=upper,
        when=when,
    )
    return check_claims([claim], EvidenceIndex(facts), BarHistory(BARS, REFERENCE))[0]


@pytest.mark.parametrize(
    ("operator", "quoted", "when", "status"),
    [
        ("=", 12.0, "2020-01-07", "verified"),
        ("=", 12.0, "2020-01-06", "contradicted"),
        ("=", 13.0, "2020-01-10", "verified"),
        (">", 11.9, "2020-01-07", "verified"),
        ("<=", 11.9, "2020-01-07", "contradicted"),
        (">", 8.9, "last 7", "verified"),
        (">", 9.0, "last 7", "contradicted"),
        (">=", 9.0, "last 7", "verified"),
        ("<=", 12.0, "2020-01-02..2020-01-09", "verified"),
        ("<", 12.0, "2020-01-02..2020-01-09", "contradicted"),
        ("highest", 13.0, "since 2020-01-02", "verified"),
        ("highest", 12.0, "since 2020-01-02", "contradicted"),
        ("highest", 12.0, "2020-01-02..2020-01-09", "verified"),
        ("lowest", 9.0, "last 2", "verified"),
        ("lowest", 9.0, "last 1", "contradicted"),
        ("change", 4.0, "2020-01-10", "verified"),  # in USD, against the session before
        ("change", 3.0, "since 2020-01-02", "verified"),
        ("change", 3.0, "since 2020-01-05", "contradicted"),  # from the Friday before, 11
        ("change", 2.0, "since 2020-01-05", "verified"),
        ("change", 1.0, "last 2", "verified"),  # against two sessions before, 12
        ("change", -1.5, "2020-01-06..2020-01-09", "verified"),
        ("crosses_above", 11.5, "2020-01-07", "verified"),
        ("crosses_above", 10.5, "2020-01-07", "verified"),  # from the line itself
        ("crosses_above", 11.5, "2020-01-08", "contradicted"),
        ("crosses_below", 9.5, "2020-01-09", "verified"),
        ("crosses_above", 12.5, None, "verified"),  # today, from the bars
    ],
)
def test_what_an_operator_says_of_a_session_and_of_a_period(operator, quoted, when, status):
    result = checked(operator, quoted, when)
    assert result.status == status, result.detail


def test_a_change_in_percent_or_as_a_fraction_is_relative():
    assert checked("change", 0.3, "since 2020-01-02", unit="fraction").status == "verified"
    assert checked("change", 30.0, "since 2020-01-02", unit="percent").status == "verified"
    assert checked("change", -25.0, "2020-01-09", unit="%").status == "verified"
    assert checked("change", 25.0, "2020-01-09", unit="%").status == "contradicted"
    assert checked("change", 0.3, "since 2020-01-02", unit="percent").status == "contradicted"


def test_between_speaks_of_a_session_or_of_every_session():
    assert checked("between", 8.0, "2020-01-09", upper=9.0).status == "verified"
    assert checked("between", 9.0, "last 7", upper=13.0).status == "verified"
    assert checked("between", 9.1, "last 7", upper=13.0).status == "contradicted"
    assert checked("between", 12.0, None, upper=14.0).status == "verified"
    assert checked("between", 12.0, None, upper=12.5).status == "contradicted"
    assert checked("between", 14.0, None, upper=12.0).status == "unverifiable"
    assert checked("between", 12.0, None).status == "unverifiable"


def test_the_session_of_an_extreme_may_be_any_that_shows_it():
    span = "2020-01-02..2020-01-09"
    for day, status in ((7, "verified"), (8, "verified"), (9, "contradicted"), (4, "contradicted")):
        assert checked("highest", 20200100 + day, span, unit="date").status == status
    outside = checked("highest", 20200110, span, unit="date")
    assert outside.status == "contradicted"
    assert "2020-01-07" in outside.detail
    assert checked("highest", 20200107, "last 2", unit="date").status == "contradicted"
    assert checked("highest", 20200110, "last 2", unit="date").status == "verified"


def test_counts_are_exact():
    assert checked("count_up", 3, "last 6", unit="count").status == "verified"
    assert checked("count_down", 2, "last 6", unit="sessions").status == "verified"
    assert checked("count_down", 3, "last 6", unit="count").status == "contradicted"
    above = checked("count_above", 3, "last 7", "open", unit="count")
    assert above.status == "verified"
    assert "3 of 7 sessions" in above.detail
    assert checked("count_above", 1, "last 7", unit="count", upper=12.0).status == "verified"
    assert checked("count_below", 4, "last 7", unit="count", upper=12.0).status == "verified"
    # a level has no past: it stays where it is
    assert checked("count_below", 7, "last 7", "stop_price", unit="count").status == "verified"
    for wrong in (
        checked("count_above", 3, "last 7", unit="count"),  # above what
        checked("count_up", 3, "2020-01-07", unit="count"),
        checked("count_up", 3, None, unit="count"),
        checked("count_up", 3, "last 6", unit="USD"),
    ):
        assert wrong.status == "unverifiable", wrong.detail


def test_a_second_fact_is_a_line_with_its_own_past():
    assert checked(">", 10.5, "2020-01-07", "open").status == "verified"
    assert checked(">", 9.0, "2020-01-07", "open").status == "contradicted"  # today's open
    assert checked("<", 10.5, "2020-01-07", "open").status == "contradicted"
    assert checked(">", 8.0, "last 7", "low").status == "verified"
    assert checked(">", 8.5, "last 7", "low").status == "contradicted"  # not today's low


@pytest.mark.parametrize(
    ("operator", "when", "words"),
    [
        ("=", "2020-01-04", "Saturday"),
        ("=", "2020-01-01", "do not hold"),
        ("=", "2020-01-13", "after the decision of 2020-01-10"),
        ("highest", "since 2020-01-13", "after the decision"),
        ("highest", "2020-01-02..2020-01-13", "after the decision"),
        ("highest", "2020-01-09..2020-01-07", "backwards"),
        ("highest", "since 2019-06-01", "do not hold"),
        ("highest", "last 8", "do not hold"),
        ("highest", "last 2521", "more than 2520"),
        ("highest", "last 0", "no period"),
        ("highest", "lately", "no period"),
        ("highest", "2020-02-30", "there is no 2020-02-30"),
        ("highest", None, "name it in `when`"),
        ("=", "last 3", "one session"),
        ("crosses_above", "last 3", "its session"),
        ("change", None, "name it in `when`"),
    ],
)
def test_what_the_past_does_not_hold_is_unverifiable_and_said_why(operator, when, words):
    result = checked(operator, 12.0, when)
    assert result.status == "unverifiable"
    assert words in result.detail


def test_a_field_without_a_past_may_still_be_dated_today():
    facts = tuple(
        replace(fact, kind="level") if fact.name == "stop_price" else fact for fact in FACTS
    )
    args = {"field": "stop_price", "facts": facts}
    assert checked("=", 96.05, "2020-01-10", **args).status == "verified"
    past = checked("=", 96.05, "2020-01-09", **args)
    assert past.status == "unverifiable"
    assert "the past of stop_price is not known" in past.detail


def test_a_holiday_is_named_as_such():
    bars = daily([10.0] * 20, first=date(2020, 1, 2))
    facts = tuple(replace(fact, as_of=datetime(2020, 1, 30, 21, tzinfo=UTC)) for fact in FACTS)
    claim = replace(checked("=", 10.0, "2020-01-07"), when="2020-01-20")  # Martin Luther King's day
    result = check_claims([claim], EvidenceIndex(facts), BarHistory(bars, REFERENCE))[0]
    assert "2020-01-20 was not a session" in result.detail


def test_periods_are_read_strictly():
    today = date(2020, 1, 10)
    assert period_of("2020-01-07", today) == Period(last=date(2020, 1, 7))
    assert period_of(" since 2020-01-07", today) == Period(first=date(2020, 1, 7))
    assert period_of("last 20", today) == Period(bars=20)
    assert period_of("Last 20 sessions", today) == Period(bars=20)
    assert period_of("2020-01-02 .. 2020-01-07", today) == Period(
        first=date(2020, 1, 2), last=date(2020, 1, 7)
    )
    for text in ("", "last", "last -3", "last 3.5", "since", "2020-1-7", "07.01.2020", "last 3 up"):
        assert isinstance(period_of(text, today), str), text


def test_a_claim_about_now_asks_nothing_of_the_past():
    history = NoPast()
    claim = checked("=", 13.0, None)
    check_claims([replace(claim, text="It closed at 13.00.")], EvidenceIndex(FACTS), history)
    assert history.answers == {}


def test_the_weight_of_a_side_is_the_share_of_its_checked_claims_that_are_true():
    claim = checked("=", 13.0, None)
    false, beyond = replace(claim, status="contradicted"), replace(claim, status="unverifiable")
    record = side_record("bull", [claim, claim, claim, false, beyond])
    assert (record.verified, record.contradicted, record.unverifiable) == (3, 1, 1)
    assert record.weight == 0.75
    assert side_record("bear", []).weight == side_record("bear", [beyond]).weight == 1.0
    assert side_record("bear", [false]).weight == 0.0


def test_units_are_spelled_as_people_spell_them():
    for unit in ("USD", "usd", "$", "Dollars"):
        assert checked("=", 13.0, None, unit=unit).status == "verified"
    for unit in ("EUR", "percent", "index_0_100", ""):
        assert checked("=", 13.0, None, unit=unit).status == "unverifiable"
    volume = {
        "field": "volume",
        "facts": tuple(
            replace(fact, unit="shares") if fact.name == "volume" else fact for fact in FACTS
        ),
    }
    assert checked("=", 1.0, None, unit="million shares", **volume).status == "verified"
    assert checked("=", 1_000_000, None, unit="shares", **volume).status == "verified"
    assert checked("=", 1_000, None, unit="thousand shares", **volume).status == "verified"
    dated = {
        "field": "session",
        "facts": tuple(
            replace(fact, unit="date") if fact.name == "session" else fact for fact in FACTS
        ),
    }
    assert checked("=", 20200110, None, unit="date", **dated).status == "verified"
    assert checked("=", 20200100, None, unit="date", **dated).status == "contradicted"
