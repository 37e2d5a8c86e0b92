"""The seams: one Protocol for each thing outside, with an embedded default that needs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from trader.core.canonical import Primitive
from trader.core.decision import (
    Answer,
    Argument,
    Candidate,
    ChatCall,
    Debate,
    Evidence,
    EvidenceIndex,
    Rebuttal,
    RiskFlag,
    Role,
    Style,
    Verdict,
    Weighing,
)
from trader.core.market import BarSeries, Timeframe
from trader.core.past import PastQuestion
from trader.core.trading import (
    AccountState,
    Activity,
    Fill,
    MarketClock,
    Order,
    OrderIntent,
    Portfolio,
)


class MarketData(Protocol):
    """Bars of a market. Implementations: sample, synthetic, csv, alpaca."""

    @property
    def name(self) -> str:
        """What is printed and stored with every result, e.g. "sample"."""

    def symbols(self, timeframe: Timeframe) -> tuple[str, ...]:
        """Every symbol that has bars of this length, sorted."""

    def bars(self, symbol: str, timeframe: Timeframe, until: datetime | None = None) -> BarSeries:
        """Sound bars of `symbol` that were complete at `until` (all bars when None).

        Raises DataIntegrityError for an unknown symbol and for bars that must not be traded on,
        EndpointError where a service cannot be asked and nothing is kept of it.
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

    def order_by_id(self, order_id: str) -> Order | None:
        """The order with the broker's own id and its legs, or None where there is none."""

    def replace(
        self,
        order_id: str,
        *,
        client_order_id: str,
        quantity: Decimal | None = None,
        limit_price: Decimal | None = None,
        stop_price: Decimal | None = None,
    ) -> Order:
        """Put another order in the place of an open one; the new order, with its own id.

        OrderRefusedError when the broker says no, for instance because it has just been filled.
        """

    def cancel(self, order_id: str) -> None:
        """Ask for cancellation; an order that is already final is not an error."""

    def account(self) -> AccountState:
        """The account itself."""

    def clock(self) -> MarketClock:
        """The broker's clock."""

    def activities(self, after: str | None = None) -> tuple[Activity, ...]:
        """What moved cash or shares besides fills, oldest first, after the activity `after` only.

        A split's `quantity` is the shares it added.
        """

    def fills(self, after: str | None = None) -> tuple[Fill, ...]:
        """Fills in the order they happened, those after the execution id `after` only."""


class TradingHalt(Protocol):
    """Whether anything may be bought. Persisted by the ledger; asked by the gate and the broker."""

    def blocked(self, symbol: str) -> str:
        """Why no order that opens or adds to a position in `symbol` may be sent; empty if it may.

        Exits, cancels and protective orders are never asked about.
        """


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
class Message:
    """One message to a model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a model reads, and the JSON schema that its reply must have.

    version  name and version of the template, "bull 1"
    schema   in the strict subset: every property required, no bounds, no open objects
    """

    version: str
    messages: tuple[Message, ...]
    schema_name: str
    schema: Mapping[str, Primitive]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """What a debater is asked: typed facts, and a prompt for those who read words.

    Rule debaters read the facts only, so the prompt is written when it is asked for.
    subject   the decision, for budgets and recordings: its cycle id
    deadline  on the clock of `monotonic_seconds`; None: no hurry
    """

    role: Role
    round: int
    candidate: Candidate
    evidence: EvidenceIndex
    arguments: Sequence[Argument]
    rebuttals: Sequence[Rebuttal]
    prompt: Callable[[], Prompt]
    subject: str
    deadline: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a call used. estimated: the server did not say and we counted. cost: USD."""

    input_tokens: int
    output_tokens: int
    estimated: bool
    cost: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """What model calls have used so far. estimated: calls whose tokens we counted. cost: USD."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: int = 0
    cost: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """A reply as text; it is JSON only once it has been parsed and checked.

    call  None where no model was asked
    """

    text: str
    call: ChatCall | None = None
    usage: Usage | None = None


class ChatModel(Protocol):
    """Turns a request into a reply. Implementations: rules, an endpoint, recorded replies."""

    @property
    def name(self) -> str:
        """Who speaks, for the record."""

    def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply; raise EndpointError (after its own retries) or BudgetError.

        A failed call that the record must know carries it as `call` of the error.
        RecordingError when the reply was to come from the recordings and is not there.
        """


class History(Protocol):
    """The past of one instrument up to the decision; the claims checker asks it."""

    @property
    def answers(self) -> Mapping[str, float | None]:
        """Every question asked so far, by key, with its answer."""

    def ask(self, question: PastQuestion) -> float | None:
        """The number asked for; None when the past does not hold it.

        A session is answered as yyyymmdd.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class DebateEvent:
    """Something that happened in a debate, told while it goes on.

    role  who begins to speak (`said` is None) or has spoken
    said  a Candidate opens, a RiskFlag is a failure, a Verdict closes, a str says what comes next
    """

    cycle_id: str
    role: Role | None
    round: int
    said: Candidate | Argument | Rebuttal | Weighing | RiskFlag | Verdict | str | None


DebateListener = Callable[[DebateEvent], None]


@dataclass(slots=True, kw_only=True)
class Approvals:
    """What becomes of GOs that wait for a person; whoever runs the slots changes it between them.

    answers     cycle id -> answer
    unanswered  what an older request without an answer comes to: `expired`, or it goes on waiting
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    unanswered: Literal["expired", "waits"] = "expired"

    def answer(self, cycle_id: str) -> Answer | None:
        """The answer to a request that was made before; None while it waits."""
        fallback: Answer | None = "expired" if self.unanswered == "expired" else None
        return self.answers.get(cycle_id, fallback)


class Deliberation(Protocol):
    """Decides about a candidate. Implementations: the debate graph; the baselines without one."""

    @property
    def debater(self) -> str:
        """Who debates, for the record."""

    def deliberate(
        self,
        candidate: Candidate,
        evidence: Sequence[Evidence],
        cycle_id: str,
        history: History,
    ) -> Debate:
        """Hold the debate to its end; a failure inside is a flagged NO_GO, not an exception.

        Raises ApprovalPendingError when a person has to approve first, and RecordingError when a
        reply was to come from the recordings and is not there.
        """
