"""One call to a model: where it goes, what is asked, the hash that names it, and what it used."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Literal

from trader.core.canonical import to_object, to_primitive
from trader.core.decision import Role
from trader.core.errors import BudgetError, EndpointError
from trader.core.ports import Prompt, Usage
from trader.text.tokens import estimated_tokens

REPLY = "reply"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """One speaker's endpoint, model and parameters; never a key.

    base_url        with its path, as in http://127.0.0.1:8080/v1
    context_tokens  window of the model, None when unknown; it is not sent and names no call
    """

    role: Role
    base_url: str
    model: str
    api: Literal["chat", "responses"] = "chat"
    temperature: float | None = 0.0
    seed: int | None = 7
    max_output_tokens: int = 1_200
    context_tokens: int | None = None


def asked_json(spec: ModelSpec, prompt: Prompt) -> str:
    """Everything that a reply depends on, as the one JSON text of it.

    Keys stand in the order of the fields and are not sorted: models write the properties of a
    schema in its order, so another order is another question.
    """
    parameters = to_object(spec)
    del parameters["context_tokens"]
    asked = {"spec": parameters, "prompt": to_primitive(prompt)}
    return json.dumps(asked, separators=(",", ":"), allow_nan=False)


def call_id(spec: ModelSpec, prompt: Prompt) -> str:
    """SHA-256 of `asked_json`.

    Endpoint, model, parameters, prompt version, schema and messages: one of them changed is
    another call.
    """
    return text_sha256(asked_json(spec, prompt))


def text_sha256(text: str) -> str:
    """SHA-256 of a text; half a surrogate pair, which a model may send, counts as it is."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def prompt_tokens(prompt: Prompt) -> int:
    """An upper estimate of what a prompt takes, its schema included."""
    words = [message.content for message in prompt.messages]
    return estimated_tokens("\n".join([*words, json.dumps(to_primitive(prompt.schema))]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a call: a reply's text, or the words of a failure.

    kind   "reply", or the name of the error's class
    usage  None where nobody counted
    """

    kind: str
    text: str
    usage: Usage | None

    @property
    def sha256(self) -> str:
        """SHA-256 of kind and text, so that no reply passes for a failure."""
        return text_sha256(f"{self.kind}\n{self.text}")


def usage_of(error: EndpointError | BudgetError) -> Usage | None:
    """What a failed call used, where whoever raised the error knew."""
    found = vars(error).get("usage")
    return found if isinstance(found, Usage) else None


def note_usage(error: EndpointError | BudgetError, usage: Usage | None) -> None:
    """Let the error say what the call used."""
    vars(error)["usage"] = usage
