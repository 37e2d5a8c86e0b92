"""The kill switch: recorded before it acts, the same after a crash, never in the way of exits."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trader.pipeline.accounts import account_over, slots_of
from tests.trader.pipeline.bars import daily, wave
from trader.core.errors import EndpointError, OrderRefusedError
from trader.core.trading import OrderIntent, OrderType, Side
from trader.ledger.controls import KILL_SWITCH
from trader.orders.killswitch import Activity, KillSwitch
from trader.risk.protections import SafetyLimits

WAVE = daily(wave(420))
SLOTS = slots_of(WAVE, 260)
NORMAL = Activity(equity=Decimal(99_000), opening=Decimal(100_000))
LOST = Activity(equity=Decimal(97_000), opening=Decimal(100_000))


class Died(BaseException):
    """The process is gone."""


class Hands:
    """An order manager that notes what it is asked to do, or fails at it."""

    def __init__(self, account, fail: BaseException | None = None) -> None:
        self.journal, self._account, self._fail = account.journal, account, fail
        self.asked: list[str] = []
        self.recorded: list[bool] = []  # whether the halt was in the ledger when asked

    def _note(self, what: str) -> None:
        self.asked.append(what)
        self.recorded.append(self._account.ledger.last("control") is not None)
        if self._fail is not None:
            raise self._fail

    def cancel_entries(self, symbol=None):
        self._note("cancel entries")
        return ()

    def open_orders(self):
        return tuple(leg for order in self._account.broker.orders() for leg in order.with_legs())

    def close(self, symbol, reason, as_of):
        self._note(f"close {symbol}: {reason}")
        return ()


def account_with(*, trade: bool, **sections):
    """An account that holds a trade of ours, or the newest one that waits to be entered."""
    account = account_over(WAVE, start=SLOTS[0], debated=False, **sections)
    for slot in SLOTS:
        result = account.cycle.run(slot)
        entered = any(cycle.intent is not None for cycle in result.cycles)
        if entered and not trade:
            break
        if trade and account.journal.book.open_trades():
            break
    return account, slot


@pytest.fixture(scope="module")
def held():
    """Read only: an account with an open trade, and its slot."""
    return account_with(trade=True)


def fresh(limits=None, *, fail=None, account=None):
    account = account or account_over(WAVE, start=SLOTS[0])
    hands = Hands(account, fail)
    return account, hands, KillSwitch(account.controls, hands, limits=limits or SafetyLimits())


AT = SLOTS[0].as_of


@pytest.mark.parametrize(
    ("activity", "words"),
    [
        (NORMAL, None),
        (replace(LOST, equity=Decimal("97000.01")), None),
        (LOST, "3.00% below the 100000.00"),
        (replace(LOST, equity=Decimal(150_000)), None),
        (replace(LOST, equity=Decimal("NaN")), "no loss can be told"),
        (replace(LOST, equity=Decimal("Infinity")), "no loss can be told"),
        (replace(LOST, equity=Decimal(0)), "no loss can be told"),
        (replace(LOST, equity=Decimal(-5)), "no loss can be told"),
        (replace(NORMAL, opening=Decimal(0)), "no loss can be told"),
        (replace(NORMAL, opening=Decimal("NaN")), "no loss can be told"),
        (replace(NORMAL, entries_in_minute=30), None),
        (replace(NORMAL, entries_in_minute=31), "31 entries were sent within a minute"),
        (replace(NORMAL, entry_value=Decimal(200_000)), None),
        (replace(NORMAL, entry_value=Decimal("200000.01")), "200000.01 USD were sent"),
    ],
)
def test_it_trips_at_its_limits_and_on_numbers_that_are_none(activity, words):
    account, hands, switch = fresh()
    halt = switch.look(activity, AT)
    if words is None:
        assert (halt, hands.asked, account.controls.blocked("AAPL")) == (None, [], "")
    else:
        assert words in halt.reason
        assert halt.by == KILL_SWITCH
        assert words in account.controls.blocked("AAPL")
        assert hands.asked == ["cancel entries"]


def test_the_halt_is_recorded_before_anything_is_done():
    _, hands, switch = fresh()
    switch.look(LOST, AT)
    assert hands.recorded == [True]


@pytest.mark.parametrize("crash", [Died(), EndpointError("the broker is away")])
def test_who_dies_between_recording_and_acting_finds_the_halt_and_goes_on(crash):
    account, hands, switch = fresh(fail=crash)
    with suppress(Died):
        switch.look(LOST, AT)
    assert hands.asked == ["cancel entries"]
    assert account.controls.blocked("AAPL")
    # the equity has recovered meanwhile; the halt has not
    _, again, switch = fresh(account=account)
    assert switch.look(NORMAL, AT + timedelta(days=1)).by == KILL_SWITCH
    assert again.asked == ["cancel entries"]
    assert len(list(account.ledger.records("control"))) == 1


def test_it_trips_once_and_keeps_looking_until_it_is_resumed():
    account, hands, switch = fresh()
    for hours in range(5):
        switch.look(LOST, AT + timedelta(hours=hours))
    assert len(list(account.ledger.records("control"))) == 1
    assert hands.asked == ["cancel entries"] * 5
    account.controls.resume("a new day", at=AT + timedelta(days=1))
    assert switch.look(NORMAL, AT + timedelta(days=1)) is None
    assert hands.asked == ["cancel entries"] * 5


def test_a_halt_of_a_person_cancels_entries_and_sells_nothing(held):
    account, _, switch = fresh(SafetyLimits(liquidate=True))
    account.controls.halt("looking at something", at=AT)
    hands = Hands(held[0])
    switch = KillSwitch(account.controls, hands, limits=SafetyLimits(liquidate=True))
    assert switch.look(NORMAL, AT).reason == "looking at something"
    assert hands.asked == ["cancel entries"]
    # it does not stand in the way of the kill switch's own
    assert switch.look(LOST, AT).by == KILL_SWITCH
    with pytest.raises(OrderRefusedError, match="--force"):
        account.controls.resume("too early", at=AT)


@pytest.mark.parametrize(("liquidate", "sold"), [(True, 1), (False, 0)])
def test_it_sells_what_is_held_only_where_that_is_wanted(held, liquidate, sold):
    account, _, _ = fresh()
    hands = Hands(held[0])
    switch = KillSwitch(account.controls, hands, limits=SafetyLimits(liquidate=liquidate))
    switch.look(LOST, AT)
    closed = [what for what in hands.asked if what.startswith("close None: the kill switch")]
    assert len(closed) == sold


def test_with_the_real_order_manager_it_cancels_the_entry_that_waits_and_leaves_the_rest():
    account, slot = account_with(trade=False)
    waiting = [order for order in account.broker.orders() if order.side is Side.BUY]
    assert len(waiting) == 1
    switch = KillSwitch(account.controls, account.orders, limits=SafetyLimits())
    switch.look(LOST, slot.as_of)
    assert [o for o in account.orders.open_orders() if o.side is Side.BUY] == []


def test_with_the_real_order_manager_it_sells_once_and_gate_and_adapter_refuse_entries():
    account, slot = account_with(trade=True)
    trade = account.journal.book.open_trades()[0]
    switch = KillSwitch(account.controls, account.orders, limits=SafetyLimits(liquidate=True))
    for _ in range(3):
        switch.look(LOST, slot.as_of)
    live = account.orders.open_orders()
    assert [(o.side, o.order_type, o.quantity) for o in live] == [
        (Side.SELL, OrderType.MARKET, trade.open_quantity)
    ]
    buy = OrderIntent(
        client_order_id="by-hand",
        symbol="AAPL",
        side=Side.BUY,
        quantity=Decimal(1),
        order_type=OrderType.MARKET,
    )
    with pytest.raises(OrderRefusedError, match="the kill switch"):
        account.broker.submit(buy)
    following = SLOTS[SLOTS.index(slot) + 1]
    result = account.cycle.run(following)
    assert not account.journal.book.trades[trade.trade_id].is_open
    assert [booked.fill.side for booked in result.fills] == [Side.SELL]


@given(
    equity=st.decimals(1, 1_000_000, places=2),
    opening=st.decimals(1, 1_000_000, places=2),
    limit=st.floats(0.001, 1.0),
)
def test_it_trips_exactly_when_the_loss_reaches_its_limit(equity, opening, limit):
    class Silent:
        """Controls without a past, and nobody who has orders."""

        halted = ""

        def in_force(self, at):
            return ()

        def halt(self, reason, **_):
            self.halted = reason

        def cancel_entries(self):
            return ()

    controls = Silent()
    switch = KillSwitch(controls, controls, limits=SafetyLimits(daily_loss=limit))
    switch.look(Activity(equity=equity, opening=opening), AT)
    assert bool(controls.halted) == ((opening - equity) / opening >= Decimal(str(limit)))
