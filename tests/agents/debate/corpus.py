"""Decisions on real sample bars, and how people write what they say about them.

What is true is computed here from the bars with NumPy, without the history that the checker asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache

import numpy as np

from agents.debate.claims.quoting import quotes
from tests.trader.pipeline.accounts import CALENDAR, REFERENCE, account_over
from trader.app.opening import open_app
from trader.core.decision import Claim, Evidence, EvidenceIndex, Operator
from trader.core.market import BarSeries, Timeframe, from_ns, session_of
from trader.pipeline.evidence import AccountView
from trader.pipeline.history import BarHistory
from trader.pipeline.slots import slots_between

DECISIONS = ("2024-05-09", "2025-02-28", "2025-08-11", "2026-02-24", "2026-07-01", "2026-07-31")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
Rng = np.random.Generator


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """One decision on the sample: what may be cited, and the bars that tell what is true."""

    bars: BarSeries
    facts: dict[str, Evidence]
    evidence: EvidenceIndex
    days: list[date]

    def history(self) -> BarHistory:
        """A past that nobody has asked yet."""
        return BarHistory(self.bars, REFERENCE)

    def value(self, name: str) -> float:
        """The value of a fact that is there."""
        value = self.facts[name].value
        assert value is not None
        return value

    def series(self, field: str) -> np.ndarray:
        """[T] a field's past; the averages by their definition."""
        if field.startswith("sma_"):
            window = int(field.removeprefix("sma_"))
            sums = np.cumsum(np.concatenate(([0.0], self.bars.close)))
            out = np.full(len(self.bars), np.nan)
            out[window - 1 :] = (sums[window:] - sums[:-window]) / window
            return out
        if field == "rsi_14":
            return REFERENCE.rsi(self.bars.close, 14)
        found: np.ndarray = getattr(self.bars, field)
        return found


@cache
def worlds() -> tuple[World, ...]:
    """Six decisions about AAPL on the sample, all strategies' facts among them."""
    app = open_app(environ={})
    found = []
    for number, text in enumerate(DECISIONS):
        session = date.fromisoformat(text)
        slot = slots_between(CALENDAR, Timeframe.DAY, session, session)[0]
        bars = app.data.bars("AAPL", Timeframe.DAY, slot.as_of)
        strategies = ["atr_trend", "rsi_reversion", "macd_momentum"]
        account = account_over(bars, start=slot, strategies=strategies)
        view = AccountView(
            portfolio=account.broker.portfolio(), open_buy_value_symbol=Decimal(1_234 * number)
        )
        for item in account.cycle.candidates.prepare_all(slot, bars, view):
            found.append(
                World(
                    bars=bars,
                    facts={fact.name: fact for fact in item.evidence},
                    evidence=EvidenceIndex(item.evidence),
                    days=[session_of(from_ns(at)) for at in bars.timestamp],
                )
            )
    return tuple(found)


def claim(
    world: World,
    text: str,
    field: str,
    operator: Operator,
    quoted: float,
    *more: str,
    unit: str = "",
    upper: float | None = None,
    when: str | None = None,
) -> Claim:
    """A claim that cites `field` and the facts in `more`."""
    return Claim(
        text=text,
        evidence_ids=tuple(world.facts[name].evidence_id for name in (field, *more)),
        field=field,
        operator=operator,
        quoted_value=float(quoted),
        unit=unit or world.facts[field].unit,
        upper_value=upper,
        when=when,
    )


def pick(rng: Rng, *options):
    """One of the options."""
    return options[int(rng.integers(len(options)))]


def written_price(rng: Rng, value: float) -> str:
    """A price as one of many people writes it."""
    cents, comma = f"{value:.2f}", f"{value:,.2f}"
    whole = f"{value:.0f}" if abs(round(value) - value) <= 0.02 * abs(value) else cents
    return pick(
        rng,
        f"{cents} USD",
        f"${comma}",
        cents,
        f"{value:.1f} dollars",
        whole,
        f"**{cents}**",
        f"{cents.replace('.', ',')} $",
        f"USD {value:.3f}",
    )


def written_percent(rng: Rng, fraction: float) -> str:
    """A fraction as one of many people writes it, with its sign."""
    percent = 100.0 * fraction
    return pick(
        rng,
        f"{percent:.1f}%",
        f"{percent:.2f} %",
        f"{percent:.1f} percent",
        f"{percent:.2f} pct",
        f"{percent:.1f} %".replace(".", ","),
    )


def written_day(rng: Rng, day: date) -> str:
    """A date as one of many people writes it."""
    month = MONTHS[day.month - 1]
    return pick(
        rng,
        f"{day}",
        f"{day.day} {month} {day.year}",
        f"{month} {day.day}, {day.year}",
        f"{month[:3]} {day.day}",
        f"{day:%d.%m.%Y}",
        f"the {day.day}th of {month}",
        f"{day.year}/{day.month:02}/{day.day:02}",
    )


def rounded(rng: Rng, value: float) -> float:
    """The number as it is quoted in the typed field."""
    places = pick(rng, 2, 2, 3, 1) if abs(value) >= 1.0 else pick(rng, 3, 4)
    quoted = round(value, places)
    return quoted if quotes(quoted, value) else value


def session(world: World, rng: Rng, *, back: int = 400) -> int:
    """Index of a past session."""
    return len(world.days) - 1 - int(rng.integers(1, back))


Kind = Callable[[World, Rng], Claim]


def told(kinds: tuple[Kind, ...], seed: int, each: int) -> Iterator[tuple[World, str, Claim]]:
    rng = np.random.default_rng(seed)
    known = worlds()
    for number in range(each):
        for kind in kinds:
            world = known[(number + int(rng.integers(len(known)))) % len(known)]
            yield world, kind.__name__, kind(world, rng)
