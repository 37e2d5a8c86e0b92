"""The README is true: its commands run, its output is what is printed, its graph is the code's."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from trader.app.debaters import Debaters
from trader.core.config import Config

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


def run(command: str, state: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command, comments=True)
    assert words[0] == "trader"
    return subprocess.run(
        [sys.executable, "-m", "trader", *words[1:], "--state-dir", str(state)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )


def test_every_command_of_the_next_steps_runs_in_that_order(tmp_path):
    lines = [
        line for block in blocks("sh") for line in block.splitlines() if line.startswith("trader")
    ]
    assert len(lines) >= 5
    for line in lines:
        done = run(line, tmp_path)
        assert done.returncode == 0, (line, done.stderr)
        assert done.stdout, line


def test_the_printed_output_is_the_output(tmp_path):
    found = re.search(
        r"<!-- output: (.*?) -->\n```text\n(.*?)^```", README, re.DOTALL | re.MULTILINE
    )
    assert found is not None
    done = run(found[1], tmp_path)
    assert done.returncode == 0, done.stderr
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    missing = [
        line
        for line in found[2].splitlines()
        if line.strip() not in ("", "…") and line.rstrip() not in printed
    ]
    assert missing == []


def test_the_graph_is_drawn_from_the_code():
    drawn = Debaters(Config()).deliberation("debate").mermaid()
    graph = drawn[drawn.index("graph TD") :].strip()
    assert graph in README


def test_the_set_up_commands_name_what_the_project_has():
    setup = [line for block in blocks("sh") for line in block.splitlines() if "venv" in line]
    assert any("trader backtest --from 2025-01-01" in line for line in setup)
    assert any("python -m tests.check" in line for line in setup)
    assert "-m tests.check" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)\)", README))
def test_every_link_leads_somewhere(target):
    assert (ROOT / target).exists(), target
