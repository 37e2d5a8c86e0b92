"""The definition of several symbols on one account, which trade by the same set of numbers.

The rules are those of `walk_reference`; with one symbol it is `walk`. The bars
of all symbols lie on one time axis: where a symbol has none its prices are NaN, nothing of it is
traded or decided, its orders wait, and its last close keeps marking it. Symbols are taken in the
order of their names, whatever the order they are given in.
"""

# ruff: noqa: PLR0917 - engines take markets, signals, ATR, lanes and terms by position

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from strategies.kernels.engines.lanes import Lanes, Outcomes, Prices, Signals, Terms, empty_outcomes
from strategies.kernels.engines.walk_checks import require_one, require_shared
from strategies.kernels.engines.walk_money import LaneTrade
from strategies.kernels.engines.walk_reference import Account, leg_of, note
from strategies.kernels.runs import Array

Tables = Mapping[str, Array | None]


def walk_shared(
    markets: Mapping[str, Prices],
    signals: Mapping[str, Signals],
    atr_tables: Tables,
    lanes: Lanes,
    terms: Terms,
) -> Outcomes:
    """What becomes of every lane; `open_trades` counts symbols, `exposure` bars that end with any.

    markets, signals, atr_tables  by symbol; a table may be None, or left out, where no lane has
                                  levels
    raises                        ValueError for arguments that do not fit together
    """
    require_shared(markets, signals, atr_tables, lanes, terms)
    out = empty_outcomes(len(lanes))
    for lane in range(len(lanes)):
        note(out, lane, _account(markets, signals, atr_tables, lanes, lane, terms), terms)
    return out


def curves_shared(
    markets: Mapping[str, Prices],
    signals: Mapping[str, Signals],
    atr_tables: Tables,
    lanes: Lanes,
    terms: Terms,
) -> Array:
    """Equity of every lane at every close, [L, n] USD; raises as `walk_shared`."""
    require_shared(markets, signals, atr_tables, lanes, terms)
    accounts = [
        _account(markets, signals, atr_tables, lanes, lane, terms) for lane in range(len(lanes))
    ]
    traded = next(iter(markets.values())).traded
    return np.array([account.equity for account in accounts]).reshape((len(lanes), traded))


def trades_shared(
    markets: Mapping[str, Prices],
    signals: Mapping[str, Signals],
    atr_tables: Tables,
    lanes: Lanes,
    terms: Terms,
) -> dict[str, tuple[LaneTrade, ...]]:
    """The trades of one lane by symbol, oldest first, an open one last; raises as `walk_shared`."""
    require_shared(markets, signals, atr_tables, lanes, terms)
    require_one(lanes)
    account = _account(markets, signals, atr_tables, lanes, 0, terms)
    pairs = zip(sorted(markets), account.legs, strict=True)
    return {symbol: tuple(leg.trades) for symbol, leg in pairs}


def _account(
    markets: Mapping[str, Prices],
    signals: Mapping[str, Signals],
    atr_tables: Tables,
    lanes: Lanes,
    lane: int,
    terms: Terms,
) -> Account:
    legs = [
        leg_of(markets[symbol], signals[symbol], atr_tables.get(symbol), lanes, lane)
        for symbol in sorted(markets)
    ]
    first = next(iter(markets.values())).first
    return Account(legs, first=first, terms=terms).run()
