"""Bits of 64 bars: compares, crossings and the search for the next bit, against plain NumPy."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies.indicators.crossing import crosses_above, crosses_below
from strategies.kernels.engines import crossings, masks
from strategies.kernels.engines.event_pairs import keys_of
from strategies.kernels.engines.events import with_summary
from strategies.kernels.engines.lanes import pack

SIZES = (1, 2, 63, 64, 65, 128, 129, 300)
ODD_VALUES = st.sampled_from([np.nan, -np.inf, np.inf, -1.0, -0.0, 0.0, 0.5, 1.0, 1.0, 1e300])


@masks.compiled
def compare_rows(a, b, out):
    for w in range(out.shape[1]):
        out[0, w] = masks.gt64(a, 1, b, 0, w << 6)
        out[1, w] = masks.lt64(a, 1, b, 0, w << 6)
        out[2, w] = masks.eq64(a, 1, b, 0, w << 6)


@masks.compiled
def compare_level(a, level, out):
    for w in range(out.shape[1]):
        out[0, w] = masks.gt64_level(a, 1, w << 6, level)
        out[1, w] = masks.lt64_level(a, 1, w << 6, level)
        out[2, w] = masks.ge64_level(a, 1, w << 6, level)
        out[3, w] = masks.le64_level(a, 1, w << 6, level)


@masks.compiled
def compare_keys(keys, out):
    for w in range(out.shape[1]):
        out[0, w], out[1, w] = masks.keys64(keys, 0, 1, w << 6)


@masks.compiled
def found_by_seek(rows, row, words, last):
    found = np.empty(last + 1, dtype=np.int64)
    for bar in range(last + 1):
        found[bar] = masks.seek(rows, row, words, bar, last)
    return found


@masks.compiled
def counts(words):
    out = np.empty((3, words.size), dtype=np.int64)
    for i in range(words.size):
        out[0, i], out[1, i] = masks.cttz(words[i]), masks.clz(words[i])
        out[2, i] = masks.ones(words[i])
    return out


@masks.compiled
def take_all(counter, most):
    taken = np.zeros(most, dtype=np.int64)
    while True:
        number = masks.take(counter)
        if number >= most:
            return taken
        taken[number] += 1


def bits(*rows):
    return pack(np.stack(rows))


@settings(max_examples=40)
@given(st.sampled_from(SIZES), st.data())
def test_a_word_compare_is_numpy_s_and_nan_never_holds(size, data):
    a, b = (
        np.array(data.draw(st.lists(ODD_VALUES, min_size=size, max_size=size))) for _ in range(2)
    )
    left, right = masks.padded_rows(b, a), masks.padded_rows(b)
    out = np.zeros((3, left.shape[1] // 64), dtype=np.uint64)
    compare_rows(left, right, out)
    np.testing.assert_array_equal(out, bits(a > b, a < b, a == b))
    level = data.draw(ODD_VALUES)
    out = np.zeros((4, left.shape[1] // 64), dtype=np.uint64)
    compare_level(left, level, out)
    np.testing.assert_array_equal(out, bits(a > level, a < level, a >= level, a <= level))


@settings(max_examples=40)
@given(st.sampled_from(SIZES), st.data())
def test_crossings_of_words_are_those_of_the_rule(size, data):
    """With ties, holes and infinities."""
    a, b = (
        np.array(data.draw(st.lists(ODD_VALUES, min_size=size, max_size=size))) for _ in range(2)
    )
    line, level = masks.padded_rows(b, a), masks.padded_rows(a, b)
    one, other = np.array([1, 0]), np.array([1, 0])
    up, down = crossings.row_crossings(line, one, level, other)
    np.testing.assert_array_equal(up, bits(crosses_above(a, b), crosses_above(b, a)))
    np.testing.assert_array_equal(down, bits(crosses_below(a, b), crosses_below(b, a)))
    number = data.draw(ODD_VALUES)
    up, down = crossings.level_crossings(line, one, np.array([number, 0.5]))
    np.testing.assert_array_equal(up, bits(crosses_above(a, number), crosses_above(b, 0.5)))
    np.testing.assert_array_equal(down, bits(crosses_below(a, number), crosses_below(b, 0.5)))


def test_a_tie_is_no_crossing_until_it_is_left_and_a_missing_value_never_is_one():
    line = np.array([1.0, 2.0, 3.0, 2.0, 1.0, np.nan, 3.0, 3.0, 2.0, 3.0])
    up, down = crossings.level_crossings(masks.padded_rows(line), np.array([0]), np.array([2.0]))
    assert up[0, 0] == (1 << 2) | (1 << 9)
    assert down[0, 0] == 1 << 4


@settings(max_examples=30)
@given(st.sampled_from((1, 64, 65, 200, 4_096, 4_097, 9_000)), st.floats(0.0, 0.2), st.data())
def test_the_next_bit_is_found_wherever_it_is(size, share, data):
    random = np.random.default_rng(data.draw(st.integers(0, 1_000)))
    fires = random.random((2, size)) < share / (1 + size // 100)
    last = data.draw(st.integers(0, size - 1))
    rows = with_summary(pack(fires), size)
    expected = np.full(last + 1, last)
    for bar in range(last - 1, -1, -1):
        expected[bar] = bar if fires[1, bar] else expected[bar + 1]
    words = -(-size // 64)
    np.testing.assert_array_equal(found_by_seek(rows, 1, words, last), expected)
    assert [masks.next_bit(rows, 1, bar, last) for bar in range(last + 1)] == expected.tolist()


def test_zeros_and_ones_of_a_word_are_counted():
    words = np.array([0, 1, 1 << 63, 0b1011000, (1 << 64) - 1], dtype=np.uint64)
    expected = [[64, 0, 63, 3, 0], [64, 63, 0, 57, 0], [0, 1, 1, 3, 64]]
    np.testing.assert_array_equal(counts(words), expected)


def test_two_threads_take_every_number_once():
    counter = np.zeros(1, dtype=np.int64)
    with ThreadPoolExecutor(2) as pool:
        taken = list(pool.map(lambda _: take_all(counter, 100_000), range(2)))
    assert (taken[0] + taken[1] == 1).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_keys_order_as_their_values_do(threads):
    """Equal values have equal keys; different keys order as the values."""
    random = np.random.default_rng(5)
    table = np.round(random.normal(0.0, 1.0, (40, 640)), 1)
    table[3] += 1e9  # one line far away crowds the others
    table[7:9, :100] = np.nan
    table[:, 200] = 5.0
    keys = keys_of(table, threads).astype(np.int64)
    for other in (0, 3, 8):
        known = np.isfinite(table) & np.isfinite(table[other])
        assert (np.sign(keys - keys[other]) * np.sign(table - table[other]))[known].min() >= 0
        assert (keys == keys[other])[table == table[other]].all()
    out = np.zeros((2, 10), dtype=np.uint64)
    compare_keys(keys_of(table, threads), out)
    np.testing.assert_array_equal(out, bits(keys[0] > keys[1], keys[0] == keys[1]))


def test_padding_is_nan_and_rows_start_on_a_cache_line():
    for size in SIZES:
        table = masks.padded_rows(np.arange(size, dtype=np.float64), np.ones(size))
        assert table.shape[1] % 64 == 0
        assert table.ctypes.data % 64 == 0
        assert np.isnan(table[:, size:]).all()
        np.testing.assert_array_equal(table[0, :size], np.arange(size))
