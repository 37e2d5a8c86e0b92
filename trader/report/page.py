"""A backtest as one HTML file that needs nothing else: no request, no library, no script."""

from __future__ import annotations

from importlib.resources import files

from trader.report.charts import chart_data, drawdown_chart, equity_chart, intraday
from trader.report.contents import ReportContents
from trader.report.debates import debate_block
from trader.report.facts import DebateView
from trader.report.markup import Html, join, printable, tag, void
from trader.report.sections import filter_choices, foot, funnel, head, results, trades
from trader.report.worth import confidence_section, refusals_section, worth_section

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
SECTIONS = (
    ("worth", "Does the debate earn its cost?"),
    ("results", "Results"),
    ("curves", "Equity and drawdown"),
    ("funnel", "Funnel"),
    ("trades", "Trades"),
    ("refusals", "Refusals followed to their end"),
    ("confidence", "Confidence and outcome"),
    ("debates", "Debates"),
)


def write_page(contents: ReportContents) -> str:
    """The whole page as text, to be written as UTF-8; equal contents give equal text.

    Raises ValueError when a column does not have one equity point for each of the report's times.
    """
    with_time = intraday(contents.times)
    bodies = {
        "worth": worth_section(contents),
        "results": results(contents),
        "curves": _curves(contents),
        "funnel": funnel(contents),
        "trades": trades(contents, with_time=with_time),
        "refusals": refusals_section(contents, with_time=with_time),
        "confidence": confidence_section(contents),
        "debates": _debates(contents, with_time=with_time),
    }
    main = join(
        tag("section", tag("h2", title), bodies[name], id=name, class_="part")
        for name, title in SECTIONS
    )
    names = join(tag("a", title, href=f"#{name}") for name, title in SECTIONS)
    body = tag(
        "body",
        head(contents),
        tag("nav", names, aria_label="Parts of this page"),
        tag("main", main),
        foot(contents),
        chart_data(contents.times, contents.columns),
        tag("script", _beside("page.js")),
    )
    return printable(
        f'<!doctype html>\n<html lang="en">\n{_meta(contents)}\n{body}\n</html>\n',
    )


def _meta(contents: ReportContents) -> Html:
    return tag(
        "head",
        void("meta", charset="utf-8"),
        void("meta", http_equiv="Content-Security-Policy", content=POLICY),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", name="color-scheme", content="light dark"),
        void("meta", name="referrer", content="no-referrer"),
        void("link", rel="icon", href="data:,"),
        tag("title", f"{contents.run_id}: paper backtest, {contents.period}"),
        tag("style", _beside("style.css")),
    )


def _beside(name: str) -> Html:
    """A file of ours that lies beside this one."""
    return Html(files("trader.report").joinpath(name).read_text(encoding="utf-8"))


def _curves(contents: ReportContents) -> Html:
    return join(
        (
            equity_chart(contents.times, contents.columns, contents.trades),
            drawdown_chart(contents.times, contents.columns),
        )
    )


def _debates(contents: ReportContents, *, with_time: bool) -> Html:
    if not contents.cycles:
        return tag("p", "No debate was held: no signal fired in this period.", class_="empty")
    by_id = {trade.trade_id: trade for trade in contents.trades}
    blocks = (
        debate_block(
            DebateView(
                cycle=cycle,
                number=number,
                trade=by_id.get(cycle.cycle_id),
                refusal=contents.refusals.get(cycle.cycle_id, ""),
                with_time=with_time,
            )
        )
        for number, cycle in enumerate(contents.cycles, start=1)
    )
    choices = join(
        tag(
            "label",
            void("input", type="radio", name="show", id=name, checked=name == "show-all"),
            f" {words} ",
            tag("small", f"{count:,}"),
        )
        for name, words, count in filter_choices(contents.cycles)
    )
    return join(
        (
            tag("fieldset", tag("legend", "Show debates"), choices, class_="filter"),
            join(blocks),
        )
    )
