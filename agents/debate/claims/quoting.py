"""Numbers as people quote them: the spellings of a unit, and how far rounding may go."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache

from trader.core.decision import ClaimStatus

ROUNDING_TOLERANCE = 0.05  # a rounded figure may be off by this fraction, never by more
FEWEST_DIGITS = ((1e6, 2), (1e4, 3))  # from this size on, that many significant digits are enough

_PERCENT = ("%", "percent", "pct", "per cent", "percentage", "percentage points")
_FRACTIONS = {"fraction": 1.0, "bps": 1e-4, "basis points": 1e-4} | dict.fromkeys(_PERCENT, 0.01)
_COUNTS = ("count", "number", "times", "trades", "sessions", "days", "bars")
_THOUSANDS = ((1e3, ("thousand", "k")), (1e6, ("million", "m")), (1e9, ("billion", "b")))
# unit of a fact -> its spellings, each with the worth of 1 in the fact's own unit
SPELLINGS: Mapping[str, Mapping[str, float]] = {
    "USD": dict.fromkeys(("usd", "$", "us$", "dollar", "dollars", "usd per share"), 1.0),
    "index_0_100": dict.fromkeys(("index_0_100", "index", "points", "point", "0-100"), 1.0),
    "fraction": _FRACTIONS,
    "ratio": dict.fromkeys(("ratio", "times", "x", "multiple", ":1"), 1.0)
    | dict.fromkeys(_PERCENT, 0.01),
    "R": dict.fromkeys(("r", "risk units"), 1.0),
    "points": dict.fromkeys(("points", "point"), 1.0),
    "count": dict.fromkeys(_COUNTS, 1.0),
    "shares": dict.fromkeys(("shares", "share"), 1.0)
    | {f"{word} shares": worth for worth, words in _THOUSANDS for word in words},
    "date": dict.fromkeys(("date", "yyyymmdd", "session", "day"), 1.0),
}


@lru_cache(maxsize=1024)
def worth(spelling: str, unit: str) -> float | None:
    """What 1 of `spelling` is in `unit`, the unit of a fact; None when it is another unit.

    A fraction may be quoted in percent: 1 percent is worth 0.01.
    """
    if spelling == unit:
        return 1.0
    return SPELLINGS.get(unit, {}).get(" ".join(spelling.lower().split()))


def quotes(quoted: float, value: float) -> bool:
    """Whether `quoted` is `value` as a person would round it.

    200, 200.1 and 200.10 all quote 200.1; 201 and 181.3 do not. The last digit quoted may be off by
    half, and the whole by no more than 5 %, so that 0 does not quote 0.3. Whole numbers are quoted
    to the last digit, large ones to three significant digits from 10,000 and to two from 1,000,000:
    45 million quotes 45,231,900.
    """
    if quoted == value:
        return True
    exponent = Decimal(repr(quoted)).normalize().as_tuple().exponent
    if not isinstance(exponent, int):
        return False
    return within_rounding(quoted, value, 10.0 ** min(exponent, _coarsest(quoted)))


def retells(quoted: float, value: float, scale: float) -> bool:
    """Whether `quoted`, each 1 of it worth `scale`, quotes a fact's value or what prompts show."""
    return quotes(quoted, value / scale) or quotes(quoted, float(shown_number(value)) / scale)


def as_shown(quoted: float, value: float, scale: float) -> bool:
    """Whether it is exactly the number that prompts show for a fact's value."""
    return math.isclose(quoted * scale, float(shown_number(value)), rel_tol=1e-9)


@lru_cache(maxsize=4096)
def shown_number(value: float) -> str:
    """A number as prompts show it, exact enough that quoting it is always true.

    Cents from 1 on, three significant digits below, more where the checker would not accept that.
    """
    rounded = round(value, 2) if abs(value) >= 1.0 else float(f"{value:.3g}")
    return repr(rounded if quotes(rounded, value) else value).removesuffix(".0")


def within_rounding(quoted: float, value: float, step: float) -> bool:
    """Whether `quoted`, given in steps of `step`, is `value` rounded, and off by 5 % at most."""
    error = abs(quoted - value)
    return error <= half(step, value) and error <= ROUNDING_TOLERANCE * abs(value)


def half(step: float, value: float) -> float:
    """Half a step, and the little that a float near `value` cannot tell from it."""
    return 0.5 * step * (1 + 1e-9) + 2.0 * math.ulp(value)


def _coarsest(quoted: float) -> int:
    """The power of ten of the last digit that must be right."""
    size = abs(quoted)
    for least, digits in FEWEST_DIGITS:
        if size >= least:
            return math.floor(math.log10(size)) + 1 - digits
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A number in the unit of a fact."""

    value: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a claim's typed fields amount to.

    said  what was looked up; the sentence may say it too
    days  sessions found, such as that of an extreme
    """

    status: ClaimStatus
    detail: str
    said: tuple[Measure, ...] = ()
    days: tuple[date, ...] = ()


def found(true: bool, detail: str, *said: Measure, days: tuple[date, ...] = ()) -> Finding:
    """A claim that was looked up, true or not."""
    status: ClaimStatus = "verified" if true else "contradicted"
    return Finding(status=status, detail=detail, said=said, days=days)


def unverifiable(detail: str) -> Finding:
    """A claim that cannot be looked up."""
    return Finding(status="unverifiable", detail=detail)


def shown(value: float) -> str:
    """A number for a detail: six significant digits, millions without an exponent."""
    return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"
