"""Everything a debater may quote, numbered, as it was known at the decision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from strategies.indicators.library import library_indicator
from strategies.kernels.dispatch import KernelSet
from trader.core.costs import Costs
from trader.core.decision import Evidence, EvidenceKind, Signal
from trader.core.market import BarSeries, from_ns, session_of
from trader.core.ports import Strategy
from trader.core.trading import Portfolio
from trader.pipeline.levels import Levels, TrackRecord, target_levels
from trader.risk.gate import RiskLimits

YEAR_OF_BARS = 252


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountView:
    """The account as far as an entry in one symbol is concerned; waiting buys in USD."""

    portfolio: Portfolio
    open_buy_value_symbol: Decimal


class _Facts:
    """Collects facts and numbers them in the order they come."""

    def __init__(self, symbol: str, as_of: datetime, known_at: datetime) -> None:
        self.symbol, self.as_of, self.known_at = symbol, as_of, known_at
        self.found: list[Evidence] = []

    def add(
        self,
        kind: EvidenceKind,
        name: str,
        value: float | None,
        unit: str,
        source: str,
        *,
        text: str = "",
        known_at: datetime | None = None,
    ) -> None:
        sound = value is not None and math.isfinite(value)
        self.found.append(
            Evidence(
                evidence_id=f"E{len(self.found) + 1}",
                symbol=self.symbol,
                kind=kind,
                name=name,
                value=float(value) if sound and value is not None else None,
                unit=unit,
                as_of=self.as_of,
                known_at=known_at or self.known_at,
                source=source,
                text=text,
            )
        )


def gather(
    bars: BarSeries,
    *,
    signal: Signal,
    strategy: Strategy,
    index: int,
    levels: Levels,
    atr: NDArray[np.float64],
    record: TrackRecord,
    account: AccountView,
    bars_behind: int,
    costs: Costs,
    indicators: Sequence[str],
    kernels: KernelSet,
    periods_per_year: float,
    limits: RiskLimits,
) -> tuple[Evidence, ...]:
    """Evidence for one candidate.

    bars         everything known at the decision, newest last; at least one bar
    index        the signal's bar, in `bars`
    atr          [T] USD, aligned with bars
    bars_behind  expected bars that are missing at the end
    indicators   further indicators of the `ta` library, by name
    limits       those of the risk gate
    """
    facts = _Facts(bars.symbol, signal.as_of, from_ns(bars.available_at[-1]))
    _prices(facts, bars, bars_behind)
    _indicators(facts, bars, atr, kernels)
    _statistics(facts, bars, kernels, periods_per_year)
    _rule(facts, bars, strategy, index)
    _account(facts, account)
    _levels(facts, levels, _last(atr))
    _track(facts, signal, record)
    _targets(facts, bars, levels, record, costs)
    _sessions(facts, bars, index)
    _limits(facts, limits)
    _library(facts, bars, indicators)
    return tuple(facts.found)


def _prices(facts: _Facts, bars: BarSeries, bars_behind: int) -> None:
    source = f"bars:{bars.source}"
    for name, array in (
        ("close", bars.close),
        ("open", bars.open),
        ("high", bars.high),
        ("low", bars.low),
    ):
        facts.add("technical", name, _last(array), "USD", source)
    facts.add("technical", "close_previous", _last(bars.close, 2), "USD", source)
    facts.add("technical", "volume", _last(bars.volume), "shares", source)
    facts.add("technical", "bars_behind", float(bars_behind), "count", source)


def _indicators(
    facts: _Facts, bars: BarSeries, atr: NDArray[np.float64], kernels: KernelSet
) -> None:
    close, high, low = bars.close, bars.high, bars.low
    for window in (20, 50, 200):
        facts.add(
            "technical",
            f"sma_{window}",
            _last(kernels.sma(close, window)),
            "USD",
            "indicators.trend",
        )
    facts.add("technical", "ema_20", _last(kernels.ema(close, 20)), "USD", "indicators.trend")
    rsi = kernels.rsi(close, 14)
    facts.add("technical", "rsi_14", _last(rsi), "index_0_100", "indicators.momentum")
    facts.add("technical", "rsi_14_previous", _last(rsi, 2), "index_0_100", "indicators.momentum")
    line, signal, histogram = kernels.macd(close, 12, 26, 9)
    facts.add("technical", "macd", _last(line), "USD", "indicators.momentum")
    facts.add("technical", "macd_signal", _last(signal), "USD", "indicators.momentum")
    facts.add("technical", "macd_histogram", _last(histogram), "USD", "indicators.momentum")
    adx, plus, minus = kernels.adx(high, low, close, 14)
    for name, array in (("adx_14", adx), ("plus_di_14", plus), ("minus_di_14", minus)):
        facts.add("technical", name, _last(array), "index_0_100", "indicators.trend")
    upper, middle, lower = kernels.bollinger(close, 20, 2.0)
    for name, array in (("upper", upper), ("middle", middle), ("lower", lower)):
        facts.add("technical", f"bollinger_{name}", _last(array), "USD", "indicators.volatility")
    facts.add("technical", "atr", _last(atr), "USD", "indicators.volatility")
    facts.add(
        "technical",
        "atr_fraction",
        _ratio(_last(atr), _last(close)),
        "fraction",
        "indicators.volatility",
    )


def _statistics(
    facts: _Facts, bars: BarSeries, kernels: KernelSet, periods_per_year: float
) -> None:
    close, volume = bars.close, bars.volume
    volatility = kernels.realised_volatility(close, 20, periods_per_year)
    year = volatility[-YEAR_OF_BARS:]
    year = year[np.isfinite(year)]
    now = _last(volatility)
    rank = (
        float(np.mean(year < now)) if year.size and now is not None and math.isfinite(now) else None
    )
    source = "indicators.volatility"
    facts.add("technical", "volatility_20", now, "fraction", source, text="annualised")
    facts.add(
        "technical",
        "volatility_rank_252",
        rank,
        "fraction",
        source,
        text="share of the last 252 bars that were calmer",
    )
    traded = float(volume[-20:].mean()) if volume.size >= 20 else 0.0
    facts.add(
        "technical", "volume_ratio_20", _ratio(_last(volume), traded), "ratio", "indicators.volume"
    )
    obv = kernels.obv(close, volume)
    flow = float(obv[-1] - obv[-21]) if obv.size > 20 else None
    facts.add(
        "technical",
        "obv_change_20",
        _ratio(flow, float(volume[-20:].sum())),
        "fraction",
        "indicators.volume",
        text="net volume of 20 bars over all of it",
    )
    for window in (20, 60):
        past = float(close[-1] / close[-1 - window] - 1.0) if close.size > window else None
        facts.add("technical", f"return_{window}", past, "fraction", "statistics")
    _extremes(facts, bars)


def _extremes(facts: _Facts, bars: BarSeries) -> None:
    gaps = bars.open[1:] / bars.close[:-1] - 1.0
    facts.add(
        "technical",
        "gap_last",
        _last(gaps),
        "fraction",
        "statistics",
        text="open against the close before",
    )
    worst = float(gaps[-YEAR_OF_BARS:].min()) if gaps.size >= YEAR_OF_BARS else None
    facts.add("technical", "gap_worst_252", worst, "fraction", "statistics")
    year = bars.close[-YEAR_OF_BARS:]
    enough = year.size == YEAR_OF_BARS
    falls = year / np.maximum.accumulate(year) - 1.0
    facts.add(
        "technical", "drawdown_252", float(falls[-1]) if enough else None, "fraction", "statistics"
    )
    facts.add(
        "technical",
        "max_drawdown_252",
        float(falls.min()) if enough else None,
        "fraction",
        "statistics",
    )
    close = float(bars.close[-1])
    for window in (20, YEAR_OF_BARS):
        whole = len(bars) >= window
        top, bottom = float(bars.high[-window:].max()), float(bars.low[-window:].min())
        facts.add(
            "technical",
            f"distance_high_{window}",
            close / top - 1.0 if whole else None,
            "fraction",
            "statistics",
        )
        facts.add(
            "technical",
            f"distance_low_{window}",
            close / bottom - 1.0 if whole else None,
            "fraction",
            "statistics",
        )


def _rule(facts: _Facts, bars: BarSeries, strategy: Strategy, index: int) -> None:
    """The two sides of the strategy's own rule, on the signal's bar and the one before."""
    if strategy.entry_rule is None:
        return
    seen = strategy.features(bars, index)
    rule = ", ".join(f"{name} {value:g}" for name, value in strategy.parameters.items())
    for side, feature in zip(("value", "line"), strategy.entry_rule, strict=True):
        for suffix in ("", "_previous"):
            facts.add(
                "technical",
                f"rule_{side}{suffix}",
                seen.get(f"{feature}{suffix}"),
                "points",
                f"strategies.{strategy.name}",
                text=f"{feature}, {rule}".replace("_", " "),
            )


def _account(facts: _Facts, account: AccountView) -> None:
    portfolio, at = account.portfolio, account.portfolio.as_of
    equity = float(portfolio.equity)
    held = portfolio.position(facts.symbol)
    rows: Sequence[tuple[str, float | None, str]] = (
        ("position_quantity", float(held.quantity) if held else 0.0, "shares"),
        ("position_weight", _ratio(float(portfolio.value_of(facts.symbol)), equity), "fraction"),
        ("open_buy_weight", _ratio(float(account.open_buy_value_symbol), equity), "fraction"),
        ("cash", float(portfolio.cash), "USD"),
        ("cash_weight", _ratio(float(portfolio.cash), equity), "fraction"),
    )
    for name, value, unit in rows:
        facts.add("portfolio", name, value, unit, "broker", known_at=at)


def _levels(facts: _Facts, levels: Levels, atr: float | None) -> None:
    distance = _ratio(levels.risk, atr)
    for name, value, text in (
        ("entry_price", levels.entry, ""),
        ("stop_price", levels.stop, f"{distance:.2g} ATR below the entry" if distance else ""),
        ("risk_per_share", levels.risk, ""),
    ):
        facts.add("level", name, value, "USD", "pipeline.levels", text=text)
    facts.add("level", "risk_fraction", levels.risk / levels.entry, "fraction", "pipeline.levels")


def _track(facts: _Facts, signal: Signal, record: TrackRecord) -> None:
    source = f"track record of {signal.strategy}"
    mean = float(record.result_r.mean()) if record.closed else None
    won = float(np.mean(record.result_r > 0.0)) if record.closed else None
    facts.add("track_record", "signal_fired", float(record.fired), "count", source)
    facts.add("track_record", "signal_closed", float(record.closed), "count", source)
    facts.add("track_record", "signal_hit_rate", won, "fraction", source)
    facts.add("track_record", "signal_average_r", mean, "R", source)


def _targets(
    facts: _Facts, bars: BarSeries, levels: Levels, record: TrackRecord, costs: Costs
) -> None:
    source = "pipeline.levels"
    for name, price in target_levels(bars, levels, record).items():
        facts.add(
            "level",
            f"target_{name}",
            price,
            "USD",
            source,
            text="" if price else "no such level above the entry",
        )
        if price is None:
            continue
        ratio = costs.reward_risk_ratio(entry=levels.entry, stop=levels.stop, target=price)
        distance = (price - levels.entry) / levels.risk
        chance = record.probability(distance)
        facts.add("level", f"reward_risk_{name}", ratio, "ratio", source)
        facts.add("track_record", f"hits_{name}", float(record.hits(distance)), "count", source)
        facts.add("track_record", f"probability_{name}", chance, "fraction", source)
        facts.add(
            "track_record", f"expected_value_{name}", chance * ratio - (1.0 - chance), "R", source
        )


def _sessions(facts: _Facts, bars: BarSeries, index: int) -> None:
    """The newest session and the one of the signal's bar, as yyyymmdd."""
    for name, at in (("session", -1), ("signal_session", index)):
        day = session_of(from_ns(bars.timestamp[at]))
        facts.add("technical", name, float(f"{day:%Y%m%d}"), "date", f"bars:{bars.source}")


def _limits(facts: _Facts, limits: RiskLimits) -> None:
    for name, value, unit in (
        ("limit_reward_risk", limits.min_reward_risk, "ratio"),
        ("limit_position_weight", limits.max_position_weight, "fraction"),
        ("limit_risk_per_trade", limits.risk_per_trade, "fraction"),
    ):
        facts.add("portfolio", name, value, unit, "risk.gate")


def _library(facts: _Facts, bars: BarSeries, indicators: Sequence[str]) -> None:
    """The newest value of every output of the `ta` indicators that a person asked for."""
    for name in indicators:
        short = name.rpartition(".")[2]
        for output, values in library_indicator(name, bars).items():
            facts.add("technical", f"{short}.{output}", _last(values), "points", "ta")


def _last(array: NDArray[np.float64], back: int = 1) -> float | None:
    return float(array[-back]) if array.size >= back else None


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None
