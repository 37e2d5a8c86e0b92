"""The past that a claim may quote: bars and indicators up to the decision, never later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.dispatch import KernelSet
from trader.core.decision import PastQuestion
from trader.core.errors import StateError
from trader.core.market import BarSeries, from_ns, session_of

Series = NDArray[np.float64]

PRICES = ("open", "high", "low", "close", "volume")
INDICATORS: Mapping[str, Callable[[BarSeries, KernelSet], Series]] = {
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
    "atr": lambda bars, compute: compute.atr(bars.high, bars.low, bars.close, 14),
}


class BarHistory:
    """`History` over the bars known at a decision.

    bars  everything known, newest last; a session of hourly bars ends with its last bar
    """

    def __init__(self, bars: BarSeries, kernels: KernelSet) -> None:
        self._bars, self._kernels = bars, kernels
        self._answers: dict[str, float | None] = {}
        self._series: dict[str, Series] = {}
        self._sessions: NDArray[np.datetime64] | None = None

    @property
    def answers(self) -> Mapping[str, float | None]:
        """Every question asked so far, by key, with its answer."""
        return self._answers

    def ask(self, question: PastQuestion) -> float | None:
        """The number asked for; None when the bars do not hold it."""
        if question.key not in self._answers:
            self._answers[question.key] = self._answer(question)
        return self._answers[question.key]

    def _answer(self, question: PastQuestion) -> float | None:
        values = self._values(question.field)
        if values is None:
            return None
        chosen = self._period(question)
        if chosen is None:
            return None
        first, last = chosen
        if question.statistic == "sessions":
            return float(last - first)
        part = values[first:last]
        if not np.isfinite(part).all():
            return None
        if question.statistic == "value":
            return float(part[-1]) if part.size == 1 else None
        if question.statistic in ("highest", "lowest"):
            return float(part.max() if question.statistic == "highest" else part.min())
        if question.statistic in ("session_of_highest", "session_of_lowest"):
            at = part.argmax() if question.statistic == "session_of_highest" else part.argmin()
            return float(f"{from_day(self._days()[first + int(at)]):%Y%m%d}")
        if question.statistic in ("count_up", "count_down"):
            if first == 0:
                return None
            steps = np.diff(values[first - 1 : last])
            return float(
                np.count_nonzero(steps > 0 if question.statistic == "count_up" else steps < 0)
            )
        line = self._line(question, first, last)
        if line is None:
            return None
        above = question.statistic == "count_above"
        return float(np.count_nonzero(part > line if above else part < line))

    def _line(self, question: PastQuestion, first: int, last: int) -> Series | float | None:
        if question.line_field is None:
            return question.line
        values = self._values(question.line_field)
        if values is None or not np.isfinite(values[first:last]).all():
            return None
        return values[first:last]

    def _period(self, question: PastQuestion) -> tuple[int, int] | None:
        """Half-open range of bars; None for a period that the bars do not cover."""
        days = self._days()
        last = len(days)
        if question.last is not None:
            last = int(days.searchsorted(np.datetime64(question.last), side="right"))
        if question.bars is not None:
            first = last - question.bars
        elif question.first is not None:
            if np.datetime64(question.first) < days[0]:
                return None
            first = int(days.searchsorted(np.datetime64(question.first), side="left"))
        else:
            first = last - 1
        if question.statistic == "value" and question.last is not None:
            exact = last > 0 and from_day(days[last - 1]) == question.last
            return (last - 1, last) if exact else None
        return (first, last) if 0 <= first < last else None

    def _days(self) -> NDArray[np.datetime64]:
        if self._sessions is None:
            self._sessions = np.array(
                [session_of(from_ns(at)) for at in self._bars.timestamp], dtype="datetime64[D]"
            )
        return self._sessions

    def _values(self, field: str) -> Series | None:
        if field in PRICES:
            found: Series = getattr(self._bars, field)
            return found
        if field not in INDICATORS:
            return None
        if field not in self._series:
            self._series[field] = INDICATORS[field](self._bars, self._kernels)
        return self._series[field]


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


def from_day(day: Any) -> date:
    """A NumPy day as a date."""
    found: date = day.astype("datetime64[D]").item()
    return found
