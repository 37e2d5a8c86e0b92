"""Reading market data: answers as JSON objects, page by page, errors in the product's own terms.

What may pass (too many requests, an outage, a lost connection) is asked again below, in
`trader.broker.guard`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from alpaca.common.exceptions import APIError
from requests import RequestException

from trader.broker.alpaca_errors import TOO_MANY, UNREADABLE, code, message, too_many, unreached
from trader.core.clock import monotonic_seconds
from trader.core.errors import DataIntegrityError, EndpointError, TimedOutError

DEADLINE_SECONDS = 300.0  # for one question with all its pages
MOST_PAGES = 2_000
RECENT = "querying recent SIP data"
RECENT_CODE = 42210000  # the older answer: "subscription does not permit … past 15 minutes"


class RecentDataError(EndpointError):
    """The plan does not give away bars this new."""


class Reader(Protocol):
    """What is used of an alpaca-py client."""

    def get(self, path: str, data: Any = None) -> Any:
        """The JSON of an answer."""


class MarketReads:
    """One of Alpaca's market data services, by its client.

    seconds  a clock that only runs forward
    """

    def __init__(self, client: Reader, *, seconds: Callable[[], float] = monotonic_seconds) -> None:
        self._client, self._seconds = client, seconds

    def get(self, path: str, params: Mapping[str, object], what: str) -> Mapping[str, Any]:
        """The JSON object of an answer.

        what  what is asked for, in messages
        Raises RecentDataError, DataIntegrityError where the symbol is refused, and EndpointError
        for every other answer and for none.
        """
        try:
            found = self._client.get(path, dict(params))
        except APIError as exc:
            raise _error(exc, what) from exc
        except UNREADABLE as exc:
            raise EndpointError(f"Alpaca's {what} are no JSON: {str(exc)[:80]}") from exc
        except RequestException as exc:
            raise TimedOutError(
                f"Alpaca could not be asked for the {what}: {unreached(exc)}; look at the network, "
                "and try again"
            ) from exc
        if not isinstance(found, dict):
            raise EndpointError(f"Alpaca's {what} are no JSON object: {found!r:.80}")
        return found

    def pages(
        self, path: str, params: Mapping[str, object], what: str
    ) -> Iterator[Mapping[str, Any]]:
        """Every page of an answer, each led to by the `next_page_token` before; errors as `get`.

        A token that comes again, pages without end and ones that take too long are an
        EndpointError.
        """
        asked = dict(params)
        seen: set[str] = set()
        deadline = self._seconds() + DEADLINE_SECONDS
        while len(seen) < MOST_PAGES and self._seconds() < deadline:
            page = self.get(path, asked, what)
            yield page
            token = page.get("next_page_token")
            if token is None or token == "":
                return
            if not isinstance(token, str) or token in seen:
                raise EndpointError(f"Alpaca's {what} have no last page (token {token!r:.60})")
            seen.add(token)
            asked["page_token"] = token
        raise EndpointError(f"Alpaca's {what} did not end after {len(seen)} pages")


def _error(exc: APIError, what: str) -> EndpointError | DataIntegrityError:
    status, words = exc.status_code, message(exc)
    if status == TOO_MANY:
        return too_many(exc, what)
    text = f"Alpaca answered {status} for the {what}: {words}"
    old_words = code(exc) == RECENT_CODE and "subscription" in words.lower()
    if RECENT.lower() in words.lower() or old_words:
        return RecentDataError(f"{text}; say data.feed: iex, or ask for older bars")
    if status == 401 or (status == 403 and "forbidden" in words.lower()):
        return EndpointError(f"{text}; the key is not taken, look with `trader doctor`")
    if status in (400, 404, 422):
        return DataIntegrityError(f"{text}; shares are written BRK.B, coins BTC/USD")
    return EndpointError(text)
