"""The recordings: append-only, exact, private, shared by threads, and honest about damage."""

from __future__ import annotations

import os
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.chat.calls import REPLY, Outcome, asked_json, call_id
from agents.chat.store import Amount, ChatStore
from tests.agents.chat.scripted import PROMPT, SPEC, usage
from trader.core.decision import ChatCall
from trader.core.errors import RecordingError, StateError
from trader.core.ports import Usage

ID = call_id(SPEC, PROMPT)


def reply(text: str, used: Usage | None = None) -> Outcome:
    return Outcome(kind=REPLY, text=text, usage=used)


def keep(store: ChatStore, outcome: Outcome, *, subject: str = "run-AAPL-1") -> ChatCall:
    call = ChatCall(
        role="bull",
        round=0,
        model=SPEC.model,
        prompt=PROMPT.version,
        call_id=ID,
        reply_sha256=outcome.sha256,
    )
    store.record(
        call, outcome, asked=asked_json(SPEC, PROMPT), base_url=SPEC.base_url, subject=subject
    )
    return call


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "chats" / "chats.db"


def damage(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as db:
        for name in ("calls_never_change", "calls_never_go", "requests_never_change"):
            db.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            db.execute(statement)
    db.close()


def test_an_outcome_comes_back_exactly_after_closing(path):
    kept = reply('{"thesis": "up"}', usage(1_200, 300, cost="0.000360"))
    store = ChatStore(path)
    keep(store, kept)
    store.close()
    again = ChatStore(path, read_only=True)
    assert again.outcome(ID) == kept
    assert again.outcome(ID, kept.sha256) == kept
    assert again.asked(ID) == asked_json(SPEC, PROMPT)
    assert again.outcome("0" * 64) is None
    assert again.asked("0" * 64) is None
    assert again.outcome(ID, "0" * 64) is None


@given(text=st.text(st.characters(exclude_categories=())), counted=st.booleans())
def test_any_text_survives_halves_of_surrogate_pairs_and_nulls_included(text, counted):
    store = ChatStore(None)
    kept = reply(text, usage(1, 2) if counted else None)
    keep(store, kept)
    assert store.outcome(ID) == kept


def test_adjacent_halves_of_a_pair_do_not_merge():
    store = ChatStore(None)
    keep(store, reply("\ud83d" + "\ude00"))
    found = store.outcome(ID)
    assert found is not None
    assert len(found.text) == 2


def test_the_newest_outcome_answers_and_the_older_ones_stay(path):
    store = ChatStore(path)
    first, second = reply("first"), Outcome(kind="TimedOutError", text="too slow", usage=None)
    for outcome in (first, first, second, second, first):
        keep(store, outcome)
    assert store.outcome(ID) == first
    assert store.outcome(ID, second.sha256) == second
    with sqlite3.connect(path) as db:
        kinds = [row[0] for row in db.execute("SELECT outcome FROM calls ORDER BY seq")]
        assert kinds == ["reply", "TimedOutError", "reply"]  # repetitions are kept once
        assert db.execute("SELECT count(*) FROM requests").fetchone() == (1,)
    db.close()


def test_a_reply_in_the_words_of_a_failure_is_not_that_failure():
    words = "the endpoint did not answer in 60 s"
    failed = Outcome(kind="TimedOutError", text=words, usage=None)
    assert reply(words).sha256 != failed.sha256
    store = ChatStore(None)
    keep(store, failed)
    keep(store, reply(words))
    assert store.outcome(ID, failed.sha256) == failed
    assert store.outcome(ID, reply(words).sha256) == reply(words)


def test_the_nearest_call_is_one_about_the_same_decision(path):
    store = ChatStore(path)
    keep(store, reply("a"), subject="run-AAPL-1")
    keep(store, reply("b"), subject="run-MSFT-1")
    assert store.nearest("bull", 0, "run-AAPL-1") == ("run-AAPL-1", ID)
    assert store.nearest("bull", 0, "run-TSLA-1") == ("run-MSFT-1", ID)
    assert store.nearest("bull", 1, "run-AAPL-1") is None
    assert store.nearest("bear", 0, "run-AAPL-1") is None


def test_file_and_folder_are_for_their_owner_only(path):
    before = os.umask(0)
    try:
        keep(ChatStore(path), reply("a"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [file.name for file in path.parent.iterdir()] == ["chats.db"]  # the whole recording


def test_rows_are_neither_changed_nor_deleted(path):
    store = ChatStore(path)
    keep(store, reply("a"))
    db = sqlite3.connect(path)
    for statement in (
        "UPDATE calls SET text = 'b'",
        "DELETE FROM calls",
        "UPDATE requests SET asked = 'b'",
        "DELETE FROM requests",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="recordings are never"):
            db.execute(statement)
    db.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE calls SET text = CAST('bought' AS BLOB)",
        "UPDATE calls SET text = 'a'",  # not even as another type
        "UPDATE calls SET text = x'ff'",
        "UPDATE calls SET outcome = 'TimedOutError'",
        "UPDATE calls SET cost = 'much'",
    ],
)
def test_a_changed_row_is_found_out(path, statement):
    store = ChatStore(path)
    keep(store, reply("a", usage(1, 1)))
    damage(path, statement)
    with pytest.raises(StateError, match=f"call {ID[:12]} .* does not fit its hash") as caught:
        store.outcome(ID)
    assert "\n" not in str(caught.value)


def test_a_changed_request_is_found_out(path):
    store = ChatStore(path)
    keep(store, reply("a"))
    damage(path, "UPDATE requests SET asked = replace(asked, 'bull', 'bear')")
    with pytest.raises(StateError, match="does not fit its hash"):
        store.asked(ID)


def test_what_is_no_database_is_refused_in_one_line(path):
    path.parent.mkdir(parents=True)
    path.write_text("a diary, not a database\n" * 100)
    for read_only in (False, True):
        with pytest.raises(StateError, match=r"chats\.db cannot be used: file is not a database"):
            ChatStore(path, read_only=read_only)
    assert path.read_text().startswith("a diary")


def test_another_program_s_database_is_refused_and_left_alone(path):
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE recipes (name)")
    db.close()
    for read_only in (False, True):
        with pytest.raises(StateError, match="holds no recordings of model calls"):
            ChatStore(path, read_only=read_only)
    with sqlite3.connect(path) as db:
        assert [row[0] for row in db.execute("SELECT name FROM sqlite_schema")] == ["recipes"]
    db.close()


def test_recordings_of_a_newer_program_are_refused(path):
    ChatStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    for read_only in (False, True):
        with pytest.raises(StateError, match="have version 99, this program knows 1: update it"):
            ChatStore(path, read_only=read_only)


def test_a_truncated_file_is_a_state_error(path):
    store = ChatStore(path)
    for number in range(50):
        keep(store, reply(f"{number} " * 1_000))
    store.close()
    path.write_bytes(path.read_bytes()[:8_192])
    with pytest.raises(StateError, match="cannot be used"):
        ChatStore(path, read_only=True).outcome(ID)


def test_reading_what_was_never_recorded_says_how_to_record(path):
    with pytest.raises(RecordingError, match=r"there are no recordings at .*recording: write"):
        ChatStore(path, read_only=True)
    assert not path.parent.exists()


def test_a_read_only_store_writes_nothing(path):
    ChatStore(path).close()
    store = ChatStore(path, read_only=True)
    with pytest.raises(StateError, match="readonly"):
        keep(store, reply("a"))
    with pytest.raises(StateError, match="readonly"):
        store.spend("2026-03-02", lambda spent: spent)


def test_threads_share_one_store(path):
    store = ChatStore(path)

    def work(number: int) -> None:
        keep(store, reply(f"{number}"))
        store.spend("2026-03-02", lambda spent: spent + Amount(input_tokens=number))
        assert store.outcome(ID) is not None

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(32)))
    assert store.spent("2026-03-02").input_tokens == sum(range(32))
    assert all(store.outcome(ID, reply(f"{number}").sha256) for number in range(32))


def test_spending_is_kept_by_day_and_exactly(path):
    store = ChatStore(path)
    tenth = Amount(input_tokens=3, output_tokens=2, cost=Decimal("0.1"))
    for _ in range(3):
        store.spend("2026-03-02", lambda spent: spent + tenth)
    store.close()
    again = ChatStore(path)
    assert again.spent("2026-03-02") == Amount(input_tokens=9, output_tokens=6, cost=Decimal("0.3"))
    assert again.spent("2026-03-03") == Amount()


def test_an_error_inside_leaves_the_day_as_it_was():
    store = ChatStore(None)
    store.spend("2026-03-02", lambda spent: spent + Amount(input_tokens=5))

    def refuse(spent: Amount) -> Amount:
        raise KeyError(spent.tokens)

    with pytest.raises(KeyError):
        store.spend("2026-03-02", refuse)
    assert store.spent("2026-03-02").tokens == 5
    store.spend("2026-03-02", lambda spent: spent + Amount(input_tokens=1))  # no lock is left
    assert store.spent("2026-03-02").tokens == 6


def test_nobody_looks_at_the_day_while_another_decides(path, monkeypatch):
    monkeypatch.setattr("agents.chat.store.PATIENCE_MILLISECONDS", 0)
    first, second = ChatStore(path), ChatStore(path)
    seen = []

    def meanwhile(spent: Amount) -> Amount:
        with pytest.raises(StateError, match="database is locked"):
            second.spend("2026-03-02", lambda found: seen.append(found) or found)
        return spent + Amount(input_tokens=5)

    first.spend("2026-03-02", meanwhile)
    assert seen == []
    assert second.spent("2026-03-02").tokens == 5


def test_broken_spending_is_a_state_error(path):
    store = ChatStore(path)
    store.spend("2026-03-02", lambda spent: spent + Amount(input_tokens=5))
    with sqlite3.connect(path) as db:
        db.execute("UPDATE spending SET cost = 'much'")
    db.close()
    with pytest.raises(StateError, match=r"the spending of 2026-03-02 .* is broken"):
        store.spent("2026-03-02")
