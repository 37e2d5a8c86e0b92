"""The capability ladder: what servers lack is found out once, and an outage is not a lack."""

from __future__ import annotations

import httpx2
import pytest

from agents.chat.asking import SCHEMA_WORDS, messages_sent, request_body
from agents.chat.calls import ModelSpec
from agents.chat.capability import Capabilities, Known, Step, step_below
from agents.chat.endpoint import OPENAI_URL
from tests.agents.chat.asked import PROMPT, Sleeper, chat, request
from tests.servers.chat_server import (
    OK,
    Behaviour,
    ChatServer,
    Exchange,
    answering,
    behaviour,
    llama_cpp,
    picky,
)
from trader.core.errors import EndpointError
from trader.core.ports import Message, Prompt


def answer(messages, body):
    return OK


def formats(server: ChatServer) -> list[str]:
    """What each call asked for."""
    found = []
    for call in server.calls:
        asked = call.get("response_format", {"type": "text"})
        found.append(
            f"{asked['type']}{' with schema' if asked.keys() == {'type', 'schema'} else ''}"
        )
    return found


EVERY = ["json_schema", "json_object with schema", "json_object", "text"]


@pytest.mark.parametrize("works", EVERY)
def test_the_first_step_that_works_is_found_and_remembered(works):
    known = Capabilities()
    with ChatServer(answer, only=(works,)) as server:
        asked = chat(server.base_url, capabilities=known)
        assert asked.complete(request()).text == OK
        assert asked.complete(request()).text == OK
        assert formats(server) == [*EVERY[: EVERY.index(works) + 1], works]


@pytest.mark.parametrize("works", EVERY)
def test_below_the_first_two_steps_the_prompt_tells_the_schema(works):
    with ChatServer(answer, only=(works,)) as server:
        chat(server.base_url).complete(request())
        system = server.calls[-1]["messages"][0]["content"]
    assert (SCHEMA_WORDS in system) == (works in {"json_object", "text"})
    assert ('"required":["ok"]' in system) == (works in {"json_object", "text"})


def test_llama_cpp_s_500_is_a_step_down_and_never_asked_again():
    known, sleeper = Capabilities(), Sleeper()
    with ChatServer(llama_cpp(lambda messages, body: '{"ok": "Yes. No."}')) as server:
        asked = chat(server.base_url, capabilities=known, retries=2, sleeper=sleeper)
        assert asked.complete(request()).text == '{"ok": "Yes.\nNo."}'
        asked.complete(request())
    assert formats(server) == EVERY[:2] + EVERY[1:2]
    assert sleeper.waits == []


def test_llama_cpp_s_context_error_is_no_lack():
    with (
        ChatServer(llama_cpp(answer, context=10)) as server,
        pytest.raises(EndpointError, match="serve the model with a larger context window"),
    ):
        chat(server.base_url).complete(request())
    assert formats(server) == EVERY[:2]


def test_a_500_after_the_step_has_worked_is_an_outage():
    known, sleeper = Capabilities(), Sleeper()
    with ChatServer(behaviour("ok", "outage", "outage", "ok")) as server:
        asked = chat(server.base_url, capabilities=known, retries=2, sleeper=sleeper)
        asked.complete(request())
        assert asked.complete(request()).text == OK
    assert formats(server) == ["json_schema"] * 4
    assert sleeper.waits == [0.5, 1.0]


def test_an_outage_that_speaks_of_the_format_is_no_lack_once_it_has_worked():
    answers = [(200, {"choices": [{"message": {"content": OK}}]})]
    answers += [(500, {"error": {"message": "the json_schema engine crashed"}}), answers[0]]
    served = iter(answers)
    asked: list[bytes] = []

    def serve(received: httpx2.Request) -> httpx2.Response:
        asked.append(received.content)
        status, body = next(served)
        return httpx2.Response(status, json=body)

    transport = httpx2.MockTransport(serve)
    model = chat("http://test/v1", retries=1, sleeper=Sleeper(), transport=transport)
    model.complete(request())
    model.complete(request())
    assert [b'"json_schema"' in body for body in asked] == [True] * 3


def test_an_outage_at_the_first_call_teaches_nothing():
    known, sleeper = Capabilities(), Sleeper()
    with ChatServer(behaviour(*["outage"] * 5, "ok")) as server:
        asked = chat(server.base_url, capabilities=known, retries=1, sleeper=sleeper)
        with pytest.raises(EndpointError, match="answered 500"):
            asked.complete(request())
        assert formats(server) == [*EVERY, "json_schema"]
        assert asked.complete(request()).text == OK
        assert formats(server)[-1] == "json_schema"


def test_a_500_that_does_not_say_why_may_be_a_lack():
    def way(exchange: Exchange) -> None:
        if exchange.format == "text":
            answering(answer)(exchange)
        else:
            exchange.send(500, "<html>Internal Server Error</html>")

    with ChatServer(Behaviour((way,))) as server:
        asked = chat(server.base_url, capabilities=Capabilities())
        asked.complete(request())
        asked.complete(request())
    assert formats(server) == [*EVERY, "text"]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"message": "json_schema is not supported", "param": "response_format"}}),
        (400, {"error": {"message": "Invalid parameter", "param": "response_format"}}),
        (400, {"error": "structured outputs are unavailable"}),
        (404, {"error": {"message": "No endpoints found that support the requested parameters"}}),
        (422, {"detail": [{"loc": ["body", "response_format"], "msg": "extra fields"}]}),
        (400, {"error": {"message": "unknown model feature: json_schema is not available"}}),
        (400, {}),
    ],
)
def test_ways_to_say_that_a_format_is_missing(status, body):
    def serve(received: httpx2.Request) -> httpx2.Response:
        if b"json_schema" in received.content:
            return httpx2.Response(status, json=body)
        return httpx2.Response(200, json={"choices": [{"message": {"content": OK}}]})

    transport = httpx2.MockTransport(serve)
    assert chat("http://test/v1", transport=transport).complete(request()).text == OK


@pytest.mark.parametrize(
    "way", ["unknown model", "unknown ollama model", "no such page", "context"]
)
def test_other_errors_are_no_lack(way):
    known = Capabilities()
    with ChatServer(behaviour(way, "ok")) as server:
        asked = chat(server.base_url, capabilities=known)
        with pytest.raises(EndpointError):
            asked.complete(request())
        asked.complete(request())
    assert formats(server) == ["json_schema", "json_schema"]


def test_a_format_that_is_taken_and_not_kept_is_left_at_the_next_call():
    known = Capabilities()
    with ChatServer(behaviour("words", "ok", "words", "ok")) as server:
        asked = chat(server.base_url, capabilities=known)
        for _ in range(4):
            asked.complete(request())
    assert formats(server) == [EVERY[0], EVERY[1], EVERY[1], EVERY[1]]


def test_what_is_known_is_kept_by_endpoint_and_model():
    known = Capabilities()
    with ChatServer(answer, only=("text",)) as poor, ChatServer(answer) as rich:
        chat(poor.base_url, capabilities=known).complete(request())
        chat(rich.base_url, capabilities=known).complete(request())
        chat(poor.base_url, capabilities=known, model="other").complete(request())
    assert formats(rich) == ["json_schema"]
    assert formats(poor) == EVERY * 2


# parameters that servers refuse


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        (
            "temperature",
            "Unsupported value: 'temperature' does not support 0 with this model. Only the default "
            "(1) value is supported.",
        ),
        ("seed", "Unrecognized request argument supplied: seed"),
        ("seed", "Additional properties are not allowed by the schema: 'seed' was unexpected"),
    ],
)
def test_a_refused_parameter_is_left_out_from_then_on(parameter, words):
    known = Capabilities()
    with ChatServer(picky(parameter, words)) as server:
        asked = chat(server.base_url, capabilities=known)
        asked.complete(request())
        asked.complete(request())
        assert [parameter in call for call in server.calls] == [True, False, False]
        assert formats(server) == ["json_schema"] * 3


MAX_TOKENS = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
    "'max_completion_tokens' instead."
)


def test_the_output_limit_is_called_by_its_other_name():
    known = Capabilities()
    with ChatServer(picky("max_tokens", MAX_TOKENS)) as server:
        asked = chat(server.base_url, capabilities=known, max_output_tokens=77)
        asked.complete(request())
        asked.complete(request())
        assert [call.get("max_completion_tokens") for call in server.calls] == [None, 77, 77]


def test_no_call_goes_out_without_an_output_limit():
    def serve(received: httpx2.Request) -> httpx2.Response:
        name = "max_completion_tokens" if b"max_completion" in received.content else "max_tokens"
        return httpx2.Response(400, json={"error": {"message": f"unknown argument {name}"}})

    with pytest.raises(EndpointError, match="unknown argument max_completion_tokens"):
        chat("http://test/v1", transport=httpx2.MockTransport(serve)).complete(request())


def test_openai_is_asked_by_the_new_name_at_once():
    spec = ModelSpec(role="bull", base_url=OPENAI_URL, model="m")
    assert Capabilities().of(spec).limit == "max_completion_tokens"


# a prompt as it is sent


def test_the_ladder_of_the_responses_api_has_no_object_with_schema():
    spec = ModelSpec(role="bull", base_url="http://test/v1", model="m", api="responses")
    assert step_below(spec, Step.JSON_SCHEMA) is Step.JSON_OBJECT
    assert step_below(spec, Step.TEXT) is None
    body = request_body(spec, PROMPT, Step.JSON_OBJECT, Known(step=Step.JSON_OBJECT))
    assert body["text"] == {"format": {"type": "json_object"}}


def test_a_prompt_without_a_system_message_gets_one_for_the_schema():
    prompt = Prompt(
        version="p 1",
        messages=(Message(role="user", content="Well?"),),
        schema_name="probe",
        schema=PROMPT.schema,
    )
    first, second = messages_sent(prompt, Step.TEXT)
    assert (first.role, second.content) == ("system", "Well?")
    assert first.content.startswith(SCHEMA_WORDS)
    assert messages_sent(prompt, Step.TEXT) == messages_sent(prompt, Step.TEXT)
