"""A sweep's arrays as what its page and its JSON show: figures, heat map, luck, curves."""

from __future__ import annotations

import math
from collections.abc import Mapping

from strategies.kernels.runs import Array
from strategies.sweep.grid import Grid
from strategies.sweep.luck import FoldResult, Luck
from strategies.sweep.results import Results
from trader.core.market import from_ns, session_of
from trader.core.metrics import Performance, drawdowns, total_return
from trader.report.contents import Column
from trader.report.sweep_contents import Cells, FoldRow, Heat, LuckFigures, SetFigures


def known(value: float) -> float | None:
    """The number, or None where it does not exist."""
    return value if math.isfinite(value) else None


def figures_of(outcome: Mapping[str, float]) -> SetFigures:
    """Figures of a set that ran, by the names of METRICS."""
    return SetFigures(
        final_equity=known(outcome["final_equity"]),
        annual_return=known(outcome["annual_return"]),
        sharpe=known(outcome["sharpe"]),
        sortino=known(outcome["sortino"]),
        max_drawdown=known(outcome["max_drawdown"]),
        trades=int(outcome["trades"]),
        open_trades=int(outcome["open_trades"]),
        hit_rate=known(outcome["hit_rate"]),
        exposure=known(outcome["exposure"]),
    )


def heat_of(results: Results, best: int) -> Heat:
    """The heat map with set `best` marked on it."""
    heat, names = results.heat, results.grid.names
    return Heat(
        row_name=None if heat.rows is None else names[heat.rows],
        column_name=names[heat.columns],
        row_ends=heat.ends(0),
        column_ends=heat.ends(1),
        best=_cells(heat.best),
        mean=_cells(heat.mean),
        count=tuple(tuple(row) for row in heat.count.tolist()),
        marked=heat.cell(best),
    )


def _cells(values: Array) -> Cells:
    return tuple(tuple(known(value) for value in row) for row in values.tolist())


def luck_figures(luck: Luck, grid: Grid, *, trials: int, periods_per_year: float) -> LuckFigures:
    """What was found out about luck, with annual ratios and days."""
    annual = math.sqrt(periods_per_year)
    found, overfit = luck.deflated, luck.overfitting
    return LuckFigures(
        better=luck.better,
        sentence=luck.sentence,
        against=luck.against,
        deflated_sharpe=None if found is None else found.probability,
        sharpe_by_luck=None if found is None else found.by_luck * annual,
        sharpe_without_edge=luck.without_edge,
        published_deflated_sharpe=None if luck.plain is None else luck.plain.probability,
        trials=trials,
        skewness=None if found is None else found.skewness,
        kurtosis=None if found is None else found.kurtosis,
        overfitting_probability=None if overfit is None else overfit.probability,
        overfitting_loss=None if overfit is None else overfit.loss,
        cross_validated=0 if overfit is None else overfit.sets,
        splits=0 if overfit is None else overfit.splits,
        embargo=luck.embargo,
        folds=tuple(_fold(fold, grid) for fold in luck.folds),
        out_of_sample_sharpe=luck.sharpe,
        out_of_sample_return=luck.total_return,
        trades=luck.trades,
    )


def _fold(fold: FoldResult, grid: Grid) -> FoldRow:
    days = [session_of(from_ns(moment)) for moment in (*fold.train, *fold.test)]
    return FoldRow(
        train_first=days[0],
        train_last=days[1],
        test_first=days[2],
        test_last=days[3],
        parameters=None if fold.number is None else grid.numbers(fold.number),
        in_sample_sharpe=fold.in_sample,
        out_of_sample_sharpe=fold.out_of_sample,
        total_return=fold.total_return,
    )


def curve_column(
    key: str, label: str, equity: Array, figures: SetFigures, *, cash: float
) -> Column:
    """The equity of all accounts together [U] as a line of the chart."""
    below = drawdowns(equity, cash)
    return Column(
        key=key,
        label=label,
        performance=Performance(
            initial_equity=cash,
            final_equity=float(equity[-1]),
            total_return=total_return(equity, cash),
            annual_return=figures.annual_return,
            sharpe=figures.sharpe,
            sharpe_count=int(equity.size),
            max_drawdown=float(below.min()),
            trades=figures.trades,
            open_trades=figures.open_trades,
            hit_rate=figures.hit_rate,
            exposure=figures.exposure or 0.0,
            costs=0.0,
        ),
        equity=tuple(equity.tolist()),
        drawdown=tuple(below.tolist()),
    )
