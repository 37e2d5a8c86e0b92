"""From a verdict to an order: each instrument's kind, and what waiting orders may still cost."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.trader.orders.desk import ENTRY
from tests.trader.orders.fake_broker import FakeBroker
from tests.trader.verdicts import BAR_AT, GO, NOW
from trader.core.decision import Candidate, Debate, RiskDecision, Signal
from trader.core.instruments import instrument_of
from trader.core.trading import OrderClass, OrderType, Side, TimeInForce
from trader.orders.entries import JournaledIntent
from trader.pipeline.intents import exit_levels, order_intent, reserved_by_symbol


def intent(symbol: str, quantity: str, **changes):
    verdict = replace(GO, symbol=symbol, **changes)
    signal = Signal(
        signal_id="S-1",
        strategy="atr_trend",
        style="trend",
        symbol=symbol,
        side="buy",
        strength=1.0,
        bar_at=BAR_AT,
        as_of=NOW,
        features={},
        reason="",
    )
    candidate = Candidate(
        signal=signal,
        instrument=instrument_of(symbol),
        entry_price=100.05,
        stop_price=96.05,
        fired=True,
    )
    risk = RiskDecision(
        approved=True, reasons=(), quantity=Decimal(quantity), weight_after=0.1, limits={}
    )
    debate = Debate(debater="rules", arguments=(), rebuttals=(), verdict=verdict)
    return order_intent(candidate, debate, risk)


def test_whole_shares_carry_their_stop_and_target_as_legs_that_outlive_the_session():
    order = intent("AAPL", "10")
    assert (order.order_class, order.time_in_force) == (OrderClass.BRACKET, TimeInForce.GTC)
    assert (order.stop_loss_price, order.take_profit_price) == (Decimal("96.05"), Decimal(110))
    alone = intent("AAPL", "10", target_price=None)
    assert (alone.order_class, alone.take_profit_price) == (OrderClass.OTO, None)


@pytest.mark.parametrize(
    ("symbol", "quantity", "lives"),
    [
        ("AAPL", "10.5", TimeInForce.DAY),
        ("AAPL", "0.000000001", TimeInForce.DAY),
        ("BTC/USD", "0.25", TimeInForce.GTC),
        ("BTC/USD", "2", TimeInForce.GTC),
    ],
)
def test_what_alpaca_takes_no_legs_for_is_a_simple_order(symbol, quantity, lives):
    order = intent(symbol, quantity)
    assert (order.order_type, order.order_class) == (OrderType.MARKET, OrderClass.SIMPLE)
    assert (order.side, order.quantity) == (Side.BUY, Decimal(quantity))
    assert order.time_in_force is lives
    assert (order.stop_loss_price, order.take_profit_price) == (None, None)
    assert "/" not in order.client_order_id


def test_the_id_of_the_longest_symbol_is_short_enough_and_another_verdict_has_another():
    order = intent("ABCDEFGHIJ/USDTX", "1")
    assert len(order.client_order_id) <= 48 - len("p999")
    assert intent("AAPL", "10").client_order_id == intent("AAPL", "11").client_order_id
    other = intent("AAPL", "10", verdict_id="V-2")
    assert other.client_order_id != intent("AAPL", "10").client_order_id


def test_levels_stand_on_prices_that_can_be_quoted():
    fine = replace(GO, stop_price=96.0599, target_price=110.019)
    assert exit_levels("AAPL", fine) == (Decimal("96.05"), Decimal("110.01"))
    coin = replace(GO, stop_price=0.0000123456789, target_price=None)
    assert exit_levels("SHIB/USD", coin) == (Decimal("0.000012345"), None)
    with pytest.raises(ValueError, match="no stop"):
        exit_levels("AAPL", replace(GO, stop_price=None))


def test_waiting_buys_and_buys_in_doubt_keep_their_cash_and_sales_none():
    broker = FakeBroker(held={"AAPL": Decimal(5)})
    broker.submit(ENTRY)
    broker.submit(replace(ENTRY, client_order_id="l", symbol="MSFT", limit_price=Decimal(50)))
    broker.submit(
        replace(
            ENTRY,
            client_order_id="s",
            side=Side.SELL,
            quantity=Decimal(5),
            order_class=OrderClass.SIMPLE,
        )
    )
    doubtful = JournaledIntent(
        intent=replace(ENTRY, client_order_id="d"), trade_id="t", purpose="entry", as_of=NOW
    )
    sale = replace(doubtful, intent=replace(ENTRY, side=Side.SELL), purpose="exit")
    found = reserved_by_symbol(broker.orders(), {"AAPL": 100.0, "MSFT": 60.0}, (doubtful, sale))
    assert found == {"AAPL": Decimal(2 * 1040), "MSFT": Decimal(500)}
