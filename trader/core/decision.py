"""From a signal to a verdict: what is claimed, checked, decided and recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Literal

from trader.core.flags import FlagCode
from trader.core.trading import OrderIntent, Portfolio

EvidenceKind = Literal[
    "technical", "portfolio", "track_record", "level", "disclosure", "news", "paper", "memory"
]
Style = Literal["trend", "mean_reversion", "momentum", "benchmark"]
Operator = Literal[
    "=",
    "<",
    ">",
    "<=",
    ">=",
    "between",
    "crosses_above",
    "crosses_below",
    "highest",
    "lowest",
    "change",
    "count_above",
    "count_below",
    "count_up",
    "count_down",
]
Role = Literal["bull", "bear", "arbitrator"]
FOREIGN_KINDS: frozenset[EvidenceKind] = frozenset({"disclosure", "news", "paper", "memory"})
ClaimStatus = Literal["unchecked", "verified", "contradicted", "unverifiable"]


class Decision(StrEnum):
    """The only two outcomes of a debate."""

    GO = "GO"
    NO_GO = "NO_GO"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A strategy's rule that fired on one bar."""

    signal_id: str
    strategy: str
    style: Style
    symbol: str
    side: Literal["buy"]  # only long entries are debated
    strength: float  # [-1, 1]
    bar_at: datetime  # UTC, opening time of the bar on which the rule crossed
    as_of: datetime  # UTC, when the decision is taken
    features: Mapping[str, float]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One checkable fact, as it was known at `as_of`."""

    evidence_id: str  # E1, E2, …
    symbol: str
    kind: EvidenceKind
    name: str  # "rsi_14", "close"
    value: float | None  # None: looked for and missing
    unit: str  # "USD", "index_0_100", "fraction", "count", "R"
    as_of: datetime  # UTC
    known_at: datetime  # UTC; never later than the decision
    source: str  # "strategies.indicators.momentum", "ledger"
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """Who is traded; fixed by code before anyone speaks.

    exchange  empty where it is not known
    """

    symbol: str
    name: str
    exchange: str
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An entry that a signal asks for, with the levels that code derives from the data.

    entry_price  USD per share expected to be paid at the next open, slippage included
    stop_price   USD per share, entry - multiple × ATR, rounded down to a tick
    fired        False when a person asked for a debate although no signal fired
    """

    signal: Signal
    instrument: Instrument
    entry_price: float
    stop_price: float
    fired: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A sentence that can be checked: evidence `field`, `operator`, `quoted_value`.

    evidence_ids  the fact itself first; for a comparison with another fact, that one second;
                  for a crossing: now, before, and where the line moves too: line now, line before
    upper_value   the upper end of `between`; the line of a count where no second fact is one
    when          the past it speaks of: a session (2026-03-02), a period (2026-01-02..2026-03-02),
                  `since 2026-01-02` or `last 20` (sessions up to now); None: the decision's own bar
    """

    text: str
    evidence_ids: tuple[str, ...]
    field: str
    operator: Operator
    quoted_value: float
    unit: str
    upper_value: float | None = None
    when: str | None = None
    status: ClaimStatus = "unchecked"
    detail: str = ""  # why the checker came to this status


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """Bull's case for the trade."""

    stance: Literal["bull"]
    round: int  # 0 opens, 1… answer the bear
    thesis: str
    claims: tuple[Claim, ...]
    entry_price: float
    stop_price: float
    target_price: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuttal:
    """Bear's attack on the weakest claim that Bull made."""

    stance: Literal["bear"]
    round: int
    weakest_claim: str  # Bull's words
    counter: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCheck:
    """One line of the arbitrator's table."""

    code: FlagCode
    rule: str
    value: str
    limit: str
    passed: bool
    evidence_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskFlag:
    """A reason against the trade."""

    code: FlagCode
    detail: str
    evidence_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the arbitrator decided; a GO is still only a proposal to the risk gate."""

    verdict_id: str
    symbol: str
    decision: Decision
    confidence: float  # [0, 1]
    entry_price: float | None
    stop_price: float | None
    target_price: float | None  # None: no target, only a stop (debate off)
    reward_risk_ratio: float | None
    expected_value_r: float | None  # in units of the risk taken
    rationale: str
    flags: tuple[RiskFlag, ...]
    rules: tuple[RuleCheck, ...]
    decided_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCall:
    """One call to a model: what was asked (by content hash) and what came back (by hash).

    reply_sha256  of the kind of outcome and its words, reply or failure
    """

    role: Role
    round: int
    model: str
    prompt: str  # name and version, "bull 1"
    call_id: str
    reply_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """What the arbitrator's model said; only a part of the verdict, which is a table of rules.

    decisive  numbers of the verified claims that it rests on: B1, R2
    """

    decision: Decision
    confidence: float
    decisive: tuple[str, ...]
    rationale: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRecord:
    """How one side's claims fared. weight: share of its checked claims that are true, [0, 1]."""

    role: Role
    verified: int
    contradicted: int
    unverifiable: int
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hearing:
    """The debate held again with foreign texts and the other side's words in it.

    It can take a GO away, never give one.
    """

    arguments: tuple[Argument, ...]
    rebuttals: tuple[Rebuttal, ...]
    verdict: Verdict
    weighing: Weighing | None
    calls: tuple[ChatCall, ...]


Answer = Literal["approved", "rejected", "expired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedApproval:
    """A GO that waits for a person; prices in USD per share."""

    cycle_id: str
    as_of: datetime
    symbol: str
    strategy: str
    entry_price: float | None
    stop_price: float | None
    target_price: float | None
    reward_risk_ratio: float | None
    rationale: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Debate:
    """A debate that was held: who spoke, what was said in order, and the verdict.

    calls     calls to models, in order; none when rules debated
    looked_up questions to the past that were asked -> answers, None for none
    hearing   held after a GO when the evidence holds foreign texts
    fallback  why rules debated in place of models; empty when they did not
    approval  what a person answered, where a person was asked
    """

    debater: str  # "rules", "off", a model's name
    arguments: tuple[Argument, ...]
    rebuttals: tuple[Rebuttal, ...]
    verdict: Verdict
    weighing: Weighing | None = None
    sides: tuple[SideRecord, ...] = ()
    calls: tuple[ChatCall, ...] = ()
    hearing: Hearing | None = None
    fallback: str = ""
    approval: Answer | None = None
    looked_up: Mapping[str, float | None] = field(default_factory=dict)


def debater_words(debater: str) -> str:
    """Who debates, in words that nobody takes for a model where there is none."""
    return {"rules": "rules, no model", "off": "nobody, the debate is off"}.get(debater, debater)


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What lies behind an account at a decision: its guards, its recent past, its activity.

    Ages count sessions up to the one in which the entry would be filled: 0 is that session itself,
    1 the one before.

    blocks             controls in force, a blocked account, a book that was not reconciled
    symbol_stop_age    of this symbol's newest stop; None: none that could matter
    stop_ages          of every recent stop, newest first
    drawdown           the deepest fall of equity since its highest, a fraction, without transfers
    drawdown_age       of the session that reached it; None while there was no fall
    positions          symbols held or being bought
    opens_position     whether this symbol is not among them
    entries_in_minute  entries sent in the last minute
    entry_value        USD of the entries of this session
    session_equity     USD at the opening of this session
    open_orders        orders that wait at the broker, legs included
    quote_seconds      age of the newest price; None where the market is closed or simulated
    clock_skew_seconds how far the broker's clock is from ours; None where time is simulated
    """

    blocks: tuple[RiskFlag, ...] = ()
    symbol_stop_age: int | None = None
    stop_ages: tuple[int, ...] = ()
    drawdown: float = 0.0
    drawdown_age: int | None = None
    positions: int = 0
    opens_position: bool = True
    entries_in_minute: int = 0
    entry_value: Decimal = Decimal(0)
    session_equity: Decimal = Decimal(0)
    open_orders: int = 0
    quote_seconds: float | None = None
    clock_skew_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskInputs:
    """Everything the risk gate looks at besides the verdict, computed from data and account.

    close, atr        USD per share at the decision bar
    open_buy_value    USD of buys already waiting, in all and in this symbol
    """

    symbol: str
    as_of: datetime
    bar_at: datetime
    expected_bar_at: datetime  # the bar that should be the newest now
    close: float
    atr: float | None
    atr_multiple: float
    portfolio: Portfolio
    open_buy_value: Decimal
    open_buy_value_symbol: Decimal
    targets: tuple[float, ...]  # USD per share; the levels that a verdict may aim at
    circumstances: Circumstances = Circumstances()


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskDecision:
    """The gate's answer: how many shares, or why none."""

    approved: bool
    reasons: tuple[RiskFlag, ...]
    quantity: Decimal  # whole shares, or parts of one to nine decimals
    weight_after: float  # of equity in this symbol, worst case
    limits: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleRecord:
    """One decision, GO or NO_GO, with all that is needed to take it again.

    open_buy_value_seen  USD of buys waiting in this symbol when the evidence was gathered
    """

    cycle_id: str
    as_of: datetime
    symbol: str
    strategy: str
    source: str
    data_hashes: Mapping[str, str]  # symbol -> SHA-256 of the bars known at as_of
    candidate: Candidate
    open_buy_value_seen: Decimal
    evidence: tuple[Evidence, ...]
    debate: Debate
    risk_inputs: RiskInputs
    risk: RiskDecision
    intent: OrderIntent | None


class EvidenceIndex:
    """Evidence found by number or by name; both are unique within one decision.

    A fact of a foreign kind is found by its number only: whatever a stranger calls it, no rule that
    looks for a name ever meets it.
    """

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        self.items = tuple(evidence)
        self._by_id = {fact.evidence_id: fact for fact in self.items}
        names = {fact.name for fact in self.items}
        self._by_name = {fact.name: fact for fact in self.items if fact.kind not in FOREIGN_KINDS}
        self._by_prefix: dict[str, tuple[Evidence, ...]] = {}
        if not len(self._by_id) == len(names) == len(self.items):
            raise ValueError("evidence ids and names must be unique within a decision")

    def by_id(self, evidence_id: str) -> Evidence | None:
        """The fact with this number, or None."""
        return self._by_id.get(evidence_id)

    def named(self, name: str) -> Evidence | None:
        """The fact with this name, or None."""
        return self._by_name.get(name)

    def value(self, name: str) -> float | None:
        """The value of the fact with this name; None when it is missing."""
        fact = self._by_name.get(name)
        return fact.value if fact else None

    def starting(self, prefix: str) -> tuple[Evidence, ...]:
        """Facts whose name starts with `prefix`, in the order of their numbers."""
        if prefix not in self._by_prefix:
            self._by_prefix[prefix] = tuple(
                fact for name, fact in self._by_name.items() if name.startswith(prefix)
            )
        return self._by_prefix[prefix]
