"""Evidence and candidates for debate tests."""

from __future__ import annotations

from datetime import UTC, datetime

from trader.core.decision import Candidate, Evidence, Signal, Style
from trader.core.instruments import instrument_of
from trader.core.past import PastQuestion

NOW = datetime(2025, 3, 3, 21, tzinfo=UTC)

UNITS = {
    "rsi": "index_0_100",
    "adx": "index_0_100",
    "plus_di": "index_0_100",
    "minus_di": "index_0_100",
    "position_weight": "fraction",
    "open_buy_weight": "fraction",
    "signal_hit_rate": "fraction",
    "probability": "fraction",
    "return": "fraction",
    "volatility_rank": "fraction",
    "obv_change": "fraction",
    "max_drawdown": "fraction",
    "drawdown": "fraction",
    "signal_average_r": "R",
    "expected_value": "R",
    "reward_risk": "ratio",
    "volume_ratio": "ratio",
    "hits": "count",
    "signal_closed": "count",
    "bars_behind": "count",
    "rule": "points",
}

# a sound breakout: 100.05 to pay, 4 at risk, 10 to win at 110
SOUND: dict[str, float | None] = {
    "close": 100.0,
    "open": 99.0,
    "high": 101.0,
    "low": 98.5,
    "atr": 2.0,
    "entry_price": 100.05,
    "stop_price": 96.05,
    "sma_50": 98.0,
    "sma_200": 95.0,
    "rsi_14": 58.0,
    "adx_14": 27.0,
    "plus_di_14": 25.0,
    "minus_di_14": 15.0,
    "bollinger_middle": 98.5,
    "volume_ratio_20": 1.2,
    "bars_behind": 0.0,
    "position_weight": 0.0,
    "open_buy_weight": 0.0,
    "target_high_60": 110.0,
    "reward_risk_high_60": 2.45,
    "hits_high_60": 7.0,
    "probability_high_60": 0.53,
    "expected_value_high_60": 0.83,
    "signal_closed": 12.0,
    "signal_hit_rate": 0.5,
    "signal_average_r": 0.2,
    "rule_value": 100.0,
    "rule_value_previous": 97.0,
    "rule_line": 99.0,
    "rule_line_previous": 98.8,
}


RULE = "sma window 50, atr window 14, band atr 0.5"  # as the pipeline words a strategy's rule


def unit_of(name: str) -> str:
    """Unit of a fact by its name; USD for prices."""
    known = [prefix for prefix in UNITS if name.startswith(prefix)]
    return UNITS[max(known, key=len)] if known else "USD"


def evidence(**changes: float | None) -> tuple[Evidence, ...]:
    """The sound facts with some changed or added, numbered in order."""
    values = SOUND | changes
    return tuple(
        Evidence(
            evidence_id=f"E{number}",
            symbol="AAPL",
            kind="technical",
            name=name,
            value=value,
            unit=unit_of(name),
            as_of=NOW,
            known_at=NOW,
            source="test",
            text=RULE if name.startswith("rule_") else "",
        )
        for number, (name, value) in enumerate(values.items(), start=1)
    )


def id_of(facts: tuple[Evidence, ...], name: str) -> str:
    """Number of the fact with this name."""
    return next(fact.evidence_id for fact in facts if fact.name == name)


def candidate(style: Style = "trend", *, fired: bool = True) -> Candidate:
    """A candidate at the sound levels."""
    signal = Signal(
        signal_id="S-1",
        strategy="atr_trend",
        style=style,
        symbol="AAPL",
        side="buy",
        strength=1.0,
        bar_at=NOW,
        as_of=NOW,
        features={},
        reason="close 100.00 crossed above SMA 50 + 0.5 ATR = 99.00",
    )
    return Candidate(
        signal=signal,
        instrument=instrument_of("AAPL"),
        entry_price=100.05,
        stop_price=96.05,
        fired=fired,
    )


class NoPast:
    """A history that holds nothing and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, float | None] = {}

    def ask(self, question: PastQuestion) -> float | None:
        self.answers[question.key] = None
        return None
