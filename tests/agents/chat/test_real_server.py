"""A real small model on a llama.cpp server: whatever it says is a valid reply or refused.

Set TRADER_LLAMA_SERVER to its address, as in http://127.0.0.1:8080/v1.
"""

from __future__ import annotations

import os

import pytest

from agents.chat.capability import Capabilities
from agents.chat.openai_chat import Wire, models_listed
from agents.debate.graph import DebateGraph
from agents.debate.rules import DebateLimits
from tests.agents.chat.asked import chat, request
from tests.agents.facts import NoPast, candidate, evidence
from trader.core.costs import Costs
from trader.core.decision import Decision
from trader.core.errors import EndpointError

SERVER = os.environ.get("TRADER_LLAMA_SERVER", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SERVER, reason="TRADER_LLAMA_SERVER names no server"),
]


def model() -> str:
    listed = models_listed(Wire(SERVER, "local"), 10.0)
    return next(iter(listed or {}), "any")


def test_a_reply_comes_with_its_tokens():
    try:
        reply = chat(SERVER, key="local", model=model(), max_output_tokens=64).complete(request())
    except EndpointError as exc:
        pytest.skip(f"the model did not manage: {exc}")
    assert reply.text.strip()
    assert reply.usage is not None
    assert 0 < reply.usage.output_tokens <= 64


def test_a_debate_ends_in_a_valid_verdict():
    shared, name = Capabilities(), model()
    bull, bear, arbitrator = (
        chat(
            SERVER,
            key="local",
            seconds=120.0,
            capabilities=shared,
            role=role,
            model=name,
            max_output_tokens=600,
        )
        for role in ("bull", "bear", "arbitrator")
    )
    debate = DebateGraph(
        bull=bull,
        bear=bear,
        arbitrator=arbitrator,
        limits=DebateLimits(),
        costs=Costs(),
        rounds=1,
        seconds=300.0,
    ).deliberate(candidate(), evidence(), "C-1", NoPast())
    verdict = debate.verdict
    assert verdict.decision in Decision
    assert verdict.decision is Decision.GO or verdict.flags
    assert 0 <= verdict.confidence <= 1
