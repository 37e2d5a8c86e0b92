"""A call recorded is a call that can be repeated: the same reply, the same failure, offline."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from agents.chat.calls import ModelSpec, Outcome, asked_json, call_id, note_usage
from agents.chat.recorded_chat import Meter, RecordedChat, RecordingChat, recorded_spec
from agents.chat.store import ChatStore
from tests.agents.chat.scripted import PROMPT, SCHEMA, SPEC, Scripted, asks, usage
from trader.core.decision import ChatCall
from trader.core.errors import (
    BudgetError,
    CutReplyError,
    EndpointError,
    RecordingError,
    RefusedReplyError,
    StateError,
    TimedOutError,
)
from trader.core.ports import ChatReply, Message, Prompt, Spend

ROOT = Path(__file__).parents[3]
REPLY = ChatReply(text='{"thesis": "up", "entry_price": 100.05}', usage=usage(900, 80, cost="0.01"))


def record(store: ChatStore, *said: ChatReply | EndpointError, spec: ModelSpec = SPEC):
    return RecordingChat(Scripted(*said), spec, store)


def words(content: str) -> Prompt:
    return replace(PROMPT, messages=(Message(role="user", content=content),))


def test_a_recorded_reply_is_repeated_exactly_and_names_its_call(tmp_path):
    store = ChatStore(tmp_path / "chats.db")
    made = record(store, REPLY).complete(asks())
    store.close()
    repeated = RecordedChat(SPEC, ChatStore(tmp_path / "chats.db", read_only=True)).complete(asks())
    assert repeated == made
    assert (made.text, made.usage) == (REPLY.text, REPLY.usage)
    assert made.call is not None
    assert made.call == ChatCall(
        role="bull",
        round=0,
        model="small",
        prompt="bull 1",
        call_id=call_id(SPEC, PROMPT),
        reply_sha256=made.call.reply_sha256,
    )


@pytest.mark.parametrize(
    "kind", [EndpointError, TimedOutError, RefusedReplyError, CutReplyError, BudgetError]
)
def test_a_failure_is_repeated_with_its_class_words_and_call(kind):
    store = ChatStore(None)
    failure = kind("http://127.0.0.1:8080/v1 said “no”")
    with pytest.raises(kind) as first:
        record(store, failure).complete(asks())
    assert first.value is failure
    with pytest.raises(kind) as again:
        RecordedChat(SPEC, store).complete(asks())
    assert type(again.value) is kind
    assert str(again.value) == str(failure)
    assert again.value.call == failure.call
    assert failure.call is not None
    assert failure.call.call_id == call_id(SPEC, PROMPT)


def test_a_kind_of_failure_without_a_name_of_its_own_is_kept_as_its_parent():
    class OverheatedError(TimedOutError):
        pass

    store = ChatStore(None)
    with pytest.raises(OverheatedError):
        record(store, OverheatedError("hot")).complete(asks())
    with pytest.raises(TimedOutError, match="hot"):
        RecordedChat(SPEC, store).complete(asks())


def test_an_unknown_kind_of_outcome_is_a_state_error():
    store = ChatStore(None)
    outcome = Outcome(kind="SurpriseError", text="oh", usage=None)
    call = ChatCall(
        role="bull",
        round=0,
        model="small",
        prompt="bull 1",
        call_id=call_id(SPEC, PROMPT),
        reply_sha256=outcome.sha256,
    )
    store.record(call, outcome, asked=asked_json(SPEC, PROMPT), base_url="", subject="x")
    with pytest.raises(StateError, match="'SurpriseError', which this program does not know"):
        RecordedChat(SPEC, store).complete(asks())


def test_other_errors_pass_unrecorded():
    class Broken:
        name = "broken"

        def complete(self, request):
            raise ZeroDivisionError

    store = ChatStore(None)
    with pytest.raises(ZeroDivisionError):
        RecordingChat(Broken(), SPEC, store).complete(asks())
    assert store.outcome(call_id(SPEC, PROMPT)) is None


def test_the_newest_reply_answers_unless_another_is_chosen():
    store = ChatStore(None)
    chat = record(store, ChatReply(text="old"), ChatReply(text="new"))
    old, new = chat.complete(asks()), chat.complete(asks())
    assert RecordedChat(SPEC, store).complete(asks()) == new
    assert old.call is not None
    assert RecordedChat(SPEC, store, [old.call]).complete(asks()) == old


def test_a_run_is_answered_as_it_was_whatever_a_later_run_was_told():
    store = ChatStore(None)
    down = EndpointError("the server is down")
    chat = record(store, ChatReply(text="one"), ChatReply(text="one"), ChatReply(text="two"), down)
    first, same = (chat.complete(asks(subject=f"run{n}-AAPL")) for n in (1, 2))
    later = chat.complete(asks(subject="run3-AAPL"))
    with pytest.raises(EndpointError):
        chat.complete(asks(subject="run4-AAPL"))
    recorded = RecordedChat(SPEC, store)
    assert recorded.complete(asks(subject="run1-AAPL")) == first
    assert recorded.complete(asks(subject="run2-AAPL")) == same
    assert recorded.complete(asks(subject="run3-AAPL")) == later
    with pytest.raises(EndpointError):
        recorded.complete(asks(subject="run4-AAPL"))
    # a decision that was never recorded takes a reply, not the trouble that another one had
    assert recorded.complete(asks(subject="run5-AAPL")) == later


def test_a_call_made_twice_in_one_decision_is_answered_in_its_order():
    store = ChatStore(None)
    chat = record(store, ChatReply(text="old"), ChatReply(text="new"))
    said = [chat.complete(asks()), chat.complete(asks())]
    replayed = RecordedChat(SPEC, store, [reply.call for reply in said if reply.call])
    assert [replayed.complete(asks()), replayed.complete(asks())] == said
    assert replayed.complete(asks()) == said[-1]


def test_a_prompt_is_written_once_for_each_call():
    written = []

    def write() -> Prompt:
        written.append(1)
        return PROMPT

    store = ChatStore(None)
    inner = Scripted(REPLY)
    RecordingChat(inner, SPEC, store).complete(asks(write))
    assert inner.asked == [PROMPT]
    RecordedChat(SPEC, store).complete(asks(write))
    assert len(written) == 2


def test_a_replay_opens_no_socket(monkeypatch):
    store = ChatStore(None)
    record(store, REPLY).complete(asks())

    def refuse(*_: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    assert RecordedChat(SPEC, store).complete(asks()).text == REPLY.text


def test_neither_recording_nor_replay_imports_a_client():
    code = (
        "import agents.chat.recorded_chat, sys; "
        "assert not {'openai', 'httpx', 'httpx2', 'langgraph', 'pydantic'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_recording_and_replay_meter_the_same_spend():
    store, now, then = ChatStore(None), Meter(), Meter()
    guess = ChatReply(text="b", usage=replace(usage(10, 5, cost="0.002"), estimated=True))
    failure = TimedOutError("slow")
    note_usage(failure, usage(7, 1, cost="0.0003"))
    script = [REPLY, guess, failure, BudgetError("spent"), ChatReply(text="uncounted")]
    made = RecordingChat(Scripted(*script), SPEC, store, meter=now)
    again = RecordedChat(SPEC, store, meter=then)
    for chat in (made, again):
        for number in range(len(script)):
            try:
                chat.complete(asks(words(f"{number}")))
            except (TimedOutError, BudgetError):
                assert number in (2, 3)
    assert now.spend == then.spend
    assert now.spend == Spend(
        calls=3, input_tokens=917, output_tokens=86, estimated=1, cost=Decimal("0.0123")
    )


# what names a call


CHANGES = {
    "base_url": replace(SPEC, base_url="http://127.0.0.1:8081/v1"),
    "model": replace(SPEC, model="large"),
    "role": replace(SPEC, role="bear"),
    "api": replace(SPEC, api="responses"),
    "temperature": replace(SPEC, temperature=0.1),
    "no temperature": replace(SPEC, temperature=None),
    "seed": replace(SPEC, seed=8),
    "no seed": replace(SPEC, seed=None),
    "max_output_tokens": replace(SPEC, max_output_tokens=1_201),
}
OTHER_PROMPTS = {
    "version": replace(PROMPT, version="bull 2"),
    "schema name": replace(PROMPT, schema_name="case"),
    "schema": replace(PROMPT, schema=SCHEMA | {"required": ["thesis"]}),
    "order of properties": replace(
        PROMPT,
        schema=SCHEMA | {"properties": dict(reversed(list(SCHEMA["properties"].items())))},
    ),
    "a word": words("E1 close 100 USD."),
    "a message's role": replace(
        PROMPT, messages=(replace(PROMPT.messages[0], role="user"), PROMPT.messages[1])
    ),
    "order of messages": replace(PROMPT, messages=PROMPT.messages[::-1]),
    "one message more": replace(
        PROMPT, messages=(*PROMPT.messages, Message(role="user", content=""))
    ),
    "where one message ends": replace(
        PROMPT,
        messages=(
            Message(role="system", content="You are the bull.E1"),
            Message(role="user", content=" close 100 USD"),
        ),
    ),
}


def test_whatever_changes_a_reply_names_another_call():
    ids = [call_id(SPEC, PROMPT)]
    ids += [call_id(spec, PROMPT) for spec in CHANGES.values()]
    ids += [call_id(SPEC, prompt) for prompt in OTHER_PROMPTS.values()]
    assert len(set(ids)) == 1 + len(CHANGES) + len(OTHER_PROMPTS)


def test_what_is_not_sent_names_no_other_call():
    assert call_id(replace(SPEC, context_tokens=4_096), PROMPT) == call_id(SPEC, PROMPT)
    assert call_id(replace(SPEC, temperature=0), PROMPT) == call_id(SPEC, PROMPT)
    first = record(ChatStore(None), REPLY).complete(asks(subject="a", turn=0)).call
    later = record(ChatStore(None), REPLY).complete(asks(subject="b", turn=1)).call
    assert first is not None
    assert later is not None
    assert first.call_id == later.call_id


def test_a_call_has_the_same_name_in_every_process():
    code = (
        "from agents.chat.calls import call_id;"
        "from tests.agents.chat.scripted import PROMPT, SPEC;"
        "print(call_id(SPEC, PROMPT))"
    )
    names = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for seed in ("0", "1")
    }
    assert names == {call_id(SPEC, PROMPT)}


# what is said when a recording is missing


def missing(chat: RecordedChat, **asked: object) -> str:
    with pytest.raises(RecordingError) as caught:
        chat.complete(asks(**asked))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_recording_is_named():
    said = missing(RecordedChat(SPEC, ChatStore(None)))
    assert said.startswith(
        f"no recorded call {call_id(SPEC, PROMPT)[:12]} of the bull, round 0, model small, "
        "prompt bull 1, for run-AAPL-1: "
    )
    assert said.endswith(
        "holds none of that role and round; run it once with debate.recording: write"
    )


@pytest.mark.parametrize(
    ("spec", "prompt", "hint"),
    [
        (SPEC, OTHER_PROMPTS["version"], "recorded with prompt bull 1, this is bull 2"),
        (CHANGES["model"], PROMPT, "recorded with model small, this is large"),
        (
            CHANGES["base_url"],
            PROMPT,
            "recorded with base_url http://127.0.0.1:8080/v1, this is http://127.0.0.1:8081/v1",
        ),
        (CHANGES["no seed"], PROMPT, "recorded with seed 7, this is None"),
        (
            CHANGES["model"],
            OTHER_PROMPTS["version"],
            "recorded with prompt bull 1, this is bull 2; with model small, this is large",
        ),
        (SPEC, OTHER_PROMPTS["schema"], "recorded with another schema of the reply"),
        (SPEC, OTHER_PROMPTS["a word"], "recorded with other messages"),
    ],
)
def test_a_recording_made_otherwise_is_explained(spec, prompt, hint):
    store = ChatStore(None)
    record(store, REPLY).complete(asks())
    assert hint in missing(RecordedChat(spec, store), prompt=prompt)


def test_a_recording_of_another_decision_still_gives_a_hint():
    store = ChatStore(None)
    record(store, REPLY).complete(asks(subject="run-MSFT-1"))
    said = missing(RecordedChat(CHANGES["model"], store))
    assert "recorded for run-MSFT-1 with model small, this is large" in said


def test_a_chosen_decision_is_answered_from_its_own_calls_only():
    store = ChatStore(None)
    then = record(store, REPLY).complete(asks()).call
    record(store, REPLY).complete(asks(OTHER_PROMPTS["version"]))  # recorded later, by other words
    assert then is not None
    chat = RecordedChat(SPEC, store, [then])
    said = missing(chat, prompt=OTHER_PROMPTS["version"])
    assert "recorded with prompt bull 1, this is bull 2" in said
    assert "the record of this decision holds none" in missing(
        chat, prompt=OTHER_PROMPTS["a word"], turn=1
    )


def test_a_decision_whose_reply_another_file_holds_is_explained():
    then = record(ChatStore(None), REPLY).complete(asks()).call
    assert then is not None
    said = missing(RecordedChat(SPEC, ChatStore(None), [then]))
    assert "does not hold what was answered then" in said


# the settings of a recorded decision


def test_a_decision_is_replayed_with_the_settings_of_its_record():
    store = ChatStore(None)
    spec = replace(SPEC, model="old", temperature=None, seed=None, context_tokens=9_000)
    call = record(store, REPLY, spec=spec).complete(asks()).call
    assert call is not None
    found = recorded_spec(store, [call], "bull")
    assert found == replace(spec, context_tokens=None)
    assert RecordedChat(found, store, [call]).complete(asks()).text == REPLY.text
    assert recorded_spec(store, [call], "bear") is None
    with pytest.raises(
        RecordingError, match=r"no recorded call .* of the bull, round 0, model old"
    ):
        recorded_spec(ChatStore(None), [call], "bull")
