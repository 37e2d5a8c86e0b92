"""Every indicator of `ta`: its warm-up is missing, the rest is what `ta` says, none looks ahead."""

from __future__ import annotations

import importlib
import inspect

import numpy as np
import pytest
import ta.utils
from numpy.testing import assert_allclose, assert_array_equal

from strategies.indicators.library import REFUSED, library_indicator, list_library
from strategies.kernels.dispatch import kernels
from tests.strategies.market import closes, walk, with_holes
from trader.core.errors import UsageError

BARS = walk(420, seed=51)
NEEDED = {"ta.trend.SMAIndicator": {"window": 20}}
MODULES = ("momentum", "others", "trend", "volatility", "volume")
# Values that are 0 because that is what they mean: flags, and the first bar of a cumulative sum.
TRUE_ZEROS = ("indicator", "aroon", "cumulative_return")
# First bar on which every window of the default parameters is full.
FIRST_BARS = {
    "momentum": {"AwesomeOscillatorIndicator": 33, "KAMAIndicator": 10, "ROCIndicator": 12}
    | {"PercentagePriceOscillator": 33, "PercentageVolumeOscillator": 33, "RSIIndicator": 14}
    | {"StochRSIIndicator": 31, "StochasticOscillator": 15, "TSIIndicator": 37}
    | {"UltimateOscillator": 28, "WilliamsRIndicator": 13},
    "others": {"CumulativeReturnIndicator": 0, "DailyLogReturnIndicator": 1}
    | {"DailyReturnIndicator": 1},
    "trend": {"ADXIndicator": 27, "AroonIndicator": 25, "CCIIndicator": 19, "DPOIndicator": 19}
    | {"EMAIndicator": 13, "IchimokuIndicator": 51, "MACD": 33, "MassIndex": 40}
    | {"PSARIndicator": 2, "SMAIndicator": 19, "STCIndicator": 71, "TRIXIndicator": 43}
    | {"VortexIndicator": 14, "WMAIndicator": 8},
    "volatility": {"AverageTrueRange": 14, "BollingerBands": 19, "DonchianChannel": 19}
    | {"KeltnerChannel": 19, "UlcerIndex": 26},
    "volume": {"AccDistIndexIndicator": 0, "ChaikinMoneyFlowIndicator": 19, "MFIIndicator": 14}
    | {"EaseOfMovementIndicator": 14, "ForceIndexIndicator": 13, "OnBalanceVolumeIndicator": 0}
    | {"NegativeVolumeIndexIndicator": 0, "VolumePriceTrendIndicator": 1}
    | {"VolumeWeightedAveragePrice": 13},
}


def call(name, bars=BARS, **parameters):
    return library_indicator(name, bars, **(NEEDED.get(name, {}) | parameters))


def raw(name, bars):
    """The outputs of `ta` itself, on a fresh frame."""
    import pandas as pd

    module, _, short = name.rpartition(".")
    indicator = getattr(importlib.import_module(module), short)
    wanted = inspect.signature(indicator).parameters
    columns = {
        key: pd.Series(getattr(bars, key).copy())
        for key in ("high", "low", "close", "volume")
        if key in wanted
    }
    made = indicator(**columns, **NEEDED.get(name, {}))
    return {
        method: getattr(made, method)().to_numpy()
        for method, _ in inspect.getmembers(indicator, inspect.isfunction)
        if not method.startswith("_")
    }


def test_every_indicator_of_ta_is_either_offered_or_refused_with_a_reason():
    found = set()
    for part in MODULES:
        module = importlib.import_module(f"ta.{part}")
        for name, kind in inspect.getmembers(module, inspect.isclass):
            if issubclass(kind, ta.utils.IndicatorMixin) and kind.__module__ == module.__name__:
                found.add(f"ta.{part}.{name}")
    assert found == set(list_library()) | set(REFUSED)
    assert len(list_library()) == 42


@pytest.mark.parametrize("name", list_library())
def test_after_the_warm_up_the_values_are_those_of_ta(name):
    ours, theirs = call(name), raw(name, BARS)
    assert ours.keys() == theirs.keys()
    for method, value in ours.items():
        late = slice(280, None)
        finite = np.where(np.isfinite(theirs[method]), theirs[method], np.nan)
        assert_array_equal(value[late], finite[late], err_msg=method)
        valid = np.isfinite(value)
        assert_array_equal(value[valid], theirs[method][valid], err_msg=method)


@pytest.mark.parametrize("name", list_library())
def test_the_first_value_comes_on_the_first_bar_with_full_windows(name):
    _, module, short = name.split(".")
    firsts = [int(np.flatnonzero(np.isfinite(value))[0]) for value in call(name).values()]
    assert min(firsts) == FIRST_BARS[module][short]


@pytest.mark.parametrize("name", list_library())
def test_no_warm_up_is_filled_with_zeros(name):
    for method, value in call(name).items():
        first = int(np.flatnonzero(np.isfinite(value))[0])
        assert np.isnan(value[:first]).all()
        if not any(word in method for word in TRUE_ZEROS):
            assert value[first] != 0.0, method


@pytest.mark.parametrize("name", list_library())
def test_a_later_bar_changes_no_earlier_value(name):
    full = call(name)
    for size in (75, 180):
        for method, value in call(name, BARS.head(size)).items():
            assert_array_equal(value, full[method][:size], err_msg=method)


@pytest.mark.parametrize("name", list_library())
def test_short_input_is_all_missing_and_never_an_error(name):
    lengths = {int(np.flatnonzero(np.isfinite(value))[0]) for value in call(name).values()}
    for size in {0, 1, 2, *lengths}:
        for value in call(name, BARS.head(size)).values():
            assert value.shape == (size,)
            assert np.isnan(value[: min(lengths)]).all()
    enough = call(name, BARS.head(max(lengths) + 1))
    assert all(np.isfinite(value).any() for value in enough.values())


@pytest.mark.parametrize("name", list_library())
def test_a_constant_series_gives_finite_or_missing_values(name):
    for value in call(name, closes(np.full(120, 100.0))).values():
        assert value.shape == (120,)
        assert not np.isinf(value).any()


def test_rsi_of_a_constant_series_is_50_as_in_the_kernels():
    flat = closes(np.full(40, 7.0))
    value = call("RSIIndicator", flat)["rsi"]
    assert_array_equal(value, kernels("reference").rsi(flat.close, 14))


def test_known_warm_ups_are_those_of_the_kernels():
    backend = kernels("reference")
    prices = (BARS.high, BARS.low, BARS.close)
    pairs = [
        (call("RSIIndicator")["rsi"], backend.rsi(BARS.close, 14)),
        (call("AverageTrueRange")["average_true_range"], backend.atr(*prices, 14)),
        (call("ADXIndicator")["adx"], backend.adx(*prices, 14)[0]),
        (call("MACD")["macd_signal"], backend.macd(BARS.close, 12, 26, 9)[1]),
        (call("BollingerBands")["bollinger_hband"], backend.bollinger(BARS.close, 20, 2.0)[0]),
    ]
    for theirs, ours in pairs:
        assert_array_equal(np.isnan(theirs), np.isnan(ours))
        assert_allclose(theirs[380:], ours[380:], rtol=1e-4)


def test_a_hole_starts_the_indicator_anew():
    holed = with_holes(BARS, ("close", 200, np.nan))
    value = call("AverageTrueRange", holed)["average_true_range"]
    assert np.isnan(value[200:215]).all()
    alone = call("AverageTrueRange", BARS.slice(201, 420))["average_true_range"]
    assert_array_equal(value[201:], alone)


def test_parameters_reach_the_indicator_and_move_its_warm_up():
    value = call("ta.momentum.RSIIndicator", window=21.0)["rsi"]
    assert np.flatnonzero(np.isfinite(value))[0] == 21
    shifted = call("IchimokuIndicator", visual=True)["ichimoku_a"]
    assert np.flatnonzero(np.isfinite(shifted))[0] == 51 + 26
    assert_array_equal(shifted[100:], call("IchimokuIndicator")["ichimoku_a"][74:-26])
    late = call("DonchianChannel", offset=3)["donchian_channel_hband"]
    assert np.flatnonzero(np.isfinite(late))[0] == 22
    smooth = call("VolumePriceTrendIndicator", smoothing_factor=5)["volume_price_trend"]
    assert np.flatnonzero(np.isfinite(smooth))[0] == 5


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("RSIIndikator", {}, "indicator 'RSIIndikator' does not exist; did you mean RSIIndicator"),
        ("ta.momentum.Nothing", {}, "does not exist; choose one of ADXIndicator, "),
        ("KSTIndicator", {}, "ta.trend.KSTIndicator is not offered: .*mean of the whole series"),
        ("SMAIndicator", {}, "has no default window; give one, e.g. window=20"),
        (
            "RSIIndicator",
            {"windw": 3},
            "parameter of .* 'windw' does not exist; did you mean window",
        ),
        ("RSIIndicator", {"window": 0}, "window 0 must be a whole number from 1 up"),
        ("RSIIndicator", {"window": 2.5}, "window 2.5 must be a whole number from 1 up"),
        ("RSIIndicator", {"fillna": True}, "is not given fillna: it would put numbers"),
        ("VolumePriceTrendIndicator", {"dropnans": True}, "is not given dropnans"),
        ("DonchianChannel", {"offset": -1}, "offset -1 must be a whole number from 0 up"),
    ],
)
def test_what_cannot_be_computed_safely_is_refused(name, parameters, message):
    with pytest.raises(UsageError, match=message):
        library_indicator(name, BARS, **parameters)
