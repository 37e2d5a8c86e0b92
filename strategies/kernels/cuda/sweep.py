"""Lanes walked bar by bar on a CUDA device, one thread a lane.

Bars are read by all threads of a warp at once; a lane's own numbers, its words of signal bits and
its outcomes lie beside those of its neighbours; its state never leaves the registers. The
arithmetic is `walk_steps`, so that float64 does what every other engine does; float32 is for
ranking only.
"""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from strategies.kernels.cuda.launch import Float, cuda, kernel, upload
from strategies.kernels.engines.lanes import (
    BITS,
    METRICS,
    Lanes,
    Outcomes,
    Prices,
    Signals,
    Terms,
)
from strategies.kernels.engines.walk import outcomes_of
from strategies.kernels.engines.walk_checks import require_sound
from strategies.kernels.engines.walk_steps import (
    annual_growth,
    opening_state,
    terms_row,
    walk_bar,
    write_metrics,
)
from strategies.kernels.runs import Array
from strategies.kernels.steps import step

OPEN, HIGH, LOW, CLOSE, CHANGE = range(5)  # columns of the bars
ENTRY, EXIT = range(2)
MOST_LANES = 1 << 20  # walked in one launch: what their rows take on the device stays small


@step
def walk_lane(
    bars: Any,
    first: int,
    words: Any,
    row: int,
    atr: Any,
    atr_row: int,
    stop: Any,
    target: Any,
    trail: Any,
    max_bars: int,
    terms: Any,
    out: Any,
    lane: int,
) -> None:
    """One lane over bars [T, 5]; signal words [W, R, 2] and ATR [T, A] lie bar by bar."""
    number = terms.dtype.type
    one = np.uint64(1)
    last = np.uint32(bars.shape[0] - 1)
    t = np.uint32(first)  # unsigned: no index is tested for counting from the end
    entries = exits = np.uint64(0)
    state = opening_state(terms)
    while t <= last and bars.shape[0] > first:
        bit = t & np.uint32(BITS - 1)
        if bit == 0 or t == first:
            word = t >> np.uint32(6)
            entries = words[word, row, ENTRY] >> np.uint64(bit)
            exits = words[word, row, EXIT] >> np.uint64(bit)
        enters = entries & one != 0
        swing = number(0.0)
        if enters and atr_row >= 0:
            swing = atr[t, atr_row]
        state = walk_bar(
            state,
            bars[t, OPEN],
            bars[t, HIGH],
            bars[t, LOW],
            bars[t, CLOSE],
            bars[t, CHANGE],
            swing,
            enters,
            exits & one != 0,
            t == last,
            stop,
            target,
            trail,
            max_bars,
            terms,
        )
        entries >>= one
        exits >>= one
        t = np.uint32(t + np.uint32(1))
    write_metrics(state, bars.shape[0] - first, terms, out, lane)


@kernel(signature="f3 i0 u4 h1 f3 h1 f1 f1 f1 h1 f1 f2", registers=(90, 64))
def walk_lanes(
    bars: Any,
    first: int,
    words: Any,
    signal: Any,
    atr: Any,
    atr_row: Any,
    stop: Any,
    target: Any,
    trail: Any,
    max_bars: Any,
    terms: Any,
    out: Any,
) -> None:
    """Metrics [9, S × L] of L lanes on each of S symbols; the grid's second axis is the symbol."""
    lane = cuda.grid(1)
    symbol = cuda.blockIdx.y
    if lane < signal.size:
        walk_lane(
            bars[symbol],
            first,
            words[symbol],
            signal[lane],
            atr[symbol],
            atr_row[lane],
            stop[lane],
            target[lane],
            trail[lane],
            max_bars[lane],
            terms,
            out,
            symbol * signal.size + lane,
        )


def walk(
    prices: Prices,
    signals: Signals,
    atr_table: Array | None,
    lanes: Lanes,
    terms: Terms,
    *,
    dtype: Float = np.float64,
) -> Outcomes:
    """What becomes of every lane, as `walk.walk` says, one device thread a lane.

    dtype   float32 is for ranking only: its money is good to about five digits
    raises  ValueError as `walk.walk`, and for whole shares, which need exact decimals;
            EndpointError where there is no device
    """
    (outcomes,) = walk_symbols((prices,), (signals,), (atr_table,), lanes, terms, dtype=dtype)
    return outcomes


def walk_symbols(
    prices: Sequence[Prices],
    signals: Sequence[Signals],
    atr_tables: Sequence[Array | None],
    lanes: Lanes,
    terms: Terms,
    *,
    dtype: Float = np.float64,
) -> tuple[Outcomes, ...]:
    """The same lanes on several symbols at once, each with an account of its own.

    returns  one for every symbol, what `walk` says of it
    raises   ValueError as `walk`, and for symbols of different length, period or number of rules
    """
    for market in zip(prices, signals, atr_tables, strict=True):
        require_sound(*market, lanes, terms)
    if terms.whole_shares:
        raise ValueError("whole shares are walked on the CPU; the device has no exact decimals")
    shapes = {
        (len(bars), bars.first, rules.entry.shape, None if atr is None else atr.shape)
        for bars, rules, atr in zip(prices, signals, atr_tables, strict=True)
    }
    if len(shapes) > 1:
        raise ValueError(f"symbols walked at once must be of one shape, not {len(shapes)}")
    if not prices:
        return ()
    markets = Markets.upload(prices, signals, atr_tables, terms, dtype)
    most = max(MOST_LANES // len(prices), 1)
    parts = [markets.walk(lanes.part(at, at + most)) for at in range(0, len(lanes), most)]
    out = np.concatenate((np.empty((len(METRICS), len(prices), 0)), *parts), axis=2)
    for symbol in range(len(prices)):
        _fill_annual(out[:, symbol], prices[symbol].traded, terms_row(terms))
    return tuple(outcomes_of(np.ascontiguousarray(out[:, k])) for k in range(len(prices)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Markets:
    """What all lanes share, on the device: S symbols of T bars, laid out bar by bar.

    bars   [S, T, 5];  words  [S, W, R, 2] entry and exit;  atr  [S, T, A]
    """

    symbols: int
    first: int
    bars: Any
    words: Any
    atr: Any
    terms: Any
    dtype: Float

    @staticmethod
    def upload(
        prices: Sequence[Prices],
        signals: Sequence[Signals],
        atr_tables: Sequence[Array | None],
        terms: Terms,
        dtype: Float,
    ) -> Markets:
        """Copy them to the device; nothing is checked."""
        words = [np.stack((rules.entry.T, rules.exit.T), axis=2) for rules in signals]
        atr = [np.zeros((1, 1)) if table is None else table.T for table in atr_tables]
        return Markets(
            symbols=len(prices),
            first=prices[0].first,
            bars=upload(np.stack([bars_table(bars) for bars in prices]), dtype),
            words=upload(np.stack(words), np.uint64),
            atr=upload(np.stack(atr), dtype),
            terms=upload(terms_row(terms), dtype),
            dtype=dtype,
        )

    def walk(self, lanes: Lanes) -> Array:
        """Metrics [9, S, L] as float64; the row of annual returns is NaN."""
        out = cuda.device_array((len(METRICS), self.symbols * len(lanes)), self.dtype)
        self.launch(self.upload_lanes(lanes), out)
        metrics = np.asarray(out.copy_to_host(), dtype=np.float64)
        return metrics.reshape(len(METRICS), self.symbols, len(lanes))

    def launch(self, lanes: tuple[Any, ...], out: Any) -> None:
        """Walk lanes that are on the device; returns before it is done."""
        signal, atr_row, *exits = lanes
        blocks = (-(-signal.size // walk_lanes.threads), self.symbols)
        walk_lanes.launch(
            blocks,
            self.bars,
            self.first,
            self.words,
            signal,
            self.atr,
            atr_row,
            *exits,
            self.terms,
            out,
        )

    def upload_lanes(self, lanes: Lanes) -> tuple[Any, ...]:
        """The columns of `lanes` on the device: signal, atr, stop, target, trail, max_bars.

        A lane without levels has no row of the ATR table, whatever it names.
        """
        levels = (lanes.stop > 0.0) | (lanes.target > 0.0) | (lanes.trail > 0.0)
        return (
            upload(lanes.signal, np.int32),
            upload(np.where(levels, lanes.atr, -1), np.int32),
            upload(lanes.stop, self.dtype),
            upload(lanes.target, self.dtype),
            upload(lanes.trail, self.dtype),
            upload(np.minimum(lanes.max_bars, np.iinfo(np.int32).max), np.int32),
        )


def bars_table(prices: Prices) -> Array:
    """Open, high, low, close and change to the close before, [T, 5]."""
    table = np.zeros((len(prices), CHANGE + 1))
    columns = (prices.open, prices.high, prices.low, prices.close)
    table[:, :CHANGE] = np.stack(columns, axis=1)
    table[1:, CHANGE] = prices.close[1:] / prices.close[:-1] - 1.0
    return table


@step
def _fill_annual(out: Array, bars: int, terms: Array) -> None:
    for lane in range(out.shape[1]):
        out[1, lane] = annual_growth(bars, out[0, lane], terms)
