"""The sets of a grid on several accounts, and what the accounts are worth together over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from strategies.kernels.engines.lanes import Ints, Outcomes
from strategies.kernels.runs import Array

BLOCK = 1 << 16  # sets that are worked at once


class Swept(Protocol):
    """The sets of a grid on one account."""

    def run(self, start: int, stop: int) -> Outcomes:
        """What becomes of the sets start..stop-1."""

    def over(self, first: int, last: int) -> Swept:
        """The same sets traded on bars first..last only, bars before warming indicators up."""

    def curves(self, numbers: Ints) -> Array:
        """[n, bars traded] equity of some sets at each close, USD."""

    def trades(self, number: int) -> Sequence[Any] | Mapping[str, Sequence[Any]]:
        """The trades of one set, by symbol where there are several; see `walk_money.LaneTrade`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The sets of a grid on one account, and when.

    name   of the symbol, or of all of them where they share the cash
    times  [T] int64, when each bar is complete
    first  bar of the first decision
    cash   USD at the start
    """

    name: str
    sweep: Swept
    times: Ints
    first: int
    cash: float

    def over(self, begin: int, end: int) -> Account | None:
        """The same between two moments, both included; None with fewer than two bars."""
        first = max(self.first, int(np.searchsorted(self.times, begin)))
        last = int(np.searchsorted(self.times, end, side="right")) - 1
        if last - first < 1:
            return None
        return Account(
            name=self.name,
            sweep=self.sweep.over(first, last),
            times=self.times[: last + 1],
            first=first,
            cash=self.cash,
        )


def moments_of(accounts: Sequence[Account]) -> Ints:
    """[U] every moment at which a bar of any account ends, oldest first."""
    return np.unique(np.concatenate([one.times[one.first :] for one in accounts]))


def pooled(accounts: Sequence[Account], numbers: Ints, at: Ints) -> Array:
    """[n, U] equity of all accounts together at the moments `at`; cash until an account's begin."""
    total = np.zeros((numbers.size, at.size))
    for one in accounts:
        known = np.searchsorted(one.times[one.first :], at, side="right")
        curve = one.sweep.curves(numbers)
        begun = np.full((numbers.size, 1), one.cash)
        total += np.concatenate((begun, curve), axis=1)[:, known]
    return total


def returns_of(equity: Array, cash: float) -> Array:
    """[n, U] bar returns of equity [n, U]; the first is against the cash."""
    before = np.concatenate((np.full((len(equity), 1), cash), equity[:, :-1]), axis=1)
    returns: Array = equity / before - 1.0
    return returns


def blocks_of(sets: int) -> Iterator[tuple[int, int]]:
    """Start and stop of each block of sets."""
    for start in range(0, sets, BLOCK):
        yield start, min(start + BLOCK, sets)
