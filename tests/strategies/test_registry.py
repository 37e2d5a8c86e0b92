"""Strategies are found by name, built from config's numbers, and refused with a remedy."""

from __future__ import annotations

import re

import pytest

from strategies.atr_trend import AtrTrend
from strategies.kernels.dispatch import kernels
from strategies.macd_momentum import MacdMomentum
from strategies.registry import STRATEGIES, default_parameters, make_strategy
from strategies.rsi_reversion import RsiReversion
from strategies.sma_cross import SmaCross
from trader.core.errors import ConfigError, UsageError

BACKEND = kernels("reference")


def test_the_five_strategies_and_their_defaults():
    assert {name: default_parameters(name) for name in STRATEGIES} == {
        "atr_trend": {"sma_window": 50, "atr_window": 14, "band_atr": 0.5},
        "rsi_reversion": {"rsi_window": 14, "oversold": 30.0, "overbought": 70.0},
        "macd_momentum": {"fast": 12, "slow": 26, "signal": 9},
        "sma_cross": {"fast": 20, "slow": 50},
        "buy_and_hold": {},
    }


def test_parameters_replace_defaults_and_whole_numbers_may_be_floats():
    strategy = make_strategy("sma_cross", {"fast": 5.0}, BACKEND)
    assert strategy.parameters == {"fast": 5, "slow": 50}
    assert isinstance(strategy.parameters["fast"], int)
    assert make_strategy("atr_trend", {"band_atr": 1}, BACKEND).parameters["band_atr"] == 1


def test_an_unknown_name_is_refused_with_the_nearest_one():
    with pytest.raises(UsageError, match="'atr_trned' does not exist; did you mean atr_trend"):
        make_strategy("atr_trned", {}, BACKEND)
    with pytest.raises(UsageError, match="choose one of atr_trend, buy_and_hold, "):
        default_parameters("zzz")


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        (
            "sma_cross",
            {"fats": 5},
            "parameter of sma_cross 'fats' does not exist; did you mean fast?",
        ),
        ("buy_and_hold", {"window": 5}, "parameter of buy_and_hold 'window' does not exist"),
        ("sma_cross", {"kernels": 5}, "parameter of sma_cross 'kernels' does not exist"),
        ("sma_cross", {"fast": 50}, "strategy sma_cross: fast 50 must be below slow 50"),
        ("sma_cross", {"fast": 5.5}, "fast 5.5 must be a whole number of bars from 1 up"),
        ("atr_trend", {"sma_window": 0}, "sma_window 0 must be a whole number of bars from 1 up"),
        ("atr_trend", {"atr_window": True}, "atr_window True must be a whole number of bars"),
        ("atr_trend", {"band_atr": -0.1}, "band_atr -0.1 must be a finite number from 0 up"),
        ("atr_trend", {"band_atr": float("nan")}, "band_atr nan must be a finite number"),
        ("atr_trend", {"band_atr": "wide"}, "strategy atr_trend: "),
        ("rsi_reversion", {"oversold": 80}, "oversold 80 must be below overbought 70.0"),
        ("rsi_reversion", {"oversold": 0.0}, "oversold 0.0 must lie between 0 and 100"),
        ("rsi_reversion", {"overbought": 100.0}, "overbought 100.0 must lie between 0 and 100"),
        ("macd_momentum", {"fast": 30}, "fast 30 must be below slow 26"),
        ("macd_momentum", {"signal": -1}, "signal -1 must be a whole number of bars from 1 up"),
    ],
)
def test_a_bad_parameter_is_refused_by_name_and_value(name, parameters, message):
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        make_strategy(name, parameters, BACKEND)
    assert len(caught.value.problems) == 1
    assert "\n" not in str(caught.value)


def test_a_strategy_built_by_hand_checks_its_parameters_too():
    with pytest.raises(ValueError, match="fast 9 must be below slow 9"):
        SmaCross(kernels=BACKEND, fast=9, slow=9)
    with pytest.raises(ValueError, match="fast 26 must be below slow 26"):
        MacdMomentum(kernels=BACKEND, fast=26)
    with pytest.raises(ValueError, match="oversold"):
        RsiReversion(kernels=BACKEND, oversold=-1.0)
    with pytest.raises(ValueError, match="atr_window"):
        AtrTrend(kernels=BACKEND, atr_window=0)
