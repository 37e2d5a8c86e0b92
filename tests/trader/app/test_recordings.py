"""A run of models from its recordings: the same ledger, without endpoint, key or budget."""

from __future__ import annotations

import gzip
import json
import socket
import sqlite3
from datetime import date
from importlib.resources import files
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tests.servers.chat_server import ChatServer
from tests.servers.debater import debater
from tests.trader.app.conftest import opened
from trader.app.backtesting import BacktestResult
from trader.core.errors import RecordingError, StateError
from trader.data import sample

FIRST, LAST = date(2026, 6, 15), date(2026, 7, 31)
NO_SERVER = "models.base_url=http://127.0.0.1:9/v1"


def backtest(state: Path, *settings: str, last: date = LAST) -> BacktestResult:
    fixed = ("debate.mode=llm", "models.model=test-model", "models.usd_per_million_input=2")
    return opened(state, *fixed, *settings).backtest(start=FIRST, end=last)


def recorded(state: Path, *settings: str) -> tuple[BacktestResult, str]:
    """A run that asked a server, which has gone since, and the setting of its address."""
    with ChatServer(debater) as server:
        address = f"models.base_url={server.base_url}"
        return backtest(state, address, *settings), address


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> tuple[Path, BacktestResult, str]:
    state = tmp_path_factory.mktemp("state")
    return state, *recorded(state)


def test_a_run_from_its_recording_has_the_same_ledger_and_spend(run):
    state, made, address = run
    again = backtest(state, address, "debate.recording=read")
    assert sum(line.calls for line in made.debates) == made.worth.spend.calls > 0
    assert again.ledger_head == made.ledger_head
    assert again.debates == made.debates
    assert again.worth.spend == made.worth.spend


def test_a_debate_in_every_session_replays_without_a_call(tmp_path, monkeypatch):
    """A strategy that always wants in and a model that always says no: one debate a session."""

    def refusing(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        said = json.loads(debater(messages, body))
        return json.dumps(said | {"decision": "NO_GO"} if "decision" in said else said)

    last = date(2026, 6, 26)
    with gzip.open(files(sample).joinpath("AAPL_1Day.csv.gz"), "rt") as whole:
        lines = whole.readlines()
    (tmp_path / "AAPL.csv").write_text("".join([*lines[:3], *lines[-350:]]))
    settings = ("strategies.enabled=buy_and_hold", f"data.source=csv:{tmp_path / 'AAPL.csv'}")
    with ChatServer(refusing) as server:
        settings += (f"models.base_url={server.base_url}",)
        made = backtest(tmp_path, *settings, last=last)
        asked = len(server.calls)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a replay opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    again = backtest(tmp_path, *settings, "debate.recording=read", last=last)
    assert len(made.debates) == made.sessions == 9
    assert asked == made.worth.spend.calls >= 4 * made.sessions
    assert again.debates == made.debates
    assert again.ledger_head == made.ledger_head


def test_every_decision_replays_bit_for_bit_whatever_the_configuration_says_now(run):
    state, made, _ = run
    app = opened(state, "models.model=another", NO_SERVER)
    for line in made.debates:
        assert app.replay(line.cycle_id).reproduced, line.cycle_id


def test_a_recording_of_another_model_is_explained(run):
    state, _, address = run
    with pytest.raises(
        RecordingError,
        match=r"no recorded call \w{12} of the bull, round 0, model another, prompt bull \d+, for "
        r"\S+: recorded for \S+ with model test-model, this is another",
    ):
        backtest(state, address, "models.model=another", "debate.recording=read")


def test_a_state_folder_without_recordings_says_how_to_make_them(tmp_path):
    with pytest.raises(RecordingError, match=r"there are no recordings at .*chats\.db"):
        backtest(tmp_path, NO_SERVER, "debate.recording=read")


def test_a_budget_that_ends_within_a_run_ends_in_the_same_place_in_its_recording(tmp_path):
    made, address = recorded(tmp_path, "models.budget.tokens_per_run=6000")
    flags = ["BUDGET_EXHAUSTED" in line.flags for line in made.debates]
    assert True in flags
    assert flags == sorted(flags)  # once it is spent, it stays spent
    assert {line.decision for line in made.debates if "BUDGET_EXHAUSTED" in line.flags} == {"NO_GO"}
    spend = made.worth.spend
    assert spend.input_tokens + spend.output_tokens <= 6_000
    again = backtest(
        tmp_path, address, "models.budget.tokens_per_run=6000", "debate.recording=read"
    )
    assert again.ledger_head == made.ledger_head


def test_a_changed_reply_is_found_out(run, tmp_path):
    state, _, address = run
    copytree(state / "chats", tmp_path / "chats")
    with sqlite3.connect(tmp_path / "chats" / "chats.db") as db:
        db.execute("DROP TRIGGER calls_never_change")
        db.execute("UPDATE calls SET text = CAST(replace(text, 'GO', 'NO') AS BLOB)")
    db.close()
    with pytest.raises(StateError, match="does not fit its hash"):
        backtest(tmp_path, address, "debate.recording=read")
