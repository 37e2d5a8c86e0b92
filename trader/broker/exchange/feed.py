"""Market data as it is streamed: each completed bar, and the newest trade and quote behind it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import numpy as np

from trader.broker.exchange.answers import Handler
from trader.broker.exchange.bar_frames import midnight_ns
from trader.core.instruments import is_crypto
from trader.core.market import Timeframe, from_ns, session_of
from trader.core.ports import MarketData

Message = dict[str, object]
STOCKS, COINS = "/v2/stocks", "/v1beta3/crypto/us"
MOST = 10_000  # bars of one page


class BarFeed:
    """The bars of the exchange's market as messages; `t` is an aware datetime.

    data  says which bars have completed
    rest  the exchange's REST, which says what they are: it knows of splits the bars do not show
    """

    def __init__(self, data: MarketData, timeframe: Timeframe, rest: Handler) -> None:
        self._data = data
        self._timeframe = timeframe
        self._rest = rest

    def symbols(self, *, coins: bool) -> list[str]:
        """Every coin, or everything else."""
        return [name for name in self._data.symbols(self._timeframe) if is_crypto(name) is coins]

    def messages(
        self, symbols: Iterable[str], since_ns: int, now_ns: int
    ) -> list[tuple[str, Message]]:
        """(channel, message) of what became known after `since_ns` and up to `now_ns`, by symbol.

        Every bar in between on the channel bars, and on dailyBars where bars last a day; then the
        newest trade and quote.
        """
        found: list[tuple[str, Message]] = []
        for symbol in symbols:
            series = self._data.bars(symbol, self._timeframe, from_ns(now_ns))
            first = int(np.searchsorted(series.available_at, since_ns, side="right"))
            if first == len(series):
                continue
            for bar in self._bars(symbol, int(series.timestamp[first])):
                found.append(("bars", {"T": "b", **bar}))
                if self._timeframe is Timeframe.DAY:
                    found.append(("dailyBars", {"T": "d", **bar}))
            found.append(("trades", {"T": "t", **self._latest(symbol, "trades")}))
            found.append(("quotes", {"T": "q", **self._latest(symbol, "quotes")}))
        return found

    def _bars(self, symbol: str, opened_ns: int) -> list[Message]:
        """The bars from the one that opened at `opened_ns` on, as REST shows them."""
        first = from_ns(opened_ns)
        if self._timeframe is Timeframe.DAY:
            first = from_ns(midnight_ns(session_of(first)))
        window = {"timeframe": self._timeframe.value, "start": first.isoformat(), "limit": MOST}
        found = self._ask("bars", symbol, "bars", **window)
        return [_message(symbol, bar) for bar in found.get(symbol, [])]

    def _latest(self, symbol: str, what: str) -> Message:
        place = f"latest/{what}" if is_crypto(symbol) else f"{what}/latest"
        return _message(symbol, self._ask(what, symbol, place)[symbol])

    def _ask(self, what: str, symbol: str, place: str, **window: object) -> dict[str, Any]:
        host = COINS if is_crypto(symbol) else STOCKS
        query = urlencode({"symbols": symbol, **window})
        _, answer = self._rest("GET", f"{host}/{place}?{query}", None)
        assert isinstance(answer, dict)
        told: dict[str, Any] = answer[what]
        return told


def _message(symbol: str, row: Message) -> Message:
    return {**row, "S": symbol, "t": datetime.fromisoformat(str(row["t"]))}
