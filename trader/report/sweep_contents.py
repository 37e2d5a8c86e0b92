"""What a sweep shows, on its page and as JSON; filled by the sweep, drawn by `sweep_page`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from trader.report.contents import Column, SourceInfo, TradeRow

Cells = tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFigures:
    """What became of one set; None where a measure does not exist. USD and fractions."""

    final_equity: float | None
    annual_return: float | None
    sharpe: float | None
    sortino: float | None
    max_drawdown: float | None
    trades: int  # closed
    open_trades: int
    hit_rate: float | None
    exposure: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRow:
    """One set: its place among all from 1, its number in the grid, its swept numbers."""

    rank: int
    number: int
    parameters: Mapping[str, float]
    figures: SetFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One swept parameter."""

    name: str
    low: float
    high: float
    values: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldRow:
    """One step of the walk-forward: the best of its training, and what it did afterwards.

    parameters    None where no set traded in training
    total_return  of the test, a fraction
    """

    train_first: date
    train_last: date
    test_first: date
    test_last: date
    parameters: Mapping[str, float] | None
    in_sample_sharpe: float | None
    out_of_sample_sharpe: float | None
    total_return: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LuckFigures:
    """How much of the best set is luck; Sharpe ratios annualised, None where too few bars moved.

    better                   than luck: no limit is broken
    against                  the limits that are broken, in words
    deflated_sharpe          probability that the best is above what luck gives in this market
    sharpe_by_luck           what the best of the trials has there when none has an edge
    sharpe_without_edge      what any of them has there: the drift that the market gives
    published_deflated_sharpe  the same as published: no drift, every difference of the trials luck
    trials                   sets × accounts that were tried
    overfitting_probability  chance that the best of one half of the bars is no better than the
                             median set in the other half
    overfitting_loss         chance that it loses there
    cross_validated          sets behind these two
    embargo                  bars between training and test
    """

    better: bool
    sentence: str
    against: tuple[str, ...]
    deflated_sharpe: float | None
    sharpe_by_luck: float | None
    sharpe_without_edge: float
    published_deflated_sharpe: float | None
    trials: int
    skewness: float | None
    kurtosis: float | None
    overfitting_probability: float | None
    overfitting_loss: float | None
    cross_validated: int
    splits: int
    embargo: int
    folds: tuple[FoldRow, ...]
    out_of_sample_sharpe: float | None
    out_of_sample_return: float | None
    trades: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Sets that differ from the best by -2..2 steps on one axis; None beyond its end.

    scores  of the measure that ranks; None too for sets whose numbers do not fit together
    """

    name: str
    values: tuple[float | None, ...]
    scores: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """Scores over two axes.

    row_name             None where the grid has one axis
    row_ends             lowest and highest value of the axis in each row
    best, mean           rows of cells; None where no set has a score
    count                sets with a score in each cell
    marked               row and column of the best set
    """

    row_name: str | None
    column_name: str
    row_ends: tuple[tuple[float, float], ...]
    column_ends: tuple[tuple[float, float], ...]
    best: Cells
    mean: Cells
    count: tuple[tuple[int, ...], ...]
    marked: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepContents:
    """Everything on the page.

    accounts  over which the figures of a set are a mean
    times   of the equity points of `curves`: the best set, then buy and hold
    period  "2020-01-02 to 2026-08-05, 1,656 bars"
    """

    run_id: str
    version: str
    source: SourceInfo
    strategy: str
    period: str
    settings: Mapping[str, str]
    notices: tuple[str, ...]
    axes: tuple[Axis, ...]
    rank_by: str
    accounts: int
    sets: int
    run: int
    skipped: int
    partial: bool
    engine: str
    top: tuple[SetRow, ...]
    defaults: SetFigures | None
    buy_and_hold: SetFigures
    luck: LuckFigures | None
    neighbours: tuple[Neighbours, ...]
    heat: Heat
    times: tuple[datetime, ...]
    curves: tuple[Column, ...]
    trades: tuple[TradeRow, ...]  # of the best set
