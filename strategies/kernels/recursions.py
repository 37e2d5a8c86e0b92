"""Steps of the indicators that remember: averages with a decaying memory, one lane a run.

See `steps` for the rules that every step keeps.
"""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

from strategies.kernels.compiling import Real, Slice, step
from strategies.kernels.windows import blank

CHUNK = 256  # bars worked on together, so that every pass over them finds them in the cache


@step
def decaying_sum(x: Slice, total: Real, keep: Real, out: Slice) -> Real:
    """`total = keep × total + x` bar by bar, into `out`, which may be `x`; returns the last total.

    Four bars are taken together, so that a total waits for one product and one sum in four bars.
    """
    keep2 = keep * keep
    keep3, keep4 = keep2 * keep, keep2 * keep2
    whole = x.size - x.size % 4
    for t in range(0, whole, 4):
        first, second, third, fourth = x[t], x[t + 1], x[t + 2], x[t + 3]
        pair = keep * first + second
        out[t] = keep * total + first
        out[t + 1] = keep2 * total + pair
        out[t + 2] = keep3 * total + (keep2 * first + (keep * second + third))
        total = keep4 * total + (keep2 * pair + (keep * third + fourth))
        out[t + 3] = total
    if whole == x.size:
        return total
    first = x[whole]
    last = keep * total + first
    out[whole] = last
    if whole + 1 < x.size:
        second = x[whole + 1]
        last = keep2 * total + (keep * first + second)
        out[whole + 1] = last
        if whole + 2 < x.size:
            last = keep3 * total + (keep2 * first + (keep * second + x[whole + 2]))
            out[whole + 2] = last
    return last


@step
def mean_distance(x: Slice, newest: Real) -> Real:
    """The mean of `x` as a distance from `newest`, summed oldest first."""
    total = x.dtype.type(0.0)
    for t in range(x.size):
        total += x[t] - newest
    return total * (x.dtype.type(1.0) / x.dtype.type(x.size))


@step
def lag_offsets(x: Slice, before: Slice, keep: Real, out: Slice) -> None:
    """What a mean's offset from its newest bar gains at every bar: keep × (bar before - bar)."""
    for t in range(out.size):
        out[t] = keep * (before[t] - x[t])


@step
def recursive_mean(x: Slice, window: int, alpha: Real, out: Slice) -> None:
    """A mean that moves by `alpha` towards each bar, seeded by the mean of the first `window`.

    It is kept as an offset from the newest bar, which is exactly 0 while nothing moves.
    """
    blank(out, window - 1)
    if x.size < window:
        return
    newest = x[window - 1]
    offset = mean_distance(x[:window], newest)
    out[window - 1] = newest + offset
    recursive_rest(x, window, offset, x.dtype.type(1.0) - alpha, out)


@step
def recursive_rest(x: Slice, first: int, offset: Real, keep: Real, out: Slice) -> None:
    """The mean from bar `first` on, where it was `offset` off the bar before."""
    for start in range(first, x.size, CHUNK):
        stop = min(start + CHUNK, x.size)
        here, rest = x[start:stop], out[start:stop]
        lag_offsets(here, x[start - 1 : stop - 1], keep, rest)
        offset = decaying_sum(rest, offset, keep, rest)
        for t in range(rest.size):
            rest[t] = here[t] + rest[t]


@step
def ema_lane(x: Slice, window: int, out: Slice) -> None:
    """Exponential moving average: alpha 2 / (window + 1)."""
    alpha = x.dtype.type(2.0) / x.dtype.type(window + 1)
    recursive_mean(x, window, alpha, out)


@step
def rsi_lane(close: Slice, window: int, room: Slice, out: Slice) -> None:
    """Relative strength index from two decaying sums: of the changes and of their sizes.

    room  scratch of 4, 8, 12 .. bars; how many changes nothing but the speed
    """
    blank(out, window)
    if close.size <= window:
        return
    keep = wilder_keep(close, window)
    change, size = close.dtype.type(0.0), close.dtype.type(0.0)
    for t in range(window):
        moved = close[t + 1] - close[t]
        change += moved
        size += abs(moved)
    out[window] = strength(change, size, close.dtype.type(50.0), close.dtype.type(0.0))
    rsi_rest(close, window + 1, change, size, keep, room, out)


@step
def rsi_rest(
    close: Slice, first: int, change: Real, size: Real, keep: Real, room: Slice, out: Slice
) -> None:
    """The index from bar `first` on, from both sums up to the bar before."""
    half, zero = close.dtype.type(50.0), close.dtype.type(0.0)
    for start in range(first, close.size, room.size):
        stop = min(start + room.size, close.size)
        here, before, rest = close[start:stop], close[start - 1 : stop - 1], out[start:stop]
        sizes = room[: stop - start]
        for t in range(rest.size):
            moved = here[t] - before[t]
            rest[t] = moved
            sizes[t] = abs(moved)
        change = decaying_sum(rest, change, keep, rest)
        size = decaying_sum(sizes, size, keep, sizes)
        for t in range(rest.size):
            rest[t] = strength(rest[t], sizes[t], half, zero)


@step
def strength(change: Real, size: Real, half: Real, zero: Real) -> Real:
    """50 + 50 × change / size with `half` 50; 50 where nothing moved."""
    return half + half * (change / size) if size > zero else half


@step
def wilder_keep(x: Slice, window: int) -> Real:
    """What a Wilder mean keeps of itself a bar: 1 - 1 / window, in the type of `x`."""
    return x.dtype.type(1.0) - x.dtype.type(1.0) / x.dtype.type(window)


@step
def true_range_lane(high: Slice, low: Slice, close: Slice, out: Slice) -> None:
    """Greatest of high and previous close less the least of low and previous close."""
    blank(out, 1)
    if out.size:
        true_ranges(high[1:], low[1:], close[:-1], out[1:])


@step
def true_ranges(high: Slice, low: Slice, before: Slice, out: Slice) -> None:
    """True ranges of bars whose previous closes are `before`."""
    for t in range(out.size):
        up, down, was = high[t], low[t], before[t]
        out[t] = (up if up > was else was) - (down if down < was else was)


@step
def atr_lane(high: Slice, low: Slice, close: Slice, window: int, out: Slice) -> None:
    """Average true range: a decaying sum of true ranges times 1 / window."""
    blank(out, window)
    if close.size <= window:
        return
    share, keep = close.dtype.type(1.0) / close.dtype.type(window), wilder_keep(close, window)
    total = close.dtype.type(0.0)
    for t in range(1, window + 1):
        up, down, was = high[t], low[t], close[t - 1]
        total += (up if up > was else was) - (down if down < was else was)
    out[window] = total * share
    atr_rest(high, low, close, window + 1, total, share, keep, out)


@step
def atr_rest(
    high: Slice,
    low: Slice,
    close: Slice,
    first: int,
    total: Real,
    share: Real,
    keep: Real,
    out: Slice,
) -> None:
    """The average from bar `first` on, from the decaying sum up to the bar before."""
    for start in range(first, close.size, CHUNK):
        stop = min(start + CHUNK, close.size)
        rest = out[start:stop]
        true_ranges(high[start:stop], low[start:stop], close[start - 1 : stop - 1], rest)
        total = decaying_sum(rest, total, keep, rest)
        for t in range(rest.size):
            rest[t] = rest[t] * share


@step
def macd_lane(
    x: Slice, fast: int, slow: int, signal: int, line: Slice, signal_line: Slice, histogram: Slice
) -> None:
    """Both averages as offsets from the newest bar; their difference is the line."""
    first = slow + signal - 2
    if x.size <= first:
        blank(line, x.size)
        blank(signal_line, x.size)
        blank(histogram, x.size)
        return
    one, two = x.dtype.type(1.0), x.dtype.type(2.0)
    near_keep = one - two / x.dtype.type(fast + 1)
    far_keep = one - two / x.dtype.type(slow + 1)
    near = mean_distance(x[slow - fast : slow], x[slow - 1])
    far = mean_distance(x[:slow], x[slow - 1])
    line[slow - 1] = near - far
    macd_rest(x, slow, near, far, near_keep, far_keep, line, histogram)
    ema_lane(line[slow - 1 :], signal, signal_line[slow - 1 :])
    for t in range(first, x.size):
        histogram[t] = line[t] - signal_line[t]
    blank(line, first)
    blank(signal_line, first)
    blank(histogram, first)


@step
def macd_rest(
    x: Slice,
    first: int,
    near: Real,
    far: Real,
    near_keep: Real,
    far_keep: Real,
    line: Slice,
    room: Slice,
) -> None:
    """The line from bar `first` on, from both offsets on the bar before; room [T] is scratch."""
    for start in range(first, x.size, CHUNK):
        stop = min(start + CHUNK, x.size)
        here, before = x[start:stop], x[start - 1 : stop - 1]
        nears, fars = line[start:stop], room[start:stop]
        lag_offsets(here, before, near_keep, nears)
        lag_offsets(here, before, far_keep, fars)
        near = decaying_sum(nears, near, near_keep, nears)
        far = decaying_sum(fars, far, far_keep, fars)
        for t in range(nears.size):
            nears[t] = nears[t] - fars[t]


@step
def adx_lane(
    high: Slice, low: Slice, close: Slice, window: int, index: Slice, plus: Slice, minus: Slice
) -> None:
    """Directional movement: decaying sums of moves up, moves down and true ranges."""
    blank(index, 2 * window - 1)
    blank(plus, window)
    blank(minus, window)
    if close.size <= window:
        return
    keep = wilder_keep(close, window)
    up, down, reach = adx_seed(high, low, close, window, index, plus, minus)
    adx_rest(high, low, close, window, up, down, reach, keep, index, plus, minus)
    blank(plus, window)
    blank(minus, window)
    average_direction(index, window)


@step
def adx_seed(
    high: Slice, low: Slice, close: Slice, window: int, index: Slice, plus: Slice, minus: Slice
) -> tuple[Real, Real, Real]:
    """Plain sums of the first window - 1 moves up, moves down and true ranges."""
    zero = close.dtype.type(0.0)
    up, down, reach = zero, zero, zero
    outs = (plus[1:window], minus[1:window], index[1:window])
    directional_moves(high[:window], low[:window], close[: window - 1], outs[0], outs[1], outs[2])
    for t in range(1, window):
        up, down, reach = up + plus[t], down + minus[t], reach + index[t]
    return up, down, reach


@step
def adx_rest(
    high: Slice,
    low: Slice,
    close: Slice,
    first: int,
    up: Real,
    down: Real,
    reach: Real,
    keep: Real,
    index: Slice,
    plus: Slice,
    minus: Slice,
) -> None:
    """+DI, -DI and the directional index from bar `first` on, from the sums before it."""
    for start in range(first, close.size, CHUNK):
        stop = min(start + CHUNK, close.size)
        ups, downs, reaches = plus[start:stop], minus[start:stop], index[start:stop]
        directional_moves(
            high[start - 1 : stop],
            low[start - 1 : stop],
            close[start - 1 : stop - 1],
            ups,
            downs,
            reaches,
        )
        up = decaying_sum(ups, up, keep, ups)
        down = decaying_sum(downs, down, keep, downs)
        reach = decaying_sum(reaches, reach, keep, reaches)
        directions(ups, downs, reaches)


@step
def directional_moves(
    high: Slice, low: Slice, before: Slice, up: Slice, down: Slice, reach: Slice
) -> None:
    """Moves up and down and true ranges; `high` and `low` begin one bar before the outputs."""
    zero = high.dtype.type(0.0)
    for t in range(reach.size):
        rise, fall = high[t + 1] - high[t], low[t] - low[t + 1]
        up[t] = rise if (rise > zero) & (rise > fall) else zero
        down[t] = fall if (fall > zero) & (fall > rise) else zero
    true_ranges(high[1:], low[1:], before, reach)


@step
def directions(plus: Slice, minus: Slice, index: Slice) -> None:
    """Sums of moves up, of moves down and of ranges become +DI, -DI and the directional index.

    The index of a bar without direction is -1.
    """
    zero, hundred, none = plus.dtype.type(0.0), plus.dtype.type(100.0), plus.dtype.type(-1.0)
    for t in range(index.size):
        up, down, reach = plus[t], minus[t], index[t]
        both = up + down
        index[t] = hundred * (abs(up - down) / both) if both > zero else none
        plus[t] = hundred * (up / reach) if reach > zero else zero
        minus[t] = hundred * (down / reach) if reach > zero else zero


@step
def average_direction(index: Slice, window: int) -> None:
    """Directional indices from bar `window` on become their Wilder mean, in place.

    A bar without direction counts as 0 in the seed and later leaves the mean as it was.
    """
    share, keep = index.dtype.type(1.0) / index.dtype.type(window), wilder_keep(index, window)
    zero = index.dtype.type(0.0)
    total, first = zero, 2 * window - 1
    for t in range(window, min(first + 1, index.size)):
        total += index[t] if index[t] > zero else zero
    if index.size > first:
        index[first] = total * share
    start = first + 1
    while start < index.size:
        stop = start
        last = min(start + CHUNK, index.size)
        while stop < last and index[stop] >= zero:
            stop += 1
        rest = index[start:stop]
        total = decaying_sum(rest, total, keep, rest)
        for t in range(rest.size):
            rest[t] = rest[t] * share
        if stop < last:
            index[stop] = total * share
            stop += 1
        start = stop
    blank(index, first)


@step
def obv_lane(close: Slice, volume: Slice, out: Slice) -> None:
    """On-balance volume: a sum of signed volumes that forgets nothing."""
    if out.size == 0:
        return
    out[0] = volume[0]
    obv_rest(close, volume, 1, volume[0], out)


@step
def obv_rest(close: Slice, volume: Slice, first: int, total: Real, out: Slice) -> None:
    """The sum from bar `first` on, from the one up to the bar before."""
    one = out.dtype.type(1.0)
    for start in range(first, close.size, CHUNK):
        stop = min(start + CHUNK, close.size)
        rest = out[start:stop]
        signed_volumes(close[start:stop], close[start - 1 : stop - 1], volume[start:stop], rest)
        total = decaying_sum(rest, total, one, rest)


@step
def signed_volumes(close: Slice, before: Slice, volume: Slice, out: Slice) -> None:
    """The volume of a rise, minus the volume of a fall, 0 of a tie."""
    zero = out.dtype.type(0.0)
    for t in range(out.size):
        now, was, traded = close[t], before[t], volume[t]
        out[t] = traded if now > was else (-traded if now < was else zero)
