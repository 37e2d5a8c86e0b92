"""What both debaters are asked, and what becomes of an answer that cannot be used."""

from __future__ import annotations

from typing import Literal

from agents.debate.prompting import write_prompt
from agents.debate.schemas import InvalidReplyError
from agents.debate.state import DebateContext, DebateState
from trader.core.canonical import Primitive, from_primitive, to_object
from trader.core.decision import Argument, FlagCode, Rebuttal, RiskFlag
from trader.core.errors import EndpointError
from trader.core.ports import ChatRequest


def transcript(state: DebateState) -> tuple[tuple[Argument, ...], tuple[Rebuttal, ...]]:
    """Everything said so far, with the status of every claim."""
    return (
        tuple(from_primitive(Argument, said) for said in state["arguments"]),
        tuple(from_primitive(Rebuttal, said) for said in state["rebuttals"]),
    )


def request(
    role: Literal["bull", "bear"], state: DebateState, context: DebateContext
) -> ChatRequest:
    """The question to one side: the candidate, its evidence and the transcript."""
    arguments, rebuttals = transcript(state)
    return ChatRequest(
        role=role,
        round=state["round"],
        candidate=context.candidate,
        evidence=context.evidence,
        arguments=arguments,
        rebuttals=rebuttals,
        prompt=lambda: write_prompt(role, state["round"], context, arguments, rebuttals),
        subject=context.cycle_id,
    )


def failure(role: str, error: InvalidReplyError | EndpointError) -> dict[str, Primitive]:
    """The flag that an unusable reply leaves behind; it turns the verdict into NO_GO."""
    code = FlagCode.ENDPOINT_FAILURE if isinstance(error, EndpointError) else FlagCode.INVALID_REPLY
    return to_object(RiskFlag(code=code, detail=f"{role}: {error}"))
