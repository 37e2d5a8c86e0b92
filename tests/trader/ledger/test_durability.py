"""What is acknowledged is kept: killed writers, damaged logs and files, a full disk."""

from __future__ import annotations

from random import Random

import pytest

from tests.kills.durability import damage_logs, damaged, kill_writers
from trader.core.errors import StateError
from trader.ledger.store import Ledger


def filled(path, count: int) -> Ledger:
    ledger = Ledger(path)
    for number in range(count):
        ledger.append("slot", f"s{number}", {"n": number, "text": "x" * 200})
    return ledger


def test_killed_writers_lose_nothing_that_was_acknowledged(tmp_path):
    killed = kill_writers(tmp_path, kills=60)
    assert (killed.kills, killed.lost, killed.problems) == (60, 0, ())
    assert killed.acknowledged > 60


def test_a_damaged_log_leaves_a_clean_prefix(tmp_path):
    found = damage_logs(tmp_path, trials=60)
    assert found.problems == ()
    assert found.whole + found.prefixes + found.refused == 60
    assert found.prefixes > 10


@pytest.mark.parametrize("seed", range(25))
def test_a_damaged_file_is_refused_with_the_way_to_restore_it_and_left_as_it_is(tmp_path, seed):
    path = tmp_path / "ledger.db"
    filled(path, 60).close()
    content, chance = path.read_bytes(), Random(seed)
    path.write_bytes(damaged(content, ("torn", "flipped", "zeroed")[seed % 3], chance))
    before, refusal = path.read_bytes(), ""
    try:
        assert Ledger(path, read_only=True).check() == 60  # what was damaged held nothing
    except StateError as exc:
        refusal = str(exc)
    assert not refusal or "trader ledger restore" in refusal
    assert path.read_bytes() == before


def test_most_damage_to_a_file_is_found(tmp_path):
    path = tmp_path / "ledger.db"
    filled(path, 60).close()
    content, chance = path.read_bytes(), Random(1)
    found = 0
    for _ in range(20):
        path.write_bytes(damaged(content, "torn", chance) or b"x")
        try:
            Ledger(path, read_only=True).check()
        except StateError:
            found += 1
    assert found == 20


def test_text_that_is_none_is_not_told_in_full(tmp_path):
    path = tmp_path / "ledger.db"
    filled(path, 3).close()
    path.write_bytes(path.read_bytes().replace(b"x" * 200, b"\xff" * 200, 1))
    with pytest.raises(StateError, match=r"holds text that is none; .*restore") as told:
        Ledger(path, read_only=True).verify()
    assert len(str(told.value)) < 300


def test_a_full_disk_is_named_and_nothing_is_lost(tmp_path):
    path = tmp_path / "ledger.db"
    ledger = filled(path, 10)
    head = ledger.head
    pages = ledger._db.execute("PRAGMA page_count").fetchone()[0]
    ledger._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StateError, match="make room on the disk, nothing was lost"):
        ledger.append("slot", "big", {"text": "x" * 100_000})

    def append_both() -> None:
        with ledger.transaction():
            ledger.append("slot", "small", {"n": 1})
            ledger.append("slot", "big", {"text": "x" * 100_000})

    with pytest.raises(StateError, match="make room"):
        append_both()
    assert ledger.head == head
    assert ledger.record("slot", "small") is None
    ledger._db.execute("PRAGMA max_page_count = 1000")
    ledger.append("slot", "big", {"text": "x" * 100_000})
    assert ledger.check() == 11


def test_a_file_that_nobody_lived_to_fill_is_a_ledger_without_records(tmp_path):
    path = tmp_path / "ledger.db"
    path.touch()
    assert Ledger(path, read_only=True).check() == 0
    assert path.stat().st_size == 0
    ledger = Ledger(path)
    ledger.append("slot", "s1", {})
    assert ledger.check() == 1
