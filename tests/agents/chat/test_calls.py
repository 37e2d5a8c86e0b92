"""What names a call, and how large it may be."""

from __future__ import annotations

from dataclasses import replace

from agents.chat.calls import prompt_tokens
from trader.core.ports import Message, Prompt
from trader.text.tokens import estimated_tokens

QUESTION = Prompt(
    version="bull 1",
    messages=(Message(role="system", content="Be brief. " * 20),),
    schema_name="bull",
    schema={"type": "object"},
)


def test_every_message_counts_towards_the_size_of_a_call():
    more = Message(role="user", content="E1 close 200.14 " * 100)
    longer = replace(QUESTION, messages=(*QUESTION.messages, more))
    grown = prompt_tokens(longer) - prompt_tokens(QUESTION)
    assert grown >= estimated_tokens(more.content) - 1
    assert prompt_tokens(QUESTION) >= estimated_tokens(QUESTION.messages[0].content)
