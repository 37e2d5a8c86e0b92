"""Whole sweeps against other libraries: equal results first, then seconds for the same work."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from strategies.kernels.engines.lanes import Outcomes, Prices, Terms
from strategies.sweep.engine import EngineName, Sweep, open_sweep
from strategies.sweep.grid import Grid
from tests.benchmarks import peers
from tests.benchmarks.ceilings import Ceilings, best_seconds
from tests.benchmarks.market import BARS, Market, lognormal, shallow
from tests.benchmarks.peers import AtrStops, Found, Rsis, Smas, installed
from tests.benchmarks.rows import Row, agreement, compared
from trader.core.market import BarSeries, Timeframe

ROOT = Path(__file__).parents[2]
THREADS, MOST_MB = 2, 350.0
DAY_NS = 86_400 * 10**9
TERMS = Terms(
    cash=peers.CASH,
    slippage=peers.SLIPPAGE,
    fee_rate=peers.FEE,
    periods_per_year=float(peers.YEAR),
)
LEAST = 0.1  # seconds of one timing of ours
Work = Smas | Rsis | AtrStops


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much work the benchmark does; the tests do less."""

    bars: int = BARS
    side: int = 100  # windows a side of the SMA sweep
    levels: int = 20  # thresholds a side of the RSI sweep
    windows: int = 50  # of the ATR-stop sweep, and its stops
    million: tuple[int, int, int] = (8, 250, 500)  # symbols, fast windows, slow windows

    def smas(self) -> Smas:
        """Fast 2.., slow above it: about five trades a set."""
        start = 2 + self.side
        return Smas(
            market=lognormal(self.bars),
            fast=np.arange(2, start),
            slow=np.arange(start, start + self.side),
        )

    def rsis(self) -> Rsis:
        """25 windows and thresholds from 20 and 60 on."""
        return Rsis(
            market=lognormal(self.bars),
            windows=np.arange(5, 30),
            oversold=20.0 + np.arange(self.levels),
            overbought=60.0 + np.arange(self.levels),
        )

    def atr_stops(self) -> AtrStops:
        """Stops from 1.5 average ranges on, over bars that never touch them at the entry."""
        return AtrStops(
            market=shallow(self.bars),
            windows=np.arange(20, 20 + self.windows),
            bands=np.array([0.5, 1.0, 1.5, 2.0]),
            stops=np.round(1.5 + 0.02 * np.arange(self.windows), 2),
        )


def prices_of(market: Market) -> Prices:
    """The bars as a sweep takes them; every bar is traded."""
    return Prices(**market._asdict())


def strategy_and_grid(work: Work) -> tuple[str, Grid]:
    """The same work as our registered strategy and its grid."""
    if isinstance(work, Smas):
        return "sma_cross", _grid(fast=work.fast, slow=work.slow)
    if isinstance(work, Rsis):
        return "rsi_reversion", _grid(
            rsi_window=work.windows, oversold=work.oversold, overbought=work.overbought
        )
    return "atr_trend", _grid(sma_window=work.windows, band_atr=work.bands, stop_atr=work.stops)


def _grid(**axes: Any) -> Grid:
    return Grid(
        names=tuple(axes),
        values=tuple(np.asarray(axis, dtype=np.float64) for axis in axes.values()),
    )


def series_of(market: Market) -> BarSeries:
    """The bars as a sweep takes them, one a day."""
    days = np.arange(market.close.size, dtype=np.int64) * DAY_NS
    return BarSeries(
        symbol="INVENTED",
        timeframe=Timeframe.DAY,
        timestamp=days,
        available_at=days + DAY_NS // 2,
        source="tests.benchmarks.market",
        adjustment="none",
        **market._asdict(),
    )


def swept(work: Work, *, threads: int = THREADS, engine: EngineName = "auto") -> Outcomes:
    """Every set of the work by our engine, tables of indicators included."""
    opened = opened_sweep(work, threads=threads, engine=engine)
    return opened.run(0, len(opened))


def opened_sweep(work: Work, *, threads: int = THREADS, engine: EngineName = "auto") -> Sweep:
    """The work ready to run; a position leaves by its signal, and by a stop where one is swept."""
    strategy, grid = strategy_and_grid(work)
    without = dict.fromkeys(("stop_atr", "target_atr", "trail_atr", "max_bars"), 0.0)
    return open_sweep(
        series_of(work.market),
        strategy,
        grid,
        fixed={name: value for name, value in without.items() if name not in grid.names},
        first=0,
        terms=TERMS,
        engine=engine,
        backend="cpu",
        threads=threads,
    )


def rows(scale: Scale, roofs: Ceilings, tell: Callable[[str], None] = lambda _: None) -> list[Row]:
    """Three sweeps against their peers, a million sets, and the scan against its roof."""
    found = []
    for against in AGAINST:
        tell(against.work)
        found.append(against_peer(against, scale))
    tell("a million sets")
    found.append(million_row(scale))
    tell("scan")
    found.append(scan_row(scale, roofs))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """One sweep and who else does it.

    make   the work of a scale
    theirs the peer's function made ready: what it may do before the clock starts is done
    """

    work: str
    peer: str
    needs: tuple[str, ...]
    at_least: float
    aim: float
    make: Callable[[Scale], Any]
    theirs: Callable[[Any], Callable[[], Found]]


AGAINST = (
    Against(
        work="SMA-cross sweep vs vectorbt",
        peer="vectorbt",
        needs=("vectorbt",),
        at_least=1_000.0,
        aim=2_500.0,
        make=Scale.smas,
        theirs=lambda work: lambda: peers.vectorbt_sma(work),
    ),
    Against(
        work="SMA-cross sweep vs raptorbt batch",
        peer="raptorbt",
        needs=("raptorbt",),
        at_least=150.0,
        aim=300.0,
        make=Scale.smas,
        theirs=lambda work: lambda: peers.raptorbt_sma(work),
    ),
    Against(
        work="RSI sweep vs vectorbt",
        peer="vectorbt",
        needs=("vectorbt", "TA-Lib"),
        at_least=800.0,
        aim=2_000.0,
        make=Scale.rsis,
        theirs=lambda work: lambda: peers.vectorbt_rsi(work),
    ),
    Against(
        work="RSI sweep vs raptorbt batch",
        peer="raptorbt",
        needs=("raptorbt",),
        at_least=150.0,
        aim=400.0,
        make=Scale.rsis,
        theirs=lambda work: lambda: peers.raptorbt_rsi(work),
    ),
    Against(
        work="ATR-stop sweep vs vectorbt",
        peer="vectorbt",
        needs=("vectorbt", "TA-Lib"),
        at_least=500.0,
        aim=1_000.0,
        make=Scale.atr_stops,
        theirs=peers.vectorbt_atr_stop,
    ),
)
PEER_REPEATS = 2  # of a work of seconds, after the run whose results are compared


def against_peer(against: Against, scale: Scale) -> Row:
    """Compare results, then times; skipped where the peer is missing."""
    blank = Row(work=against.work, unit="×", at_least=against.at_least, aim=against.aim)
    missing = [package for package in against.needs if installed(package) is None]
    if missing:
        return replace(blank, status="skipped", note=f"{', '.join(missing)} is not installed")
    work = against.make(scale)
    theirs = against.theirs(work)
    found = swept(work)
    same = agreement(found, theirs())
    seconds = best_seconds(lambda: swept(work), repeats=9, least=LEAST)
    row = compared(
        blank,
        same,
        seconds=seconds,
        peer=f"{against.peer} {installed(against.peer)}",
        peer_seconds=best_seconds(theirs, repeats=PEER_REPEATS),
        bars=work.market.close.size,
        trades=float(found.trades.mean()),
    )
    one = best_seconds(lambda: swept(work, threads=1), repeats=5, least=LEAST)
    row.detail["seconds_on_one_thread"] = one
    return row


def million_row(scale: Scale) -> Row:
    """Time and memory of a million sets, in a process of its own: memory is never given back."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.million", *map(str, (scale.bars, *scale.million))],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(done.stdout)
    row = Row(
        work=f"{found['sets']:,} sets × {found['bars']:,} bars, {found['symbols']} symbols",
        unit="s",
        at_least=0.25,
        aim=0.1,
        less_is_better=True,
        value=found["seconds"],
        note=(
            f"peak {found['peak_mb']:.0f} MB (at most {MOST_MB:.0f}), {found['ns']:.3g} ns per "
            f"set·bar, {found['mean_trades']:.1f} trades a set"
        ),
        detail=found,
    )
    if found["peak_mb"] > MOST_MB:
        return replace(row, status="failed", note=f"too much memory: {row.note}")
    return row


def scan_row(scale: Scale, roofs: Ceilings) -> Row:
    """The search for crossings against reading every value once from the second-level cache."""
    from tests.benchmarks.scans import scan_seconds

    work = scale.smas()
    seconds, cells, read_bytes = scan_seconds(work)
    roof = cells * 16 / (roofs.read_gb_s["L2"] * 1e9)
    own = cells * read_bytes / (roofs.read_gb_s["L2"] * 1e9)
    ours = seconds / cells * 1e9
    return Row(
        work="scan kernel vs the time to read two float64 a set·bar from L2",
        unit="%",
        at_least=70.0,
        aim=100.0,
        value=100.0 * roof / seconds,
        note=(
            f"{ours:.3g} ns per set·bar on one core; reading 16 bytes takes "
            f"{roof / cells * 1e9:.3g} ns, the {read_bytes} that are read "
            f"{own / cells * 1e9:.3g} ns"
        ),
        detail={"seconds": seconds, "set_bars": cells, "bytes_read": read_bytes},
    )
