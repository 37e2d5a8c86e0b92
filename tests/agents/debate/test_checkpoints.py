"""A debate that is kept while it goes on: resumed where it stopped, small, and never a way in."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import ormsgpack
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

import agents.debate.graph as graph_module
from agents.chat.rules_chat import RulesChat
from agents.debate.checkpoints import Checkpoints
from agents.debate.graph import DebateGraph
from agents.debate.rules import DebateLimits
from tests.agents.facts import NoPast, candidate, evidence
from trader.core.canonical import canonical_json
from trader.core.costs import Costs
from trader.core.decision import Answer, Debate, Decision, FlagCode
from trader.core.errors import ApprovalPendingError, StateError, UsageError
from trader.core.ports import Approvals, ChatReply, ChatRequest


class Crash(BaseException):
    """The process dies here."""


@dataclass
class CountedChat:
    """Rules that count their questions and die at one of them, before or after the answer."""

    dies_at: int | None = None
    dies_before: bool = True
    name: str = "rules"
    asked: list[tuple[str, int]] = field(default_factory=list)

    def complete(self, request: ChatRequest) -> ChatReply:
        last = len(self.asked) + 1 == self.dies_at
        if last and self.dies_before:
            raise Crash
        self.asked.append((request.role, request.round))
        reply = RulesChat().complete(request)
        if last:
            raise Crash
        return reply


def graph(
    chat: CountedChat, checkpoints: Checkpoints | None, approvals=None, rounds: int = 1
) -> DebateGraph:
    return DebateGraph(
        bull=chat,
        bear=chat,
        limits=DebateLimits(),
        costs=Costs(),
        rounds=rounds,
        checkpoints=checkpoints,
        approvals=approvals,
    )


def held(chat: CountedChat, path: Path | None, cycle_id="c1", approvals=None, **facts) -> Debate:
    """A debate in what might be a process of its own."""
    checkpoints = None if path is None else Checkpoints(path)
    try:
        speaking = graph(chat, checkpoints, approvals)
        return speaking.deliberate(candidate(), evidence(**facts), cycle_id, NoPast())
    finally:
        if checkpoints is not None:
            checkpoints.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoints.db"


@pytest.mark.parametrize("dies_at", [1, 2, 3, 4])
@pytest.mark.parametrize("before", [True, False])
def test_a_debate_that_died_goes_on_with_the_speaker_that_was_not_heard(path, dies_at, before):
    expected = held(CountedChat(), None)
    with pytest.raises(Crash):
        held(CountedChat(dies_at, before), path)
    second = CountedChat()
    assert canonical_json(held(second, path)) == canonical_json(expected)
    order = [("bull", 0), ("bear", 0), ("bull", 1), ("bear", 1)]
    assert second.asked == order[dies_at - 1 :]  # what was said is not asked for again


class Fuse:
    """Dies before or after one of the writes to the checkpoints."""

    def __init__(self, dies_at: int | None = None) -> None:
        self.steps, self.dies_at = 0, dies_at

    def __call__(self, write: Callable[..., object]) -> Callable[..., object]:
        def written(*args: object, **options: object) -> object:
            self._step()
            answer = write(*args, **options)
            self._step()
            return answer

        return written

    def _step(self) -> None:
        self.steps += 1
        if self.steps == self.dies_at:
            raise Crash


def lived(path: Path, fuse: Fuse, answer: Answer, *, strangers: bool, rounds: int = 1) -> Debate:
    """A debate with all that may follow it, in one process: hearing, request, answer."""
    checkpoints = Checkpoints(path)
    saver = checkpoints.saver
    saver.put, saver.put_writes = fuse(saver.put), fuse(saver.put_writes)  # type: ignore[method-assign]
    facts = evidence()
    if strangers:
        news = replace(facts[-1], evidence_id="E99", name="news_1", kind="news", value=None)
        facts = [*facts, replace(news, text="The maker of phones is said to do well.")]

    def hold(approvals: Approvals) -> Debate:
        speaking = graph(CountedChat(), checkpoints, approvals, rounds)
        return speaking.deliberate(candidate(), facts, "c1", NoPast())

    try:
        try:
            return hold(Approvals(unanswered="waits"))
        except ApprovalPendingError:
            return hold(Approvals(answers={"c1": answer}))
    finally:
        checkpoints.close()


@pytest.mark.parametrize(("answer", "strangers"), [("approved", False), ("rejected", True)])
def test_dying_at_any_write_leaves_out_no_hearing_and_no_answer(tmp_path, answer, strangers):
    calm = Fuse()
    expected = lived(tmp_path / "calm.db", calm, answer, strangers=strangers)
    assert (expected.hearing is not None, expected.approval) == (strangers, answer)
    assert calm.steps >= 30
    for dies_at in range(1, calm.steps + 1):
        path = tmp_path / f"{dies_at}.db"
        with pytest.raises(Crash):
            lived(path, Fuse(dies_at), answer, strangers=strangers)
        again = lived(path, Fuse(), answer, strangers=strangers)
        assert canonical_json(again) == canonical_json(expected), f"died at write {dies_at}"


def test_a_finished_debate_is_not_held_again(path):
    first = held(CountedChat(), path)
    silent = CountedChat()
    assert held(silent, path) == first
    assert silent.asked == []


def test_a_kept_debate_about_other_facts_is_begun_again(path):
    with pytest.raises(Crash):
        held(CountedChat(3), path)
    fresh = CountedChat()
    debate = held(fresh, path, high=102.0)
    assert len(fresh.asked) == 4
    assert canonical_json(debate) == canonical_json(held(CountedChat(), None, high=102.0))


def test_two_debates_do_not_mix(path):
    one, two = held(CountedChat(), path, "c1"), held(CountedChat(), path, "c2")
    assert one.arguments == two.arguments
    assert one.verdict.verdict_id != two.verdict.verdict_id


def test_a_go_waits_for_a_person_and_each_answer_leads_where_it_says(tmp_path):
    for answer, decision, flags in (
        ("approved", Decision.GO, set()),
        ("rejected", Decision.NO_GO, {FlagCode.NOT_APPROVED}),
        ("expired", Decision.NO_GO, {FlagCode.APPROVAL_EXPIRED}),
    ):
        path = tmp_path / f"{answer}.db"
        with pytest.raises(ApprovalPendingError) as asked:
            held(CountedChat(), path, approvals=Approvals())
        (request,) = asked.value.requests
        assert (request.cycle_id, request.symbol, request.target_price) == ("c1", "AAPL", 110.0)
        waiting = Approvals(answers={"another": "approved"}, unanswered="waits")
        with pytest.raises(ApprovalPendingError):
            held(CountedChat(), path, approvals=waiting)
        answers = Approvals() if answer == "expired" else Approvals(answers={"c1": answer})
        silent = CountedChat()
        debate = held(silent, path, approvals=answers)
        assert (debate.verdict.decision, debate.approval) == (decision, answer)
        assert {flag.code for flag in debate.verdict.flags} == flags
        assert silent.asked == []
        assert held(CountedChat(), path, approvals=Approvals()) == debate  # the answer stands


def test_an_answer_stands_whatever_is_said_afterwards(path):
    with pytest.raises(ApprovalPendingError):
        held(CountedChat(), path, approvals=Approvals())
    held(CountedChat(), path, approvals=Approvals(answers={"c1": "rejected"}))
    with pytest.raises(UsageError, match="cannot be approved any more: it is rejected"):
        held(CountedChat(), path, approvals=Approvals(answers={"c1": "approved"}))


def test_a_no_go_asks_nobody(path):
    debate = held(CountedChat(), path, approvals=Approvals(), close=None)
    assert (debate.verdict.decision, debate.approval) == (Decision.NO_GO, None)


@pytest.mark.parametrize("rounds", [0, 5])
def test_as_many_rounds_as_may_be_asked_for_leave_room_for_hearing_and_approval(
    path, monkeypatch, rounds
):
    monkeypatch.setattr(graph_module, "_brought_news", lambda _: True)  # no round ends it early
    debate = lived(path, Fuse(), "approved", strangers=True, rounds=rounds)
    assert debate.verdict.decision is Decision.GO
    assert debate.hearing is not None
    assert len(debate.arguments) == len(debate.hearing.arguments) == rounds + 1


def test_an_answer_that_is_none_is_refused(path):
    with pytest.raises(ApprovalPendingError):
        held(CountedChat(), path, approvals=Approvals())
    with pytest.raises(ValueError, match="no answer"):
        held(CountedChat(), path, approvals=Approvals(answers={"c1": "yes"}))


def test_two_hundred_debates_stay_small(path):
    checkpoints = Checkpoints(path)
    speaking, facts = graph(CountedChat(), checkpoints), evidence()
    for number in range(200):
        speaking.deliberate(candidate(), facts, f"c{number}", NoPast())
    checkpoints.close()
    size = sum(file.stat().st_size for file in path.parent.iterdir())
    assert size < 20_000_000, size


def test_a_forgotten_debate_leaves_no_row(path):
    held(CountedChat(), path, "c1")
    held(CountedChat(), path, "c2")
    checkpoints = Checkpoints(path)
    checkpoints.forget(["c1", "unknown"])
    checkpoints.close()
    with sqlite3.connect(path) as db:
        rows = db.execute("SELECT DISTINCT thread_id FROM checkpoints").fetchall()
    assert rows == [("c2",)]


def test_the_file_is_its_owners_alone(path):
    held(CountedChat(), path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_file_that_is_no_database_is_one_plain_error(path):
    path.write_bytes(b"not a database at all, not at all" * 100)
    with pytest.raises(StateError, match="cannot be used"):
        Checkpoints(path)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE checkpoints SET checkpoint = x'c1ff00'",
        "UPDATE checkpoints SET type = 'unknown'",
        "UPDATE checkpoints SET checkpoint = x'a161'",
        "ALTER TABLE writes RENAME COLUMN task_id TO other",
    ],
)
def test_a_broken_row_is_one_plain_error(path, change):
    with pytest.raises(Crash):
        held(CountedChat(3), path)
    with sqlite3.connect(path) as db:
        db.execute(change)
    with pytest.raises(StateError, match=r"checkpoints\.db cannot be used: .*move it away"):
        held(CountedChat(), path)


def test_a_row_without_its_subject_is_begun_again(path):
    with pytest.raises(Crash):
        held(CountedChat(3), path)
    with sqlite3.connect(path) as db:
        for rowid, blob in db.execute("SELECT rowid, checkpoint FROM checkpoints").fetchall():
            state = ormsgpack.unpackb(blob)
            state["channel_values"].pop("subject", None)
            packed = ormsgpack.packb(state)
            db.execute("UPDATE checkpoints SET checkpoint = ? WHERE rowid = ?", (packed, rowid))
    fresh = CountedChat()
    held(fresh, path)
    assert len(fresh.asked) == 4


def test_everything_kept_can_be_dropped(path):
    held(CountedChat(), path, "c1")
    checkpoints = Checkpoints(path)
    checkpoints.forget_all()
    checkpoints.close()
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM checkpoints").fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM writes").fetchone() == (0,)


CONSTRUCTORS = range(6)  # LangGraph's codes for calling what a record names


@pytest.mark.parametrize("code", CONSTRUCTORS)
@pytest.mark.parametrize("strict", ["true", "false"])
def test_a_crafted_row_runs_nothing(path, tmp_path, code, strict):
    marker = tmp_path / "ran"
    with pytest.raises(Crash):
        held(CountedChat(3), path)
    script = f"""
import ormsgpack, sqlite3, sys
from pathlib import Path
from tests.agents.debate.test_checkpoints import CountedChat, held
from trader.core.errors import StateError
order = "touch {marker}"
call = ("os", "system", (order,), {{}})
shapes = {{0: ("os", "system", order), 1: ("os", "system", [order]), 4: call, 5: call,
          2: ("os", "system", {{"command": order}}), 3: ("os", "system", order, "call")}}
evil = ormsgpack.Ext({code}, ormsgpack.packb(shapes[{code}]))
db = sqlite3.connect({str(path)!r})
for rowid, kind, blob in db.execute("SELECT rowid, type, checkpoint FROM checkpoints").fetchall():
    state = ormsgpack.unpackb(blob, ext_hook=lambda code, data: None)
    state["channel_values"]["arguments"] = evil
    packed = ormsgpack.packb(state)
    db.execute("UPDATE checkpoints SET checkpoint = ? WHERE rowid = ?", (packed, rowid))
db.commit(); db.close()
try:
    held(CountedChat(), Path({str(path)!r}))
except StateError:
    pass  # rows that nobody can make sense of are refused; anything else fails here
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "LANGGRAPH_STRICT_MSGPACK": strict, "PYTHONPATH": str(Path.cwd())},
    )
    assert done.returncode == 0, done.stderr
    assert not marker.exists()


def test_the_marker_would_appear_if_the_serialiser_were_permissive(tmp_path):
    marker = tmp_path / "ran"
    script = f"""
import ormsgpack
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
evil = ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(("os", "system", "touch {marker}"))))
JsonPlusSerializer().loads_typed(("msgpack", evil))
"""
    env = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": "false"}
    subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, env=env)
    assert marker.exists(), "the crafted record is no attack any more: craft another"


def test_the_strict_switch_is_on_before_langgraph_is_imported():
    script = (
        "import agents.debate.graph, os\n"
        "from langgraph.checkpoint.serde import _msgpack\n"
        "print(os.environ['LANGGRAPH_STRICT_MSGPACK'], _msgpack.STRICT_MSGPACK_ENABLED)"
    )
    env = {key: value for key, value in os.environ.items() if "LANGGRAPH" not in key}
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, env=env
    )
    assert done.stdout.split() == ["true", "True"]


def test_what_is_kept_comes_back_as_it_was():
    serde = JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=())
    value = {"a": [1, 2.5, "x", None, True], "b": {"c": []}}
    assert serde.loads_typed(serde.dumps_typed(value)) == value
