"""What makes bars unfit to trade on, found before anybody decides on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from trader.core.errors import DataIntegrityError
from trader.core.market import (
    EXCHANGE_TIME_ZONE,
    BarSeries,
    Timeframe,
    from_ns,
    session_of,
    to_ns,
)
from trader.data.grid import HOUR_NS, expected_bars

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date, datetime

    from trader.core.clock import SessionCalendar

ROUNDING = 1e-9  # relative; adjusted prices are rounded each on its own
SPLIT_TOLERANCE = 0.01  # how near an overnight ratio must come to a split's to be taken for one
EXTREME_MOVE = 0.4  # fraction; AAPL fell 51.9 % on 2000-09-29, so this alone proves no fault
BROKEN_MOVE = 25.0  # no share rises or falls by such a factor between two bars; a price is wrong
LOWEST_PRICE, HIGHEST_PRICE = 1e-4, 1e9  # USD; fills are booked in steps of 0.0001
HIGHEST_VOLUME = 1e15  # shares in one bar
SPLIT_RATIOS = np.array([1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50, 100])
FEWEST_ADJUSTED_CLOSES = 3  # closes out of range on one side before adjustment is suspected


Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing wrong with a series. An error forbids trading on it, a warning is only recorded."""

    severity: Severity
    symbol: str
    code: str
    at: datetime | None  # UTC opening time of the bar, None when it is about no single bar
    bar: int | None  # index into the series, None when no bar of it is at fault
    value: float | None  # the number at fault
    message: str  # one line, complete in itself


def inspect(
    series: BarSeries, calendar: SessionCalendar, *, as_of: datetime | None = None
) -> tuple[Finding, ...]:
    """Everything found in `series`: errors first, then warnings, each oldest first.

    With `as_of`, also whether the newest bar was complete at that time and is the newest there
    could have been. Raises DataIntegrityError when the bars leave the exchange calendar.
    """
    report = _Report(series)
    if not len(series):
        report.add("error", "no_bars", "no bars at all; choose a period the data covers")
        return tuple(report.findings)
    with np.errstate(all="ignore"):  # any number may stand in a damaged file
        _prices(report)
        if _in_order(report):
            _places(report, calendar)
            _splits(report, calendar)
    if as_of is not None:
        _current(report, calendar, as_of)
    return tuple(sorted(report.findings, key=_weight))


def require_sound(
    series: BarSeries, calendar: SessionCalendar, *, as_of: datetime | None = None
) -> tuple[Finding, ...]:
    """The warnings of `series`; DataIntegrityError with its first error, when it has any.

    Whether a series is sound depends on all its bars.
    """
    findings = inspect(series, calendar, as_of=as_of)
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        raise DataIntegrityError(first_of(errors))
    return findings


def refused_sessions(series: BarSeries, calendar: SessionCalendar) -> dict[date, str]:
    """Sessions whose hourly bars are not the expected ones, each with the reason; daily: none.

    The answer for bars up to a moment never needs a later bar: bars due after the newest one are
    not called missing. Expects bars in order.
    """
    if series.timeframe is Timeframe.DAY or not len(series):
        return {}
    first, last = _first_and_last(series)
    grid = expected_bars(first, last, series.timeframe, calendar)
    missing = _absent(grid.timestamp, series.timestamp)
    missing &= grid.timestamp >= series.timestamp[0]
    missing &= grid.timestamp <= series.timestamp[-1]
    faults: dict[date, list[str]] = {}
    for what, times in (
        ("no bar at", grid.timestamp[missing]),
        ("unexpected bar at", series.timestamp[_absent(series.timestamp, grid.timestamp)]),
    ):
        for ns in times:
            reason = f"{what} {_new_york_time(ns)}"
            faults.setdefault(session_of(from_ns(ns)), []).append(reason)
    return {day: f"{', '.join(reasons)} New York time" for day, reasons in sorted(faults.items())}


def first_of(errors: list[Finding]) -> str:
    """One line for a person: the first error in full, and how many more there are."""
    more = len(errors) - 1
    plural = "s" if more > 1 else ""
    return errors[0].message + (f" (and {more} more error{plural})" if more else "")


class _Report:
    """Findings about one series, worded alike."""

    def __init__(self, series: BarSeries) -> None:
        self.series = series
        self.findings: list[Finding] = []

    def add(
        self,
        severity: Severity,
        code: str,
        text: str,
        *,
        bar: int | None = None,
        at_ns: int | None = None,
        value: float | None = None,
    ) -> None:
        """Record a fault of `bar`, or of the time `at_ns` that has none, or of the series."""
        series = self.series
        if bar is not None:
            at_ns = int(series.timestamp[bar])
        words = [series.symbol, str(series.timeframe)]
        if at_ns is not None:
            words.append(_when(series, at_ns))
        self.findings.append(
            Finding(
                severity=severity,
                symbol=series.symbol,
                code=code,
                at=None if at_ns is None else from_ns(at_ns),
                bar=bar,
                value=value,
                message=f"{' '.join(words)}: {text}",
            )
        )


def _weight(finding: Finding) -> tuple[bool, int]:
    return finding.severity == "warning", -1 if finding.at is None else to_ns(finding.at)


def _minute(ns: int) -> str:
    return f"{from_ns(ns):%Y-%m-%d %H:%M} UTC"


def _when(series: BarSeries, ns: int) -> str:
    return str(session_of(from_ns(ns))) if series.timeframe is Timeframe.DAY else _minute(ns)


def _new_york_time(ns: int) -> str:
    return f"{from_ns(ns).astimezone(EXCHANGE_TIME_ZONE):%H:%M}"


def _bars_where(mask: NDArray[np.bool_]) -> Iterator[int]:
    return (int(index) for index in np.flatnonzero(mask))


def _absent(times: NDArray[np.int64], ordered: NDArray[np.int64]) -> NDArray[np.bool_]:
    """[T] which of `times` are not among `ordered`."""
    if not ordered.size:
        return np.ones(times.size, dtype=np.bool_)
    place = np.minimum(np.searchsorted(ordered, times), ordered.size - 1)
    return np.asarray(ordered[place] != times)


def _prices(report: _Report) -> None:
    """Numbers that cannot be prices or volumes, and closes or opens outside their bar's range."""
    series = report.series
    for name in ("open", "high", "low", "close"):
        values: NDArray[np.float64] = getattr(series, name)
        for t in _bars_where(~(np.isfinite(values) & (values > 0.0))):
            price = float(values[t])
            report.add(
                "error", "price", f"{name} {price:g} is not a price above zero", bar=t, value=price
            )
        strange = np.isfinite(values) & (values > 0.0)
        strange &= (values < LOWEST_PRICE) | (values > HIGHEST_PRICE)
        for t in _bars_where(strange):
            price = float(values[t])
            text = f"{name} {price:g} is no price of a share, {LOWEST_PRICE:g} to {HIGHEST_PRICE:g}"
            report.add("error", "price", text, bar=t, value=price)
    for t in _bars_where(~((series.volume >= 0.0) & (series.volume <= HIGHEST_VOLUME))):
        volume = float(series.volume[t])
        report.add(
            "error", "volume", f"volume {volume:g} is not a number of shares", bar=t, value=volume
        )
    for t in _bars_where(series.volume == 0.0):
        report.add(
            "warning", "zero_volume", "volume is 0, a gap of the feed or a halt", bar=t, value=0.0
        )
    slack = ROUNDING * np.abs(series.high)
    for t in _bars_where(series.high < series.low - slack):
        high, low = float(series.high[t]), float(series.low[t])
        report.add(
            "error", "high_below_low", f"high {high:g} is below low {low:g}", bar=t, value=high
        )
    for name in ("open", "close"):
        values = getattr(series, name)
        below, above = values < series.low - slack, values > series.high + slack
        if name == "close" and _closes_look_adjusted(below, above):
            strays = f"{int((below | above).sum())} of {len(series)} closes"
            report.add(
                "error",
                "mixed_adjustment",
                f"{strays} lie outside their bar's low to high, all on one side: adjusted "
                "closes beside raw prices; adjust all four prices or none",
            )
            continue
        for t in _bars_where((below | above) & (series.high >= series.low)):
            price, low, high = float(values[t]), float(series.low[t]), float(series.high[t])
            report.add(
                "error",
                f"{name}_outside_range",
                f"{name} {price:.10g} is outside low {low:.10g} to high {high:.10g}",
                bar=t,
                value=price,
            )


def _closes_look_adjusted(below: NDArray[np.bool_], above: NDArray[np.bool_]) -> bool:
    """Bad prints stray to both sides and rarely; back-adjusted closes all stray to one side."""
    low, high = int(below.sum()), int(above.sum())
    return min(low, high) == 0 and max(low, high) >= max(FEWEST_ADJUSTED_CLOSES, below.size // 50)


def _in_order(report: _Report) -> bool:
    """Whether every bar opens after the one before it."""
    steps = np.diff(report.series.timestamp)
    for t in _bars_where(steps <= 0):
        if steps[t] == 0:
            report.add("error", "duplicate_time", "there are two bars of this time", bar=t + 1)
        else:
            before = _when(report.series, int(report.series.timestamp[t]))
            report.add(
                "error", "unsorted", f"comes after the bar of {before}; oldest first", bar=t + 1
            )
    return bool((steps > 0).all())


def _first_and_last(series: BarSeries) -> tuple[date, date]:
    """New York dates of the first and the last bar."""
    return session_of(from_ns(series.timestamp[0])), session_of(from_ns(series.timestamp[-1]))


def _places(report: _Report, calendar: SessionCalendar) -> None:
    """Bars where the exchange was closed, sessions without bars, wrong times of completion."""
    series = report.series
    first, last = _first_and_last(series)
    opens, closes = calendar.hours_between(first, last)
    session = np.searchsorted(opens, series.timestamp, side="right") - 1
    inside = session >= 0
    inside[inside] = series.timestamp[inside] < closes[session[inside]]
    for t in _bars_where(~inside):
        report.add("error", "outside_session", "the exchange is closed when this bar opens", bar=t)

    end = np.minimum(series.timestamp[inside] + HOUR_NS, closes[session[inside]])
    due = closes[session[inside]] if series.timeframe is Timeframe.DAY else end
    for place in _bars_where(series.available_at[inside] != due):
        bar = int(np.flatnonzero(inside)[place])
        known, right = _minute(int(series.available_at[bar])), _minute(int(due[place]))
        report.add(
            "error", "availability", f"marked complete at {known}, but it is at {right}", bar=bar
        )
    if series.timeframe is Timeframe.DAY:
        for t in _bars_where(inside & _absent(series.timestamp, opens)):
            report.add("error", "off_grid", "a daily bar must open with its session", bar=t)
        for ns in opens[_absent(opens, series.timestamp)]:
            report.add("error", "missing_session", "this session has no bar", at_ns=int(ns))
        return
    if not inside.all():
        return
    refused = refused_sessions(series, calendar)
    if refused and len(refused) == opens.size:
        day, reason = next(iter(refused.items()))
        report.add("error", "no_whole_session", f"no session has its hourly bars; {day}: {reason}")
    for day, reason in refused.items():
        report.add("warning", "session_refused", reason, at_ns=to_ns(calendar.open(day)))


def _splits(report: _Report, calendar: SessionCalendar) -> None:
    """Overnight cliffs of a split's size, splits on record that the prices deny, extreme moves.

    The ratio of an opening to the close before it is taken after the splits on record.
    """
    series = report.series
    on_record: dict[int, float] = {}
    factor = np.ones(len(series))
    for day, ratio in series.splits:
        index = int(np.searchsorted(series.timestamp, to_ns(calendar.open(day))))
        if 0 < index < len(series):
            on_record[index] = ratio
            factor[index] *= ratio
    gap = series.open[1:] * factor[1:] / series.close[:-1]
    move = series.close[1:] * factor[1:] / series.close[:-1]
    suspect = (
        _extreme(gap)
        | _near_any_split(gap)
        | _extreme(move)
        | (~np.isfinite(gap) & (factor[1:] != 1.0))
    )
    for t in _bars_where(suspect):
        bar, ratio = t + 1, float(gap[t])
        opening, before = float(series.open[bar]), float(series.close[t])
        seen = f"open {opening:g} after close {before:g}"
        denied = _extreme(gap)[t] or _near_any_split(gap)[t] or not np.isfinite(gap[t])
        if bar in on_record and denied:
            text = (
                f"the split on record, {on_record[bar]:g} new shares for one, does not explain "
                f"{seen}; are the prices adjusted for it already?"
            )
            report.add("error", "split_denied", text, bar=bar, value=opening)
        elif _near_any_split(gap)[t]:
            text = f"{seen} looks like a split of {_split_words(ratio)} that is not on record"
            report.add(
                "error", "split_cliff", text + "; use adjusted prices", bar=bar, value=opening
            )
        elif _broken(gap)[t] or _broken(move)[t]:
            text = f"{seen}, close {float(series.close[bar]):g}: no share moves by such a factor"
            report.add("error", "broken_price", text + "; correct it", bar=bar, value=opening)
        else:
            text = f"{seen}, close {float(series.close[bar]):g}: an extreme move, but no split"
            report.add("warning", "extreme_move", text, bar=bar, value=float(move[t]) - 1.0)


def _extreme(ratio: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.isfinite(ratio) & (ratio > 0.0) & (np.abs(ratio - 1.0) > EXTREME_MOVE)


def _broken(ratio: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.isfinite(ratio) & ((ratio >= BROKEN_MOVE) | (ratio <= 1.0 / BROKEN_MOVE))


def _near_any_split(ratio: NDArray[np.float64]) -> NDArray[np.bool_]:
    apart = np.abs(np.multiply.outer(_all_splits(), ratio) - 1.0)
    return np.asarray((apart <= SPLIT_TOLERANCE).any(axis=0))


def _all_splits() -> NDArray[np.float64]:
    return np.concatenate([SPLIT_RATIOS, 1.0 / SPLIT_RATIOS])


def _split_words(ratio: float) -> str:
    """`4 for 1` for an opening at a quarter of the close, `1 for 4` for one at four times it."""
    splits = _all_splits()
    new_shares = float(splits[np.argmin(np.abs(splits * ratio - 1.0))])
    return f"{new_shares:g} for 1" if new_shares > 1.0 else f"1 for {1.0 / new_shares:g}"


def _current(report: _Report, calendar: SessionCalendar, as_of: datetime) -> None:
    """The newest bar must be the newest that was complete at `as_of`."""
    series = report.series
    newest, now = int(series.available_at[-1]), to_ns(as_of)
    if newest > now:
        text = f"not complete before {_minute(newest)}, and it is {_minute(now)}; drop it"
        report.add("error", "partial_bar", text, bar=len(series) - 1)
        return
    today = calendar.at_or_after(session_of(as_of))
    grid = expected_bars(calendar.previous(today), today, series.timeframe, calendar)
    due = int(grid.available_at[np.searchsorted(grid.available_at, now, side="right") - 1])
    if newest < due:
        text = (
            f"the newest bar, but one was complete at {_minute(due)} and it is {_minute(now)}: "
            "stale data"
        )
        report.add("error", "stale", text, bar=len(series) - 1)
