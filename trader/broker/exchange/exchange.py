"""The embedded exchange: one cash account, Alpaca's REST, and a clock that `advance` moves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from threading import RLock

from trader.broker.exchange.deeds import DEEDS
from trader.broker.exchange.desk import Desk
from trader.broker.exchange.liquidity import Liquidity
from trader.broker.exchange.prices import Prices
from trader.broker.exchange.records import Command, Event
from trader.broker.exchange.request import Request
from trader.broker.exchange.routes import Answer, answer
from trader.broker.exchange.state import Market, Store
from trader.core.clock import SessionCalendar
from trader.core.costs import Costs
from trader.core.errors import StateError
from trader.core.market import Timeframe, from_ns, to_ns
from trader.core.ports import MarketData

ADVANCE, DEED = "ADVANCE", "DEED"


class Exchange:
    """A market over bars; implements SimulatedMarket.

    Deterministic: ids derive from client order ids and counters, time comes from `advance` alone,
    and every call that changed something is logged, so that `replayed` can do it all again.
    A new market begins at `start` with `cash`. With a `database` that exists, its stored clock,
    cash, costs and liquidity hold instead; `trader.broker.exchange.state.erase` lets it begin
    again.
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
        liquidity: Liquidity | None = None,
        free_plan: bool = False,
    ) -> None:
        """Open or begin the market.

        data       bars the orders trade on; only complete ones are looked at
        cash       USD
        start      aware datetime, market time of a new market
        database   file of the state; None keeps it in memory
        liquidity  how much trades at once; None: everything
        free_plan  whether SIP data newer than 15 minutes is refused
        Raises StateError when the file cannot be used or belongs to other bars, ValueError for
        a naive `start` or negative `cash`.
        """
        if not cash.is_finite() or cash < 0:
            raise ValueError(f"the market cannot begin with {cash} USD")
        self.free_plan = free_plan
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
            liquidity=liquidity or Liquidity(),
        )
        with self._store.transaction():
            market = self._store.market()
            if market is None:
                self._store.begin(asked, to_ns(start))
                market = asked
            self._prices.announce(self._store.postings.announced())
        if (market.source, market.timeframe) != (asked.source, asked.timeframe):
            self._store.close()
            raise StateError(
                f"{database} holds a market of {market.timeframe} bars from {market.source}, not "
                f"of {asked.timeframe} bars from {asked.source}; begin again with --restart-market"
            )
        self.initial_cash = market.initial_cash
        self.liquidity = market.liquidity
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
            command = Command(
                clock_ns=desk.account.clock_ns, method=ADVANCE, path=str(to_moment_ns), body=None
            )
            desk.advance(to_moment_ns)
            self._keep(desk, command)

    def handle(self, method: str, path_url: str, body: bytes | None) -> Answer:
        """Answer a REST request such as ("GET", "/v2/account", None): HTTP status and JSON."""
        request = Request.of(method, path_url, body)
        with self._lock, self._desk(writes=not request.only_reads) as desk:
            status, payload = answer(desk, request)
            if not request.only_reads and status < 400:
                command = Command(
                    clock_ns=desk.account.clock_ns, method=request.method, path=path_url, body=body
                )
                self._keep(desk, command)
            return status, payload

    def events(self, after: int) -> list[Event]:
        """Changes of orders beyond the sequence number `after` (0: all), oldest first."""
        with self._lock, self._store.snapshot():
            return self._store.events(after)

    def split(self, symbol: str, ratio: Decimal, session: date) -> None:
        """Announce a split into `ratio` new shares for each old one, which the bars do not show.

        From the opening of `session` on prices are shown and traded after the split. ValueError for
        a ratio that is none, for a session that has opened and for one that has its split.
        """
        self._deed("split", symbol=symbol, ratio=str(ratio), session=session.isoformat())

    def pay_dividend(self, symbol: str, per_share: Decimal, session: date) -> None:
        """Announce a cash dividend, USD, for the shares held at the close before `session`.

        It is paid at its opening. ValueError as for a split.
        """
        self._deed("dividend", symbol=symbol, per_share=str(per_share), session=session.isoformat())

    def deposit(self, amount: Decimal, *, journal: bool = False) -> None:
        """Pay in USD, or out when negative; `journal` is how paper accounts are topped up.

        ValueError for parts of a cent and for more than is free to be taken out.
        """
        self._deed("deposit", amount=str(amount), kind="JNLC" if journal else "")

    def charge(self, amount: Decimal, description: str) -> None:
        """Take a fee of so many USD; ValueError when it is not there."""
        self._deed("charge", amount=str(amount), description=description)

    def halt(self, symbol: str, on: bool) -> None:
        """Stop the trading of a symbol, or let it go on; ValueError for an unknown one."""
        self._deed("halt", symbol=symbol, on=str(on))

    def block(self, reason: str) -> None:
        """Let the account order nothing any more; an empty reason lets it again."""
        self._deed("block", reason=reason)

    def reset(self, cash: Decimal) -> None:
        """Put a new account with `cash` USD in the place of this one, at the same market time."""
        self._deed("reset", cash=str(cash))

    def do(self, command: Command) -> None:
        """Do again what a log of commands says; StateError when it did not fit in then."""
        if command.method == ADVANCE:
            self.advance(from_ns(int(command.path)))
            return
        if command.method == DEED:
            self._deed(command.path, **json.loads(command.body or b"{}"))
            return
        status, payload = self.handle(command.method, command.path, command.body)
        if status >= 400:
            raise StateError(f"{command.method} {command.path} is refused now: {status} {payload}")

    def sha256(self) -> str:
        """Hash of everything that is stored, log and events included."""
        with self._lock, self._store.snapshot():
            return self._store.sha256()

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
                liquidity=self.liquidity,
                free_plan=self.free_plan,
            )

    def _deed(self, name: str, **told: str) -> None:
        """Do what no request can ask for, and log it; nothing is changed when it raises."""
        with self._lock:
            with self._desk(writes=True) as desk:
                command = Command(
                    clock_ns=desk.account.clock_ns,
                    method=DEED,
                    path=name,
                    body=json.dumps(told, sort_keys=True).encode(),
                )
                DEEDS[name](desk, **told)
                self._keep(desk, command)
                announced = self._store.postings.announced()
            if name in ("split", "dividend"):
                self._prices.announce(announced)

    def _keep(self, desk: Desk, command: Command) -> None:
        self._store.save(desk.account)
        self._store.log(command)
