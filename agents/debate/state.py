"""What travels through the debate graph: small, typed, JSON primitives only."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Annotated, Protocol, TypedDict

from langgraph.runtime import Runtime

from trader.core.canonical import Primitive
from trader.core.decision import Candidate, EvidenceIndex
from trader.core.ports import History


class DebateState(TypedDict):
    """The transcript so far.

    Evidence is not in it: it is given anew with each run, as `DebateContext`.
    """

    round: int
    arguments: Annotated[list[dict[str, Primitive]], operator.add]
    rebuttals: Annotated[list[dict[str, Primitive]], operator.add]
    failures: Annotated[
        list[dict[str, Primitive]], operator.add
    ]  # RiskFlags of replies that could not be used
    verdict: dict[str, Primitive] | None


class DebateUpdate(TypedDict, total=False):
    """What a node changed."""

    round: int
    arguments: list[dict[str, Primitive]]
    rebuttals: list[dict[str, Primitive]]
    failures: list[dict[str, Primitive]]
    verdict: dict[str, Primitive]


@dataclass(frozen=True, slots=True, kw_only=True)
class DebateContext:
    """What the debate is about; known to every node, stored by none."""

    cycle_id: str
    candidate: Candidate
    evidence: EvidenceIndex
    history: History


class Node(Protocol):
    """One speaker of the graph."""

    def __call__(self, state: DebateState, *, runtime: Runtime[DebateContext]) -> DebateUpdate:
        """Read the transcript, return only what changed."""


def empty_state() -> DebateState:
    """A debate in which nobody has spoken."""
    return DebateState(round=0, arguments=[], rebuttals=[], failures=[], verdict=None)
