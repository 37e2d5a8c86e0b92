"""The steps as the device runs them: scalar, in both precisions, block by block."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

# In a process of its own: with NUMBA_ENABLE_CUDASIM the steps are plain Python.
SCRIPT = """
import json, warnings
import numpy as np
warnings.simplefilter("ignore")
from strategies.kernels import steps
from strategies.kernels.spec import SPECS, Case

assert steps.SIMULATED
def sma(f, close, out, window):
    steps.sma_lane(close, window, out)
def blocks(f, close, out, window):
    for block in reversed(range(-(-close.size // window))):
        steps.sma_block(close, window, block, out)
def vwap(f, high, low, close, volume, out, window):
    steps.vwap_lane(high, low, close, volume, window, np.full(window, np.nan, f), out)
LANES = {
    "sma": sma,
    "sma blocks": blocks,
    "ema": lambda f, x, out, w: steps.ema_lane(x, w, out),
    "rsi": lambda f, x, out, w: steps.rsi_lane(x, w, np.full(8, np.nan, f), out),
    "macd": lambda f, x, a, b, c, *w: steps.macd_lane(x, *w, a, b, c),
    "true_range": lambda f, h, l, c, out: steps.true_range_lane(h, l, c, out),
    "atr": lambda f, h, l, c, out, w: steps.atr_lane(h, l, c, w, out),
    "bollinger": lambda f, x, u, m, l, w, k: steps.bollinger_lane(x, w, f(k), u, m, l),
    "adx": lambda f, h, l, c, i, p, m, w: steps.adx_lane(h, l, c, w, i, p, m),
    "obv": lambda f, c, v, out: steps.obv_lane(c, v, out),
    "rolling_max": lambda f, x, out, w: steps.extreme_lane(x, w, f(1), out),
    "rolling_min": lambda f, x, out, w: steps.extreme_lane(x, w, f(-1), out),
    "stochastic": lambda f, h, l, c, k, d, w, s: steps.stochastic_lane(h, l, c, w, s, k, d),
    "vwap": vwap,
}
found = {}
for name, lane in LANES.items():
    spec = SPECS[name.split()[0]]
    inputs = spec.make_inputs(np.random.default_rng(7), 131)
    expected = spec.compute(Case(inputs=inputs, parameters=spec.usual))
    apart, kept = [], True
    for dtype in (np.float64, np.float32):
        outs = [np.full(131, 7.0, dtype) for _ in expected]
        lane(dtype, *(x.astype(dtype) for x in inputs), *outs, *spec.usual)
        far = 0.0
        for mine, its in zip(outs, expected):
            assert (np.isnan(mine) == np.isnan(its)).all(), (name, dtype)
            great = np.nanmax(np.abs(its))
            far = max(far, float(np.nanmax(np.abs(mine - its)) / great))
        apart.append(far)
    found[name] = [*apart, spec.rtol_f32]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_scalar_steps_equal_the_reference_in_every_bit(found):
    assert {name: apart for name, (apart, _, _) in found.items() if apart != 0.0} == {}
    assert len(found) == 14


def test_in_float32_they_stay_within_the_tolerance_of_their_spec(found):
    for name, (_, apart, tolerance) in found.items():
        assert apart <= tolerance, name
    assert sum(apart > 0.0 for _, apart, _ in found.values()) > 9  # it was float32 that computed


def test_the_door_offers_every_step_that_it_names():
    from strategies.kernels import steps

    assert all(callable(getattr(steps, name)) for name in steps.__all__ if name.endswith("lane"))
    assert not steps.SIMULATED
