"""Protections, caps and the kill switch in whole walks, judged by the book alone."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest

from tests.trader.pipeline.accounts import CALENDAR, account_over, slots_of
from tests.trader.pipeline.bars import daily, wave
from trader.backtest.evaluation import funnel
from trader.backtest.replay import Replay, replay
from trader.core.canonical import canonical_json, from_primitive
from trader.core.costs import Costs
from trader.core.decision import RiskInputs
from trader.core.market import BarSeries, session_of
from trader.risk.gate import RiskLimits, review
from trader.risk.protections import ProtectionLimits

WAVE = daily(wave(420))
SLOTS = slots_of(WAVE, 260)
ALL_OFF = {"cooldown_sessions": 0, "stops": 0, "drawdown": 0.0, "max_positions": 0}


def noisy(seed: int, symbol: str = "AAPL") -> BarSeries:
    steps = np.random.default_rng(seed).normal(0.0004, 0.025, 355).cumsum()
    return daily([round(float(c), 2) for c in 100 * np.exp(steps)], symbol=symbol)


NAMES = ("AAA", "BBB", "CCC")
APART = tuple(noisy(seed, name) for seed, name in enumerate(NAMES))
TOGETHER = tuple(daily(wave(330), symbol=name) for name in NAMES)


def walked(*series: BarSeries, safety=None, **protections) -> Replay:
    """A backtest without debate over every slot, with only the given rules on."""
    slots = slots_of(series[0], 260)
    account = account_over(
        *series,
        start=slots[0],
        debated=False,
        risk={"protections": ALL_OFF | protections},
        safety=safety or {},
    )
    return replay(account.cycle, slots, book=account.journal.book, ledger=account.ledger)


@pytest.fixture(scope="module")
def unhindered() -> Replay:
    """Three symbols that move together, with every rule off."""
    return walked(*TOGETHER)


def sessions_between(first: datetime, last: datetime) -> int:
    return len(CALENDAR.between(session_of(first), session_of(last))) - 1


def entries(run: Replay) -> list[datetime]:
    return [cycle.as_of for cycle in run.cycles if cycle.risk.approved]


def refused_by(run: Replay, code: str) -> list:
    return [c for c in run.cycles if code in [str(r.code) for r in c.risk.reasons]]


def stops(run: Replay, until: datetime) -> list:
    return [
        trade
        for trade in run.book.trades.values()
        if trade.exit_reason == "stop" and trade.exited_at < until
    ]


# ---- whole walks, judged by the book alone


def test_nothing_is_entered_while_a_symbol_rests_after_its_stop_and_everything_else_is():
    run = walked(*APART, cooldown_sessions=15)
    resting = []
    for cycle in run.cycles:
        hit = [t for t in stops(run, cycle.as_of) if t.symbol == cycle.symbol]
        rests = any(sessions_between(t.exited_at, cycle.as_of) < 15 for t in hit)
        assert (cycle in refused_by(run, "COOLDOWN")) == rests
        resting.append(rests)
    assert 0 < sum(resting) < len(resting)
    assert funnel(run).gate_refusals["COOLDOWN"] > 0


def test_a_run_of_stops_locks_all_symbols_for_its_sessions():
    run = walked(*APART, stops=2, stops_sessions=10, lock_sessions=8)
    locked = []
    for cycle in run.cycles:
        ages = sorted(sessions_between(t.exited_at, cycle.as_of) for t in stops(run, cycle.as_of))
        expected = any(new < 8 and old - new < 10 for new, old in pairwise(ages))
        assert (cycle in refused_by(run, "TOO_MANY_STOPS")) == expected
        locked.append(expected)
    assert 0 < sum(locked) < len(locked)


def test_a_drawdown_locks_until_its_lowest_is_old():
    run = walked(APART[1], APART[2], drawdown=0.015, drawdown_sessions=40, lock_sessions=10)
    equity = {slot.session: float(slot.equity) for slot in run.slots}
    days = list(equity)
    locked = []
    for cycle in run.cycles:
        now = days.index(session_of(cycle.as_of))
        window = [equity[day] for day in days[max(0, now - 39) : now + 1]]
        peak = len(window) - 1 - window[::-1].index(max(window))
        low = min(window[peak:])
        age = len(window) - 1 - (peak + window[peak:].index(low))
        expected = 1 - low / window[peak] >= 0.015 and age < 10
        assert (cycle in refused_by(run, "DRAWDOWN")) == expected
        locked.append(expected)
    assert 0 < sum(locked) < len(locked)


def test_no_more_symbols_are_held_than_may_be(unhindered):
    run = walked(*TOGETHER, max_positions=1)
    assert all(len(slot.positions) <= 1 for slot in run.slots)
    assert any(len(slot.positions) == 1 for slot in run.slots)
    assert funnel(run).gate_refusals["TOO_MANY_POSITIONS"] > 0
    assert any(len(slot.positions) > 1 for slot in unhindered.slots)


def test_a_bad_day_of_a_backtest_halts_its_entries_and_the_next_session_goes_on():
    run = walked(*APART, safety={"daily_loss": 0.005})
    equity, before = {}, Decimal(100_000)
    halted = []
    for slot in run.slots:
        equity[slot.session] = 1 - slot.equity / before >= Decimal("0.005")
        before = slot.equity
    for cycle in run.cycles:
        expected = equity[session_of(cycle.as_of)]
        assert (cycle in refused_by(run, "TRADING_HALTED")) == expected
        halted.append(expected)
    assert 0 < sum(halted) < len(halted)
    assert funnel(run).gate_refusals["TRADING_HALTED"] == sum(halted)


@pytest.mark.parametrize(
    ("safety", "code"),
    [
        ({"orders_per_minute": 1}, "ORDER_RATE"),
        ({"open_orders": 1}, "OPEN_ORDERS"),
        ({"notional_per_day": 0.2}, "DAILY_NOTIONAL"),
    ],
)
def test_the_caps_on_activity_hold_in_a_backtest(unhindered, safety, code):
    run = walked(*TOGETHER, safety=safety)
    assert max(Counter(entries(unhindered)).values()) == 3  # all three at once
    assert max(Counter(entries(run)).values()) == 1
    assert funnel(run).gate_refusals[code] > 0


def test_without_a_reason_the_default_rules_change_no_decision():
    with_rules = account_over(WAVE, start=SLOTS[0])
    without = account_over(
        WAVE, start=SLOTS[0], risk={"protections": ALL_OFF}, safety={"daily_loss": 1.0}
    )
    for slot in SLOTS[:60]:
        one, other = with_rules.cycle.run(slot), without.cycle.run(slot)
        assert [c.risk.quantity for c in one.cycles] == [c.risk.quantity for c in other.cycles]
        assert one.slot.equity == other.slot.equity


def test_the_gate_comes_out_the_same_from_the_record_alone():
    run = walked(*APART[:2], cooldown_sessions=15, drawdown=0.02, max_positions=1)
    limits = RiskLimits(
        protections=ProtectionLimits(cooldown_sessions=15, stops=0, drawdown=0.02, max_positions=1)
    )
    for cycle in run.cycles:
        kept = from_primitive(RiskInputs, json.loads(canonical_json(cycle.risk_inputs)))
        again = review(
            cycle.debate.verdict, kept, limits=limits, costs=Costs(), target_required=False
        )
        assert canonical_json(again) == canonical_json(cycle.risk)
