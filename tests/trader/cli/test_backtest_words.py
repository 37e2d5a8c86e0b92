"""A backtest in the terminal: columns, intervals, what the debate is worth, the latest debates."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from trader.app import open_app
from trader.cli.backtest_words import MOST_LISTED, tell_backtest


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    settings = (f"state_dir={tmp_path_factory.mktemp('state')}", "kernels.backend=reference")
    return open_app(overrides=settings, environ={}).backtest(start=date(2026, 6, 1))


@pytest.fixture
def told(capsys):
    def tell(result) -> str:
        tell_backtest(result)
        return capsys.readouterr().out

    return tell


def test_every_column_stands_beside_its_interval(result, told):
    lines = told(result).splitlines()
    head = next(line for line in lines if "buy & hold" in line)
    assert head.split("  ")[-1].strip() == "buy & hold"
    assert all(label in head for label in ("debate", "arbitrator alone", "without debate"))
    (sharpe,) = [at for at, line in enumerate(lines) if line.startswith(" Sharpe (n)")]
    bounds = result.worth.intervals.columns["buy_and_hold"].sharpe
    assert f"{bounds.low:+.2f}…{bounds.high:+.2f}" in lines[sharpe + 1]


def test_it_says_what_the_debate_is_worth(result, told):
    text = told(result)
    assert "does the debate earn its cost?" in text
    for topic, words in result.worth.answers.items():
        assert f"  {topic}" in text
        assert words in text
    silent = replace(result, worth=replace(result.worth, answers={}), debates=())
    assert "earn its cost" not in told(silent)


def test_only_the_latest_debates_are_listed_and_it_says_so(result, told):
    line = replace(result.debates[-1], strategy="atr_trend")
    many = replace(result, debates=(line,) * (MOST_LISTED + 5))
    text = told(many)
    assert f"the latest {MOST_LISTED} of {MOST_LISTED + 5} debates; the report has all" in text
    rows = [row for row in text.splitlines() if row.startswith(f" {line.as_of:%Y-%m-%d}")]
    assert len(rows) == MOST_LISTED


def test_a_model_debate_shows_the_cutoff_the_fallback_and_no_empty_line(result, told):
    line = replace(
        result.debates[-1],
        day="before_cutoff",
        bull="",
        attacked="",
        bear="",
        flags=("TIMED_OUT",),
        fallback="no answer within 60 s\x1b[2J\u202e",
    )
    text = told(replace(result, debates=(line,)))
    assert "cutoff" in text
    assert " before " in text
    assert "TIMED_OUT, rules in place of the model" in text
    assert "rules debated in place of the model: no answer within 60 s" in text
    assert "BULL" not in text
    assert not {"\x1b", "\u202e"} & set(text)
