"""Replies: only the exact shape counts; everything else is refused, whatever it looks like."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.debate.schemas import InvalidReplyError, parse_argument, parse_rebuttal

CLAIM = {
    "text": "RSI is 58.",
    "evidence_ids": ["E1"],
    "field": "rsi_14",
    "operator": "=",
    "quoted_value": 58.0,
    "unit": "index_0_100",
}
BULL = {
    "thesis": "Buy.",
    "claims": [CLAIM],
    "entry_price": 100.0,
    "stop_price": 96.0,
    "target_price": 110.0,
}


def test_a_well_formed_reply_becomes_an_argument_with_unchecked_claims():
    argument = parse_argument(json.dumps(BULL), 0)
    assert argument.claims[0].status == "unchecked"
    rebuttal = parse_rebuttal(
        json.dumps({"weakest_claim": "RSI is 58.", "counter": "So?", "claims": []}), 0, argument
    )
    assert rebuttal.weakest_claim == "RSI is 58."


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GO",
        "null",
        "[]",
        '"GO"',
        "{",
        json.dumps(BULL)[:-1],
        json.dumps(BULL) + json.dumps(BULL),
        "```json\n" + json.dumps(BULL) + "\n```",
        json.dumps(BULL | {"verdict": "GO"}),
        json.dumps({key: value for key, value in BULL.items() if key != "stop_price"}),
        json.dumps(BULL | {"entry_price": "100"}),
        json.dumps(BULL | {"entry_price": True}),
        json.dumps(BULL | {"entry_price": 0}),
        json.dumps(BULL | {"entry_price": -1}),
        json.dumps(BULL).replace("110.0", "NaN"),
        json.dumps(BULL).replace("110.0", "Infinity"),
        json.dumps(BULL).replace("110.0", "1e999"),
        json.dumps(BULL)[:-1] + ', "thesis": "again"}',
        json.dumps(BULL | {"claims": []}),
        json.dumps(BULL | {"claims": [CLAIM] * 13}),
        json.dumps(BULL | {"claims": [CLAIM | {"operator": "~"}]}),
        json.dumps(BULL | {"claims": [CLAIM | {"evidence_ids": ["e1"]}]}),
        json.dumps(BULL | {"claims": [CLAIM | {"status": "verified"}]}),
        json.dumps(BULL | {"thesis": "x" * 70_000}),
        "[" * 5_000,
    ],
)
def test_anything_else_is_an_invalid_reply(text):
    with pytest.raises(InvalidReplyError):
        parse_argument(text, 0)


def test_the_bear_must_attack_a_claim_that_was_made():
    argument = parse_argument(json.dumps(BULL), 0)
    invented = {"weakest_claim": "RSI is 29.", "counter": "No.", "claims": []}
    with pytest.raises(InvalidReplyError, match="never made"):
        parse_rebuttal(json.dumps(invented), 0, argument)


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
@settings(deadline=None, max_examples=300)
def test_no_text_raises_anything_but_an_invalid_reply(text):
    with pytest.raises(InvalidReplyError):
        parse_argument(text, 0)


@given(st.integers(0, len(json.dumps(BULL)) - 1), st.characters())
@settings(deadline=None, max_examples=300)
def test_a_reply_with_one_character_changed_is_parsed_or_refused_and_never_crashes(at, character):
    text = json.dumps(BULL)
    with contextlib.suppress(InvalidReplyError):
        parse_argument(text[:at] + character + text[at + 1 :], 0)
