"""Model calls recorded as they are made, and answered from the recordings without a model."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

from agents.chat.calls import (
    REPLY,
    ModelSpec,
    Outcome,
    asked_json,
    text_sha256,
    usage_of,
)
from agents.chat.store import ChatStore
from trader.core.canonical import from_primitive
from trader.core.decision import ChatCall, Role
from trader.core.errors import (
    BudgetError,
    CutReplyError,
    EndpointError,
    RecordingError,
    RefusedReplyError,
    StateError,
    TimedOutError,
)
from trader.core.ports import ChatModel, ChatReply, ChatRequest, Prompt, Spend, Usage

FAILURES: dict[str, type[EndpointError | BudgetError]] = {
    kind.__name__: kind
    for kind in (EndpointError, TimedOutError, RefusedReplyError, CutReplyError, BudgetError)
}


class Meter:
    """What the calls of a command have used, made now or replayed from a recording."""

    def __init__(self) -> None:
        self._lock, self._spend = Lock(), Spend()

    @property
    def spend(self) -> Spend:
        """The sum so far."""
        return self._spend

    def add(self, usage: Usage) -> None:
        """Count one call more."""
        with self._lock:
            now = self._spend
            self._spend = Spend(
                calls=now.calls + 1,
                input_tokens=now.input_tokens + usage.input_tokens,
                output_tokens=now.output_tokens + usage.output_tokens,
                estimated=now.estimated + usage.estimated,
                cost=now.cost + usage.cost,
            )


class RecordingChat:
    """A `ChatModel` that asks `inner` and keeps what came of it: the reply, or the failure."""

    def __init__(
        self, inner: ChatModel, spec: ModelSpec, store: ChatStore, *, meter: Meter | None = None
    ) -> None:
        self._inner, self._spec, self._store = inner, spec, store
        self._meter = meter or Meter()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._spec.model

    def complete(self, request: ChatRequest) -> ChatReply:
        """The inner model's reply with its `call`; its errors are recorded and raised again."""
        prompt = request.prompt()
        try:
            reply = self._inner.complete(replace(request, prompt=lambda: prompt))
        except (EndpointError, BudgetError) as error:
            kind = next(cls.__name__ for cls in type(error).__mro__ if cls.__name__ in FAILURES)
            outcome = Outcome(kind=kind, text=str(error), usage=usage_of(error))
            error.call = self._keep(request, prompt, outcome)
            raise
        outcome = Outcome(kind=REPLY, text=reply.text, usage=reply.usage)
        return replace(reply, call=self._keep(request, prompt, outcome))

    def _keep(self, request: ChatRequest, prompt: Prompt, outcome: Outcome) -> ChatCall:
        asked = asked_json(self._spec, prompt)
        call = _call(self._spec, request, prompt, text_sha256(asked), outcome)
        self._store.record(
            call, outcome, asked=asked, base_url=self._spec.base_url, subject=request.subject
        )
        if outcome.usage is not None:
            self._meter.add(outcome.usage)
        return call


class RecordedChat:
    """A `ChatModel` that only repeats what was recorded, failures included: no network, no key.

    chosen  the calls of one decision, which must be answered exactly as they were then; without
            them the newest outcome answers that the same decision had, else that any had
    meter   counts what the recorded calls used when they were made
    """

    def __init__(
        self,
        spec: ModelSpec,
        store: ChatStore,
        chosen: Sequence[ChatCall] = (),
        *,
        meter: Meter | None = None,
    ) -> None:
        self._spec, self._store = spec, store
        self._meter = meter or Meter()
        self._calls = tuple(chosen)
        self._answers: defaultdict[str, list[str]] = defaultdict(list)
        for call in chosen:
            self._answers[call.call_id].append(call.reply_sha256)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._spec.model

    def complete(self, request: ChatRequest) -> ChatReply:
        """The recorded reply; a recorded failure is raised again, with the same words.

        Raises RecordingError when this call was not recorded.
        """
        prompt = request.prompt()
        asked = asked_json(self._spec, prompt)
        call_id = text_sha256(asked)
        outcome = self._find(call_id, request.subject)
        if outcome is None:
            missing = self._missing(request, prompt, asked, call_id)
            remedy = "" if self._calls else "; run it once with debate.recording: write"
            raise RecordingError(missing + remedy)
        if outcome.usage is not None:
            self._meter.add(outcome.usage)
        call = _call(self._spec, request, prompt, call_id, outcome)
        if outcome.kind == REPLY:
            return ChatReply(text=outcome.text, call=call, usage=outcome.usage)
        if outcome.kind not in FAILURES:
            raise StateError(
                f"call {call_id[:12]} in the recordings {self._store.path} ended in "
                f"{outcome.kind!r}, which this program does not know"
            )
        raise FAILURES[outcome.kind](outcome.text, call=call)

    def _find(self, call_id: str, subject: str) -> Outcome | None:
        if not self._calls:
            return self._store.outcome(call_id, subject=subject)
        answers = self._answers[call_id]
        if not answers:
            return None
        # asked twice in one decision, a model may have answered twice: in that order
        return self._store.outcome(call_id, answers.pop(0) if len(answers) > 1 else answers[0])

    def _missing(self, request: ChatRequest, prompt: Prompt, asked: str, call_id: str) -> str:
        role, turn, subject = request.role, request.round, request.subject
        missing = (
            f"no recorded call {call_id[:12]} of the {role}, round {turn}, model "
            f"{self._spec.model}, prompt {prompt.version}, for {subject}"
        )
        alike = [call for call in self._calls if (call.role, call.round) == (role, turn)]
        if self._calls and not alike:
            return f"{missing}: the record of this decision holds none of that role and round"
        found = (subject, alike[0].call_id) if alike else self._store.nearest(role, turn, subject)
        if found is None:
            return f"{missing}: {self._store.path} holds none of that role and round"
        recorded = self._store.asked(found[1])
        if recorded is None or recorded == asked:
            return f"{missing}: {self._store.path} does not hold what was answered then"
        about = "" if found[0] == subject else f" for {found[0]}"
        return f"{missing}: recorded{about} {_differences(recorded, asked)}"


def recorded_spec(store: ChatStore, calls: Sequence[ChatCall], role: Role) -> ModelSpec | None:
    """Endpoint, model and parameters that a role had in these calls; None where it made none.

    A decision is replayed with those of its record, whatever the configuration says now.
    """
    for call in calls:
        if call.role == role:
            asked = store.asked(call.call_id)
            if asked is None:
                raise RecordingError(
                    f"no recorded call {call.call_id[:12]} of the {role}, round {call.round}, "
                    f"model {call.model}, prompt {call.prompt} in {store.path}"
                )
            spec = json.loads(asked)["spec"]
            return from_primitive(ModelSpec, {**spec, "context_tokens": None})
    return None


def _call(
    spec: ModelSpec, request: ChatRequest, prompt: Prompt, call_id: str, outcome: Outcome
) -> ChatCall:
    return ChatCall(
        role=request.role,
        round=request.round,
        model=spec.model,
        prompt=prompt.version,
        call_id=call_id,
        reply_sha256=outcome.sha256,
    )


def _differences(recorded: str, asked: str) -> str:
    """In words, in which settings two calls differ; settings before contents."""
    then, now = json.loads(recorded), json.loads(asked)
    words = [
        f"with {name} {then['spec'].get(name)}, this is {value}"
        for name, value in now["spec"].items()
        if then["spec"].get(name) != value
    ]
    version, newer = then["prompt"]["version"], now["prompt"]["version"]
    if version != newer:
        words.insert(0, f"with prompt {version}, this is {newer}")
    if words:
        return "; ".join(words)
    if then["prompt"]["schema"] != now["prompt"]["schema"]:
        return "with another schema of the reply"
    return "with other messages: the evidence or what was said before is not the same"
