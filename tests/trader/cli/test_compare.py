"""`trader compare` as it is typed: words, one JSON object, and a line for each mistake."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from tests.trader.app.conftest import opened
from tests.trader.cli.test_cli import trader
from trader.app.comparing import (
    CompareResult,
    DecisionChange,
    Difference,
    LoneDecision,
    PartChange,
    compare,
)
from trader.cli.compare_words import tell_compare


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> tuple[Path, str, str]:
    """A state folder with two backtests that differ in one setting."""
    state = tmp_path_factory.mktemp("state")
    ids = [
        opened(state, f"risk.atr_multiple={multiple}").backtest(start=date(2026, 6, 29)).run_id
        for multiple in (2, 3)
    ]
    return state, ids[0], ids[1]


def compared(runs) -> CompareResult:
    state, one, two = runs
    return compare(opened(state), one, two)


def test_what_differs_is_told_from_the_settings_to_the_decisions(runs):
    state, one, two = runs
    done = trader("compare", one, two, state=state)
    assert done.returncode == 0, done.stderr
    assert re.search(r"risk\.atr_multiple +2 +3", done.stdout)
    assert re.search(r"decisions +\d+ equal, \d+ changed, 0 only in A, 0 only in B", done.stdout)
    assert "changed first in evidence" in done.stdout
    assert "AAPL macd_momentum" in done.stdout
    assert "the same in both" in done.stdout
    assert "\x1b" not in done.stdout


def test_the_same_run_twice_differs_in_nothing(runs):
    state, one, _ = runs
    done = trader("compare", one, one, state=state)
    assert done.returncode == 0
    assert "nothing differs: the ledgers are the same to the last bit" in done.stdout


def test_json_is_one_object(runs):
    state, one, two = runs
    done = trader("compare", one, two, "--json", state=state)
    body = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert body["schema_version"] == 1
    assert body["settings"] == [{"name": "risk.atr_multiple", "a": 2, "b": 3}]
    assert body["a"]["run_id"] == one
    assert len(body["changed"]) + body["equal"] == body["b"]["decisions"]
    assert body["nothing_differs"] is False


def test_each_mistake_gets_its_exit_code_and_a_line_that_helps(runs, tmp_path):
    state, one, _ = runs
    near = trader("compare", one, one[:-1] + "z", state=state)
    assert (near.returncode, near.stdout) == (2, "")
    assert f"did you mean {one}" in near.stderr
    (tmp_path / "ledger.db").write_bytes(b"no database" * 1000)
    broken = trader("compare", one, str(tmp_path), state=state)
    assert (broken.returncode, broken.stdout) == (7, "")
    assert str(tmp_path) in broken.stderr
    assert "Traceback" not in broken.stderr


def told(result: CompareResult, capsys) -> str:
    tell_compare(result)
    return capsys.readouterr().out


def test_a_change_names_its_parts_and_what_only_one_run_decided(runs, capsys):
    lone = LoneDecision(
        cycle_id="c",
        symbol="AAPL",
        strategy="sma_cross",
        bar_at="2026-07-06T13:30:00Z",
        as_of="2026-07-06T20:00:00Z",
        verdict="GO",
        why="already held or ordered",
    )
    change = DecisionChange(
        symbol="AAPL",
        strategy="atr_trend",
        bar_at="2026-07-02T13:30:00Z",
        as_of="2026-07-02T20:00:00Z",
        a="a",
        b="b",
        verdict_a="GO",
        verdict_b="NO_GO",
        changed_first="claims",
        parts=(
            PartChange(part="claims", a="", b="bear: rsi_14 > 70 verified\x1b[31m", count=1),
            PartChange(part="verdict", a="GO", b="NO_GO", count=1),
        ),
    )
    text = told(replace(compared(runs), changed=(change,) * 23, only_b=(lone,)), capsys)
    assert "2026-07-02 13:30 AAPL atr_trend: GO → NO_GO, changed first in claims" in text
    assert re.search(r"claims +none → bear: rsi_14 > 70 verified", text)
    assert "changed first  claims 23" in text
    assert text.count("GO → NO_GO, changed") == 20
    assert "and 3 more; --json has all of them" in text
    assert re.search(r"2026-07-06 13:30 +AAPL +sma_cross +GO +already held or ordered", text)
    assert "\x1b" not in text


def test_of_models_that_only_one_run_had_the_names_are_enough(runs, capsys):
    both = replace(compared(runs), changed=())
    values = {"models.model": "small", "models.base_url": "http://test/v1", "models.seed": 7}
    lone = tuple(Difference(name=name, a=None, b=value) for name, value in values.items())
    text = told(replace(both, settings=lone), capsys)
    assert re.search(r"models\.model +none +small", text)
    assert "models.base_url" in text
    assert "models.seed" not in text
    assert "1 more setting of the models stands only in B; --json has it" in text
    other = Difference(name="models.model", a="large", b="small")
    assert "models.seed" in told(replace(both, settings=(other, *lone[2:])), capsys)


def test_one_slot_is_one_slot(runs, capsys):
    found = compared(runs)
    text = told(replace(found, b=replace(found.b, slots=1, decisions=1)), capsys)
    assert ", 1 slot, 1 decision, debated by rules" in text
