"""`trader exchange serve`: what it prints, what it refuses, how it ends, what it keeps."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
import requests
from alpaca.trading.client import TradingClient
from alpaca.trading.requests import MarketOrderRequest

from trader.app import open_app
from trader.core.errors import LockHeldError, StateError, UsageError

DEADLINE = 60


@pytest.fixture
def app(tmp_path):
    return open_app(overrides=[f"state_dir={tmp_path}"], environ={})


def control(served, word, **body):
    answer = requests.post(f"{served.control}/{word}", json=body, timeout=DEADLINE)
    assert answer.status_code == 200, answer.text
    return answer.json()


@contextmanager
def client_of(served):
    client = TradingClient("PKLOCAL", "any", url_override=served.rest)
    yield client
    client._session.close()


def test_orders_and_the_clock_survive_a_restart_until_a_fresh_market_is_asked_for(app):
    order = MarketOrderRequest(
        symbol="AAPL", qty=1, side="buy", time_in_force="day", client_order_id="c1"
    )
    with app.serve_exchange() as served, client_of(served) as client:
        began = client.get_clock().timestamp
        client.submit_order(order)
        control(served, "advance", slots=1)
        filled = client.get_order_by_client_id("c1").filled_avg_price
    with app.serve_exchange() as served, client_of(served) as client:
        assert client.get_order_by_client_id("c1").filled_avg_price == filled
        assert client.get_clock().timestamp > began
    with app.serve_exchange(fresh=True) as served, client_of(served) as client:
        assert client.get_orders() == []
        assert client.get_clock().timestamp == began


def test_a_served_market_is_not_that_of_trader_run(app, tmp_path):
    with app.serve_exchange() as served:
        assert served.database == str(tmp_path / "served.db")
    assert not (tmp_path / "exchange.db").exists()
    assert not (tmp_path / "lock").exists()


def test_one_server_has_a_database_at_a_time(app, tmp_path):
    with app.serve_exchange(), pytest.raises(LockHeldError, match="another exchange is served"):
        app.serve_exchange().__enter__()
    with app.serve_exchange(database=tmp_path / "other.db"), app.serve_exchange():
        pass


def test_a_database_of_another_market_is_refused_with_a_remedy_and_kept(app, tmp_path):
    with app.serve_exchange():
        pass
    other = open_app(overrides=[f"state_dir={tmp_path}", "data.source=synthetic"], environ={})
    with pytest.raises(StateError, match="begin again with --fresh"):
        other.serve_exchange().__enter__()
    with app.serve_exchange():
        pass


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": -1},
        {"port": 65_536},
        {"stream_port": 70_000},
        {"port": 5000, "stream_port": 5000},
        {"speed": -1.0},
        {"speed": float("nan")},
        {"speed": float("inf")},
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(app, tmp_path, wrong):
    with pytest.raises(UsageError):
        app.serve_exchange(**wrong).__enter__()
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_said(app, tmp_path):
    with pytest.raises(LockHeldError, match="name another with --database"):
        app.serve_exchange(database=tmp_path / "no" / "folder" / "x.db").__enter__()


@pytest.mark.parametrize(("ending", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_command_says_where_it_is_and_ends_when_told(tmp_path, ending, code):
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from trader.cli.main import main; main()"  # a shell's background job ignores SIGINT
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        [*command, "exchange", "serve", "--json", "--state-dir", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
    ) as process:
        served = json.loads(process.stdout.readline())
        state = requests.get(served["control"], timeout=DEADLINE).json()
        process.send_signal(ending)
        out, err = process.communicate(timeout=DEADLINE)
    assert (process.returncode, out) == (code, "")
    assert "Traceback" not in err
    assert served["schema_version"] == 1
    assert state["market_time"][:10] == served["market_time"][:10] == "2026-06-30"
    with pytest.raises(requests.ConnectionError):
        requests.get(served["control"], timeout=DEADLINE)
