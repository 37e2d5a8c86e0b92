"""The ledger: append-only, chained, and still whole after a crash."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from trader.core.errors import StateError
from trader.ledger.store import GENESIS, Ledger, chain_hash


def filled(path=None, count=5, **options) -> Ledger:
    ledger = Ledger(path, **options)
    for number in range(count):
        ledger.append("slot", f"s{number}", {"n": number})
    return ledger


def test_every_record_carries_the_hash_of_the_one_before():
    ledger = filled()
    previous = GENESIS
    for record in ledger.records():
        previous = chain_hash(previous, record.kind, record.record_id, f'{{"n":{record.seq - 1}}}')
        assert record.hash == previous
    assert ledger.head == previous
    assert ledger.verify() == 5


def test_equal_records_give_equal_heads_and_any_difference_another():
    assert filled().head == filled().head
    assert filled(count=4).head != filled().head


def test_records_cannot_be_changed_or_deleted(tmp_path):
    path = tmp_path / "ledger.db"
    filled(path).close()
    raw = sqlite3.connect(path)
    for statement in ("UPDATE records SET body = '{}'", "DELETE FROM records WHERE seq = 2"):
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            raw.execute(statement)


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE records SET body = '{\"n\":7}' WHERE seq = 3",
        "UPDATE records SET record_id = 'other' WHERE seq = 3",
        "UPDATE records SET kind = 'cycle' WHERE seq = 3",
        "DELETE FROM records WHERE seq = 3",
        "DELETE FROM records WHERE seq = 1",
    ],
)
def test_tampering_behind_the_triggers_is_found(tmp_path, tampering):
    path = tmp_path / "ledger.db"
    filled(path).close()
    raw = sqlite3.connect(path)
    raw.executescript("DROP TRIGGER records_never_change; DROP TRIGGER records_never_go;")
    raw.execute(tampering)
    raw.commit()
    raw.close()
    with pytest.raises(StateError, match="does not fit the chain"):
        Ledger(path).verify()


def test_the_same_id_twice_is_refused_and_leaves_the_chain_as_it_was():
    ledger = filled()
    head = ledger.head
    with pytest.raises(StateError, match="slot s1"):
        ledger.append("slot", "s1", {})
    assert ledger.head == head
    ledger.append("cycle", "s1", {})
    assert ledger.verify() == 6


@pytest.mark.parametrize("durable", [True, False])
def test_a_failed_transaction_leaves_nothing_and_keeps_what_was_before(durable):
    ledger = filled(durable=durable)
    head = ledger.head

    def crash_halfway() -> None:
        with ledger.transaction():
            ledger.append("slot", "s8", {})
            with ledger.transaction():
                ledger.append("slot", "s9", {})
            raise RuntimeError("crash")

    with pytest.raises(RuntimeError, match="crash"):
        crash_halfway()
    assert ledger.head == head
    assert ledger.verify() == 5
    ledger.append("slot", "s8", {})
    assert ledger.verify() == 6


def test_records_survive_reopening_and_files_are_private(tmp_path):
    path = tmp_path / "state" / "ledger.db"
    first = filled(path)
    first.close()
    again = Ledger(path)
    assert again.head == first.head
    again.append("slot", "s5", {"n": 5})
    assert again.verify() == 6
    assert again.record("slot", "s2").body == {"n": 2}
    assert again.last("slot").record_id == "s5"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_killed_process_loses_nothing_that_append_returned(tmp_path):
    path = tmp_path / "ledger.db"
    program = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from trader.ledger.store import Ledger
        ledger = Ledger(Path(sys.argv[1]))
        for number in range(7):
            ledger.append("slot", f"s{number}", {"n": number})
        with ledger.transaction():
            ledger.append("slot", "s7", {"n": 7})
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False, cwd=os.getcwd())
    assert done.returncode == -signal.SIGKILL
    assert Ledger(path).verify() == 7


def test_host_facts_stay_outside_the_chain():
    ledger = filled()
    head = ledger.head
    ledger.note("seconds", {"run": "1.5"})
    assert ledger.head == head


def test_a_file_that_is_no_ledger_or_is_newer_is_named(tmp_path):
    junk = tmp_path / "junk.db"
    junk.write_bytes(b"not a database" * 100)
    with pytest.raises(StateError, match=r"junk\.db"):
        Ledger(junk)
    newer = tmp_path / "newer.db"
    filled(newer).close()
    raw = sqlite3.connect(newer)
    raw.execute("PRAGMA user_version = 99")
    raw.commit()
    raw.close()
    with pytest.raises(StateError, match="version 99"):
        Ledger(newer)


def count(ledger: Ledger) -> int:
    return sum(1 for _ in ledger.records())


def test_two_processes_append_to_one_chain_and_see_each_other(tmp_path):
    path = tmp_path / "ledger.db"
    daemon, command = Ledger(path), Ledger(path)
    daemon.append("slot", "s1", {})
    command.append("control", "c1", {"halt": True})
    assert [record.record_id for record in daemon.since(1, "control", "fill")] == ["c1"]
    with daemon.transaction():
        daemon.append("intent", "i1", {})
        daemon.append("order", "i1", {})
    assert command.append("control", "c2", {}) == command.head
    assert Ledger(path, read_only=True).verify() == 5


def test_many_writers_at_once_lose_and_double_nothing(tmp_path):
    path = tmp_path / "ledger.db"
    Ledger(path).close()
    program = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from trader.ledger.store import Ledger
        ledger = Ledger(Path(sys.argv[1]))
        for number in range(40):
            with ledger.transaction():
                ledger.append("fill", f"{sys.argv[2]}-{number}", {})
                ledger.append("slot", f"{sys.argv[2]}-{number}", {"n": number})
        """
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(path), name], cwd=os.getcwd())
        for name in "abc"
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    kept = Ledger(path)
    assert kept.check() == 3 * 40 * 2
    kinds = [record.kind for record in kept.records()]
    assert kinds == ["fill", "slot"] * 120, "a transaction stays in one piece"


def test_a_writer_that_is_kept_waiting_too_long_says_so_and_goes_on_later(tmp_path):
    path = tmp_path / "ledger.db"
    first, second = Ledger(path), Ledger(path, patience_seconds=0)
    with first.transaction():
        first.append("slot", "s1", {})
        with pytest.raises(StateError, match="another program has been writing"):
            second.append("slot", "s2", {})
    second.append("slot", "s2", {})
    assert second.verify() == 2


@pytest.mark.parametrize("durable", [True, False])
def test_a_full_disk_refuses_the_record_and_keeps_the_others(tmp_path, durable):
    path = tmp_path / "ledger.db"
    ledger = Ledger(path, durable=durable)
    ledger.append("slot", "s1", {})
    ledger.commit()
    ledger._db.execute("PRAGMA max_page_count = 12")
    written = 0

    def fill_the_disk() -> None:
        nonlocal written
        while True:
            ledger.append("fill", f"f{written}", {"words": "x" * 3000})
            ledger.commit()
            written += 1

    with pytest.raises(StateError, match="make room on the disk"):
        fill_the_disk()
    assert count(ledger) == 1 + written > 1
    kept = count(ledger)
    ledger._db.execute("PRAGMA max_page_count = 1000000")
    ledger.append("slot", "s2", {})
    ledger.close()
    assert Ledger(path).check() == kept + 1


@pytest.mark.parametrize("place", [b"SQLite format", b"CREATE TABLE", b'{"n":100}'])
def test_a_damaged_file_is_refused_with_the_way_to_restore_and_stays_as_it_is(tmp_path, place):
    path = tmp_path / "ledger.db"
    filled(path, count=200).close()
    raw = bytearray(path.read_bytes())
    at = raw.index(place)
    raw[at : at + 1000] = b"\xff" * 1000
    path.write_bytes(raw)
    with pytest.raises(StateError, match="trader ledger restore"):
        Ledger(path).check()
    assert path.read_bytes() == raw


def test_a_backup_is_whole_while_others_write_and_can_be_opened_as_a_ledger(tmp_path):
    path, copy = tmp_path / "ledger.db", tmp_path / "kept" / "monday.db"
    ledger = filled(path)
    other = Ledger(path)
    assert Ledger(path, read_only=True).backup(copy) == 5
    other.append("slot", "later", {})
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert [item.name for item in copy.parent.iterdir()] == ["monday.db"]
    with pytest.raises(StateError, match=r"monday\.db cannot hold a backup"):
        ledger.backup(copy)
    again = Ledger(copy)
    assert again.check() == 5
    again.append("slot", "s5", {})
    assert again.verify() == 6


def test_a_ledger_that_is_damaged_gives_no_backup(tmp_path):
    path = tmp_path / "ledger.db"
    filled(path, count=200).close()
    raw = sqlite3.connect(path)
    raw.executescript("DROP TRIGGER records_never_change; UPDATE records SET body = '{}';")
    raw.commit()
    raw.close()
    with pytest.raises(StateError, match="does not fit the chain"):
        Ledger(path).backup(tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def test_a_ledger_of_the_version_before_is_brought_up_to_date(tmp_path):
    path = tmp_path / "ledger.db"
    ledger = filled(path)
    ledger._db.executescript("DROP INDEX records_by_kind; PRAGMA user_version = 1;")
    ledger.close()
    again = Ledger(path)
    assert again.verify() == 5
    again.append("slot", "s5", {})
    plan = again._db.execute(
        "EXPLAIN QUERY PLAN SELECT seq FROM records WHERE kind = 'slot' AND seq > 1"
    )
    assert "records_by_kind" in str(plan.fetchall())


@pytest.mark.parametrize("seed", range(5))
def test_a_damaged_write_ahead_log_leaves_a_clean_beginning(tmp_path, seed):
    path = tmp_path / "ledger.db"
    ledger = filled(path, count=30)
    wal = path.with_name("ledger.db-wal")
    kept = {item.name: item.read_bytes() for item in (path, wal)}
    ledger.close()
    rng = np.random.default_rng(seed)
    for trial in range(12):
        folder = tmp_path / f"{trial}"
        folder.mkdir()
        log = bytearray(kept[wal.name])
        at = int(rng.integers(0, len(log)))
        match trial % 3:
            case 0:
                del log[at:]
            case 1:
                log[at] ^= 0xFF
            case 2:
                log[at : at + 500] = bytes(len(log[at : at + 500]))
        (folder / path.name).write_bytes(kept[path.name])
        (folder / wal.name).write_bytes(log)
        again = Ledger(folder / path.name)
        whole = again.check()
        assert 0 <= whole <= 30
        assert [record.body["n"] for record in again.records()] == list(range(whole))
        again.append("slot", "next", {})
        assert again.check() == whole + 1
        again.close()
