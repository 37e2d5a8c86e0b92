"""Where strategies fire for many numbers at once: validity, and signal bits of whole columns.

The bits are those of `strategy.crossings`, to the last one. The built-in families are computed
from tables of many windows; any other registered strategy is asked once for each distinct set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.dispatch import KernelSet
from strategies.kernels.engines.lanes import BITS, Ints, Signals, Words, pack
from strategies.kernels.runs import Array
from strategies.registry import default_parameters, make_strategy
from trader.core.errors import ConfigError
from trader.core.market import BarSeries

Columns = Mapping[str, Array]  # parameter -> [R], one number for each rule
Bools = NDArray[np.bool_]
Builder = Callable[[BarSeries, Columns, int], tuple[Words, Words]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What is known of a strategy beforehand.

    entry, exit  parameters that its entry bits, and its exit bits, depend on
    ordered      two parameters of which the first has to be below the second
    bits         entry and exit bits [R, W] of rules whose every number is valid alone
    """

    entry: tuple[str, ...]
    exit: tuple[str, ...]
    ordered: tuple[str, str] | None
    bits: Builder


def whole(values: Array) -> Bools:
    """[R] whether each number is a whole number of bars from 1 up."""
    found: Bools = np.isfinite(values) & (values >= 1.0) & (values == np.floor(values))
    return found


def valid_alone(strategy: str, name: str, values: Array) -> Bools:
    """[R] whether a constructor accepts each value of one parameter, given others that fit."""
    if isinstance(default_parameters(strategy)[name], int):
        return whole(values)
    if name in {"oversold", "overbought"}:
        return (values > 0.0) & (values < 100.0)
    if name == "band_atr":
        return np.isfinite(values) & (values >= 0.0)
    raise KeyError(name)


def valid(strategy: str, columns: Columns, kernels: KernelSet) -> Bools:
    """[R] whether the strategy's constructor accepts each set of numbers."""
    family = FAMILIES.get(strategy)
    size = next(iter(columns.values())).size
    if family is None:
        return np.array([_made(strategy, columns, row, kernels) is not None for row in range(size)])
    sound = np.ones(size, dtype=np.bool_)
    for name, values in columns.items():
        sound &= valid_alone(strategy, name, values)
    if family.ordered is not None:
        low, high = family.ordered
        sound &= columns[low] < columns[high]
    return sound


def rules_of(columns: Columns, sound: Bools) -> tuple[dict[str, Array], Ints]:
    """The distinct sets of numbers among the sound ones, and the place of each set; -1 unsound."""
    place = np.full(sound.size, -1, dtype=np.int64)
    if not columns:
        place[sound] = 0
        return {}, place
    table = np.stack([values[sound] for values in columns.values()], axis=1)
    distinct, inverse = np.unique(table, axis=0, return_inverse=True)
    place[sound] = inverse.reshape(-1)
    return dict(zip(columns, distinct.T, strict=True)), place


def signals(
    strategy: str,
    bars: BarSeries,
    columns: Columns,
    *,
    sets: int,
    kernels: KernelSet,
    threads: int = 1,
) -> tuple[Signals, Ints]:
    """Signal bits of sets of numbers.

    columns  every parameter of the strategy, [sets] each; empty for one without parameters
    returns  bits of the distinct rules, and the row of each set; -1 where its numbers do not fit
             together. On the reference backend every rule is asked itself, without numba.
    """
    sound = valid(strategy, columns, kernels) if columns else np.ones(sets, dtype=np.bool_)
    rules, row = rules_of(columns, sound)
    count = int(row.max(initial=-1)) + 1
    family = FAMILIES.get(strategy)
    if family is None or kernels.backend != "cpu":
        entry, exits = _asked(strategy, bars, rules, count, kernels)
    elif not rules or count == 0:
        entry, exits = _asked(strategy, bars, {}, count, kernels)
    else:
        entry, exits = family.bits(bars, rules, threads)
    return Signals(entry=entry, exit=exits), row


def _made(strategy: str, columns: Columns, row: int, kernels: KernelSet) -> Any:
    """The strategy with the numbers of one row; None where it does not accept them."""
    try:
        return make_strategy(
            strategy, {name: float(values[row]) for name, values in columns.items()}, kernels
        )
    except ConfigError:
        return None


def _asked(
    strategy: str, bars: BarSeries, rules: Columns, count: int, kernels: KernelSet
) -> tuple[Words, Words]:
    """Bits of rules that are computed one by one."""
    size = len(bars)
    entry = np.zeros((count, -(-size // BITS)), dtype=np.uint64)
    exits = np.zeros_like(entry)
    for row in range(count):
        fired = _made(strategy, rules, row, kernels).crossings(bars)
        entry[row], exits[row] = pack(fired.entry[None])[0], pack(fired.exit[None])[0]
    return entry, exits


def windows_of(values: Array) -> tuple[Ints, Ints]:
    """The distinct windows of a column, ascending, and the place of each of its values."""
    distinct, place = np.unique(values.astype(np.int64), return_inverse=True)
    return distinct, place.reshape(-1).astype(np.int64)


def _sma_bits(bars: BarSeries, rules: Columns, threads: int) -> tuple[Words, Words]:
    from strategies.kernels.engines.crossings import row_crossings
    from strategies.kernels.tables import sma_table

    windows, place = windows_of(np.concatenate((rules["fast"], rules["slow"])))
    table = sma_table(bars.close, windows, threads)
    fast, slow = np.split(place, 2)
    return row_crossings(table, fast, table, slow, threads=threads)


def _rsi_bits(bars: BarSeries, rules: Columns, threads: int) -> tuple[Words, Words]:
    from strategies.kernels.engines.crossings import level_crossings
    from strategies.kernels.tables import rsi_table

    windows, place = windows_of(rules["rsi_window"])
    table = rsi_table(bars.close, windows, threads)
    up, _ = level_crossings(table, place, rules["oversold"], threads=threads)
    _, down = level_crossings(table, place, rules["overbought"], threads=threads)
    return up, down


def _macd_bits(bars: BarSeries, rules: Columns, threads: int) -> tuple[Words, Words]:
    from strategies.kernels.engines.crossings import macd_crossings

    fast, slow, signal = (rules[name].astype(np.int64) for name in ("fast", "slow", "signal"))
    return macd_crossings(bars.close, fast, slow, signal, threads=threads)


def _band_bits(bars: BarSeries, rules: Columns, threads: int) -> tuple[Words, Words]:
    from strategies.kernels.engines.crossings import band_crossings
    from strategies.kernels.tables import atr_table, sma_table

    windows, middle = windows_of(rules["sma_window"])
    swings, swing = windows_of(rules["atr_window"])
    return band_crossings(
        bars.close,
        sma_table(bars.close, windows, threads),
        middle,
        atr_table(bars.high, bars.low, bars.close, swings, threads),
        swing,
        rules["band_atr"],
        threads=threads,
    )


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "sma_cross": Family(
            entry=("fast", "slow"), exit=("fast", "slow"), ordered=("fast", "slow"), bits=_sma_bits
        ),
        "rsi_reversion": Family(
            entry=("rsi_window", "oversold"),
            exit=("rsi_window", "overbought"),
            ordered=("oversold", "overbought"),
            bits=_rsi_bits,
        ),
        "macd_momentum": Family(
            entry=("fast", "slow", "signal"),
            exit=("fast", "slow", "signal"),
            ordered=("fast", "slow"),
            bits=_macd_bits,
        ),
        "atr_trend": Family(
            entry=("sma_window", "atr_window", "band_atr"),
            exit=("sma_window",),
            ordered=None,
            bits=_band_bits,
        ),
    }
)
