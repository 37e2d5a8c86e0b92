"""What alpaca-py's errors mean: a refusal, a wrong key, too many requests, or nothing for sure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from alpaca.common.exceptions import APIError
from requests import RequestException

from trader.core.errors import EndpointError, OrderRefusedError, RateLimitedError

DUPLICATE = "client_order_id must be unique"
TIMED_OUT = 408  # a refusal that says nothing about what was asked
TOO_MANY = 429
UNREADABLE = (ValueError, RecursionError)  # what reading an answer as JSON may end in
WRONG_KEY = (
    "the broker does not take the key; check the two variables (or broker.key_file): a paper "
    "account that was reset has new keys"
)
NO_ACCESS = "the account may not do that; look at it with `trader doctor`"


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Every error of the client becomes an EndpointError that says what was asked for.

    RateLimitedError when the broker wants to be left alone for a while.
    """
    try:
        yield
    except APIError as exc:
        if exc.status_code == TOO_MANY:
            raise too_many(exc, what) from exc
        raise EndpointError(
            f"the broker answered {exc.status_code} for the {what}: {message(exc)}{_remedy(exc)}"
        ) from exc
    except UNREADABLE as exc:
        raise EndpointError(f"the broker's {what}: the answer is no JSON ({exc!s:.80})") from exc
    except RequestException as exc:
        raise EndpointError(
            f"the broker could not be asked for the {what}: {unreached(exc)}; look at the network, "
            "and try again"
        ) from exc


def unreached(exc: RequestException) -> str:
    """Why no answer came: the host and the innermost reason, on one line."""
    inner = getattr(exc.args[0] if exc.args else None, "reason", None) or exc
    told = " ".join(str(inner).split())
    reason = told.partition("): ")[2] or told  # what stands before are the pool's class and host
    host = urlsplit(str(exc.request.url or "")).netloc if exc.request is not None else ""
    return f"{host}: {reason}" if host else reason


def order_error(
    exc: APIError, subject: str, action: str
) -> OrderRefusedError | EndpointError | None:
    """What an error answer to an order means; None when it leaves open whether there is an order.

    subject, action  "AAPL" and "buy 10"
    Too many requests and a key that is not taken are no word about the order: nothing was done.
    """
    status = exc.status_code
    if status == TOO_MANY:
        return too_many(exc, f"{subject}: {action}")
    if wrong_key(exc):
        return EndpointError(
            f"{subject}: the broker did not {action} (it answered {status}); {WRONG_KEY}"
        )
    if status is None or not 400 <= status < 500 or status == TIMED_OUT or is_duplicate(exc):
        return None
    return OrderRefusedError(
        f"{subject}: the broker refused to {action}: {message(exc)}", code=code(exc)
    )


def too_many(exc: APIError, what: str) -> RateLimitedError:
    """The error of an answer 429; nothing was done."""
    asked = exc.response.headers.get("Retry-After", "") if exc.response is not None else ""
    return RateLimitedError(
        f"the broker has had too many requests, so nothing was done about {what}; wait a minute, "
        "and look for another program with this key",
        retry_seconds=float(asked) if asked.isdecimal() else None,
    )


def is_duplicate(exc: APIError) -> bool:
    """Whether the client id is taken: the order exists already."""
    return exc.status_code == 422 and DUPLICATE in str(exc)


def wrong_key(exc: APIError) -> bool:
    """Whether the key itself is refused; a 403 about an order has a code, one about a key none."""
    return exc.status_code == 401 or (exc.status_code == 403 and "forbidden" in _plain(exc))


def message(exc: Exception) -> str:
    """The broker's own words on one line; the start of the answer when it is no JSON."""
    return " ".join(str(_body(exc).get("message") or exc).split())[:300]


def code(exc: Exception) -> int | None:
    """The broker's error code, where it gave one."""
    found = _body(exc).get("code")
    return found if isinstance(found, int) else None


def _remedy(exc: APIError) -> str:
    if wrong_key(exc):
        return f"; {WRONG_KEY}"
    if exc.status_code is not None and exc.status_code >= 500:
        return "; it is out of order: try again later"
    return f"; {NO_ACCESS}" if exc.status_code == 403 else ""


def _plain(exc: APIError) -> str:
    """The message of an answer without a code; empty where there is a code."""
    return "" if code(exc) is not None else message(exc).lower()


def _body(exc: Exception) -> dict[str, object]:
    try:
        body = json.loads(str(exc))
    except UNREADABLE:
        return {}
    return body if isinstance(body, dict) else {}
