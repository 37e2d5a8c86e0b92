"""Protections and caps on activity: each rule by hand, switched off by 0, told with its numbers."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trader.verdicts import GO, holding, inputs
from trader.core.costs import Costs
from trader.core.decision import Circumstances, Decision, RiskFlag
from trader.core.flags import FLAG_WORDS, FlagCode
from trader.risk.gate import RiskLimits, review
from trader.risk.protections import ProtectionLimits, SafetyLimits


def codes(
    seen: Circumstances,
    *,
    protections: ProtectionLimits | None = None,
    safety: SafetyLimits | None = None,
    verdict=GO,
    **account,
) -> list[str]:
    limits = RiskLimits(
        protections=protections or ProtectionLimits(), safety=safety or SafetyLimits()
    )
    decision = review(verdict, inputs(circumstances=seen, **account), limits=limits, costs=Costs())
    assert decision.approved == (not decision.reasons) == (decision.quantity > 0)
    return [str(reason.code) for reason in decision.reasons]


def test_a_calm_account_is_not_held_back():
    assert codes(Circumstances()) == []


@pytest.mark.parametrize(
    ("age", "sessions", "refused"),
    [
        (1, 1, True),  # stopped today, the entry would be filled tomorrow
        (2, 1, False),
        (0, 1, True),  # stopped in the session in which the entry would be filled
        (5, 5, True),
        (6, 5, False),
        (None, 5, False),
        (0, 0, False),
        (1, 0, False),
    ],
)
def test_a_symbol_rests_for_sessions_after_its_stop(age, sessions, refused):
    rule = ProtectionLimits(cooldown_sessions=sessions)
    seen = Circumstances(symbol_stop_age=age)
    assert codes(seen, protections=rule) == (["COOLDOWN"] if refused else [])


RUN = ProtectionLimits(stops=3, stops_sessions=4, lock_sessions=5, cooldown_sessions=0)


@pytest.mark.parametrize(
    ("ages", "refused"),
    [
        ((), False),
        ((1, 1), False),  # two are not three
        ((1, 1, 1), True),
        ((1, 2, 4), True),  # sessions 1, 2, 3, 4 are four
        ((1, 2, 5), False),  # 1 to 5 are five
        ((5, 6, 8), True),  # the lock lasts 5 sessions
        ((6, 7, 8), False),
        ((1, 5, 6, 8), True),  # an older three still locks
        ((1, 6, 7, 8), False),
        ((0, 0, 0), True),
    ],
)
def test_a_run_of_stops_locks_every_entry(ages, refused):
    seen = Circumstances(stop_ages=ages)
    assert codes(seen, protections=RUN) == (["TOO_MANY_STOPS"] if refused else [])
    assert codes(seen, protections=replace(RUN, stops=0)) == []
    assert codes(seen, protections=replace(RUN, lock_sessions=0)) == (
        ["TOO_MANY_STOPS"] if ages[:1] == (0,) else []
    )


@pytest.mark.parametrize(
    ("fall", "age", "refused"),
    [
        (0.10, 1, True),
        (0.0999, 1, False),
        (0.25, 5, True),
        (0.25, 6, False),
        (0.0, None, False),
    ],
)
def test_a_fall_of_equity_locks_until_its_lowest_is_old(fall, age, refused):
    rule = ProtectionLimits(drawdown=0.1, lock_sessions=5)
    seen = Circumstances(drawdown=fall, drawdown_age=age)
    assert codes(seen, protections=rule) == (["DRAWDOWN"] if refused else [])
    assert codes(seen, protections=replace(rule, drawdown=0.0)) == []


@pytest.mark.parametrize(
    ("positions", "opens", "refused"),
    [(19, True, False), (20, True, True), (21, True, True), (20, False, False)],
)
def test_as_many_positions_as_may_be_are_not_made_more(positions, opens, refused):
    seen = Circumstances(positions=positions, opens_position=opens)
    assert codes(seen) == (["TOO_MANY_POSITIONS"] if refused else [])
    assert codes(seen, protections=ProtectionLimits(max_positions=0)) == []


@pytest.mark.parametrize(
    ("seen", "code"),
    [
        (Circumstances(entries_in_minute=29), None),
        (Circumstances(entries_in_minute=30), "ORDER_RATE"),
        (Circumstances(open_orders=99), None),
        (Circumstances(open_orders=100), "OPEN_ORDERS"),
        (Circumstances(quote_seconds=900.0), None),
        (Circumstances(quote_seconds=900.1), "STALE_QUOTE"),
        (Circumstances(clock_skew_seconds=2.0), None),
        (Circumstances(clock_skew_seconds=2.1), "CLOCK_SKEW"),
        (Circumstances(clock_skew_seconds=-2.1), "CLOCK_SKEW"),
    ],
)
def test_caps_on_activity_and_age_refuse_from_their_limit_on(seen, code):
    assert codes(seen) == ([] if code is None else [code])


def test_the_sessions_entries_together_stay_within_their_multiple_of_equity():
    # 149 shares at 100.05 USD are 14,907.45; 2 × 50,000 are allowed
    room = Decimal("100000") - Decimal("14907.45")
    calm = Circumstances(session_equity=Decimal(50_000), entry_value=room)
    assert codes(calm) == []
    assert codes(replace(calm, entry_value=room + Decimal("0.01"))) == ["DAILY_NOTIONAL"]
    # where the opening is not known, equity stands for it
    assert codes(Circumstances(entry_value=Decimal(190_000))) == ["DAILY_NOTIONAL"]


@pytest.mark.parametrize("code", sorted(FlagCode))
def test_what_blocks_the_account_blocks_the_entry_with_its_own_words(code):
    seen = Circumstances(blocks=(RiskFlag(code=code, detail="why"),))
    assert codes(seen) == [str(code)]


def test_every_reason_is_told_and_none_hides_another():
    seen = Circumstances(
        blocks=(RiskFlag(code=FlagCode.TRADING_PAUSED, detail="holidays"),),
        symbol_stop_age=1,
        stop_ages=(1,) * 6,
        drawdown=0.2,
        drawdown_age=1,
        positions=20,
        entries_in_minute=30,
        open_orders=100,
        quote_seconds=1e6,
        clock_skew_seconds=9.0,
    )
    assert codes(seen) == [
        "TRADING_PAUSED",
        "ORDER_RATE",
        "OPEN_ORDERS",
        "STALE_QUOTE",
        "CLOCK_SKEW",
        "COOLDOWN",
        "TOO_MANY_STOPS",
        "DRAWDOWN",
        "TOO_MANY_POSITIONS",
    ]
    # a NO_GO is a NO_GO; what lies behind the account adds nothing to it
    assert codes(seen, verdict=replace(GO, decision=Decision.NO_GO)) == ["NOT_A_GO"]


def test_every_code_has_words_for_a_person():
    assert set(FLAG_WORDS) == set(FlagCode)
    assert all((words and words[0].islower()) or words[0] == "a" for words in FLAG_WORDS.values())
    assert len(set(FLAG_WORDS.values())) == len(FLAG_WORDS)


AGES = st.none() | st.integers(0, 100)


@given(
    st.builds(
        Circumstances,
        symbol_stop_age=AGES,
        stop_ages=st.lists(st.integers(0, 40), max_size=20).map(lambda ages: tuple(sorted(ages))),
        drawdown=st.floats(0.0, 1.0),
        drawdown_age=AGES,
        positions=st.integers(0, 50),
        opens_position=st.booleans(),
        entries_in_minute=st.integers(0, 60),
        entry_value=st.decimals(0, 500_000, places=2),
        open_orders=st.integers(0, 300),
        quote_seconds=st.none() | st.floats(0, 1e6),
        clock_skew_seconds=st.none() | st.floats(-100, 100),
    ),
    st.integers(0, 200),
)
def test_circumstances_only_ever_take_away(seen, held):
    account = {"portfolio": holding(held)}
    calm = review(GO, inputs(**account), limits=RiskLimits(), costs=Costs())
    found = review(GO, inputs(circumstances=seen, **account), limits=RiskLimits(), costs=Costs())
    assert found.quantity in (0, calm.quantity)
