"""Requests to chat models, and a model that says what it was told to say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal

from agents.chat.calls import ModelSpec
from tests.agents.facts import candidate, evidence
from trader.core.decision import EvidenceIndex, Role
from trader.core.errors import BudgetError, EndpointError
from trader.core.ports import ChatReply, ChatRequest, Message, Prompt, Usage

SCHEMA = {
    "type": "object",
    "properties": {"thesis": {"type": "string"}, "entry_price": {"type": "number"}},
    "required": ["thesis", "entry_price"],
    "additionalProperties": False,
}
PROMPT = Prompt(
    version="bull 1",
    messages=(
        Message(role="system", content="You are the bull."),
        Message(role="user", content="E1 close 100 USD"),
    ),
    schema_name="argument",
    schema=SCHEMA,
)
SPEC = ModelSpec(role="bull", base_url="http://127.0.0.1:8080/v1", model="small")


def usage(input_tokens: int, output_tokens: int, *, cost: str = "0") -> Usage:
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        estimated=False,
        cost=Decimal(cost),
    )


def asks(
    prompt: Prompt | Callable[[], Prompt] = PROMPT,
    *,
    role: Role = "bull",
    turn: int = 0,
    subject: str = "run-AAPL-1",
) -> ChatRequest:
    return ChatRequest(
        role=role,
        round=turn,
        candidate=candidate(),
        evidence=EvidenceIndex(evidence()),
        arguments=(),
        rebuttals=(),
        prompt=(lambda: prompt) if isinstance(prompt, Prompt) else prompt,
        subject=subject,
    )


class Scripted:
    """A model that gives these replies and failures in order; a failure is raised."""

    name = "scripted"

    def __init__(self, *script: ChatReply | EndpointError | BudgetError) -> None:
        self._script: Iterable[ChatReply | EndpointError | BudgetError] = iter(script)
        self.asked: list[Prompt] = []

    def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request.prompt())
        said = next(self._script)
        if isinstance(said, Exception):
            raise said
        return said
