"""The broker: one adapter over alpaca-py for the embedded exchange and for Alpaca's paper API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

from alpaca.common.exceptions import APIError
from requests import RequestException

from trader.broker.alpaca_json import (
    Row,
    amount,
    moment,
    read_fill,
    read_order,
    read_position,
    record,
    rows,
    text,
)
from trader.core.errors import EndpointError, OrderRefusedError
from trader.core.trading import Fill, Order, OrderClass, OrderIntent, Portfolio

if TYPE_CHECKING:
    from alpaca.trading.client import TradingClient

MOST_ORDERS = 500  # Alpaca's page sizes
MOST_FILLS = 100
DUPLICATE = "client_order_id must be unique"
MAY_PASS = (408, 429)  # refusals that say nothing about the order itself


class AlpacaBroker:
    """Implements Broker. The client must not retry by itself (see trader.broker.session).

    alpaca-py's and requests' errors stop here. Prices and quantities travel as text, never floats.
    """

    def __init__(self, client: TradingClient) -> None:
        self._client = client
        self._client_ids: dict[str, str] = {}  # by order id; neither ever changes
        self._settled_before: datetime | None = None  # every order submitted earlier is final

    def portfolio(self) -> Portfolio:
        """Cash, equity and positions as of the market's clock."""
        with _reading("portfolio"):
            clock = record(self._client.get("/clock"), "clock")
            account = record(self._client.get("/account"), "account")
            held = rows(self._client.get("/positions"), "positions")
        return Portfolio(
            cash=amount(account, "cash"),
            equity=amount(account, "equity"),
            positions=tuple(read_position(row) for row in held),
            as_of=moment(clock, "timestamp"),
        )

    def submit(self, intent: OrderIntent) -> Order:
        """Send the order once. A lost or doubtful answer is settled by asking for the client id.

        OrderRefusedError when the broker says no; EndpointError when the broker does not have the
        order, or cannot be asked: the same intent may then be sent again.
        """
        try:
            return self._read(record(self._client.post("/orders", _body(intent)), "order"))
        except APIError as exc:
            if _is_refusal(exc):
                raise OrderRefusedError(
                    f"{intent.symbol}: the broker refused to {intent.side} {intent.quantity}: "
                    f"{_message(exc)}",
                    code=_code(exc),
                ) from exc
            return self._settle(intent, exc)
        except (RequestException, EndpointError) as exc:
            return self._settle(intent, exc)

    def order(self, client_order_id: str) -> Order | None:
        """The order with this client id and its legs, or None if the broker never saw it."""
        with _reading(f"order {client_order_id}"):
            try:
                answer = self._client.get(
                    "/orders:by_client_order_id", {"client_order_id": client_order_id}
                )
            except APIError as exc:
                if exc.status_code == 404:
                    return None
                raise
        found = self._read(record(answer, "order"))
        if found.order_class is OrderClass.SIMPLE or found.legs:
            return found
        return self._order_by_id(found.order_id)

    def orders(self, *, open_only: bool = True) -> tuple[Order, ...]:
        """Orders with their legs nested, oldest first; a waiting (`held`) leg counts as open.

        An order is final for ever, so open ones are looked for from the oldest that was open
        last time. `status=open` is not used: Alpaca has left out waiting legs there.
        """
        found = self._orders_after(self._settled_before if open_only else None)
        still_open = tuple(order for order in found if _is_open(order))
        newest = found[-1:] if not still_open else still_open[:1]
        for order in newest:
            self._settled_before = order.submitted_at - timedelta(microseconds=1)
        return still_open if open_only else tuple(found)

    def cancel(self, order_id: str) -> None:
        """Ask for cancellation; an order that is already final is not an error."""
        try:
            with _reading(f"cancellation of order {order_id}"):
                self._client.delete(f"/orders/{quote(order_id, safe='')}")
        except EndpointError as exc:
            cause = exc.__cause__
            if not (isinstance(cause, APIError) and cause.status_code == 422):
                raise
            if not self._order_by_id(order_id).status.is_final:
                raise

    def fills(self, after: str | None = None) -> tuple[Fill, ...]:
        """Fills in the order they happened, those after the execution id `after` only."""
        found: list[Fill] = []
        token = after
        while True:
            wanted: dict[str, object] = {"direction": "asc", "page_size": MOST_FILLS}
            if token is not None:
                wanted["page_token"] = token
            with _reading("fills"):
                page = rows(self._client.get("/account/activities/FILL", wanted), "fills")
            found.extend(read_fill(row, self._client_id(text(row, "order_id"))) for row in page)
            if len(page) < MOST_FILLS:
                return tuple(found)
            token = found[-1].execution_id

    def _settle(self, intent: OrderIntent, doubt: Exception) -> Order:
        """The order whose sending ended in doubt, as the broker has it."""
        try:
            found = self.order(intent.client_order_id)
        except EndpointError as exc:
            raise EndpointError(
                f"{intent.symbol}: whether order {intent.client_order_id} arrived is unknown "
                f"({_message(doubt)}; asking failed too: {exc}); ask again before sending anew"
            ) from doubt
        if found is None:
            raise EndpointError(
                f"{intent.symbol}: order {intent.client_order_id} did not reach the broker "
                f"({_message(doubt)}); it may be sent again with the same id"
            ) from doubt
        return found

    def _orders_after(self, after: datetime | None) -> list[Order]:
        """Every order submitted after `after`, oldest first, page by page."""
        found: dict[str, Order] = {}
        while True:
            wanted = {"status": "all", "direction": "asc", "nested": "true", "limit": MOST_ORDERS}
            if after is not None:
                wanted["after"] = after.isoformat()
            with _reading("orders"):
                page = rows(self._client.get("/orders", wanted), "orders")
            read = [self._read(row) for row in page]
            new = [order for order in read if order.order_id not in found]
            found.update((order.order_id, order) for order in new)
            if sum(len(order.with_legs()) for order in read) < MOST_ORDERS:
                return list(found.values())
            if not new:
                raise EndpointError(
                    f"the broker has more than {MOST_ORDERS} orders submitted at {after}; "
                    "they cannot be told apart page by page"
                )
            after = read[-1].submitted_at - timedelta(microseconds=1)

    def _order_by_id(self, order_id: str) -> Order:
        with _reading(f"order {order_id}"):
            answer = self._client.get(f"/orders/{quote(order_id, safe='')}", {"nested": "true"})
        return self._read(record(answer, "order"))

    def _client_id(self, order_id: str) -> str:
        if order_id not in self._client_ids:
            self._order_by_id(order_id)
        return self._client_ids[order_id]

    def _read(self, row: Row) -> Order:
        order = read_order(row)
        self._client_ids.update((one.order_id, one.client_order_id) for one in order.with_legs())
        return order


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Every error of the client becomes an EndpointError that says what was asked for."""
    try:
        yield
    except APIError as exc:
        raise EndpointError(
            f"the broker answered {exc.status_code} for the {what}: {_message(exc)}"
        ) from exc
    except RequestException as exc:
        raise EndpointError(f"the broker could not be asked for the {what}: {exc}") from exc


def _body(intent: OrderIntent) -> dict[str, object]:
    body: dict[str, object] = {
        "client_order_id": intent.client_order_id,
        "symbol": intent.symbol,
        "qty": format(intent.quantity, "f"),
        "side": intent.side.value,
        "type": intent.order_type.value,
        "order_class": intent.order_class.value,
        "time_in_force": intent.time_in_force.value,
    }
    if intent.limit_price is not None:
        body["limit_price"] = format(intent.limit_price, "f")
    if intent.stop_price is not None:
        body["stop_price"] = format(intent.stop_price, "f")
    if intent.take_profit_price is not None:
        body["take_profit"] = {"limit_price": format(intent.take_profit_price, "f")}
    if intent.stop_loss_price is not None:
        body["stop_loss"] = {"stop_price": format(intent.stop_loss_price, "f")}
    return body


def _is_open(order: Order) -> bool:
    return any(not one.status.is_final for one in order.with_legs())


def _is_refusal(exc: APIError) -> bool:
    """A 4xx that speaks about the order; a client id used before means that the order exists."""
    status = exc.status_code
    if status is None or not 400 <= status < 500 or status in MAY_PASS:
        return False
    return not (status == 422 and DUPLICATE in str(exc))


def _error_body(exc: Exception) -> dict[str, object]:
    try:
        body = json.loads(str(exc))
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _message(exc: Exception) -> str:
    """The broker's own words on one line; the start of the answer when it is no JSON."""
    return " ".join(str(_error_body(exc).get("message") or exc).split())[:300]


def _code(exc: Exception) -> int | None:
    code = _error_body(exc).get("code")
    return code if isinstance(code, int) else None
