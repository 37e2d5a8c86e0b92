"""The lanes of `recursions` for the CPU, eight bars in a register; equal to them in every bit.

Each does what the lane of the same name does, in the same order. Every lane returns whether its
inputs were finite: it finds that out on the way, since a pass of its own over long inputs costs a
third of the work.
"""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

from typing import Any

from strategies.kernels.compiling import step
from strategies.kernels.recursions import (
    CHUNK,
    adx_seed,
    decaying_sum,
    mean_distance,
    strength,
    wilder_keep,
)
from strategies.kernels.runs import Array
from strategies.kernels.vectors import (
    Lanes,
    absolute,
    all_above,
    choose,
    fetch8,
    is_finite,
    join,
    lane,
    later1,
    later2,
    load8,
    newest_of_first,
    newest_of_second,
    pack,
    pair,
    put,
    running,
    sound,
    splat8,
    store,
)
from strategies.kernels.windows import blank

Memory = Any  # what `powers` returns


@step
def powers(keep: float) -> Memory:
    """keep, keep² and keep⁴ in every lane, and keep, keep², keep³, keep⁴ in every group."""
    keep2 = keep * keep
    keep4 = keep2 * keep2
    fading = pack(keep, keep2, keep2 * keep, keep4)
    return splat8(keep), splat8(keep2), splat8(keep4), pair(fading, fading)


@step
def decayed(x: Lanes, memory: Memory) -> Lanes:
    """Decaying sums of two groups of four bars that both start from nothing."""
    sums = x + memory[0] * later1(x)
    return sums + memory[1] * later2(sums)


@step
def carried(sums: Lanes, total: Lanes, memory: Memory) -> Lanes:
    """The same where the first group starts from a total, and the second from what that becomes."""
    middle = newest_of_first(sums) + memory[2] * total
    return sums + memory[3] * join(total, middle)


@step
def next_total(sums: Lanes, total: Lanes, memory: Memory) -> Lanes:
    """The total after both groups, in every lane."""
    middle = newest_of_first(sums) + memory[2] * total
    return newest_of_second(sums) + memory[2] * middle


@step
def true_range_of(high: Lanes, low: Lanes, before: Lanes) -> Lanes:
    """True ranges of bars whose previous closes are `before`."""
    return choose(high, before, high, before) - choose(before, low, low, before)


@step
def ema_group(here: Lanes, before: Lanes, total: Lanes, memory: Memory) -> tuple[Lanes, Lanes]:
    """The mean over eight bars, and its offset from the last of them."""
    sums = decayed(memory[0] * (before - here), memory)
    return here + carried(sums, total, memory), next_total(sums, total, memory)


@step
def ema_lane(x: Array, window: int, out: Array) -> bool:
    """See `recursions.ema_lane`."""
    blank(out, window - 1)
    if x.size < window:
        return True
    offset = mean_distance(x[:window], x[window - 1])
    out[window - 1] = x[window - 1] + offset
    memory, total = powers(1.0 - 2.0 / float(window + 1)), splat8(offset)
    t = window
    while t + 8 <= x.size:
        value, total = ema_group(load8(x, t), load8(x, t - 1), total, memory)
        store(out, t, value)
        t += 8
    if t < x.size:
        value, total = ema_group(fetch8(x, t), fetch8(x, t - 1), total, memory)
        put(out, t, value)
    return is_finite(total)  # an offset that has left the finite never comes back


@step
def rsi_group(
    here: Lanes, before: Lanes, net: Lanes, gross: Lanes, memory: Memory
) -> tuple[Lanes, Lanes, Lanes]:
    """The index over eight bars, and both sums after them."""
    moves, half, zero = here - before, splat8(50.0), splat8(0.0)
    nets, sizes = decayed(moves, memory), decayed(absolute(moves), memory)
    reach = carried(sizes, gross, memory)
    part = half + half * (carried(nets, net, memory) / reach)
    value = choose(reach, zero, part, half)
    return value, next_total(nets, net, memory), next_total(sizes, gross, memory)


@step
def rsi_lane(close: Array, window: int, out: Array) -> bool:
    """See `recursions.rsi_lane`."""
    blank(out, window)
    if close.size <= window:
        return True
    change, size = 0.0, 0.0
    for t in range(window):
        moved = close[t + 1] - close[t]
        change += moved
        size += abs(moved)
    out[window] = strength(change, size, 50.0, 0.0)
    memory, net, gross = powers(wilder_keep(close, window)), splat8(change), splat8(size)
    t = window + 1
    while t + 8 <= close.size:
        value, net, gross = rsi_group(load8(close, t), load8(close, t - 1), net, gross, memory)
        store(out, t, value)
        t += 8
    if t < close.size:
        value, net, gross = rsi_group(fetch8(close, t), fetch8(close, t - 1), net, gross, memory)
        put(out, t, value)
    return is_finite(gross)  # see ema_lane


@step
def true_range_lane(high: Array, low: Array, close: Array, out: Array) -> bool:
    """See `recursions.true_range_lane`."""
    blank(out, 1)
    zero, t = splat8(0.0), 1
    watch = zero
    while t + 8 <= close.size:
        top, bottom = load8(high, t), load8(low, t)
        store(out, t, true_range_of(top, bottom, load8(close, t - 1)))
        watch = watch + zero * (top + bottom + load8(close, t))
        t += 8
    if t < close.size:
        top, bottom = fetch8(high, t), fetch8(low, t)
        put(out, t, true_range_of(top, bottom, fetch8(close, t - 1)))
        watch = watch + zero * (top + bottom + fetch8(close, t))
    return is_finite(watch) and sound(high[:1]) and sound(low[:1]) and sound(close[:1])


@step
def atr_lane(high: Array, low: Array, close: Array, window: int, out: Array) -> bool:
    """See `recursions.atr_lane`."""
    blank(out, window)
    if close.size <= window:
        return True
    seed = 0.0
    for t in range(1, window + 1):
        up, down, was = high[t], low[t], close[t - 1]
        seed += (up if up > was else was) - (down if down < was else was)
    share, zero = splat8(1.0 / float(window)), splat8(0.0)
    out[window] = seed * (1.0 / float(window))
    memory, total, watch = powers(wilder_keep(close, window)), splat8(seed), zero
    t = window + 1
    while t + 8 <= close.size:
        top, bottom = load8(high, t), load8(low, t)
        sums = decayed(true_range_of(top, bottom, load8(close, t - 1)), memory)
        store(out, t, carried(sums, total, memory) * share)
        total = next_total(sums, total, memory)
        watch = watch + zero * (top + bottom + load8(close, t))
        t += 8
    if t < close.size:
        top, bottom = fetch8(high, t), fetch8(low, t)
        sums = decayed(true_range_of(top, bottom, fetch8(close, t - 1)), memory)
        put(out, t, carried(sums, total, memory) * share)
        watch = watch + zero * (top + bottom + fetch8(close, t))
    first = window + 1
    return is_finite(watch) and sound(high[:first]) and sound(low[:first]) and sound(close[:first])


@step
def line_group(
    moves: Lanes, near: Lanes, far: Lanes, nears: Memory, fars: Memory
) -> tuple[Lanes, Lanes, Lanes]:
    """The line over eight bars, and both offsets after them."""
    near_sums, far_sums = decayed(nears[0] * moves, nears), decayed(fars[0] * moves, fars)
    value = carried(near_sums, near, nears) - carried(far_sums, far, fars)
    return value, next_total(near_sums, near, nears), next_total(far_sums, far, fars)


@step
def macd_lane(
    x: Array, fast: int, slow: int, signal: int, line: Array, signal_line: Array, histogram: Array
) -> bool:
    """See `recursions.macd_lane`; the signal line follows the line a stretch of bars behind."""
    first = slow + signal - 2
    if x.size <= first:
        blank(line, x.size)
        blank(signal_line, x.size)
        blank(histogram, x.size)
        return True
    near_offset = mean_distance(x[slow - fast : slow], x[slow - 1])
    far_offset = mean_distance(x[:slow], x[slow - 1])
    line[slow - 1] = near_offset - far_offset
    near, far, total = splat8(near_offset), splat8(far_offset), splat8(0.0)
    nears, fars = powers(1.0 - 2.0 / float(fast + 1)), powers(1.0 - 2.0 / float(slow + 1))
    memory = powers(1.0 - 2.0 / float(signal + 1))
    t, done = slow, 0  # bars of the line, and of the signal line once it is seeded
    while done < x.size:
        stop = min(t + CHUNK, x.size)
        while t + 8 <= stop:
            moves = load8(x, t - 1) - load8(x, t)
            value, near, far = line_group(moves, near, far, nears, fars)
            store(line, t, value)
            t += 8
        if t < stop and stop == x.size:
            moves = fetch8(x, t - 1) - fetch8(x, t)
            value, near, far = line_group(moves, near, far, nears, fars)
            put(line, t, value)
            t = stop
        if done == 0 and t > first:
            offset = mean_distance(line[slow - 1 : first + 1], line[first])
            signal_line[first] = line[first] + offset
            histogram[first] = line[first] - signal_line[first]
            total, done = splat8(offset), first + 1
        while done > 0 and done + 8 <= t:
            here = load8(line, done)
            value, total = ema_group(here, load8(line, done - 1), total, memory)
            store(signal_line, done, value)
            store(histogram, done, here - value)
            done += 8
        if t == x.size and done < t:
            here = fetch8(line, done)
            value, total = ema_group(here, fetch8(line, done - 1), total, memory)
            put(signal_line, done, value)
            put(histogram, done, here - value)
            done = t
    blank(line, first)
    blank(signal_line, first)
    blank(histogram, first)
    return is_finite(near) and is_finite(far)  # see ema_lane


@step
def move_group(rise: Lanes, fall: Lanes, memory: Memory) -> Lanes:
    """A decaying sum of the moves of eight bars in one direction."""
    zero = splat8(0.0)
    return decayed(choose(rise, zero, choose(rise, fall, rise, zero), zero), memory)


@step
def adx_group(
    top: Lanes, bottom: Lanes, before: tuple[Lanes, Lanes, Lanes], sums: Memory, memory: Memory
) -> tuple[Any, Any]:
    """Directional index (-1 without direction), +DI and -DI over eight bars, and the sums after.

    before  high, low and close one bar earlier
    sums    of moves up, moves down and true ranges
    """
    zero, hundred = splat8(0.0), splat8(100.0)
    rise, fall = top - before[0], before[1] - bottom
    ups, downs = move_group(rise, fall, memory), move_group(fall, rise, memory)
    ranges = decayed(true_range_of(top, bottom, before[2]), memory)
    up, down = carried(ups, sums[0], memory), carried(downs, sums[1], memory)
    reach, both = carried(ranges, sums[2], memory), up + down
    index = choose(both, zero, hundred * (absolute(up - down) / both), splat8(-1.0))
    plus = choose(reach, zero, hundred * (up / reach), zero)
    minus = choose(reach, zero, hundred * (down / reach), zero)
    after = (
        next_total(ups, sums[0], memory),
        next_total(downs, sums[1], memory),
        next_total(ranges, sums[2], memory),
    )
    return (index, plus, minus), after


@step
def adx_lane(
    high: Array, low: Array, close: Array, window: int, index: Array, plus: Array, minus: Array
) -> bool:
    """See `recursions.adx_lane`."""
    blank(index, 2 * window - 1)
    if close.size <= window:
        blank(plus, window)
        blank(minus, window)
        return True
    seeds = adx_seed(high, low, close, window, index, plus, minus)
    sums = (splat8(seeds[0]), splat8(seeds[1]), splat8(seeds[2]))
    memory, zero = powers(wilder_keep(close, window)), splat8(0.0)
    watch, t = zero, window
    while t + 8 <= close.size:
        top, bottom = load8(high, t), load8(low, t)
        before = (load8(high, t - 1), load8(low, t - 1), load8(close, t - 1))
        found, sums = adx_group(top, bottom, before, sums, memory)
        store(index, t, found[0])
        store(plus, t, found[1])
        store(minus, t, found[2])
        watch = watch + zero * (top + bottom + load8(close, t))
        t += 8
    if t < close.size:
        top, bottom = fetch8(high, t), fetch8(low, t)
        before = (fetch8(high, t - 1), fetch8(low, t - 1), fetch8(close, t - 1))
        found, sums = adx_group(top, bottom, before, sums, memory)
        put(index, t, found[0])
        put(plus, t, found[1])
        put(minus, t, found[2])
        watch = watch + zero * (top + bottom + fetch8(close, t))
    blank(plus, window)
    blank(minus, window)
    average_direction(index, window)
    first = window + 1
    return is_finite(watch) and sound(high[:first]) and sound(low[:first]) and sound(close[:first])


@step
def average_direction(index: Array, window: int) -> None:
    """See `recursions.average_direction`."""
    share, kept = 1.0 / float(window), wilder_keep(index, window)
    seed, first = 0.0, 2 * window - 1
    for t in range(window, min(first + 1, index.size)):
        seed += index[t] if index[t] > 0.0 else 0.0
    if index.size > first:
        index[first] = seed * share
    memory, total, part, none = powers(kept), splat8(seed), splat8(share), splat8(-1.0)
    start = first + 1
    while start < index.size:
        while start + 8 <= index.size:
            directional = load8(index, start)
            if not all_above(directional, none):
                break
            sums = decayed(directional, memory)
            store(index, start, carried(sums, total, memory) * part)
            total = next_total(sums, total, memory)
            start += 8
        stop = start
        while stop < min(start + 8, index.size) and index[stop] >= 0.0:
            stop += 1
        rest = index[start:stop]
        seed = decaying_sum(rest, lane(total, 0), kept, rest)
        for t in range(rest.size):
            rest[t] = rest[t] * share
        if stop < index.size:
            index[stop] = seed * share
        total, start = splat8(seed), stop + 1
    blank(index, first)


@step
def signed(now: Lanes, was: Lanes, volume: Lanes) -> Lanes:
    """The volume of a rise, minus the volume of a fall, 0 of a tie."""
    zero = splat8(0.0)
    return choose(now, was, volume, choose(was, now, zero - volume, zero))


@step
def obv_lane(close: Array, volume: Array, out: Array) -> bool:
    """See `recursions.obv_lane`."""
    if out.size == 0:
        return True
    out[0] = volume[0]
    total, zero, t = splat8(volume[0]), splat8(0.0), 1
    watch = zero
    while t + 8 <= close.size:
        now, traded = load8(close, t), load8(volume, t)
        sums = running(signed(now, load8(close, t - 1), traded))
        middle = newest_of_first(sums) + total
        store(out, t, sums + join(total, middle))
        total = newest_of_second(sums) + middle
        watch = watch + zero * (now + traded)
        t += 8
    if t < close.size:
        now, traded = fetch8(close, t), fetch8(volume, t)
        sums = running(signed(now, fetch8(close, t - 1), traded))
        put(out, t, sums + join(total, newest_of_first(sums) + total))
        watch = watch + zero * (now + traded)
    return is_finite(watch) and sound(close[:1]) and sound(volume[:1])
