"""Steps of the indicators that look at the last `window` bars: one block of bars after the other.

A run is cut into blocks of `window` bars. The first bar of a block lies in every window that ends
in it, so what is summed are distances from that bar: those of the block before, newest first, and
those of the block itself, oldest first. Nothing is ever taken off a sum again: a huge print leaves
nothing behind, equal bars have exactly their own mean, and blocks do not depend on each other.

See `steps` for the rules that every step keeps.
"""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

import math
from typing import Any

from strategies.kernels.compiling import Real, Slice, step

CHUNK = 256  # bars worked on together, so that every pass over them finds them in the cache


@step
def blank(out: Slice, bars: int) -> None:
    """NaN on the first `bars` bars, of those that there are."""
    nan = out.dtype.type(math.nan)
    for t in range(min(bars, out.size)):
        out[t] = nan


@step
def sma_block(x: Slice, window: int, block: int, out: Slice) -> None:
    """Means of the windows that end in bars block × window .. + window - 1.

    The block's first bar lies in every such window; what is summed are distances from it: those of
    the block before backwards and those of this one forwards, so nothing is ever taken off again.
    """
    start = block * window
    stop = min(start + window, x.size)
    rest = out[start:stop]
    if block == 0:
        clear(rest)
        add_forwards(x[start:stop], window, rest)
        blank(rest, window - 1)
    else:
        sum_backwards(x[start - window : start], x[start], rest)
        add_forwards(x[start:stop], window, rest)


@step
def clear(out: Slice) -> None:
    """Zero everywhere."""
    zero = out.dtype.type(0.0)
    for t in range(out.size):
        out[t] = zero


@step
def group_sums(total: Real, first: Real, second: Real, third: Real, fourth: Real) -> Any:
    """The total after each of four terms; all four start from the one total."""
    pair = first + second
    return (
        first + total,
        pair + total,
        (first + (second + third)) + total,
        (pair + (third + fourth)) + total,
    )


@step
def distance(x: Slice, j: int, level: Real) -> Real:
    """x[j] - level; 0 where there is no such bar."""
    return x[j] - level if j < x.size else level - level


@step
def group_backwards(total: Real, newest: Real, third: Real, second: Real, first: Real) -> Any:
    """The total before each of four terms that come newest first, and after all of them."""
    pair = newest + third
    return (
        total,
        newest + total,
        pair + total,
        (newest + (third + second)) + total,
        (pair + (second + first)) + total,
    )


@step
def sum_backwards(x: Slice, level: Real, out: Slice) -> None:
    """out[j] = the distances from `level` of the bars after j of a whole block, newest first.

    `out` may be shorter than the block `x`. Groups are bars 4k .. 4k + 3 of the block.
    """
    total = x.dtype.type(0.0)
    for j in range(x.size - 1 - (x.size - 1) % 4, -1, -4):
        sums = group_backwards(
            total,
            distance(x, j + 3, level),
            distance(x, j + 2, level),
            distance(x, j + 1, level),
            x[j] - level,
        )
        total = sums[4]
        for k in range(4):
            if j + 3 - k < out.size:
                out[j + 3 - k] = sums[k]


@step
def add_forwards(x: Slice, window: int, out: Slice) -> None:
    """Make means of `out`, the distances of the block before, by those of a block up to a bar."""
    level, total = x[0], x.dtype.type(0.0)
    share = x.dtype.type(1.0) / x.dtype.type(window)
    for j in range(0, x.size, 4):
        sums = group_sums(
            total,
            x[j] - level,
            distance(x, j + 1, level),
            distance(x, j + 2, level),
            distance(x, j + 3, level),
        )
        total = sums[3]
        for k in range(4):
            if j + k < x.size:
                out[j + k] = level + (out[j + k] + sums[k]) * share


@step
def sma_lane(x: Slice, window: int, out: Slice) -> None:
    """Every `sma_block` of a run."""
    for block in range(-(-x.size // window)):
        sma_block(x, window, block, out)


@step
def deviation_block(x: Slice, window: int, ddof: int, block: int, mean: Slice, out: Slice) -> None:
    """Means and deviations of the windows that end in bars block × window .. + window - 1.

    The variance is (sum of squares - sum × mean) / (window - ddof) of distances from a bar of the
    window, at least 0: what the difference loses is at most window + 1 times its rounding.
    """
    start = block * window
    stop = min(start + window, x.size)
    means, rest = mean[start:stop], out[start:stop]
    if block == 0:
        clear(means)
        clear(rest)
    else:
        sum_squares_backwards(x[start - window : start], x[start], means, rest)
    add_squares_forwards(x[start:stop], means, rest)
    finish_deviation(x[start], window, ddof, means, rest)
    if block == 0:
        blank(means, window - 1)
        blank(rest, window - 1)


@step
def sum_squares_backwards(x: Slice, level: Real, sums: Slice, squares: Slice) -> None:
    """Like `sum_backwards`, of the distances from `level` and of their squares."""
    sum_backwards(x, level, sums)
    total = x.dtype.type(0.0)
    for j in range(x.size - 1 - (x.size - 1) % 4, -1, -4):
        first, second = x[j] - level, distance(x, j + 1, level)
        third, fourth = distance(x, j + 2, level), distance(x, j + 3, level)
        found = group_backwards(
            total, fourth * fourth, third * third, second * second, first * first
        )
        total = found[4]
        for k in range(4):
            if j + 3 - k < squares.size:
                squares[j + 3 - k] = found[k]


@step
def add_squares_forwards(x: Slice, sums: Slice, squares: Slice) -> None:
    """Add the distances of a block up to a bar, and their squares, to those of the block before."""
    level, total, square = x[0], x.dtype.type(0.0), x.dtype.type(0.0)
    for j in range(0, x.size, 4):
        first, second = x[j] - level, distance(x, j + 1, level)
        third, fourth = distance(x, j + 2, level), distance(x, j + 3, level)
        near = group_sums(total, first, second, third, fourth)
        wide = group_sums(square, first * first, second * second, third * third, fourth * fourth)
        total, square = near[3], wide[3]
        for k in range(4):
            if j + k < x.size:
                sums[j + k] += near[k]
                squares[j + k] += wide[k]


@step
def finish_deviation(level: Real, window: int, ddof: int, mean: Slice, out: Slice) -> None:
    """Sums of distances from `level` and of their squares become means and deviations."""
    one, zero = mean.dtype.type(1.0), mean.dtype.type(0.0)
    share, part = one / mean.dtype.type(window), one / mean.dtype.type(window - ddof)
    for j in range(out.size):
        total = mean[j]
        off = total * share
        variance = (out[j] - total * off) * part
        mean[j] = level + off
        out[j] = math.sqrt(variance if variance > zero else zero)


@step
def deviation_lane(x: Slice, window: int, ddof: int, mean: Slice, out: Slice) -> None:
    """Every `deviation_block` of a run."""
    for block in range(-(-x.size // window)):
        deviation_block(x, window, ddof, block, mean, out)


@step
def bollinger_lane(
    x: Slice, window: int, deviations: Real, upper: Slice, middle: Slice, lower: Slice
) -> None:
    """The mean, and `deviations` population deviations above and below it."""
    deviation_lane(x, window, 0, middle, upper)
    for t in range(x.size):
        reach = deviations * upper[t]
        upper[t] = middle[t] + reach
        lower[t] = middle[t] - reach


@step
def volatility_lane(returns: Slice, window: int, scale: Real, mean: Slice, out: Slice) -> None:
    """Sample deviations (ddof 1) of returns times `scale`; `mean` is left with their means."""
    deviation_lane(returns, window, 1, mean, out)
    for t in range(out.size):
        out[t] = out[t] * scale


@step
def extreme_block(x: Slice, window: int, block: int, sign: Real, out: Slice) -> None:
    """The greatest of the windows that end in a block (sign 1), or the least (sign -1)."""
    start = block * window
    stop = min(start + window, x.size)
    rest = out[start:stop]
    if block > 0:
        before = x[start - window : start]
        best = sign * before[window - 1]
        for j in range(window - 1, rest.size, -1):
            value = sign * before[j]
            best = value if value > best else best
        for j in range(min(rest.size, window - 1) - 1, -1, -1):
            value = sign * before[j + 1]
            best = value if value > best else best
            rest[j] = best
    best = sign * x[start]
    if rest.size == window or block == 0:
        rest[rest.size - 1] = best
    for j in range(rest.size):
        value = sign * x[start + j]
        best = value if value > best else best
        older = rest[j] if block > 0 else best
        rest[j] = sign * (older if older > best else best)
    if block == 0:
        blank(rest, window - 1)


@step
def extreme_lane(x: Slice, window: int, sign: Real, out: Slice) -> None:
    """Every `extreme_block` of a run."""
    for block in range(-(-x.size // window)):
        extreme_block(x, window, block, sign, out)


@step
def stochastic_lane(
    high: Slice, low: Slice, close: Slice, window: int, smooth: int, fast: Slice, slow: Slice
) -> None:
    """%K, where the close lies between the least low and the greatest high, and its mean, %D."""
    first = window + smooth - 2
    if close.size <= first:
        blank(fast, fast.size)
        blank(slow, slow.size)
        return
    one, zero = close.dtype.type(1.0), close.dtype.type(0.0)
    hundred, half = close.dtype.type(100.0), close.dtype.type(50.0)
    extreme_lane(high, window, one, fast)
    extreme_lane(low, window, -one, slow)
    for t in range(window - 1, close.size):
        reach = fast[t] - slow[t]
        fast[t] = hundred * ((close[t] - slow[t]) / reach) if reach > zero else half
    sma_lane(fast[window - 1 :], smooth, slow[window - 1 :])
    blank(fast, first)
    blank(slow, first)


@step
def typical(high: Slice, low: Slice, close: Slice, t: int, three: Real) -> Real:
    """The mean of high, low and close of bar t."""
    return (high[t] + low[t] + close[t]) / three


@step
def vwap_block(
    high: Slice,
    low: Slice,
    close: Slice,
    volume: Slice,
    window: int,
    block: int,
    room: Slice,
    out: Slice,
) -> None:
    """Means of the typical price weighted by volume, of the windows that end in a block.

    room  scratch of at least `window` bars
    """
    start = block * window
    size = min(window, close.size - start)
    rest, weights = out[start : start + size], room[:size]
    zero, three, nan = out.dtype.type(0.0), out.dtype.type(3.0), out.dtype.type(math.nan)
    level = typical(high, low, close, start, three)
    clear(rest)
    clear(weights)
    if block > 0:
        paid, traded = zero, zero
        for j in range(window - 1 - (window - 1) % 4, -1, -4):
            prices, amounts = vwap_terms(high, low, close, volume, start - window + j, start, level)
            paids = group_backwards(paid, prices[3], prices[2], prices[1], prices[0])
            tradeds = group_backwards(traded, amounts[3], amounts[2], amounts[1], amounts[0])
            paid, traded = paids[4], tradeds[4]
            for k in range(4):
                if j + 3 - k < size:
                    rest[j + 3 - k], weights[j + 3 - k] = paids[k], tradeds[k]
    paid, traded = zero, zero
    for j in range(0, size, 4):
        prices, amounts = vwap_terms(high, low, close, volume, start + j, start + size, level)
        paids, tradeds = group_sums(paid, *prices), group_sums(traded, *amounts)
        paid, traded = paids[3], tradeds[3]
        for k in range(4):
            if j + k < size:
                weight = weights[j + k] + tradeds[k]
                share = (rest[j + k] + paids[k]) / weight if weight > zero else nan
                rest[j + k] = level + share
    if block == 0:
        blank(rest, window - 1)


@step
def vwap_terms(
    high: Slice, low: Slice, close: Slice, volume: Slice, t: int, stop: int, level: Real
) -> Any:
    """Distances from `level` times volumes, and volumes, of bars t .. t + 3; 0 from `stop` on."""
    first, first_volume = vwap_term(high, low, close, volume, t, stop, level)
    second, second_volume = vwap_term(high, low, close, volume, t + 1, stop, level)
    third, third_volume = vwap_term(high, low, close, volume, t + 2, stop, level)
    fourth, fourth_volume = vwap_term(high, low, close, volume, t + 3, stop, level)
    return (
        (first, second, third, fourth),
        (first_volume, second_volume, third_volume, fourth_volume),
    )


@step
def vwap_term(
    high: Slice, low: Slice, close: Slice, volume: Slice, t: int, stop: int, level: Real
) -> tuple[Real, Real]:
    """Distance of the typical price from `level` times volume, and volume; 0 from `stop` on."""
    three, zero = close.dtype.type(3.0), close.dtype.type(0.0)
    if t < stop:
        return (typical(high, low, close, t, three) - level) * volume[t], volume[t]
    return zero, zero


@step
def vwap_lane(
    high: Slice, low: Slice, close: Slice, volume: Slice, window: int, room: Slice, out: Slice
) -> None:
    """Every `vwap_block` of a run."""
    for block in range(-(-close.size // window)):
        vwap_block(high, low, close, volume, window, block, room, out)
