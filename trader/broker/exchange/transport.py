"""Adapters for `requests` that open no socket: one answers in this process, one refuses."""

from __future__ import annotations

import io
from collections.abc import Mapping
from json import dumps
from urllib.parse import urlencode, urlsplit

from requests import ConnectionError as BrokenConnectionError
from requests import PreparedRequest, ReadTimeout, Response, Session
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from trader.broker.exchange.answers import Handler, NoAnswerError, raw
from trader.core.errors import EndpointError


class InProcess(BaseAdapter):
    """Answers with what `handler(method, path_url, body)` returns: status and JSON.

    Where the handler gives no answer, the errors are those of a broken connection.
    """

    def __init__(self, handler: Handler) -> None:
        super().__init__()
        self._handler = handler

    def send(self, request: PreparedRequest, *_args: object, **_kwargs: object) -> Response:
        """Answer at once; everything that concerns a connection is ignored."""
        body = request.body.encode() if isinstance(request.body, str) else request.body
        if not isinstance(body, bytes | None):
            raise TypeError(f"a streamed body cannot be sent in process: {type(body).__name__}")
        try:
            status, payload = self._handler(request.method or "GET", request.path_url, body)
        except NoAnswerError as exc:
            kind = ReadTimeout if exc.waits else BrokenConnectionError
            raise kind(str(exc), request=request) from exc
        answer = raw(payload)
        response = Response()
        response.status_code = status
        response.request = request
        response.url = request.url or ""
        response.encoding = "utf-8"
        response.headers["Content-Type"] = answer.content_type
        response.headers.update(answer.headers)
        response.raw = io.BytesIO(answer.body)
        return response

    def close(self) -> None:
        """Nothing is held."""


class DirectSession(Session):
    """A session for adapters that open no connection: what only one needs is left out.

    Cookies, proxies, redirects, settings merged from several places and the mending of addresses
    cost more than the exchange itself. The adapters that are mounted decide as ever where a request
    may go.
    """

    def request(  # type: ignore[override]  # only what alpaca-py gives
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, object] | None = None,
        json: object = None,
        allow_redirects: bool = False,
    ) -> Response:
        """Put the request together and hand it to the adapter of its address."""
        del allow_redirects  # alpaca-py never follows one
        prepared = PreparedRequest()
        prepared.method = method.upper()
        prepared.url = f"{url}?{urlencode(params, doseq=True)}" if params else url
        prepared.headers = CaseInsensitiveDict(headers or {})
        prepared.body = None if json is None else dumps(json).encode()
        return self.get_adapter(url).send(prepared)


class Guard(BaseAdapter):
    """Lets nothing out: raises EndpointError for whatever host has no adapter of its own."""

    def __init__(self, allowed: str) -> None:
        super().__init__()
        self._allowed = allowed

    def send(self, request: PreparedRequest, *_args: object, **_kwargs: object) -> Response:
        """Refuse, before any socket."""
        host = urlsplit(request.url or "").hostname
        raise EndpointError(f"refused to call {host!r}; only {self._allowed} may be called")

    def close(self) -> None:
        """Nothing is held."""
