"""Replies: only the exact shape counts; everything else is refused, whatever it looks like."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.debate.schemas import (
    SCHEMA_NAMES,
    InvalidReplyError,
    parse_argument,
    parse_rebuttal,
    parse_weighing,
    schema_of,
)
from tests.agents.debate.hostile import DECISIONS
from trader.core.canonical import canonical_json
from trader.core.decision import Argument, Decision, Operator, Role

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
BEAR = {"weakest_claim": "RSI is 58.", "counter": "So?", "claims": []}
WEIGHING = {"decision": "GO", "confidence": 0.7, "decisive": ["B1", "R1"], "rationale": "Enough."}


def argument(*texts: str, turn: int = 0) -> Argument:
    claims = [CLAIM | {"text": text} for text in texts]
    return parse_argument(json.dumps(BULL | {"claims": claims}), turn)


def checked(status: str):
    return replace(argument("RSI is 58.").claims[0], status=status)


CLAIMS = {
    "B1": checked("verified"),
    "B2": checked("contradicted"),
    "B3": checked("unverifiable"),
    "R1": checked("verified"),
}


def why(parse, *arguments) -> str:
    """The message with which a reply is refused."""
    with pytest.raises(InvalidReplyError) as refused:
        parse(*arguments)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) <= 300
    return str(refused.value)


def test_a_well_formed_reply_becomes_an_argument_with_unchecked_claims():
    said = argument("RSI is 58.", turn=2)
    assert (said.stance, said.round, said.thesis) == ("bull", 2, "Buy.")
    assert (said.entry_price, said.stop_price, said.target_price) == (100.0, 96.0, 110.0)
    assert said.claims[0].status == "unchecked"
    assert (said.claims[0].upper_value, said.claims[0].when) == (None, None)
    rebuttal = parse_rebuttal(json.dumps(BEAR), 0, [said])
    assert (rebuttal.stance, rebuttal.weakest_claim) == ("bear", "RSI is 58.")


def test_a_claim_about_the_past_carries_its_period_and_its_range():
    past = CLAIM | {"operator": "between", "upper_value": 60, "when": "2026-01-02..2026-03-02"}
    claim = parse_argument(json.dumps(BULL | {"claims": [past]}), 0).claims[0]
    assert (claim.upper_value, claim.when) == (60.0, "2026-01-02..2026-03-02")
    absent = CLAIM | {"upper_value": None, "when": None}
    claim = parse_argument(json.dumps(BULL | {"claims": [absent]}), 0).claims[0]
    assert (claim.upper_value, claim.when) == (None, None)


@pytest.mark.parametrize("operator", get_args(Operator))
def test_every_operator_may_be_used(operator):
    reply = BULL | {"claims": [CLAIM | {"operator": operator}]}
    assert parse_argument(json.dumps(reply), 0).claims[0].operator == operator


def without(fields, key):
    return {name: value for name, value in fields.items() if name != key}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON object"),
        ("GO", "no JSON object"),
        ("null", "no JSON object"),
        ("[]", "no JSON object"),
        ('"GO"', "no JSON object"),
        ("{", "not closed"),
        (json.dumps(BULL)[:-1], "not closed"),
        (json.dumps(BULL) + json.dumps(BULL), "second one"),
        (json.dumps(BULL | {"verdict": "GO"}), "verdict is no key of the schema: leave it out"),
        (json.dumps(BULL | {"x" * 500: 1}), "is no key of the schema: leave it out, got 1"),
        (json.dumps(without(BULL, "stop_price")), "stop_price is missing"),
        (json.dumps(BULL | {"entry_price": "100"}), "entry_price must be a number, without quotes"),
        (json.dumps(BULL | {"entry_price": True}), "entry_price must be a number"),
        (json.dumps(BULL | {"entry_price": None}), "entry_price must be a number"),
        (json.dumps(BULL | {"entry_price": 0}), "entry_price should be greater than 0, got 0"),
        (json.dumps(BULL | {"entry_price": -1}), "entry_price should be greater than 0"),
        (json.dumps(BULL | {"entry_price": 1e9}), "entry_price should be less than"),
        (json.dumps(BULL).replace("110.0", "NaN"), "'NaN' is not a usable number"),
        (json.dumps(BULL).replace("110.0", "Infinity"), "not a usable number"),
        (json.dumps(BULL).replace("110.0", "1e999"), "not a usable number"),
        (json.dumps(BULL).replace("110.0", "1" * 5_000), "not a usable number"),
        (json.dumps(BULL)[:-1] + ', "thesis": "again"}', "'thesis' is repeated"),
        (json.dumps(BULL | {"claims": []}), "claims List should have at least 1 item"),
        (json.dumps(BULL | {"claims": [CLAIM] * 13}), "claims List should have at most 12 items"),
        (json.dumps(BULL | {"claims": CLAIM}), "claims must be a list"),
        (json.dumps(BULL | {"claims": ["RSI"]}), "claims[0] "),
        (json.dumps(BULL | {"thesis": "x" * 2_001}), "thesis String should have at most 2000"),
        (json.dumps(BULL | {"thesis": " \u200b\n"}), "thesis String should have at least 1"),
        (json.dumps(BULL | {"thesis": "x" * 70_000}), "60000 is the limit"),
        ("[" * 5_000, "no JSON object"),
    ],
)
def test_anything_else_is_an_invalid_reply_that_names_the_place(text, reason):
    assert reason in why(parse_argument, text, 0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"operator": "~"}, "claims[0].operator should be '=', '<'"),
        ({"operator": "=="}, "claims[0].operator"),
        ({"evidence_ids": ["e1"]}, "claims[0].evidence_ids[0]"),
        ({"evidence_ids": ["E01"]}, "claims[0].evidence_ids[0]"),
        ({"evidence_ids": ["E1\n"]}, "claims[0].evidence_ids[0]"),
        ({"evidence_ids": [1]}, "claims[0].evidence_ids[0] must be a text in quotes, got 1"),
        ({"evidence_ids": []}, "claims[0].evidence_ids"),
        ({"evidence_ids": ["E1"] * 5}, "claims[0].evidence_ids"),
        ({"status": "verified"}, "claims[0].status is no key of the schema"),
        ({"quoted_value": "58"}, "claims[0].quoted_value must be a number"),
        ({"quoted_value": 1e300}, "claims[0].quoted_value should be less than"),
        ({"upper_value": "60"}, "claims[0].upper_value must be a number"),
        ({"when": ""}, "claims[0].when must be visible characters on one line; null"),
        ({"when": "x" * 41}, "claims[0].when String should have at most 40"),
        ({"when": "last\x0020"}, "claims[0].when must be visible"),
        ({"when": 20}, "claims[0].when must be a text in quotes, got 20"),
        ({"field": "close\u202e"}, "claims[0].field must be visible"),
        ({"field": "\ud800"}, "claims[0].field holds half a character"),
        ({"field": "x" * 81}, "claims[0].field String should have at most 80"),
        ({"unit": "USD\n"}, "claims[0].unit must be visible"),
        ({"unit": "x" * 41}, "claims[0].unit String should have at most 40"),
    ],
)
def test_a_claim_that_is_not_typed_is_refused_with_its_place(change, reason):
    text = json.dumps(BULL | {"claims": [CLAIM | change]})
    assert reason in why(parse_argument, text, 0)


def test_a_reason_names_several_mistakes_so_that_one_repair_can_do():
    text = json.dumps({"thesis": 1, "claims": [without(CLAIM, "unit")], "entry_price": "1"})
    reason = why(parse_argument, text, 0)
    assert "thesis must be a text" in reason
    assert "claims[0].unit is missing" in reason
    assert "entry_price must be a number" in reason
    assert reason.endswith("; 2 more")


def test_free_texts_are_cleaned_to_one_safe_line():
    hostile = "Buy\x1b[2J\x00 now\n\n\ud800\u202e\tor <b>never</b>"
    said = parse_argument(json.dumps(BULL | {"thesis": hostile}), 0)
    assert said.thesis == "Buy [2J now or <b>never</b>"
    assert canonical_json(said).isascii()


# ── the bear ─────────────────────────────────────────────────────────────────────────────────────


def test_the_bear_names_a_claim_by_its_number_or_by_its_words():
    said = [argument("one", "two"), argument("three", "four", turn=1)]
    by_number = parse_rebuttal(json.dumps(BEAR | {"weakest_claim": "B4"}), 1, said)
    by_words = parse_rebuttal(json.dumps(BEAR | {"weakest_claim": "four"}), 1, said)
    assert by_number == by_words
    assert by_number.weakest_claim == "four"
    first = parse_rebuttal(json.dumps(BEAR | {"weakest_claim": " B1\n"}), 0, said[:1])
    assert first.weakest_claim == "one"


@pytest.mark.parametrize(
    "weakest",
    ["RSI is 29.", "B1", "B2", "one", "B5", "B0", "B03", "b3", "R3", "B3: three", "Three"],
)
def test_the_bear_must_attack_a_claim_of_the_last_argument(weakest):
    said = [argument("one", "two"), argument("three", "four", turn=1)]
    reason = why(parse_rebuttal, json.dumps(BEAR | {"weakest_claim": weakest}), 1, said)
    assert "a claim of the bull's last argument, its number alone (B3, B4)" in reason
    assert repr(weakest) in reason


def test_the_bulls_words_are_found_again_after_cleaning():
    said = argument("RSI\x00 is\n58.")
    words = said.claims[0].text
    assert words == "RSI is 58."
    assert parse_rebuttal(json.dumps(BEAR), 0, [said]).weakest_claim == words


# ── the arbitrator ───────────────────────────────────────────────────────────────────────────────


def test_a_weighing_rests_on_verified_claims():
    weighing = parse_weighing(json.dumps(WEIGHING), CLAIMS)
    assert weighing.decision is Decision.GO
    assert (weighing.confidence, weighing.decisive) == (0.7, ("B1", "R1"))
    assert weighing.rationale == "Enough."
    refusal = WEIGHING | {"decision": "NO_GO", "decisive": [], "confidence": 1}
    assert parse_weighing(json.dumps(refusal), CLAIMS).decisive == ()
    twice = WEIGHING | {"decisive": ["R1", "B1", "R1"]}
    assert parse_weighing(json.dumps(twice), CLAIMS).decisive == ("R1", "B1")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        *(({"decision": word}, "decision should be 'GO' or 'NO_GO'") for word in DECISIONS),
        *(({"decision": word}, "decision should be 'GO' or 'NO_GO'") for word in (None, 1, True)),
        ({"decision": "**GO**"}, "got '**GO**'"),
        ({"decision": ["GO"]}, "decision"),
        ({"confidence": "high"}, "confidence must be a number, without quotes or unit, got 'high'"),
        ({"confidence": "85%"}, "confidence must be a number"),
        ({"confidence": True}, "confidence must be a number"),
        ({"confidence": None}, "confidence must be a number"),
        ({"confidence": 85}, "confidence should be less than or equal to 1, got 85"),
        ({"confidence": 1.7}, "confidence should be less than or equal to 1"),
        ({"confidence": -497}, "confidence should be greater than or equal to 0"),
        ({"confidence": float("nan")}, "'NaN' is not a usable number"),
        ({"decisive": []}, "a GO names at least one verified claim"),
        ({"decisive": "B1"}, "decisive must be a list"),
        ({"decisive": ["B9"]}, "there is no claim B9"),
        ({"decisive": ["B1", "B2"]}, "claim B2 is contradicted"),
        ({"decisive": ["B3"]}, "claim B3 is unverifiable"),
        ({"decisive": ["E1"]}, "decisive[0]"),
        ({"decisive": ["b1"]}, "decisive[0]"),
        ({"decisive": ["B1\n"]}, "decisive[0]"),
        ({"rationale": ""}, "rationale"),
        ({"quantity": 100}, "quantity is no key of the schema"),
        ({"stop_price": 1.0}, "stop_price is no key of the schema"),
    ],
)
def test_any_other_weighing_is_an_invalid_reply(change, reason):
    assert reason in why(parse_weighing, json.dumps(WEIGHING | change), CLAIMS)


@pytest.mark.parametrize(
    "around",
    ["NO_GO", "Verdict: **NO-GO**", "On reflection: no go.", "NO\\_GO", "No_Go!", "no\ngo"],
)
def test_a_go_beside_which_the_reply_says_no_go_is_none(around):
    for text in (f"{around}\n{json.dumps(WEIGHING)}", f"{json.dumps(WEIGHING)}\n{around}"):
        assert "say NO_GO" in why(parse_weighing, text, CLAIMS)
    no_go = json.dumps(WEIGHING | {"decision": "NO_GO"})
    assert parse_weighing(f"{around}\n{no_go}", CLAIMS).decision is Decision.NO_GO
    thought = f"<think>{around}</think>{json.dumps(WEIGHING)}"
    assert parse_weighing(thought, CLAIMS).decision is Decision.GO


@pytest.mark.parametrize("words", ["There is no good reason against it.", "Now go on:"])
def test_words_that_only_resemble_a_no_go_do_not_count(words):
    assert parse_weighing(f"{words}\n{json.dumps(WEIGHING)}", CLAIMS).decision is Decision.GO


# ── hostile texts ────────────────────────────────────────────────────────────────────────────────


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
@settings(max_examples=150)
def test_no_text_raises_anything_but_an_invalid_reply(text):
    for parse, against in (
        (parse_argument, (0,)),
        (parse_rebuttal, (0, [argument("one")])),
        (parse_weighing, (CLAIMS,)),
    ):
        with pytest.raises(InvalidReplyError):
            parse(text, *against)


@given(st.integers(0, len(json.dumps(BULL)) - 1), st.characters(categories=None))
@settings(max_examples=300)
def test_a_reply_with_one_character_changed_is_parsed_or_refused_and_never_crashes(at, character):
    text = json.dumps(BULL)
    with contextlib.suppress(InvalidReplyError):
        canonical_json(parse_argument(text[:at] + character + text[at + 1 :], 0))


# ── the schemas that servers are sent ────────────────────────────────────────────────────────────

ROLES = get_args(Role)


def assert_strict(schema) -> None:
    """The subset that every server takes."""
    assert set(schema) <= {
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
    }
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    assert set(kinds) <= {"object", "array", "string", "number", "null"}
    if "object" in kinds:
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
        for inner in schema["properties"].values():
            assert_strict(inner)
    if "array" in kinds:
        assert_strict(schema["items"])


@pytest.mark.parametrize("role", ROLES)
def test_a_schema_keeps_to_the_strict_subset(role):
    assert_strict(schema_of(role))
    assert json.loads(json.dumps(schema_of(role))) == schema_of(role)
    assert SCHEMA_NAMES[role].isalpha()
    assert len(json.dumps(schema_of(role))) < 1_100  # it is sent with every call


def test_the_schemas_name_the_fields_of_the_records():
    claim = schema_of("bull")["properties"]["claims"]["items"]
    assert claim == schema_of("bear")["properties"]["claims"]["items"]
    assert claim["properties"]["operator"]["enum"] == list(get_args(Operator))
    assert claim["properties"]["upper_value"] == {"type": ["number", "null"]}
    assert claim["properties"]["when"] == {"type": ["string", "null"]}
    assert schema_of("arbitrator")["properties"]["decision"]["enum"] == ["GO", "NO_GO"]


def instances(schema, name=""):
    """What the schema permits, within the bounds that only the parser knows."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    found = st.none() if "null" in kinds else st.nothing()
    if "enum" in schema:
        return found | st.sampled_from(schema["enum"])
    if "object" in kinds:
        fields = {key: instances(inner, key) for key, inner in schema["properties"].items()}
        return found | st.fixed_dictionaries(fields)
    if "array" in kinds:
        most = {"evidence_ids": 4, "decisive": 3}.get(name, 12)
        return found | st.lists(instances(schema["items"], name), min_size=1, max_size=most)
    if "number" in kinds:
        return found | st.floats(0.0, 1.0, exclude_min=True, allow_subnormal=False)
    exact = {
        "evidence_ids": st.integers(1, 9_999).map(lambda number: f"E{number}"),
        "decisive": st.sampled_from(["B1", "R1"]),
        "weakest_claim": st.just("B1"),
    }
    visible = st.characters(codec="ascii", categories=("L", "N", "P", "S"))
    return found | exact.get(name, st.text(visible, min_size=1, max_size=40))


@pytest.mark.parametrize("role", ROLES)
@given(data=st.data())
@settings(max_examples=60)
def test_what_a_schema_permits_parses_once_the_bounds_hold(role, data):
    text = json.dumps(data.draw(instances(schema_of(role))))
    if role == "bull":
        assert parse_argument(text, 0).claims
    elif role == "bear":
        assert parse_rebuttal(text, 0, [argument("one")]).weakest_claim == "one"
    else:
        assert parse_weighing(text, CLAIMS).decisive
