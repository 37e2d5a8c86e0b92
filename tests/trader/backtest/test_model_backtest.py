"""A backtest with language models at a local server: columns, spend, knowledge, fallback."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from tests.servers.chat_server import ChatServer, behaviour
from tests.servers.debater import debater
from trader.app import open_app

FIRST, LAST = date(2026, 4, 10), date(2026, 7, 8)


def backtest(state: Path, server: ChatServer, *settings: str, first: date = FIRST):
    fixed = (
        f"state_dir={state}",
        "kernels.backend=reference",
        "debate.mode=llm",
        f"models.base_url={server.base_url}",
        "models.model=test-model",
        "models.retries=0",
    )
    return open_app(overrides=(*fixed, *settings), environ={}).backtest(start=first, end=LAST)


@pytest.fixture(scope="module")
def priced(tmp_path_factory):
    with ChatServer(debater) as server:
        result = backtest(
            tmp_path_factory.mktemp("state"),
            server,
            "models.usd_per_million_input=2",
            "models.usd_per_million_output=8",
            "models.knowledge_cutoff=2026-05-01",
        )
        return result, len(server.calls)


def test_the_model_debate_stands_beside_everything_simpler(priced):
    result, _ = priced
    assert all(found is not None for found in result.results.values())
    assert list(result.results) == [
        "debate",
        "rules_debate",
        "arbitrator_alone",
        "without_debate",
        "buy_and_hold",
    ]
    assert result.results["debate"].label == "model debate"
    assert list(result.worth.intervals.differences) == [
        "without_debate",
        "arbitrator_alone",
        "rules_debate",
    ]
    assert result.debater == "test-model"
    page = Path(result.report).read_text()
    assert "minus rules debate" in page


def test_every_call_is_counted_and_paid_for(priced):
    result, asked = priced
    spend = result.worth.spend
    assert spend.calls == asked == sum(line.calls for line in result.debates) > 0
    expected = 2 * spend.input_tokens + 8 * spend.output_tokens
    assert float(spend.cost) == pytest.approx(expected / 1e6)
    body = json.loads(json.dumps(result.as_json()))
    assert body["spend"]["input_tokens"] == spend.input_tokens
    assert result.worth.answers["spend"] in body["answers"]["spend"]


def test_every_decision_is_tagged_against_the_cutoff(priced):
    result, _ = priced
    cutoff = date(2026, 5, 1)
    for line in result.debates:
        assert line.day == ("before_cutoff" if line.as_of.date() <= cutoff else "after_cutoff")
    assert len({line.day for line in result.debates}) == 2
    known = result.worth.knowledge
    assert known.decisions == len(result.debates)
    assert known.decisions_before == sum(line.day == "before_cutoff" for line in result.debates)
    assert "knowledge" in result.as_json()


def test_a_model_that_fails_is_a_flagged_refusal_or_rules_in_its_place(tmp_path):
    with ChatServer(behaviour("busy")) as server:
        alone = backtest(tmp_path / "a", server, first=date(2026, 6, 29))
        helped = backtest(tmp_path / "b", server, "debate.fallback=rules", first=date(2026, 6, 29))
    assert {line.decision for line in alone.debates} == {"NO_GO"}
    assert all(line.flags for line in alone.debates)
    assert {line.day for line in alone.debates} == {"cutoff_unknown"}
    assert "no decision is safe" in alone.worth.answers["knowledge"]
    count = len(helped.debates)
    assert helped.worth.answers["fallback"] == (
        f"rules debated {count} of {count} in place of the model"
    )
    rules = helped.results["rules_debate"].performance
    assert helped.results["debate"].performance == rules
    assert "Rules debated in place of the model" in Path(helped.report).read_text()
