"""The shape of the code: who may know whom, what may stand where, and no live trading anywhere."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("trader", "agents", "strategies")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
TRACKED = subprocess.run(
    ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
).stdout.splitlines()


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def test_the_layers_of_the_house_hold():
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_the_top_level_holds_the_agreed_entries_only():
    agreed = {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "config.yaml",
        "tests",
        *PACKAGES,
        "research",
    }
    top = {name.split("/")[0] for name in TRACKED}
    assert {name for name in top if not name.startswith(".")} <= agreed


@pytest.mark.parametrize("path", SOURCES + TESTS, ids=name_of)
def test_every_module_opens_with_a_sentence(path):
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert text.split("\n")[0].rstrip().endswith((".", ":", "?")), name_of(path)


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_module_has_grown_beyond_reading(path):
    assert len(path.read_text().splitlines()) <= 450


DOORS = {
    "alpaca": ("trader/broker/",),
    "apscheduler": ("trader/pipeline/daemon.py",),
    "msgpack": ("trader/broker/",),
    "websockets": ("trader/broker/",),
    "langgraph": ("agents/debate/",),
    "numba": ("strategies/kernels/",),
    "ta": ("strategies/indicators/library.py",),
    "exchange_calendars": ("trader/core/clock.py",),
    "typer": ("trader/cli/",),
    "rich": ("trader/cli/",),
    "ruamel": ("trader/core/config/",),
    "pydantic": ("trader/core/config/", "agents/debate/schemas.py"),
    "requests": ("trader/broker/",),
    "sqlite3": (
        "trader/ledger/",
        "trader/broker/exchange/",
        "agents/chat/store.py",
        "agents/debate/checkpoints.py",
    ),
    "openai": ("agents/chat/openai_chat.py",),
    "httpx2": ("agents/chat/openai_chat.py",),
    "random": (),
    "pickle": (),
}


@pytest.mark.parametrize("library", sorted(DOORS))
def test_each_outside_library_has_its_door(library):
    strangers = [
        name_of(path)
        for path in SOURCES
        if library in imports(path) and not name_of(path).startswith(DOORS[library] or ("-",))
    ]
    assert strangers == []


def test_only_the_clock_reads_wall_time():
    pattern = re.compile(
        r"datetime\.now|utcnow|time\.time|date\.today|time_ns\(|perf_counter|monotonic\(\)"
    )
    readers = [name_of(path) for path in SOURCES if pattern.search(path.read_text())]
    assert readers == ["trader/core/clock.py"]


LIVE = re.compile(r"//api\.alpaca\.markets|broker-api|paper\s*=\s*False|BrokerClient|live_trading")


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_nothing_in_the_source_could_trade_live_money(path):
    assert not LIVE.search(path.read_text())


def test_only_the_session_makes_alpaca_clients():
    makers = [name_of(path) for path in SOURCES if re.search(r"TradingClient\(", path.read_text())]
    assert makers == ["trader/broker/session.py"]


def test_broad_excepts_stand_at_the_front_door_only():
    broad = re.compile(
        r"except\s*(Exception|BaseException)?\s*:|except (Exception|BaseException) as"
    )
    found = {name_of(path): len(broad.findall(path.read_text())) for path in SOURCES}
    # the ledger's and the exchange's transactions undo and raise again; the front door turns the
    # rest into a line
    allowed = {"trader/cli/main.py", "trader/ledger/store.py", "trader/broker/exchange/state.py"}
    assert {name for name, count in found.items() if count} <= allowed
    for name in allowed - {"trader/cli/main.py"}:
        for node in ast.walk(ast.parse((ROOT / name).read_text())):
            if isinstance(node, ast.ExceptHandler) and (
                node.type is None or getattr(node.type, "id", "") in {"Exception", "BaseException"}
            ):
                assert any(isinstance(inner, ast.Raise) for inner in ast.walk(node)), name


def test_nothing_is_left_unfinished():
    marks = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
    assert [name_of(path) for path in SOURCES if marks.search(path.read_text())] == []


def test_no_tracked_file_holds_a_download_address_or_a_path_of_one_machine():
    address = re.compile(
        r"https?://(?!127\.0\.0\.1|localhost|paper\.invalid|test/|www\.w3\.org)[\w.-]+"
    )
    home = re.compile(r"(?<![\w.~-])/(?:root|home/\w+|work)/")
    for name in TRACKED:
        path = ROOT / name
        if path.suffix in {".gz", ".png", ".svg"} or not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        if name.endswith(("requirements.txt", "constraints.txt", ".lock", "pyproject.toml")):
            assert not address.search(text), name
        if not name.startswith("tests/architecture/"):
            assert not home.search(text), (name, home.search(text))


def test_langgraph_reads_checkpoints_strictly_whichever_package_comes_first():
    for package in ("trader", "agents"):
        program = (
            f"import {package}; from langgraph.checkpoint.serde import _msgpack as m; "
            "assert m.STRICT_MSGPACK_ENABLED"
        )
        env = {key: value for key, value in os.environ.items() if key != "LANGGRAPH_STRICT_MSGPACK"}
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=env,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
