"""All in: every free dollar, one stop, the exchange's fills, and no order refused for its size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import ClassVar

import numpy as np
import pytest

from strategies.kernels.dispatch import KernelSet, kernels
from tests.trader.pipeline.accounts import CALENDAR, slots_of
from tests.trader.pipeline.bars import HandData, daily
from trader.app.assembly import embedded_broker, embedded_exchange
from trader.backtest.all_in import AllIn, Rules, all_in, market_cash
from trader.core.config import Config
from trader.core.costs import Costs
from trader.core.errors import StateError
from trader.core.market import BarSeries, from_ns
from trader.core.ports import Crossings
from trader.ledger.store import Ledger
from trader.orders.journal import OrderJournal

REFERENCE = kernels("reference")
FREE = Costs(slippage_bps=0.0)
FIRST = 3  # bar of the first decision; an ATR of 2 is known by then


@dataclass(frozen=True, kw_only=True)
class Scripted:
    """Fires where it was told to. enter, leave: symbol -> bars."""

    name: ClassVar[str] = "scripted"
    style: ClassVar[str] = "trend"
    parameters: ClassVar[Mapping[str, float]] = {}
    entry_rule: ClassVar[None] = None

    kernels: KernelSet = REFERENCE
    enter: Mapping[str, tuple[int, ...]]
    leave: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def crossings(self, bars: BarSeries) -> Crossings:
        at = np.arange(len(bars))
        return Crossings(
            entry=np.isin(at, self.enter.get(bars.symbol, ())),
            exit=np.isin(at, self.leave.get(bars.symbol, ())),
        )

    def features(self, bars: BarSeries, index: int) -> Mapping[str, float]:
        return {}

    def reason(self, bars: BarSeries, index: int) -> str:
        return f"scripted on bar {index}"


@dataclass(frozen=True, kw_only=True)
class Desk:
    """What a walk left, with its ledger and broker."""

    found: AllIn
    ledger: Ledger
    broker: object

    @property
    def cash(self) -> list[Decimal]:
        return [slot.cash for slot in self.found.replay.slots]


def walked(
    *series: BarSeries,
    enter,
    leave=(),
    costs: Costs = FREE,
    cash=1_000,
    lent=None,
    slots=None,
    progress=None,
) -> Desk:
    """Walk bars FIRST.. of the series. enter, leave: bars of the only symbol, or by symbol."""
    symbol = series[0].symbol
    by_symbol = [item if isinstance(item, Mapping) else {symbol: item} for item in (enter, leave)]
    slots = slots or slots_of(series[0], FIRST)
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
        cash=lent or market_cash(Decimal(cash)),
    )
    broker, ledger = embedded_broker(exchange), Ledger(None, durable=False)
    found = all_in(
        Scripted(enter=by_symbol[0], leave=by_symbol[1]),
        {bars.symbol: bars for bars in series},
        slots,
        run_id="test",
        market=exchange,
        broker=broker,
        journal=OrderJournal(ledger, cash=Decimal(cash), costs=costs),
        calendar=CALENDAR,
        kernels=REFERENCE,
        rules=Rules(costs=costs, atr_window=2, atr_multiple=2.0),
        progress=progress,
    )
    return Desk(found=found, ledger=ledger, broker=broker)


def flat(count: int = 10, price: float = 100.0, **changes) -> BarSeries:
    """Bars at one price, 2 wide, so that their ATR is 2 and a stop of 2 ATR lies 4 below."""
    return daily([price] * count, **changes)


def without(bars: BarSeries, index: int) -> BarSeries:
    """The same bars but one."""
    names = ("timestamp", "available_at", "open", "high", "low", "close", "volume")
    return replace(bars, **{name: np.delete(getattr(bars, name), index) for name in names})


def trade_of(desk: Desk):
    (row,) = desk.found.trades
    return row


def test_a_round_trip_by_hand():
    """Decided at the close of bar 4, bought at the open of 5, left at the open of 8.

    1,000 USD, 1 % slippage, 1 % fee, 5 USD an order. Bought at 102 × 1.01 = 103.02: 10 shares would
    cost 1,030.20, 9 cost 927.18 + 9.27 + 5.00 = 941.45. Sold at 110 × 0.99 = 108.90: 980.10
    less 9.80 and 5.00. The stop: 100 × 1.01 - 2 × 2 = 97.
    """
    costs = Costs(slippage_bps=100, fee_bps=100, commission_per_order=5)
    bars = flat(open={5: 102.0, 8: 110.0}, high={5: 103.0, 8: 111.0})
    desk = walked(bars, enter=(4,), leave=(7,), costs=costs)
    row = trade_of(desk)
    assert (row.quantity, row.entry_price, row.exit_price) == (9.0, 103.02, 108.9)
    assert row.profit == pytest.approx(980.10 - 9.80 - 5.00 - 941.45)
    assert (row.entered_at, row.exited_at) == tuple(from_ns(bars.timestamp[i]) for i in (5, 8))
    assert (row.left_by, row.why_entered, row.why_left) == (
        "signal",
        "scripted on bar 4",
        "scripted on bar 7",
    )
    assert row.r_multiple == pytest.approx(row.profit / (9 * (103.02 - 97.0)))
    slots = desk.found.replay.slots
    assert [slot.equity for slot in slots[:2]] == [1_000, 1_000]
    assert slots[2].equity == Decimal(1_000) - Decimal("941.45") + 9 * 100
    assert slots[-1].equity == desk.found.replay.book.cash == Decimal("1023.85")


def test_the_stop_is_the_one_that_a_candidate_gets_and_rests_at_the_exchange():
    desk = walked(flat(price=100.37), enter=(4,), costs=Costs(slippage_bps=5))
    (entry,) = desk.broker.orders(open_only=False)
    (stop,) = entry.legs
    # 100.37 × 1.0005 - 2 × 2 = 96.420185, a tick down
    assert (stop.stop_price, stop.quantity, stop.status.is_final) == (
        Decimal("96.42"),
        entry.quantity,
        False,
    )
    assert trade_of(desk).is_open


def test_a_stop_reached_on_the_entry_bar_leaves_on_the_entry_bar_at_its_level():
    bars = flat(low={5: 95.0})
    row = trade_of(walked(bars, enter=(4,)))
    assert (row.exit_price, row.left_by) == (96.0, "stop")
    assert row.exited_at == from_ns(bars.available_at[5])
    assert row.r_multiple == pytest.approx(-1.0)


def test_a_gap_through_the_stop_leaves_at_the_open():
    bars = flat(open={7: 90.0}, low={7: 89.0})
    row = trade_of(walked(bars, enter=(4,)))
    assert (row.exit_price, row.left_by) == (90.0, "stop")
    assert row.exited_at == from_ns(bars.timestamp[7])


def test_an_entry_that_opens_below_its_own_stop_is_left_at_that_open():
    bars = flat(open={5: 90.0}, low={5: 89.0})
    row = trade_of(walked(bars, enter=(4,), costs=Costs(slippage_bps=100)))
    assert row.entered_at == row.exited_at == from_ns(bars.timestamp[5])
    assert (row.entry_price, row.exit_price) == (90.9, 89.1)


def test_an_exit_that_waits_goes_before_the_stop_of_its_bar():
    bars = flat(open={8: 99.0}, low={8: 80.0})
    row = trade_of(walked(bars, enter=(4,), leave=(7,)))
    assert (row.exit_price, row.left_by) == (99.0, "signal")


def test_a_stop_on_the_bar_that_says_leave_is_the_only_sale():
    desk = walked(flat(low={7: 90.0}), enter=(4,), leave=(7,))
    assert trade_of(desk).left_by == "stop"
    assert desk.found.funnel.fills == 2


def test_the_bar_of_a_stop_may_enter_again():
    found = walked(flat(low={5: 90.0}), enter=(4, 5)).found
    assert [row.is_open for row in found.trades] == [False, True]


def test_an_exit_on_the_bar_of_the_entry_signal_is_not_one_of_the_trade():
    found = walked(flat(), enter=(4,), leave=(4,)).found
    assert [row.is_open for row in found.trades] == [True]
    first_bar_of_the_trade = walked(flat(), enter=(4,), leave=(5,)).found
    assert [row.left_by for row in first_bar_of_the_trade.trades] == ["signal"]


def test_an_exit_that_fired_while_the_symbol_was_unfit_is_not_forgotten():
    """Bar 7 is missing at its slot: the exit of bar 6 is not, and the sale waits for bar 8."""
    bars = without(flat(), 7)
    row = trade_of(walked(bars, enter=(4,), leave=(6,), slots=slots_of(flat(), FIRST)))
    assert row.left_by == "signal"
    assert row.exited_at == from_ns(bars.timestamp[7])


def test_a_signal_on_the_last_bar_buys_and_sells_nothing():
    desk = walked(flat(), enter=(9,))
    assert desk.found.trades == ()
    assert desk.found.funnel.skipped == {"no open followed": 1}
    held = walked(flat(), enter=(4,), leave=(9,))
    assert trade_of(held).is_open
    assert trade_of(held).why_left == "still open"
    assert held.found.funnel.orders == 1
    (entry,) = held.broker.orders()
    assert [leg.status.is_final for leg in entry.legs] == [False]  # its stop still rests


def test_what_is_open_at_the_end_is_worth_the_last_close():
    bars = daily([100.0] * 9 + [120.0])
    row = trade_of(walked(bars, enter=(4,)))
    assert (row.exited_at, row.exit_price, row.profit) == (None, None, 200.0)


@pytest.mark.parametrize("opening", [30.0, 96.5, 100.0, 130.0, 900.0])
def test_no_gap_between_close_and_open_costs_an_order_or_a_dollar_too_much(opening):
    """A buy is sized at the open it will pay; the exchange asks 4 % more than the last close."""
    bars = flat(open={5: opening}, high={5: max(opening, 100.0)}, low={5: min(opening, 100.0)})
    desk = walked(bars, enter=(4,), costs=Costs(fee_bps=10))
    row = trade_of(desk)
    assert row.quantity > 0
    left = 1_000 - row.quantity * row.entry_price - round(row.quantity * row.entry_price / 1e3, 2)
    assert 0 <= left < row.entry_price * 1.002
    assert min(desk.cash) >= 0


def test_a_fee_that_rounds_down_may_pay_for_one_more_share():
    # 27 × 2.4931 = 67.3137 and a fee of 0.08414, charged as 0.08: 67.3937
    bars = flat(price=2.4931, spread=0.1)
    desk = walked(
        bars, enter=(4,), cash=Decimal("67.394"), costs=Costs(slippage_bps=0, fee_bps=12.5)
    )
    assert trade_of(desk).quantity == 27


def test_cash_for_no_share_is_said():
    found = walked(flat(), enter=(4,), cash=99).found
    assert (found.trades, found.funnel.skipped) == ((), {"the cash pays for no share": 1})


def test_signals_while_holding_are_ignored_and_counted():
    found = walked(flat(), enter=(4, 5, 6)).found
    assert len(found.trades) == 1
    assert (found.funnel.signals, found.funnel.skipped) == (3, {"already held or ordered": 2})
    assert (found.funnel.bars, found.funnel.orders, found.funnel.fills) == (7, 1, 1)
    assert (found.funnel.debates, found.replay.cycles) == (0, ())


def test_without_room_for_a_stop_nothing_is_bought():
    found = walked(flat(price=3.0), enter=(4,)).found  # 2 ATR are 4 USD
    assert found.funnel.skipped == {"no ATR yet, or no room for a stop": 1}


def test_a_stop_that_the_exchange_does_not_take_is_told_as_its_refusal():
    found = walked(flat(spread=0.001), enter=(4,), costs=Costs(slippage_bps=5)).found
    assert found.funnel.broker_refusals == 1
    (slot,) = [slot for slot in found.replay.slots if slot.refusals]
    assert "stop_loss.stop_price must be <= base_price" in next(iter(slot.refusals.values()))
    assert found.trades == ()


def pair(**changes) -> tuple[BarSeries, BarSeries]:
    return flat(symbol="AAA", **changes), flat(symbol="BBB", price=50.0)


def test_two_symbols_share_what_is_free_at_an_open():
    """AAA takes half of 10,000; BBB, flat alone then, takes all of the rest."""
    desk = walked(*pair(), enter={"AAA": (4,), "BBB": (5,)}, cash=10_000)
    held = desk.found.replay.slots[-1].positions
    assert held == {"AAA": Decimal(50), "BBB": Decimal(100)}
    assert desk.cash[-1] == 0


def test_two_symbols_that_enter_together_get_the_same():
    desk = walked(*pair(), enter={"AAA": (4,), "BBB": (4,)}, cash=10_000)
    assert desk.found.replay.slots[-1].positions == {"AAA": Decimal(50), "BBB": Decimal(100)}


@pytest.mark.parametrize(
    ("changes", "leave", "got"),
    [
        ({"open": {8: 110.0}, "high": {8: 111.0}}, (7,), 5_500),  # the sale waits for that open
        ({"open": {8: 90.0}, "low": {8: 89.0}}, (), 4_500),  # the open lies below the stop
        ({"open": {8: 96.0}}, (), 4_800),  # or at it
        ({"low": {8: 90.0}}, (), 0),  # stopped inside the bar: too late for its open
    ],
)
def test_cash_of_exits_at_an_open_buys_at_that_open(changes, leave, got):
    """At the open of bar 8 both are flat, or AAA is still held, and BBB gets its part."""
    desk = walked(
        *pair(**changes), enter={"AAA": (4,), "BBB": (7,)}, leave={"AAA": leave}, cash=10_000
    )
    free, flat_symbols = 5_000 + got, 2 if got else 1
    (row,) = [row for row in desk.found.trades if row.symbol == "BBB"]
    assert row.quantity == free // flat_symbols // 50
    assert min(desk.cash) >= 0


def test_what_an_exit_costs_is_not_there_to_buy_with():
    """AAA takes 1,818 of 3,764 and brings 1,800 less 18: half of 3,728 is no 37 × 50.50."""
    costs = Costs(slippage_bps=0, fee_bps=100)
    series = flat(symbol="AAA", price=200.0), flat(symbol="BBB", price=50.0)
    desk = walked(
        *series, enter={"AAA": (4,), "BBB": (7,)}, leave={"AAA": (7,)}, cash=3_764, costs=costs
    )
    first, second = desk.found.trades
    assert (first.quantity, second.quantity) == (9, 36)
    assert min(desk.cash) >= 0


def test_a_symbol_that_does_not_trade_keeps_its_part():
    first, second = pair()
    found = walked(first, without(second, 5), enter={"AAA": (4,)}, cash=10_000).found
    assert [row.quantity for row in found.trades] == [50]


def test_a_symbol_without_a_bar_at_the_next_open_buys_nothing_there():
    first, second = pair()
    found = walked(first, without(second, 5), enter={"AAA": (), "BBB": (4,)}).found
    assert found.trades == ()
    assert found.funnel.skipped == {"no open followed": 1}
    refused = [slot.refused for slot in found.replay.slots if slot.refused]
    assert len(refused) == 1
    assert "BBB: the newest bar is of" in refused[0]["BBB"]


def test_the_ledger_holds_every_intent_fill_and_slot_and_is_sound():
    desk = walked(flat(), enter=(4,), leave=(6,))
    kinds = [record.kind for record in desk.ledger.records("intent", "order", "fill", "slot")]
    assert kinds.count("slot") == len(desk.found.replay.slots) == 7
    assert (kinds.count("intent"), kinds.count("fill")) == (2, 2)
    assert desk.ledger.verify() == len(kinds)
    again = OrderJournal(desk.ledger, cash=Decimal(1_000), costs=FREE)
    assert again.book.cash == desk.found.replay.book.cash
    assert again.book.trades == desk.found.replay.book.trades


def test_a_walk_cut_short_took_the_same_decisions_until_then():
    """Sizes see the next open and nothing else does: a later bar changes no earlier trade."""
    bars = flat(14, open={8: 110.0}, high={8: 111.0}, low={12: 50.0})
    whole = walked(bars, enter=(4, 9), leave=(7,)).found
    short = walked(bars.head(10), enter=(4, 9), leave=(7,)).found
    assert [slot.equity for slot in short.replay.slots] == [
        slot.equity for slot in whole.replay.slots[: len(short.replay.slots)]
    ]
    assert short.trades == whole.trades[:1]


def test_an_account_that_does_not_agree_with_the_book_is_an_error():
    with pytest.raises(StateError, match="of cash"):
        walked(flat(), enter=(4,), lent=Decimal(500_000))


def test_progress_is_told_slot_by_slot():
    seen = []
    walked(flat(), enter=(4,), progress=lambda n, of, slot: seen.append((n, of, slot.session)))
    assert [(n, of) for n, of, _ in seen] == [(n, 7) for n in range(1, 8)]
    assert seen[0][2] == date(2020, 1, 7)
