"""The unmodified streams of alpaca-py in a thread, with what they heard in queues."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from threading import Event, Thread
from typing import Any

from alpaca.data.live import CryptoDataStream, StockDataStream
from alpaca.trading.stream import TradingStream

DEADLINE = 20  # seconds after which a test has hung
AT_ONCE = 0.01  # seconds before the first reconnection


class Watched:
    """Looks on while a stream works: subscriptions, errors and what its handlers were given."""

    def watch(self) -> None:
        self.subscribed: Queue[Any] = Queue()
        self.errors: Queue[int] = Queue()
        self.heard: Queue[Any] = Queue()
        self.retried: Queue[int] = Queue()
        self._reconnect_min_backoff = self._reconnect_max_backoff = AT_ONCE

    async def _dispatch(self, message: dict[str, Any]) -> None:
        await super()._dispatch(message)
        if message.get("stream") == "listening" or message.get("T") == "subscription":
            self.subscribed.put(message)
        if message.get("T") == "error":
            self.errors.put(message["code"])

    async def _wait_before_reconnect(self, retries: int) -> None:
        self.retried.put(retries)
        await super()._wait_before_reconnect(retries)

    async def hear(self, told: Any) -> None:
        self.heard.put(told)

    def next(self) -> Any:
        return self.heard.get(timeout=DEADLINE)

    def names(self, count: int) -> list[str]:
        """Events of the next trade updates."""
        return [self.next().event for _ in range(count)]


class TradeUpdates(Watched, TradingStream):
    """Trade updates."""


class StockBars(Watched, StockDataStream):
    """Market data of stocks."""


class CoinBars(Watched, CryptoDataStream):
    """Market data of coins."""


@contextmanager
def running(stream: Any, *, subscribed: bool = True) -> Iterator[Any]:
    """Run a stream until the end of the block; by default it has been subscribed by then."""
    ended = Event()

    def run() -> None:
        asyncio.run(stream._run_forever())
        ended.set()

    stream.ended = ended
    thread = Thread(target=run)
    thread.start()
    try:
        if subscribed:
            stream.subscribed.get(timeout=DEADLINE)
        yield stream
    finally:
        if not ended.is_set():
            asyncio.run_coroutine_threadsafe(_leave(stream), stream._loop).result(DEADLINE)
        thread.join(DEADLINE)
        assert not thread.is_alive()


async def _leave(stream: Any) -> None:
    """Stop without the five seconds for which the stream would still wait for a message."""
    await stream.stop_ws()
    if stream._ws is not None:
        stream._ws.transport.abort()


def trade_updates(url: str, **more: Any) -> TradeUpdates:
    stream = TradeUpdates("PKLOCAL", "any", url_override=url, **more)
    stream.watch()
    stream.subscribe_trade_updates(stream.hear)
    return stream


def market_data(kind: type[Any], url: str, key_id: str = "PKLOCAL", **more: Any) -> Any:
    stream = kind(key_id, "any", url_override=url, **more)
    stream.watch()
    return stream
