"""Numbers and dates as they are written in a sentence, in any of the usual ways."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import Literal

Mark = Literal["", "%", "bps", "$", "R", "x", "nth"]

_DASHES = str.maketrans("‐‑‒–—−", "------")
_EMPHASIS = re.compile(r"[*`]+|(?<![^\W_])_+|_+(?![^\W_])")
# digits with what may stand between them: 1,234.5  2026-03-02  1:2  12/26  251.3-263.4  45 000 000
_DIGITS = re.compile(r"\d{1,3}(?: \d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,'’:/-]\d+)*(?:[eE][+-]?\d+)?")
_GROUPED = re.compile(r"\d{1,3}(?:([.,'’ ])\d{3})(?:\1\d{3})*")
# a sign stands at its number or at the currency before it; one set apart is a dash or a sum
_BEFORE = re.compile(r"(?:(?<![\w)%.,])([-+]))?(?:(US\$|\$|€|£|USD|EUR)\s?([-+])?)?$")
_LEADS = frozenset(" -+$€£DR")
_MAGNITUDE = re.compile(
    r"\s?(?:(thousand|k)|(million|mn|mio\.?|m)|(billion|bn|b))(?![\w-])", re.IGNORECASE
)
_AFTER = re.compile(
    r"\s?-?(?:(?P<percent>%|percent(?:age points?)?\b|per ?cent\b|pct\b|prozent\b|pour ?cent\b"
    r"|por ciento\b|per cento\b)|(?P<bps>bps\b|basis points?\b)|(?P<money>\$|USD\b|US-?Dollar\b"
    r"|dollars?\b|dólares\b|€|£)|(?P<r>R\b)|(?P<times>[x×](?!\w)|times\b)|(?P<nth>(?:st|nd|rd|th)\b))",
    re.IGNORECASE,
)
_PARTS = re.compile(r"[^:/-]+")
_SHORTEST_DATE = 7  # characters of 2026-03
_ISO = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})")
_ISO_MONTH = re.compile(r"((?:19|20)\d{2})-(0[1-9]|1[0-2])")
_DAY_FIRST = re.compile(r"(\d{1,2})[./-](\d{1,2})[./-](\d{4})")
_MONTHS: tuple[str, ...] = (
    "january|jan|januar|janvier|enero",
    "february|feb|februar|février|febrero",
    "march|mar|märz|mars|marzo",
    "april|apr|avril|abril",
    "may|mai|mayo",
    "june|jun|juni|juin|junio",
    "july|jul|juli|juillet|julio",
    "august|aug|août|agosto",
    "september|sept|sep|septembre|septiembre",
    "october|oct|oktober|octobre|octubre",
    "november|nov|novembre|noviembre",
    "december|dec|dezember|décembre|diciembre",
)
_MONTH_OF = {name: at for at, row in enumerate(_MONTHS, 1) for name in row.split("|")}
_NAME = "|".join(sorted(_MONTH_OF, key=len, reverse=True))
_WORDS = re.compile(r"[\W\d_]+")
_MONTH = re.compile(rf"\b({_NAME})\b\.?", re.IGNORECASE)
_DAY_BEFORE = re.compile(
    r"(?<![\d.,])(\d{1,2})(?:st|nd|rd|th|er|\.)?\s+(?:of\s+|de\s+)?$", re.IGNORECASE
)
_DAY_AFTER = re.compile(
    r"\s+(\d{1,2})(?:st|nd|rd|th)?(?![\d%]|[.,:]\d|\s?%)(?:,?\s+(\d{4})\b(?![.,]\d))?"
)
_YEAR_AFTER = re.compile(r"(?:,?\s+(?:de\s+)?)(\d{4})\b(?![.,]\d)")
_ONES = ("two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    *("ten", "eleven", "twelve", "thirteen", "fourteen"),
    *("fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUE_OF = (
    {word: at for at, word in enumerate((*_ONES, *_TEENS), 2)}
    | {word: 10 * at for at, word in enumerate(_TENS, 2)}
    | {"a": 1, "one": 1, "": 0}
)
_SPELT = re.compile(
    rf"\b(?:(?:({'|'.join(_TENS)})(?:[- ]({'|'.join(_ONES)}))?|({'|'.join((*_TEENS, *_ONES))}))"
    r"(?:[- ](hundred|thousand|dozen))?|(a|one) (hundred|thousand|dozen))\b",
    re.IGNORECASE,
)
_SMALL = 12  # up to here a word is a number only before one of these
_COUNTED = re.compile(
    r"[- ](?:per ?cent\b|dollars?\b|USD\b|R\b|times\b|points?\b|to one\b|out of\b"
    r"|of the (?:la|pa)st\b"
    r"|(?:trading )?(?:days?|sessions?|bars?|weeks?|years?)\b"
    r"|(?:past |closed |prior )?(?:trades?|signals?)\b)",
    re.IGNORECASE,
)
_ALONE = frozenset(
    ("january", "february", "june", "july", "september", "october", "november", "december")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenDate:
    """A date as far as it is written: parts that are not are None.

    swapped  day and month may be the other way round
    """

    year: int | None = None
    month: int | None = None
    day: int | None = None
    swapped: bool = False

    def fits(self, known: date) -> bool:
        """Whether `known` may be meant."""
        if self.year not in (None, known.year):
            return False
        parts = (known.month, known.day)
        wrong_way = self.swapped and (self.day, self.month) == parts
        return wrong_way or (self.month in (None, parts[0]) and self.day in (None, parts[1]))

    @property
    def whole(self) -> bool:
        """Whether it names a day."""
        return self.day is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Numeral:
    """One number of a sentence.

    readings  (value, step of its last digit): 1,234 is read as 1234 and as 1.234
    bare      whole, without sign, mark or magnitude: it may count or name a window
    parts     the numbers that 50 265.32 may be instead of one
    """

    text: str
    start: int
    stop: int
    readings: tuple[tuple[float, float], ...]
    sign: str
    mark: Mark
    bare: bool
    parts: tuple[Numeral, ...] = ()


def plain(text: str) -> str:
    """The sentence without emphasis, with one kind of space, dash and digit."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_DASHES)
    return _EMPHASIS.sub("", text) if "*" in text or "_" in text or "`" in text else text


def in_digits(text: str) -> str:
    """The sentence with its English number words as digits, where they say a number: 60 percent.

    Small ones are left where they may count anything: both of the two averages.
    """

    def digits(spelt: re.Match[str]) -> str:
        tens, ones, small, big, an, whole = (
            part.lower() if part else "" for part in spelt.groups()
        )
        value = _VALUE_OF[tens] + _VALUE_OF[ones] + _VALUE_OF[small] + _VALUE_OF[an]
        value *= {"hundred": 100, "thousand": 1000, "dozen": 12}.get(big or whole, 1)
        counts = value > _SMALL or whole or _COUNTED.match(text, spelt.end())
        return str(value) if counts else spelt[0]

    return _SPELT.sub(digits, text)


def dates_in(text: str) -> tuple[list[WrittenDate], str]:
    """Dates written with a month's name, and the sentence with them blanked."""
    found: list[WrittenDate] = []
    if _MONTH_OF.keys().isdisjoint(_WORDS.split(text.lower())):
        return found, text
    at = 0
    for month in _MONTH.finditer(text):
        if month.start() < at:
            continue
        number = _MONTH_OF[month[1].lower()]
        start, stop = month.span()
        before = _DAY_BEFORE.search(text, at, start)
        after = None if before else _DAY_AFTER.match(text, stop)
        if before:
            year = _YEAR_AFTER.match(text, stop)
            start, stop = before.start(), year.end() if year else stop
            read = WrittenDate(
                year=int(year[1]) if year else None, month=number, day=int(before[1])
            )
        elif after:
            stop = after.end()
            year_text = after[2]
            read = WrittenDate(
                year=int(year_text) if year_text else None, month=number, day=int(after[1])
            )
        elif year := _YEAR_AFTER.match(text, stop):
            stop = year.end()
            read = WrittenDate(year=int(year[1]), month=number)
        elif month[1].lower() in _ALONE and month[1][0].isupper():
            read = WrittenDate(month=number)
        else:
            continue
        found.append(read)
        text = text[:start] + " " * (stop - start) + text[stop:]
        at = stop
    return found, text


def numerals_in(text: str) -> Iterator[Numeral | WrittenDate]:
    """Every number and every date in digits, in order; a composite such as 12/26 in its parts."""
    for match in _DIGITS.finditer(text):
        written, start = match[0], match.start()
        day = _date(written) if len(written) >= _SHORTEST_DATE else None
        if day:
            yield day
            continue
        if " " in written:
            parts = tuple(
                _numeral(text, part[0], start + part.start(), start + part.end())
                for part in re.finditer(r"\S+", written)
            )
            yield replace(_numeral(text, written, start, match.end()), parts=parts)
            continue
        if written.isdigit() or "e" in written.lower():
            yield _numeral(text, written, start, match.end())
            continue
        for part in _PARTS.finditer(written):
            yield _numeral(text, part[0], start + part.start(), start + part.end())


def _date(written: str) -> WrittenDate | None:
    """A date in digits: 2026-03-02, 2026-03, 02.03.2026."""
    iso = _ISO.fullmatch(written)
    if iso:
        return WrittenDate(year=int(iso[1]), month=int(iso[2]), day=int(iso[3]))
    month = _ISO_MONTH.fullmatch(written)
    if month:
        return WrittenDate(year=int(month[1]), month=int(month[2]))
    turned = _DAY_FIRST.fullmatch(written)
    if turned:
        first, second, year = (int(part) for part in turned.groups())
        return WrittenDate(year=year, month=second, day=first, swapped=True)
    return None


def _numeral(text: str, written: str, start: int, stop: int) -> Numeral:
    sign, scale = "", 1.0
    mark: Mark = ""
    before, after = text[max(0, start - 1) : start], text[stop : stop + 2].lstrip()
    if before and before in _LEADS:
        lead = _BEFORE.search(text, max(0, start - 6), start)
        if lead:
            sign = lead[1] or lead[3] or ""
            mark = "$" if lead[2] else ""
    if after and after[0] not in ".,;:)":
        magnitude = _MAGNITUDE.match(text, stop)
        if magnitude:
            scale, stop_at = 1_000.0 ** (magnitude.lastindex or 0), magnitude.end()
        else:
            stop_at = stop
        unit = _AFTER.match(text, stop_at)
        mark = _MARKS[unit.lastgroup or ""] if unit else mark
    return Numeral(
        text=written,
        start=start,
        stop=stop,
        readings=_readings(written, scale),
        sign=sign,
        mark=mark,
        bare=not (sign or mark) and scale == 1.0 and written.isdigit(),
    )


_MARKS: dict[str, Mark] = {
    "percent": "%",
    "bps": "bps",
    "money": "$",
    "r": "R",
    "times": "x",
    "nth": "nth",
}


@lru_cache(maxsize=4096)
def _readings(written: str, scale: float) -> tuple[tuple[float, float], ...]:
    """What digits may mean, in `scale`: the value, the step of its last digit; none for 1.2.3."""
    if written.isdigit():
        return ((float(written) * scale, scale),)
    if "e" in written or "E" in written:
        try:
            value = float(written.replace(",", "."))
        except ValueError:
            return ()
        return ((value * scale, abs(value) * scale * 1e-6),)
    found = []
    if _GROUPED.fullmatch(written) and not written.startswith("0"):
        found.append((float(re.sub(r"\D", "", written)) * scale, scale))
    mark = max(written.rfind("."), written.rfind(","))
    if mark >= 0:
        whole, decimals = written[:mark], written[mark + 1 :]
        if whole.isdigit() or (_GROUPED.fullmatch(whole) and written[mark] not in whole):
            digits = re.sub(r"\D", "", whole)
            value = float(f"{digits}.{decimals}")
            found.append((value * scale, 10.0 ** -len(decimals) * scale))
    return tuple(found)
