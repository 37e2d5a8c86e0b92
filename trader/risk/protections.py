"""Protections: rules that refuse an entry for what lies behind the account, not for the trade.

Each is a pure function of recorded facts, so that a decision can be taken again and comes out the
same; a backtest obeys the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trader.core.decision import Circumstances, RiskFlag
from trader.core.flags import FlagCode


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionLimits:
    """Rules that give a bad stretch time to pass; 0 switches a rule off. Fractions of equity."""

    cooldown_sessions: int = 1
    stops: int = 6
    stops_sessions: int = 10
    drawdown: float = 0.15
    drawdown_sessions: int = 60
    lock_sessions: int = 5
    max_positions: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyLimits:
    """What the kill switch and the caps on activity allow.

    daily_loss        fraction of the session's opening equity
    notional_per_day  in multiples of that equity
    """

    daily_loss: float = 0.03
    liquidate: bool = False
    orders_per_minute: int = 30
    notional_per_day: float = 2.0
    open_orders: int = 100
    quote_seconds: float = 900.0
    clock_skew_seconds: float = 2.0


def protection_reasons(
    symbol: str, seen: Circumstances, limits: ProtectionLimits
) -> Iterator[RiskFlag]:
    """What the account's past says against an entry in `symbol`."""
    age = seen.symbol_stop_age
    if limits.cooldown_sessions and age is not None and age <= limits.cooldown_sessions:
        yield RiskFlag(
            code=FlagCode.COOLDOWN,
            detail=f"{symbol}: its stop was hit {_ago(age)} the entry would be filled; entries "
            f"rest for {_sessions(limits.cooldown_sessions)}",
        )
    hit = _run_of_stops(seen.stop_ages, limits)
    if hit is not None:
        yield RiskFlag(
            code=FlagCode.TOO_MANY_STOPS,
            detail=f"{limits.stops} stops within {_sessions(limits.stops_sessions)}, the last "
            f"{_ago(hit)} the entry would be filled; entries rest for "
            f"{_sessions(limits.lock_sessions)}",
        )
    low = seen.drawdown_age
    deep = 0.0 < limits.drawdown <= seen.drawdown
    if deep and low is not None and low <= limits.lock_sessions:
        yield RiskFlag(
            code=FlagCode.DRAWDOWN,
            detail=f"equity fell {seen.drawdown:.2%} from its highest of "
            f"{_sessions(limits.drawdown_sessions)}, allowed are {limits.drawdown:.0%}; entries "
            f"rest for {_sessions(limits.lock_sessions)} after the lowest",
        )
    full = 0 < limits.max_positions <= seen.positions
    if full and seen.opens_position:
        yield RiskFlag(
            code=FlagCode.TOO_MANY_POSITIONS,
            detail=f"{seen.positions} positions held or being bought, allowed are "
            f"{limits.max_positions}",
        )


def _run_of_stops(ages: tuple[int, ...], limits: ProtectionLimits) -> int | None:
    """Age of the newest stop that made too many of them and still locks; ages: newest first."""
    count = limits.stops
    if not count:
        return None
    for newest, oldest in zip(ages, ages[count - 1 :], strict=False):
        if newest <= limits.lock_sessions and oldest - newest < limits.stops_sessions:
            return newest
    return None


def safety_reasons(symbol: str, seen: Circumstances, limits: SafetyLimits) -> Iterator[RiskFlag]:
    """What forbids an entry in `symbol` for now: the guards, and the account's own activity."""
    yield from seen.blocks
    if seen.entries_in_minute >= limits.orders_per_minute:
        yield RiskFlag(
            code=FlagCode.ORDER_RATE,
            detail=f"{seen.entries_in_minute} entries within a minute, allowed are "
            f"{limits.orders_per_minute}",
        )
    if seen.open_orders >= limits.open_orders:
        yield RiskFlag(
            code=FlagCode.OPEN_ORDERS,
            detail=f"{seen.open_orders} orders are open, allowed are {limits.open_orders}",
        )
    if seen.quote_seconds is not None and seen.quote_seconds > limits.quote_seconds:
        yield RiskFlag(
            code=FlagCode.STALE_QUOTE,
            detail=f"{symbol}: the newest price is {seen.quote_seconds:.0f} s old, allowed are "
            f"{limits.quote_seconds:.0f}",
        )
    skew = seen.clock_skew_seconds
    if skew is not None and abs(skew) > limits.clock_skew_seconds:
        yield RiskFlag(
            code=FlagCode.CLOCK_SKEW,
            detail=f"the broker's clock is {skew:+.1f} s from ours, allowed are "
            f"{limits.clock_skew_seconds:g}",
        )


def _sessions(count: int) -> str:
    return f"{count} session" if count == 1 else f"{count} sessions"


def _ago(age: int) -> str:
    return "in the session in which" if age == 0 else f"{_sessions(age)} before"
