"""What every strategy promises: the rule as written, one crossing at a time, on known bars only."""

from __future__ import annotations

import math

import numpy as np
import pytest
import talib
from numpy.testing import assert_array_equal

from strategies.kernels.dispatch import kernels
from strategies.registry import STRATEGIES, make_strategy
from tests.strategies.market import adversarial, closes, reference_bars, walk, with_holes
from trader.core.canonical import canonical_json
from trader.core.ports import Strategy

REFERENCE, CPU = kernels("reference"), kernels("cpu")
RULES = [name for name in STRATEGIES if name != "buy_and_hold"]
MARKETS = [reference_bars(), walk(1200, seed=61), walk(800, seed=62, tick=1.0)]


def make(name, backend=REFERENCE, **parameters) -> Strategy:
    return make_strategy(name, parameters, backend)


def crossed(line, level, t):
    """+1 when `line` crosses above `level` on bar t, -1 when below, else 0."""
    now, before = line[t] - level[t], line[t - 1] - level[t - 1]
    if t == 0 or math.isnan(now) or math.isnan(before):
        return 0
    if now > 0 and not before > 0:
        return 1
    return -1 if now < 0 and not before < 0 else 0


def lines_by_talib(name, bars):
    """(line, level it must rise through, level it must fall through), each [T], of the defaults."""
    close, flat = bars.close, np.ones(len(bars))
    if name == "atr_trend":
        average = talib.SMA(close, 50)
        return close, average + 0.5 * talib.ATR(bars.high, bars.low, close, 14), average
    if name == "rsi_reversion":
        return talib.RSI(close, 14), 30.0 * flat, 70.0 * flat
    if name == "macd_momentum":
        line, signal, _ = talib.MACD(close, 12, 26, 9)
        return line, signal, signal
    slow = talib.SMA(close, 50)
    return talib.SMA(close, 20), slow, slow


@pytest.mark.parametrize("bars", MARKETS[:2], ids=["real", "walk"])
@pytest.mark.parametrize("name", RULES)
def test_the_rule_fires_where_its_words_say(name, bars):
    found = make(name).crossings(bars)
    line, rise, fall = lines_by_talib(name, bars)
    bar = range(len(bars))
    assert_array_equal(found.entry, [crossed(line, rise, t) == 1 for t in bar])
    assert_array_equal(found.exit, [crossed(line, fall, t) == -1 for t in bar])
    assert found.entry.any() or len(bars) < 300
    assert not (found.entry & found.exit).any()


@pytest.mark.parametrize("bars", MARKETS, ids=["real", "walk", "ties"])
@pytest.mark.parametrize("name", STRATEGIES)
def test_both_backends_fire_on_the_same_bars(name, bars):
    one, other = make(name).crossings(bars), make(name, CPU).crossings(bars)
    assert_array_equal(one.entry, other.entry)
    assert_array_equal(one.exit, other.exit)
    assert make(name).features(bars, -1) == make(name, CPU).features(bars, -1)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_later_bar_changes_no_earlier_signal_feature_or_reason(name):
    bars = walk(260, seed=63, tick=0.5)
    strategy = make(name)
    full = strategy.crossings(bars)
    for size in (1, 15, 34, 35, 51, 52, 120, 200, 259):
        part = strategy.crossings(bars.head(size))
        assert_array_equal(part.entry, full.entry[:size])
        assert_array_equal(part.exit, full.exit[:size])
        at = size - 1
        assert strategy.features(bars.head(size), at) == strategy.features(bars, at)
        assert strategy.reason(bars.head(size), at) == strategy.reason(bars, at)


@pytest.mark.parametrize("name", RULES)
def test_too_little_history_or_a_flat_market_fires_nothing(name):
    for bars in (walk(0), walk(1), walk(14), walk(33), closes(np.full(200, 0.1))):
        found = make(name).crossings(bars)
        assert found.entry.shape == found.exit.shape == (len(bars),)
        assert found.entry.dtype == found.exit.dtype == np.bool_
        assert not found.entry.any()
        assert not found.exit.any()


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("market", adversarial())
def test_no_market_breaks_a_strategy(name, market):
    bars = adversarial()[market]
    with np.errstate(over="ignore", invalid="ignore"):
        found = make(name).crossings(bars)
        assert found.entry.shape == found.exit.shape == (len(bars),)
        if len(bars):
            canonical_json(make(name).features(bars, -1))  # NaN cannot be recorded
            assert "\n" not in make(name).reason(bars, -1)


@pytest.mark.parametrize("name", RULES)
def test_a_missing_bar_never_fires(name):
    bars = walk(300, seed=64)
    fired = np.flatnonzero(make(name).crossings(bars).entry)
    for at in fired[-2:]:
        for hole in (at - 1, at):
            found = make(name).crossings(with_holes(bars, ("close", hole, np.nan)))
            assert not found.entry[at]
            assert not found.exit[at]


@pytest.mark.parametrize("name", RULES)
def test_the_entry_rule_names_the_two_features_that_crossed(name):
    strategy, bars = make(name), walk(1200, seed=66)
    value, line = strategy.entry_rule
    for at in np.flatnonzero(strategy.crossings(bars).entry):
        seen = strategy.features(bars, at)
        assert seen[value] > seen[line]
        assert seen[f"{value}_previous"] <= seen[f"{line}_previous"]
    assert make("buy_and_hold").entry_rule is None


def test_buy_and_hold_wants_to_be_long_on_every_bar_and_never_leaves():
    found = make("buy_and_hold").crossings(walk(5))
    assert found.entry.all()
    assert not found.exit.any()
    assert make("buy_and_hold").parameters == {}


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_knows_its_name_style_and_parameters(name):
    strategy = make(name)
    assert strategy.name == name
    assert strategy.style in {"trend", "mean_reversion", "momentum", "benchmark"}
    assert canonical_json(strategy.parameters)
    assert (strategy.style == "benchmark") == (name == "buy_and_hold")


def test_features_are_the_numbers_of_that_bar_and_of_the_one_before():
    bars = walk(120, seed=65)
    seen = make("atr_trend").features(bars, 99)
    average, swing = talib.SMA(bars.close, 50), talib.ATR(bars.high, bars.low, bars.close, 14)
    assert seen == pytest.approx(
        {
            "close": bars.close[99],
            "close_previous": bars.close[98],
            "sma_50": average[99],
            "sma_50_previous": average[98],
            "atr_14": swing[99],
            "atr_14_previous": swing[98],
            "entry_line": average[99] + 0.5 * swing[99],
            "entry_line_previous": average[98] + 0.5 * swing[98],
        }
    )
    assert make("rsi_reversion", rsi_window=7).features(bars, -1)["rsi_7"] == pytest.approx(
        talib.RSI(bars.close, 7)[-1]
    )
    assert set(make("macd_momentum").features(bars, 119)) >= {
        "macd_line",
        "macd_line_previous",
        "macd_signal",
        "macd_signal_previous",
        "macd_histogram",
    }
    assert set(make("sma_cross").features(bars, 119)) >= {"sma_20", "sma_50_previous"}


def test_a_number_that_does_not_exist_yet_is_left_out_of_the_features():
    assert set(make("atr_trend").features(walk(30), 0)) == {"close"}
    assert set(make("atr_trend").features(walk(50), 49)) >= {"sma_50", "entry_line"}
    assert "sma_50_previous" not in make("atr_trend").features(walk(50), 49)
    with pytest.raises(IndexError):
        make("atr_trend").features(walk(30), 30)


def test_the_reason_gives_the_numbers_that_crossed():
    close = np.concatenate((np.full(60, 100.0), [99.0, 110.0, 90.0, 90.0]))
    trend, bars = make("atr_trend"), closes(close)
    seen = trend.features(bars, 61)
    line = f"SMA 50 + 0.5 ATR = {seen['entry_line']:.2f}"
    assert trend.reason(bars, 61) == f"close 110.00 crossed above {line}"
    assert trend.reason(bars, 62) == f"close 90.00 crossed below SMA 50 = {close[13:63].mean():.2f}"
    assert trend.reason(bars, 63).startswith("no crossing: close 90.00, SMA 50 + 0.5 ATR = ")
    assert trend.reason(bars, 0) == (
        "no crossing: close 100.00, SMA 50 + 0.5 ATR = unknown, SMA 50 = unknown"
    )
    falling = closes([*range(100, 80, -1), 95.0, 96.0, 97.0, 98.0, 60.0])
    reversion = make("rsi_reversion", oversold=20, overbought=40)
    found = reversion.crossings(falling)
    assert_array_equal(np.flatnonzero(found.entry), [20])
    assert reversion.reason(falling, 20).startswith("RSI 14 crossed up through 20: 0.00 to ")
    assert_array_equal(np.flatnonzero(found.exit), [24])
    assert " crossed down through 40: " in reversion.reason(falling, 24)
    cross = make("sma_cross", fast=1, slow=2)
    assert cross.reason(closes([2.0, 1.0, 4.0]), 2) == "SMA 1 4.00 crossed above SMA 2 = 2.50"
    assert cross.reason(closes([1.0, 2.0, 1.0]), 2) == "SMA 1 1.00 crossed below SMA 2 = 1.50"
    wave = closes(100.0 + 5.0 * np.sin(np.arange(90) / 5.0))
    momentum = make("macd_momentum")
    found = momentum.crossings(wave)
    first = int(np.flatnonzero(found.entry)[0])
    assert momentum.reason(wave, first).startswith("MACD 12/26 line ")
    assert " crossed above signal 9 = " in momentum.reason(wave, first)
    assert " crossed below signal 9 = " in momentum.reason(wave, np.flatnonzero(found.exit)[0])
    assert make("buy_and_hold").reason(wave, 0) == "always long; close 100.00"
