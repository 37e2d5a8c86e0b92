"""GOs that wait for a person: whatever happens meanwhile, the order is the one that was shown."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.trader.app.conftest import opened
from trader.app import App, assembly
from trader.app.paper import PaperTrader
from trader.core.decision import Decision, FlagCode
from trader.core.errors import UsageError
from trader.ledger.store import Ledger

# on 2025-02-14 the trend strategy fires in both, and the debate of rules ends in GO for both
OPTIONS = ("symbols=AAPL,NVDA", "strategies.enabled=atr_trend", "market.start=2025-02-13")


class Crash(BaseException):
    """The process dies here."""


def asked(state: Path, *options: str) -> tuple[App, list[str]]:
    """An account at a slot with two GOs, and their cycle ids."""
    app = opened(state, *OPTIONS, "debate.approval=true", *options)
    app.run_once()
    result = app.run_once()
    assert (result.slot, result.cycles, result.orders) == (None, (), ())
    return app, [request.cycle_id for request in result.awaiting]


def kept(state: Path) -> int:
    with sqlite3.connect(state / "checkpoints.db") as db:
        rows = db.execute(
            "SELECT thread_id FROM checkpoints UNION ALL SELECT thread_id FROM writes"
        )
        return len(rows.fetchall())


def advance(control: str, to: str) -> None:
    body = json.dumps({"to": f"{to}T21:00:00Z"}).encode()
    with urlopen(Request(f"{control}/advance", data=body), timeout=60) as answer:
        answer.read()


def records(state: Path, kind: str) -> list[str]:
    ledger = Ledger(state / "ledger.db", read_only=True)
    try:
        assert ledger.verify()
        return [record.record_id for record in ledger.records(kind)]
    finally:
        ledger.close()


def test_of_two_that_wait_one_is_approved_and_the_other_rejected(tmp_path):
    app, (one, two) = asked(tmp_path)
    between = app.answer_approval(one, approved=True)
    assert between.slot is None
    assert [request.cycle_id for request in between.awaiting] == [two]
    (notice,) = app.status().notices
    assert two in notice
    assert one not in notice
    with pytest.raises(UsageError, match=f"{one} does not wait"):
        app.answer_approval(one, approved=False)
    done = app.answer_approval(two, approved=False)
    assert done.notices == ()
    decided = {cycle.cycle_id: cycle for cycle in done.cycles}
    assert decided[one].debate.verdict.decision is Decision.GO
    assert [flag.code for flag in decided[two].debate.verdict.flags] == [FlagCode.NOT_APPROVED]
    assert [order.symbol for order in done.orders] == [decided[one].symbol]
    assert kept(tmp_path) == 0
    assert all(app.replay(cycle_id).reproduced for cycle_id in decided)
    assert "a person answered: approved" in [line.text for line in app.journal(20).lines]


def test_of_two_that_wait_one_is_approved_and_only_the_other_expires(tmp_path):
    app, (one, two) = asked(tmp_path)
    app.answer_approval(one, approved=True)
    done = opened(tmp_path, *OPTIONS).run_once()
    assert {cycle.cycle_id: cycle.debate.approval for cycle in done.cycles} == {
        one: "approved",
        two: "expired",
    }
    assert done.notices == (f"nobody approved {two} in time: NO_GO",)
    assert len(done.orders) == 1


def test_another_program_orders_what_was_approved_and_holds_no_other_debate(tmp_path, monkeypatch):
    app, (one, two) = asked(tmp_path)
    runs = records(tmp_path, "run")
    monkeypatch.setattr(assembly, "code_sha256", lambda: "0" * 64)
    app.answer_approval(one, approved=True)
    done = app.answer_approval(two, approved=True)
    assert {cycle.cycle_id for cycle in done.cycles} == {one, two}
    assert len(done.orders) == 2
    assert records(tmp_path, "run") == runs
    app.run_once()  # and the next slot belongs to the program of now
    assert len(records(tmp_path, "run")) == 2


def test_what_no_person_was_shown_does_not_expire(tmp_path, monkeypatch):
    def die(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(PaperTrader, "_record_asked", die)
        with pytest.raises(Crash):
            asked(tmp_path)
    app = opened(tmp_path, *OPTIONS, "debate.approval=true")
    shown = app.run_once()
    assert (shown.cycles, len(shown.awaiting)) == ((), 2)
    late = app.run_once()
    assert {cycle.debate.approval for cycle in late.cycles} == {"expired"}


def test_an_answer_that_was_not_told_any_more_stands(tmp_path, monkeypatch):
    """The run dies after the debate took the answer, before the ledger has it."""

    def die(*_: object) -> None:
        raise Crash

    app, (one, two) = asked(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(PaperTrader, "_record_asked", die)
        with pytest.raises(Crash):
            app.answer_approval(one, approved=True)
    with pytest.raises(UsageError, match="cannot be rejected any more: it is approved"):
        app.answer_approval(one, approved=False)
    app.answer_approval(one, approved=True)
    done = app.answer_approval(two, approved=False)
    assert {cycle.cycle_id: cycle.debate.approval for cycle in done.cycles} == {
        one: "approved",
        two: "rejected",
    }


def test_a_market_that_begins_again_waits_for_nobody(tmp_path):
    app, (one, _) = asked(tmp_path)
    begun = app.run_once(restart_market=True)
    assert begun.awaiting == ()
    assert begun.slot is not None
    with pytest.raises(UsageError, match="nothing waits"):
        app.answer_approval(one, approved=True)
    assert kept(tmp_path) == 0


def test_what_waited_at_a_broker_whose_time_went_on_is_over_and_the_next_slot_is_of_now(tmp_path):
    options = ("symbols=NVDA", "strategies.enabled=atr_trend", "market.start=2025-01-03")
    market = opened(tmp_path / "market", *options)
    with market.serve_exchange() as exchange:
        options += ("broker.name=alpaca", f"broker.base_url={exchange.rest}")
        app = opened(tmp_path / "state", *options, "debate.approval=true")
        advance(exchange.control, "2025-01-03")
        (request,) = app.run_once().awaiting
        (notice,) = app.status().notices
        assert request.cycle_id in notice
        advance(exchange.control, "2025-01-22")
        assert app.status().notices == ()
        with pytest.raises(UsageError, match="nothing waits"):
            app.answer_approval(request.cycle_id, approved=True)
        now = opened(tmp_path / "state", *options)  # nobody is asked any more
        (cycle,) = now.run_once().cycles
    assert cycle.debate.verdict.decision is Decision.GO
    assert cycle.debate.approval != "expired"
    assert len(records(tmp_path / "state", "run")) == 2


def test_a_command_about_an_account_at_a_broker_need_not_name_its_broker_and_bars(tmp_path):
    market = opened(tmp_path / "market", "symbols=NVDA", "market.start=2025-01-03")
    with market.serve_exchange() as exchange:
        mine = (f"broker.base_url={exchange.rest}",)
        named = ("broker.name=alpaca", "symbols=NVDA", "strategies.enabled=atr_trend")
        named += ("debate.approval=true", "data.seed=8", "market.start=2025-01-03")
        app = opened(tmp_path / "state", *mine, *named)
        other = opened(tmp_path / "state", *mine)  # as `trader approve` and `trader close` see it
        advance(exchange.control, "2025-01-03")
        (request,) = app.run_once().awaiting
        done = other.answer_approval(request.cycle_id, approved=True)
        assert [cycle.debate.approval for cycle in done.cycles] == ["approved"]
        assert other.control("halt", reason="enough").notices == ()
        (entry,) = other.orders().orders
    assert all(order.status.is_final for order in entry.order.with_legs())


def test_a_finished_slot_leaves_no_checkpoint_of_whatever_run(tmp_path, monkeypatch):
    def die(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(PaperTrader, "_record_asked", die)
        with pytest.raises(Crash):
            asked(tmp_path)
    assert kept(tmp_path) > 0
    done = opened(tmp_path, *OPTIONS).run_once()  # other settings, so other cycles
    assert done.slot is not None
    assert kept(tmp_path) == 0


def test_a_decision_is_replayed_with_the_settings_of_its_own_run(tmp_path):
    """An account may go from one configuration to another, and back."""
    options = ("symbols=AAPL,NVDA", "market.start=2025-02-07")
    mine = opened(tmp_path, *options)
    other = opened(tmp_path, *options, "debate.minimum_confidence=0.99", "risk.atr_multiple=3")
    mine.run_once()
    walked = [other.run_once(), *(mine.run_once() for _ in range(4))]
    decided = [[cycle.cycle_id for cycle in result.cycles] for result in walked]
    assert [len(found) for found in decided] == [1, 0, 0, 0, 2]
    for cycle_id in (decided[0][0], *decided[-1]):
        replayed = mine.replay(cycle_id)
        assert replayed.reproduced, replayed.comparisons
