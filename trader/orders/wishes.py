"""What a person wants done, carried out once: closing positions and canceling orders."""

from __future__ import annotations

from datetime import datetime

from trader.core.errors import EndpointError, OrderRefusedError, UsageError
from trader.ledger.controls import Control, Controls
from trader.orders.manager import OrderManager


def carry_out(controls: Controls, orders: OrderManager, as_of: datetime) -> tuple[Control, ...]:
    """Do what is wished for and not done yet; the wishes that are settled now.

    One that the broker could not be asked about stays open, and doing it again changes nothing. An
    acknowledgement is not settled here: the comparison with the broker does that.
    as_of  the newest slot
    """
    settled = []
    for wish in controls.wishes():
        if wish.action == "acknowledge":
            continue
        try:
            done = _close(orders, wish, as_of) if wish.action == "close" else _cancel(orders, wish)
        except EndpointError:
            continue
        except (OrderRefusedError, UsageError) as exc:
            done = f"refused: {exc}"
        if done:
            controls.done(wish.control_id, done, at=as_of)
            settled.append(wish)
    return tuple(settled)


def _close(orders: OrderManager, wish: Control, as_of: datetime) -> str:
    """What became of it; empty when a sale has to be tried again."""
    closings = orders.close(wish.target, wish.reason, as_of)
    if any(closing.problem for closing in closings):
        return ""
    sold = ", ".join(f"{item.symbol} ({item.client_order_id})" for item in closings)
    return f"to be sold: {sold}" if sold else "entries canceled; there was nothing to sell"


def _cancel(orders: OrderManager, wish: Control) -> str:
    order = orders.cancel(wish.target or "")
    return f"order {order.client_order_id} is {order.status}"
