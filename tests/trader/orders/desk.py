"""A manager over the scripted broker, and a trade to look after."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from tests.trader.orders.fake_broker import NOW, FakeBroker
from trader.core.costs import Costs
from trader.core.trading import OrderClass, OrderIntent, OrderType, Side, TimeInForce
from trader.ledger.book import Trade
from trader.ledger.controls import Controls
from trader.ledger.store import Ledger
from trader.orders.journal import OrderJournal
from trader.orders.manager import OrderManager

TRADE = "run-20250303T1430-AAPL-atr_trend"
LATER = NOW + timedelta(days=1)
ENTRY = OrderIntent(
    client_order_id="tr-20250303-AAPL-0123456789-e",
    symbol="AAPL",
    side=Side.BUY,
    quantity=Decimal(10),
    order_type=OrderType.MARKET,
    order_class=OrderClass.BRACKET,
    time_in_force=TimeInForce.GTC,
    take_profit_price=Decimal(110),
    stop_loss_price=Decimal(96),
)
KEY = ENTRY.client_order_id


def simple(symbol: str, quantity: str) -> OrderIntent:
    """An entry that carries no legs: parts of a share, or a coin."""
    return replace(
        ENTRY,
        client_order_id=f"tr-20250303-{symbol.replace('/', '')}-0123456789-e",
        symbol=symbol,
        quantity=Decimal(quantity),
        order_class=OrderClass.SIMPLE,
        time_in_force=TimeInForce.GTC if "/" in symbol else TimeInForce.DAY,
        take_profit_price=None,
        stop_loss_price=None,
    )


def manager(
    broker: FakeBroker, ledger: Ledger | None = None, controls: Controls | None = None
) -> OrderManager:
    """A new process: whatever it knows, it knows from the ledger and the broker."""
    journal = OrderJournal(ledger or Ledger(None), cash=Decimal(100_000), costs=Costs())
    return OrderManager(broker, journal, controls=controls)


def enter(orders: OrderManager, intent: OrderIntent = ENTRY, trade_id: str = TRADE) -> None:
    """Submit an entry with its plan, as the cycle does."""
    orders.submit(
        intent,
        trade_id=trade_id,
        purpose="entry",
        as_of=NOW,
        stop_price=Decimal(96),
        target_price=Decimal(110),
    )


def bought(
    broker: FakeBroker, ledger: Ledger | None = None, controls: Controls | None = None
) -> tuple[OrderManager, Trade]:
    """A manager with ten shares in a bracket, compared and sound."""
    orders = manager(broker, ledger, controls)
    orders.reconcile(NOW)
    enter(orders)
    broker.trade(broker.id_of(KEY))
    watched = orders.watch(NOW)
    assert not watched.protected.changed
    return orders, orders.journal.book.trades[TRADE]
