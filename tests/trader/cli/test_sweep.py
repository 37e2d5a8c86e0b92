"""`trader sweep` as a person and a script meet it."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

from tests.trader.cli.test_cli import FAST, trader
from trader.cli.main import main

SMALL = ("--strategy", "sma_cross", "--from", "2025-01-02", "--grid", "fast=4:10:2,slow=8:24:4")


def test_the_table_says_what_was_found_and_how_much_of_it_is_luck(tmp_path):
    done = trader("sweep", *SMALL, "--top", "3", *FAST, state=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in (
        "PAPER sweep sw-",
        "sample: AAPL splits and dividends",
        "2025-01-02 to 2026-08-05",
        "18 run, 2 skipped because their numbers do not fit together, 20 in the grid",
        "the best 3 by sharpe",
        "configured",
        "buy & hold",
        "is it luck?",
        "the best of 18 sets ",
        "deflated Sharpe",
        "walk-forward 4",
        "report.html",
    ):
        assert words in done.stdout, words
    assert "combos a second" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_json_is_one_object_and_the_same_again_but_for_its_times(capsys, monkeypatch, tmp_path):
    bodies = []
    arguments = ("sweep", *SMALL, *FAST, "--json", "-q", "--state-dir", str(tmp_path))
    for _ in range(2):
        assert run_here(monkeypatch, *arguments) == 0
        said = capsys.readouterr()
        assert said.err == ""
        assert said.out.count("\n") == 1
        bodies.append(json.loads(said.out))
        assert bodies[-1].pop("timing")["sets_per_second"] > 0.0
    assert bodies[0] == bodies[1]
    assert bodies[0]["schema_version"] == 1
    assert bodies[0]["luck"]["sentence"]
    assert len(bodies[0]["top"]) == 10


@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        (("--grid", "fast=50:5"), 2, "the low end is above the high"),
        (("--grid", "fats=5:50"), 2, "did you mean fast"),
        (("--grid", "fast=30:40,slow=5:20"), 2, "fast 30 must be below slow 5"),
        (("--top", "0"), 2, "--top 0"),
        (("--strategy", "sma_cros"), 2, "did you mean sma_cross"),
        (("--from", "2025-13-01"), 2, "--from 2025-13-01: write a day"),
        (("--to", "2024-01-01"), 2, "is before --from"),
        (("--symbols", "APPL"), 5, "did you mean AAPL"),
        (("--csv", "/no/where/x.csv"), 2, "there is no folder"),
        (("--backend", "cuda"), 4, "CUDA"),
    ],
)
def test_each_mistake_gets_its_exit_code_and_a_line_that_helps(
    changed, code, words, capsys, monkeypatch, tmp_path
):
    given = dict(zip(SMALL[::2], SMALL[1::2], strict=True))
    given[changed[0]] = changed[1]
    typed = [word for pair in given.items() for word in pair]
    assert run_here(monkeypatch, "sweep", *typed, *FAST, "--state-dir", str(tmp_path)) == code
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""
    assert "Traceback" not in said.err


def run_here(monkeypatch, *words: str) -> int:
    """Run the command in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["trader", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_a_refused_apply_prints_its_result_and_exits_with_6(capsys, monkeypatch, tmp_path):
    arguments = ("sweep", *SMALL, *FAST, "--state-dir", str(tmp_path), "--apply", "1")
    assert run_here(monkeypatch, *arguments, "--json") == 6
    said = capsys.readouterr()
    body = json.loads(said.out)
    assert body["applied"]["path"] is None
    assert body["applied"]["refused"].startswith("--apply 1 is refused: the best of 18 sets ")
    assert said.err.count("trader: --apply 1 is refused") == 1
    assert run_here(monkeypatch, *arguments) == 6
    said = capsys.readouterr()
    assert "is it luck?" in said.out
    assert "applied  rank" not in said.out
    assert "trader: --apply 1 is refused" in said.err


class Interrupting(io.StringIO):
    """A person who presses Ctrl-C as soon as sets are counted."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word

    def reconfigure(self, **_):
        """As the real stream has it."""

    def write(self, text: str) -> int:
        if self.word in text:
            self.word = "never"
            raise KeyboardInterrupt
        return super().write(text)


def test_ctrl_c_prints_what_is_known_marked_partial(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stderr", Interrupting("combos a second"))
    arguments = ("sweep", *SMALL, *FAST, "--state-dir", str(tmp_path))
    assert run_here(monkeypatch, *arguments, "--json") == 130
    body = json.loads(capsys.readouterr().out)
    assert body["partial"] is True
    assert body["luck"] is None
    assert body["top"]
    monkeypatch.setattr(sys, "stderr", Interrupting("combos a second"))
    assert run_here(monkeypatch, *arguments) == 130
    said = capsys.readouterr().out
    assert "(partial: interrupted)" in said
    assert "not known: the sweep was interrupted" in said


def test_the_help_of_all_commands_stays_light():
    program = (
        "import sys; sys.argv = ['trader', 'sweep', '--help']\n"
        "from trader.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'numba', 'pandas', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert "--grid" in done.stdout
