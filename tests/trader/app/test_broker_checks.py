"""`trader doctor` on Alpaca: each link proven by a harmless request, and never an order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from tests.servers.http_server import Answer, Asked, RestServer
from tests.servers.stream_server import Script, StreamServer, Talk
from trader.app import broker_checks as checked
from trader.app.broker_checks import broker_checks
from trader.core.clock import SystemClock
from trader.core.config import Config

KEY, SECRET = "PKCANARYKEYID12345", "CANARYsecretCANARYsecret"
ENVIRON = {"APCA_API_KEY_ID": KEY, "APCA_API_SECRET_KEY": SECRET}
NAMES = [
    "paper key",
    "paper host",
    "paper account",
    "broker's clock",
    "market data of Alpaca",
    "trade updates",
]
ACCOUNT = {
    "id": "an-account",
    "account_number": "PA123",
    "status": "ACTIVE",
    "cash": "1000.5",
    "equity": "2000",
    "last_equity": "1990",
    "buying_power": "1000.5",
}
BAR = {"bars": {"SPY": {"c": 612.5, "t": "2025-07-01T13:30:00Z"}}}


def clock(ahead: float = 0.0) -> dict[str, object]:
    now = SystemClock().now() + timedelta(seconds=ahead)
    later = (now + timedelta(hours=1)).isoformat()
    return {
        "timestamp": now.isoformat(),
        "is_open": False,
        "next_open": later,
        "next_close": later,
    }


def listens(talk: Talk) -> None:
    talk.listen()
    talk.wait()


@contextmanager
def alpaca(script: Script = listens, **changed: Answer) -> Iterator[tuple[RestServer, Config]]:
    """An Alpaca on this computer, its websockets at the next port; `changed`: answers by path."""

    def answer(asked: Asked) -> Answer:
        name = "latest" if "latest" in asked.path else asked.path.rpartition("/")[2]
        usual = {
            "clock": Answer(200, clock()),
            "account": Answer(200, ACCOUNT),
            "latest": Answer(200, BAR),
        }
        return (usual | changed)[name]

    for _ in range(50):
        with StreamServer(script) as stream:
            try:
                server = RestServer(answer, port=stream.port - 1)
            except OSError:  # somebody else has that port
                continue
            with server:
                yield server, config(server.url)
                return
    raise AssertionError("no two free ports in a row")


def config(url: str | None, *, source: str = "alpaca", broker: str = "alpaca", **data: object):
    return Config.model_validate(
        {
            "broker": {"name": broker, "base_url": url},
            "data": {"source": source, "base_url": url, **data},
        }
    )


def by_name(config: Config, environ: dict[str, str] | None = None):
    found = broker_checks(config, ENVIRON if environ is None else environ)
    assert [check.name for check in found] == NAMES
    assert SECRET not in str(found)
    assert KEY not in str(found)
    return {check.name: check for check in found}


def test_with_the_embedded_exchange_and_the_sample_nothing_is_used_or_asked():
    found = broker_checks(Config(), ENVIRON)
    assert [check.name for check in found] == NAMES
    assert {(check.status, check.found) for check in found} == {("ok", "not used")}


def test_orders_for_alpaca_on_bars_of_the_past_fail_here_as_they_would_in_a_run():
    found = by_name(config(None, source="sample"), {})["market data of Alpaca"]
    assert found.status == "failed"
    assert found.remedy == "say --data alpaca, or --broker embedded"


def test_every_link_is_proven_without_an_order():
    with alpaca() as (server, config):
        found = by_name(config)
    assert {name: check.status for name, check in found.items()} == dict.fromkeys(NAMES, "ok")
    assert found["paper key"].found.startswith("from the environment variables APCA_API_KEY_ID")
    assert found["paper host"].found.startswith(f"{server.url} reached")
    assert found["paper account"].found == "equity 2,000.00 USD, cash 1,000.50 USD"
    assert found["market data of Alpaca"].found == "feed iex: SPY 612.5 of 2025-07-01T13:30:00Z"
    assert found["trade updates"].found == "connected, authorized, listening"
    assert {asked.method for asked in server.asked} == {"GET"}
    assert all("orders" not in asked.path for asked in server.asked)


def test_without_a_key_nothing_is_asked_and_the_remedy_names_the_variables():
    found = by_name(config(None), {})  # a request would leave this computer, and fail the test
    assert found["paper key"].status == "failed"
    assert "set APCA_API_KEY_ID and APCA_API_SECRET_KEY" in found["paper key"].remedy
    for name in NAMES[1:]:
        assert found[name].found.startswith("not asked")


def test_an_exchange_on_this_computer_takes_any_key():
    with alpaca() as (_, config):
        found = by_name(config, {})
    assert {check.status for check in found.values()} == {"ok"}
    assert found["paper key"].found == "none; an exchange on this computer takes any"


@pytest.mark.parametrize(
    ("key", "url", "status", "words"),
    [
        ("AKLIVE", "http://127.0.0.1:1", "failed", "it belongs to a live account"),
        ("CKODD", None, "failed", "does not begin with PK"),
    ],
)
def test_a_key_of_another_kind_is_refused_before_any_request(key, url, status, words):
    found = by_name(config(url), ENVIRON | {"APCA_API_KEY_ID": key})
    assert found["paper key"].status == status
    assert words in found["paper key"].found
    assert "make a key of the paper account" in found["paper key"].remedy
    assert all(found[name].status != "ok" for name in NAMES[1:])


def test_a_wrong_key_says_what_to_check():
    no = Answer(401, {"code": 40110000, "message": "request is not authorized"})
    with alpaca(account=no) as (_, config):
        account = by_name(config)["paper account"]
    assert account.status == "failed"
    assert "401" in account.found
    assert "a paper account that was reset has new keys" in account.found + account.remedy


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"trading_blocked": True}, "failed", "trading is blocked"),
        ({"status": "ACCOUNT_CLOSED"}, "failed", "the account is ACCOUNT_CLOSED"),
        ({"account_number": "99"}, "warning", "does not begin with PA"),
    ],
)
def test_an_account_that_is_not_as_it_should_be(changes, status, words):
    with alpaca(account=Answer(200, ACCOUNT | changes)) as (_, config):
        account = by_name(config)["paper account"]
    assert (account.status, words in account.found) == (status, True)


def test_a_host_that_does_not_answer_is_asked_once(monkeypatch):
    monkeypatch.setattr("trader.broker.guard.PATIENCE", 0.0)
    with alpaca(clock=Answer(hangup=True)) as (server, config):
        found = by_name(config)
        assert len([asked for asked in server.asked if "clock" in asked.path]) == 1
    assert found["paper host"].status == "failed"
    for name in ("paper account", "broker's clock", "trade updates"):
        assert found[name].found.startswith("not asked")


@pytest.mark.parametrize(("ahead", "status"), [(0.0, "ok"), (-600.0, "failed"), (90.0, "failed")])
def test_a_clock_that_differs_is_found(ahead, status, monkeypatch):
    """Only Alpaca's own clock is compared: an exchange on this computer has a time of its own."""
    with alpaca(clock=Answer(200, clock(ahead))) as (server, local):
        assert by_name(local)["broker's clock"].status == "ok"
        settings = local.broker.model_copy(update={"base_url": None})
        monkeypatch.setattr("trader.broker.session.PAPER_URL", server.url)
        found = by_name(local.model_copy(update={"broker": settings, "symbols": ("SPY",)}))
    clocked = found["broker's clock"]
    assert clocked.status == status
    assert ("set this computer's clock" in clocked.remedy) is (status == "failed")


def test_the_feed_that_the_plan_does_not_have_names_the_free_one():
    no = Answer(403, {"message": "subscription does not permit querying recent SIP data"})
    with alpaca(latest=no) as (server, _):
        found = by_name(config(server.url, feed="sip"))["market data of Alpaca"]
    assert (found.status, found.remedy) == ("failed", "set data.feed to iex, the free one")


@pytest.mark.parametrize("body", [{"bars": {}}, {}, {"bars": None}, {"bars": {"SPY": None}}, []])
def test_an_answer_without_the_bar_is_a_failure(body):
    with alpaca(latest=Answer(200, body)) as (_, config):
        assert by_name(config)["market data of Alpaca"].status == "failed"


def test_coins_need_no_key():
    bar = {"bars": {"BTC/USD": {"c": 100_000, "t": "2025-07-01T13:30:00Z"}}}
    with alpaca(latest=Answer(200, bar)) as (server, _):
        coins = config(server.url, broker="embedded").model_copy(update={"symbols": ("BTC/USD",)})
        found = by_name(coins, {})
        assert [asked.path.partition("?")[0] for asked in server.asked] == [
            "/v1beta3/crypto/us/latest/bars"
        ]
        assert "APCA-API-KEY-ID" not in server.asked[0].headers
    assert (found["paper key"].status, found["market data of Alpaca"].status) == ("ok", "ok")
    assert found["trade updates"].found == "not used"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (lambda talk: talk.authorize("unauthorized"), "failed to authenticate"),
        (lambda talk: talk.wait(), "no answer in 0.3 s"),
    ],
)
def test_a_stream_that_does_not_work_is_a_warning(script, words, monkeypatch):
    monkeypatch.setattr(checked, "STREAM_SECONDS", 0.3)
    with alpaca(script) as (_, config):
        stream = by_name(config)["trade updates"]
    assert (stream.status, words in stream.found) == ("warning", True)


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(429, "wait a minute, and look for another program"), (503, "it is out of order: try again")],
)
def test_a_broker_that_is_busy_or_down_gets_a_remedy_that_helps(status, remedy, monkeypatch):
    monkeypatch.setattr("trader.broker.guard.PATIENCE", 0.0)
    with alpaca(clock=Answer(status, {"message": "no"})) as (_, config):
        key = {"APCA_API_KEY_ID": f"PKOF{status}"}  # one count a key, and this one runs out
        host = by_name(config, ENVIRON | key)["paper host"]
    assert (host.status, remedy in host.remedy) == ("failed", True)
