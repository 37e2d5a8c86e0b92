"""What a sweep is asked, checked against the configuration and the bars before anything runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

import numpy as np

from strategies.kernels.engines.lanes import Terms
from strategies.names import unknown
from strategies.registry import default_parameters
from strategies.sweep.grid import Grid, parse_grid
from strategies.sweep.results import RANKINGS
from trader.app.assembly import costs_of
from trader.app.context import Context
from trader.app.periods import Coverage, cover
from trader.core.canonical import Primitive
from trader.core.clock import SystemClock
from trader.core.errors import DataIntegrityError, UsageError
from trader.core.market import BarSeries, to_ns
from trader.pipeline.slots import bars_per_year

EngineName = Literal["auto", "masks", "bars"]
BackendName = Literal["auto", "cpu", "cuda", "reference"]

MOST_TOP = 10_000
WINDOW_OF_THE_STOP = "stop_window"
LONGEST_HOLD = "max_bars"
DISTANCES = ("stop_atr", "target_atr", "trail_atr")  # in ATR; 0 for none


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest:
    """What a person asks.

    grid        as it was written, e.g. fast=5:50,slow=20:200
    top         how many of the best sets are listed
    backend     None: the configured one
    csv         where every set goes, if anywhere
    apply_rank  place of the set that becomes a parameter file; None for none
    to_file     that file; None: parameters.yaml beside the report
    command     the command line, for the parameter file
    """

    strategy: str
    start: date
    grid: str
    end: date | None = None
    engine: str = "auto"
    backend: str | None = None
    rank_by: str = "sharpe"
    top: int = 10
    shared_cash: bool = False
    whole_shares: bool = False
    csv: Path | None = None
    out: Path | None = None
    apply_rank: int | None = None
    to_file: Path | None = None
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A sweep that can begin.

    fixed      every number that is not swept, of the strategy and of how a position leaves
    defaults   the configured value of every number
    opening    when the first session opens, ns
    first      symbol -> bar of its first decision
    look_back  bars that the longest indicator of the grid reaches back
    """

    request: SweepRequest
    engine: EngineName
    backend: BackendName
    grid: Grid
    fixed: Mapping[str, float]
    defaults: Mapping[str, float]
    terms: Terms
    coverage: Coverage
    opening: int
    first: Mapping[str, int]
    look_back: int
    threads: int

    @property
    def bars(self) -> int:
        """Bars that one set trades on all symbols together."""
        series = self.coverage.series
        return sum(len(bars) - self.first[symbol] for symbol, bars in series.items())

    def identity(self) -> dict[str, Primitive]:
        """All that the figures depend on, but for the bars and the program."""
        asked = self.request
        return {
            "strategy": asked.strategy,
            "grid": {
                name: [float(axis[0]), float(axis[-1]), int(axis.size)]
                for name, axis in zip(self.grid.names, self.grid.values, strict=True)
            },
            "fixed": dict(self.fixed),
            "rank_by": asked.rank_by,
            "top": asked.top,
            "engine": asked.engine,
            "backend": self.backend,
            "shared_cash": asked.shared_cash,
            "cash": self.terms.cash,
            "slippage": self.terms.slippage,
            "fee_rate": self.terms.fee_rate,
            "commission_per_order": self.terms.commission_per_order,
            "whole_shares": self.terms.whole_shares,
        }


def plan(app: Context, request: SweepRequest) -> Plan:
    """Check the request and find its bars; nothing is computed or written.

    Raises UsageError for anything that was asked wrongly and DataIntegrityError for bars that must
    not be traded on or do not exist.
    """
    _check(request)
    config = app.config
    defaults = _defaults(app, request.strategy)
    grid = parse_grid(request.grid, defaults)
    _check_values(grid, default_parameters(request.strategy))
    backend = _one_of("--backend", request.backend or config.kernels.backend, BackendName)
    engine = _one_of("--engine", request.engine, EngineName)
    series = {symbol: app.data.bars(symbol, app.timeframe) for symbol in app.symbols()}
    coverage = cover(
        app.data,
        series,
        app.calendar,
        start=request.start,
        end=request.end,
        now=SystemClock().now(),
    )
    opening = to_ns(app.calendar.open(coverage.first))
    first = {
        symbol: int(np.searchsorted(bars.timestamp, opening))
        for symbol, bars in coverage.series.items()
    }
    for symbol, bars in coverage.series.items():
        _require_bars(symbol, bars, first[symbol], coverage)
    fixed = {name: value for name, value in defaults.items() if name not in grid.names}
    costs = costs_of(config)
    return Plan(
        request=request,
        engine=engine,  # type: ignore[arg-type]
        backend=backend,  # type: ignore[arg-type]
        grid=grid,
        fixed=fixed,
        defaults=defaults,
        terms=Terms(
            cash=config.account.cash,
            slippage=costs.slippage,
            fee_rate=costs.fee_rate,
            commission_per_order=costs.commission_per_order,
            periods_per_year=bars_per_year(app.calendar, app.timeframe),
            whole_shares=request.whole_shares,
        ),
        coverage=coverage,
        opening=opening,
        first=first,
        look_back=_look_back(grid, fixed, request.strategy, coverage),
        threads=len(os.sched_getaffinity(0)),
    )


def _check(request: SweepRequest) -> None:
    if not 1 <= request.top <= MOST_TOP:
        raise UsageError(f"--top {request.top}: list 1 to {MOST_TOP:,} sets")
    if request.rank_by not in RANKINGS:
        raise UsageError(f"--rank-by: {unknown('measure', request.rank_by, RANKINGS)}")
    rank = request.apply_rank
    if rank is not None and not 1 <= rank <= request.top:
        raise UsageError(f"--apply {rank}: choose a rank of the table, 1 to --top {request.top}")
    if request.to_file is not None and rank is None:
        raise UsageError("--to-file names a parameter file: say with --apply RANK what goes in it")
    for option, path in (("--csv", request.csv), ("--to-file", request.to_file)):
        if path is not None:
            _check_path(option, path)
    if request.to_file is not None:
        if request.to_file.exists():
            raise UsageError(f"--to-file {request.to_file} exists already: name another one")
        if request.csv is not None and request.csv.resolve() == request.to_file.resolve():
            raise UsageError(f"--csv and --to-file both name {request.csv}: name two files")


def _check_path(option: str, path: Path) -> None:
    """UsageError where no file can come to lie, and where a device would be replaced by one."""
    try:
        if path.is_dir():
            what = "is a folder"
        elif not path.parent.is_dir():
            what = f"there is no folder {path.parent}"
        elif path.exists() and not path.is_file():
            what = "is not a file"
        else:
            return
    except OSError as exc:
        what = str(exc.strerror)
    raise UsageError(f"{option} {path}: {what}; name a file in a folder that exists")


def _defaults(app: Context, strategy: str) -> dict[str, float]:
    """The configured value of every number that may be swept."""
    known = default_parameters(strategy)  # UsageError for a strategy that does not exist
    configured = dict(getattr(app.config.strategies.parameters, strategy))
    risk = app.config.risk
    return {
        **{name: configured[name] for name in known},
        "stop_atr": float(risk.atr_multiple),
        WINDOW_OF_THE_STOP: risk.atr_window,
        "target_atr": 0.0,
        "trail_atr": 0.0,
        LONGEST_HOLD: 0,
    }


def _check_values(grid: Grid, own: Mapping[str, float]) -> None:
    for name, axis in zip(grid.names, grid.values, strict=True):
        low = float(axis[0])
        if name in (*DISTANCES, LONGEST_HOLD) and low < 0.0:
            raise UsageError(f"--grid {name}={low:g}: it begins at 0, which switches it off")
        if (name == WINDOW_OF_THE_STOP or type(own.get(name)) is int) and low < 1.0:
            raise UsageError(f"--grid {name}={low:g}: a window is 1 bar or longer")


def _one_of(option: str, given: str, kind: object) -> str:
    known: tuple[str, ...] = kind.__args__  # type: ignore[attr-defined]
    if given not in known:
        raise UsageError(f"{option}: {unknown(option.strip('-'), given, known)}")
    return given


def _require_bars(symbol: str, bars: BarSeries, first: int, coverage: Coverage) -> None:
    if len(bars) - first < 2:
        raise DataIntegrityError(
            f"{symbol} has {len(bars) - first} bars from {coverage.first} to {coverage.last}: "
            "a sweep needs 2; choose another period or leave the symbol out"
        )


def windows_of(grid: Grid, fixed: Mapping[str, float], strategy: str) -> dict[str, int]:
    """The longest window of each number that counts bars of an indicator."""
    counted = {name for name, value in default_parameters(strategy).items() if type(value) is int}
    counted.add(WINDOW_OF_THE_STOP)
    swept = dict(zip(grid.names, grid.values, strict=True))
    return {
        name: int(swept[name][-1]) if name in swept else int(fixed[name])
        for name in sorted(counted)
    }


def _look_back(grid: Grid, fixed: Mapping[str, float], strategy: str, coverage: Coverage) -> int:
    """The longest window; UsageError for a swept one that no symbol has the bars for."""
    windows = windows_of(grid, fixed, strategy)
    symbol, most = max(
        ((symbol, len(bars)) for symbol, bars in coverage.series.items()), key=lambda pair: pair[1]
    )
    for name in grid.names:
        if windows.get(name, 0) > most:
            raise UsageError(
                f"--grid {name}: a window of {windows[name]:,} bars is longer than the {most:,} "
                f"bars of {symbol} up to {coverage.last}: end {name} at {most:,} or before"
            )
    return max(windows.values())
