"""Live updates: when to connect, when silence means failure, and what to do about a gap.

What happened while no connection stood is never sent again. So after every connection the consumer
is told to ask by REST; the stream only tells it sooner.
"""

from __future__ import annotations

import hashlib
import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from trader.broker.alpaca_json import (
    amount,
    foreign_word,
    maybe_amount,
    moment,
    read_order,
    record,
    text,
)
from trader.core.clock import monotonic_seconds
from trader.core.errors import EndpointError, TraderError
from trader.core.instruments import standard_symbol
from trader.core.trading import Order

if TYPE_CHECKING:
    from trader.broker.sockets import Connection

log = logging.getLogger(__name__)

SILENCE_SECONDS = 25.0  # without a message that was due
OPENING_SECONDS = 20.0  # until the server says that it listens
CALM_SECONDS = 60.0  # of an open connection, after which earlier failures no longer count
LONGEST_PAUSE = 60.0
CROWDED_PAUSE = 90.0  # the server keeps a half-dead connection about that long
HOPELESS_PAUSE = 300.0  # a person has to do something first
CROWDED = (406, 429)
HOPELESS = (402, 405, 409)  # wrong key, too many symbols, not in the plan
MOST_STARTS, STARTS_SECONDS = 8, 300.0

T = TypeVar("T")
Action = Literal["start", "stop"]


@dataclass(frozen=True, slots=True)
class Opened:
    """The server takes the key and sends what was asked for."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A message."""

    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """The connection is over; `code` is Alpaca's, or that of HTTP, where there is one."""

    reason: str
    code: int | None = None


News = Opened | Heard | Ended


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeUpdate:
    """Something happened to an order, with the order as it then was.

    event              Alpaca's word: new, partial_fill, fill, canceled, replaced, …
    execution_id       of a fill; price (USD) and quantity too
    position_quantity  shares held after it
    """

    event: str
    at: datetime
    order: Order
    execution_id: str | None
    price: Decimal | None
    quantity: Decimal | None
    position_quantity: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePrice:
    """The newest price of a symbol, USD: a trade, or a minute's close as of its beginning."""

    symbol: str
    price: Decimal
    at: datetime


class StreamWatch:
    """When to connect and when to give a connection up; pure, `at` is seconds on any one clock.

    seed  makes the pauses differ between programs, and the same in every run
    """

    def __init__(self, *, seed: str = "") -> None:
        self._seed = seed
        self._state: Literal["waiting", "opening", "open"] = "waiting"
        self._since = self._resume_at = self._heard_at = float("-inf")
        self._due_at: float | None = None
        self._failures = 0
        self._starts: deque[float] = deque(maxlen=MOST_STARTS)
        self.problem = "not connected yet"

    @property
    def is_open(self) -> bool:
        """Whether the server sends what was asked for."""
        return self._state == "open"

    def next(self, at: float, *, lively: bool) -> Action | None:
        """What to do at `at`. lively: messages come all the time now, so silence is a failure."""
        if self._state == "waiting":
            return "start" if at >= self._resume_at else None
        if self._state == "opening":
            if at - self._since > OPENING_SECONDS:
                self.ended(at, "the server does not answer", None)
                return "stop"
            return None
        silent_since = max(self._heard_at, self._since) if lively else self._due_at
        if silent_since is not None and at - silent_since > SILENCE_SECONDS:
            self.ended(at, "connected but silent", None)
            return "stop"
        if at - self._since >= CALM_SECONDS and self._heard_at >= self._since:
            self._failures = 0
        return None

    def started(self, at: float) -> None:
        """A connection is being opened."""
        self._state, self._since = "opening", at
        self._starts.append(at)

    def opened(self, at: float) -> None:
        """The server has said that it listens."""
        if self._state == "opening":
            self._state, self._since, self._due_at = "open", at, None
            self.problem = ""

    def heard(self, at: float) -> None:
        """A message came."""
        self._heard_at, self._due_at = at, None

    def due(self, at: float) -> None:
        """A message must come soon: an order was sent, or filled as REST tells."""
        if self._due_at is None:
            self._due_at = at

    def ended(self, at: float, reason: str, code: int | None) -> None:
        """The connection is over; the pause before the next one grows with each failure."""
        self._failures += 1
        self._state, self._due_at = "waiting", None
        self.problem = reason
        pause = min(LONGEST_PAUSE, 2.0 ** (self._failures - 1)) * self._jitter()
        if code in CROWDED:
            pause = max(pause, CROWDED_PAUSE)
        if code in HOPELESS:
            pause = HOPELESS_PAUSE
        self._resume_at = at + pause
        if len(self._starts) == MOST_STARTS:
            self._resume_at = max(self._resume_at, self._starts[0] + STARTS_SECONDS)

    def _jitter(self) -> float:
        """Between 0.5 and 1, by the seed and the failure."""
        digest = hashlib.sha256(f"{self._seed}:{len(self._starts)}:{self._failures}".encode())
        return 0.5 + int.from_bytes(digest.digest()[:4], "big") / 2**33


class _Live(Generic[T]):
    """A stream that is looked after whenever `poll` is called, about once a second."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        *,
        on_gap: Callable[[str], None],
        name: str,
        read: Callable[[Mapping[str, Any]], T | None],
        seconds: Callable[[], float],
    ) -> None:
        """Nothing is opened before the first `poll`.

        connect  makes a connection, see trader.broker.session
        on_gap   is told why, in the caller's thread, when what happened must be asked for by REST
        read     makes something of a message; EndpointError for one that cannot be read
        """
        self._connect, self._on_gap, self._name = connect, on_gap, name
        self._read, self._seconds = read, seconds
        self._watch = StreamWatch(seed=name)
        self._connection: Connection | None = None
        self._heard_at: float | None = None

    @property
    def problem(self) -> str:
        """Why the stream is not to be relied on; empty while it is."""
        return self._watch.problem

    @property
    def silent_seconds(self) -> float | None:
        """Seconds since the last message; None before the first."""
        return None if self._heard_at is None else self._seconds() - self._heard_at

    def poll(self, *, lively: bool = False) -> tuple[T, ...]:
        """What came since the last call, oldest first; never raises for the stream's own troubles.

        lively  whether messages come all the time now, as bars do in the hours of the market
        """
        found: list[T] = []
        gap = ""
        while (news := self._connection.news() if self._connection else None) is not None:
            gap = self._take(news, found) or gap
        if gap:
            self._on_gap(gap)
        at = self._seconds()
        action = self._watch.next(at, lively=lively)
        if action == "stop":
            log.warning("%s: %s", self._name, self._watch.problem)
            self.close()
        elif action == "start":
            self.close()
            self._watch.started(at)
            try:
                self._connection = self._connect()
            except TraderError as exc:  # too many symbols, a key file that is gone
                self._watch.ended(at, str(exc), None)
            else:
                self._connection.start()
        return tuple(found)

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.stop()
            self._connection = None

    def _take(self, news: News, found: list[T]) -> str:
        """Take one piece of news; why there is a gap, where it shows one."""
        at = self._seconds()
        if isinstance(news, Opened):
            self._watch.opened(at)
            return f"{self._name}: connected; what happened before was not sent"
        if isinstance(news, Heard):
            self._watch.heard(at)
            self._heard_at = at
            try:
                read = self._read(news.message)
            except EndpointError as exc:
                return f"{self._name}: {exc}"
            if read is not None:
                found.append(read)
        if isinstance(news, Ended):
            code = "" if news.code is None else f" ({news.code})"
            log.warning("%s ended: %s%s", self._name, news.reason, code)
            self._watch.ended(at, news.reason, news.code)
        return ""


class TradeUpdates(_Live[TradeUpdate]):
    """What happens to the orders of the account. Hints only: REST has the truth.

    It may be silent for days; `due` says when an update must come.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        *,
        on_gap: Callable[[str], None],
        seconds: Callable[[], float] = monotonic_seconds,
    ) -> None:
        super().__init__(
            connect, on_gap=on_gap, name="trade updates", read=_update, seconds=seconds
        )

    def due(self) -> None:
        """An order was sent, or filled as REST tells: without a word of it the stream is mute."""
        self._watch.due(self._seconds())


class BarUpdates(_Live[LivePrice]):
    """The newest prices. In the hours of the market `poll(lively=True)` notices silence."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        *,
        on_gap: Callable[[str], None],
        seconds: Callable[[], float] = monotonic_seconds,
    ) -> None:
        super().__init__(connect, on_gap=on_gap, name="bars", read=_price, seconds=seconds)


def _update(message: Mapping[str, Any]) -> TradeUpdate | None:
    row = record(message.get("data"), "trade update")
    order = record(row.get("order"), "order")
    if foreign_word(order):
        return None
    return TradeUpdate(
        event=text(row, "event"),
        at=moment(row, "timestamp"),
        order=read_order(order),
        execution_id=text(row, "execution_id") if row.get("execution_id") else None,
        price=maybe_amount(row, "price"),
        quantity=maybe_amount(row, "qty"),
        position_quantity=maybe_amount(row, "position_qty"),
    )


def _price(message: Mapping[str, Any]) -> LivePrice | None:
    row = record(message, "price")
    kind = {"b": "c", "t": "p"}.get(text(row, "T"))
    if kind is None:
        return None
    return LivePrice(
        symbol=standard_symbol(text(row, "S")), price=amount(row, kind), at=_packed_moment(row)
    )


def _packed_moment(row: Mapping[str, Any]) -> datetime:
    """The moment of a message; msgpack has a type of its own for it."""
    try:
        at: datetime = row["t"].to_datetime()
    except (KeyError, AttributeError, ValueError, OverflowError) as exc:
        raise EndpointError(f"the broker sent a price without a time: {row.get('t')!r}") from exc
    return at.astimezone(UTC)
