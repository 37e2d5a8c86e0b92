"""From the end of the graph to the record of the debate: facts, hearing and a person's answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agents.debate.arbitrator import overrule
from agents.debate.claims.checker import side_record
from trader.core.canonical import from_primitive
from trader.core.decision import (
    Answer,
    Argument,
    ChatCall,
    Claim,
    Debate,
    Decision,
    Hearing,
    Rebuttal,
    Verdict,
    Weighing,
)
from trader.core.flags import FlagCode


def is_go(verdict: Any) -> bool:
    """Whether a verdict in the state of the graph is a GO."""
    return isinstance(verdict, dict) and verdict["decision"] == Decision.GO


def concluded(state: Mapping[str, Any], debater: str) -> Debate:
    """The record of a finished debate. The order's levels are those of the debate over facts."""
    facts = state["facts"] or state
    arguments, rebuttals = _said(facts)
    verdict = from_primitive(Verdict, facts["verdict"])
    heard = _hearing(state) if state["facts"] else None
    if heard is not None and heard.verdict.decision is Decision.NO_GO:
        verdict = overrule(
            verdict,
            FlagCode.FOREIGN_TEXT_AGAINST,
            "the same debate with the texts of strangers in it",
            f"NO_GO ({heard.verdict.flags[0].code})",
            "GO",
        )
    debate = Debate(
        debater=debater,
        arguments=arguments,
        rebuttals=rebuttals,
        verdict=verdict,
        weighing=_weighing(facts),
        sides=(
            side_record("bull", _claims(arguments)),
            side_record("bear", _claims(rebuttals)),
        ),
        calls=_calls(facts),
        hearing=heard,
        looked_up=state["looked_up"],
    )
    return debate if state["approval"] is None else answered(debate, state["approval"])


def answered(debate: Debate, answer: Answer) -> Debate:
    """The debate with a person's answer to its GO."""
    verdict = debate.verdict
    if answer == "rejected":
        verdict = overrule(
            verdict, FlagCode.NOT_APPROVED, "a person's answer", "rejected", "approved"
        )
    elif answer == "expired":
        verdict = overrule(
            verdict, FlagCode.APPROVAL_EXPIRED, "a person's answer", "none in time", "approved"
        )
    return replace(debate, verdict=verdict, approval=answer)


def _hearing(state: Mapping[str, Any]) -> Hearing:
    arguments, rebuttals = _said(state)
    return Hearing(
        arguments=arguments,
        rebuttals=rebuttals,
        verdict=from_primitive(Verdict, state["verdict"]),
        weighing=_weighing(state),
        calls=_calls(state),
    )


def _said(state: Mapping[str, Any]) -> tuple[tuple[Argument, ...], tuple[Rebuttal, ...]]:
    return (
        tuple(from_primitive(Argument, said) for said in state["arguments"]),
        tuple(from_primitive(Rebuttal, said) for said in state["rebuttals"]),
    )


def _weighing(state: Mapping[str, Any]) -> Weighing | None:
    found = state["weighing"]
    return None if found is None else from_primitive(Weighing, found)


def _calls(state: Mapping[str, Any]) -> tuple[ChatCall, ...]:
    return tuple(from_primitive(ChatCall, call) for call in state["calls"])


def _claims(said: tuple[Argument, ...] | tuple[Rebuttal, ...]) -> tuple[Claim, ...]:
    return tuple(claim for turn in said for claim in turn.claims)
