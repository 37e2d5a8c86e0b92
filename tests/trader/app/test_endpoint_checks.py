"""`trader doctor` on language models: what is there, what it can do, and what to do about it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.servers.chat_server import ChatServer, behaviour, llama_cpp, picky
from trader.app.endpoint_checks import endpoint_checks
from trader.core.config import Config

READY = '{"ready": true}'
KEY = "sk-canary-2718281828"


def answer(messages, body):
    return READY


def config(base_url: str | None, *, mode: str = "llm", recording: str = "write", **models: Any):
    return Config.model_validate(
        {
            "debate": {"mode": mode, "recording": recording},
            "models": {"base_url": base_url, "model": "test-model", "call_seconds": 0.5, **models},
        }
    )


def test_no_model_no_check():
    assert endpoint_checks(Config(), {}) == ()
    assert endpoint_checks(config("http://127.0.0.1:1/v1", recording="read"), {})[0].status == "ok"


def test_a_sound_endpoint_is_asked_once_for_all_roles():
    with ChatServer(answer) as server:
        reached, replies = endpoint_checks(config(server.base_url), {})
        assert len(server.requests) == 2
        assert server.calls[0]["max_tokens"] == 256
    assert (reached.name, reached.status) == ("endpoint of bull, bear, arbitrator", "ok")
    assert reached.found == f"{server.base_url} reached, no key needed, has test-model"
    assert (replies.name, replies.status) == ("replies of test-model", "ok")
    assert replies.found == "asked by json_schema, tokens are counted, context unknown"


def test_a_named_model_is_looked_at_although_rules_debate():
    with ChatServer(answer) as server:
        assert len(endpoint_checks(config(server.base_url, mode="rules"), {})) == 2


def test_llama_cpp_is_found_to_know_objects_with_a_schema():
    with ChatServer(llama_cpp(answer)) as server:
        _, replies = endpoint_checks(config(server.base_url), {})
    assert replies.found.startswith("asked by json_object with schema, ")


def test_each_endpoint_has_its_own_checks():
    with ChatServer(answer) as one, ChatServer(answer, models=["b"]) as two:
        found = endpoint_checks(config(one.base_url, bear={"base_url": two.base_url}), {})
    assert [check.name for check in found] == [
        "endpoint of bull, arbitrator",
        "replies of test-model",
        "endpoint of bear",
        "replies of test-model",
    ]
    assert found[2].status == "warning"
    assert "does not list test-model" in found[2].found
    assert found[2].remedy == "set models.model to one of its models: b"


def test_a_forgotten_v1_is_suggested():
    with ChatServer(answer) as server:
        (reached,) = endpoint_checks(config(server.address), {})
    assert reached.status == "failed"
    assert reached.remedy == f"did you mean {server.base_url}? set models.base_url to it"


def test_nobody_listens():
    with ChatServer(answer) as server:
        base_url = server.base_url
    (reached,) = endpoint_checks(config(base_url), {})
    assert reached.status == "failed"
    assert base_url in reached.found
    assert reached.remedy == "is the server running, and models.base_url right?"


def test_a_key_that_is_missing_or_wrong_is_named_by_its_variable():
    cloud = "https" + "://models.paper.invalid/v1"
    (found,) = endpoint_checks(config(cloud), {})
    assert found.status == "failed"
    assert found.found.startswith("OPENAI_API_KEY: ")
    assert found.remedy.startswith("set it")
    with ChatServer(answer, api_key="another") as server:
        *_, replies = endpoint_checks(config(server.base_url), {"OPENAI_API_KEY": KEY})
        good = endpoint_checks(config(server.base_url), {"OPENAI_API_KEY": "another"})
    assert replies.status == "failed"
    assert replies.remedy == "check the environment variable OPENAI_API_KEY"
    assert KEY not in str(replies)
    assert good[0].found.endswith("reached, key from OPENAI_API_KEY, has test-model")


def test_no_model_named():
    (found,) = endpoint_checks(config(None, model=None), {})
    assert (found.status, found.found[:14]) == ("failed", "models.model: ")


def test_what_a_model_lacks_is_told():
    with ChatServer(picky("temperature", "temperature is not supported", then=answer)) as server:
        _, replies = endpoint_checks(config(server.base_url), {})
    assert "without temperature" in replies.found
    with ChatServer(behaviour("no usage")) as server:
        _, replies = endpoint_checks(config(server.base_url, context_tokens=4_096), {})
    assert replies.found == "asked by json_schema, tokens are estimated, context as configured"
    with ChatServer(behaviour("words")) as server:
        _, replies = endpoint_checks(config(server.base_url), {})
    assert (replies.status, "the reply was no JSON" in replies.found) == ("warning", True)
    with ChatServer(behaviour("cut")) as server:
        _, replies = endpoint_checks(config(server.base_url), {})
    assert (replies.status, "cut at 256 tokens" in replies.found) == ("warning", True)


@pytest.mark.parametrize(
    "way", ["hanging", "html", "outage", "quota", "refusal", "cut off", "deep"]
)
def test_whatever_happens_is_a_failed_check(way):
    with ChatServer(behaviour(way)) as server:
        reached, replies = endpoint_checks(config(server.base_url), {})
    assert (reached.status, replies.status) == ("ok", "failed")
    assert replies.found.isprintable()


def test_a_cloud_model_without_a_price_is_a_warning():
    cloud = "https" + "://models.paper.invalid/v1"
    environ = {"OPENAI_API_KEY": KEY}
    *_, found = endpoint_checks(config(cloud), environ)
    assert (found.name, found.status) == ("price of the models", "warning")
    priced = endpoint_checks(config(cloud, usd_per_million_output=1.0), environ)
    own = endpoint_checks(config("http://127.0.0.1:1/v1"), {})
    assert found.name not in [check.name for check in (*priced, *own)]
