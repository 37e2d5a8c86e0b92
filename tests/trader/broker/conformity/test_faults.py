"""What each fault looks like to the unmodified client, the same over both transports."""

from __future__ import annotations

import pytest
import requests
from alpaca.common.exceptions import APIError
from alpaca.trading.enums import OrderStatus
from alpaca.trading.requests import GetOrdersRequest, MarketOrderRequest
from pydantic import ValidationError

from trader.broker.exchange.faults import Fault, Switch

ORDERS = "POST /v2/orders"


@pytest.fixture(autouse=True)
def _patience(venue):
    """Without the client's own retries, and with an end to its patience."""
    client = venue.trading
    client._retry, client._retry_codes = 0, []
    send = client._session.send
    client._session.send = lambda request, **more: send(request, **more | {"timeout": (5, 0.2)})


def submit(venue):
    order = MarketOrderRequest(
        symbol="AAPL", qty=1, side="buy", time_in_force="day", client_order_id="c1"
    )
    return venue.trading.submit_order(order)


def booked(venue):
    """Client ids of the orders at the exchange itself."""
    _, orders = venue.exchange.handle("GET", "/v2/orders?status=all", None)
    return [order["client_order_id"] for order in orders]


@pytest.mark.parametrize(
    ("fault", "error", "orders"),
    [
        (Fault.LOST_REQUEST, requests.ConnectionError, []),
        (Fault.LOST_ANSWER, requests.ConnectionError, ["c1"]),
        (Fault.SILENCE, requests.ReadTimeout, ["c1"]),
    ],
)
def test_a_connection_that_breaks(venue, fault, error, orders):
    venue.faults.set([Switch(fault=fault, where=ORDERS)])
    with pytest.raises(error):
        submit(venue)
    assert booked(venue) == orders


@pytest.mark.parametrize(
    ("fault", "status", "orders"),
    [
        (Fault.RATE_LIMITED, 429, []),
        (Fault.WRONG_KEYS, 401, []),
        (Fault.GATEWAY_TIMEOUT, 504, ["c1"]),
        (Fault.BAD_GATEWAY, 502, ["c1"]),
    ],
)
def test_an_answer_that_is_spoilt(venue, fault, status, orders):
    venue.faults.set([Switch(fault=fault, where=ORDERS)])
    with pytest.raises(APIError) as caught:
        submit(venue)
    assert caught.value.status_code == status
    assert booked(venue) == orders
    if fault is Fault.RATE_LIMITED:
        assert caught.value.response.headers["X-Ratelimit-Remaining"] == "0"
    if fault is Fault.BAD_GATEWAY:
        assert "<html>" in str(caught.value)


def test_the_same_order_sent_again_after_a_lost_answer_is_a_duplicate_and_there_is_one(venue):
    venue.faults.set([Switch(fault=Fault.LOST_ANSWER, where=ORDERS)])
    with pytest.raises(requests.ConnectionError):
        submit(venue)
    with pytest.raises(APIError, match="client_order_id must be unique"):
        submit(venue)
    assert venue.trading.get_order_by_client_id("c1").status is OrderStatus.ACCEPTED
    assert booked(venue) == ["c1"]


def test_an_order_that_shows_up_late(venue):
    venue.faults.set([Switch(fault=Fault.HIDDEN_ORDER, lookups=2)])
    order = submit(venue)
    with pytest.raises(APIError) as caught:
        venue.trading.get_order_by_client_id("c1")
    assert (caught.value.status_code, caught.value.code) == (404, 40410000)
    assert venue.trading.get_orders(GetOrdersRequest(status="all")) == []
    assert venue.trading.get_order_by_id(order.id).client_order_id == "c1"


def test_an_order_that_is_filled_before_it_is_answered(venue):
    venue.faults.set([Switch(fault=Fault.FILL_BEFORE_ANSWER)])
    assert submit(venue).status is OrderStatus.ACCEPTED
    assert venue.trading.get_order_by_client_id("c1").status is OrderStatus.FILLED


def test_a_word_of_the_future_breaks_the_clients_models_but_not_its_raw_answers(venue):
    submit(venue)
    venue.faults.set([Switch(fault=Fault.UNKNOWN_WORD, where="GET /v2/orders", times=2)])
    with pytest.raises(ValidationError):
        venue.trading.get_orders()
    assert venue.trading.get("/orders")[0]["status"] == "unheard_of"
