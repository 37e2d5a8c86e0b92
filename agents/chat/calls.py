"""One call to a model: where it goes, with which parameters, and the hash that names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trader.core.canonical import sha256_of
from trader.core.decision import Role
from trader.core.ports import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """One speaker's endpoint, model and parameters; never a key.

    base_url        with its path, as in http://127.0.0.1:8080/v1
    context_tokens  window of the model, None when unknown
    """

    role: Role
    base_url: str
    model: str
    api: Literal["chat", "responses"] = "chat"
    temperature: float | None = 0.0
    seed: int | None = 7
    max_output_tokens: int = 1_200
    context_tokens: int | None = None


def call_id(spec: ModelSpec, prompt: Prompt) -> str:
    """SHA-256 of everything that a reply depends on.

    Endpoint, model, parameters, prompt version, schema and messages: one of them changed is
    another call.
    """
    return sha256_of([spec, prompt])
