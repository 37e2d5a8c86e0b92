"""The newest prices at a broker outside: streamed while fresh, asked for otherwise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest

from tests.trader.app.conftest import opened
from trader.app import jobs
from trader.app.jobs import PaperWork
from trader.app.metrics import Metrics
from trader.app.venue import FRESH, LatestPrices
from trader.broker.streams import LivePrice
from trader.core.clock import always_open
from trader.core.errors import EndpointError

NOW = datetime(2026, 7, 6, 15, 0, tzinfo=UTC)


def told(price: str, *, age: timedelta, symbol: str = "AAPL") -> LivePrice:
    return LivePrice(symbol=symbol, price=Decimal(price), at=NOW - age)


def test_a_fresh_streamed_price_is_taken_and_an_old_one_asked_for():
    asked: list[str] = []

    def ask(symbol: str) -> tuple[float, datetime]:
        asked.append(symbol)
        return 99.0, NOW

    prices = LatestPrices(ask, lambda: NOW)
    assert prices("AAPL") == (99.0, NOW)
    prices.hear([told("101.5", age=FRESH), told("7", age=timedelta(0), symbol="NVDA")])
    assert prices("AAPL") == (101.5, NOW - FRESH)
    prices.hear([told("102", age=FRESH + timedelta(seconds=1))])
    assert prices("AAPL") == (99.0, NOW)
    assert asked == ["AAPL", "AAPL"]


def test_a_price_that_cannot_be_asked_for_is_none():
    def ask(symbol: str) -> tuple[float, datetime]:
        raise EndpointError("away")

    prices = LatestPrices(ask, lambda: NOW)
    prices.hear([told("101", age=timedelta(minutes=5))])
    with pytest.raises(EndpointError, match="away"):
        prices("AAPL")


def test_the_daemon_listens_to_bars_where_orders_go_to_the_broker_of_those_bars(
    tmp_path, monkeypatch
):
    streams: list[Stream] = []

    class Stream:
        problem = ""

        def __init__(self, connect, *, on_gap) -> None:
            self.lively: list[bool] = []
            self.closed = False
            streams.append(self)

        def poll(self, *, lively: bool = False) -> tuple[LivePrice, ...]:
            self.lively.append(lively)
            return (told("101.5", age=timedelta(0)),)

        def close(self) -> None:
            self.closed = True

    class Updates(Stream):
        def poll(self) -> tuple[()]:
            return ()

    monkeypatch.setattr(jobs, "BarUpdates", Stream)
    monkeypatch.setattr(jobs, "TradeUpdates", Updates)

    def trader(prices: LatestPrices | None):
        return SimpleNamespace(
            simulated=False,
            prices=prices,
            calendar=always_open(),
            streamed=lambda: ("AAPL",),
            look=lambda: None,
        )

    def never(symbol: str) -> tuple[float, datetime]:
        raise AssertionError("it was streamed")

    prices = LatestPrices(never, lambda: NOW)
    work = PaperWork(opened(tmp_path), trader(prices), Metrics())
    assert len(streams) == 2
    work.heard()
    assert prices("AAPL") == (101.5, NOW)
    assert streams[1].lively == [True]
    work.close()
    assert all(stream.closed for stream in streams)
    PaperWork(opened(tmp_path), trader(None), Metrics()).close()
    assert len(streams) == 3  # the broker's own stream, and none of bars
