"""Each named indicator reads the columns it should; all five columns of these bars differ."""

from __future__ import annotations

import numpy as np
import pytest
import talib
from numpy.testing import assert_allclose

from strategies.indicators import momentum, trend, volatility, volume
from strategies.kernels.dispatch import kernels
from tests.strategies.market import walk

BARS = walk(200, seed=41)
PRICES = (BARS.high, BARS.low, BARS.close)


@pytest.mark.parametrize("name", ["reference", "cpu"])
def test_every_indicator_equals_talib_on_its_own_columns(name):
    backend = kernels(name)
    pairs = [
        (trend.sma(BARS, 20, backend), talib.SMA(BARS.close, 20)),
        (trend.ema(BARS, 20, backend), talib.EMA(BARS.close, 20)),
        (trend.adx(BARS, 14, backend)[0], talib.ADX(*PRICES, 14)),
        (momentum.rsi(BARS, 14, backend), talib.RSI(BARS.close, 14)),
        (momentum.macd(BARS, 12, 26, 9, backend), talib.MACD(BARS.close, 12, 26, 9)),
        (volatility.true_range(BARS, backend), talib.TRANGE(*PRICES)),
        (volatility.atr(BARS, 14, backend), talib.ATR(*PRICES, 14)),
        (volatility.bollinger(BARS, 20, 2.0, backend), talib.BBANDS(BARS.close, 20, 2.0, 2.0)),
        (volume.obv(BARS, backend), talib.OBV(BARS.close, BARS.volume)),
        (momentum.stochastic(BARS, 14, 3, backend), talib.STOCHF(*PRICES, 14, 3)),
        (volatility.rolling_max(BARS, 20, backend), talib.MAX(BARS.high, 20)),
        (volatility.rolling_min(BARS, 20, backend), talib.MIN(BARS.low, 20)),
    ]
    for ours, theirs in pairs:
        assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_realised_volatility_reads_the_close():
    ours = volatility.realised_volatility(BARS, 20, 252.0, kernels("reference"))
    last = np.std(np.diff(np.log(BARS.close[-21:])), ddof=1) * np.sqrt(252.0)
    assert ours[-1] == pytest.approx(last)


def test_vwap_weighs_the_typical_price_by_the_volume():
    ours = volume.vwap(BARS, 20, kernels("reference"))
    typical = (BARS.high + BARS.low + BARS.close) / 3.0
    assert ours[-1] == pytest.approx(np.average(typical[-20:], weights=BARS.volume[-20:]))
    assert np.isnan(ours[:19]).all()
