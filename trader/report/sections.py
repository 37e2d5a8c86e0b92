"""The parts of the page around the debates: head, results, funnel and trades."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime

from trader.core.decision import CycleRecord, Decision, debater_words
from trader.core.flags import FLAG_WORDS
from trader.core.metrics import (
    MINIMUM_PERIODS_FOR_ANNUAL,
    MINIMUM_RETURNS_FOR_SHARPE,
    Performance,
)
from trader.report.contents import Column, Funnel, ReportContents, TradeRow
from trader.report.markup import Html, anchor, join, link, pairs, table, tag
from trader.report.sweep_contents import SweepContents
from trader.report.wording import (
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

SHORT_HASH = 12  # hexadecimal digits
MOST_NAMED = 8  # symbols in the title
Cell = str


def head(contents: ReportContents) -> Html:
    """What this is, what it ran on and with which settings."""
    return masthead(
        contents,
        f"Backtest of {_few(contents.source.symbols)}",
        (("Debated by", debater_words(contents.debater)),),
    )


def masthead(
    contents: ReportContents | SweepContents, title: str, about: Iterable[tuple[str, str]]
) -> Html:
    """The head of any report; about: what is said of it besides run, period and bars."""
    source = contents.source
    symbols = join(
        tag("span", tag("b", symbol), f" {source.adjustment.get(symbol, 'adjustment unknown')}")
        for symbol in source.symbols
    )
    ran_on = [
        ("Run", tag("code", contents.run_id)),
        ("Period", contents.period),
        (
            "Bars",
            join(
                (
                    f"{source.name}, {source.first} to {source.last}, SHA-256 ",
                    tag("code", source.sha256[:SHORT_HASH], title=source.sha256),
                )
            ),
        ),
        ("Prices adjusted for", tag("span", symbols, class_="list")),
    ]
    notices = join(tag("li", notice) for notice in contents.notices)
    return tag(
        "header",
        tag(
            "p",
            tag("b", "debate-trader"),
            f" {contents.version} ",
            tag("span", "PAPER", class_="badge"),
            " ",
            tag("span", "simulated money, not advice", class_="fine"),
            class_="brand",
        ),
        tag("h1", title),
        pairs((*ran_on, *about), class_="about"),
        pairs(
            ((plain(name), value) for name, value in contents.settings.items()), class_="settings"
        ),
        tag("ul", notices, class_="notices") if contents.notices else "",
    )


def _few(symbols: tuple[str, ...]) -> str:
    return ", ".join(symbols) if len(symbols) <= MOST_NAMED else f"{len(symbols)} symbols"


def results(contents: ReportContents) -> Html:
    """One sentence, then every measure of every column."""
    columns = contents.columns
    if not columns:
        return tag("p", "Nothing was traded.", class_="empty")
    rows = (
        tag(
            "tr",
            tag("th", name, scope="row"),
            join(tag("td", _measure(name, column, contents), class_="n") for column in columns),
        )
        for name in MEASURES
    )
    caption = (
        f"The same bars, money and costs; Sharpe over {contents.periods_per_year:,.0f} slots a year"
    )
    return join(
        (
            tag("p", _sentence(columns), class_="lead"),
            tag(
                "div",
                table(
                    caption,
                    ("Measure", *(f"#{column.label}" for column in columns)),
                    rows,
                    class_="results",
                ),
                class_="scroll",
            ),
        )
    )


MEASURES = (
    "Total return",
    "Annual return",
    "Sharpe ratio",
    "Max drawdown",
    "Closed trades",
    "Hit rate",
    "Exposure",
    "Costs, USD",
    "Final equity, USD",
)


def _measure(name: str, column: Column, contents: ReportContents) -> Cell:
    seen = column.performance
    if name == "Total return":
        return coloured(percent(seen.total_return, signed=True), seen.total_return)
    if name == "Annual return":
        return _annual(seen, contents.periods_per_year)
    if name == "Sharpe ratio":
        return _sharpe(seen)
    if name == "Max drawdown":
        return percent(seen.max_drawdown)
    if name == "Closed trades":
        open_ = tag("small", f"+ {seen.open_trades:,} open") if seen.open_trades else ""
        return join((f"{seen.trades:,} ", open_))
    if name == "Hit rate":
        return absent("no closed trade") if seen.hit_rate is None else percent(seen.hit_rate, 1)
    if name == "Exposure":
        return join((percent(seen.exposure, 1), " ", tag("small", "of bars")))
    return number(seen.costs if name.startswith("Costs") else seen.final_equity)


def _annual(seen: Performance, periods_per_year: float) -> Cell:
    if seen.annual_return is not None:
        return percent(seen.annual_return, signed=True)
    needed = math.ceil(MINIMUM_PERIODS_FOR_ANNUAL * periods_per_year)
    return absent(f"needs {needed} bars" if seen.sharpe_count < needed else "nothing is left")


def _sharpe(seen: Performance) -> Cell:
    if seen.sharpe is not None:
        return join((number(seen.sharpe), " ", tag("small", f"n = {seen.sharpe_count:,}")))
    needed = MINIMUM_RETURNS_FOR_SHARPE
    return absent(f"needs {needed} bars" if seen.sharpe_count < needed else "equity never moved")


def _sentence(columns: tuple[Column, ...]) -> str:
    first, *others = columns
    total = first.performance.total_return
    gaps = [
        f"{number(abs(gap))} points {'more' if gap > 0.0 else 'less'} than {other.label.lower()}"
        for other in others
        if (gap := 100.0 * (total - other.performance.total_return))
    ]
    name = first.label[:1].upper() + first.label[1:]
    return f"{name} returned {', '.join([percent(total, signed=True), *gaps])}."


def funnel(contents: ReportContents) -> Html:
    """How bars became trades, where the rest was lost, and which rules said no."""
    seen = contents.funnel
    steps = (
        ("Bars", seen.bars, "seen by the strategies"),
        ("Signals", seen.signals, _losses("not debated", seen.skipped)),
        ("Debates", seen.debates, f"{seen.no_go:,} ended in NO_GO" if seen.no_go else ""),
        ("GO", seen.go, _losses("refused by the risk gate", seen.gate_refusals)),
        (
            "Orders",
            seen.orders,
            "of entries and exits"
            + (f"; {seen.broker_refusals:,} refused by the broker" if seen.broker_refusals else ""),
        ),
        ("Fills", seen.fills, "of entries and exits"),
    )
    widest = max(seen.signals, seen.debates, seen.go, seen.orders, seen.fills, 1)
    rows = (
        tag(
            "tr",
            tag("th", name, scope="row"),
            tag("td", f"{count:,}", class_="n"),
            tag("td", _bar(count, widest) if name != "Bars" else "", class_="bar-cell"),
            tag("td", lost),
        )
        for name, count, lost in steps
    )
    return tag(
        "div",
        table("From bars to fills", ("Step", "#Count", "Share", "Of these"), rows, class_="funnel"),
        _vetoes(seen, contents.cycles),
        _gate(seen),
        _nearest(contents),
        class_="funnels",
    )


def _losses(what: str, reasons: Mapping[str, int]) -> str:
    lost = sum(reasons.values())
    if not lost:
        return ""
    named = ", ".join(f"{reason} {count:,}" for reason, count in _largest_first(reasons))
    return f"{lost:,} {what}: {named}"


def _largest_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _bar(count: int, widest: int) -> Html:
    if not count:
        return Html("")
    return tag("span", class_="bar", style=f"width:{count / widest:.1%}", aria_hidden="true")


def _vetoes(seen: Funnel, cycles: tuple[CycleRecord, ...]) -> Html:
    rules: dict[str, str] = {}
    for cycle in cycles:
        for rule in cycle.debate.verdict.rules:
            rules.setdefault(rule.code.value, rule.rule)
    failed = [(code, count) for code, count in _largest_first(seen.vetoes) if count]
    if not failed:
        return tag("p", "No rule of the arbitrator failed in any debate.", class_="empty")
    rows = (
        tag(
            "tr",
            tag("th", rules.get(code, ""), tag("small", tag("code", code)), scope="row"),
            tag("td", f"{count:,}", class_="n"),
            tag("td", _bar(count, max(seen.debates, count)), class_="bar-cell"),
        )
        for code, count in failed
    )
    return table(
        f"Rules that failed, of {counted(seen.debates, 'debate')}; one debate can fail several",
        ("Rule", "#Debates", "Share"),
        rows,
        class_="vetoes",
    )


def _gate(seen: Funnel) -> Html:
    """Why the risk gate refused what the debate had allowed; nothing where it refused nothing."""
    if not seen.gate_refusals:
        return Html("")
    words = {str(code): meaning for code, meaning in FLAG_WORDS.items()}
    rows = (
        tag(
            "tr",
            tag("th", words.get(code, ""), tag("small", tag("code", code)), scope="row"),
            tag("td", f"{count:,}", class_="n"),
            tag("td", _bar(count, max(seen.go, count)), class_="bar-cell"),
        )
        for code, count in _largest_first(seen.gate_refusals)
    )
    return table(
        f"Refused by the risk gate, of {seen.go:,} GO; the first reason counts",
        ("Reason", "#GO", "Share"),
        rows,
        class_="vetoes",
    )


def _nearest(contents: ReportContents) -> Html:
    if not contents.funnel.nearest_miss:
        return Html("")
    return tag("p", tag("b", "Nearest miss: "), contents.funnel.nearest_miss, class_="nearest")


def trades(contents: ReportContents, *, with_time: bool) -> Html:
    """Every trade of the debated column, with a link to the debate that opened it."""
    if not contents.trades:
        return tag(
            "p", "No trade: the funnel above shows where each signal was lost.", class_="empty"
        )
    debated = {cycle.cycle_id for cycle in contents.cycles}
    known = [trade.profit for trade in contents.trades if trade.profit is not None]
    foot = tag(
        "tr",
        tag("th", "All trades", scope="row"),
        tag(
            "td",
            _still_open(contents.trades),
            colspan=3,
        ),
        tag("td", coloured(number(sum(known), signed=True), sum(known)), class_="n"),
        tag("td"),
        tag("td"),
    )
    debates = " after debates" if contents.cycles else ""
    return table(
        f"{counted(len(contents.trades), 'trade')}{debates}; profit in USD after costs",
        ("Trade", "#Shares", "Entered", "Left", "#Profit", "#R", "Debate"),
        (_trade(trade, debated, with_time=with_time) for trade in contents.trades),
        class_="trades",
        foot=foot,
    )


def _still_open(rows: tuple[TradeRow, ...]) -> str:
    open_ = sum(trade.is_open for trade in rows)
    return f"of which {open_:,} still open, at the last close" if open_ else "all closed"


def _trade(trade: TradeRow, debated: set[str], *, with_time: bool) -> Html:
    left: Cell = tag("i", "still open")
    if trade.exited_at is not None:
        left = _at(trade.exited_at, trade.exit_price, with_time=with_time)
    seen = "debate" if trade.trade_id in debated else "not recorded" if debated else "none held"
    title = f"Debate of {trade.trade_id}"
    to_debate: Cell = (
        link(anchor(trade.trade_id), seen, aria_label=title) if trade.trade_id in debated else seen
    )
    multiple = (
        absent("no risk known")
        if trade.r_multiple is None
        else number(trade.r_multiple, signed=True)
    )
    return tag(
        "tr",
        tag("th", trade.symbol, tag("small", plain(trade.strategy)), scope="row"),
        tag("td", shares(trade.quantity), class_="n", data_label="Shares"),
        tag(
            "td",
            _at(trade.entered_at, trade.entry_price, with_time=with_time),
            tag("small", trade.why_entered),
            data_label="Entered",
        ),
        tag("td", left, tag("small", "" if trade.is_open else trade.why_left), data_label="Left"),
        tag(
            "td",
            coloured(number(trade.profit, signed=True), trade.profit),
            class_="n",
            data_label="Profit",
        ),
        tag("td", multiple, class_="n", data_label="R"),
        tag("td", to_debate, data_label="Debate"),
    )


def _at(moment: datetime, paid: float | None, *, with_time: bool) -> Html:
    return join((stamp(moment, with_time=with_time), " at ", price(paid)))


def foot(contents: ReportContents) -> Html:
    """What the page was made from, and how to check it."""
    return tag(
        "footer",
        tag(
            "p",
            f"debate-trader {contents.version}, run {contents.run_id}. Bars SHA-256 ",
            tag("code", contents.source.sha256),
            ". Ledger head ",
            tag("code", contents.ledger_head),
            ".",
        ),
        tag(
            "p",
            "Take any decision again from its record: ",
            tag("code", "trader replay CYCLE_ID"),
            ". All times are UTC. Paper trading only; nothing here is advice.",
        ),
    )


def filter_choices(cycles: tuple[CycleRecord, ...]) -> tuple[tuple[str, str, int], ...]:
    """Id, words and count of each choice of debates."""
    go = sum(cycle.debate.verdict.decision is Decision.GO for cycle in cycles)
    return (
        ("show-all", "All", len(cycles)),
        ("show-go", "GO", go),
        ("show-no-go", "NO_GO", len(cycles) - go),
    )
