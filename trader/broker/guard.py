"""The one way out for requests: named hosts only, always a timeout, a rate limit, no redirect."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from requests import ConnectionError as NoConnectionError
from requests import PreparedRequest, Response, Timeout
from requests.adapters import HTTPAdapter
from requests.exceptions import ChunkedEncodingError

from trader.broker.rate_limit import RateLimit
from trader.core.clock import monotonic_seconds
from trader.core.config.unattended import LOOPBACK
from trader.core.errors import EndpointError, RateLimitedError

TIMEOUTS = (3.05, 10.0)  # seconds to connect, and without a byte of the answer
PATIENCE = 20.0  # seconds that a request may wait for its turn, or be tried again
NEAR_PATIENCE = 2.0  # the same for a server on this computer that is not there
PAUSE = 0.5  # seconds before the first repetition, doubled each time
REPEATED = (429, 500, 502, 503, 504)
BROKEN = (NoConnectionError, Timeout, ChunkedEncodingError)


class GuardedAdapter(HTTPAdapter):
    """Sends to `hosts` over TLS, and to this computer; to nobody else.

    Only what reads (GET) is repeated, within PATIENCE. Whatever acts is sent once.
    """

    def __init__(
        self,
        hosts: frozenset[str],
        limit: RateLimit,
        *,
        seconds: Callable[[], float] = monotonic_seconds,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(max_retries=0)
        self._hosts, self._limit = hosts, limit
        self._seconds, self._sleep = seconds, sleep

    def send(self, request: PreparedRequest, *_args: object, **_kwargs: object) -> Response:
        """The answer, whatever its status.

        EndpointError for another host, and for a redirect; RateLimitedError when it is not this
        request's turn in time. requests' own errors when there is no answer.
        """
        require_host(request.url or "", self._hosts, ("https", "http"))
        begun, pause = self._seconds(), PAUSE
        deadline = begun + PATIENCE
        near = urlsplit(request.url or "").hostname in LOOPBACK
        busy: Response | None = None
        while True:
            try:
                self._limit.take(urgent=is_urgent(request), patience=deadline - self._seconds())
            except RateLimitedError:
                if busy is None:
                    raise
                return busy  # it was sent before, and this was the word of the server
            may_repeat = request.method == "GET" and self._seconds() + pause < deadline
            try:
                response = super().send(request, timeout=TIMEOUTS, verify=True, proxies={})
                response.content  # noqa: B018  # a body that breaks off is no answer either
            except BROKEN:
                if not may_repeat or (near and self._seconds() + pause >= begun + NEAR_PATIENCE):
                    raise
            else:
                self._limit.heard(response.status_code, response.headers)
                if 300 <= response.status_code < 400:
                    raise EndpointError(
                        f"{urlsplit(request.url or '').hostname} answered with a redirect "
                        f"({response.status_code}), which is never followed"
                    )
                if response.status_code not in REPEATED or not may_repeat:
                    return response
                busy = response
            self._sleep(pause)
            pause *= 2


def require_host(url: str, hosts: frozenset[str], schemes: tuple[str, str]) -> None:
    """EndpointError unless `url` leads to one of `hosts`, encrypted, or to this computer.

    schemes  the encrypted one and the plain one; plain is for this computer alone
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    outside = parts.scheme == schemes[0] and host in hosts and port in (None, 443)
    inside = parts.scheme == schemes[1] and host in LOOPBACK
    if not (outside or inside) or "@" in parts.netloc:
        raise EndpointError(
            f"refused to call {host!r}; only {', '.join(sorted(hosts))} and this computer "
            "may be called"
        )


def is_urgent(request: PreparedRequest) -> bool:
    """Whether a request lowers risk or looks one order up: those have requests kept for them."""
    path = urlsplit(request.url or "").path
    if request.method == "GET":
        return path.startswith(("/v2/orders/", "/v2/orders:"))
    if request.method == "POST" and request.body:
        try:
            body = json.loads(request.body)
        except ValueError:
            return False
        return isinstance(body, dict) and body.get("side") == "sell"
    return request.method in ("DELETE", "PATCH")
