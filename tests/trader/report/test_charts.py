"""Tests of the charts: scales, labels, dates, markers and the numbers behind the readout."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trader.report.example import report_contents
from tests.trader.report.reading import Element, read
from trader.report.charts import (
    DRAWDOWN_HEIGHT,
    EQUITY_HEIGHT,
    WIDTH,
    Frame,
    chart_data,
    date_ticks,
    drawdown_chart,
    equity_chart,
    spread,
)
from trader.report.contents import Column

CONTENTS = report_contents(debates=8, sessions=120)


def curve(values: list[float]) -> tuple[list[datetime], Column]:
    start = datetime(2025, 1, 2, 21, tzinfo=UTC)
    times = [start + timedelta(days=index) for index in range(len(values))]
    fall = [value / peak - 1.0 for value, peak in zip(values, accumulate(values, max), strict=True)]
    return times, replace(CONTENTS.columns[0], equity=tuple(values), drawdown=tuple(fall))


def points(line: Element) -> list[tuple[float, float]]:
    found = re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", line.attributes["d"])
    return [(float(x), float(y)) for x, y in found]


def lines(chart: str) -> list[Element]:
    drawing = next(read(chart).all("svg", role="img"))
    return list(drawing.all("path", class_="line"))


def test_every_column_is_drawn_with_its_own_dashes_and_named_at_its_end():
    for chart in (
        equity_chart(CONTENTS.times, CONTENTS.columns, ()),
        drawdown_chart(CONTENTS.times, CONTENTS.columns),
    ):
        styles = {line.attributes["class"] for line in lines(chart)}
        assert styles == {f"line line{index}" for index in range(4)}
        ends = read(chart).one("div", class_="ends").words
        assert all(column.label in ends for column in CONTENTS.columns)
        assert "2025-01-02 to" in next(read(chart).all("svg", role="img")).attributes["aria-label"]


def test_points_stand_where_their_values_are():
    times, column = curve([100_000.0, 101_000.0, 99_000.0, 100_000.0])
    (line,) = lines(equity_chart(times, [column], ()))
    (x0, y0), (x1, high), (_, low), (x3, y3) = points(line)
    assert (x0, x3) == (0.0, float(WIDTH))
    assert x1 == pytest.approx(WIDTH / 3, abs=0.1)
    assert y0 == y3
    assert high < y0 < low
    assert y0 - high == pytest.approx(low - y0, abs=0.11)


@pytest.mark.parametrize("values", [[100_000.0], [100_000.0] * 5, [0.0, 0.0], [5.0, 5.01]])
def test_single_flat_and_tiny_curves_stay_inside_the_frame(values: list[float]):
    times, column = curve(values) if values[0] else (curve([1.0] * len(values))[0], None)
    column = column or replace(CONTENTS.columns[0], equity=tuple(values), drawdown=(0.0, 0.0))
    for chart, height in (
        (equity_chart(times, [column], ()), EQUITY_HEIGHT),
        (drawdown_chart(times, [column]), DRAWDOWN_HEIGHT),
    ):
        (line,) = lines(chart)
        assert all(0.0 <= x <= WIDTH and 0.0 <= y <= height for x, y in points(line))
        assert read(chart).one("div", class_="y-axis").words


def test_a_hole_in_the_curve_is_left_open():
    times, column = curve([100.0, 101.0, 102.0, 103.0])
    holed = replace(column, equity=(100.0, math.nan, 102.0, 103.0))
    (line,) = lines(equity_chart(times, [holed], ()))
    assert line.attributes["d"].count("M") == 2
    assert "nan" not in equity_chart(times, [holed], ())


def test_long_curves_keep_their_extremes():
    values = [100_000.0 + 500.0 * math.sin(index / 50) for index in range(10_000)]
    values[4321], values[8765] = 250_000.0, 10_000.0
    times, column = curve(values)
    (line,) = lines(equity_chart(times, [column], ()))
    drawn = points(line)
    assert len(drawn) <= 1300
    assert max(y for _, y in drawn) == pytest.approx(EQUITY_HEIGHT * (1 - 0.05 / 1.1), abs=0.1)
    assert min(y for _, y in drawn) == pytest.approx(EQUITY_HEIGHT * 0.05 / 1.1, abs=0.1)
    assert (drawn[0][0], drawn[-1][0]) == (0.0, float(WIDTH))


def test_markers_stand_on_the_first_columns_line_at_the_bar_of_the_fill():
    trades = CONTENTS.trades
    chart = equity_chart(CONTENTS.times, CONTENTS.columns, trades)
    marks = list(read(chart).all("span", class_="mark"))
    left = sum(trade.exited_at is not None for trade in trades)
    assert trades
    assert len(marks) == len(trades) + left
    line = points(lines(chart)[-1])  # the first column is drawn last, above the others
    days = [moment.date() for moment in CONTENTS.times]
    x, y = line[days.index(trades[0].entered_at.date())]
    place = marks[0].attributes["style"]
    found = re.fullmatch(r"left:([\d.]+)%;top:([\d.]+)px", place)
    assert found
    assert float(found[1]) == pytest.approx(x / WIDTH * 100, abs=0.02)
    assert float(found[2]) == pytest.approx(y, abs=0.11)


def test_curve_that_would_flatten_the_others_is_drawn_on_a_log_scale():
    times, column = curve([100.0, 200.0, 400.0, 800.0])
    chart = equity_chart(times, [column], ())
    assert "log scale" in chart
    heights = [y for _, y in points(lines(chart)[0])]
    steps = [before - after for before, after in pairwise(heights)]
    assert steps == pytest.approx([steps[0]] * 3, abs=0.2)
    assert read(chart).one("div", class_="y-axis").words == "100 200 500"
    times, column = curve([100.0, 490.0])
    assert "log scale" not in equity_chart(times, [column], ())


@given(low=st.floats(1.0, 1e6), ratio=st.floats(5.0, 1e6))
@settings(deadline=None)
def test_ticks_of_a_log_scale_are_few_and_inside(low: float, ratio: float):
    frame = Frame(low=low, high=low * ratio, height=100, count=2, logarithmic=True)
    assert 1 <= len(frame.ticks()) <= 6
    assert all(frame.low <= tick <= frame.high for tick in frame.ticks())
    assert frame.y(frame.low) == pytest.approx(100.0)
    assert frame.y(frame.high) == 0.0


@given(
    low=st.floats(-1e7, 1e7),
    span=st.floats(1e-3, 1e7),
)
@settings(deadline=None)
def test_ticks_are_few_round_and_inside(low: float, span: float):
    frame = Frame(low=low, high=low + span, height=100, count=2)
    ticks = frame.ticks()
    assert 2 <= len(ticks) <= 6
    slack = 1e-6 * span
    assert all(frame.low - slack <= tick <= frame.high + slack for tick in ticks)
    steps = {round((after - before) / span, 6) for before, after in pairwise(ticks)}
    assert max(steps) - min(steps) < 1e-5
    assert frame.y(frame.high) == 0.0
    assert frame.y(frame.low) == pytest.approx(100.0)


@given(st.lists(st.floats(-50.0, 350.0), min_size=1, max_size=8))
@settings(deadline=None)
def test_labels_never_overlap_and_keep_their_order(wanted: list[float]):
    gap, height = 30.0, 300.0
    tops = spread(wanted, gap, height)
    order = sorted(range(len(wanted)), key=lambda index: (wanted[index], index))
    placed = [tops[index] for index in order]
    assert all(after - before >= gap - 1e-9 for before, after in pairwise(placed))
    assert placed[0] >= -1e-9
    assert placed[-1] + gap <= height + 1e-9


def test_labels_with_room_stay_where_they_belong():
    assert spread([200.0, 20.0, 100.0], 30.0, 300.0) == [200.0, 20.0, 100.0]


@pytest.mark.parametrize("days", [1, 2, 20, 45, 61, 120, 400, 1500, 9000])
def test_dates_are_few_apart_and_true(days: int):
    start = datetime(2025, 1, 28, 21, tzinfo=UTC)
    times = [start + timedelta(days=index) for index in range(days)]
    ticks = date_ticks(times)
    assert 1 <= len(ticks) <= 9
    assert all(f"{times[index]:%Y-%m-%d}".startswith(text) for index, text in ticks)
    places = [index for index, _ in ticks]
    assert places == sorted(set(places))
    if days >= 90:
        assert all(b - a >= 0.07 * days for a, b in pairwise(places))


def test_numbers_behind_the_readout_are_those_of_the_columns():
    element = read(chart_data(CONTENTS.times, CONTENTS.columns)).one("script")
    data = json.loads(str(element.children[0]))
    assert data["times"] == [f"{moment:%Y-%m-%d}" for moment in CONTENTS.times]
    for seen, column in zip(data["columns"], CONTENTS.columns, strict=True):
        assert seen["label"] == column.label
        assert seen["equity"] == [round(value) for value in column.equity]
        assert seen["drawdown"] == pytest.approx([100 * v for v in column.drawdown], abs=0.006)


def test_label_cannot_end_the_data_element():
    column = replace(CONTENTS.columns[0], label="</script><script>alert(1)</script>")
    tree = read(chart_data(CONTENTS.times, [column]))
    data = json.loads(str(tree.one("script").children[0]))
    assert data["columns"][0]["label"] == column.label
