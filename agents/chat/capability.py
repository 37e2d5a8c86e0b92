"""What an endpoint can do, found out by asking and remembered: the capability ladder."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal
from urllib.parse import urlsplit

from agents.chat.calls import ModelSpec
from agents.chat.endpoint import OPENAI_HOST


class Step(StrEnum):
    """How the shape of a reply is asked for, best first."""

    JSON_SCHEMA = "json_schema"
    OBJECT_WITH_SCHEMA = "json_object with schema"  # llama-cpp-python
    JSON_OBJECT = "json_object"  # the schema stands in the prompt
    TEXT = "text"  # the same, and nothing holds the model to it


LADDER: dict[Literal["chat", "responses"], tuple[Step, ...]] = {
    "chat": tuple(Step),
    "responses": (Step.JSON_SCHEMA, Step.JSON_OBJECT, Step.TEXT),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of one model on one endpoint.

    proven    the step has worked: an error 500 is an outage from now on
    left_out  parameters that it refuses
    limit     what it calls the longest reply
    """

    step: Step
    proven: bool = False
    left_out: frozenset[str] = frozenset()
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"


class Capabilities:
    """Everything known of every endpoint, shared by all speakers and threads of a process."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], Known] = {}
        self._lock = threading.Lock()

    def of(self, spec: ModelSpec) -> Known:
        """What is known so far; the top of the ladder for a stranger."""
        with self._lock:
            found = self._known.get(_name(spec))
        if found is not None:
            return found
        # OpenAI's newer models refuse the old name; servers of one's own may not know the new one
        ours = urlsplit(spec.base_url).hostname == OPENAI_HOST
        return Known(
            step=LADDER[spec.api][0], limit="max_completion_tokens" if ours else "max_tokens"
        )

    def learn(self, spec: ModelSpec, known: Known) -> None:
        """Remember for the rest of the process."""
        with self._lock:
            self._known[_name(spec)] = known


def step_below(spec: ModelSpec, step: Step) -> Step | None:
    """The next step down, or None at the foot of the ladder."""
    ladder = LADDER[spec.api]
    below = ladder.index(step) + 1
    return ladder[below] if below < len(ladder) else None


def without(known: Known, parameter: str, sent: Mapping[str, Any]) -> Known | None:
    """What is known once a parameter was refused; None where it was not sent or must not go.

    A call without an output limit could cost anything, so the limit gets its other name instead.
    """
    if parameter not in sent:
        return None
    if parameter in ("temperature", "seed"):
        return replace(known, left_out=known.left_out | {parameter})
    if parameter == known.limit == "max_tokens":
        return replace(known, limit="max_completion_tokens")
    return None


def _name(spec: ModelSpec) -> tuple[str, str, str]:
    return spec.base_url, spec.model, spec.api
