"""The compiled twins against the reference, bit for bit, and the prefix rule on both."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from strategies.kernels.dispatch import KERNELS, kernels
from tests.strategies.market import adversarial, reference_bars, walk, with_holes

CPU, REFERENCE = kernels("cpu"), kernels("reference")


def computed(backend, bars, window=14):
    """Every output of every kernel on these bars, by name."""
    close, prices = bars.close, (bars.high, bars.low, bars.close)
    fast = max(1, window // 2)
    entry, exit_ = np.zeros(len(bars), dtype=bool), np.zeros(len(bars), dtype=bool)
    entry[::7], exit_[::11] = True, True
    distance = np.abs(close) * 0.03
    results = {
        "sma": backend.sma(close, window),
        "ema": backend.ema(close, window),
        "rsi": backend.rsi(close, window),
        "macd": backend.macd(close, fast, window + 1, fast),
        "true_range": backend.true_range(*prices),
        "atr": backend.atr(*prices, window),
        "bollinger": backend.bollinger(close, window, 2.0),
        "adx": backend.adx(*prices, window),
        "obv": backend.obv(close, bars.volume),
        "realised_volatility": backend.realised_volatility(close, window + 1, 252.0),
        "rolling_max": backend.rolling_max(bars.high, window),
        "rolling_min": backend.rolling_min(bars.low, window),
        "stochastic": backend.stochastic(*prices, window, fast),
        "vwap": backend.vwap(*prices, bars.volume, window),
        "excursions": backend.excursions(bars.open, *prices, entry, exit_, distance, 0.0005),
    }
    assert set(results) == set(KERNELS)
    return {
        f"{name}[{k}]": out
        for name, result in results.items()
        for k, out in enumerate(result if isinstance(result, tuple) else (result,))
    }


def assert_twins(bars, window=14):
    with np.errstate(all="ignore"):  # excursions in numbers that are no prices
        expected, actual = computed(REFERENCE, bars, window), computed(CPU, bars, window)
    for name, value in expected.items():
        assert_array_equal(actual[name], value, err_msg=name, strict=True)
        if value.dtype == np.float64 and not name.startswith("rolling"):  # a zero has its sign,
            there = ~np.isnan(value)  # but 0 and -0 are both the greatest of 0 and -0
            assert_array_equal(np.signbit(actual[name][there]), np.signbit(value[there]), name)


@pytest.mark.parametrize("window", [1, 2, 14])
@pytest.mark.parametrize("name", adversarial())
def test_twins_equal_the_reference_where_kernels_break(name, window):
    assert_twins(adversarial(window)[name], window)


@pytest.mark.parametrize(
    "bars", [reference_bars(), walk(1500, seed=31), walk(700, seed=32, tick=0.25)]
)
@pytest.mark.parametrize("window", [3, 14, 60])
def test_twins_equal_the_reference_on_ordinary_bars(bars, window):
    assert_twins(bars, window)


@settings(deadline=None, max_examples=60)
@given(
    close=arrays(
        np.float64,
        st.integers(0, 60),
        elements=st.one_of(
            st.floats(0.01, 1e6),
            st.sampled_from([1.0, 1.0, 2.0, 0.0, np.nan, np.inf, -np.inf, 1e-300, 1e12]),
        ),
    ),
    window=st.integers(1, 9),
)
def test_twins_equal_the_reference_on_any_series(close, window):
    bars = walk(close.size, seed=window)
    bars.close[:] = close
    bars.high[:] = np.maximum(bars.high, close)
    assert_twins(bars, window)


@settings(deadline=None, max_examples=60)
@given(
    columns=arrays(
        np.float64,
        st.tuples(st.just(4), st.integers(0, 40)),
        elements=st.one_of(
            st.floats(width=64, allow_subnormal=True),
            st.sampled_from([0.0, -0.0, 1.0, 5e-324, 1e-300, 1.7e308, -1.7e308, np.nan]),
        ),
    ),
    window=st.integers(1, 9),
)
def test_twins_equal_the_reference_on_numbers_that_are_no_prices(columns, window):
    bars = walk(columns.shape[1], seed=window)
    for name, column in zip(("high", "low", "close", "volume"), columns, strict=True):
        getattr(bars, name)[:] = column
    assert_twins(bars, window)


@pytest.mark.parametrize("size", range(1, 70))
def test_every_length_ends_in_a_group_of_its_own_size(size):
    assert_twins(walk(size, seed=size), 5)


@pytest.mark.parametrize("window", [*range(1, 40), 63, 64, 65, 299, 300, 301])
def test_every_window_has_blocks_of_its_own_size(window):
    assert_twins(walk(300, seed=6), window)


@pytest.mark.parametrize("name", ["close", "high", "low", "volume"])
@pytest.mark.parametrize("hole", [np.nan, np.inf, -np.inf])
def test_one_hole_on_any_bar_of_any_column_is_seen(name, hole):
    for bar in range(40):
        assert_twins(with_holes(walk(40, seed=bar), (name, bar, hole)), 6)


@pytest.mark.parametrize("backend", [CPU, REFERENCE], ids=lambda backend: backend.backend)
@pytest.mark.parametrize("name", ["ties", "holes", "flat, then a huge print"])
def test_a_later_bar_changes_no_earlier_value(backend, name):
    bars = adversarial()[name]
    full = computed(backend, bars)
    for size in (*range(12, 34), 90, len(bars) - 1):
        for key, value in computed(backend, bars.head(size)).items():
            if not key.startswith("excursions"):
                assert_array_equal(value, full[key][:size], err_msg=f"{key} of {size} bars")


@pytest.mark.parametrize("backend", [CPU, REFERENCE], ids=lambda backend: backend.backend)
def test_any_memory_layout_and_number_type_gives_the_same_values(backend):
    close = np.round(walk(100, seed=2).close)
    frozen = close.copy()
    frozen.setflags(write=False)
    strided = np.repeat(close, 2)[::2]
    for other in (frozen, strided, close.astype(np.int64), close.astype(">f8")):
        assert_array_equal(backend.rsi(other, 14), backend.rsi(close, 14))


@pytest.mark.parametrize("backend", [CPU, REFERENCE], ids=lambda backend: backend.backend)
def test_the_input_is_left_as_it_was(backend):
    bars = adversarial()["holes"]
    before = [getattr(bars, name).copy() for name in ("open", "high", "low", "close", "volume")]
    computed(backend, bars)
    for name, copy in zip(("open", "high", "low", "close", "volume"), before, strict=True):
        assert_array_equal(getattr(bars, name), copy)


def test_twins_refuse_what_the_reference_refuses():
    x = np.ones(5)
    calls = [
        lambda k: k.sma(x, 0),
        lambda k: k.ema(x, 0),
        lambda k: k.rsi(x, 0),
        lambda k: k.macd(x, 26, 12, 9),
        lambda k: k.macd(x, 2, 3, 0),
        lambda k: k.atr(x, x, x, 0),
        lambda k: k.true_range(x, x, np.ones(4)),
        lambda k: k.bollinger(x, 0, 2.0),
        lambda k: k.adx(x, x, x, 0),
        lambda k: k.obv(x, np.ones((5, 1))),
        lambda k: k.realised_volatility(x, 1, 252.0),
        lambda k: k.realised_volatility(x, 2, -1.0),
        lambda k: k.rolling_max(x, 0),
        lambda k: k.rolling_min(x, -1),
        lambda k: k.stochastic(x, x, x, 0, 3),
        lambda k: k.stochastic(x, x, x, 14, 0),
        lambda k: k.vwap(x, x, x, x, 0),
        lambda k: k.vwap(x, x, x, np.ones(6), 2),
        lambda k: k.excursions(x, x, x, x, x > 0, np.ones(4, dtype=bool), x, 0.0),
    ]
    for call in calls:
        with pytest.raises(ValueError) as expected:  # noqa: PT011 - the twin must say the same
            call(REFERENCE)
        with pytest.raises(ValueError) as actual:  # noqa: PT011
            call(CPU)
        assert str(actual.value) == str(expected.value)
