"""What a CUDA device computes beside what the CPU computes: bits in float64, ranks in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from strategies.kernels import reference
from strategies.kernels.compiling import step
from strategies.kernels.cuda import cross as cuda_cross
from strategies.kernels.cuda import indicators as kernels
from strategies.kernels.cuda import scan as cuda_scan
from strategies.kernels.cuda import sweep as cuda_sweep
from strategies.kernels.cuda.launch import Float
from strategies.kernels.dispatch import NOT_ON_A_DEVICE
from strategies.kernels.engines import walk
from strategies.kernels.engines.lanes import METRICS, Lanes, Prices, Signals, Terms, pack
from strategies.kernels.spec import SPECS, market, outputs_of

TERMS = Terms(fee_rate=0.0005, commission_per_order=1.0)
BARS_OF_A_CROSSING = 5_000
BEST = 100  # sets whose rank counts
SINGLE_PRECISION = 2e-5
ROUNDING = 1e-12


def symbols(count: int, bars: int, rules: int, seed: int = 1) -> tuple[list[Any], ...]:
    """Prices, signals and ATR tables of so many symbols; rules differ in how often they fire."""
    rng = np.random.default_rng(seed)
    prices, signals, tables = [], [], []
    for _ in range(count):
        columns = market(rng, bars)
        prices.append(
            Prices(
                open=columns["open"],
                high=columns["high"],
                low=columns["low"],
                close=columns["close"],
                volume=columns["volume"],
                first=20,
            )
        )
        often = rng.uniform(0.01, 0.1, (rules, 1))
        fires = (rng.random((2, rules, bars)) < often).astype(np.bool_)
        signals.append(Signals(entry=pack(fires[0]), exit=pack(fires[1])))
        tables.append(rng.uniform(0.5, 4.0, (4, bars)))
    return prices, signals, tables


def lanes(count: int, rules: int, seed: int = 2) -> Lanes:
    """Lanes with every kind of exit, neighbours having neighbouring rules."""
    rng = np.random.default_rng(seed)
    return Lanes(
        signal=np.arange(count) % rules,
        atr=rng.integers(0, 4, count),
        stop=rng.choice([0.0, 1.5, 2.0, 3.0], count),
        target=rng.choice([0.0, 2.0, 4.0], count),
        trail=rng.choice([0.0, 2.5], count),
        max_bars=rng.choice([0, 20, 60], count),
    )


@step
def _twin(
    bars: Any,
    first: int,
    words: Any,
    signal: Any,
    atr: Any,
    atr_row: Any,
    stop: Any,
    target: Any,
    trail: Any,
    max_bars: Any,
    terms: Any,
    out: Any,
) -> None:
    """The device's very loop, compiled for the CPU."""
    for lane in range(signal.size):
        cuda_sweep.walk_lane(
            bars, first, words, signal[lane], atr, atr_row[lane], stop[lane], target[lane],
            trail[lane], max_bars[lane], terms, out, lane,
        )  # fmt: skip


def twin(markets: cuda_sweep.Markets, chosen: Lanes) -> np.ndarray[Any, Any]:
    """Metrics [9, L] of the first symbol, by the device's loop on the CPU."""
    arrays = [x.copy_to_host() for x in (markets.bars, markets.words, markets.atr, markets.terms)]
    columns = [x.copy_to_host() for x in markets.upload_lanes(chosen)]
    out = np.full((len(METRICS), len(chosen)), np.nan, dtype=markets.dtype)
    bars, words, atr, terms = arrays
    signal, atr_row, *exits = columns
    _twin(bars[0], markets.first, words[0], signal, atr[0], atr_row, *exits, terms, out)
    return out


def unequal(actual: Any, expected: Any) -> int:
    """Values that are not the same to the last bit; NaN is NaN."""
    same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    return int((~same).sum())


def relative(actual: Any, expected: Any) -> float:
    """Greatest error as a share of the greatest value; infinite where one is NaN alone."""
    if (np.isnan(actual) != np.isnan(expected)).any():
        return float("inf")
    finite = np.isfinite(expected)
    scale = np.abs(expected[finite]).max(initial=0.0) or 1.0
    return float(np.abs(actual - expected)[finite].max(initial=0.0) / scale)


def indicators() -> dict[str, Any]:
    """Every indicator on all its edge cases, in float64."""
    found: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        for name, spec in SPECS.items():
            if name in NOT_ON_A_DEVICE:
                continue
            off, worst = 0, 0.0
            for case in spec.edge_cases().values():
                actual = outputs_of(getattr(kernels, name)(*case.inputs, *case.parameters))
                for mine, wanted in zip(actual, spec.compute(case), strict=True):
                    off += unequal(mine, wanted)
                    worst = max(worst, relative(mine, wanted))
            found[name] = {
                "unequal": off,
                "error": worst,
                "bitwise": off == 0,
                "holds": worst <= spec.rtol_f64,
            }
    return found


def sweep(count: int = 20_000, bars: int = 1_260, rules: int = 100) -> dict[str, Any]:
    """Lanes in float64 against the device's loop on the CPU and the CPU's own engine; in float32
    against float64.
    """
    prices, signals, tables = symbols(1, bars, rules)
    chosen = lanes(count, rules)
    markets = cuda_sweep.Markets.upload(prices, signals, tables, TERMS, np.float64)
    device, expected = markets.walk(chosen)[:, 0], twin(markets, chosen)
    filled = [row for row in range(len(METRICS)) if METRICS[row] != "annual_return"]
    ours = cuda_sweep.walk(prices[0], signals[0], tables[0], chosen, TERMS)
    engine = walk.walk(prices[0], signals[0], tables[0], chosen, TERMS)
    single = cuda_sweep.walk(prices[0], signals[0], tables[0], chosen, TERMS, dtype=np.float32)
    agree = single.trades == engine.trades
    errors = {name: relative(getattr(ours, name), getattr(engine, name)) for name in METRICS}
    best = {
        name: set(np.argsort(-run.final_equity, kind="stable")[:BEST].tolist())
        for name, run in (("single", single), ("engine", engine))
    }
    money = relative(single.final_equity[agree], engine.final_equity[agree])
    return {
        "lanes": count,
        "trades": int(engine.trades.sum()),
        "unequal_to_the_same_loop": unequal(device[filled], expected[filled]),
        "errors_against_the_engine": errors,
        "trade_flips": int((ours.trades != engine.trades).sum()),
        "single_precision": {
            "trades_agree": float(agree.mean()),
            "error_where_they_do": money,
            f"of_the_best_{BEST}": len(best["single"] & best["engine"]),
        },
        "bitwise": unequal(device[filled], expected[filled]) == 0,
        "holds": bool(
            max(errors.values()) <= ROUNDING * 1e2
            and (ours.trades == engine.trades).all()
            and agree.mean() >= 0.999
            and money <= SINGLE_PRECISION
        ),
    }


def crossings() -> dict[str, Any]:
    """Bits of crossings with ties and holes."""
    rng = np.random.default_rng(3)
    line, level = np.round(rng.normal(0.0, 1.0, (2, 8, BARS_OF_A_CROSSING)), 1)
    line[:, ::997] = np.nan
    rows = np.arange(8)
    actual = cuda_cross.crossings(line, level, rows, rows)
    up, down = np.zeros((2, *line.shape), dtype=np.bool_)
    up[:, 1:] = (line[:, 1:] > level[:, 1:]) & (line[:, :-1] <= level[:, :-1])
    down[:, 1:] = (line[:, 1:] < level[:, 1:]) & (line[:, :-1] >= level[:, :-1])
    same = (actual.entry == pack(up)).all() and (actual.exit == pack(down)).all()
    return {"bars": int(line.size), "bitwise": bool(same), "holds": bool(same)}


def scans(sizes: tuple[int, ...] = (1, 63, 64, 65, 1_024, 3_000, 1_000_003)) -> dict[str, Any]:
    """The affine scan against the sequential mean."""
    found: dict[str, Any] = {}
    kinds: tuple[tuple[Float, float], ...] = (
        (np.float64, ROUNDING),
        (np.float32, SINGLE_PRECISION),
    )
    for dtype, tolerance in kinds:
        for window in (2, 14, 200):
            errors = [
                relative(cuda_scan.ema(close, window, dtype=dtype), reference.ema(close, window))
                for close in (market(np.random.default_rng(n), n)["close"] for n in sizes)
            ]
            worst = max(errors)
            name = f"{dtype.__name__}, window {window}"
            found[name] = {"error": worst, "holds": worst <= tolerance}
    return found


def everything() -> dict[str, Any]:
    """All comparisons, and whether all hold."""
    found: dict[str, Any] = {
        "indicators": indicators(),
        "sweep": sweep(),
        "crossings": crossings(),
        "scans": scans(),
    }
    parts = [found["sweep"], found["crossings"], *found["indicators"].values()]
    parts += found["scans"].values()
    return found | {
        "holds": all(part["holds"] for part in parts),
        "float64_bitwise": all(part.get("bitwise", True) for part in parts),
    }
