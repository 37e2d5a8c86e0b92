"""The lanes of `windows` for the CPU, four bars in a register; equal to them in every bit.

`room` holds what the block before adds to every window, in whole groups of four bars; what is
written behind the end of a block is written again by the next one. Every lane returns whether its
inputs were finite.
"""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

import numpy as np

from strategies.kernels.compiling import step
from strategies.kernels.runs import Array
from strategies.kernels.vectors import (
    GROUP,
    Lanes,
    after,
    choose,
    fetch,
    flip,
    held1,
    held2,
    is_finite,
    load,
    newest,
    pack,
    put,
    root,
    running,
    sound,
    splat,
    store,
)
from strategies.kernels.windows import (
    CHUNK,
    blank,
    deviation_block,
    extreme_block,
    sma_block,
    vwap_block,
)


@step
def room_for(window: int) -> Array:
    """Scratch for one block."""
    return np.empty(window + GROUP)


@step
def block_tail(x: Array, t: int, stop: int, beyond: float) -> Lanes:
    """x[t : stop], fewer than four bars, and then `beyond`."""
    return pack(
        x[t],
        x[t + 1] if t + 1 < stop else beyond,
        x[t + 2] if t + 2 < stop else beyond,
        x[t + 3] if t + 3 < stop else beyond,
    )


@step
def sma_lane(x: Array, window: int, out: Array) -> bool:
    """See `windows.sma_lane`."""
    if x.size < window:
        blank(out, out.size)
        return True
    sma_block(x, window, 0, out)
    room, share, zero = room_for(window), splat(1.0 / float(window)), splat(0.0)
    watch = zero
    for start in range(window, x.size, window):
        sum_behind(x, start, window, room)
        level, total, t = splat(x[start]), zero, start
        stop = min(start + window, x.size)
        whole = min(stop, x.size - 3)
        while t < whole:
            here = load(x, t)
            sums = running(here - level)
            store(out, t, level + (load(room, t - start) + (sums + total)) * share)
            total = newest(sums) + total
            watch = watch + zero * here
            t += 4
        if t < stop:
            here = fetch(x, t)
            sums = running(here - level)
            put(out, t, level + (load(room, t - start) + (sums + total)) * share)
            watch = watch + zero * here
    return is_finite(watch) and sound(x[:window])


@step
def sum_behind(x: Array, start: int, window: int, room: Array) -> None:
    """room[j] = the distances from x[start] of the bars after j of the block before."""
    level, total = splat(x[start]), splat(0.0)
    base, j = start - window, window - window % GROUP
    if j < window:
        sums = running(flip(block_tail(x, base + j, start, x[start]) - level))
        store(room, j, flip(after(total, sums + total)))
        total = newest(sums) + total
    j -= GROUP
    while j >= 0:
        sums = running(flip(load(x, base + j) - level))
        store(room, j, flip(after(total, sums + total)))
        total = newest(sums) + total
        j -= GROUP


@step
def squares_behind(x: Array, start: int, window: int, near: Array, wide: Array) -> None:
    """`sum_behind` into `near`, and of the squares of the distances into `wide`."""
    level, total, square = splat(x[start]), splat(0.0), splat(0.0)
    base, j = start - window, window - window % GROUP
    if j < window:
        distance = flip(block_tail(x, base + j, start, x[start]) - level)
        sums, squares = running(distance), running(distance * distance)
        store(near, j, flip(after(total, sums + total)))
        store(wide, j, flip(after(square, squares + square)))
        total, square = newest(sums) + total, newest(squares) + square
    j -= GROUP
    while j >= 0:
        distance = flip(load(x, base + j) - level)
        sums, squares = running(distance), running(distance * distance)
        store(near, j, flip(after(total, sums + total)))
        store(wide, j, flip(after(square, squares + square)))
        total, square = newest(sums) + total, newest(squares) + square
        j -= GROUP


@step
def spread_group(
    distance: Lanes,
    near: Lanes,
    wide: Lanes,
    total: Lanes,
    square: Lanes,
    share: Lanes,
    part: Lanes,
) -> tuple[Lanes, Lanes, Lanes, Lanes]:
    """Mean distance and deviation of the windows that end in four bars, and both sums after them.

    near, wide  sums of distances and of their squares in the block before
    """
    zero = splat(0.0)
    sums, squares = running(distance), running(distance * distance)
    whole = near + (sums + total)
    off = whole * share
    variance = (wide + (squares + square) - whole * off) * part
    deviation = root(choose(variance, zero, variance, zero))
    return off, deviation, newest(sums) + total, newest(squares) + square


@step
def deviation_blocks(
    x: Array,
    window: int,
    ddof: int,
    first: int,
    end: int,
    near: Array,
    wide: Array,
    mean: Array,
    out: Array,
) -> bool:
    """`deviation_block`s that begin on bars first .. end - 1; block 0 is not one of them."""
    zero, share = splat(0.0), splat(1.0 / float(window))
    part, watch = splat(1.0 / float(window - ddof)), zero
    for start in range(first, end, window):
        squares_behind(x, start, window, near, wide)
        level, total, square, t = splat(x[start]), zero, zero, start
        stop = min(start + window, x.size)
        whole = min(stop, x.size - 3)
        while t < whole:
            here = load(x, t)
            older = load(near, t - start), load(wide, t - start)
            off, deviation, total, square = spread_group(
                here - level, older[0], older[1], total, square, share, part
            )
            store(mean, t, level + off)
            store(out, t, deviation)
            watch = watch + zero * here
            t += 4
        if t < stop:
            here = fetch(x, t)
            older = load(near, t - start), load(wide, t - start)
            off, deviation, total, square = spread_group(
                here - level, older[0], older[1], total, square, share, part
            )
            put(mean, t, level + off)
            put(out, t, deviation)
            watch = watch + zero * here
    return is_finite(watch)


@step
def bollinger_lane(
    x: Array, window: int, deviations: float, upper: Array, middle: Array, lower: Array
) -> bool:
    """See `windows.bollinger_lane`."""
    if x.size < window:
        blank(upper, x.size)
        blank(middle, x.size)
        blank(lower, x.size)
        return True
    near, wide, good = room_for(window), room_for(window), sound(x[:window])
    deviation_block(x, window, 0, 0, middle, upper)
    bands(deviations, upper[:window], middle[:window], lower[:window])
    stretch = max(1, CHUNK // window) * window
    for first in range(window, x.size, stretch):
        end = min(first + stretch, x.size)
        good &= deviation_blocks(x, window, 0, first, end, near, wide, middle, upper)
        bands(deviations, upper[first:end], middle[first:end], lower[first:end])
    return good


@step
def bands(deviations: float, upper: Array, middle: Array, lower: Array) -> None:
    """Deviations in `upper` become bands around `middle`."""
    for t in range(upper.size):
        reach = deviations * upper[t]
        upper[t] = middle[t] + reach
        lower[t] = middle[t] - reach


@step
def volatility_lane(returns: Array, window: int, scale: float, mean: Array, out: Array) -> bool:
    """See `windows.volatility_lane`."""
    if returns.size < window:
        blank(mean, out.size)
        blank(out, out.size)
        return True
    near, wide, size = room_for(window), room_for(window), returns.size
    deviation_block(returns, window, 1, 0, mean, out)
    good = deviation_blocks(returns, window, 1, window, size, near, wide, mean, out)
    for t in range(out.size):
        out[t] = out[t] * scale
    return good and sound(returns[:window])


@step
def greater(a: Lanes, b: Lanes) -> Lanes:
    """The greater of each lane."""
    return choose(a, b, a, b)


@step
def running_greatest(x: Lanes) -> Lanes:
    """The greatest of four bars so far."""
    found = greater(held1(x), x)
    return greater(held2(found), found)


@step
def extreme_lane(x: Array, window: int, sign: float, out: Array) -> bool:
    """See `windows.extreme_lane`."""
    if x.size < window:
        blank(out, out.size)
        return True
    extreme_block(x, window, 0, sign, out)
    room, signs, zero = room_for(window), splat(sign), splat(0.0)
    watch = zero
    for start in range(window, x.size, window):
        greatest_behind(x, start, window, sign, room)
        best, t = splat(sign * x[start]), start
        stop = min(start + window, x.size)
        whole = min(stop, x.size - 3)
        while t < whole:
            here = load(x, t)
            best = greater(running_greatest(signs * here), best)
            store(out, t, signs * greater(load(room, t - start), best))
            best = newest(best)
            watch = watch + zero * here
            t += 4
        if t < stop:
            here = fetch(x, t)
            best = greater(running_greatest(signs * here), best)
            put(out, t, signs * greater(load(room, t - start), best))
            watch = watch + zero * here
    return is_finite(watch) and sound(x[:window])


@step
def greatest_behind(x: Array, start: int, window: int, sign: float, room: Array) -> None:
    """room[j] = sign × the greatest of the bars after j of the block before; of none: -inf."""
    signs, best = splat(sign), splat(-np.inf)
    base, j = start - window, window - window % GROUP
    if j < window:
        found = running_greatest(flip(signs * block_tail(x, base + j, start, -sign * np.inf)))
        store(room, j, flip(after(best, found)))
        best = newest(found)
    j -= GROUP
    while j >= 0:
        found = greater(running_greatest(flip(signs * load(x, base + j))), best)
        store(room, j, flip(after(best, found)))
        best = newest(found)
        j -= GROUP


@step
def stochastic_lane(
    high: Array, low: Array, close: Array, window: int, smooth: int, fast: Array, slow: Array
) -> bool:
    """See `windows.stochastic_lane`."""
    first = window + smooth - 2
    if close.size <= first:
        blank(fast, fast.size)
        blank(slow, slow.size)
        return True
    good = extreme_lane(high, window, 1.0, fast) and extreme_lane(low, window, -1.0, slow)
    for t in range(window - 1, close.size):
        reach = fast[t] - slow[t]
        fast[t] = 100.0 * ((close[t] - slow[t]) / reach) if reach > 0.0 else 50.0
    sma_lane(fast[window - 1 :], smooth, slow[window - 1 :])
    blank(fast, first)
    blank(slow, first)
    return good and sound(close)


@step
def vwap_lane(
    high: Array, low: Array, close: Array, volume: Array, window: int, room: Array, out: Array
) -> bool:
    """See `windows.vwap_lane`."""
    if close.size < window:
        blank(out, out.size)
        return True
    vwap_block(high, low, close, volume, window, 0, room, out)
    paid_room, traded_room = room_for(window), room_for(window)
    zero, three, nan = splat(0.0), splat(3.0), splat(np.nan)
    watch = zero
    for start in range(window, close.size, window):
        level = splat((high[start] + low[start] + close[start]) / 3.0)
        vwap_behind(high, low, close, volume, start, window, paid_room, traded_room)
        paid, traded, t = zero, zero, start
        stop = min(start + window, close.size)
        while t < stop:
            full = t + 4 <= close.size
            if full:
                sums, amount = load(high, t) + load(low, t) + load(close, t), load(volume, t)
            else:
                sums, amount = fetch(high, t) + fetch(low, t) + fetch(close, t), fetch(volume, t)
            costs, amounts = running((sums / three - level) * amount), running(amount)
            weight = load(traded_room, t - start) + (amounts + traded)
            spent = load(paid_room, t - start) + (costs + paid)
            value = level + choose(weight, zero, spent / weight, nan)
            if full:
                store(out, t, value)
            else:
                put(out, t, value)
            paid, traded = newest(costs) + paid, newest(amounts) + traded
            watch = watch + zero * (sums + amount)
            t += 4
    good = is_finite(watch)
    for x in (high, low, close, volume):
        good &= sound(x[:window])
    return good


@step
def vwap_behind(
    high: Array,
    low: Array,
    close: Array,
    volume: Array,
    start: int,
    window: int,
    paid_room: Array,
    traded_room: Array,
) -> None:
    """Like `sum_behind`, of distances of typical prices times volumes, and of volumes."""
    level = splat((high[start] + low[start] + close[start]) / 3.0)
    three, paid, traded = splat(3.0), splat(0.0), splat(0.0)
    base, j = start - window, (window - 1) - (window - 1) % GROUP
    while j >= 0:
        t = base + j
        if j + GROUP <= window:
            sums, amount = load(high, t) + load(low, t) + load(close, t), load(volume, t)
        else:
            sums = block_tail(high, t, start, 0.0) + block_tail(low, t, start, 0.0)
            sums = sums + block_tail(close, t, start, 0.0)
            amount = block_tail(volume, t, start, 0.0)
        amount = flip(amount)
        costs, amounts = running((flip(sums) / three - level) * amount), running(amount)
        store(paid_room, j, flip(after(paid, costs + paid)))
        store(traded_room, j, flip(after(traded, amounts + traded)))
        paid, traded = newest(costs) + paid, newest(amounts) + traded
        j -= GROUP
