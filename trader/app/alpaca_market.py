"""Alpaca's market data as this configuration reaches it: clients, key, cache."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from trader.app.folder import make_folder
from trader.core.clock import SystemClock
from trader.data.alpaca_data import AlpacaData
from trader.data.alpaca_reads import NoKeyError, OpenService, Service
from trader.data.cache import BarCache

if TYPE_CHECKING:
    from trader.app.context import Context
    from trader.broker.credentials import Credentials
    from trader.broker.market_reads import MarketReads

BARS = "bars"  # folder of the state folder


def alpaca_data(app: Context) -> AlpacaData:
    """Bars of Alpaca, kept in the state folder; nothing is asked for yet."""
    settings = app.config.data
    return AlpacaData(
        calendar=app.calendar,
        open_service=services(app),
        cache=bar_cache(app),
        symbols=app.config.symbols,
        feed=settings.feed,
        adjustment=settings.adjustment,
        now=SystemClock().now,
    )


def bar_cache(app: Context) -> BarCache:
    """The kept bars of the state folder."""
    return BarCache(make_folder(app.state_dir) / BARS)


def services(app: Context) -> OpenService:
    """Alpaca's services, each opened when it is first asked.

    NoKeyError where a key is needed and there is none: coins need none.
    """

    @cache
    def open_service(service: Service) -> MarketReads:
        from trader.broker import session
        from trader.broker.market_reads import MarketReads

        base_url = app.config.data.base_url
        if service == "coins":
            return MarketReads(session.crypto_data_client(_maybe_keys(app), base_url))
        make = {
            "stocks": session.stock_data_client,
            "news": session.news_client,
            "actions": session.corporate_actions_client,
        }[service]
        return MarketReads(make(_keys(app), base_url))

    return open_service


def _keys(app: Context) -> Credentials:
    from trader.broker.credentials import Credentials

    found = _maybe_keys(app)
    if found is not None:
        return found
    if app.config.data.base_url is not None:
        return Credentials(key_id="PKLOCAL", secret_key="local", source="this computer")  # noqa: S106
    broker = app.config.broker
    raise NoKeyError(
        f"Alpaca's bars of shares need a key: set {broker.key_id_variable} and "
        f"{broker.secret_key_variable} in the environment, or name a file with both as "
        "broker.key_file; coins need none"
    )


def _maybe_keys(app: Context) -> Credentials | None:
    from trader.broker.credentials import credentials

    return credentials(app.config.broker, app.environ)
