"""The same work done by other libraries: every function returns what became of every set.

Costs are a fee of 0.1 % and a slippage of 0.05 % on both sides; a signal of a close fills at the
next open; all cash goes in. Where a library's rules differ from ours, the setting that makes them
the same is named beside it. Each function is given everything it may take as known, and its whole
run is the time: indicators, signals, trades and four metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.market import Market

Floats, Ints, Bools = NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]
CASH, FEE, SLIPPAGE, YEAR = 100_000.0, 0.001, 0.0005, 252
ATR_WINDOW = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What became of [L] sets: USD, annualised, a fraction <= 0, closed trades."""

    final_equity: Floats
    sharpe: Floats
    max_drawdown: Floats
    trades: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Smas:
    """A sweep of crossing averages: every fast window with every slow one; slow runs fastest."""

    market: Market
    fast: Ints
    slow: Ints

    def __len__(self) -> int:
        return self.fast.size * self.slow.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Rsis:
    """A sweep of RSI thresholds; `overbought` runs fastest, `windows` slowest."""

    market: Market
    windows: Ints
    oversold: Floats
    overbought: Floats

    def __len__(self) -> int:
        return self.windows.size * self.oversold.size * self.overbought.size


@dataclass(frozen=True, slots=True, kw_only=True)
class AtrStops:
    """A sweep of breakouts from an ATR band with an ATR stop; `stops` runs fastest."""

    market: Market
    windows: Ints
    bands: Floats
    stops: Floats

    def __len__(self) -> int:
        return self.windows.size * self.bands.size * self.stops.size


def installed(package: str) -> str | None:
    """The version of a package; None where it is missing."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def crossings(near: Floats, far: Floats) -> tuple[Bools, Bools]:
    """Where `near` [..., T] crosses above and below `far`, both broadcast; a tie is neither."""
    above, below = near > far, near < far
    up, down = np.zeros(above.shape, np.bool_), np.zeros(above.shape, np.bool_)
    known = ~np.isnan(near - far)[..., :-1]
    up[..., 1:] = above[..., 1:] & known & ~above[..., :-1]
    down[..., 1:] = below[..., 1:] & known & ~below[..., :-1]
    return up, down


# --- vectorbt -------------------------------------------------------------------------------------


def vectorbt_sma(work: Smas) -> Found:
    """The sweep by vectorbt's MA indicator and its vectorised crossings."""
    import pandas as pd
    import vectorbt as vbt

    close = pd.Series(work.market.close)
    fast, slow = (x.ravel() for x in np.meshgrid(work.fast, work.slow, indexing="ij"))
    near = vbt.MA.run(close, window=fast.tolist(), short_name="fast")
    far = vbt.MA.run(close, window=slow.tolist(), short_name="slow")
    entries, exits = near.ma_crossed_above(far), near.ma_crossed_below(far)
    return _vectorbt(work.market, entries, exits)


def vectorbt_rsi(work: Rsis) -> Found:
    """The sweep by TA-Lib's Wilder RSI through vectorbt; each crossing is found once."""
    import pandas as pd
    import vectorbt as vbt

    strength = vbt.talib("RSI").run(pd.Series(work.market.close), work.windows.tolist())
    entries = strength.real_crossed_above(work.oversold.tolist()).to_numpy()
    exits = strength.real_crossed_below(work.overbought.tolist()).to_numpy()
    low, high = work.oversold.size, work.overbought.size
    window, at, to = np.unravel_index(np.arange(len(work)), (work.windows.size, low, high))
    return _vectorbt(
        work.market,
        pd.DataFrame(entries[:, at * work.windows.size + window]),  # levels run slowest in vectorbt
        pd.DataFrame(exits[:, to * work.windows.size + window]),
    )


def vectorbt_atr_stop(work: AtrStops) -> Callable[[], Found]:
    """The sweep with a stop price at every bar; returns the work, its bars being adapted before.

    vectorbt looks at stops before orders that are due at the open. The low of a bar that begins
    with a due exit is set to its open, so that the exit comes first as in our rules; that costs it
    nothing here, as it is done before the clock starts.
    """
    import pandas as pd
    import vectorbt as vbt
    from vectorbt.portfolio.enums import StopEntryPrice, StopExitPrice

    close, opened = work.market.close, work.market.open
    shape = (work.windows.size, work.bands.size, work.stops.size)
    window, band, stop = np.unravel_index(np.arange(len(work)), shape)
    due = np.zeros((close.size, work.windows.size), np.bool_)
    _, below = _bands(work, vbt)
    due[1:] = below[:-1]
    low = np.where(due, opened[:, None], work.market.low[:, None])[:, window]

    def run() -> Found:
        above, below = _bands(work, vbt)
        swing = _atr(work.market)
        # as a fraction of the fill, which is known at the bar it belongs to
        level = close[:, None] * (1.0 + SLIPPAGE) - work.stops * swing[:, None]
        below_fill = np.full(level.shape, np.nan)
        below_fill[1:] = 1.0 - level[:-1] / (opened[1:, None] * (1.0 + SLIPPAGE))
        return _vectorbt(
            work.market,
            pd.DataFrame(above[:, window * work.bands.size + band]),
            pd.DataFrame(below[:, window]),
            low=low,
            sl_stop=below_fill[:, stop],
            stop_entry_price=StopEntryPrice.FillPrice,
            stop_exit_price=StopExitPrice.StopMarket,
        )

    return run


def _bands(work: AtrStops, vbt: Any) -> tuple[Bools, Bools]:
    """[T, windows × bands] breakouts and [T, windows] falls below the average."""
    import pandas as pd

    close = work.market.close
    average = vbt.MA.run(pd.Series(close), window=work.windows.tolist()).ma.to_numpy()
    swing = _atr(work.market)[:, None]
    edge = (average[:, :, None] + swing[:, :, None] * work.bands).reshape(close.size, -1)
    above, _ = crossings(close, edge.T)
    _, below = crossings(close, average.T)
    return above.T, below.T


def _atr(market: Market) -> Floats:
    import talib

    found: Floats = talib.ATR(market.high, market.low, market.close, ATR_WINDOW)
    return found


def _vectorbt(market: Market, entries: Any, exits: Any, **stops: Any) -> Found:
    import vectorbt as vbt

    if stops:
        stops |= {"open": market.open[:, None], "high": market.high[:, None]}
    folio = vbt.Portfolio.from_signals(
        market.close[:, None],
        entries.vbt.signals.fshift(1),  # a signal of a close fills on the next bar
        exits.vbt.signals.fshift(1),
        price=market.open[:, None],
        size=np.inf,
        direction="longonly",
        fees=FEE,
        slippage=SLIPPAGE,
        init_cash=CASH,
        freq="1D",
        **stops,
    )
    return Found(
        final_equity=np.asarray(folio.final_value(), dtype=np.float64),
        sharpe=np.asarray(folio.sharpe_ratio(year_freq=f"{YEAR} days"), dtype=np.float64),
        max_drawdown=np.asarray(folio.max_drawdown(), dtype=np.float64),
        trades=np.asarray(folio.trades.closed.count(), dtype=np.int64),
    )


# --- raptorbt -------------------------------------------------------------------------------------


def raptorbt_sma(work: Smas) -> Found:
    """The sweep by raptorbt's averages and its batch of backtests on every core."""
    import raptorbt

    close = work.market.close
    near = [np.asarray(raptorbt.sma(close, int(window))) for window in work.fast]
    far = np.array([raptorbt.sma(close, int(window)) for window in work.slow])
    items = []
    for row in near:
        up, down = crossings(row, far)
        items += [
            raptorbt.BatchSingleItem("", up[number], down[number]) for number in range(far.shape[0])
        ]
    return _raptorbt(work.market, items)


def raptorbt_rsi(work: Rsis) -> Found:
    """The sweep by raptorbt's RSI; each crossing is found once."""
    import raptorbt

    items = []
    for window in work.windows:
        strength = np.asarray(raptorbt.rsi(work.market.close, int(window)))
        up, _ = crossings(strength, work.oversold[:, None])
        _, down = crossings(strength, work.overbought[:, None])
        items += [raptorbt.BatchSingleItem("", entry, leave) for entry in up for leave in down]
    return _raptorbt(work.market, items)


def raptorbt_one(market: Market, fast: int, slow: int) -> Found:
    """One backtest of crossing averages, with its indicators and signals."""
    import raptorbt

    near = np.asarray(raptorbt.sma(market.close, fast))
    far = np.asarray(raptorbt.sma(market.close, slow))
    entries, exits = crossings(near, far)
    result = raptorbt.run_single_backtest(
        _times(market), *market, entries, exits, config=_raptorbt_config()
    )
    return _raptorbt_found([result])


def _raptorbt(market: Market, items: list[Any]) -> Found:
    import raptorbt

    results = raptorbt.batch_single_backtest(
        _times(market), *market, items, config=_raptorbt_config()
    )
    return _raptorbt_found([result for _, result in results])


def _raptorbt_config() -> Any:
    import raptorbt

    return raptorbt.BacktestConfig(
        initial_capital=CASH,
        fees=FEE,
        slippage=SLIPPAGE,
        periods_per_year=YEAR,
        fill_timing="next_bar_open",
    )


def _raptorbt_found(results: list[Any]) -> Found:
    metrics = [result.metrics for result in results]
    return Found(
        final_equity=np.array([each.end_value for each in metrics]),
        sharpe=np.array([each.sharpe_ratio for each in metrics]),
        max_drawdown=np.array([-each.max_drawdown_pct / 100.0 for each in metrics]),
        trades=np.array([each.total_closed_trades for each in metrics], dtype=np.int64),
    )


def _times(market: Market) -> Ints:
    return np.arange(market.close.size, dtype=np.int64) * 86_400_000_000_000
