"""Where orders go when they leave this program: Alpaca's paper API, or an exchange beside it."""

from __future__ import annotations

from datetime import datetime

from trader.app.context import Context
from trader.broker.alpaca_broker import AlpacaBroker
from trader.broker.credentials import Credentials, credentials
from trader.broker.session import paper_client
from trader.core.clock import SystemClock
from trader.core.errors import ConfigError
from trader.ledger.controls import Controls
from trader.ledger.store import Ledger
from trader.pipeline.circumstances import LatestPrice


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


class Venue:
    """A broker outside this program, and what guards the way to it.

    latest_price  the newest price of a symbol; None where the bars are not of the broker's market
    """

    def __init__(self, app: Context, ledger: Ledger) -> None:
        self._beside = app.config.broker.base_url is not None
        self.controls = Controls(ledger, now=self.now)
        self.broker = alpaca_broker(app, halt=self.controls)
        self.latest_price: LatestPrice | None = getattr(app.data, "latest_price", None)

    def now(self) -> datetime:
        """Our own clock, to hold the broker's against; an exchange beside us has the only one."""
        return self.broker.clock().now if self._beside else SystemClock().now()
