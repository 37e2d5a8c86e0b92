"""`trader run --paper` without --once, and `trader daemon start|stop|status|install`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from trader.cli import output
from trader.cli.main import app
from trader.core.errors import LockHeldError, UsageError

ROOT = Path(__file__).parents[3]
FAST = ["--set", "kernels.backend=reference", "--set", "market.start=2026-08-03"]


@pytest.fixture(autouse=True)
def _speech(monkeypatch):
    monkeypatch.setattr(output, "SPEECH", output.Speech())
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)


def trader(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_the_schedule_ends_with_its_market_and_says_so(tmp_path):
    options = ["--speed", "0", "--state-dir", str(tmp_path), *FAST]
    done = subprocess.run(
        [sys.executable, "-m", "trader", "run", "--paper", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert "the bars of its market are over" in done.stdout
    assert "slots  3, decisions 0" in done.stdout
    assert "job=cycle-2026-08-05" in done.stderr
    again = trader("run", "--paper", "--json", "-q", *options)
    body = json.loads(again.stdout)
    assert (body["schema_version"], body["ended"], body["slots"]) == (1, "market", 0)
    assert again.stderr == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--speed", "0"], "trader run --paper"),
        (["run", "--paper", "--once", "--speed", "0"], "--speed and --log go with the schedule"),
        (["run", "--paper", "--once", "--log", "x"], "--speed and --log go with the schedule"),
        (["run", "--paper", "--speed", "-1"], "--speed"),
        (["run", "--paper", "--speed", "nan"], "--speed"),
        (["daemon", "start", "--speed", "-1"], "--speed"),
        (["daemon", "install", "--print", "--broker", "live"], "--broker"),
    ],
)
def test_a_wrong_word_is_a_usage_error(tmp_path, words, said):
    done = trader(*words, "--state-dir", str(tmp_path / "state"))
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)
    assert not (tmp_path / "state").exists()


def test_what_a_daemon_dies_of_at_once_is_what_start_says(tmp_path):
    done = trader("daemon", "start", "--debate", "off", "--state-dir", str(tmp_path))
    assert isinstance(done.exception, UsageError)
    assert "never trades without a debate" in str(done.exception)


def test_a_daemon_is_started_seen_and_stopped(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    where = ["--state-dir", str(tmp_path)]
    none = trader("daemon", "status", *where)
    assert (none.exit_code, "none has run here" in none.stdout) == (4, True)
    started = trader("daemon", "start", "--speed", "1", "--json", *where, *FAST)
    assert started.exit_code == 0, started.exception
    pid = json.loads(started.stdout)["pid"]
    try:
        seen = trader("daemon", "status", "--json", *where)
        body = json.loads(seen.stdout)
        assert (seen.exit_code, body["state"], body["pid"]) == (0, "running", pid)
        assert body["heartbeat_age"] < 60
        assert "daemon         running as process" in trader("status", *where).stdout
        second = trader("daemon", "start", *where, *FAST)
        assert isinstance(second.exception, LockHeldError)
        assert str(pid) in str(second.exception)
    finally:
        stopped = trader("daemon", "stop", "--json", *where)
    assert stopped.exit_code == 0, stopped.exception
    assert json.loads(stopped.stdout)["pid"] == pid
    after = trader("daemon", "status", *where)
    assert (after.exit_code, "stopped" in after.stdout) == (4, True)
    assert trader("daemon", "stop", *where).stdout == "no daemon runs\n"


def test_a_unit_is_shown_or_written_and_never_started(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    options = ["--state-dir", str(tmp_path / "state"), "--speed", "60"]
    shown = trader("daemon", "install", "--print", *options)
    assert shown.exit_code == 0, shown.exception
    assert f"run --paper --state-dir {tmp_path / 'state'} --speed 60" in shown.stdout
    assert not (tmp_path / "config").exists()
    written = trader("daemon", "install", *options)
    path = tmp_path / "config" / "systemd" / "user" / "trader.service"
    assert path.read_text() == shown.stdout
    assert "systemctl --user enable --now trader.service" in written.stdout
