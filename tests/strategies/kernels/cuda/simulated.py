"""Run on the CUDA simulator by test_simulator: every kernel against what the CPU says, as JSON.

numba reads NUMBA_ENABLE_CUDASIM when it is imported, so this needs a process of its own.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np

from strategies.kernels import reference
from strategies.kernels.cuda import cross as cuda_cross
from strategies.kernels.cuda import indicators as cuda
from strategies.kernels.cuda import scan as cuda_scan
from strategies.kernels.cuda import sweep as cuda_sweep
from strategies.kernels.cuda.launch import KERNELS, Kernel, upload
from strategies.kernels.dispatch import NOT_ON_A_DEVICE
from strategies.kernels.engines import walk_reference
from strategies.kernels.engines.lanes import METRICS, Lanes, Prices, Signals, Terms, pack
from strategies.kernels.spec import SPECS, outputs_of
from tests.strategies.market import walk as walked

WINDOWS = [1, 2, 14, 99, 200]
DTYPES = np.float32, np.float64


def report(actual, expected):
    """How far `actual` is off: unequal values, values that only one has, and the worst error."""
    actual, expected = np.asarray(actual, dtype=np.float64), np.asarray(expected)
    same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    finite = np.isfinite(actual) & np.isfinite(expected)
    scale = np.abs(expected[finite]).max(initial=0.0) or 1.0
    return {
        "unequal": int((~same).sum()),
        "missing": int((np.isnan(actual) != np.isnan(expected)).sum()),
        "error": float(np.abs(actual - expected)[finite].max(initial=0.0) / scale),
    }


def indicators(spec):
    """The host function of a kernel beside its definition, on all that kernels break on."""
    found = {}
    with np.errstate(all="ignore"):  # huge prints overflow on purpose
        for name, case in spec.edge_cases().items():
            actual = getattr(cuda, spec.name)(*case.inputs, *case.parameters)
            outputs = zip(outputs_of(actual), spec.compute(case), strict=True)
            found[name] = [report(*pair) for pair in outputs]
    return found


def tables(bars, dtype):
    """Many windows at once; row p is the single window p."""
    prices, close = (bars.high, bars.low, bars.close), bars.close
    calls = {"sma": (close,), "ema": (close,), "rsi": (close,), "atr": prices}
    found = {}
    for name, inputs in calls.items():
        table = getattr(cuda, f"{name}_table")(*inputs, WINDOWS, dtype=dtype)
        expected = np.full(table.shape, np.nan)
        for row, window in zip(expected, WINDOWS, strict=True):
            row[: close.size] = getattr(reference, name)(*inputs, window)
        found[name] = report(table, expected)
    return found


def rows(bars, dtype):
    """Several lanes of the kernels that no table offers, launched as they are."""
    high, low, close, volume = (
        upload(x, dtype) for x in (bars.high, bars.low, bars.close, bars.volume)
    )
    prices, size = (bars.high, bars.low, bars.close), bars.close.size
    windows, fast, slow, few = [14, 1, 60], [5, 2, 13], [14, 3, 40], [3, 9, 1]

    def run(name, outputs, inputs, *arguments, room=False):
        columns = [upload(np.array(column), np.int64) for column in arguments[0]]
        made = [upload(np.full((3, size), np.nan), dtype) for _ in range(outputs + room)]
        if name in {"macd_rows", "adx_rows", "stochastic_rows"}:
            KERNELS[name].over(3, *inputs, *columns, *made)
        else:
            blocks = -(-size // KERNELS[name].threads)  # of a window of 1, which has the most
            KERNELS[name].launch((blocks, 3), *inputs, *columns, *arguments[1:], *made)
        return np.stack([out.copy_to_host() for out in made[room:]], axis=1)

    def expected(function, *arguments):
        return np.stack([np.stack(outputs_of(function(*each))) for each in arguments])

    spreads = run("deviation_rows", 2, [close], [windows], 0)
    spreads[:, 1] += spreads[:, 0]
    one = dtype(1.0)
    return {
        "macd": report(
            run("macd_rows", 3, [close], [fast, slow, few]),
            expected(
                reference.macd, *((bars.close, *each) for each in zip(fast, slow, few, strict=True))
            ),
        ),
        "adx": report(
            run("adx_rows", 3, [high, low, close], [windows]),
            expected(reference.adx, *((*prices, each) for each in windows)),
        ),
        "stochastic": report(
            run("stochastic_rows", 2, [high, low, close], [windows, few]),
            expected(
                reference.stochastic, *((*prices, *each) for each in zip(windows, few, strict=True))
            ),
        ),
        "deviation": report(
            spreads,
            expected(
                lambda *each: reference.bollinger(*each, 1.0)[1::-1],
                *((bars.close, each) for each in windows),
            ),
        ),
        "extreme": report(
            run("extreme_rows", 1, [close], [windows], one),
            expected(reference.rolling_max, *((bars.close, each) for each in windows)),
        ),
        "vwap": report(
            run("vwap_rows", 1, [high, low, close, volume], [windows], room=True),
            expected(reference.vwap, *((*prices, bars.volume, each) for each in windows)),
        ),
        "true_range": report(
            over_bars("true_range_bars", high, low, close), reference.true_range(*prices)
        ),
        "obv": report(over_bars("obv_bars", close, volume), reference.obv(bars.close, bars.volume)),
    }


def over_bars(name, *arguments):
    """One output of a kernel whose threads are bars."""
    out = upload(np.full(arguments[0].size, np.nan), arguments[0].dtype)
    KERNELS[name].over(out.size, *arguments, out)
    return out.copy_to_host()


def sweep(dtype, first=7, bars=150, lanes=48):
    """Lanes with every kind of exit, on two symbols at once, beside the definition of a lane."""
    rng = np.random.default_rng(6)
    made = [walked(bars, seed=seed) for seed in (5, 8)]
    prices = [
        Prices(
            open=one.open,
            high=one.high,
            low=one.low,
            close=one.close,
            volume=one.volume,
            first=first,
        )
        for one in made
    ]
    signals = [
        Signals(entry=pack(rng.random((4, bars)) < 0.15), exit=pack(rng.random((4, bars)) < 0.08))
        for _ in made
    ]
    atr = rng.uniform(0.5, 4.0, (2, 3, bars))
    atr[:, :, ::13] = np.nan
    chosen = Lanes(
        signal=rng.integers(0, 4, lanes),
        atr=rng.integers(0, 3, lanes),
        stop=rng.choice([0.0, 1.0, 2.5], lanes),
        target=rng.choice([0.0, 1.0, 3.0], lanes),
        trail=rng.choice([0.0, 2.0], lanes),
        max_bars=rng.choice([0, 1, 9], lanes),
    )
    terms = Terms(fee_rate=0.001, commission_per_order=1.0)
    cuda_sweep.MOST_LANES = 40  # of both symbols, so that it takes several launches
    both = cuda_sweep.walk_symbols(prices, signals, atr, chosen, terms, dtype=dtype)
    plain = replace(chosen, stop=chosen.stop * 0, target=chosen.stop * 0, trail=chosen.stop * 0)
    alone = cuda_sweep.walk(prices[0], signals[0], None, plain, terms, dtype=dtype)
    pairs = [
        (actual, walk_reference.walk(*market, chosen, terms))
        for actual, *market in zip(both, prices, signals, atr, strict=True)
    ]
    pairs.append((alone, walk_reference.walk(prices[0], signals[0], None, plain, terms)))
    return {
        name: report(
            *(np.stack([getattr(one, name) for one in side]) for side in zip(*pairs, strict=True))
        )
        for name in METRICS
    } | {"trades_in_all": int(sum(expected.trades.sum() for _, expected in pairs))}


def crossed(dtype):
    """Rows against rows and against numbers, with ties and holes, beside crossings by hand."""
    rng = np.random.default_rng(7)
    bars = cuda_cross.TILE + 70  # into a second tile
    line, level = (np.round(rng.normal(0.0, 1.0, (rows, bars)), 1) for rows in (3, 2))
    line[0, :70] = level[1, cuda_cross.TILE] = np.nan
    line[1, cuda_cross.TILE - 1 : cuda_cross.TILE + 1] = -1.0, 1.0  # from one tile to the next
    level[0, cuda_cross.TILE - 1 : cuda_cross.TILE + 1] = 0.0
    i, j = np.array([0, 1, 2]), np.array([1, 0, 1])
    numbers = np.array([0.0, 0.5, -0.3])
    found = {}
    for name, other, actual in (
        ("rows", level[j], cuda_cross.crossings(line, level, i, j, dtype=dtype)),
        (
            "levels",
            numbers[:, None] + np.zeros((3, bars)),
            cuda_cross.crossings(line, numbers, i, None, dtype=dtype),
        ),
    ):
        now, before = (line[i][:, 1:], other[:, 1:]), (line[i][:, :-1], other[:, :-1])
        up, down = np.zeros((2, 3, bars), dtype=bool)
        up[:, 1:] = (now[0] > now[1]) & (before[0] <= before[1])
        down[:, 1:] = (now[0] < now[1]) & (before[0] >= before[1])
        found[name] = {
            "equal": bool((actual.entry == pack(up)).all() and (actual.exit == pack(down)).all()),
            "ups": int(up.sum()),
        }
    return found


def scanned():
    """The affine scan beside the sequential mean."""
    found = {}
    for size, window, dtype in (
        (1, 1, np.float64),
        (66, 2, np.float64),
        (2 * cuda_scan.TILE + 201, 200, np.float64),
        (66, 2, np.float32),
    ):
        close = walked(size, seed=size).close
        name = f"{size} bars, window {window}, {dtype.__name__}"
        found[name] = report(
            cuda_scan.ema(close, window, dtype=dtype), reference.ema(close, window)
        )
    for dtype in DTYPES:
        found[f"carried over {dtype.__name__}"] = carried(dtype)
    flat = cuda_scan.ema(np.full(cuda_scan.TILE + 2, 0.1), 2)
    found["flat float64"] = report(flat[1:], np.full(cuda_scan.TILE + 1, 0.1))
    return found


def carried(dtype):
    """The mean before each of more tiles than a block has threads, beside one after the other."""
    rng = np.random.default_rng(8)
    tiles, base = 2 * cuda_scan.THREADS + 11, 100.0
    scales, offsets = rng.uniform(0.2, 1.0, tiles), rng.normal(0.0, 1.0, tiles)
    before = upload(np.full(tiles, np.nan), dtype)
    cuda_scan.carry_tiles.launch(
        1, upload(scales, dtype), upload(offsets, dtype), dtype(base), before
    )
    means = [base]
    for scale, offset in zip(scales[:-1], offsets[:-1], strict=True):
        means.append(base + (scale * (means[-1] - base) + offset))
    return report(before.copy_to_host(), means)


def main() -> None:
    """Print everything that was compared, and which kernels were launched in which dtype."""
    launched = set()
    launch = Kernel.launch

    def noted(kernel, blocks, *arguments):
        types = {str(x.dtype) for x in arguments if hasattr(x, "dtype")}
        launched.update(f"{kernel.name} {name}" for name in types if name.startswith("float"))
        launch(kernel, blocks, *arguments)

    Kernel.launch = noted
    bars = walked(130, seed=3)
    found = {
        "indicators": {
            name: indicators(spec) for name, spec in SPECS.items() if name not in NOT_ON_A_DEVICE
        },
        "tables": {dtype.__name__: tables(bars, dtype) for dtype in DTYPES},
        "rows": {dtype.__name__: rows(bars, dtype) for dtype in DTYPES},
        "sweep": {dtype.__name__: sweep(dtype) for dtype in DTYPES},
        "cross": {dtype.__name__: crossed(dtype) for dtype in DTYPES},
        "scan": scanned(),
        "launched": sorted(launched),
        "kernels": sorted(KERNELS),
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
