"""The whole daemon over the embedded market: it walks as single runs do and stops anywhere."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.soak import faults, soak
from tests.trader.app.conftest import opened
from trader.app import App
from trader.app.fitting import first_slot
from trader.app.heartbeat import read, status_of
from trader.app.jobs import PaperWork
from trader.app.logs import LOGGER
from trader.app.metrics import Metrics
from trader.app.paper import PaperTrader
from trader.core.clock import new_york
from trader.core.errors import (
    DataIntegrityError,
    EndpointError,
    LockHeldError,
    StateError,
    UsageError,
)
from trader.core.ports import Approvals
from trader.ledger.store import Ledger
from trader.orders.protection import Protected

CALENDAR = new_york()
START = "market.start=2026-07-24"  # nine sessions to the sample's end, an exit among them
COMMAND = [sys.executable, "-m", "trader", "run", "--paper", "--set", "kernels.backend=reference"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("TRADER_")}


def records(state_dir: Path, *kinds: str) -> list[tuple[str, str, dict]]:
    """Records of these kinds; a job without what it read off the clock of the walk."""
    ledger = Ledger(state_dir / "ledger.db", read_only=True)
    try:
        ledger.verify()
        return [(item.kind, item.record_id, item.body) for item in ledger.records(*kinds)]
    finally:
        ledger.close()


class Heard(logging.Handler):
    """Calls back with every event of the log."""

    def __init__(self, callback: Callable[[str, dict], None]) -> None:
        super().__init__()
        self._callback = callback

    def emit(self, record: logging.LogRecord) -> None:
        self._callback(record.getMessage(), getattr(record, "facts", {}))

    def __enter__(self) -> Heard:
        logging.getLogger(LOGGER).addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger(LOGGER).removeHandler(self)


def scheduled(state_dir: Path, *settings: str) -> App:
    return opened(state_dir, START, "daemon.speed=0", *settings)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The schedule without any interruption."""
    state_dir = tmp_path_factory.mktemp("whole") / "state"
    app = scheduled(state_dir)
    state_dir.mkdir()
    return state_dir, app.follow(log=state_dir / "daemon.log")


TOLD = ("slot", "cycle", "intent", "fill", "reflection", "job")


def test_the_schedule_walks_to_the_end_of_the_bars(whole):
    state_dir, result = whole
    assert (result.ended, result.signal, result.failures) == ("market", 0, 0)
    assert result.simulated
    assert result.ledger_head == opened(state_dir).status().ledger_head
    jobs = [key for _, key, _ in records(state_dir, "job")]
    assert len(jobs) == len(set(jobs)) == 4 * result.slots == 36
    assert jobs[:4] == [
        f"{name}-2026-07-24" for name in ("pre_market", "cycle", "post_close", "reflection")
    ]
    assert {body["outcome"] for _, _, body in records(state_dir, "job")} == {"done"}
    found = status_of(state_dir)
    assert (found.state, found.heartbeat.beat.state) == ("stopped", "ended")
    assert "market_ended" in (state_dir / "daemon.log").read_text()
    assert len(list((state_dir / "backups" / "sessions").iterdir())) == 7  # of nine closes


def test_the_schedule_leaves_the_slots_that_single_runs_leave(whole, tmp_path):
    state_dir, _ = whole
    app = scheduled(tmp_path / "state")
    for _ in range(9):
        app.run_once()
    with pytest.raises(DataIntegrityError, match="the bars of sample end"):
        app.run_once()
    kinds = ("slot", "cycle", "intent", "fill")
    assert records(tmp_path / "state", *kinds) == records(state_dir, *kinds)


@pytest.mark.parametrize(
    "job", ["pre_market-2026-07-27", "cycle-2026-07-27", "post_close-2026-07-28"]
)
def test_a_schedule_that_is_told_to_stop_goes_on_where_it_was(whole, tmp_path, job):
    def stop(event: str, facts: dict) -> None:
        if event == "job" and facts["job"] == job:
            signal.raise_signal(signal.SIGTERM)

    app = scheduled(tmp_path)
    with Heard(stop):
        result = app.follow(quiet=False, log=tmp_path / "daemon.log")
    assert (result.ended, result.signal) == ("signal", signal.SIGTERM)
    assert records(tmp_path, "job")[-1][1] == job
    assert status_of(tmp_path).state == "stopped"
    app.follow(log=tmp_path / "daemon.log")
    assert records(tmp_path, *TOLD) == records(whole[0], *TOLD)


def test_a_schedule_and_single_runs_may_take_turns(whole, tmp_path):
    app = scheduled(tmp_path)
    app.run_once()
    app.run_once()
    app.follow(log=tmp_path / "daemon.log")
    kinds = ("slot", "cycle", "intent", "fill", "reflection")
    assert records(tmp_path, *kinds) == records(whole[0], *kinds)


def test_a_process_that_is_terminated_finishes_its_job_and_the_next_one_goes_on(whole, tmp_path):
    command = [*COMMAND, "--state-dir", str(tmp_path), "--set", START]
    with subprocess.Popen(
        [*command, "--speed", "100000", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as process:
        line = next(line for line in process.stderr if "job=cycle-2026-07-24" in line)
        assert " info " in line
        second = scheduled(tmp_path)
        with pytest.raises(LockHeldError, match=str(process.pid)):
            second.run_once()
        assert status_of(tmp_path).pid == process.pid
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 143
    assert json.loads(out)["ended"] == "signal"
    assert status_of(tmp_path).state == "stopped"
    scheduled(tmp_path).follow(log=tmp_path / "daemon.log")
    kinds = ("slot", "cycle", "intent", "fill", "reflection")
    assert [item[2] for item in records(tmp_path, *kinds) if item[0] == "slot"] == [
        item[2] for item in records(whole[0], *kinds) if item[0] == "slot"
    ]


@pytest.mark.parametrize(("answer", "orders"), [("approved", 1), ("rejected", 0)])
def test_a_go_waits_for_a_person_who_answers_while_the_daemon_runs(tmp_path, answer, orders):
    asked: list[str] = []

    def reply(event: str, facts: dict) -> None:
        if event == "asking" and "cycle" in facts:
            asked.append(facts["cycle"])
        elif event == "asking":  # the slot is left open, and this daemon holds the folder
            with pytest.raises(UsageError, match="does not wait"):
                app.answer_approval("another", approved=True)
            told = app.answer_approval(asked[-1], approved=answer == "approved")
            assert told.answer == answer
        elif event == "job" and facts["job"] == "cycle-2026-07-02":
            signal.raise_signal(signal.SIGTERM)

    app = opened(
        tmp_path,
        "market.start=2026-07-02",
        "daemon.speed=0",
        "debate.approval=true",
        "strategies.enabled=[atr_trend]",
    )
    with Heard(reply):
        app.follow(log=tmp_path / "daemon.log")
    assert len(asked) == 1
    assert [key for _, key, _ in records(tmp_path, "cycle")] == asked
    assert len(records(tmp_path, "intent")) == orders
    assert [key for _, key, _ in records(tmp_path, "job")][-1] == "cycle-2026-07-02"


def test_a_slot_that_waited_is_finished_as_it_was_begun_and_the_next_with_the_settings_of_now(
    tmp_path,
):
    asked: list[str] = []
    known: list[str] = []

    def reply(event: str, facts: dict) -> None:
        if event == "asking" and "cycle" in facts:
            asked.append(facts["cycle"])
        elif event == "asking" and len(asked) == 1:
            signal.raise_signal(signal.SIGTERM)
        elif event == "asking":
            app.answer_approval(asked[-1], approved=True)
        elif event == "job" and facts["job"] == "pre_market-2026-07-06":
            known.append(read(tmp_path).beat.last_cycle)
        elif event == "job" and facts["job"] == "cycle-2026-07-06":
            signal.raise_signal(signal.SIGTERM)

    options = ("market.start=2026-07-02", "daemon.speed=0", "strategies.enabled=[atr_trend]")
    with Heard(reply):
        app = opened(tmp_path, *options, "debate.approval=true")
        app.follow(log=tmp_path / "daemon.log")
        app = opened(tmp_path, *options, "risk.max_position_weight=0.01")
        result = app.follow(log=tmp_path / "daemon.log")
    (one, other) = (key for _, key, _ in records(tmp_path, "run"))
    slots = [key for _, key, _ in records(tmp_path, "slot")]
    assert slots == [f"{one}-20260702T2000", f"{other}-20260706T2000"]
    assert (result.slots, result.cycles, len(records(tmp_path, "intent"))) == (2, 1, 1)
    assert known == ["cycle-2026-07-02"]
    jobs = [body["outcome"] for _, _, body in records(tmp_path, "job")]
    assert set(jobs) == {"done"}


@pytest.mark.parametrize("older", ["exchange.db", "ledger.db"])
def test_files_that_do_not_belong_together_are_refused_as_by_a_single_run(tmp_path, older):
    app = scheduled(tmp_path / "state")
    app.run_once()
    shutil.copytree(tmp_path / "state", tmp_path / "earlier")
    app.run_once()
    app.run_once()
    shutil.copy(tmp_path / "earlier" / older, tmp_path / "state" / older)
    for run in (app.run_once, app.follow):
        with pytest.raises(StateError, match="do not belong together"):
            run()


def test_a_slot_is_left_although_a_persons_wish_finds_no_broker(tmp_path):
    class Away:
        exchange, left = None, ()

        def __init__(self) -> None:
            self.ledger = Ledger(None)
            self.broker = self.controls = self.orders = self.cycle = self
            self.start = CALENDAR.open(date(2026, 7, 1))

        def wishes(self) -> tuple[str, ...]:
            return ("close",)

        def watch(self, as_of) -> None:
            raise EndpointError("away")

        def leave_unseen(self, slot) -> None:
            self.left = (*self.left, slot)

    account = Away()
    app = scheduled(tmp_path)
    trader = PaperTrader(app, account=account, debaters=None, approvals=Approvals())
    slot = first_slot(app)
    with pytest.raises(EndpointError, match="away"):
        trader.run_slot(slot)
    assert account.left == (slot,)


def test_a_trade_without_a_stop_is_told_by_every_look(tmp_path, caplog):
    class Looking:
        simulated = True
        compared = SimpleNamespace(news=SimpleNamespace(problem="the broker holds 6 AAPL"))
        protected = Protected(naked={"one": "not now"}, emergencies={"two": "refused"})

        def watch(self) -> Looking:
            return self

        def look(self) -> None:
            return None

    class Work(PaperWork):
        def _measure(self, found: object) -> None:
            pass

    Work(scheduled(tmp_path), Looking(), Metrics()).watch()
    told = [
        (line.getMessage(), line.facts) for line in caplog.records if line.levelname == "WARNING"
    ]
    assert told == [
        ("problem", {"text": "the broker holds 6 AAPL"}),
        ("unprotected", {"trade": "one", "why": "not now"}),
        ("emergency", {"trade": "two", "why": "refused"}),
    ]


def test_nothing_is_begun_where_nobody_debates(tmp_path):
    with pytest.raises(UsageError, match="never trades without a debate"):
        scheduled(tmp_path / "state", "debate.mode=off").follow()
    assert not (tmp_path / "state").exists()


def test_a_short_soak_leaves_nothing_behind(tmp_path):
    samples, _ = soak(tmp_path, 30)
    assert len(samples) == 30
    assert faults(samples) == []
