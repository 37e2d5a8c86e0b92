"""Trade updates: an event of the exchange in the JSON in which Alpaca streams it."""

from __future__ import annotations

from trader.broker.exchange.records import Event
from trader.broker.exchange.refusal import plain
from trader.broker.exchange.wire import Json, moment, order_json


def update_json(event: Event) -> Json:
    """The update with its order as it was then; fills also say what was traded and is held.

    Its execution_id is a UUID, with which the id of the activity in REST ends.
    """
    update: Json = {
        "event": event.name,
        "event_id": str(event.sequence),
        "timestamp": moment(event.at_ns),
        "at": moment(event.at_ns),
        "order": order_json(event.ticket),
    }
    amounts = {
        "price": event.price,
        "qty": event.quantity,
        "position_qty": event.position_quantity,
    }
    given = {name: plain(amount) for name, amount in amounts.items() if amount is not None}
    if event.execution_id is not None:
        given["execution_id"] = event.execution_id.rpartition("::")[2]
    return update | given
