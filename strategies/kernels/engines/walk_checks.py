"""What every bar-by-bar engine asks of its arguments before it walks."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from strategies.kernels.engines.lanes import BITS, Lanes, Prices, Signals, Terms
from strategies.kernels.runs import Array

RATES = ("slippage", "fee_rate")


def require_sound(
    prices: Prices, signals: Signals, atr_table: Array | None, lanes: Lanes, terms: Terms
) -> None:
    """ValueError, naming the bar, the lane or the field, unless these can be walked together."""
    require_terms(terms)
    require_prices(prices)
    require_lanes(lanes)
    require_fit(len(prices), signals, atr_table, lanes)


def require_one(lanes: Lanes) -> None:
    """ValueError unless there is exactly one lane."""
    if len(lanes) != 1:
        raise ValueError(f"trades are listed for one lane, not for {len(lanes)}; take lanes.part")


def require_terms(terms: Terms) -> None:
    """ValueError for terms that no account can have."""
    for name in RATES:
        rate = getattr(terms, name)
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"{name} {rate} is not a fraction from 0 to below 1")
    if not 0.0 <= terms.commission_per_order < math.inf:
        raise ValueError(f"commission_per_order {terms.commission_per_order} is not an amount")
    for name in ("cash", "periods_per_year"):
        if not 0.0 < getattr(terms, name) < math.inf:
            raise ValueError(f"{name} {getattr(terms, name)} must be above zero and finite")


def require_prices(prices: Prices, *, gaps: bool = False) -> None:
    """ValueError naming the first bar that is not sound; `gaps` allows bars of NaN alone."""
    columns = {name: getattr(prices, name) for name in ("open", "high", "low", "close")}
    bars = len(prices)
    for name, values in columns.items():
        if values.shape != (bars,):
            raise ValueError(f"{name} has {values.shape} bars, close has {bars}")
    if not 0 <= prices.first <= bars:
        raise ValueError(f"first bar {prices.first} is not one of {bars} bars")
    missing = np.isnan(prices.close)
    for name, values in columns.items():
        sound = (values > 0.0) & (values < math.inf)
        if gaps:
            sound |= missing & np.isnan(values)
        if not sound.all():
            bar = int(np.argmin(sound))
            raise ValueError(f"{name} of bar {bar} is {values[bar]}; prices are finite and above 0")


def require_lanes(lanes: Lanes) -> None:
    """ValueError naming the first lane whose numbers mean nothing."""
    size = (len(lanes),)
    for name in ("atr", "stop", "target", "trail", "max_bars"):
        values = getattr(lanes, name)
        if values.shape != size:
            raise ValueError(f"{name} has the shape {values.shape}, signal {size}")
    for name in ("stop", "target", "trail", "max_bars"):
        values = getattr(lanes, name)
        sound = (values >= 0) & (values < math.inf)
        if not sound.all():
            lane = int(np.argmin(sound))
            raise ValueError(f"{name} of lane {lane} is {values[lane]}; it is 0 or a finite number")


def require_fit(bars: int, signals: Signals, atr_table: Array | None, lanes: Lanes) -> None:
    """ValueError unless the rows that lanes name exist and reach over all bars."""
    rules, words = signals.entry.shape
    if signals.exit.shape != signals.entry.shape:
        raise ValueError(f"entry is {signals.entry.shape}, exit {signals.exit.shape}")
    if words * BITS < bars:
        raise ValueError(f"{words} words hold fewer than {bars} bars")
    if not ((lanes.signal >= 0) & (lanes.signal < rules)).all():
        raise ValueError(f"a lane names a signal that is not one of {rules}")
    levels = (lanes.stop > 0.0) | (lanes.target > 0.0) | (lanes.trail > 0.0)
    if not levels.any():
        return
    rows, reach = (0, 0) if atr_table is None else atr_table.shape
    if reach < bars:
        raise ValueError(f"lanes with a stop, target or trail need an ATR of {bars} bars: {reach}")
    named = lanes.atr[levels]
    if not ((named >= 0) & (named < rows)).all():
        raise ValueError(f"a lane with a stop, target or trail names an ATR that is not of {rows}")


def require_shared(
    markets: Mapping[str, Prices],
    signals: Mapping[str, Signals],
    atr_tables: Mapping[str, Array | None],
    lanes: Lanes,
    terms: Terms,
) -> None:
    """ValueError naming the symbol unless these can share one account."""
    require_terms(terms)
    require_lanes(lanes)
    if not markets:
        raise ValueError("an account needs at least one symbol")
    if signals.keys() != markets.keys():
        raise ValueError(f"signals are of {sorted(signals)}, prices of {sorted(markets)}")
    unknown = sorted(atr_tables.keys() - markets.keys())
    if unknown:
        raise ValueError(f"ATR tables are of {unknown}, prices of {sorted(markets)}")
    axes = {(len(prices), prices.first) for prices in markets.values()}
    if len(axes) > 1:
        raise ValueError(f"symbols lie on different time axes (bars, first bar): {sorted(axes)}")
    for symbol in sorted(markets):
        try:
            require_prices(markets[symbol], gaps=True)
            bars = len(markets[symbol])
            require_fit(bars, signals[symbol], atr_tables.get(symbol), lanes)
        except ValueError as exc:
            raise ValueError(f"{symbol}: {exc}") from exc
