"""The embedded exchange offered to other programs on this computer."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Event as Flag

from trader.app.assembly import embedded_exchange, starting_cash
from trader.app.context import Context
from trader.app.fitting import first_slot
from trader.app.folder import make_folder
from trader.broker.exchange.exchange import Exchange
from trader.broker.exchange.pace import Pace
from trader.broker.exchange.serve import ExchangeServer
from trader.broker.exchange.state import erase
from trader.core.canonical import Primitive, to_object
from trader.core.errors import LockHeldError, StateError, UsageError
from trader.core.market import from_ns
from trader.pipeline.slots import next_slot

SCHEMA_VERSION = 1
DATABASE = "served.db"
PORTS = range(65536)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Where a served exchange is found.

    rest           trading and market data, for alpaca-py's url_override
    trade_updates  websocket of the orders
    market_data    websockets of bars: iex, sip, crypto
    """

    schema_version: int
    rest: str
    trade_updates: str
    market_data: dict[str, str]
    control: str
    source: str
    symbols: tuple[str, ...]
    market_time: datetime
    bars_end: datetime
    speed: float
    database: str

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self)

    def lines_for_alpaca(self) -> tuple[str, ...]:
        """What points alpaca-py at it."""
        clients = {
            "TradingClient": self.rest,
            "StockHistoricalDataClient": self.rest,
            "TradingStream": self.trade_updates,
            "StockDataStream": self.market_data["iex"],
        }
        return tuple(
            f'{name}("PKLOCAL", "any", url_override="{url}")' for name, url in clients.items()
        )

    @staticmethod
    def wait() -> None:
        """Return when this process is told to end, by an exception of its signal."""
        Flag().wait()


@contextmanager
def serve_exchange(
    app: Context,
    *,
    port: int = 0,
    stream_port: int | None = None,
    speed: float = 0.0,
    fresh: bool = False,
    database: Path | None = None,
    tell: Callable[[str], None],
) -> Iterator[Served]:
    """An exchange of its own on loopback while this is entered; its state outlives it.

    It is another market than that of `trader run`, with its own account.
    port         0 takes a free one
    stream_port  None: the one after `port`, where a trader beside it looks
    speed     market seconds per second; 0 leaves the clock to /control/advance
    fresh     forget the market that the database holds
    database  file of the state; served.db of the state folder when None
    tell      hears why the market stands still
    Raises UsageError for what cannot be, LockHeldError when another server has the database or it
    cannot be written, StateError when it holds another market, EndpointError for a taken port.
    """
    if stream_port is None:
        stream_port = port + 1 if port else 0
    if port not in PORTS or stream_port not in PORTS or (port and port == stream_port):
        raise UsageError("--port and --stream-port are two ports from 0 to 65535")
    if not 0 <= speed <= 1e9:
        raise UsageError(f"--speed is from 0 to 1e9 market seconds per second, not {speed}")
    path = database.expanduser() if database else make_folder(app.state_dir) / DATABASE
    ends = [app.data.bars(name, app.timeframe).available_at[-1] for name in app.symbols()]
    with ExitStack() as stack:
        stack.enter_context(_held(path))
        if fresh:
            erase(path)
        exchange = stack.enter_context(_opened(app, path))
        server = stack.enter_context(
            ExchangeServer(
                exchange,
                data=app.data,
                timeframe=app.timeframe,
                next_slot=lambda at: next_slot(app.calendar, app.timeframe, at).as_of,
                port=port,
                stream_port=stream_port,
            )
        )
        end = from_ns(int(max(ends)))
        served = Served(
            schema_version=SCHEMA_VERSION,
            rest=server.url,
            trade_updates=server.trade_updates_url,
            market_data=dict(server.market_data_urls),
            control=f"{server.url}/control",
            source=app.data.name,
            symbols=app.data.symbols(app.timeframe),
            market_time=exchange.now(),
            bars_end=end,
            speed=speed,
            database=str(path),
        )
        if speed:
            stack.enter_context(Pace(server.walk, speed=speed, end=end, tell=tell))
        yield served


@contextmanager
def _opened(app: Context, database: Path) -> Iterator[Exchange]:
    try:
        exchange = embedded_exchange(
            app.config,
            data=app.data,
            calendar=app.calendar,
            start=first_slot(app).since,
            cash=starting_cash(app.config),
            database=database,
        )
    except StateError as exc:
        raise StateError(str(exc).replace("--restart-market", "--fresh")) from exc
    try:
        yield exchange
    finally:
        exchange.close()


@contextmanager
def _held(database: Path) -> Iterator[None]:
    """Keep other servers away from the database; LockHeldError when one has it."""
    path = database.with_name(database.name + ".lock")
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as exc:
        raise LockHeldError(
            f"{database} cannot be written ({exc.strerror}): name another with --database"
        ) from exc
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise LockHeldError(
                f"another exchange is served from {database}: stop it, or name another --database"
            ) from exc
        yield
    finally:
        os.close(handle)
