"""`trader audit-leak` as a person and a script meet it."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pytest
import typer
from typer.testing import CliRunner

from trader.app.auditing import AuditResult
from trader.backtest.leakage.findings import Changed, LeakTest
from trader.cli import audit
from trader.cli.audit_words import MOST_CHANGES, tell_audit
from trader.core.errors import UsageError
from trader.core.ports import Spend
from trader.report.contents import SourceInfo

FAST = ("--set", "kernels.backend=reference", "-q")
PERIOD = ("--from", "2026-07-13", "--to", "2026-07-17", "--sample", "2", "--strategy", "atr_trend")


@pytest.fixture
def command(tmp_path):
    front = typer.Typer()

    @front.callback()
    def nothing() -> None:
        """A group of one command."""

    audit.register(front)

    def run(*arguments: str):
        words = ["audit-leak", *arguments, *FAST, "--state-dir", str(tmp_path)]
        return CliRunner().invoke(front, words)

    return run


def line(name: str, status, **changes) -> LeakTest:
    fixed = {
        "question": "is it so?",
        "of": "decisions",
        "checked": 3,
        "changed": 0,
        "unanswered": 0,
        "detail": "",
        "changes": (),
    }
    return LeakTest(name=name, status=status, **{**fixed, **changes})


def change(number: int = 1) -> Changed:
    return Changed(
        cycle_id=f"audit-{number}",
        as_of=datetime(2026, 7, number, 20, tzinfo=UTC),
        symbol="AAPL",
        strategy="atr_trend",
        before="GO",
        after="NO_GO",
        detail="GO became NO_GO (LOW_CONFIDENCE)",
    )


def result(*tests: LeakTest) -> AuditResult:
    return AuditResult(
        schema_version=1,
        source=SourceInfo(
            name="sample",
            symbols=("AAPL",),
            first=date(2015, 1, 2),
            last=date(2026, 7, 17),
            adjustment={"AAPL": "splits"},
            sha256="a" * 64,
        ),
        first_session=date(2026, 7, 1),
        last_session=date(2026, 7, 17),
        slots=12,
        strategies=("atr_trend",),
        debater="rules",
        notices=("a note",),
        decisions=5,
        audited=3,
        leak=any(test.changed for test in tests),
        complete=not any(test.unanswered for test in tests),
        tests=tests,
        spend=Spend(),
    )


def test_a_clean_audit_exits_0_and_prints_a_line_for_each_test(command):
    done = command(*PERIOD)
    assert done.exit_code == 0, done.output
    for words in ("future cut", "masked", "white noise", "mirrored", "Nothing changed"):
        assert words in done.stdout
    assert "debated by rules, no model" in done.stdout


def test_json_is_one_line_on_stdout(command):
    done = command(*PERIOD, "--json")
    assert done.exit_code == 0
    body = json.loads(done.stdout)
    assert body["schema_version"] == 1
    assert len(body["tests"]) == 10


@pytest.mark.parametrize(
    ("tests", "code"),
    [
        ((line("masked", "passed"),), 0),
        ((line("masked", "leak", changed=1, changes=(change(),)),), 1),
        ((line("future_cut", "unstable", changed=1, changes=(change(),)),), 1),
        ((line("masked", "incomplete", unanswered=2),), 4),
        ((line("masked", "leak", changed=1, changes=(change(),), unanswered=2),), 1),
    ],
)
def test_the_exit_code_says_what_was_found(command, monkeypatch, tests, code):
    monkeypatch.setattr("trader.app.auditing.audit_leak", lambda *_, **__: result(*tests))
    assert command().exit_code == code


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--from", "2026-13-01"), "write a day as YYYY-MM-DD"),
        (("--sample", "0"), "at least one decision"),
        (("--debate", "off"), "switched off"),
        (("--debate", "oracle"), "--debate"),
    ],
)
def test_a_mistake_is_told(command, arguments, words):
    done = command(*arguments)
    assert isinstance(done.exception, UsageError)
    assert words in str(done.exception)


def test_every_changed_decision_is_listed_with_what_it_was_and_became(capsys):
    tell_audit(result(line("masked", "leak", changed=1, changes=(change(3),), detail="known")))
    said = capsys.readouterr().out
    assert "LEAK: known" in said
    row = next(text for text in said.splitlines() if "2026-07-03" in text)
    assert row.split() == [
        *("2026-07-03", "AAPL", "atr_trend", "GO", "NO_GO"),
        *("GO", "became", "NO_GO", "(LOW_CONFIDENCE)"),
    ]
    assert "A LEAK: masked." in said


def test_a_long_list_is_cut_and_says_so(capsys):
    many = tuple(change(1 + number % 28) for number in range(MOST_CHANGES + 5))
    tell_audit(result(line("masked", "leak", changed=len(many), changes=many)))
    assert "and 5 more" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("test", "words"),
    [
        (line("masked", "incomplete", unanswered=2), "INCOMPLETE, 2 without an answer"),
        (line("masked", "incomplete", unanswered=2), "the audit is not complete"),
        (line("future_cut", "unstable", changed=1), "gives two answers to one question"),
        (line("mirrored", "statement", detail="GO 1 of 3"), "for you to judge: GO 1 of 3"),
        (line("news_shuffled", "not applicable", detail="none"), "not applicable: none"),
    ],
)
def test_each_outcome_has_its_words(capsys, test, words):
    tell_audit(result(test))
    assert words in capsys.readouterr().out
