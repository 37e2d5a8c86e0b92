"""One lane and one backtest: the same trades, prices, money and metrics, to the last cent."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies.kernels.dispatch import kernels
from strategies.kernels.engines import shared_cash, shared_reference, walk, walk_reference
from strategies.kernels.engines.lanes import METRICS, Lanes, Prices, Signals, Terms, pack
from strategies.registry import make_strategy
from tests.trader.pipeline.bars import HandData, daily
from trader.app import open_app
from trader.app.assembly import embedded_broker, embedded_exchange
from trader.backtest.all_in import AllIn, Rules, all_in, market_cash
from trader.backtest.evaluation import replay_column
from trader.core.clock import new_york
from trader.core.config import Config
from trader.core.costs import Costs
from trader.core.market import BarSeries, Timeframe, from_ns, session_of, to_ns
from trader.core.metrics import Performance
from trader.data.source import open_data
from trader.ledger.store import Ledger
from trader.orders.journal import OrderJournal
from trader.pipeline.slots import slots_between
from trader.report.contents import TradeRow

CALENDAR = new_york()
CASH = Decimal(100_000)
ATR_WINDOW = 14
NAMES = ("sma_cross", "rsi_reversion", "macd_momentum", "atr_trend")
QUICK = {  # numbers that trade often on few bars
    "sma_cross": {"fast": 2, "slow": 5},
    "rsi_reversion": {"rsi_window": 4, "oversold": 40.0, "overbought": 60.0},
    "macd_momentum": {"fast": 3, "slow": 7, "signal": 3},
    "atr_trend": {"sma_window": 5, "atr_window": 4, "band_atr": 0.1},
}
FREE = Costs(slippage_bps=0.0)
USUAL = Costs()
DEAR = Costs(slippage_bps=7.5, fee_bps=12.5, commission_per_order=1.25)
ENGINES = (walk_reference, walk)


@cache
def sample(symbol: str) -> BarSeries:
    return open_data("sample", CALENDAR, seed=7).bars(symbol, Timeframe.DAY)


def bar_from(bars: BarSeries, day: date) -> int:
    """Index of the first bar from `day` on."""
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return int(bars.timestamp.searchsorted(to_ns(moment)))


def backtested(
    strategy, *series: BarSeries, first: int, costs: Costs, stop: float, cash: Decimal
) -> tuple[AllIn, Performance]:
    """What `trader backtest --sizing all_in` does with these bars from bar `first` on."""
    stamps = series[0].timestamp
    days = [session_of(from_ns(ns)) for ns in (stamps[first], stamps[-1])]
    slots = slots_between(CALENDAR, Timeframe.DAY, *days)
    config = Config.model_validate(
        {
            "costs": {
                "slippage_bps": costs.slippage_bps,
                "fee_bps": costs.fee_bps,
                "commission_per_order": costs.commission_per_order,
            }
        }
    )
    exchange = embedded_exchange(
        config,
        data=HandData(*series),
        calendar=CALENDAR,
        start=slots[0].since,
        cash=market_cash(cash),
    )
    found = all_in(
        strategy,
        {bars.symbol: bars for bars in series},
        slots,
        run_id="parity",
        market=exchange,
        broker=embedded_broker(exchange),
        journal=OrderJournal(Ledger(None, durable=False), cash=cash, costs=costs),
        calendar=CALENDAR,
        kernels=strategy.kernels,
        rules=Rules(costs=costs, atr_window=ATR_WINDOW, atr_multiple=stop),
    )
    exchange.close()
    column = replay_column("all_in", "", found.replay, initial=float(cash), periods_per_year=252.0)
    return found, column.performance


def lane_of(strategy, bars: BarSeries, *, first: int, costs: Costs, stop: float, cash: Decimal):
    """The arguments of a walk of one lane over the same bars by the same rule."""
    fired = strategy.crossings(bars)
    none = np.zeros(1)
    return (
        Prices(
            open=bars.open,
            high=bars.high,
            low=bars.low,
            close=bars.close,
            volume=bars.volume,
            first=first,
        ),
        Signals(entry=pack(fired.entry[None, :]), exit=pack(fired.exit[None, :])),
        strategy.kernels.atr(bars.high, bars.low, bars.close, ATR_WINDOW)[None, :],
        Lanes(
            signal=np.zeros(1, dtype=np.int64),
            atr=np.zeros(1, dtype=np.int64),
            stop=none + stop,
            target=none,
            trail=none,
            max_bars=np.zeros(1, dtype=np.int64),
        ),
        Terms(
            cash=float(cash),
            slippage=costs.slippage,
            fee_rate=costs.fee_rate,
            commission_per_order=costs.commission_per_order,
            whole_shares=True,
        ),
    )


def compare_trades(rows: tuple[TradeRow, ...], trades, bars: BarSeries) -> None:
    """Bars, shares, prices, profit and reason of every trade."""
    opened, complete = bars.timestamp.tolist(), bars.available_at.tolist()
    assert len(rows) == len(trades)
    for row, trade in zip(rows, trades, strict=True):
        assert opened.index(to_ns(row.entered_at)) == trade.entry_bar
        assert row.quantity == trade.shares
        assert row.entry_price == pytest.approx(trade.entry_price, rel=0, abs=1e-9)
        assert row.profit == pytest.approx(trade.profit, rel=0, abs=0.005)
        assert row.is_open == (trade.exit_bar == -1)
        if row.is_open or row.exited_at is None:
            continue
        left_at = to_ns(row.exited_at)  # at an open, or inside a bar that tells when it is complete
        inside = left_at in complete
        assert (complete if inside else opened).index(left_at) == trade.exit_bar
        assert row.exit_price == pytest.approx(trade.exit_price, rel=0, abs=1e-9)
        assert row.left_by.replace("signal", "exit") == trade.left_by


def compare_metrics(performance: Performance, outcomes) -> None:
    """Every metric that a backtest tells; it does not tell the Sortino ratio."""
    for metric in METRICS:
        if metric == "sortino":
            continue
        told = getattr(performance, metric)
        expected = math.nan if told is None else told
        seen = float(getattr(outcomes, metric)[0])
        assert seen == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True), metric


def require_parity(bars: BarSeries, name: str, *, parameters=None, **terms) -> AllIn:
    """Both engines and the backtest do the same; what the backtest did."""
    strategy = make_strategy(name, parameters or {}, kernels("cpu"))
    terms = {"costs": USUAL, "stop": 2.0, "cash": CASH} | terms
    found, performance = backtested(strategy, bars, **terms)
    lane = lane_of(strategy, bars, **terms)
    for engine in ENGINES:
        compare_trades(found.trades, engine.trades(*lane), bars)
        compare_metrics(performance, engine.walk(*lane))
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("symbol", "first", "last", "costs"),
    [
        ("AAPL", date(2020, 1, 2), date(2026, 8, 5), DEAR),
        ("NVDA", date(2022, 1, 3), date(2023, 3, 31), USUAL),
        ("MSFT", date(2018, 9, 4), date(2019, 8, 30), FREE),
    ],
)
def test_a_lane_is_the_backtest_trade_by_trade_on_real_bars(name, symbol, first, last, costs):
    bars = sample(symbol).until(CALENDAR.close(last))
    found = require_parity(bars, name, first=bar_from(bars, first), costs=costs)
    assert found.trades
    assert (found.replay.book.fees > 0) == (costs is DEAR)


def rough(seed: int, *, scale: float, tick: float | None, size: int = 130) -> BarSeries:
    """Wild bars that gap through stops, on ticks or not."""
    random = np.random.default_rng(seed)
    close = scale * np.exp(np.cumsum(random.normal(0.0, 0.03, size)))
    open_ = np.concatenate((close[:1], close[:-1])) * np.exp(random.normal(0.0, 0.02, size))
    high = np.maximum(open_, close) * np.exp(np.abs(random.normal(0.0, 0.015, size)))
    low = np.minimum(open_, close) * np.exp(-np.abs(random.normal(0.0, 0.015, size)))
    if tick:
        open_, high, low, close = (
            np.round(np.round(x / tick) * tick, 6) for x in (open_, high, low, close)
        )
    return replace(daily(close.tolist()), open=open_, high=high, low=low)


@given(
    seed=st.integers(0, 2**31),
    name=st.sampled_from(NAMES),
    scale=st.sampled_from([3.0, 25.0, 180.0, 900.0]),
    tick=st.sampled_from([0.01, None, 0.05]),
    slippage=st.sampled_from([0.0, 5.0, 7.5, 33.3]),
    fee=st.sampled_from([0.0, 1.0, 12.5, 100.0]),
    commission=st.sampled_from([0.0, 1.0, 0.333]),
    stop=st.sampled_from([1.0, 2.0, 3.7]),
    cash=st.sampled_from([Decimal(100_000), Decimal(1_000), Decimal("97.31")]),
)
@settings(max_examples=15)
def test_a_lane_is_the_backtest_on_any_bars_at_any_costs(
    seed, name, scale, tick, slippage, fee, commission, stop, cash
):
    costs = Costs(slippage_bps=slippage, fee_bps=fee, commission_per_order=commission)
    bars = rough(seed, scale=scale, tick=tick)
    require_parity(bars, name, parameters=QUICK[name], first=20, costs=costs, stop=stop, cash=cash)


def test_the_rough_bars_show_every_way_to_leave():
    """What the property above is worth: gaps, stops on the entry bar and signals do occur."""
    found, opens = [], set()
    for seed, name in enumerate(NAMES):
        bars = rough(seed, scale=50.0, tick=0.01)
        found += require_parity(bars, name, parameters=QUICK[name], first=20, stop=1.0).trades
        opens |= set(map(from_ns, bars.timestamp))
    stopped = [row for row in found if row.left_by == "stop"]
    assert {row.left_by for row in found} >= {"stop", "signal"}
    assert any(row.exited_at in opens for row in stopped)  # gapped over
    assert any(row.exited_at not in opens for row in stopped)
    assert any(session_of(row.exited_at) == session_of(row.entered_at) for row in stopped)


def test_the_lane_skips_the_entries_that_the_exchange_refuses():
    """Stops of a third of the ATR may lie within a cent of the close of a share below a dollar."""
    bars = rough(4, scale=0.65, tick=None)
    found = require_parity(
        bars, "macd_momentum", parameters=QUICK["macd_momentum"], first=20, stop=0.3
    )
    assert found.funnel.broker_refusals
    assert found.trades


@pytest.mark.parametrize("seeds", [(11, 12), (13, 14)])
def test_two_symbols_that_share_the_cash_are_one_lane_of_the_shared_engines(seeds):
    pair = [
        replace(rough(seed, scale=40.0, tick=0.01), symbol=symbol)
        for seed, symbol in zip(seeds, ("AAA", "BBB"), strict=True)
    ]
    strategy = make_strategy("sma_cross", QUICK["sma_cross"], kernels("cpu"))
    terms = {"first": 20, "costs": DEAR, "stop": 2.0, "cash": CASH}
    found, performance = backtested(strategy, *pair, **terms)
    parts = {bars.symbol: lane_of(strategy, bars, **terms) for bars in pair}
    *_, lanes, money = parts["AAA"]
    markets, signals, tables = (
        {symbol: part[place] for symbol, part in parts.items()} for place in range(3)
    )
    for engine in (shared_reference, shared_cash):
        trades = engine.trades_shared(markets, signals, tables, lanes, money)
        for bars in pair:
            rows = tuple(row for row in found.trades if row.symbol == bars.symbol)
            assert rows
            compare_trades(rows, trades[bars.symbol], bars)
        compare_metrics(performance, engine.walk_shared(markets, signals, tables, lanes, money))
        (curve,) = engine.curves_shared(markets, signals, tables, lanes, money)
        equity = [float(slot.equity) for slot in found.replay.slots]
        assert equity == pytest.approx(curve, rel=1e-9)
    held = {len(slot.positions) for slot in found.replay.slots}
    assert held == {0, 1, 2}  # the cash was shared in every way there is
    shuffled, _ = backtested(strategy, *reversed(pair), **terms)
    assert [slot.equity for slot in shuffled.replay.slots] == [
        slot.equity for slot in found.replay.slots
    ]


def test_the_command_measures_what_the_lane_says(tmp_path):
    """Settings, costs and period reach the walk: nothing of it is a default here."""
    app = open_app(
        overrides=(
            f"state_dir={tmp_path}",
            "kernels.backend=cpu",
            "debate.mode=off",
            "strategies.enabled=sma_cross",
            "strategies.parameters.sma_cross.fast=5",
            "strategies.parameters.sma_cross.slow=15",
            "symbols=NVDA",
            "account.cash=54321",
            "risk.atr_multiple=1.5",
            "risk.atr_window=14",
            "costs.slippage_bps=7.5",
            "costs.fee_bps=12.5",
            "costs.commission_per_order=1.25",
        ),
        environ={},
    )
    first, last = date(2021, 3, 1), date(2021, 12, 31)
    result = app.backtest(start=first, end=last, sizing="all_in")
    bars = sample("NVDA").until(CALENDAR.close(last))
    strategy = make_strategy("sma_cross", {"fast": 5, "slow": 15}, kernels("cpu"))
    lane = lane_of(
        strategy,
        bars,
        first=bar_from(bars, first),
        costs=DEAR,
        stop=1.5,
        cash=Decimal(54_321),
    )
    compare_trades(result.trades, walk_reference.trades(*lane), bars)
    compare_metrics(result.results["all_in"].performance, walk_reference.walk(*lane))
    assert len(result.trades) > 5
