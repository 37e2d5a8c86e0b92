"""One websocket connection of alpaca-py in a thread: it only reports, and never connects again.

alpaca-py connects again by itself for ever, and swallows what goes wrong. Here the first failure
ends the connection, and trader.broker.streams decides what follows.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from alpaca.data.live import CryptoDataStream, StockDataStream
from alpaca.trading.stream import TradingStream
from websockets.exceptions import WebSocketException
from websockets.legacy.client import WebSocketClientProtocol
from websockets.legacy.exceptions import RedirectHandshake

from trader.broker.streams import Ended, Heard, News, Opened
from trader.core.errors import EndpointError

CLOSING_SECONDS = 2.0
MOST_SYMBOLS = 30  # of one connection, on the free plan
TOO_MANY_REQUESTS, TOO_MANY_CONNECTIONS = 429, 406
UNREADABLE = "a message that cannot be read"
CODES = {  # Alpaca's words where alpaca-py has lost the number
    "auth failed": 402,
    "failed to authenticate": 402,
    "auth timeout": 404,
    "symbol limit exceeded": 405,
    "connection limit exceeded": TOO_MANY_CONNECTIONS,
    "insufficient subscription": 409,
    "HTTP 401": 402,
    "HTTP 429": TOO_MANY_REQUESTS,
}
# websockets logs every frame it sends when asked to debug, and the first one holds the key
_frames = logging.getLogger(f"{__name__}.frames")
_frames.setLevel(logging.WARNING)
# alpaca-py logs a traceback for what is reported here anyway
for _name in ("alpaca.trading.stream", "alpaca.data.live.websocket"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)


class StreamError(WebSocketException):
    """The server says that something is wrong with this connection."""


class NoRedirect(WebSocketClientProtocol):
    """A connection that goes where it was sent or nowhere: the first message holds the key."""

    async def handshake(self, *args: Any, **kwargs: Any) -> None:
        """Shake hands; StreamError when the server sends elsewhere."""
        try:
            await super().handshake(*args, **kwargs)
        except RedirectHandshake as exc:
            raise StreamError("the server answered with a redirect, never followed") from exc


PARAMETERS = {
    "create_protocol": NoRedirect,
    "logger": _frames,
    "open_timeout": 10,
    "close_timeout": CLOSING_SECONDS,
    "ping_interval": 10,  # a dead connection is known after 10 + 15 seconds at most
    "ping_timeout": 15,
    "max_queue": 1024,
}


class _OneConnection:
    """What the streams share: where alpaca-py would connect again, the connection ends."""

    inbox: SimpleQueue[News]
    _begun = False

    def _begin(self) -> None:
        """To be called where reading begins, which happens once.

        alpaca-py reads on when a message has made it stumble: that one would be lost, without a
        word. StreamError then: a new connection makes the consumer look.
        """
        if self._begun:
            raise StreamError(UNREADABLE)
        self._begun = True

    async def hear(self, message: Mapping[str, Any]) -> None:
        """Only put it where the consumer finds it: alpaca-py swallows errors of a handler."""
        self.inbox.put(Heard(message))

    async def _wait_before_reconnect(self, _retries: int) -> None:
        raise ConnectionResetError


class PaperTradingStream(_OneConnection, TradingStream):
    """Updates of orders."""

    def __init__(self, key_id: str, secret_key: str, *, url_override: str) -> None:
        self.inbox = SimpleQueue()
        super().__init__(
            key_id,
            secret_key,
            paper=True,
            raw_data=True,
            url_override=url_override,
            websocket_params=PARAMETERS,
        )
        self.subscribe_trade_updates(self.hear)

    async def _consume(self) -> None:
        self._begin()
        while True:
            frame = await self._ws.recv()  # type: ignore[attr-defined]
            try:
                message = json.loads(frame)
                stream, data = message["stream"], message["data"]
            except (ValueError, KeyError, TypeError):
                raise StreamError(UNREADABLE) from None
            if stream == "listening":
                if "trade_updates" not in data.get("streams", ()):
                    raise StreamError(f"trade updates are not sent: {data}")
                self.inbox.put(Opened())
            elif stream == "authorization":
                raise StreamError("failed to authenticate")
            await self._dispatch(message)


class _BarsOfOneConnection(_OneConnection):
    """Minute bars, and the trades of one symbol."""

    def ask_for(self, symbols: Sequence[str], heartbeat: str | None) -> None:
        """What will be asked for; EndpointError for more than Alpaca sends."""
        wanted = {*symbols, *([heartbeat] if heartbeat else ())}
        if len(wanted) > MOST_SYMBOLS:
            raise EndpointError(
                f"{len(wanted)} symbols are more than one stream carries ({MOST_SYMBOLS}); "
                "name fewer"
            )
        self.subscribe_bars(self.hear, *symbols)  # type: ignore[attr-defined]
        if heartbeat:
            self.subscribe_trades(self.hear, heartbeat)  # type: ignore[attr-defined]

    async def _consume(self) -> bool:
        self._begin()
        stale: bool = await super()._consume()  # type: ignore[misc]
        return stale

    async def _dispatch(self, msg: dict[str, Any]) -> None:
        if msg.get("T") == "error":
            raise StreamError(f"{msg.get('msg')} ({msg.get('code')})")
        if msg.get("T") == "subscription":
            self.inbox.put(Opened())
        await super()._dispatch(msg)  # type: ignore[misc]


class SharesStream(_BarsOfOneConnection, StockDataStream):
    """Bars of shares."""

    def __init__(self, key_id: str, secret_key: str, *, url_override: str) -> None:
        self.inbox = SimpleQueue()
        super().__init__(
            key_id,
            secret_key,
            raw_data=True,
            url_override=url_override,
            websocket_params=PARAMETERS,
        )


class CoinsStream(_BarsOfOneConnection, CryptoDataStream):
    """Bars of coins."""

    def __init__(self, key_id: str, secret_key: str, *, url_override: str) -> None:
        self.inbox = SimpleQueue()
        super().__init__(
            key_id,
            secret_key,
            raw_data=True,
            url_override=url_override,
            websocket_params=PARAMETERS,
        )


class Connection:
    """A stream that runs in a thread of its own from `start` to its first failure or `stop`."""

    def __init__(self, stream: PaperTradingStream | SharesStream | CoinsStream) -> None:
        self._stream = stream
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._thread = Thread(target=self._run, name=type(stream).__name__, daemon=True)

    def start(self) -> None:
        """Connect; what happens comes out of `news`."""
        self._thread.start()

    def stop(self) -> None:
        """End the connection; returns when it is closed."""
        self._stopped = True
        if self._thread.is_alive():
            if self._loop is not None:
                with suppress(RuntimeError):  # the loop has just been closed
                    self._loop.call_soon_threadsafe(self._cancel)
            self._thread.join(2 * CLOSING_SECONDS)

    def news(self, patience: float = 0.0) -> News | None:
        """What happened next, oldest first; None when nothing does within `patience` seconds."""
        try:
            return self._stream.inbox.get(block=patience > 0, timeout=patience)
        except Empty:
            return None

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _run(self) -> None:
        ended = Ended("its thread died")
        try:
            with asyncio.Runner() as runner:
                self._loop = runner.get_loop()
                ended = runner.run(self._live())
        finally:
            self._stream.inbox.put(ended)

    async def _live(self) -> Ended:
        """The connection from beginning to end, whatever that is."""
        self._task = asyncio.ensure_future(self._stream._run_forever())
        if self._stopped:  # before there was a task to cancel
            self._task.cancel()
        await asyncio.wait([self._task])
        with suppress(WebSocketException, OSError, asyncio.TimeoutError):
            await self._stream.close()
        if self._task.cancelled():
            return Ended("it was stopped")
        error = self._task.exception()
        if error is None:  # the one case in which alpaca-py gives up without an error
            return Ended("insufficient subscription", CODES["insufficient subscription"])
        return _ended(error.__context__ or error)


def _ended(error: BaseException) -> Ended:
    reason = " ".join(f"{error}".split())[:200] or type(error).__name__
    return Ended(reason, next((code for words, code in CODES.items() if words in reason), None))
