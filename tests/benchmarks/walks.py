"""The bar-by-bar engine and single backtests: equal to the definition first, then nanoseconds."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from strategies.kernels import reference
from strategies.kernels.engines import walk_reference
from strategies.kernels.engines.lanes import Lanes, Outcomes, Signals, pack
from tests.benchmarks.ceilings import best_seconds
from tests.benchmarks.market import Market
from tests.benchmarks.peers import Found, Smas, crossings, installed, raptorbt_one, raptorbt_sma
from tests.benchmarks.rows import Row, agreement, compared
from tests.benchmarks.sweeps import LEAST, TERMS, Scale, prices_of, swept

CHECKED = 50  # lanes that are compared with the definition
FAST, SLOW = 20, 50  # of the single backtest
PATHS = "bar-by-bar engine, stop + target + trail + time, 1 thread"


def rows(scale: Scale) -> list[Row]:
    """The bar-by-bar engine for itself and against raptorbt, and one backtest against it."""
    work = scale.smas()
    return [_alone(work), _against_raptorbt(work), _one(work.market)]


def signals_of(work: Smas) -> Signals:
    """Where every pair of averages crosses, [L] rules."""
    close = work.market.close
    near = np.array([reference.sma(close, int(window)) for window in work.fast])
    far = np.array([reference.sma(close, int(window)) for window in work.slow])
    both = [crossings(row, far) for row in near]
    entry, leave = (np.concatenate([pack(pair[side]) for pair in both]) for side in (0, 1))
    return Signals(entry=entry, exit=leave)


def lanes_of(sets: int, *, levels: bool) -> Lanes:
    """One lane a rule, with levels that all matter or with none."""
    numbers = np.arange(sets, dtype=np.int64)
    spread = 1.0 + numbers % 40 / 20.0  # ATR
    none = np.zeros(sets)
    return Lanes(
        signal=numbers,
        atr=np.zeros(sets, dtype=np.int64) - (0 if levels else 1),
        stop=spread if levels else none,
        target=2.0 * spread if levels else none,
        trail=1.5 * spread if levels else none,
        max_bars=(numbers % 30 + 10) * levels,
    )


def _alone(work: Smas) -> Row:
    from strategies.kernels.engines.walk import walk

    market, sets = work.market, len(work)
    prices, signals = prices_of(market), signals_of(work)
    swing = reference.atr(market.high, market.low, market.close, 14)[None]
    lanes = lanes_of(sets, levels=True)
    found = walk(prices, signals, swing, lanes, TERMS)
    spread = np.linspace(0, sets - 1, min(CHECKED, sets)).astype(np.int64)
    same = agreement(
        pick_outcomes(found, spread),
        walk_reference.walk(prices, signals, swing, pick_lanes(lanes, spread), TERMS),
    )
    plain = lanes_of(sets, levels=False)
    seconds = best_seconds(lambda: walk(prices, signals, swing, lanes, TERMS), least=LEAST)
    simple = best_seconds(lambda: walk(prices, signals, None, plain, TERMS), least=LEAST)
    cells = sets * market.close.size
    trades = float(found.trades.mean())
    return Row(
        work=PATHS,
        unit="ns per set·bar",
        at_least=2.5,
        aim=1.0,
        less_is_better=True,
        value=seconds / cells * 1e9,
        status="measured" if same.holds else "disagrees",
        note=(
            f"{sets:,} sets × {market.close.size:,} bars, {trades:.1f} trades a set; "
            f"without levels {simple / cells * 1e9:.2g} ns; reference: {same.words()}"
        ),
        detail={"seconds": seconds, "plain_seconds": simple, "mean_trades": trades},
    )


def _against_raptorbt(work: Smas) -> Row:
    blank = Row(work="bar-by-bar engine vs raptorbt batch", unit="×", at_least=15.0, aim=15.0)
    if installed("raptorbt") is None:
        return replace(blank, status="skipped", note="raptorbt is not installed")

    def ours() -> Outcomes:
        return swept(work, engine="bars")

    found = ours()
    return compared(
        blank,
        agreement(found, raptorbt_sma(work)),
        seconds=best_seconds(ours, repeats=5, least=LEAST),
        peer=f"raptorbt {installed('raptorbt')}",
        peer_seconds=best_seconds(lambda: raptorbt_sma(work), repeats=3),
        bars=work.market.close.size,
        trades=float(found.trades.mean()),
    )


def _one(market: Market) -> Row:
    from strategies.kernels.engines.walk_one import OneOutcome, sma_cross_backtest

    blank = Row(
        work=f"one backtest of {market.close.size:,} bars, warm, vs raptorbt",
        unit="×",
        at_least=4.0,
        aim=9.0,
    )
    if installed("raptorbt") is None:
        return replace(blank, status="skipped", note="raptorbt is not installed")
    prices = prices_of(market)

    def ours() -> OneOutcome:
        return sma_cross_backtest(prices, FAST, SLOW, TERMS)

    one = ours()
    found = Found(
        final_equity=np.array([one.final_equity]),
        sharpe=np.array([one.sharpe]),
        max_drawdown=np.array([one.max_drawdown]),
        trades=np.array([one.trades]),
    )
    return compared(
        blank,
        agreement(found, raptorbt_one(market, FAST, SLOW)),
        seconds=best_seconds(ours, least=LEAST),
        peer=f"raptorbt {installed('raptorbt')}",
        peer_seconds=best_seconds(lambda: raptorbt_one(market, FAST, SLOW), least=LEAST),
        bars=market.close.size,
        trades=float(found.trades.mean()),
    )


def pick_lanes(lanes: Lanes, numbers: NDArray[np.int64]) -> Lanes:
    """Only these lanes."""
    return Lanes(**{field.name: getattr(lanes, field.name)[numbers] for field in fields(lanes)})


def pick_outcomes(found: Outcomes, numbers: NDArray[np.int64]) -> Outcomes:
    """Only what became of these lanes."""
    return Outcomes(**{field.name: getattr(found, field.name)[numbers] for field in fields(found)})
