"""What the account may order: uniqueness, price relations, shares, wash trades and buying power."""

from __future__ import annotations

from datetime import datetime, time
from decimal import ROUND_DOWN, Decimal

from trader.broker.exchange.account import Account
from trader.broker.exchange.body import FINEST
from trader.broker.exchange.order_form import OrderForm
from trader.broker.exchange.records import Ticket
from trader.broker.exchange.refusal import forbidden, plain, unprocessable
from trader.core.clock import SessionCalendar
from trader.core.costs import Costs
from trader.core.instruments import is_crypto
from trader.core.market import EXCHANGE_TIME_ZONE
from trader.core.trading import OrderClass, OrderType, Side, TimeInForce

COLLAR = Decimal("1.04")  # a market or stop buy reserves this multiple of its price
ONE_CENT = Decimal("0.01")
LEAST_NOTIONAL = Decimal(1)  # USD, of an order for parts of a share
LEAST_CRYPTO_NOTIONAL = Decimal(10)
QUEUED_FROM = time(19, 0)  # from here on orders for an opening or close mean the next session
OPENING_CUT_OFF_SECONDS = 2 * 60  # before the opening
CLOSING_CUT_OFF_SECONDS = 10 * 60  # before the close


def check_open(account: Account) -> None:
    """A blocked account may not order; it may cancel."""
    if account.blocked:
        raise forbidden(f"new orders are rejected by user request: {account.blocked}")


def check_levels(form: OrderForm, last: Decimal) -> None:
    """Targets lie above and stops below the price of entry, by a cent at least.

    The price of entry is the stop price of a stop order, the last price for a market order, both
    the limit and the last price for a limit order and both its prices for a stop-limit order. The
    two prices of an OCO pair are measured against each other only, so that a position can be
    protected after any gap.
    """
    if form.order_class is OrderClass.OCO:
        check_pair(target=_present(form.limit_price), stop=_present(form.stop_loss))
        return
    bases = [price for price in (form.limit_price, form.stop_price) if price is not None]
    if form.stop_price is None:
        bases.append(last)
    highest, lowest = max(bases), min(bases)
    if form.take_profit is not None:
        check_pair(target=form.take_profit, stop=highest)
    if form.stop_loss is not None and form.stop_loss > lowest - ONE_CENT:
        raise unprocessable(
            "stop_loss.stop_price must be <= base_price - 0.01", base_price=plain(lowest)
        )


def check_pair(*, target: Decimal, stop: Decimal) -> None:
    """A target lies a cent above what it is measured against."""
    if target < stop + ONE_CENT:
        raise unprocessable(
            "take_profit.limit_price must be >= base_price + 0.01", base_price=plain(stop)
        )


def check_moment(form: OrderForm, now: datetime, calendar: SessionCalendar) -> None:
    """Orders for the opening come before 9:28, those for the close ten minutes before it.

    The next session's are taken from 19:00 New York time on.
    """
    if form.time_in_force not in (TimeInForce.OPG, TimeInForce.CLS):
        return
    local = now.astimezone(EXCHANGE_TIME_ZONE)
    if not calendar.is_session(local.date()) or local.time() >= QUEUED_FROM:
        return
    is_opening = form.time_in_force is TimeInForce.OPG
    moment = calendar.open(local.date()) if is_opening else calendar.close(local.date())
    left = (moment - now).total_seconds()
    if left < (OPENING_CUT_OFF_SECONDS if is_opening else CLOSING_CUT_OFF_SECONDS):
        cut_off = "9:28am" if is_opening else "10 minutes before the close"
        raise unprocessable(
            f"{form.time_in_force} orders must be submitted after 7:00pm and before {cut_off}"
        )


def check_size(account: Account, form: OrderForm, last: Decimal) -> None:
    """Parts of a share for 1 USD at least, coins for 10; a sale of all that is free is exempt."""
    is_coin = is_crypto(form.symbol)
    if not is_coin and not form.is_fractional:
        return
    least = LEAST_CRYPTO_NOTIONAL if is_coin else LEAST_NOTIONAL
    cost = form.notional
    if form.quantity is not None:
        cost = form.quantity * (form.limit_price or last)
    if cost is None or cost >= least:
        return
    if form.side is Side.SELL and form.quantity == _available(account, form.symbol):
        return
    raise forbidden(f"cost basis must be >= minimal amount of order {plain(least)}")


def estimated_quantity(form: OrderForm, last: Decimal) -> Decimal:
    """Shares of the order; of one by amount, those its amount is worth now."""
    if form.quantity is not None:
        return form.quantity
    price = form.limit_price or form.stop_price or last
    return (_present(form.notional) / price).quantize(FINEST, rounding=ROUND_DOWN)


def check_shares(account: Account, form: OrderForm, quantity: Decimal) -> None:
    """A sell needs shares that no other open sell will need; nothing is sold short."""
    existing = account.quantity(form.symbol)
    if not existing:
        if form.is_fractional:
            raise forbidden("fractional orders are not allowed to short")
        if not is_crypto(form.symbol):
            raise forbidden("account is not allowed to short")
    held = account.held_for_orders(form.symbol)
    available = existing - held
    if quantity > available:
        raise forbidden(
            f"insufficient qty available for order "
            f"(requested: {plain(quantity)}, available: {plain(available)})",
            symbol=form.symbol,
            available=plain(available),
            existing_qty=plain(existing),
            held_for_orders=plain(held),
        )


def check_wash_trade(account: Account, form: OrderForm) -> None:
    """No order may meet an order of the other side.

    Bracket, OTO and OCO orders and trailing stops are exempt.
    """
    if form.order_class is not OrderClass.SIMPLE or form.order_type is OrderType.TRAILING_STOP:
        return
    for other in account.open_tickets():
        if (
            other.symbol == form.symbol
            and other.side is not form.side
            and other.order_class is OrderClass.SIMPLE
            and other.order_type is not OrderType.TRAILING_STOP
            and _could_meet(form, other)
        ):
            raise forbidden(
                "potential wash trade detected. use complex orders",
                existing_order_id=other.order_id,
                reject_reason=f"opposite side {other.order_type} order exists",
            )


def reservation(form: OrderForm, last: Decimal, costs: Costs) -> Decimal:
    """USD a buy keeps back: its limit or amount, or the price it may run to, with the fee.

    last  newest close, USD per share; market and stop orders may run 4 % beyond it or their stop
    """
    notional = form.notional
    if form.quantity is not None:
        price = form.limit_price
        if price is None:
            trail = form.trail_price or last * (form.trail_percent or 0) / 100
            price = max(last + trail, form.stop_price or last) * COLLAR
        notional = form.quantity * price
    notional = _present(notional)
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


def _available(account: Account, symbol: str) -> Decimal:
    return account.quantity(symbol) - account.held_for_orders(symbol)


def _could_meet(form: OrderForm, other: Ticket) -> bool:
    if form.order_type is not OrderType.LIMIT or other.order_type is not OrderType.LIMIT:
        return True
    mine, theirs = _present(form.limit_price), _present(other.limit_price)
    return mine >= theirs if form.side is Side.BUY else mine <= theirs


def _present(value: Decimal | None) -> Decimal:
    assert value is not None  # the form was read: every type has its prices and a size
    return value
