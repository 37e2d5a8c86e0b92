"""The ledger as a file: checked, copied while it is written, brought back, written out."""

from __future__ import annotations

import fcntl
import json
import sqlite3
import stat
from datetime import UTC, datetime

import pytest

from tests.kills.books import Books, complaints
from tests.kills.market import FIRST, free_port, served
from tests.trader.app.conftest import opened
from trader.app.ledger_files import backup_after_close
from trader.core.canonical import canonical_json
from trader.core.config import Config
from trader.core.errors import LockHeldError, StateError, UsageError
from trader.ledger.store import GENESIS, Ledger, chain_hash


@pytest.fixture
def state(tmp_path):
    """A state folder after three slots: a quiet one, a debate with its order, the fill."""
    folder = tmp_path / "state"
    for _ in range(3):
        opened(folder).run_once()
    return folder


def spoil(path) -> bytes:
    """Damage the second page of a database; what it holds then."""
    content = bytearray(path.read_bytes())
    content[4096:8192] = bytes(4096)
    path.write_bytes(content)
    return bytes(content)


def test_a_sound_ledger_is_told_in_short(state):
    found = opened(state).verify_ledger()
    ledger = Ledger(state / "ledger.db", read_only=True)
    assert (found.records, found.ledger_head) == (ledger.verify(), ledger.head)
    assert found.finished == datetime(2026, 7, 6, 20, tzinfo=UTC)


def test_the_first_record_that_does_not_fit_is_named(state):
    raw = sqlite3.connect(state / "ledger.db")
    raw.executescript("DROP TRIGGER records_never_change;")
    raw.execute("UPDATE records SET body = '{}' WHERE seq = 4")
    raw.commit()
    raw.close()
    with pytest.raises(StateError, match=r"record 4 \(slot .* does not fit the chain"):
        opened(state).verify_ledger()


def test_without_an_account_there_is_nothing_to_look_at(tmp_path):
    app = opened(tmp_path / "state")
    for act in (
        app.verify_ledger,
        lambda: app.back_up_ledger(None),
        lambda: app.export_ledger(tmp_path / "x"),
    ):
        with pytest.raises(UsageError, match="no paper account"):
            act()


def test_a_backup_is_made_while_another_process_writes_and_is_private(state):
    writer = Ledger(state / "ledger.db")
    with writer.transaction():
        writer.append("control", "unfinished", {})
        made = opened(state).back_up_ledger(None)
    path = state / "backups" / f"ledger-20260706T2000-{made.ledger_head[:8]}.db"
    assert made.path == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Ledger(path, read_only=True).record("control", "unfinished") is None
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_the_same_ledger_again_is_the_same_backup_and_another_is_another(state):
    first = opened(state).back_up_ledger(None)
    assert opened(state).back_up_ledger(None) == first
    Ledger(state / "ledger.db").append("control", "000001", {})
    assert opened(state).back_up_ledger(None).path != first.path


def test_a_backup_overwrites_nothing(state, tmp_path):
    taken = tmp_path / "taken.db"
    taken.write_text("mine")
    with pytest.raises(StateError, match=r"taken\.db cannot hold a backup"):
        opened(state).back_up_ledger(taken)
    assert taken.read_text() == "mine"


def test_backups_of_sessions_are_kept_for_a_week_and_a_persons_for_ever(state):
    mine = opened(state).back_up_ledger(None)
    ledger = Ledger(state / "ledger.db")
    made = []
    for day in range(7, 19):
        ledger.append("slot", f"s{day}", {"as_of": f"2026-07-{day:02}T20:00:00Z"})
        made.append(backup_after_close(ledger, state))
        assert backup_after_close(ledger, state) == made[-1]
    assert sorted(made[0].parent.iterdir()) == made[-7:]
    assert Ledger(made[-1], read_only=True).head == ledger.head
    assert sorted(file.name for file in (state / "backups").glob("*.db")) == [
        mine.path.rsplit("/", maxsplit=1)[1]
    ]


def test_a_damaged_ledger_is_refused_brought_back_and_the_account_goes_on(state):
    kept = opened(state).back_up_ledger(None)
    opened(state).run_once()
    equity = opened(state).status().equity
    damaged = spoil(state / "ledger.db")
    for act in (opened(state).run_once, opened(state).status):
        with pytest.raises(StateError, match="trader ledger restore"):
            act()
    assert (state / "ledger.db").read_bytes() == damaged

    found = opened(state).restore_ledger(state / "backups" / kept.path.rsplit("/", maxsplit=1)[1])
    assert found.records == kept.records + 1
    assert (state / "archive" / "1" / "ledger.db").read_bytes() == damaged
    assert any("the next start compares" in notice for notice in found.notices)
    again = opened(state).run_once()
    assert (again.session.isoformat(), again.equity) == ("2026-07-07", equity)
    assert opened(state).verify_ledger().records > found.records
    assert opened(state).run_once().session.isoformat() == "2026-07-08"
    assert "brought back from" in "".join(line.text for line in opened(state).journal(50).lines)


def test_what_an_older_backup_lacks_is_taken_over_from_the_broker_and_never_ordered_twice(tmp_path):
    state = tmp_path / "state"
    opened(state).run_once()
    kept = tmp_path / "kept.db"
    opened(state).back_up_ledger(kept)
    for _ in range(3):  # the order, its fill, one more
        opened(state).run_once()
    before = opened(state).orders()
    opened(state).restore_ledger(kept)
    run = opened(state).run_once()
    assert run.session.isoformat() == "2026-07-07"  # those that were lost have passed
    assert [str(held.quantity) for held in run.positions] == ["48"]
    after = opened(state)
    assert [line.order for line in after.orders().orders] == [line.order for line in before.orders]
    ledger = Ledger(state / "ledger.db", read_only=True)
    assert next(ledger.records("import"), None) is not None


def test_the_slot_of_a_lost_order_sees_it_and_does_not_order_again(tmp_path):
    state = tmp_path / "state"
    opened(state).run_once()
    kept = tmp_path / "kept.db"
    opened(state).back_up_ledger(kept)
    ordered = opened(state).run_once()
    opened(state).restore_ledger(kept)
    again = opened(state).run_once()
    assert again.session == ordered.session
    assert [order.order_id for order in again.orders] == [o.order_id for o in ordered.orders]
    assert [cycle.cycle_id for cycle in again.cycles] == [c.cycle_id for c in ordered.cycles]
    assert all(cycle.intent is None for cycle in again.cycles)  # it counts as an order by hand


def test_a_market_without_its_ledger_is_not_begun_again(state, tmp_path):
    kept = tmp_path / "kept.db"
    opened(state).back_up_ledger(kept)
    ledger = state / "ledger.db"
    for lose in (ledger.unlink, ledger.touch):
        lose()
        with pytest.raises(StateError, match=r"missing or empty, though .*restore"):
            opened(state).run_once()
        assert not ledger.exists() or not ledger.stat().st_size
    opened(state).restore_ledger(kept)
    assert opened(state).run_once().session.isoformat() == "2026-07-07"


def test_nothing_but_a_sound_backup_takes_the_place_of_a_ledger(state, tmp_path):
    before = (state / "ledger.db").read_bytes()
    app, kept = opened(state), tmp_path / "kept.db"
    app.back_up_ledger(kept)
    spoil(kept)
    (tmp_path / "junk.db").write_text("no ledger")
    cases = (
        (tmp_path / "nothing.db", UsageError, "no file"),
        (state / "ledger.db", UsageError, "the ledger itself"),
        (kept, StateError, "damaged|cannot be"),
        (tmp_path / "junk.db", StateError, "cannot be used"),
    )
    for path, error, words in cases:
        with pytest.raises(error, match=words):
            app.restore_ledger(path)
    assert (state / "ledger.db").read_bytes() == before
    assert not (state / "archive").exists()


def test_nothing_is_restored_while_a_run_holds_the_folder(state):
    kept = opened(state).back_up_ledger(None)
    with (state / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(LockHeldError):
            opened(state).restore_ledger(state / "backups" / kept.path)
    assert not (state / "archive").exists()


def test_an_export_holds_every_record_so_that_the_chain_can_be_walked_again(state, tmp_path):
    path = tmp_path / "ledger.jsonl"
    found = opened(state).export_ledger(path)
    previous = GENESIS
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        text = canonical_json(line["body"])
        assert line["hash"] == chain_hash(previous, line["kind"], line["record_id"], text)
        previous = line["hash"]
    assert (len(lines), previous) == (found.records, found.ledger_head)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(UsageError, match="exists already"):
        opened(state).export_ledger(path)
    with pytest.raises(StateError, match="cannot be written"):
        opened(state).export_ledger(tmp_path / "no" / "folder.jsonl")


def test_an_account_at_a_broker_goes_on_from_an_older_backup(tmp_path):
    state, port = tmp_path / "state", free_port()
    app = opened(
        state,
        "broker.name=alpaca",
        f"broker.base_url=http://127.0.0.1:{port}",
        f"market.start={FIRST}",
        "strategies.enabled=atr_trend",
    )
    config = Config.model_validate({"market": {"start": FIRST}})
    with served(tmp_path, config, port=port, ledger=state / "ledger.db") as market:
        market.control("advance", slots=1)
        assert app.run_once().orders
        kept = tmp_path / "kept.db"
        app.back_up_ledger(kept)
        for _ in range(2):
            market.control("advance", slots=1)
            held = app.run_once()
        assert held.positions
        app.restore_ledger(kept)
        market.control("advance", slots=1)
        again = app.run_once()
        assert [booked.reason for booked in again.fills] == ["entry"]
        assert again.slot.problem == ""
        assert complaints(Books.of(market.exchange), state / "ledger.db") == []
