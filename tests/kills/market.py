"""The market that outlives its traders: an exchange over HTTP that can kill who is asking it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

from tests.kills.fuse import Death, Fuse, request_name
from trader.app.assembly import embedded_exchange
from trader.broker.exchange.serve import ExchangeServer
from trader.broker.rate_limit import rate_limit
from trader.core.clock import new_york
from trader.core.config import Config
from trader.core.errors import EndpointError
from trader.core.market import Timeframe
from trader.data.source import open_data
from trader.ledger.store import Ledger
from trader.pipeline.slots import next_slot

CALENDAR = new_york()
DATA = open_data("sample", CALENDAR, seed=7)
FIRST = date(2026, 2, 24)  # sessions with a debate and its order, the fill, an exit and its sale
CASH = Decimal(100_000)
TRIES = 20  # for two neighbouring ports


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request as it arrived. unresolved: the intents that the ledger then had no outcome of."""

    method: str
    path: str
    client_order_id: str = ""
    unresolved: frozenset[str] = frozenset()

    @property
    def is_new_order(self) -> bool:
        """Whether it asks for an order."""
        return (self.method, self.path) == ("POST", "/v2/orders")


class Market(ExchangeServer):
    """The served exchange, with a record of who asked what, and deaths between deed and answer."""

    def __init__(self, exchange, *, port: int, ledger: Path) -> None:
        super().__init__(
            exchange,
            data=DATA,
            timeframe=Timeframe.DAY,
            next_slot=lambda at: next_slot(CALENDAR, Timeframe.DAY, at).as_of,
            port=port,
            stream_port=port + 1 if port else 0,
        )
        self.exchange, self._ledger = exchange, ledger
        self.calls: list[Call] = []
        self._fuse: Callable[[str], None] = lambda _: None

    @contextmanager
    def watching(self, log: Path, pid: int, death: Death | None):
        """Write down, besides the trader's own points, those at which its deeds are done here."""
        fuse = Fuse(log, death, pid=pid)
        self._fuse = fuse.reach
        try:
            yield
        finally:
            self._fuse = lambda _: None
            fuse.close()

    def answer(self, method, path_url, headers, body):
        """Answer as always; a deed that is done may be the last thing the asker lived to want."""
        if path_url.startswith("/control"):
            return super().answer(method, path_url, headers, body)
        self.calls.append(self._call(method, path_url, body))
        answer = super().answer(method, path_url, headers, body)
        if method != "GET":
            self._fuse(f"done, not answered: {request_name(method, path_url)}")
        return answer

    def _call(self, method: str, path_url: str, body: bytes | None) -> Call:
        path, query = urlsplit(path_url).path, parse_qs(urlsplit(path_url).query)
        asked = query.get("client_order_id", [""])[0]
        if method != "POST":
            return Call(method=method, path=path, client_order_id=asked)
        return Call(
            method=method,
            path=path,
            client_order_id=str(json.loads(body or b"{}").get("client_order_id", "")),
            unresolved=unresolved(self._ledger),
        )

    def control(self, what: str, **body: object) -> None:
        """POST /control/WHAT."""
        request = Request(f"{self.url}/control/{what}", data=json.dumps(body).encode())
        with urlopen(request, timeout=60) as answer:
            answer.read()

    def market_time(self) -> datetime:
        """When it is there."""
        return self.exchange.now()


def unresolved(ledger: Path) -> frozenset[str]:
    """Client order ids of intents that a ledger has no outcome of."""
    if not ledger.exists():
        return frozenset()
    opened = Ledger(ledger, read_only=True)
    try:
        known = {record.body["client_order_id"] for record in opened.records("order")}
        return frozenset(record.record_id for record in opened.records("intent")) - known
    finally:
        opened.close()


@contextmanager
def served(folder: Path, settings: Config, *, port: int, ledger: Path):
    """The market whose state lies in `folder`, on this port and the next one."""
    rate_limit.cache_clear()  # requests of this process to an earlier one do not count here
    exchange = embedded_exchange(
        settings,
        data=DATA,
        calendar=CALENDAR,
        start=CALENDAR.close(CALENDAR.previous(FIRST)),
        cash=CASH,
        database=folder / "exchange.db",
    )
    try:
        with Market(exchange, port=port, ledger=ledger) as market:
            yield market
    finally:
        exchange.close()


def free_port() -> int:
    """A port that is free, as is the one after it."""
    import socket

    for _ in range(TRIES):
        with closing(socket.socket()) as one, closing(socket.socket()) as two:
            one.bind(("127.0.0.1", 0))
            port: int = one.getsockname()[1]
            try:
                two.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            return port
    raise EndpointError("no two neighbouring ports are free")


def copy_database(source: Path, target: Path) -> None:
    """A database of a process that is gone, with what its log still holds."""
    for end in ("", "-wal"):
        if source.with_name(source.name + end).exists():
            shutil.copy(source.with_name(source.name + end), target.with_name(target.name + end))
    with closing(sqlite3.connect(target)) as opened:
        opened.execute("PRAGMA wal_checkpoint")
