"""Our indicators against TA-Lib's and those of `ta`: equal values first, then nanoseconds a bar."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.dispatch import kernels
from tests.benchmarks.ceilings import best_seconds
from tests.benchmarks.market import Market, minutes
from tests.benchmarks.peers import installed
from tests.benchmarks.rows import Row, Status

Floats = NDArray[np.float64]
BARS, LOOP_BARS = 1_000_000, 20_000  # ta walks ATR and ADX in Python: it is given fewer bars
AGREES = 1e-9  # relative to the greatest value; ta is compared after SETTLED bars
SETTLED = 2_000  # bars after which different seeds are forgotten
LONGER_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Indicator:
    """One indicator three times; every function takes a market and gives one [T] array or more."""

    name: str
    ours: Callable[[Any, Market], Any]
    talib: Callable[[Any, Market], Any]
    ta: Callable[[Any, Any], Any]
    loops_in_python: bool = False


INDICATORS = (
    Indicator(
        name="SMA 20",
        ours=lambda k, m: k.sma(m.close, 20),
        talib=lambda t, m: t.SMA(m.close, 20),
        ta=lambda t, f: t.trend.SMAIndicator(f.close, 20).sma_indicator(),
    ),
    Indicator(
        name="EMA 20",
        ours=lambda k, m: k.ema(m.close, 20),
        talib=lambda t, m: t.EMA(m.close, 20),
        ta=lambda t, f: t.trend.EMAIndicator(f.close, 20).ema_indicator(),
    ),
    Indicator(
        name="RSI 14",
        ours=lambda k, m: k.rsi(m.close, 14),
        talib=lambda t, m: t.RSI(m.close, 14),
        ta=lambda t, f: t.momentum.RSIIndicator(f.close, 14).rsi(),
    ),
    Indicator(
        name="MACD 12/26/9",
        ours=lambda k, m: k.macd(m.close, 12, 26, 9),
        talib=lambda t, m: t.MACD(m.close, 12, 26, 9),
        ta=lambda t, f: _macd(t.trend.MACD(f.close, 26, 12, 9)),
    ),
    Indicator(
        name="ATR 14",
        ours=lambda k, m: k.atr(m.high, m.low, m.close, 14),
        talib=lambda t, m: t.ATR(m.high, m.low, m.close, 14),
        ta=lambda t, f: t.volatility.AverageTrueRange(
            f.high, f.low, f.close, 14
        ).average_true_range(),
        loops_in_python=True,
    ),
    Indicator(
        name="Bollinger 20, 2",
        ours=lambda k, m: k.bollinger(m.close, 20, 2.0),
        talib=lambda t, m: t.BBANDS(m.close, 20, 2.0, 2.0),
        ta=lambda t, f: _bands(t.volatility.BollingerBands(f.close, 20, 2)),
    ),
    Indicator(
        name="ADX 14",
        ours=lambda k, m: k.adx(m.high, m.low, m.close, 14),
        talib=lambda t, m: t.ADX(m.high, m.low, m.close, 14),  # ours also gives +DI and -DI
        ta=lambda t, f: t.trend.ADXIndicator(f.high, f.low, f.close, 14).adx(),
        loops_in_python=True,
    ),
    Indicator(
        name="OBV",
        ours=lambda k, m: k.obv(m.close, m.volume),
        talib=lambda t, m: t.OBV(m.close, m.volume),
        ta=lambda t, f: t.volume.OnBalanceVolumeIndicator(f.close, f.volume).on_balance_volume(),
    ),
)


def rows(
    *, bars: int = BARS, loop_bars: int = LOOP_BARS, seconds: float = LONGER_SECONDS
) -> list[Row]:
    """The two rows of the table: geometric means over eight indicators.

    bars, loop_bars  length of the series; the second where a peer walks in Python
    seconds          that a timing takes at least
    """
    return [
        _row(
            "indicators vs TA-Lib, geometric mean",
            "TA-Lib",
            lambda each: _against_talib(each, bars, seconds),
            reach=(2.0, 3.0),
            none_below=1.0,
        ),
        _row(
            "indicators vs ta, geometric mean",
            "ta",
            lambda each: _against_ta(each, loop_bars if each.loops_in_python else bars, seconds),
            reach=(30.0, 60.0),
        ),
    ]


def _row(
    work: str,
    package: str,
    against: Callable[[Indicator], dict[str, float]],
    *,
    reach: tuple[float, float],
    none_below: float = 0.0,
) -> Row:
    blank = Row(work=work, unit="×", at_least=reach[0], aim=reach[1])
    if installed(package) is None:
        return replace(blank, status="skipped", note=f"{package} is not installed")
    found = {each.name: against(each) for each in INDICATORS}
    worst = max(each["apart"] for each in found.values())
    ratios = {name: each["theirs_ns"] / each["ours_ns"] for name, each in found.items()}
    slowest = min(ratios, key=lambda name: ratios[name])
    apart = [name for name, each in found.items() if not each["apart"] <= AGREES]
    status: Status = "disagrees" if apart else "measured"
    said = ", ".join(f"{name} {ratio:.2g}×" for name, ratio in ratios.items())
    note = f"{package} {installed(package)}; values within {worst:.0e}; {said}"
    if apart:
        note = f"values differ: {', '.join(apart)}; {note}"
    elif ratios[slowest] < none_below:
        status, note = "failed", f"{slowest} is slower than {package}; {note}"
    mean = math.exp(sum(math.log(ratio) for ratio in ratios.values()) / len(ratios))
    return replace(blank, value=mean, status=status, note=note, detail=found)


def _against_talib(each: Indicator, bars: int, seconds: float) -> dict[str, float]:
    import talib

    market, ours = minutes(bars), kernels("cpu")
    return _compared(
        lambda: each.ours(ours, market), lambda: each.talib(talib, market), seconds, settled=0
    )


def _against_ta(each: Indicator, bars: int, seconds: float) -> dict[str, float]:
    import pandas as pd
    import ta

    market, ours = minutes(bars), kernels("cpu")
    frame = pd.DataFrame(market._asdict())  # fresh, with rows numbered from 0, as ta needs it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _compared(
            lambda: each.ours(ours, market),
            lambda: each.ta(ta, frame),
            seconds,
            settled=min(SETTLED, bars // 2),
        )


def _compared(
    ours: Callable[[], Any], theirs: Callable[[], Any], seconds: float, *, settled: int
) -> dict[str, float]:
    """How far the values lie apart, then nanoseconds a bar of both."""
    mine, other = _arrays(ours()), _arrays(theirs())
    bars = mine[0].size
    apart = max(
        _apart(x[settled:], y[settled:]) for x, y in zip(mine, other, strict=False)
    )  # ADX: ours gives more
    return {
        "apart": apart,
        "bars": bars,
        "ours_ns": best_seconds(ours, least=seconds) / bars * 1e9,
        "theirs_ns": best_seconds(theirs, repeats=3, least=seconds) / bars * 1e9,
    }


def _arrays(found: Any) -> list[Floats]:
    several = found if isinstance(found, tuple) else (found,)
    return [np.asarray(x, dtype=np.float64) for x in several]


def _apart(ours: Floats, theirs: Floats) -> float:
    """Greatest difference relative to the greatest value; infinite where only one is NaN."""
    if bool((np.isnan(ours) != np.isnan(theirs)).any()):
        return math.inf
    return float(np.nanmax(np.abs(ours - theirs)) / np.nanmax(np.abs(theirs)))


def _macd(found: Any) -> tuple[Any, ...]:
    return found.macd(), found.macd_signal(), found.macd_diff()


def _bands(found: Any) -> tuple[Any, ...]:
    return found.bollinger_hband(), found.bollinger_mavg(), found.bollinger_lband()
