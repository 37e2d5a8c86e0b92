"""Bars kept on disk as Alpaca sent them: append-only files, every append with its checksum.

One file holds one symbol, bar length, adjustment and feed; what another source says never gets
into it. A file is a row of blocks, each naming the checksum of the block before it:

    magic (8 bytes)  kind (1)  length (4)  complete up to (8, ns)  checksum before (32)
    checksum (32)  payload: the file's name and first day, bars, or corporate actions

A block that was cut short while it was written is cut away; bytes that changed inside the file make
it unreadable, and it says so. Every reading and writing holds one lock of the folder, never longer
than a file takes, so that several processes may use it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trader.core.errors import DataIntegrityError, StateError

BARS = np.dtype(
    [("t", "<i8")] + [(name, "<f8") for name in ("open", "high", "low", "close", "volume")]
)
MAGIC = b"\x89BARS1\r\n"
HEAD = struct.Struct("<8sBIq32s32s")
FILE, ADDED, ACTIONS = 0, 1, 2  # kinds of blocks
NOTHING_BEFORE = bytes(32)
SUFFIX = ".bars"
Raw = NDArray[np.void]  # [T] BARS: opening in ns since 1970, prices in USD, volume


@dataclass(frozen=True, slots=True, kw_only=True)
class BarKey:
    """What one file holds; each word as Alpaca spells it, "1Day", "all", "iex"."""

    symbol: str
    timeframe: str
    adjustment: str
    feed: str

    @property
    def file(self) -> str:
        """The file's name; a dash stands for the stroke of a coin's pair."""
        symbol = self.symbol.replace("/", "-")
        return f"{symbol}_{self.timeframe}_{self.adjustment}_{self.feed}{SUFFIX}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kept:
    """A file as it was read.

    first    the day from which on bars were asked for
    through  ns; every bar that was complete then is here, 0 without any
    actions  corporate actions as Alpaca sent them; None when nobody has asked
    size     bytes of the sound part
    cut      bytes behind it, of an append that was cut short
    """

    key: BarKey
    first: date
    through: int
    bars: Raw
    actions: object
    size: int = 0
    checksum: bytes = NOTHING_BEFORE
    cut: int = 0


class BarCache:
    """The files of one folder. Every method raises StateError when the folder cannot be used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, key: BarKey) -> Kept | None:
        """What is kept of `key`; None when nothing is.

        An append that was cut short is cut away. Raises DataIntegrityError naming the file when
        its bytes have changed, or when it holds something else.
        """
        path = self.folder / key.file
        if not self.folder.exists():
            return None
        with self._locked():
            kept = self._sound(path)
            if kept is not None and kept.key != key:
                raise _damaged(path, f"holds {kept.key.file}", key.symbol)
            return kept

    def start(self, kept: Kept) -> None:
        """Put a new file in the place of what is there, whole or not at all."""
        header = {"first": kept.first.isoformat(), **_words(kept.key)}
        content, before = b"", NOTHING_BEFORE
        blocks = [(FILE, json.dumps(header).encode()), (ADDED, kept.bars.tobytes())]
        if kept.actions is not None:
            blocks.append((ACTIONS, json.dumps(kept.actions).encode()))
        for kind, payload in blocks:
            block, before = _block(kind, kept.through, before, payload)
            content += block
        with self._locked():
            path = self.folder / kept.key.file
            fresh = path.with_name(f".{path.name}.{os.getpid()}")
            try:
                _write(fresh, content, os.O_TRUNC)
                os.replace(fresh, path)
            finally:
                fresh.unlink(missing_ok=True)

    def append(self, key: BarKey, fetched: Raw, through: int, actions: object = None) -> bool:
        """Add those of `fetched` that are newer than the file's; False when they do not fit it.

        fetched  [T] oldest first, beginning with bars that the file has: they must be the same
        actions  to be kept from now on; None leaves those that are there
        Another process may have changed the file since it was read: then it is left alone.
        """
        path = self.folder / key.file
        with self._locked():
            kept = self._sound(path)
            if kept is None or kept.key != key or not continues(kept.bars, fetched):
                return False
            added = fetched[fetched["t"] > kept.bars["t"][-1]]
            content, before = b"", kept.checksum
            if added.size:
                content, before = _block(ADDED, max(through, kept.through), before, added.tobytes())
            if actions is not None and actions != kept.actions:
                payload = json.dumps(actions).encode()
                content += _block(ACTIONS, max(through, kept.through), before, payload)[0]
            if content:
                try:
                    _write(path, content, os.O_APPEND)
                except OSError:
                    os.truncate(path, kept.size)
                    raise
        return True

    def drop(self, symbol: str | None) -> tuple[str, ...]:
        """Remove the files of one symbol, of all of them when None; their names."""
        if not self.folder.exists():
            return ()
        with self._locked():
            start = "" if symbol is None else f"{symbol.replace('/', '-')}_"
            gone = [path for path in self._paths() if path.name.startswith(start)]
            for path in gone:
                path.unlink()
        return tuple(path.name for path in gone)

    def files(self) -> tuple[tuple[str, Kept | None, str], ...]:
        """Every file with what it holds, or with what is wrong with it; nothing is changed."""
        if not self.folder.exists():
            return ()
        found: list[tuple[str, Kept | None, str]] = []
        with self._locked():
            for path in self._paths():
                try:
                    kept = _parse(path, path.read_bytes())
                    wrong = "" if kept is None or kept.key.file == path.name else "is misnamed"
                    found.append((path.name, None if wrong else kept, wrong))
                except DataIntegrityError as exc:
                    found.append((path.name, None, str(exc)))
        return tuple(found)

    def _paths(self) -> list[Path]:
        return sorted(path for path in self.folder.glob(f"[!.]*{SUFFIX}") if path.is_file())

    def _sound(self, path: Path) -> Kept | None:
        """The file's content, what was cut short at its end removed."""
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise _unusable(path, exc) from exc
        kept = _parse(path, raw)
        if kept is None:
            path.unlink()
        elif kept.cut:
            os.truncate(path, kept.size)
        return kept

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise _unusable(self.folder, exc) from exc
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def continues(kept: Raw, fetched: Raw) -> bool:
    """Whether `fetched` begins inside `kept` and says the same where both speak."""
    if not kept.size or not fetched.size or fetched["t"][0] < kept["t"][0]:
        return False
    both = kept[kept["t"] >= fetched["t"][0]]
    return bool(both.size) and np.array_equal(both, fetched[: both.size])


def _block(kind: int, through: int, before: bytes, payload: bytes) -> tuple[bytes, bytes]:
    """The bytes of a block, and its checksum."""
    checksum = _checksum(kind, len(payload), through, before, payload)
    return HEAD.pack(MAGIC, kind, len(payload), through, before, checksum) + payload, checksum


def _checksum(kind: int, length: int, through: int, before: bytes, payload: bytes) -> bytes:
    return hashlib.sha256(struct.pack("<BIq", kind, length, through) + before + payload).digest()


def _sound_block(raw: bytes, at: int) -> tuple[int, int, bytes, bytes, bytes] | None:
    """Kind, through, checksum before, checksum and payload of the block at `at`; None if broken."""
    if len(raw) - at < HEAD.size:
        return None
    magic, kind, length, through, before, checksum = HEAD.unpack_from(raw, at)
    payload = raw[at + HEAD.size : at + HEAD.size + length]
    if magic != MAGIC or len(payload) != length:
        return None
    if _checksum(kind, length, through, before, payload) != checksum:
        return None
    return kind, through, before, checksum, payload


def _parse(path: Path, raw: bytes) -> Kept | None:
    """The sound blocks from the beginning; None for a file that was cut short in its first two.

    Raises DataIntegrityError when a sound block stands behind a broken one.
    """
    at, last, through = 0, NOTHING_BEFORE, 0
    header: dict[str, str] = {}
    added: list[Raw] = []
    actions: object = None
    while (found := _sound_block(raw, at)) is not None:
        kind, through, before, checksum, payload = found
        if before != last or (kind == FILE) != (at == 0):
            raise _damaged(path, f"lacks a part before byte {at}", _symbol_of(path))
        if kind == FILE:
            header = json.loads(payload)
        elif kind == ADDED:
            added.append(np.frombuffer(payload, dtype=BARS))
        else:
            actions = json.loads(payload)
        last, at = checksum, at + HEAD.size + len(payload)
    behind = raw.find(MAGIC, at + 1)
    while behind >= 0:
        if _sound_block(raw, behind) is not None:
            raise _damaged(path, f"is damaged at byte {at}", _symbol_of(path))
        behind = raw.find(MAGIC, behind + 1)
    if not added:
        return None
    first = date.fromisoformat(header.pop("first"))
    return Kept(
        key=BarKey(**header),
        first=first,
        through=through,
        bars=np.concatenate(added),
        actions=actions,
        size=at,
        checksum=last,
        cut=len(raw) - at,
    )


def _words(key: BarKey) -> dict[str, str]:
    return {name: getattr(key, name) for name in ("symbol", "timeframe", "adjustment", "feed")}


def _symbol_of(path: Path) -> str:
    return path.name.split("_", maxsplit=1)[0].replace("-", "/")


def _write(path: Path, content: bytes, how: int) -> None:
    """Write to a file for this user alone and wait until the disk has it."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, 0o600)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(handle, view) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def _damaged(path: Path, what: str, symbol: str) -> DataIntegrityError:
    return DataIntegrityError(
        f"the kept bars {path.name}: the file {what}; "
        f"`trader data drop {symbol}` removes it, and its bars are fetched again"
    )


def _unusable(path: Path, exc: OSError) -> StateError:
    return StateError(
        f"{path} cannot be used ({exc.strerror or exc}); make it writable, or name another folder "
        "with --state-dir"
    )
