"""An OpenAI-compatible server on loopback that answers, or misbehaves in every known way.

with ChatServer(lambda messages, body: '{"ok": true}') as server:
    ask(server.base_url)
    assert server.requests[0].body["model"] == "test-model"

ChatServer(behaviour("busy", "html"))          one way a call; the last one stays
ChatServer(behaviour("busy", then=answer))     …and then answers
ChatServer(answer, only=("json_object",))      refuses other formats, as servers do
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Answer = Callable[[list[dict[str, Any]], dict[str, Any]], str]
Ways = Mapping[str, "Way"]
OK = '{"ok": true}'


@dataclass(frozen=True)
class Received:
    """A request as it came in; body is None where there was none."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any] | None


class Exchange:
    """One request under way: what was asked, and the means to answer it."""

    def __init__(self, handler: BaseHTTPRequestHandler, received: Received, server: ChatServer):
        self._handler, self.received, self.server = handler, received, server

    @property
    def body(self) -> dict[str, Any]:
        return self.received.body or {}

    def send(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        """Answer whole: bytes as they are, text as HTML, all else as JSON."""
        kind = "application/json"
        if isinstance(body, str):
            body, kind = body.encode(), "text/html; charset=utf-8"
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.begin(
            status, {"Content-Type": kind, "Content-Length": str(len(raw)), **(headers or {})}
        )
        self.write(raw)

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self._handler.send_response(status)
        for name, value in headers.items():
            self._handler.send_header(name, value)
        self._handler.end_headers()

    def write(self, raw: bytes) -> None:
        self._handler.wfile.write(raw)
        self._handler.wfile.flush()

    def reply(self, text: str | None, **changes: Any) -> None:
        """Answer with a reply; `changes` replace parts of the choice, the message or the whole.

        choice, message, body: mappings laid over those parts; usage: in place of the right one
        """
        words = json.dumps([self.body.get("messages"), self.body.get("input")])
        tokens_in, tokens_out = len(words) // 4 + 1, len(text or "") // 4 + 1
        if self.received.path.endswith("/responses"):
            part = {"type": "output_text", "text": text}
            found: dict[str, Any] = {
                "object": "response",
                "status": "completed",
                "output": [{"type": "message", "role": "assistant", "content": [part]}],
                "usage": {"input_tokens": tokens_in, "output_tokens": tokens_out},
            }
        else:
            message = {"role": "assistant", "content": text, **changes.pop("message", {})}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            found = {
                "id": "x",
                "object": "chat.completion",
                "created": 1,
                "model": self.body.get("model"),
                "choices": [{**choice, **changes.pop("choice", {})}],
                "usage": {"prompt_tokens": tokens_in, "completion_tokens": tokens_out},
            }
        if "usage" in changes:
            found["usage"] = changes.pop("usage")
        self.send(200, {**found, **changes.pop("body", {})})

    def error(self, status: int, message: str, headers: Any = None, **details: Any) -> None:
        """Answer with an error as OpenAI writes one."""
        self.send(status, {"error": {"message": message, "type": "error", **details}}, headers)

    @property
    def format(self) -> str:
        """What shape was asked for: json_schema, json_object with schema, json_object, text."""
        asked = self.body.get("response_format") or self.body.get("text", {}).get("format")
        if not asked:
            return "text"
        return (
            f"{asked['type']} with schema"
            if "schema" in asked and (asked["type"] == "json_object")
            else asked["type"]
        )


Way = Callable[[Exchange], None]


@dataclass
class Behaviour:
    """A series of ways, one a call; the last one stays."""

    ways: tuple[Way, ...]
    used: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, exchange: Exchange) -> None:
        with self.lock:
            way = self.ways[min(self.used, len(self.ways) - 1)]
            self.used += 1
        way(exchange)


def behaviour(*names: str, then: Answer | None = None) -> Behaviour:
    """The ways of these names (see WAYS), and after them an answer."""
    ways = [WAYS[name] for name in names]
    return Behaviour((*ways, answering(then)) if then else tuple(ways))


def answering(answer: Answer) -> Way:
    """The way of a server that works."""

    def way(exchange: Exchange) -> None:
        body = exchange.body
        exchange.reply(answer(body.get("messages", body.get("input", [])), body))

    return way


def llama_cpp(answer: Answer, *, context: int = 2_048) -> Behaviour:
    """llama-cpp-python's server: 500 on json_schema, no responses API, a raw newline in strings."""

    def way(exchange: Exchange) -> None:
        if exchange.received.path.endswith("/responses"):
            exchange.send(404, {"detail": "Not Found"})
        elif exchange.format == "json_schema":
            exchange.error(
                500,
                "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': "
                "\"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}]",
                type="internal_server_error",
            )
        elif (size := len(json.dumps(exchange.body["messages"])) // 3) > context:
            exchange.error(
                400,
                f"This model's maximum context length is {context} tokens, however you requested "
                f"{size} tokens. Please reduce your prompt; or completion length.",
                code="context_length_exceeded",
                param="messages",
            )
        else:
            text = answer(exchange.body["messages"], exchange.body)
            exchange.reply(text.replace(". ", ".\n", 1))

    return Behaviour((way,))


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet: whoever asked has gone."""


class ChatServer:
    """A server that answers, behaves as told, and keeps every request.

    answer   what it says, or how it behaves
    models   what /models lists
    only     formats that it knows; it refuses others with 400
    api_key  what it wants to be sent; None: it does not look
    """

    def __init__(
        self,
        answer: Answer | Behaviour,
        *,
        models: Iterable[str] = ("test-model",),
        only: Iterable[str] | None = None,
        api_key: str | None = None,
    ) -> None:
        self._behave = answer if isinstance(answer, Behaviour) else answering(answer)
        self._models, self._only, self._api_key = tuple(models), only, api_key
        self.closing = threading.Event()  # ends hanging, dripping and endless answers
        self.requests: list[Received] = []
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def address(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def base_url(self) -> str:
        """The address with /v1, for models.base_url."""
        return f"{self.address}/v1"

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Bodies of the calls to a model, in the order they came."""
        return [one.body for one in self.requests if one.body is not None]

    def __enter__(self) -> ChatServer:
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

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        serve = self._serve

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                serve(self)

            def do_POST(self) -> None:
                serve(self)

            def log_message(self, *words: object) -> None:
                """Keep quiet."""

        return Handler

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        raw = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        received = Received(
            method=handler.command,
            path=handler.path,
            headers={name.lower(): value for name, value in handler.headers.items()},
            body=json.loads(raw) if raw else None,
        )
        self.requests.append(received)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # whoever asked has gone
            self._route(Exchange(handler, received, self))

    def _route(self, exchange: Exchange) -> None:
        received = exchange.received
        wanted = None if self._api_key is None else f"Bearer {self._api_key}"
        if not received.path.startswith("/v1/"):
            exchange.send(404, {"detail": "Not Found"})
        elif wanted and received.headers.get("authorization") != wanted:
            sent = received.headers.get("authorization", "")
            exchange.error(401, f"Incorrect API key provided: {sent}", code="invalid_api_key")
        elif received.method == "GET":
            rows = [{"id": name, "object": "model"} for name in self._models]
            exchange.send(200, {"object": "list", "data": rows})
        elif self._only is not None and exchange.format not in self._only:
            exchange.error(
                400, f"response_format {exchange.format} is not supported", param="response_format"
            )
        else:
            self._behave(exchange)


def _refusing(status: int, message: str, headers: Any = None, **details: Any) -> Way:
    return lambda exchange: exchange.error(status, message, headers, **details)


def _replying(text: str | None, **changes: Any) -> Way:
    return lambda exchange: exchange.reply(text, **changes)


def _sending(body: object, status: int = 200, **headers: str) -> Way:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.send(status, body, named)


def _hanging(exchange: Exchange) -> None:
    exchange.server.closing.wait()


def _hanging_inside(exchange: Exchange) -> None:
    exchange.begin(200, {"Content-Type": "application/json", "Content-Length": "1000"})
    exchange.write(b'{"choices":')
    exchange.server.closing.wait()


def _dripping(exchange: Exchange) -> None:
    exchange.begin(200, {"Content-Type": "application/json", "Content-Length": "1000000"})
    while not exchange.server.closing.wait(0.01):
        exchange.write(b" ")


def _dripping_headers(exchange: Exchange) -> None:
    exchange.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not exchange.server.closing.wait(0.01):
        exchange.write(b"x")


def _endless(exchange: Exchange) -> None:
    exchange.begin(200, {"Content-Type": "text/event-stream", "Connection": "close"})
    while not exchange.server.closing.is_set():
        exchange.write(b'data: {"choices": []}\n\n' * 4_000)


def _hanging_up(exchange: Exchange) -> None:
    exchange.write(b"")  # the connection is closed without an answer


def _cut_off(exchange: Exchange) -> None:
    exchange.begin(200, {"Content-Type": "application/json", "Content-Length": "1000"})
    exchange.write(b'{"choices":')


def _echoing_key(exchange: Exchange) -> None:
    exchange.reply(f'{{"ok": "{exchange.received.headers["authorization"]}"}}')


TOOL = {"id": "t", "type": "function", "function": {"name": "trade", "arguments": "{}"}}
HTML = "<html><body>Welcome to the proxy. Please log in.</body></html>"

WAYS: Ways = {
    "ok": _replying(OK),
    # replies that are none
    "empty": _replying(""),
    "null": _replying(None),
    "refusal": _replying(None, message={"refusal": "I cannot\nhelp with that"}),
    "cut": _replying('{"ok": tr', choice={"finish_reason": "length"}),
    "filtered": _replying("", choice={"finish_reason": "content_filter"}),
    "tool": _replying(None, message={"tool_calls": [TOOL]}, choice={"finish_reason": "tool_calls"}),
    "no choices": _replying(OK, body={"choices": []}),
    "odd choices": _replying(OK, body={"choices": ["x"]}),
    "no message": _replying(OK, choice={"message": None}),
    "error inside": _replying(
        OK, body={"choices": None, "error": {"message": "upstream failed", "code": 502}}
    ),
    "parts": _replying(None, message={"content": [{"type": "text", "text": OK}]}),
    "fence": _replying(f"```json\n{OK}\n```"),
    "think": _replying(f"<think>hm</think>{OK}"),
    "words": _replying("I would rather not say."),
    "half a character": _replying('{"ok": "\ud800"}'),
    # usage
    "no usage": _replying(OK, usage=None),
    "odd usage": _replying(OK, usage={"prompt_tokens": 99, "completion_tokens": True}),
    "usage in words": _replying(OK, usage={"prompt_tokens": "99", "completion_tokens": "4"}),
    "negative usage": _replying(OK, usage={"prompt_tokens": -5, "completion_tokens": 3}),
    "cut prompt": _replying(OK, usage={"prompt_tokens": 3, "completion_tokens": 3}),
    # answers that are none
    "html": _sending(HTML),
    "not json": _sending(b'{"choices": ['),
    "a list": _sending(b"[1, 2]"),
    "deep": _sending(b"[" * 100_000),
    "not utf-8": _sending(b'{"choices": "\xff\xfe"}'),
    "packed": _sending(b"\x1f\x8b\x08\x00", Content_Encoding="gzip"),
    "odd type": lambda exchange: exchange.send(
        200,
        {"choices": [{"message": {"content": OK}}]},
        {"Content-Type": "text/plain; charset=klingon"},
    ),
    "redirect": _sending(b"", 307, Location="http://localhost:1/v1/chat/completions?key=1"),
    # errors
    "busy": _refusing(429, "slow down"),
    "busy 2 s": _refusing(429, "slow down", {"Retry-After": "2"}),
    "busy for an hour": _refusing(429, "slow down", {"Retry-After": "3600"}),
    "quota": _refusing(429, "You exceeded your current quota", code="insufficient_quota"),
    "unpaid": _refusing(402, "Insufficient Balance"),
    "outage": _refusing(500, "Internal Server Error"),
    "outage html": _sending("<html>oops</html>", 500),
    "bad gateway": _sending("<html>bad gateway</html>", 502),
    "overloaded": _refusing(503, "overloaded"),
    "forbidden": _refusing(403, "your country is not supported"),
    "unknown model": _refusing(404, "The model `nope` does not exist", code="model_not_found"),
    "unknown ollama model": _refusing(404, 'model "nope" not found, try pulling it first'),
    "no such page": _sending({"detail": "Not Found"}, 404),
    "context": _refusing(
        400, "This model's maximum context length is 512 tokens", code="context_length_exceeded"
    ),
    "max_tokens too large": _refusing(
        400, "max_tokens is too large: 100000. This model supports at most 16384 tokens"
    ),
    "bad request": _refusing(400, "no"),
    "filtered prompt": _refusing(400, "The prompt was filtered", code="content_filter"),
    # trouble on the line
    "hanging": _hanging,
    "hanging inside": _hanging_inside,
    "dripping": _dripping,
    "dripping headers": _dripping_headers,
    "endless": _endless,
    "hanging up": _hanging_up,
    "cut off": _cut_off,
    "echoing the key": _echoing_key,
}


def picky(
    refused: str, message: str, *, status: int = 400, then: Answer | None = None
) -> Behaviour:
    """A server that refuses requests with the parameter `refused`, in these words."""
    answer = answering(then or (lambda messages, body: OK))

    def way(exchange: Exchange) -> None:
        if refused in exchange.body:
            exchange.error(status, message)
        else:
            answer(exchange)

    return Behaviour((way,))
