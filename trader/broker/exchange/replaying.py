"""A market done again from its log of commands, which proves that the log is all there is to it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from trader.broker.exchange.exchange import Exchange
from trader.broker.exchange.state import Store
from trader.core.clock import SessionCalendar
from trader.core.costs import Costs
from trader.core.errors import StateError
from trader.core.market import Timeframe, from_ns, to_ns
from trader.core.ports import MarketData


def replayed(database: Path, *, data: MarketData, calendar: SessionCalendar) -> Exchange:
    """A new market in memory that has been through every command in the log of `database`.

    Its `sha256` equals that of the market it was taken from. Raises StateError when the file
    cannot be read, holds no market or no complete log, or when a command no longer fits, because
    `data` is not what it was.
    """
    if not database.exists():
        raise StateError(f"{database} does not exist; there is no market to replay")
    store = Store(database)
    try:
        with store.snapshot():
            market = store.market()
            if market is None:
                raise StateError(f"{database} holds no market to replay")
            begin, *commands = store.commands()
    finally:
        store.close()
    exchange = Exchange(
        data=data,
        timeframe=Timeframe(market.timeframe),
        calendar=calendar,
        costs=Costs(
            slippage_bps=market.slippage_bps,
            fee_bps=market.fee_bps,
            commission_per_order=market.commission_per_order,
        ),
        cash=Decimal(begin.path),
        start=from_ns(begin.clock_ns),
        database=None,
        liquidity=market.liquidity,
    )
    for number, command in enumerate(commands, start=1):
        if to_ns(exchange.now()) != command.clock_ns:
            raise StateError(
                f"command {number} of {database} came at {from_ns(command.clock_ns)}, "
                f"not at {exchange.now()}"
            )
        exchange.do(command)
    return exchange
