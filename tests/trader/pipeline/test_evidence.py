"""Evidence: what each fact means by hand-computed values, and that nothing is known too early."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from tests.trader.pipeline.accounts import account_over, slots_of
from tests.trader.pipeline.bars import daily, wave
from trader.core.market import from_ns
from trader.pipeline.candidates import bar_of, still_holds
from trader.pipeline.evidence import AccountView

LENGTH = 300
BARS = daily(wave(LENGTH), high={LENGTH - 40: 140.0}, low={LENGTH - 10: 70.0})


@pytest.fixture(scope="module")
def facts():
    slot = slots_of(BARS, LENGTH - 1)[0]
    account = account_over(BARS, start=slot, strategies=["sma_cross"])
    view = AccountView(portfolio=account.broker.portfolio(), open_buy_value_symbol=0)
    prepared = account.cycle.candidates.prepare_all(slot, BARS, view)
    return slot, {fact.name: fact for fact in prepared[0].evidence}


def test_every_fact_is_numbered_once_and_known_when_its_bar_was_complete(facts):
    slot, found = facts
    assert [fact.evidence_id for fact in found.values()] == [
        f"E{n}" for n in range(1, len(found) + 1)
    ]
    complete = from_ns(BARS.available_at[-1])
    for fact in found.values():
        assert fact.as_of == slot.as_of
        assert fact.known_at <= fact.as_of
        if fact.kind == "technical":
            assert fact.known_at == complete
    assert complete - from_ns(BARS.timestamp[-1]) > timedelta(hours=3)


def test_facts_mean_what_their_names_say(facts):
    _, found = facts
    close, high, low, opened = BARS.close, BARS.high, BARS.low, BARS.open
    year = close[-252:]
    expected = {
        "close": close[-1],
        "close_previous": close[-2],
        "open": opened[-1],
        "sma_50": close[-50:].mean(),
        "return_20": close[-1] / close[-21] - 1,
        "gap_last": opened[-1] / close[-2] - 1,
        "gap_worst_252": (opened[1:] / close[:-1] - 1)[-252:].min(),
        "drawdown_252": close[-1] / year.max() - 1,
        "max_drawdown_252": (year / np.maximum.accumulate(year) - 1).min(),
        "distance_high_252": close[-1] / high[-252:].max() - 1,
        "distance_low_20": close[-1] / low[-20:].min() - 1,
        "volume_ratio_20": 1.0,
        "position_weight": 0.0,
        "cash": 100_000.0,
        "cash_weight": 1.0,
        "bars_behind": 0.0,
        "entry_price": close[-1] * 1.0005,
        "target_high_60": 140.0,
    }
    for name, value in expected.items():
        assert found[name].value == pytest.approx(value), name


def test_dates_parameters_and_the_stops_distance_can_be_cited(facts):
    slot, found = facts
    assert found["session"].unit == "date"
    assert (
        found["session"].value == found["signal_session"].value == float(f"{slot.session:%Y%m%d}")
    )
    assert found["rule_value"].text == "sma 20, fast 20, slow 50"
    assert found["stop_price"].text == "2 ATR below the entry"


def test_expected_value_is_the_arithmetic_of_its_parts(facts):
    _, found = facts
    chance, ratio = found["probability_high_60"].value, found["reward_risk_high_60"].value
    closed, hits = found["signal_closed"].value, found["hits_high_60"].value
    assert chance == pytest.approx((hits + 1) / (closed + 3))
    assert found["expected_value_high_60"].value == pytest.approx(chance * ratio - (1 - chance))


def test_what_needs_more_history_is_missing_and_not_zero():
    young = daily(wave(30))
    slot = slots_of(young, 29)[0]
    account = account_over(young, start=slot, strategies=["sma_cross"])
    view = AccountView(portfolio=account.broker.portfolio(), open_buy_value_symbol=0)
    found = {
        fact.name: fact.value
        for fact in account.cycle.candidates.prepare_all(slot, young, view)[0].evidence
    }
    for name in (
        "sma_50",
        "sma_200",
        "max_drawdown_252",
        "gap_worst_252",
        "return_60",
        "target_high_60",
    ):
        assert found[name] is None, name


def test_a_signal_is_taken_back_by_an_exit_or_a_fall_behind_its_line():
    slot = slots_of(BARS, LENGTH - 1)[0]
    account = account_over(BARS, start=slot, strategies=["sma_cross"])
    strategy = account.cycle.candidates.known["sma_cross"]
    crossed = strategy.crossings(BARS)
    entries, exits = np.flatnonzero(crossed.entry), np.flatnonzero(crossed.exit)
    entry = int(entries[0])
    left = int(exits[exits > entry][0])
    assert still_holds(
        strategy, strategy.crossings(BARS.head(entry + 1)), BARS.head(entry + 1), entry
    )
    before, after = BARS.head(left), BARS.head(left + 1)
    assert still_holds(strategy, strategy.crossings(before), before, entry)
    assert not still_holds(strategy, strategy.crossings(after), after, entry)


def test_the_signal_bar_can_be_read_off_a_trade_id():
    moment = bar_of("paper-0123456789-20260702T1330-AAPL-atr_trend")
    assert f"{moment:%Y-%m-%dT%H:%M%z}" == "2026-07-02T13:30+0000"
