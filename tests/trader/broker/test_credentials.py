"""Keys: where they come from, which are refused, and that nothing ever shows them."""

from __future__ import annotations

import logging
import os
import pickle
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.servers.http_server import Answer, RestServer
from trader.broker import guard
from trader.broker.alpaca_broker import AlpacaBroker
from trader.broker.credentials import Credentials, credentials, require_paper
from trader.broker.guard import GuardedAdapter
from trader.broker.rate_limit import RateLimit
from trader.broker.session import (
    HOSTS,
    corporate_actions_client,
    crypto_data_client,
    guarded,
    news_client,
    paper_client,
    stock_data_client,
    trading_stream,
)
from trader.core.config import BrokerSettings
from trader.core.errors import ConfigError, TraderError

KEY, SECRET = "PKCANARYKEYID12345", "CANARYsecretCANARYsecretCANARYsecret"
NAMES = {"APCA_API_KEY_ID": KEY, "APCA_API_SECRET_KEY": SECRET}
LINES = f"APCA_API_KEY_ID={KEY}\nAPCA_API_SECRET_KEY={SECRET}\n"


def hidden(text: object) -> bool:
    return KEY not in str(text) and SECRET not in str(text)


def key_file(tmp_path, text: str | bytes = LINES, mode: int = 0o600):
    path = tmp_path / "paper.key"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return path


def test_the_environment_gives_the_key_by_the_names_in_the_configuration():
    found = credentials(BrokerSettings(), NAMES)
    assert (found.key_id, found.secret_key, found.is_paper) == (KEY, SECRET, True)
    named = BrokerSettings(key_id_variable="MY_ID", secret_key_variable="MY_SECRET")
    assert credentials(named, NAMES) is None
    assert credentials(named, {"MY_ID": KEY, "MY_SECRET": SECRET}).key_id == KEY
    assert credentials(BrokerSettings(), {}) is None
    assert credentials(BrokerSettings(), {"APCA_API_KEY_ID": "", "APCA_API_SECRET_KEY": ""}) is None


def test_a_file_gives_the_key_and_goes_before_the_environment(tmp_path):
    text = f"# paper\n\nexport APCA_API_KEY_ID='{KEY}'\nAPCA_API_SECRET_KEY = \"{SECRET}\"\nOTHER=1"
    settings = BrokerSettings(key_file=str(key_file(tmp_path, text)))
    other = {"APCA_API_KEY_ID": "PKOTHER", "APCA_API_SECRET_KEY": "other"}
    found = credentials(settings, other)
    assert (found.key_id, found.secret_key) == (KEY, SECRET)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o777, 0o620, 0o602, 0o601])
def test_a_file_that_others_may_touch_is_refused_with_the_command_that_mends_it(tmp_path, mode):
    path = key_file(tmp_path, mode=mode)
    with pytest.raises(ConfigError, match=f"chmod 600 {path}"):
        credentials(BrokerSettings(key_file=str(path)), NAMES)


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_file_of_the_owner_alone_is_read(tmp_path, mode):
    path = key_file(tmp_path, mode=mode)
    assert credentials(BrokerSettings(key_file=str(path)), {}).key_id == KEY


def test_what_is_no_file_of_ones_own_is_refused_without_waiting(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    for path, words in (
        (tmp_path, "not a regular file"),
        (pipe, "not a regular file"),
        (tmp_path / "none", "cannot be read: No such file"),
        ("~nobody-of-that-name/keys", "the key file ~nobody-of-that-name/keys: "),
    ):
        with pytest.raises(ConfigError, match=words):
            credentials(BrokerSettings(key_file=str(path)), {})
    path = key_file(tmp_path)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(ConfigError, match="belongs to another user"):
        credentials(BrokerSettings(key_file=str(path)), {})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "APCA_API_KEY_ID is not set in the file"),
        (f"APCA_API_KEY_ID={KEY}\n", "APCA_API_SECRET_KEY is not set in the file"),
        (f"{LINES}APCA_API_KEY_ID={KEY}\n", "line 3: APCA_API_KEY_ID is given twice"),
        (f"{KEY}\n{SECRET}\n", "line 1: not NAME=VALUE"),
        (f"{LINES}{SECRET}", "line 3: not NAME=VALUE"),
        (b"APCA_API_KEY_ID=\xff" + SECRET.encode(), "is not text"),
        (LINES + "#" * 70_000, "two lines do"),
        (f"APCA_API_KEY_ID={KEY} {SECRET}\nAPCA_API_SECRET_KEY=x", "APCA_API_KEY_ID in .* no key"),
        (f"APCA_API_KEY_ID={KEY}\nAPCA_API_SECRET_KEY={SECRET}é", "SECRET_KEY in .* is no key"),
    ],
)
def test_a_bad_file_is_refused_by_name_and_shows_no_key(tmp_path, text, words):
    with pytest.raises(ConfigError, match=words) as caught:
        credentials(BrokerSettings(key_file=str(key_file(tmp_path, text))), {})
    assert hidden("".join(traceback.format_exception(caught.value)))


def test_half_a_key_and_a_live_key_are_refused():
    with pytest.raises(ConfigError, match="APCA_API_SECRET_KEY is not set"):
        credentials(BrokerSettings(), {"APCA_API_KEY_ID": KEY})
    with pytest.raises(ConfigError, match="begins with AK: it belongs to a live account"):
        credentials(BrokerSettings(), NAMES | {"APCA_API_KEY_ID": "AK" + KEY[2:]})


def test_a_live_key_is_refused_by_every_client_even_on_this_computer():
    live = Credentials(key_id="AKLIVE", secret_key="x", source="a test")
    url = "http://127.0.0.1:9"
    local = BrokerSettings(base_url=url)
    for make in (
        lambda: paper_client(local, live),
        lambda: trading_stream(local, live),
        lambda: stock_data_client(live, url),
        lambda: crypto_data_client(live, url),
        lambda: news_client(live, url),
        lambda: corporate_actions_client(live, url),
    ):
        with pytest.raises(ConfigError, match="begins with AK"):
            make()


def test_another_prefix_is_refused_by_alpaca_and_taken_on_this_computer():
    odd = Credentials(key_id="CKODD", secret_key="x", source="a test")
    for make in (paper_client, trading_stream):
        with pytest.raises(ConfigError, match="does not begin with PK"):
            make(BrokerSettings(), odd)
        make(BrokerSettings(base_url="http://127.0.0.1:9"), odd)
    with pytest.raises(ConfigError):
        require_paper(odd)


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_value_of_a_variable_is_ever_shown(key, secret):
    environ = {"APCA_API_KEY_ID": f"{KEY}{key}", "APCA_API_SECRET_KEY": f"{SECRET}{secret}"}
    try:
        shown = repr(credentials(BrokerSettings(), environ))
    except ConfigError as exc:
        shown = "".join(traceback.format_exception(exc))
    assert hidden(shown)


def test_no_error_log_or_repr_shows_the_key(caplog, monkeypatch):
    """Every method of the broker over a server that fails in every way, at the finest log level."""
    answers = [
        Answer(401, {"code": 40110000, "message": "request is not authorized"}),
        Answer(403, {"message": "forbidden."}),
        Answer(502, "<html>bad gateway</html>"),
        Answer(200, "<html>"),
        Answer(302, {}, (("Location", "http://127.0.0.1:1/"),)),
        Answer(hangup=True),
        Answer(200, {"surprise": True}),
    ]
    keys = credentials(BrokerSettings(), NAMES)
    said = [repr(keys), str(keys), f"{keys}", f"{[keys]}"]
    caplog.set_level(logging.DEBUG)
    order_id = "11111111-2222-3333-4444-555555555555"
    current = answers[0]
    with RestServer(lambda asked: current) as server:
        client = paper_client(BrokerSettings(base_url=server.url), keys)
        said.append(repr(client))
        guarded(client, {server.url: GuardedAdapter(HOSTS, RateLimit(per_minute=10_000))})
        monkeypatch.setattr(guard, "PATIENCE", 0.0)  # nothing is asked twice
        broker = AlpacaBroker(client)
        said.append(repr(broker))
        for current in answers:  # noqa: B007  # the server reads it
            for call in (
                broker.portfolio,
                broker.account,
                broker.clock,
                broker.notices,
                broker.orders,
                broker.fills,
                broker.activities,
                lambda: broker.order("tr-1"),
                lambda: broker.order_by_id(order_id),
                lambda: broker.cancel(order_id),
                lambda: broker.replace(order_id, client_order_id="tr-2"),
            ):
                try:
                    call()
                except TraderError as exc:
                    said.append("".join(traceback.format_exception(exc)))
        assert server.asked[0].headers["APCA-API-KEY-ID"] == KEY
    said.append(caplog.text)
    assert len(said) > 70
    assert [text for text in said if not hidden(text)] == []


def test_credentials_cannot_be_stored_by_accident():
    keys = credentials(BrokerSettings(), NAMES)
    with pytest.raises(TypeError, match="are not stored"):
        pickle.dumps(keys)
