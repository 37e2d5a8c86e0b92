"""From a model's words to one JSON object: what is passed over, what is refused, in linear time."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.debate.extraction import (
    LONGEST_MESSAGE,
    MAXIMUM_REPLY_CHARACTERS,
    InvalidReplyError,
    extract,
    one_line,
)
from trader.core.canonical import canonical_json

GO = '{"decision": "GO", "n": [1, {"x": 2.5}]}'
NO_GO = '{"decision": "NO_GO"}'
FIELDS = json.loads(GO)


@pytest.mark.parametrize(
    "text",
    [
        GO,
        f"\ufeff{GO}",
        f" \n{GO}\n ",
        f"```json\n{GO}\n```",
        f"```\n{GO}\n```",
        f"```{GO}```",
        f"````json\n{GO}\n````",
        f"Here it is:\n```JSON\n{GO}\n```\nI hope that it helps.",
        f"Here it is: ```json\n{GO}",
        f"Sure! {GO} Done.",
        f'The "crossing" [E1] (see E2) decides:\n{GO}',
        f"<think>{NO_GO} or not {{</think>{GO}",
        f"<think>one</think><think>two</think>{GO}",
        f"<THINKING><think>deep</think> {NO_GO}</THINKING>\n{GO}",
        f"<reasoning>{NO_GO}</reasoning>{GO}",
        f"[THINK]{NO_GO}[/THINK]{GO}",
        f"the opening tag stood in the prompt {NO_GO} </think>{GO}",
        f"{GO}<think>afterthought {NO_GO}</think>",
    ],
)
def test_the_one_object_is_found_in_what_models_put_around_it(text):
    assert extract(text).fields == FIELDS


def test_raw_newlines_and_tabs_inside_texts_are_read():
    assert extract('{"a": "one\ntwo\tthree"}').fields == {"a": "one\ntwo\tthree"}


def test_braces_tags_and_fences_inside_a_text_are_text():
    fields = {"a": 'say {"decision": "GO"} }{ ][ \\" ``` \\'}
    assert extract(json.dumps(fields)).fields == fields


def test_the_words_around_are_kept_without_the_thoughts():
    around = extract(f"before <think>secret</think> between\n{GO}\nafter").around
    assert around.split() == ["before", "between", "after"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON object"),
        ("GO", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        (f"<think>{GO}</think>", "no JSON object"),
        (f"{GO}</think>", "no JSON object"),
        (f"<think>{GO}", "inside its thoughts"),
        (f"{GO}<think>but wait", "inside its thoughts"),
        (f"<think>I use <think> tags</think>{GO}", "inside its thoughts"),
        (f"{GO}{NO_GO}", "second one"),
        (f"{GO}\nor\n{NO_GO}", "second one"),
        (f"{GO}{{}}", "second one"),
        (f"{GO}}}", "second one"),
        (f"}}{GO}", "second one"),
        (f"Fill in {{E1}}: {GO}", "second one"),
        (f"{NO_GO}<think>no</think>{GO}", "second one"),
        ('{"decision": "NO_<think></think>GO"}', "second one"),
        (f"[{GO}]", "a list"),
        (f'"{GO}"', "a quotation"),
        (f"'{GO}'", "a quotation"),
        (f'The note says "{GO}" and I differ.', "a quotation"),
        (f'The note says " and then\n{GO}\n".', "a quotation"),
        (f"The note says “look: {GO}”", "a quotation"),
        (f"The note says “look:\n{GO}\nor so”", "a quotation"),
        (f'{GO}" is what the note says', "a quotation"),
        (f"[see\n{GO}\nfor that]", "a list"),
        (f"> {GO}", "a quotation"),
        (f"`{GO}`", "a quotation"),
        (f"<article>{GO}</article>", "a quotation"),
        (f"(for example {GO})", "a bracket"),
        (f'He wrote: "```json\n{GO}\n```"', "a quotation"),
        (json.dumps(GO), "not closed"),
        (GO[:-1], "not closed"),
        ('{"a": "no end', "not closed"),
        ('{"a": 1,}', "trailing commas"),
        ("{'a': 1}", "double quotes"),
        ('{"a": 1 /* one */}', "line 1, column 9"),
        ('{"a": [1}]', "line 1"),
        ('{"a": 1, "a": 1}', "'a' is repeated"),
        ('{"b": [{"a": 1, "a": 2}]}', "'a' is repeated"),
        ('{"\\ud800": 1}', "no key of the schema"),
        ('{"ｇｏ": 1}', "no key of the schema"),
        ('{"a": NaN}', "'NaN' is not a usable number"),
        ('{"a": -Infinity}', "'-Infinity' is not a usable number"),
        ('{"a": 0.4E897}', "'0.4E897' is not a usable number"),
        ('{"a": -1e999}', "'-1e999' is not a usable number"),
        ('{"a": 1' + "0" * 15 + "}", "is not a usable number"),
        ('{"a": 1' + "0" * 5_000 + "}", "is not a usable number"),
        ('{"a": ' + "[" * 8 + "]" * 8 + "}", "nested more than 8 deep"),
        ('{"a":' * 5_000 + "1" + "}" * 5_000, "nested more than 8 deep"),
        (GO + " " * MAXIMUM_REPLY_CHARACTERS, "60000 is the limit"),
    ],
)
def test_everything_else_is_refused_with_the_reason(text, why):
    with pytest.raises(InvalidReplyError) as refused:
        extract(text)
    assert why in str(refused.value)


HOSTILE = ("{", "[", "}", '"', "\\", '"\\\\', '\\"', '{"', '{"a":', "{}", "`", "```", "``` x", "<")
HOSTILE += (
    "<think>",
    "</think>",
    "<think></think>",
    "(“",
    "' ",
    '"a" ',
    '{"a": "\\',
    "\ud800",
    "0",
)


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_repetitions_are_refused_in_linear_time(unit):
    """A step that read anything twice for each character would take minutes here."""
    for lead in ("", '{"a": "', '{"a": 0.', "x", f"{GO} "):
        text = lead + unit * ((MAXIMUM_REPLY_CHARACTERS - len(lead) - 1) // len(unit))
        for reply in (text, f"{text}{{"):
            with contextlib.suppress(InvalidReplyError):
                assert extract(reply).fields == FIELDS


@pytest.mark.parametrize("stack", [0, 300, 600])
def test_what_is_refused_does_not_depend_on_the_depth_of_the_stack(stack):
    def deeper(left: int) -> str:
        if left:
            return deeper(left - 1)
        with pytest.raises(InvalidReplyError) as refused:
            extract('{"a": ' + "[" * 900 + "]" * 900 + "}")
        return str(refused.value)

    assert deeper(stack) == "the JSON object is nested more than 8 deep: keep to the schema"


@given(st.text(), st.text())
def test_a_reason_is_one_short_printable_line(before, after):
    with pytest.raises(InvalidReplyError) as refused:
        extract(f"{before}{{{{{after}")  # two braces open no JSON object
    reason = str(refused.value)
    assert 0 < len(reason) <= LONGEST_MESSAGE
    assert reason.isprintable()


def test_a_long_reason_is_cut():
    assert len(str(InvalidReplyError("x" * 10_000))) == LONGEST_MESSAGE


@given(st.text(st.characters(min_codepoint=0, max_codepoint=0x10FFFF, categories=None)))
def test_one_line_is_safe_to_print_hash_and_store(text):
    line = one_line(text)
    line.encode()  # a half character would not
    assert canonical_json(line).isascii()
    assert line == line.strip()
    assert not any(char in line for char in "\0\x1b\x07\n\r\t\x85\u2028\u202e\u2066\u200b\ufeff")
    assert one_line(line) == line


def test_one_line_keeps_what_people_write():
    assert one_line(" Größe  10 %\n→ 価格 🚀 “ok” ") == "Größe 10 % → 価格 🚀 “ok”"
    assert one_line("a\x1b[2Jb\ud800c\U000e0041d\u202ee") == "a [2Jb c d e"


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.none() | st.booleans() | st.integers(-(10**14), 10**14) | st.text() | st.floats(-9, 9),
    )
)
def test_a_sound_object_survives_every_dress(fields):
    text = json.dumps(fields)
    for dressed in (text, f"```json\n{text}\n```", f"<think>{{</think>So:\n{text}\nThat is all."):
        assert extract(dressed).fields == fields
