"""The seams: one Protocol for each thing outside, with an embedded default that needs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from trader.core.decision import (
    Argument,
    Candidate,
    Debate,
    Evidence,
    EvidenceIndex,
    Rebuttal,
    Style,
)
from trader.core.market import BarSeries, Timeframe
from trader.core.trading import Fill, Order, OrderIntent, Portfolio


class MarketData(Protocol):
    """Bars of a market. Implementations: sample, synthetic, csv."""

    @property
    def name(self) -> str:
        """What is printed and stored with every result, e.g. "sample"."""

    def symbols(self, timeframe: Timeframe) -> tuple[str, ...]:
        """Every symbol that has bars of this length, sorted."""

    def bars(self, symbol: str, timeframe: Timeframe, until: datetime | None = None) -> BarSeries:
        """Sound bars of `symbol` that were complete at `until` (all bars when None).

        Raises DataIntegrityError for an unknown symbol and for bars that must not be traded on.
        """


class Broker(Protocol):
    """An account that trades.

    Implementation: AlpacaBroker, over the embedded exchange or Alpaca's paper API.
    Every method raises EndpointError when the service cannot be reached or understood.
    """

    def portfolio(self) -> Portfolio:
        """Cash, equity and positions now."""

    def submit(self, intent: OrderIntent) -> Order:
        """Send the order; OrderRefusedError when the broker says no.

        Sending an intent whose client_order_id the broker already knows returns that order.
        """

    def order(self, client_order_id: str) -> Order | None:
        """The order with this client id and its legs, or None if the broker never saw it."""

    def orders(self, *, open_only: bool = True) -> tuple[Order, ...]:
        """Orders with their legs nested, oldest first; a waiting (`held`) leg counts as open."""

    def cancel(self, order_id: str) -> None:
        """Ask for cancellation; an order that is already final is not an error."""

    def fills(self, after: str | None = None) -> tuple[Fill, ...]:
        """Fills in the order they happened, those after the execution id `after` only."""


class SimulatedMarket(Protocol):
    """The embedded exchange seen by whoever moves its clock."""

    def now(self) -> datetime:
        """Market time, UTC."""

    def advance(self, to: datetime) -> None:
        """Match every bar that became available up to `to` against the open orders.

        Raises ValueError if `to` lies behind.
        """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Crossings:
    """Where a strategy's rules fire. entry, exit: [T] bool; True on the crossing bar only."""

    entry: NDArray[np.bool_]
    exit: NDArray[np.bool_]


class Strategy(Protocol):
    """A trading rule: bars in, signals out. Pure: signal[i] depends on bars[:i+1] only."""

    @property
    def name(self) -> str:
        """The name used in config, on the command line and in records."""

    @property
    def style(self) -> Style:
        """What kind of rule this is; the debate asks different questions of each."""

    @property
    def parameters(self) -> Mapping[str, float]:
        """The parameters in force."""

    @property
    def entry_rule(self) -> tuple[str, str] | None:
        """Names in `features` of the value and of the line it must cross upwards.

        None without a crossing.
        """

    def crossings(self, bars: BarSeries) -> Crossings:
        """Every bar on which the rule says enter or leave; all False while history is too short."""

    def features(self, bars: BarSeries, index: int) -> Mapping[str, float]:
        """The numbers the rule looked at on bar `index`, by name.

        Those of the bar before stand under `<name>_previous`.
        """

    def reason(self, bars: BarSeries, index: int) -> str:
        """One sentence saying, with numbers, why the rule fired on bar `index`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """What a debater is asked: the typed facts it may use. Rule debaters read nothing else."""

    role: Literal["bull", "bear"]
    round: int
    candidate: Candidate
    evidence: EvidenceIndex
    arguments: Sequence[Argument]
    rebuttals: Sequence[Rebuttal]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """A reply as text; it is JSON only once it has been parsed and checked."""

    text: str


class ChatModel(Protocol):
    """Turns a request into a reply. Implementation: rules."""

    @property
    def name(self) -> str:
        """Who speaks, for the record."""

    def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply; raise EndpointError after its own retries, nothing else."""


class Deliberation(Protocol):
    """Decides about a candidate. Implementations: the debate graph; no debate, for the baseline."""

    @property
    def debater(self) -> str:
        """Who debates, for the record."""

    def deliberate(
        self, candidate: Candidate, evidence: Sequence[Evidence], cycle_id: str
    ) -> Debate:
        """Hold the debate to its end; a failure inside is a flagged NO_GO, never an exception."""
