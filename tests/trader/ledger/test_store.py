"""The ledger: append-only, chained, and still whole after a crash."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap

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
