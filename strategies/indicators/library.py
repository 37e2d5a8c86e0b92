"""Any indicator of the `ta` library by name, with its unsafe warm-up taken out.

`ta` fills or shortens warm-ups (ATR is 0.0 for 13 bars, ADX for 27, RSI comes a bar early, several
fill gaps with the mean of the whole series, which looks ahead) and fails on short input. Here every
output is NaN until all of its windows are full of real bars.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np

from strategies.kernels.runs import Array, finite_runs, float_arrays
from strategies.names import unknown
from trader.core.errors import UsageError
from trader.core.market import BarSeries

Parameters = Mapping[str, Any]

INPUTS = ("open", "high", "low", "close", "volume")
NEVER = MappingProxyType(
    {
        "fillna": "it would put numbers where there are none",
        "dropnans": "it would shift the values against their bars",
    }
)
MAY_BE_ZERO = frozenset({"offset"})  # below zero it would look ahead
REFUSED = MappingProxyType(
    {
        "ta.trend.KSTIndicator": "it fills its first bars with the mean of the whole series, "
        "and its sums carry that on, so that old values change when a bar is added",
    }
)


def _window(p: Parameters) -> int:
    return int(p["window"])


def _before_window(p: Parameters) -> int:
    return int(p["window"]) - 1


def _oscillator(p: Parameters) -> int:
    return int(p["window_slow"] + p["window_sign"] - 2)


def _no_history(_: Parameters) -> int:
    return 0


# The first bar from which every output rests on full windows of real bars, by indicator.
WARM_UPS: Mapping[str, Callable[[Parameters], int]] = MappingProxyType(
    {
        "ta.momentum.AwesomeOscillatorIndicator": lambda p: max(p["window1"], p["window2"]) - 1,
        "ta.momentum.KAMAIndicator": _window,
        "ta.momentum.PercentagePriceOscillator": _oscillator,
        "ta.momentum.PercentageVolumeOscillator": _oscillator,
        "ta.momentum.ROCIndicator": _window,
        "ta.momentum.RSIIndicator": _window,
        "ta.momentum.StochRSIIndicator": lambda p: (
            2 * p["window"] + p["smooth1"] + p["smooth2"] - 3
        ),
        "ta.momentum.StochasticOscillator": lambda p: p["window"] + p["smooth_window"] - 2,
        "ta.momentum.TSIIndicator": lambda p: p["window_slow"] + p["window_fast"] - 1,
        "ta.momentum.UltimateOscillator": lambda p: max(p["window1"], p["window2"], p["window3"]),
        "ta.momentum.WilliamsRIndicator": lambda p: p["lbp"] - 1,
        "ta.others.CumulativeReturnIndicator": _no_history,
        "ta.others.DailyLogReturnIndicator": lambda _: 1,
        "ta.others.DailyReturnIndicator": lambda _: 1,
        "ta.trend.ADXIndicator": lambda p: 2 * p["window"] - 1,
        "ta.trend.AroonIndicator": _window,
        "ta.trend.CCIIndicator": _before_window,
        "ta.trend.DPOIndicator": lambda p: max(p["window"] - 1, p["window"] // 2 + 1),
        "ta.trend.EMAIndicator": _before_window,
        "ta.trend.IchimokuIndicator": lambda p: (
            max(p["window1"], p["window2"], p["window3"]) - 1 + p["visual"] * p["window2"]
        ),
        "ta.trend.MACD": _oscillator,
        "ta.trend.MassIndex": lambda p: 2 * p["window_fast"] + p["window_slow"] - 3,
        "ta.trend.PSARIndicator": lambda _: 2,
        "ta.trend.SMAIndicator": _before_window,
        "ta.trend.STCIndicator": lambda p: (
            p["window_slow"] + 2 * p["cycle"] + p["smooth1"] + p["smooth2"] - 5
        ),
        "ta.trend.TRIXIndicator": lambda p: 3 * p["window"] - 2,
        "ta.trend.VortexIndicator": _window,
        "ta.trend.WMAIndicator": _before_window,
        "ta.volatility.AverageTrueRange": _window,
        "ta.volatility.BollingerBands": _before_window,
        "ta.volatility.DonchianChannel": lambda p: p["window"] - 1 + p["offset"],
        "ta.volatility.KeltnerChannel": lambda p: max(p["window"] - 1, p["window_atr"]),
        "ta.volatility.UlcerIndex": lambda p: 2 * p["window"] - 2,
        "ta.volume.AccDistIndexIndicator": _no_history,
        "ta.volume.ChaikinMoneyFlowIndicator": _before_window,
        "ta.volume.EaseOfMovementIndicator": _window,
        "ta.volume.ForceIndexIndicator": _window,
        "ta.volume.MFIIndicator": _window,
        "ta.volume.NegativeVolumeIndexIndicator": _no_history,
        "ta.volume.OnBalanceVolumeIndicator": _no_history,
        "ta.volume.VolumePriceTrendIndicator": lambda p: p["smoothing_factor"] or 1,
        "ta.volume.VolumeWeightedAveragePrice": _before_window,
    }
)


def list_library() -> tuple[str, ...]:
    """The full names of every indicator that `library_indicator` knows, sorted."""
    return tuple(sorted(WARM_UPS))


def library_indicator(
    name: str, bars: BarSeries, **parameters: float | bool | None
) -> dict[str, Array]:
    """Every output of one `ta` indicator, by the name of the method that returns it, each [T].

    name        full or short: "ta.momentum.RSIIndicator" or "RSIIndicator"
    parameters  those of the indicator, e.g. window=21; the rest keep the library's defaults

    A value is NaN until every window is full and where `ta` divides by zero. A bar that is not
    finite ends a series, and what follows is warmed up anew. RSI is 50 while nothing has moved,
    where `ta` says 100. Raises UsageError for an unknown indicator or parameter, for a value it
    cannot take, and for an indicator that looks ahead.
    """
    full_name = indicator_name(name)
    module, _, short_name = full_name.rpartition(".")
    indicator = getattr(import_module(module), short_name)
    chosen = _checked(full_name, indicator, parameters)
    inputs = tuple(key for key in INPUTS if key in inspect.signature(indicator).parameters)
    arrays = float_arrays(*(getattr(bars, key) for key in inputs))
    outputs = {method: np.full(len(bars), np.nan) for method in _outputs(indicator)}
    warm_up = WARM_UPS[full_name](chosen)
    for run in finite_runs(arrays):
        if run.stop - run.start > warm_up:  # shorter input makes `ta` raise
            columns = {key: x[run] for key, x in zip(inputs, arrays, strict=True)}
            for method, values in _computed(indicator, columns, chosen).items():
                if method == "rsi":
                    values[_has_not_moved(columns["close"])] = 50.0
                values[:warm_up] = np.nan
                outputs[method][run] = values
    return outputs


def indicator_name(name: str) -> str:
    """The full name of an indicator; UsageError with what was meant when there is none."""
    if name in WARM_UPS:
        return name
    for full_name in WARM_UPS:
        if full_name.rpartition(".")[2] == name:
            return full_name
    for full_name, reason in REFUSED.items():
        if name in {full_name, full_name.rpartition(".")[2]}:
            raise UsageError(f"{full_name} is not offered: {reason}")
    known = (full_name.rpartition(".")[2] for full_name in WARM_UPS)
    raise UsageError(unknown("indicator", name.rpartition(".")[2], known))


def _checked(full_name: str, indicator: Any, parameters: Parameters) -> dict[str, Any]:
    """Every parameter of the indicator with its value; whole numbers as int."""
    signature = inspect.signature(indicator).parameters
    accepted = {key: spec for key, spec in signature.items() if key not in (*INPUTS, *NEVER)}
    for key in parameters:
        if key in NEVER:
            raise UsageError(f"{full_name} is not given {key}: {NEVER[key]}")
        if key not in accepted:
            raise UsageError(unknown(f"parameter of {full_name}", key, accepted))
    chosen: dict[str, Any] = {}
    for key, spec in accepted.items():
        value = parameters.get(key, spec.default)
        if value is inspect.Parameter.empty:
            raise UsageError(f"{full_name} has no default {key}; give one, e.g. {key}=20")
        chosen[key] = _value(full_name, key, value, whole=_is_whole(spec))
    return chosen


def _is_whole(spec: inspect.Parameter) -> bool:
    return spec.annotation is not bool and "int" in str(spec.annotation)


def _value(full_name: str, key: str, value: Any, *, whole: bool) -> Any:
    if not whole or value is None:
        return value
    least = 0 if key in MAY_BE_ZERO else 1
    if not float(value).is_integer() or value < least:
        raise UsageError(f"{full_name}: {key} {value} must be a whole number from {least} up")
    return int(value)


def _outputs(indicator: Any) -> tuple[str, ...]:
    methods = inspect.getmembers(indicator, inspect.isfunction)
    return tuple(name for name, _ in methods if not name.startswith("_"))


def _computed(indicator: Any, columns: Mapping[str, Array], chosen: Parameters) -> dict[str, Array]:
    import pandas as pd

    fresh = {key: pd.Series(x.copy()) for key, x in columns.items()}  # indexed from 0
    with np.errstate(all="ignore"):  # a division by zero becomes NaN below
        made = indicator(**fresh, **chosen)
        values = {
            method: getattr(made, method)().to_numpy(dtype=np.float64, copy=True)
            for method in _outputs(indicator)
        }
    for x in values.values():
        x[~np.isfinite(x)] = np.nan
    return values


def _has_not_moved(close: Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.asarray(np.maximum.accumulate(np.abs(close - close[0])) == 0.0)
