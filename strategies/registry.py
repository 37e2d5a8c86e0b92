"""Every strategy by name, and the one place that builds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import MappingProxyType
from typing import Any

from strategies.atr_trend import AtrTrend
from strategies.buy_and_hold import BuyAndHold
from strategies.kernels.dispatch import KernelSet
from strategies.macd_momentum import MacdMomentum
from strategies.names import unknown
from strategies.rsi_reversion import RsiReversion
from strategies.sma_cross import SmaCross
from trader.core.errors import ConfigError, UsageError
from trader.core.ports import Strategy

AnyStrategy = (
    type[AtrTrend] | type[BuyAndHold] | type[MacdMomentum] | type[RsiReversion] | type[SmaCross]
)

STRATEGIES: Mapping[str, AnyStrategy] = MappingProxyType(
    {
        strategy.name: strategy
        for strategy in (AtrTrend, RsiReversion, MacdMomentum, SmaCross, BuyAndHold)
    }
)


def default_parameters(name: str) -> dict[str, float]:
    """The parameters of the strategy `name` unless config says otherwise; UsageError if unknown."""
    return {
        field.name: field.default for field in fields(_find(name)) if field.default is not MISSING
    }


def make_strategy(name: str, parameters: Mapping[str, float], kernels: KernelSet) -> Strategy:
    """The strategy `name` with `parameters` over its defaults.

    A whole number may be written as 50 or 50.0. Raises UsageError for an unknown name and
    ConfigError for a parameter that does not exist or has a value the rule cannot work with.
    """
    strategy = _find(name)
    defaults = default_parameters(name)
    for parameter in parameters:
        if parameter not in defaults:
            raise ConfigError(unknown(f"parameter of {name}", parameter, defaults))
    chosen: dict[str, Any] = {
        parameter: _as_default(value, defaults[parameter])
        for parameter, value in parameters.items()
    }
    try:
        return strategy(kernels=kernels, **chosen)
    except (TypeError, ValueError) as exc:
        raise ConfigError(f"strategy {name}: {exc}") from exc


def _find(name: str) -> AnyStrategy:
    if name not in STRATEGIES:
        raise UsageError(unknown("strategy", name, STRATEGIES))
    return STRATEGIES[name]


def _as_default(value: float, default: float) -> float:
    whole = isinstance(default, int) and isinstance(value, float) and value.is_integer()
    return int(value) if whole else value
