"""Alpaca's bars as they come over the wire, read without trusting them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from trader.core.errors import DataIntegrityError, EndpointError
from trader.core.instruments import is_crypto
from trader.core.market import from_ns, to_ns
from trader.data.cache import BARS, BarKey, Raw

if TYPE_CHECKING:
    from trader.broker.market_reads import MarketReads

FIELDS = ("o", "h", "l", "c", "v")  # in the order of BARS behind the time
PAGE = 10_000  # bars; the most that Alpaca sends
MINUTE_NS = 60 * 10**9


def fetch_bars(reads: MarketReads, key: BarKey, start_ns: int, end_ns: int) -> Raw:
    """[T] bars that opened from `start_ns` to `end_ns`, oldest first, each once.

    One symbol a request, every page followed. A bar that comes twice must say the same twice.
    Raises DataIntegrityError for numbers that are none, and the errors of `MarketReads.pages`.
    """
    coin = is_crypto(key.symbol)
    params: dict[str, object] = {
        "symbols": key.symbol,
        "timeframe": key.timeframe,
        "start": _moment(start_ns),
        "end": _moment(end_ns),
        "limit": PAGE,
        "sort": "asc",
    }
    if not coin:
        params |= {"adjustment": key.adjustment, "feed": key.feed}
    path = "/crypto/us/bars" if coin else "/stocks/bars"
    what = f"{key.timeframe} bars of {key.symbol}"
    found: dict[int, tuple[int, float, float, float, float, float]] = {}
    pages = reads.pages(path, params, what)
    for number, page in enumerate(pages):
        rows = _rows(page, key.symbol, what)
        known = len(found)
        for row in rows:
            bar = _bar(row, what)
            if not start_ns <= bar[0] <= end_ns:
                continue
            if found.setdefault(bar[0], bar) != bar:
                raise DataIntegrityError(
                    f"Alpaca sent two different {what} of {from_ns(bar[0]):%Y-%m-%d %H:%M} UTC"
                )
        if number and len(found) == known and page.get("next_page_token"):
            raise EndpointError(f"Alpaca's {what} have no last page: one brought nothing new")
    return np.array(sorted(found.values()), dtype=BARS)


def _rows(page: Mapping[str, Any], symbol: str, what: str) -> list[Any]:
    """The rows of one page; a symbol that is not there has none."""
    by_symbol = page.get("bars")
    if by_symbol is None:
        by_symbol = {}
    if not isinstance(by_symbol, dict):
        raise _unread(what, f"`bars` is {by_symbol!r:.60}")
    strangers = by_symbol.keys() - {symbol}
    if strangers:
        raise _unread(what, f"they are of {sorted(strangers)[0]!r:.40}")
    rows = by_symbol.get(symbol)
    if rows is None:
        return []
    if not isinstance(rows, list):
        raise _unread(what, f"they are {rows!r:.60}")
    return rows


def _bar(row: object, what: str) -> tuple[int, float, float, float, float, float]:
    if not isinstance(row, dict):
        raise _unread(what, f"one is {row!r:.60}")
    opened = wire_moment(row, what)
    of_when = f"{what}, {opened:%Y-%m-%d %H:%M} UTC"
    numbers = tuple(wire_number(row, name, of_when) for name in FIELDS)
    return to_ns(opened), *numbers  # type: ignore[return-value]


def wire_moment(row: Mapping[str, Any], what: str, name: str = "t") -> datetime:
    """The moment of a row, UTC, cut to microseconds; EndpointError without a time zone."""
    text = row.get(name)
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
        if moment is not None and moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise _unread(what, f"the time {name} is {text!r:.60}")


def wire_number(row: Mapping[str, Any], name: str, what: str) -> float:
    """The number of a row; EndpointError for another type, DataIntegrityError when not finite."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _unread(what, f"{name} is {value!r:.60}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise DataIntegrityError(f"Alpaca's {what}: {name} is {number}, which is no number")
    return number


def _unread(what: str, why: str) -> EndpointError:
    return EndpointError(f"Alpaca's {what} cannot be read: {why}")


def _moment(ns: int) -> str:
    return from_ns(ns).isoformat(timespec="seconds").replace("+00:00", "Z")
