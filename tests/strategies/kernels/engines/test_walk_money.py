"""Whole shares as at the exchange: fills, ticks, fees and sizes, on both sides of each rounding."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies.kernels.engines import walk, walk_reference
from strategies.kernels.engines.lanes import Terms
from strategies.kernels.engines.walk_money import Whole
from tests.strategies.kernels.engines.lane_cases import flat_bars, ran, told
from trader.core.costs import Costs
from trader.core.trading import Side


@pytest.fixture(params=[walk_reference, walk], ids=["reference", "cpu"])
def engine(request):
    """Both engines: a vector by hand judges the one as well as the other."""
    return request.param


def test_whole_shares_are_what_the_cash_pays_with_its_fee_and_the_rest_stays(engine):
    terms = Terms(cash=1_000.0, slippage=0.0, fee_rate=0.01, whole_shares=True)
    (trade,) = ran(engine, flat_bars(99.0, 99.0, 99.0), enter=[0], leave=[1], terms=terms)
    assert (trade.shares, trade.entry_price) == (10.0, 99.0)  # 990.00 + 9.90
    (fewer,) = ran(engine, flat_bars(99.01, 99.01), enter=[0], terms=replace(terms, cash=999.99))
    assert fewer.shares == 9.0
    assert ran(engine, flat_bars(990.11, 990.11), enter=[0], terms=terms) == ()


@pytest.mark.parametrize(
    ("open_", "fill"),
    [
        (100.10, 100.1500),  # 100.15005: a tie, to the even 100.1500
        (100.30, 100.3502),  # 100.35015: a tie, to the even 100.3502
        (123.456789, 123.5185),
    ],
)
def test_fills_are_rounded_half_even_to_a_hundredth_of_a_cent(engine, open_, fill):
    terms = Terms(cash=1_000.0, whole_shares=True)
    (trade,) = ran(engine, flat_bars(open_, open_), enter=[0], terms=terms)
    assert trade.entry_price == fill
    assert Decimal(str(fill)) == Costs(slippage_bps=5.0).slipped(open_, Side.BUY)


@pytest.mark.parametrize(
    ("close", "level"),
    [(100.0, 95.0), (100.009, 95.0), (5.9999, 0.9999), (5.99999, 0.9999), (6.0, 1.0)],
)
def test_stops_are_whole_ticks_rounded_down(engine, close, level):
    terms = Terms(cash=1_000.0, slippage=0.0, whole_shares=True)
    rows = [*flat_bars(close, close), (close, close, level, close), *flat_bars(close)]
    (trade,) = ran(engine, rows, enter=[0], stop=5, terms=terms)
    assert told(trade)[1:] == (2, pytest.approx(close, abs=1e-4), level, "stop")
    rows[2] = (close, close, level * 1.00001, close)
    (missed,) = ran(engine, rows, enter=[0], stop=5, terms=terms)
    assert missed.left_by == "open"


def test_targets_and_trailing_stops_are_whole_ticks_rounded_down(engine):
    terms = Terms(cash=1_000.0, slippage=0.0, whole_shares=True)
    rows = [*flat_bars(100.009, 100.009), (101, 105.0, 101, 104)]
    (won,) = ran(engine, rows, enter=[0], target=5, terms=terms)
    assert told(won)[1:] == (2, 100.009, 105.0, "target")
    rows = [*flat_bars(100), (100, 110.019, 100, 110), (107, 108, 105.01, 106), *flat_bars(106)]
    (trailed,) = ran(engine, rows, enter=[0], trail=5, terms=terms)
    assert told(trailed) == (1, 2, 100.0, 105.01, "trail")
    rows[2] = (107, 108, 105.015, 106)
    (missed,) = ran(engine, rows, enter=[0], trail=5, terms=terms)
    assert missed.left_by == "open"


@pytest.mark.parametrize(("shares", "fee"), [(10, 0.12), (30, 0.38), (50, 0.62)])
def test_fees_are_rounded_half_even_to_a_cent(engine, shares, fee):
    # 0.125, 0.375 and 0.625 USD: each a tie, to the even cent
    terms = Terms(cash=shares * 10.0 + 5, slippage=0.0, fee_rate=0.00125, whole_shares=True)
    (trade,) = ran(engine, flat_bars(10, 10, 10), enter=[0], leave=[1], terms=terms)
    assert (trade.shares, trade.profit) == (shares, pytest.approx(-2 * fee, abs=1e-9))


def test_a_stop_below_a_tick_of_nothing_skips_the_entry(engine):
    terms = Terms(cash=1_000.0, slippage=0.0, whole_shares=True)
    rows = flat_bars(100.0, 100.0)
    assert ran(engine, rows, enter=[0], stop=99.99995, terms=terms) == ()
    assert len(ran(engine, rows, enter=[0], stop=99.9999, terms=terms)) == 1


def test_a_price_that_rounds_to_nothing_buys_nothing(engine):
    terms = Terms(cash=1_000.0, slippage=0.0, whole_shares=True)
    assert ran(engine, flat_bars(0.00004, 0.00004), enter=[0], terms=terms) == ()


@given(
    budget=st.decimals(0, 10**6, places=4),
    fill=st.decimals("0.0001", 10**5, places=4),
    fee=st.sampled_from([0.0, 0.001, 0.00123]),
    commission=st.sampled_from([0.0, 1.0, 2.505]),
)
def test_one_more_whole_share_could_not_be_paid(budget, fill, fee, commission):
    cash = max(float(budget), 0.0001)
    terms = Terms(cash=cash, fee_rate=fee, commission_per_order=commission, whole_shares=True)
    whole = Whole(terms)
    shares, cost = whole.buy(fill, 1)
    costs = Costs(fee_bps=fee * 10_000, commission_per_order=commission)
    more = (int(shares) + 1) * fill
    assert more + costs.fee(more) > whole.cash
    if shares:
        assert cost == int(shares) * fill + costs.fee(int(shares) * fill) <= whole.cash


@pytest.mark.parametrize(
    ("close", "levels", "enters"),
    [
        (50.0, {"stop": 0.01}, True),  # a stop a cent below the close, a target a cent above it
        (50.0, {"stop": 0.009}, True),  # 49.991 is the tick 49.99
        (50.005, {"stop": 0.001}, False),  # 50.004 is the tick 50.00
        (50.0, {"target": 0.01}, True),
        (50.0, {"target": 0.0199}, True),
        (50.0, {"target": 0.009}, False),
        (50.005, {"target": 0.01}, False),  # 50.01
        (50.00004, {"target": 0.01}, True),  # the exchange tells that close as 50.0000
        (0.5, {"stop": 0.01}, True),
        (0.5, {"stop": 0.0098}, False),  # ticks are finer there, the cent is the same
        (0.5, {"target": 0.0099}, False),
        (0.07, {"stop": 0.01}, True),  # 0.0600: decimals, not their floats, are compared
        (50.0, {"stop": 1.0, "target": 0.001}, False),
        (50.0, {"trail": 0.001}, True),  # follows later; no order of the entry
    ],
)
def test_the_exchange_takes_no_entry_with_a_level_within_a_cent_of_the_close(
    engine, close, levels, enters
):
    terms = Terms(cash=1_000.0, slippage=0.0, whole_shares=True)
    rows = flat_bars(close, close, close)
    assert bool(ran(engine, rows, enter=[0], terms=terms, **levels)) is enters
    assert ran(engine, rows, enter=[0], terms=replace(terms, whole_shares=False), **levels)


def test_levels_beyond_all_that_is_counted_are_levels_that_nothing_reaches(engine):
    terms = Terms(cash=1_000.0, whole_shares=True)
    rows, swings = flat_bars(9.0, 9.0, 9.0), [1e300, 1.0, 1.0]
    (trade,) = ran(engine, rows, enter=[0], terms=terms, atr=swings, target=1)
    assert trade.left_by == "open"
    (trade,) = ran(engine, rows, enter=[0], terms=terms, atr=swings, trail=1)
    assert trade.left_by == "open"
    assert ran(engine, rows, enter=[0], terms=terms, atr=swings, stop=1) == ()
