"""The HTTP server: malformed, oversized and foreign requests, keys, ports, an orderly end."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from threading import Event

import pytest
import requests

from tests.trader.broker.floor import FLAT, HandBars
from trader.broker.exchange.faults import Fault, Faults, Switch
from trader.broker.exchange.serve import LARGEST_BODY, ExchangeServer
from trader.core.errors import DataIntegrityError, EndpointError, StateError
from trader.core.market import Timeframe

KEYS = {"APCA-API-KEY-ID": "PKLOCAL", "APCA-API-SECRET-KEY": "any"}
START = datetime(2025, 6, 27, 20, tzinfo=UTC)
DEADLINE = 20  # seconds after which a test has hung


class Echo:
    """An exchange that answers with what it was asked, and counts days as slots."""

    def __init__(self) -> None:
        self.time = START
        self.asked: list[tuple[str, str, bytes | None]] = []
        self.done: list[tuple] = []
        self.asked_twice = Event()

    def now(self) -> datetime:
        return self.time

    def advance(self, to: datetime) -> None:
        if to < self.time:
            raise ValueError(f"the market cannot go back to {to}")
        if to > START + timedelta(days=400):
            raise DataIntegrityError("no calendar")
        self.time = to

    def events(self, after: int) -> list:
        return []

    def handle(self, method: str, path_url: str, body: bytes | None) -> tuple[int, object]:
        self.asked.append((method, path_url, body))
        if len(self.asked) == 2:
            self.asked_twice.set()
        if path_url == "/v2/damaged":
            raise StateError("the file is damaged")
        if method == "DELETE":
            return 204, None
        return 200, {"path": path_url, "body": None if body is None else body.decode()}

    def halt(self, symbol, on):
        self.done.append(("halt", symbol, on))

    def split(self, symbol, ratio, session):
        self.done.append(("split", symbol, str(ratio), session.isoformat()))

    def pay_dividend(self, symbol, per_share, session):
        self.done.append(("dividend", symbol, str(per_share), session.isoformat()))

    def deposit(self, amount):
        self.done.append(("deposit", str(amount)))

    def charge(self, amount, description):
        self.done.append(("fee", str(amount), description))

    def reset(self, cash):
        self.done.append(("reset", str(cash)))

    def block(self, reason):
        self.done.append(("block", reason))


def server_of(exchange: object, **more: object) -> ExchangeServer:
    return ExchangeServer(
        exchange,
        data=HandBars({"AAPL": [FLAT]}),
        timeframe=Timeframe.DAY,
        next_slot=lambda at: at + timedelta(days=1),
        **more,
    )


@pytest.fixture
def echo():
    return Echo()


@pytest.fixture
def server(echo):
    with server_of(echo) as opened:
        yield opened


def port_of(url: str) -> int:
    return int(url.split(":")[2].partition("/")[0])


def raw_answer(server: ExchangeServer, request: bytes, *, leave: bool = False) -> bytes:
    """All that comes back for these bytes until the server closes the connection."""
    with closing(socket.create_connection(("127.0.0.1", port_of(server.url)), DEADLINE)) as line:
        line.sendall(request)
        if leave:
            line.shutdown(socket.SHUT_WR)
        answer = b""
        while part := line.recv(65536):
            answer += part
        return answer


def head(*lines: str, method: str = "POST", path: str = "/v2/orders") -> bytes:
    usual = [
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        *(f"{k}: {v}" for k, v in KEYS.items()),
    ]
    return "\r\n".join([*usual, *lines, "", ""]).encode()


def ask(server: ExchangeServer, method: str, path: str, **more: object) -> requests.Response:
    return requests.request(
        method, server.url + path, **({"headers": KEYS, "timeout": DEADLINE} | more)
    )


def test_a_request_reaches_the_exchange_as_it_was_sent(server, echo):
    answer = ask(server, "POST", "/v2/orders?a=%2F&b=1", data=b'{"x": 1}')
    assert answer.json() == {"path": "/v2/orders?a=%2F&b=1", "body": '{"x": 1}'}
    assert echo.asked == [("POST", "/v2/orders?a=%2F&b=1", b'{"x": 1}')]
    empty = ask(server, "DELETE", "/v2/orders/1")
    assert (empty.status_code, empty.content) == (204, b"")
    assert "Content-Length" not in empty.headers


def test_a_connection_is_kept_for_further_requests(server):
    get = head(method="GET", path="/v2/clock")
    last = head("Connection: close", method="GET", path="/v2/account")
    answer = raw_answer(server, get + get + last)
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert answer.index(b"/v2/clock") < answer.index(b"/v2/account")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /v2/clock\r\n\r\n\r\n", 403),
        (b"GET /v2/clock HTTP/9.9\r\n\r\n", 505),
        (b"BREW /v2/clock HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 501),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
        (head(*[f"X-{n}: 1" for n in range(150)]), 431),
        (head("X: " + "y" * 70_000), 431),
        (head("Content-Length: many"), 400),
        (head("Content-Length: -5"), 400),
        (head("Content-Length: 99999999999"), 400),
        (head("Content-Length: \u0663"), 400),
        (head(f"Content-Length: {LARGEST_BODY + 1}") + b"x" * (LARGEST_BODY + 1), 413),
        (head("Transfer-Encoding: chunked") + b"0\r\n\r\n", 411),
    ],
)
def test_a_malformed_request_is_answered_and_its_connection_closed(
    server, echo, request_bytes, status
):
    answer = raw_answer(server, request_bytes)
    if answer.startswith(b"HTTP/"):  # HTTP/0.9 knows no head
        top, _, answer = answer.partition(b"\r\n\r\n")
        assert top.split()[1] == str(status).encode()
    body = json.loads(answer)
    assert body["code"] == status * 100_000
    assert body["message"]
    assert echo.asked == []
    assert ask(server, "GET", "/v2/clock").status_code == 200


def test_a_client_that_leaves_in_the_middle_of_its_body_has_asked_nothing(server, echo):
    assert raw_answer(server, head("Content-Length: 100") + b"{", leave=True) == b""
    assert echo.asked == []
    assert ask(server, "GET", "/v2/clock").status_code == 200


def test_a_silent_connection_is_closed_after_a_while(echo):
    with server_of(echo, idle_seconds=0.05) as server:
        assert raw_answer(server, b"GET /v2/clo") == b""


@pytest.mark.parametrize(
    "foreign",
    [
        {"Origin": "http://127.0.0.1:1"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": ""},
    ],
)
@pytest.mark.parametrize("path", ["/v2/orders", "/control/advance"])
def test_no_page_of_a_browser_gets_anything_done(server, echo, foreign, path):
    answer = ask(server, "POST", path, headers=KEYS | foreign, json={"slots": 1})
    assert answer.status_code == 403
    assert (echo.asked, echo.time) == ([], START)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"APCA-API-KEY-ID": "PKLOCAL"},
        {"APCA-API-KEY-ID": "PKLOCAL", "APCA-API-SECRET-KEY": ""},
        {"APCA-API-KEY-ID": "AKLIVE", "APCA-API-SECRET-KEY": "any"},
        {"Authorization": "Bearer any"},
    ],
)
def test_trading_and_stocks_want_a_paper_key_and_coins_want_none(server, echo, keys):
    trading = ask(server, "GET", "/v2/account", headers=keys)
    assert (trading.status_code, trading.json()["code"]) == (401, 40110000)
    for path in ("/v2/stocks/bars", "/v1beta1/news", "/v1/corporate-actions"):
        data = ask(server, "GET", path, headers=keys)
        assert (data.status_code, data.json()) == (403, {"message": "forbidden."})
    assert echo.asked == []
    assert ask(server, "GET", "/v1beta3/crypto/us/bars", headers=keys).status_code == 200


def test_an_exchange_that_cannot_go_on_says_so(server):
    answer = ask(server, "GET", "/v2/damaged")
    assert answer.status_code == 500
    assert answer.json() == {"code": 50010000, "message": "the file is damaged"}


def test_requests_from_many_threads_are_all_answered(server, echo):
    def post(number: int) -> str:
        return ask(server, "POST", f"/v2/orders?n={number}").json()["path"]

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(post, range(80)))
    assert answers == [f"/v2/orders?n={number}" for number in range(80)]
    assert len(echo.asked) == 80


def test_a_lost_answer_is_a_reset_connection(server, echo):
    server.faults.set([Switch(fault=Fault.LOST_ANSWER)])
    with pytest.raises(ConnectionResetError):
        raw_answer(server, head())
    assert len(echo.asked) == 1


def test_a_server_that_never_answers_is_left_by_the_clients_patience_and_still_ends(echo):
    faults = Faults([Switch(fault=Fault.SILENCE, times=2)])
    with server_of(echo, faults=faults) as server:
        with pytest.raises(requests.ReadTimeout):
            ask(server, "POST", "/v2/orders", timeout=0.05)
        line = socket.create_connection(("127.0.0.1", port_of(server.url)), DEADLINE)
        line.sendall(head())
        assert echo.asked_twice.wait(DEADLINE)  # the answer is what will never come
    with closing(line), pytest.raises(ConnectionResetError):
        line.recv(1)


def test_the_server_ends_while_connections_are_open_and_its_port_is_free_again(echo):
    with server_of(echo) as server:
        url, session = server.url, requests.Session()
        assert session.get(f"{url}/v2/clock", headers=KEYS, timeout=DEADLINE).status_code == 200
    with pytest.raises(requests.ConnectionError):
        session.get(f"{url}/v2/clock", headers=KEYS, timeout=DEADLINE)
    with server_of(echo, port=port_of(url)) as again:
        assert again.url == url
        assert ask(again, "GET", "/v2/clock").status_code == 200
    session.close()


def test_a_taken_port_is_said_and_nothing_is_left_open(echo):
    with server_of(echo) as first:
        taken, stream = port_of(first.url), port_of(first.trade_updates_url)
        with pytest.raises(EndpointError, match=f"port {taken} cannot be listened on"):
            server_of(echo, port=taken).__enter__()
        with pytest.raises(EndpointError, match=f"port {stream} cannot be listened on"):
            server_of(echo, stream_port=stream).__enter__()


def test_only_loopback_is_listened_on(server):
    for url in (server.url, server.trade_updates_url, *server.market_data_urls.values()):
        assert "://127.0.0.1:" in url


class TestControl:
    """The strings behind the market."""

    def post(self, server, word, body):
        return ask(server, "POST", f"/control/{word}", headers={}, json=body)

    @pytest.mark.parametrize(
        ("body", "days"),
        [
            ({"slots": 3}, 3),
            ({"seconds": 86_400}, 1),
            ({"seconds": 0.0}, 0),
            ({"to": "2025-06-29T20:00:00Z"}, 2),
            ({"to": "2025-06-29T16:00:00-04:00"}, 2),
        ],
    )
    def test_the_market_moves(self, server, echo, body, days):
        answer = self.post(server, "advance", body)
        assert answer.status_code == 200
        assert echo.time == START + timedelta(days=days)
        assert answer.json()["market_time"] == echo.time.isoformat()

    def test_what_can_happen_happens_at_the_exchange(self, server, echo):
        for word, body in (
            ("halt", {"symbol": "AAPL", "on": True}),
            ("split", {"symbol": "AAPL", "ratio": 4, "session": "2025-07-01"}),
            ("dividend", {"symbol": "AAPL", "per_share": "0.25", "session": "2025-07-01"}),
            ("deposit", {"amount": "-12.50"}),
            ("fee", {"amount": 0.35, "description": "by law"}),
            ("block", {"reason": "by hand"}),
            ("reset", {"cash": 5000}),
        ):
            assert self.post(server, word, body).status_code == 200
        assert echo.done == [
            ("halt", "AAPL", True),
            ("split", "AAPL", "4", "2025-07-01"),
            ("dividend", "AAPL", "0.25", "2025-07-01"),
            ("deposit", "-12.50"),
            ("fee", "0.35", "by law"),
            ("block", "by hand"),
            ("reset", "5000"),
        ]

    def test_faults_are_set_shown_and_cleared(self, server):
        switch = {"fault": "rate_limited", "where": "GET /v2/clock", "times": 2}
        state = self.post(server, "faults", {"seed": 1, "faults": [switch]}).json()
        assert state["faults"][0]["left"] == 2
        assert ask(server, "GET", "/v2/account").status_code == 200
        limited = ask(server, "GET", "/v2/clock")
        assert (limited.status_code, limited.headers["X-Ratelimit-Remaining"]) == (429, "0")
        state = ask(server, "GET", "/control", headers={}).json()
        assert (state["faults"][0]["left"], state["struck"]) == (1, {"rate_limited": 1})
        assert self.post(server, "faults", {}).json()["faults"] == []
        assert ask(server, "GET", "/v2/clock").status_code == 200

    @pytest.mark.parametrize(
        ("word", "body"),
        [
            ("advance", {}),
            ("advance", {"slots": 1, "seconds": 1}),
            ("advance", {"days": 1}),
            ("advance", {"slots": 0}),
            ("advance", {"slots": 1.5}),
            ("advance", {"slots": True}),
            ("advance", {"slots": "1"}),
            ("advance", {"slots": 10**9}),
            ("advance", {"seconds": -1}),
            ("advance", {"seconds": "soon"}),
            ("advance", {"seconds": 1e300}),
            ("advance", {"to": "2025-06-26T20:00:00Z"}),
            ("advance", {"to": "2025-07-26T20:00:00"}),
            ("advance", {"to": "tomorrow"}),
            ("advance", {"to": "2029-01-01T00:00:00Z"}),
            ("advance", [1]),
            ("faults", {"faults": [{"fault": "unheard of"}]}),
            ("faults", {"faults": [{"where": "GET *"}]}),
            ("faults", {"faults": [{"fault": "rate_limited", "probability": 2}]}),
            ("faults", {"faults": [{"fault": "rate_limited", "probability": True}]}),
            ("faults", {"faults": [{"fault": "rate_limited", "times": "often"}]}),
            ("faults", {"faults": [{"fault": "rate_limited", "colour": "red"}]}),
            ("faults", {"faults": ["rate_limited"]}),
            ("faults", {"faults": {}}),
            ("faults", {"seed": "x"}),
            ("drop", {"all": True}),
            ("halt", {"symbol": "AAPL"}),
            ("halt", {"symbol": "AAPL", "on": 1}),
            ("split", {"symbol": "AAPL", "ratio": "many", "session": "2025-07-01"}),
            ("split", {"symbol": "AAPL", "ratio": 2, "session": "soon"}),
            ("deposit", {"amount": True}),
            ("deposit", {"amount": "NaN"}),
            ("fee", {"amount": 1}),
            ("block", {"reason": 5}),
            ("reset", {"cash": "much"}),
        ],
    )
    def test_what_is_wrong_is_said_and_changes_nothing(self, server, echo, word, body):
        answer = self.post(server, word, body)
        assert answer.status_code == 422, answer.text
        assert answer.json()["code"] == 40010001
        assert answer.json()["message"]
        assert (echo.time, echo.done, server.faults.left()) == (START, [], [])

    def test_a_body_that_is_no_json_and_an_unknown_word(self, server):
        assert ask(server, "POST", "/control/advance", data=b"{").status_code == 422
        for method, path in (("POST", "/control/explode"), ("GET", "/control/advance")):
            answer = ask(server, method, path)
            assert answer.status_code == 404
            assert "advance, faults, drop" in answer.json()["message"]

    def test_faults_never_strike_the_control_itself(self, server):
        server.faults.set([Switch(fault=Fault.LOST_REQUEST, times=None)])
        assert self.post(server, "faults", {}).status_code == 200
