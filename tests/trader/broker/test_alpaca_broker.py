"""The broker adapter: over the embedded exchange, and over a service that fails in every way."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from alpaca.trading.client import TradingClient
from requests.adapters import BaseAdapter

from tests.trader.broker.floor import FLAT, Floor, closing, opening
from trader.broker.alpaca_broker import AlpacaBroker
from trader.broker.session import EMBEDDED_URL, embedded_client, guarded
from trader.core.errors import EndpointError, OrderRefusedError
from trader.core.trading import (
    OrderClass,
    OrderIntent,
    OrderStatus,
    OrderType,
    Side,
    TimeInForce,
)

QUIET = [FLAT] * 8
ENTRY = OrderIntent(
    client_order_id="tr-1",
    symbol="AAPL",
    side=Side.BUY,
    quantity=Decimal(10),
    order_type=OrderType.MARKET,
    order_class=OrderClass.BRACKET,
    time_in_force=TimeInForce.GTC,
    take_profit_price=Decimal("110.00"),
    stop_loss_price=Decimal("95.00"),
)
POST, LOOKUP = ("POST", "/v2/orders"), ("GET", "/v2/orders:by_client_order_id")


class Wire(BaseAdapter):
    """The embedded exchange behind a line that can break; `faults` are used up one by one.

    A fault is (when, what): "before" or "after" the exchange acted, then a status with a body, or
    an exception.
    """

    def __init__(self, market: Floor, *faults: tuple[str, object]) -> None:
        super().__init__()
        self.market = market
        self.faults = {POST: list(faults), LOOKUP: []}
        self.asked: list[tuple[str, str]] = []

    def send(self, request, **_):
        body = request.body.encode() if isinstance(request.body, str) else request.body
        key = (request.method, urlsplit(request.path_url).path)
        self.asked.append(key)
        when, fault = self.faults.get(key, []).pop(0) if self.faults.get(key) else ("", None)
        answer = None
        if when != "before":
            answer = self.market.exchange.handle(request.method, request.path_url, body)
        if isinstance(fault, Exception):
            raise fault
        status, text = fault or (answer[0], json.dumps(answer[1]) if answer[1] is not None else "")
        response = requests.Response()
        response.status_code, response.url, response.request = status, request.url, request
        response._content = text.encode()
        return response

    def close(self):
        pass


def broken(*faults: tuple[str, object]) -> tuple[AlpacaBroker, Wire]:
    wire = Wire(Floor(*QUIET), *faults)
    client = TradingClient("PK", "x", url_override=EMBEDDED_URL)
    return AlpacaBroker(guarded(client, {EMBEDDED_URL: wire})), wire


def answering(routes: dict[str, object]) -> AlpacaBroker:
    """A broker over fixed answers by path; the query is not looked at."""

    class Fixed(BaseAdapter):
        def send(self, request, **_):
            response = requests.Response()
            response.status_code, response.url, response.request = 200, request.url, request
            response._content = json.dumps(routes[urlsplit(request.path_url).path[3:]]).encode()
            return response

        def close(self):
            pass

    client = TradingClient("PK", "x", url_override=EMBEDDED_URL)
    return AlpacaBroker(guarded(client, {EMBEDDED_URL: Fixed()}))


def a_row(**changes: object) -> dict[str, object]:
    """An order as the exchange writes it, changed."""
    market = Floor(*QUIET)
    row = dict(market.post(client_order_id="row", time_in_force="gtc")[1])
    return row | changes


def test_an_intent_becomes_an_order_with_legs_and_exact_prices():
    market = Floor(*QUIET)
    order = market.broker.submit(replace(ENTRY, take_profit_price=Decimal("106.21")))
    assert order.client_order_id == "tr-1"
    assert order.submitted_at == closing(0)
    assert [leg.limit_price or leg.stop_price for leg in order.legs] == [
        Decimal("106.21"),
        Decimal(95),
    ]
    assert market.broker.order("tr-1") == order
    assert market.broker.order("never") is None


@pytest.mark.parametrize(
    "intent",
    [
        replace(ENTRY, order_class=OrderClass.OTO, take_profit_price=None),
        replace(
            ENTRY,
            order_class=OrderClass.SIMPLE,
            take_profit_price=None,
            stop_loss_price=None,
            order_type=OrderType.LIMIT,
            limit_price=Decimal("99.5"),
        ),
        replace(ENTRY, order_type=OrderType.STOP, stop_price=Decimal(105)),
    ],
)
def test_every_kind_of_intent_comes_back_as_it_was_meant(intent):
    order = Floor(*QUIET).broker.submit(intent)
    for name in ("symbol", "side", "quantity", "order_type", "order_class", "time_in_force"):
        assert getattr(order, name) == getattr(intent, name)
    assert (order.limit_price, order.stop_price) == (intent.limit_price, intent.stop_price)


def test_an_exit_pair_protects_a_position():
    market = Floor(*QUIET)
    market.buy()
    market.to_close(1)
    pair = replace(ENTRY, side=Side.SELL, order_class=OrderClass.OCO, order_type=OrderType.LIMIT)
    order = market.broker.submit(pair)
    assert (order.limit_price, order.legs[0].stop_price) == (110, 95)


def test_the_portfolio_is_told_as_of_the_market_clock():
    market = Floor(*QUIET)
    market.broker.submit(ENTRY)
    market.to_close(1)
    portfolio = market.broker.portfolio()
    assert (portfolio.cash, portfolio.equity, portfolio.as_of) == (9000, 10_000, closing(1))
    assert portfolio.position("AAPL").quantity == 10


def test_fills_name_the_client_id_of_parents_and_legs_and_go_on_after_the_last_one_seen():
    market = Floor(FLAT, FLAT, (100, 112, 100, 111), FLAT)
    market.broker.submit(ENTRY)
    market.to_close(2)
    fresh = AlpacaBroker(market.client)  # has seen no order yet
    entry, exit_ = fresh.fills()
    assert (entry.client_order_id, entry.filled_at) == ("tr-1", opening(1))
    assert exit_.client_order_id == fresh.order("tr-1").legs[0].client_order_id
    assert fresh.fills(after=entry.execution_id) == (exit_,)
    assert fresh.fills(after=exit_.execution_id) == ()


def test_fills_beyond_one_page_are_all_told():
    market = Floor(*QUIET, cash=1_000_000)
    for _ in range(205):
        market.buy(qty=1)
    market.to_close(1)
    assert len({fill.execution_id for fill in market.broker.fills()}) == 205


def test_the_orders_of_many_fills_are_not_asked_for_one_by_one():
    broker, wire = broken()
    for number in range(20):
        broker.submit(replace(ENTRY, client_order_id=f"tr-{number}", quantity=Decimal(1)))
    wire.market.to_close(1)
    wire.asked.clear()
    fills = AlpacaBroker(broker._client).fills()
    assert [fill.client_order_id for fill in fills] == [f"tr-{number}" for number in range(20)]
    assert len(wire.asked) == 2


def test_open_orders_are_the_families_in_which_something_can_still_happen():
    market = Floor(*QUIET)
    old = market.buy(type="limit", limit_price=50, time_in_force="gtc", qty=1)
    market.broker.submit(ENTRY)
    market.to_close(1)
    assert market.broker.orders()[0].order_id == old
    family = market.broker.orders()[1]
    assert family.status is OrderStatus.FILLED
    assert [leg.status for leg in family.legs] == [OrderStatus.NEW, OrderStatus.HELD]
    market.broker.cancel(family.legs[0].order_id)
    assert [order.order_id for order in market.broker.orders()] == [old]
    market.broker.cancel(old)
    assert market.broker.orders() == ()
    assert len(market.broker.orders(open_only=False)) == 2


def test_an_old_order_stays_listed_while_younger_ones_come_and_go():
    market = Floor(*QUIET)
    waiting = []
    for session in range(1, 4):
        waiting.append(market.buy(qty=1, type="limit", limit_price=50, time_in_force="gtc"))
        market.buy(qty=1)
        for _ in range(2):
            listed = [order.order_id for order in market.broker.orders()]
            assert [order for order in listed if order in waiting] == waiting
        market.to_close(session)
        assert [order.order_id for order in market.broker.orders()] == waiting


def test_new_orders_are_found_after_everything_older_was_settled():
    market = Floor(*QUIET)
    for session in range(1, 5):
        first, second = market.buy(qty=1), market.buy(qty=1)  # sent at the same moment
        assert [order.order_id for order in market.broker.orders()] == [first, second]
        market.to_close(session)
        assert market.broker.orders() == ()
    fresh = AlpacaBroker(market.client)
    assert len(fresh.orders(open_only=False)) == 8
    market.buy(qty=1)
    assert len(fresh.orders()) == 1


def test_more_orders_than_a_page_are_all_listed():
    market = Floor(*QUIET, cash=10_000_000)
    for session in range(1, 4):
        for _ in range(210):
            market.buy(qty=1)
        market.to_close(session)
    orders = market.broker.orders(open_only=False)
    assert len({order.order_id for order in orders}) == len(orders) == 630
    assert [order.submitted_at for order in orders] == sorted(
        order.submitted_at for order in orders
    )


def test_more_orders_of_one_moment_than_a_page_are_an_error_rather_than_a_loss():
    market = Floor(*QUIET, cash=10_000_000)
    for _ in range(501):
        market.buy(qty=1)
    with pytest.raises(EndpointError, match="more than 500 orders"):
        market.broker.orders()


def test_canceling_what_is_already_final_is_no_error_and_what_is_unknown_is_one():
    market = Floor(*QUIET)
    order = market.broker.submit(ENTRY)
    market.broker.cancel(order.order_id)
    market.broker.cancel(order.order_id)
    assert market.broker.orders() == ()
    with pytest.raises(EndpointError, match="404"):
        market.broker.cancel("11111111-2222-3333-4444-555555555555")
    with pytest.raises(EndpointError, match="not a UUID"):
        market.broker.cancel("odd/../id")


def test_canceling_what_is_being_canceled_already_is_no_error():
    broker, wire = broken()
    order = broker.submit(ENTRY)
    path = f"/v2/orders/{order.order_id}"
    wire.faults["DELETE", path] = [("before", (422, '{"message": "order is pending cancel"}'))] * 2
    row = json.dumps(a_row(id=order.order_id, status="pending_cancel"))
    wire.faults["GET", path] = [("before", (200, row))]
    broker.cancel(order.order_id)
    with pytest.raises(EndpointError, match="pending cancel"):
        broker.cancel(order.order_id)  # one that is open and was not asked about


def test_a_fill_of_an_order_that_cannot_be_read_hides_no_other_fill():
    broker, wire = broken()
    order = broker.submit(ENTRY)
    wire.market.to_close(1)
    foreign = a_row(id=order.order_id, client_order_id="by hand", order_class="mleg")
    path = f"/v2/orders/{order.order_id}"
    wire.faults["GET", path] = [("before", (200, json.dumps(foreign)))]
    fresh = AlpacaBroker(broker._client)
    assert [fill.client_order_id for fill in fresh.fills()] == ["by hand"]


def test_a_refusal_carries_the_brokers_words_and_code():
    market = Floor(*QUIET)
    with pytest.raises(OrderRefusedError, match=r"AAPL.*buy 1000: insufficient buying") as caught:
        market.broker.submit(replace(ENTRY, quantity=Decimal(1000)))
    assert caught.value.code == 40310000


def test_sending_the_same_intent_twice_returns_the_first_order():
    market = Floor(*QUIET)
    first = market.broker.submit(ENTRY)
    assert market.broker.submit(ENTRY) == first
    market.to_close(1)
    assert market.broker.submit(ENTRY).status is OrderStatus.FILLED
    assert len(market.broker.orders(open_only=False)) == 1


DOUBTFUL = [
    requests.Timeout("too slow"),
    requests.ConnectionError("reset"),
    (504, "gateway"),
    (502, "<html>bad gateway</html>"),
    (500, ""),
    (200, ""),
    (200, "<html>"),
    (200, "[]"),
    (200, '{"id": "x"}'),
    (200, "[" * 100_000),
    (200, '{"id": ' + "9" * 9_000 + "}"),
    (500, "[" * 100_000),
    (302, "{}"),
    (408, "{}"),
]


@pytest.mark.parametrize("fault", DOUBTFUL)
def test_an_answer_lost_after_the_order_was_taken_ends_in_that_one_order(fault):
    broker, wire = broken(("after", fault))
    assert broker.submit(ENTRY).client_order_id == "tr-1"
    assert wire.asked == [POST, LOOKUP]
    assert len(wire.market.all_orders()) == 1


@pytest.mark.parametrize("fault", DOUBTFUL)
def test_an_order_that_never_arrived_is_said_to_be_free_to_send_again(fault):
    broker, wire = broken(("before", fault))
    with pytest.raises(EndpointError, match=r"did not reach the broker.*same id"):
        broker.submit(ENTRY)
    assert wire.asked.count(POST) == 1
    assert broker.submit(ENTRY).client_order_id == "tr-1"
    assert len(wire.market.all_orders()) == 1


@pytest.mark.parametrize("fault", DOUBTFUL[:5])
def test_an_outcome_that_cannot_be_learned_is_called_unknown(fault):
    broker, wire = broken(("after", fault))
    wire.faults[LOOKUP] = [("before", fault)]
    with pytest.raises(EndpointError, match="whether order tr-1 arrived is unknown"):
        broker.submit(ENTRY)
    assert broker.submit(ENTRY).client_order_id == "tr-1"
    assert len(wire.market.all_orders()) == 1


@pytest.mark.parametrize(
    ("status", "text", "code"),
    [
        (403, '{"code": 40310000, "message": "no"}', 40310000),
        (422, '{"code": 42210000, "message": "no"}', 42210000),
        (403, '{"code": 40310000, "message": "account is blocked"}', 40310000),
        (400, "<html>", None),
    ],
)
def test_any_other_no_is_final_and_not_asked_about(status, text, code):
    broker, wire = broken(("before", (status, text)))
    with pytest.raises(OrderRefusedError) as caught:
        broker.submit(ENTRY)
    assert caught.value.code == code
    assert wire.asked == [POST]


def test_an_unreachable_service_is_an_endpoint_error_everywhere():
    class Dead(BaseAdapter):
        def send(self, request, **_):
            raise requests.ConnectTimeout("nobody there")

        def close(self):
            pass

    client = guarded(TradingClient("PK", "x", url_override=EMBEDDED_URL), {EMBEDDED_URL: Dead()})
    broker = AlpacaBroker(client)
    for call in (
        broker.portfolio,
        broker.orders,
        broker.fills,
        lambda: broker.order("tr-1"),
        lambda: broker.cancel("11111111-2222-3333-4444-555555555555"),
        lambda: broker.submit(ENTRY),
    ):
        with pytest.raises(EndpointError, match="nobody there"):
            call()


@pytest.mark.parametrize("body", ["<html>", "[" * 100_000, '{"cash": ' + "9" * 9_000 + "}"])
@pytest.mark.parametrize("status", [200, 422])
def test_an_answer_that_is_no_json_is_an_endpoint_error_everywhere(status, body):
    class Garbling(BaseAdapter):
        def send(self, request, **_):
            response = requests.Response()
            response.status_code, response.url, response.request = status, request.url, request
            response._content = body.encode()
            return response

        def close(self):
            pass

    door = {EMBEDDED_URL: Garbling()}
    broker = AlpacaBroker(guarded(TradingClient("PK", "x", url_override=EMBEDDED_URL), door))
    for call in (
        broker.portfolio,
        broker.orders,
        broker.fills,
        lambda: broker.order("tr-1"),
        lambda: broker.cancel("11111111-2222-3333-4444-555555555555"),
        lambda: broker.replace("x", client_order_id="tr-2", quantity=Decimal(1)),
    ):
        with pytest.raises(EndpointError, match=r"no JSON|422|is unknown"):
            call()


def test_an_unknown_status_loses_no_order_and_counts_as_open():
    rows = [a_row(), a_row(id="x", client_order_id="odd", status="pending_teleport")]
    orders = answering({"/orders": rows}).orders()
    assert [order.status for order in orders] == [OrderStatus.ACCEPTED, OrderStatus.PENDING_REVIEW]


def test_fields_and_order_classes_that_mean_nothing_here_are_read_calmly():
    row = a_row(order_class="", surprise=1, submitted_at="2025-07-01T09:30:00.123456789-04:00")
    (order,) = answering({"/orders": [row]}).orders()
    assert order.order_class is OrderClass.SIMPLE
    assert order.submitted_at.isoformat() == "2025-07-01T13:30:00.123456+00:00"


@pytest.mark.parametrize(
    "changes",
    [
        {"qty": "NaN"},
        {"qty": "ten"},
        {"filled_qty": None},
        {"limit_price": True},
        {"submitted_at": "yesterday"},
        {"submitted_at": "2025-07-01T09:30:00"},
        {"client_order_id": None},
        {"status": None},
        {"legs": "two"},
        {"legs": ["two"]},
    ],
)
def test_what_cannot_be_read_is_an_endpoint_error_that_names_it(changes):
    name = next(iter(changes))
    with pytest.raises(EndpointError, match=name):
        answering({"/orders": [a_row(**changes)]}).orders()


@pytest.mark.parametrize(
    "answers",
    [
        {"/clock": [], "/account": {}, "/positions": []},
        {"/clock": {}, "/account": {}, "/positions": []},
        {"/clock": {"timestamp": "2025-07-01T09:30:00Z"}, "/account": {}, "/positions": []},
        {
            "/clock": {"timestamp": "2025-07-01T09:30:00Z"},
            "/account": {"cash": "1", "equity": "1"},
            "/positions": {"AAPL": 1},
        },
    ],
)
def test_a_portfolio_that_cannot_be_read_is_an_endpoint_error(answers):
    with pytest.raises(EndpointError):
        answering(answers).portfolio()


def test_legs_that_a_lookup_does_not_show_are_fetched():
    """Alpaca's lookup by client id may leave the legs out."""
    market = Floor(*QUIET)
    market.broker.submit(ENTRY)
    handle = market.exchange.handle

    class Bare:
        def handle(self, method, path, body):
            status, answer = handle(method, path, body)
            bare = answer | {"legs": None} if "by_client" in path else answer
            return status, bare

    broker = AlpacaBroker(embedded_client(Bare()))
    assert len(broker.order("tr-1").legs) == 2


def test_the_open_list_asks_for_a_bounded_time_only():
    market = Floor(*QUIET)
    asked = []
    handle = market.exchange.handle

    class Listening:
        def handle(self, method, path, body):
            asked.append(parse_qs(urlsplit(path).query))
            return handle(method, path, body)

    broker = AlpacaBroker(embedded_client(Listening()))
    market.buy(qty=1)
    broker.orders()
    market.to_close(1)
    broker.orders()
    market.buy(qty=1)
    broker.orders()
    assert "after" not in asked[0]
    assert asked[2]["after"] == ["2025-06-27T19:50:00+00:00"]


def test_an_open_order_that_the_list_shows_late_is_found_beside_younger_ones_that_are_final():
    market = Floor(*QUIET)
    market.exchange.advance(opening(1))
    late = market.buy(qty=1, type="limit", limit_price=50, time_in_force="gtc")
    market.exchange.advance(opening(1) + timedelta(minutes=5))
    market.buy(qty=1)
    market.to_close(2)
    handle, hidden = market.exchange.handle, {late}

    class Late:
        def handle(self, method, path, body):
            status, answer = handle(method, path, body)
            if path.startswith("/v2/orders?"):
                answer = [row for row in answer if row["id"] not in hidden]
            return status, answer

    broker = AlpacaBroker(embedded_client(Late()))
    assert broker.orders() == ()
    hidden.clear()
    assert [order.order_id for order in broker.orders()] == [late]
