"""`trader ledger`: four commands about one file, their words and their exit codes."""

from __future__ import annotations

import json
import sys

import pytest

from tests.trader.app.conftest import opened
from trader.cli import main as front


@pytest.fixture
def trader(monkeypatch, capsys, tmp_path):
    """Run `trader ledger ...` on a state folder; exit code and output."""

    def run(*words: str) -> tuple[int, str, str]:
        options = ["--state-dir", str(tmp_path / "state")]
        monkeypatch.setattr(sys, "argv", ["trader", "ledger", *words, *options])
        with pytest.raises(SystemExit) as ended:
            front.main()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return run


def test_a_ledger_is_verified_copied_exported_and_brought_back(trader, tmp_path):
    assert trader("verify")[0] == 2
    opened(tmp_path / "state").run_once()
    code, said, _ = trader("verify", "--json")
    told = json.loads(said)
    assert (code, told["schema_version"]) == (0, 1)
    copy, lines = tmp_path / "copy.db", tmp_path / "ledger.jsonl"
    assert trader("backup", str(copy))[0] == 0
    assert trader("backup", str(copy))[0] == 7
    assert trader("export", str(lines))[0] == 0
    assert len(lines.read_text().splitlines()) == told["records"]
    (tmp_path / "state" / "ledger.db").write_text("spoilt")
    code, _, said = trader("verify")
    assert code == 7
    assert "trader ledger restore" in said
    code, said, notes = trader("restore", str(copy))
    assert code == 0
    assert f"{told['records'] + 1} records, last slot 2026-07-01" in said
    assert "kept in" in notes
    assert trader("restore", str(tmp_path / "nothing.db"))[0] == 2
    assert trader("verify")[0] == 0
