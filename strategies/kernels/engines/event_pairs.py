"""Lanes that are in while one line is above another: their masks are made on the fly, never kept.

Lines are rows of one table. Beside the float64 values there is a 16-bit key for each: its place
between the lowest and the highest line on that bar. Keys order as their values do, so two different
keys decide a comparison at a quarter of the reading and an eighth of the comparing; where keys are
equal, which is rare, the values themselves decide. Nothing is approximate.
"""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.engines.event_lanes import Walked, kept, sold
from strategies.kernels.engines.event_tables import BUY, SELL
from strategies.kernels.engines.lanes import Ints, Words
from strategies.kernels.engines.masks import (
    ALL,
    ONE,
    ZERO,
    compiled,
    cttz,
    gt64,
    inlined,
    keys64,
    lt64,
    ones,
    summarise,
)
from strategies.kernels.engines.walk_steps import CASH, COMMISSION, FEE_RATE
from strategies.kernels.runs import Array
from strategies.kernels.threads import in_parts

Keys = NDArray[np.uint16]

TOP_KEY = 65_535.0
BARS_AT_ONCE = 256  # of all lines: they stay in the cache between the two passes


def keys_of(table: Array, threads: int = 1) -> Keys:
    """Keys of a table of lines [P, T padded], as described above; 0 for NaN."""
    keys = np.empty(table.shape, dtype=np.uint16)
    in_parts(lambda start, stop: _fill_keys(table, start, stop, keys), table.shape[1], threads)
    return keys


@compiled
def _fill_keys(table: Array, start: int, stop: int, keys: Any) -> None:
    least_room, most_room = np.empty(BARS_AT_ONCE), np.empty(BARS_AT_ONCE)
    for begin in range(start, stop, BARS_AT_ONCE):
        end = min(begin + BARS_AT_ONCE, stop)
        least, most = least_room[: end - begin], most_room[: end - begin]
        least[:], most[:] = np.inf, -np.inf
        for p in range(table.shape[0]):
            row = table[p, begin:end]
            for t in range(row.size):
                least[t] = row[t] if row[t] < least[t] else least[t]
                most[t] = row[t] if row[t] > most[t] else most[t]
        for t in range(least.size):
            room = most[t] - least[t]
            most[t] = TOP_KEY / room if room > 0.0 else 0.0
        for p in range(table.shape[0]):
            row, key = table[p, begin:end], keys[p, begin:end]
            for t in range(row.size):
                place = (row[t] - least[t]) * most[t]
                place = place if place > 0.0 else 0.0  # NaN too
                key[t] = np.uint16(np.int32(place if place < TOP_KEY else TOP_KEY))


@inlined
def toggles(keys: Any, table: Array, i: int, j: int, start: int, last: int, places: Ints) -> int:
    """Write the bars of start..last-1 on which "line i above line j" changes; how many there are.

    start   from 1 on; both lines have values from the bar before on
    places  scratch of T + 64
    """
    count = 0
    if start >= last:
        return 0
    w, end = (start - 1) >> 6, (last - 1) >> 6
    known = ALL << np.uint64((start - 1) & 63)
    keep = known << ONE  # the bar before only says how it was
    above = ZERO
    while w <= end:
        bar = w << 6
        if w == end:
            known &= ALL >> np.uint64(63 - ((last - 1) & 63))
            keep &= known
        over, same = keys64(keys, i, j, bar)
        if same & known != ZERO:
            over = gt64(table, i, table, j, bar)
        events = (over ^ ((over << ONE) | above)) & keep
        above = over >> np.uint64(63)
        known = keep = ALL
        found = ones(events)
        slot = np.uint64(count)
        places[slot] = bar + cttz(events)  # two at once, there or not: no branch to mispredict
        events &= events - ONE
        places[slot + ONE] = bar + cttz(events)
        events &= events - ONE
        more = count + 2
        while events != ZERO:
            places[more] = bar + cttz(events)
            events &= events - ONE
            more += 1
        count += found
        w += 1
    return count


@inlined
def is_above(keys: Any, table: Array, i: int, j: int, t: int) -> bool:
    """Whether line i is above line j on bar t."""
    bar = np.uint64(t)
    key, other = keys[np.uint64(i), bar], keys[np.uint64(j), bar]
    above: bool = key > other
    if key == other:
        above = table[i, bar] > table[j, bar]
    return above


@inlined
def walk_toggles(
    keys: Any,
    table: Array,
    i: int,
    j: int,
    places: Ints,
    count: int,
    bars: Array,
    spans: Array,
    last: int,
    terms: Array,
) -> Walked:
    """Trade one lane without stop and target over its toggles."""
    cash, commission, keep = terms[CASH], terms[COMMISSION], 1.0 - terms[FEE_RATE]
    sums, equity = (0.0, 0.0, 0.0, cash, 1.0), cash
    closed = still = held = winners = 0
    at = 0
    if count > 0 and not is_above(keys, table, i, j, places[0]):
        at = 1  # it was above before the start: the first change is a fall
    while at < count and cash > commission:
        a = places[np.uint64(at)] + 1
        at += 1
        x = last + 1
        while at < count and x > last:
            t = places[np.uint64(at)]
            limit = places[at + 1] if at + 1 < count else last
            while t < limit and not is_above(keys, table, j, i, t):
                t += 1  # a tie, which is no fall yet
            if t < limit:
                at += 1
                x = t + 1
            else:
                at += 2  # it rose again, or the bars ended
        shares = (cash - commission) / bars[np.uint64(a), BUY]
        sums, before = kept(sums, bars, spans, a, x, cash, shares)
        held += x - a
        if x > last:
            equity, still = before, 1
            break
        left = max(shares * bars[np.uint64(x), SELL] * keep - commission, 0.0)
        sums = sold(sums, before, left)
        closed += 1
        winners += left > cash
        cash = equity = left
    return equity, sums, closed, still, winners, held


@inlined
def pair_words(
    keys: Any, table: Array, i: int, j: int, start: int, last: int, entry: Words, exits: Words
) -> None:
    """Write the bits of "line i above line j" for bars start-1..last-1 into row 0 of both.

    entry  bars of start..last-1 that are above, after one that was not: the strict crossing
    exits  bars below: the first of them after a bar above is the strict crossing downwards
    start  first bar on which both lines had values the bar before; both have them from there on
    """
    words = table.shape[1] >> 6
    w, end = max(start - 1, 0) >> 6, (last - 1) >> 6
    for before in range(w):
        entry[0, before] = exits[0, before] = ZERO
    for after in range(max(end + 1, w), words):
        entry[0, after] = exits[0, after] = ZERO
    known = ALL << np.uint64(max(start - 1, 0) & 63)
    starts = ALL << np.uint64(start & 63)
    if start & 63 == 0 and start > 0:
        starts = ZERO
    above = ZERO
    while w <= end:
        bar = w << 6
        if w == end:
            known &= ALL >> np.uint64(63 - ((last - 1) & 63))
        over, same = keys64(keys, i, j, bar)
        under = ~over
        if same & known != ZERO:
            over, under = gt64(table, i, table, j, bar), lt64(table, i, table, j, bar)
        over &= known
        entry[0, w] = over & ~((over << ONE) | above) & starts
        exits[0, w] = under & known
        above = over >> np.uint64(63)
        known = starts = ALL
        w += 1
    summarise(entry, 0, words)
    summarise(exits, 0, words)
