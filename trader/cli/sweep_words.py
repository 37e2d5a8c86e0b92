"""A sweep in words and tables: the best sets beside what is simpler, and how much of it is luck."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from trader.cli.output import lines, percent, table, usd

if TYPE_CHECKING:
    from trader.app.sweep_result import FoldRow, LuckFigures, SetFigures, SweepResult

HEADERS = (
    "final USD",
    "annual",
    "Sharpe",
    "Sortino",
    "drawdown",
    "trades",
    "hit",
    "exposure",
)


def tell_sweep(result: SweepResult) -> None:
    """Source, period, who computed, the best sets, luck, where the report lies."""
    source = result.source
    adjusted = ", ".join(f"{symbol} {how}" for symbol, how in source.adjustment.items())
    lines(
        f"PAPER sweep {result.run_id}" + (" (partial: interrupted)" if result.partial else ""),
        f"data     {source.name}: {adjusted} (sha256 {source.sha256[:12]})",
        f"period   {result.first_session} to {result.last_session}, {result.bars:,} bars",
        f"sets     {result.run:,} run, {result.skipped:,} skipped because their numbers do not "
        f"fit together, {result.sets:,} in the grid {result.grid}",
        f"engine   {result.engine} on {result.backend}: {result.reason}",
        f"speed    {result.timing.set_bars_per_second:,.0f} sets × bars a second",
        "",
    )
    names = tuple(axis.name for axis in result.axes)
    rows = [
        (
            f"{row.rank}",
            *(f"{row.parameters[name]:g}" for name in names),
            *figures(row.figures),
        )
        for row in result.top
    ]
    blank = ("",) * len(names)
    if result.defaults is not None:
        rows.append(("configured", *blank, *figures(result.defaults)))
    rows.append(("buy & hold", *blank, *figures(result.buy_and_hold)))
    ranked = result.rank_by.replace("_", " ")
    symbols = len(source.symbols)
    over = "" if symbols == 1 or result.shared_cash else f", the mean of {symbols} accounts"
    table(
        f"the best {len(result.top)} by {ranked}{over}",
        ("rank", *names, *HEADERS),
        rows,
        left=(0,),
        spare=(len(names) + 4, len(names) + 8, len(names) + 7),
    )
    if result.luck is None:
        lines("is it luck?", "  not known: the sweep was interrupted", "")
    else:
        _luck(result.luck)
    if result.csv is not None:
        lines(f"csv      {result.csv}")
    if result.applied is not None and result.applied.path is not None:
        lines(f"applied  rank {result.applied.rank}: {result.applied.path}")
    lines(f"report   {result.report}")


def figures(found: SetFigures) -> tuple[str, ...]:
    """The cells of one set, in the order of HEADERS."""
    closed = f"{found.trades:,}" + (f" (+{found.open_trades})" if found.open_trades else "")
    return (
        usd(found.final_equity),
        percent(found.annual_return),
        _ratio(found.sharpe),
        _ratio(found.sortino),
        percent(found.max_drawdown),
        closed,
        "n/a" if found.hit_rate is None else f"{found.hit_rate:.0%}",
        "n/a" if found.exposure is None else f"{found.exposure:.0%}",
    )


def _ratio(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}"


def _luck(luck: LuckFigures) -> None:
    lines("is it luck?", f"  {luck.sentence}")
    if luck.against:
        lines(f"  against it           {'; '.join(luck.against)}")
    if luck.deflated_sharpe is not None:
        lines(
            f"  deflated Sharpe      {luck.deflated_sharpe:.2f}: luck alone gives the best of "
            f"{luck.trials:,} trials a Sharpe of {_ratio(luck.sharpe_by_luck)}, the market alone "
            f"{_ratio(luck.sharpe_without_edge)}"
        )
    if luck.overfitting_probability is not None:
        lines(
            f"  overfitting          {100.0 * luck.overfitting_probability:.0f} % of "
            f"{luck.splits:,} splits of {luck.cross_validated:,} sets: the best of one half is in "
            "the lower half of the other",
        )
    for number, fold in enumerate(luck.folds, start=1):
        lines(f"  walk-forward {number}       {_fold(fold)}")
    if luck.folds:
        earned = percent(luck.out_of_sample_return)
        lines(
            f"  out of sample        Sharpe {_ratio(luck.out_of_sample_sharpe)}, {earned} in all; "
            f"embargo {luck.embargo} bars"
        )
    lines("")


def _fold(fold: FoldRow) -> str:
    chosen = "no set traded" if fold.parameters is None else written(fold.parameters)
    return (
        f"{fold.test_first} to {fold.test_last}: {chosen}, Sharpe "
        f"{_ratio(fold.in_sample_sharpe)} before, {_ratio(fold.out_of_sample_sharpe)} then, "
        f"{percent(fold.total_return)}"
    )


def written(parameters: Mapping[str, float]) -> str:
    """Numbers of a set as they are typed."""
    return " ".join(f"{name}={value:g}" for name, value in parameters.items())
