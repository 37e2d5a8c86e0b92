"""Alpaca's market data on loopback: honest by default, or misbehaving in every known way.

with MarketServer() as server:
    server.put("AAPL", "1Day", rows)            what it knows
    server.ways.extend(["html", "busy"])        how it answers the next requests
    assert server.requests[0].params["feed"] == "iex"
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Row = dict[str, Any]
Answer = tuple[int, Mapping[str, str], bytes]


@dataclass(frozen=True)
class Asked:
    """A request as it came in; names of headers in lower case."""

    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]


def answer(body: object, status: int = 200, **headers: str) -> Answer:
    """JSON, or bytes as they are."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, raw


RECENT = {"message": "subscription does not permit querying recent SIP data"}
OLD_RECENT = {
    "code": 42210000,
    "message": "your subscription does not permit querying data from the past 15 minutes",
}
WAYS: Mapping[str, Callable[[Asked], Answer]] = {
    "busy": lambda _: answer({"message": "too many requests."}, 429),
    "busy 3 s": lambda _: answer({"message": "too many requests."}, 429, Retry_After="3"),
    "outage": lambda _: answer({"message": "internal server error"}, 500),
    "bad gateway": lambda _: answer(b"<html>bad gateway</html>", 502),
    "html": lambda _: answer(b"<html>please log in</html>"),
    "empty": lambda _: answer(b""),
    "deep": lambda _: answer(b"[" * 100_000),
    "long number": lambda _: answer(b'{"bars": ' + b"9" * 9_000 + b"}"),
    "not utf-8": lambda _: answer(b'{"bars": "\xff\xfe"}'),
    "a list": lambda _: answer([1, 2]),
    "recent": lambda _: answer(RECENT, 403),
    "old recent": lambda _: answer(OLD_RECENT, 403),
    "wrong key": lambda _: answer({"message": "forbidden."}, 403),
    "no key": lambda _: answer(b"<html>401 Authorization Required</html>", 401),
    "redirect": lambda _: answer(b"", 302, Location="http://localhost:1/"),
    "no bars": lambda _: answer({"bars": {}, "next_page_token": None}),
    "null bars": lambda _: answer({"bars": None, "next_page_token": None}),
    "odd bars": lambda _: answer({"bars": [1], "next_page_token": None}),
    "odd rows": lambda asked: _bars(asked, "nothing"),
    "odd row": lambda asked: _bars(asked, [7]),
    "other symbol": lambda _: answer({"bars": {"EVIL": []}, "next_page_token": None}),
    "invalid symbol": lambda asked: answer(
        {"message": f"invalid symbol: {asked.params['symbols']}"}, 400
    ),
}


def _lies_in(text: object, first: datetime, last: datetime) -> bool:
    """Whether a row is of the time asked for; one with a broken time always is."""
    try:
        return first <= datetime.fromisoformat(str(text)) <= last
    except (TypeError, ValueError):
        return True


def _bars(asked: Asked, rows: object) -> Answer:
    return answer({"bars": {asked.params["symbols"]: rows}, "next_page_token": None})


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet: whoever asked has gone."""


class MarketServer:
    """A server of bars, quotes, snapshots, news and corporate actions that keeps every request.

    page     most rows of an answer, whatever limit was asked for
    ways     names in WAYS, functions of the request, or "hang", for the next requests, one each
    answers  fixed answers by path, for everything that is not bars
    """

    def __init__(self, page: int = 10_000) -> None:
        self.page = page
        self.ways: deque[str | Callable[[Asked], Answer]] = deque()
        self.answers: dict[str, object] = {}
        self.requests: list[Asked] = []
        self.closing = threading.Event()
        self._rows: dict[tuple[str, str], list[Row]] = {}
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def put(self, symbol: str, timeframe: str, rows: list[Row]) -> None:
        """What it knows of a symbol, in place of what it knew, oldest first."""
        self._rows[symbol, timeframe] = rows

    def bars(self) -> list[Asked]:
        """The requests for bars, in the order they came."""
        return [one for one in self.requests if one.path.endswith("/bars")]

    def __enter__(self) -> MarketServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def honest(self, asked: Asked) -> Answer:
        """What Alpaca would say."""
        if not asked.path.endswith("/bars"):
            known = self.answers.get(asked.path)
            return answer({"message": "not found"}, 404) if known is None else answer(known)
        symbol = asked.params["symbols"]
        first, last = (datetime.fromisoformat(asked.params[name]) for name in ("start", "end"))
        rows = [
            row
            for row in self._rows.get((symbol, asked.params["timeframe"]), [])
            if _lies_in(row["t"], first, last)
        ]
        start = int(asked.params.get("page_token", "0"))
        size = min(self.page, int(asked.params["limit"]))
        token = str(start + size) if len(rows) > start + size else None
        part = rows[start : start + size]
        return answer({"bars": {symbol: part} if part else {}, "next_page_token": token})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(parts.path, dict(parse_qsl(parts.query)), headers)
                server.requests.append(asked)
                way = server.ways.popleft() if server.ways else server.honest
                if way == "hang":
                    server.closing.wait()
                    return
                status, named, raw = (WAYS[way] if isinstance(way, str) else way)(asked)
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self.send_response(status)
                    for name, value in {**named, "Content-Length": str(len(raw))}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(raw)

            def log_message(self, *words: object) -> None:
                """Keep quiet."""

        return Handler
