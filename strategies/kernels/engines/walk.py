"""The bar-by-bar engine on the CPU: every rule of a lane, for rules that depend on the path.

A lane is flat most of its bars and holds through most of the others. Flat stretches are skipped by
the next entry bit, held ones are searched for the bar that leaves with whole words of compares, and
summed in blocks; what is left are the bars around each fill. Equal to
`strategies.kernels.engines.walk_reference`, trade by trade, whatever the number of threads.
"""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.engines.lanes import (
    METRICS,
    Ints,
    Lanes,
    Outcomes,
    Prices,
    Signals,
    Terms,
    Words,
)
from strategies.kernels.engines.masks import aligned, compiled, padded_bars
from strategies.kernels.engines.walk_checks import require_one, require_sound
from strategies.kernels.engines.walk_legs import (
    BLOCK,
    BY_TARGET,
    CLOSE,
    OPEN,
    REACH,
    TOP,
    added,
    fill_bars,
    fill_blocks,
    held_by_blocks,
    next_leg,
)
from strategies.kernels.engines.walk_money import UNITS, LaneTrade
from strategies.kernels.engines.walk_record import LEG_COLUMNS, draw_lanes, trades_of
from strategies.kernels.engines.walk_steps import (
    CASH,
    LIMIT,
    SLIPPED,
    annual_growth,
    cash_received,
    fallen,
    ratios,
    terms_row,
)
from strategies.kernels.engines.walk_whole import (
    BOUGHT,
    fills_of,
    rates_row,
    whole_cost,
    whole_fill,
    whole_sale,
)
from strategies.kernels.runs import Array

Scalar = TypeVar("Scalar", bound=np.generic)

LANES_A_TILE = 256
DRAW: Callable[..., int] = draw_lanes
NO_ATR = np.empty((0, 0))


def walk(
    prices: Prices,
    signals: Signals,
    atr_table: Array | None,
    lanes: Lanes,
    terms: Terms,
    *,
    threads: int = 1,
) -> Outcomes:
    """What becomes of every lane; arguments and errors are those of the reference.

    threads  how many lanes are walked at once; it changes no bit of the outcome
    """
    require_sound(prices, signals, atr_table, lanes, terms)
    market = _Market(prices, signals, atr_table, terms)
    out = np.empty((len(METRICS), len(lanes)))
    run: Callable[..., None] = _walk_lanes

    def walk_tile(start: int) -> None:
        part = lanes.part(start, start + LANES_A_TILE)
        run(*market.arrays, *lane_columns(part), out, start)

    over_tiles(walk_tile, len(lanes), threads)
    return outcomes_of(out)


def curves(
    prices: Prices,
    signals: Signals,
    atr_table: Array | None,
    lanes: Lanes,
    terms: Terms,
    *,
    threads: int = 1,
) -> Array:
    """Equity of every lane at every close, [L, n] USD with n = prices.traded; raises as `walk`."""
    require_sound(prices, signals, atr_table, lanes, terms)
    market = _Market(prices, signals, atr_table, terms)
    equity = np.empty((len(lanes), prices.traded))

    def walk_tile(start: int) -> None:
        legs = np.empty((len(prices) + 1, LEG_COLUMNS))
        part = lanes.part(start, start + LANES_A_TILE)
        DRAW(*market.arrays, *lane_columns(part), legs, equity[start : start + LANES_A_TILE])

    over_tiles(walk_tile, len(lanes), threads)
    return equity


def trades(
    prices: Prices, signals: Signals, atr_table: Array | None, lanes: Lanes, terms: Terms
) -> tuple[LaneTrade, ...]:
    """The trades of one lane, oldest first, an open one last; raises as `walk`."""
    require_sound(prices, signals, atr_table, lanes, terms)
    require_one(lanes)
    market = _Market(prices, signals, atr_table, terms)
    legs = np.empty((len(prices) + 1, LEG_COLUMNS))
    count = DRAW(*market.arrays, *lane_columns(lanes), legs, np.empty((1, prices.traded)))
    return trades_of(legs[:count])


def over_tiles(
    walk_tile: Callable[[int], None], lanes: int, threads: int, tile: int = LANES_A_TILE
) -> None:
    """Call `walk_tile` with the first of every `tile` lanes, on so many threads."""
    if threads < 1:
        raise ValueError(f"threads {threads} is below 1")
    starts = range(0, lanes, tile)
    if threads == 1 or len(starts) <= 1:
        for start in starts:
            walk_tile(start)
        return
    with ThreadPoolExecutor(max_workers=threads) as pool:
        for _ in pool.map(walk_tile, starts):
            pass


def outcomes_of(rows: Array) -> Outcomes:
    """Metrics [9, L] as outcomes."""
    columns: dict[str, Any] = dict(zip(METRICS, rows, strict=True))
    for name in ("trades", "open_trades"):
        columns[name] = columns[name].astype(np.int64)
    return Outcomes(**columns)


class _Market:
    """What all lanes share, as the compiled functions take it."""

    def __init__(
        self, prices: Prices, signals: Signals, atr_table: Array | None, terms: Terms
    ) -> None:
        bars = aligned((TOP + 1, padded_bars(len(prices))))
        blocks = np.empty((REACH + 1, -(-len(prices) // BLOCK)))
        fill_bars(*columns_of(prices), bars)
        fill_blocks(len(prices), bars, blocks)
        self.arrays = (
            len(prices),
            prices.first,
            bars,
            blocks,
            plain(signals.entry),
            plain(signals.exit),
            fills_of(prices.open, prices.close, terms) if terms.whole_shares else None,
            terms_row(terms),
            rates_row(terms),
            NO_ATR if atr_table is None else plain(atr_table),
        )


def plain(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """The array, contiguous and writeable: one layout means one compiled version."""
    return np.require(array, requirements=["C", "W"])


def columns_of(prices: Prices) -> tuple[Array, Array, Array, Array]:
    """Open, high, low and close as compiled functions take them."""
    columns = (prices.open, prices.high, prices.low, prices.close)
    return tuple(plain(x) for x in columns)  # type: ignore[return-value]


def lane_columns(lanes: Lanes) -> tuple[Any, ...]:
    """Lanes as compiled functions take them."""
    return tuple(
        plain(x)
        for x in (lanes.signal, lanes.atr, lanes.stop, lanes.target, lanes.trail, lanes.max_bars)
    )


@compiled
def _walk_lanes(
    size: int,
    first: int,
    bars: Array,
    blocks: Array,
    entries: Words,
    exits: Words,
    fills: Ints | None,
    terms: Array,
    rates: Ints,
    atr_table: Array,
    signal: Ints,
    atr_row: Ints,
    stop: Array,
    target: Array,
    trail: Array,
    max_bars: Ints,
    out: Array,
    start: int,
) -> None:
    """Write the metrics of every lane into out[:, start + lane]; shares are whole with `fills`."""
    for lane in range(signal.size):
        row = atr_row[lane]
        atr = atr_table[row] if 0 <= row < atr_table.shape[0] else bars[CLOSE]
        if fills is None:  # decided when this is compiled
            walk_lane(
                size, first, bars, blocks, entries, exits, fills, terms, rates, signal[lane], atr,
                stop[lane], target[lane], trail[lane], max_bars[lane], out, start + lane,
            )  # fmt: skip
        else:
            _walk_whole(
                size, first, bars, blocks, entries, exits, fills, terms, rates, signal[lane], atr,
                stop[lane], target[lane], trail[lane], max_bars[lane], out, start + lane,
            )  # fmt: skip


@compiled
def walk_lane(
    size: int,
    first: int,
    bars: Array,
    blocks: Array,
    entries: Words,
    exits: Words,
    fills: None,
    terms: Array,
    rates: Ints,
    row: int,
    atr: Array | None,
    stop: float,
    target: float,
    trail: float,
    max_bars: int,
    out: Array,
    lane: int,
) -> None:
    """Write the metrics of one lane, in fractions of a share, into out[:, lane]."""
    cash = peak = equity = terms[CASH]
    worst, total, squares, downs = 1.0, 0.0, 0.0, 0.0
    trades = wins = exposed = still = first - first  # a literal 0 would be compiled anew
    t = first
    while t < size:
        entry, end, shares, price, left_by = next_leg(
            size, bars, blocks, entries, exits, fills, terms, rates, row, atr,
            stop, target, trail, max_bars, t, cash,
        )  # fmt: skip
        if entry == size:
            break
        before = cash
        if end > entry:
            equity = shares * bars[CLOSE, entry]
            total, squares, downs = added(equity / before - 1.0, total, squares, downs)
            peak, worst = fallen(equity, peak, worst)
            held = held_by_blocks(bars, blocks, entry + 1, end, peak / shares, worst)
            total, squares, downs = total + held[0], squares + held[1], downs + held[2]
            peak, worst = max(peak, shares * held[3]), held[4]
            exposed += end - entry
            before = equity = shares * bars[CLOSE, end - 1]
        if end < size:
            equity = cash_received(shares, price, LIMIT if left_by == BY_TARGET else SLIPPED, terms)
            total, squares, downs = added(equity / before - 1.0, total, squares, downs)
            peak, worst = fallen(equity, peak, worst)
            trades += 1
            wins += equity > cash
            cash = equity
        else:
            still = 1
        t = end
    summarise(
        size - first, equity, total, squares, downs, worst,
        trades, still, wins, exposed, terms, out, lane,
    )  # fmt: skip


@compiled
def _walk_whole(
    size: int,
    first: int,
    bars: Array,
    blocks: Array,
    entries: Words,
    exits: Words,
    fills: Ints,
    terms: Array,
    rates: Ints,
    row: int,
    atr: Array,
    stop: float,
    target: float,
    trail: float,
    max_bars: int,
    out: Array,
    lane: int,
) -> None:
    """As `walk_lane`, with an account in units and a rest of cash beside every position."""
    peak = equity = terms[CASH]
    cash = round(terms[CASH] * UNITS)
    worst, total, squares, downs = 1.0, 0.0, 0.0, 0.0
    trades = wins = exposed = still = first - first  # a literal 0 would be compiled anew
    t = first
    while t < size:
        entry, end, shares, price, left_by = next_leg(
            size, bars, blocks, entries, exits, fills, terms, rates, row, atr,
            stop, target, trail, max_bars, t, float(cash),
        )  # fmt: skip
        if entry == size:
            break
        cost = whole_cost(int(shares), fills[BOUGHT, entry], rates)
        rest = (cash - cost) / UNITS
        for bar in range(entry, end):
            before, equity = equity, rest + shares * bars[CLOSE, bar]
            total, squares, downs = added(equity / before - 1.0, total, squares, downs)
            peak, worst = fallen(equity, peak, worst)
        exposed += end - entry
        still = 1
        if end < size:
            fill = whole_fill(bars[OPEN, end], fills, end, price, left_by == BY_TARGET, rates)
            got = whole_sale(int(shares), fill, cash - cost, rates)
            cash += got - cost
            before, equity = equity, cash / UNITS
            total, squares, downs = added(equity / before - 1.0, total, squares, downs)
            peak, worst = fallen(equity, peak, worst)
            trades, still = trades + 1, 0
            wins += got > cost
        t = end
    summarise(
        size - first, equity, total, squares, downs, worst,
        trades, still, wins, exposed, terms, out, lane,
    )  # fmt: skip


@compiled
def summarise(
    bars: int,
    equity: float,
    total: float,
    squares: float,
    downs: float,
    worst: float,
    trades: int,
    still: int,
    wins: int,
    exposed: int,
    terms: Array,
    out: Array,
    lane: int,
) -> None:
    """Write the metrics of one lane, in the order of `Outcomes`."""
    out[0, lane] = equity
    out[1, lane] = annual_growth(bars, equity, terms)
    out[2, lane], out[3, lane] = ratios(bars, total, squares, downs, worst, terms)
    out[4, lane] = worst - 1.0
    out[5, lane], out[6, lane] = trades, still
    out[7, lane] = wins / trades if trades > 0 else np.nan
    out[8, lane] = exposed / bars if bars > 0 else 0.0
