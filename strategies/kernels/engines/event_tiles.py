"""Tiles of a grid of lanes: decoded by arithmetic, walked where their rows stay in the caches.

A set of numbers is a place on each axis of a grid. Everything a lane needs (its lines, its stop,
its ATR) is looked up at an index that is linear in those places, so nothing is listed or sorted set
by set. Tiles are few places of the last axis by many of the others. Threads take them from one
counter; which of them works a tile changes no bit of the outcome.
"""

# ruff: noqa: PLR0917 - kernels take arrays by position

from __future__ import annotations

from typing import Any

import numpy as np

from strategies.kernels.engines.event_lanes import (
    AGAIN,
    CLOSED,
    STILL,
    count_again,
    finish,
    put,
    walk_bits,
)
from strategies.kernels.engines.event_pairs import pair_words, toggles, walk_toggles
from strategies.kernels.engines.lanes import BITS, Ints, Words
from strategies.kernels.engines.masks import compiled, inlined, take
from strategies.kernels.engines.walk_steps import PERIODS
from strategies.kernels.runs import Array

# Roles: what a lane is made of
ONE_ROW, OTHER_ROW, ATR, STOP, TARGET, LOW, HIGH = range(7)
ROLES = 7

PLACES_A_TILE = 16  # of the last axis
OTHERS_A_TILE = 64


@inlined
def _tile(unit: int, sizes: Ints, start: int, stop: int) -> tuple[int, int, int, int]:
    """Tile `unit` of the sets start..stop-1: others from, to, places of the last axis from, to."""
    inner = sizes[sizes.size - 1]
    first, after = start // inner, (stop - 1) // inner + 1
    across = (inner + PLACES_A_TILE - 1) // PLACES_A_TILE
    top = first + unit // across * OTHERS_A_TILE
    left = unit % across * PLACES_A_TILE
    return top, min(top + OTHERS_A_TILE, after), left, min(left + PLACES_A_TILE, inner)


@inlined
def _base(outer: int, sizes: Ints, strides: Ints, base: Ints) -> None:
    """Write the index of each role at place 0 of the last axis."""
    for role in range(base.size):
        base[role] = 0
    for axis in range(sizes.size - 2, -1, -1):
        place = outer % sizes[axis]
        outer //= sizes[axis]
        for role in range(base.size):
            base[role] += place * strides[role, axis]


@inlined
def _refuse(out: Array, lane: int) -> None:
    """Say that the numbers of a set mean nothing."""
    for row in range(out.shape[0]):
        out[row, lane] = np.nan
    out[CLOSED, lane], out[STILL, lane], out[AGAIN, lane] = -1.0, 0.0, 0.0


@inlined
def _made_of(
    at: Ints,
    step: Ints,
    place: int,
    one_row: Ints,
    other_row: Ints,
    atr_row: Ints,
    stops: Array,
    targets: Array,
    lows: Array,
    highs: Array,
) -> tuple[int, int, int, float, float]:
    """The two rows, ATR row, stop and target of a place; the first is -1 where it means nothing."""
    one = one_row[at[ONE_ROW] + place * step[ONE_ROW]]
    other = other_row[at[OTHER_ROW] + place * step[OTHER_ROW]]
    if other < 0 or not lows[at[LOW] + place * step[LOW]] < highs[at[HIGH] + place * step[HIGH]]:
        one = -1
    stop = stops[at[STOP] + place * step[STOP]]
    target = targets[at[TARGET] + place * step[TARGET]]
    return one, other, atr_row[at[ATR] + place * step[ATR]], stop, target


@compiled
def row_tiles(
    counter: Ints,
    sizes: Ints,
    strides: Ints,
    one_row: Ints,
    other_row: Ints,
    atr_row: Ints,
    stops: Array,
    targets: Array,
    lows: Array,
    highs: Array,
    start: int,
    stop: int,
    entry: Words,
    exits: Words,
    atr: Array,
    bars: Array,
    spans: Array,
    reaches: Array,
    first: int,
    last: int,
    terms: Array,
    out: Array,
) -> None:
    """Walk the tiles that `counter` hands out, of lanes with rows of bits; see `events.Roles`."""
    inner = sizes[sizes.size - 1]
    at, step = np.empty(ROLES, dtype=np.int64), np.empty(ROLES, dtype=np.int64)
    for role in range(ROLES):
        step[role] = strides[role, sizes.size - 1]
    curve = np.empty(bars.shape[0])
    while True:
        top, bottom, left, right = _tile(take(counter), sizes, start, stop)
        if top >= bottom:
            return
        for outer in range(top, bottom):
            _base(outer, sizes, strides, at)
            begin, end = max(left, start - outer * inner), min(right, stop - outer * inner)
            lane = outer * inner - start
            for place in range(begin, end):
                one, other, row, floor, ceiling = _made_of(
                    at, step, place, one_row, other_row, atr_row, stops, targets, lows, highs
                )
                if one < 0:
                    _refuse(out, lane + place)
                    continue
                walked = walk_bits(
                    entry, one, exits, other, bars, spans, reaches, atr, row, floor, ceiling,
                    first, last, terms, curve, False,
                )  # fmt: skip
                put(out, lane + place, walked, bars, first, last)
            for place in range(begin, end):
                if out[AGAIN, lane + place] > 0.0:
                    one, other, row, floor, ceiling = _made_of(
                        at, step, place, one_row, other_row, atr_row, stops, targets, lows, highs
                    )
                    count_again(
                        entry, one, exits, other, bars, spans, reaches, atr, row, floor, ceiling,
                        first, last, terms, curve, out, lane + place,
                    )  # fmt: skip
            finish(out, lane + begin, lane + end, last - first + 1, terms[PERIODS])


@compiled
def pair_tiles(
    counter: Ints,
    sizes: Ints,
    strides: Ints,
    one_row: Ints,
    other_row: Ints,
    atr_row: Ints,
    stops: Array,
    targets: Array,
    lows: Array,
    highs: Array,
    start: int,
    stop: int,
    table: Array,
    keys: Any,
    begins: Ints,
    atr: Array,
    bars: Array,
    spans: Array,
    reaches: Array,
    first: int,
    last: int,
    terms: Array,
    out: Array,
) -> None:
    """Walk the tiles that `counter` hands out, of lanes between two lines; see `events.Roles`."""
    inner = sizes[sizes.size - 1]
    at, step = np.empty(ROLES, dtype=np.int64), np.empty(ROLES, dtype=np.int64)
    for role in range(ROLES):
        step[role] = strides[role, sizes.size - 1]
    curve = np.empty(bars.shape[0])
    places = np.empty(table.shape[1] + BITS, dtype=np.int64)
    words = table.shape[1] // BITS
    entry = np.zeros((1, words + (words + BITS - 1) // BITS), dtype=np.uint64)
    exits = np.zeros((1, words + (words + BITS - 1) // BITS), dtype=np.uint64)
    only = sizes.size - sizes.size  # row 0; a literal 0 would be compiled anew
    while True:
        top, bottom, left, right = _tile(take(counter), sizes, start, stop)
        if top >= bottom:
            return
        for outer in range(top, bottom):
            _base(outer, sizes, strides, at)
            begin, end = max(left, start - outer * inner), min(right, stop - outer * inner)
            lane = outer * inner - start
            made = made_with = -1  # rows that entry and exits are made of
            for place in range(begin, end):
                one, other, row, floor, ceiling = _made_of(
                    at, step, place, one_row, other_row, atr_row, stops, targets, lows, highs
                )
                if one < 0:
                    _refuse(out, lane + place)
                    continue
                begun = max(first, max(begins[one], begins[other]) + 1)
                if floor > 0.0 or ceiling > 0.0:
                    if made != one or made_with != other:
                        pair_words(keys, table, one, other, begun, last, entry, exits)
                        made, made_with = one, other
                    walked = walk_bits(
                        entry, only, exits, only, bars, spans, reaches, atr, row, floor, ceiling,
                        first, last, terms, curve, False,
                    )  # fmt: skip
                else:
                    count = toggles(keys, table, one, other, begun, last, places)
                    walked = walk_toggles(
                        keys, table, one, other, places, count, bars, spans, last, terms
                    )
                put(out, lane + place, walked, bars, first, last)
            for place in range(begin, end):
                if out[AGAIN, lane + place] > 0.0:
                    one, other, row, floor, ceiling = _made_of(
                        at, step, place, one_row, other_row, atr_row, stops, targets, lows, highs
                    )
                    begun = max(first, max(begins[one], begins[other]) + 1)
                    pair_words(keys, table, one, other, begun, last, entry, exits)
                    count_again(
                        entry, only, exits, only, bars, spans, reaches, atr, row, floor, ceiling,
                        first, last, terms, curve, out, lane + place,
                    )  # fmt: skip
            finish(out, lane + begin, lane + end, last - first + 1, terms[PERIODS])
