"""Markets that differ from a real one in a single way: no future, a false one, mirrored, noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime

import numpy as np
from numpy.typing import NDArray

from trader.core.errors import DataIntegrityError
from trader.core.market import BarSeries, Timeframe, from_ns, session_of, to_ns
from trader.core.ports import MarketData
from trader.data.lookup import complete_bars

POISON = 3  # a false future moves this many times as far, the other way

Change = Callable[[BarSeries], BarSeries]


class ChangedData:
    """`MarketData` whose series are those of another market, each changed as a whole.

    change  a series -> what stands in its place; asked once for each series
    """

    def __init__(self, inner: MarketData, change: Change) -> None:
        self._inner, self._change = inner, change
        self._changed: dict[tuple[str, Timeframe], BarSeries] = {}

    @property
    def name(self) -> str:
        """That of the market behind it: an agent must not see that it is being audited."""
        return self._inner.name

    def symbols(self, timeframe: Timeframe) -> tuple[str, ...]:
        """Those of the market behind it."""
        return self._inner.symbols(timeframe)

    def bars(self, symbol: str, timeframe: Timeframe, until: datetime | None = None) -> BarSeries:
        """Changed bars that were complete at `until`; DataIntegrityError where there are none."""
        key = symbol, timeframe
        if key not in self._changed:
            self._changed[key] = self._change(self._inner.bars(symbol, timeframe))
        if not len(self._changed[key]):
            raise DataIntegrityError(f"{symbol} has no {timeframe} bars that early")
        return complete_bars(self._changed[key], until)


def without_future(as_of: datetime) -> Change:
    """Keep the bars complete at `as_of` and nothing else, in arrays that never held a later bar.

    The cut is made here and not by `BarSeries.until`, which is what it is there to test.
    """

    def cut(bars: BarSeries) -> BarSeries:
        kept = np.flatnonzero(
            bars.available_at <= to_ns(as_of)
        )  # an index copies, a slice does not
        newest = session_of(from_ns(bars.timestamp[kept[-1]])) if kept.size else date.min
        return replace(
            bars,
            timestamp=bars.timestamp[kept],
            available_at=bars.available_at[kept],
            open=bars.open[kept],
            high=bars.high[kept],
            low=bars.low[kept],
            close=bars.close[kept],
            volume=bars.volume[kept],
            splits=tuple(split for split in bars.splits if split[0] <= newest),
        )

    return cut


def poisoned_future(as_of: datetime) -> Change:
    """Put a false future behind `as_of`: every rise from there a fall three times as far, and back.

    So whoever compares anything later with what is known finds the opposite. Volume goes backwards.
    """

    def poison(bars: BarSeries) -> BarSeries:
        known = int(np.count_nonzero(bars.available_at <= to_ns(as_of)))
        if not known:
            return bars
        false = mirrored_bars(bars, pivot=float(bars.close[known - 1]), power=POISON)

        def joined(name: str) -> NDArray[np.float64]:
            return np.concatenate((getattr(bars, name)[:known], getattr(false, name)[known:]))

        return replace(
            bars,
            open=joined("open"),
            high=joined("high"),
            low=joined("low"),
            close=joined("close"),
            volume=np.concatenate((bars.volume[:known], bars.volume[known:][::-1])),
        )

    return poison


def mirrored_bars(bars: BarSeries, pivot: float | None = None, power: int = 1) -> BarSeries:
    """Every rise a fall: price p becomes pivot × (pivot / p)^power, the mirror of its logarithm.

    pivot  USD, the price that stays where it is; None: the first close
    """
    middle = float(bars.close[0] if pivot is None else pivot)

    def turned(prices: NDArray[np.float64]) -> NDArray[np.float64]:
        return middle * (middle / prices) ** power

    return replace(
        bars,
        open=turned(bars.open),
        high=turned(bars.low),
        low=turned(bars.high),
        close=turned(bars.close),
        splits=tuple((day, 1.0 / ratio) for day, ratio in bars.splits),
    )


def white_noise_bars(seed: int) -> Change:
    """Put bars without any information in the place of real ones; the same seed, the same bars.

    Log returns are independent, normal, of mean zero and of the real returns' deviation. A bar
    opens where the last one closed. Volume is the real one, shuffled.
    """

    def noise(bars: BarSeries) -> BarSeries:
        real = np.diff(np.log(bars.close))
        deviation = float(real.std()) if real.size else 0.0
        draw = _normal(seed, 3 * len(bars)).reshape(3, len(bars)) * deviation
        draw[0, 0] = 0.0
        close = bars.close[0] * np.exp(np.cumsum(draw[0]))
        opened = np.concatenate((close[:1], close[:-1]))
        reach = np.exp(0.5 * np.abs(draw[1:]))  # how far a bar goes beyond its open and close
        return replace(
            bars,
            open=opened,
            high=np.maximum(opened, close) * reach[0],
            low=np.minimum(opened, close) / reach[1],
            close=close,
            volume=bars.volume[shuffle(seed, len(bars))],
            splits=(),
        )

    return noise


def shuffle(seed: int, count: int) -> NDArray[np.int64]:
    """[count] a permutation; the same on every machine."""
    return np.argsort(_words(seed, count), kind="stable")


def _normal(seed: int, count: int) -> NDArray[np.float64]:
    """[count] nearly normal, mean 0, variance 1: the sum of twelve 16-bit uniforms (Irwin-Hall)."""
    dots = _words(seed, 3 * count).astype("<u8").view("<u2").reshape(count, 12)
    centred: NDArray[np.float64] = (dots.sum(axis=1, dtype=np.int64) - 6 * 65_535) / 65_536
    return centred


def _words(seed: int, count: int) -> NDArray[np.uint64]:
    """[count] raw words of PCG64, which NumPy promises never to change."""
    return np.asarray(np.random.PCG64(np.random.SeedSequence([seed])).random_raw(count))
