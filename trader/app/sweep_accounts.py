"""The accounts that a sweep trades on: one a symbol, or one for all symbols together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from strategies.kernels.engines.lanes import Ints
from strategies.sweep.accounts import Account
from strategies.sweep.engine import open_sweep
from strategies.sweep.grid import Grid
from strategies.sweep.shared import open_shared
from trader.app.sweep_plan import BackendName, Plan
from trader.core.market import from_ns
from trader.report.contents import TradeRow

BUY_AND_HOLD = "buy_and_hold"
HELD = {"stop_atr": 0.0, "target_atr": 0.0, "trail_atr": 0.0}  # nothing but the end ends it


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """Accounts over one grid, and who computes them."""

    accounts: Sequence[Account]
    engine: str
    backend: str
    reason: str


def open_accounts(planned: Plan, grid: Grid, strategy: str, fixed: Mapping[str, float]) -> Opened:
    """The sets of `grid` on every symbol of the plan.

    Raises EndpointError for a device that was asked for by name and is not there, UsageError for an
    engine that cannot work these sets.
    """
    series, terms = planned.coverage.series, planned.terms
    accounts: list[Account] = []
    sweep: Any = None
    if planned.request.shared_cash:
        sweep = open_shared(
            series,
            strategy,
            grid,
            fixed=fixed,
            begin=planned.opening,
            terms=terms,
            engine=planned.engine,
            backend=planned.backend,
            threads=planned.threads,
        )
        name = ", ".join(series)
        accounts.append(
            Account(name=name, sweep=sweep, times=sweep.at, first=sweep.first, cash=terms.cash)
        )
    else:
        for symbol, bars in series.items():
            first = planned.first[symbol]
            sweep = open_sweep(
                bars,
                strategy,
                grid,
                fixed=fixed,
                first=first,
                terms=terms,
                engine=planned.engine,
                backend=planned.backend,
                threads=planned.threads,
            )
            times = bars.available_at
            accounts.append(
                Account(name=symbol, sweep=sweep, times=times, first=first, cash=terms.cash)
            )
    return Opened(
        accounts=accounts, engine=sweep.engine, backend=sweep.backend, reason=sweep.reason
    )


def open_one(planned: Plan, strategy: str, numbers: Mapping[str, float]) -> Opened:
    """A single set of numbers, by whichever engine is quickest: all of them agree."""
    name = "max_bars"
    grid = Grid(names=(name,), values=(np.array([float(numbers[name])]),))
    fixed = {other: value for other, value in numbers.items() if other != name}
    backend: BackendName = "reference" if planned.backend == "reference" else "auto"
    return open_accounts(replace(planned, engine="auto", backend=backend), grid, strategy, fixed)


def hold_accounts(planned: Plan) -> Opened:
    """Buying at once and keeping, on every symbol of the plan."""
    window = planned.defaults["stop_window"]
    return open_one(planned, BUY_AND_HOLD, {**HELD, "stop_window": window, "max_bars": 0})


def trade_rows(opened: Opened, strategy: str, number: int) -> tuple[TradeRow, ...]:
    """The trades of set `number` on all accounts, oldest first."""
    rows = [
        row
        for one in opened.accounts
        for symbol, trades in _listed(one, number)
        for row in _rows(symbol, strategy, trades, one.times)
    ]
    return tuple(sorted(rows, key=lambda row: (row.entered_at, row.symbol)))


def _listed(account: Account, number: int) -> Iterator[tuple[str, Sequence[Any]]]:
    found = account.sweep.trades(number)
    if isinstance(found, Mapping):
        yield from found.items()
    else:
        yield account.name, found


def _rows(symbol: str, strategy: str, trades: Sequence[Any], times: Ints) -> Iterator[TradeRow]:
    for trade in trades:
        is_open = trade.exit_bar < 0
        yield TradeRow(
            trade_id=f"{symbol}-{trade.entry_bar}",
            symbol=symbol,
            strategy=strategy,
            quantity=trade.shares,
            entered_at=from_ns(times[trade.entry_bar]),
            entry_price=trade.entry_price,
            why_entered="signal",
            exited_at=None if is_open else from_ns(times[trade.exit_bar]),
            exit_price=None if is_open else trade.exit_price,
            left_by="" if is_open else str(trade.left_by),
            why_left="" if is_open else str(trade.left_by),
            profit=trade.profit,
            r_multiple=None,
            is_open=is_open,
        )
