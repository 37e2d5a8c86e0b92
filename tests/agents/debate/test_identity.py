"""Identity: other issuers are noticed, and ordinary sentences of a debate never raise an alarm."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from agents.chat.bear_rules import COUNTERS, GENERAL
from agents.chat.bull_rules import CATALOGUE
from agents.debate.identity import ALIASES, other_issuers, usable
from tests.agents.facts import NOW
from trader.core.decision import Evidence
from trader.core.instruments import KNOWN, instrument_of

APPLE = instrument_of("AAPL")
UNKNOWN = instrument_of("ZZZ")


@pytest.mark.parametrize("symbol", KNOWN)
def test_every_issuer_of_the_table_is_noticed_by_name_and_by_marked_ticker(symbol):
    name = KNOWN[symbol][0]
    for text in (
        f"We prefer {name}.",
        f"{name}'s margin is better",
        f"{name}’s margin",
        f"the {name} Inc. shares",
        f"{name.upper()} RISES",
        f"buy ${symbol} now",
        f"a rival (NASDAQ: {symbol}) rises",
        f"a rival (nyse arca:{symbol}) rises",
    ):
        assert symbol in other_issuers(text, UNKNOWN), text
        assert symbol not in other_issuers(text, instrument_of(symbol)), text


@pytest.mark.parametrize("symbol", [symbol for symbol in KNOWN if "." not in symbol])
def test_a_ticker_with_the_word_shares_is_noticed_whatever_else_it_means(symbol):
    assert other_issuers(f"{symbol} shares are cheaper", UNKNOWN) == (symbol,)
    assert other_issuers(f"rather sell shares of {symbol}", UNKNOWN) == (symbol,)


@pytest.mark.parametrize(("name", "symbol"), ALIASES.items())
def test_the_names_that_people_use_are_noticed(name, symbol):
    assert symbol in other_issuers(f"unlike {name}, it pays", UNKNOWN)


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("TSLA and NVDA", ("NVDA", "TSLA")),
        ("tsla is better", ("TSLA",)),
        ("$tsla", ("TSLA",)),
        ("Te\u200bsla", ("TSLA",)),
        ("ＴＳＬＡ", ("TSLA",)),
        ("Coca Cola and Johnson and Johnson", ("JNJ", "KO")),
        ("McDonalds", ("MCD",)),
        ("BRK-B", ("BRK.B",)),
        ("it lags SPY and the Nasdaq-100", ("QQQ", "SPY")),
        ("(NYSE: XYZ)", ("XYZ",)),
        ("$XYZ", ("XYZ",)),
        ("NASDAQ: TSLA", ("TSLA",)),
        ("Apple's rival Microsoft", ("MSFT",)),
    ],
)
def test_other_issuers_are_named(text, symbols):
    assert other_issuers(text, APPLE) == symbols


@pytest.mark.parametrize(
    "text",
    [
        "Apple Inc (NASDAQ: AAPL), $AAPL, AAPL's close, APPLE",
        "The 50-day MA is above the 200-day MA; IT IS ON A HIGH.",
        "MA calls for caution, so do ADX, RSI, ATR, EMA, SMA, OBV, MACD, VWAP.",
        "IT, ON, A, C, F, T, V, MA, GE, GM, MS, GS, BA, HD, KO, DIS, COST, LOW",
        "It trades on the NYSE and on NASDAQ in USD; no ETF. GO or NO_GO, R:R of 2.",
        "listed on NASDAQ: A strong trend",
        "the cost of a coin, a pep talk, a meta-analysis, to spy on, uber-bullish",
        "a visa, an oracle, an apple, intel on the amazon, the alphabet, a nike, a chevron",
        "$5, $100K, $1.5bn, US$ 12, 3 $ a share",
        "class C shares, Class A shares, preferred stock",
        "VOLUME RATIO IS LOW AT COST OF TARGET; CLOSE ABOVE ALL.",
        "Stanford research; generally motors; home depots; bank of American rivers",
        "rule_value crosses above rule_line, macd_histogram > 0, E12, B2, R1",
        "",
    ],
)
def test_ordinary_words_terms_and_the_own_name_raise_no_alarm(text):
    assert other_issuers(text, APPLE) == ()


def test_the_rule_debaters_sentences_raise_no_alarm():
    rows = (*CATALOGUE, *GENERAL, *(row for rows in COUNTERS.values() for row in rows))
    for row in rows:
        assert other_issuers(row.text, UNKNOWN) == (), row.text


def test_two_shares_of_one_issuer_are_the_same():
    assert other_issuers("Alphabet, Google, GOOG and $GOOGL", instrument_of("GOOGL")) == ()
    assert other_issuers("Alphabet, GOOGL", instrument_of("GOOG")) == ()


def test_an_index_fund_is_an_issuer_unless_it_is_the_instrument():
    assert other_issuers("SPY, the S&P 500", instrument_of("SPY")) == ()
    assert other_issuers("SPY, the S&P 500", APPLE) == ("SPY",)


FACT = Evidence(
    evidence_id="E90",
    symbol="AAPL",
    kind="news",
    name="news_1",
    value=None,
    unit="text",
    as_of=NOW,
    known_at=NOW - timedelta(hours=1),
    source="wire",
    text="Apple sold more phones.",
)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"text": "Sales rose."}, ""),
        ({"text": "Apple leaves Microsoft behind."}, ""),
        ({"text": "", "value": 3.0}, ""),
        ({"symbol": "MSFT"}, "MSFT"),
        ({"text": "Tesla and Microsoft rise."}, "MSFT, TSLA only"),
        ({"known_at": NOW + timedelta(seconds=1)}, "not known"),
        ({"text": " \u200b\n"}, "empty"),
    ],
)
def test_a_text_about_somebody_else_or_from_the_future_is_withheld(changes, reason):
    said = usable(replace(FACT, **changes), APPLE)
    assert (reason in said) if reason else said == ""


def test_a_text_about_an_instrument_that_the_table_does_not_know_may_be_read():
    fact = replace(FACT, symbol="ZZZ", text="ZZZ beats Tesla.")
    assert usable(fact, UNKNOWN) == ""
    assert usable(replace(fact, text="Tesla rises."), UNKNOWN) != ""
