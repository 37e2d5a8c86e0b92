"""A backtest in words and tables: columns, debates, trades, funnel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from trader.cli.output import day, lines, percent, table, usd
from trader.core.decision import debater_words

if TYPE_CHECKING:
    from trader.app.backtesting import BacktestResult
    from trader.core.metrics import Performance


def tell_backtest(result: BacktestResult) -> None:
    """Source, period, trades, table of columns, funnel, where the report lies."""
    source = result.source
    adjusted = ", ".join(f"{symbol} {how}" for symbol, how in source.adjustment.items())
    lines(
        f"PAPER backtest {result.run_id}",
        f"data     {source.name}: {adjusted} (sha256 {source.sha256[:12]})",
        f"period   {result.first_session} to {result.last_session}, {result.sessions} sessions",
        f"debated  by {debater_words(result.debater)}",
        "",
    )
    _columns({key: found.performance for key, found in result.results.items() if found is not None})
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
                    str(row.quantity),
                    usd(row.entry_price),
                    day(row.exited_at) or "open",
                    usd(row.exit_price) if row.exit_price is not None else "",
                    f"{row.profit:+,.2f}" if row.profit is not None else "n/a",
                    f"{row.r_multiple:+.2f}" if row.r_multiple is not None else "n/a",
                    row.left_by,
                )
                for row in result.trades
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
    table(
        "",
        ("debated", "symbol", "strategy", "verdict", "offers R", "worth R", "rules that failed"),
        [
            (
                day(line.as_of),
                line.symbol,
                line.strategy,
                str(line.decision),
                "n/a" if line.reward_risk_ratio is None else f"{line.reward_risk_ratio:.2f}",
                "n/a" if line.expected_value_r is None else f"{line.expected_value_r:+.2f}",
                ", ".join(line.flags) or "none",
            )
            for line in result.debates
        ],
        left=(0, 1, 2, 3, 6),
        spare=(1, 4),
    )
    shown = next((line for line in reversed(result.debates) if line.decision == "GO"), None)
    shown = shown or result.debates[-1]
    lines(
        f"the debate of {day(shown.as_of)} about {shown.symbol}, {shown.strategy} "
        "(the report has all of them)",
        f"  BULL        {shown.bull}",
        f"  BEAR        attacks “{shown.attacked}”",
        f"              {shown.bear}",
        f"  ARBITRATOR  {shown.rationale}",
        "",
    )


LABELS = {"debate": "debate", "without_debate": "without debate", "buy_and_hold": "buy & hold"}


def _columns(found: Mapping[str, Performance]) -> None:
    def row(name: str, cells: Iterable[str]) -> tuple[str, ...]:
        return (name, *cells)

    runs = list(found.values())
    table(
        "",
        ("", *(LABELS[key] for key in found)),
        [
            row("total return", (percent(p.total_return) for p in runs)),
            row("annual return", (percent(p.annual_return, "n/a (needs 63 days)") for p in runs)),
            row("Sharpe (n)", (_sharpe(p) for p in runs)),
            row("max drawdown", (percent(p.max_drawdown) for p in runs)),
            row("closed trades", (_trades(p) for p in runs)),
            row("hit rate", (_hit_rate(p) for p in runs)),
            row("exposure", (f"{p.exposure:.0%}" for p in runs)),
            row("costs USD", (usd(p.costs) for p in runs)),
            row("final equity USD", (usd(p.final_equity) for p in runs)),
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
    return "n/a (needs a closed trade)" if found.hit_rate is None else f"{found.hit_rate:.0%}"


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
        lines(f"gate     refused {listed(found.gate_refusals)}")
    if found.broker_refusals:
        lines(f"broker   refused {found.broker_refusals}")
    if found.nearest_miss:
        lines(f"nearest  {found.nearest_miss}")
