"""Does the debate earn its cost: intervals beside every column, refusals followed, confidence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from trader.report.contents import (
    Calibration,
    Column,
    Interval,
    RefusalSum,
    ReportContents,
    ShadowTrade,
    Spread,
)
from trader.report.markup import Html, anchor, join, link, pairs, table, tag
from trader.report.wording import (
    MINUS,
    MISSING,
    absent,
    coloured,
    counted,
    number,
    percent,
    plain,
    price,
    shares,
    stamp,
)

SHOWN_ANSWERS = {
    "spend": "Spent on models",
    "fallback": "Fallback",
    "verdicts": "Verdicts",
    "refusals": "Refusals",
    "confidence": "Confidence",
    "knowledge": "Known before",
}
Bounds = tuple[float, float]


def worth_section(contents: ReportContents) -> Html:
    """What the sample can tell of the debate against everything simpler, and what it cost."""
    worth, columns = contents.worth, contents.columns
    if not columns:
        return tag("p", "Nothing was traded.", class_="empty")
    labels = {column.key: column.label for column in columns}
    answers = [
        tag("li", _sentence(f"{topic.removeprefix('against ')}: {words}"))
        for topic, words in worth.answers.items()
        if topic.startswith("against ")
    ]
    asked = [
        (name, _sentence(worth.answers[topic]))
        for topic, name in SHOWN_ANSWERS.items()
        if topic in worth.answers
    ]
    return join(
        (
            tag("p", "The debate minus what is simpler, on the same bars and costs:", class_="lead")
            if answers
            else tag("p", "The debate was off, so there is nothing to compare.", class_="lead"),
            tag("ul", join(answers), class_="against") if answers else "",
            _columns(contents),
            _differences(worth.intervals.differences, labels),
            pairs(asked, class_="asked") if asked else "",
            tag("p", _method(contents), class_="fine"),
        )
    )


def _sentence(words: str) -> str:
    """With a capital, a full stop and true minus signs."""
    return re.sub(r"(?<![\w-])-(?=\d)", MINUS, f"{words[:1].upper()}{words[1:]}.")


def _method(contents: ReportContents) -> str:
    found = contents.worth.intervals
    return (
        f"Intervals: {found.method}; {found.confidence:.0%} of {found.resamples:,} resamples of "
        f"{counted(found.periods, 'period')} in blocks of {found.block_length}, seed {found.seed}. "
        "All columns draw the same blocks, so a difference compares like with like. They tell how "
        "far the luck of these periods reaches, not what another market would do."
    )


def _columns(contents: ReportContents) -> Html:
    columns, spreads = contents.columns, contents.worth.intervals.columns
    annual = _bounds(spreads[column.key].annual_return for column in columns)
    return table(
        "Each way of trading",
        ("Trading", "#Annual return", "90 % interval", "#Sharpe", "#90 % interval", "#Trades"),
        (_column(column, spreads[column.key], annual) for column in columns),
        class_="spreads",
    )


def _column(column: Column, spread: Spread, scale: Bounds | None) -> Html:
    seen = column.performance
    trades = f"{seen.trades:,}" + (f" + {seen.open_trades:,} open" if seen.open_trades else "")
    return tag(
        "tr",
        tag("th", column.label, scope="row"),
        *_cells(spread, scale, points=False),
        tag("td", trades, class_="n", data_label="Trades"),
    )


def _differences(found: Mapping[str, Spread], labels: Mapping[str, str]) -> Html:
    if not found:
        return Html("")
    scale = _bounds(spread.annual_return for spread in found.values())
    rows = (
        tag(
            "tr",
            tag("th", f"minus {labels[key]}", scope="row"),
            *_cells(spread, scale, points=True),
            tag("td", _holds(spread), class_="n", data_label="Holds zero"),
        )
        for key, spread in found.items()
    )
    return table(
        "What the debate adds; an interval that holds zero tells nothing",
        ("Debate", "#Annual return", "90 % interval", "#Sharpe", "#90 % interval", "#Holds zero"),
        rows,
        class_="spreads",
    )


def _holds(spread: Spread) -> str:
    known = [found for found in (spread.annual_return, spread.sharpe) if found is not None]
    if not known:
        return MISSING
    return "yes" if any(found.holds_zero for found in known) else "no"


def _cells(spread: Spread, scale: Bounds | None, *, points: bool) -> tuple[Html, ...]:
    """Four cells: annual return, its interval drawn, Sharpe ratio, its interval."""
    annual, ratio = spread.annual_return, spread.sharpe
    first: str = absent("too few periods")
    drawn: str = ""
    if annual is not None and scale is not None:
        value = (
            f"{number(100.0 * annual.estimate, signed=True)} points"
            if points
            else percent(annual.estimate, signed=True)
        )
        first = coloured(value, annual.estimate)
        drawn = join((_track(annual, scale), tag("small", _between(annual, 100.0, " %"))))
    return (
        tag("td", first, class_="n", data_label="Annual return"),
        tag("td", drawn, class_="track-cell", data_label="90 % interval"),
        tag(
            "td",
            MISSING if ratio is None else number(ratio.estimate, signed=points),
            class_="n",
            data_label="Sharpe",
        ),
        tag(
            "td",
            "" if ratio is None else tag("small", _between(ratio, 1.0, "")),
            class_="n",
            data_label="90 % interval",
        ),
    )


def _between(found: Interval, scale: float, unit: str) -> str:
    low, high = (number(scale * value, signed=True) for value in (found.low, found.high))
    return f"{low} to {high}{unit}"


def _bounds(found: Iterable[Interval | None]) -> Bounds | None:
    """The lowest and highest end of the intervals, zero between them."""
    known = [item for item in found if item is not None]
    if not known:
        return None
    low, high = min(0.0, *(item.low for item in known)), max(0.0, *(item.high for item in known))
    return (low, high) if high > low else None


def _track(found: Interval, scale: Bounds) -> Html:
    """The interval to scale, with a mark at its value and a line at zero."""
    low, high = scale

    def place(value: float) -> float:
        return min(max((value - low) / (high - low), 0.0), 1.0)

    return tag(
        "span",
        tag("span", class_="zero", style=f"left:{place(0.0):.1%}"),
        tag(
            "span",
            class_="range",
            style=f"left:{place(found.low):.1%};right:{1.0 - place(found.high):.1%}",
        ),
        tag("span", class_="point", style=f"left:{place(found.estimate):.1%}"),
        class_="track",
        aria_hidden="true",
    )


def refusals_section(contents: ReportContents, *, with_time: bool) -> Html:
    """The shadow ledger: each NO_GO followed to its end, and the sums by flag."""
    found = contents.worth.refusals
    if found is None or not found.trades:
        said = "No debate was held." if found is None else "No refused trade could be followed."
        return tag("p", said, class_="empty")
    sums = [("All refusals", found.total), *found.by_flag.items()]
    debated = {cycle.cycle_id for cycle in contents.cycles}
    return join(
        (
            tag("p", _sentence(contents.worth.answers["refusals"]), class_="lead"),
            tag(
                "p",
                "Each refused trade is followed alone through the bars after its decision: entry "
                "at the next open, the candidate's stop, the verdict's target, the strategy's own "
                "exit; costs included, the stop first where a bar reaches both. Nothing that "
                "decides ever sees this.",
                class_="fine",
            ),
            table(
                "What refused trades would have made: above zero the refusal cost it, below it "
                "saved it; one refusal can have several reasons",
                ("Reason", "#Refused", "#Would have won", "#R", "#USD"),
                (_sum(name, total) for name, total in sums),
                class_="flag-sums",
            ),
            tag(
                "details",
                tag("summary", f"{counted(len(found.trades), 'refused trade')}, one by one"),
                table(
                    "R and USD at the size that the gate would have given; 0 shares where it would "
                    "have refused as well",
                    ("Refused", "#Shares", "Entered", "Left", "#USD", "#R", "Debate"),
                    (_shadow(trade, debated, with_time=with_time) for trade in found.trades),
                    class_="trades",
                ),
            ),
        )
    )


def _sum(name: str, total: RefusalSum) -> Html:
    return tag(
        "tr",
        tag("th", tag("code", name) if name.isupper() else name, scope="row"),
        tag("td", f"{total.trades:,}", class_="n"),
        tag("td", f"{total.won:,}", class_="n"),
        tag("td", coloured(number(total.r, signed=True), total.r), class_="n"),
        tag("td", coloured(number(total.profit, signed=True), total.profit), class_="n"),
    )


def _shadow(trade: ShadowTrade, debated: set[str], *, with_time: bool) -> Html:
    entered = join((stamp(trade.entered_at, with_time=with_time), " at ", price(trade.entry_price)))
    left: str = join((tag("i", "still open"), " at ", price(trade.exit_price)))
    if trade.exited_at is not None:
        left = join((stamp(trade.exited_at, with_time=with_time), " at ", price(trade.exit_price)))
    notes = [
        trade.left_by,
        "left out of the sums: held already" if trade.repeats else "",
    ]
    multiple = (
        absent("no risk") if trade.r_multiple is None else number(trade.r_multiple, signed=True)
    )
    return tag(
        "tr",
        tag("th", trade.symbol, tag("small", plain(trade.strategy)), scope="row"),
        tag("td", shares(trade.quantity), class_="n", data_label="Shares"),
        tag("td", entered, tag("small", ", ".join(trade.flags)), data_label="Entered"),
        tag("td", left, tag("small", ", ".join(note for note in notes if note)), data_label="Left"),
        tag(
            "td",
            coloured(number(trade.profit, signed=True), trade.profit),
            class_="n",
            data_label="USD",
        ),
        tag("td", multiple, class_="n", data_label="R"),
        tag(
            "td",
            link(anchor(trade.cycle_id), "debate", aria_label=f"Debate of {trade.cycle_id}")
            if trade.cycle_id in debated
            else "not recorded",
            data_label="Debate",
        ),
    )


def confidence_section(contents: ReportContents) -> Html:
    """The reliability table: of verdicts with this confidence, how many trades made money."""
    found = contents.worth.calibration
    if found is None:
        return tag("p", "No debate was held.", class_="empty")
    return join(
        (
            tag("p", _sentence(contents.worth.answers["confidence"]), class_="lead"),
            _reliability(found) if found.verdicts else "",
            tag(
                "p",
                f"A trade won when it made money after costs, taken or followed as a shadow; "
                f"{counted(found.left_out, 'verdict')} without an ended trade or a "
                "finished debate left out. "
                "Brier score: the mean squared distance of confidence and outcome, 0 is perfect.",
                class_="fine",
            ),
        )
    )


def _reliability(found: Calibration) -> Html:
    rows = (
        tag(
            "tr",
            tag("th", f"{item.low:.1f} to {item.high:.1f}", scope="row"),
            tag("td", f"{item.count:,}", class_="n"),
            tag("td", number(item.mean_confidence), class_="n"),
            tag("td", MISSING if item.won is None else percent(item.won, 0), class_="n"),
            tag("td", _share(item.won), class_="bar-cell"),
        )
        for item in found.bins
    )
    return table(
        "Well calibrated means: the share that won equals the mean confidence",
        ("Confidence", "#Verdicts", "#Mean confidence", "#Won", "Share"),
        rows,
        class_="reliability",
    )


def _share(won: float | None) -> Html:
    if not won:
        return Html("")
    return tag("span", class_="bar", style=f"width:{won:.1%}", aria_hidden="true")
