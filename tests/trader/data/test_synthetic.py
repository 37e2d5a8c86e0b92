"""The made-up market: the same everywhere, sound, and shaped like a real one."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from trader.core.clock import new_york
from trader.core.errors import DataIntegrityError
from trader.core.market import BarSeries, Timeframe
from trader.data.integrity import inspect
from trader.data.sample import SampleData
from trader.data.synthetic import SyntheticData

SYMBOLS = ("SYNA", "SYNB", "SYNC", "SYND", "SYNE", "SYNF")
FROZEN = {
    ("SYNA", Timeframe.DAY): "176a93ab9dead9a9c48d29195bb47b0bc608700ba884d1e6876a05701f50816c",
    ("SYNF", Timeframe.HOUR): "b65037fb6502dd973012ad63fab502d65fdb9d401037951307dce444a8d49ebb",
}


@pytest.fixture(scope="module")
def market() -> SyntheticData:
    return SyntheticData(new_york(), seed=1)


def returns(series: BarSeries) -> np.ndarray:
    return series.close[1:] / series.close[:-1] - 1.0


def kurtosis(values: np.ndarray) -> float:
    return float(((values - values.mean()) ** 4).mean() / values.var() ** 2)


def memory(values: np.ndarray, lag: int) -> float:
    return float(np.corrcoef(values[:-lag], values[lag:])[0, 1])


@pytest.mark.parametrize("key", FROZEN)
def test_a_seed_gives_these_very_bits(market, key):
    assert market.bars(*key).sha256 == FROZEN[key]


def test_the_order_of_asking_changes_nothing(market, calendar):
    again = SyntheticData(calendar, seed=1)
    for symbol in reversed(SYMBOLS):
        for timeframe in Timeframe:
            expected = market.bars(symbol, timeframe).sha256
            assert again.bars(symbol, timeframe).sha256 == expected


def test_another_seed_or_symbol_is_another_path(market, calendar):
    other = SyntheticData(calendar, seed=2)
    paths = [market.bars(symbol, Timeframe.DAY).sha256 for symbol in SYMBOLS]
    paths += [other.bars(symbol, Timeframe.DAY).sha256 for symbol in SYMBOLS]
    assert len(set(paths)) == 12


def test_the_market_is_labelled(market):
    assert market.name == "synthetic"
    assert market.symbols(Timeframe.DAY) == market.symbols(Timeframe.HOUR) == SYMBOLS
    series = market.bars("syna", Timeframe.DAY)
    assert (series.source, series.adjustment) == ("synthetic", "none (synthetic)")
    with pytest.raises(
        DataIntegrityError, match="synthetic has no 1Day bars of 'AAPL', only of: SYNA"
    ):
        market.bars("AAPL", Timeframe.DAY)


def test_every_session_from_2015_has_its_bars(market):
    daily, hourly = market.bars("SYNC", Timeframe.DAY), market.bars("SYNC", Timeframe.HOUR)
    assert len(daily) == 2914
    assert daily.bar(0).timestamp == datetime(2015, 1, 2, 14, 30, tzinfo=UTC)
    assert daily.bar(-1).available_at == datetime(2026, 8, 5, 20, tzinfo=UTC)
    assert hourly.bar(0).timestamp == daily.bar(0).timestamp
    assert hourly.bar(-1).available_at == daily.bar(-1).available_at


@pytest.mark.parametrize("seed", [0, 1, 2, 2**40])
def test_bars_are_sound_whatever_the_seed(calendar, seed):
    market = SyntheticData(calendar, seed=seed)
    for symbol in SYMBOLS:
        for timeframe in Timeframe:
            series = market.bars(symbol, timeframe)
            assert inspect(series, calendar) == ()
            assert series.low.min() >= 1.0
            cents = series.close * 100.0
            assert np.abs(cents - np.rint(cents)).max() < 1e-6


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_hourly_bars_add_up_to_the_daily_bar(market, symbol):
    daily, hourly = market.bars(symbol, Timeframe.DAY), market.bars(symbol, Timeframe.HOUR)
    first = np.flatnonzero(np.isin(hourly.timestamp, daily.timestamp))
    last = np.flatnonzero(np.isin(hourly.available_at, daily.available_at))
    assert first.size == last.size == len(daily)
    assert (hourly.open[first] == daily.open).all()
    assert (hourly.close[last] == daily.close).all()
    assert (np.maximum.reduceat(hourly.high, first) == daily.high).all()
    assert (np.minimum.reduceat(hourly.low, first) == daily.low).all()
    assert (np.add.reduceat(hourly.volume, first) == daily.volume).all()


def test_returns_are_shaped_like_those_of_real_equities(calendar, market):
    sample = SampleData(calendar)
    real = [returns(sample.bars(symbol, Timeframe.DAY)) for symbol in ("AAPL", "NVDA")]
    made_up = [returns(market.bars(symbol, Timeframe.DAY)) for symbol in SYMBOLS]
    for values in (*real, *made_up):
        assert 0.015 < values.std() < 0.032
        assert kurtosis(values) > 4.0
        assert abs(memory(values, 1)) < 0.12
    for values in (real, made_up):
        assert np.mean([memory(np.abs(one), 1) for one in values]) > 0.1
        assert np.mean([memory(np.abs(one), 10) for one in values]) > 0.05


def test_nights_jump_and_busy_days_trade_more(market):
    for symbol in SYMBOLS:
        series = market.bars(symbol, Timeframe.DAY)
        gap = series.open[1:] / series.close[:-1] - 1.0
        assert 0.25 < gap.var() / returns(series).var() < 0.6
        assert np.corrcoef(np.log(series.volume[1:]), np.abs(returns(series)))[0, 1] > 0.25
        assert (np.abs(gap) > 0.04).sum() > 5


def test_symbols_share_a_market(market):
    made_up = np.corrcoef([returns(market.bars(symbol, Timeframe.DAY)) for symbol in SYMBOLS])
    apart = made_up[np.triu_indices(6, 1)]
    assert apart.min() > 0.1
    assert apart.max() < 0.8


def test_until_hides_bars_not_yet_complete(market):
    close = datetime(2015, 1, 2, 21, tzinfo=UTC)
    assert len(market.bars("SYNA", Timeframe.DAY, until=close)) == 1
    assert len(market.bars("SYNA", Timeframe.HOUR, until=close.replace(hour=16))) == 1
    with pytest.raises(DataIntegrityError, match="SYNA has no 1Day bars that were complete"):
        market.bars("SYNA", Timeframe.DAY, until=close.replace(hour=20))
