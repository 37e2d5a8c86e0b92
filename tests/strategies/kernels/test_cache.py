"""Compiled kernels are kept where that is possible, and one warning says where it is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from strategies.kernels.cache import KEPT_STATES, PREFIX, SOURCES, _sources, sources_digest

ROOT = Path(__file__).parents[3]
USE = """
{first}
from strategies.kernels import cache
{before}
import numba
{work}
print(cache.in_use().folder.parent)
"""
KERNEL = """
import numpy as np
from strategies.kernels.cpu import obv
assert obv(np.arange(1.0, 9.0), np.ones(8))[-1] == 8.0
"""
DOOR = """
import numpy as np
from strategies.kernels import cache
cache.keep_in(cache.Path({wanted!r}))
{before}
from strategies.kernels.dispatch import kernels
chosen = kernels({backend!r}, bars=10**9)
assert chosen.obv(np.arange(1.0, 9.0), np.ones(8))[-1] == 8.0
print(chosen.backend, cache.in_use())
"""


def use(
    *,
    keep_in: Path | None = None,
    first: str = "",
    before: str = "",
    work: str = "",
    cwd: Path = ROOT,
    **environ: str,
) -> subprocess.CompletedProcess[str]:
    """Import numba in a process of its own, then do some `work`; prints the folder of the cache."""
    if keep_in is not None:
        before = f"cache.keep_in(cache.Path({str(keep_in)!r})); {before}"
    return ran(USE.format(first=first, before=before, work=work), cwd, **environ)


def door(
    wanted: Path, *, backend: str, before: str, **environ: str
) -> subprocess.CompletedProcess[str]:
    """One kernel by the public door; prints the backend and the cache."""
    return ran(DOOR.format(wanted=str(wanted), before=before, backend=backend), **environ)


def ran(code: str, cwd: Path = ROOT, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env=kept | environ,
        capture_output=True,
        text=True,
        check=False,
    )


def folder_of(done: subprocess.CompletedProcess[str]) -> Path:
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def kept(folder: Path) -> list[Path]:
    return list(folder.glob(f"{PREFIX}*/*/*.nbi"))


def below_a_file(tmp_path: Path) -> Path:
    """A folder that nobody can make, not even root."""
    file = tmp_path / "file"
    file.touch()
    return file / "numba"


def test_kernels_are_kept_where_the_program_wants_them_and_nothing_is_said(tmp_path):
    done = use(work=KERNEL, keep_in=tmp_path / "state" / "numba")
    assert folder_of(done) == tmp_path / "state" / "numba"
    assert kept(tmp_path / "state" / "numba")
    assert done.stderr == ""
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def test_a_named_folder_goes_before_the_one_the_program_wants(tmp_path):
    done = use(work=KERNEL, keep_in=tmp_path / "state", NUMBA_CACHE_DIR=str(tmp_path / "named"))
    assert folder_of(done) == tmp_path / "named"
    assert kept(tmp_path / "named")
    assert not (tmp_path / "state").exists()


def test_an_unwritable_named_folder_gives_one_warning_and_a_private_one(tmp_path):
    bad = below_a_file(tmp_path)
    done = use(work=KERNEL, keep_in=tmp_path / "state" / "numba", NUMBA_CACHE_DIR=str(bad))
    assert folder_of(done) == tmp_path / "state" / "numba"
    assert (tmp_path / "state" / "numba").stat().st_mode & 0o777 == 0o700
    assert kept(tmp_path / "state" / "numba")
    (warning,) = done.stderr.splitlines()
    assert str(bad) in warning
    assert str(tmp_path / "state" / "numba") in warning


def test_an_unwritable_state_folder_leaves_a_private_one_among_the_temporary(tmp_path):
    spare = tmp_path / "tmp"
    spare.mkdir()
    done = use(keep_in=below_a_file(tmp_path), TMPDIR=str(spare))
    used = folder_of(done)
    assert used.parent == spare
    assert used.stat().st_mode & 0o777 == 0o700
    assert len(done.stderr.splitlines()) == 1
    assert folder_of(use(keep_in=below_a_file(tmp_path), TMPDIR=str(spare))) == used  # found again


def test_a_folder_that_others_can_write_is_not_loaded_from(tmp_path):
    spare = tmp_path / "tmp"
    trap = spare / f"debate-trader-{os.geteuid()}"
    trap.mkdir(parents=True)
    trap.chmod(0o777)
    used = folder_of(use(keep_in=below_a_file(tmp_path), TMPDIR=str(spare)))
    assert used not in {trap, below_a_file(tmp_path)}
    assert not list(trap.iterdir())
    assert not used.exists()  # it went with the process


def test_a_link_among_the_temporary_folders_is_not_followed(tmp_path):
    spare, elsewhere = tmp_path / "tmp", tmp_path / "elsewhere"
    spare.mkdir()
    elsewhere.mkdir(mode=0o700)
    (spare / f"debate-trader-{os.geteuid()}").symlink_to(elsewhere)
    assert folder_of(use(keep_in=below_a_file(tmp_path), TMPDIR=str(spare))) != elsewhere
    assert not list(elsewhere.iterdir())


FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))"


def test_where_nothing_can_be_written_auto_takes_the_reference(tmp_path):
    done = door(tmp_path / "numba", backend="auto", before=FULL, TMPDIR=str(tmp_path))
    assert done.stdout.startswith("reference None"), done.stderr


def test_where_nothing_can_be_written_cpu_by_name_says_what_to_do(tmp_path):
    done = door(tmp_path / "numba", backend="cpu", before=FULL, TMPDIR=str(tmp_path))
    assert done.returncode == 1
    assert "ConfigError" in done.stderr
    assert "NUMBA_CACHE_DIR" in done.stderr


def test_nothing_is_made_before_numba_is_needed(tmp_path):
    before = "import strategies.registry, sys; assert 'numba' not in sys.modules"
    done = door(tmp_path / "numba", backend="reference", before=before)
    assert done.stdout.strip() == "reference None", done.stderr
    assert not (tmp_path / "numba").exists()


def test_numba_that_is_there_already_is_told_too(tmp_path):
    done = use(work=KERNEL, first="import numba", NUMBA_CACHE_DIR=str(tmp_path / "named"))
    assert folder_of(done) == tmp_path / "named"
    assert kept(tmp_path / "named")


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("windows.py", True),  # its functions are compiled into those of others
        ("engines/lanes.py", True),  # its constants are
        ("spec.py", False),
        ("new.py", False),
    ],
)
def test_the_folder_changes_with_the_sources_that_kernels_are_made_of(tmp_path, name, counts):
    for path in SOURCES.rglob("*.py"):
        copy = tmp_path / path.relative_to(SOURCES)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    before = sources_digest(tmp_path)
    with (tmp_path / name).open("a", encoding="utf-8") as source:
        source.write("# changed\n")
    assert (sources_digest(tmp_path) != before) == counts


def test_a_child_process_shares_the_folder_of_its_parent(tmp_path):
    inherited = tmp_path / "numba" / f"{PREFIX}0123456789ab"
    assert folder_of(use(NUMBA_CACHE_DIR=str(inherited))) == tmp_path / "numba"


def unused(folder: Path, days: float) -> Path:
    """A folder that was made and is not used since."""
    folder.mkdir(parents=True)
    then = folder.stat().st_mtime - days * 86_400
    os.utime(folder, (then, then))
    return folder


@pytest.mark.parametrize("days", [29, 31])
@pytest.mark.parametrize("named", [False, True])
def test_states_of_the_sources_that_nobody_uses_are_forgotten(tmp_path, days, named):
    numba = tmp_path / "numba"
    old = unused(numba / f"{PREFIX}0123456789ab", days)
    theirs = unused(numba / f"{PREFIX}of-others", days)
    folder_of(use(NUMBA_CACHE_DIR=str(numba)) if named else use(keep_in=numba))
    assert old.exists() == (days < 30)
    assert theirs.exists()


def test_of_many_states_those_are_kept_that_were_used_last_or_today(tmp_path):
    numba = tmp_path / "numba"
    today = [unused(numba / f"{PREFIX}{k:012x}", 0.5) for k in range(2 * KEPT_STATES)]
    older = [unused(numba / f"{PREFIX}{k:012x}", 2.0) for k in range(100, 103)]
    folder_of(use(keep_in=numba))
    assert all(folder.exists() for folder in today)
    assert not any(folder.exists() for folder in older)


def installed(folder: Path) -> Path:
    """The packages where nothing can be kept beside them: not even root can write in a file."""
    for name in ("strategies", "trader"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    (folder / "strategies" / "kernels" / "__pycache__").touch()
    return folder


def test_an_installation_that_is_not_the_users_to_write_is_nothing_to_warn_of(tmp_path):
    beside = installed(tmp_path / "site")
    done = use(cwd=beside, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert folder_of(done) == tmp_path / "cache" / "debate-trader"
    assert done.stderr == ""


def test_a_user_without_a_home_has_no_cache_in_the_folder_he_is_in(tmp_path):
    beside, spare = installed(tmp_path / "site"), tmp_path / "tmp"
    spare.mkdir()
    nobody = "import os; os.path.expanduser = str"  # what it does where there is no home
    done = use(cwd=beside, first=nobody, XDG_CACHE_HOME="relative", TMPDIR=str(spare))
    assert folder_of(done) == spare / f"debate-trader-{os.geteuid()}"
    assert {path.name for path in beside.iterdir()} == {"strategies", "trader"}
    assert len(done.stderr.splitlines()) == 1


def test_a_relative_folder_stays_where_it_was_when_the_program_moves(tmp_path):
    beside = installed(tmp_path / "site")
    moves = f"import os; os.chdir({str(tmp_path)!r})"
    done = use(cwd=beside, work=f"{moves}\n{KERNEL}", NUMBA_CACHE_DIR="kept")
    assert folder_of(done) == beside / "kept"
    assert kept(beside / "kept")
    assert not (tmp_path / "kept").exists()


def test_every_function_that_numba_keeps_counts_as_a_source_of_kernels():
    program = """
import importlib, json
from strategies.kernels import cache
for path in cache.SOURCES.rglob("*.py"):
    name = ".".join(path.relative_to(cache.SOURCES).with_suffix("").parts)
    module = importlib.import_module(f"strategies.kernels.{name}".removesuffix(".__init__"))
    for value in vars(module).values():
        home = getattr(getattr(value, "py_func", None), "__module__", "")
        of_ours = home.startswith("strategies.kernels.")
        if of_ours and not home.startswith("strategies.kernels.cuda."):
            print(home.removeprefix("strategies.kernels."))
"""
    modules = set(ran(program).stdout.split())
    assert {"cpu_windows", "engines.walk_steps"} < modules
    assert modules <= set(_sources(SOURCES))
