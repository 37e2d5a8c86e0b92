"""The affine scan of one long series on the CPU against the sequential mean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies.kernels import scan
from tests.strategies.market import walk


def sequential(x, window, alpha):
    """The mean bar by bar, seeded by the first window's; the definition of `recursive_mean`."""
    out = np.full(x.size, np.nan)
    if x.size >= window:
        mean = out[window - 1] = x[:window].mean()
        for t in range(window, x.size):
            mean += (x[t] - mean) * alpha
            out[t] = mean
    return out


@pytest.mark.parametrize("window", [1, 2, 14, 200])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 13, 14, 15, 63, 64, 65, 199, 200, 201, 1000, 3000])
def test_the_scan_is_the_sequential_mean_whatever_the_length(size, window):
    close = walk(size, seed=size).close
    for threads in (1, 2, 5):
        np.testing.assert_allclose(
            scan.ema(close, window, threads=threads),
            sequential(close, window, 2.0 / (window + 1.0)),
            rtol=1e-12,
        )
        np.testing.assert_allclose(
            scan.wilder(close, window, threads=threads),
            sequential(close, window, 1.0 / window),
            rtol=1e-12,
        )


@given(
    size=st.integers(0, 400),
    alpha=st.floats(2.0 / 201.0, 2.0 / 3.0),
    window=st.integers(1, 40),
    threads=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_scan_is_the_sequential_mean_of_any_weight(size, alpha, window, threads, seed):
    x = np.random.default_rng(seed).lognormal(3.0, 1.0, size)
    actual = scan.recursive_mean(x, window, alpha, threads=threads)
    np.testing.assert_allclose(actual, sequential(x, window, alpha), rtol=1e-12)


def test_a_long_series_forgets_only_what_is_nothing():
    """A huge print far back, in a stretch whose beginning no later stretch looks at."""
    close = walk(400_000, seed=3).close
    close = 100.0 + np.minimum(close, 1e3)
    close[100] = 1e280
    for window in (2, 14):
        actual = scan.ema(close, window, threads=2)
        expected = sequential(close, window, 2.0 / (window + 1.0))
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_the_same_number_of_threads_gives_the_same_bits():
    close = walk(5_000, seed=4).close
    first, second = (scan.ema(close, 20, threads=3) for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_a_hole_ends_a_series_and_the_next_starts_anew():
    close = walk(300, seed=5).close
    whole = close.copy()
    close[100] = np.nan
    actual = scan.ema(close, 14)
    np.testing.assert_allclose(actual[:100], sequential(whole[:100], 14, 2.0 / 15.0), rtol=1e-12)
    np.testing.assert_allclose(actual[101:], sequential(whole[101:], 14, 2.0 / 15.0), rtol=1e-12)
    assert np.isnan(actual[100])


def test_equal_prices_have_exactly_their_own_mean():
    price = np.full(1_000, 0.1)
    assert (scan.ema(price, 10, threads=2)[9:] == 0.1).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window": 0, "alpha": 0.5}, "window 0 is below 1"),
        ({"window": 3, "alpha": 0.0}, "alpha 0.0 is outside"),
        ({"window": 3, "alpha": 1.5}, "alpha 1.5 is outside"),
        ({"window": 3, "alpha": 0.5, "threads": 0}, "threads 0 is below 1"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        scan.recursive_mean(np.ones(10), **arguments)
