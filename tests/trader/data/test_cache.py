"""Kept bars: a file is always a sound beginning of what was written, or says that it is not."""

from __future__ import annotations

import multiprocessing
import os
import resource
import stat
from datetime import date
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trader.core.errors import DataIntegrityError, StateError
from trader.data.cache import BARS, HEAD, BarCache, BarKey, Kept, Raw

KEY = BarKey(symbol="AAPL", timeframe="1Day", adjustment="all", feed="iex")
COIN = BarKey(symbol="BTC/USD", timeframe="1Hour", adjustment="raw", feed="crypto")
FIRST = date(2024, 1, 2)


def some(first: int, last: int) -> Raw:
    """Bars number first to last - 1; each says its number in every field."""
    rows = [(n, n + 0.25, n + 2.0, n - 1.0, n + 0.5, 1e6 + n) for n in range(first, last)]
    return np.array(rows, dtype=BARS)


def begun(cache: BarCache, last: int, key: BarKey = KEY, actions: object = None) -> Kept:
    kept = Kept(key=key, first=FIRST, through=last, bars=some(1, last), actions=actions)
    cache.start(kept)
    return kept


def numbers(cache: BarCache, key: BarKey = KEY) -> list[int]:
    kept = cache.read(key)
    return [] if kept is None else kept.bars["t"].tolist()


@pytest.fixture
def cache(tmp_path) -> BarCache:
    return BarCache(tmp_path / "bars")


def test_what_was_kept_is_read_back_bit_for_bit(cache):
    begun(cache, 9, actions=[{"kind": "spin_offs", "day": "2024-01-05", "ratio": None}])
    assert cache.append(KEY, some(6, 14), 14)
    kept = cache.read(KEY)
    assert kept is not None
    assert kept.bars.tobytes() == some(1, 14).tobytes()
    assert (kept.key, kept.first, kept.through, kept.cut) == (KEY, FIRST, 14, 0)
    assert kept.actions == [{"kind": "spin_offs", "day": "2024-01-05", "ratio": None}]
    assert cache.append(KEY, kept.bars[-1:], 14, [])
    again = cache.read(KEY)
    assert again is not None
    assert again.actions == []
    assert again.bars.tobytes() == kept.bars.tobytes()


def test_nothing_is_kept_before_the_first_start(cache):
    assert cache.read(KEY) is None
    assert not cache.append(KEY, some(1, 3), 3)
    assert cache.files() == ()
    assert cache.drop(None) == ()


def test_each_symbol_length_adjustment_and_feed_has_a_file_of_its_own(cache):
    begun(cache, 4)
    begun(cache, 5, COIN)
    for name, value in [
        ("symbol", "MSFT"),
        ("timeframe", "30Min"),
        ("adjustment", "raw"),
        ("feed", "sip"),
    ]:
        other = BarKey(**{**{n: getattr(KEY, n) for n in KEY.__slots__}, name: value})
        assert cache.read(other) is None
    assert [name for name, _, _ in cache.files()] == [
        "AAPL_1Day_all_iex.bars",
        "BTC-USD_1Hour_raw_crypto.bars",
    ]
    assert numbers(cache, COIN) == [1, 2, 3, 4]


def test_a_file_under_a_wrong_name_is_refused(cache):
    begun(cache, 4)
    other = BarKey(symbol="AAPL", timeframe="1Day", adjustment="all", feed="sip")
    os.rename(cache.folder / KEY.file, cache.folder / other.file)
    with pytest.raises(DataIntegrityError, match=r"holds AAPL_1Day_all_iex\.bars"):
        cache.read(other)
    assert cache.files()[0][2] == "is misnamed"


def test_files_belong_to_their_user_alone(cache):
    begun(cache, 4)
    cache.append(KEY, some(2, 6), 6)
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in cache.folder.iterdir()}
    assert modes == {KEY.file: 0o600, ".lock": 0o600}


def test_an_append_that_does_not_continue_the_file_changes_nothing(cache):
    begun(cache, 9)
    before = (cache.folder / KEY.file).read_bytes()
    changed = some(6, 12)
    changed["close"][1] += 0.01
    for fetched in (changed, some(9, 12), some(12, 15), some(0, 5), some(3, 3), some(3, 7)):
        assert not cache.append(KEY, fetched, 20)
    assert (cache.folder / KEY.file).read_bytes() == before


@given(
    ends=st.lists(st.integers(2, 60), min_size=1, max_size=6),
    cuts=st.lists(st.integers(0, 400), min_size=6, max_size=6),
)
@settings(max_examples=60)
def test_kills_and_appends_in_any_order_leave_a_beginning(tmp_path_factory, ends, cuts):
    """Each append may be cut short after any byte; what is read is bars 1, 2, … without a hole."""
    cache = BarCache(tmp_path_factory.mktemp("bars"))
    path = cache.folder / KEY.file
    for end, cut in zip(ends, cuts, strict=False):
        kept = cache.read(KEY)
        if kept is None:
            begun(cache, end)
            continue
        before = numbers(cache)
        size = path.stat().st_size
        cache.append(KEY, np.concatenate([kept.bars[-3:], some(len(before) + 1, end)]), end)
        whole = numbers(cache)
        if path.stat().st_size > size + cut:
            os.truncate(path, size + cut)
            assert numbers(cache) == before
            assert path.stat().st_size == size  # the torn part is gone, appends go on behind it
        else:
            assert numbers(cache) == whole
        assert numbers(cache) == list(range(1, len(numbers(cache)) + 1))


def test_a_file_cut_anywhere_is_a_beginning_or_nothing(cache):
    begun(cache, 5)
    first = (cache.folder / KEY.file).stat().st_size
    cache.append(KEY, some(4, 7), 7)
    cache.append(KEY, some(6, 9), 9)
    raw = (cache.folder / KEY.file).read_bytes()
    second = first + HEAD.size + 2 * BARS.itemsize
    for size in range(0, len(raw), 5):
        (cache.folder / KEY.file).write_bytes(raw[:size])
        last = 4 if size >= first else 0
        last = 6 if size >= second else last
        assert numbers(cache) == list(range(1, last + 1)), size


def test_every_changed_byte_is_noticed(cache):
    begun(cache, 5)
    first = (cache.folder / KEY.file).stat().st_size
    cache.append(KEY, some(4, 7), 7)
    raw = (cache.folder / KEY.file).read_bytes()
    for at in range(0, len(raw), 5):
        damaged = bytearray(raw)
        damaged[at] ^= 0x40
        (cache.folder / KEY.file).write_bytes(damaged)
        if at < first:
            with pytest.raises(DataIntegrityError, match=r"AAPL_1Day_all_iex\.bars"):
                cache.read(KEY)
            assert (cache.folder / KEY.file).read_bytes() == damaged  # nothing is overwritten
        else:
            assert numbers(cache) == [1, 2, 3, 4]


def test_a_part_that_was_taken_out_or_put_in_twice_is_noticed(cache):
    begun(cache, 5)
    first = (cache.folder / KEY.file).stat().st_size
    cache.append(KEY, some(4, 7), 7)
    second = (cache.folder / KEY.file).stat().st_size
    cache.append(KEY, some(6, 9), 9)
    raw = (cache.folder / KEY.file).read_bytes()
    for pieces in (raw[:first] + raw[second:], raw[:second] + raw[first:], raw + raw):
        (cache.folder / KEY.file).write_bytes(pieces)
        with pytest.raises(DataIntegrityError, match="lacks a part before byte"):
            cache.read(KEY)
    assert "`trader data drop AAPL`" in cache.files()[0][2]


def test_dropping_removes_one_symbol_or_all(cache):
    begun(cache, 4)
    begun(cache, 4, BarKey(symbol="AAPL", timeframe="30Min", adjustment="all", feed="iex"))
    begun(cache, 4, BarKey(symbol="AA", timeframe="1Day", adjustment="all", feed="iex"))
    begun(cache, 4, COIN)
    assert cache.drop("AAPL") == ("AAPL_1Day_all_iex.bars", "AAPL_30Min_all_iex.bars")
    assert cache.drop("BTC/USD") == ("BTC-USD_1Hour_raw_crypto.bars",)
    assert cache.drop("MSFT") == ()
    assert cache.drop(None) == ("AA_1Day_all_iex.bars",)
    assert cache.files() == ()


def test_listing_changes_nothing(cache):
    begun(cache, 5)
    path = cache.folder / KEY.file
    os.truncate(path, path.stat().st_size)
    with open(path, "ab") as file:
        file.write(b"torn")
    ((name, kept, wrong),) = cache.files()
    assert kept is not None
    assert (name, kept.cut, wrong) == (KEY.file, 4, "")
    assert path.read_bytes().endswith(b"torn")


def test_a_folder_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="another folder with --state-dir"):
        begun(BarCache(tmp_path / "file" / "bars"), 4)


def test_an_append_that_the_disk_has_no_room_for_leaves_the_file_as_it_was(cache):
    begun(cache, 9)
    path = cache.folder / KEY.file
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            cache.append(KEY, some(6, 90), 90)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before


def add_one_by_one(folder: str, last: int, together: Barrier) -> None:
    """Add bar after bar, each at the moment at which the other process adds it too."""
    cache = BarCache(Path(folder))
    for end in range(12, last):
        together.wait()
        assert cache.append(KEY, some(end - 8, end), end)


def test_two_processes_add_to_one_file(cache):
    begun(cache, 11)
    spawn = multiprocessing.get_context("spawn")
    together = spawn.Barrier(2, timeout=60)
    processes = [
        spawn.Process(target=add_one_by_one, args=(str(cache.folder), 32, together))
        for _ in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    kept = cache.read(KEY)
    assert kept is not None
    assert kept.bars.tobytes() == some(1, 31).tobytes()
