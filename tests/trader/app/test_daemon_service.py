"""The daemon's surroundings: log, heartbeat, metrics, signals, unit and container file."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from threading import Event
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.trader.app.conftest import opened
from trader.app.daemon import Stop
from trader.app.folder import locked
from trader.app.heartbeat import Heartbeat, Pulse, holder, notify, read, status_of, write
from trader.app.logs import BYTES, logging_to, secrets_of, tell
from trader.app.metrics import Metrics, Standing, served
from trader.app.service import command, quoted, unit_text
from trader.core.errors import LockHeldError, StateError, UsageError
from trader.pipeline.daemon import Beat

NOW = datetime(2026, 7, 2, 20, 0, tzinfo=UTC)


# ---- log


def lines_of(path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_an_event_is_one_json_object_a_line(tmp_path):
    path = tmp_path / "daemon.log"
    with logging_to(path, form="json"):
        tell("job", job="cycle-2026-07-02", equity=Decimal("100000.50"), market_time=NOW)
        tell("failed", job="watch", problem="two\nlines")
    first, second = (json.loads(line) for line in lines_of(path))
    assert first["event"] == "job"
    assert (first["equity"], first["market_time"]) == ("100000.5", "2026-07-02T20:00:00Z")
    assert (first["level"], second["level"]) == ("info", "warning")
    assert datetime.fromisoformat(first["at"]).tzinfo is not None
    assert second["problem"] == "two\nlines"


def test_as_text_an_event_stays_on_one_line(tmp_path):
    path = tmp_path / "daemon.log"
    with logging_to(path, form="text"):
        tell("failed", job="watch", problem="two\nlines \x1b[31m", count=2)
    (line,) = lines_of(path)
    assert line.endswith('warning failed job=watch problem="two\\nlines \\u001b[31m" count=2')


def test_no_secret_reaches_the_log_not_even_from_a_library(tmp_path):
    path = tmp_path / "daemon.log"
    app = opened(tmp_path / "state")
    environ = {"APCA_API_KEY_ID": "PKCANARY0001", "APCA_API_SECRET_KEY": "canary/secret+2"}
    secrets = secrets_of(app.config, environ | {"OPENAI_API_KEY": "sk-canary-3", "OTHER": "x"})
    assert set(secrets) == {"PKCANARY0001", "canary/secret+2", "sk-canary-3"}
    for form in ("text", "json"):
        with logging_to(path, form=form, secrets=secrets):
            tell("failed", problem="403 for PKCANARY0001 with canary/secret+2", key="sk-canary-3")
            logging.getLogger("urllib3").warning("header %s", "sk-canary-3")
            try:
                raise ValueError("canary/secret+2")
            except ValueError:
                logging.getLogger("alpaca").exception("lost")
    text = path.read_text()
    assert "[secret]" in text
    assert "CANARY" not in text.upper()


def test_a_key_that_is_read_from_a_file_is_struck_out_as_well(tmp_path):
    file = tmp_path / "keys"
    file.write_text("APCA_API_KEY_ID=PKCANARY0001\nAPCA_API_SECRET_KEY=canary/secret+2\n")
    file.chmod(0o600)
    settings = opened(tmp_path / "state", f"broker.key_file={file}").config
    assert set(secrets_of(settings, {})) == {"PKCANARY0001", "canary/secret+2"}
    file.chmod(0o644)
    assert secrets_of(settings, {"OPENAI_API_KEY": "sk-canary-3"}) == ("sk-canary-3",)


def test_a_log_is_private_and_does_not_grow_for_ever(tmp_path):
    path = tmp_path / "daemon.log"
    with logging_to(path, form="text"):
        for number in range(60):
            tell("notice", text=f"{number} " + "x" * (BYTES // 10))
    kept = sorted(tmp_path.iterdir())
    assert [item.name for item in kept] == ["daemon.log", *(f"daemon.log.{n}" for n in (1, 2, 3))]
    assert all(item.stat().st_size <= BYTES for item in kept)
    assert all(item.stat().st_mode & 0o077 == 0 for item in kept)
    assert not logging.getLogger().handlers or all(
        "daemon.log" not in str(handler) for handler in logging.getLogger().handlers
    )


# ---- heartbeat


def heartbeat(**changes) -> Heartbeat:
    fields = {
        "pid": os.getpid(),
        "at": NOW,
        "started_at": NOW - timedelta(hours=1),
        "simulated": True,
        "metrics": "",
        "beat": Beat(state="waiting", last_cycle_at=NOW - timedelta(minutes=5)),
    }
    return Heartbeat(**(fields | changes))


class Held:
    """The lock of a state folder, held by a process of this number."""

    def __init__(self, folder, pid: int) -> None:
        self._file = (folder / "lock").open("w+")
        self._file.write(f"{pid}\n")
        self._file.flush()
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


def test_a_heartbeat_is_read_back_whole_and_only_by_its_owner(tmp_path):
    write(tmp_path, heartbeat())
    assert read(tmp_path) == heartbeat()
    assert (tmp_path / "heartbeat.json").stat().st_mode & 0o077 == 0
    assert [item.name for item in tmp_path.iterdir()] == ["heartbeat.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', "null", '"x"'])
def test_a_broken_heartbeat_is_none(tmp_path, text):
    (tmp_path / "heartbeat.json").write_text(text)
    assert read(tmp_path) is None
    assert status_of(tmp_path).state == "never"


def test_a_daemon_that_holds_the_lock_and_is_heard_runs(tmp_path):
    write(tmp_path, heartbeat())
    with Held(tmp_path, os.getpid()):
        found = status_of(tmp_path, now=NOW + timedelta(seconds=9))
    assert (found.state, found.pid, found.well) == ("running", os.getpid(), True)
    assert found.heartbeat_age == 9
    assert found.last_cycle_age == 309


@pytest.mark.parametrize("ahead", [61, -3600])  # silent, or a clock that was set back
def test_a_daemon_that_is_not_heard_is_stale(tmp_path, ahead):
    write(tmp_path, heartbeat())
    with Held(tmp_path, os.getpid()):
        found = status_of(tmp_path, now=NOW + timedelta(seconds=ahead))
    assert (found.state, found.well) == ("stale", False)


def test_without_the_lock_no_daemon_runs_whatever_its_heartbeat_says(tmp_path):
    write(tmp_path, heartbeat())
    assert status_of(tmp_path, now=NOW).state == "stopped"
    with Held(tmp_path, 1):  # another run holds it
        assert status_of(tmp_path, now=NOW).state == "stopped"


def test_a_daemon_that_said_good_bye_is_stopped(tmp_path):
    write(tmp_path, heartbeat(beat=Beat(state="ended")))
    with Held(tmp_path, os.getpid()):
        assert status_of(tmp_path, now=NOW).state == "stopped"


def test_the_holder_of_the_lock_is_named(tmp_path):
    assert holder(tmp_path) is None
    with Held(tmp_path, 4711):
        assert holder(tmp_path) == 4711
    assert holder(tmp_path) is None


def test_asking_for_the_holder_keeps_no_run_out(tmp_path, monkeypatch):
    with (tmp_path / "lock").open("w") as asking:
        flock = fcntl.flock
        flock(asking, fcntl.LOCK_SH)

        def answered(handle, mode):
            try:
                flock(handle, mode)
            except BlockingIOError:  # who asks has the answer by now
                flock(asking, fcntl.LOCK_UN)
                raise

        monkeypatch.setattr(fcntl, "flock", answered)
        with locked(tmp_path), pytest.raises(LockHeldError), locked(tmp_path):
            pass


def pulse_of(folder) -> Pulse:
    return Pulse(folder, simulated=True, metrics="", alive=lambda: True, written=lambda at: None)


def test_a_heartbeat_that_cannot_be_written_ends_no_daemon(tmp_path):
    (tmp_path / "heartbeat.new").mkdir()  # nothing can be written there
    with pulse_of(tmp_path) as pulse:
        pulse.beat(Beat(state="working"))
        (tmp_path / "heartbeat.new").rmdir()
        pulse.beat(Beat(state="waiting"))
        assert read(tmp_path).beat.state == "waiting"


def test_a_daemon_whose_folder_is_gone_says_so(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    pulse = pulse_of(folder)
    pulse.beat(Beat())
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(StateError, match="is gone"):
        pulse.beat(Beat(state="working"))


def test_the_pulse_goes_on_until_the_daemon_does_not_answer_for_itself(tmp_path, monkeypatch):
    asked = Event()
    monkeypatch.setattr("trader.app.heartbeat.BEAT_SECONDS", 0.0)
    lives = iter([True, True])

    def alive() -> bool:
        answer = next(lives, False)
        if not answer:
            asked.set()
        return answer

    told: list[datetime] = []
    with Pulse(tmp_path, simulated=True, metrics="", alive=alive, written=told.append) as pulse:
        assert asked.wait(30)
        silent = read(tmp_path)
        pulse.beat(Beat(state="waiting", job="x"))
        assert read(tmp_path).beat.job == "x"
        assert read(tmp_path).at == told[-1]
    assert silent.beat.state == "starting"
    assert len(told) == 5  # at first, twice by itself, on a change, at the end
    assert read(tmp_path).beat.state == "stopped"  # it was cut short: no one said it had ended


def test_the_service_manager_hears_when_the_daemon_is_ready(tmp_path, monkeypatch):
    address = str(tmp_path / "notify")
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as manager:
        manager.bind(address)
        manager.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        with Pulse(
            tmp_path, simulated=True, metrics="", alive=lambda: True, written=lambda at: None
        ) as pulse:
            pulse.beat(Beat(state="working"))
            pulse.beat(Beat(state="waiting"))
        heard = [manager.recv(64) for _ in range(2)]
    assert heard == [b"READY=1", b"STOPPING=1"]
    notify("WATCHDOG=1")  # no one listens any more: nothing happens


# ---- signals


def test_the_first_signal_is_noted_and_the_second_one_leaves():
    before = signal.getsignal(signal.SIGTERM)
    stop = Stop()
    with stop.listening():
        signal.raise_signal(signal.SIGTERM)
        assert stop.asked
        assert stop.signal == signal.SIGTERM
        stop.wait(3600)  # returns at once
        with pytest.raises(SystemExit) as left:
            signal.raise_signal(signal.SIGTERM)
        assert left.value.code == 143
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is before


# ---- metrics


def measured() -> Metrics:
    metrics = Metrics(
        standing=Standing(
            equity=Decimal("100250.5"),
            cash=Decimal(85000),
            positions=1,
            open_orders=2,
            unresolved=0,
            unprotected=1,
            stopped={"halted": 1, "frozen": 0},
        ),
        beat_at=NOW - timedelta(seconds=4),
        cycle_at=NOW - timedelta(hours=2),
        stream_open=True,
        fills=3,
        failures=2,
    )
    metrics.decisions.update(["GO", "NO_GO", "NO_GO"])
    metrics.jobs["cycle", "done"] += 3
    return metrics


def values(text: str) -> dict[str, float]:
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def test_metrics_tell_ages_money_orders_and_what_stops_trading():
    assert values(measured().text(NOW)) == {
        "trader_heartbeat_age_seconds": 4,
        "trader_last_cycle_age_seconds": 7200,
        "trader_stream_up": 1,
        "trader_equity_usd": 100250.5,
        "trader_cash_usd": 85000,
        "trader_positions": 1,
        "trader_open_orders": 2,
        "trader_unresolved_orders": 0,
        "trader_unprotected_positions": 1,
        'trader_entries_stopped{by="halted"}': 1,
        'trader_entries_stopped{by="frozen"}': 0,
        "trader_fills_total": 3,
        "trader_failures_total": 2,
        'trader_decisions_total{verdict="GO"}': 1,
        'trader_decisions_total{verdict="NO_GO"}': 2,
        'trader_jobs_total{job="cycle",outcome="done"}': 3,
    }


def test_metrics_are_in_the_text_format_of_prometheus():
    name = r"trader_[a-z_]+"
    labels = r'(\{[a-z]+="[A-Za-z_]+"(,[a-z]+="[A-Za-z_]+")*\})?'
    line = re.compile(rf"# HELP {name} .+|# TYPE {name} (gauge|counter)|{name}{labels} [-\d.e+]+")
    for text in (Metrics().text(NOW), measured().text(NOW)):
        assert text.endswith("\n")
        assert all(line.fullmatch(found) for found in text.splitlines())


def test_metrics_are_served_on_loopback_under_their_path_only():
    with served(0, measured().text) as address:
        host, port = address.split(":")
        assert host == "127.0.0.1"
        with urlopen(f"http://{address}/metrics", timeout=30) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert values(answer.read().decode())["trader_positions"] == 1
        with pytest.raises(HTTPError) as refused:
            urlopen(f"http://{address}/", timeout=30)
        assert refused.value.code == 404
        refused.value.close()
        with pytest.raises(UsageError, match=r"daemon\.metrics_port"), served(int(port), str):
            pass
    with served(None, str) as nothing:
        assert nothing == ""


# ---- unit and container


def test_the_unit_names_this_program_its_options_and_its_folder(tmp_path):
    state = tmp_path / "my state"
    words = ["--state-dir", str(state), "--set", "symbols=[AAPL, MSFT]", "--data", "csv:50%"]
    text = unit_text(words, state_dir=state, system=False)
    program = " ".join(quoted(word) for word in command([]))
    assert f'ExecStart={program} --state-dir "{state}"' in text
    assert program.startswith(str(Path(sys.executable).parent))
    assert program.endswith("run --paper")
    assert '"symbols=[AAPL, MSFT]" --data csv:50%%' in text
    assert f'ReadWritePaths="{state}"' in text
    assert "@" not in re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    for line in (
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "PrivateTmp=yes",
        "MemoryMax=2G",
        "Restart=on-failure",
        "StartLimitIntervalSec=0",
        "RestartPreventExitStatus=2 3 5",
        "WantedBy=default.target",
    ):
        assert line in text.splitlines()
    assert "User=" not in text
    system = unit_text(words, state_dir=state, system=True)
    assert "CapabilityBoundingSet=" in system.splitlines()
    assert "WantedBy=multi-user.target" in system.splitlines()
    assert "User=" in system


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("plain", "plain"),
        ("", '""'),
        ("a b", '"a b"'),
        ('say "x"', '"say \\"x\\""'),
        ("$HOME", "$$HOME"),
        ("100%", "100%%"),
        ("a\\b", '"a\\\\b"'),
    ],
)
def test_words_reach_systemd_as_they_are(word, said):
    assert quoted(word) == said


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
@pytest.mark.parametrize("system", [False, True])
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path, system):
    path = tmp_path / "trader.service"
    path.write_text(unit_text(["--speed", "0"], state_dir=tmp_path / "state", system=system))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "trader.service" not in done.stderr
    assert done.returncode == 0, done.stderr


def test_the_container_runs_as_nobody_in_particular_and_is_looked_after():
    text = (files("trader") / "deploy" / "Containerfile").read_text(encoding="utf-8")
    assert re.search(r"^USER \d{4,}$", text, flags=re.MULTILINE)
    assert re.search(r"^VOLUME /state$", text, flags=re.MULTILINE)
    assert "trader daemon status --state-dir /state" in text
    assert "--read-only" in text
    assert 'ENTRYPOINT ["trader", "run", "--paper"' in text
    assert "ENV APCA" not in text
    assert "--restart on-failure" in text


def test_no_key_that_lies_in_the_folder_gets_into_the_image():
    text = (files("trader") / "deploy" / "Containerfile").read_text(encoding="utf-8")
    copied = re.findall(r"^COPY (.+) \S+$", text, flags=re.MULTILINE)
    assert " ".join(copied).split() == [
        *("pyproject.toml", "README.md", "LICENSE"),
        *("trader", "agents", "strategies"),
    ]


# ---- start and stop


def test_no_daemon_is_started_where_another_run_is_at_work(tmp_path):
    app = opened(tmp_path)
    with Held(tmp_path, 4711), pytest.raises(LockHeldError, match="4711"):
        app.daemon_start([])


def test_a_run_that_is_no_daemon_is_not_stopped(tmp_path):
    app = opened(tmp_path)
    write(tmp_path, heartbeat(pid=1))
    with Held(tmp_path, os.getpid()), pytest.raises(UsageError, match="which is no daemon"):
        app.daemon_stop(0)


def test_stopping_what_does_not_run_is_no_error(tmp_path):
    done = opened(tmp_path).daemon_stop(0)
    assert (done.changed, done.state) == (False, "stopped")
