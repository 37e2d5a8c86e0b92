"""The chat adapter against a server that misbehaves: a reply, or one plain line that says why."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import replace
from decimal import Decimal

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.chat.asking import most_prompt_tokens
from agents.chat.calls import usage_of
from agents.chat.capability import Capabilities, Step
from agents.chat.openai_chat import Wire, models_listed
from tests.agents.chat.asked import KEY, PROMPT, Sleeper, chat, request
from tests.servers.chat_server import OK, WAYS, ChatServer, behaviour
from trader.core.clock import monotonic_seconds
from trader.core.errors import (
    CutReplyError,
    EndpointError,
    RefusedReplyError,
    TimedOutError,
)
from trader.core.ports import Message, Usage

REPLIES = {
    "ok": OK,
    "parts": OK,
    "odd type": OK,
    "fence": f"```json\n{OK}\n```",
    "think": f"<think>hm</think>{OK}",
    "words": "I would rather not say.",
    "half a character": '{"ok": "?"}',
    "no usage": OK,
    "odd usage": OK,
    "negative usage": OK,
    "usage in words": OK,
    "echoing the key": '{"ok": "Bearer [key]"}',
}
FAILURES: dict[str, tuple[type[EndpointError], str]] = {
    "empty": (EndpointError, "the reply is empty"),
    "null": (EndpointError, "the reply is empty"),
    "refusal": (RefusedReplyError, "declined to answer: I cannot help with that"),
    "cut": (CutReplyError, "raise models.max_output_tokens"),
    "filtered": (RefusedReplyError, "content filter"),
    "tool": (EndpointError, "asked for a tool"),
    "no choices": (EndpointError, "holds no reply"),
    "odd choices": (EndpointError, "holds no reply"),
    "no message": (EndpointError, "holds no message"),
    "error inside": (EndpointError, "holds no reply: upstream failed"),
    "cut prompt": (EndpointError, "the server cut the prompt: it read 3 tokens of at least"),
    "html": (EndpointError, "text/html that is not an OpenAI-compatible answer"),
    "not json": (EndpointError, "not an OpenAI-compatible answer"),
    "a list": (EndpointError, "not an OpenAI-compatible answer"),
    "deep": (EndpointError, "not an OpenAI-compatible answer"),
    "not utf-8": (EndpointError, "not an OpenAI-compatible answer"),
    "packed": (EndpointError, "a packed body although none was asked for"),
    "redirect": (EndpointError, "redirects to http://localhost:1/v1/chat/completions, and"),
    "busy": (EndpointError, "answered 429: slow down"),
    "busy 2 s": (EndpointError, "answered 429: slow down"),
    "busy for an hour": (EndpointError, "answered 429: slow down"),
    "quota": (EndpointError, "the quota is used up"),
    "unpaid": (EndpointError, "the quota is used up"),
    "outage": (EndpointError, "answered 500: Internal Server Error"),
    "outage html": (EndpointError, "answered 500: an HTML page"),
    "bad gateway": (EndpointError, "answered 502: an HTML page"),
    "overloaded": (EndpointError, "answered 503: overloaded"),
    "forbidden": (EndpointError, "answered 403: your country is not supported; the key in"),
    "unknown model": (EndpointError, "correct models.model: `trader doctor` lists"),
    "unknown ollama model": (EndpointError, "correct models.model: `trader doctor` lists"),
    "no such page": (EndpointError, "there are no chat completions, is models.base_url right?"),
    "context": (EndpointError, "serve the model with a larger context window"),
    "max_tokens too large": (EndpointError, "supports at most 16384 tokens"),
    "bad request": (EndpointError, "answered 400: no"),
    "filtered prompt": (RefusedReplyError, "content filter"),
    "endless": (EndpointError, "more than 4,000,000 bytes"),
    "hanging up": (EndpointError, "is the server running"),
    "cut off": (EndpointError, "is the server running"),
}
NEVER_ENDING = ("hanging", "hanging inside", "dripping", "dripping headers")


def test_every_way_of_the_server_is_expected_here():
    assert {*REPLIES, *FAILURES, *NEVER_ENDING} == set(WAYS)


@pytest.mark.parametrize("way", sorted(REPLIES))
def test_a_reply_comes_through_as_text(way):
    with ChatServer(behaviour(way)) as server:
        reply = chat(server.base_url).complete(request())
    assert reply.text == REPLIES[way]
    assert reply.usage is not None


@pytest.mark.parametrize("way", sorted(FAILURES))
def test_a_failure_is_one_plain_line_that_names_endpoint_and_model(way, caplog):
    caplog.set_level(logging.DEBUG)
    kind, words = FAILURES[way]
    with ChatServer(behaviour(way)) as server, pytest.raises(EndpointError) as caught:
        chat(server.base_url).complete(request())
    line = str(caught.value)
    assert isinstance(caught.value, kind)
    assert type(caught.value) in (kind, *kind.__subclasses__())
    assert line.startswith(f"{server.base_url}, model test-model: ")
    assert words in line
    assert line.isprintable()
    assert len(line) < 600
    assert KEY not in line + caplog.text + repr(caught.value)


@pytest.mark.parametrize("way", NEVER_ENDING)
def test_a_server_without_an_end_is_ended_at_the_deadline(way):
    with ChatServer(behaviour(way)) as server:
        with pytest.raises(TimedOutError, match=r"raise models\.call_seconds"):
            chat(server.base_url, seconds=0.2, retries=5).complete(request())
        assert len(server.requests) == 1
        assert not server.closing.is_set()


def test_the_deadline_holds_in_other_threads_too():
    caught: list[EndpointError] = []

    def ask(base_url: str) -> None:
        try:
            chat(base_url, seconds=0.2).complete(request())
        except EndpointError as exc:
            caught.append(exc)

    with ChatServer(behaviour("dripping")) as server:
        threads = [threading.Thread(target=ask, args=(server.base_url,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [type(exc) for exc in caught] == [TimedOutError] * 3


def test_the_debates_deadline_shortens_the_calls():
    with ChatServer(behaviour("hanging")) as server, pytest.raises(TimedOutError):
        chat(server.base_url).complete(request(deadline=monotonic_seconds() + 0.2))
    with ChatServer(behaviour("ok")) as server:
        with pytest.raises(TimedOutError, match="no time is left"):
            chat(server.base_url).complete(request(deadline=monotonic_seconds() - 1))
        assert server.requests == []


def test_nobody_listens():
    with ChatServer(behaviour("ok")) as server:
        base_url = server.base_url
    with pytest.raises(
        EndpointError, match=r"cannot be reached .* is the server running"
    ) as caught:
        chat(base_url).complete(request())
    assert base_url in str(caught.value)


@pytest.mark.parametrize("host", ["a..b", "a b", "a" * 70])
def test_a_host_that_cannot_be_is_an_endpoint_error(host):
    with pytest.raises(EndpointError):
        chat(f"http://{host}/v1").complete(request())


def test_usage_is_the_servers_count_or_marked_as_estimated():
    odd = ["no usage", "odd usage", "negative usage", "usage in words"]
    with ChatServer(behaviour("ok", *odd)) as server:
        asked = chat(server.base_url)
        counted, *guessed = [asked.complete(request()).usage for _ in range(5)]
    assert not counted.estimated
    assert counted.output_tokens == 4
    most = most_prompt_tokens(PROMPT, Step.JSON_SCHEMA)
    estimate = Usage(input_tokens=most, output_tokens=6, estimated=True, cost=Decimal(0))
    assert guessed == [estimate] * 4  # 12 bytes of reply / 2.2
    assert most > counted.input_tokens


def test_a_failed_call_tells_what_it_used():
    for way in ("cut", "refusal", "empty", "cut prompt"):
        with ChatServer(behaviour(way)) as server, pytest.raises(EndpointError) as caught:
            chat(server.base_url).complete(request())
        used = usage_of(caught.value)
        assert used is not None
        assert used.input_tokens > 0
    with ChatServer(behaviour("html")) as server, pytest.raises(EndpointError) as caught:
        chat(server.base_url).complete(request())
    assert usage_of(caught.value) is None


# retries have one owner


@pytest.mark.parametrize("way", ["busy", "overloaded", "bad gateway", "hanging up", "cut off"])
def test_trouble_that_may_pass_is_tried_again_with_longer_waits(way):
    sleeper = Sleeper()
    with ChatServer(behaviour(way, way, "ok")) as server:
        reply = chat(server.base_url, retries=2, sleeper=sleeper).complete(request())
        assert len(server.requests) == 3
    assert reply.text == OK
    assert sleeper.waits == [0.5, 1.0]


@pytest.mark.parametrize("way", ["busy", "overloaded", "cut off"])
def test_retries_end(way):
    sleeper = Sleeper()
    with ChatServer(behaviour(way)) as server, pytest.raises(EndpointError):
        chat(server.base_url, retries=2, sleeper=sleeper).complete(request())
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "way",
    ["quota", "unpaid", "forbidden", "unknown model", "context", "html", "cut", "refusal", "empty"],
)
def test_what_does_not_pass_is_asked_once(way):
    sleeper = Sleeper()
    with ChatServer(behaviour(way)) as server, pytest.raises(EndpointError):
        chat(server.base_url, retries=2, sleeper=sleeper).complete(request())
    assert len(server.requests) == 1
    assert sleeper.waits == []


def test_retry_after_is_honoured_within_the_deadline():
    sleeper = Sleeper()
    with ChatServer(behaviour("busy 2 s", "ok")) as server:
        chat(server.base_url, retries=2, sleeper=sleeper).complete(request())
    assert sleeper.waits == [2.0]
    with (
        ChatServer(behaviour("busy for an hour")) as server,
        pytest.raises(EndpointError, match="to ask again in 3600 s is too late, 30 s are left"),
    ):
        chat(server.base_url, retries=2, sleeper=sleeper).complete(request())
    assert sleeper.waits == [2.0]
    assert len(server.requests) == 1


BEYOND_ALL_YEARS = f"Fri, 31 Dec {10**20} 23:59:59 GMT"


@pytest.mark.parametrize(
    "text", ["soon", "-1", "nan", "1e9", "Fri, 31 Dec 9999 23:59:59 -0000", BEYOND_ALL_YEARS]
)
def test_a_retry_after_that_is_nonsense_is_passed_over(text):
    sleeper = Sleeper()
    busy = httpx2.Response(429, headers={"retry-after": text})
    answers = iter([busy, httpx2.Response(200, json={"choices": [{"message": {"content": OK}}]})])
    transport = httpx2.MockTransport(lambda _: next(answers))
    chat("http://test/v1", retries=1, sleeper=sleeper, transport=transport).complete(request())
    assert sleeper.waits == [0.5]


# the key


def test_the_key_goes_to_the_endpoint_and_nowhere_else(monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-elsewhere")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-elsewhere")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Secret: a\nAuthorization: Bearer b")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    with ChatServer(behaviour("ok")) as server:
        asked = chat(server.base_url)
        asked.complete(request())
        (received,) = server.requests
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert set(received.headers) == {
        "host",
        "connection",
        "content-type",
        "content-length",
        "user-agent",
        "accept",
        "accept-encoding",
        "authorization",
    }
    assert received.headers["accept-encoding"] == "identity"
    assert "elsewhere" not in json.dumps(dict(received.headers))
    assert KEY not in json.dumps(received.body) + repr(asked) + asked.name


def test_a_wrong_key_names_the_variable_and_not_the_key():
    with (
        ChatServer(behaviour("ok"), api_key="another-key") as server,
        pytest.raises(EndpointError, match=r"refused the key \(401\).* OPENAI_API_KEY") as caught,
    ):
        chat(server.base_url).complete(request())
    assert KEY[:8] not in str(caught.value)


def test_a_server_that_says_the_key_is_not_repeated():
    def tell(received: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(403, text="x" * 185 + received.headers["authorization"] + "\nno")

    with pytest.raises(EndpointError) as caught:
        chat("http://test/v1", transport=httpx2.MockTransport(tell)).complete(request())
    assert KEY[:5] not in str(caught.value)


def test_a_redirect_is_not_followed():
    with (
        ChatServer(behaviour("ok")) as other,
        ChatServer(behaviour("ok")) as server,
    ):
        hosts: list[str] = []

        def redirect(received: httpx2.Request) -> httpx2.Response:
            hosts.append(received.url.host)
            return httpx2.Response(302, headers={"location": other.base_url})

        transport = httpx2.MockTransport(redirect)
        with pytest.raises(EndpointError, match="a key follows no redirect"):
            chat("http://test/v1", transport=transport).complete(request())
        assert hosts == ["test"]
        assert other.requests == server.requests == []


# what is sent


def test_the_body_holds_prompt_schema_and_parameters():
    with ChatServer(behaviour("ok")) as server:
        chat(server.base_url, seed=11, temperature=0.5, max_output_tokens=99).complete(request())
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.calls == [
        {
            "model": "test-model",
            "messages": [
                {"role": "system", "content": "You argue from evidence."},
                {"role": "user", "content": "E1 close 100.00 USD. Is it so?"},
            ],
            "max_tokens": 99,
            "seed": 11,
            "temperature": 0.5,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "probe", "strict": True, "schema": dict(PROMPT.schema)},
            },
        }
    ]


def test_parameters_without_a_value_stay_out():
    with ChatServer(behaviour("ok")) as server:
        chat(server.base_url, seed=None, temperature=None).complete(request())
    assert not {"seed", "temperature"} & set(server.calls[0])


def test_half_a_character_in_a_foreign_text_does_not_stop_the_call():
    prompt = replace(PROMPT, messages=(Message(role="user", content="news \ud800 text"),))
    with ChatServer(behaviour("ok")) as server:
        assert chat(server.base_url).complete(request(prompt)).text == OK
    assert server.calls[0]["messages"][0]["content"] == "news ? text"


def test_a_prompt_that_cannot_fit_the_window_is_not_sent():
    prompt = replace(PROMPT, messages=(Message(role="user", content="x" * 2_200),))
    with ChatServer(behaviour("ok")) as server:
        with pytest.raises(EndpointError, match=r"models\.context_tokens\): not sent"):
            chat(server.base_url, context_tokens=2_200).complete(request(prompt))
        assert server.requests == []
        chat(server.base_url, context_tokens=2_400).complete(request(prompt))
        assert len(server.requests) == 1


# the responses API


def test_the_responses_api_is_used_when_it_is_asked_for():
    with ChatServer(behaviour("ok")) as server:
        reply = chat(server.base_url, api="responses").complete(request())
    assert reply.text == OK
    assert reply.usage is not None
    assert not reply.usage.estimated
    assert server.requests[0].path == "/v1/responses"
    assert server.calls[0]["text"]["format"] == {
        "type": "json_schema",
        "name": "probe",
        "strict": True,
        "schema": dict(PROMPT.schema),
    }
    assert server.calls[0]["store"] is False
    assert "seed" not in server.calls[0]


def test_a_server_without_responses_says_use_chat():
    with (
        ChatServer(behaviour("no such page")) as server,
        pytest.raises(EndpointError, match=r"set models\.api to chat"),
    ):
        chat(server.base_url, api="responses").complete(request())


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            CutReplyError,
            "raise models.max_output_tokens",
        ),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            RefusedReplyError,
            "content filter",
        ),
        (
            {"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]},
            RefusedReplyError,
            "declined to answer: no",
        ),
        ({"output": [{"type": "function_call"}]}, EndpointError, "asked for a tool"),
        ({"output": []}, EndpointError, "holds no reply"),
        ({"status": "failed", "error": {"message": "oh"}, "output": []}, EndpointError, "oh"),
        ({"output": [{"type": "reasoning"}]}, EndpointError, "the reply is empty"),
    ],
)
def test_responses_that_hold_no_reply(body, kind, words):
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, json=body))
    with pytest.raises(kind, match=words):
        chat("http://test/v1", api="responses", transport=transport).complete(request())


# the list of models


def test_models_are_listed_with_their_windows():
    rows = [{"id": "a", "max_model_len": 4096}, {"id": "b"}, {"id": 7}, "x"]
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, json={"data": rows}))
    wire = Wire("http://test/v1", KEY, transport=transport)
    assert models_listed(wire, 5) == {"a": 4096, "b": None}
    with ChatServer(behaviour("ok")) as server:
        assert models_listed(Wire(server.address, KEY), 5) is None
        assert models_listed(Wire(server.base_url, KEY), 5) == {"test-model": None}
    with pytest.raises(EndpointError):
        models_listed(Wire(server.base_url, KEY), 5)


# laws

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = ("id", "choices", "message", "content", "refusal", "usage", "prompt_tokens", "error")
SHAPED = st.recursive(
    JSON, lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, max_size=5), max_leaves=10
)


@settings(max_examples=80)
@given(
    status=st.sampled_from([200, 200, 200, 201, 302, 400, 401, 404, 418, 422, 429, 500, 503]),
    body=st.binary(max_size=60) | SHAPED.map(lambda found: json.dumps(found).encode()),
    api=st.sampled_from(["chat", "responses"]),
)
def test_whatever_a_server_answers_is_a_reply_or_an_endpoint_error(status, body, api):
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, content=body))
    sleeper = Sleeper()
    asked = chat("http://test/v1", retries=1, sleeper=sleeper, transport=transport, api=api)
    said = ""
    try:
        reply = asked.complete(request())
    except EndpointError as exc:
        said = str(exc)
    else:
        assert reply.text.strip()
        assert reply.usage is not None
        assert reply.usage.input_tokens > 0
    assert said.isprintable()


def test_capabilities_are_shared_by_speakers():
    shared = Capabilities()
    with ChatServer(behaviour("ok"), only=("json_object", "text")) as server:
        chat(server.base_url, capabilities=shared).complete(request())
        chat(server.base_url, capabilities=shared, role="bear").complete(request())
        formats = [call.get("response_format", {}).get("type") for call in server.calls]
    assert formats == ["json_schema", "json_object", "json_object", "json_object"]


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "nonsense://x", "http://127.0.0.1:1"])
def test_a_useless_proxy_of_the_environment_is_an_endpoint_error(proxy, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(EndpointError):
        chat("http://paper.invalid/v1").complete(request())
