"""The two sums that the reference is made of: over a window, and with a decaying memory.

Their order of operations is part of the definition: four terms at a time start from one total, so
that a compiled twin can take four bars side by side and still agree in every bit.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.runs import Array

GROUP = 4  # terms that start from one total


def blocks(x: Array, window: int) -> tuple[Array, Array, Array]:
    """`x` in rows of `window` bars, the rows one block earlier, and the first bar of every row.

    That bar is the level from which distances are taken: it lies in every window that ends in the
    row. Before the first row there is nothing at a distance.
    """
    rows = -(-x.size // window)
    now = np.zeros((rows, window))
    now.reshape(-1)[: x.size] = x
    level = now[:, :1]
    return now, np.concatenate((np.broadcast_to(level[:1], (1, window)), now[:-1])), level


def flat(rows: Array, size: int) -> Array:
    """The first `size` bars of rows of bars."""
    return rows.reshape(-1)[:size]


def window_sums(now: Array, before: Array) -> Array:
    """[rows, window] sums over the window ending at every bar, from its terms in both blocks.

    Those of the block before are summed newest first, those of its own block oldest first, in
    groups of four that all start from one total.
    """
    ahead = _running_sums(_groups(now))
    behind = _running_sums(_groups(before)[:, ::-1, ::-1])
    older = np.zeros_like(behind)
    older.reshape(now.shape[0], -1)[:, 1:] = behind.reshape(now.shape[0], -1)[:, :-1]
    sums = older[:, ::-1, ::-1] + ahead
    return sums.reshape(now.shape[0], -1)[:, : now.shape[1]]


def _groups(x: Array) -> Array:
    """[rows, groups, 4] every row in groups of four; 0 where the row has ended."""
    groups = np.zeros((x.shape[0], -(-x.shape[1] // GROUP), GROUP))
    groups.reshape(x.shape[0], -1)[:, : x.shape[1]] = x
    return groups


def _running_sums(groups: Array) -> Array:
    """[rows, groups, 4] sums along every row up to each term."""
    first, second, third, fourth = np.moveaxis(groups, 2, 0)
    sums = np.empty_like(groups)
    sums[:, :, 0] = first
    sums[:, :, 1] = first + second
    sums[:, :, 2] = first + (second + third)
    sums[:, :, 3] = sums[:, :, 1] + (third + fourth)
    totals = np.add.accumulate(sums[:, :-1, 3], axis=1)
    sums[:, 1:] += totals[:, :, np.newaxis]
    return sums


def decaying_sum(x: Array, total: float, keep: float) -> Array:
    """[T] keep × the total before + x, in groups of four bars that all start from one total."""
    groups = np.zeros((-(-x.size // GROUP), GROUP))
    groups.reshape(-1)[: x.size] = x
    first, second, third, fourth = groups.T
    keep2 = keep * keep
    keep3, keep4 = keep2 * keep, keep2 * keep2
    pair = keep * first + second
    gains = keep2 * pair + (keep * third + fourth)
    before = np.empty(gains.size)
    for group, gain in enumerate(gains.tolist()):
        before[group] = total
        total = keep4 * total + gain
    sums = np.empty_like(groups)
    sums[:, 0] = keep * before + first
    sums[:, 1] = keep2 * before + pair
    sums[:, 2] = keep3 * before + (keep2 * first + (keep * second + third))
    sums[:, 3] = keep4 * before + gains
    return flat(sums, x.size)
