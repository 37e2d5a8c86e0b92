"""The embedded exchange: one cash account, Alpaca's REST, and a clock that `advance` moves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from threading import RLock

from trader.broker.exchange.desk import Desk
from trader.broker.exchange.prices import Prices
from trader.broker.exchange.request import Request
from trader.broker.exchange.routes import Answer, answer
from trader.broker.exchange.state import Market, Store
from trader.core.clock import SessionCalendar
from trader.core.costs import Costs
from trader.core.errors import StateError
from trader.core.market import Timeframe, from_ns, to_ns
from trader.core.ports import MarketData


class Exchange:
    """A market over bars; implements SimulatedMarket.

    Deterministic: ids derive from client order ids and counters, time comes from `advance` alone.
    A new market begins at `start` with `cash`. With a `database` that exists, its stored clock,
    cash and costs hold instead; `trader.broker.exchange.state.erase` lets it begin again.
    """

    def __init__(
        self,
        *,
        data: MarketData,
        timeframe: Timeframe,
        calendar: SessionCalendar,
        costs: Costs,
        cash: Decimal,
        start: datetime,
        database: Path | None,
    ) -> None:
        """Open or begin the market.

        data       bars the orders trade on; only complete ones are looked at
        cash       USD
        start      aware datetime, market time of a new market
        database   file of the state; None keeps it in memory
        Raises StateError when the file cannot be used or belongs to other bars, ValueError for
        a naive `start` or negative `cash`.
        """
        if not cash.is_finite() or cash < 0:
            raise ValueError(f"the market cannot begin with {cash} USD")
        self._lock = RLock()
        self._calendar = calendar
        self._prices = Prices(data, timeframe)
        self._store = Store(database)
        asked = Market(
            source=data.name,
            timeframe=timeframe.value,
            slippage_bps=costs.slippage_bps,
            fee_bps=costs.fee_bps,
            commission_per_order=costs.commission_per_order,
            initial_cash=cash,
        )
        with self._store.transaction():
            market = self._store.market()
            if market is None:
                self._store.begin(asked, to_ns(start))
                market = asked
        if (market.source, market.timeframe) != (asked.source, asked.timeframe):
            self._store.close()
            raise StateError(
                f"{database} holds a market of {market.timeframe} bars from {market.source}, not "
                f"of {asked.timeframe} bars from {asked.source}; begin again with --restart-market"
            )
        self.initial_cash = market.initial_cash
        self.costs = Costs(
            slippage_bps=market.slippage_bps,
            fee_bps=market.fee_bps,
            commission_per_order=market.commission_per_order,
        )

    def now(self) -> datetime:
        """Market time, UTC."""
        with self._lock:
            return from_ns(self._store.clock_ns())

    def advance(self, to: datetime) -> None:
        """Match every bar that became available up to `to` against the open orders.

        ValueError if `to` lies behind; DataIntegrityError for a bar that cannot be traded on.
        Nothing is changed when an error is raised.
        """
        to_moment_ns = to_ns(to)
        with self._lock, self._desk(writes=True) as desk:
            if to_moment_ns < desk.account.clock_ns:
                now = from_ns(desk.account.clock_ns)
                raise ValueError(f"the market cannot go back from {now} to {to}")
            desk.advance(to_moment_ns)
            self._store.save(desk.account)

    def handle(self, method: str, path_url: str, body: bytes | None) -> Answer:
        """Answer a REST request such as ("GET", "/v2/account", None): HTTP status and JSON."""
        request = Request.of(method, path_url, body)
        with self._lock, self._desk(writes=not request.only_reads) as desk:
            status, payload = answer(desk, request)
            if not request.only_reads and status < 400:
                self._store.save(desk.account)
            return status, payload

    def close(self) -> None:
        """Let go of the database file."""
        self._store.close()

    @contextmanager
    def _desk(self, *, writes: bool) -> Iterator[Desk]:
        with self._store.transaction() if writes else self._store.snapshot():
            yield Desk(
                store=self._store,
                prices=self._prices,
                calendar=self._calendar,
                costs=self.costs,
            )
