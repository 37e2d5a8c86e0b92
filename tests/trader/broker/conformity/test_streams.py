"""Trade updates and market data through the unmodified streams of alpaca-py."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest
from alpaca.data.requests import StockBarsRequest
from alpaca.data.timeframe import TimeFrame
from alpaca.trading.enums import OrderStatus, OrderType
from alpaca.trading.requests import LimitOrderRequest, MarketOrderRequest, ReplaceOrderRequest

from tests.trader.broker.conformity.venue import COIN, HTTP, open_venue
from tests.trader.broker.conformity.watched import (
    DEADLINE,
    CoinBars,
    StockBars,
    market_data,
    running,
    trade_updates,
)
from tests.trader.broker.floor import closing, opening
from trader.broker.exchange.faults import Fault, Switch

USUAL = {"symbol": "AAPL", "qty": 3, "side": "buy", "time_in_force": "day"}


@pytest.fixture
def venue():
    with open_venue(HTTP) as opened:
        yield opened


@pytest.fixture
def listener(venue):
    with running(trade_updates(venue.server.trade_updates_url)) as stream:
        yield stream


def buy(venue, **more):
    return venue.trading.submit_order(MarketOrderRequest(**USUAL | more))


class TestTradeUpdates:
    """/stream."""

    def test_an_order_is_followed_to_its_fill(self, venue, listener):
        order = buy(venue)
        accepted = listener.next()
        assert (accepted.event, accepted.order.id) == ("accepted", order.id)
        assert accepted.timestamp == closing(0)
        venue.to_close(1)
        new, fill = listener.next(), listener.next()
        assert (new.event, new.order.status) == ("new", OrderStatus.NEW)
        assert (fill.event, fill.order.status) == ("fill", OrderStatus.FILLED)
        assert (fill.price, fill.qty, fill.position_qty) == (101.0, 3.0, 3.0)
        assert fill.timestamp == opening(1)
        assert fill.order.filled_avg_price == "101"
        [trade] = venue.trading.get("/account/activities/FILL")
        assert str(fill.execution_id) in trade["id"]

    def test_cancels_expiries_and_replacements_are_told(self, venue, listener):
        venue.to(opening(1) + timedelta(hours=1))
        first = venue.trading.submit_order(LimitOrderRequest(**USUAL, limit_price=50))
        assert listener.names(1) == ["new"]
        second = venue.trading.replace_order_by_id(first.id, ReplaceOrderRequest(limit_price=51))
        told = {one.event: one.order for one in (listener.next(), listener.next())}
        assert (told["replaced"].id, told["new"].id) == (first.id, second.id)
        assert told["new"].replaces == first.id
        venue.trading.cancel_order_by_id(second.id)
        assert listener.names(1) == ["canceled"]
        venue.trading.submit_order(LimitOrderRequest(**USUAL, limit_price=50))
        venue.to_close(1)
        assert listener.names(2) == ["new", "expired"]

    def test_the_legs_of_a_bracket_speak_once_they_wake(self, venue, listener):
        head = buy(
            venue,
            time_in_force="gtc",
            order_class="bracket",
            take_profit={"limit_price": 111},
            stop_loss={"stop_price": 90},
        )
        venue.to_close(1)
        told = [listener.next() for _ in range(4)]
        assert [(one.event, one.order.id == head.id) for one in told[:3]] == [
            ("accepted", True),
            ("new", True),
            ("fill", True),
        ]
        venue.to_close(2)
        more = [*told[3:]]
        while {one.event for one in more if one.order.id != head.id} != {"new", "fill", "canceled"}:
            more.append(listener.next())
        ends = {one.order.type: one.event for one in more if one.event != "new"}
        assert ends == {OrderType.LIMIT: "fill", OrderType.STOP: "canceled"}

    def test_what_a_broken_connection_missed_is_never_told_but_rest_knows_it(self, venue, listener):
        buy(venue, client_order_id="before")
        assert listener.next().order.client_order_id == "before"
        venue.faults.set([Switch(fault=Fault.DROPPED_STREAM)])
        buy(venue, client_order_id="lost")
        listener.subscribed.get(timeout=DEADLINE)
        buy(venue, client_order_id="after")
        assert listener.next().order.client_order_id == "after"
        assert venue.trading.get_order_by_client_id("lost").status is OrderStatus.ACCEPTED

    def test_every_connection_breaks_on_demand(self, venue, listener):
        venue.server._streams.drop()
        listener.subscribed.get(timeout=DEADLINE)
        buy(venue)
        assert listener.names(1) == ["accepted"]

    def test_a_mute_stream_says_nothing_and_goes_on_where_it_is(self, venue, listener):
        venue.faults.set([Switch(fault=Fault.MUTE_STREAM, times=None)])
        buy(venue, client_order_id="unheard")
        venue.faults.set([])
        buy(venue, client_order_id="heard")
        assert listener.next().order.client_order_id == "heard"
        assert listener.subscribed.empty()  # it never noticed

    def test_events_are_doubled_missing_and_late(self, venue, listener):
        venue.faults.set(
            [
                Switch(fault=Fault.DUPLICATE_EVENT, where="EVENT accepted"),
                Switch(fault=Fault.LATE_EVENT, where="EVENT fill"),
                Switch(fault=Fault.MISSING_EVENT, where="EVENT new"),
            ]
        )
        buy(venue)
        venue.to_close(1)
        buy(venue)
        assert listener.names(4) == ["accepted", "accepted", "accepted", "fill"]

    def test_an_update_with_an_unknown_status_is_dropped_by_the_client(
        self, venue, listener, caplog
    ):
        venue.faults.set([Switch(fault=Fault.UNKNOWN_WORD, where="EVENT accepted")])
        with caplog.at_level(logging.CRITICAL, "alpaca.trading.stream"):
            buy(venue, client_order_id="dropped")
            buy(venue, client_order_id="told")
            assert listener.next().order.client_order_id == "told"

    def test_the_fill_may_come_before_the_answer(self, venue, listener):
        venue.faults.set([Switch(fault=Fault.FILL_BEFORE_ANSWER)])
        order = buy(venue)
        assert order.status is OrderStatus.ACCEPTED
        told = [listener.next() for _ in range(3)]
        assert [one.event for one in told] == ["accepted", "new", "fill"]

    def test_a_refused_key_is_tried_again_until_it_is_taken(self, venue, caplog):
        venue.faults.set([Switch(fault=Fault.REFUSED_STREAM, code=402, times=2)])
        stream = trade_updates(venue.server.trade_updates_url)
        with caplog.at_level(logging.ERROR, "alpaca.trading.stream"), running(stream):
            buy(venue)
            assert stream.names(1) == ["accepted"]
        assert caplog.text.count("ValueError: failed to authenticate") == 2

    def test_two_listeners_hear_the_same(self, venue, listener):
        with running(trade_updates(venue.server.trade_updates_url)) as other:
            buy(venue)
            assert listener.next() == other.next()


class TestMarketData:
    """/v2/iex, /v2/sip and /v1beta3/crypto/us."""

    @pytest.mark.parametrize("feed", ["iex", "sip"])
    def test_bars_come_as_they_complete_and_are_those_of_rest(self, venue, feed):
        stream = market_data(StockBars, venue.server.market_data_urls[feed])
        stream.subscribe_bars(stream.hear, "AAPL")
        stream.subscribe_daily_bars(stream.hear, "MSFT")
        with running(stream):
            venue.to_close(2)
            told = [stream.next() for _ in range(4)]
        rest = venue.stocks.get_stock_bars(
            StockBarsRequest(
                symbol_or_symbols=["AAPL", "MSFT"],
                timeframe=TimeFrame.Day,
                start=datetime(2025, 6, 28, tzinfo=UTC),
            )
        )
        assert told == [*rest["AAPL"], *rest["MSFT"]]
        assert [bar.close for bar in told] == [104, 110, 302, 295]

    def test_trades_and_quotes_are_the_newest(self, venue):
        stream = market_data(StockBars, venue.server.market_data_urls["iex"])
        stream.subscribe_trades(stream.hear, "AAPL")
        stream.subscribe_quotes(stream.hear, "*")
        with running(stream):
            venue.to_close(2)
            trade, quote, other = stream.next(), stream.next(), stream.next()
        assert (trade.symbol, trade.price, trade.timestamp) == ("AAPL", 110, closing(2))
        assert (quote.symbol, quote.timestamp) == ("AAPL", closing(2))
        assert quote.bid_price <= 110 <= quote.ask_price
        assert other.symbol == "MSFT"

    def test_coins_have_their_own_stream(self, venue):
        stream = market_data(CoinBars, venue.server.market_data_urls["crypto"])
        stream.subscribe_bars(stream.hear, "*")
        with running(stream):
            venue.to_close(1)
            bar = stream.next()
        assert (bar.symbol, bar.close) == ("BTC/USD", COIN[1][3])

    def test_a_subscription_changes_while_the_stream_runs(self, venue):
        stream = market_data(StockBars, venue.server.market_data_urls["iex"])
        stream.subscribe_bars(stream.hear, "AAPL")
        with running(stream):
            stream.subscribe_bars(stream.hear, "MSFT")
            assert stream.subscribed.get(timeout=DEADLINE)["bars"] == ["AAPL", "MSFT"]
            stream.unsubscribe_bars("AAPL")
            assert stream.subscribed.get(timeout=DEADLINE)["bars"] == ["MSFT"]
            venue.to_close(1)
            assert stream.next().symbol == "MSFT"

    def test_a_mute_socket_is_noticed_by_the_data_timeout(self, venue):
        venue.faults.set([Switch(fault=Fault.MUTE_STREAM, times=1)])
        stream = market_data(StockBars, venue.server.market_data_urls["iex"], data_timeout=0.05)
        stream.subscribe_bars(stream.hear, "AAPL")
        with running(stream):
            venue.to_close(1)
            stream.subscribed.get(timeout=DEADLINE)  # it has connected again
            venue.faults.set([])
            while stream.heard.empty():  # until a bar meets a connection
                venue.to(venue.exchange.now() + timedelta(days=1))
                stream.subscribed.get(timeout=DEADLINE)
            assert stream.next().symbol == "AAPL"

    def test_a_second_connection_of_a_key_is_refused_until_the_first_is_gone(self, venue, caplog):
        url = venue.server.market_data_urls["iex"]
        first, second, stranger = (
            market_data(StockBars, url, key_id) for key_id in ("PKLOCAL", "PKLOCAL", "PKOTHER")
        )
        for stream in (first, second, stranger):
            stream.subscribe_bars(stream.hear, "AAPL")
        caplog.set_level(logging.ERROR, "alpaca.data.live.websocket")
        with ExitStack() as stack:
            stack.enter_context(running(first))
            with running(stranger), running(second, subscribed=False):
                second.retried.get(timeout=DEADLINE)
                stack.close()
                second.subscribed.get(timeout=DEADLINE)
        assert "connection limit exceeded" in caplog.text

    def test_sip_without_a_subscription_ends_the_stream_in_silence(self, caplog):
        with open_venue(HTTP, free_plan=True) as venue:
            stream = market_data(StockBars, venue.server.market_data_urls["sip"])
            stream.subscribe_bars(stream.hear, "AAPL")
            caplog.set_level(logging.ERROR, "alpaca.data.live.websocket")
            with running(stream, subscribed=False):
                assert stream.ended.wait(DEADLINE)
        assert "insufficient subscription" in caplog.text

    def test_the_thirty_first_symbol_is_only_logged_and_no_data_comes(self, caplog):
        with open_venue(HTTP, free_plan=True) as venue:
            stream = market_data(StockBars, venue.server.market_data_urls["iex"])
            stream.subscribe_bars(stream.hear, *(f"S{number}" for number in range(31)))
            caplog.set_level(logging.ERROR, "alpaca.data.live.websocket")
            with running(stream, subscribed=False):
                assert stream.errors.get(timeout=DEADLINE) == 405
        assert "symbol limit exceeded (405)" in caplog.text
