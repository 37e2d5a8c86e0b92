"""Sets whose bar returns are given: a sweep without strategy or prices."""

from __future__ import annotations

import numpy as np

from strategies.kernels.engines.lanes import METRICS, Outcomes, empty_outcomes
from strategies.sweep.accounts import Account
from trader.core.metrics import max_drawdown, sharpe

CASH = 1_000.0
PERIODS = 252.0
DAY = 86_400 * 10**9


def outcomes(**given) -> Outcomes:
    """Outcomes with the given measures; for the rest a set that traded once for nothing."""
    size = len(next(iter(given.values())))
    filled = {name: np.zeros(size) for name in METRICS} | {"trades": np.ones(size)}
    filled |= {name: np.asarray(values, dtype=np.float64) for name, values in given.items()}
    for name in ("trades", "open_trades"):
        filled[name] = filled[name].astype(np.int64)
    return Outcomes(**filled)


class GivenReturns:
    """Set n earns returns[n] on each bar; NaN in a row makes it a set that does not fit together.

    returns  [sets, T]
    trades   closed trades of every set
    """

    def __init__(self, returns, *, trades=30, first=0, last=None) -> None:
        self.returns, self.trades = returns, trades
        self.first = first
        self.last = returns.shape[1] - 1 if last is None else last
        self.asked: list[tuple[int, int]] = []

    def over(self, first, last):
        return GivenReturns(self.returns, trades=self.trades, first=first, last=last)

    def curves(self, numbers):
        chosen = self.returns[numbers, self.first : self.last + 1]
        assert np.isfinite(chosen).all(), "a set that does not fit together has no curve"
        return CASH * np.cumprod(1.0 + chosen, axis=1)

    def run(self, start, stop) -> Outcomes:
        self.asked.append((start, stop))
        found = empty_outcomes(stop - start)
        for place, number in enumerate(range(start, stop)):
            if not np.isfinite(self.returns[number]).all():
                continue
            curve = self.curves(np.array([number]))[0]
            ratio = sharpe(curve, CASH, PERIODS)
            found.final_equity[place] = curve[-1]
            found.sharpe[place] = np.nan if ratio is None else ratio
            found.max_drawdown[place] = max_drawdown(curve, CASH)
            found.trades[place] = self.trades
            found.hit_rate[place] = 0.5
        return found


def account(returns, *, name="X", trades=30, begins=0, first=0) -> Account:
    """An account over given returns, one bar a day from day `begins` on."""
    times = (np.arange(returns.shape[1], dtype=np.int64) + begins) * DAY
    sweep = GivenReturns(returns, trades=trades, first=first)
    return Account(name=name, sweep=sweep, times=times, first=first, cash=CASH)
