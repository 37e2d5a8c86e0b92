"""Tests of results, funnel and the reasons for values that are not there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.trader.report.example import report_contents, without_trading
from tests.trader.report.reading import Element, read
from trader.report.contents import ReportContents
from trader.report.page import write_page
from trader.report.wording import number, percent


def results(contents: ReportContents) -> dict[str, list[str]]:
    table = read(write_page(contents)).one("table", class_="results").one("tbody")
    return {row.one("th").words: [cell.words for cell in row.all("td")] for row in table.all("tr")}


def funnel(contents: ReportContents) -> Element:
    return read(write_page(contents)).one("div", class_="funnels")


def test_results_show_every_measure_of_every_column():
    contents = report_contents()
    rows = results(contents)
    for at, column in enumerate(contents.columns):
        seen = column.performance
        assert [cells[at] for cells in rows.values()] == [
            percent(seen.total_return, signed=True),
            percent(seen.annual_return, signed=True),
            f"{number(seen.sharpe)} n = 400",
            percent(seen.max_drawdown),
            f"{seen.trades}" + (f" + {seen.open_trades} open" if seen.open_trades else ""),
            percent(seen.hit_rate, 1),
            f"{percent(seen.exposure, 1)} of bars",
            number(seen.costs),
            number(seen.final_equity),
        ]


@pytest.mark.parametrize(
    ("points", "move", "sharpe", "annual"),
    [
        (0, 0.0, "n/a needs 30 bars", "n/a needs 63 bars"),
        (1, 0.0, "n/a needs 30 bars", "n/a needs 63 bars"),
        (29, 10.0, "n/a needs 30 bars", "n/a needs 63 bars"),
        (40, 0.0, "n/a equity never moved", "n/a needs 63 bars"),
        (63, 0.0, "n/a equity never moved", "0.00 %"),
    ],
)
def test_a_missing_value_says_what_it_needs(points: int, move: float, sharpe: str, annual: str):
    rows = results(without_trading(points=points, move=move))
    assert rows["Sharpe ratio"] == [sharpe] * 4
    assert rows["Annual return"] == [annual] * 4
    assert rows["Hit rate"] == ["n/a no closed trade"] * 4


def test_annual_return_asks_for_a_quarter_of_the_reports_own_year():
    hourly = replace(without_trading(points=100), periods_per_year=1638.0)
    for column in hourly.columns:
        assert column.performance.annual_return is not None
    thin = tuple(
        replace(column, performance=replace(column.performance, annual_return=None))
        for column in hourly.columns
    )
    assert results(replace(hourly, columns=thin))["Annual return"] == ["n/a needs 410 bars"] * 4


def test_lead_compares_the_debate_with_the_other_columns():
    contents = report_contents()
    part = read(write_page(contents)).one("section", id="results")
    lead = part.one("p", class_="lead").words
    debate, alone, without, hold = (item.performance.total_return for item in contents.columns)
    points = [number(100 * abs(debate - other)) for other in (alone, without, hold)]
    assert lead == (
        f"Debate returned {percent(debate, signed=True)}, "
        f"{points[0]} points {word(debate, alone)} than arbitrator alone, "
        f"{points[1]} points {word(debate, without)} than without debate, "
        f"{points[2]} points {word(debate, hold)} than buy & hold."
    )


def word(mine: float, other: float) -> str:
    return "more" if mine > other else "less"


def test_funnel_counts_every_step_and_names_every_loss():
    contents = report_contents()
    seen = contents.funnel
    shown = funnel(contents)
    table, vetoes, gate = shown.all("table")
    rows = {row.one("th").words: row.words for row in table.one("tbody").all("tr")}
    assert list(rows) == ["Bars", "Signals", "Debates", "GO", "Orders", "Fills"]
    for name, count in (
        ("Bars", seen.bars),
        ("Signals", seen.signals),
        ("Debates", seen.debates),
        ("GO", seen.go),
        ("Orders", seen.orders),
        ("Fills", seen.fills),
    ):
        assert rows[name].startswith(f"{name} {count}")
    assert "3 not debated: already held or ordered 3" in rows["Signals"]
    assert f"{seen.no_go} ended in NO_GO" in rows["Debates"]
    refused = seen.gate_refusals["POSITION_CAP"]
    assert f"{refused} refused by the risk gate: POSITION_CAP {refused}" in rows["GO"]
    assert f"{seen.broker_refusals} refused by the broker" in rows["Orders"]
    assert seen.nearest_miss in shown.words
    counts = [int(row.one("td", class_="n").words) for row in vetoes.one("tbody").all("tr")]
    assert counts == sorted(seen.vetoes.values(), reverse=True)
    told = gate.one("tbody").one("tr").words
    assert told.startswith(f"the cap per symbol is reached POSITION_CAP {refused}")


def test_quiet_run_says_that_nothing_fired_instead_of_showing_empty_tables():
    tree = read(write_page(without_trading(points=40)))
    words = tree.one("main").words
    assert "No debate was held: no signal fired in this period." in words
    assert "No trade: the funnel above shows where each signal was lost." in words
    assert "No rule of the arbitrator failed in any debate." in words
