"""Where orders go when they leave this program: Alpaca's paper API, or an exchange beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from trader.app.context import Context
from trader.broker.alpaca_broker import AlpacaBroker
from trader.broker.credentials import Credentials, credentials
from trader.broker.session import paper_client
from trader.broker.streams import LivePrice
from trader.core.clock import SystemClock
from trader.core.errors import ConfigError
from trader.ledger.controls import Controls
from trader.ledger.store import Ledger
from trader.pipeline.circumstances import LatestPrice

FRESH = timedelta(minutes=2)  # a minute's bar is told when the minute is over


def paper_keys(app: Context) -> Credentials:
    """The paper key; ConfigError that says where it is looked for when there is none.

    An exchange on this computer takes any.
    """
    settings = app.config.broker
    found = credentials(settings, app.environ)
    if found is not None:
        return found
    if settings.base_url is not None:
        return Credentials(key_id="PKLOCAL", secret_key="local", source="this computer")  # noqa: S106
    raise ConfigError(
        f"no paper key: set {settings.key_id_variable} and {settings.secret_key_variable} in "
        "the environment, or name a file with both as broker.key_file"
    )


def alpaca_broker(app: Context, *, halt: Controls | None = None) -> AlpacaBroker:
    """The broker of `broker.name: alpaca`; ConfigError without a usable paper key."""
    return AlpacaBroker(paper_client(app.config.broker, paper_keys(app)), halt=halt)


class LatestPrices:
    """The newest price of a symbol: as it was streamed while that is fresh, else asked for.

    After a gap of the stream nothing is fresh, so the gap is filled by asking.
    """

    def __init__(self, ask: LatestPrice, now: Callable[[], datetime]) -> None:
        self._ask, self._now = ask, now
        self._heard: dict[str, tuple[float, datetime]] = {}

    def hear(self, prices: Iterable[LivePrice]) -> None:
        """Keep what the stream of bars has told."""
        for price in prices:
            self._heard[price.symbol] = (float(price.price), price.at)

    def __call__(self, symbol: str) -> tuple[float, datetime]:
        """USD per share, and when it was known; raises as the service does that is asked."""
        heard = self._heard.get(symbol)
        if heard is not None and self._now() - heard[1] <= FRESH:
            return heard
        return self._ask(symbol)


class Venue:
    """A broker outside this program, and what guards the way to it.

    prices  None where the bars are not of the broker's market
    """

    def __init__(self, app: Context, ledger: Ledger) -> None:
        self._beside = app.config.broker.base_url is not None
        self.controls = Controls(ledger, now=self.now)
        self.broker = alpaca_broker(app, halt=self.controls)
        ask: LatestPrice | None = getattr(app.data, "latest_price", None)
        self.prices = None if ask is None else LatestPrices(ask, self.now)

    def now(self) -> datetime:
        """Our own clock, to hold the broker's against; an exchange beside us has the only one."""
        return self.broker.clock().now if self._beside else SystemClock().now()
