"""A claim that would hold of anything is not a claim that was checked."""

from __future__ import annotations

import pytest

from agents.debate.claims.checker import check_claims
from tests.agents.facts import NoPast, evidence, id_of, unit_of
from trader.core.decision import Claim, EvidenceIndex, Operator

FACTS = evidence(return_60=0.1, drawdown_252=-0.05, macd=-1.5)


def checked(
    field: str,
    operator: Operator,
    quoted: float,
    *,
    line: str = "",
    upper: float | None = None,
    unit: str = "",
) -> Claim:
    claim = Claim(
        text="So it is.",
        evidence_ids=tuple(id_of(FACTS, name) for name in (field, line) if name),
        field=field,
        operator=operator,
        quoted_value=quoted,
        unit=unit or unit_of(field),
        upper_value=upper,
    )
    return check_claims([claim], EvidenceIndex(FACTS), NoPast())[0]


@pytest.mark.parametrize(
    ("field", "operator", "quoted"),
    [
        ("close", ">", 0.0),
        ("close", ">", 0.5),
        ("close", "<", 1e6),
        ("atr", ">=", 0.0),
        ("rsi_14", "<=", 100.0),
        ("rsi_14", ">", 0.0),
        ("rsi_14", ">", -5.0),
        ("volume_ratio_20", ">", 0.0),
        ("probability_high_60", "<", 1.0),
        ("signal_hit_rate", ">=", 0.0),
        ("hits_high_60", ">=", 0.0),
        ("return_60", ">", -1.0),
        ("drawdown_252", "<=", 0.0),
        ("position_weight", ">=", 0.0),
    ],
)
def test_a_bound_that_every_value_keeps_says_nothing(field, operator, quoted):
    result = checked(field, operator, quoted)
    assert result.status == "unverifiable"
    assert "says nothing" in result.detail


def test_neither_does_a_range_of_everything_nor_a_fact_against_itself():
    assert checked("rsi_14", "between", 0.0, upper=100.0).status == "unverifiable"
    assert checked("close", "between", 0.5, upper=1e6).status == "unverifiable"
    assert checked("signal_hit_rate", "between", 0.0, upper=100.0, unit="percent").status == (
        "unverifiable"
    )
    assert checked("close", ">=", 100.0, line="close").status == "unverifiable"


@pytest.mark.parametrize(
    ("field", "operator", "quoted"),
    [
        ("close", ">", 5.0),
        ("rsi_14", "<", 70.0),
        ("hits_high_60", ">", 0.0),
        ("signal_closed", ">", 0.0),
        ("drawdown_252", "<", 0.0),
        ("return_60", ">", 0.0),
        ("expected_value_high_60", ">", 0.0),
        ("macd", "<", 0.0),
        ("macd", ">", -200.0),
        ("position_weight", "<=", 0.0),
        ("volume_ratio_20", ">", 1.0),
    ],
)
def test_a_bound_that_a_value_could_break_stands(field, operator, quoted):
    assert checked(field, operator, quoted).status == "verified"


def test_no_more_and_no_less_than_the_number_that_is_shown_is_true():
    facts = evidence(rsi_14=60.2766, probability_high_60=0.174603)

    def status(field: str, operator: Operator, quoted: float, unit: str) -> str:
        claim = Claim(
            text="So it is.",
            evidence_ids=(id_of(facts, field),),
            field=field,
            operator=operator,
            quoted_value=quoted,
            unit=unit,
        )
        return check_claims([claim], EvidenceIndex(facts), NoPast())[0].status

    assert status("rsi_14", ">=", 60.28, "index_0_100") == "verified"
    assert status("rsi_14", ">", 60.28, "index_0_100") == "contradicted"
    assert status("rsi_14", ">=", 60.3, "index_0_100") == "contradicted"
    assert status("probability_high_60", ">=", 17.5, "percent") == "verified"
    assert status("probability_high_60", "=", 18.0, "percent") == "verified"  # 0.175 is shown
    assert status("probability_high_60", "=", 19.0, "percent") == "contradicted"
