"""The reference against TA-Lib, published values, `ta` after its warm-up, and its own laws."""

from __future__ import annotations

import numpy as np
import pytest
import ta.momentum
import ta.trend
import ta.volatility
import ta.volume
import talib
from numpy.testing import assert_allclose, assert_array_equal

from strategies.kernels import reference
from tests.strategies.market import adversarial, closes, reference_bars, walk, with_holes

REAL = reference_bars()
MARKETS = [REAL, walk(600, seed=11), walk(400, seed=12, tick=0.5), walk(90, seed=13, scale=1e6)]


def same(ours, theirs, scale=1.0):
    """Equal to 1e-9, with NaN on exactly the same bars."""
    assert_array_equal(np.isnan(ours), np.isnan(theirs))
    assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * scale)


@pytest.mark.parametrize("bars", MARKETS)
@pytest.mark.parametrize("window", [2, 14, 50])
def test_averages_equal_talib(bars, window):
    same(reference.sma(bars.close, window), talib.SMA(bars.close, window))
    same(reference.ema(bars.close, window), talib.EMA(bars.close, window))


@pytest.mark.parametrize("bars", MARKETS)
@pytest.mark.parametrize("window", [2, 14, 30])
def test_rsi_equals_talib(bars, window):
    same(reference.rsi(bars.close, window), talib.RSI(bars.close, window))


@pytest.mark.parametrize("bars", MARKETS)
@pytest.mark.parametrize("windows", [(12, 26, 9), (3, 10, 16), (5, 35, 2)])
def test_macd_equals_talib(bars, windows):
    scale = float(bars.close.max())
    for ours, theirs in zip(
        reference.macd(bars.close, *windows), talib.MACD(bars.close, *windows), strict=True
    ):
        same(ours, theirs, scale)


@pytest.mark.parametrize("bars", MARKETS)
@pytest.mark.parametrize("window", [1, 2, 14])
def test_true_range_and_atr_equal_talib(bars, window):
    prices = (bars.high, bars.low, bars.close)
    same(reference.true_range(*prices), talib.TRANGE(*prices))
    same(reference.atr(*prices, window), talib.ATR(*prices, window))


@pytest.mark.parametrize("bars", MARKETS)
@pytest.mark.parametrize("window", [2, 14])
def test_directional_movement_equals_talib(bars, window):
    prices = (bars.high, bars.low, bars.close)
    index, plus, minus = reference.adx(*prices, window)
    same(index, talib.ADX(*prices, window))
    same(plus, talib.PLUS_DI(*prices, window))
    same(minus, talib.MINUS_DI(*prices, window))


@pytest.mark.parametrize("bars", MARKETS)
@pytest.mark.parametrize(("window", "deviations"), [(2, 1.0), (20, 2.0), (20, 2.5)])
def test_bollinger_equals_talib(bars, window, deviations):
    ours = reference.bollinger(bars.close, window, deviations)
    theirs = talib.BBANDS(bars.close, window, deviations, deviations)
    scale = float(bars.close.max()) * 1e2  # TA-Lib takes the difference of two large sums
    for mine, its in zip(ours, theirs, strict=True):
        same(mine, its, scale)


@pytest.mark.parametrize("bars", MARKETS)
def test_obv_equals_talib(bars):
    same(reference.obv(bars.close, bars.volume), talib.OBV(bars.close, bars.volume))


@pytest.mark.parametrize("bars", MARKETS)
@pytest.mark.parametrize(("window", "smooth"), [(2, 2), (14, 3), (5, 20)])
def test_stochastic_equals_talib(bars, window, smooth):
    prices = (bars.high, bars.low, bars.close)
    ours = reference.stochastic(*prices, window, smooth)
    for mine, its in zip(ours, talib.STOCHF(*prices, window, smooth), strict=True):
        same(mine, its)


@pytest.mark.parametrize("bars", MARKETS)
@pytest.mark.parametrize("window", [2, 20])
def test_rolling_extremes_equal_talib(bars, window):
    assert_array_equal(reference.rolling_max(bars.high, window), talib.MAX(bars.high, window))
    assert_array_equal(reference.rolling_min(bars.low, window), talib.MIN(bars.low, window))


@pytest.mark.parametrize("bars", MARKETS)
@pytest.mark.parametrize("window", [1, 7, 14])
def test_vwap_equals_ta(bars, window):
    import pandas as pd

    columns = [pd.Series(x) for x in (bars.high, bars.low, bars.close, bars.volume)]
    theirs = ta.volume.VolumeWeightedAveragePrice(*columns, window=window)
    ours = reference.vwap(bars.high, bars.low, bars.close, bars.volume, window)
    same(ours, theirs.volume_weighted_average_price().to_numpy())


def test_published_values_of_the_reference_bars():
    prices = (REAL.high, REAL.low, REAL.close)
    rsi = reference.rsi(REAL.close, 14)
    assert_allclose(rsi[[14, 15, 16, 251]], [49.14, 52.32, 46.07, 49.63], atol=0.01)
    assert_allclose(rsi[[14, 251]], [49.1473, 49.6321], atol=1e-4)
    assert_allclose(reference.true_range(*prices)[[1, 251]], [3.535, 2.88], atol=1e-9)
    atr = reference.atr(*prices, 14)
    assert_allclose(atr[[14, 15, 16, 251]], [3.578, 3.4876, 3.55, 3.26081], atol=0.01)
    assert_allclose(atr[[14, 15, 251]], [3.57821, 3.48763, 3.26081], atol=1e-5)
    line, signal, histogram = reference.macd(REAL.close, 12, 26, 9)
    assert_allclose([line[33], signal[33]], [-1.97383, -2.70711], atol=1e-5)
    assert histogram[33] == line[33] - signal[33]
    bands = [band[19] for band in reference.bollinger(REAL.close, 20, 2.0)]
    assert_allclose(bands, [98.0734, 92.8910, 87.7086], atol=1e-4)
    index, _, _ = reference.adx(*prices, 14)
    assert_allclose([index[27], index[251]], [22.9993, 15.5261], atol=1e-4)
    assert_allclose(reference.sma(REAL.close, 2)[1], 93.15, atol=0.01)
    assert_allclose(reference.ema(REAL.close, 10)[9], 93.22, atol=0.01)


def test_wilder_rsi_of_the_textbook_series():
    text = (
        "44.34 44.09 44.15 43.61 44.33 44.83 45.10 45.42 45.84 46.08 45.89 "
        "46.03 45.61 46.28 46.28 46.00 46.03 46.41 46.22 45.64 46.21 46.25"
    )
    close = np.array(text.split(), dtype=np.float64)
    expected = [70.46413502109705, 66.24961855355507, 66.48094183471265, 69.34685316290866]
    expected += [66.29471265892624, 57.91502067008556, 62.88071830996241, 63.208788718287764]
    rsi = reference.rsi(close, 14)
    assert np.isnan(rsi[:14]).all()
    assert_allclose(rsi[14:], expected, rtol=1e-12)


@pytest.mark.parametrize("bars", [walk(900, seed=21), walk(900, seed=22)])
def test_ta_agrees_once_its_warm_up_is_forgotten(bars):
    import pandas as pd

    high, low, close = (pd.Series(x) for x in (bars.high, bars.low, bars.close))
    late = slice(400, None)
    pairs = [
        (reference.rsi(bars.close, 14), ta.momentum.RSIIndicator(close, 14).rsi()),
        (reference.ema(bars.close, 20), ta.trend.EMAIndicator(close, 20).ema_indicator()),
        (reference.macd(bars.close, 12, 26, 9)[1], ta.trend.MACD(close).macd_signal()),
        (
            reference.atr(bars.high, bars.low, bars.close, 14),
            ta.volatility.AverageTrueRange(high, low, close, 14).average_true_range(),
        ),
        (
            reference.bollinger(bars.close, 20)[0],
            ta.volatility.BollingerBands(close, 20).bollinger_hband(),
        ),
    ]
    for ours, theirs in pairs:
        assert_allclose(ours[late], theirs.to_numpy()[late], rtol=1e-9, atol=1e-9)


def test_realised_volatility_is_the_sample_deviation_of_log_returns():
    close = walk(80, seed=4).close
    ours = reference.realised_volatility(close, 20, 252.0)
    returns = np.diff(np.log(close))
    theirs = [np.std(returns[t - 20 : t], ddof=1) * np.sqrt(252.0) for t in range(20, 80)]
    assert np.isnan(ours[:20]).all()
    assert_allclose(ours[20:], theirs, rtol=1e-12)


def test_realised_volatility_of_two_returns_by_hand():
    ours = reference.realised_volatility(np.array([1.0, np.e, 1.0]), 2, 9.0)
    assert_allclose(ours[2], np.sqrt(2.0) * 3.0)  # returns +1 and -1: deviation sqrt(2), 9 a year


def test_rsi_is_50_while_nothing_has_moved_and_runs_to_its_ends_afterwards():
    flat = reference.rsi(np.full(40, 0.1), 14)
    assert np.isnan(flat[:14]).all()
    assert (flat[14:] == 50.0).all()
    assert (reference.rsi(np.arange(1.0, 41.0), 14)[14:] == 100.0).all()
    assert (reference.rsi(np.arange(41.0, 1.0, -1.0), 14)[14:] == 0.0).all()


def test_a_constant_series_has_exact_averages_and_no_width():
    flat = closes(np.full(60, 0.1))  # 0.1 summed ten times is not 1.0
    for average in (reference.sma(flat.close, 10), reference.ema(flat.close, 10)):
        assert (average[9:] == 0.1).all()
    upper, middle, lower = reference.bollinger(flat.close, 10)
    assert (upper[9:] == middle[9:]).all()
    assert (lower[9:] == 0.1).all()
    assert (reference.atr(flat.high, flat.low, flat.close, 14)[14:] == 0.0).all()
    index, plus, minus = reference.adx(flat.high, flat.low, flat.close, 14)
    assert (index[27:] == 0.0).all()
    assert (plus[14:] == 0.0).all()
    assert (minus[14:] == 0.0).all()


def test_adx_stays_where_it_was_while_the_market_stands_still_after_a_trend():
    close = np.concatenate((np.arange(100.0, 160.0), np.full(40, 159.0)))
    bars = closes(close)
    index, plus, minus = reference.adx(bars.high, bars.low, bars.close, 14)
    assert index[59] == pytest.approx(100.0)
    assert index[99] == pytest.approx(100.0)  # the direction of the trend fades no faster than it
    assert minus[99] == 0.0 < plus[99]


def test_one_missing_value_costs_one_window_and_no_more():
    close = np.arange(1.0, 101.0)
    close[40] = np.nan
    sma = reference.sma(close, 10)
    assert np.isnan(sma[40:50]).all()
    assert sma[50] == pytest.approx(close[41:51].mean())
    assert_array_equal(reference.ema(close, 10)[41:], reference.ema(close[41:], 10))
    assert_array_equal(reference.rsi(close, 10)[41:], reference.rsi(close[41:], 10))
    for part, alone in zip(
        reference.macd(close, 3, 6, 4), reference.macd(close[41:], 3, 6, 4), strict=True
    ):
        assert_array_equal(part[41:], alone)
    volatility = reference.realised_volatility(close, 5, 252.0)
    assert_array_equal(np.flatnonzero(np.isnan(volatility)), [0, 1, 2, 3, 4, *range(40, 46)])


def test_a_hole_in_any_column_starts_the_range_kernels_anew():
    bars = walk(120, seed=8)
    for column in ("high", "low", "close"):
        holed = with_holes(bars, (column, 50, np.inf))
        prices = [getattr(holed, name) for name in ("high", "low", "close")]
        late = [x[51:] for x in prices]
        assert_array_equal(reference.atr(*prices, 14)[51:], reference.atr(*late, 14))
        assert_array_equal(reference.adx(*prices, 14)[0][51:], reference.adx(*late, 14)[0])
        assert np.isnan(reference.true_range(*prices)[50:52]).all()
    holed = with_holes(bars, ("volume", 50, np.nan))
    obv = reference.obv(holed.close, holed.volume)
    assert np.isnan(obv[50])
    assert obv[51] == holed.volume[51]


def test_a_huge_print_leaves_no_drift():
    close = np.concatenate((np.ones(50), [1e16], np.ones(100)))
    assert reference.sma(close, 10)[-1] == 1.0
    upper, _, lower = reference.bollinger(close, 10)
    assert upper[-1] == lower[-1] == 1.0


@pytest.mark.parametrize("bar", range(12))
def test_a_huge_print_early_on_is_no_level_for_later_windows(bar):
    close = np.full(80, 0.1)
    close[bar] = 1e16
    late = slice(bar + 10, None)
    assert (reference.sma(close, 10)[late] == 0.1).all()
    upper, _, lower = reference.bollinger(close, 10)
    assert (upper[late] == lower[late]).all()
    volume = np.full(80, 7.0)
    typical = (0.1 + 0.1 + 0.1) / 3.0
    assert (reference.vwap(close, close, close, volume, 10)[late] == typical).all()


def test_obv_ignores_a_tie():
    obv = reference.obv(np.array([2.0, 3.0, 3.0, 1.0]), np.array([10.0, 5.0, 7.0, 4.0]))
    assert_array_equal(obv, [10.0, 15.0, 15.0, 11.0])


@pytest.mark.parametrize("size", [0, 1, 13])
def test_input_shorter_than_the_window_is_all_missing_and_as_long(size):
    bars = walk(size)
    prices = (bars.high, bars.low, bars.close)
    outputs = [
        reference.sma(bars.close, 14),
        reference.ema(bars.close, 14),
        reference.rsi(bars.close, 14),
        *reference.macd(bars.close, 3, 6, 9),
        reference.atr(*prices, 14),
        *reference.bollinger(bars.close, 14),
        *reference.adx(*prices, 14),
        reference.realised_volatility(bars.close, 14, 252.0),
    ]
    for out in outputs:
        assert out.shape == (size,)
        assert np.isnan(out).all()


def test_bad_arguments_are_refused_by_name_and_value():
    x = np.ones(5)
    with pytest.raises(ValueError, match="window 0 is below 1"):
        reference.sma(x, 0)
    with pytest.raises(ValueError, match="window -3 is below 1"):
        reference.adx(x, x, x, -3)
    with pytest.raises(ValueError, match="window 1 is below 2"):
        reference.realised_volatility(x, 1, 252.0)
    with pytest.raises(ValueError, match=r"periods per year 0\.0 must be above zero"):
        reference.realised_volatility(x, 2, 0.0)
    with pytest.raises(ValueError, match="fast window 26 must be shorter than slow window 12"):
        reference.macd(x, 26, 12, 9)
    with pytest.raises(ValueError, match="signal window 0 is below 1"):
        reference.macd(x, 12, 26, 0)
    with pytest.raises(ValueError, match="equally long"):
        reference.atr(x, x, np.ones(4), 2)


@pytest.mark.parametrize("name", adversarial())
def test_every_value_stays_in_its_range(name):
    bars = adversarial()[name]
    bounded = [reference.rsi(bars.close, 14), *reference.adx(bars.high, bars.low, bars.close, 14)]
    for out in bounded:
        valid = out[np.isfinite(out)]
        assert ((valid >= 0.0) & (valid <= 100.0 + 1e-9)).all()
    swing = reference.atr(bars.high, bars.low, bars.close, 14)
    assert (swing[np.isfinite(swing)] >= 0.0).all()


def test_stochastic_is_50_while_nothing_moves_and_runs_to_its_ends_afterwards():
    flat = np.full(30, 0.1)
    fast, slow = reference.stochastic(flat, flat, flat, 5, 3)
    assert np.isnan(fast[:6]).all()
    assert (fast[6:] == 50.0).all()
    assert (slow[6:] == 50.0).all()
    rising = np.arange(1.0, 31.0)
    assert (reference.stochastic(rising, rising, rising, 5, 3)[0][6:] == 100.0).all()
    assert (reference.stochastic(-rising, -rising, -rising, 5, 3)[1][6:] == 0.0).all()


def test_vwap_of_equal_prices_is_that_price_and_there_is_none_without_volume():
    flat, volume = np.full(30, 0.1), np.arange(30.0)
    assert (reference.vwap(flat, flat, flat, volume, 4)[3:] == (0.1 + 0.1 + 0.1) / 3.0).all()
    volume[10:16] = 0.0
    nothing = np.isnan(reference.vwap(flat, flat, flat, volume, 4))
    assert_array_equal(np.flatnonzero(nothing), [0, 1, 2, 13, 14, 15])


def test_vwap_by_hand():
    high, low, close = (np.array(x) for x in ([4.0, 7.0], [2.0, 4.0], [3.0, 4.0]))
    ours = reference.vwap(high, low, close, np.array([300.0, 100.0]), 2)
    assert ours[1] == 3.5  # (3 × 300 + 5 × 100) / 400


def test_macd_of_a_constant_is_exactly_nothing():
    for part in reference.macd(np.full(60, 0.1), 3, 6, 4):
        assert (part[8:] == 0.0).all()
    volatility = reference.realised_volatility(np.full(60, 0.1), 5, 252.0)
    assert (volatility[5:] == 0.0).all()


def test_a_window_of_one_bar_is_the_bar():
    bars = walk(50, seed=14)
    flat = np.zeros(50)
    for average in (reference.sma, reference.ema, reference.rolling_max):
        assert_array_equal(average(bars.close, 1), bars.close)
    upper, middle, lower = reference.bollinger(bars.close, 1)
    for band in (upper, middle, lower):
        assert_array_equal(band, bars.close)
    assert_array_equal(reference.macd(bars.close, 1, 2, 1)[2][1:], flat[1:])
    ranges = reference.true_range(bars.high, bars.low, bars.close)
    assert_array_equal(reference.atr(bars.high, bars.low, bars.close, 1), ranges)
    assert set(reference.rsi(bars.close, 1)[1:]) == {0.0, 100.0}


@pytest.mark.parametrize("window", [2, 20, 300])
@pytest.mark.parametrize("level", [1.0, 1e4, 1e8])
def test_a_small_deviation_on_a_high_level_keeps_its_digits(window, level):
    x = level + np.random.default_rng(6).normal(0.0, 1e-3, 700)
    ours = reference.bollinger(x, window, 1.0)
    exact = [np.std(x[t + 1 - window : t + 1].astype(np.longdouble)) for t in range(299, 700)]
    half = (ours[0] - ours[2])[299:] / 2.0
    assert_allclose(
        half, np.array(exact, dtype=np.float64), rtol=1e-10, atol=2.0 * np.spacing(level)
    )


@pytest.mark.parametrize("size", [0, 1, 2, 13, 14, 15, 16, 17, 60])
def test_window_14_of_any_length_has_a_value_from_its_warm_up_on(size):
    bars = walk(size, seed=15)
    prices = (bars.high, bars.low, bars.close)
    first = {
        13: (reference.sma(bars.close, 14), reference.vwap(*prices, bars.volume, 14)),
        14: (reference.rsi(bars.close, 14), reference.atr(*prices, 14)),
        15: reference.stochastic(*prices, 14, 3),
        27: (reference.adx(*prices, 14)[0],),
    }
    for bar, outputs in first.items():
        for out in outputs:
            assert_array_equal(np.isnan(out), np.arange(size) < bar)
