"""A backtest with all the cash: its own column, run id and words, and nothing that could trade."""

from __future__ import annotations

import csv
import json
from datetime import date
from pathlib import Path

import pytest

from tests.trader.app.conftest import FIRST, opened
from trader.cli.backtest_words import tell_backtest
from trader.core.errors import DataIntegrityError, UsageError
from trader.ledger.store import Ledger

ALONE = ("debate.mode=off", "strategies.enabled=macd_momentum")
YARDSTICK = "neither the cap on a symbol nor the risk gate applies to it"


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """MACD on AAPL from 2026 on with all the cash."""
    app = opened(tmp_path_factory.mktemp("state"), *ALONE)
    return app, app.backtest(start=FIRST, sizing="all_in")


def test_it_is_a_column_in_place_of_the_walks_of_the_pipeline(alone):
    _, result = alone
    ran = {key: found for key, found in result.results.items() if found is not None}
    assert list(ran) == ["all_in", "buy_and_hold"]
    assert [found.label for found in ran.values()] == ["all in", "buy & hold"]
    found = ran["all_in"]
    assert len(found.equity) == result.slots == len(ran["buy_and_hold"].equity)
    assert found.performance.final_equity == pytest.approx(
        100_000 + sum(row.profit for row in result.trades)
    )
    assert (result.debater, result.debates) == ("off", ())
    assert set(result.worth.intervals.columns) == {"all_in", "buy_and_hold"}


def test_it_is_far_beyond_the_cap_of_the_gate(alone):
    _, result = alone
    spent = [row.quantity * row.entry_price for row in result.trades]
    assert min(spent) > 0.5 * 100_000
    assert all(row.why_entered and row.why_left for row in result.trades)
    assert all(row.r_multiple is not None for row in result.trades)


def test_an_ordinary_backtest_knows_nothing_of_it(whole):
    _, result = whole
    assert "all_in" not in result.results
    assert not any(YARDSTICK in notice for notice in result.notices)
    (begun,) = Ledger(Path(result.files["ledger.db"])).records("run")
    assert begun.body["sizing"] == "risk"


def test_the_sizing_is_part_of_the_run_and_the_run_is_repeatable(alone, tmp_path):
    _, result = alone
    other = opened(tmp_path, *ALONE)
    again = other.backtest(start=FIRST, sizing="all_in")
    assert (again.run_id, again.ledger_head) == (result.run_id, result.ledger_head)
    assert Path(again.report).read_bytes() == Path(result.report).read_bytes()
    sized = other.backtest(start=FIRST)
    assert sized.run_id != result.run_id
    compared = other.compare(sized.run_id, again.run_id)
    assert [(item.name, item.a, item.b) for item in compared.differences if item.name == "sizing"]


def test_the_compiled_kernels_make_the_same_trades(alone, tmp_path):
    _, result = alone
    compiled = opened(tmp_path, "kernels.backend=cpu", *ALONE)
    assert compiled.backtest(start=FIRST, sizing="all_in").trades == result.trades


def test_the_files_agree_with_the_result(alone):
    _, result = alone
    rows = list(csv.DictReader(Path(result.files["trades.csv"]).read_text().splitlines()))
    assert [row["trade_id"] for row in rows] == [trade.trade_id for trade in result.trades]
    assert Path(result.files["cycles.jsonl"]).read_text() == ""
    ledger = Ledger(Path(result.files["ledger.db"]))
    assert ledger.head == result.ledger_head
    (begun,) = ledger.records("run")
    assert begun.body["sizing"] == "all_in"
    (ended,) = ledger.records("result")
    assert len(ended.body["trades"]) == len(result.trades)
    assert ended.body["columns"]["all_in"]["trades"] == result.results["all_in"].performance.trades
    assert sum(1 for _ in ledger.records("fill")) == result.funnel.fills


def test_page_terminal_and_json_say_that_cap_and_gate_do_not_apply(alone, capsys):
    _, result = alone
    assert YARDSTICK in result.notices[0]
    page = Path(result.report).read_text()
    assert YARDSTICK in page
    assert "all cash; the cap per symbol and the risk gate do not apply" in page
    assert "risk per trade" not in page.casefold()
    assert "after debates" not in page
    body = result.as_json()
    assert json.loads(json.dumps(body, allow_nan=False)) == body
    assert body["results"]["all_in"]["label"] == "all in"
    tell_backtest(result)
    told = capsys.readouterr().out
    assert "all in" in told
    assert "0 debates" in told


@pytest.mark.parametrize(
    ("settings", "sizing", "words"),
    [
        ((), "all_in", "say --debate off"),
        (("debate.mode=off",), "all_in", r"3 are enabled .*: name one, e.g. --strategy atr_trend"),
        (ALONE, "kelly", "choose one of risk, all_in"),
        ((*ALONE, "market.partial_fills=0.1"), "all_in", "market.partial_fills=0"),
        ((*ALONE, "market.volume_share=0.1"), "all_in", "market.volume_share=null"),
        ((*ALONE, "symbols=BTC/USD"), "all_in", r"BTC/USD.*name shares"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_what_to_do(tmp_path, settings, sizing, words):
    with pytest.raises(UsageError, match=words):
        opened(tmp_path, *settings).backtest(start=FIRST, sizing=sizing)
    assert list(tmp_path.iterdir()) == []


def test_bars_that_show_a_split_in_the_period_are_refused(tmp_path):
    days = ["2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05", "2026-03-06"]
    closes = [100.0, 100.0, 25.0, 25.0, 25.0]
    lines = ["# adjustment: none", "# split: 2026-03-04 4", "date,open,high,low,close,volume"]
    lines += [f"{day},{at},{at},{at},{at},1000" for day, at in zip(days, closes, strict=True)]
    folder = tmp_path / "bars"
    folder.mkdir()
    (folder / "XYZ.csv").write_text("\n".join(lines) + "\n")
    app = opened(tmp_path / "state", *ALONE, f"data.source=csv:{folder}")
    with pytest.raises(DataIntegrityError, match=r"XYZ: the bars show a split on 2026-03-04"):
        app.backtest(start=date(2026, 3, 2), sizing="all_in")
    after = app.backtest(start=date(2026, 3, 5), sizing="all_in")
    assert after.sessions == 2


def test_several_symbols_and_hourly_bars_are_walked_too(tmp_path):
    shared = opened(tmp_path, "symbols=AAPL,NVDA", *ALONE)
    result = shared.backtest(start=date(2024, 1, 2), end=date(2024, 3, 28), sizing="all_in")
    assert {row.symbol for row in result.trades} == {"AAPL", "NVDA"}
    hourly = opened(tmp_path, "data.timeframe=1Hour", *ALONE)
    result = hourly.backtest(start=date(2026, 1, 5), end=date(2026, 2, 6), sizing="all_in")
    assert result.slots == 3 * result.sessions
    assert result.trades
