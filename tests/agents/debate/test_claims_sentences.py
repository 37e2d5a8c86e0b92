"""The sentence of a claim must say what its typed fields say, in whatever words and digits."""

from __future__ import annotations

import string
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.debate.claims.checker import check_claims
from agents.debate.claims.written import WrittenDate, dates_in, numerals_in, plain
from tests.agents.facts import NoPast, evidence, id_of, unit_of
from tests.trader.pipeline.accounts import CALENDAR, REFERENCE
from tests.trader.pipeline.bars import daily
from trader.core.decision import Claim, EvidenceIndex, Operator
from trader.pipeline.history import BarHistory

FACTS = tuple(
    replace(fact, unit="shares") if fact.name == "volume" else fact
    for fact in evidence(
        close=1234.5,
        sma_200=1100.25,
        return_20=0.032,
        return_60=-0.0815,
        max_drawdown_252=-0.25,
        volume=45_231_900.0,
        macd=-1.25,
        volatility_rank_252=0.85,
        cash=98_765.43,
        news=None,
    )
)
INDEX = EvidenceIndex(FACTS)
# 3 March 2025 is the day of the decision; the closes of 24 February to 3 March
_BEFORE = len(CALENDAR.between(date(2023, 1, 3), date(2025, 2, 21)))
BARS = daily(
    [1100.0] * _BEFORE + [1180.0, 1190.0, 1200.0, 1210.0, 1195.0, 1234.5], first=date(2023, 1, 3)
)


def checked(
    text: str,
    field: str,
    operator: Operator,
    quoted: float,
    *more: str,
    unit: str = "",
    when: str | None = None,
) -> Claim:
    claim = Claim(
        text=text,
        evidence_ids=tuple(id_of(FACTS, name) for name in (field, *more)),
        field=field,
        operator=operator,
        quoted_value=quoted,
        unit=unit or next(fact.unit for fact in FACTS if fact.name == field),
        when=when,
    )
    return check_claims([claim], INDEX, BarHistory(BARS, REFERENCE))[0]


CLOSE = ("close", "=", 1234.5)
RSI = ("rsi_14", "=", 58.0)
ABOVE = ("close", ">", 1100.25, "sma_200")
FELL = ("return_60", "=", -0.0815)
VOLUME = ("volume", "=", 45_200_000.0)
PAYS = ("reward_risk_high_60", ">=", 2.0)
CHANCE = ("probability_high_60", "=", 0.53)

TRUE = [
    ("No number at all.", CLOSE),
    ("The close is 1234.5.", CLOSE),
    ("The close is $1,234.50", CLOSE),
    ("USD 1,235 or so", CLOSE),
    ("Der Schlusskurs beträgt 1.234,50 $.", CLOSE),
    ("Le cours: 1 234,5 €", CLOSE),
    ("收盘价为1234.5美元", CLOSE),
    ("الإغلاق ١٢٣٤٫٥".replace("٫", "."), CLOSE),
    ("**1234.5** is the `close`, _1234.5_", CLOSE),
    ("Close １２３４．５", CLOSE),
    ("E1 stands at 1234.5 (against B2)", CLOSE),
    ("On 2025-03-03 at 16:00 it closed at 1234.5", CLOSE),
    ("On March 3, 2025 it closed at 1234.5", CLOSE),
    ("On the 3rd of March at 1234.5", CLOSE),
    ("Am 3. März 2025 bei 1234,5", CLOSE),
    ("03.03.2025: 1234.5", CLOSE),
    ("It closed at 1234.5, far above 1,000.", CLOSE),
    ("Close 1234.5 > 1200", CLOSE),
    ("The S&P 500 and the Nasdaq-100 aside, it closed at 1234.5", CLOSE),
    ("RSI(14) reads 58", RSI),
    ("RSI 14 at 58.0 is in the middle of 0-100", RSI),
    ("The 14-day RSI14, rsi_14, is 58", RSI),
    ("RSI 58 is below 70 and above 30", RSI),
    ("It closed at 1234.5, above the 200-day average of 1100.25", ABOVE),
    ("The SMA 200 at 1100.3 lies below the close of 1234.5", ABOVE),
    ("It is 12.2 % above its 200-bar average", ABOVE),
    ("134.25 USD separate it from SMA(200)", ABOVE),
    ("1234.5 - 1100.25 = 134.25", ABOVE),
    ("It fell 8.15 % in 60 sessions", FELL),
    ("The 60-bar return is -8.2%", FELL),
    ("The 60-bar return is −8.15 percent", FELL),
    ("Sie fiel in 60 Tagen um 8,15 Prozent", FELL),
    ("It lost 815 bps over 60 days", FELL),
    ("45.2 million shares", VOLUME),
    ("45.2M shares", VOLUME),
    ("45,231,900 shares", VOLUME),
    ("45 231 900 Stück", VOLUME),
    ("about 45 million shares changed hands", VOLUME),
    ("1:2.45 is offered", PAYS),
    ("2.45:1 at the target of 110.00 USD", PAYS),
    ("2.45 R for each 1 R at risk, 2 wanted", PAYS),
    ("entry 100.05, stop 96.05, target 110: 2.45", PAYS),
    ("7 of 12 past trades came so far: 53 %", CHANCE),
    ("12/26/9 MACD stands at -1.25", ("macd", "=", -1.25)),
    ("MACD (12,26,9): negative, 1.25", ("macd", "=", -1.25)),
    ("in the 85th percentile of the last 252 days", ("volatility_rank_252", ">", 0.8)),
    ("The worst fall of the past 52 weeks was 25 %", ("max_drawdown_252", "=", -0.25)),
    ("Volume is 20 % above its 20-day mean, 1.2 times", ("volume_ratio_20", "=", 1.2)),
    ("98,765 USD in cash, about 98,800", ("cash", "=", 98_800.0)),
    ("volume ratio 20 matters", ("volume_ratio_20", ">", 1.0)),
    ("The volume ratio (20) is 1.2", ("volume_ratio_20", "=", 1.2)),
    ("Return 60 is -8.15%", FELL),
    ("Max drawdown 252 is -25 %", ("max_drawdown_252", "=", -0.25)),
    ("Drawdown 252 is -25 %", ("max_drawdown_252", "=", -0.25)),
    ("The probability high 60 is 0.53", CHANCE),
    ("The 3-month (60-day) return is -8.15%", FELL),
    ("Over twelve weeks it fell 8.15 %", FELL),
    ("It stays within 9 % of where it was 60 bars ago", ("return_60", ">", -0.09)),
    ("20-day volatility stands at the 85th percentile", ("volatility_rank_252", ">", 0.8)),
    ("It was calmer on 85 % of days, 15 % were not", ("volatility_rank_252", "=", 0.85)),
    ("47 % of past trades fail to get there", CHANCE),
    ("6 of 12 trades won", ("signal_hit_rate", "=", 0.5)),
    ("6 of 12 trades lost, half of them", ("signal_hit_rate", "=", 0.5)),
    ("2.45 R at a 53 % chance, 9.9 % above the entry", PAYS),
    ("A past trade made 0.2 times its risk", ("signal_average_r", "=", 0.2)),
    ("ATR is 2 USD", ("atr", "=", 2.0)),
    ("45.2 million shares are 1.2 times the mean", ("volume_ratio_20", ">", 1.0)),
    ("RSI is at fifty-eight", RSI),
    ("Twelve trades closed", ("signal_closed", "=", 12.0)),
    ("Both of the two averages are below it", ABOVE),
    ("The 200-day average lies below the close", ABOVE),
    ("+DI is above -DI", ("plus_di_14", ">", 15.0, "minus_di_14")),
    ("+DI is more than 1.5 times -DI", ("plus_di_14", ">", 15.0, "minus_di_14")),
]


@pytest.mark.parametrize(("text", "fields"), TRUE)
def test_a_true_sentence_stands(text, fields):
    result = checked(text, *fields)
    assert result.status == "verified", result.detail


FALSE = [
    ("The close is 1243.5.", CLOSE),
    ("The close is 1234.05", CLOSE),
    ("The close is 12345", CLOSE),
    ("The close is 1,3", CLOSE),
    ("Der Schlusskurs beträgt 1.243,50 $.", CLOSE),
    ("The close is 1.2.3", CLOSE),
    ("The close is 1234.5%", CLOSE),
    ("The close is -1234.5", CLOSE),
    ("The close of 1234.5 is above support at 1187.35", CLOSE),
    ("The close of 1234.5 is above 1,300", CLOSE),
    ("It closed at 1234.5 on 2025-03-02", CLOSE),
    ("It closed at 1234.5 on 4 March", CLOSE),
    ("It closed at 1234.5 in February", CLOSE),
    ("It closed at 1234.5, the best since 1987", CLOSE),
    ("It closed at 1234.5 at 13:37", CLOSE),
    ("E2 says 1234.5", CLOSE),
    ("**12** analysts like 1234.5", CLOSE),
    ("RSI(15) reads 58", RSI),
    ("RSI of 14 reads well", RSI),
    ("RSI 58, after 3 calm days", RSI),
    ("$58", RSI),
    ("RSI is at 55", RSI),
    ("It closed at 1234.5, above the 50-day average of 1100.25", ABOVE),
    ("It is 13.2 % above its 200-bar average", ABOVE),
    ("It is above its 200-week average", ABOVE),
    ("The return is 8.15 % over 60 bars", FELL),
    ("It rose 8.15 % over 60 bars", FELL),
    ("It fell 0.0815 % over 60 bars", FELL),
    ("It fell 8.15 % over 61 bars", FELL),
    ("54.2 million shares", VOLUME),
    ("45.2 thousand shares", VOLUME),
    ("1:3 is offered", PAYS),
    ("12 R is offered", PAYS),
    ("8 of 12 past trades came so far: 53 %", CHANCE),
    ("MACD stands at 1.25", ("macd", "=", -1.25)),
    ("MACD stands at +1.25", ("macd", "=", -1.25)),
    ("in the 58th percentile of the last 252 days", ("volatility_rank_252", ">", 0.8)),
    ("within 12 days it fell 25 %", ("max_drawdown_252", "=", -0.25)),
    ("RSI is below 50", ("rsi_14", ">", 50.0)),
    ("RSI is at seventy-two", RSI),
    ("Fifty analysts like it", CLOSE),
    ("A dozen analysts like it", CLOSE),
    ("The hit rate is ninety percent", ("signal_hit_rate", "=", 0.5)),
    ("Nine out of ten past trades came so far", CHANCE),
    ("The reward is five times the risk", PAYS),
    ("Volume ratio 20 times the mean", ("volume_ratio_20", ">", 1.0)),
    ("Volume is 120 % above its mean", ("volume_ratio_20", "=", 1.2)),
    ("The 60-week return is -8.15 %", FELL),
    ("The 2-month return is -8.15 %", FELL),
    ("A 47 % chance to get there", CHANCE),
    ("7 of 7 past trades came so far", ("hits_high_60", "=", 7.0)),
    ("The 60-bar return is 8.15 %", ("return_60", "<", 0.0)),
    ("The 60-bar return is positive", ("return_60", "<", 0.0)),
    ("The expected value is negative", ("expected_value_high_60", ">", 0.0)),
    ("Yesterday it closed at 1234.5", CLOSE),
    ("A month ago RSI was 58", RSI),
    ("The close is below the 200-day average", ABOVE),
    ("The 200-day average is above the close", ABOVE),
    ("-DI exceeds +DI", ("plus_di_14", ">", 15.0, "minus_di_14")),
    ("The stop is above the entry", ("entry_price", ">", 96.05, "stop_price")),
]


@pytest.mark.parametrize(("text", "fields"), FALSE)
def test_a_sentence_that_says_more_or_other_than_its_fields_is_unverifiable(text, fields):
    result = checked(text, *fields)
    assert result.status == "unverifiable"
    assert "the sentence" in result.detail


PAST = ("close", "=", 1200.0)
CHANGE = ("close", "change", 4.6)


@pytest.mark.parametrize(
    ("text", "fields", "when", "status"),
    [
        ("On 26 February it closed at 1200", PAST, "2025-02-26", "verified"),
        ("On Feb. 26th, 2025 at 1,200.00", PAST, "2025-02-26", "verified"),
        ("In February, at 1200; now at 1234.5", PAST, "2025-02-26", "verified"),
        ("On 2025-02-25 it closed at 1200", PAST, "2025-02-26", "unverifiable"),
        ("On 2025-03-03 it closed at 1200", PAST, "2025-02-26", "unverifiable"),
        ("In January it closed at 1200", PAST, "2025-02-26", "unverifiable"),
        ("On 2025-02-26 it closed at 1234.5", PAST, "2025-02-26", "unverifiable"),
        ("Up 4.6 % since 24 February 2025", CHANGE, "since 2025-02-24", "verified"),
        ("1180 to 1234.5 in 5 sessions: 4.6%", CHANGE, "since 2025-02-24", "verified"),
        ("Since February it rose 4.6 %, 54.5 USD", CHANGE, "since 2025-02-24", "verified"),
        ("From 24 February to 3 March: +4.6 %", CHANGE, "since 2025-02-24", "verified"),
        ("Up 4.6 % in 7 sessions", CHANGE, "since 2025-02-24", "unverifiable"),
        ("Up 4.6 % since 25 February", CHANGE, "since 2025-02-24", "unverifiable"),
        ("It fell 4.6 %", CHANGE, "since 2025-02-24", "unverifiable"),
        ("Over the last 5 sessions 4.6 %", CHANGE, "last 5", "verified"),
        ("Over the last 6 sessions 4.6 %", CHANGE, "last 5", "unverifiable"),
    ],
)
def test_dates_and_lengths_of_a_past_claim(text, fields, when, status):
    unit = "percent" if fields is CHANGE else ""
    result = checked(text, *fields, unit=unit, when=when)
    assert result.status == status, result.detail


def test_the_session_of_an_extreme_may_be_named():
    best = ("close", "highest", 1210.0)
    when = "2025-02-24..2025-02-28"
    assert checked("1210 on 2025-02-27 was the highest close", *best, when=when).status == (
        "verified"
    )
    assert checked("1210 on 2025-02-26 was the highest close", *best, when=when).status == (
        "unverifiable"
    )
    assert checked("1210 was the lowest close", *best, when=when).status == "unverifiable"


def test_a_sentence_may_round_what_is_quoted_but_not_claim_to_be_finer():
    facts = evidence(close=222.697, rsi_14=58.2451)

    def status(text: str, field: str, quoted: float) -> str:
        claim = Claim(
            text=text,
            evidence_ids=(id_of(facts, field),),
            field=field,
            operator="=",
            quoted_value=quoted,
            unit=unit_of(field),
        )
        return check_claims([claim], EvidenceIndex(facts), NoPast())[0].status

    assert status("It closed at 223", "close", 223.0) == "verified"
    assert status("It closed at 223.00", "close", 223.0) == "unverifiable"
    assert status("RSI is 58.3", "rsi_14", 58.25) == "verified"


def test_the_value_of_the_bar_before_is_not_said_of_today():
    facts = evidence(close_previous=99.5)

    def status(text: str) -> str:
        claim = Claim(
            text=text,
            evidence_ids=(id_of(facts, "close_previous"),),
            field="close_previous",
            operator="=",
            quoted_value=99.5,
            unit="USD",
        )
        return check_claims([claim], EvidenceIndex(facts), NoPast())[0].status

    assert status("The previous close was 99.5") == "verified"
    assert status("It closed at 99.5 yesterday") == "verified"
    assert status("It now trades at 99.5") == "unverifiable"


def test_a_foreign_text_explains_no_number():
    facts = tuple(
        replace(fact, kind="news", text="target 999") if fact.name == "close" else fact
        for fact in FACTS
    )
    claim = replace(checked("The 999-day view: 1234.5", *CLOSE), status="unchecked")
    checked_in_it = check_claims([claim], EvidenceIndex(facts), NoPast(), hearing=True)[0]
    assert checked_in_it.status == "unverifiable"
    assert "the sentence says 999" in checked_in_it.detail


def test_numbers_and_dates_are_read_as_they_are_written():
    def read(text: str):
        return [
            (found.readings[0][0] if found.readings else None, found.mark, found.sign)
            for found in numerals_in(plain(text))
            if not isinstance(found, WrittenDate)
        ]

    assert read("1,234.5 and 1.234,5") == [(1234.5, "", ""), (1234.5, "", "")]
    assert read("-3.2 %, +4 bps, $7, 5 R, 85th, 2x") == [
        (3.2, "%", "-"),
        (4.0, "bps", "+"),
        (7.0, "$", ""),
        (5.0, "R", ""),
        (85.0, "nth", ""),
        (2.0, "x", ""),
    ]
    assert read("1.2M, 3 thousand, 4bn") == [
        (1_200_000.0, "", ""),
        (3_000.0, "", ""),
        (4e9, "", ""),
    ]
    assert read("251.3-263.4") == [(251.3, "", ""), (263.4, "", "")]
    assert read("SMA 50 + 0.5 ATR")[1] == (0.5, "", "")
    assert read("1.2.3") == [(None, "", "")]
    assert read("1.2.3e5, 1:2e5, 1.2e5 and 1e999") == [
        (None, "", ""),
        (None, "", ""),
        (120_000.0, "", ""),
        (float("inf"), "", ""),
    ]
    found, rest = dates_in("From May 3 to 7 June 2025, in July 2024; may rise 5 %")
    assert found == [
        WrittenDate(month=5, day=3),
        WrittenDate(year=2025, month=6, day=7),
        WrittenDate(year=2024, month=7),
    ]
    assert "5 %" in rest
    assert "2025" not in rest


@given(
    st.text(alphabet=string.digits + string.ascii_letters + " .,:-/%$()*_'’–×é日٣½\n", max_size=80)
)
@settings(max_examples=600)
def test_any_text_is_read_without_an_exception_and_never_verified_by_its_numbers_alone(text):
    assert checked(text or "x", *CLOSE).status in ("verified", "unverifiable")
    assert checked(text or "x", "close", "=", 1300.0).status == "contradicted"


@given(st.floats(0.01, 99_999), st.sampled_from(["{:.2f}", "${:,.2f}", "{:,.2f} USD", "{:.2f} $"]))
@settings(max_examples=300)
def test_a_sentence_may_say_a_price_to_the_cent_and_no_other(value, form):
    facts = evidence(close=value)

    def status(said: float) -> str:
        claim = Claim(
            text=f"It closed at {form.format(said)}.",
            evidence_ids=(id_of(facts, "close"),),
            field="close",
            operator="=",
            quoted_value=value,
            unit=unit_of("close"),
        )
        return check_claims([claim], EvidenceIndex(facts), NoPast())[0].status

    assert status(value) == "verified"
    assert status(value * 1.07 + 0.03) == "unverifiable"
    assert status(value + 0.02) == "unverifiable"
