"""Alpaca's market data over the exchange's own bars; nothing later than its clock is told.

A quote stands at the newest close, half the slippage below and above it, a trade at the close with
the bar's volume, both from the moment the bar was complete. Every feed shows the same bars. There
are no news: an empty list is the answer. On the free plan SIP data newer than 15 minutes is
refused, as it is at Alpaca.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trader.broker.exchange.bar_frames import (
    DAY_NS,
    MINUTE_NS,
    Frame,
    Rows,
    adjusted,
    dividend_step,
    framed,
    split_step,
)
from trader.broker.exchange.prices import start_of_day
from trader.broker.exchange.refusal import bad_data_request, no_subscription
from trader.broker.exchange.request import FARTHEST_NS, Request
from trader.broker.exchange.wire import Json, moment
from trader.core.market import BarSeries
from trader.core.trading import fill_price, money

if TYPE_CHECKING:
    from trader.broker.exchange.desk import Desk

Handler = Callable[["Desk", Request], Json]
SYMBOLS = {
    False: re.compile(r"[A-Z][A-Z0-9]{0,9}(\.[A-Z]{1,2})?"),
    True: re.compile(r"[A-Z0-9]{1,10}/[A-Z]{3,5}"),
}
FEEDS = ("iex", "sip", "delayed_sip", "otc", "boats", "overnight")
ADJUSTMENTS = ("raw", "split", "dividend", "all", "spin-off")
WINDOW = ("symbols", "start", "end", "limit", "page_token", "sort", "currency")
STOCKS_ONLY = ("feed", "asof")
USUAL_ROWS, MOST_ROWS = 1000, 10_000
RECENT_NS = 15 * MINUTE_NS
DAY, MINUTE = Frame(1, "Day"), Frame(1, "Min")
TWO_DAYS = 60  # bars: more than two days of hourly ones


@dataclass(frozen=True, slots=True)
class Track:
    """What one symbol has in the window asked for. at: [T] int64 ns, in order."""

    at: NDArray[np.int64]
    tell: Callable[[int], Json] = field(repr=False)  # of the row at an index


def handler(words: tuple[str, ...]) -> Handler | None:
    """What answers GET of a path of the data host; None where it has none."""
    match words:
        case ("v2", "stocks", kind):
            return STOCKS.get(kind)
        case ("v2", "stocks", kind, "latest"):
            return STOCKS.get(f"latest {kind}")
        case ("v1beta3", "crypto", "us", kind):
            return COINS.get(kind)
        case ("v1beta3", "crypto", "us", "latest", kind):
            return COINS.get(f"latest {kind}")
    return None


def bars(desk: Desk, request: Request) -> Json:
    """Bars of a timeframe: start and end are the first and last `t`, both included."""
    request.only(*WINDOW, *STOCKS_ONLY, "timeframe", "adjustment")
    frame = Frame.of(request.query.get("timeframe", ""))
    adjustment = request.choice("adjustment", *ADJUSTMENTS)

    def track(series: BarSeries, first_ns: int, last_ns: int) -> Track:
        series = adjusted_for(desk, series, adjustment)
        rows = framed(series, frame, desk.calendar, first_ns, last_ns)
        return Track(rows.at, lambda index: bar_json(rows, index))

    return _page(desk, request, "bars", track)


def quotes(desk: Desk, request: Request) -> Json:
    """A quote at every close."""
    request.only(*WINDOW, *STOCKS_ONLY)
    return _page(
        desk,
        request,
        "quotes",
        lambda series, first, last: _closes(desk, series, first, last, quote_json),
    )


def trades(desk: Desk, request: Request) -> Json:
    """A trade at every close."""
    request.only(*WINDOW, *STOCKS_ONLY)
    return _page(
        desk,
        request,
        "trades",
        lambda series, first, last: _closes(desk, series, first, last, trade_json),
    )


def latest_bars(desk: Desk, request: Request) -> Json:
    """The newest minute bar of each symbol."""
    return {
        "bars": {
            series.symbol: _newest(desk, series, MINUTE)[-1] for series in _told(desk, request)
        }
    }


def latest_quotes(desk: Desk, request: Request) -> Json:
    """The newest quote of each symbol."""
    return {"quotes": {one.symbol: quote_json(desk, one, -1) for one in _told(desk, request)}}


def latest_trades(desk: Desk, request: Request) -> Json:
    """The newest trade of each symbol."""
    return {"trades": {one.symbol: trade_json(desk, one, -1) for one in _told(desk, request)}}


def latest_orderbooks(desk: Desk, request: Request) -> Json:
    """The newest quote of each symbol, as a book of one level."""
    books: dict[str, Json] = {}
    for series in _told(desk, request):
        quote = quote_json(desk, series, -1)
        books[series.symbol] = {
            "t": quote["t"],
            "b": [{"p": quote["bp"], "s": quote["bs"]}],
            "a": [{"p": quote["ap"], "s": quote["as"]}],
        }
    return {"orderbooks": books}


def stock_snapshots(desk: Desk, request: Request) -> Json:
    """Newest trade, quote, minute and daily bars by symbol, without a wrapper."""
    return {series.symbol: snapshot_json(desk, series) for series in _told(desk, request)}


def crypto_snapshots(desk: Desk, request: Request) -> Json:
    """The same in a wrapper."""
    return {"snapshots": stock_snapshots(desk, request)}


_KINDS: dict[str, Handler] = {
    "bars": bars,
    "quotes": quotes,
    "trades": trades,
    "latest bars": latest_bars,
    "latest quotes": latest_quotes,
    "latest trades": latest_trades,
}
STOCKS = _KINDS | {"snapshots": stock_snapshots}
COINS = _KINDS | {"snapshots": crypto_snapshots, "latest orderbooks": latest_orderbooks}


def bar_json(rows: Rows, index: int) -> Json:
    """A bar; how many trades it had and at which mean price is not known."""
    return {
        "t": moment(int(rows.at[index])),
        "o": float(rows.open[index]),
        "h": float(rows.high[index]),
        "l": float(rows.low[index]),
        "c": float(rows.close[index]),
        "v": float(rows.volume[index]),
        "n": None,
        "vw": None,
    }


def quote_json(desk: Desk, series: BarSeries, index: int) -> Json:
    """Bid and ask half the slippage below and above a close, one round lot each."""
    close, half = money(float(series.close[index])), money(desk.costs.slippage / 2)
    return {
        "t": moment(int(series.available_at[index])),
        "bx": "V",
        "bp": float(fill_price(close * (1 - half))),
        "bs": 1,
        "ax": "V",
        "ap": float(fill_price(close * (1 + half))),
        "as": 1,
        "c": ["R"],
        "z": "C",
    }


def trade_json(_desk: Desk, series: BarSeries, index: int) -> Json:
    """The close of a bar with all its volume, as if it had been one trade."""
    return {
        "t": moment(int(series.available_at[index])),
        "x": "V",
        "p": float(series.close[index]),
        "s": float(series.volume[index]),
        "c": ["@"],
        "i": int(series.available_at[index]) // MINUTE_NS,
        "z": "C",
    }


def snapshot_json(desk: Desk, series: BarSeries) -> Json:
    """What a symbol looks like now."""
    days = _newest(desk, series, DAY)
    return {
        "latestTrade": trade_json(desk, series, -1),
        "latestQuote": quote_json(desk, series, -1),
        "minuteBar": _newest(desk, series, MINUTE)[-1],
        "dailyBar": days[-1],
        "prevDailyBar": days[-2] if len(days) > 1 else None,
    }


def adjusted_for(desk: Desk, series: BarSeries, adjustment: str) -> BarSeries:
    """`series` adjusted for what has happened to the shares up to now.

    raw        as traded; what the bars come adjusted for already cannot be taken back
    split      for splits; dividend for cash dividends; all for both
    """
    steps = []
    if adjustment in ("split", "all"):
        now_ns = desk.store.clock_ns()
        steps += [
            split_step(split.at_ns, split.ratio)
            for split in desk.prices.splits(series.symbol)
            if split.at_ns <= now_ns
        ]
    if adjustment in ("dividend", "all"):
        for dividend in desk.prices.happenings(series.symbol):
            if dividend.ratio != 1:
                continue
            before = int(np.searchsorted(series.timestamp, dividend.at_ns)) - 1
            if 0 <= before < len(series) - 1:
                close = float(series.close[before])
                steps.append(dividend_step(dividend.at_ns, float(dividend.per_share), close))
    return adjusted(series, steps) if steps else series


def days_of(desk: Desk, symbol: str) -> list[Json]:
    """The two newest daily bars in shares of today, the older first; fewer where there are none."""
    series = desk.prices.complete(symbol, desk.store.clock_ns())
    return _newest(desk, adjusted_for(desk, series, "split"), DAY) if len(series) else []


def _newest(desk: Desk, series: BarSeries, frame: Frame) -> list[Json]:
    """The two newest bars of `frame`, the older first; fewer where there are none."""
    tail = series.slice(max(0, len(series) - TWO_DAYS), len(series))
    rows = framed(tail, frame, desk.calendar, -FARTHEST_NS + 2 * DAY_NS, FARTHEST_NS)
    return [bar_json(rows, index) for index in range(max(0, len(rows) - 2), len(rows))]


def _closes(
    desk: Desk,
    series: BarSeries,
    first_ns: int,
    last_ns: int,
    tell: Callable[[Desk, BarSeries, int], Json],
) -> Track:
    part = series.slice(
        int(np.searchsorted(series.available_at, first_ns)),
        int(np.searchsorted(series.available_at, last_ns, side="right")),
    )
    return Track(part.available_at, lambda index: tell(desk, part, index))


def _told(desk: Desk, request: Request) -> list[BarSeries]:
    """The bars of each symbol of a request for the newest; those without any are left out."""
    request.only("symbols", "feed", "currency")
    if _feed(request) == "sip" and desk.free_plan:
        raise no_subscription("subscription does not permit querying recent SIP data")
    now_ns = desk.store.clock_ns()
    found = [desk.prices.complete(name, now_ns) for name in _symbols(desk, request)]
    return [series for series in found if len(series)]


def _symbols(desk: Desk, request: Request) -> list[str]:
    """The known ones of the symbols asked for, sorted."""
    coins = "crypto" in request.words
    names = {name.strip() for name in request.query.get("symbols", "").split(",")}
    if names == {""}:
        raise bad_data_request("symbols is required")
    for name in sorted(names):
        if not SYMBOLS[coins].fullmatch(name):
            raise bad_data_request(f"invalid symbol: {name}")
    if request.query.get("currency", "USD") != "USD":
        raise bad_data_request(f"invalid currency: {request.query['currency']}")
    return sorted(names & desk.prices.symbols)


def _feed(request: Request) -> str:
    """The feed asked for; without a word the best that the plan pays for."""
    return request.choice("feed", "", *FEEDS)


def _page(
    desk: Desk,
    request: Request,
    wrapper: str,
    track: Callable[[BarSeries, int, int], Track],
) -> Json:
    """At most `limit` rows over all symbols, these in alphabetical order, and where to go on."""
    now_ns = desk.store.clock_ns()
    start, end = request.moment("start"), request.moment("end")
    recent_ns = now_ns - RECENT_NS
    if _feed(request) == "sip" and desk.free_plan:
        if end is not None and end > recent_ns:
            raise no_subscription("subscription does not permit querying recent SIP data")
        end = recent_ns if end is None else end
    first_ns = start_of_day(now_ns) if start is None else start
    last_ns = now_ns if end is None else min(end, FARTHEST_NS - DAY_NS)
    if last_ns < first_ns and end is not None:
        raise bad_data_request("end should not be before start")
    limit = request.count("limit", USUAL_ROWS, MOST_ROWS)
    forward = request.choice("sort", "asc", "desc") == "asc"
    after = _place(request)
    found: dict[str, list[Json]] = {}
    told, last = 0, ("", 0)
    for symbol in _symbols(desk, request):
        if after is not None and symbol < after[0]:
            continue
        series = desk.prices.complete(symbol, now_ns)
        one = track(series, max(first_ns, -FARTHEST_NS + 2 * DAY_NS), last_ns)
        order: Sequence[int] = range(len(one.at)) if forward else range(len(one.at) - 1, -1, -1)
        if after is not None and symbol == after[0]:
            order = [
                at for at in order if (one.at[at] > after[1]) == forward and one.at[at] != after[1]
            ]
        for index in order:
            if told == limit:
                return {wrapper: found, "next_page_token": _token(*last)}
            found.setdefault(symbol, []).append(one.tell(index))
            last = (symbol, int(one.at[index]))
            told += 1
    return {wrapper: found, "next_page_token": None}


def _token(symbol: str, at_ns: int) -> str:
    return urlsafe_b64encode(f"{symbol}|{at_ns}".encode()).decode()


def _place(request: Request) -> tuple[str, int] | None:
    """Symbol and time of the last row of the page before."""
    token = request.query.get("page_token")
    if not token:
        return None
    try:
        symbol, at_ns = urlsafe_b64decode(token).decode().rsplit("|", 1)
        return symbol, int(at_ns)
    except ValueError as exc:
        raise bad_data_request(f"invalid page_token: {token}") from exc
