"""The maker of clients: nothing gets out, nothing is sent twice, nothing trades live."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import requests
from alpaca.common.exceptions import APIError
from alpaca.trading.client import TradingClient
from pydantic import ValidationError

from tests.trader.broker.floor import FLAT, Floor
from trader.broker.exchange.transport import InProcess
from trader.broker.session import EMBEDDED_URL, guarded
from trader.core.config import BrokerSettings
from trader.core.errors import EndpointError

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "url",
    [
        "https://api.alpaca.markets/v2/orders",
        "https://paper-api.alpaca.markets/v2/orders",
        "http://localhost/v2/orders",
        "http://paper.invalid.example.com/v2/orders",
        "http://paper.invalid@example.com/v2/orders",
        "https://paper.invalid/v2/orders",
        "http://paper.invalid:8080/v2/orders",
    ],
)
def test_a_request_to_any_other_host_is_refused_before_a_socket(url):
    session = Floor(FLAT).client._session
    with pytest.raises(EndpointError, match="refused to call"):
        session.get(url)


def test_the_session_reads_no_proxy_from_the_environment(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    client = Floor(FLAT).client
    assert client._session.trust_env is False
    assert client.get_account().cash == "10000"


@pytest.mark.parametrize("status", [429, 504])
def test_the_client_asks_once_and_never_again_by_itself(status):
    asked = []

    def answer(method, path, body):
        asked.append(path)
        return status, {"message": "later"}

    client = guarded(
        TradingClient("PK", "x", url_override=EMBEDDED_URL), {EMBEDDED_URL: InProcess(answer)}
    )
    with pytest.raises(APIError):
        client.post("/orders", {"qty": 1})
    assert len(asked) == 1


def test_a_client_for_a_live_or_unknown_host_is_refused():
    def nobody(method, path, body):
        raise AssertionError("must not be asked")

    doors = {EMBEDDED_URL: InProcess(nobody)}
    for client in (
        TradingClient("PK", "x"),
        TradingClient("PK", "x", paper=False),
        TradingClient("PK", "x", paper=False, url_override=EMBEDDED_URL),
        TradingClient("PK", "x", url_override="http://localhost:1"),
    ):
        with pytest.raises(EndpointError, match="the client would call"):
            guarded(client, doors)


def test_a_client_library_without_the_needed_switches_is_refused_by_name():
    client = TradingClient("PK", "x", url_override=EMBEDDED_URL)
    del client._retry_codes
    with pytest.raises(EndpointError, match=r"alpaca-py has no _retry_codes.*0\.44"):
        guarded(client, {})


def test_a_streamed_body_cannot_be_sent_in_process():
    session = requests.Session()
    session.mount("http://", InProcess(lambda *_: (200, {})))
    with pytest.raises(TypeError, match="streamed"):
        session.post("http://paper.invalid/", data=iter([b"x"]))


def test_importing_the_maker_of_clients_loads_neither_alpaca_nor_pandas():
    heavy = "sorted({'alpaca', 'pandas', 'requests'} & set(sys.modules))"
    code = f"import sys, trader.broker.session; print({heavy})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:1?",
        "http://127.0.0.1:1#",
        "http://127.0.0.1:1#@paper",
        "http://127.0.0.1:\t1",
        "http://127.0.0.1:1\n",
        "http://@127.0.0.1:1",
        "http://name@127.0.0.1:1",
        "http://127.0.0.1:1/v2",
        "http://127.0.0.1.example:1",
        "https://127.0.0.1:1",
    ],
)
def test_an_address_on_this_computer_is_a_host_and_a_port_and_nothing_else(text):
    with pytest.raises(ValidationError, match="base_url"):
        BrokerSettings(base_url=text)
    assert BrokerSettings(base_url="http://[::1]:1/").base_url == "http://[::1]:1"
