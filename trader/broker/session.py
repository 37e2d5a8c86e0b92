"""The only maker of Alpaca clients, each with no way out but the hosts named here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trader.core.errors import EndpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from alpaca.trading.client import TradingClient
    from requests.adapters import BaseAdapter

    from trader.broker.exchange.exchange import Exchange

EMBEDDED_URL = "http://paper.invalid"  # a reserved domain: a slip can reach nobody
NEEDED_ATTRIBUTES = ("_session", "_retry", "_retry_codes", "_base_url", "_sandbox")


def embedded_client(exchange: Exchange) -> TradingClient:
    """The real alpaca-py client, wired to `exchange` inside this process; opens no socket."""
    from alpaca.trading.client import TradingClient

    from trader.broker.exchange.transport import DirectSession, InProcess

    client = TradingClient("PKEMBEDDED", "embedded", paper=True, url_override=EMBEDDED_URL)
    client._session = DirectSession()
    return guarded(client, {EMBEDDED_URL: InProcess(exchange.handle)})


def guarded(client: TradingClient, doors: Mapping[str, BaseAdapter]) -> TradingClient:
    """`client` with no way out but `doors` (base URL to adapter), and no retries of its own.

    The client's own retries would send an order twice. Raises EndpointError when alpaca-py no
    longer has the attributes this relies on, or would talk to a host outside `doors`.
    """
    from trader.broker.exchange.transport import Guard

    missing = [name for name in NEEDED_ATTRIBUTES if not hasattr(client, name)]
    if missing:
        raise EndpointError(
            f"alpaca-py has no {', '.join(missing)}, so its retries and hosts cannot be checked; "
            "install alpaca-py 0.44"
        )
    if str(client._base_url) not in doors or not client._sandbox:
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
