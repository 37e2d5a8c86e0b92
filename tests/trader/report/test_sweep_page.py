"""Tests of the page of a sweep: complete, safe, self-contained, and true to the contents."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trader.report.reading import Element, read
from trader.core.metrics import Performance
from trader.report.contents import Column, SourceInfo
from trader.report.heatmap import STEPS, colour, heat_map, scale_of, step_of
from trader.report.page import POLICY
from trader.report.sweep_contents import (
    Axis,
    FoldRow,
    Heat,
    LuckFigures,
    Neighbours,
    SetFigures,
    SetRow,
    SweepContents,
)
from trader.report.sweep_page import write_sweep_page

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)></td></details>\"' &amp; //x"
FIGURES = SetFigures(
    final_equity=123_456.78,
    annual_return=0.0412,
    sharpe=0.93,
    sortino=1.42,
    max_drawdown=-0.2192,
    trades=38,
    open_trades=1,
    hit_rate=0.5,
    exposure=0.61,
)
NOTHING = SetFigures(
    final_equity=100_000.0,
    annual_return=None,
    sharpe=None,
    sortino=None,
    max_drawdown=0.0,
    trades=0,
    open_trades=0,
    hit_rate=None,
    exposure=0.0,
)
LUCK = LuckFigures(
    better=False,
    sentence="the best of 10 sets is what luck alone would give (deflated Sharpe 0.41)",
    against=("deflated Sharpe 0.41 is below 0.95", "19 closed trades are fewer than 20"),
    deflated_sharpe=0.41,
    sharpe_by_luck=1.02,
    sharpe_without_edge=0.61,
    published_deflated_sharpe=0.88,
    trials=10,
    skewness=-0.3,
    kurtosis=5.5,
    overfitting_probability=0.63,
    overfitting_loss=0.2,
    cross_validated=10,
    splits=12_870,
    embargo=26,
    folds=(
        FoldRow(
            train_first=date(2020, 1, 2),
            train_last=date(2021, 1, 4),
            test_first=date(2021, 3, 1),
            test_last=date(2022, 1, 3),
            parameters={"fast": 5.0, "slow": 26.0},
            in_sample_sharpe=2.33,
            out_of_sample_sharpe=-0.45,
            total_return=-0.0933,
        ),
        FoldRow(
            train_first=date(2020, 1, 2),
            train_last=date(2022, 1, 3),
            test_first=date(2022, 3, 1),
            test_last=date(2023, 1, 3),
            parameters=None,
            in_sample_sharpe=None,
            out_of_sample_sharpe=None,
            total_return=0.0,
        ),
    ),
    out_of_sample_sharpe=-0.45,
    out_of_sample_return=-0.0933,
    trades=19,
)
HEAT = Heat(
    row_name="fast",
    column_name="slow",
    row_ends=((5.0, 5.0), (6.0, 6.0)),
    column_ends=((20.0, 20.0), (21.0, 21.0), (22.0, 22.0)),
    best=((0.1, None, 0.3), (0.93, 0.5, -0.2)),
    mean=((0.1, None, 0.2), (0.93, 0.4, -0.2)),
    count=((1, 0, 2), (1, 2, 1)),
    marked=(1, 0),
)


def column(key: str, label: str, points: int, move: float) -> Column:
    equity = tuple(1_000.0 + move * place for place in range(points))
    return Column(
        key=key,
        label=label,
        performance=Performance(
            initial_equity=1_000.0,
            final_equity=equity[-1],
            total_return=0.1,
            annual_return=None,
            sharpe=0.9,
            sharpe_count=points,
            max_drawdown=-0.1,
            trades=1,
            open_trades=0,
            hit_rate=None,
            exposure=0.5,
            costs=0.0,
        ),
        equity=equity,
        drawdown=tuple(-0.001 * place for place in range(points)),
    )


def contents_of(points: int = 40, **given) -> SweepContents:
    begin = datetime(2020, 1, 2, 21, tzinfo=UTC)
    made = SweepContents(
        run_id="sw-0123456789",
        version="0.3.0",
        source=SourceInfo(
            name="sample",
            symbols=("AAPL",),
            first=date(2015, 1, 2),
            last=date(2026, 8, 5),
            adjustment={"AAPL": "splits and dividends"},
            sha256="ab" * 32,
        ),
        strategy="sma_cross",
        period="2020-01-02 to 2026-08-05, 1,656 bars",
        settings={"grid": "fast=5:6,slow=20:22", "stop_atr": "2"},
        notices=("the bars begin later",),
        axes=(
            Axis(name="fast", low=5.0, high=6.0, values=2),
            Axis(name="slow", low=20.0, high=22.0, values=3),
        ),
        rank_by="sharpe",
        accounts=1,
        sets=6,
        run=5,
        skipped=1,
        partial=False,
        engine="masks on cpu: 5 sets",
        top=(
            SetRow(rank=1, number=3, parameters={"fast": 6.0, "slow": 20.0}, figures=FIGURES),
            SetRow(rank=2, number=0, parameters={"fast": 5.0, "slow": 20.0}, figures=NOTHING),
        ),
        defaults=FIGURES,
        buy_and_hold=NOTHING,
        luck=LUCK,
        neighbours=(
            Neighbours(
                name="fast",
                values=(None, 5.0, 6.0, None, None),
                scores=(None, 0.1, 0.93, None, None),
            ),
            Neighbours(
                name="slow",
                values=(None, None, 20.0, 21.0, 22.0),
                scores=(None, None, 0.93, 0.5, None),
            ),
        ),
        heat=HEAT,
        times=tuple(begin + timedelta(days=place) for place in range(points)),
        curves=(column("best", "best set", points, 5.0), column("hold", "buy & hold", points, -1)),
        trades=(),
    )
    return replace(made, **given)


@pytest.fixture(scope="module")
def page() -> str:
    return write_sweep_page(contents_of())


@pytest.fixture(scope="module")
def tree(page: str) -> Element:
    return read(page)


STRIP = replace(
    HEAT,
    row_name=None,
    row_ends=(),
    best=((0.1, None, 0.93),),
    mean=((0.1, None, 0.93),),
    count=((1, 0, 1),),
    marked=(0, 2),
)
EMPTY = replace(HEAT, best=((None,) * 3,) * 2, mean=((None,) * 3,) * 2, count=((0,) * 3,) * 2)
THIN = {
    "whole": contents_of(),
    "interrupted": contents_of(luck=None, partial=True),
    "better": contents_of(luck=replace(LUCK, better=True, against=())),
    "no folds": contents_of(luck=replace(LUCK, folds=(), out_of_sample_sharpe=None)),
    "no statistics": contents_of(
        luck=replace(LUCK, deflated_sharpe=None, sharpe_by_luck=None, overfitting_probability=None)
    ),
    "one axis": contents_of(heat=STRIP),
    "nothing traded": contents_of(heat=EMPTY, defaults=None),
    "two bars": contents_of(points=2),
    "by drawdown": contents_of(rank_by="max_drawdown"),
}


@pytest.mark.parametrize("name", THIN)
def test_page_is_well_formed_and_asks_for_nothing(name):
    page = write_sweep_page(THIN[name])
    found = read(page)
    ids = Counter(item.attributes["id"] for item in found.all() if "id" in item.attributes)
    assert [name for name, count in ids.items() if count > 1] == []
    for link in found.all("a"):
        assert link.attributes["href"][1:] in ids
    for table in found.all("table"):
        assert table.one("caption").words
        assert all(head.attributes.get("scope") for head in table.all("th"))
    assert "None" not in found.words
    assert "nan" not in found.words.lower().split()
    assert not re.search(r"(?:https?:)?//[\w.]", re.sub(r"/\*.*?\*/", "", page, flags=re.DOTALL))
    assert found.one("meta", content=POLICY)
    for script in found.all("script", type="application/json"):
        json.loads(script.children[0])


def test_equal_contents_give_equal_pages(page):
    assert write_sweep_page(contents_of()) == page


def test_luck_is_said_first_and_in_full(tree):
    section = tree.one("section", id="luck")
    assert section.one("p", class_="verdict-line").words == (
        "The best of 10 sets is what luck alone would give (deflated Sharpe 0.41)."
    )
    for words in (
        "What speaks against it: deflated Sharpe 0.41 is below 0.95; 19 closed trades",
        "0.41 chance that the true Sharpe ratio of the best is above 1.02",
        "best of 10 trials without an edge has where the market alone gives 0.61",
        "as published, without the market's share: 0.88",
        "63 %",
        "12,870",
        "26 bars between the two belong to neither",
        "fast 5, slow 26",
        "no set traded",
        "−9.33 %",
    ):
        assert words in section.words
    assert "better" not in section.one("p", class_="verdict-line").attributes["class"]
    better = read(write_sweep_page(THIN["better"])).one("p", class_="better")
    assert "verdict-line" in better.attributes["class"]


def test_the_table_holds_the_sets_and_what_is_simpler(tree):
    rows = [
        [cell.words for cell in row.children if isinstance(cell, Element)]
        for row in tree.one("table", class_="sets").one("tbody").all("tr")
    ]
    assert rows[0] == [
        "1", "6", "20", "123,456.78", "+4.12 %", "0.93", "1.42", "−21.92 %", "38 +1 open", "50 %",
        "61 %",
    ]  # fmt: skip
    assert rows[1][3:] == [
        "100,000.00",
        "n/a",
        "n/a",
        "n/a",
        "0.00 %",
        "0",
        "n/a",
        "0 %",
    ]
    assert [row[0] for row in rows[2:]] == ["configured numbers", "buy & hold"]


def cells_of(drawing: Element, layer: str) -> dict[tuple[int, int], str]:
    """Colour of each cell as it is drawn: (column, row from the top)."""
    found = {}
    for path in drawing.one("g", class_=layer).all("path"):
        for x, y, width in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\3z", path.attributes["d"]):
            for column in range(int(x), int(x) + int(width)):
                assert (column, int(y)) not in found
                found[column, int(y)] = path.attributes["fill"]
    return found


@given(
    st.integers(1, 6).flatmap(
        lambda columns: st.lists(
            st.lists(
                st.one_of(st.none(), st.floats(-2, 2)), min_size=columns, max_size=columns
            ).map(tuple),
            min_size=1,
            max_size=5,
        )
    )
)
def test_every_cell_is_drawn_in_its_colour_and_empty_ones_not_at_all(rows):
    cells = tuple(rows)
    size = len(cells[0])
    heat = replace(
        HEAT,
        row_ends=tuple((float(n), float(n)) for n in range(len(cells))),
        column_ends=tuple((float(n), float(n)) for n in range(size)),
        best=cells,
        mean=cells,
        count=tuple(tuple(0 if value is None else 2 for value in row) for row in cells),
        marked=(0, 0),
    )
    ends = scale_of((cells, cells))
    found = read(heat_map(heat, "score", fraction=False))
    if ends is None:
        assert "no map to draw" in found.words
        return
    for layer in ("best", "mean"):
        drawn = cells_of(found.one("svg"), layer)
        wanted = {
            (column, len(cells) - row - 1): colour(step_of(value, *ends) / (STEPS - 1))
            for row, values in enumerate(cells)
            for column, value in enumerate(values)
            if value is not None
        }
        assert drawn == wanted


def test_colours_rise_in_lightness_so_that_everybody_can_order_them():
    shades = []
    for step in range(STEPS):
        red, green, blue = (int(colour(step / (STEPS - 1))[at : at + 2], 16) for at in (1, 3, 5))
        shades.append(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    assert shades == sorted(shades)
    assert shades[-1] > shades[0] + 150
    assert colour(-1.0) == colour(0.0)
    assert colour(2.0) == colour(1.0) == "#fde725"


def test_the_map_says_what_it_shows_without_a_script(tree):
    figure = tree.one("figure", class_="heat")
    drawing = figure.one("svg")
    assert drawing.attributes["role"] == "img"
    assert (
        "Sharpe ratio over fast and slow: the best cell has 0.93"
        in drawing.attributes["aria-label"]
    )
    ring = figure.one("span", class_="ring").attributes["style"]
    assert ring == "left:16.67%;top:25.00%"
    assert figure.one("div", class_="ramp-ticks").words.split()[-1] == "0.93"
    assert figure.one("div", class_="x-axis").words == "20 21 22"
    assert [item.attributes["id"] for item in figure.all("input")] == ["layer-best", "layer-mean"]
    data = json.loads(tree.one("script", id="heat-data").children[0])
    assert data["best"][1][0] == 0.93
    assert data["count"] == [[1, 0, 2], [1, 2, 1]]
    single = read(write_sweep_page(THIN["one axis"])).one("figure", class_="heat")
    assert list(single.all("input")) == []  # each cell is one set: best and mean are the same


def test_neighbours_show_a_plateau_or_a_peak(tree):
    section = tree.one("section", id="near")
    assert "2 neighbours, one or two steps away on one axis, have 0.30 on average and 0.10" in (
        section.words
    )
    rows = [row.words for row in section.one("tbody").all("tr")]
    assert rows == ["fast 0.10 5 0.93 6", "slow 0.93 20 0.50 21 not run 22"]


def test_measures_in_percent_are_written_so():
    words = read(write_sweep_page(THIN["by drawdown"])).one("section", id="near").words
    assert "93.0 %" in words
    assert "Max drawdown" in words


def test_an_interrupted_sweep_says_so():
    found = read(write_sweep_page(THIN["interrupted"]))
    assert "Not known: the sweep was interrupted." in found.one("section", id="luck").words
    assert "interrupted, 6 were asked for" in found.one("header").words


def test_hostile_words_stay_words():
    page = write_sweep_page(
        contents_of(
            run_id=HOSTILE,
            strategy=HOSTILE,
            engine=HOSTILE,
            notices=(HOSTILE,),
            settings={HOSTILE: HOSTILE},
            luck=replace(LUCK, sentence=HOSTILE, against=(HOSTILE,)),
            heat=replace(HEAT, row_name=HOSTILE, column_name=HOSTILE),
            source=replace(
                contents_of().source, name=HOSTILE, symbols=(HOSTILE,), adjustment={HOSTILE: "x"}
            ),
        )
    )
    found = read(page)
    assert list(found.all("img")) == []
    assert len(list(found.all("script"))) == 4
    assert json.loads(found.one("script", id="heat-data").children[0])["rowName"] == HOSTILE


def test_the_mean_of_several_accounts_is_called_one():
    words = "the mean of 3 accounts"
    assert words in write_sweep_page(contents_of(accounts=3))
    assert "accounts" not in write_sweep_page(contents_of())
