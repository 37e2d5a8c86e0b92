"""The backtest as a person gets it: columns, funnel, files, reproducible to the last bit."""

from __future__ import annotations

import csv
import json
import stat
from datetime import date
from pathlib import Path

import pytest

from tests.trader.app.conftest import FIRST, opened
from trader.core.canonical import from_primitive
from trader.core.decision import CycleRecord
from trader.core.errors import DataIntegrityError, LockHeldError, UsageError
from trader.ledger.store import Ledger


def test_it_shows_both_verdicts_and_closed_trades_each_with_its_reason(whole):
    _, result = whole
    assert result.funnel.go > 0
    assert result.funnel.no_go > 0
    closed = [row for row in result.trades if not row.is_open]
    assert closed
    assert all(row.why_entered and row.why_left for row in result.trades)
    assert {row.left_by for row in closed} <= {"stop", "target", "signal"}
    assert result.debater == "rules"


def test_the_funnel_adds_up(whole):
    _, result = whole
    funnel = result.funnel
    assert funnel.bars == result.sessions == 148
    assert funnel.signals == funnel.debates + sum(funnel.skipped.values())
    assert funnel.debates == funnel.go + funnel.no_go
    entered = funnel.go - sum(funnel.gate_refusals.values()) - funnel.broker_refusals
    assert len(result.trades) == entered
    assert funnel.nearest_miss


def test_equity_is_cash_and_profit_of_every_trade(whole):
    _, result = whole
    column = result.results["debate"]
    profits = sum(row.profit for row in result.trades)
    assert column.performance.final_equity == pytest.approx(100_000 + profits)
    assert column.performance.trades == sum(not row.is_open for row in result.trades)
    ran = {key for key, found in result.results.items() if found is not None}
    assert ran == {"debate", "arbitrator_alone", "without_debate", "buy_and_hold"}
    assert set(result.results) - ran == {"rules_debate"}


def test_the_files_hold_what_the_result_says(whole):
    _, result = whole
    rows = list(csv.DictReader(Path(result.files["trades.csv"]).read_text().splitlines()))
    assert [row["trade_id"] for row in rows] == [trade.trade_id for trade in result.trades]
    text = Path(result.files["cycles.jsonl"]).read_text()
    cycles = [from_primitive(CycleRecord, json.loads(line)) for line in text.splitlines()]
    assert len(cycles) == result.funnel.debates
    ledger = Ledger(Path(result.files["ledger.db"]))
    assert ledger.head == result.ledger_head
    assert ledger.verify() > 147
    assert [record.kind for record in ledger.records("run", "result")] == ["run", "result"]
    page = Path(result.report).read_text()
    assert result.run_id in page
    assert stat.S_IMODE(Path(result.report).parent.stat().st_mode) == 0o700


def test_json_has_the_promised_fields_and_no_curve(whole):
    _, result = whole
    body = result.as_json()
    assert {
        "schema_version",
        "run_id",
        "source",
        "funnel",
        "results",
        "report",
        "ledger_head",
    } <= set(body)
    assert {"name", "symbols", "first", "last", "adjustment", "sha256"} <= set(body["source"])
    assert "equity" not in body["results"]["debate"]
    assert json.loads(json.dumps(body, allow_nan=False)) == body


def test_json_says_what_the_debate_is_worth(whole):
    _, result = whole
    body = result.as_json()
    assert {"intervals", "refusals", "calibration", "spend", "go_share", "answers"} <= set(body)
    assert set(body["intervals"]["differences"]) == {"without_debate", "arbitrator_alone"}
    assert body["intervals"]["columns"]["buy_and_hold"]["sharpe"]["low"] < 0.62
    assert body["refusals"]["no_go"] == result.funnel.no_go == len(body["refusals"]["trades"])
    assert (body["spend"]["calls"], body["knowledge"]) == (0, None)
    assert body["calibration"]["verdicts"] + body["calibration"]["left_out"] == len(result.debates)


def test_what_would_have_become_of_refusals_changes_no_decision(whole):
    """Cut short, the walk takes the decisions that the longer one took until then."""
    app, result = whole
    shorter = app.backtest(start=FIRST, end=date(2026, 4, 30))
    assert shorter.debates
    for mine, theirs in zip(shorter.debates, result.debates, strict=False):
        assert (mine.as_of, mine.strategy, mine.decision, mine.confidence) == (
            theirs.as_of,
            theirs.strategy,
            theirs.decision,
            theirs.confidence,
        )


def test_the_same_run_in_a_fresh_folder_has_the_same_id_and_head(whole, tmp_path):
    _, first = whole
    again = opened(tmp_path).backtest(start=FIRST)
    assert (again.run_id, again.ledger_head) == (first.run_id, first.ledger_head)
    assert Path(again.report).read_bytes() == Path(first.report).read_bytes()
    other = opened(tmp_path, "risk.atr_multiple=3").backtest(start=date(2026, 7, 1))
    assert other.run_id != first.run_id


def test_the_compiled_kernels_take_the_same_decisions(whole, tmp_path):
    _, first = whole
    compiled = opened(tmp_path, "kernels.backend=cpu").backtest(start=FIRST)
    assert compiled.ledger_head == first.ledger_head
    assert compiled.kernels.startswith("cpu")


def test_running_again_replaces_the_folder_and_leaves_nothing_beside_it(app):
    first = app.backtest(start=date(2026, 7, 20))
    marker = Path(first.report).parent / "mine.txt"
    marker.write_text("old")
    app.backtest(start=date(2026, 7, 20))
    assert not marker.exists()
    assert [path.name for path in Path(first.report).parents[1].iterdir()] == [first.run_id]


def test_an_interrupted_backtest_leaves_the_earlier_report_and_no_remains(app):
    first = app.backtest(start=date(2026, 7, 20))
    before = Path(first.report).read_bytes()

    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        app.backtest(start=date(2026, 7, 20), progress=interrupt)
    assert Path(first.report).read_bytes() == before
    assert [path.name for path in Path(first.report).parents[1].iterdir()] == [first.run_id]


def test_one_session_gives_a_result_with_nothing_that_needs_more(app):
    result = app.backtest(start=date(2026, 8, 5))
    debate = result.results["debate"].performance
    assert (result.sessions, debate.sharpe, debate.annual_return, debate.hit_rate) == (
        1,
        None,
        None,
        None,
    )


def test_a_weekend_start_begins_at_the_next_session_and_says_so(app):
    result = app.backtest(start=date(2026, 8, 1), end=date(2026, 8, 4))
    assert (result.first_session, result.last_session, result.sessions) == (
        date(2026, 8, 3),
        date(2026, 8, 4),
        2,
    )
    assert "2026-08-01 is not a session" in result.notices[0]


@pytest.mark.parametrize(
    ("start", "end", "kind", "words"),
    [
        (date(2027, 1, 4), None, DataIntegrityError, "no bars of sample lie in 2027-01-04 on"),
        (date(1999, 1, 4), date(1999, 2, 1), DataIntegrityError, "AAPL 2015-01-02 to 2026-08-05"),
        (date(2026, 8, 5), date(2026, 8, 4), UsageError, "before"),
        (date(2026, 8, 1), date(2026, 8, 2), DataIntegrityError, "no session"),
    ],
)
def test_periods_without_sessions_are_refused_with_what_there_is(app, start, end, kind, words):
    with pytest.raises(kind, match=words):
        app.backtest(start=start, end=end)


def test_unknown_symbols_are_refused_with_a_hint(tmp_path):
    with pytest.raises(DataIntegrityError, match="AAPL"):
        opened(tmp_path, "symbols=APPL").backtest(start=FIRST)


def test_cash_for_less_than_a_share_trades_nothing_and_says_why(tmp_path):
    result = opened(tmp_path, "account.cash=100").backtest(start=FIRST)
    assert result.trades == ()
    assert set(result.funnel.gate_refusals) == {"POSITION_TOO_SMALL"}


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LockHeldError, match="cannot be written"):
        opened(tmp_path / "file" / "state").backtest(start=date(2026, 8, 5))


def test_several_symbols_share_the_cash_and_their_coverage_is_told(tmp_path):
    app = opened(tmp_path, "symbols=AAPL,NVDA,MSFT,AMZN", "strategies.enabled=atr_trend")
    result = app.backtest(start=date(2020, 6, 1), end=date(2020, 12, 31))
    assert any("AMZN ends on 2020-07-31" in line for line in result.notices)
    assert len({row.symbol for row in result.trades}) > 1
    assert result.source.adjustment["NVDA"] != result.source.adjustment["AAPL"]


def test_hourly_bars_have_three_slots_a_session_and_refuse_gaps(tmp_path):
    app = opened(tmp_path, "data.timeframe=1Hour", "debate.mode=off")
    result = app.backtest(start=date(2026, 1, 26), end=date(2026, 2, 6))
    assert result.slots == 3 * result.sessions
    ran = {key for key, found in result.results.items() if found is not None}
    assert ran == {"without_debate", "buy_and_hold"}
    assert result.debater == "off"
    assert (result.worth.refusals, result.worth.calibration, result.debates) == (None, None, ())
    assert result.worth.answers == {}
    ledger = Ledger(Path(result.files["ledger.db"]))
    refused = {
        record.body["session"] for record in ledger.records("slot") if record.body["refused"]
    }
    assert refused == {"2026-01-30", "2026-02-02"}


def test_synthetic_markets_are_labelled(tmp_path):
    result = opened(tmp_path, "data.source=synthetic").backtest(start=date(2026, 5, 1))
    assert result.source.name == "synthetic"
    assert all(symbol.startswith("SYN") for symbol in result.source.symbols)
    assert result.funnel.debates > 0
