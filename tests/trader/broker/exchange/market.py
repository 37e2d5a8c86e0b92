"""Markets whose bars show splits, and unmodified data clients wired to an exchange in process."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TypeVar

from alpaca.common.rest import RESTClient
from alpaca.data.historical import CryptoHistoricalDataClient

from tests.trader.broker.floor import HandBars, Ohlc
from trader.broker.exchange.exchange import Exchange
from trader.broker.exchange.transport import InProcess
from trader.broker.session import EMBEDDED_URL, guarded
from trader.core.market import Timeframe

Client = TypeVar("Client", bound=RESTClient)


def bars_with_splits(
    rows: dict[str, list[Ohlc]],
    splits: dict[str, tuple[tuple[date, float], ...]],
    timeframe: Timeframe = Timeframe.DAY,
) -> HandBars:
    """Bars by hand that say which splits they show."""
    data = HandBars(rows, timeframe=timeframe)
    for symbol, shown in splits.items():
        data._series[symbol] = replace(data._series[symbol], splits=shown)
    return data


def data_client(exchange: Exchange, kind: type[Client]) -> Client:
    """The real client of market data, wired to `exchange`; that of coins has no key."""
    keys = () if kind is CryptoHistoricalDataClient else ("PKEMBEDDED", "embedded")
    client = kind(*keys, url_override=EMBEDDED_URL)
    return guarded(client, {EMBEDDED_URL: InProcess(exchange.handle)})
