"""The operator's hand: a person forbids, leaves and cancels by command, and never enters."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from tests.trader.app.conftest import opened
from trader.app.folder import locked
from trader.app.viewing import CUT_SHORT
from trader.cli import main as front
from trader.core.trading import Side
from trader.ledger.controls import Controls
from trader.ledger.store import Ledger
from trader.orders.manager import OrderManager


@pytest.fixture(scope="module")
def walks(tmp_path_factory):
    """State folders after one slot (quiet), two (an entry waits) and three (it was filled)."""
    folder = tmp_path_factory.mktemp("walks")
    app = opened(folder / "now")
    for number in (1, 2, 3):
        app.run_once()
        shutil.copytree(folder / "now", folder / f"{number}")
    return folder


@pytest.fixture
def after(walks, tmp_path):
    """A copy of the state folder after so many slots."""

    def copied(slots: int):
        shutil.copytree(walks / f"{slots}", tmp_path / "state")
        return tmp_path / "state"

    return copied


@pytest.fixture
def trader(monkeypatch, capsys):
    """Run a command line; its exit code, its JSON object, and what it said on stderr."""

    def run(state, *words: str):
        options = ["--json", "--state-dir", str(state), "--set", "kernels.backend=reference"]
        monkeypatch.setattr(sys, "argv", ["trader", *words, *options])
        with pytest.raises(SystemExit) as ended:
            front.main()
        said = capsys.readouterr()
        return ended.value.code or 0, json.loads(said.out), said.err

    return run


def records(state, kind: str) -> list:
    ledger = Ledger(state / "ledger.db", read_only=True)
    try:
        return [record.body for record in ledger.records(kind)]
    finally:
        ledger.close()


def buys(state) -> int:
    return sum(body["intent"]["side"] == "buy" for body in records(state, "intent"))


def open_orders(state) -> list:
    lines = opened(state).orders().orders
    return [leg for line in lines for leg in line.order.with_legs() if not leg.status.is_final]


@pytest.mark.parametrize(
    "words",
    [
        ("halt",),
        ("resume", "--reason", "x"),
        ("pause",),
        ("unpause", "--reason", "x"),
        ("close", "AAPL"),
        ("close", "all"),
        ("cancel", "tr-1"),
        ("acknowledge", "--reason", "x"),
    ],
)
def test_without_an_account_there_is_nothing_to_order(trader, tmp_path, words):
    code, body, _ = trader(tmp_path / "state", *words)
    assert code == 2
    assert "no paper account" in body["errors"][0]
    assert not (tmp_path / "state" / "ledger.db").exists()


@pytest.mark.parametrize("words", [("resume",), ("unpause",), ("acknowledge",)])
def test_what_allows_again_wants_a_reason(monkeypatch, capsys, after, words):
    state = after(1)
    monkeypatch.setattr(sys, "argv", ["trader", *words, "--state-dir", str(state)])
    with pytest.raises(SystemExit) as ended:
        front.main()
    assert ended.value.code == 2
    assert "--reason" in capsys.readouterr().err
    assert records(state, "control") == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("pause", "NOPE"), "NOPE is neither traded nor held; there are AAPL"),
        (("unpause", "NOPE", "--reason", "x"), "NOPE is neither traded nor held"),
        (("unpause", "--reason", "x"), "not paused"),
        (("resume", "--reason", "x"), "not halted"),
        (("acknowledge", "--reason", "x"), "not frozen"),
        (("close", "TSLA"), "TSLA is neither held nor ordered"),
        (("close", "all"), "nothing is held or ordered"),
        (("close", "ALL"), "ALL is neither held nor ordered"),
        (("cancel", "tr-nothing"), "there is no order tr-nothing"),
        (("halt", "--reason", " "), "--reason"),
        (("halt", "--reason", "x" * 501), "--reason"),
        (("pause", "--until", "2026-06-30"), "not later"),
    ],
)
def test_what_does_not_exist_is_refused_by_its_name(trader, after, words, complaint):
    state = after(1)
    code, body, _ = trader(state, *words)
    assert (code, complaint in body["errors"][0]) == (2, True), body["errors"]
    assert records(state, "control") == []


def test_a_halt_cancels_the_entry_that_waits_and_refuses_the_next(trader, after):
    state = after(2)
    assert next(order.side for order in open_orders(state)) is Side.BUY
    code, body, _ = trader(state, "halt", "--reason", "looking at something")
    assert code == 0
    assert body["control"]["reason"] == "looking at something"
    assert open_orders(state) == []
    code, status, _ = trader(state, "status")
    assert [control["action"] for control in status["controls"]] == ["halt"]
    code, body, _ = trader(state, "resume", "--reason", "it was nothing")
    assert code == 0
    assert trader(state, "status")[1]["controls"] == []


def test_a_halt_cancels_the_entry_that_waits_although_no_model_can_be_asked(trader, after):
    state = after(2)
    model = ("--set", "debate.mode=llm", "--set", "models.model=any")
    code, _, said = trader(state, "halt", "--reason", "enough", *model)
    assert (code, open_orders(state)) == (0, [])
    assert "the next run carries it out" not in said


def test_a_look_at_an_account_that_is_at_work_finds_nothing_cut_short(walks, after):
    state = after(2)
    shutil.copy(walks / "3" / "exchange.db", state / "exchange.db")  # a slot is half done
    app = opened(state)
    assert app.status().notices == (CUT_SHORT,)
    with locked(state):
        assert app.status().notices == ()


def test_a_pause_leaves_the_entry_that_waits_and_ends_on_its_day(trader, after):
    state = after(2)
    code, body, _ = trader(state, "pause", "aapl", "--until", "2026-07-08")
    assert (code, body["control"]["target"]) == (0, "AAPL")
    assert body["control"]["until"] == "2026-07-08T13:30:00Z"
    assert open_orders(state) != []
    assert len(trader(state, "status")[1]["controls"]) == 1
    assert trader(state, "unpause", "AAPL", "--reason", "no")[0] == 0
    assert trader(state, "status")[1]["controls"] == []


@pytest.mark.parametrize("what", ["AAPL", "all"])
def test_closing_sells_at_the_next_open_and_buys_nothing(trader, after, what):
    state = after(3)
    before = buys(state)
    held = opened(state).positions().positions[0]
    code, body, _ = trader(state, "close", what, "--reason", "enough")
    assert (code, body["control"]["action"]) == (0, "close")
    assert body["words"] == f"close {what}, by a person: enough"
    assert body["outcome"].startswith("to be sold: AAPL")
    assert [(o.side, o.quantity) for o in open_orders(state)] == [(Side.SELL, held.quantity)]
    assert trader(state, "status")[1]["wishes"] == []
    opened(state).run_once()
    assert opened(state).positions().positions == ()
    assert buys(state) == before
    assert opened(state).status().records == Ledger(state / "ledger.db", read_only=True).verify()


def test_closing_what_is_only_ordered_cancels_the_order(trader, after):
    state = after(2)
    code, body, _ = trader(state, "close", "AAPL")
    assert (code, open_orders(state)) == (0, [])
    assert "nothing to sell" in body["outcome"]


def test_an_entry_is_canceled_by_either_id_and_its_stop_is_not(trader, after):
    state = after(2)
    entry = open_orders(state)[0]
    stop = next(leg for leg in open_orders(state) if leg.stop_price is not None)
    code, body, _ = trader(state, "cancel", stop.order_id)
    assert code == 2
    assert "protects AAPL" in body["errors"][0]
    code, body, _ = trader(state, "cancel", entry.client_order_id)
    assert code == 0
    assert "canceled" in body["outcome"]
    assert open_orders(state) == []
    code, body, _ = trader(state, "cancel", entry.order_id)
    assert code == 2
    assert "final already" in body["errors"][0]


def test_a_running_daemon_is_spoken_to_through_the_ledger(trader, after):
    state = after(3)
    with locked(state):
        code, body, _ = trader(state, "close", "AAPL", "--reason", "enough")
        assert (code, body["outcome"]) == (0, "")
        assert "the run that holds the state folder carries it out" in body["notices"][0]
        assert [wish["target"] for wish in trader(state, "status")[1]["wishes"]] == ["AAPL"]
        assert trader(state, "halt")[0] == 0
    opened(state).run_once()  # whoever holds the folder next sees to what is forbidden
    assert trader(state, "status")[1]["controls"][0]["action"] == "halt"


def test_what_a_person_wants_while_a_single_run_decides_is_done_by_that_run(after, monkeypatch):
    state = after(1)
    send = OrderManager.send

    def meanwhile(self, intent):
        sent = send(self, intent)
        ledger = Ledger(state / "ledger.db")
        Controls(ledger).halt("enough")
        ledger.close()
        return sent

    monkeypatch.setattr(OrderManager, "send", meanwhile)
    result = opened(state).run_once()
    assert [cycle.intent is not None for cycle in result.cycles].count(True) == 1
    assert all(leg.status.is_final for order in result.orders for leg in order.with_legs())
    assert open_orders(state) == []


def test_no_command_of_a_person_can_enter(trader, after):
    state = after(3)
    before = buys(state)
    for words in (
        ("halt",),
        ("resume", "--reason", "x"),
        ("pause",),
        ("unpause", "--reason", "x"),
        ("close", "all"),
        ("acknowledge", "--reason", "x"),
    ):
        trader(state, *words)
    assert buys(state) == before


def test_the_journal_says_why_a_go_was_not_ordered(trader, after):
    state = after(1)
    trader(state, "halt", "--reason", "holidays")
    opened(state).run_once()
    lines = trader(state, "journal")[1]["lines"]
    said = [line["text"] for line in lines if line["kind"] == "cycle" and ": GO" in line["text"]]
    assert len(said) == 1
    assert said[0].endswith("Nothing is bought: trading halted, by a person: holidays")


def test_every_order_of_a_person_is_in_the_journal_with_its_reason(trader, after):
    state = after(1)
    trader(state, "pause", "--reason", "holidays")
    trader(state, "unpause", "--reason", "back")
    lines = trader(state, "journal")[1]["lines"]
    said = [line["text"] for line in lines if line["kind"] == "control"]
    assert said == [
        "entries paused, by a person: holidays",
        "entries allowed again, by a person: back",
    ]
