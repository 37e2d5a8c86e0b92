"""Buy & hold: sized from the price really paid, valued at closes, never short of cash."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.trader.pipeline.bars import daily
from trader.backtest.baseline import buy_and_hold
from trader.core.costs import Costs
from trader.core.market import from_ns


def held(closes, *, cash=1_000, costs=None, start=0, **series):
    bars = daily(closes, **series)
    return buy_and_hold(
        {"AAPL": bars},
        cash=Decimal(cash),
        costs=costs or Costs(slippage_bps=0),
        start=from_ns(bars.timestamp[start]),
        times=[from_ns(ns) for ns in bars.available_at[start:]],
    )


def test_it_buys_at_the_first_open_from_the_start_on():
    book, equity = held([10.0, 11.0, 12.0, 20.0], start=2)  # opens at 11
    assert book.quantities == {"AAPL": Decimal(90)}
    assert book.cash == Decimal(10)
    assert equity == (10 + 90 * 12.0, 10 + 90 * 20.0)


def test_costs_are_part_of_what_a_share_costs():
    costs = Costs(slippage_bps=100, fee_bps=100, commission_per_order=5)
    book, _ = held([10.0, 10.0], costs=costs)
    # (1,000 - 5) / (10.10 × 1.01) = 97.5
    assert book.quantities == {"AAPL": Decimal(97)}
    assert book.cash == Decimal(1_000) - 97 * Decimal("10.1") - Decimal("14.80")
    assert book.fees == Decimal("14.80")
    assert book.slippage == Decimal("9.7")


def test_cash_for_less_than_one_share_stays_cash():
    book, equity = held([10.0, 20.0], cash=9)
    assert book.quantities == {}
    assert equity == (9.0, 9.0)


def test_several_symbols_share_the_cash_evenly_and_a_symbol_without_bars_leaves_its_part():
    early, late = daily([10.0] * 3, symbol="AAA"), daily([20.0] * 6, symbol="BBB")
    book, equity = buy_and_hold(
        {"AAA": early, "BBB": late},
        cash=Decimal(1_000),
        costs=Costs(slippage_bps=0),
        start=from_ns(late.timestamp[4]),
        times=[from_ns(late.available_at[5])],
    )
    assert book.quantities == {"BBB": Decimal(25)}
    assert equity == (1_000.0,)


@given(
    st.floats(1, 500), st.floats(0, 100_000), st.floats(0, 500), st.floats(0, 500), st.floats(0, 20)
)
@example(1.0, 53.83, 0.0, 64.0, 2.5)  # 51 shares and a fee that rounds up past the last cent
@settings(deadline=None)
def test_the_account_never_owes_money(price, cash, slippage, fee, commission):
    costs = Costs(slippage_bps=slippage, fee_bps=fee, commission_per_order=commission)
    book, _ = held([round(price, 2)] * 2, cash=round(cash, 2), costs=costs)
    assert book.cash >= 0


def test_a_free_first_bar_is_where_the_equity_starts():
    _, equity = held([100.0, 110.0], cash=100_000)
    assert equity[-1] == pytest.approx(110_000)


def test_a_symbol_that_begins_later_counts_from_then_on():
    early, late = daily([10.0] * 6, symbol="AAA"), daily([20.0] * 9, symbol="BBB").slice(4, 9)
    times = [from_ns(ns) for ns in early.available_at]
    book, equity = buy_and_hold(
        {"AAA": early, "BBB": late},
        cash=Decimal(1_000),
        costs=Costs(slippage_bps=0),
        start=from_ns(early.timestamp[0]),
        times=times,
    )
    assert book.quantities == {"AAA": Decimal(50), "BBB": Decimal(25)}
    assert equity == (1_000.0,) * 6
