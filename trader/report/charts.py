"""Line charts as inline SVG: lines stretch with the page, while words keep their size.

The drawing is 1000 units wide and stretched to the width at hand; its height is in pixels and
fixed, so that labels, which are HTML laid over it, can be placed without overlap before any
browser sees them.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from trader.report.contents import Column, TradeRow
from trader.report.markup import Html, join, tag
from trader.report.wording import MINUS, day, minute, number, percent

WIDTH = 1000
EQUITY_HEIGHT, DRAWDOWN_HEIGHT = 300, 170  # pixels; end labels of five lines fit
LABEL_HEIGHT = 31  # pixels of an end label of two lines
LINE_STYLES = 5  # .line0 … .line4 in style.css, each with its own dashes
FINEST_DRAWN = 1200  # points; longer curves are drawn by the extremes of each stretch
MOST_DATES = 7
MOST_NARROW_DATES = 4  # on a narrow screen every other one of more is left out
DATE_GAP = 0.07  # of the width
MONTH_STEPS = (1, 2, 3, 6, 12, 24, 60, 120)
WHOLE_DOLLARS_FROM = 10_000.0
MILLION = 1_000_000.0
LOG_SCALE_FROM = 5.0  # times the lowest equity
MOST_TICKS = 6
MANY_MARKS = 80  # from here on they are drawn small


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The values that a chart spans and the pixels that it has for them."""

    low: float
    high: float
    height: int
    count: int  # points along the x axis
    logarithmic: bool = False  # equal ratios, not equal sums, are equally high; low > 0

    def x(self, index: int) -> float:
        """Units from the left; a single point stands in the middle."""
        return WIDTH * index / (self.count - 1) if self.count > 1 else WIDTH / 2

    def y(self, value: float) -> float:
        """Pixels from the top."""
        low, high, here = self._scaled(self.low), self._scaled(self.high), self._scaled(value)
        return self.height * (high - here) / (high - low)

    def _scaled(self, value: float) -> float:
        return math.log(value) if self.logarithmic else value

    def ticks(self) -> tuple[float, ...]:
        """About four round values inside the frame; 1, 2, 5, 10, … where it is logarithmic."""
        if self.logarithmic:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)))
            found = [factor * 10.0**decade for decade in decades for factor in (1, 2, 5)]
            inside = [tick for tick in found if self.low <= tick <= self.high]
            return tuple(inside[:: math.ceil(len(inside) / MOST_TICKS)])
        raw = (self.high - self.low) / 4
        power = 10.0 ** math.floor(math.log10(raw))
        step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return tuple(step * multiple for multiple in range(first, last + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line: its name, its values and the words at its end."""

    label: str
    values: Sequence[float]
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """What a figure shows. ticks: value and text of each line of the grid."""

    name: str
    title: str
    explanation: str
    frame: Frame
    series: Sequence[Series]
    ticks: Sequence[tuple[float, str]]
    markers: str = ""


def equity_chart(
    times: Sequence[datetime], columns: Sequence[Column], trades: Sequence[TradeRow]
) -> Html:
    """Equity of every column in USD; entries and exits of `trades` on the first column's line."""
    values = _finite(value for column in columns for value in column.equity)
    if not times or not values:
        return tag("p", "No bar was traded, so there is no equity to draw.", class_="empty")
    low, high = min(values), max(values)
    frame = _equity_frame(low, high, len(times))
    places = _places(values)
    chart = Chart(
        name="equity",
        title="Equity, USD, log scale" if frame.logarithmic else "Equity, USD",
        explanation=f"at each close; ▲ entry, ▼ exit of “{columns[0].label}”",
        frame=frame,
        series=[
            Series(
                label=column.label,
                values=column.equity,
                note=number(_last(column.equity), places),
            )
            for column in columns
        ],
        ticks=list(zip(frame.ticks(), _dollars(frame.ticks()), strict=True)),
        markers=_markers(frame, times, columns[0].equity, trades),
    )
    return _figure(chart, times)


def _equity_frame(low: float, high: float, count: int) -> Frame:
    """Five percent of air above and below; a log scale where one curve would flatten the others."""
    if low > 0.0 and high > LOG_SCALE_FROM * low:
        air = (high / low) ** 0.05
        return Frame(
            low=low / air, high=high * air, height=EQUITY_HEIGHT, count=count, logarithmic=True
        )
    pad = 0.05 * (high - low) or max(abs(high) * 0.01, 1.0)
    return Frame(low=low - pad, high=high + pad, height=EQUITY_HEIGHT, count=count)


def drawdown_chart(times: Sequence[datetime], columns: Sequence[Column]) -> Html:
    """Fall of every column below its highest equity so far, in percent."""
    values = _finite(value for column in columns for value in column.drawdown)
    if not times or not values:
        return tag("p", "No bar was traded, so there is no drawdown to draw.", class_="empty")
    low = min(min(values) * 1.05, -0.001)
    frame = Frame(low=low, high=0.0, height=DRAWDOWN_HEIGHT, count=len(times))
    places = 0 if low <= -0.05 else 1 if low <= -0.005 else 2
    chart = Chart(
        name="drawdown",
        title="Drawdown, percent",
        explanation="below the highest equity so far; the deepest stands beside each name",
        frame=frame,
        series=[
            Series(
                label=column.label,
                values=column.drawdown,
                note=percent(column.performance.max_drawdown, 1),
            )
            for column in columns
        ],
        ticks=[(tick, percent(tick, places)) for tick in frame.ticks()],
    )
    return _figure(chart, times)


def chart_data(times: Sequence[datetime], columns: Sequence[Column]) -> Html:
    """The numbers behind both charts as JSON that cannot end its element, for page.js."""
    places = _places(_finite(value for column in columns for value in column.equity))
    shown = minute if intraday(times) else day
    payload = {
        "times": [shown(moment) for moment in times],
        "places": places,
        "columns": [
            {
                "label": column.label,
                "equity": [_rounded(value, places) for value in column.equity],
                "drawdown": [_rounded(100.0 * value, 2) for value in column.drawdown],
            }
            for column in columns
        ],
    }
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return tag("script", Html(text), type="application/json", id="chart-data")


def intraday(times: Sequence[datetime]) -> bool:
    """Whether two neighbouring points fall on one UTC date."""
    return any(day(before) == day(now) for before, now in pairwise(times))


def _figure(chart: Chart, times: Sequence[datetime]) -> Html:
    frame = chart.frame
    drawing = tag(
        "svg",
        Html(
            "".join(
                f'<path class="grid" d="M0 {frame.y(at):.1f}H{WIDTH}"/>' for at, _ in chart.ticks
            )
        ),
        join(
            _line(frame, chart.series[at].values, at) for at in reversed(range(len(chart.series)))
        ),
        viewBox=f"0 0 {WIDTH} {frame.height}",
        preserveAspectRatio="none",
        role="img",
        aria_label=_described(chart, times),
    )
    scale = join(
        tag("span", text, style=f"top:{frame.y(tick):.1f}px") for tick, text in chart.ticks
    )
    plot = tag(
        "div",
        drawing,
        chart.markers,
        tag("span", class_="cross", hidden=True),
        class_="plot",
        style=f"height:{frame.height}px",
    )
    readout = tag("span", chart.explanation, class_="readout", aria_live="polite")
    return tag(
        "figure",
        tag("figcaption", tag("b", chart.title), " ", readout),
        tag(
            "div",
            tag("div", scale, class_="y-axis", aria_hidden="true"),
            plot,
            tag("div", _end_labels(frame, chart.series), class_="ends"),
            tag("div", _dates(frame, times), class_="x-axis", aria_hidden="true"),
            class_="chart",
        ),
        class_=chart.name,
        data_series=chart.name,
    )


def _described(chart: Chart, times: Sequence[datetime]) -> str:
    ends = "; ".join(f"{line.label} {line.note}" for line in chart.series)
    return f"{chart.title}, {day(times[0])} to {day(times[-1])}: {ends}."


def _line(frame: Frame, values: Sequence[float], index: int) -> Html:
    if len(values) != frame.count:
        raise ValueError(
            f"a column has {len(values)} points for {frame.count} times; give one each"
        )
    parts, pen_down = [], False
    for at in _drawn(values):
        if not math.isfinite(values[at]):
            pen_down = False
            continue
        parts.append(
            f"{'L' if pen_down else 'M'}{frame.x(at):.1f} {frame.y(values[at]):.1f}"
            + ("" if pen_down or frame.count > 1 else "h0")  # a line of no length shows as a dot
        )
        pen_down = True
    return Html(f'<path class="line line{index % LINE_STYLES}" d="{"".join(parts)}"/>')


def _drawn(values: Sequence[float]) -> Sequence[int]:
    """Indices to draw: all, or of each stretch of a long curve its ends and its extremes."""
    if len(values) <= FINEST_DRAWN:
        return range(len(values))
    stretch = math.ceil(4 * len(values) / FINEST_DRAWN)
    kept: set[int] = set()
    for start in range(0, len(values), stretch):
        inside = range(start, min(start + stretch, len(values)))
        kept |= {inside[0], inside[-1], min(inside, key=values.__getitem__)}
        kept.add(max(inside, key=values.__getitem__))
    return sorted(kept)


def _end_labels(frame: Frame, series: Sequence[Series]) -> Html:
    wanted = []
    for line in series:
        last = _last(line.values)
        wanted.append((frame.y(last) if last is not None else 0.0) - LABEL_HEIGHT / 2)
    tops = spread(wanted, LABEL_HEIGHT, frame.height)
    return join(
        tag(
            "span",
            tag("b", line.label),
            Html(
                '<svg class="key" viewBox="0 0 22 6" aria-hidden="true">'
                f'<path class="line line{index % LINE_STYLES}" d="M1 3H21"/></svg>'
            ),
            tag("span", line.note),
            style=f"top:{top:.1f}px",
        )
        for index, (line, top) in enumerate(zip(series, tops, strict=True))
    )


def spread(wanted: Sequence[float], gap: float, height: float) -> list[float]:
    """Tops of labels as near to the wanted ones as fits: `gap` apart, none below `height`."""
    order = sorted(range(len(wanted)), key=lambda index: (wanted[index], index))
    tops = list(wanted)
    floor = 0.0
    for index in order:
        tops[index] = floor = max(tops[index], floor)
        floor += gap
    ceiling = height - gap
    for index in reversed(order):
        tops[index] = ceiling = min(tops[index], ceiling)
        ceiling -= gap
    return tops


def _markers(
    frame: Frame, times: Sequence[datetime], equity: Sequence[float], trades: Sequence[TradeRow]
) -> Html:
    marks = []
    for trade in trades:
        for kind, moment in (("entry", trade.entered_at), ("exit", trade.exited_at)):
            if moment is None:
                continue
            at = min(
                bisect_left(times, moment), len(times) - 1
            )  # a fill belongs to its bar's close
            if not math.isfinite(equity[at]):
                continue
            place = f"left:{frame.x(at) / WIDTH:.2%};top:{frame.y(equity[at]):.1f}px"
            title = f"{kind} {trade.symbol} {day(moment)}"
            marks.append(tag("span", class_=f"mark {kind}", style=place, title=title))
    return tag("div", join(marks), class_="marks many" if len(marks) >= MANY_MARKS else "marks")


def _dates(frame: Frame, times: Sequence[datetime]) -> Html:
    chosen = date_ticks(times)
    return join(
        tag(
            "span",
            text,
            class_="between" if order % 2 and len(chosen) > MOST_NARROW_DATES else None,
            style=f"left:{frame.x(index) / WIDTH:.2%}",
        )
        for order, (index, text) in enumerate(chosen)
    )


def date_ticks(times: Sequence[datetime]) -> list[tuple[int, str]]:
    """Where to write dates: the first point of every nth month, or days of a short period."""
    months = [12 * at.year + at.month - 1 for at in (time.astimezone(UTC) for time in times)]
    span = months[-1] - months[0]
    if span < 2:
        step = max(1, math.ceil(len(times) / 4))
        seen = {day(times[index]): index for index in reversed(range(0, len(times), step))}
        return sorted((index, text) for text, index in seen.items())
    step = next((step for step in MONTH_STEPS if span / step < MOST_DATES), MONTH_STEPS[-1])
    found: list[tuple[int, str]] = []
    for index, month in enumerate(months):
        if month % step or (index and month == months[index - 1]):
            continue
        if found and index - found[-1][0] < DATE_GAP * len(times):
            found.pop()
        found.append((index, f"{month // 12}-{month % 12 + 1:02d}"))
    return found


def _finite(values: Iterable[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def _last(values: Sequence[float]) -> float | None:
    return values[-1] if values and math.isfinite(values[-1]) else None


def _dollars(ticks: Sequence[float]) -> list[str]:
    """Round amounts as short as they can be told apart."""
    places = 0 if all(tick == round(tick) for tick in ticks) else 2
    return [
        f"{tick / MILLION:g}M".replace("-", MINUS) if abs(tick) >= MILLION else number(tick, places)
        for tick in ticks
    ]


def _places(equity: Sequence[float]) -> int:
    """Cents for small accounts, whole dollars for others."""
    return 0 if max(equity, default=0.0) >= WHOLE_DOLLARS_FROM else 2


def _rounded(value: float, places: int) -> float | int | None:
    if not math.isfinite(value):
        return None
    return round(value) if places == 0 else round(value, places)
