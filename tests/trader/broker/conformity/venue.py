"""A market with its unmodified clients, reached in this process or over HTTP and websockets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, TypeVar

from alpaca.common.rest import RESTClient
from alpaca.data.historical import (
    CryptoHistoricalDataClient,
    NewsClient,
    ScreenerClient,
    StockHistoricalDataClient,
)
from alpaca.data.historical.corporate_actions import CorporateActionsClient
from alpaca.trading.client import TradingClient

from tests.trader.broker.floor import CALENDAR, FREE, SESSIONS, HandBars, closing
from trader.broker.exchange.answers import Handler
from trader.broker.exchange.exchange import Exchange
from trader.broker.exchange.faults import Faults, Switch
from trader.broker.exchange.serve import ExchangeServer
from trader.broker.exchange.transport import InProcess
from trader.core.market import Timeframe

IN_PROCESS, HTTP = "in process", "http"
NOWHERE = "http://paper.invalid"
AAPL = [
    (100, 100, 100, 100),
    (101, 106, 99, 104),
    (104, 112, 103, 110),
    (110, 111, 95, 96),
    (96, 98, 94, 97),
    (97, 99, 96, 98),
]
MSFT = [
    (300, 300, 300, 300),
    (301, 305, 299, 302),
    (302, 303, 290, 295),
    *[(295, 299, 291, 295)] * 3,
]
COIN = [(50_000, 50_000, 50_000, 50_000), (50_100, 51_000, 49_000, 50_500), *[(50_500,) * 4] * 4]
BARS = {"AAPL": AAPL, "MSFT": MSFT, "BTC/USD": COIN}
Client = TypeVar("Client", bound=RESTClient)


class Recorded:
    """An exchange that keeps what it was asked: method, path with query, JSON body."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.asked: list[tuple[str, str, Any]] = []

    def handle(self, method: str, path_url: str, body: bytes | None) -> tuple[int, object]:
        self.asked.append((method, path_url, json.loads(body) if body else None))
        return self._exchange.handle(method, path_url, body)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._exchange, name)


@dataclass
class Venue:
    """The market after the close of its first session, and whoever can be asked there."""

    exchange: Any
    faults: Faults
    point: Callable[[type[Client]], Client]  # a client of this class that talks to this market
    server: ExchangeServer | None = None
    number: int = 0
    made: dict[type, Any] = field(default_factory=dict)

    def client(self, kind: type[Client]) -> Client:
        if kind not in self.made:
            self.made[kind] = self.point(kind)
        return self.made[kind]

    @property
    def trading(self) -> TradingClient:
        return self.client(TradingClient)

    @property
    def stocks(self) -> StockHistoricalDataClient:
        return self.client(StockHistoricalDataClient)

    @property
    def coins(self) -> CryptoHistoricalDataClient:
        return self.client(CryptoHistoricalDataClient)

    def to_close(self, session: int) -> None:
        """Walk to the close of session number `session`."""
        self.to(closing(session))

    def to(self, moment: datetime) -> None:
        """Walk to a moment."""
        if self.server is None:
            self.exchange.advance(moment)
        else:
            self.server.walk(lambda _: moment)

    def last_body(self) -> Any:
        """The JSON body of the newest request."""
        return self.exchange.asked[-1][2]


def next_close(at: datetime) -> datetime:
    """The close of the session after a close."""
    return CALENDAR.close(CALENDAR.at_or_after((at + timedelta(days=1)).date()))


def _keyed(kind: type[Client], url: str) -> Client:
    """A client as a person makes it; coins need no key."""
    if kind is CryptoHistoricalDataClient:
        return kind(url_override=url)
    return kind("PKLOCAL", "any", url_override=url)


def _in_process(handler: Handler) -> Callable[[type[Client]], Client]:
    def point(kind: type[Client]) -> Client:
        client = _keyed(kind, NOWHERE)
        client._session.adapters.clear()
        client._session.trust_env = False
        client._session.mount(NOWHERE, InProcess(handler))
        return client

    return point


@contextmanager
def open_venue(
    transport: str, *switches: Switch, rows: dict[str, list] | None = None, **more: object
) -> Iterator[Venue]:
    """A market over hand-written bars; 10,000 USD, no costs."""
    data = HandBars(rows or BARS)
    exchange = Recorded(
        Exchange(
            data=data,
            timeframe=Timeframe.DAY,
            calendar=CALENDAR,
            costs=FREE,
            cash=Decimal(10_000),
            start=CALENDAR.close(SESSIONS[0]),
            database=None,
        )
    )
    faults = Faults(switches)
    if transport == IN_PROCESS:
        faults.meanwhile = lambda: exchange.advance(next_close(exchange.now()))
        yield Venue(exchange, faults, _in_process(faults.around(exchange.handle)))
    else:
        with ExchangeServer(
            exchange,
            data=data,
            timeframe=Timeframe.DAY,
            next_slot=next_close,
            faults=faults,
            **more,
        ) as server:
            venue = Venue(exchange, faults, lambda kind: _keyed(kind, server.url), server)
            yield venue
            for client in venue.made.values():
                client._session.close()
    exchange.close()


CLIENTS = (
    TradingClient,
    StockHistoricalDataClient,
    CryptoHistoricalDataClient,
    NewsClient,
    ScreenerClient,
    CorporateActionsClient,
)
