"""A decision in disguise: no name, other dates, other prices, and the same case to argue."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trader.backtest.leakage.agent import Agent, Taken
from trader.core.canonical import sha256_of
from trader.core.decision import FOREIGN_KINDS, Candidate, Evidence, Instrument
from trader.core.market import BarSeries
from trader.core.past import PastQuestion
from trader.core.ports import History

SYMBOL, NAME = "XXXX", "a company"
SHIFT = timedelta(weeks=1_000)  # nineteen years and two months: another year and another season
PRICE_SCALE = 4.0  # a power of two: every sum, mean and ratio of prices scales to the last bit
VOLUME_SCALE = 2.0
DATE = re.compile(r"\b(?:19|20)\d\d(?:-\d\d(?:-\d\d)?)?\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Disguise:
    """What is put to the debaters in the place of the real case. cycle_id: names nothing either."""

    cycle_id: str
    candidate: Candidate
    evidence: tuple[Evidence, ...]
    history: History


def disguised(taken: Taken, agent: Agent) -> Disguise | None:
    """The case of a decision without symbol, name and date, all prices times `PRICE_SCALE`.

    Amounts in USD and the levels are rescaled, not computed anew: a stop rounded to another tick
    would be another case. Only what the strategy says of its rule is taken from rescaled bars, for
    its unit does not tell whether it is a price. None when its signal does not fire on them.
    """
    record = taken.record
    scaled = _scaled(agent.bars(record.symbol, taken.slot))
    again = agent.prepare(taken.slot, scaled, record.strategy, taken.account)
    if again is None or not again.candidate.fired:
        return None
    points = {fact.name: fact.value for fact in again.evidence if fact.unit == "points"}
    signal, said = record.candidate.signal, again.candidate.signal
    words = _Words(record.candidate.instrument)
    case = f"masked-{sha256_of(record.cycle_id)[:16]}"
    return Disguise(
        cycle_id=case,
        candidate=replace(
            record.candidate,
            signal=replace(
                signal,
                signal_id=f"S-{sha256_of(case)[:16]}",
                symbol=SYMBOL,
                bar_at=signal.bar_at - SHIFT,
                as_of=signal.as_of - SHIFT,
                features=said.features,
                reason=words.hidden(said.reason),
            ),
            instrument=Instrument(
                symbol=SYMBOL,
                name=NAME,
                exchange="",
                currency=record.candidate.instrument.currency,
            ),
            entry_price=record.candidate.entry_price * PRICE_SCALE,
            stop_price=record.candidate.stop_price * PRICE_SCALE,
        ),
        evidence=tuple(
            replace(
                fact,
                symbol=SYMBOL,
                value=points.get(fact.name) if fact.unit == "points" else _value(fact),
                as_of=fact.as_of - SHIFT,
                known_at=fact.known_at - SHIFT,
                source=words.hidden(fact.source, dates=fact.kind in FOREIGN_KINDS),
                text=words.hidden(fact.text, dates=fact.kind in FOREIGN_KINDS),
            )
            for fact in record.evidence
        ),
        history=_ShiftedPast(again.history),
    )


class _ShiftedPast:
    """`History` of another time: questions come and dates go `SHIFT` earlier than they are."""

    def __init__(self, real: History) -> None:
        self._real = real
        self._answers: dict[str, float | None] = {}

    @property
    def answers(self) -> Mapping[str, float | None]:
        """Every question asked so far, by key, with its answer."""
        return self._answers

    def ask(self, question: PastQuestion) -> float | None:
        """The number asked for; None when the past does not hold it."""
        found = self._real.ask(
            replace(
                question,
                first=None if question.first is None else question.first + SHIFT,
                last=None if question.last is None else question.last + SHIFT,
            )
        )
        if found is not None and question.statistic in ("session_of_highest", "session_of_lowest"):
            found = _earlier(found)
        self._answers[question.key] = found
        return found


def _value(fact: Evidence) -> float | None:
    if fact.value is None:
        return None
    if fact.unit == "USD":
        return fact.value * PRICE_SCALE
    if fact.unit == "date":
        return _earlier(fact.value)
    traded = fact.unit == "shares" and fact.kind == "technical"
    return fact.value * VOLUME_SCALE if traded else fact.value


def _earlier(day: float) -> float:
    """A date written yyyymmdd, `SHIFT` before."""
    return float(f"{datetime.strptime(f'{day:.0f}', '%Y%m%d') - SHIFT:%Y%m%d}")


def _scaled(bars: BarSeries) -> BarSeries:
    return replace(
        bars,
        symbol=SYMBOL,
        open=bars.open * PRICE_SCALE,
        high=bars.high * PRICE_SCALE,
        low=bars.low * PRICE_SCALE,
        close=bars.close * PRICE_SCALE,
        volume=bars.volume * VOLUME_SCALE,
    )


class _Words:
    """Takes the names of an instrument, and dates, out of a text."""

    def __init__(self, instrument: Instrument) -> None:
        self._symbol = re.compile(rf"\b{re.escape(instrument.symbol)}\b")
        self._name = re.compile(rf"\b{re.escape(instrument.name)}\b", re.IGNORECASE)

    def hidden(self, text: str, *, dates: bool = False) -> str:
        text = self._name.sub(NAME, self._symbol.sub(SYMBOL, text))
        return DATE.sub("then", text) if dates else text
