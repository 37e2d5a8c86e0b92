"""The compiled walk against its definition, and the laws that both obey."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from strategies.indicators.crossing import crosses_above, crosses_below
from strategies.kernels.engines import walk, walk_one, walk_reference
from strategies.kernels.engines.lanes import METRICS, Lanes, Prices, Signals, Terms, pack
from strategies.kernels.engines.masks import compiled
from strategies.kernels.engines.walk_one import backtest_one, sma_cross_backtest
from strategies.kernels.engines.walk_steps import (
    annual_growth,
    opening_state,
    terms_row,
    walk_bar,
    write_metrics,
)
from strategies.kernels.engines.walk_whole import (
    fee_of,
    fills_at_open,
    rates_row,
    sold_at,
    tick_units,
)
from strategies.kernels.reference import sma
from tests.strategies.kernels.engines.lane_cases import (
    COSTS,
    FREE,
    WHOLE,
    assert_outcomes,
    assert_trades,
    fired,
    flat_bars,
    lane,
    priced,
    random_lanes,
    random_prices,
    random_rules,
    ranges,
)
from trader.core.costs import Costs
from trader.core.trading import Side, tick_down

SIZES = ((1, 5), (2, 5), (66, 60), (128, 60), (330, 60))
WALKED = [
    pytest.param(bars, lanes, tick, id=f"{bars} bars{' in ticks' if tick else ''}")
    for bars, lanes in SIZES
    for tick in (None, 0.25)
]
ALL_TERMS = pytest.mark.parametrize(
    "terms", [FREE, COSTS, WHOLE], ids=["free", "costs", "whole shares"]
)


def case(bars, lanes, tick=None, seed=0):
    prices = random_prices(bars, seed=bars + seed, tick=tick)
    signals = random_rules(bars, seed=bars + seed)
    return prices, signals, ranges(prices), random_lanes(lanes, seed=bars + seed)


@ALL_TERMS
@pytest.mark.parametrize(("bars", "lanes", "tick"), WALKED)
def test_the_walk_equals_its_definition_in_every_metric(bars, lanes, tick, terms):
    given_ = case(bars, lanes, tick)
    assert_outcomes(walk.walk(*given_, terms), walk_reference.walk(*given_, terms))


@ALL_TERMS
def test_the_walk_equals_its_definition_trade_by_trade(terms):
    for bars, tick in ((90, 0.25), (200, 0.01), (200, None)):
        prices, signals, table, lanes = case(bars, 40, tick, seed=7)
        expected = walk_reference.curves(prices, signals, table, lanes, terms)
        assert_allclose(walk.curves(prices, signals, table, lanes, terms), expected, rtol=1e-13)
        for k in range(len(lanes)):
            one = (prices, signals, table, lanes.part(k, k + 1), terms)
            assert_trades(walk.trades(*one), walk_reference.trades(*one), exact=terms.whole_shares)


@ALL_TERMS
def test_two_threads_give_the_bits_of_one(terms):
    given_ = case(150, 700, seed=3)
    one, two = (walk.walk(*given_, terms, threads=threads) for threads in (1, 2))
    for name in METRICS:
        assert_array_equal(getattr(one, name), getattr(two, name))
    assert_array_equal(
        walk.curves(*given_, terms, threads=1), walk.curves(*given_, terms, threads=2)
    )
    with pytest.raises(ValueError, match="threads 0"):
        walk.walk(*given_, terms, threads=0)


def test_long_holdings_are_summed_over_many_blocks():
    prices = replace(random_prices(3_000, seed=4), first=0)
    table = ranges(prices)
    for enter, leave in ((3, 2_990), (64, 127), (63, 128), (7, 8), (8, 16), (0, 2_999)):
        signals = fired(3_000, enter=[enter], leave=[leave])
        for numbers in ({}, {"stop": 400}, {"trail": 400, "target": 2_000}, {"trail": 9}):
            given_ = (prices, signals, table, lane(**numbers), COSTS)
            assert_outcomes(walk.walk(*given_), walk_reference.walk(*given_))


# Any sound bars


@st.composite
def markets(draw, scales=(1e-250, 1e-4, 1.0, 100.0, 1e9, 1e250)):
    """Sound bars with ties, gaps and jumps on any scale, bits that fire often, and lanes."""
    bars = draw(st.integers(0, 40))
    scale = draw(st.sampled_from(scales))
    steps = st.sampled_from([0.5, 0.9, 0.95, 0.97, 1.0, 1.0, 1.0, 1.01, 1.05, 1.1, 2.0])
    rows = []
    price = draw(st.floats(0.5, 2.0))
    for _ in range(bars):
        moves = [draw(steps) for _ in range(4)]
        open_, close = price * moves[0], price * moves[1]
        row = (
            open_,
            max(open_, close) / min(moves[2], 1.0),
            min(open_, close) * min(moves[3], 1.0),
        )
        rows.append([x * scale for x in (*row, close)])
        price = min(max(close, 0.01), 100.0)
    bits = st.lists(st.booleans(), min_size=bars, max_size=bars)
    fires = [np.array([draw(bits)], dtype=bool).reshape((1, bars)) for _ in range(2)]
    number = st.one_of(st.just(0.0), st.floats(0.01, 5.0))
    numbers = [draw(st.lists(number, min_size=4, max_size=4)) for _ in range(3)]
    lanes = Lanes(
        signal=np.zeros(4, dtype=np.int64),
        atr=np.zeros(4, dtype=np.int64),
        stop=np.array(numbers[0]),
        target=np.array(numbers[1]),
        trail=np.array(numbers[2]),
        max_bars=np.array([0, 0, draw(st.integers(1, 5)), draw(st.integers(1, 5))]),
    )
    sizes = st.sampled_from([0.05, 0.1, 0.1, 0.3, np.nan, 0.0])
    table = np.array([[draw(sizes) * price * scale for _ in range(bars)]]).reshape((1, bars))
    prices = priced(rows, draw(st.integers(0, bars)))
    return prices, Signals(entry=pack(fires[0]), exit=pack(fires[1])), table, lanes


COSTLY = st.builds(
    Terms,
    cash=st.sampled_from([100.0, 12_345.67, 1e6]),
    slippage=st.sampled_from([0.0, 0.0005, 0.01]),
    fee_rate=st.sampled_from([0.0, 0.00123]),
    commission_per_order=st.sampled_from([0.0, 1.5, 40.0]),
)


def assert_same_walk(market, terms):
    prices, signals, table, lanes = market
    with np.errstate(all="ignore"):  # returns of an account that lost all of it
        wanted = walk_reference.curves(*market, terms)
        outcomes = walk_reference.walk(*market, terms)
    assert_allclose(walk.curves(*market, terms), wanted, rtol=1e-12)
    found = walk.walk(*market, terms)
    for name in ("final_equity", "annual_return", "max_drawdown", "trades", "open_trades",
                 "hit_rate", "exposure"):  # fmt: skip
        assert_allclose(getattr(found, name), getattr(outcomes, name), rtol=1e-12, atol=1e-14,
                        err_msg=name)  # fmt: skip
    for k in range(len(lanes)):
        one = (prices, signals, table, lanes.part(k, k + 1), terms)
        assert_trades(walk.trades(*one), walk_reference.trades(*one), exact=terms.whole_shares)
        if not (wanted[k] > 0.0).all():
            assert np.isnan([found.sharpe[k], found.sortino[k]]).all()
            continue
        returns = np.diff(wanted[k], prepend=terms.cash) / np.append(terms.cash, wanted[k][:-1])
        if prices.traded > 1 and returns.std() > 1e-6:  # else rounding is all there is to compare
            assert_allclose(found.sharpe[k], outcomes.sharpe[k], rtol=1e-9, atol=1e-9)
            assert_allclose(found.sortino[k], outcomes.sortino[k], rtol=1e-9, atol=1e-9)


@settings(max_examples=150)
@given(markets(), COSTLY)
def test_the_walk_equals_its_definition_on_any_sound_bars(market, terms):
    assert_same_walk(market, terms)


@settings(max_examples=100)
@given(markets(scales=(1e-4, 0.01, 1.0, 100.0)), COSTLY, st.sampled_from([1, 2, 4, 6]))
def test_the_walk_equals_its_definition_in_whole_shares(market, terms, digits):
    prices, *rest = market
    columns = {
        name: np.maximum(np.round(getattr(prices, name), digits), 10.0**-digits)
        for name in ("open", "high", "low", "close")
    }
    assert_same_walk((replace(prices, **columns), *rest), replace(terms, whole_shares=True))


@settings(max_examples=60)
@given(markets(scales=(1.0,)), COSTLY)
def test_another_bar_changes_no_earlier_equity(market, terms):
    prices, signals, table, lanes = market
    if prices.traded < 2:
        return
    columns = {name: getattr(prices, name)[:-1] for name in ("open", "high", "low", "close")}
    shorter = Prices(**columns, volume=prices.volume[:-1], first=prices.first)
    whole = walk.curves(prices, signals, table, lanes, terms)
    assert_array_equal(walk.curves(shorter, signals, table, lanes, terms), whole[:, :-1])


@settings(max_examples=60)
@given(markets(scales=(1.0,)), COSTLY)
def test_prices_in_another_unit_change_nothing(market, terms):
    prices, signals, table, lanes = market
    columns = {name: getattr(prices, name) * 64.0 for name in ("open", "high", "low", "close")}
    moved = walk.curves(replace(prices, **columns), signals, table * 64.0, lanes, terms)
    assert_array_equal(moved, walk.curves(prices, signals, table, lanes, terms))


# The bar-by-bar state machine


@compiled
def stepped(bars, change, entries, exits, table, lanes, max_bars, first, terms, out):
    """Every lane through `walk_bar`, one bar after the other."""
    size = change.size
    for k in range(lanes.shape[1]):
        state = opening_state(terms)
        rule, row = int(lanes[0, k]), int(lanes[1, k])
        for t in range(first, size):
            shift = np.uint64(t & 63)
            state = walk_bar(
                state, bars[0, t], bars[1, t], bars[2, t], bars[3, t], change[t], table[row, t],
                (entries[rule, t >> 6] >> shift) & np.uint64(1) != 0,
                (exits[rule, t >> 6] >> shift) & np.uint64(1) != 0,
                t == size - 1, lanes[2, k], lanes[3, k], lanes[4, k], max_bars[k], terms,
            )  # fmt: skip
        write_metrics(state, size - first, terms, out, k)
        out[1, k] = annual_growth(size - first, out[0, k], terms)


def through_steps(prices, signals, table, lanes, terms, dtype):
    bars = np.array([prices.open, prices.high, prices.low, prices.close])
    change = np.append(0.0, prices.close[1:] / prices.close[:-1] - 1.0)
    numbers = np.array([lanes.signal, lanes.atr, lanes.stop, lanes.target, lanes.trail])
    out = np.empty((len(METRICS), len(lanes)), dtype=dtype)
    stepped(
        bars.astype(dtype), change.astype(dtype), signals.entry, signals.exit, table.astype(dtype),
        numbers.astype(dtype), lanes.max_bars, prices.first, terms_row(terms, dtype), out,
    )  # fmt: skip
    return walk.outcomes_of(out)


@pytest.mark.parametrize("terms", [FREE, COSTS], ids=["free", "costs"])
def test_the_steps_bar_by_bar_equal_the_definition(terms):
    for bars, tick in ((90, 0.25), (260, None)):
        given_ = case(bars, 120, tick, seed=5)
        found = through_steps(*given_, terms, np.float64)
        assert_outcomes(found, walk_reference.walk(*given_, terms))


def test_the_steps_in_single_precision_rank_as_in_double():
    given_ = case(260, 120, seed=5)
    found = through_steps(*given_, COSTS, np.float32)
    wanted = walk_reference.walk(*given_, COSTS)
    same = found.trades == wanted.trades
    assert same.mean() > 0.95
    assert_allclose(found.final_equity[same], wanted.final_equity[same], rtol=1e-4)


# One backtest


@pytest.mark.parametrize("numbers", [{}, {"stop": 2.0, "target": 3.0}, {"trail": 2.5}])
def test_one_backtest_is_the_walk_of_one_lane(numbers):
    prices, signals, table, _ = case(400, 1, seed=9)
    one = backtest_one(
        prices, signals.entry[0], signals.exit[0], COSTS, atr=table[0], max_bars=30, **numbers
    )
    wanted = walk_reference.walk(prices, signals, table, lane(**numbers, max_bars=30), COSTS)
    assert one.trades > 3
    assert_outcomes(walk.outcomes_of(np.array([one]).T), wanted)


@pytest.mark.parametrize("tick", [None, 1.0])
@pytest.mark.parametrize(("fast", "slow"), [(1, 2), (5, 20), (20, 50), (3, 500)])
def test_one_sma_cross_is_its_indicators_crossings_and_walk(fast, slow, tick):
    prices = random_prices(400, seed=11, tick=tick)
    near, far = sma(prices.close, fast), sma(prices.close, slow)
    fires = [pack(cross(near, far)[None]) for cross in (crosses_above, crosses_below)]
    signals = Signals(entry=fires[0], exit=fires[1])
    found = sma_cross_backtest(prices, fast, slow, COSTS)
    wanted = walk_reference.walk(prices, signals, None, lane(), COSTS)
    assert_outcomes(walk.outcomes_of(np.array([found]).T), wanted)


def test_one_backtest_refuses_what_it_cannot_run():
    prices, signals, table, _ = case(50, 1)
    entry, exit_ = signals.entry[0], signals.exit[0]
    with pytest.raises(ValueError, match="walk counts whole ones"):
        backtest_one(prices, entry, exit_, WHOLE)
    with pytest.raises(ValueError, match="walk counts whole ones"):
        sma_cross_backtest(prices, 5, 20, WHOLE)
    with pytest.raises(ValueError, match="fast window 20 must be shorter than slow window 20"):
        sma_cross_backtest(prices, 20, 20, FREE)
    with pytest.raises(ValueError, match="fee_rate 2"):
        backtest_one(prices, entry, exit_, replace(FREE, fee_rate=2.0))
    with pytest.raises(ValueError, match="needs an ATR of 50 bars: 0"):
        backtest_one(prices, entry, exit_, FREE, stop=1.0)
    with pytest.raises(ValueError, match="words hold fewer than 50 bars"):
        backtest_one(prices, entry[:0], exit_[:0], FREE)
    with pytest.raises(ValueError, match="stop -1"):
        backtest_one(prices, entry, exit_, FREE, atr=table[0], stop=-1.0)
    prices.low[7] = np.nan
    with pytest.raises(ValueError, match="low of bar 7 is nan"):
        backtest_one(prices, entry, exit_, FREE)
    with pytest.raises(ValueError, match="low of bar 7 is nan"):
        sma_cross_backtest(prices, 5, 20, FREE)


# Money in integers


@given(st.decimals("0.0001", 10**5, places=6), st.sampled_from([0.0, 5.0, 3.3, 12.5, 100.0]))
def test_fills_at_the_open_are_those_of_the_exchange(price, slippage_bps):
    costs = Costs(slippage_bps=slippage_bps)
    terms = Terms(slippage=costs.slippage, whole_shares=True)
    bought, sold, limited = fills_at_open(np.array([float(price)]), terms)[:, 0] / 10_000
    assert bought == float(costs.slipped(float(price), Side.BUY))
    assert sold == float(costs.slipped(float(price), Side.SELL))
    assert limited == float(price.quantize(Decimal("0.0001"), rounding=ROUND_HALF_EVEN))


@given(st.one_of(st.floats(1e-5, 1e6), st.integers(1, 10**8).map(lambda ticks: ticks / 100)))
def test_levels_are_rounded_down_to_ticks_as_orders_are(price):
    assert Decimal(tick_units(price)) / 10_000 == tick_down(price)


@given(st.integers(1, 10**12), st.sampled_from([0.0, 5.0, 3.3, 12.5, 100.0]))
def test_a_level_is_sold_at_as_at_the_exchange(level, slippage_bps):
    costs = Costs(slippage_bps=slippage_bps)
    rates = rates_row(Terms(slippage=costs.slippage))
    wanted = costs.slipped(Decimal(level) / 10_000, Side.SELL)
    assert Decimal(sold_at(level, rates[0])) / 10_000 == wanted


@given(
    st.integers(0, 2**53 - 1),
    st.sampled_from([0.0, 10.0, 12.5, 12.3]),
    st.sampled_from([0.0, 1.0, 2.505, 0.00499]),
)
def test_a_fee_is_that_of_the_exchange(notional, fee_bps, commission):
    costs = Costs(fee_bps=fee_bps, commission_per_order=commission)
    _, fee, order = rates_row(Terms(fee_rate=costs.fee_rate, commission_per_order=commission))
    assert Decimal(fee_of(notional, fee, order)) / 10_000 == costs.fee(Decimal(notional) / 10_000)


def test_an_account_beyond_what_is_counted_is_refused_and_never_wraps():
    rows = flat_bars(1.0, 1.0, 900_000.0, 900_000.0)
    given_ = (priced(rows), fired(4, enter=[0], leave=[1]), None, lane())
    terms = Terms(cash=1e9, slippage=0.0, whole_shares=True)
    with pytest.raises(ValueError, match="grew beyond what is counted in whole shares"):
        walk.walk(*given_, terms)
    with pytest.raises(ValueError, match=r"1000000000000\.0 USD is beyond what is counted"):
        walk.walk(*given_, replace(terms, cash=1e12))
    with pytest.raises(ValueError, match="USD is beyond what is counted"):
        walk.walk(priced(flat_bars(1e12, 1e12)), fired(2), None, lane(), terms)


def test_an_account_that_lost_all_but_a_rounding_grows_as_the_metrics_say():
    """A fee of 90 % a side leaves about a twentieth of the cash after each trade."""
    prices = priced(flat_bars(*[10.0] * 70))
    terms = Terms(slippage=0.0, fee_rate=0.9, periods_per_year=1.0)
    for trades in range(1, 16):
        signals = fired(70, enter=range(0, 2 * trades, 2), leave=range(1, 70, 2))
        found, expected = (
            engine.walk(prices, signals, None, lane(), terms) for engine in (walk, walk_reference)
        )
        assert_allclose(found.annual_return, expected.annual_return, rtol=1e-15)
    assert np.isnan(found.annual_return[0])


def test_one_backtest_takes_arrays_of_any_layout_and_whole_numbers_without_compiling_anew():
    prices, bits = random_prices(130, seed=5), random_rules(130, seed=6)
    table = ranges(prices)
    terms = Terms(cash=1_000.0)
    known = backtest_one(
        prices, bits.entry[1], bits.exit[1], terms, atr=table[0], stop=2.0, target=3.0
    )
    versions = len(walk_one._backtest_one.signatures)
    fixed = prices.close.copy()
    fixed.flags.writeable = False
    odd = replace(prices, close=fixed, open=np.repeat(prices.open, 2)[::2])
    entry, exits = (np.repeat(words[1], 2)[::2] for words in (bits.entry, bits.exit))
    found = backtest_one(
        odd, entry, exits, replace(terms, cash=1_000), atr=np.asfortranarray(table.T).T[0],
        stop=2, target=3, max_bars=np.int64(0),
    )  # fmt: skip
    assert found == known
    assert len(walk_one._backtest_one.signatures) == versions
