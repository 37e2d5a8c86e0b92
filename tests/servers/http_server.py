"""A REST server on loopback that answers with a script, and remembers what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """An answer; a text is sent as it stands, all else as JSON. `hangup`: no answer at all."""

    status: int = 200
    body: object = None
    headers: tuple[tuple[str, str], ...] = ()
    hangup: bool = False


class RestServer:
    """with RestServer(lambda asked: Answer(200, {})) as server: ask(server.url)."""

    def __init__(self, answer: Callable[[Asked], Answer], *, port: int = 0) -> None:
        self.asked: list[Asked] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # headers and body leave together

            def _any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                asked = Asked(self.command, self.path, dict(self.headers), self.rfile.read(length))
                outer.asked.append(asked)
                reply = answer(asked)
                if reply.hangup:
                    self.close_connection = True
                    return
                text = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
                raw = text.encode() if reply.body is not None else b""
                self.send_response(reply.status)
                for name, value in reply.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST = do_PATCH = do_DELETE = _any  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> RestServer:
        self._thread.start()
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
