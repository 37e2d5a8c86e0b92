"""A heat map as inline SVG: scores over two axes, in colours that the colour-blind tell apart."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from itertools import groupby

from trader.report.markup import Html, join, tag, void
from trader.report.sweep_contents import Cells, Heat
from trader.report.wording import number

# viridis, from low to high: its lightness rises evenly, so that it reads in grey as well
ANCHORS = (
    (68, 1, 84),
    (72, 40, 120),
    (62, 73, 137),
    (49, 104, 142),
    (38, 130, 142),
    (31, 158, 137),
    (53, 183, 121),
    (110, 206, 88),
    (181, 222, 43),
    (253, 231, 37),
)
STEPS = 32  # colours
LEGEND_TICKS = 5
AXIS_TICKS = 7
ROW_HEIGHT, TALLEST, STRIP = 22, 440, 64  # pixels; a strip is the map of a single axis
LOWEST_SHARE = 0.02  # of the cells may lie below the darkest colour, so that few do not flatten all


def colour(share: float) -> str:
    """The colour at `share` of the scale, 0 to 1, as #rrggbb."""
    place = min(max(share, 0.0), 1.0) * (len(ANCHORS) - 1)
    low = min(int(place), len(ANCHORS) - 2)
    rest = place - low
    mixed = (round(a + (b - a) * rest) for a, b in zip(ANCHORS[low], ANCHORS[low + 1], strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def scale_of(cells: Iterable[Cells]) -> tuple[float, float] | None:
    """Lowest and highest score of the scale; None where no cell has one."""
    known = sorted(value for layer in cells for row in layer for value in row if value is not None)
    if not known:
        return None
    return known[int(LOWEST_SHARE * (len(known) - 1))], known[-1]


def step_of(value: float, low: float, high: float) -> int:
    """Which of the colours shows `value`."""
    if not high > low:
        return STEPS - 1
    share = min(max((value - low) / (high - low), 0.0), 1.0)
    return min(int(share * STEPS), STEPS - 1)


def heat_map(heat: Heat, measure: str, *, fraction: bool) -> Html:
    """The map with its legend, its axes and a ring around the best set.

    measure   what the scores are, in words
    fraction  whether they are shown in percent
    """
    ends = scale_of((heat.best, heat.mean))
    if ends is None:
        return tag("p", f"No set has a {measure}, so there is no map to draw.", class_="empty")
    low, high = ends
    binned = any(count > 1 for row in heat.count for count in row)
    rows, columns = len(heat.best), len(heat.best[0])
    height = STRIP if heat.row_name is None else min(max(rows * ROW_HEIGHT, 160), TALLEST)
    layers = [_layer("best", heat.best, low, high)]
    if binned:
        layers.append(_layer("mean", heat.mean, low, high))
    drawing = tag(
        "svg",
        join(layers),
        viewBox=f"0 0 {columns} {rows}",
        preserveAspectRatio="none",
        shape_rendering="crispEdges",
        role="img",
        aria_label=_described(heat, measure, fraction=fraction),
    )
    row, column = heat.marked
    top = 100.0 * (rows - row - 0.5) / rows
    ring = tag(
        "span",
        class_="ring",
        style=f"left:{100.0 * (column + 0.5) / columns:.2f}%;top:{top:.2f}%",
        title="the best set",
    )
    across = heat.column_name
    where = across if heat.row_name is None else f"{heat.row_name} upward, {across} rightward"
    readout = tag(
        "span", f"{where}; the ring is the best set", class_="readout", aria_live="polite"
    )
    return tag(
        "figure",
        tag("figcaption", tag("b", measure[:1].upper() + measure[1:]), " ", readout),
        _choice() if binned else "",
        tag(
            "div",
            tag("div", _row_ticks(heat), class_="y-axis", aria_hidden="true"),
            tag("div", drawing, ring, class_="cells", style=f"height:{height}px"),
            tag("div", _legend(low, high, fraction=fraction), class_="scale"),
            tag("div", _column_ticks(heat), class_="x-axis", aria_hidden="true"),
            class_="map",
        ),
        class_="heat",
        data_rows=str(rows),
        data_columns=str(columns),
    )


def heat_data(heat: Heat, *, fraction: bool) -> Html:
    """The numbers behind the map as JSON that cannot end its element, for sweep.js."""
    payload = {
        "rowName": heat.row_name,
        "columnName": heat.column_name,
        "rows": heat.row_ends,
        "columns": heat.column_ends,
        "best": _short(heat.best),
        "mean": _short(heat.mean),
        "count": heat.count,
        "fraction": fraction,
    }
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return tag("script", Html(text), type="application/json", id="heat-data")


def _short(cells: Cells) -> list[list[float | None]]:
    return [[None if value is None else float(f"{value:.5g}") for value in row] for row in cells]


def _layer(name: str, cells: Cells, low: float, high: float) -> Html:
    """One path a colour; neighbours of a row that share it are one rectangle."""
    paths: dict[int, list[str]] = {}
    for row, values in enumerate(cells):
        steps = [None if value is None else step_of(value, low, high) for value in values]
        column = 0
        for step, run in groupby(steps):
            width = len(list(run))
            if step is not None:
                y = len(cells) - row - 1  # low values of the axis lie at the bottom
                paths.setdefault(step, []).append(f"M{column} {y}h{width}v1h-{width}z")
            column += width
    drawn = "".join(
        f'<path fill="{colour(step / (STEPS - 1))}" d="{"".join(parts)}"/>'
        for step, parts in sorted(paths.items())
    )
    return tag("g", Html(drawn), class_=f"layer {name}")


def _choice() -> Html:
    words = (("best", "best of each cell"), ("mean", "mean of each cell"))
    return tag(
        "fieldset",
        tag("legend", "A cell holds several sets; show the"),
        join(
            tag(
                "label",
                void(
                    "input", type="radio", name="layer", id=f"layer-{name}", checked=name == "best"
                ),
                f" {text}",
            )
            for name, text in words
        ),
        class_="filter",
    )


def _legend(low: float, high: float, *, fraction: bool) -> Html:
    stops = ",".join(colour(step / (STEPS - 1)) for step in range(STEPS))
    ticks = join(
        tag(
            "span",
            score(low + (high - low) * share, fraction=fraction),
            style=f"top:{100.0 * (1.0 - share):.1f}%",
        )
        for share in (place / (LEGEND_TICKS - 1) for place in range(LEGEND_TICKS))
    )
    return join(
        (
            tag("div", class_="ramp", style=f"background:linear-gradient(to top,{stops})"),
            tag("div", ticks, class_="ramp-ticks"),
        )
    )


def score(value: float | None, *, fraction: bool) -> str:
    """A score as it is written: percent, whole dollars or two places."""
    if fraction:
        return number(None if value is None else 100.0 * value, 1) + (
            " %" if value is not None else ""
        )
    return number(value, 0 if value is not None and abs(value) >= 1_000.0 else 2)


def value_text(ends: Sequence[float]) -> str:
    """The value of a cell on one axis, or its two ends."""
    low, high = ends
    return f"{low:g}" if low == high else f"{low:g}–{high:g}"


def _ticks(ends: Sequence[tuple[float, float]]) -> list[tuple[float, str]]:
    """Where to write which value, as shares of the axis."""
    count = len(ends)
    if count <= AXIS_TICKS:
        places = list(range(count))
    else:
        places = sorted({round(at * (count - 1) / (AXIS_TICKS - 1)) for at in range(AXIS_TICKS)})
    return [((place + 0.5) / count, f"{ends[place][0]:g}") for place in places]


def _row_ticks(heat: Heat) -> Html:
    return join(
        tag("span", text, style=f"top:{100.0 * (1.0 - share):.2f}%")
        for share, text in _ticks(heat.row_ends)
    )


def _column_ticks(heat: Heat) -> Html:
    return join(
        tag("span", text, style=f"left:{100.0 * share:.2f}%")
        for share, text in _ticks(heat.column_ends)
    )


def _described(heat: Heat, measure: str, *, fraction: bool) -> str:
    row, column = heat.marked
    highest = heat.best[row][column]
    known = [value for line in heat.best for value in line if value is not None]
    middle = sorted(known)[len(known) // 2] if known else math.nan
    over = heat.column_name if heat.row_name is None else f"{heat.row_name} and {heat.column_name}"
    return (
        f"Heat map of {measure} over {over}: the best cell has "
        f"{score(highest, fraction=fraction)}, the middle one {score(middle, fraction=fraction)}."
    )
