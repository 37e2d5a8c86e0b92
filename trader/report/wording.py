"""How the page writes numbers, moments and missing values."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

from trader.core.decision import Evidence
from trader.report.markup import Html, join, tag

MINUS = "−"
MISSING = "n/a"


def number(value: float | None, places: int = 2, *, signed: bool = False) -> str:
    """A number with thousands separators and a true minus sign; n/a when there is none."""
    if value is None or not math.isfinite(value):
        return MISSING
    text = f"{abs(value):,.{places}f}"
    if not any(digit in "123456789" for digit in text):
        return text  # zero has no sign, however small it was before rounding
    return (MINUS if value < 0.0 else "+" if signed else "") + text


def percent(value: float | None, places: int = 2, *, signed: bool = False) -> str:
    """A fraction in percent; n/a when there is none."""
    written = number(None if value is None else 100.0 * value, places, signed=signed)
    return written if written == MISSING else f"{written} %"


def price(value: float | None) -> str:
    """USD per share: cents, and four places below one dollar."""
    return number(value, 4 if value is not None and abs(value) < 1.0 else 2)


def absent(why: str) -> Html:
    """The mark of a value that is not there, with the reason."""
    return join((MISSING, " ", tag("small", why)))


def coloured(written: str, value: float | None) -> Html:
    """A signed number, tinted by its sign; the sign itself says the same."""
    tint = None if value is None or value == 0.0 else "up" if value > 0.0 else "down"
    return tag("span", written, class_=tint)


def measured(value: float | None, unit: str) -> str:
    """A value with its unit, to the digits that a claim about it needs."""
    if value is None or not math.isfinite(value):
        return "missing"
    if unit == "fraction":
        return percent(value)
    if unit == "date":
        return f"{date.fromisoformat(f'{value:.0f}')}"
    if unit == "USD":
        return f"{price(value)} USD"
    if unit == "R":
        return f"{number(value, signed=True)} R"
    if unit in {"count", "bars", "shares"}:
        return number(value, 0) + ("" if unit == "count" else f" {unit}")
    if unit == "index_0_100":
        return f"{number(value)} of 100"
    places = 2 if abs(value) >= 10.0 or value == round(value, 2) else 4
    return f"{number(value, places)} {unit}"


def fact(evidence: Evidence) -> str:
    """The value of a fact with its unit."""
    return measured(evidence.value, evidence.unit)


def day(moment: datetime) -> str:
    """The UTC date."""
    return f"{moment.astimezone(UTC):%Y-%m-%d}"


def minute(moment: datetime) -> str:
    """The UTC date and time."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"


def stamp(moment: datetime, *, with_time: bool) -> Html:
    """A moment that a machine can read too."""
    shown = minute(moment) if with_time else day(moment)
    return tag(
        "time",
        shown,
        datetime=f"{moment.astimezone(UTC):%Y-%m-%dT%H:%MZ}",
        title=f"{minute(moment)} UTC",
    )


def shares(quantity: float | Decimal) -> str:
    """A number of shares: whole ones without decimals, parts with those they have."""
    written = f"{quantity:,.9f}".rstrip("0").rstrip(".")
    return written or "0"


def plain(name: str) -> str:
    """A name from the code in words."""
    return name.replace("_", " ")


def counted(count: int, noun: str) -> str:
    """A count with its noun, in the plural where it must be."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
