"""What travels through the debate graph: small, typed, JSON primitives only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypedDict

from langgraph.runtime import Runtime

from trader.core.canonical import Primitive
from trader.core.decision import Candidate, EvidenceIndex
from trader.core.ports import DebateListener, History

Record = dict[str, Primitive]


class DebateState(TypedDict):
    """The transcript so far.

    Evidence is not in it: it is given anew with each run, as `DebateContext`.

    subject    SHA-256 of what is debated: a stored state may only go on with the same
    failures   RiskFlags of replies that could not be used
    facts      the debate over facts alone, kept while the hearing is held; None before it
    foreign    whether texts of strangers are among the evidence
    looked_up  questions to the past -> answers; a resumed debate must not lose them
    approval   what a person answered; None where nobody was asked, or not yet
    """

    subject: str
    round: int
    arguments: list[Record]
    rebuttals: list[Record]
    failures: list[Record]
    calls: list[Record]
    weighing: Record | None
    verdict: Record | None
    facts: Record | None
    foreign: bool
    looked_up: dict[str, float | None]
    approval: str | None


class DebateUpdate(TypedDict, total=False):
    """What a node changed."""

    round: int
    arguments: list[Record]
    rebuttals: list[Record]
    failures: list[Record]
    calls: list[Record]
    weighing: Record | None
    verdict: Record | None
    facts: Record | None
    looked_up: dict[str, float | None]
    approval: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DebateContext:
    """What the debate is about; known to every node, stored by none.

    deadline    on the clock of `monotonic_seconds`; None: no hurry
    bear_first  the arbitrator's model reads the bear before the bull; only an audit asks for it
    listener    told what happens; None: LangGraph's stream mode `custom` is
    """

    cycle_id: str
    candidate: Candidate
    evidence: EvidenceIndex
    history: History
    deadline: float | None = None
    bear_first: bool = False
    listener: DebateListener | None = None


class Node(Protocol):
    """One speaker of the graph."""

    def __call__(self, state: DebateState, *, runtime: Runtime[DebateContext]) -> DebateUpdate:
        """Read the transcript, return only what changed."""


def empty_state(subject: str = "", *, foreign: bool = False) -> DebateState:
    """A debate in which nobody has spoken."""
    return DebateState(
        subject=subject,
        round=0,
        arguments=[],
        rebuttals=[],
        failures=[],
        calls=[],
        weighing=None,
        verdict=None,
        facts=None,
        foreign=foreign,
        looked_up={},
        approval=None,
    )
