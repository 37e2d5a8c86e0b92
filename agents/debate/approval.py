"""A person's word before a GO becomes an order: asked with LangGraph's interrupt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from agents.debate.state import DebateContext, DebateState, DebateUpdate, Record
from trader.core.decision import Answer

ANSWERS: tuple[Answer, ...] = ("approved", "rejected", "expired")


def approval(state: DebateState, *, runtime: Runtime[DebateContext]) -> DebateUpdate:
    """Stop until a person has answered. The node runs again when it goes on, so it does no more."""
    verdict = approvable(state)
    answer = interrupt({"cycle_id": runtime.context.cycle_id, "verdict_id": verdict["verdict_id"]})
    if answer not in ANSWERS:
        raise ValueError(f"{answer!r} is no answer to a request for approval")
    return {"approval": answer}


def approvable(state: Mapping[str, Any]) -> Record:
    """The verdict that would become an order: the one of the debate over facts."""
    verdict: Record = (state["facts"] or state)["verdict"]
    return verdict
