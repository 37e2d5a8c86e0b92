"""What the account may order: uniqueness, price relations, shares, wash trades and buying power."""

from __future__ import annotations

from decimal import Decimal

from trader.broker.exchange.account import Account
from trader.broker.exchange.order_form import OrderForm
from trader.broker.exchange.records import Ticket
from trader.broker.exchange.refusal import forbidden, not_offered, plain, unprocessable
from trader.core.costs import Costs
from trader.core.trading import OrderClass, OrderType, Side

COLLAR = Decimal("1.04")  # a market or stop buy reserves this multiple of its price
ONE_CENT = Decimal("0.01")


def check_levels(form: OrderForm, last: Decimal) -> None:
    """Targets lie above and stops below the price of entry, by a cent at least.

    The price of entry is the stop price of a stop order, the last price for a market order and
    both the limit and the last price for a limit order. The two prices of an OCO pair are measured
    against each other only, so that a position can be protected after any gap.
    """
    if form.order_class is OrderClass.OCO:
        bases = [_present(form.stop_loss)]
        target, stop = form.limit_price, None
    else:
        bases = [form.stop_price or last] if form.limit_price is None else [form.limit_price, last]
        target, stop = form.take_profit, form.stop_loss
    highest, lowest = max(bases), min(bases)
    if target is not None and target < highest + ONE_CENT:
        raise unprocessable(
            "take_profit.limit_price must be >= base_price + 0.01", base_price=plain(highest)
        )
    if stop is not None and stop > lowest - ONE_CENT:
        raise unprocessable(
            "stop_loss.stop_price must be <= base_price - 0.01", base_price=plain(lowest)
        )


def check_shares(account: Account, symbol: str, quantity: Decimal) -> None:
    """A sell needs shares that no other open sell will need."""
    existing = account.quantity(symbol)
    if not existing:
        raise not_offered(f"a short sale (no position in {symbol})")
    held = account.held_for_orders(symbol)
    available = existing - held
    if quantity > available:
        raise forbidden(
            f"insufficient qty available for order "
            f"(requested: {plain(quantity)}, available: {plain(available)})",
            symbol=symbol,
            available=plain(available),
            existing_qty=plain(existing),
            held_for_orders=plain(held),
        )


def check_wash_trade(account: Account, form: OrderForm) -> None:
    """No order may meet an order of the other side; bracket, OTO and OCO orders are exempt."""
    if form.order_class is not OrderClass.SIMPLE:
        return
    for other in account.open_tickets():
        if (
            other.symbol == form.symbol
            and other.side is not form.side
            and other.order_class is OrderClass.SIMPLE
            and _could_meet(form, other)
        ):
            raise forbidden(
                "potential wash trade detected. use complex orders",
                existing_order_id=other.order_id,
                reject_reason=f"opposite side {other.order_type} order exists",
            )


def reservation(form: OrderForm, last: Decimal, costs: Costs) -> Decimal:
    """USD a buy keeps back: its limit, or the price it may run to, with the fee.

    last  newest close, USD per share; market and stop orders may run 4 % beyond it or their stop
    """
    if form.limit_price is not None and form.order_type is OrderType.LIMIT:
        price = form.limit_price
    else:
        price = max(last, form.stop_price or last) * COLLAR
    notional = form.quantity * price
    return notional + costs.fee(notional)


def check_buying_power(account: Account, cost: Decimal) -> None:
    """Cash that no other open buy keeps back must cover the reservation."""
    power = account.buying_power()
    if cost > power:
        raise forbidden(
            "insufficient buying power", buying_power=plain(power), cost_basis=plain(cost)
        )


def check_cancelable(ticket: Ticket) -> None:
    """A final order stays as it is."""
    if not ticket.is_open:
        raise unprocessable(f'order is already in "{ticket.status}" state')


def _could_meet(form: OrderForm, other: Ticket) -> bool:
    if form.order_type is not OrderType.LIMIT or other.order_type is not OrderType.LIMIT:
        return True
    mine, theirs = _present(form.limit_price), _present(other.limit_price)
    return mine >= theirs if form.side is Side.BUY else mine <= theirs


def _present(price: Decimal | None) -> Decimal:
    assert price is not None  # the form was read: every type has its price
    return price
