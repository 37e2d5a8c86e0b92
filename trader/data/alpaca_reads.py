"""Alpaca's quotes, snapshots, news and corporate actions, each with when it became known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal

from trader.core.errors import ConfigError, DataIntegrityError, EndpointError
from trader.core.instruments import is_crypto
from trader.data.alpaca_rows import wire_moment, wire_number

if TYPE_CHECKING:
    from trader.broker.market_reads import MarketReads

Service = Literal["stocks", "coins", "news", "actions"]
OpenService = Callable[[Service], "MarketReads"]
NEWS_PAGE, ACTIONS_PAGE = 50, 1_000
SPLITS = ("forward_splits", "reverse_splits")
DATES = ("ex_date", "effective_date", "process_date")  # of an action, the telling one first


class NoKeyError(ConfigError):
    """There is no key, and what is asked for needs one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What is bid and asked, USD; None where nobody does."""

    symbol: str
    bid: float | None
    ask: float | None
    at: datetime

    @property
    def price(self) -> float:
        """The middle, or the one side there is."""
        if self.bid is not None and self.ask is not None:
            return (self.bid + self.ask) / 2.0
        return self.bid if self.bid is not None else self.ask or math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The market of one symbol now. Prices USD; None where Alpaca has none."""

    symbol: str
    quote: Quote | None
    price: float | None  # of the newest trade
    traded_at: datetime | None
    previous_close: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewsItem:
    """One piece of news. known_at: when its words became what they are."""

    news_id: str
    headline: str
    summary: str
    source: str
    symbols: tuple[str, ...]
    created_at: datetime
    known_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CorporateAction:
    """Something a company did to its shares.

    kind   Alpaca's word, "forward_splits"
    day    from which on the price shows it
    ratio  new shares for one old one, of splits only
    """

    kind: str
    day: date
    ratio: float | None


def read_quote(open_service: OpenService, symbol: str, feed: str) -> Quote:
    """The newest quote; DataIntegrityError when there is none."""
    coin, what = is_crypto(symbol), f"latest quote of {symbol}"
    path = "/crypto/us/latest/quotes" if coin else "/stocks/quotes/latest"
    answer = _service(open_service, symbol).get(path, _asked(symbol, feed), what)
    row = _record(answer.get("quotes"), what).get(symbol)
    quote = None if row is None else _quote(symbol, _record(row, what), what)
    if quote is None:
        raise DataIntegrityError(f"Alpaca has no quote of {symbol}")
    return quote


def read_snapshot(open_service: OpenService, symbol: str, feed: str) -> Snapshot:
    """Newest trade and quote, and the close before; DataIntegrityError for an unknown symbol."""
    coin, what = is_crypto(symbol), f"snapshot of {symbol}"
    path = "/crypto/us/snapshots" if coin else "/stocks/snapshots"
    answer = _service(open_service, symbol).get(path, _asked(symbol, feed), what)
    by_symbol = _record(answer.get("snapshots"), what) if coin else answer
    if by_symbol.get(symbol) is None:
        raise DataIntegrityError(
            f"Alpaca knows nothing of {symbol}; shares are written BRK.B, coins BTC/USD"
        )
    row = _record(by_symbol[symbol], what)
    quote, trade, before = (row.get(n) for n in ("latestQuote", "latestTrade", "prevDailyBar"))
    trade = None if trade is None else _record(trade, what)
    before = None if before is None else _record(before, what)
    return Snapshot(
        symbol=symbol,
        quote=None if quote is None else _quote(symbol, _record(quote, what), what),
        price=None if trade is None else _price(trade, "p", what),
        traded_at=None if trade is None else wire_moment(trade, what),
        previous_close=None if before is None else _price(before, "c", what),
    )


def read_news(open_service: OpenService, symbol: str, limit: int) -> tuple[NewsItem, ...]:
    """The newest `limit` items about `symbol`, the newest first."""
    what = f"news about {symbol}"
    asked = {
        "symbols": symbol.replace("/", ""),
        "limit": min(limit, NEWS_PAGE),
        "sort": "desc",
        "exclude_contentless": "false",
    }
    found: dict[str, NewsItem] = {}
    for page in open_service("news").pages("/news", asked, what):
        for row in _list(page.get("news"), what):
            item = _news(row, what)
            found.setdefault(item.news_id, item)
        if len(found) >= limit:  # without a limit, every page there ever was would follow
            break
    return tuple(found.values())[:limit]


def read_actions(
    open_service: OpenService, symbol: str, first: date, last: date
) -> tuple[CorporateAction, ...]:
    """What the company of `symbol` did from `first` to `last`, oldest first."""
    what = f"corporate actions of {symbol}"
    asked = {
        "symbols": symbol,
        "start": first.isoformat(),
        "end": last.isoformat(),
        "limit": ACTIONS_PAGE,
        "sort": "asc",
    }
    found: set[tuple[date, str, float | None]] = set()
    for page in open_service("actions").pages("/corporate-actions", asked, what):
        for kind, rows in _record(page.get("corporate_actions"), what).items():
            for row in _list(rows, what):
                action = _action(kind, _record(row, what), symbol, what)
                if action is not None:
                    found.add((action.day, action.kind, action.ratio))
    ordered = sorted(found, key=lambda item: (item[0], item[1], item[2] or 0.0))
    return tuple(CorporateAction(kind=kind, day=day, ratio=ratio) for day, kind, ratio in ordered)


def actions_to_json(actions: tuple[CorporateAction, ...]) -> list[dict[str, Any]]:
    """Actions as they are kept."""
    return [{"kind": one.kind, "day": str(one.day), "ratio": one.ratio} for one in actions]


def actions_from_json(kept: Any) -> tuple[CorporateAction, ...]:
    """The same, read back."""
    return tuple(
        CorporateAction(kind=row["kind"], day=date.fromisoformat(row["day"]), ratio=row["ratio"])
        for row in kept or ()
    )


def _service(open_service: OpenService, symbol: str) -> MarketReads:
    return open_service("coins" if is_crypto(symbol) else "stocks")


def _asked(symbol: str, feed: str) -> Mapping[str, object]:
    return {"symbols": symbol} if is_crypto(symbol) else {"symbols": symbol, "feed": feed}


def _quote(symbol: str, row: Mapping[str, Any], what: str) -> Quote | None:
    bid, ask = _price(row, "bp", what), _price(row, "ap", what)
    if bid is None and ask is None:
        return None
    return Quote(symbol=symbol, bid=bid, ask=ask, at=wire_moment(row, what))


def _price(row: Mapping[str, Any], name: str, what: str) -> float | None:
    """A price above zero; Alpaca writes 0 where there is none."""
    value = row.get(name)
    if value is None or (value == 0 and not isinstance(value, bool)):
        return None
    price = wire_number(row, name, what)
    if price < 0.0:
        raise DataIntegrityError(f"Alpaca's {what}: {name} is {price:g}, which is no price")
    return price


def _news(row: object, what: str) -> NewsItem:
    item = _record(row, what)
    created = wire_moment(item, what, "created_at")
    updated = wire_moment(item, what, "updated_at") if item.get("updated_at") else created
    symbols = _list(item.get("symbols") or [], what)
    return NewsItem(
        news_id=str(item.get("id")),
        headline=str(item.get("headline") or ""),
        summary=str(item.get("summary") or ""),
        source=str(item.get("source") or ""),
        symbols=tuple(str(symbol) for symbol in symbols),
        created_at=created,
        known_at=max(created, updated),
    )


def _action(kind: str, row: Mapping[str, Any], symbol: str, what: str) -> CorporateAction | None:
    """None for one without a date, and for the other company of two."""
    if kind in SPLITS and row.get("symbol") != symbol:
        return None
    day = next((row[name] for name in DATES if isinstance(row.get(name), str)), None)
    if day is None:
        return None
    try:
        return CorporateAction(
            kind=kind,
            day=date.fromisoformat(day),
            ratio=_ratio(row, what) if kind in SPLITS else None,
        )
    except ValueError as exc:
        raise EndpointError(f"Alpaca's {what} cannot be read: {exc}") from exc


def _ratio(row: Mapping[str, Any], what: str) -> float:
    new, old = _price(row, "new_rate", what), _price(row, "old_rate", what)
    if new is None or old is None:
        raise EndpointError(f"Alpaca's {what} cannot be read: a split without its rates")
    return new / old


def _record(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise EndpointError(f"Alpaca's {what} cannot be read: {value!r:.60} is no object")
    return value


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise EndpointError(f"Alpaca's {what} cannot be read: {value!r:.60} is no list")
    return value
