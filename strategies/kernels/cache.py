"""Where compiled kernels are kept between runs, and a private folder where that place is no use.

numba reads NUMBA_CACHE_DIR once, when it is imported, and any of our modules may be the one that
imports it first: so the folder is chosen at that moment, and nothing is touched before it.

Each state of the sources has a folder of its own. numba looks only at the file of the function it
has kept, not at those whose functions it calls: after an upgrade it would run yesterday's code.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

SOURCES = Path(__file__).parent
VARIABLE = "NUMBA_CACHE_DIR"
PREFIX = "kernels-"  # of the folder of one state of the sources
PRIVATE_MODE = 0o700
PROBE_BYTES = 16 << 20  # a little more than all kernels take
PROBE_MORE_BYTES = 1 << 20  # where some are kept already
COMPILES = re.compile(r"^(import numba$|@(compiled|inlined|step)$)", re.MULTILINE)
IMPORTED = re.compile(
    r"^from strategies\.kernels(?:\.([\w.]+))? import (\([^)]*\)|.*)", re.MULTILINE
)
STATE = re.compile(PREFIX + "[0-9a-f]{12}")
KEPT_SECONDS = 30 * 86_400.0  # after the last use, a state of the sources is forgotten
KEPT_STATES = 8  # more are forgotten after a day: who edits the sources makes many
KEPT_MORE_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCache:
    """Where compiled kernels are kept.

    folder   the one in use
    refused  the one that was wanted but is no use, and why; None where the wanted one is in use
    """

    folder: Path
    refused: str | None = None


class _Door:
    """The wish of the program, and what came of it: one for each process."""

    wanted: Path | None = None
    chosen: KernelCache | None = None


def keep_in(folder: Path) -> None:
    """Keep compiled kernels in `folder`, unless NUMBA_CACHE_DIR names another; makes nothing yet.

    Without effect once numba is imported.
    """
    _Door.wanted = folder


def in_use() -> KernelCache | None:
    """The folder that was chosen; None while nothing has been compiled or loaded."""
    return _Door.chosen


def choose() -> KernelCache:
    """Choose a folder that can be written, and give it to numba; says so where it is another one.

    In this order: NUMBA_CACHE_DIR, else that of `keep_in`, else beside the sources, or, where those
    are not the user's to write, in the user's cache; then a private folder (mode 0700) in the
    program's own, or in the temporary one. Raises ImportError where none can be written, as numba
    cannot be loaded for use then.
    """
    _Door.chosen = _chosen(os.environ.get(VARIABLE), _Door.wanted)
    os.environ[VARIABLE] = str(_Door.chosen.folder)
    if _Door.chosen.refused is not None:
        sys.stderr.write(
            f"warning: compiled kernels cannot be kept in {_Door.chosen.refused}; "
            f"they are kept in {_Door.chosen.folder.parent}\n"
        )
    return _Door.chosen


def _chosen(named: str | None, wanted: Path | None) -> KernelCache:
    state = PREFIX + sources_digest()
    firsts = _firsts(named, wanted)
    reasons: list[str] = []
    for folder in firsts:
        reason = _unusable(folder / state)
        if reason is None:
            _forget_old(folder, state)
            return KernelCache(folder=folder / state)  # any of these is as good
        reasons.append(f"{folder} ({reason})")
    refused = " or ".join(reasons)
    for private in (wanted, _shared_temporary()):
        if private is None or private in firsts:
            continue
        if _private(private) and _unusable(private / state) is None:
            return KernelCache(folder=private / state, refused=refused)
    fresh = _fresh_temporary()
    if fresh is None:
        raise ImportError(
            f"compiled kernels can be kept in no folder, neither in {refused} nor in a temporary "
            f"one: make one writable or name another by {VARIABLE}"
        )
    return KernelCache(folder=fresh / state, refused=refused)


def _firsts(named: str | None, wanted: Path | None) -> Sequence[Path]:
    """The folders to try before a warning is due; absolute, as the program may change its own."""
    if named:
        folder = Path(named).absolute()
        return (folder.parent if folder.name.startswith(PREFIX) else folder,)  # of a parent process
    if wanted is not None:
        return (wanted,)
    beside = SOURCES / "__pycache__"
    asked = Path(os.environ.get("XDG_CACHE_HOME", ""))  # to be ignored where it is not absolute
    users = asked if asked.is_absolute() else Path(os.path.expanduser("~/.cache"))
    known = users.is_absolute()  # a user without a name has no home
    return (beside, users / "debate-trader") if known else (beside,)


def sources_digest(folder: Path = SOURCES) -> str:
    """Twelve hexadecimal digits that change with any source that compiled kernels are made of."""
    digest = hashlib.sha256()
    for name, text in sorted(_sources(folder).items()):
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()[:12]


def _sources(folder: Path) -> dict[str, str]:
    """Modules of this package that import numba or its decorators, and all that they import."""
    texts = {
        ".".join(path.relative_to(folder).with_suffix("").parts): path.read_text("utf-8")
        for path in folder.rglob("*.py")
    }
    waiting = [name for name, text in texts.items() if COMPILES.search(text)]
    found: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        if name in texts and name not in found:
            found[name] = texts[name]
            for module, names in IMPORTED.findall(texts[name]):
                waiting.append(module)  # or modules of that room
                waiting += [f"{module}.{one}".lstrip(".") for one in re.findall(r"\w+", names)]
    return found


def _unusable(folder: Path) -> str | None:
    """Why kernels cannot be kept in `folder`; None where they can. Makes the folder."""
    try:
        _make(folder)
        used = next(folder.iterdir(), None) is not None
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(PROBE_MORE_BYTES if used else PROBE_BYTES))
            probe.flush()
        os.utime(folder)  # the last use
    except OSError as exc:
        return exc.strerror or str(exc)
    return None


def _make(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone."""
    for place in (*reversed(folder.parents), folder):
        if not place.exists():
            place.mkdir(mode=PRIVATE_MODE, exist_ok=True)


def _private(folder: Path) -> bool:
    """Whether `folder` is this user's alone; made where it is missing.

    What lies in it is loaded as code, so nobody else may have put it there.
    """
    try:
        _make(folder)
        found = folder.lstat()
    except OSError:
        return False
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return mine and not found.st_mode & 0o077


def _shared_temporary() -> Path | None:
    try:
        return Path(tempfile.gettempdir()) / f"debate-trader-{os.geteuid()}"
    except OSError:  # not even a temporary folder
        return None


def _fresh_temporary() -> Path | None:
    """A new private folder, which goes with the process."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="debate-trader-"))
    except OSError:
        return None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder if _unusable(folder) is None else None


def _forget_old(folder: Path, state: str) -> None:
    """Remove the states of the sources that nobody has used for long, sooner where many are."""
    try:
        now = (folder / state).lstat().st_mtime
        states = [
            (path.lstat().st_mtime, path) for path in folder.iterdir() if STATE.fullmatch(path.name)
        ]
    except OSError:  # another process removes them too
        return
    for place, (used, path) in enumerate(sorted(states, reverse=True)):
        if now - used > (KEPT_SECONDS if place < KEPT_STATES else KEPT_MORE_SECONDS):
            shutil.rmtree(path, ignore_errors=True)


class _BeforeNumba:
    """Looks on while modules are found, to choose the folder just before numba is."""

    @staticmethod
    def find_spec(
        name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find nothing; numba's own finder comes next."""
        if name == "numba":
            choose()
            sys.meta_path.remove(_BeforeNumba)
        return None


def watch() -> None:
    """Choose the folder when numba is imported, or now where it already is."""
    numba = sys.modules.get("numba")
    if numba is not None:
        numba.config.CACHE_DIR = str(choose().folder)
    elif _BeforeNumba not in sys.meta_path:
        sys.meta_path.insert(0, _BeforeNumba)
