"""Fault switches: what is carried out, what the client sees, and the same again for a seed."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime

import pytest
import requests
from alpaca.common.exceptions import APIError
from alpaca.trading.client import TradingClient
from hypothesis import given
from hypothesis import strategies as some

from trader.broker.exchange.answers import NoAnswerError
from trader.broker.exchange.faults import HTML, Fault, Faults, Switch
from trader.broker.exchange.transport import InProcess
from trader.broker.session import EMBEDDED_URL, guarded

POST, ORDERS = "POST", "/v2/orders"
BY_CLIENT = "/v2/orders:by_client_order_id?client_order_id=c1"


class Book:
    """A handler with the orders it was sent, which finds them by either id."""

    def __init__(self, *switches: Switch, seed: int = 0, **more: object) -> None:
        self.asked: list[tuple[str, str]] = []
        self.orders: dict[str, dict[str, str]] = {}
        self.faults = Faults(switches, seed=seed, **more)
        self.handle = self.faults.around(self._handle)

    def _handle(self, method: str, path_url: str, body: bytes | None) -> tuple[int, object]:
        self.asked.append((method, path_url))
        if method == POST:
            order = {"id": f"id-{len(self.orders)}", "status": "new", **json.loads(body or b"{}")}
            self.orders[order["id"]] = order
            return 200, dict(order)
        if path_url == ORDERS:
            return 200, [dict(order) for order in self.orders.values()]
        found = self.orders.get(path_url.rpartition("/")[2])
        if "by_client" in path_url:
            found = next(iter(self.orders.values()))
        return (200, dict(found)) if found else (404, {"code": 40410000, "message": "no"})

    def post(self) -> tuple[int, object]:
        return self.handle(POST, ORDERS, b'{"client_order_id": "c1"}')

    def outcome(self) -> str:
        """One POST in a word: its status, or how it broke."""
        try:
            return str(self.post()[0])
        except NoAnswerError as exc:
            return "waits" if exc.waits else "cut"


@pytest.mark.parametrize(
    ("fault", "outcome", "orders"),
    [
        (Fault.LOST_REQUEST, "cut", 0),
        (Fault.LOST_ANSWER, "cut", 1),
        (Fault.SILENCE, "waits", 1),
        (Fault.RATE_LIMITED, "429", 0),
        (Fault.WRONG_KEYS, "401", 0),
        (Fault.GATEWAY_TIMEOUT, "504", 1),
        (Fault.BAD_GATEWAY, "502", 1),
    ],
)
def test_the_next_order_meets_the_fault_and_the_one_after_it_does_not(fault, outcome, orders):
    book = Book(Switch(fault=fault, where="POST /v2/orders"))
    assert book.handle("GET", ORDERS, None) == (200, [])  # not what the switch is for
    assert book.outcome() == outcome
    assert len(book.orders) == orders
    assert book.outcome() == "200"
    assert len(book.orders) == orders + 1
    assert book.faults.struck == {fault: 1}
    assert book.faults.left() == []


@pytest.mark.parametrize("fault", [Fault.GATEWAY_TIMEOUT, Fault.BAD_GATEWAY, Fault.SILENCE])
def test_a_spoilt_answer_may_also_hide_that_nothing_was_done(fault):
    book = Book(Switch(fault=fault, reached=False))
    book.outcome()
    assert book.asked == []


def test_a_switch_leaves_the_first_matches_alone_and_strikes_as_often_as_it_says():
    book = Book(Switch(fault=Fault.RATE_LIMITED, where="POST *", skip=2, times=3))
    assert [book.outcome() for _ in range(7)] == ["200", "200", "429", "429", "429", "200", "200"]


def test_a_rate_limit_says_when_it_ends():
    now = datetime(2026, 7, 1, 14, 30, 12, tzinfo=UTC)
    book = Book(Switch(fault=Fault.RATE_LIMITED), now=lambda: now)
    status, body = book.post()
    assert status == 429
    assert body.headers == {
        "X-Ratelimit-Limit": "200",
        "X-Ratelimit-Remaining": "0",
        "X-Ratelimit-Reset": str(int(now.replace(minute=31, second=0).timestamp())),
    }


def test_chance_strikes_the_same_requests_in_every_run_and_others_with_another_seed():
    switch = Switch(fault=Fault.RATE_LIMITED, probability=0.3, times=None)

    def row(seed):
        book = Book(switch, seed=seed)
        return [book.outcome() for _ in range(400)]

    assert row(7) == row(7)
    assert row(7) != row(8)
    assert 80 < row(7).count("429") < 160  # 120 are to be expected


def test_what_one_switch_does_moves_no_other():
    often = Switch(fault=Fault.LOST_ANSWER, where="POST *", probability=0.5, times=None)
    alone = Book(often, seed=3)
    both = Book(often, Switch(fault=Fault.RATE_LIMITED, where="GET *", times=None), seed=3)
    first = [alone.outcome() for _ in range(50)]
    second = []
    for _ in range(50):
        assert both.handle("GET", ORDERS, None)[0] == 429
        second.append(both.outcome())
    assert first == second


def test_a_hidden_order_is_not_found_by_the_next_lookups_in_any_way_and_then_is():
    def ways():
        return (
            lambda book: book.handle("GET", "/v2/orders/id-0", None)[0] == 200,
            lambda book: book.handle("GET", BY_CLIENT, None)[0] == 200,
            lambda book: bool(book.handle("GET", ORDERS, None)[1]),
        )

    for seen in ways():
        book = Book(Switch(fault=Fault.HIDDEN_ORDER, lookups=2))
        assert book.post()[0] == 200
        assert [seen(book) for _ in range(4)] == [False, False, True, True]


def test_a_hidden_order_whose_answer_is_lost_is_the_worst_there_is():
    book = Book(
        Switch(fault=Fault.HIDDEN_ORDER, lookups=1),
        Switch(fault=Fault.LOST_ANSWER, where="POST *"),
    )
    assert book.outcome() == "cut"
    assert book.handle("GET", BY_CLIENT, None)[0] == 404
    assert book.handle("GET", BY_CLIENT, None)[0] == 200


def test_only_the_hidden_order_is_missing_from_a_list():
    book = Book(Switch(fault=Fault.HIDDEN_ORDER, skip=1, lookups=1))
    book.post()
    book.post()
    assert [order["id"] for order in book.handle("GET", ORDERS, None)[1]] == ["id-0"]
    assert len(book.handle("GET", ORDERS, None)[1]) == 2


def test_the_market_moves_before_the_order_is_answered():
    moves = []
    book = Book(Switch(fault=Fault.FILL_BEFORE_ANSWER), meanwhile=lambda: moves.append(1))
    status, order = book.post()
    assert (status, order["status"], moves) == (200, "new", [1])


def test_an_unknown_word_spoils_one_order_of_a_list_and_adds_a_field():
    book = Book()
    book.post()
    book.post()
    book.faults.add(Switch(fault=Fault.UNKNOWN_WORD))
    first, second = book.handle("GET", ORDERS, None)[1]
    assert first["status"] == "unheard_of"
    assert "field_of_the_future" in first
    assert second["status"] == "new"
    assert book.orders["id-0"]["status"] == "new"  # the exchange itself is not touched


UPDATES = [{"event": name, "order": {"status": name}} for name in ("new", "fill", "canceled")]


def names(updates):
    return [update["event"] for update in updates]


def test_events_are_missing_doubled_or_late():
    faults = Faults(
        [
            Switch(fault=Fault.MISSING_EVENT, where="EVENT new"),
            Switch(fault=Fault.DUPLICATE_EVENT, where="EVENT fill"),
            Switch(fault=Fault.LATE_EVENT, where="EVENT canceled"),
        ]
    )
    assert names(faults.delivered(UPDATES)) == ["fill", "fill"]
    assert faults.delivered([]) == []
    assert names(faults.delivered(UPDATES[:1])) == ["new", "canceled"]
    assert names(faults.delivered(UPDATES)) == ["new", "fill", "canceled"]


def test_an_update_with_an_unknown_word_leaves_the_event_itself_alone():
    faults = Faults([Switch(fault=Fault.UNKNOWN_WORD, where="EVENT fill")])
    told = faults.delivered(UPDATES)
    assert told[1]["event"] == "fill"
    assert told[1]["order"]["status"] == "unheard_of"
    assert UPDATES[1]["order"]["status"] == "fill"


@given(
    seed=some.integers(0, 2**32),
    sizes=some.lists(some.integers(0, 5), max_size=12),
    probability=some.floats(0, 1),
)
def test_late_and_doubled_events_are_never_lost(seed, sizes, probability):
    faults = Faults(
        [
            Switch(fault=fault, probability=probability, times=None)
            for fault in (Fault.DUPLICATE_EVENT, Fault.LATE_EVENT)
        ],
        seed=seed,
    )
    sent = [
        [{"event": "new", "order": {}, "key": (batch, number)} for number in range(size)]
        for batch, size in enumerate([*sizes, 1])
    ]
    got = Counter(update["key"] for batch in sent for update in faults.delivered(batch))
    before_the_last = {update["key"] for batch in sent[:-1] for update in batch}
    assert before_the_last <= set(got)
    assert max(got.values(), default=0) <= 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"probability": 1.5},
        {"probability": -0.1},
        {"probability": float("nan")},
        {"times": 0},
        {"skip": -1},
        {"lookups": 0},
        {"code": 200},
    ],
)
def test_a_switch_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError, match=r"not|begins"):
        Switch(fault=Fault.REFUSED_STREAM, **wrong)


class TestThroughTheClient:
    """What alpaca-py makes of each fault, without a socket."""

    def client(self, *switches: Switch) -> tuple[TradingClient, Book]:
        book = Book(*switches)
        client = TradingClient("PKLOCAL", "any", url_override=EMBEDDED_URL)
        return guarded(client, {EMBEDDED_URL: InProcess(book.handle)}), book

    @pytest.mark.parametrize(
        ("fault", "error", "orders"),
        [
            (Fault.LOST_REQUEST, requests.ConnectionError, 0),
            (Fault.LOST_ANSWER, requests.ConnectionError, 1),
            (Fault.SILENCE, requests.ReadTimeout, 1),
        ],
    )
    def test_a_broken_connection_is_one_of_requests(self, fault, error, orders):
        client, book = self.client(Switch(fault=fault))
        with pytest.raises(error):
            client.post("/orders", {"client_order_id": "c1"})
        assert len(book.orders) == orders

    @pytest.mark.parametrize(
        ("fault", "status", "code"),
        [
            (Fault.RATE_LIMITED, 429, 42910000),
            (Fault.GATEWAY_TIMEOUT, 504, 50410000),
            (Fault.WRONG_KEYS, 401, 40110000),
        ],
    )
    def test_a_spoilt_answer_is_an_error_of_the_api(self, fault, status, code):
        client, _ = self.client(Switch(fault=fault))
        with pytest.raises(APIError) as caught:
            client.post("/orders", {"client_order_id": "c1"})
        assert (caught.value.status_code, caught.value.code) == (status, code)

    def test_a_gateway_answers_in_html(self):
        client, _ = self.client(Switch(fault=Fault.BAD_GATEWAY))
        with pytest.raises(APIError) as caught:
            client.post("/orders", {"client_order_id": "c1"})
        assert caught.value.status_code == 502
        assert str(caught.value) == HTML.decode()
        assert caught.value.response.headers["Content-Type"] == "text/html"
        with pytest.raises(json.JSONDecodeError):
            caught.value.code  # noqa: B018 - the reading is what fails
