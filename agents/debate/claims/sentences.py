"""Whether a claim's sentence says what its typed fields say: numbers, dates and the direction.

A number is explained by the number quoted, by a fact that is cited, by what was looked up, or by a
window, a parameter or a count that belongs to them. What nothing explains was checked by nobody, so
the claim that says it is not verified.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from agents.debate.claims.companions import OTHERWISE, companions, is_total, totals
from agents.debate.claims.directions import against_direction
from agents.debate.claims.past import COMPARE, NOW, Period, day_of, decision_day
from agents.debate.claims.quoting import (
    ROUNDING_TOLERANCE,
    Finding,
    Measure,
    half,
    quotes,
    shown_number,
    worth,
)
from agents.debate.claims.windows import (
    LENGTH_AFTER,
    LISTED,
    WINDOW_AFTER,
    is_in_name,
    is_window,
    windows_of,
)
from agents.debate.claims.written import (
    Mark,
    Numeral,
    WrittenDate,
    dates_in,
    in_digits,
    numerals_in,
    plain,
)
from trader.core.decision import Claim, Evidence, EvidenceIndex
from trader.core.market import EXCHANGE_TIME_ZONE
from trader.core.past import PastQuestion
from trader.core.ports import History

# unit of a fact -> how a number with this mark may say it: worth of 1 in the fact's unit
_SAID: dict[tuple[str, Mark], tuple[float, ...]] = {
    ("USD", ""): (1.0,),
    ("USD", "$"): (1.0,),
    ("index_0_100", ""): (1.0,),
    ("index_0_100", "%"): (1.0,),
    ("index_0_100", "nth"): (1.0,),
    ("points", ""): (1.0,),
    ("points", "$"): (1.0,),
    ("fraction", ""): (1.0, 0.01),
    ("fraction", "%"): (0.01,),
    ("fraction", "nth"): (0.01,),
    ("fraction", "bps"): (1e-4,),
    ("ratio", ""): (1.0,),
    ("ratio", "x"): (1.0,),
    ("ratio", "R"): (1.0,),
    ("ratio", "%"): (0.01,),
    ("R", ""): (1.0,),
    ("R", "R"): (1.0,),
    ("R", "x"): (1.0,),
    ("count", ""): (1.0,),
    ("count", "x"): (1.0,),
    ("count", "nth"): (1.0,),
    ("shares", ""): (1.0,),
    ("date", ""): (1.0,),
}
_EXACT = frozenset(("count", "date"))
LARGE = 10_000.0  # from here on, whole numbers are rounded to their first digits
_SIZED = frozenset(("ratio", "R"))  # sizes for each 1 at risk, or times 1
# names that hold a number of their own
_NAMES = re.compile(
    r"S&P ?(?:100|400|500|600)|(?:Nasdaq|NASDAQ)[- ]?100|Russell ?[123]000|Dow(?: Jones)? ?30"
    r"|FTSE ?100|DAX ?40|CAC ?40|Nikkei ?225|\b(?:10-[KQ]|8-K|13[DFG]|Form \d)\b|\b[QH][1-4]\b"
    r"|\b0 ?(?:-|to) ?100\b|\bout of 100\b|\b24/7\b"
)
_REFERENCE = re.compile(r"(?<![^\W_])([EBR])$")  # before the digits of E12, B1, R2
_COMPARED = re.compile(
    r"(?:(\b(?:above|over|more than|greater than|higher than|at least|exceed(?:s|ing)?|beyond)\s"
    r"|>=?\s?)|(?:\b(?:below|under|beneath|less than|lower than|fewer than|at most)\s|<=?\s?))"
    r"(?:the\s)?(?:level of\s)?[-+$]?$",
    re.IGNORECASE,
)
_TIME = re.compile(r"(?<![\d:.])(\d{1,2}):([0-5]\d)(?![\d:])")
# with one of these a negative number may be said without its sign
_UNSIGNED = re.compile(
    r"\b(?:f[ea]ll\w*|drop\w*|los[st]\w*|lose\w*|losing|down\w*|declin\w*|decreas\w*|below|under\w*"
    r"|beneath|low\w*|negative|minus|drawdown|off|short|sh[er]d|slid\w*|slip\w*|sank|retreat\w*|pull\w*"
    r"|correct\w*|weak\w*|worst|from|cost\w*|shrink\w*|shrank|contract\w*|discount|flow\w*|out|away"
    r"|mov\w*|chang\w*|swing\w*|gap\w*|distan\w*|within)\b",
    re.IGNORECASE,
)
_ENGLISH = re.compile(r"\b(?:the|is|of|at|and|has|was|by|with|an?)\b", re.IGNORECASE)
_MORE = re.compile(r"\s?(?:%|percent|pct)\s(?:above|over|more|higher|greater)\b", re.IGNORECASE)
_SHARES = ("probability_", "signal_hit_rate", "volatility_rank_")  # what is left has a meaning too
_UTC = ZoneInfo("UTC")
_WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A claim with the facts that it cites, in its order, and what its typed fields amount to."""

    claim: Claim
    facts: tuple[Evidence, ...]
    period: Period
    finding: Finding


def disagreement(judged: Judged, evidence: EvidenceIndex, history: History) -> str:
    """What the sentence says beyond or against the typed fields; empty when nothing."""
    text = in_digits(plain(judged.claim.text))
    wrong = against_direction(text, judged.claim, judged.facts)
    return wrong or next(_Sentence(text, judged, evidence, history).unexplained(), "")


class _Sentence:
    """One sentence beside everything that may explain its numbers."""

    def __init__(
        self, text: str, judged: Judged, evidence: EvidenceIndex, history: History
    ) -> None:
        self.claim, self.facts = judged.claim, judged.facts
        self.period, self.finding = judged.period, judged.finding
        self.evidence, self.history = evidence, history
        self.decided_on = decision_day(self.facts[0].as_of)
        self.dates, self.text = dates_in(text)
        self.typed: Measure | None = None  # the number quoted, where a known one is behind it
        self.off = 0.0  # how far the two are apart
        self.main, self.today = self._measures()
        self.counts = [measure for measure in self.main if measure.unit == "count"]
        self.said_main, self.said_today = False, ""
        self.window_end = -1  # where the last window ended

    def unexplained(self) -> Iterator[str]:
        """Every number or date that nothing explains, in words."""
        for written in (*self.dates, *numerals_in(self.text)):
            if isinstance(written, WrittenDate):
                if not self._date_known(written):
                    yield "the sentence names a date that its fields do not"
            elif not self._explains(written) and not (
                written.parts and all(self._explains(part) for part in written.parts)
            ):
                yield f"the sentence says {written.text}, which no cited fact says"
        if self.said_today and not self.said_main:
            yield f"the sentence says {self.said_today}, which is today's value"

    def _explains(self, numeral: Numeral) -> bool:
        """Whether anything says this number; remembers what did."""
        text, stop = self.text, numeral.stop
        if is_total(text, numeral):
            whole = totals(self.claim, self.finding, self.evidence)
            if whole:
                return self._said(numeral, whole)
        length = bool(numeral.bare and LENGTH_AFTER.match(text, stop))
        if self._said(numeral, self.counts if length else self.main) or (
            not length and self._retells(numeral)
        ):
            self.said_main = True
            return True
        listed = self.window_end >= 0 and LISTED.fullmatch(text, self.window_end, numeral.start)
        if self._is_window(numeral, listed=bool(listed)):
            self.window_end = stop
            return True
        if not length and self._said(numeral, self.today):
            self.said_today = numeral.text
            return True
        return self._otherwise_known(numeral)

    def _measures(self) -> tuple[list[Measure], list[Measure]]:
        """Numbers that the claim is about, and today's values that may stand beside past ones."""
        claim, unit, said = self.claim, self._unit(), self.finding.said
        today = [Measure(value=fact.value or 0.0, unit=fact.unit) for fact in self.facts]
        scale = worth(claim.unit, unit) or 1.0
        quoted = Measure(value=claim.quoted_value * scale, unit=unit)
        known = [*(said or today)]
        about = [*said]
        at = self._place_quoted(len(known))
        if at is None:
            about.insert(0, quoted)
        else:
            self.typed, self.off = quoted, abs(quoted.value - known[at].value)
        if claim.upper_value is not None and claim.operator == "between":
            about.append(Measure(value=claim.upper_value * scale, unit=unit))
        elif claim.upper_value is not None and claim.operator.startswith("count_"):
            about.append(Measure(value=claim.upper_value, unit=self.facts[0].unit))
        if known[0].unit == "fraction":
            about.append(Measure(value=float(shown_number(known[0].value)), unit="fraction"))
        if claim.field.startswith(_SHARES) and OTHERWISE.search(self.text):
            about.append(Measure(value=1.0 - known[0].value, unit="fraction"))
        if claim.operator.startswith("count_") and OTHERWISE.search(self.text) and len(said) > 1:
            about.append(Measure(value=said[1].value - said[0].value, unit="count"))
        if claim.field.startswith("volume_ratio"):  # 1.2 times the mean is 20 % above it
            about.append(Measure(value=abs(known[0].value - 1.0), unit="fraction"))
        if claim.operator in COMPARE or claim.operator.startswith("crosses"):
            line = 2 if claim.operator.startswith("crosses") else 1
            about.extend(_between(known[0], known[line] if len(known) > line else quoted))
        return (about + today, []) if self.period is NOW else (about, today)

    def _place_quoted(self, known: int) -> int | None:
        """Which known number the claim quotes; None for one of its own choice."""
        if self.claim.operator in ("=", "change", "highest", "lowest"):
            return None if self._unit() == "date" else 0
        if self.claim.operator in COMPARE and len(self.facts) > 1 and known > 1:
            return 1
        return None

    def _retells(self, numeral: Numeral) -> bool:
        """Whether it says the number quoted, and no finer than that number is true.

        223.00 is no retelling of 223 where 222.7 is the truth; 58.3 is one of 58.25.
        """
        if self.typed is None or not self._says(numeral, self.typed):
            return False
        scales = _SAID[self.typed.unit, numeral.mark]
        return self.off <= min(step for _, step in numeral.readings) * min(scales)

    def _unit(self) -> str:
        """The unit of the number that the claim quotes."""
        operator, unit = self.claim.operator, self.facts[0].unit
        if operator.startswith("count_"):
            return "count"
        if operator == "change" and worth(self.claim.unit, "fraction") is not None:
            return "fraction"
        if operator in ("highest", "lowest") and worth(self.claim.unit, "date") is not None:
            return "date"
        return unit

    def _said(self, numeral: Numeral, measures: Iterable[Measure]) -> bool:
        return any(self._says(numeral, measure) for measure in measures)

    def _says(self, numeral: Numeral, measure: Measure) -> bool:
        scales = _SAID.get((measure.unit, numeral.mark), ())
        value = measure.value
        if measure.unit == "ratio" and numeral.mark == "%" and _MORE.match(self.text, numeral.stop):
            return False
        unsigned = value < 0.0 and not numeral.sign and self._tells_of_less()
        if unsigned or numeral.sign == "-":
            value = -value
        for number, step in numeral.readings:
            for scale in scales:
                said = number * scale
                if said == value:
                    return True
                if measure.unit in _EXACT:
                    continue
                off = abs(said - value)
                if off <= half(step * scale, value):
                    # decimals may be cut as crudely as they are shown, whole numbers may not
                    fine = step < 1.0 or (numeral.mark == "%" and number != 0.0)
                    if fine or off <= ROUNDING_TOLERANCE * abs(value):
                        return True
                elif number >= LARGE and step >= 1.0 and quotes(said, value):
                    return True
        return False

    def _tells_of_less(self) -> bool:
        """Whether the sentence may say a negative number without its sign, as in: it fell 3 %."""
        return bool(_UNSIGNED.search(self.text)) or not _ENGLISH.search(self.text)

    def _is_window(self, numeral: Numeral, *, listed: bool) -> bool:
        """Whether it is a window or a parameter of what is cited, said as one, or a length."""
        windows = windows_of(self.facts)
        if self.period.bars is not None:
            windows |= {float(self.period.bars)}
        return (
            is_window(self.text, numeral, windows, listed=listed)
            or is_in_name(self.text, numeral, self.facts)
            or self._is_length(numeral)
        )

    def _is_length(self, numeral: Numeral) -> bool:
        """Whether it counts the sessions of a period that is given by its dates."""
        if self.period.first is None or not numeral.bare:
            return False
        if not LENGTH_AFTER.match(self.text, numeral.stop):
            return False
        sessions = self.history.ask(
            PastQuestion(
                statistic="sessions",
                field=self.claim.field,
                first=self.period.first,
                last=self.period.last,
            )
        )
        moves = 1.0 if self.claim.operator == "change" else 0.0
        return sessions is not None and float(numeral.text) in (sessions, sessions - moves)

    def _otherwise_known(self, numeral: Numeral) -> bool:
        text, start, stop = self.text, numeral.start, numeral.stop
        reference = _REFERENCE.search(text, max(0, start - 2), start)
        if reference and numeral.bare:
            if reference[1] == "E":
                return f"E{numeral.text}" in self.claim.evidence_ids
            return len(numeral.text) <= 2
        sized = numeral.mark in ("", "R") and self.facts[0].unit in _SIZED
        if sized and numeral.text == "1" and not numeral.sign:
            return True
        if self._said(numeral, companions(text, numeral, self.claim.field, self.evidence)):
            return True
        if not WINDOW_AFTER.match(text, stop) and self._compares_truly(numeral):
            return True
        if (
            numeral.bare
            and len(numeral.text) == 4
            and self._date_known(WrittenDate(year=int(numeral.text)))
        ):
            return True
        inside = (name.span() for name in _NAMES.finditer(text))
        if any(first <= start and stop <= last for first, last in inside):
            return True
        return any(
            time.start() <= start and stop <= time.end() and self._time_known(time)
            for time in _TIME.finditer(text)
        )

    def _compares_truly(self, numeral: Numeral) -> bool:
        """Whether it is a bound that the claimed value keeps, as in: above 260."""
        word = _COMPARED.search(self.text, max(0, numeral.start - 30), numeral.start)
        if word is None or self.claim.operator.startswith(("count_", "change", "crosses")):
            return False
        times = [measure for measure in self.main if measure.unit == "ratio"]
        if numeral.mark == "x" and self.facts[0].unit != "ratio" and times:
            measure = times[0]
        elif self.period is NOW:
            measure = Measure(value=self.facts[0].value or 0.0, unit=self.facts[0].unit)
        elif self.finding.said and self.period.single:
            measure = self.finding.said[0]
        else:
            return False
        sign = -1.0 if numeral.sign == "-" else 1.0
        return any(
            (measure.value > bound) if word[1] else (measure.value < bound)
            for number, _ in numeral.readings[:1]
            for scale in _SAID.get((measure.unit, numeral.mark), ())[:1]
            for bound in [sign * number * scale]
        )

    def _time_known(self, time: re.Match[str]) -> bool:
        """Whether it is when the exchange opens or closes, or when the decision is taken."""
        written = f"{int(time[1]):02}:{time[2]}"
        moments = {"09:30", "16:00", "13:00"}
        for fact in self.facts[:1]:
            for zone in (EXCHANGE_TIME_ZONE, _UTC):
                moments.add(f"{fact.as_of.astimezone(zone):%H:%M}")
        return written in moments

    def _date_known(self, written: WrittenDate) -> bool:
        known = [day for day in (self.period.first, self.period.last) if day]
        known += self.finding.days
        if self.period.last is None:  # up to the decision
            known.append(self.decided_on)
        if self._unit() == "date":
            known += [day for day in [day_of(self.claim.quoted_value)] if day]
        known += [
            day
            for fact in self.facts
            if fact.unit == "date" and fact.value and (day := day_of(fact.value))
        ]
        if any(written.fits(day) for day in known):
            return True
        return not written.whole and any(written.fits(day) for day in self._span(known))

    def _span(self, known: list[date]) -> Iterator[date]:
        """A day of every week between the ends of the period."""
        if self.period.single:
            return
        first = self.period.first or self.decided_on - timedelta(days=2 * (self.period.bars or 0))
        day = max(first, self.decided_on - timedelta(days=8000))
        while day <= max(known):
            yield day
            day += _WEEK


def _between(first: Measure, line: Measure) -> Iterator[Measure]:
    """How far a value stands from its line: in its unit, and as a share of the line."""
    if first.unit != line.unit or first.unit in ("date", "count") or line.value == 0.0:
        return
    yield Measure(value=abs(first.value - line.value), unit=first.unit)
    if first.unit in ("USD", "points", "shares", "ratio") and line.value > 0.0:
        yield Measure(value=abs(first.value / line.value - 1.0), unit="fraction")
    if first.value > 0.0 and line.value > 0.0:
        yield Measure(value=first.value / line.value, unit="ratio")
