"""Rows as Alpaca sends them, and AlpacaData over a local server with a clock set by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from tests.servers.market_server import MarketServer, Row
from trader.broker import session
from trader.broker.credentials import Credentials
from trader.broker.guard import GuardedAdapter
from trader.broker.market_reads import MarketReads
from trader.broker.rate_limit import RateLimit
from trader.core.clock import SessionCalendar, new_york
from trader.core.market import EXCHANGE_TIME_ZONE
from trader.data.alpaca_data import AlpacaData
from trader.data.alpaca_reads import NoKeyError, OpenService, Service
from trader.data.cache import BarCache

KEYS = Credentials(key_id="PKTEST", secret_key="hush", source="a test")
NEW_YORK = EXCHANGE_TIME_ZONE


def utc(text: str) -> datetime:
    """A moment written without its zone, UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local(text: str) -> datetime:
    """A moment written in New York time, UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=NEW_YORK).astimezone(UTC)


def row(at: datetime, close: float = 100.0, volume: float = 1000.0, **changes: Any) -> Row:
    """A bar that opens half a dollar below its close and reaches a dollar further each way."""
    bar: Row = {
        "t": f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "o": close - 0.5,
        "h": close + 1.0,
        "l": close - 1.5,
        "c": close,
        "v": volume,
        "n": 10,
        "vw": close,
    }
    return bar | changes


def days(
    first: str, last: str, close: Callable[[int], float] = lambda n: 100.0 + n % 7
) -> list[Row]:
    """Daily rows of every session from `first` to `last`, stamped with midnight in New York."""
    sessions = new_york().between(date.fromisoformat(first), date.fromisoformat(last))
    return [row(local(f"{day}T00:00"), close(n)) for n, day in enumerate(sessions)]


def hours(
    first: datetime, last: datetime, step: timedelta, close: Callable[[int], float] | None = None
) -> list[Row]:
    """Rows from `first` up to and without `last`."""
    of = close or (lambda n: 100.0 + n % 5)
    count = int((last - first) / step)
    return [row(first + n * step, of(n)) for n in range(count)]


class Clock:
    """A clock that stands still until it is set; sleeping moves it."""

    def __init__(self, at: datetime) -> None:
        self.at = at
        self.slept: list[float] = []

    def __call__(self) -> datetime:
        return self.at

    def seconds(self) -> float:
        return self.at.timestamp()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += timedelta(seconds=seconds)


class Impatient(HTTPAdapter):
    """Waits a moment for an answer, and asks once."""

    def send(self, request: PreparedRequest, *_: object, **__: object) -> Response:
        return super().send(request, timeout=0.2, proxies={})


def opener(
    server: MarketServer,
    clock: Clock,
    *,
    keys: Credentials | None = KEYS,
    adapter: HTTPAdapter | None = None,
) -> OpenService:
    """The real clients over the server; waiting moves the clock alone."""

    def open_service(service: Service) -> MarketReads:
        if keys is None and service != "coins":
            raise NoKeyError("no key")
        make = {
            "stocks": session.stock_data_client,
            "coins": session.crypto_data_client,
            "news": session.news_client,
            "actions": session.corporate_actions_client,
        }[service]
        client = make(keys, server.url)
        limit = RateLimit(seconds=clock.seconds, sleep=clock.sleep, now=clock)
        door = adapter or GuardedAdapter(
            session.HOSTS, limit, seconds=clock.seconds, sleep=clock.sleep
        )
        client._session.mount(f"{server.url}/", door)
        return MarketReads(client, seconds=clock.seconds)

    return open_service


def alpaca(
    server: MarketServer,
    clock: Clock,
    folder: Path,
    *,
    calendar: SessionCalendar | None = None,
    symbols: Iterable[str] | None = None,
    feed: str = "iex",
    adjustment: str = "all",
    **how: Any,
) -> AlpacaData:
    """AlpacaData over the server, keeping its bars in `folder`."""
    return AlpacaData(
        calendar=calendar or new_york(),
        open_service=opener(server, clock, **how),
        cache=BarCache(folder),
        symbols=tuple(symbols) if symbols else None,
        feed=feed,
        adjustment=adjustment,
        now=clock,
    )
