"""The past that a claim may quote: bars and indicators up to the decision, never later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.dispatch import KernelSet
from trader.core.errors import StateError
from trader.core.market import BarSeries, from_ns, session_of
from trader.core.past import PastQuestion

Series = NDArray[np.float64]
Reading = Callable[[BarSeries, KernelSet], Series]

DAY_NS = 86_400_000_000_000
NEW_YORK_MIDNIGHT_NS = 5 * DAY_NS // 24  # from here on New York and UTC write the same date

# what a session shows of its bars: the first, the extreme, the sum; anything else is the last bar's
OF_SESSION: Mapping[str, np.ufunc] = {"high": np.maximum, "low": np.minimum, "volume": np.add}
PRICES = ("open", "high", "low", "close", "volume")
INDICATORS: Mapping[str, Reading] = {
    "sma_20": lambda bars, compute: compute.sma(bars.close, 20),
    "sma_50": lambda bars, compute: compute.sma(bars.close, 50),
    "sma_200": lambda bars, compute: compute.sma(bars.close, 200),
    "ema_20": lambda bars, compute: compute.ema(bars.close, 20),
    "rsi_14": lambda bars, compute: compute.rsi(bars.close, 14),
    "macd": lambda bars, compute: compute.macd(bars.close, 12, 26, 9)[0],
    "macd_signal": lambda bars, compute: compute.macd(bars.close, 12, 26, 9)[1],
    "macd_histogram": lambda bars, compute: compute.macd(bars.close, 12, 26, 9)[2],
    "adx_14": lambda bars, compute: compute.adx(bars.high, bars.low, bars.close, 14)[0],
    "plus_di_14": lambda bars, compute: compute.adx(bars.high, bars.low, bars.close, 14)[1],
    "minus_di_14": lambda bars, compute: compute.adx(bars.high, bars.low, bars.close, 14)[2],
    "bollinger_upper": lambda bars, compute: compute.bollinger(bars.close, 20, 2.0)[0],
    "bollinger_middle": lambda bars, compute: compute.bollinger(bars.close, 20, 2.0)[1],
    "bollinger_lower": lambda bars, compute: compute.bollinger(bars.close, 20, 2.0)[2],
}


class BarHistory:
    """`History` over the bars known at a decision, session by session.

    A session of several bars opens with its first, closes with its last, reaches from their lowest
    low to their highest high and trades their volumes together; an indicator has the value of the
    session's last bar.

    bars  everything known, newest last
    atr   [T] USD, the average true range in force, aligned with bars; None: its past is not known
    """

    def __init__(self, bars: BarSeries, kernels: KernelSet, *, atr: Series | None = None) -> None:
        self._bars, self._kernels, self._atr = bars, kernels, atr
        self._answers: dict[str, float | None] = {}
        self._by_session: dict[str, Series] = {}
        self._known_days: tuple[NDArray[np.datetime64], NDArray[np.intp]] | None = None

    @property
    def answers(self) -> Mapping[str, float | None]:
        """Every question asked so far, by key, with its answer."""
        return self._answers

    def ask(self, question: PastQuestion) -> float | None:
        """The number asked for; None when the bars do not hold the whole of it.

        `value` is that of the period's first session: the newest session, the session `last`, or
        the first of `bars` sessions. Only with `bars` may `last` be a day without a session.
        """
        if question.key not in self._answers:
            self._answers[question.key] = self._answer(question)
        return self._answers[question.key]

    def _answer(self, question: PastQuestion) -> float | None:
        period = self._period(question)
        values = self._values(question.field) if period else None
        if period is None or values is None:
            return None
        first, stop = period
        statistic, part = question.statistic, values[first:stop]
        if statistic == "sessions":
            return float(stop - first)
        if statistic == "value":
            part = part[:1]
        if not np.isfinite(part).all():
            return None
        match statistic:
            case "value":
                return float(part[0])
            case "highest":
                return float(part.max())
            case "lowest":
                return float(part.min())
            case "session_of_highest":
                return self._date_number(first + int(part.argmax()))
            case "session_of_lowest":
                return self._date_number(first + int(part.argmin()))
            case "count_up" | "count_down":
                if first == 0 or not np.isfinite(values[first - 1]):
                    return None
                steps = np.diff(values[first - 1 : stop])
                return _count(steps > 0.0 if statistic == "count_up" else steps < 0.0)
            case "count_above" | "count_below":
                line = self._line(question, first, stop)
                if line is None:
                    return None
                return _count(part > line if statistic == "count_above" else part < line)

    def _line(self, question: PastQuestion, first: int, stop: int) -> Series | float | None:
        if question.line_field is None:
            return question.line
        values = self._values(question.line_field)
        if values is None or not np.isfinite(values[first:stop]).all():
            return None
        return values[first:stop]

    def _period(self, question: PastQuestion) -> tuple[int, int] | None:
        """Half-open range of sessions; None for a period that the bars do not cover."""
        days, _ = self._sessions()
        stop = len(days)
        if question.last is not None:
            if not stop or np.datetime64(question.last) > days[-1]:
                return None
            stop = int(days.searchsorted(np.datetime64(question.last), side="right"))
        if question.bars is not None:
            first = stop - question.bars
        elif question.first is not None:
            if not stop or np.datetime64(question.first) < days[0]:
                return None
            first = int(days.searchsorted(np.datetime64(question.first)))
        else:
            first = stop - 1
            if question.last is not None and days[first] != np.datetime64(question.last):
                return None
        return (first, stop) if 0 <= first < stop else None

    def _date_number(self, at: int) -> float:
        day: date = self._sessions()[0][at].item()
        return float(f"{day:%Y%m%d}")

    def _sessions(self) -> tuple[NDArray[np.datetime64], NDArray[np.intp]]:
        """[S] sessions, oldest first, and the index of the first bar of each."""
        if self._known_days is None:
            opened = self._bars.timestamp
            days = (opened // DAY_NS).astype("datetime64[D]")
            for at in np.flatnonzero(opened % DAY_NS < NEW_YORK_MIDNIGHT_NS):
                days[at] = np.datetime64(session_of(from_ns(opened[at])))
            self._known_days = np.unique(days, return_index=True)
        return self._known_days

    def _values(self, field: str) -> Series | None:
        """[S] what each session shows of a field; None for a field without a past."""
        if field not in self._by_session:
            of_bars = self._of_bars(field)
            if of_bars is None:
                return None
            _, starts = self._sessions()
            if field == "open":
                found = of_bars[starts]
            elif field in OF_SESSION:
                found = OF_SESSION[field].reduceat(of_bars, starts)
            else:
                found = of_bars[np.append(starts[1:], len(of_bars)) - 1]
            self._by_session[field] = found
        return self._by_session[field]

    def _of_bars(self, field: str) -> Series | None:
        if field in PRICES:
            prices: Series = getattr(self._bars, field)
            return prices
        if field == "atr":
            return self._atr
        return INDICATORS[field](self._bars, self._kernels) if field in INDICATORS else None


class RecordedHistory:
    """`History` from a record: it knows the questions that were asked then, and no other."""

    def __init__(self, answers: Mapping[str, float | None]) -> None:
        self._known = answers
        self._answers: dict[str, float | None] = {}

    @property
    def answers(self) -> Mapping[str, float | None]:
        """Every question asked so far, by key, with its answer."""
        return self._answers

    def ask(self, question: PastQuestion) -> float | None:
        """The recorded answer; StateError for a question that was not asked then."""
        if question.key not in self._known:
            raise StateError(f"the record does not hold the answer to: {question.key}")
        self._answers[question.key] = self._known[question.key]
        return self._known[question.key]


def _count(where: NDArray[np.bool_]) -> float:
    return float(np.count_nonzero(where))
