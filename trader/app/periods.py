"""From asked dates and available bars to the sessions that a backtest covers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from trader.core.canonical import sha256_of
from trader.core.clock import SessionCalendar
from trader.core.errors import DataIntegrityError, UsageError
from trader.core.market import BarSeries, from_ns, session_of
from trader.core.ports import MarketData
from trader.data.integrity import inspect
from trader.report.contents import SourceInfo

SHOWN_WARNINGS = 3  # for each symbol


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The sessions of a backtest, the bars behind it, and what a person should know about both."""

    first: date
    last: date
    series: Mapping[str, BarSeries]  # cut at the last session's close
    source: SourceInfo
    notices: tuple[str, ...]


def cover(
    data: MarketData,
    series: Mapping[str, BarSeries],
    calendar: SessionCalendar,
    *,
    start: date,
    end: date | None,
    now: datetime,
) -> Coverage:
    """Which sessions between `start` and `end` the bars cover.

    now  the present moment, which no bar may lie beyond

    Raises UsageError when the dates are in the wrong order and DataIntegrityError when no bar falls
    between.
    """
    if end is not None and end < start:
        raise UsageError(f"--to {end} is before --from {start}")
    spans = {symbol: _span(bars) for symbol, bars in series.items()}
    newest = max(last for _, last in spans.values())
    oldest = min(first for first, _ in spans.values())
    if start > newest or (end is not None and end < oldest):
        listed = ", ".join(f"{symbol} {first} to {last}" for symbol, (first, last) in spans.items())
        asked = f"{start} to {end}" if end else f"{start} on"
        raise DataIntegrityError(f"no bars of {data.name} lie in {asked}; there are {listed}")
    notices = []
    first = calendar.at_or_after(max(start, oldest))
    if start < oldest:
        notices.append(f"the bars begin on {oldest}; so does the period")
    elif first != start:
        notices.append(f"{start} is not a session of the exchange; the period begins on {first}")
    wanted = newest if end is None else min(end, newest)
    if end is not None and end > newest:
        notices.append(f"the bars end on {newest}; so does the period")
    last = wanted if calendar.is_session(wanted) else calendar.previous(wanted)
    if last < first:
        raise DataIntegrityError(f"no session of the exchange lies in {start} to {end}")
    for symbol, (begins, ends) in spans.items():
        if ends < last:
            notices.append(f"{symbol} ends on {ends}: no decisions about it after that day")
        if begins > first:
            notices.append(f"{symbol} begins on {begins}: no decisions about it before that day")
    for bars in series.values():
        _require_past(bars, now)
        notices += _warnings(bars, calendar, calendar.open(first), calendar.close(last))
    cut = {symbol: bars.until(calendar.close(last)) for symbol, bars in series.items()}
    source = SourceInfo(
        name=data.name,
        symbols=tuple(series),
        first=oldest,
        last=min(newest, last),
        adjustment={symbol: bars.adjustment for symbol, bars in series.items()},
        sha256=sha256_of({symbol: bars.sha256 for symbol, bars in cut.items()}),
    )
    return Coverage(first=first, last=last, series=cut, source=source, notices=tuple(notices))


def _require_past(bars: BarSeries, now: datetime) -> None:
    newest = from_ns(bars.available_at[-1])
    if newest > now:
        raise DataIntegrityError(
            f"{bars.symbol}: the newest bar is complete at {newest:%Y-%m-%d %H:%M} UTC and it is "
            f"{now:%Y-%m-%d %H:%M}: it cannot be known yet; drop it"
        )


def _warnings(
    bars: BarSeries, calendar: SessionCalendar, first: datetime, last: datetime
) -> list[str]:
    """What is odd about the bars between two moments though no fault, in a few lines."""
    found = [
        item.message
        for item in inspect(bars, calendar)
        if item.severity == "warning" and (item.at is None or first <= item.at <= last)
    ]
    if len(found) > SHOWN_WARNINGS:
        rest = len(found) - SHOWN_WARNINGS
        found[SHOWN_WARNINGS:] = [f"{bars.symbol}: {rest} more bars are as odd"]
    return found


def _span(bars: BarSeries) -> tuple[date, date]:
    return session_of(from_ns(bars.timestamp[0])), session_of(from_ns(bars.timestamp[-1]))
