"""A backtest in words and tables: columns, what the debate is worth, debates, trades, funnel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from trader.cli.output import day, lines, percent, table, usd
from trader.core.decision import debater_words
from trader.core.flags import FLAG_WORDS

if TYPE_CHECKING:
    from trader.app.backtesting import BacktestResult, DebateLine
    from trader.core.metrics import Performance

MOST_LISTED = 12  # debates, and trades; the report has all of them
DAYS = {"before_cutoff": "before", "after_cutoff": "after", "cutoff_unknown": "unknown"}


def tell_backtest(result: BacktestResult) -> None:
    """Source, period, columns, what the debate is worth, trades, funnel, where the report lies."""
    source = result.source
    adjusted = ", ".join(f"{symbol} {how}" for symbol, how in source.adjustment.items())
    lines(
        f"PAPER backtest {result.run_id}",
        f"data     {source.name}: {adjusted} (sha256 {source.sha256[:12]})",
        f"period   {result.first_session} to {result.last_session}, {result.sessions} sessions",
        f"debated  by {debater_words(result.debater)}",
        "",
    )
    _columns(result)
    _worth(result)
    _debates(result)
    if result.trades:
        table(
            "",
            (
                "entered",
                "symbol",
                "strategy",
                "shares",
                "paid",
                "left",
                "got",
                "profit",
                "R",
                "left by",
            ),
            [
                (
                    day(row.entered_at),
                    row.symbol,
                    row.strategy,
                    f"{row.quantity:.9g}",
                    usd(row.entry_price),
                    day(row.exited_at) or "open",
                    usd(row.exit_price) if row.exit_price is not None else "",
                    f"{row.profit:+,.2f}" if row.profit is not None else "n/a",
                    f"{row.r_multiple:+.2f}" if row.r_multiple is not None else "n/a",
                    row.left_by,
                )
                for row in result.trades[-MOST_LISTED:]
            ],
            left=(0, 1, 2, 9),
            spare=(1, 3, 7),
        )
    else:
        lines("No trade was made; the funnel says where the signals went.", "")
    _funnel(result)
    lines("", f"report   {result.report}", f"ledger   head {result.ledger_head[:16]}")


def _debates(result: BacktestResult) -> None:
    if not result.debates:
        return
    shown = result.debates[-MOST_LISTED:]
    days = any(line.day for line in shown)
    headers = ("debated", "symbol", "strategy", "verdict", "offers R", "worth R", "why not")
    table(
        _latest(len(shown), len(result.debates), "debates"),
        (*headers, "cutoff") if days else headers,
        [(*_debate_row(line), DAYS[line.day]) if line.day else _debate_row(line) for line in shown],
        left=(0, 1, 2, 3, 6, 7),
        spare=(1, 4),
    )
    _one_debate(
        next((line for line in reversed(result.debates) if line.decision == "GO"), None)
        or result.debates[-1]
    )


def _latest(shown: int, total: int, noun: str) -> str:
    return f"the latest {shown} of {total} {noun}; the report has all" if shown < total else ""


def _debate_row(line: DebateLine) -> tuple[str, ...]:
    stood_in = ("rules in place of the model",) if line.fallback else ()
    return (
        day(line.as_of),
        line.symbol,
        line.strategy,
        str(line.decision),
        "n/a" if line.reward_risk_ratio is None else f"{line.reward_risk_ratio:.2f}",
        "n/a" if line.expected_value_r is None else f"{line.expected_value_r:+.2f}",
        ", ".join((*line.flags, *stood_in)),
    )


def _one_debate(shown: DebateLine) -> None:
    """What was said in one debate; a side that was not heard has no line."""
    said = (
        ("", f"rules debated in place of the model: {shown.fallback}" if shown.fallback else ""),
        ("BULL", shown.bull),
        ("BEAR", f"attacks “{shown.attacked}”" if shown.attacked else ""),
        ("", shown.bear),
        ("ARBITRATOR", shown.rationale),
    )
    lines(
        f"the debate of {day(shown.as_of)} about {shown.symbol}, {shown.strategy}",
        *(f"  {who:<12}{words}" for who, words in said if words),
        "",
    )


def _worth(result: BacktestResult) -> None:
    """The sentences that say whether the debate earns its cost."""
    if result.worth.answers:
        lines(
            "does the debate earn its cost?",
            *(f"  {topic:<26}{words}" for topic, words in result.worth.answers.items()),
            "",
        )


def _columns(result: BacktestResult) -> None:
    """Every measure of every column, with the interval that chance leaves open."""
    found = {key: item for key, item in result.results.items() if item is not None}
    spreads = [result.worth.intervals.columns[key] for key in found]
    runs = [item.performance for item in found.values()]

    def row(name: str, cells: Iterable[str]) -> tuple[str, ...]:
        return (name, *cells)

    def between(ends: tuple[float, float] | None, unit: str = "") -> str:
        return "" if ends is None else f"{ends[0]:+.2f}…{ends[1]:+.2f}{unit}"

    annual = [
        None if (item := spread.annual_return) is None else (100.0 * item.low, 100.0 * item.high)
        for spread in spreads
    ]
    ratio = [
        None if (item := spread.sharpe) is None else (item.low, item.high) for spread in spreads
    ]
    table(
        "",
        ("", *(item.label for item in found.values())),
        [
            row("total return", (percent(p.total_return) for p in runs)),
            row("annual return", (percent(p.annual_return, "n/a (needs a quarter)") for p in runs)),
            row("  90 % range", (between(ends, "%") for ends in annual)),
            row("Sharpe (n)", (_sharpe(p) for p in runs)),
            row("  90 % range", (between(ends) for ends in ratio)),
            row("max drawdown", (percent(p.max_drawdown) for p in runs)),
            row("closed trades", (_trades(p) for p in runs)),
            row("hit rate", (_hit_rate(p) for p in runs)),
            row("exposure", (f"{p.exposure:.0%}" for p in runs)),
            row("costs USD", (usd(p.costs) for p in runs)),
            row("final USD", (usd(p.final_equity) for p in runs)),
        ],
    )


def _sharpe(found: Performance) -> str:
    if found.sharpe is None:
        return (
            f"n/a (needs 30 bars, has {found.sharpe_count})"
            if found.sharpe_count < 30
            else "n/a (nothing moved)"
        )
    return f"{found.sharpe:.2f} ({found.sharpe_count})"


def _trades(found: Performance) -> str:
    return f"{found.trades} (+{found.open_trades} open)" if found.open_trades else str(found.trades)


def _hit_rate(found: Performance) -> str:
    return "no closed trade" if found.hit_rate is None else f"{found.hit_rate:.0%}"


def _funnel(result: BacktestResult) -> None:
    found = result.funnel

    def listed(counts: Mapping[str, int]) -> str:
        return ", ".join(f"{name} {count}" for name, count in counts.items())

    lines(
        f"funnel   {found.bars} bars → {found.signals} signals → {found.debates} debates → "
        f"{found.go} GO, {found.no_go} NO_GO → {found.orders} orders → {found.fills} fills"
    )
    if found.skipped:
        lines(f"skipped  {listed(found.skipped)}")
    if found.vetoes:
        lines(f"vetoes   {listed(found.vetoes)}")
    if found.gate_refusals:
        words = {str(code): meaning for code, meaning in FLAG_WORDS.items()}
        for name, count in found.gate_refusals.items():
            lines(f"gate     refused {count}: {words.get(name, '')} ({name})")
    if found.broker_refusals:
        lines(f"broker   refused {found.broker_refusals}")
    if found.nearest_miss:
        lines(f"nearest  {found.nearest_miss}")
