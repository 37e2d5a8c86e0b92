"""What a fact can be at all: a claim that holds whatever it is says nothing about it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from agents.debate.claims.quoting import worth
from trader.core.decision import Claim, Evidence

FARTHEST = 100.0  # a bound as many times off says nothing about a price of today
Bounds = tuple[float, float, bool]  # least, most, and whether a fact may be just that

_BY_UNIT: Mapping[str, Bounds] = {
    "index_0_100": (0.0, 100.0, False),
    "shares": (0.0, math.inf, False),
    "count": (0.0, math.inf, True),
}
_BY_NAME: Mapping[str, Bounds] = {  # by the beginning of the name
    "atr_fraction": (0.0, math.inf, False),
    "risk_fraction": (0.0, 1.0, False),
    "volatility_rank_": (0.0, 1.0, True),
    "volatility_": (0.0, math.inf, False),
    "volume_ratio_": (0.0, math.inf, False),
    "probability_": (0.0, 1.0, False),
    "signal_hit_rate": (0.0, 1.0, True),
    "position_weight": (0.0, math.inf, True),
    "open_buy_weight": (0.0, math.inf, True),
    "obv_change_": (-1.0, 1.0, True),
    "return_": (-1.0, math.inf, False),
    "gap_": (-1.0, math.inf, False),
    "drawdown_": (-1.0, 0.0, True),
    "max_drawdown_": (-1.0, 0.0, True),
    "distance_high_": (-1.0, 0.0, True),
    "distance_low_": (0.0, math.inf, True),
}
_NO_PRICES = ("macd", "cash")  # in USD, and below zero at times


def says_nothing(claim: Claim, facts: Sequence[Evidence]) -> bool:
    """Whether the claim would hold of every value that its fact can have."""
    fact = facts[0]
    if len(facts) > 1:
        return facts[1].name == fact.name
    bounds, scale = _bounds(fact, now=claim.when is None), worth(claim.unit, fact.unit)
    if bounds is None:
        return False
    operator, line, upper = claim.operator, claim.quoted_value * (scale or 1.0), claim.upper_value
    if operator in ("count_above", "count_below"):
        operator, line = (">" if operator == "count_above" else "<"), upper or 0.0
    least, most, reached = bounds
    match operator:
        case ">":
            return line < least or (line == least and not reached)
        case ">=":
            return line <= least
        case "<":
            return line > most or (line == most and not reached)
        case "<=":
            return line >= most
        case "between":
            return line <= least and (upper or 0.0) * (scale or 1.0) >= most
        case _:
            return False


def _bounds(fact: Evidence, *, now: bool) -> Bounds | None:
    if fact.unit == "USD":
        value = fact.value or 0.0
        if fact.name.startswith(_NO_PRICES) or value <= 0.0:
            return None
        return (value / FARTHEST, value * FARTHEST, False) if now else (0.0, math.inf, False)
    named = (bounds for lead, bounds in _BY_NAME.items() if fact.name.startswith(lead))
    return next(named, _BY_UNIT.get(fact.unit))
