"""The settings of an account that trades by itself: its broker, its limits, its schedule."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from trader.core.config.models import Variable
from trader.core.config.sections import FRACTION, ONE_LINE, Section, problem
from trader.core.config.wording import shown

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def _loopback(value: Any) -> Any:
    """An address of an exchange on this computer; no other address can be given at all."""
    if value is None or not isinstance(value, str):
        return value
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError as exc:
        raise problem("url", f"{shown(value)} is no address: {exc}") from exc
    if parts.scheme != "http" or host not in LOOPBACK:
        raise problem(
            "url",
            f"{shown(value)} is not on this computer; only http://127.0.0.1:PORT is taken, "
            "leave it out for Alpaca's paper API",
        )
    address = f"{parts.scheme}://{parts.netloc}"
    # what is only not written as an address is (a blank, "#") would go into every request as it is
    if "@" in parts.netloc or value.rstrip("/").lower() != address.lower():
        raise problem("url", f"{shown(value)} holds more than a host and a port")
    return address


LoopbackUrl = Annotated[str | None, BeforeValidator(_loopback)]
Sessions = Annotated[int, Field(ge=0, le=2000)]


class BrokerSettings(Section):
    """Where orders go; there is no word for a live account."""

    name: Literal["embedded", "alpaca"] = Field(
        default="embedded",
        description="Who trades: embedded (inside this program) or alpaca (its paper API)",
    )
    base_url: LoopbackUrl = Field(
        default=None,
        description="Address of an exchange on this computer; null for Alpaca's paper API",
    )
    key_id_variable: Variable = Field(
        default="APCA_API_KEY_ID", description="Environment variable with the id of the paper key"
    )
    secret_key_variable: Variable = Field(
        default="APCA_API_SECRET_KEY", description="Environment variable with its secret"
    )
    key_file: Annotated[str, Field(pattern=ONE_LINE)] | None = Field(
        default=None,
        description="File with both, one NAME=VALUE a line, readable by its owner alone",
    )


class Safety(Section):
    """When the kill switch trips and how much may be ordered; exits are never held back."""

    daily_loss: float = Field(
        default=0.03,
        gt=0,
        le=1,
        description="Loss since the session's opening equity that halts trading, a fraction",
        json_schema_extra=FRACTION,
    )
    liquidate: bool = Field(
        default=False, description="Whether a halt also sells what is held; stops stay otherwise"
    )
    orders_per_minute: int = Field(default=30, ge=1, le=180, description="Entries sent in a minute")
    notional_per_day: float = Field(
        default=2.0, gt=0, le=100, description="Entries of one session, in multiples of equity"
    )
    open_orders: int = Field(
        default=100, ge=1, le=500, description="Open orders beyond which nothing is bought"
    )
    quote_seconds: float = Field(
        default=900.0, gt=0, description="Oldest price an entry may be based on in open hours"
    )
    clock_skew_seconds: float = Field(
        default=2.0, gt=0, description="Difference to the broker's clock that stops entries"
    )


class Protections(Section):
    """Rules of the gate that give a bad stretch time to pass; 0 switches a rule off."""

    cooldown_sessions: Sessions = Field(
        default=1, description="Sessions without an entry in a symbol after its stop was hit"
    )
    stops: int = Field(default=6, ge=0, le=1000, description="Stops that lock all entries")
    stops_sessions: Sessions = Field(
        default=10, description="Sessions within which those stops count"
    )
    drawdown: float = Field(
        default=0.15,
        ge=0,
        le=1,
        description="Fall from the highest equity that locks all entries, a fraction",
        json_schema_extra=FRACTION,
    )
    drawdown_sessions: Sessions = Field(
        default=60, description="Sessions over which the highest equity is looked for"
    )
    lock_sessions: Sessions = Field(
        default=5, description="Sessions that such a lock of all entries lasts"
    )
    max_positions: int = Field(
        default=20,
        ge=0,
        le=1000,
        description="Positions and open entries beyond which none is added",
    )


class Daemon(Section):
    """The schedule of `trader run --paper` and of the service."""

    speed: float = Field(
        default=3600.0,
        ge=0,
        le=1e9,
        description="Seconds of the embedded market per second; 0 for as fast as it goes",
    )
    reconcile_minutes: float = Field(
        default=5.0, ge=0.1, le=1440, description="Minutes between two comparisons with the broker"
    )
    bars_delay_minutes: float = Field(
        default=20.0, ge=0, le=240, description="Minutes after a slot until its bars are asked for"
    )
    pre_market_minutes: float = Field(
        default=30.0, ge=0, le=300, description="Minutes before the opening of the pre-market job"
    )
    post_close_minutes: float = Field(
        default=45.0, ge=0, le=300, description="Minutes after the close of the post-close job"
    )
    metrics_port: int | None = Field(
        default=None, ge=0, le=65535, description="Port of the metrics on 127.0.0.1; null for none"
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="Lines of the log: text for people or json"
    )
