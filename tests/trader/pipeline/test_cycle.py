"""The cycle: order of events, protection, exits that nobody can block, no look into the future."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trader.pipeline.accounts import account_over, slots_of
from tests.trader.pipeline.bars import daily, wave
from trader.core.canonical import canonical_json
from trader.core.decision import Decision
from trader.core.errors import EndpointError, OrderRefusedError
from trader.core.market import BarSeries
from trader.core.trading import OrderClass, OrderStatus, OrderType, Side
from trader.orders.protection import unprotected
from trader.pipeline.circumstances import RealTime

WAVE = daily(wave(420))


def noisy(seed: int, count: int = 360, symbol: str = "AAPL") -> BarSeries:
    steps = np.random.default_rng(seed).normal(0.0004, 0.02, count).cumsum()
    return daily([round(float(c), 2) for c in 100 * np.exp(steps)], symbol=symbol)


def flat(account):
    return [leg for order in account.broker.orders() for leg in order.with_legs()]


def walk(account, slots):
    return [account.cycle.run(slot) for slot in slots]


@pytest.mark.parametrize("debated", [True, False])
def test_every_share_held_has_a_live_stop_or_an_exit_on_its_way_after_every_slot(debated):
    slots = slots_of(WAVE, 260)
    account = account_over(WAVE, start=slots[0], debated=debated)
    for slot in slots:
        account.cycle.run(slot)
        assert unprotected(account.journal, flat(account)) == ()
    assert account.journal.book.trades, "the wave gives trades to protect"


def test_an_entry_is_a_market_bracket_for_the_next_open_and_fills_there():
    slots = slots_of(WAVE, 260)
    account = account_over(WAVE, start=slots[0])
    for slot in slots:
        result = account.cycle.run(slot)
        bought = [cycle for cycle in result.cycles if cycle.intent is not None]
        if bought:
            break
    intent = bought[0].intent
    assert (intent.order_type, intent.order_class) == (OrderType.MARKET, OrderClass.BRACKET)
    assert account.broker.portfolio().positions == ()
    number = slots.index(slot)
    following = account.cycle.run(slots[number + 1])
    fill = following.fills[0].fill
    index = 260 + number + 1
    assert fill.price == pytest.approx(Decimal(str(WAVE.open[index])) * Decimal("1.0005"))
    stop = next(leg for leg in flat(account) if leg.order_type is OrderType.STOP)
    assert stop.stop_price == intent.stop_loss_price
    assert stop.status is OrderStatus.HELD


def test_an_exit_signal_cancels_the_legs_and_sells_at_the_next_open_whatever_the_debate_would_say():
    slots = slots_of(WAVE, 260)
    account = account_over(WAVE, start=slots[0], debated=False, strategies=["macd_momentum"])
    left = None
    for slot in slots:
        result = account.cycle.run(slot)
        if left is not None:
            break
        if result.slot.exits:
            left = result.slot.exits[0]
            live = flat(account)
            assert [(o.side, o.order_type) for o in live] == [(Side.SELL, OrderType.MARKET)]
    sold = result.fills[0]
    assert (sold.reason, sold.trade_id) == ("signal", left.trade_id)
    assert not account.journal.book.trades[left.trade_id].is_open


def test_there_is_at_most_one_decision_for_a_strategy_symbol_and_signal_bar():
    slots = slots_of(WAVE, 260)
    results = walk(account_over(WAVE, start=slots[0]), slots)
    ids = [cycle.cycle_id for result in results for cycle in result.cycles]
    assert len(ids) == len(set(ids)) > 5


@pytest.mark.parametrize("seed", range(4))
def test_cutting_off_the_future_never_changes_a_past_decision(seed):
    whole = noisy(seed)
    for cut in (290, 325):
        early_slots = slots_of(whole, 262, cut)
        late = account_over(whole, start=early_slots[0])
        early = account_over(whole.head(cut), start=early_slots[0])
        long = walk(late, slots_of(whole, 262))
        short = walk(early, early_slots)
        for one, other in zip(short, long, strict=False):
            assert canonical_json((one.slot, one.cycles)) == canonical_json(
                (other.slot, other.cycles)
            )


@given(st.integers(263, 355), st.floats(0.5, 2.0))
@settings(deadline=None, max_examples=10)
def test_changing_tomorrow_never_changes_today(at, factor):
    whole = noisy(9)
    slots = slots_of(whole, 262, at)
    changed = replace_from(whole, at, factor)
    before = walk(account_over(whole, start=slots[0]), slots)
    after = walk(account_over(changed, start=slots[0]), slots)
    assert canonical_json([r.slot for r in before]) == canonical_json([r.slot for r in after])
    assert canonical_json([r.cycles for r in before]) == canonical_json([r.cycles for r in after])


def replace_from(series: BarSeries, at: int, factor: float) -> BarSeries:
    columns = {}
    for name in ("open", "high", "low", "close"):
        prices = getattr(series, name).copy()
        prices[at:] *= factor
        columns[name] = prices
    return replace(series, **columns)


def test_the_better_expected_value_gets_the_cash_and_not_the_alphabet():
    # two symbols, the same breakout; ZZZ has seen higher highs and so has the better target
    poor = daily(wave(420), symbol="AAA")
    rich = daily(wave(420), symbol="ZZZ", high={200: 160.0})
    slots = slots_of(poor, 260)
    both = account_over(poor, rich, start=slots[0])
    for slot in slots:
        result = both.cycle.run(slot)
        go = [c for c in result.cycles if c.debate.verdict.decision is Decision.GO]
        if len({cycle.symbol for cycle in go}) == 2:
            break
    values = [cycle.debate.verdict.expected_value_r for cycle in go]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]
    best, price = go[0].symbol, go[0].candidate.entry_price
    cash = int(price * 1.04) + 2  # enough for one share

    tight = account_over(poor, rich, start=slot, cash=cash, risk={"risk_per_trade": 0.1})
    result = tight.cycle.run(slot)
    first, *others = [c for c in result.cycles if c.debate.verdict.decision is Decision.GO]
    assert first.symbol == best
    assert all(not cycle.risk.approved for cycle in others)


def test_a_symbol_whose_bars_stop_is_refused_and_the_others_go_on():
    ends = noisy(1, 300, "OLD").head(270)
    goes = noisy(2, 300, "NEW")
    slots = slots_of(goes, 262)
    results = walk(account_over(ends, goes, start=slots[0]), slots)
    last = results[-1].slot
    assert "the newest bar is of" in last.refused["OLD"]
    assert set(last.closes) == {"NEW"}
    assert results[3].slot.refused == {}


def test_a_stop_that_vanishes_is_placed_again_in_the_next_slot():
    slots = slots_of(WAVE, 260)
    account = account_over(WAVE, start=slots[0])
    for slot in slots:
        account.cycle.run(slot)
        if account.journal.book.open_trades():
            break
    trade = account.journal.book.open_trades()[0]
    stop = next(leg for leg in flat(account) if leg.order_type is OrderType.STOP)
    account.broker.cancel(stop.order_id)
    assert unprotected(account.journal, flat(account)) == ((trade, stop.stop_price),)
    result = account.cycle.run(slots[slots.index(slot) + 1])
    if trade.is_open:
        assert result.slot.protected == (trade.trade_id,)
        assert unprotected(account.journal, flat(account)) == ()


@dataclass
class Flaky:
    """A broker whose answers to submit get lost after it has taken the order, every second time."""

    inner: object
    calls: int = 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def submit(self, intent):
        self.calls += 1
        order = self.inner.submit(intent)
        if self.calls % 2:
            raise EndpointError("the answer was lost")
        return order


def test_a_lost_answer_neither_doubles_nor_loses_an_order():
    slots = slots_of(WAVE, 260)
    calm = account_over(WAVE, start=slots[0], debated=False)
    stormy = account_over(WAVE, start=slots[0], debated=False, wrap_broker=Flaky)
    clean, rough = walk(calm, slots), walk(stormy, slots)
    assert stormy.broker.calls > 4
    assert [r.slot.cash for r in rough] == [r.slot.cash for r in clean]
    assert any(r.slot.resolved for r in rough)
    assert stormy.journal.unresolved() == ()


def test_equity_is_cash_and_shares_at_the_close_in_every_slot():
    slots = slots_of(WAVE, 260)
    for result in walk(account_over(WAVE, start=slots[0], debated=False), slots):
        slot = result.slot
        worth = sum(
            quantity * Decimal(str(slot.closes[symbol]))
            for symbol, quantity in slot.positions.items()
        )
        assert slot.equity == slot.cash + worth
        assert slot.cash >= 0


@dataclass
class NoSales:
    """A broker that refuses the first sales it is asked for, market orders only."""

    inner: object
    left: int = 2

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def submit(self, intent):
        if intent.side is Side.SELL and intent.order_type is OrderType.MARKET and self.left:
            self.left -= 1
            raise OrderRefusedError("not now")
        return self.inner.submit(intent)


def test_a_refused_exit_is_tried_again_and_the_shares_are_never_naked():
    slots = slots_of(WAVE, 260)
    account = account_over(
        WAVE, start=slots[0], debated=False, strategies=["macd_momentum"], wrap_broker=NoSales
    )
    tried = []
    for slot in slots:
        result = account.cycle.run(slot)
        tried += result.slot.exits
        assert unprotected(account.journal, flat(account)) == ()
    assert [bool(leave.problem) for leave in tried[:3]] == [True, True, False]
    assert {leave.trade_id for leave in tried[:3]} == {tried[0].trade_id}
    assert not account.journal.book.trades[tried[0].trade_id].is_open


@dataclass
class Thief:
    """A broker that shows less cash than there is."""

    inner: object

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def portfolio(self):
        told = self.inner.portfolio()
        return replace(told, cash=told.cash - 1)


def test_nothing_is_bought_while_broker_and_ledger_disagree_and_the_slot_says_why():
    slots = slots_of(WAVE, 260)
    calm = account_over(WAVE, start=slots[0])
    torn = account_over(WAVE, start=slots[0], wrap_broker=Thief)
    assert any(cycle.intent for result in walk(calm, slots) for cycle in result.cycles)
    results = walk(torn, slots)
    assert not any(cycle.intent for result in results for cycle in result.cycles)
    assert all("USD of cash" in result.slot.problem for result in results)
    found = next(torn.ledger.records("reconciliation"))
    assert found.body["differences"].keys() == {"cash"}


@dataclass
class Deaf:
    """A broker of which one endpoint does not answer for a while."""

    inner: object
    deaf: str = ""

    def __getattr__(self, name):
        if name == self.deaf:
            raise EndpointError(f"{name} is down")
        return getattr(self.inner, name)


def test_a_broker_is_never_waited_for_while_the_ledger_is_held():
    """A person who wants to halt writes to the same ledger, and an answer may take a minute."""
    slots = slots_of(WAVE, 260)
    account = account_over(WAVE, start=slots[0], wrap_broker=Deaf)
    asked = []

    def watched(name):
        ask = getattr(account.broker.inner, name)

        def answer():
            asked.append(account.ledger._depth > 0)
            return ask()

        return answer

    account.broker.account, account.broker.clock = watched("account"), watched("clock")
    account.watch._real_time = RealTime(now=account.exchange.now)
    assert any(cycle.intent for result in walk(account, slots) for cycle in result.cycles)
    assert asked
    assert not any(asked)


@pytest.mark.parametrize("endpoint", ["portfolio", "orders", "fills"])
def test_exits_go_out_while_the_comparison_fails_and_the_slot_is_left_open(endpoint):
    slots = slots_of(WAVE, 260)
    probe = account_over(WAVE, start=slots[0], debated=False, strategies=["macd_momentum"])
    number = next(n for n, slot in enumerate(slots) if probe.cycle.run(slot).slot.exits)

    account = account_over(
        WAVE, start=slots[0], debated=False, strategies=["macd_momentum"], wrap_broker=Deaf
    )
    walk(account, slots[:number])
    account.broker.deaf = endpoint
    with pytest.raises(EndpointError):
        account.cycle.run(slots[number])
    account.broker.deaf = ""
    live = [(order.side, order.order_type) for order in flat(account)]
    assert live == [(Side.SELL, OrderType.MARKET)]
    result = account.cycle.run(slots[number])
    assert [leave.problem for leave in result.slot.exits] == [""]
    assert account.cycle.run(slots[number + 1]).fills[0].reason == "signal"


def test_a_sale_that_is_refused_while_the_comparison_fails_leaves_the_shares_their_stop():
    slots = slots_of(WAVE, 260)
    probe = account_over(WAVE, start=slots[0], debated=False, strategies=["macd_momentum"])
    number = next(n for n, slot in enumerate(slots) if probe.cycle.run(slot).slot.exits)

    class Unwilling(Deaf):
        def submit(self, intent):
            if self.deaf and intent.order_type is OrderType.MARKET:
                raise OrderRefusedError("not now")
            return self.inner.submit(intent)

    account = account_over(
        WAVE, start=slots[0], debated=False, strategies=["macd_momentum"], wrap_broker=Unwilling
    )
    walk(account, slots[:number])
    account.broker.deaf = "portfolio"
    with pytest.raises(EndpointError):
        account.cycle.run(slots[number])
    live = [(order.side, order.order_type) for order in flat(account)]
    assert live == [(Side.SELL, OrderType.STOP)]


def test_exits_go_out_although_a_halt_cannot_be_carried_out():
    slots = slots_of(WAVE, 260)
    probe = account_over(WAVE, start=slots[0], debated=False, strategies=["macd_momentum"])
    number = next(n for n, slot in enumerate(slots) if probe.cycle.run(slot).slot.exits)

    account = account_over(
        WAVE, start=slots[0], debated=False, strategies=["macd_momentum"], wrap_broker=Deaf
    )
    walk(account, slots[:number])
    account.controls.halt("a test")
    listed = account.orders.open_orders

    def deaf_once():
        account.orders.open_orders = listed
        raise EndpointError("orders are down")

    account.orders.open_orders = deaf_once
    with pytest.raises(EndpointError):
        account.cycle.run(slots[number])
    live = [(order.side, order.order_type) for order in flat(account)]
    assert live == [(Side.SELL, OrderType.MARKET)]


def test_an_entry_whose_bar_never_comes_is_canceled_and_frees_its_cash():
    whole = daily(wave(420))
    slots = slots_of(whole, 260)
    probe = account_over(whole, start=slots[0])
    for slot in slots:
        if any(cycle.intent for cycle in probe.cycle.run(slot).cycles):
            break
    number = slots.index(slot)
    ends = whole.head(260 + number + 1)
    other = daily(wave(420, base=50.0), symbol="ZZZ")
    account = account_over(ends, other, start=slots[0], strategies=["atr_trend", "macd_momentum"])
    results = walk(account, slots[: number + 3])
    entry = [cycle.intent.client_order_id for cycle in results[number].cycles if cycle.intent]
    assert set(entry) & set(results[number + 1].slot.expired)
    assert all(order.symbol != "AAPL" for order in account.broker.orders())


def test_parts_of_a_share_are_guarded_after_every_slot_and_left_at_their_target():
    slots = slots_of(WAVE, 260)
    account = account_over(WAVE, start=slots[0], risk={"fractional": True})
    left, placed = [], 0
    for slot in slots:
        result = account.cycle.run(slot)
        assert unprotected(account.journal, flat(account)) == ()
        assert result.slot.problem == ""
        left += [item for item in result.slot.exits if "reached the target" in item.reason]
        placed += len(result.slot.protected)
    trades = account.journal.book.trades.values()
    assert any(trade.entry_quantity % 1 for trade in trades)
    assert placed > len(trades), "a stop for the day is placed again in each session"
    closed = [trade for trade in trades if not trade.is_open]
    assert {item.trade_id for item in left} == {
        trade.trade_id for trade in closed if trade.exit_reason == "target"
    }
    assert left
