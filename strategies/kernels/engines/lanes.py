"""What a sweep is made of: prices, the terms of trading, one lane a set of numbers, and outcomes.

A lane is one account that trades one symbol by one rule with all its cash. Its rule is two rows of
bits (where it wants in, where it wants out); the rest of a lane says how it leaves otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.runs import Array

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

BITS = 64  # bars in a word: bit k of word w is bar 64 × w + k


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Sound bars of one symbol and the period that is traded in them.

    open, high, low, close  [T] float64 USD, C-contiguous, finite and above 0
    first                   bar of the first decision; the bars before it only warm indicators up
    """

    open: Array
    high: Array
    low: Array
    close: Array
    volume: Array
    first: int = 0

    def __len__(self) -> int:
        return int(self.close.size)

    @property
    def traded(self) -> int:
        """Bars of the period: from `first` to the newest."""
        return len(self) - self.first


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What trading costs and how it is counted.

    cash                  USD at the start, before the close of bar `first`
    slippage, fee_rate    fractions of the price and of the notional, each on both sides
    commission_per_order  USD of each filled order
    periods_per_year      bars in a year, for annual figures
    whole_shares          whether shares are whole, order prices whole ticks and at least a cent off
                          the last close, fills multiples of 0.0001 USD and fees whole cents, as at
                          the exchange
    """

    cash: float = 100_000.0
    slippage: float = 0.0005
    fee_rate: float = 0.0
    commission_per_order: float = 0.0
    periods_per_year: float = 252.0
    whole_shares: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """How each of L lanes trades; every array is [L].

    signal    row of the signal bits
    atr       row of the ATR table that the distances below are measured with; -1 where none is
    stop      protective stop below the expected entry, in ATR of the signal bar; 0 for none
    target    target above the expected entry, in ATR of the signal bar; 0 for none
    trail     trailing stop below the highest high since the entry, in such ATR too; 0 for none
    max_bars  bars after which a position leaves at the next open; 0 for never

    expected entry  close of the signal bar × (1 + slippage), known before the fill
    """

    signal: Ints
    atr: Ints
    stop: Array
    target: Array
    trail: Array
    max_bars: Ints

    def __len__(self) -> int:
        return int(self.signal.size)

    def part(self, start: int, stop: int) -> Lanes:
        """Lanes start..stop-1, as views."""
        return Lanes(
            **{field.name: getattr(self, field.name)[start:stop] for field in fields(self)}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """Where rules fire: entry and exit [R, W] uint64, row r one rule, bit k of word w bar 64w + k.

    W is at least ceil(T / 64); bits from bar T on are 0.
    """

    entry: Words
    exit: Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """What became of each of L lanes over the period; every array is [L].

    final_equity   USD at the last close; an open position is marked at it
    annual_return  fraction a year; NaN where the period is too short for it
    sharpe         annualised, ddof 1, risk-free 0; NaN without variance
    sortino        annualised mean over downside deviation from 0; NaN without a losing bar
    max_drawdown   fraction <= 0, from the initial cash on
    trades         closed ones; -1 where the numbers do not fit together and nothing was run
    open_trades    0 or 1
    hit_rate       share of closed trades that made money; NaN without one
    exposure       share of bars that end with a position
    """

    final_equity: Array
    annual_return: Array
    sharpe: Array
    sortino: Array
    max_drawdown: Array
    trades: Ints
    open_trades: Ints
    hit_rate: Array
    exposure: Array

    def __len__(self) -> int:
        return int(self.final_equity.size)


METRICS = tuple(field.name for field in fields(Outcomes))


def empty_outcomes(lanes: int) -> Outcomes:
    """Outcomes of lanes that have not run: NaN everywhere, trades -1."""
    floats = {name: np.full(lanes, np.nan) for name in METRICS}
    floats["trades"] = np.full(lanes, -1, dtype=np.int64)
    floats["open_trades"] = np.zeros(lanes, dtype=np.int64)
    return Outcomes(**floats)


def pack(fires: NDArray[np.bool_]) -> Words:
    """[R, T] bool, where rules fire, as [R, ceil(T / 64)] words."""
    rows, bars = fires.shape
    padded = np.zeros((rows, -(-bars // BITS) * BITS), dtype=np.bool_)
    padded[:, :bars] = fires
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64, copy=False)
