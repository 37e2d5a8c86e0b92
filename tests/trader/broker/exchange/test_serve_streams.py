"""The websockets spoken by hand: every error code, malformed frames, strangers, an orderly end."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager

import msgpack
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.trader.broker.exchange.test_serve import DEADLINE, Echo, server_of
from trader.broker.exchange.faults import Fault, Faults, Switch
from trader.broker.exchange.streaming import LARGEST_MESSAGE

KEY = {"key": "PKLOCAL", "secret": "any"}
AUTH = {"action": "auth", **KEY}


@pytest.fixture
def server():
    with server_of(Echo(), free_plan=True) as opened:
        yield opened


class Line:
    """One websocket; says and hears objects, packed where asked for."""

    def __init__(self, socket, packed):
        self.socket, self.packed = socket, packed

    def hear(self):
        message = self.socket.recv(timeout=DEADLINE)
        return msgpack.unpackb(message) if self.packed else json.loads(message)

    def say(self, what):
        self.socket.send(msgpack.packb(what) if self.packed else json.dumps(what))
        return self.hear()

    def is_closed(self):
        with pytest.raises(ConnectionClosed):
            self.socket.recv(timeout=DEADLINE)
        return True


@contextmanager
def line(url, *, packed=True, **more):
    headers = {"Content-Type": "application/msgpack"} if packed else {}
    with connect(url, additional_headers=headers, proxy=None, **more) as socket:
        yield Line(socket, packed)


@contextmanager
def bars(server, feed="iex", **more):
    with line(server.market_data_urls[feed], **more) as opened:
        assert opened.hear() == [{"T": "success", "msg": "connected"}]
        yield opened


def error(code, words):
    return [{"T": "error", "code": code, "msg": words}]


@pytest.mark.parametrize("packed", [True, False])
def test_a_subscription_names_every_channel(server, packed):
    with bars(server, packed=packed) as one:
        assert one.say(AUTH) == [{"T": "success", "msg": "authenticated"}]
        [told] = one.say({"action": "subscribe", "bars": ["MSFT", "AAPL"], "quotes": ["*"]})
        assert (told["T"], told["bars"], told["quotes"]) == (
            "subscription",
            ["AAPL", "MSFT"],
            ["*"],
        )
        assert told["trades"] == told["dailyBars"] == []
        [told] = one.say({"action": "unsubscribe", "bars": ["AAPL", "never asked for"]})
        assert told["bars"] == ["MSFT"]


@pytest.mark.parametrize(
    ("first", "answer"),
    [
        ({"action": "subscribe", "bars": ["AAPL"]}, error(401, "not authenticated")),
        ({"action": "auth"}, error(402, "auth failed")),
        ({"action": "auth", "key": "AKLIVE", "secret": "any"}, error(402, "auth failed")),
        ({"action": "auth", "key": ["PK"], "secret": "any"}, error(402, "auth failed")),
        ("auth", error(400, "invalid syntax")),
        ([AUTH], error(400, "invalid syntax")),
    ],
)
def test_who_does_not_authenticate_is_told_why_and_turned_away(server, first, answer):
    with bars(server) as one:
        assert one.say(first) == answer
        assert one.is_closed()


@pytest.mark.parametrize("frame", [b"\xc1", b"", b"\x81", "text", b"[" * 10_000])
def test_a_frame_that_cannot_be_read_is_bad_syntax(server, frame):
    for packed in (True, False):
        with bars(server, packed=packed) as one:
            one.socket.send(frame)
            assert one.hear() == error(400, "invalid syntax")


def test_who_says_nothing_is_too_late():
    with server_of(Echo(), authentication_seconds=0.02) as server, bars(server) as one:
        assert one.hear() == error(404, "auth timeout")
        assert one.is_closed()


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (AUTH, 403),
        ({"action": "explode"}, 400),
        ({}, 400),
        ({"action": "subscribe", "bars": "AAPL"}, 400),
        ({"action": "subscribe", "bars": [1]}, 400),
        ({"action": "subscribe", "bars": [f"S{n}" for n in range(31)]}, 405),
    ],
)
def test_a_wrong_wish_is_answered_and_changes_nothing(server, ask, code):
    with bars(server) as one:
        one.say(AUTH)
        one.say({"action": "subscribe", "bars": ["AAPL"]})
        assert one.say(ask)[0]["code"] == code
        assert one.say({"action": "subscribe"})[0]["bars"] == ["AAPL"]


def test_thirty_symbols_are_taken_over_all_channels(server):
    names = [f"S{n}" for n in range(30)]
    with bars(server) as one:
        one.say(AUTH)
        assert one.say({"action": "subscribe", "bars": names, "quotes": names})[0]["bars"]
        assert one.say({"action": "subscribe", "trades": ["S30"]})[0]["code"] == 405


def test_a_key_has_one_connection_to_each_endpoint(server):
    with bars(server) as first, bars(server) as second, bars(server, "crypto") as coins:
        first.say(AUTH)
        assert second.say(AUTH) == error(406, "connection limit exceeded")
        assert coins.say(AUTH)[0]["msg"] == "authenticated"
    with bars(server, "sip") as sip:
        assert sip.say(AUTH) == error(409, "insufficient subscription")


@pytest.mark.parametrize("code", [402, 406, 409, 500])
def test_a_scripted_refusal_comes_once(code):
    faults = Faults([Switch(fault=Fault.REFUSED_STREAM, where="STREAM /v2/iex", code=code)])
    with server_of(Echo(), faults=faults) as server:
        with bars(server) as one:
            assert one.say(AUTH)[0]["code"] == code
            assert one.is_closed()
        with bars(server) as one:
            assert one.say(AUTH)[0]["msg"] == "authenticated"


def test_a_storm_of_reconnections_is_refused_at_the_handshake(server):
    server.faults.set([Switch(fault=Fault.REFUSED_STREAM, code=429)])
    with pytest.raises(InvalidStatus, match="429"), bars(server):
        pass
    with bars(server) as one:
        assert one.say(AUTH)[0]["msg"] == "authenticated"


def authorization(status, action="authenticate"):
    return {"stream": "authorization", "data": {"status": status, "action": action}}


class TestTradeUpdates:
    """/stream, in JSON."""

    @pytest.fixture
    def stream(self, server):
        with line(server.trade_updates_url, packed=False) as opened:
            yield opened

    def test_the_client_speaks_first_and_listens_after_that(self, stream):
        listen = {"action": "listen", "data": {"streams": ["trade_updates"]}}
        keys = {"key_id": "PKLOCAL", "secret_key": "any"}
        assert stream.say(listen) == authorization("unauthorized", "listen")
        wrong = {"action": "authenticate", "data": keys | {"key_id": "AKLIVE"}}
        assert stream.say(wrong) == authorization("unauthorized")
        assert stream.say({"action": "authenticate", "data": keys}) == authorization("authorized")
        assert stream.say(listen) == {"stream": "listening", "data": {"streams": ["trade_updates"]}}
        nothing = {"action": "listen", "data": {"streams": []}}
        assert stream.say(nothing) == {"stream": "listening", "data": {"streams": []}}

    def test_the_newer_way_to_authenticate_is_known_too(self, stream):
        assert stream.say({"action": "auth", **KEY}) == authorization("authorized", "auth")

    @pytest.mark.parametrize("frame", ["", "{", "[]", "5", '"x"', "\ud7ff", "[" * 10_000, b"\xff"])
    def test_nonsense_is_answered_and_the_line_stays(self, stream, frame):
        stream.socket.send(frame)
        assert stream.hear()["stream"] == "error"
        assert stream.say({"action": "authenticate", "data": 5}) == authorization("unauthorized")


def test_no_page_of_a_browser_gets_a_stream(server):
    for url in (server.trade_updates_url, server.market_data_urls["iex"]):
        with pytest.raises(InvalidStatus, match="403"), line(url, origin="http://127.0.0.1"):
            pass


def test_an_unknown_stream_is_not_found(server):
    url = server.trade_updates_url.replace("/stream", "/v2/otc")
    with pytest.raises(InvalidStatus, match="404"), line(url):
        pass


def test_a_message_that_is_too_large_ends_the_connection_not_the_server(server):
    with line(server.trade_updates_url, packed=False) as stream:
        stream.socket.send("x" * (LARGEST_MESSAGE + 1))
        assert stream.is_closed()
        assert stream.socket.close_code == 1009
    with bars(server) as one:
        assert one.say(AUTH)[0]["msg"] == "authenticated"


def test_the_server_says_farewell_when_it_ends():
    with ExitStack() as stack:
        server = stack.enter_context(server_of(Echo()))
        with connect(server.trade_updates_url, proxy=None) as socket:
            stack.close()
            with pytest.raises(ConnectionClosed):
                socket.recv(timeout=DEADLINE)
            assert socket.close_code == 1001


def test_the_market_may_be_moved_behind_the_servers_back(server):
    server.publish()  # nothing has happened
    server.walk(lambda now: now)
    assert server.faults.struck == {}
