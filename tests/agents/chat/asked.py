"""What the tests of the chat adapter ask, and whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents.chat.calls import ModelSpec
from agents.chat.capability import Capabilities
from agents.chat.openai_chat import OpenAIChat
from tests.agents.facts import candidate, evidence
from trader.core.decision import EvidenceIndex
from trader.core.ports import ChatRequest, Message, Prompt

KEY = "sk-canary-3141592653"
SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
PROMPT = Prompt(
    version="probe 1",
    messages=(
        Message(role="system", content="You argue from evidence."),
        Message(role="user", content="E1 close 100.00 USD. Is it so?"),
    ),
    schema_name="probe",
    schema=SCHEMA,
)


def request(prompt: Prompt = PROMPT, deadline: float | None = None) -> ChatRequest:
    return ChatRequest(
        role="bull",
        round=0,
        candidate=candidate(),
        evidence=EvidenceIndex(evidence()),
        arguments=(),
        rebuttals=(),
        prompt=lambda: prompt,
        subject="C-1",
        deadline=deadline,
    )


class Sleeper:
    """A clock that stands still but for the waits that it is asked for."""

    def __init__(self) -> None:
        self.time, self.waits = 0.0, []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds

    def now(self) -> float:
        return self.time


def chat(
    base_url: str,
    *,
    seconds: float = 30.0,
    retries: int = 0,
    key: str = KEY,
    sleeper: Sleeper | None = None,
    capabilities: Capabilities | None = None,
    transport: Any = None,
    **spec: Any,
) -> OpenAIChat:
    clock: dict[str, Callable[..., Any]] = {}
    if sleeper is not None:
        clock = {"sleep": sleeper.sleep, "now": sleeper.now}
    return OpenAIChat(
        ModelSpec(**{"role": "bull", "base_url": base_url, "model": "test-model", **spec}),
        key=key,
        call_seconds=seconds,
        retries=retries,
        capabilities=capabilities or Capabilities(),
        transport=transport,
        **clock,
    )
