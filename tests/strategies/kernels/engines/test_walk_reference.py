"""The definition of a lane against vectors worked out by hand, both sides of each boundary."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strategies.kernels.engines import walk, walk_reference
from strategies.kernels.engines.lanes import Terms
from strategies.kernels.engines.walk_checks import require_sound
from tests.strategies.kernels.engines.lane_cases import (
    FREE,
    fired,
    flat_bars,
    lane,
    priced,
    ran,
    told,
    units,
)


@pytest.fixture(params=[walk_reference, walk], ids=["reference", "cpu"])
def engine(request):
    """Both engines: a vector by hand judges the one as well as the other."""
    return request.param


def outcome(engine, rows, *, enter, leave=(), terms=FREE, first=0, **numbers):
    prices = priced(rows, first)
    signals = fired(len(prices), enter=enter, leave=leave)
    return engine.walk(prices, signals, units(len(prices)), lane(**numbers), terms)


def test_a_signal_fills_at_the_open_of_the_next_bar(engine):
    rows = [(10, 11, 9, 10), (11, 21, 10, 20), (12, 13, 11, 12)]
    (trade,) = ran(engine, rows, enter=[1])
    assert (trade.entry_bar, trade.entry_price) == (2, 12.0)
    assert trade.shares == pytest.approx(83.3333333333)
    assert outcome(engine, rows, enter=[1]).final_equity[0] == 1000.0


def test_a_signal_on_the_newest_bar_never_fills(engine):
    assert ran(engine, flat_bars(10, 11, 12), enter=[2]) == ()
    (trade,) = ran(engine, flat_bars(10, 11, 12), enter=[0], leave=[2])
    assert (trade.exit_bar, trade.left_by) == (-1, "open")


def test_bars_before_the_first_decide_nothing(engine):
    assert ran(engine, flat_bars(10, 11, 12, 13), enter=[0], first=1) == ()
    (trade,) = ran(engine, flat_bars(10, 11, 12, 13), enter=[1], first=1)
    assert trade.entry_bar == 2


def test_a_pending_exit_is_executed_before_a_stop_of_its_bar(engine):
    rows = [*flat_bars(100, 100), (97, 98, 80, 90), (90, 90, 90, 90)]
    (trade,) = ran(engine, rows, enter=[0], leave=[1], stop=5)
    assert told(trade) == (1, 2, 100.0, 97.0, "exit")


def test_a_pending_exit_is_executed_at_the_open_even_beyond_the_stop(engine):
    rows = [*flat_bars(100, 100), (90, 91, 89, 90)]
    (trade,) = ran(engine, rows, enter=[0], leave=[1], stop=5)
    assert told(trade) == (1, 2, 100.0, 90.0, "exit")


@pytest.mark.parametrize(
    ("bar", "price"),
    [((90, 91, 89, 90), 90.0), ((95, 96, 95, 96), 95.0), ((95.01, 96, 95, 96), 95.0)],
    ids=["gap", "open on the stop", "touched"],
)
def test_a_gap_through_the_stop_leaves_at_the_open_and_a_touch_at_the_level(engine, bar, price):
    (trade,) = ran(engine, [*flat_bars(100, 100), bar], enter=[0], stop=5)
    assert told(trade) == (1, 2, 100.0, price, "stop")


def test_a_low_above_the_stop_leaves_nothing(engine):
    rows = [*flat_bars(100, 100), (96, 97, 95.01, 96)]
    (trade,) = ran(engine, rows, enter=[0], stop=5)
    assert trade.left_by == "open"


def test_a_stop_touched_on_the_entry_bar_exits_on_it_at_the_level(engine):
    rows = [*flat_bars(100), (100, 101, 94, 99), *flat_bars(99)]
    (trade,) = ran(engine, rows, enter=[0], stop=5)
    assert told(trade) == (1, 1, 100.0, 95.0, "stop")
    (missed,) = ran(engine, [*flat_bars(100), (100, 101, 95.01, 99)], enter=[0], stop=5)
    assert missed.left_by == "open"


def test_of_stop_and_target_inside_one_bar_the_stop_is_taken(engine):
    rows = [*flat_bars(100, 100), (100, 112, 94, 100)]
    (trade,) = ran(engine, rows, enter=[0], stop=5, target=10)
    assert told(trade) == (1, 2, 100.0, 95.0, "stop")


@pytest.mark.parametrize(
    ("bar", "price"),
    [((115, 116, 114, 115), 115.0), ((110, 111, 109, 110), 110.0), ((105, 110, 104, 106), 110.0)],
    ids=["gap", "open on the target", "touched"],
)
def test_a_gap_through_the_target_leaves_at_the_better_open(engine, bar, price):
    (trade,) = ran(engine, [*flat_bars(100, 100), bar], enter=[0], target=10)
    assert told(trade) == (1, 2, 100.0, price, "target")


def test_a_high_below_the_target_leaves_nothing(engine):
    (trade,) = ran(engine, [*flat_bars(100, 100), (105, 109.99, 104, 106)], enter=[0], target=10)
    assert trade.left_by == "open"


def test_a_target_is_reached_on_the_entry_bar(engine):
    (trade,) = ran(engine, [*flat_bars(100), (100, 111, 99, 100)], enter=[0], target=10)
    assert told(trade) == (1, 1, 100.0, 110.0, "target")


@pytest.mark.parametrize(("open_", "left_by"), [(95.0, "stop"), (90.0, "stop"), (110.0, "target")])
def test_an_entry_beyond_its_own_level_leaves_at_once_at_the_open(engine, open_, left_by):
    rows = [*flat_bars(100), (open_, 200, 1, open_), *flat_bars(open_)]
    (trade,) = ran(engine, rows, enter=[0], stop=5, target=10)
    assert told(trade) == (1, 1, open_, open_, left_by)


def test_a_stop_keeps_the_level_of_its_signal_bar(engine):
    rows = [*flat_bars(100), (102, 103, 101, 102), (99, 99, 95, 99), *flat_bars(99)]
    (trade,) = ran(engine, rows, enter=[0], stop=5, atr=[1, 3, 3, 3])
    assert told(trade) == (1, 2, 102.0, 95.0, "stop")


def test_levels_are_measured_from_the_expected_entry_slippage_included(engine):
    terms = replace(FREE, slippage=0.01)
    rows = [*flat_bars(100, 100), (97, 98, 96, 97)]
    (trade,) = ran(engine, rows, enter=[0], stop=5, terms=terms)
    assert told(trade) == (1, 2, 101.0, 96.0 * 0.99, "stop")
    (missed,) = ran(engine, rows, enter=[0], stop=5.01, terms=terms)
    assert missed.left_by == "open"


def test_a_target_pays_no_slippage_and_a_stop_does(engine):
    terms = replace(FREE, slippage=0.01)
    (won,) = ran(engine, [*flat_bars(100, 100), (105, 112, 104, 106)], enter=[0], target=10,
                 terms=terms)  # fmt: skip
    assert won.exit_price == 111.0
    (gapped,) = ran(engine, [*flat_bars(100, 100), (120, 121, 119, 120)], enter=[0], target=10,
                    terms=terms)  # fmt: skip
    assert gapped.exit_price == 120.0


@pytest.mark.parametrize("atr", [0.0, -1.0, np.nan, np.inf])
def test_without_a_sound_atr_an_entry_with_levels_is_skipped(engine, atr):
    for numbers in ({"stop": 1.0}, {"target": 1.0}, {"trail": 1.0}):
        assert ran(engine, flat_bars(100, 100), enter=[0], atr=[atr, 1], **numbers) == ()
    (trade,) = ran(engine, flat_bars(100, 100), enter=[0], atr=[atr, 1])
    assert trade.left_by == "open"


@pytest.mark.parametrize(("stop", "enters"), [(99.0, True), (100.0, False), (101.0, False)])
def test_a_stop_at_or_below_nothing_is_no_stop_and_skips_the_entry(engine, stop, enters):
    assert len(ran(engine, flat_bars(100, 100), enter=[0], stop=stop)) == enters


def test_a_trailing_stop_follows_the_highest_high_from_the_next_bar_on(engine):
    rows = [*flat_bars(100), (100, 110, 100, 105), (106, 107, 105.01, 106), (106, 120, 105, 118)]
    (trade,) = ran(engine, rows, enter=[0], trail=5)
    assert told(trade) == (1, 3, 100.0, 105.0, "trail")  # 110 - 5, not 120 - 5


def test_a_trailing_stop_does_not_trail_on_the_entry_bar(engine):
    rows = [*flat_bars(100), (100, 130, 1, 125), (126, 127, 125.01, 126)]
    (trade,) = ran(engine, rows, enter=[0], trail=5)
    assert trade.left_by == "open"


def test_the_trailing_stop_never_falls_and_a_gap_leaves_at_the_open(engine):
    rows = [*flat_bars(100, 120, 116), (90, 91, 89, 90)]
    (trade,) = ran(engine, rows, enter=[0], trail=5)
    assert told(trade) == (1, 3, 120.0, 90.0, "trail")


def test_a_new_position_knows_no_high_of_the_one_before(engine):
    rows = flat_bars(100, 100, 200, 200, 100, 100, 100, 100)
    trades = ran(engine, rows, enter=[0, 3], leave=[2], trail=20)
    assert [told(t)[:2] for t in trades] == [(1, 3), (4, -1)]


def test_of_the_protective_and_the_trailing_stop_the_higher_one_counts(engine):
    rows = [*flat_bars(100), (100, 101, 99, 100), (99, 99, 90, 95)]
    (kept,) = ran(engine, rows, enter=[0], stop=3, trail=5)
    assert told(kept) == (1, 2, 100.0, 97.0, "stop")
    (trailed,) = ran(engine, rows, enter=[0], stop=5, trail=3)
    assert told(trailed) == (1, 2, 100.0, 98.0, "trail")
    (tied,) = ran(engine, rows, enter=[0], stop=5, trail=6)
    assert told(tied) == (1, 2, 100.0, 95.0, "stop")


@pytest.mark.parametrize(("max_bars", "exit_bar"), [(1, 2), (2, 3), (3, 4)])
def test_a_time_stop_counts_the_entry_bar_and_leaves_at_the_next_open(engine, max_bars, exit_bar):
    (trade,) = ran(engine, flat_bars(10, 11, 12, 13, 14), enter=[0], max_bars=max_bars)
    assert (trade.exit_bar, trade.left_by) == (exit_bar, "time")


def test_a_time_stop_due_after_the_newest_bar_leaves_the_position_open(engine):
    (trade,) = ran(engine, flat_bars(10, 11, 12, 13, 14), enter=[0], max_bars=4)
    assert (trade.exit_bar, trade.left_by) == (-1, "open")


def test_an_exit_and_a_time_stop_on_one_bar_are_the_exit(engine):
    (trade,) = ran(engine, flat_bars(10, 11, 12, 13), enter=[0], leave=[2], max_bars=2)
    assert (trade.exit_bar, trade.left_by) == (3, "exit")


def test_entries_while_holding_or_leaving_are_ignored(engine):
    trades = ran(engine, flat_bars(10, 11, 12, 13, 14), enter=[0, 1, 2], leave=[2])
    assert [told(t)[:2] for t in trades] == [(1, 3)]


def test_the_bar_an_exit_fills_on_may_decide_a_new_entry(engine):
    trades = ran(engine, flat_bars(10, 11, 12, 13, 14), enter=[0, 2], leave=[1])
    assert [told(t)[:2] for t in trades] == [(1, 2), (3, -1)]


def test_the_bar_a_stop_is_reached_on_may_decide_a_new_entry(engine):
    rows = [*flat_bars(100), (100, 101, 94, 100), *flat_bars(100, 100)]
    trades = ran(engine, rows, enter=[0, 1], stop=5)
    assert [told(t)[:2] for t in trades] == [(1, 1), (2, -1)]


def test_an_exit_bit_while_flat_means_nothing(engine):
    (trade,) = ran(engine, flat_bars(10, 11, 12, 13), enter=[0], leave=[0])
    assert trade.left_by == "open"


def test_fees_are_paid_on_both_sides():
    # 1,500 units from 0.2166 to 0.2183 at 0.4 %: a one-sided fee would show a gain of 1.25
    terms = Terms(cash=1_500 * 0.2166 * 1.004, slippage=0.0, fee_rate=0.004)
    (trade,) = ran(walk_reference, flat_bars(0.2166, 0.2166, 0.2183), enter=[0], leave=[1],
                   terms=terms)  # fmt: skip
    assert trade.shares == pytest.approx(1500.0)
    assert trade.profit == pytest.approx(-0.0594, abs=5e-5)


def test_a_commission_is_per_order_and_no_part_of_the_price(engine):
    terms = Terms(cash=1_005.0, slippage=0.0, commission_per_order=5.0)
    (trade,) = ran(engine, flat_bars(100, 100, 100), enter=[0], leave=[1], terms=terms)
    assert (trade.entry_price, trade.shares, trade.profit) == (100.0, 10.0, -10.0)


@pytest.mark.parametrize("cash", [4.0, 5.0])
def test_cash_that_the_commission_takes_buys_nothing(engine, cash):
    terms = Terms(cash=cash, slippage=0.0, commission_per_order=5.0)
    assert ran(engine, flat_bars(100, 100, 100), enter=[0], terms=terms) == ()


def test_a_commission_above_all_that_is_left_takes_that_and_no_more(engine):
    terms = Terms(cash=30.0, slippage=0.0, commission_per_order=20.0)
    rows = flat_bars(100, 100, 100, 100)
    found = outcome(engine, rows, enter=[0], leave=[1], terms=terms)
    assert (found.final_equity[0], found.max_drawdown[0]) == (0.0, -1.0)
    assert np.isnan([found.sharpe[0], found.sortino[0]]).all()


def test_the_size_comes_from_the_fill_with_its_costs_not_from_the_close(engine):
    terms = Terms(cash=1_000.0, slippage=0.01, fee_rate=0.02)
    (trade,) = ran(engine, flat_bars(10, 40, 40), enter=[0], terms=terms)
    assert trade.entry_price == pytest.approx(40.4)
    assert trade.shares == pytest.approx(1_000.0 / (40.4 * 1.02))


def test_an_open_trade_is_marked_at_the_last_close_and_listed(engine):
    rows = [*flat_bars(100, 100), (104, 111, 103, 110)]
    (trade,) = ran(engine, rows, enter=[0], terms=replace(FREE, cash=100_000.0))
    assert (trade.exit_bar, trade.left_by, trade.profit) == (-1, "open", pytest.approx(10_000.0))
    assert np.isnan(trade.exit_price)
    found = outcome(engine, rows, enter=[0], terms=replace(FREE, cash=100_000.0))
    assert found.final_equity[0] == pytest.approx(110_000.0)
    assert (found.trades[0], found.open_trades[0]) == (0, 1)
    assert np.isnan(found.hit_rate[0])


def test_the_sharpe_ratio_counts_flat_bars_and_the_sample_deviation(engine):
    # equity 100, 101, 100, 102, 102 from the cash on: held from bar 0's successor to the end
    rows = flat_bars(100, 100, 101, 100, 102, 102)
    found = outcome(engine, rows, enter=[1], terms=replace(FREE, cash=100.0), first=1)
    change = np.array([0.0, 0.0, -1 / 101, 0.02, 0.0])
    assert found.sharpe[0] == pytest.approx(change.mean() / change.std(ddof=1) * 252**0.5)
    down = np.sqrt((1 / 101) ** 2 / 5)
    assert found.sortino[0] == pytest.approx(change.mean() / down * 252**0.5)


def test_the_equity_curve_and_its_vector_of_sharpe(engine):
    # the whole curve is 100, 101, 100, 102, 102; its first value is the cash, bought at 100
    rows = [(100, 100, 100, 100), (100, 101, 100, 101), *flat_bars(100, 102, 102)]
    prices, signals = priced(rows), fired(5, enter=[0])
    curve = engine.curves(prices, signals, None, lane(), replace(FREE, cash=100.0))
    assert curve.tolist() == [[100.0, 101.0, 100.0, 102.0, 102.0]]


def test_the_drawdown_starts_from_the_initial_cash(engine):
    rows = [*flat_bars(100), (100, 100, 90, 90), *flat_bars(95)]
    assert outcome(engine, rows, enter=[0]).max_drawdown[0] == pytest.approx(-0.1)


def test_exposure_counts_bars_that_end_with_a_position(engine):
    found = outcome(engine, flat_bars(10, 11, 12, 13), enter=[0], leave=[1])
    assert found.exposure[0] == 0.25
    stopped = outcome(engine, [*flat_bars(10), (10, 10, 8, 9), *flat_bars(9, 9)], enter=[0], stop=1)
    assert stopped.exposure[0] == 0.0


def test_a_hit_is_a_trade_that_made_money_after_costs(engine):
    rows = flat_bars(100, 100, 100, 100, 101, 100, 102)
    found = outcome(engine, rows, enter=[0, 2, 4], leave=[1, 3, 5])
    assert (found.trades[0], found.hit_rate[0]) == (3, pytest.approx(2 / 3))


def test_no_bars_and_no_trades_leave_the_cash(engine):
    for rows in ([], flat_bars(10), flat_bars(10, 11)):
        found = outcome(engine, rows, enter=[])
        assert (found.final_equity[0], found.max_drawdown[0], found.trades[0]) == (1000.0, 0.0, 0)
        assert np.isnan([found.sharpe[0], found.sortino[0], found.annual_return[0]]).all()


@pytest.mark.parametrize("bars", [62, 63])
def test_the_annual_return_needs_a_quarter_of_a_year(engine, bars):
    found = outcome(engine, flat_bars(*[100.0] * (bars - 1), 110.0), enter=[3])
    assert np.isnan(found.annual_return[0]) == (bars < 63)
    if bars == 63:
        assert found.annual_return[0] == pytest.approx(1.1**4 - 1.0)


# Arguments


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slippage": 1.0}, "slippage 1.0"),
        ({"fee_rate": -0.1}, "fee_rate -0.1"),
        ({"commission_per_order": float("nan")}, "commission_per_order nan"),
        ({"cash": 0.0}, "cash 0.0"),
        ({"periods_per_year": 0.0}, "periods_per_year 0.0"),
    ],
)
def test_terms_that_no_account_can_have_are_refused(engine, change, message):
    with pytest.raises(ValueError, match=message):
        ran(engine, flat_bars(1, 2), enter=[], terms=replace(FREE, **change))


@pytest.mark.parametrize("value", [np.nan, 0.0, -1.0, np.inf])
@pytest.mark.parametrize("column", range(4))
def test_a_price_that_is_not_sound_is_refused_with_its_bar(engine, column, value):
    rows = [list(bar) for bar in flat_bars(10, 11, 12)]
    rows[1][column] = value
    name = ("open", "high", "low", "close")[column]
    with pytest.raises(ValueError, match=f"{name} of bar 1 is"):
        ran(engine, rows, enter=[])


@pytest.mark.parametrize("name", ["stop", "target", "trail", "max_bars"])
def test_a_lane_with_a_negative_number_is_refused(engine, name):
    with pytest.raises(ValueError, match=f"{name} of lane 0 is -1"):
        ran(engine, flat_bars(1, 2), enter=[], **{name: -1})


def test_rows_that_do_not_exist_are_refused():
    prices, signals = priced(flat_bars(1, 2)), fired(2)
    with pytest.raises(ValueError, match="a signal that is not one of 1"):
        require_sound(prices, signals, None, replace(lane(), signal=np.array([1])), FREE)
    with pytest.raises(ValueError, match="need an ATR of 2 bars: 0"):
        require_sound(prices, signals, None, lane(stop=1), FREE)
    with pytest.raises(ValueError, match="an ATR that is not of 1"):
        require_sound(prices, signals, units(2), replace(lane(stop=1), atr=np.array([-1])), FREE)
    with pytest.raises(ValueError, match="words hold fewer"):
        require_sound(priced(flat_bars(*range(1, 70))), signals, None, lane(), FREE)


def test_trades_are_listed_for_one_lane_only(engine):
    two = replace(lane(), **{
        name: np.repeat(getattr(lane(), name), 2)
        for name in ("signal", "atr", "stop", "target", "trail", "max_bars")
    })  # fmt: skip
    with pytest.raises(ValueError, match="for one lane, not for 2"):
        engine.trades(priced(flat_bars(1, 2)), fired(2), None, two, FREE)
