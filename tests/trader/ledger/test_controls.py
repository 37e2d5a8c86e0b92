"""Controls: what forbids entries, for whom, until when, and who may end it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trader.core.errors import OrderRefusedError, UsageError
from trader.ledger.controls import KILL_SWITCH, Controls
from trader.ledger.store import Ledger

NOW = datetime(2026, 7, 1, 20, tzinfo=UTC)  # Wednesday, 16:00 in New York
TOMORROW = NOW + timedelta(days=1)


class Clock:
    """Market time that a test sets."""

    def __init__(self, at: datetime = NOW) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(None)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def controls(ledger, clock) -> Controls:
    return Controls(ledger, now=clock)


def codes(controls: Controls, symbol: str = "AAPL", at: datetime | None = None) -> list[str]:
    return [str(flag.code) for flag in controls.flags(symbol, at)]


def test_nothing_is_blocked_at_the_beginning(controls):
    assert controls.blocked("AAPL") == ""
    assert (controls.in_force(), controls.wishes(), controls.frozen) == ((), (), "")


@pytest.mark.parametrize(
    ("order", "code", "others"),
    [
        (lambda c: c.halt("a test"), "TRADING_HALTED", True),
        (lambda c: c.freeze("shares differ"), "TRADING_FROZEN", True),
        (lambda c: c.pause(None, "holidays"), "TRADING_PAUSED", True),
        (lambda c: c.pause("AAPL", "earnings"), "TRADING_PAUSED", False),
        (lambda c: c.lock(None, TOMORROW, "a day off"), "SYMBOL_LOCKED", True),
        (lambda c: c.lock("AAPL", TOMORROW, "earnings"), "SYMBOL_LOCKED", False),
        (lambda c: (c.freeze("shares differ"), c.acknowledge("seen")), "TRADING_FROZEN", True),
    ],
)
def test_each_control_blocks_those_it_names_and_nobody_else(controls, order, code, others):
    order(controls)
    assert codes(controls) == [code]
    assert controls.blocked("AAPL")
    assert bool(controls.blocked("TSLA")) is others


@pytest.mark.parametrize("order", ["close", "cancel"])
def test_a_wish_blocks_nothing_and_stays_until_it_is_done(controls, order):
    wish = controls.wish(order, "AAPL", "too much of it")
    assert controls.blocked("AAPL") == ""
    assert controls.wishes() == (wish,)
    assert controls.outcome(wish.control_id) == ""
    controls.done(wish.control_id, "sold")
    controls.done(wish.control_id, "sold twice")
    assert controls.wishes() == ()
    assert controls.outcome(wish.control_id) == "sold"


def test_a_control_says_who_why_and_until_when(controls):
    controls.lock("AAPL", TOMORROW, "earnings")
    assert controls.blocked("AAPL") == (
        "entries in AAPL locked until 2026-07-02 20:00 UTC, by a person: earnings"
    )


def test_a_lock_ends_by_itself_at_its_moment(controls, clock):
    controls.lock("AAPL", TOMORROW, "earnings")
    clock.at = TOMORROW - timedelta(microseconds=1)
    assert codes(controls) == ["SYMBOL_LOCKED"]
    clock.at = TOMORROW
    assert codes(controls) == []
    with pytest.raises(UsageError, match="not later"):
        controls.lock("AAPL", TOMORROW, "yesterday")


def test_a_halt_of_a_person_ends_when_a_person_says_so(controls):
    controls.halt("looking at something")
    controls.resume("it was nothing")
    assert controls.blocked("AAPL") == ""
    with pytest.raises(UsageError, match="not halted"):
        controls.resume("again")


@pytest.mark.parametrize(
    ("later", "force", "allowed"),
    [
        (timedelta(0), False, False),
        (timedelta(hours=7, minutes=59), False, False),  # 23:59 in New York, the next day in UTC
        (timedelta(hours=8), False, True),  # midnight in New York
        (timedelta(0), True, True),
    ],
)
def test_a_halt_of_the_kill_switch_lasts_its_new_york_date(controls, later, force, allowed):
    controls.halt("down 3 %", by=KILL_SWITCH, at=NOW)
    controls.halt("me too", at=NOW)
    if allowed:
        controls.resume("a new day", at=NOW + later, force=force)
        assert controls.blocked("AAPL") == ""
        assert (controls.overruled is not None) == force
    else:
        with pytest.raises(OrderRefusedError, match="--force"):
            controls.resume("too early", at=NOW + later, force=force)
        assert codes(controls) == ["TRADING_HALTED", "TRADING_HALTED"]


def test_a_halt_with_an_end_needs_nobody(controls, clock):
    controls.halt("down 3 %", by=KILL_SWITCH, until=TOMORROW)
    assert controls.halted() is not None
    clock.at = TOMORROW
    assert controls.halted() is None
    with pytest.raises(UsageError):
        controls.resume("there is nothing to resume")


def test_pauses_of_a_symbol_and_of_all_are_ended_one_by_one(controls):
    controls.pause("AAPL", "earnings")
    controls.pause(None, "holidays")
    controls.lock("AAPL", TOMORROW, "a split")
    controls.unpause(None, "back")
    assert codes(controls) == ["TRADING_PAUSED", "SYMBOL_LOCKED"]
    assert codes(controls, "TSLA") == []
    controls.unpause("AAPL", "done")
    assert codes(controls) == []
    with pytest.raises(UsageError, match="not paused in AAPL"):
        controls.unpause("AAPL", "again")
    with pytest.raises(UsageError, match="not paused"):
        controls.unpause(None, "again")


def test_resuming_ends_no_pause_and_no_freeze(controls):
    controls.pause(None, "holidays")
    controls.freeze("10 AAPL more at the broker")
    controls.halt("a test")
    controls.resume("the test is over")
    assert codes(controls) == ["TRADING_PAUSED", "TRADING_FROZEN"]


def test_a_freeze_lasts_until_its_acknowledgement_is_carried_out(controls):
    with pytest.raises(UsageError, match="not frozen"):
        controls.acknowledge("nothing")
    controls.freeze("10 AAPL more at the broker")
    wish = controls.acknowledge("I bought them by hand")
    assert controls.acknowledge("once more") == wish
    assert controls.acknowledged == wish
    assert codes(controls) == ["TRADING_FROZEN"]
    controls.done(wish.control_id, "taken over")
    assert (codes(controls), controls.frozen, controls.acknowledged) == ([], "", None)


def test_another_difference_wants_its_own_acknowledgement(controls):
    controls.freeze("10 AAPL more at the broker")
    controls.acknowledge("I bought them by hand")
    controls.freeze("10 AAPL more at the broker")  # the same again: still acknowledged
    assert controls.acknowledged is not None
    controls.freeze("20 AAPL more at the broker")
    assert (controls.acknowledged, controls.frozen) == (None, "20 AAPL more at the broker")


def test_the_same_freeze_is_recorded_once(ledger, controls):
    for _ in range(3):
        controls.freeze("10 AAPL more at the broker")
    assert len(list(ledger.records("control"))) == 1


def test_everything_is_in_the_ledger_before_it_returns_and_survives_a_restart(tmp_path):
    path = tmp_path / "ledger.db"
    first = Ledger(path)
    Controls(first, now=Clock()).halt("down 3 %", by=KILL_SWITCH)
    # no close: the process is gone
    again = Controls(Ledger(path), now=Clock(TOMORROW))
    assert codes(again) == ["TRADING_HALTED"]
    again.resume("a new day")
    assert Controls(first, now=Clock()).blocked("AAPL") == ""


def test_two_processes_write_and_hear_each_other(tmp_path):
    path = tmp_path / "ledger.db"
    daemon = Controls(Ledger(path), now=Clock())
    person = Controls(Ledger(path), now=Clock())
    daemon.pause("TSLA", "one")
    person.halt("two")
    wish = person.wish("close", None, "three")
    assert codes(daemon) == ["TRADING_HALTED"]
    assert daemon.wishes() == (wish,)
    daemon.done(wish.control_id, "sold")
    assert person.wishes() == ()
    person.resume("four")
    daemon.halt("five")
    assert codes(person) == ["TRADING_HALTED"]
    assert Ledger(path).verify() == 6


def test_only_new_records_are_read(ledger, clock):
    class Counting(Ledger):
        """A ledger that counts the records it hands out."""

        read = 0

        def since(self, seq, kind):
            for record in super().since(seq, kind):
                self.read += 1
                yield record

    counting = Counting(None)
    controls = Controls(counting, now=clock)
    for number in range(50):
        controls.pause(f"S{number}", "many")
    for _ in range(100):
        controls.blocked("AAPL")
    assert counting.read == 50


ORDERS = st.sampled_from(
    ["halt", "resume", "freeze", "acknowledge", "pause", "unpause", "lock", "close", "done"]
)


@given(st.lists(st.tuples(ORDERS, st.sampled_from([None, "AAPL", "TSLA"])), max_size=30))
@settings(max_examples=100)
def test_what_one_process_knows_is_what_a_new_one_reads(orders):
    ledger, clock = Ledger(None), Clock()
    controls = Controls(ledger, now=clock)
    for number, (order, symbol) in enumerate(orders):
        try:
            match order:
                case "halt":
                    controls.halt(f"{number}")
                case "resume":
                    controls.resume("r")
                case "freeze":
                    controls.freeze(f"{number}")
                case "acknowledge":
                    controls.acknowledge("a")
                case "pause":
                    controls.pause(symbol, "p")
                case "unpause":
                    controls.unpause(symbol, "u")
                case "lock":
                    controls.lock(symbol, NOW + timedelta(hours=number + 1), "l")
                case "close":
                    controls.wish("close", symbol, "c")
                case "done" if controls.wishes():
                    controls.done(controls.wishes()[0].control_id, "d")
        except UsageError:
            continue
    for later in (timedelta(0), timedelta(hours=10)):
        clock.at = NOW + later
        again = Controls(ledger, now=clock)
        assert again.in_force() == controls.in_force()
        assert again.wishes() == controls.wishes()
        for symbol in ("AAPL", "TSLA"):
            assert again.blocked(symbol) == controls.blocked(symbol)
