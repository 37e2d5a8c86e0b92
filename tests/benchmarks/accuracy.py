"""Random sets of four strategies against the definition, and one thread against two."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from strategies.kernels import reference
from strategies.kernels.dispatch import kernels
from strategies.kernels.engines import walk_reference
from strategies.kernels.engines.lanes import Lanes, Outcomes, Signals, pack
from strategies.registry import default_parameters, make_strategy
from strategies.sweep.engine import EngineName, open_sweep
from strategies.sweep.grid import Grid
from tests.benchmarks.market import BARS, Market, lognormal
from tests.benchmarks.rows import TOLERANCE, Row, agreement
from tests.benchmarks.sweeps import TERMS, prices_of, series_of
from tests.benchmarks.walks import pick_outcomes
from trader.core.market import BarSeries

SETS, SEED = 1_000, 20_260_101
AIM = 1e-12
ENGINES: tuple[EngineName, ...] = ("masks", "bars")


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Where random numbers of a strategy are drawn from: name -> (low, high, whole numbers)."""

    strategy: str
    ranges: dict[str, tuple[float, float, bool]]
    values: int = 7  # on each axis

    def grid(self, random: np.random.Generator) -> Grid:
        """Random values on each axis, with and without a stop and a target."""
        axes: dict[str, np.ndarray] = {}
        for name, (low, high, whole) in self.ranges.items():
            drawn = random.uniform(low, high, self.values)
            axes[name] = np.unique(np.rint(drawn) if whole else drawn)
        axes["stop_atr"] = np.array([0.0, *np.sort(random.uniform(0.3, 3.0, 2))])
        axes["target_atr"] = np.array([0.0, *np.sort(random.uniform(0.5, 6.0, 2))])
        return Grid(names=tuple(axes), values=tuple(axes.values()))


SPACES = (
    Space(strategy="sma_cross", ranges={"fast": (2, 60, True), "slow": (61, 250, True)}, values=15),
    Space(
        strategy="rsi_reversion",
        ranges={
            "rsi_window": (2, 40, True),
            "oversold": (15.0, 49.0, False),
            "overbought": (51.0, 85.0, False),
        },
    ),
    Space(
        strategy="macd_momentum",
        ranges={"fast": (2, 25, True), "slow": (26, 90, True), "signal": (2, 20, True)},
    ),
    Space(
        strategy="atr_trend",
        ranges={
            "sma_window": (5, 120, True),
            "atr_window": (2, 40, True),
            "band_atr": (0.0, 2.0, False),
        },
    ),
)


def rows(*, sets: int = SETS, bars: int = BARS) -> list[Row]:
    """One row: the worst metric of both engines over `sets` random sets of each strategy."""
    random, worst, faults, detail = np.random.default_rng(SEED), 0.0, [], {}
    series = series_of(lognormal(bars))
    for space in SPACES:
        grid = space.grid(random)
        numbers = np.sort(random.choice(len(grid), min(sets, len(grid)), replace=False))
        right = defined(series, space.strategy, grid, numbers)
        for engine in ENGINES:
            one, two = (
                _swept(series, space.strategy, grid, engine, threads=count) for count in (1, 2)
            )
            found = agreement(pick_outcomes(one, numbers), right)
            worst = max(worst, found.equity, found.sharpe, found.drawdown)
            name = f"{space.strategy} {engine}"
            detail[name] = {"sets": found.sets, "words": found.words(), "trades": _mean(right)}
            if not found.holds:
                faults.append(f"{name}: {found.words()}")
            if not identical(one, two):
                faults.append(f"{name}: one thread and two differ")
    compared = sum(each["sets"] for each in detail.values())
    return [
        Row(
            work="accuracy vs reference, 4 strategies, 2 engines",
            unit="worst metric",
            at_least=TOLERANCE,
            aim=AIM,
            less_is_better=True,
            value=worst,
            status="disagrees" if faults else "measured",
            note="; ".join(faults)
            or f"{compared:,} random sets with stops and targets: every trade count equal, "
            "1 thread = 2 threads bit for bit",
            detail=detail,
        )
    ]


def defined(series: BarSeries, strategy: str, grid: Grid, numbers: np.ndarray) -> Outcomes:
    """What the definition makes of some sets: crossings of the strategy itself, bar by bar."""
    plain, lines = kernels("reference"), []
    for number in numbers:
        chosen = grid.numbers(int(number))
        own = {name: chosen[name] for name in default_parameters(strategy) if name in chosen}
        lines.append(make_strategy(strategy, own, plain).crossings(series))
    columns = {
        name: np.array([grid.numbers(int(number))[name] for number in numbers])
        for name in ("stop_atr", "target_atr")
    }
    size = numbers.size
    lanes = Lanes(
        signal=np.arange(size, dtype=np.int64),
        atr=np.zeros(size, dtype=np.int64),
        stop=columns["stop_atr"],
        target=columns["target_atr"],
        trail=np.zeros(size),
        max_bars=np.zeros(size, dtype=np.int64),
    )
    signals = Signals(
        entry=pack(np.array([line.entry for line in lines])),
        exit=pack(np.array([line.exit for line in lines])),
    )
    swing = reference.atr(series.high, series.low, series.close, 14)[None]
    return walk_reference.walk(
        prices_of(Market(series.open, series.high, series.low, series.close, series.volume)),
        signals,
        swing,
        lanes,
        TERMS,
    )


def identical(one: Outcomes, other: Outcomes) -> bool:
    """Whether every bit of two outcomes is the same."""
    return all(
        getattr(one, field.name).tobytes() == getattr(other, field.name).tobytes()
        for field in fields(one)
    )


def _swept(
    series: BarSeries, strategy: str, grid: Grid, engine: EngineName, *, threads: int
) -> Outcomes:
    opened = open_sweep(
        series,
        strategy,
        grid,
        fixed={"trail_atr": 0.0, "max_bars": 0.0, "stop_window": 14.0},
        first=0,
        terms=TERMS,
        engine=engine,
        backend="cpu",
        threads=threads,
    )
    return opened.run(0, len(opened))


def _mean(found: Outcomes) -> float:
    return float(found.trades.mean())
