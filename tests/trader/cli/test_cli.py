"""The command line as a person and a script meet it: exit codes, streams, one clear line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.main import get_command

from trader.cli.main import EXIT_CODES, app
from trader.core.errors import TraderError

ROOT = Path(__file__).parents[3]
FAST = ("--set", "kernels.backend=reference")


def trader(*arguments: str, state: Path | None = None, env=None, stdin=subprocess.DEVNULL):
    """Run the command in a process of its own, as it is run."""
    command = [sys.executable, "-m", "trader", *arguments]
    if state is not None:
        command += ["--state-dir", str(state)]
    return subprocess.run(
        command,
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        stdin=stdin,
        env={**os.environ, **(env or {})},
    )


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("backtest",), 2, "--from"),
        (("backtest", "--from", "2025-13-01"), 2, "write a day as YYYY-MM-DD"),
        (("backtst",), 2, "Did you mean 'backtest'"),
        (("backtest", "--from", "2027-01-04"), 5, "AAPL 2015-01-02 to 2026-08-05"),
        (("backtest", "--from", "2026-08-03", "--symbols", "APPL"), 5, "did you mean AAPL"),
        (("backtest", "--from", "2026-08-03", "--data", "smaple"), 2, '--data: "smaple"'),
        (("backtest", "--from", "2026-08-03", "--cash", "-5"), 2, "--cash: -5"),
        (("backtest", "--from", "2026-08-03", "--data", "csv:/no/where"), 2, "/no/where"),
        (
            ("backtest", "--from", "2026-08-03", "--strategy", "atr_tend"),
            2,
            "did you mean atr_trend",
        ),
        (("backtest", "--from", "2026-08-04", "--to", "2026-08-03"), 2, "before"),
        (("backtest", "--from", "2026-08-03", "--sizing", "all_in"), 2, "say --debate off"),
        (("run", "--paper", "--once", "--sizing", "all_in"), 2, "--sizing"),
        (("backtest", "--from", "2026-08-03", "--set", "risk.max_position_weight=15"), 3, "0.15"),
        (("run",), 2, "paper money is the only mode"),
        (("run", "--paper", "--once", "--speed", "0"), 2, "go with the schedule"),
        (("run", "--live"), 2, "--live"),
        (
            ("run", "--paper", "--once", "--set", "debate.mode=off"),
            2,
            "never trades without a debate",
        ),
        (("replay", "nothing"), 2, "trader journal"),
        (("debate", "APPL"), 5, "did you mean AAPL"),
        (("status", "--config", "/no/where.yaml"), 3, "/no/where.yaml"),
    ],
)
def test_each_mistake_gets_its_exit_code_and_a_line_that_helps(tmp_path, arguments, code, words):
    done = trader(*arguments, state=tmp_path if arguments != ("backtst",) else None)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_every_kind_of_error_has_an_exit_code():
    kinds = {kind for kind, _ in EXIT_CODES}
    waiting, found = [TraderError], set()
    while waiting:
        kind = waiting.pop()
        found.add(kind)
        waiting += kind.__subclasses__()
    ours = {kind for kind in found if kind.__module__.startswith("trader.core")} - {TraderError}
    assert kinds - {TraderError} <= ours
    assert all(any(issubclass(kind, known) for known in kinds - {TraderError}) for kind in ours)


def test_a_misspelt_variable_and_a_bad_file_are_told_all_at_once(tmp_path):
    bad = tmp_path / "config.yaml"
    bad.write_text("risk:\n  min_rewrd_risk: 3\n  max_position_weight: 15\nsymbols: [ON, on, 7]\n")
    done = trader("config", "validate", "--config", str(bad), env={"TRADER_RISK__ATR_WINDW": "9"})
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) >= 4
    assert f"{bad}:2:3: risk.min_rewrd_risk: unknown setting, did you mean" in done.stderr
    assert "TRADER_RISK__ATR_WINDW" in done.stderr


def test_results_go_to_stdout_progress_to_stderr_and_no_colour_into_a_pipe(tmp_path):
    done = trader("backtest", "--from", "2026-07-01", *FAST, state=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    for words in (
        "sample",
        "splits and dividends",
        "buy & hold",
        "funnel",
        "report",
        "rules, no model",
    ):
        assert words in done.stdout
    quiet = trader("-q", "backtest", "--from", "2026-08-01", *FAST, state=tmp_path)
    assert (quiet.returncode, quiet.stderr) == (0, "")


def test_json_is_one_object_on_stdout_for_every_command(tmp_path):
    commands = [
        ("backtest", "--from", "2026-08-01", *FAST),
        ("run", "--paper", "--once", *FAST),
        ("debate", "AAPL", "--as-of", "2026-07-02"),
        ("status",),
        ("orders",),
        ("positions",),
        ("journal",),
        ("doctor",),
        ("config", "show"),
        ("config", "validate"),
        ("init", str(tmp_path / "mine.yaml")),
    ]
    for command in commands:
        done = trader(*command, "--json", state=tmp_path / "state")
        assert done.returncode == 0, (command, done.stderr)
        body = json.loads(done.stdout)
        assert done.stdout.count("\n") == 1
        assert body["schema_version"] == 1, command


def test_every_command_has_help_with_words():
    def walk(command, path):
        yield path, command
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*path, name))

    found = dict(walk(get_command(app), ()))
    assert {("backtest",), ("run",), ("config", "show"), ("doctor",)} <= set(found)
    for path, command in found.items():
        assert command.help, path
        for parameter in command.params:
            assert getattr(parameter, "help", "x"), (path, parameter.name)


def test_help_is_light():
    program = (
        "import sys; sys.argv = ['trader', '--help']\n"
        "from trader.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pandas', 'numba', 'langgraph', 'openai', 'alpaca', 'pydantic', "
        "'rich'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Exit codes" in done.stdout


def _hear_interrupts() -> None:
    """Undo what a shell does to background jobs: the child would never hear Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_ctrl_c_exits_with_130_says_so_and_leaves_nothing_half_done(tmp_path):
    command = [sys.executable, "-m", "trader", "backtest", "--from", "2016-01-01", *FAST]
    process = subprocess.Popen(
        [*command, "--state-dir", str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hear_interrupts,  # noqa: PLW1509 - no thread runs here
    )
    reports = tmp_path / "reports"
    while process.poll() is None and not (reports.exists() and any(reports.iterdir())):
        time.sleep(0.05)  # until it is at work; a process cannot be asked
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "interrupted" in err
    assert out == ""
    assert list(reports.iterdir()) == []


def test_a_second_run_on_the_same_folder_is_turned_away(tmp_path):
    import fcntl

    (tmp_path / "lock").write_text("4242\n")
    with (tmp_path / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = trader("run", "--paper", "--once", *FAST, state=tmp_path)
    assert done.returncode == 7
    assert "process 4242" in done.stderr
    assert not (tmp_path / "ledger.db").exists()


def test_an_existing_configuration_is_left_alone(tmp_path):
    mine = tmp_path / "config.yaml"
    mine.write_text("symbols: [AAPL]\n")
    done = trader("init", str(mine), state=tmp_path / "state")
    assert done.returncode == 0
    assert "left alone" in done.stdout
    assert mine.read_text() == "symbols: [AAPL]\n"


def test_with_json_a_failure_is_an_object_too(tmp_path):
    done = trader("debate", "APPL", "--json", state=tmp_path)
    body = json.loads(done.stdout)
    assert (done.returncode, body["exit_code"], body["ok"]) == (5, 5, False)
    assert "AAPL" in body["errors"][0]


def test_the_doctor_works_with_a_broken_configuration_and_names_it(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("rsk: 1\n")
    done = trader("doctor", "--config", str(bad), state=tmp_path / "state")
    assert done.returncode == 4
    assert "failed   configuration" in done.stdout
    assert "ok       data" in done.stdout


def test_any_terminal_can_show_the_result_and_nothing_steers_it(tmp_path):
    env = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = trader("debate", "AAPL", "--as-of", "2026-07-02", state=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    steered = trader("replay", "x\x1b[31m", state=tmp_path)
    assert "\x1b" not in steered.stderr
