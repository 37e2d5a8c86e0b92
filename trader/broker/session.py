"""The only maker of Alpaca clients and streams, each with no way out but the hosts named here."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from trader.broker.credentials import refuse_live, require_paper
from trader.core.errors import EndpointError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from alpaca.common.rest import RESTClient
    from alpaca.data.historical import (
        CryptoHistoricalDataClient,
        NewsClient,
        StockHistoricalDataClient,
    )
    from alpaca.data.historical.corporate_actions import CorporateActionsClient
    from alpaca.trading.client import TradingClient
    from requests.adapters import BaseAdapter

    from trader.broker.credentials import Credentials
    from trader.broker.exchange.exchange import Exchange
    from trader.broker.sockets import Connection
    from trader.core.config import BrokerSettings

    Client = TypeVar("Client", bound=RESTClient)

EMBEDDED_URL = "http://paper.invalid"  # a reserved domain: a slip can reach nobody
PAPER_URL = "https://paper-api.alpaca.markets"
DATA_URL = "https://data.alpaca.markets"
PAPER_STREAM_URL = "wss://paper-api.alpaca.markets"
DATA_STREAM_URL = "wss://stream.data.alpaca.markets"
HOSTS = frozenset({"paper-api.alpaca.markets", "data.alpaca.markets"})
STREAM_HOSTS = frozenset({"paper-api.alpaca.markets", "stream.data.alpaca.markets"})
NEEDED_ATTRIBUTES = ("_session", "_retry", "_retry_codes", "_base_url", "_sandbox")


def embedded_client(exchange: Exchange) -> TradingClient:
    """The real alpaca-py client, wired to `exchange` inside this process; opens no socket."""
    from alpaca.trading.client import TradingClient

    from trader.broker.exchange.transport import DirectSession, InProcess

    client = TradingClient("PKEMBEDDED", "embedded", paper=True, url_override=EMBEDDED_URL)
    client._session = DirectSession()
    return guarded(client, {EMBEDDED_URL: InProcess(exchange.handle)})


def paper_client(settings: BrokerSettings, keys: Credentials) -> TradingClient:
    """A client of Alpaca's paper API, or of an exchange on this computer.

    ConfigError when Alpaca itself is meant and the key is not one of a paper account.
    """
    from alpaca.trading.client import TradingClient

    if settings.base_url is None:
        require_paper(keys)
    refuse_live(keys)
    client = TradingClient(
        keys.key_id,
        keys.secret_key,
        paper=True,
        url_override=_address(PAPER_URL, settings.base_url),
    )
    return _outside(client, keys, "trading")


def stock_data_client(keys: Credentials, base_url: str | None = None) -> StockHistoricalDataClient:
    """Bars, quotes and trades of shares; base_url: an exchange on this computer, not Alpaca."""
    from alpaca.data.historical import StockHistoricalDataClient

    refuse_live(keys)
    client = StockHistoricalDataClient(
        keys.key_id, keys.secret_key, url_override=_address(DATA_URL, base_url)
    )
    return _outside(client, keys, "data")


def crypto_data_client(
    keys: Credentials | None = None, base_url: str | None = None
) -> CryptoHistoricalDataClient:
    """Bars, quotes and trades of coins; a key is not needed, but allows more requests."""
    from alpaca.data.historical import CryptoHistoricalDataClient

    if keys is None:
        client = CryptoHistoricalDataClient(url_override=_address(DATA_URL, base_url))
    else:
        refuse_live(keys)
        client = CryptoHistoricalDataClient(
            keys.key_id, keys.secret_key, url_override=_address(DATA_URL, base_url)
        )
    return _outside(client, keys, "data")


def news_client(keys: Credentials, base_url: str | None = None) -> NewsClient:
    """News with the moment each came out; always name a limit, or every page is fetched."""
    from alpaca.data.historical import NewsClient

    refuse_live(keys)
    client = NewsClient(keys.key_id, keys.secret_key, url_override=_address(DATA_URL, base_url))
    return _outside(client, keys, "data")


def corporate_actions_client(
    keys: Credentials, base_url: str | None = None
) -> CorporateActionsClient:
    """Splits, dividends and their kin."""
    from alpaca.data.historical.corporate_actions import CorporateActionsClient

    refuse_live(keys)
    client = CorporateActionsClient(
        keys.key_id, keys.secret_key, url_override=_address(DATA_URL, base_url)
    )
    return _outside(client, keys, "data")


def trading_stream(settings: BrokerSettings, keys: Credentials) -> Connection:
    """One connection, not opened yet, to the updates of the paper account's orders."""
    from trader.broker.sockets import Connection, PaperTradingStream

    if settings.base_url is None:
        require_paper(keys)
    refuse_live(keys)
    address = _stream_address(PAPER_STREAM_URL, settings.base_url)
    stream = PaperTradingStream(keys.key_id, keys.secret_key, url_override=f"{address}/stream")
    return Connection(stream)


def bar_stream(
    keys: Credentials,
    symbols: Sequence[str],
    *,
    feed: str = "iex",
    heartbeat: str | None = None,
    base_url: str | None = None,
) -> Connection:
    """One connection, not opened yet, to the minute bars of shares, or of coins.

    feed       iex or sip, for shares
    heartbeat  a symbol whose every trade is asked for too, so that silence is noticed
    EndpointError for more symbols than Alpaca gives one connection, ValueError for a mixture.
    """
    from trader.broker.sockets import CoinsStream, Connection, SharesStream
    from trader.core.instruments import is_crypto

    refuse_live(keys)
    address = _stream_address(DATA_STREAM_URL, base_url)
    coins = {is_crypto(symbol) for symbol in symbols}
    if len(coins) != 1:
        raise ValueError("shares and coins, or nothing at all, cannot share one stream of bars")
    if coins == {True}:
        stream: SharesStream | CoinsStream = CoinsStream(
            keys.key_id, keys.secret_key, url_override=f"{address}/v1beta3/crypto/us"
        )
    else:
        stream = SharesStream(keys.key_id, keys.secret_key, url_override=f"{address}/v2/{feed}")
    stream.ask_for(symbols, heartbeat)
    return Connection(stream)


def guarded(client: Client, doors: Mapping[str, BaseAdapter]) -> Client:
    """`client` with no way out but `doors` (base URL to adapter), and no retries of its own.

    The client's own retries would send an order twice. Raises EndpointError when alpaca-py no
    longer has the attributes this relies on, or would talk to a host outside `doors`, or when a
    client that trades was not made for paper.
    """
    from alpaca.trading.client import TradingClient

    from trader.broker.exchange.transport import Guard

    missing = [name for name in NEEDED_ATTRIBUTES if not hasattr(client, name)]
    if missing:
        raise EndpointError(
            f"alpaca-py has no {', '.join(missing)}, so its retries and hosts cannot be checked; "
            "install alpaca-py 0.44"
        )
    trades_live = isinstance(client, TradingClient) and not client._sandbox
    if str(client._base_url) not in doors or trades_live:
        raise EndpointError(f"the client would call {client._base_url}; only {', '.join(doors)}")

    client._retry = 0
    client._retry_codes = []
    session = client._session
    session.trust_env = False
    session.adapters.clear()
    for scheme in ("http://", "https://"):
        session.mount(scheme, Guard(", ".join(doors)))
    for base_url, adapter in doors.items():
        session.mount(f"{base_url}/", adapter)
    return client


def _outside(client: Client, keys: Credentials | None, service: str) -> Client:
    """`client` with the door that its address needs, and the count that its key shares."""
    from trader.broker.guard import GuardedAdapter
    from trader.broker.rate_limit import rate_limit

    limit = rate_limit(keys.key_id if keys else "", service)
    return guarded(client, {str(client._base_url): GuardedAdapter(HOSTS, limit)})


def _address(alpaca: str, base_url: str | None) -> str:
    """Alpaca's own address, or one on this computer; EndpointError for any other."""
    from trader.broker.guard import require_host

    address = alpaca if base_url is None else base_url.rstrip("/")
    require_host(address, HOSTS, ("https", "http"))
    return address


def _stream_address(alpaca: str, base_url: str | None) -> str:
    """The same for websockets, which an exchange on this computer serves at the next port."""
    from trader.broker.guard import require_host

    address = alpaca
    if base_url is not None:
        parts = urlsplit(_address(alpaca, base_url))
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        address = f"ws://{host}:{(parts.port or 80) + 1}"
    require_host(address, STREAM_HOSTS, ("wss", "ws"))
    return address
