"""The claims checker: true sentences always pass, invented ones never do."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.debate.claims.checker import check_claims, quotes
from tests.agents.facts import NoPast, evidence, id_of, unit_of
from trader.core.decision import Claim, EvidenceIndex, Operator

FACTS = evidence()


def checked(field: str, operator: Operator, quoted: float, *more: str, unit: str = "") -> Claim:
    ids = tuple(id_of(FACTS, name) for name in (field, *more))
    claim = Claim(
        text="said",
        evidence_ids=ids,
        field=field,
        operator=operator,
        quoted_value=quoted,
        unit=unit or unit_of(field),
    )
    return check_claims([claim], EvidenceIndex(FACTS), NoPast())[0]


@pytest.mark.parametrize("quoted", [200.1, 200.0, 200.14999])
def test_a_rounded_quotation_is_accepted(quoted):
    assert quotes(round(quoted, 1) if quoted > 200.1 else quoted, 200.1)


@pytest.mark.parametrize(
    ("quoted", "value"), [(181.3, 200.1), (201.0, 200.1), (28.0, 61.0), (0.0, 0.3), (1.0, 0.6)]
)
def test_an_invented_or_crude_quotation_is_refused(quoted, value):
    assert not quotes(quoted, value)


@given(st.floats(1e-6, 1e9), st.integers(0, 6))
@settings(deadline=None)
def test_quoting_a_value_to_any_number_of_places_is_true_unless_it_loses_five_percent(
    value, places
):
    quoted = round(value, places)
    if abs(quoted - value) <= 0.049 * value:
        assert quotes(quoted, value)


@given(st.floats(1.0, 1e6), st.floats(0.06, 0.9))
@settings(deadline=None)
def test_a_number_six_percent_off_never_passes_as_an_equality(value, off):
    assert not quotes(value * (1 + off), value)
    assert not quotes(value * (1 - off), value)


@pytest.mark.parametrize(
    ("quoted", "value", "true"),
    [
        (45e6, 45_231_900.0, True),
        (45.2e6, 45_231_900.0, True),
        (45.3e6, 45_231_900.0, False),
        (1.2e6, 1_249_999.0, True),
        (1.2e6, 1_251_000.0, False),
        (1e6, 1_060_000.0, False),
        (98_800.0, 98_765.43, True),
        (98_700.0, 98_765.43, False),
        (99_000.0, 98_765.43, False),
        (263.0, 263.4, True),
        (260.0, 263.4, False),
        (9_000.0, 9_040.0, False),
    ],
)
def test_large_numbers_are_rounded_to_their_first_digits(quoted, value, true):
    assert quotes(quoted, value) is true


@given(st.floats(1e6, 1e12), st.integers(2, 8))
def test_millions_may_be_rounded_to_two_digits_and_no_invented_ones_pass(value, digits):
    assert quotes(float(f"{value:.{digits - 1}e}"), value)
    first_digits = 10.0 ** (len(str(int(value))) - 2)
    for invented in (value + 0.51 * first_digits + 1.0, value - 0.51 * first_digits - 1.0):
        assert not quotes(float(f"{invented:.12e}"), value)
        assert not quotes(round(value + first_digits * 1.01), value)


def test_an_equality_is_verified_and_a_wrong_one_contradicted_with_the_true_value_shown():
    assert checked("rsi_14", "=", 58.0).status == "verified"
    wrong = checked("rsi_14", "=", 29.0)
    assert wrong.status == "contradicted"
    assert "58" in wrong.detail


@pytest.mark.parametrize(
    ("operator", "quoted", "status"),
    [
        ("<", 70.0, "verified"),
        ("<", 58.0, "contradicted"),
        ("<=", 58.0, "verified"),
        (">", 58.0, "contradicted"),
        (">=", 58.0, "verified"),
        (">", 40.0, "verified"),
    ],
)
def test_comparisons_with_a_number_hold_on_both_sides_of_the_boundary(operator, quoted, status):
    assert checked("rsi_14", operator, quoted).status == status


def test_a_comparison_of_two_facts_needs_the_second_quoted_truly():
    assert checked("close", ">", 95.0, "sma_200").status == "verified"
    assert checked("close", ">", 80.0, "sma_200").status == "contradicted"
    assert checked("close", "<", 95.0, "sma_200").status == "contradicted"


CROSSING = ("rule_value_previous", "rule_line", "rule_line_previous")


def test_a_crossing_needs_to_have_been_on_the_other_side_before():
    assert checked("rule_value", "crosses_above", 99.0, *CROSSING).status == "verified"
    assert checked("rule_value", "crosses_below", 99.0, *CROSSING).status == "contradicted"
    assert checked("rule_value", "crosses_above", 90.0, *CROSSING).status == "contradicted"
    level = ("rule_value_previous",)
    assert checked("rule_value", "crosses_above", 98.0, *level).status == "verified"
    assert (
        checked("rule_value", "crosses_above", 97.0, *level).status == "verified"
    )  # touched, then above
    assert (
        checked("rule_value", "crosses_above", 96.0, *level).status == "contradicted"
    )  # above before
    assert (
        checked("rule_value", "crosses_above", 100.0, *level).status == "contradicted"
    )  # only touches


def test_what_cannot_be_looked_up_is_unverifiable():
    sound = checked("rsi_14", "=", 58.0)
    index = EvidenceIndex(FACTS)
    for broken in (
        replace(sound, evidence_ids=("E999",)),
        replace(sound, evidence_ids=()),
        replace(sound, field="rsi_7"),
        replace(sound, unit="USD"),
        replace(sound, quoted_value=math.nan),
        replace(sound, quoted_value=math.inf),
        replace(sound, evidence_ids=(*sound.evidence_ids, id_of(FACTS, "adx_14"))),
        replace(sound, operator="crosses_above"),
    ):
        assert check_claims([broken], index, NoPast())[0].status == "unverifiable", broken


def test_a_missing_or_future_fact_cannot_be_quoted():
    facts = evidence(rsi_14=None)
    claim = replace(checked("rsi_14", "=", 58.0), evidence_ids=(id_of(facts, "rsi_14"),))
    assert check_claims([claim], EvidenceIndex(facts), NoPast())[0].status == "unverifiable"
    late = tuple(
        replace(fact, known_at=fact.known_at.replace(hour=22)) if fact.name == "rsi_14" else fact
        for fact in FACTS
    )
    assert check_claims([claim], EvidenceIndex(late), NoPast())[0].status == "unverifiable"


def test_a_crossing_between_two_different_facts_is_no_crossing():
    assert checked("close", "crosses_above", 99.0, "stop_price").status == "unverifiable"
    mixed = checked("rule_value", "crosses_above", 99.0, "rule_value_previous", "rule_line", "low")
    assert mixed.status == "unverifiable"
