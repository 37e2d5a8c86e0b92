"""A prompt as it is sent: the body of a request, for each step of the ladder."""

from __future__ import annotations

import json
from typing import Any

from agents.chat.calls import ModelSpec, prompt_tokens
from agents.chat.capability import Known, Step
from trader.core.ports import Message, Prompt
from trader.text.tokens import estimated_tokens

PATHS = {"chat": "/chat/completions", "responses": "/responses"}
SCHEMA_WORDS = (
    "Reply with one JSON object and nothing else, no fence and no words around it. "
    "It has every property of this JSON schema and no other:"
)
LONGEST_WORDS = 200  # characters of a stranger in a message of ours
MESSAGE_TOKENS = 8  # what a chat template puts around a message, at most
MOST_BYTES_PER_TOKEN = 7.0  # plain prose takes nearly 6 in o200k, tables of numbers 2.4


def messages_sent(prompt: Prompt, step: Step) -> tuple[Message, ...]:
    """The messages of a prompt at this step: where no one else tells the schema, they do.

    Lone surrogates, which no server can be sent, are replaced.
    """
    messages = tuple(Message(role=one.role, content=sound(one.content)) for one in prompt.messages)
    if step in (Step.JSON_SCHEMA, Step.OBJECT_WITH_SCHEMA):
        return messages
    words = f"{SCHEMA_WORDS}\n{_schema_text(prompt)}"
    if messages and messages[0].role == "system":
        return (
            Message(role="system", content=f"{messages[0].content.rstrip()}\n\n{words}"),
            *messages[1:],
        )
    return (Message(role="system", content=words), *messages)


def request_body(spec: ModelSpec, prompt: Prompt, step: Step, known: Known) -> dict[str, Any]:
    """The JSON body of one call; the same prompt, step and parameters give the same body."""
    messages = [{"role": one.role, "content": one.content} for one in messages_sent(prompt, step)]
    body: dict[str, Any] = {"model": spec.model}
    if spec.api == "responses":
        body |= {"input": messages, "max_output_tokens": spec.max_output_tokens, "store": False}
    else:
        body |= {"messages": messages, known.limit: spec.max_output_tokens}
        if spec.seed is not None:
            body["seed"] = spec.seed
    if spec.temperature is not None:
        body["temperature"] = spec.temperature
    shape = _shape(prompt, step, spec)
    if shape and spec.api == "responses":
        body["text"] = {"format": shape}
    elif shape:
        body["response_format"] = shape
    return {name: value for name, value in body.items() if name not in known.left_out}


def most_prompt_tokens(prompt: Prompt, step: Step) -> int:
    """Upper estimate of the tokens that the prompt takes, its schema included."""
    told = step not in (Step.JSON_SCHEMA, Step.OBJECT_WITH_SCHEMA)
    words = estimated_tokens(SCHEMA_WORDS) if told else 0
    return prompt_tokens(prompt) + words + MESSAGE_TOKENS * (len(prompt.messages) + 1)


def least_prompt_tokens(prompt: Prompt, step: Step) -> int:
    """Lower estimate: a server that counts fewer has not read the whole prompt."""
    size = sum(len(one.content.encode()) for one in messages_sent(prompt, step))
    return int(size / MOST_BYTES_PER_TOKEN)


def sound(text: str) -> str:
    """The text with lone surrogates replaced, so that it can be written and sent anywhere."""
    return text.encode("utf-8", "replace").decode()


def plain(text: str) -> str:
    """A stranger's words as one short printable line."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[:4_000]).split())
    return line if len(line) <= LONGEST_WORDS else f"{line[: LONGEST_WORDS - 1]}…"


def _shape(prompt: Prompt, step: Step, spec: ModelSpec) -> dict[str, Any] | None:
    schema = dict(prompt.schema)
    if step is Step.JSON_SCHEMA:
        named = {"name": prompt.schema_name, "strict": True, "schema": schema}
        if spec.api == "responses":
            return {"type": "json_schema", **named}
        return {"type": "json_schema", "json_schema": named}
    if step is Step.OBJECT_WITH_SCHEMA:
        return {"type": "json_object", "schema": schema}
    return {"type": "json_object"} if step is Step.JSON_OBJECT else None


def _schema_text(prompt: Prompt) -> str:
    return json.dumps(dict(prompt.schema), ensure_ascii=False, separators=(",", ":"))
