"""How a speaker is asked: one question, one repair, and a flag for what cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from langgraph.runtime import Runtime

from agents.debate.claims.checker import check_claims
from agents.debate.identity import other_issuers
from agents.debate.prompting import repair_prompt, write_prompt
from agents.debate.schemas import InvalidReplyError
from agents.debate.state import DebateContext, DebateState, DebateUpdate
from trader.core.canonical import from_primitive, to_object
from trader.core.decision import Argument, ChatCall, Claim, Rebuttal, RiskFlag, Role
from trader.core.errors import (
    BudgetError,
    CutReplyError,
    EndpointError,
    RefusedReplyError,
    TimedOutError,
)
from trader.core.flags import FlagCode
from trader.core.ports import ChatModel, ChatRequest, DebateEvent

Said = TypeVar("Said")
FLAGS: tuple[tuple[type[Exception], FlagCode], ...] = (
    (TimedOutError, FlagCode.TIMED_OUT),
    (RefusedReplyError, FlagCode.REFUSED_REPLY),
    (CutReplyError, FlagCode.TRUNCATED_REPLY),
    (EndpointError, FlagCode.ENDPOINT_FAILURE),
    (BudgetError, FlagCode.BUDGET_EXHAUSTED),
)


class OtherIssuerError(InvalidReplyError):
    """A reply that speaks of another issuer than the one that is debated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard(Generic[Said]):
    """What came of a question: what was said or why nothing can be used, and the calls it took."""

    said: Said | None
    failure: RiskFlag | None
    calls: tuple[ChatCall, ...]


def transcript(state: DebateState) -> tuple[tuple[Argument, ...], tuple[Rebuttal, ...]]:
    """Everything said so far, with the status of every claim."""
    return (
        tuple(from_primitive(Argument, said) for said in state["arguments"]),
        tuple(from_primitive(Rebuttal, said) for said in state["rebuttals"]),
    )


def request(role: Role, state: DebateState, context: DebateContext) -> ChatRequest:
    """The question to one speaker: the candidate, its evidence and the transcript."""
    arguments, rebuttals = transcript(state)
    return ChatRequest(
        role=role,
        round=state["round"],
        candidate=context.candidate,
        evidence=context.evidence,
        arguments=arguments,
        rebuttals=rebuttals,
        prompt=lambda: write_prompt(
            role,
            state["round"],
            context,
            arguments,
            rebuttals,
            hearing=state["facts"] is not None,
        ),
        subject=context.cycle_id,
        deadline=context.deadline,
    )


def ask(chat: ChatModel, asked: ChatRequest, parse: Callable[[str], Said]) -> Heard[Said]:
    """One question and, after a reply that cannot be used, one more that says what was wrong.

    parse  raises InvalidReplyError for a reply that is not what was asked for
    """
    calls: list[ChatCall] = []

    def complete(question: ChatRequest) -> str:
        reply = chat.complete(question)
        if reply.call is not None:
            calls.append(reply.call)
        return reply.text

    def heard(said: Said | None, failure: RiskFlag | None = None) -> Heard[Said]:
        return Heard(said=said, failure=failure, calls=tuple(calls))

    try:
        text = complete(asked)
        try:
            return heard(parse(text))
        except InvalidReplyError as exc:
            problem = str(exc)
        again = replace(asked, prompt=lambda: repair_prompt(asked.prompt(), text, problem))
        return heard(parse(complete(again)))
    except InvalidReplyError as exc:
        code = FlagCode.OTHER_ISSUER if isinstance(exc, OtherIssuerError) else None
        return heard(None, _flag(asked.role, code or FlagCode.INVALID_REPLY, exc))
    except (EndpointError, BudgetError) as exc:
        if exc.call is not None:
            calls.append(exc.call)
        code = next(code for kind, code in FLAGS if isinstance(exc, kind))
        return heard(None, _flag(asked.role, code, exc))


def _flag(role: Role, code: FlagCode, error: Exception) -> RiskFlag:
    """What an unusable reply leaves behind; it turns the verdict into NO_GO."""
    return RiskFlag(code=code, detail=f"{role}: {error}")


def checked(
    claims: Sequence[Claim], state: DebateState, context: DebateContext
) -> tuple[Claim, ...]:
    """A side's claims with their status; facts of strangers may be cited in the hearing only."""
    hearing = state["facts"] is not None
    return check_claims(claims, context.evidence, context.history, hearing=hearing)


def require_identity(context: DebateContext, *texts: str) -> None:
    """Raise OtherIssuerError when a text speaks of another issuer than the one debated."""
    for text in texts:
        others = other_issuers(text, context.candidate.instrument)
        if others:
            own = context.candidate.instrument
            raise OtherIssuerError(
                f"this debate is about {own.name} ({own.symbol}) only, "
                f"the reply speaks of {', '.join(others)}"
            )


def tell(
    runtime: Runtime[DebateContext], role: Role | None, turn: int, said: object = None
) -> None:
    """Tell whoever watches what happens now."""
    listen = runtime.context.listener or runtime.stream_writer
    listen(
        DebateEvent(
            cycle_id=runtime.context.cycle_id,
            role=role,
            round=turn,
            said=said,  # type: ignore[arg-type]  # one of the kinds that DebateEvent names
        )
    )


def after(state: DebateState, context: DebateContext, heard: Heard[Said]) -> DebateUpdate:
    """What every question leaves behind: its calls, the past it asked for, and its failure."""
    found: DebateUpdate = {
        "calls": [*state["calls"], *(to_object(call) for call in heard.calls)],
        "looked_up": {**state["looked_up"], **context.history.answers},
    }
    if heard.failure is not None:
        found["failures"] = [*state["failures"], to_object(heard.failure)]
    return found
