"""The broker: one adapter over alpaca-py for the embedded exchange and for Alpaca's paper API."""

from __future__ import annotations

import logging
from dataclasses import replace as changed
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING
from urllib.parse import quote

from alpaca.common.exceptions import APIError
from requests import RequestException

from trader.broker.alpaca_errors import UNREADABLE, message, order_error, reading
from trader.broker.alpaca_json import (
    Row,
    amount,
    foreign_word,
    moment,
    read_account,
    read_activity,
    read_clock,
    read_fill,
    read_order,
    read_position,
    record,
    rows,
    text,
)
from trader.core.errors import EndpointError, OrderRefusedError, RateLimitedError
from trader.core.trading import (
    AccountState,
    Activity,
    Fill,
    MarketClock,
    Order,
    OrderClass,
    OrderIntent,
    OrderStatus,
    Portfolio,
    Side,
)

if TYPE_CHECKING:
    from alpaca.trading.client import TradingClient

    from trader.core.ports import TradingHalt

log = logging.getLogger(__name__)

MOST_ORDERS = 500  # Alpaca's page sizes
MOST_ACTIVITIES = 100
FEW_ORDERS = 5  # that are asked for one by one
PAPER_NUMBER = "PA"  # a custom of Alpaca, not a promise
LONGEST_CHAIN = 100  # replacements of replacements
SHOWN_LATE = timedelta(minutes=10)  # how much older than a listed order one may be that was not


class AlpacaBroker:
    """Implements Broker. The client must not retry by itself (see trader.broker.session).

    alpaca-py's and requests' errors stop here. Prices and quantities travel as text, never floats.
    """

    def __init__(self, client: TradingClient, *, halt: TradingHalt | None = None) -> None:
        """A broker over `client`; `halt` is asked before anything that buys is sent."""
        self._client = client
        self._halt = halt
        self._client_ids: dict[str, str] = {}  # by order id; neither ever changes
        self._buys: dict[str, str] = {}  # symbol of every order that buys, by order id
        self._foreign: set[str] = set()  # orders that cannot be ours, by id
        self._replacements: dict[str, Order] = {}  # final ones, by order id
        self._settled_before: datetime | None = None  # every order submitted earlier is final

    def portfolio(self) -> Portfolio:
        """Cash, equity and positions as of the market's clock."""
        with reading("portfolio"):
            clock = record(self._client.get("/clock"), "clock")
            account = record(self._client.get("/account"), "account")
            held = rows(self._client.get("/positions"), "positions")
        return Portfolio(
            cash=amount(account, "cash"),
            equity=amount(account, "equity"),
            positions=tuple(read_position(row) for row in held),
            as_of=moment(clock, "timestamp"),
        )

    def account(self) -> AccountState:
        """The account itself."""
        with reading("account"):
            return read_account(record(self._client.get("/account"), "account"))

    def notices(self) -> tuple[str, ...]:
        """What a person should know about the account before it trades."""
        with reading("account"):
            row = record(self._client.get("/account"), "account")
        found = [blocked] if (blocked := read_account(row).blocked) else []
        if not str(row.get("account_number")).startswith(PAPER_NUMBER):
            found.insert(
                0,
                f"the account's number does not begin with {PAPER_NUMBER}, as those of Alpaca's "
                "paper accounts do: make sure that the key is one of a paper account",
            )
        return tuple(found)

    def clock(self) -> MarketClock:
        """The broker's clock."""
        with reading("clock"):
            return read_clock(record(self._client.get("/clock"), "clock"))

    def submit(self, intent: OrderIntent) -> Order:
        """Send the order once. A lost or doubtful answer is settled by asking for the client id.

        OrderRefusedError when the broker or the halt says no; RateLimitedError when nothing was
        done; EndpointError when the broker does not have the order, or cannot be asked: the same
        intent may then be sent again.
        """
        action = f"{intent.side} {intent.quantity}"
        self._refuse_when_halted(intent.symbol, intent.side)
        try:
            return self._read(record(self._client.post("/orders", _body(intent)), "order"))
        except APIError as exc:
            if (meaning := order_error(exc, intent.symbol, action)) is not None:
                raise meaning from exc
            return self._settle(intent, exc)
        except RateLimitedError:
            raise
        except (RequestException, EndpointError, *UNREADABLE) as exc:
            return self._settle(intent, exc)

    def order(self, client_order_id: str) -> Order | None:
        """The order with this client id and its legs, or None if the broker never saw it."""
        row = self._found(
            f"order {client_order_id}",
            "/orders:by_client_order_id",
            {"client_order_id": client_order_id},
        )
        if row is None:
            return None
        found = self._read(row)
        if found.order_class is OrderClass.SIMPLE or found.legs:
            return found
        return self.order_by_id(found.order_id) or found

    def order_by_id(self, order_id: str) -> Order | None:
        """The order with the broker's own id and its legs, or None where there is none."""
        row = self._row(order_id)
        return None if row is None else self._read(row)

    def orders(self, *, open_only: bool = True) -> tuple[Order, ...]:
        """Orders with their legs nested, oldest first; a waiting (`held`) leg counts as open.

        An order is final for ever, so open ones are looked for from the oldest that was open
        last time. `status=open` is not used: Alpaca has left out waiting legs there. What took the
        place of a replaced leg stands beside it. Orders that this product could not have placed
        (several legs of options, unknown types) are left out, with a warning.
        """
        found = self._orders_after(self._settled_before if open_only else None)
        still_open = tuple(order for order in found if _is_open(order))
        newest = found[-1:] if not still_open else still_open[:1]
        for order in newest:
            self._settled_before = order.submitted_at - SHOWN_LATE
        return still_open if open_only else tuple(found)

    def replace(
        self,
        order_id: str,
        *,
        client_order_id: str,
        quantity: Decimal | None = None,
        limit_price: Decimal | None = None,
        stop_price: Decimal | None = None,
    ) -> Order:
        """Put another order in the place of an open one, once; the new order, with its own id.

        Alpaca has refused replacements that happened all the same, so after any no and any doubt
        the new and the old order are read. OrderRefusedError when the old one stands as it was;
        RateLimitedError when nothing was done; EndpointError when that cannot be learned.
        """
        if self._halt is not None:
            if order_id not in self._client_ids and self.order_by_id(order_id) is None:
                raise OrderRefusedError(f"order {order_id} cannot be replaced: there is none")
            if order_id in self._buys:
                self._refuse_when_halted(self._buys[order_id], Side.BUY)
        changes = {"qty": quantity, "limit_price": limit_price, "stop_price": stop_price}
        body = {name: format(value, "f") for name, value in changes.items() if value is not None}
        body["client_order_id"] = client_order_id
        refusal: Exception | None = None
        try:
            answer = self._client.patch(f"/orders/{quote(order_id, safe='')}", body)
            return self._read(record(answer, "order"))
        except APIError as exc:
            refusal = order_error(exc, f"order {order_id}", "replace it")
            if isinstance(refusal, EndpointError):
                raise refusal from exc
            doubt: Exception = exc
        except RateLimitedError:
            raise
        except (RequestException, EndpointError, *UNREADABLE) as exc:
            doubt = exc
        unknown = EndpointError(
            f"whether order {order_id} was replaced is unknown ({message(doubt)}); look again "
            "before another attempt"
        )
        try:
            found = self._replacement(order_id, client_order_id)
        except EndpointError as exc:
            raise unknown from exc
        if found is not None:
            return found
        raise refusal or unknown from doubt

    def cancel(self, order_id: str) -> None:
        """Ask for cancellation; an order that is final or being canceled is not an error.

        Of a replaced order that which took its place is canceled.
        """
        try:
            with reading(f"cancellation of order {order_id}"):
                self._client.delete(f"/orders/{quote(order_id, safe='')}")
        except EndpointError as exc:
            cause = exc.__cause__
            if not (isinstance(cause, APIError) and cause.status_code == 422):
                raise
            found = self.order_by_id(order_id)
            if found is not None and found.status is OrderStatus.PENDING_CANCEL:
                return  # it was asked for before
            if found is None or not found.status.is_final:
                raise
            if found.replaced_by is not None:
                self.cancel(found.replaced_by)

    def fills(self, after: str | None = None) -> tuple[Fill, ...]:
        """Fills in the order they happened, those after the execution id `after` only."""
        found = self._activities("/account/activities/FILL", "fills", {}, after)
        if len({text(row, "order_id") for row in found} - self._client_ids.keys()) > FEW_ORDERS:
            self._orders_after(None)  # page by page, where one by one would pass the rate limit
        return tuple(read_fill(row, self._client_id(text(row, "order_id"))) for row in found)

    def activities(self, after: str | None = None) -> tuple[Activity, ...]:
        """What moved cash or shares besides fills, oldest first, after activity `after` only."""
        other = {"category": "non_trade_activity"}
        found = self._activities("/account/activities", "activities", other, after)
        return tuple(read_activity(row) for row in found if row.get("activity_type") != "FILL")

    def _refuse_when_halted(self, symbol: str, side: Side) -> None:
        """The product is never short: what buys opens or adds to a position, what sells leaves."""
        if self._halt is not None and side is Side.BUY:
            reason = self._halt.blocked(symbol)
            if reason:
                raise OrderRefusedError(f"{symbol}: nothing may be bought: {reason}")

    def _settle(self, intent: OrderIntent, doubt: Exception) -> Order:
        """The order whose sending ended in doubt, as the broker has it."""
        try:
            found = self.order(intent.client_order_id)
        except EndpointError as exc:
            raise EndpointError(
                f"{intent.symbol}: whether order {intent.client_order_id} arrived is unknown "
                f"({message(doubt)}; asking failed too: {exc}); ask again before sending anew"
            ) from doubt
        if found is None:
            raise EndpointError(
                f"{intent.symbol}: order {intent.client_order_id} did not reach the broker "
                f"({message(doubt)}); it may be sent again with the same id"
            ) from doubt
        return found

    def _replacement(self, order_id: str, client_order_id: str) -> Order | None:
        """What took the place of an order, read from both ends."""
        found = self.order(client_order_id)
        if found is not None:
            return found
        old = self.order_by_id(order_id)
        return self.order_by_id(old.replaced_by) if old and old.replaced_by else None

    def _orders_after(self, after: datetime | None) -> list[Order]:
        """Every order submitted after `after`, oldest first, page by page."""
        found: dict[str, Order] = {}
        while True:
            wanted = {"status": "all", "direction": "asc", "nested": "true", "limit": MOST_ORDERS}
            if after is not None:
                wanted["after"] = after.isoformat()
            with reading("orders"):
                page = rows(self._client.get("/orders", wanted), "orders")
            new = [row for row in page if text(row, "id") not in found and self._may_be_ours(row)]
            found.update((text(row, "id"), self._read(row)) for row in new)
            if sum(1 + len(row.get("legs") or ()) for row in page) < MOST_ORDERS:
                return self._with_replaced_legs(found)
            newest = moment(page[-1], "submitted_at") - timedelta(microseconds=1)
            if not new and newest == after:
                raise EndpointError(
                    f"the broker has more than {MOST_ORDERS} orders submitted at {after}; "
                    "they cannot be told apart page by page"
                )
            after = newest

    def _with_replaced_legs(self, found: dict[str, Order]) -> list[Order]:
        """The orders; beside each replaced leg stands the last that took its place."""
        known = {one.order_id for order in found.values() for one in order.with_legs()}
        whole = []
        for order in found.values():
            gone = [leg.replaced_by for leg in order.legs if leg.replaced_by]
            heirs = {one.order_id: one for one in map(self._heir, set(gone) - known)}
            new = tuple(heir for order_id, heir in heirs.items() if order_id not in known)
            whole.append(changed(order, legs=(*order.legs, *new)) if new else order)
        return whole

    def _heir(self, order_id: str) -> Order:
        """The last of a chain of replacements that begins with `order_id`."""
        for _ in range(LONGEST_CHAIN):
            order = self._replacements.get(order_id) or self.order_by_id(order_id)
            if order is None:
                raise EndpointError(f"the broker does not show order {order_id}, a replacement")
            if order.status.is_final:
                self._replacements[order_id] = order
            if order.replaced_by is None:
                return order
            order_id = order.replaced_by
        raise EndpointError(f"order {order_id} was replaced more than {LONGEST_CHAIN} times")

    def _row(self, order_id: str) -> Row | None:
        path = f"/orders/{quote(order_id, safe='')}"
        return self._found(f"order {order_id}", path, {"nested": "true"})

    def _found(self, what: str, path: str, wanted: dict[str, str]) -> Row | None:
        """The row at `path`, or None where the broker has none."""
        with reading(what):
            try:
                return record(self._client.get(path, wanted), "order")
            except APIError as exc:
                if exc.status_code == 404:
                    return None
                raise

    def _activities(
        self, path: str, what: str, wanted: dict[str, str], after: str | None
    ) -> list[Row]:
        """Activities from the one after `after` on, page by page."""
        found: list[Row] = []
        token = after
        while True:
            query: dict[str, object] = {"direction": "asc", "page_size": MOST_ACTIVITIES, **wanted}
            if token is not None:
                query["page_token"] = token
            with reading(what):
                page = rows(self._client.get(path, query), what)
            found.extend(page)
            if len(page) < MOST_ACTIVITIES:
                return found
            if (last := text(page[-1], "id")) == token:
                raise EndpointError(f"the broker's {what} after {token} do not end")
            token = last

    def _may_be_ours(self, row: Row) -> bool:
        """Whether this product can read the order; a warning, once, about one that it cannot."""
        word, order_id = foreign_word(row), text(row, "id")
        if word and order_id not in self._foreign:
            self._foreign.add(order_id)
            log.warning("order %s was placed elsewhere and is left out: %s", order_id, word)
        return not word

    def _client_id(self, order_id: str) -> str:
        if order_id not in self._client_ids:
            row = self._row(order_id)
            if row is None:
                raise EndpointError(
                    f"the broker shows a fill of order {order_id}, but no such order"
                )
            if self._may_be_ours(row):
                self._read(row)
            else:
                self._client_ids[order_id] = text(row, "client_order_id")
        return self._client_ids[order_id]

    def _read(self, row: Row) -> Order:
        order = read_order(row)
        for one in order.with_legs():
            self._client_ids[one.order_id] = one.client_order_id
            if one.side is Side.BUY:
                self._buys[one.order_id] = one.symbol
        return order


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
