"""The event-driven engine against the reference, bar by bar, and the laws of any backtest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies.kernels.engines import events, walk_reference
from strategies.kernels.engines.event_pairs import keys_of
from strategies.kernels.engines.event_tables import MOST_BARS, event_tables
from strategies.kernels.engines.lanes import METRICS, Lanes, Prices, Signals, Terms, pack
from strategies.kernels.engines.masks import padded_rows
from strategies.kernels.reference import atr
from tests.strategies.market import closes, series, walk

EXACT = ("final_equity", "trades", "open_trades", "hit_rate", "exposure")
FREE = Terms(slippage=0.0)
USUAL = Terms()
DEAR = Terms(slippage=0.001, fee_rate=0.002, commission_per_order=3.0)
POOR = Terms(cash=1_000.0, commission_per_order=300.0)  # orders eat the account up
LAST_ONE = Terms(cash=3.0, commission_per_order=1.0)


def prices_of(bars, first=0):
    names = ("open", "high", "low", "close", "volume")
    return Prices(**{name: getattr(bars, name) for name in names}, first=first)


def swings(bars):
    return np.stack([atr(bars.high, bars.low, bars.close, window) for window in (2, 14)])


def random_lanes(random, count, rules):
    stops, targets = (
        np.where(random.random(count) < 0.4, 0.0, random.choice([0.3, 1.0, 2.0, 4.0], count))
        for _ in range(2)
    )
    return Lanes(
        signal=random.integers(0, rules, count),
        atr=random.integers(0, 2, count),
        stop=stops,
        target=targets,
        trail=np.zeros(count),
        max_bars=np.zeros(count, dtype=np.int64),
    )


def random_signals(random, rules, bars, entries, exits):
    fires = (random.random((rules, bars)) < share for share in (entries, exits))
    return Signals(**dict(zip(("entry", "exit"), map(pack, fires), strict=True)))


def one_lane(entries, exits, bars, *, stop=0.0, target=0.0):
    fires = np.zeros((2, 1, bars), dtype=np.bool_)
    fires[0, 0, list(entries)] = fires[1, 0, list(exits)] = True
    lanes = Lanes(
        signal=np.zeros(1, dtype=np.int64),
        atr=np.zeros(1, dtype=np.int64),
        stop=np.array([stop]),
        target=np.array([target]),
        trail=np.zeros(1),
        max_bars=np.zeros(1, dtype=np.int64),
    )
    return Signals(entry=pack(fires[0]), exit=pack(fires[1])), lanes


def assert_equal(found, expected):
    for name in METRICS:
        one, other = getattr(found, name), getattr(expected, name)
        if name in EXACT:
            np.testing.assert_array_equal(one, other, err_msg=name)
        else:
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12, err_msg=name)


def assert_same_bits(found, expected):
    for name in METRICS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


@pytest.mark.parametrize("terms", [FREE, USUAL, DEAR, POOR, LAST_ONE])
@pytest.mark.parametrize("tick", [None, 1.0])
def test_1_200_random_lanes_equal_the_reference_on_one_thread_and_two(terms, tick):
    """Stops, targets, gaps and ties, short and long series, with and without a warm-up."""
    random = np.random.default_rng(int(terms.cash) + bool(tick))
    traded = 0
    for size, first in ((333, 0), (200, 60), (65, 3)):
        bars = walk(size, seed=size, tick=tick, scale=30.0)
        prices, table = prices_of(bars, first), swings(bars)
        signals = random_signals(random, 8, size, random.choice([0.05, 0.3]), 0.1)
        lanes = random_lanes(random, 40, 8)
        arguments = (prices, signals, table, lanes, terms)
        found = events.walk_events(*arguments)
        assert_equal(found, walk_reference.walk(*arguments))
        assert_same_bits(events.walk_events(*arguments, threads=2), found)
        traded += found.trades.sum()
    assert traded > (200 if terms.cash > 2_000.0 else 30)


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from([1.0, 2.0, 2.5, 3.0, 4.0, 8.0]), min_size=1, max_size=70),
    st.sampled_from([FREE, USUAL, DEAR]),
    st.data(),
)
def test_any_small_series_equals_the_reference(values, terms, data):
    """Few different prices, so that opens, levels and closes coincide."""
    close = np.array(values)
    pick = st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=close.size, max_size=close.size).map(
        np.array
    )
    open_ = close * data.draw(pick)
    high, low = np.maximum(open_, close), np.minimum(open_, close)
    bars = series(open_, high * 1.5, low / 1.5, close, np.ones(close.size))
    random = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    first = data.draw(st.integers(0, close.size))
    arguments = (
        prices_of(bars, first),
        random_signals(random, 4, close.size, 0.4, 0.2),
        swings(bars),
        random_lanes(random, 16, 4),
        terms,
    )
    assert_equal(events.walk_events(*arguments), walk_reference.walk(*arguments))


@pytest.mark.parametrize(
    "close",
    [
        np.full(200, 10.0),
        100.0 * 1.01 ** np.arange(200),
        100.0 * 0.99 ** np.arange(200),
        np.concatenate([100.0 * 1.01 ** np.arange(100), np.full(100, 7.0)]),
        np.concatenate([np.full(60, 10.0), [1e14], 10.0 * 1.001 ** np.arange(140)]),
        np.concatenate([[1e-3, 1e9], walk(198, seed=8).close]),
    ],
    ids=["flat", "growing", "falling", "growing then flat", "a huge print", "a huge start"],
)
def test_returns_that_are_all_but_equal_are_counted_without_cancellation(close):
    random = np.random.default_rng(3)
    bars = closes(close)
    for terms in (FREE, USUAL):
        for exits in (0.0, 0.02, 0.3):
            signals = random_signals(random, 6, close.size, 0.2, exits)
            lanes = replace(random_lanes(random, 20, 6), stop=np.zeros(20), target=np.zeros(20))
            arguments = (prices_of(bars), signals, None, lanes, terms)
            assert_equal(events.walk_events(*arguments), walk_reference.walk(*arguments))


def final(opens, highs, lows, close, *, stop, target=0.0, exits=(), entries=(2,)):
    """One lane of 100 USD that decides at 100, without costs, where the ATR is 2."""
    bars = series(opens, highs, lows, close, np.ones(len(close)))
    signals, lanes = one_lane(entries, exits, len(close), stop=stop, target=target)
    table = np.full((1, len(close)), 2.0)
    found = events.walk_events(
        prices_of(bars), signals, table, lanes, Terms(cash=100.0, slippage=0.0)
    )
    return found


def test_one_flat_bar_among_thousands_of_equal_returns_is_all_the_variance_there_is():
    """The squares and the squared mean all but cancel."""
    bars = closes(1.0003 ** np.arange(20_000))
    signals, lanes = one_lane((0,), (), 20_000)
    arguments = (prices_of(bars), signals, None, lanes, FREE)
    found, expected = events.walk_events(*arguments), walk_reference.walk(*arguments)
    np.testing.assert_allclose(found.sharpe, expected.sharpe, rtol=1e-11)


CALM = [100.0, 100.0, 100.0]


@pytest.mark.parametrize(
    ("bar", "left", "where"),
    [
        ((90.0, 91.0, 89.0, 90.0), 90.0, "a gap through the stop leaves at the open"),
        ((100.0, 112.0, 94.0, 105.0), 96.0, "stop and target in one bar: the stop"),
        ((115.0, 116.0, 114.0, 115.0), 115.0, "a gap through the target leaves at the open"),
        ((100.0, 106.0, 97.0, 99.0), 104.0, "the target is left at its level"),
        ((96.0, 99.0, 96.0, 98.0), 96.0, "an open at the stop is a gap"),
        ((100.0, 103.0, 96.5, 99.0), None, "neither is reached"),
    ],
)
def test_a_position_leaves_where_the_rules_say(bar, left, where):
    """Entry at 100 on bar 3; stop 96, target 104; `bar` is bar 4."""
    columns = [[*CALM, 100.0, price, price] for price in bar]
    opens, highs, lows, close = columns
    highs[3], lows[3], close[3] = 101.0, 99.0, 100.0
    for column, price in zip(columns, (100.0, 100.5, 99.5, 100.0), strict=True):
        column[5] = price
    found = final(opens, highs, lows, close, stop=2.0, target=2.0)
    if left is None:
        assert (found.trades[0], found.open_trades[0], found.final_equity[0]) == (0, 1, 100.0)
    else:
        assert found.trades[0] == 1, where
        assert found.final_equity[0] == pytest.approx(left, rel=1e-15), where


def test_a_stop_is_live_on_the_entry_bar_and_an_open_beyond_it_leaves_at_once():
    touched = final([*CALM, 100.0], [*CALM, 101.0], [*CALM, 95.0], [*CALM, 99.0], stop=2.0)
    assert (touched.trades[0], touched.final_equity[0], touched.exposure[0]) == (1, 96.0, 0.0)
    beyond = final([*CALM, 80.0], [*CALM, 99.0], [*CALM, 79.0], [*CALM, 99.0], stop=2.0)
    assert (beyond.trades[0], beyond.final_equity[0]) == (1, 100.0)


def test_an_exit_pending_at_the_open_comes_before_the_stop_of_that_bar():
    columns = [[*CALM, 100.0, price] for price in (98.0, 98.0, 90.0, 91.0)]
    found = final(*columns, stop=2.0, exits=(3,))
    assert (found.trades[0], found.final_equity[0]) == (1, 98.0)


def test_the_newest_bar_decides_nothing_and_an_open_position_is_marked_at_its_close():
    bars = closes([10.0, 10.0, 10.0, 12.0])
    signals, lanes = one_lane((1,), (3,), 4)
    found = events.walk_events(prices_of(bars), signals, None, lanes, FREE)
    assert (found.trades[0], found.open_trades[0], found.final_equity[0]) == (0, 1, 120_000.0)
    signals, lanes = one_lane((3,), (), 4)
    assert events.walk_events(prices_of(bars), signals, None, lanes, FREE).open_trades[0] == 0


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(20, 200), st.data())
def test_later_bars_change_nothing_of_an_earlier_period(seed, size, data):
    """Tables over all bars, a period of some: the same bits as if the rest did not exist."""
    random = np.random.default_rng(seed)
    bars = walk(size, seed=seed)
    last = data.draw(st.integers(1, size - 1))
    first = data.draw(st.integers(0, last))
    signals, lanes = random_signals(random, 4, size, 0.2, 0.1), random_lanes(random, 12, 4)
    market = events.Market(
        tables=event_tables(prices_of(bars), USUAL), first=first, last=last, terms=USUAL
    )
    found = events.run_rows(
        events.listed(lanes.signal, lanes.signal, lanes.atr, lanes.stop, lanes.target),
        0,
        len(lanes),
        entry=events.with_summary(signals.entry, size),
        exits=events.with_summary(signals.exit, size),
        market=market,
        atr_table=swings(bars),
        threads=1,
    )
    seen = bars.head(last + 1)
    expected = walk_reference.walk(
        prices_of(seen, first), signals, swings(bars)[:, : last + 1], lanes, USUAL
    )
    assert_equal(found, expected)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(-20, 20))
def test_prices_scaled_by_a_power_of_two_change_no_figure(seed, exponent):
    random = np.random.default_rng(seed)
    bars, factor = walk(150, seed=seed), 2.0**exponent
    signals, lanes = random_signals(random, 4, 150, 0.2, 0.1), random_lanes(random, 12, 4)
    prices, table = prices_of(bars), swings(bars)
    columns = {name: getattr(prices, name) * factor for name in ("open", "high", "low", "close")}
    found = events.walk_events(prices, signals, table, lanes, USUAL)
    scaled = events.walk_events(replace(prices, **columns), signals, table * factor, lanes, USUAL)
    assert_same_bits(scaled, found)


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_costs_only_take_from_the_same_trades(seed):
    random = np.random.default_rng(seed)
    bars = walk(150, seed=seed)
    signals = random_signals(random, 4, 150, 0.2, 0.1)
    lanes = replace(random_lanes(random, 4, 4), stop=np.zeros(4), target=np.zeros(4))
    free = events.walk_events(prices_of(bars), signals, None, lanes, FREE)
    for terms in (USUAL, replace(FREE, fee_rate=0.001), replace(FREE, commission_per_order=1.0)):
        found = events.walk_events(prices_of(bars), signals, None, lanes, terms)
        np.testing.assert_array_equal(found.trades, free.trades)
        np.testing.assert_array_equal(found.exposure, free.exposure)
        cost = found.trades + found.open_trades > 0
        assert (found.final_equity[cost] < free.final_equity[cost]).all()


@pytest.mark.parametrize("stop", [0.0, 1.0])
@pytest.mark.parametrize("crowded", [False, True])
def test_pairs_of_lines_trade_as_their_crossings_do(stop, crowded):
    """Ties, starts above and below, lines that begin late; keys that cannot tell them apart too."""
    random = np.random.default_rng(11)
    bars = walk(400, seed=2)
    lines = np.round(np.cumsum(random.normal(0.0, 1.0, (9, 400)), axis=1) / 2.0)
    lines[4:] = lines[4:] + np.round(random.normal(0.0, 0.3, (5, 400)))
    begins = random.integers(0, 120, 9)
    for line, begin in zip(lines, begins, strict=True):
        line[:begin] = np.nan
    if crowded:
        lines[8] = 1e12
        begins[8] = 0
    table = padded_rows(*lines)
    pairs = [(i, j) for i in range(9) for j in range(9) if i != j]
    one, other = (np.array(rows) for rows in zip(*pairs, strict=True))
    above = lines[one][:, 1:] > lines[other][:, 1:]
    not_above = lines[one][:, :-1] <= lines[other][:, :-1]
    below = lines[one][:, 1:] < lines[other][:, 1:]
    not_below = lines[one][:, :-1] >= lines[other][:, :-1]
    fires = np.zeros((2, len(pairs), 400), dtype=np.bool_)
    fires[0, :, 1:], fires[1, :, 1:] = above & not_above, below & not_below
    count = len(pairs)
    lanes = Lanes(
        signal=np.arange(count),
        atr=np.zeros(count, dtype=np.int64),
        stop=np.full(count, stop),
        target=np.zeros(count),
        trail=np.zeros(count),
        max_bars=np.zeros(count, dtype=np.int64),
    )
    for first, last in ((0, 399), (130, 399), (64, 300), (5, 6)):
        found = events.run_pairs(
            events.listed(one, other, lanes.atr, lanes.stop, lanes.target),
            0,
            count,
            table=table,
            keys=keys_of(table),
            begins=begins,
            market=events.Market(
                tables=event_tables(prices_of(bars), USUAL), first=first, last=last, terms=USUAL
            ),
            atr_table=swings(bars),
            threads=2,
        )
        expected = walk_reference.walk(
            prices_of(bars.head(last + 1), first),
            Signals(entry=pack(fires[0]), exit=pack(fires[1])),
            swings(bars)[:, : last + 1],
            lanes,
            USUAL,
        )
        assert_equal(found, expected)


def test_what_this_engine_is_not_made_for_is_refused_by_name():
    bars = walk(40)
    signals, lanes = one_lane((3,), (9,), 40)
    arguments = (prices_of(bars), signals, swings(bars))
    with pytest.raises(ValueError, match="whole shares"):
        events.walk_events(*arguments, lanes, replace(USUAL, whole_shares=True))
    with pytest.raises(ValueError, match="trailing"):
        events.walk_events(*arguments, replace(lanes, trail=np.ones(1)), USUAL)
    with pytest.raises(ValueError, match="max_bars"):
        events.walk_events(*arguments, replace(lanes, max_bars=np.ones(1, dtype=np.int64)), USUAL)
    with pytest.raises(ValueError, match="threads 0"):
        events.walk_events(*arguments, lanes, USUAL, threads=0)
    with pytest.raises(ValueError, match="131,073 bars"):
        event_tables(prices_of(closes(np.ones(MOST_BARS + 1))), USUAL)


def test_no_lanes_and_no_bars_are_no_error():
    bars = walk(40)
    signals, lanes = one_lane((3,), (9,), 40)
    assert len(events.walk_events(prices_of(bars), signals, None, lanes.part(0, 0), USUAL)) == 0
    arguments = (prices_of(bars, 40), signals, None, lanes, USUAL)
    assert_equal(events.walk_events(*arguments), walk_reference.walk(*arguments))


def test_a_loss_that_the_sum_of_all_losses_swallows_is_counted_all_the_same():
    """The other losses of the series are 1e17 times as large, so that the sums do not move."""
    close = 100.0 * np.cumprod([1.0, 0.5, 1.5, 0.7, 1.0, 1.5, 1.0 - 1e-9, 1.2, 1.0, 1.0])
    fires = np.zeros((2, 1, close.size), dtype=bool)
    fires[0, 0, 3], fires[1, 0, 7] = True, True
    prices = Prices(open=close, high=close, low=close, close=close, volume=close)
    signals = Signals(entry=pack(fires[0]), exit=pack(fires[1]))
    none, row = np.zeros(1), np.zeros(1, dtype=np.int64)
    lanes = Lanes(signal=row, atr=row, stop=none, target=none, trail=none, max_bars=row)
    found = events.walk_events(prices, signals, None, lanes, FREE)
    expected = walk_reference.walk(prices, signals, None, lanes, FREE)
    assert expected.sortino[0] > 1e6
    np.testing.assert_allclose(found.sortino, expected.sortino, rtol=1e-9)
