"""Models debate over a server, from end to end: decide, trade, be recorded, replayed and fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.servers.chat_server import ChatServer, behaviour
from tests.servers.debater import debater
from trader.app import App, open_app
from trader.core.decision import Decision, FlagCode
from trader.core.errors import ConfigError, RecordingError, UsageError

FAST = ("kernels.backend=reference",)


def app_of(state: Path, base_url: str | None, *overrides: str, environ=None) -> App:
    address = () if base_url is None else (f"models.base_url={base_url}",)
    named = ("debate.mode=llm", "models.model=test-model", f"state_dir={state}")
    return open_app(environ=environ or {}, overrides=[*named, *FAST, *address, *overrides])


def walk(app: App, steps: int = 3):
    return [app.run_once() for _ in range(steps)]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Three slots of the paper market with models at a server, and what it was asked."""
    state = tmp_path_factory.mktemp("recorded")
    with ChatServer(debater) as server:
        results = walk(app_of(state, server.base_url))
        bodies = list(server.calls)
    return state, server.base_url, results, bodies


def test_models_debate_decide_and_trade(recorded):
    _, _, results, bodies = recorded
    quiet, decided, filled = results
    assert quiet.cycles == ()
    go, no_go = decided.cycles
    assert (go.debate.debater, go.debate.verdict.decision) == ("test-model", Decision.GO)
    assert no_go.debate.verdict.decision is Decision.NO_GO
    assert [(call.role, call.round) for call in go.debate.calls] == [
        ("bull", 0),
        ("bear", 0),
        ("bull", 1),
        ("bear", 1),
        ("arbitrator", 2),
    ]
    assert go.debate.weighing is not None
    assert go.debate.verdict.confidence <= go.debate.weighing.confidence
    assert no_go.debate.weighing is None  # the table said no: the arbitrator's model was not asked
    assert len(bodies) == decided.spend.calls == len(go.debate.calls) + len(no_go.debate.calls)
    assert [held.symbol for held in filled.positions] == ["AAPL"]
    assert decided.spend.input_tokens > 0


def test_every_speaker_is_told_who_is_traded_and_nothing_that_it_must_not_know(recorded):
    _, _, _, bodies = recorded
    for body in bodies:
        text = "\n".join(message["content"] for message in body["messages"])
        assert "AAPL, Apple, NASDAQ, USD" in text
        assert "state" not in body
    assert not any("2026-07-03" in json.dumps(body) for body in bodies)  # the day after


def test_the_same_run_from_its_recording_is_the_same_ledger_without_a_call(recorded, tmp_path):
    state, base_url, results, _ = recorded
    copy = tmp_path / "state"
    (copy / "chats").mkdir(parents=True)
    (copy / "chats" / "chats.db").write_bytes((state / "chats" / "chats.db").read_bytes())
    again = walk(app_of(copy, base_url, "debate.recording=read"))  # the server is gone
    assert [result.ledger_head for result in again] == [item.ledger_head for item in results]
    assert again[1].spend == results[1].spend


def test_every_decision_of_models_is_replayed_bit_for_bit_whatever_is_configured_now(recorded):
    state, _, results, _ = recorded
    ids = [cycle.cycle_id for result in results for cycle in result.cycles]
    assert len(ids) == 2
    rules = open_app(environ={}, overrides=[f"state_dir={state}", *FAST])
    for cycle_id in ids:
        replayed = rules.replay(cycle_id)
        assert replayed.reproduced, replayed.comparisons


def test_a_missing_recording_is_named(recorded, tmp_path):
    state, base_url, _, _ = recorded
    with pytest.raises(RecordingError, match="there are no recordings at"):
        app_of(tmp_path, base_url, "debate.recording=read").debate("AAPL", _moment())
    app = app_of(state, base_url, "debate.recording=read", "risk.atr_multiple=2.5")
    with pytest.raises(RecordingError, match="bull, round 0, model test-model, prompt bull"):
        app.debate("AAPL", _moment())


def test_another_model_is_another_recording(recorded):
    state, base_url, _, _ = recorded
    app = app_of(state, base_url, "debate.recording=read", "models.model=other-model")
    with pytest.raises(RecordingError, match="other-model"):
        app.debate("AAPL", _moment())


def _moment():
    from datetime import UTC, datetime

    return datetime(2026, 7, 2, 23, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("way", "code"),
    [
        ("html", FlagCode.ENDPOINT_FAILURE),
        ("quota", FlagCode.ENDPOINT_FAILURE),
        ("refusal", FlagCode.REFUSED_REPLY),
        ("cut", FlagCode.TRUNCATED_REPLY),
        ("empty", FlagCode.ENDPOINT_FAILURE),
        ("hanging", FlagCode.TIMED_OUT),
    ],
)
def test_a_server_that_misbehaves_ends_in_no_go_with_its_flag(tmp_path, way, code):
    with ChatServer(behaviour(way)) as server:
        app = app_of(tmp_path, server.base_url, "models.call_seconds=0.4", "models.retries=0")
        (held, *_) = app.debate("AAPL", _moment()).debates
    assert held.debate.verdict.decision is Decision.NO_GO
    assert code in {flag.code for flag in held.debate.verdict.flags}, held.debate.verdict.flags
    assert held.debate.arguments == ()


def test_a_server_that_dies_in_the_debate_leaves_the_partial_transcript(tmp_path):
    calls = []

    def answer(messages, body):
        calls.append(body)
        return debater(messages, body) if len(calls) <= 2 else "no JSON at all"

    with ChatServer(answer) as server:
        app = app_of(tmp_path, server.base_url, "models.retries=0", "strategies.enabled=atr_trend")
        (held,) = app.debate("AAPL", _moment()).debates
    assert len(held.debate.arguments) == len(held.debate.rebuttals) == 1
    assert len(calls) == 4  # the third reply was asked for once more, and that was all
    assert FlagCode.INVALID_REPLY in {flag.code for flag in held.debate.verdict.flags}
    assert held.debate.fallback == ""


def test_an_unreachable_model_never_falls_back_to_rules_by_itself(tmp_path):
    with ChatServer(debater) as server:
        gone = server.base_url
    (held, *_) = app_of(tmp_path, gone, "models.retries=0").debate("AAPL", _moment()).debates
    assert held.debate.verdict.decision is Decision.NO_GO
    assert (held.debate.debater, held.debate.fallback) == ("test-model", "")
    rules = app_of(tmp_path, gone, "models.retries=0", "debate.fallback=rules")
    (held, *_) = rules.debate("AAPL", _moment()).debates
    assert held.debate.verdict.decision is Decision.GO
    assert held.debate.debater == "rules"
    assert held.debate.fallback.startswith("ENDPOINT_FAILURE: bull: ")
    assert gone in held.debate.fallback
    assert len(held.debate.calls) == 1


def test_a_debate_of_models_that_did_not_fail_is_not_held_again_by_rules(tmp_path):
    with ChatServer(debater) as server:
        app = app_of(tmp_path, server.base_url, "debate.fallback=rules")
        go, no_go = app.debate("AAPL", _moment()).debates
    assert [held.debate.verdict.decision for held in (go, no_go)] == [Decision.GO, Decision.NO_GO]
    for held in (go, no_go):
        assert (held.debate.debater, held.debate.fallback) == ("test-model", "")


def test_exits_go_on_when_no_model_answers(tmp_path):
    """A position is opened by a model's debate; its stop and its exit need none."""
    options = ("strategies.enabled=atr_trend", "market.start=2026-02-23", "models.retries=0")
    with ChatServer(debater) as server:
        app = app_of(tmp_path, server.base_url, *options)
        opened = walk(app, 3)
    assert opened[-1].positions, [result.cycles for result in opened]
    gone = walk(app, 3)
    assert [leave.strategy for result in gone for leave in result.slot.exits] == ["atr_trend"]
    assert gone[-1].positions == ()


def test_exits_go_on_when_a_key_is_missing(tmp_path):
    """Without anything to look after the run stops; with a position it goes on, and says so."""
    options = ("strategies.enabled=atr_trend", "market.start=2026-02-23", "models.retries=0")
    cloud = app_of(tmp_path, "https://models.invalid/v1", *options)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        cloud.run_once()
    with ChatServer(debater) as server:
        opened = walk(app_of(tmp_path, server.base_url, *options), 3)
    assert opened[-1].positions
    gone = walk(cloud, 3)
    assert [leave.strategy for result in gone for leave in result.slot.exits] == ["atr_trend"]
    assert gone[-1].positions == ()
    assert any("OPENAI_API_KEY" in notice for notice in gone[0].notices)


def test_when_the_budget_is_gone_the_verdict_is_no_go_and_recorded(tmp_path):
    small = ("models.budget.tokens_per_decision=4500", "strategies.enabled=atr_trend")
    with ChatServer(debater) as server:
        app = app_of(tmp_path, server.base_url, *small)
        (held,) = app.debate("AAPL", _moment()).debates
        asked = len(server.calls)
        codes = {flag.code for flag in held.debate.verdict.flags}
        assert FlagCode.BUDGET_EXHAUSTED in codes
        assert asked == len(held.debate.calls) - 1  # the call that did not fit was not made
        again = app_of(tmp_path, server.base_url, *small, "debate.recording=read")
        (replayed,) = again.debate("AAPL", _moment()).debates
        assert replayed.debate == held.debate
        assert len(server.calls) == asked


def test_prices_are_spent_and_told(tmp_path):
    prices = ("models.usd_per_million_input=2", "models.usd_per_million_output=10")
    with ChatServer(debater) as server:
        found = app_of(tmp_path, server.base_url, *prices).debate("AAPL", _moment())
    spend = found.spend
    assert float(spend.cost) == pytest.approx(
        (2 * spend.input_tokens + 10 * spend.output_tokens) / 1e6
    )
    assert spend.calls == sum(len(held.debate.calls) for held in found.debates)


def test_each_role_has_its_own_endpoint_and_model(tmp_path):
    with ChatServer(debater) as common, ChatServer(debater) as bears:
        own = (f"models.bear.base_url={bears.base_url}", "models.bear.model=bear-model")
        app = app_of(tmp_path, common.base_url, *own, "strategies.enabled=atr_trend")
        (held,) = app.debate("AAPL", _moment()).debates
        models = {body["model"] for body in bears.calls}
        assert models == {"bear-model"}
        assert {body["model"] for body in common.calls} == {"test-model"}
    assert held.debate.debater == "test-model / bear-model / test-model"


def test_a_cloud_endpoint_without_a_key_names_the_variable(tmp_path):
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        app_of(tmp_path, "https://models.invalid/v1").debate("AAPL", _moment())


def test_the_model_must_be_named(tmp_path):
    app = open_app(environ={}, overrides=["debate.mode=llm", f"state_dir={tmp_path}"])
    with pytest.raises(ConfigError, match=r"models\.model"):
        app.debate("AAPL", _moment())


def test_the_address_of_the_environment_is_part_of_the_run(tmp_path):
    with ChatServer(debater) as server:
        environ = {"OPENAI_BASE_URL": server.base_url}
        app = app_of(tmp_path, None, environ=environ)
        app.debate("AAPL", _moment())
        assert server.calls
    assert app.config.models.base_url == server.base_url


@pytest.mark.parametrize(("approved", "decision"), [(True, Decision.GO), (False, Decision.NO_GO)])
def test_a_person_approves_or_rejects_and_the_slot_is_finished(tmp_path, approved, decision):
    options = ("debate.approval=true", "strategies.enabled=atr_trend")
    with ChatServer(debater) as server:
        app = app_of(tmp_path, server.base_url, *options)
        _, asked = walk(app, 2)
        (request,) = asked.awaiting
        assert (asked.slot, asked.cycles, asked.orders) == (None, (), ())
        calls = len(server.calls)
        with pytest.raises(UsageError, match=request.cycle_id):
            app.answer_approval("another", approved=True)
        plain = app_of(tmp_path, server.base_url)  # what is configured now does not matter
        answered = plain.answer_approval(request.cycle_id, approved=approved)
        assert len(server.calls) == calls
    (cycle,) = answered.cycles
    assert (cycle.cycle_id, cycle.debate.verdict.decision) == (request.cycle_id, decision)
    assert bool(answered.orders) == approved
    with pytest.raises(UsageError, match="nothing waits"):
        plain.answer_approval(request.cycle_id, approved=True)
    assert plain.replay(request.cycle_id).reproduced


def test_a_go_that_nobody_approves_expires_as_no_go(tmp_path):
    options = ("debate.approval=true", "strategies.enabled=atr_trend")
    with ChatServer(debater) as server:
        app = app_of(tmp_path, server.base_url, *options)
        _, asked = walk(app, 2)
        # called again without --approve: it must not trade what a person was asked about
        late = app_of(tmp_path, server.base_url, "strategies.enabled=atr_trend").run_once()
    (cycle,) = late.cycles
    assert late.session == asked.session
    assert cycle.cycle_id == asked.awaiting[0].cycle_id
    assert [flag.code for flag in cycle.debate.verdict.flags] == [FlagCode.APPROVAL_EXPIRED]
    assert late.orders == ()
    assert any("nobody approved" in notice for notice in late.notices)
    assert app.replay(cycle.cycle_id).reproduced
