"""The embedded exchange over HTTP and websockets on this computer, for any client of Alpaca.

REST of trading and of market data share one port, the websockets have another. Only loopback is
listened on, and no page in a browser gets an answer.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event as Flag
from threading import Lock, RLock, Thread
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from trader.broker.exchange.answers import NoAnswerError, raw
from trader.broker.exchange.control import Control
from trader.broker.exchange.exchange import Exchange
from trader.broker.exchange.faults import Faults
from trader.broker.exchange.feed import BarFeed
from trader.broker.exchange.streaming import (
    AUTHENTICATION_SECONDS,
    COINS,
    HOST,
    STOCKS,
    TRADE_UPDATES,
    Streams,
    is_paper_key,
)
from trader.core.errors import EndpointError, TraderError
from trader.core.market import Timeframe
from trader.core.ports import MarketData

LARGEST_BODY = 1 << 16  # bytes
MOST_READ = 1 << 20  # bytes of a larger one that are read and forgotten
IDLE_SECONDS = 60.0  # a connection that says nothing for so long is closed
LOOPBACK_NAMES = ("127.0.0.1", "localhost")
KEYLESS = "/v1beta3/crypto/"
DATA_PATHS = ("/v2/stocks/", "/v1beta1/", "/v1beta3/", "/v1/")
UNAUTHORIZED = {"code": 40110000, "message": "request is not authorized"}
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: the connection ends with a reset, not a farewell


class ExchangeServer:
    """One exchange on two ports of 127.0.0.1; a context manager that listens while it is entered.

    faults     its switches; also set by POST /control/faults
    next_slot  the decision slot after a moment, to which /control/advance walks
    """

    def __init__(
        self,
        exchange: Exchange,
        *,
        data: MarketData,
        timeframe: Timeframe,
        next_slot: Callable[[datetime], datetime],
        port: int = 0,
        stream_port: int = 0,
        faults: Faults | None = None,
        free_plan: bool = False,
        idle_seconds: float = IDLE_SECONDS,
        authentication_seconds: float = AUTHENTICATION_SECONDS,
    ) -> None:
        """Prepare the server; a port of 0 takes a free one."""
        self.faults = faults or Faults()
        self.faults.meanwhile = lambda: self.walk(next_slot)
        self.stopping = Flag()
        self._exchange = exchange
        self._walking = RLock()
        self._port = port
        self._idle_seconds = idle_seconds
        self._rest = self.faults.around(self._carry_out)
        self._streams = Streams(
            exchange,
            BarFeed(data, timeframe, exchange.handle),
            faults=self.faults,
            port=stream_port,
            free_plan=free_plan,
            authentication_seconds=authentication_seconds,
        )
        self._control = Control(
            exchange,
            self.faults,
            next_slot=next_slot,
            walk=self.walk,
            drop=self._streams.drop,
        )

    def __enter__(self) -> ExchangeServer:
        """Listen; EndpointError when a port is taken."""
        try:
            self._http = _HttpServer(self, self._port, self._idle_seconds)
        except OSError as exc:
            reason = exc.strerror or exc
            raise EndpointError(f"port {self._port} cannot be listened on: {reason}") from exc
        try:
            self._streams.start()
        except EndpointError:
            self._http.server_close()
            raise
        self._thread = Thread(target=self._http.serve_forever, args=(0.05,), name="exchange-http")
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Answer what was asked, then close every connection and both ports."""
        self.stopping.set()
        self._http.shutdown()
        self._thread.join()
        self._http.hang_up()
        self._http.server_close()
        self._streams.stop()

    @property
    def url(self) -> str:
        """The address of REST, without a slash at its end."""
        return f"http://{HOST}:{self._http.server_address[1]}"

    @property
    def trade_updates_url(self) -> str:
        """The address of the stream of trade updates."""
        return f"ws://{HOST}:{self._streams.port}{TRADE_UPDATES}"

    @property
    def market_data_urls(self) -> Mapping[str, str]:
        """The address of each stream of market data: iex, sip, crypto."""
        host = f"ws://{HOST}:{self._streams.port}"
        return {"iex": host + STOCKS[0], "sip": host + STOCKS[1], "crypto": host + COINS}

    def walk(self, goal: Callable[[datetime], datetime]) -> None:
        """Move the market from now to `goal(now)` and tell its subscribers.

        Errors as those of `Exchange.advance`.
        """
        with self._walking:
            self._exchange.advance(goal(self._exchange.now()))
            self._streams.publish()

    def publish(self) -> None:
        """Tell subscribers what happened at the exchange behind this server's back."""
        self._streams.publish()

    def answer(
        self, method: str, path_url: str, headers: Message, body: bytes | None
    ) -> tuple[int, object]:
        """Status and body for one HTTP request; raises NoAnswerError where a fault wants none."""
        path = urlsplit(path_url).path
        if path == "/control" or path.startswith("/control/"):
            return self._control.handle(method, path, body)
        if not path.startswith(KEYLESS):
            key_id, secret = headers.get("APCA-API-KEY-ID"), headers.get("APCA-API-SECRET-KEY")
            if not is_paper_key(key_id, secret):
                if path.startswith(DATA_PATHS):
                    return 403, {"message": "forbidden."}
                return 401, UNAUTHORIZED
        return self._rest(method, path_url, body)

    def _carry_out(self, method: str, path_url: str, body: bytes | None) -> tuple[int, object]:
        try:
            answer = self._exchange.handle(method, path_url, body)
        except TraderError as exc:
            return 500, {"code": 50010000, "message": str(exc)}
        if method != "GET":
            self._streams.publish()
        return answer


class _HttpServer(ThreadingHTTPServer):
    """A thread for each connection; every thread has ended when it is closed."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, exchange: ExchangeServer, port: int, idle_seconds: float) -> None:
        self.exchange = exchange
        self._open: set[socket.socket] = set()
        self._lock = Lock()
        self.idle_seconds = idle_seconds
        super().__init__((HOST, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection, and serve it in a thread."""
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget the connection and close it, without the farewell that a reset has not."""
        with self._lock:
            self._open.discard(request)
        self.close_request(request)

    def hang_up(self) -> None:
        """Read nothing more from any connection; what is being answered still is."""
        with self._lock:
            for request in self._open:
                with suppress(OSError):
                    request.shutdown(socket.SHUT_RD)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nothing to report; the rest is."""
        import sys

        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """One connection, kept alive between requests."""

    server: _HttpServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body of an answer leave together
    server_version, sys_version = "embedded-exchange", ""

    def setup(self) -> None:
        """Set how long the connection may be silent."""
        super().setup()
        self.connection.settimeout(self.server.idle_seconds)

    def _serve(self) -> None:
        length = self._length()
        if length is None or not self._is_from_here():
            return
        body = self.rfile.read(length) if length else None
        if body is not None and len(body) < length:
            self.close_connection = True  # the client left in the middle
            return
        try:
            status, payload = self.server.exchange.answer(
                self.command, self.path, self.headers, body
            )
        except NoAnswerError as exc:
            if exc.waits:
                self.server.exchange.stopping.wait(self.server.idle_seconds)
            self._reset()
            return
        self._send(status, payload)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _serve  # noqa: N815 - http.server's names

    def _length(self) -> int | None:
        """Bytes of the body; None where that is refused."""
        if "Transfer-Encoding" in self.headers:
            self.send_error(411, "a body needs its Content-Length")
            return None
        text = self.headers.get("Content-Length", "0")
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            self.send_error(400, f"Content-Length {text[:20]!r} is not a number")
            return None
        if int(text) > LARGEST_BODY:
            self.rfile.read(min(int(text), MOST_READ))  # else the client never hears why
            self.send_error(413, f"the body is larger than {LARGEST_BODY} bytes")
            return None
        return int(text)

    def _is_from_here(self) -> bool:
        """Whether a program on this computer asks, not a page in its browser."""
        host = urlsplit(f"//{self.headers.get('Host', '')}").hostname
        if host in LOOPBACK_NAMES and "Origin" not in self.headers:
            return True
        self.send_error(403, "only programs on this computer are answered")
        return False

    def _send(self, status: int, payload: object) -> None:
        answer = raw(payload)
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def _reset(self) -> None:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a malformed request in JSON and close the connection; `explain` is not said."""
        del explain
        self.close_connection = True
        with suppress(OSError):
            self._send(code, {"code": code * 100_000, "message": message or "bad request"})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Say nothing; who calls knows what it asked."""
