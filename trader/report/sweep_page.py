"""A sweep as one HTML file that needs nothing else: luck, best sets, heat map, neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

from trader.report.charts import chart_data, drawdown_chart, equity_chart
from trader.report.heatmap import colour, heat_data, heat_map, scale_of, score
from trader.report.markup import Html, join, printable, table, tag, void
from trader.report.page import POLICY
from trader.report.sections import masthead
from trader.report.sweep_contents import FoldRow, LuckFigures, Neighbours, SetFigures, SweepContents
from trader.report.wording import coloured, counted, number, percent

FRACTIONS = ("annual_return", "max_drawdown", "hit_rate")  # measures that are shown in percent
MEASURES = {
    "sharpe": "Sharpe ratio",
    "sortino": "Sortino ratio",
    "final_equity": "final equity, USD",
    "annual_return": "annual return",
    "max_drawdown": "max drawdown",
    "hit_rate": "hit rate",
}
SECTIONS = (
    ("luck", "Is it luck?"),
    ("sets", "The best sets"),
    ("map", "Heat map"),
    ("near", "Neighbours of the best set"),
    ("curves", "The best set against buy and hold"),
)


def write_sweep_page(contents: SweepContents) -> str:
    """The whole page as text, to be written as UTF-8; equal contents give equal text."""
    fraction = contents.rank_by in FRACTIONS
    bodies = {
        "luck": _luck(contents),
        "sets": _sets(contents),
        "map": heat_map(contents.heat, MEASURES[contents.rank_by], fraction=fraction),
        "near": _near(contents),
        "curves": join(
            (
                equity_chart(contents.times, contents.curves, contents.trades),
                drawdown_chart(contents.times, contents.curves),
            )
        ),
    }
    main = join(
        tag("section", tag("h2", title), bodies[name], id=name, class_="part")
        for name, title in SECTIONS
    )
    names = join(tag("a", title, href=f"#{name}") for name, title in SECTIONS)
    body = tag(
        "body",
        _head(contents),
        tag("nav", names, aria_label="Parts of this page"),
        tag("main", main),
        _foot(contents),
        chart_data(contents.times, contents.curves),
        heat_data(contents.heat, fraction=fraction),
        tag("script", _beside("page.js")),
        tag("script", _beside("sweep.js")),
    )
    return printable(f'<!doctype html>\n<html lang="en">\n{_meta(contents)}\n{body}\n</html>\n')


def _meta(contents: SweepContents) -> Html:
    return tag(
        "head",
        void("meta", charset="utf-8"),
        void("meta", http_equiv="Content-Security-Policy", content=POLICY),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", name="color-scheme", content="light dark"),
        void("meta", name="referrer", content="no-referrer"),
        void("link", rel="icon", href="data:,"),
        tag("title", f"{contents.run_id}: paper sweep of {contents.strategy}, {contents.period}"),
        tag("style", _beside("style.css"), _beside("sweep.css")),
    )


def _beside(name: str) -> Html:
    """A file of ours that lies beside this one."""
    return Html(files("trader.report").joinpath(name).read_text(encoding="utf-8"))


def _head(contents: SweepContents) -> Html:
    axes = join(
        tag("span", tag("b", axis.name), f" {_span(axis.low, axis.high)}, {axis.values:,} values")
        for axis in contents.axes
    )
    fitting = f"{contents.run:,} run, {contents.skipped:,} skipped: their numbers do not fit"
    if contents.partial:
        fitting += f"; interrupted, {contents.sets:,} were asked for"
    return masthead(
        contents,
        f"Sweep of {contents.strategy} on {', '.join(contents.source.symbols)}",
        (
            ("Numbers", tag("span", axes, class_="list")),
            ("Sets", fitting),
            ("Computed by", contents.engine),
        ),
    )


def _span(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _luck(contents: SweepContents) -> Html:
    luck = contents.luck
    if luck is None:
        return tag("p", "Not known: the sweep was interrupted.", class_="empty")
    sentence = luck.sentence[:1].upper() + luck.sentence[1:] + "."
    lines = tag("p", sentence, class_="verdict-line better" if luck.better else "verdict-line")
    against = (
        tag("p", f"What speaks against it: {'; '.join(luck.against)}.") if luck.against else ""
    )
    return join((lines, against, _tests(luck), _folds(luck)))


def _tests(luck: LuckFigures) -> Html:
    def row(name: str, value: str, words: str) -> Html:
        return tag("div", tag("span", name), tag("b", value), tag("small", words))

    return tag(
        "div",
        row(
            "Deflated Sharpe ratio",
            number(luck.deflated_sharpe),
            f"chance that the true Sharpe ratio of the best is above {number(luck.sharpe_by_luck)},"
            f" which the best of {luck.trials:,} trials without an edge has where the market alone "
            f"gives {number(luck.sharpe_without_edge)}; 0.95 or more is asked for (as published, "
            f"without the market's share: {number(luck.published_deflated_sharpe)})",
        ),
        row(
            "Probability of overfitting",
            percent(luck.overfitting_probability, 0),
            f"share of {luck.splits:,} ways to halve the bars in which the best of one half is no "
            f"better than the middle one in the other; {luck.cross_validated:,} sets compared; "
            "50 % or less is asked for",
        ),
        row(
            "Probability of a loss",
            percent(luck.overfitting_loss, 0),
            "share of the same splits in which the best of one half loses in the other",
        ),
        row(
            "Sharpe ratio out of sample",
            number(luck.out_of_sample_sharpe),
            "of the tests below one after another, "
            f"{percent(luck.out_of_sample_return, signed=True)} in all; above 0 is asked for",
        ),
        row("Closed trades of the best", f"{luck.trades:,}", "20 or more are asked for"),
        class_="tests",
    )


def _folds(luck: LuckFigures) -> Html:
    if not luck.folds:
        return tag("p", "The bars are too few for a walk-forward test.", class_="empty")
    caption = (
        "Walk-forward: the best set of each training, and what it did afterwards; "
        f"{counted(luck.embargo, 'bar')} between the two belong to neither"
    )
    headers = ("Trained on", "Tested on", "Chosen", "#Sharpe before", "#Sharpe then", "#Return")
    return tag(
        "div",
        table(caption, headers, (_fold(fold) for fold in luck.folds), class_="folds"),
        class_="scroll",
    )


def _fold(fold: FoldRow) -> Html:
    chosen = "no set traded" if fold.parameters is None else _written(fold.parameters)
    return tag(
        "tr",
        tag("th", f"{fold.train_first} to {fold.train_last}", scope="row"),
        tag("td", f"{fold.test_first} to {fold.test_last}"),
        tag("td", chosen),
        tag("td", number(fold.in_sample_sharpe), class_="n"),
        tag("td", number(fold.out_of_sample_sharpe), class_="n"),
        tag(
            "td",
            coloured(percent(fold.total_return, signed=True), fold.total_return),
            class_="n",
        ),
    )


def _written(parameters: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in parameters.items())


def _sets(contents: SweepContents) -> Html:
    names = [axis.name for axis in contents.axes]
    headers = (
        "Rank",
        *(f"#{name}" for name in names),
        "#Final equity, USD",
        "#Annual",
        "#Sharpe",
        "#Sortino",
        "#Max drawdown",
        "#Trades",
        "#Hit rate",
        "#Exposure",
    )
    rows = [
        tag(
            "tr",
            tag("th", f"{row.rank}", scope="row"),
            join(tag("td", f"{row.parameters[name]:g}", class_="n") for name in names),
            _figures(row.figures),
        )
        for row in contents.top
    ]
    simpler = [("configured numbers", contents.defaults), ("buy & hold", contents.buy_and_hold)]
    rows += [
        tag(
            "tr",
            tag("th", label, scope="row", colspan=1 + len(names)),
            _figures(figures),
            class_="simpler",
        )
        for label, figures in simpler
        if figures is not None
    ]
    caption = f"Ranked by {MEASURES[contents.rank_by]}; the same bars, money and costs"
    if contents.accounts > 1:
        caption += (
            f"; the mean of {contents.accounts} accounts, trades in all. The curves below are of "
            "all accounts together"
        )
    return tag("div", table(caption, headers, rows, class_="sets"), class_="scroll")


def _figures(found: SetFigures) -> Html:
    open_ = f" +{found.open_trades} open" if found.open_trades else ""
    cells = (
        number(found.final_equity),
        coloured(percent(found.annual_return, signed=True), found.annual_return),
        number(found.sharpe),
        number(found.sortino),
        percent(found.max_drawdown),
        f"{found.trades:,}{open_}",
        percent(found.hit_rate, 0),
        percent(found.exposure, 0),
    )
    return join(tag("td", cell, class_="n") for cell in cells)


def _near(contents: SweepContents) -> Html:
    rows = contents.neighbours
    fraction = contents.rank_by in FRACTIONS
    near = [
        value
        for row in rows
        for at, value in enumerate(row.scores)
        if value is not None and at != len(row.scores) // 2
    ]
    itself = rows[0].scores[len(rows[0].scores) // 2]
    if not near or itself is None:
        words = "No neighbour of the best set has a score."
    else:
        words = (
            f"{counted(len(near), 'neighbour')}, one or two steps away on one axis, "
            f"{'has' if len(near) == 1 else 'have'} "
            f"{score(sum(near) / len(near), fraction=fraction)} on average and "
            f"{score(min(near), fraction=fraction)} at worst, the best set itself "
            f"{score(itself, fraction=fraction)}. A good set stands on a plateau, a lucky one on a "
            "peak."
        )
    scale = scale_of((contents.heat.best, contents.heat.mean)) or (0.0, 1.0)
    body = (_near_row(row, scale, fraction=fraction) for row in rows)
    headers = ("Number", "#two below", "#one below", "#the best set", "#one above", "#two above")
    caption = f"{MEASURES[contents.rank_by][:1].upper()}{MEASURES[contents.rank_by][1:]}"
    return join(
        (
            tag("p", words, class_="lead"),
            tag("div", table(caption, headers, body, class_="near"), class_="scroll"),
        )
    )


def _near_row(row: Neighbours, scale: Sequence[float], *, fraction: bool) -> Html:
    low, high = scale
    cells = []
    for at, (value, found) in enumerate(zip(row.values, row.scores, strict=True)):
        middle = "n self" if at == len(row.scores) // 2 else "n"
        if value is None:
            cells.append(tag("td", "", class_=middle))
            continue
        share = 0.0 if found is None or not high > low else (found - low) / (high - low)
        swatch = (
            ""
            if found is None
            else tag("span", class_="swatch", style=f"background:{colour(share)}")
        )
        written = "not run" if found is None else score(found, fraction=fraction)
        cells.append(tag("td", swatch, written, tag("small", f"{value:g}"), class_=middle))
    return tag("tr", tag("th", row.name, scope="row"), join(cells))


def _foot(contents: SweepContents) -> Html:
    return tag(
        "footer",
        tag(
            "p",
            f"debate-trader {contents.version}, run {contents.run_id}. Bars SHA-256 ",
            tag("code", contents.source.sha256),
            ".",
        ),
        tag(
            "p",
            "Deflated Sharpe ratio: Bailey and Lopez de Prado (2014). Probability of overfitting: "
            "Bailey, Borwein, Lopez de Prado and Zhu (2017). Sharpe ratios are annualised. All "
            "times are UTC. Paper trading only; nothing here is advice.",
        ),
    )
