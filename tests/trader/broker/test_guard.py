"""The one way out: which hosts, how long, how often; over a real server on this computer."""

from __future__ import annotations

import json
import socket
from itertools import count

import pytest
import requests
from alpaca.common.exceptions import APIError
from alpaca.trading.client import TradingClient
from hypothesis import given
from hypothesis import strategies as st

from tests.servers.http_server import Answer, RestServer
from tests.trader.broker.test_alpaca_broker import ENTRY
from tests.trader.broker.test_rate_limit import Hands
from trader.broker import guard
from trader.broker.alpaca_broker import AlpacaBroker
from trader.broker.credentials import Credentials
from trader.broker.guard import GuardedAdapter, is_urgent, require_host
from trader.broker.rate_limit import RateLimit
from trader.broker.session import (
    HOSTS,
    STREAM_HOSTS,
    bar_stream,
    guarded,
    paper_client,
    stock_data_client,
)
from trader.core.config import BrokerSettings
from trader.core.errors import EndpointError, RateLimitedError

KEYS = Credentials(key_id="PKTEST", secret_key="secret", source="a test")
CLOCK = {
    "timestamp": "2025-07-01T09:30:00-04:00",
    "is_open": True,
    "next_open": "2025-07-02T09:30:00-04:00",
    "next_close": "2025-07-01T16:00:00-04:00",
}


def client_of(url: str, hands: Hands, limit: RateLimit | None = None) -> TradingClient:
    client = paper_client(BrokerSettings(base_url=url), KEYS)
    adapter = GuardedAdapter(
        HOSTS, limit or hands.limit(), seconds=hands.seconds, sleep=hands.sleep
    )
    return guarded(client, {url: adapter})


def scripted(*answers: Answer):
    """Give these answers one after the other, the last one for ever."""
    turn = count()
    return lambda asked: answers[min(next(turn), len(answers) - 1)]


@pytest.mark.parametrize(
    "url",
    [
        "https://api.alpaca.markets/v2/orders",
        "https://broker-api.alpaca.markets/v1/accounts",
        "https://data.sandbox.alpaca.markets/v2/stocks/bars",
        "https://paper-api.alpaca.markets.example.com/v2/orders",
        "https://paper-api.alpaca.markets@example.com/v2/orders",
        "https://user:word@paper-api.alpaca.markets/v2/orders",
        "https://paper-api.alpaca.markets:8443/v2/orders",
        "http://paper-api.alpaca.markets/v2/orders",
        "https://127.0.0.1/v2/orders",
        "http://127.0.0.1.example.com/v2/orders",
        "http://user@127.0.0.1/",
        "http://169.254.169.254/latest",
        "http://0.0.0.0/",
        "http://[::2]/",
        "file:///etc/passwd",
        "http://127.0.0.1:99999/",
        "http://[/",
        "",
    ],
)
def test_no_other_host_scheme_port_or_user_is_called(url):
    with pytest.raises(EndpointError, match="refused to call"):
        require_host(url, HOSTS, ("https", "http"))
    request = requests.PreparedRequest()
    request.method, request.url, request.headers, request.body = "GET", url, {}, None
    with pytest.raises(EndpointError, match="refused to call"):
        GuardedAdapter(HOSTS, RateLimit()).send(request)


@given(st.text(max_size=30))
def test_only_the_named_hosts_pass(host):
    allowed = host.lower() in HOSTS
    try:
        require_host(f"https://{host}/v2/orders", HOSTS, ("https", "http"))
    except EndpointError:
        assert not allowed
    else:
        assert requests.compat.urlsplit(f"https://{host}/").hostname in HOSTS


def test_the_hosts_are_those_of_paper_and_of_market_data():
    for url in ("https://paper-api.alpaca.markets/v2/clock", "https://data.alpaca.markets:443/v2"):
        require_host(url, HOSTS, ("https", "http"))
    for url in ("http://127.0.0.1:1/v2", "http://localhost/v2", "http://[::1]:7/v2"):
        require_host(url, HOSTS, ("https", "http"))
    require_host("wss://stream.data.alpaca.markets/v2/iex", STREAM_HOSTS, ("wss", "ws"))
    for url in ("wss://api.alpaca.markets/stream", "ws://paper-api.alpaca.markets/stream"):
        with pytest.raises(EndpointError):
            require_host(url, STREAM_HOSTS, ("wss", "ws"))


def test_every_client_is_bound_to_its_own_address(monkeypatch):
    def refuse(*_):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    for client in (paper_client(BrokerSettings(), KEYS), stock_data_client(KEYS)):
        for other in ("https://api.alpaca.markets", "http://127.0.0.1:1", "https://example.com"):
            with pytest.raises(EndpointError, match="refused to call"):
                client.get("/orders", base_url=other)
        assert client._session.trust_env is False
        assert (client._retry, client._retry_codes) == (0, [])


@pytest.mark.parametrize("url", ["https://example.com", "http://example.com", "http://10.0.0.1:80"])
def test_an_address_elsewhere_is_refused_even_where_no_configuration_checked_it(url):
    for make in (
        lambda: stock_data_client(KEYS, url),
        lambda: bar_stream(KEYS, ["AAPL"], base_url=url),
    ):
        with pytest.raises(EndpointError, match="refused to call"):
            make()


def test_a_timeout_is_always_given_and_proxies_never_are(monkeypatch):
    seen = []

    def send(self, request, **options):
        seen.append(options)
        raise requests.ConnectTimeout("nobody")

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", send)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    hands = Hands()
    client = paper_client(BrokerSettings(), KEYS)
    adapter = GuardedAdapter(HOSTS, hands.limit(), seconds=hands.seconds, sleep=hands.sleep)
    guarded(client, {str(client._base_url): adapter})
    with pytest.raises(requests.ConnectTimeout):
        client.get("/clock")
    assert seen
    for options in seen:
        assert options == {"timeout": (3.05, 10.0), "verify": True, "proxies": {}}


def test_a_server_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(guard, "TIMEOUTS", (0.2, 0.05))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        broker = AlpacaBroker(client_of(url, Hands()))
        with pytest.raises(EndpointError, match="could not be asked for the clock"):
            broker.clock()


def test_a_host_that_is_not_there_is_named_without_the_words_of_a_library():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    broker = AlpacaBroker(client_of(f"http://127.0.0.1:{port}", Hands()))
    with pytest.raises(EndpointError, match=rf"the clock: 127.0.0.1:{port}: Failed") as raised:
        broker.clock()
    assert "refused; look at the network" in str(raised.value)
    assert "Pool" not in str(raised.value)


def test_a_redirect_is_an_error_and_is_not_followed():
    elsewhere = []
    with (
        RestServer(lambda asked: elsewhere.append(asked) or Answer(200, CLOCK)) as other,
        RestServer(lambda asked: Answer(307, CLOCK, (("Location", other.url),))) as server,
    ):
        broker = AlpacaBroker(client_of(server.url, Hands()))
        with pytest.raises(EndpointError, match=r"answered with a redirect \(307\)"):
            broker.clock()
        assert len(server.asked) == 1
    assert elsewhere == []


@pytest.mark.parametrize(
    "fault",
    [
        Answer(500, ""),
        Answer(502, "<html>bad gateway</html>"),
        Answer(503, {"message": "maintenance"}),
        Answer(504, ""),
        Answer(429, {"message": "too many"}, (("Retry-After", "2"),)),
        Answer(hangup=True),
    ],
)
def test_what_reads_is_asked_again_with_growing_pauses(fault):
    hands = Hands()
    with RestServer(scripted(fault, fault, Answer(200, CLOCK))) as server:
        assert AlpacaBroker(client_of(server.url, hands)).clock().is_open
        assert len(server.asked) == 3
    assert hands.slept[0] == 0.5
    assert hands.at < 20


def test_what_reads_is_given_up_at_its_deadline():
    hands = Hands()
    with RestServer(lambda asked: Answer(503, "")) as server:
        with pytest.raises(EndpointError, match="answered 503 for the clock"):
            AlpacaBroker(client_of(server.url, hands)).clock()
        assert len(server.asked) == 6
    assert hands.slept == [0.5, 1, 2, 4, 8]


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
@pytest.mark.parametrize("fault", [Answer(429, {}), Answer(504, ""), Answer(hangup=True)])
def test_what_acts_is_sent_once(method, fault):
    hands = Hands()
    with RestServer(lambda asked: fault) as server:
        client = client_of(server.url, hands)
        with pytest.raises((APIError, requests.ConnectionError)):
            client._request(method, "/orders", {"qty": 1})
        assert len(server.asked) == 1
    assert hands.slept == []


def test_after_a_429_nothing_is_sent_before_its_time():
    hands = Hands()
    busy = Answer(429, {"message": "too many requests"}, (("Retry-After", "40"),))
    with RestServer(lambda asked: busy) as server:
        broker = AlpacaBroker(client_of(server.url, hands))
        with pytest.raises(RateLimitedError, match="the broker has had too many") as caught:
            broker.clock()
        assert caught.value.retry_seconds == 40
        with pytest.raises(RateLimitedError, match="so nothing was sent; wait 40 s"):
            broker.account()
        with pytest.raises(RateLimitedError, match="nothing was sent"):
            broker.submit(ENTRY)  # a definite no: nothing is looked up
        assert len(server.asked) == 1


def test_cancels_lookups_and_exits_have_requests_kept_for_them():
    def request(method: str, path: str, body: object = None) -> requests.PreparedRequest:
        made = requests.PreparedRequest()
        made.method, made.url = method, f"http://127.0.0.1{path}"
        made.body = None if body is None else json.dumps(body).encode()
        return made

    assert is_urgent(request("DELETE", "/v2/orders/x"))
    assert is_urgent(request("PATCH", "/v2/orders/x"))
    assert is_urgent(request("GET", "/v2/orders/x?nested=true"))
    assert is_urgent(request("GET", "/v2/orders:by_client_order_id?client_order_id=y"))
    assert is_urgent(request("POST", "/v2/orders", {"side": "sell"}))
    assert not is_urgent(request("POST", "/v2/orders", {"side": "buy"}))
    assert not is_urgent(request("POST", "/v2/orders", ["sell"]))
    assert not is_urgent(request("GET", "/v2/orders?status=all"))
    assert not is_urgent(request("GET", "/v2/account"))
