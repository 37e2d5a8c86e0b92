"""What every kernel promises, in a form that tests, `trader kernels` and device checks can run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strategies.kernels import reference
from strategies.kernels.runs import Array

Column = NDArray[Any]
Columns = dict[str, Column]

EDGE_BARS = 160  # of an edge case, unless its length is the point
F64, F32 = 1e-9, 2e-5

SHAPES = "every input [T] float64, oldest first; every output [T] float64"
MISSING = "a NaN or an infinity in any input ends a series: NaN there, then warmed up anew"
OVERFLOW = "what leaves the range of float64 becomes an infinity or NaN; later bars recover"
EMPTY = "T = 0 gives outputs of length 0; T below the warm-up gives NaN only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a kernel: its name, its least value, and a usual one."""

    name: str
    least: float
    usual: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call of a kernel: reference(*inputs, *parameters)."""

    inputs: tuple[Column, ...]
    parameters: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSpec:
    """Everything that a twin of a kernel has to keep.

    name        of the kernel in a `KernelSet`
    inputs      columns of a market, in the order of the arguments
    outputs     what is returned, one array each
    parameters  after the inputs, in order
    warm_up     parameters -> for every output the first bar that has a value
    shapes, missing, overflow, empty  one sentence each: what goes in and out, what a hole does,
                what a huge number does, what too few bars do
    rtol_f64    how far a twin that is not bound to the bits may be off, as a share of the greatest
    rtol_f32    value of the output; the same for one that computes in float32
    reference   the definition
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    warm_up: Callable[..., tuple[int, ...]]
    reference: Callable[..., Any]
    shapes: str = SHAPES
    missing: str = MISSING
    overflow: str = OVERFLOW
    empty: str = EMPTY
    rtol_f64: float = F64
    rtol_f32: float = F32

    @property
    def usual(self) -> tuple[float, ...]:
        """The usual value of every parameter."""
        return tuple(parameter.usual for parameter in self.parameters)

    @property
    def least(self) -> tuple[float, ...]:
        """The least value of every parameter, the slow window one above the fast."""
        found = tuple(parameter.least for parameter in self.parameters)
        return (1, 2, 1) if self.name == "macd" else found

    def make_inputs(self, rng: np.random.Generator, bars: int) -> tuple[Column, ...]:
        """A random walk of `bars` sound bars, as the inputs of this kernel."""
        return self._pick(market(rng, bars))

    def compute(self, case: Case) -> tuple[Column, ...]:
        """The reference's outputs, one array each."""
        return outputs_of(self.reference(*case.inputs, *case.parameters))

    def edge_cases(self) -> Mapping[str, Case]:
        """Inputs on which kernels break, by what is special about them."""
        rng = np.random.default_rng(20_260_101)
        usual, full = self.usual, max(self.warm_up(*self.usual)) + 1
        sound = market(rng, EDGE_BARS)
        cases = {
            "constant": _like(sound, np.full(EDGE_BARS, 0.1), flat=True),
            "rising": _like(sound, np.arange(1.0, EDGE_BARS + 1.0)),
            "falling": _like(sound, np.arange(EDGE_BARS + 1.0, 1.0, -1.0)),
            "moves, then constant": _like(
                sound, np.concatenate((sound["close"][:60], np.full(EDGE_BARS - 60, 42.0)))
            ),
            "length 0": market(rng, 0),
            "length 1": market(rng, 1),
            "one bar short of the warm-up": market(rng, full - 1),
            "the warm-up and no more": market(rng, full),
            "NaN inside": _holed(sound, np.nan),
            "infinity inside": _holed(sound, np.inf),
            "nothing but NaN": {name: _blank(x) for name, x in sound.items()},
            "huge print": _printed(sound, 1e16),
            "scale 1e-300": _scaled(sound, 1e-302),
            "scale 1e12": _scaled(sound, 1e10),
            "rounded to a tick": market(rng, EDGE_BARS, tick=1.0),
            "nothing traded": sound | {"volume": np.zeros(EDGE_BARS)},
        }
        found = {
            name: Case(inputs=self._pick(columns), parameters=usual)
            for name, columns in cases.items()
        }
        found["least parameters"] = Case(inputs=self._pick(sound), parameters=self.least)
        return MappingProxyType(found)

    def _pick(self, columns: Columns) -> tuple[Column, ...]:
        return tuple(columns[name] for name in self.inputs)


def outputs_of(result: Any) -> tuple[Column, ...]:
    """What a kernel returned as a tuple of arrays, also where it is one array."""
    return result if isinstance(result, tuple) else (result,)


def market(rng: np.random.Generator, bars: int, *, tick: float | None = None) -> Columns:
    """Sound bars of a random walk, an entry, an exit and a risk; `tick` rounds prices."""
    close = 100.0 * np.exp(np.cumsum(rng.normal(0.0, 0.02, bars)))
    opened = close * np.exp(rng.normal(0.0, 0.01, bars))
    high = np.maximum(opened, close) * np.exp(np.abs(rng.normal(0.0, 0.01, bars)))
    low = np.minimum(opened, close) * np.exp(-np.abs(rng.normal(0.0, 0.01, bars)))
    prices: Columns = {"open": opened, "high": high, "low": low, "close": close}
    if tick is not None:
        prices = {name: np.round(x / tick) * tick for name, x in prices.items()}
    return prices | {
        "volume": np.round(rng.uniform(1e5, 1e6, bars)),
        "entry": rng.random(bars) < 0.1,
        "exit": rng.random(bars) < 0.05,
        "stop_distance": prices["close"] * 0.03,
    }


def _like(sound: Columns, close: Array, *, flat: bool = False) -> Columns:
    reach = np.zeros(close.size) if flat else 0.01 * close
    prices = {"open": close, "high": close + reach, "low": close - reach, "close": close}
    return sound | prices | {"stop_distance": close * 0.03}


def _holed(sound: Columns, hole: float) -> Columns:
    names = ("close", "high", "low", "volume", "open", "stop_distance", "close")
    bars = (40, 42, 70, 71, 100, 110, EDGE_BARS - 1)
    holed = sound
    for name, bar in zip(names, bars, strict=True):
        holed = holed | {name: np.where(np.arange(EDGE_BARS) == bar, hole, holed[name])}
    return holed


def _blank(x: Column) -> Column:
    return x if x.dtype == np.bool_ else np.full(x.size, np.nan)


def _printed(sound: Columns, price: float) -> Columns:
    at = np.arange(EDGE_BARS) == EDGE_BARS // 2
    return sound | {name: np.where(at, price, sound[name]) for name in ("high", "close")}


def _scaled(sound: Columns, factor: float) -> Columns:
    names = ("open", "high", "low", "close", "stop_distance")
    return sound | {name: sound[name] * factor for name in names}


WINDOW_14 = (Parameter(name="window", least=1, usual=14),)
WINDOW_20 = (Parameter(name="window", least=1, usual=20),)
CLOSE, RANGE = ("close",), ("high", "low", "close")

_ALL = (
    KernelSpec(
        name="sma",
        inputs=CLOSE,
        outputs=("mean",),
        parameters=WINDOW_20,
        warm_up=lambda window: (window - 1,),
        reference=reference.sma,
    ),
    KernelSpec(
        name="ema",
        inputs=CLOSE,
        outputs=("mean",),
        parameters=WINDOW_20,
        warm_up=lambda window: (window - 1,),
        reference=reference.ema,
    ),
    KernelSpec(
        name="rsi",
        inputs=CLOSE,
        outputs=("rsi",),
        parameters=WINDOW_14,
        warm_up=lambda window: (window,),
        reference=reference.rsi,
    ),
    KernelSpec(
        name="macd",
        inputs=CLOSE,
        outputs=("line", "signal line", "histogram"),
        parameters=(
            Parameter(name="fast", least=1, usual=12),
            Parameter(name="slow", least=2, usual=26),
            Parameter(name="signal", least=1, usual=9),
        ),
        warm_up=lambda _fast, slow, signal: (slow + signal - 2,) * 3,
        reference=reference.macd,
        rtol_f32=1e-3,  # float32 rounds closes, and the line is a small difference of them
    ),
    KernelSpec(
        name="true_range",
        inputs=RANGE,
        outputs=("true range",),
        parameters=(),
        warm_up=lambda: (1,),
        reference=reference.true_range,
    ),
    KernelSpec(
        name="atr",
        inputs=RANGE,
        outputs=("atr",),
        parameters=WINDOW_14,
        warm_up=lambda window: (window,),
        reference=reference.atr,
    ),
    KernelSpec(
        name="bollinger",
        inputs=CLOSE,
        outputs=("upper", "middle", "lower"),
        parameters=(*WINDOW_20, Parameter(name="deviations", least=0.0, usual=2.0)),
        warm_up=lambda window, _deviations: (window - 1,) * 3,
        reference=reference.bollinger,
        overflow="distances above 1e154 square to an infinity, those below 1e-154 to nothing",
    ),
    KernelSpec(
        name="adx",
        inputs=RANGE,
        outputs=("adx", "+di", "-di"),
        parameters=WINDOW_14,
        warm_up=lambda window: (2 * window - 1, window, window),
        reference=reference.adx,
    ),
    KernelSpec(
        name="obv",
        inputs=("close", "volume"),
        outputs=("obv",),
        parameters=(),
        warm_up=lambda: (0,),
        reference=reference.obv,
    ),
    KernelSpec(
        name="realised_volatility",
        inputs=CLOSE,
        outputs=("volatility",),
        parameters=(
            Parameter(name="window", least=2, usual=20),
            Parameter(name="periods per year", least=1e-300, usual=252.0),
        ),
        warm_up=lambda window, _periods: (window,),
        reference=reference.realised_volatility,
        missing=f"{MISSING}; a close of 0 or below is as good as missing",
        rtol_f32=1e-3,  # float32 rounds closes, and a return is a small difference of them
    ),
    KernelSpec(
        name="rolling_max",
        inputs=("high",),
        outputs=("greatest",),
        parameters=WINDOW_20,
        warm_up=lambda window: (window - 1,),
        reference=reference.rolling_max,
    ),
    KernelSpec(
        name="rolling_min",
        inputs=("low",),
        outputs=("least",),
        parameters=WINDOW_20,
        warm_up=lambda window: (window - 1,),
        reference=reference.rolling_min,
    ),
    KernelSpec(
        name="stochastic",
        inputs=RANGE,
        outputs=("%k", "%d"),
        parameters=(*WINDOW_14, Parameter(name="smooth", least=1, usual=3)),
        warm_up=lambda window, smooth: (window + smooth - 2,) * 2,
        reference=reference.stochastic,
    ),
    KernelSpec(
        name="vwap",
        inputs=(*RANGE, "volume"),
        outputs=("vwap",),
        parameters=WINDOW_20,
        warm_up=lambda window: (window - 1,),
        reference=reference.vwap,
        missing=f"{MISSING}; NaN too where a whole window traded nothing",
    ),
    KernelSpec(
        name="excursions",
        inputs=("open", *RANGE, "entry", "exit", "stop_distance"),
        outputs=("entry index", "exit index", "mfe_r", "result_r"),
        parameters=(Parameter(name="slippage", least=0.0, usual=0.0005),),
        warm_up=lambda _slippage: (0, 0, 0, 0),
        reference=reference.excursions,
        shapes="prices, risk [T] float64, entry, exit [T] bool; every output [K], one a trade",
        missing="an entry whose risk is not finite and above 0 is not traded; a NaN stops nothing",
        empty="no trade gives outputs of length 0",
    ),
)

SPECS: Mapping[str, KernelSpec] = MappingProxyType({spec.name: spec for spec in _ALL})
