"""Live updates: the watch on a virtual clock, and both streams over a server on this computer."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from decimal import Decimal
from http import HTTPStatus
from queue import SimpleQueue
from threading import Event

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.servers.stream_server import Script, StreamServer, Talk
from tests.trader.broker.test_alpaca_broker import a_row
from trader.broker.credentials import Credentials
from trader.broker.session import bar_stream, trading_stream
from trader.broker.sockets import Connection
from trader.broker.streams import BarUpdates, Ended, Heard, Opened, StreamWatch, TradeUpdates
from trader.core.config import BrokerSettings
from trader.core.errors import EndpointError
from trader.core.trading import OrderStatus

KEYS = Credentials(key_id="PKCANARYKEY", secret_key="CANARYSECRET", source="a test")
PATIENCE = 10.0  # real seconds for something to happen on this computer


def watch_at(at: float = 0.0) -> StreamWatch:
    """A watch whose connection has just been opened."""
    watch = StreamWatch(seed="a test")
    assert watch.next(at, lively=True) == "start"
    watch.started(at)
    watch.opened(at)
    return watch


def seconds_until(watch: StreamWatch, action: str, at: float, *, lively: bool = True) -> float:
    """How long the watch waits before `action`, asked every second."""
    for second in range(10_000):
        if watch.next(at + second, lively=lively) == action:
            return second
    raise AssertionError(f"never {action}")


def test_silence_in_market_hours_is_noticed_within_30_seconds():
    watch = watch_at()
    watch.heard(100.0)
    assert seconds_until(watch, "stop", 100.0) <= 30
    assert watch.problem == "connected but silent"
    assert not watch.is_open


def test_a_stream_that_never_says_anything_is_noticed_too():
    assert seconds_until(watch_at(), "stop", 0.0) <= 30


def test_silence_outside_market_hours_is_nothing():
    watch = watch_at()
    for at in range(0, 86_400, 60):
        assert watch.next(at, lively=False) is None
    assert watch.is_open


def test_a_quiet_stream_is_mute_only_when_a_message_was_due():
    watch = watch_at()
    assert watch.next(5000.0, lively=False) is None
    watch.due(5000.0)
    watch.due(5010.0)  # the first one counts
    assert seconds_until(watch, "stop", 5000.0, lively=False) == 26
    again = watch_at()
    again.due(10.0)
    again.heard(12.0)
    assert again.next(5000.0, lively=False) is None


def test_a_server_that_does_not_answer_is_given_up():
    watch = StreamWatch()
    watch.started(0.0)
    assert seconds_until(watch, "stop", 0.0) == 21
    assert watch.problem == "the server does not answer"


def test_pauses_grow_and_differ_by_the_seed_alone():
    def pauses(seed: str) -> list[float]:
        watch, found, at = StreamWatch(seed=seed), [], 0.0
        for _ in range(8):
            watch.started(at)
            watch.ended(at, "broken", None)
            found.append(watch._resume_at - at)
            at += 1000.0
        return found

    ours = pauses("a")
    for number, pause in enumerate(ours):
        assert min(60, 2**number) / 2 <= pause <= min(60, 2**number)
    assert pauses("a") == ours != pauses("b")


@pytest.mark.parametrize("code", [406, 429])
def test_after_too_many_connections_the_next_comes_no_sooner_than_90_seconds(code):
    watch = watch_at()
    watch.ended(10.0, "connection limit exceeded", code)
    assert seconds_until(watch, "start", 10.0) >= 90


@pytest.mark.parametrize("code", [402, 405, 409])
def test_what_a_person_has_to_mend_is_tried_every_five_minutes_only(code):
    watch = watch_at()
    watch.ended(10.0, "insufficient subscription", code)
    assert seconds_until(watch, "start", 10.0) == 300
    assert watch.problem == "insufficient subscription"


@given(st.lists(st.tuples(st.sampled_from(["opens", "dies", "mute"]), st.integers(0, 90))))
def test_no_five_minutes_ever_see_more_than_eight_connections(story):
    watch, at, starts = StreamWatch(seed="storm"), 0.0, []
    for what, lasts in [*story, *[("dies", 0)] * 30]:
        at += seconds_until(watch, "start", at)
        watch.started(at)
        starts.append(at)
        if what != "dies":
            watch.opened(at)
            watch.heard(at)
        at += lasts
        if what == "mute":
            at += seconds_until(watch, "stop", at)
        else:
            watch.ended(at, "broken", None)
    for at in starts:
        assert len([one for one in starts if at - 300 < one <= at]) <= 8


def test_a_calm_minute_makes_earlier_failures_forgotten():
    watch = StreamWatch()
    for at in (0.0, 100.0, 200.0, 300.0):
        watch.started(at)
        watch.ended(at, "broken", None)
    watch.started(500.0)
    watch.opened(500.0)
    watch.heard(550.0)
    watch.next(561.0, lively=True)
    watch.ended(562.0, "broken", None)
    assert watch._resume_at - 562.0 <= 1.0


class Hands:
    """A connection without a socket, and a clock."""

    def __init__(self, *news: object) -> None:
        self.inbox, self.at = list(news), 0.0
        self.started = self.stopped = 0

    def seconds(self) -> float:
        return self.at

    def start(self) -> None:
        self.started += 1

    def stop(self) -> None:
        self.stopped += 1

    def news(self) -> object:
        return self.inbox.pop(0) if self.inbox else None

    def trade_updates(self) -> tuple[TradeUpdates, list[str]]:
        gaps: list[str] = []
        return TradeUpdates(lambda: self, on_gap=gaps.append, seconds=self.seconds), gaps


def an_update(event: str = "fill", **more: object) -> dict[str, object]:
    data = {"event": event, "timestamp": "2025-07-01T13:30:00.123456789Z", "order": a_row()}
    return {"stream": "trade_updates", "data": data | more}


def test_updates_are_read_with_their_order_and_exact_numbers():
    fill = an_update(execution_id="e1", price="100.01", qty="3", position_qty="13")
    hands = Hands(Opened(), Heard(fill), Heard(an_update("surprise")))
    updates, gaps = hands.trade_updates()
    assert updates.poll() == ()  # connects
    first, second = updates.poll()
    assert (first.event, first.execution_id) == ("fill", "e1")
    assert (first.price, first.quantity, first.position_quantity) == (Decimal("100.01"), 3, 13)
    assert first.at == datetime(2025, 7, 1, 13, 30, 0, 123456, tzinfo=UTC)
    assert first.order.client_order_id == "row"
    assert (second.event, second.execution_id, second.price) == ("surprise", None, None)
    assert gaps == ["trade updates: connected; what happened before was not sent"]


def test_an_update_with_an_unknown_status_is_not_lost():
    update = an_update()
    update["data"]["order"]["status"] = "teleported"
    updates, _ = Hands(Opened(), Heard(update)).trade_updates()
    updates.poll()
    (read,) = updates.poll()
    assert read.order.status is OrderStatus.PENDING_REVIEW


@pytest.mark.parametrize(
    "message",
    [
        {"stream": "trade_updates", "data": None},
        {"stream": "trade_updates", "data": {"event": "fill"}},
        an_update(timestamp="2025-07-01T13:30:00"),
        an_update(price="NaN"),
        an_update(event=None),
    ],
)
def test_an_update_that_cannot_be_read_makes_the_consumer_look(message):
    updates, gaps = Hands(Opened(), Heard(message)).trade_updates()
    updates.poll()
    assert updates.poll() == ()
    assert len(gaps) == 1
    assert "the broker" in gaps[0]


def test_updates_of_orders_placed_elsewhere_are_no_gap():
    update = an_update()
    update["data"]["order"]["order_class"] = "mleg"
    updates, gaps = Hands(Heard(update)).trade_updates()
    updates.poll()
    assert updates.poll() == ()
    assert gaps == []


def test_a_thread_that_ended_is_told_and_connected_anew_after_a_pause(caplog):
    hands = Hands(Opened(), Ended("insufficient subscription", 409))
    updates, gaps = hands.trade_updates()
    assert updates.problem == "not connected yet"
    updates.poll()
    with caplog.at_level(logging.WARNING):
        updates.poll()
    assert updates.problem == "insufficient subscription"
    assert "trade updates ended: insufficient subscription (409)" in caplog.text
    for hands.at in range(1, 300):
        updates.poll()
    assert hands.started == 1
    hands.at = 301
    updates.poll()
    hands.inbox = [Opened()]
    updates.poll()
    assert hands.started == 2
    assert updates.problem == ""
    assert len(gaps) == 2


def test_a_mute_stream_is_closed_when_an_update_was_due():
    hands = Hands(Opened())
    updates, _ = hands.trade_updates()
    updates.poll()
    updates.poll()
    updates.due()
    for hands.at in range(1, 31):
        updates.poll()
    assert hands.stopped == 1
    assert hands.started == 2


def test_a_connection_that_cannot_be_made_is_a_problem_and_no_exception():
    def connect():
        raise EndpointError("31 symbols are more than one stream carries")

    updates = TradeUpdates(connect, on_gap=lambda why: None, seconds=lambda: 0.0)
    assert updates.poll() == ()
    assert "31 symbols" in updates.problem
    updates.close()


class Waking(SimpleQueue):
    """An inbox that wakes whoever waits for anything to happen."""

    woken = Event()

    def put(self, news: object) -> None:
        super().put(news)
        self.woken.set()


def waking(connection: Connection) -> Connection:
    connection._stream.inbox = Waking()
    return connection


def until(updates: TradeUpdates | BarUpdates, enough: int) -> list:
    """Poll until `enough` updates came; what happens on the connection wakes us."""
    found: list = []
    while len(found) < enough:
        found += updates.poll()
        if updates._watch._state == "waiting":
            updates._watch._resume_at = 0.0  # pauses are for the virtual clock
        elif len(found) < enough:
            assert Waking.woken.wait(PATIENCE), (found, updates.problem)
            Waking.woken.clear()
    return found


def over(server: StreamServer, gaps: list[str]) -> TradeUpdates:
    settings = BrokerSettings(base_url=server.base_url)
    return TradeUpdates(lambda: waking(trading_stream(settings, KEYS)), on_gap=gaps.append)


def test_trade_updates_over_a_real_connection_that_drops_and_comes_back(caplog):
    caplog.set_level(logging.DEBUG)

    def first(talk: Talk) -> None:
        talk.listen()
        talk.say(an_update("new"))
        talk.connection.close()

    def second(talk: Talk) -> None:
        talk.listen()
        talk.say(an_update("fill", price="100", qty="10", execution_id="e2"))
        talk.wait()

    gaps: list[str] = []
    with StreamServer(first, second) as server:
        updates = over(server, gaps)
        found = until(updates, 2)
        updates.close()
        assert [one.event for one in found] == ["new", "fill"]
        assert len(gaps) == 2  # after each connection the consumer looks by REST
        assert server.agents == ["/stream", "/stream"]
        hello, listen = server.talks[1].received
    assert hello["data"] == {"key_id": KEYS.key_id, "secret_key": KEYS.secret_key}
    assert listen == {"action": "listen", "data": {"streams": ["trade_updates"]}}
    ours = [one.getMessage() for one in caplog.records if one.name != "websockets.server"]
    assert len(ours) > 1
    assert [text for text in ours if KEYS.secret_key in text or KEYS.key_id in text] == []


def test_stopping_a_connection_ends_its_thread_at_once_and_more_than_once():
    def script(talk: Talk) -> None:
        talk.listen()
        talk.wait()

    with StreamServer(script) as server:
        connection = trading_stream(BrokerSettings(base_url=server.base_url), KEYS)
        connection.start()
        assert connection.news(PATIENCE) == Opened()
        connection.stop()
        assert not connection._thread.is_alive()
        assert connection.news(PATIENCE) == Ended("it was stopped")
        connection.stop()
    never = trading_stream(BrokerSettings(base_url=server.base_url), KEYS)
    never.stop()


@pytest.mark.parametrize(
    ("script", "refuse", "code"),
    [
        (lambda talk: talk.authorize("unauthorized"), {}, 402),
        (lambda talk: None, {0: HTTPStatus.TOO_MANY_REQUESTS}, 429),
        (lambda talk: None, {0: HTTPStatus.UNAUTHORIZED}, 402),
        (lambda talk: None, {0: HTTPStatus.BAD_GATEWAY}, None),
        (lambda talk: None, {0: HTTPStatus.TEMPORARY_REDIRECT}, None),
        (lambda talk: (talk.listen(), talk.connection.send(b"<html>"), talk.wait()), {}, None),
        (lambda talk: (talk.listen(), talk.say(["a list"]), talk.wait()), {}, None),
        (lambda talk: (talk.listen(), talk.connection.send(b"[" * 100_000), talk.wait()), {}, None),
        (
            lambda talk: (
                talk.listen(),
                talk.say({"stream": "listening", "data": []}),
                talk.wait(),
            ),
            {},
            None,
        ),
        (lambda talk: talk.connection.close(), {}, None),
    ],
)
def test_every_failure_of_trade_updates_ends_the_connection_with_its_reason(script, refuse, code):
    with StreamServer(script, refuse=refuse) as server:
        connection = trading_stream(BrokerSettings(base_url=server.base_url), KEYS)
        connection.start()
        news = [connection.news(PATIENCE)]
        if news[-1] == Opened():
            news.append(connection.news(PATIENCE))
        connection.stop()
        assert isinstance(news[-1], Ended)
        assert (news[-1].code, bool(news[-1].reason)) == (code, True)
        assert KEYS.secret_key not in news[-1].reason
        assert len(server.agents) == 1  # it neither follows a redirect nor connects again


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_dies_of_what_nobody_foresaw_is_told_all_the_same():
    class Brittle:
        inbox: SimpleQueue = SimpleQueue()

        async def _run_forever(self):
            return

        async def close(self):
            raise RuntimeError("nobody foresaw this")

    connection = Connection(Brittle())
    connection.start()
    assert connection.news(PATIENCE) == Ended("its thread died")
    connection.stop()


def test_a_server_that_is_not_there_ends_the_connection():
    with StreamServer(lambda talk: None) as server:
        url = server.base_url
    connection = trading_stream(BrokerSettings(base_url=url), KEYS)
    connection.start()
    assert isinstance(connection.news(PATIENCE), Ended)
    connection.stop()


def bars(server: StreamServer, *symbols: str, heartbeat: str | None = None):
    return bar_stream(KEYS, symbols or ("AAPL",), heartbeat=heartbeat, base_url=server.base_url)


def test_bars_and_trades_become_newest_prices():
    moment = msgpack.Timestamp.from_datetime(datetime(2025, 7, 1, 13, 30, tzinfo=UTC))
    bar = {"T": "b", "S": "AAPL", "o": 1, "h": 1, "l": 1, "c": 100.25, "v": 1, "n": 1, "vw": 1}

    def script(talk: Talk) -> None:
        talk.subscribe()
        talk.pack(bar | {"t": moment}, {"T": "t", "S": "SPY", "p": 600.5, "t": moment})
        talk.wait()

    gaps: list[str] = []
    with StreamServer(script) as server:
        updates = BarUpdates(lambda: waking(bars(server, heartbeat="SPY")), on_gap=gaps.append)
        found = until(updates, 2)
        updates.close()
        assert server.agents == ["/v2/iex"]
        asked = server.talks[0].received[1]
    assert [(one.symbol, one.price) for one in found] == [
        ("AAPL", Decimal("100.25")),
        ("SPY", Decimal("600.5")),
    ]
    assert found[0].at == datetime(2025, 7, 1, 13, 30, tzinfo=UTC)
    assert (asked["bars"], asked["trades"]) == (["AAPL"], ["SPY"])
    assert len(gaps) == 1


def test_bars_of_coins_come_from_their_own_address():
    def script(talk: Talk) -> None:
        talk.subscribe()
        talk.wait()

    with StreamServer(script) as server:
        connection = bars(server, "BTC/USD")
        connection.start()
        assert connection.news(PATIENCE) == Opened()
        connection.stop()
        assert server.agents == ["/v1beta3/crypto/us"]


def refusal(code: int, words: str, *, after_subscription: bool = False) -> Script:
    def script(talk: Talk) -> None:
        error = {"T": "error", "code": code, "msg": words}
        if after_subscription:
            talk.subscribe()
        else:
            talk.pack({"T": "success", "msg": "connected"})
            talk.hear_packed()
        talk.pack(error)
        talk.wait()

    return script


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (402, "auth failed"),
        (404, "auth timeout"),
        (405, "symbol limit exceeded"),
        (406, "connection limit exceeded"),
        (409, "insufficient subscription"),
    ],
)
def test_every_error_of_market_data_ends_the_connection_with_its_code(code, words, late):
    with StreamServer(refusal(code, words, after_subscription=late)) as server:
        connection = bars(server)
        connection.start()
        news = connection.news(PATIENCE)
        while news == Opened():
            news = connection.news(PATIENCE)
        connection.stop()
        assert isinstance(news, Ended)
        assert news.code == code
        assert len(server.agents) == 1


@pytest.mark.parametrize("frame", [b"\xc1", "text", b"", msgpack.packb(7), msgpack.packb([7])])
def test_market_data_that_cannot_be_read_ends_the_connection_too(frame):
    def script(talk: Talk) -> None:
        talk.subscribe()
        talk.connection.send(frame)
        talk.wait()

    with StreamServer(script) as server:
        connection = bars(server)
        connection.start()
        assert connection.news(PATIENCE) == Opened()
        assert connection.news(PATIENCE) == Ended("a message that cannot be read")
        connection.stop()


def test_a_price_without_a_sound_time_is_a_gap_and_not_a_price():
    hands = Hands(Heard({"T": "b", "S": "AAPL", "c": 1.0, "t": "2025-07-01T13:30:00Z"}))
    gaps: list[str] = []
    updates = BarUpdates(lambda: hands, on_gap=gaps.append, seconds=hands.seconds)
    updates.poll()
    assert updates.poll() == ()
    assert "without a time" in gaps[0]


def test_more_symbols_than_a_connection_carries_are_refused_before_it_is_opened():
    names = [f"A{number}" for number in range(30)]
    bar_stream(KEYS, names)
    bar_stream(KEYS, names, heartbeat="A1")
    with pytest.raises(EndpointError, match="31 symbols are more than one stream carries"):
        bar_stream(KEYS, names, heartbeat="SPY")
    for mixed in (["AAPL", "BTC/USD"], []):
        with pytest.raises(ValueError, match="cannot share"):
            bar_stream(KEYS, mixed)
