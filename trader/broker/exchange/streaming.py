"""The exchange's websockets: trade updates and market data, as Alpaca streams them.

/stream                                   trade updates, binary JSON frames
/v2/iex, /v2/sip, /v1beta3/crypto/us      bars as they complete, with the newest trade and quote;
                                          msgpack frames, or JSON to who does not ask for those

A subscriber gets what happens from then on. What a broken connection missed is never sent again.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from threading import Event as Flag
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from trader.broker.exchange.exchange import Exchange
from trader.broker.exchange.faults import Fault, Faults
from trader.broker.exchange.feed import BarFeed
from trader.broker.exchange.updates import update_json
from trader.broker.exchange.wire import Json
from trader.core.errors import EndpointError
from trader.core.market import to_ns

if TYPE_CHECKING:
    from websockets.asyncio.server import Server, ServerConnection
    from websockets.http11 import Request, Response

wire_log = logging.getLogger(f"{__name__}.wire")
wire_log.setLevel(logging.INFO)  # below it websockets writes down every frame, keys too
HOST = "127.0.0.1"
TRADE_UPDATES = "/stream"
STOCKS, COINS = ("/v2/iex", "/v2/sip"), "/v1beta3/crypto/us"
CHANNELS = ("trades", "quotes", "bars", "updatedBars", "dailyBars", "statuses", "lulds")
MOST_SYMBOLS = 30  # of one connection on the free plan
LARGEST_MESSAGE = 1 << 18  # bytes
AUTHENTICATION_SECONDS = 10.0
WORDS = {
    400: "invalid syntax",
    401: "not authenticated",
    402: "auth failed",
    403: "already authenticated",
    404: "auth timeout",
    405: "symbol limit exceeded",
    406: "connection limit exceeded",
    409: "insufficient subscription",
    500: "internal error",
}


def is_paper_key(key_id: object, secret: object) -> bool:
    """Whether these look like a paper key; any will do, the exchange is on this computer."""
    return (
        isinstance(key_id, str)
        and key_id.startswith("PK")
        and isinstance(secret, str)
        and bool(secret)
    )


@dataclass(eq=False)
class Subscriber:
    """One connection to market data and what it has asked for: channel to symbols."""

    connection: ServerConnection
    path: str
    key_id: str = ""
    wanted: dict[str, set[str]] = field(default_factory=lambda: {name: set() for name in CHANNELS})

    async def send(self, *messages: Json) -> None:
        """Send one frame of messages."""
        await self.connection.send(self.frame(messages))

    def frame(self, messages: Iterable[Json]) -> bytes | str:
        """A frame in the language of this connection."""
        if self._packs:
            import msgpack  # type: ignore[import-untyped]

            packed: bytes = msgpack.packb(list(messages), datetime=True)
            return packed
        return json.dumps(list(messages), default=datetime.isoformat)

    def read(self, message: bytes | str) -> dict[str, Any]:
        """The object in a frame; an empty one when it cannot be read."""
        if not self._packs:
            return _object(message)
        import msgpack

        try:
            found = msgpack.unpackb(message)
        except (ValueError, TypeError, msgpack.UnpackException):
            return {}
        return found if isinstance(found, dict) else {}

    def wants(self, channel: str, symbol: str) -> bool:
        """Whether messages of `channel` about `symbol` go to this connection."""
        return bool(self.wanted[channel] & {symbol, "*"})

    def wants_any(self, symbol: str) -> bool:
        """Whether anything about `symbol` goes to this connection."""
        return any(self.wants(channel, symbol) for channel in CHANNELS)

    @property
    def _packs(self) -> bool:
        request = self.connection.request
        return request is not None and "msgpack" in request.headers.get("Content-Type", "")


class Streams:
    """The websocket server, in a thread of its own; `publish` sends what is new."""

    def __init__(
        self,
        exchange: Exchange,
        feed: BarFeed,
        *,
        faults: Faults,
        port: int = 0,
        free_plan: bool = False,
        authentication_seconds: float = AUTHENTICATION_SECONDS,
    ) -> None:
        """Prepare the server; `start` opens it.

        port       0 takes a free one
        free_plan  /v2/sip is refused with 409, as to an account without a subscription
        """
        self.port = port
        self._exchange = exchange
        self._feed = feed
        self._faults = faults
        self._free_plan = free_plan
        self._authentication_seconds = authentication_seconds
        self._listeners: set[ServerConnection] = set()  # touched in the loop's thread only
        self._subscribers: set[Subscriber] = set()
        self._publishing = Lock()
        self._sequence = 0
        self._seen_ns = 0
        self._opened = Flag()
        self._failure: OSError | None = None
        self._loop: asyncio.AbstractEventLoop
        self._thread = Thread(target=self._run, name="exchange-streams", daemon=True)

    def start(self) -> None:
        """Listen; EndpointError when the port is taken."""
        events = self._exchange.events(0)
        self._sequence = events[-1].sequence if events else 0
        self._seen_ns = to_ns(self._exchange.now())
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        self._opened.wait()
        if self._failure is not None:
            self._thread.join()
            reason = self._failure.strerror or self._failure
            raise EndpointError(f"port {self.port} cannot be listened on: {reason}")

    def stop(self) -> None:
        """Close every connection and the port."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()

    def publish(self) -> None:
        """Send what happened since the last call: trade updates first, then completed bars.

        Returns when all of it is on its way, so that an answer given afterwards comes later.
        """
        with self._publishing:
            now_ns = to_ns(self._exchange.now())
            events = self._exchange.events(self._sequence)
            if not events and now_ns == self._seen_ns:
                return
            if events:
                self._sequence = events[-1].sequence
            updates = self._faults.delivered([update_json(event) for event in events])
            since_ns, self._seen_ns = self._seen_ns, now_ns
            self._in_loop(self._deliver(updates, since_ns, now_ns))

    def drop(self) -> int:
        """Break every connection without a farewell; how many there were."""
        return int(self._in_loop(self._drop()))

    def _in_loop(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except OSError as exc:
            self._failure = exc
        finally:
            self._loop.close()
            self._opened.set()

    async def _serve(self) -> None:
        from websockets.asyncio.server import serve

        self._stopping = asyncio.Event()
        async with serve(
            self._accept,
            HOST,
            self.port,
            process_request=self._handshake,
            origins=[None],  # no page in a browser may speak to it
            max_size=LARGEST_MESSAGE,
            compression=None,
            server_header=None,
            close_timeout=1,
            logger=wire_log,
        ) as server:
            self.port = _port_of(server)
            self._opened.set()
            await self._stopping.wait()

    def _handshake(self, connection: ServerConnection, request: Request) -> Response | None:
        path = request.path
        if path not in (TRADE_UPDATES, COINS, *STOCKS):
            return connection.respond(HTTPStatus.NOT_FOUND, f"there is no stream {path}\n")
        if self._refusal(path, before=True):
            return connection.respond(HTTPStatus.TOO_MANY_REQUESTS, "too many requests\n")
        return None

    def _refusal(self, path: str, *, before: bool = False) -> int:
        """The error code a scripted refusal gives this connection, 0 for none."""
        switches = [switch for switch, _ in self._faults.left()]
        refuses = any(
            s.fault is Fault.REFUSED_STREAM and (s.code == 429) == before for s in switches
        )
        if not refuses:
            return 0
        struck = self._faults.strikes(f"STREAM {path}", Fault.REFUSED_STREAM)
        return struck[Fault.REFUSED_STREAM].code if struck else 0

    async def _accept(self, connection: ServerConnection) -> None:
        from websockets.exceptions import ConnectionClosed

        path = connection.request.path if connection.request else ""
        with suppress(ConnectionClosed):
            if path == TRADE_UPDATES:
                await self._trade_updates(connection)
            else:
                await self._market_data(Subscriber(connection, path))

    async def _trade_updates(self, connection: ServerConnection) -> None:
        known = False
        try:
            async for message in connection:
                ask = _object(message)
                given = ask.get("data")
                data: dict[str, Any] = given if isinstance(given, dict) else ask
                action = ask.get("action")
                if action in ("authenticate", "auth") and not known:
                    key_id = data.get("key_id", data.get("key"))
                    secret = data.get("secret_key", data.get("secret"))
                    known = is_paper_key(key_id, secret) and not self._refusal(TRADE_UPDATES)
                    await connection.send(_authorization(action, known))
                elif action == "listen" and known:
                    streams = data.get("streams")
                    wants = isinstance(streams, list) and "trade_updates" in streams
                    change = self._listeners.add if wants else self._listeners.discard
                    heard = ["trade_updates"] if wants else []
                    change(connection)
                    await connection.send(_frame("listening", {"streams": heard}))
                elif action in ("listen", "authenticate", "auth"):
                    await connection.send(_authorization(action, known))
                else:
                    await connection.send(_frame("error", {"error": "invalid action"}))
        finally:
            self._listeners.discard(connection)

    async def _market_data(self, subscriber: Subscriber) -> None:
        connection = subscriber.connection
        await subscriber.send({"T": "success", "msg": "connected"})
        async with self._authenticated(subscriber) as code:
            if code:
                await subscriber.send(_error(code))
                return
            await subscriber.send({"T": "success", "msg": "authenticated"})
            async for message in connection:
                await subscriber.send(self._asked(subscriber, subscriber.read(message)))

    @asynccontextmanager
    async def _authenticated(self, subscriber: Subscriber) -> AsyncIterator[int]:
        """The error code with which a connection is turned away, 0 when it may stay."""
        code = await self._authenticate(subscriber)
        if not code:
            self._subscribers.add(subscriber)
        try:
            yield code
        finally:
            self._subscribers.discard(subscriber)

    async def _authenticate(self, subscriber: Subscriber) -> int:
        try:
            async with asyncio.timeout(self._authentication_seconds):
                message = await subscriber.connection.recv()
        except TimeoutError:
            return 404
        ask = subscriber.read(message)
        if not ask:
            return 400
        if ask.get("action") != "auth":
            return 401
        if not is_paper_key(ask.get("key"), ask.get("secret")):
            return 402
        subscriber.key_id = ask["key"]
        if code := self._refusal(subscriber.path):
            return code
        if self._free_plan and subscriber.path == STOCKS[1]:
            return 409
        mine = (subscriber.path, subscriber.key_id)
        return 406 if mine in {(one.path, one.key_id) for one in self._subscribers} else 0

    def _asked(self, subscriber: Subscriber, ask: dict[str, Any]) -> Json:
        action = ask.pop("action", None)
        if action == "auth":
            return _error(403)
        lists = {name: symbols for name, symbols in ask.items() if name in CHANNELS}
        if action not in ("subscribe", "unsubscribe") or not all(map(_is_words, lists.values())):
            return _error(400)
        wanted = {name: set(symbols) for name, symbols in subscriber.wanted.items()}
        for name, symbols in lists.items():
            change = (
                wanted[name].update if action == "subscribe" else wanted[name].difference_update
            )
            change(symbols)
        if self._free_plan and len(set().union(*wanted.values())) > MOST_SYMBOLS:
            return _error(405)
        subscriber.wanted = wanted
        return {"T": "subscription", **{name: sorted(wanted[name]) for name in CHANNELS}}

    async def _deliver(self, updates: list[Json], since_ns: int, now_ns: int) -> None:
        from websockets.asyncio.server import broadcast

        frames = [_frame("trade_updates", update) for update in updates]
        for connection in tuple(self._listeners):
            if frames and self._speaks(TRADE_UPDATES, connection):
                for frame in frames:
                    broadcast([connection], frame)
        for subscriber in tuple(self._subscribers):
            symbols = self._feed.symbols(coins=subscriber.path == COINS)
            wanted = [name for name in symbols if subscriber.wants_any(name)]
            messages = self._feed.messages(wanted, since_ns, now_ns)
            told = [body for channel, body in messages if subscriber.wants(channel, str(body["S"]))]
            if told and self._speaks(subscriber.path, subscriber.connection):
                broadcast([subscriber.connection], subscriber.frame(told))

    def _speaks(self, path: str, connection: ServerConnection) -> bool:
        struck = self._faults.strikes(f"STREAM {path}", Fault.MUTE_STREAM, Fault.DROPPED_STREAM)
        if Fault.DROPPED_STREAM in struck:
            self._break(connection)
        return not struck

    async def _drop(self) -> int:
        connections = [*self._listeners, *(one.connection for one in self._subscribers)]
        for connection in connections:
            self._break(connection)
        return len(connections)

    def _break(self, connection: ServerConnection) -> None:
        # at once, so that a reconnection finds its place free
        self._listeners.discard(connection)
        self._subscribers -= {one for one in self._subscribers if one.connection is connection}
        connection.transport.abort()


def _port_of(server: Server) -> int:
    return int(next(iter(server.sockets)).getsockname()[1])


def _object(message: bytes | str) -> dict[str, Any]:
    """The JSON object in a frame; an empty one when it cannot be read."""
    try:
        found = json.loads(message)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _frame(stream: str, data: object) -> bytes:
    return json.dumps({"stream": stream, "data": data}).encode()


def _authorization(action: str, known: bool) -> bytes:
    status = "authorized" if known else "unauthorized"
    return _frame("authorization", {"status": status, "action": action})


def _error(code: int) -> Json:
    return {"T": "error", "code": code, "msg": WORDS[code]}
