"""What models are told in a backtest was known at the slot: no later date, no later number."""

from __future__ import annotations

import re
import sqlite3
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from tests.servers.chat_server import ChatServer
from tests.servers.debater import debater
from trader.app import open_app
from trader.app.backtesting import BacktestResult
from trader.backtest.leakage.markets import ChangedData, poisoned_future
from trader.core.market import Timeframe, session_of

FIRST, LAST = date(2026, 2, 10), date(2026, 7, 8)
MIDDLE = datetime(2026, 5, 29, 20, tzinfo=UTC)  # the close of that session
DAY = re.compile(r"\b(20\d\d)-?(\d\d)-?(\d\d)\b")
Asked = dict[tuple[str, str, int], str]  # decision without its run, role and round -> prompt


def backtest(state: Path, base_url: str, *, poisoned: bool) -> tuple[BacktestResult, Asked]:
    fixed = (
        f"state_dir={state}",
        "kernels.backend=reference",
        "debate.mode=llm",
        f"models.base_url={base_url}",
        "models.model=test-model",
    )
    app = open_app(overrides=fixed, environ={})
    if poisoned:
        app.__dict__["data"] = ChangedData(app.data, poisoned_future(MIDDLE))
    result = app.backtest(start=FIRST, end=LAST)
    with sqlite3.connect(state / "chats" / "chats.db") as db:
        rows = db.execute(
            "SELECT subject, role, round, asked FROM calls JOIN requests USING (call_id)"
        )
        asked = {(subject.split("-", 2)[2], role, turn): text for subject, role, turn, text in rows}
    db.close()
    return result, asked


@pytest.fixture(scope="module")
def walks(tmp_path_factory) -> tuple[BacktestResult, Asked, Asked]:
    """A run over the bars as they were, its prompts, and those over a false future."""
    with ChatServer(debater) as server:
        result, asked = backtest(tmp_path_factory.mktemp("true"), server.base_url, poisoned=False)
        _, false = backtest(tmp_path_factory.mktemp("false"), server.base_url, poisoned=True)
    return result, asked, false


def decided(key: tuple[str, str, int]) -> datetime:
    """The opening time of the signal's bar, which is of the session of the decision."""
    return datetime.strptime(key[0].split("-")[0], "%Y%m%dT%H%M").replace(tzinfo=UTC)


def test_no_prompt_names_a_later_day(walks):
    result, asked, _ = walks
    assert len(asked) == result.worth.spend.calls > 0
    for key, text in asked.items():
        days = {date(*map(int, found)) for found in DAY.findall(text)}
        assert days, "the moment of the decision should be told"
        assert max(days) <= session_of(decided(key)), key


def test_another_future_leaves_every_prompt_before_it_as_it_was(walks):
    result, asked, false = walks
    before = {key: text for key, text in asked.items() if decided(key) <= MIDDLE}
    after = {key: text for key, text in asked.items() if decided(key) > MIDDLE}
    assert len({key[0] for key in before}) >= 2, sorted({key[0] for key in asked})
    assert before == {key: text for key, text in false.items() if decided(key) <= MIDDLE}
    assert after
    assert any(false.get(key) != text for key, text in after.items())  # it was another future
    assert result.source.symbols == ("AAPL",)


def test_no_prompt_holds_the_volume_of_a_later_bar(walks):
    """A volume has many digits: unlike a price it is no other number by chance."""
    _, asked, _ = walks
    app = open_app(environ={})
    bars = app.data.bars("AAPL", Timeframe.DAY)
    sessions = [session_of(datetime.fromtimestamp(ns / 1e9, UTC)) for ns in bars.timestamp.tolist()]
    volumes = dict(zip(sessions, (f"{volume:.0f}" for volume in bars.volume), strict=True))
    for key, text in asked.items():
        day = session_of(decided(key))
        assert volumes[day] in text.replace(",", "")
        later = [volume for session, volume in volumes.items() if session > day]
        assert not [volume for volume in later if volume in text.replace(",", "")]
