"""Claims about the past: a session, a period, a change, an extreme, a count, a crossing.

What an operator says of the period that `when` names:

=                          the value on a session
<  >  <=  >=  between      on a session, or on every session of a period
change                     end over start − 1 (unit fraction), or end − start (the field's own unit)
highest  lowest            the extreme of the field in the period, or its session (unit date)
count_above  count_below   sessions beyond a line: a second fact, or else the number `upper_value`
count_up  count_down       sessions that closed the field higher, or lower, than the one before
crosses_above, _below      on a session, against the one before

A change starts at the last session at or before the first date; `last 20` starts 20 sessions before
the newest, and a single session at the one before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Literal

from agents.debate.claims.quoting import Finding, Measure, found, quotes, shown, unverifiable, worth
from trader.core.decision import Claim, Evidence
from trader.core.market import session_of
from trader.core.past import PastQuestion, Statistic
from trader.core.ports import History

LONGEST_PERIOD = 2520  # sessions, ten years
_DAY = r"(\d{4}-\d{2}-\d{2})"
_WHEN = re.compile(
    rf"{_DAY}(?:\s*\.\.\s*{_DAY})?|since\s+{_DAY}|last\s+([1-9]\d{{0,3}})(?:\s+sessions)?",
    re.ASCII | re.IGNORECASE,
)
COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
    "<=": lambda left, right: left <= right,
    ">=": lambda left, right: left >= right,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """What `when` names: one session (`last` alone), two ends, everything since `first`, or `bars`
    sessions up to now.

    Nothing at all is the newest session.
    """

    first: date | None = None
    last: date | None = None
    bars: int | None = None

    @property
    def single(self) -> bool:
        """Whether it is one session."""
        return self.first is None and self.bars is None

    @property
    def words(self) -> str:
        """The period in a sentence."""
        if self.bars is not None:
            return f"in the last {self.bars} sessions"
        if self.single:
            return f"on {self.last}" if self.last else "now"
        return f"from {self.first} to {self.last}" if self.last else f"since {self.first}"


NOW = Period()


def period_of(when: str, decided_on: date) -> Period | str:
    """The period that `when` names, or why there is none: its form, or a day after the decision."""
    parsed = _WHEN.fullmatch(when.strip())
    if parsed is None:
        return (
            f"{when[:40]!r} is no period: write YYYY-MM-DD, YYYY-MM-DD..YYYY-MM-DD, "
            "since YYYY-MM-DD or last 20"
        )
    single, last, since, count = parsed.groups()
    if count is not None:
        if int(count) > LONGEST_PERIOD:
            return f"{count} sessions are more than {LONGEST_PERIOD}"
        return Period(bars=int(count))
    days = []
    for text in (single, last, since):
        try:
            days.append(date.fromisoformat(text) if text else None)
        except ValueError:
            return f"there is no {text}"
    for day in days:
        if day is not None and day > decided_on:
            return f"{day} lies after the decision of {decided_on}"
    start, end, open_start = days
    if start is not None and end is not None and start > end:
        return f"the period runs backwards from {start} to {end}"
    if open_start is not None:
        return Period(first=open_start)
    return Period(last=start) if end is None else Period(first=start, last=end)


def judge_past(
    claim: Claim, facts: Sequence[Evidence], period: Period, history: History
) -> Finding:
    """What the past says of a claim; `facts` are those that it cites, none of them missing."""
    if len(facts) > 2 and not claim.operator.startswith("crosses"):
        return unverifiable("a claim about the past names its fact, and a second one as its line")
    return _Past(claim, facts, period, history).judge()


class _Past:
    """One claim, held against the past of its field."""

    def __init__(
        self, claim: Claim, facts: Sequence[Evidence], period: Period, history: History
    ) -> None:
        self.claim, self.period, self.history = claim, period, history
        self.fact = facts[0]
        other = [fact for fact in facts[1:] if fact.name != f"{claim.field}_previous"]
        self.line = other[0] if other else None

    def judge(self) -> Finding:
        if self.line is not None and self.line.unit != self.fact.unit:
            return unverifiable(
                f"{self.line.name} is in {self.line.unit}, {self.fact.name} in {self.fact.unit}"
            )
        match self.claim.operator:
            case "=":
                return self._equal()
            case "<" | ">" | "<=" | ">=":
                return self._comparison()
            case "between":
                return self._between()
            case "change":
                return self._change()
            case "highest" | "lowest":
                return self._extreme(self.claim.operator)
            case "count_above" | "count_below" | "count_up" | "count_down":
                return self._count(self.claim.operator)
            case "crosses_above" | "crosses_below":
                return self._crossing()

    def _equal(self) -> Finding:
        if self.line is not None:
            return unverifiable("an equality names one piece of evidence")
        if not self.period.single:
            return unverifiable("an equality speaks of one session, not of a period")
        scale, value = self._scale(), self._value()
        if scale is None or value is None:
            return self._unknown(scale)
        return found(
            quotes(self.claim.quoted_value, value / scale),
            self._was(value),
            Measure(value=value, unit=self.fact.unit),
        )

    def _comparison(self) -> Finding:
        scale = self._scale()
        if scale is None:
            return self._unknown(scale)
        quoted, compare = self.claim.quoted_value, COMPARE[self.claim.operator]
        if self.period.single:
            value = self._value()
            line = quoted * scale if self.line is None else self._line_value()
            if value is None or line is None:
                return self._unknown(scale)
            detail = self._was(value)
            if self.line is not None:
                detail += f", {self.line.name} {shown(line)}"
            true = compare(value, line) and (self.line is None or quotes(quoted, line / scale))
            said = (
                Measure(value=value, unit=self.fact.unit),
                Measure(value=line, unit=self.fact.unit),
            )
            return found(true, detail, *said)
        if self.line is not None and not quotes(quoted, (self.line.value or 0.0) / scale):
            return found(False, f"{self.line.name} is {shown(self.line.value or 0.0)}")
        above = self.claim.operator in (">", "<=")
        line_at = quoted * scale
        beyond = self._beyond("count_above" if above else "count_below", line_at)
        sessions = self._ask("sessions")
        if beyond is None or sessions is None:
            return self._unknown(scale)
        holds = beyond if self.claim.operator in ("<", ">") else sessions - beyond
        detail = f"it held in {holds:.0f} of {sessions:.0f} sessions {self.period.words}"
        return found(holds == sessions, detail, Measure(value=sessions, unit="count"))

    def _between(self) -> Finding:
        scale, upper = self._scale(), self.claim.upper_value
        if self.line is not None or upper is None or upper < self.claim.quoted_value:
            return unverifiable("`between` names one fact, quoted_value and a larger upper_value")
        low = self._value() if self.period.single else self._ask("lowest")
        high = low if self.period.single else self._ask("highest")
        if scale is None or low is None or high is None:
            return self._unknown(scale)
        ends = f"{shown(low)}" if low == high else f"{shown(low)} to {shown(high)}"
        return found(
            inside(self.claim.quoted_value, low / scale, high / scale, upper),
            f"{self.claim.field} was {ends} {self.period.words}",
            Measure(value=low, unit=self.fact.unit),
            Measure(value=high, unit=self.fact.unit),
        )

    def _change(self) -> Finding:
        if self.line is not None:
            return unverifiable("a change names one piece of evidence")
        scale = worth(self.claim.unit, "fraction")
        relative = scale is not None
        if scale is None:
            scale = self._scale()
        start, end = self._ends()
        if scale is None or start is None or end is None or (relative and start == 0.0):
            return self._unknown(scale)
        change = end / start - 1.0 if relative else end - start
        unit = self.fact.unit
        return found(
            quotes(self.claim.quoted_value, change / scale),
            f"{self.claim.field} went from {shown(start)} to {shown(end)} {self.period.words}, "
            f"a change of {shown(change)}",
            Measure(value=change, unit="fraction" if relative else unit),
            Measure(value=start, unit=unit),
            Measure(value=end, unit=unit),
            Measure(value=end - start, unit=unit),
        )

    def _ends(self) -> tuple[float | None, float | None]:
        period = self.period
        if period.bars is not None:
            return self._ask_at(bars=period.bars + 1), self._ask_at()
        if period.single:
            end = self._value()
            return None if end is None else self._ask_at(last=period.last, bars=2), end
        start = self._ask_at(last=period.first, bars=1)
        return start, self._ask_at(last=period.last, bars=1) if period.last else self._ask_at()

    def _extreme(self, operator: Literal["highest", "lowest"]) -> Finding:
        if self.line is not None:
            return unverifiable("an extreme names one piece of evidence")
        extreme = self._ask(operator)
        at = self._ask("session_of_highest" if operator == "highest" else "session_of_lowest")
        if extreme is None or at is None:
            return self._unknown(1.0)
        day = day_of(at)
        detail = f"the {operator} {self.claim.field} {self.period.words} was {shown(extreme)}"
        days = (day,) if day else ()
        said = Measure(value=extreme, unit=self.fact.unit)
        detail += f" on {day}"
        if worth(self.claim.unit, "date") is not None:
            return found(self._is_extreme_at(extreme), detail, said, days=days)
        scale = self._scale()
        if scale is None:
            return self._unknown(scale)
        return found(quotes(self.claim.quoted_value, extreme / scale), detail, said, days=days)

    def _is_extreme_at(self, extreme: float) -> bool:
        """Whether the session that is quoted shows the extreme; there may be several."""
        day, period = day_of(self.claim.quoted_value), self.period
        if day is None or (period.last is not None and day > period.last):
            return False
        if period.first is not None and day < period.first:
            return False
        if period.bars is not None:
            since = self._ask("sessions", first=day)
            if since is None or since > period.bars:
                return False
        return self._ask_at(last=day) == extreme

    def _count(
        self, operator: Literal["count_above", "count_below", "count_up", "count_down"]
    ) -> Finding:
        if self.period.single:
            return unverifiable("a count names its period in `when`")
        scale = worth(self.claim.unit, "count")
        sessions = self._ask("sessions")
        if operator == "count_up" or operator == "count_down":  # noqa: PLR1714 (narrows the type)
            counted = self._ask(operator)
        else:
            if self.line is None and self.claim.upper_value is None:
                return unverifiable(
                    "a count names its line: a second fact, or a number as upper_value"
                )
            counted = self._beyond(operator, self.claim.upper_value or 0.0)
        if scale is None:
            return unverifiable(f"a count is in count, not in {self.claim.unit}")
        if counted is None or sessions is None:
            return self._unknown(scale)
        return found(
            self.claim.quoted_value == counted,
            f"{counted:.0f} of {sessions:.0f} sessions {self.period.words}",
            Measure(value=counted, unit="count"),
            Measure(value=sessions, unit="count"),
        )

    def _crossing(self) -> Finding:
        if not self.period.single:
            return unverifiable("a crossing names its session")
        scale, now = self._scale(), self._value()
        before = self._ask_at(last=self.period.last, bars=2)
        line = line_before = self.claim.quoted_value * (scale or 1.0)
        if self.line is not None:
            past = self._line_value(), self._ask_at(self.line.name, last=self.period.last, bars=2)
            if past[0] is None or past[1] is None:
                return self._unknown(scale)
            line, line_before = past[0], past[1]
        if scale is None or now is None or before is None:
            return self._unknown(scale)
        return crossed(self.claim, (before, now), (line_before, line), self.fact.unit, scale)

    def _scale(self) -> float | None:
        return worth(self.claim.unit, self.fact.unit)

    def _value(self) -> float | None:
        return self._ask_at(last=self.period.last)

    def _line_value(self) -> float | None:
        return self._ask_at(self.line.name, last=self.period.last) if self.line else None

    def _beyond(
        self, statistic: Literal["count_above", "count_below"], number: float
    ) -> float | None:
        """Sessions beyond the line: the second fact's own past, or a number that stays."""
        if self.line is None:
            return self._ask(statistic, line=number)
        if self._ask_at(self.line.name) is None:
            return self._ask(statistic, line=self.line.value)
        return self._ask(statistic, line_field=self.line.name)

    def _ask(
        self,
        statistic: Statistic,
        *,
        first: date | None = None,
        line: float | None = None,
        line_field: str | None = None,
    ) -> float | None:
        period = Period(first=first) if first else self.period
        return self.history.ask(
            PastQuestion(
                statistic=statistic,
                field=self.claim.field,
                first=period.first,
                last=period.last,
                bars=period.bars,
                line=line,
                line_field=line_field,
            )
        )

    def _ask_at(
        self, field: str = "", *, last: date | None = None, bars: int | None = None
    ) -> float | None:
        return self.history.ask(
            PastQuestion(statistic="value", field=field or self.claim.field, last=last, bars=bars)
        )

    def _was(self, value: float) -> str:
        return f"{self.claim.field} was {shown(value)} {self.period.words}"

    def _unknown(self, scale: float | None) -> Finding:
        """Why the past gives no answer, in words that help."""
        claim, day = self.claim, self.period.last
        if scale is None:
            return unverifiable(
                f"{self.fact.evidence_id} {claim.field} is in {self.fact.unit}, not in {claim.unit}"
            )
        if self._ask_at() is None:
            return unverifiable(f"the past of {claim.field} is not known")
        if self.period.single and day is not None:
            if day.weekday() >= 5:
                return unverifiable(f"{day} is a {day:%A}, not a session")
            if self._ask_at(last=day, bars=1) is not None and self._value() is None:
                return unverifiable(f"{day} was not a session of the exchange")
        return unverifiable(f"the bars do not hold all of {claim.field} {self.period.words}")


def crossed(
    claim: Claim, value: tuple[float, float], line: tuple[float, float], unit: str, scale: float
) -> Finding:
    """Whether a value went from one side of its line, or from the line itself, to the other.

    value, line  before and now
    """
    (before, now), (line_before, line_now) = value, line
    if claim.operator == "crosses_above":
        true = before <= line_before and now > line_now
    else:
        true = before >= line_before and now < line_now
    return found(
        true and quotes(claim.quoted_value, line_now / scale),
        f"{claim.field} went from {shown(before)} to {shown(now)}, "
        f"the line from {shown(line_before)} to {shown(line_now)}",
        *(Measure(value=number, unit=unit) for number in (now, before, line_now, line_before)),
    )


def inside(lower: float, least: float, most: float, upper: float) -> bool:
    """Whether least..most lies within lower..upper, ends rounded as people round them."""
    return (lower <= least or quotes(lower, least)) and (most <= upper or quotes(upper, most))


@lru_cache(maxsize=64)
def decision_day(as_of: datetime) -> date:
    """The session in which a decision is taken."""
    return session_of(as_of)


def day_of(number: float) -> date | None:
    """The day written as yyyymmdd, or None."""
    try:
        return date.fromisoformat(f"{number:.0f}") if float(number).is_integer() else None
    except ValueError:
        return None
