"""The audit of the product as it is: on the sample nothing leaks, and the result says so."""

from __future__ import annotations

import json
import re
from datetime import date

import pytest

from tests.servers.chat_server import ChatServer
from tests.servers.debater import debater
from tests.trader.app.conftest import opened
from trader.app.auditing import audit_leak
from trader.core.errors import DataIntegrityError, UsageError

TESTS = [
    "known_in_time",
    "future_cut",
    "future_poisoned",
    "signals",
    "account",
    "masked",
    "order_swapped",
    "news_shuffled",
    "mirrored",
    "white_noise",
]


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    told = []
    app = opened(tmp_path_factory.mktemp("state"))
    result = audit_leak(
        app,
        start=date(2026, 6, 1),
        end=date(2026, 7, 17),
        sample=4,
        progress=lambda name, number, of, slot: told.append((name, number, of, slot.session)),
    )
    return result, told


def test_the_rule_debate_on_the_sample_sees_and_knows_nothing_it_should_not(audited):
    result, _ = audited
    assert [test.name for test in result.tests] == TESTS
    assert {test.name: test.status for test in result.tests if test.status != "passed"} == {
        "news_shuffled": "not applicable",
        "mirrored": "statement",
    }
    assert (result.leak, result.complete) == (False, True)
    assert 0 < result.audited <= result.decisions
    by_name = {test.name: test for test in result.tests}
    for name in ("future_cut", "future_poisoned", "masked", "order_swapped"):
        assert by_name[name].checked == result.audited
    assert by_name["signals"].checked == result.slots
    assert by_name["white_noise"].checked == 4
    assert result.spend.calls == 0


def test_json_is_one_object_with_every_test(audited):
    result, _ = audited
    body = result.as_json()
    assert json.loads(json.dumps(body, allow_nan=False)) == body
    assert body["schema_version"] == 1
    assert {"source", "tests", "leak", "complete", "decisions", "audited", "spend"} <= set(body)
    assert {"name", "status", "checked", "changed", "unanswered", "changes"} <= set(
        body["tests"][0]
    )


def test_progress_is_told_test_by_test(audited):
    result, told = audited
    assert told[0] == ("walk", 1, result.slots, date(2026, 6, 1))
    assert {name for name, *_ in told} == {"walk", *TESTS} - {"known_in_time", "news_shuffled"}
    assert all(1 <= number <= of for _, number, of, _ in told)


def test_the_same_audit_again_gives_the_same_result(audited, tmp_path):
    result, _ = audited
    again = audit_leak(opened(tmp_path), start=date(2026, 6, 1), end=date(2026, 7, 17), sample=4)
    assert again == result


def test_models_are_audited_by_what_they_are_asked(tmp_path):
    """Masked, they read neither name nor date; a recording answers the same audit offline."""
    few = {"start": date(2026, 6, 29), "end": date(2026, 7, 8), "sample": 1}
    with ChatServer(debater) as server:
        url = server.base_url
        result = audit_leak(by_models(tmp_path, url), **few)
        asked = [json.dumps(body["messages"][1:]) for body in server.calls]
    assert (result.debater, result.leak, result.complete) == ("test-model", False, True)
    assert result.spend.calls == len(asked) > 10
    masked = [text for text in asked if "XXXX" in text]
    assert masked
    assert not any(re.search(r"AAPL|Apple|NASDAQ|2026-0[67]|20260[67]", text) for text in masked)
    assert audit_leak(by_models(tmp_path, url, "debate.recording=read"), **few) == result


def test_a_model_that_cannot_be_reached_leaves_the_audit_incomplete(tmp_path):
    with ChatServer(debater) as server:
        gone = server.base_url
    app = by_models(tmp_path, gone, "models.retries=0")
    result = audit_leak(app, start=date(2026, 6, 29), end=date(2026, 7, 8), sample=1)
    assert (result.leak, result.complete) == (False, False)
    assert {test.status for test in result.tests if test.unanswered} == {"incomplete"}


def by_models(state, base_url, *settings):
    """The app with a small model at a server of this machine."""
    named = ("debate.mode=llm", "models.model=test-model", f"models.base_url={base_url}")
    return opened(state, *named, *settings)


def test_a_period_without_a_decision_is_audited_as_far_as_there_is_anything(tmp_path):
    result = audit_leak(
        opened(tmp_path, "strategies.enabled=sma_cross"),
        start=date(2026, 8, 3),
        end=date(2026, 8, 5),
        sample=1,
    )
    status = {test.name: test.status for test in result.tests}
    assert result.decisions == 0
    assert (result.leak, result.complete) == (False, True)
    assert status["masked"] == status["future_cut"] == "not applicable"
    assert status["signals"] == status["account"] == "passed"


def test_what_cannot_be_audited_is_refused(tmp_path):
    app = opened(tmp_path)
    with pytest.raises(UsageError, match="at least one decision"):
        audit_leak(app, sample=0)
    with pytest.raises(DataIntegrityError, match="no bars of sample"):
        audit_leak(app, start=date(2030, 1, 1))
    with pytest.raises(UsageError, match="switched off"):
        audit_leak(opened(tmp_path, "debate.mode=off"))
