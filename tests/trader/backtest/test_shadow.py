"""The shadow ledger: exact on hand-written bars, and equal to the real trade where there is one."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trader.pipeline.accounts import CALENDAR, REFERENCE, account_over, slots_of
from tests.trader.pipeline.bars import daily
from tests.trader.report.decisions import cycle_record
from trader.app.assembly import strategies_of
from trader.backtest.evaluation import trade_rows
from trader.backtest.replay import Replay, replay
from trader.backtest.shadow import ShadowLedger, refusals_of
from trader.core.config import Config
from trader.core.costs import Costs
from trader.core.decision import CycleRecord, Decision, FlagCode, RiskFlag
from trader.core.market import BarSeries, Timeframe, from_ns, session_of
from trader.core.ports import Crossings
from trader.data.sample import SampleData
from trader.pipeline.records import SlotRecord
from trader.pipeline.slots import slots_between
from trader.report.contents import ShadowTrade
from trader.risk.gate import RiskLimits

FREE = Costs(slippage_bps=0)
TEN_BPS = Costs(slippage_bps=10)


@dataclass(frozen=True)
class Leaves:
    """A strategy that wants to leave on the bars it is told."""

    on: Sequence[int] = ()
    name: str = "atr_trend"
    style: str = "trend"
    parameters: Mapping[str, float] = field(default_factory=dict)
    entry_rule: None = None

    def crossings(self, bars: BarSeries) -> Crossings:
        exits = np.zeros(len(bars), dtype=np.bool_)
        exits[[at for at in self.on if at < len(bars)]] = True
        return Crossings(entry=np.zeros(len(bars), dtype=np.bool_), exit=exits)

    def features(self, bars: BarSeries, index: int) -> Mapping[str, float]:
        return {}

    def reason(self, bars: BarSeries, index: int) -> str:
        return "told to"


def slot_record(bars: BarSeries, index: int, *, fit: bool = True) -> SlotRecord:
    as_of = from_ns(bars.available_at[index])
    return SlotRecord(
        session=as_of.date(),
        as_of=as_of,
        cash=Decimal(0),
        equity=Decimal(0),
        positions={},
        closes={},
        hashes={bars.symbol: "x"} if fit else {},
        fills=(),
        exits=(),
        refused={} if fit else {bars.symbol: "a gap"},
        resolved=(),
        protected=(),
        naked={},
        expired=(),
        skipped=(),
        cycles=(),
        refusals={},
    )


def decision(
    bars: BarSeries, index: int, *, stop: float, target: float | None = None
) -> CycleRecord:
    """A NO_GO at the close of bar `index`, with 100,100 USD and an ATR of half the risk."""
    as_of, bar_at = from_ns(bars.available_at[index]), from_ns(bars.timestamp[index])
    close = float(bars.close[index])
    made = cycle_record(random.Random(1), 0, as_of, close)
    verdict = replace(
        made.debate.verdict,
        decision=Decision.NO_GO,
        target_price=target,
        flags=(RiskFlag(code=FlagCode.LOW_CONFIDENCE, detail=""),),
    )
    portfolio = replace(made.risk_inputs.portfolio, cash=Decimal(100_100), equity=Decimal(100_100))
    return replace(
        made,
        cycle_id=f"hand-{index}",
        candidate=replace(
            made.candidate,
            signal=replace(made.candidate.signal, bar_at=bar_at),
            entry_price=close,
            stop_price=stop,
        ),
        debate=replace(made.debate, verdict=verdict),
        risk_inputs=replace(
            made.risk_inputs,
            bar_at=bar_at,
            expected_bar_at=bar_at,
            close=close,
            atr=(close - stop) / 2.0,
            portfolio=portfolio,
        ),
        risk=replace(made.risk, approved=False, quantity=0),
        intent=None,
    )


def followed(
    bars: BarSeries,
    *cycles: CycleRecord,
    exits: Sequence[int] = (),
    costs: Costs = FREE,
    until: int | None = None,
    unfit: Sequence[int] = (),
) -> tuple[ShadowTrade, ...]:
    last = len(bars) if until is None else until
    ledger = ShadowLedger(
        bars={"AAPL": bars},
        strategies={"atr_trend": Leaves(exits)},
        slots=[slot_record(bars, index, fit=index not in unfit) for index in range(last)],
        costs=costs,
        limits=RiskLimits(),
    )
    return ledger.follow(cycles)


def one(bars: BarSeries, cycle: CycleRecord, **options) -> ShadowTrade:
    (trade,) = followed(bars, cycle, **options)
    return trade


# Decided at the close of bar 1, 100; stop 90, so R is 10 where the next open is 100. Risk per trade
# is 1 % of 100,100 USD, 1,001 USD: 100 whole shares.
FLAT = [100.0, 100.0, 100.0, 100.0, 100.0, 100.0]


def test_the_target_is_paid_at_its_price_on_the_bar_that_reaches_it():
    bars = daily(FLAT, high={3: 125.0})
    trade = one(bars, decision(bars, 1, stop=90.0, target=120.0))
    assert (trade.entry_price, trade.exit_price, trade.left_by) == (100.0, 120.0, "target")
    assert (trade.quantity, trade.profit, trade.r_multiple) == (100, 2_000.0, 2.0)
    assert trade.entered_at == from_ns(bars.timestamp[2])
    assert trade.exited_at == from_ns(bars.available_at[3])
    assert (trade.flags, trade.is_open, trade.repeats) == (("LOW_CONFIDENCE",), False, False)


def test_slippage_is_paid_at_the_entry_and_at_the_stop_and_not_at_a_target():
    bars = daily(FLAT, low={3: 80.0})
    trade = one(bars, decision(bars, 1, stop=90.0), costs=TEN_BPS)
    assert (trade.entry_price, trade.exit_price, trade.left_by) == (100.1, 89.91, "stop")
    assert trade.r_multiple == pytest.approx((89.91 - 100.1) / (100.1 - 90.0))
    bars = daily(FLAT, high={3: 130.0})
    assert one(bars, decision(bars, 1, stop=90.0, target=120.0), costs=TEN_BPS).exit_price == 120.0


def test_a_bar_that_reaches_both_counts_as_stopped():
    bars = daily(FLAT, low={3: 89.0}, high={3: 130.0})
    assert one(bars, decision(bars, 1, stop=90.0, target=120.0)).left_by == "stop"


@pytest.mark.parametrize(
    ("opened", "left_by", "price"), [(85.0, "stop", 84.915), (128.0, "target", 128.0)]
)
def test_a_gap_over_a_level_trades_at_the_open(opened, left_by, price):
    bars = daily(FLAT, open={3: opened}, low={3: 84.0}, high={3: 130.0})
    trade = one(bars, decision(bars, 1, stop=90.0, target=120.0), costs=TEN_BPS)
    assert (trade.left_by, trade.exit_price) == (left_by, price)
    assert trade.exited_at == from_ns(bars.timestamp[3])


def test_an_entry_that_opens_below_its_stop_leaves_at_once_and_has_no_r():
    bars = daily(FLAT, open={2: 88.0}, low={2: 87.0})
    trade = one(bars, decision(bars, 1, stop=90.0))
    assert (trade.entry_price, trade.exit_price, trade.r_multiple) == (88.0, 88.0, None)


def test_the_stop_holds_on_the_bar_of_the_entry():
    bars = daily(FLAT, low={2: 89.0})
    assert one(bars, decision(bars, 1, stop=90.0)).exited_at == from_ns(bars.available_at[2])


def test_the_strategys_exit_trades_at_the_open_after_the_slot_that_saw_it():
    bars = daily(FLAT, open={4: 104.0}, high={4: 130.0}, low={4: 80.0})
    # the sale of bar 4's open comes before the stop and the target that the same bar reaches
    trade = one(bars, decision(bars, 1, stop=90.0, target=120.0), exits=[0, 1, 3])
    assert (trade.left_by, trade.exit_price, trade.profit) == ("signal", 104.0, 400.0)
    assert trade.exited_at == from_ns(bars.timestamp[4])


def test_a_slot_without_fit_bars_sees_no_exit():
    bars = daily(FLAT, open={4: 104.0, 5: 105.0})
    trade = one(bars, decision(bars, 1, stop=90.0), exits=[3], unfit=[3])
    assert trade.exit_price == 105.0


def test_what_never_ends_is_open_at_the_last_close_of_the_walk():
    bars = daily([*FLAT, 150.0])
    trade = one(bars, decision(bars, 1, stop=90.0, target=120.0), until=6)
    assert (trade.is_open, trade.exited_at, trade.left_by) == (True, None, "")
    assert (trade.exit_price, trade.profit) == (100.0, 0.0)  # the bar of 150 lies behind the walk


def test_a_decision_on_the_last_bar_is_never_entered():
    bars = daily(FLAT)
    cycle = decision(bars, 5, stop=90.0)
    assert followed(bars, cycle) == ()
    found = refusals_of([cycle], ())
    assert (found.no_go, found.never_entered, found.total.trades) == (1, 1, 0)


def test_an_entry_whose_one_bar_never_came_is_given_up_at_the_next_slot():
    whole = daily(FLAT)
    kept = np.array([0, 1, 3, 4, 5])  # the symbol has no bar 2; the exchange was open
    gap = replace(
        whole,
        **{
            name: getattr(whole, name)[kept]
            for name in ("timestamp", "available_at", "open", "high", "low", "close", "volume")
        },
    )
    ledger = ShadowLedger(
        bars={"AAPL": gap},
        strategies={"atr_trend": Leaves()},
        slots=[slot_record(whole, index) for index in range(len(whole))],
        costs=FREE,
        limits=RiskLimits(),
    )
    assert ledger.follow([decision(gap, 1, stop=90.0)]) == ()
    assert len(ledger.follow([decision(gap, 2, stop=90.0)])) == 1


def test_fees_are_taken_and_a_commission_only_where_the_size_is_known():
    costs = Costs(slippage_bps=0, fee_bps=100, commission_per_order=7)
    bars = daily(FLAT, high={3: 125.0})
    cycle = decision(bars, 1, stop=90.0, target=120.0)
    trade = one(bars, cycle, costs=costs)
    assert trade.profit == 100 * 20.0 - (100.0 + 7.0) - (120.0 + 7.0)
    assert trade.r_multiple == pytest.approx(trade.profit / 1_000.0)
    poor = replace(
        cycle,
        risk_inputs=replace(
            cycle.risk_inputs, portfolio=replace(cycle.risk_inputs.portfolio, cash=Decimal(5))
        ),
    )
    trade = one(bars, poor, costs=costs)
    assert (trade.quantity, trade.profit) == (0, 0.0)
    assert trade.r_multiple == pytest.approx((20.0 - 1.0 - 1.2) / 10.0)


def test_a_target_below_the_entry_is_none():
    bars = daily(FLAT)
    assert one(bars, decision(bars, 1, stop=90.0, target=99.0)).target_price is None


def test_a_refusal_while_an_earlier_one_would_be_held_is_left_out_of_the_sums():
    bars = daily([*FLAT, 100.0, 100.0], high={5: 125.0})
    cycles = [decision(bars, index, stop=90.0, target=120.0) for index in (1, 3, 5)]
    trades = followed(bars, *cycles)
    assert [trade.repeats for trade in trades] == [False, True, False]
    found = refusals_of(cycles, trades)
    assert (found.no_go, found.repeats, found.still_open, found.total.trades) == (3, 1, 1, 2)
    assert (found.total.r, found.total.profit, found.total.won) == (2.0, 2_000.0, 1)
    assert found.by_flag == {"LOW_CONFIDENCE": found.total}


def test_bars_after_the_walk_change_nothing():
    bars = daily([*FLAT, 150.0, 20.0])
    cycle = decision(bars, 1, stop=90.0, target=120.0)
    assert one(bars, cycle, until=6) == one(bars.head(6), cycle)


def agrees(run: Replay, bars: Mapping[str, BarSeries], config) -> int:
    """Every real trade beside its shadow; how many there were."""
    ledger = ShadowLedger(
        bars=bars,
        strategies={item.name: item for item in strategies_of(config, REFERENCE)},
        slots=run.slots,
        costs=Costs(
            slippage_bps=config.costs.slippage_bps,
            fee_bps=config.costs.fee_bps,
            commission_per_order=config.costs.commission_per_order,
        ),
        limits=RiskLimits(),
    )
    shadows = {trade.cycle_id: trade for trade in ledger.follow(run.cycles)}
    rows = trade_rows(run)
    for row in rows:
        shadow = shadows[row.trade_id]
        assert shadow.quantity == row.quantity
        assert (shadow.entered_at, shadow.entry_price) == (row.entered_at, row.entry_price)
        assert (shadow.exited_at, shadow.left_by) == (row.exited_at, row.left_by)
        assert shadow.is_open or shadow.exit_price == row.exit_price
        assert shadow.profit == pytest.approx(row.profit)
        assert shadow.r_multiple == pytest.approx(row.r_multiple)
    return len(rows)


COSTS = {"fee_bps": 3.0, "commission_per_order": 1.0}


@settings(max_examples=5)
@given(seed=st.integers(0, 10_000), debated=st.booleans())
def test_a_shadow_is_the_real_trade_of_every_go(seed, debated):
    steps = np.random.default_rng(seed).normal(0.0006, 0.025, 250).cumsum()
    bars = daily([round(float(close), 2) for close in 100 * np.exp(steps)])
    slots = slots_of(bars, 190)
    account = account_over(bars, start=slots[0], debated=debated, costs=COSTS)
    run = replay(account.cycle, slots, book=account.journal.book, ledger=account.ledger)
    agrees(run, {"AAPL": bars}, Config.model_validate({"costs": COSTS}))


@pytest.mark.parametrize("timeframe", [Timeframe.DAY, Timeframe.HOUR])
def test_shadows_of_the_sample_are_its_real_trades(timeframe):
    whole = SampleData(CALENDAR).bars("AAPL", timeframe)
    bars = whole.slice(len(whole) - 700, len(whole))
    newest = session_of(from_ns(bars.timestamp[-1]))
    first = session_of(from_ns(bars.timestamp[-150]))
    slots = slots_between(CALENDAR, timeframe, first, newest)
    sections = {"data": {"timeframe": str(timeframe)}, "costs": COSTS}
    account = account_over(bars, start=slots[0], debated=False, **sections)
    run = replay(account.cycle, slots, book=account.journal.book, ledger=account.ledger)
    assert agrees(run, {"AAPL": bars}, Config.model_validate(sections)) >= 3
