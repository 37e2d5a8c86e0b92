"""The arithmetic of the indicators, once: the CPU twins and the CUDA kernels call these functions.

Every step works on slices of one run of finite bars, allocates nothing, writes every value of its
outputs (NaN where there is none yet) and takes every literal in the type of its input, so that
float32 stays float32. A `..._block` writes one block of `window` bars, and blocks may be done in
any order; a `..._lane` walks a whole run. What each computes is defined in `reference`, and where
the type is float64 the order of operations is the same to the last bit.
"""

from strategies.kernels.compiling import SIMULATED, Real, Slice, step
from strategies.kernels.recursions import (
    adx_lane,
    atr_lane,
    decaying_sum,
    ema_lane,
    macd_lane,
    obv_lane,
    recursive_mean,
    rsi_lane,
    true_range_lane,
    true_ranges,
)
from strategies.kernels.windows import (
    CHUNK,
    blank,
    bollinger_lane,
    deviation_block,
    deviation_lane,
    extreme_block,
    extreme_lane,
    sma_block,
    sma_lane,
    stochastic_lane,
    volatility_lane,
    vwap_block,
    vwap_lane,
)

__all__ = [
    "CHUNK",
    "SIMULATED",
    "Real",
    "Slice",
    "adx_lane",
    "atr_lane",
    "blank",
    "bollinger_lane",
    "decaying_sum",
    "deviation_block",
    "deviation_lane",
    "ema_lane",
    "extreme_block",
    "extreme_lane",
    "macd_lane",
    "obv_lane",
    "recursive_mean",
    "rsi_lane",
    "sma_block",
    "sma_lane",
    "step",
    "stochastic_lane",
    "true_range_lane",
    "true_ranges",
    "volatility_lane",
    "vwap_block",
    "vwap_lane",
]
