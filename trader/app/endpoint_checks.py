"""The doctor's look at the language models: who can be reached, and what each can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args
from urllib.parse import urlsplit

from trader.app.checking import Check
from trader.core.decision import Role
from trader.core.errors import ConfigError, CutReplyError, EndpointError, TraderError
from trader.core.ports import Message, Prompt

if TYPE_CHECKING:
    from agents.chat.calls import ModelSpec
    from agents.chat.capability import Known
    from trader.core.config import Config
    from trader.core.ports import ChatReply

LIST_SECONDS = 10.0
PROBE_TOKENS = 256  # a model that thinks aloud needs more than the answer takes
PROBE = Prompt(
    version="probe 1",
    messages=(
        Message(role="system", content="You answer with one JSON object."),
        Message(role="user", content='Set "ready" to true.'),
    ),
    schema_name="probe",
    schema={
        "type": "object",
        "properties": {"ready": {"type": "boolean"}},
        "required": ["ready"],
        "additionalProperties": False,
    },
)
NO_PRICE = Check(
    name="price of the models",
    status="warning",
    found="none is set: every call counts as 0 USD, and no budget in USD is ever spent",
    remedy="set models.usd_per_million_input and models.usd_per_million_output",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Endpoint:
    """One model on one server, with its key."""

    spec: ModelSpec
    key: str
    variable: str


def endpoint_checks(config: Config, environ: Mapping[str, str]) -> tuple[Check, ...]:
    """Checks of every distinct endpoint, where models debate or a model is named; never raises.

    Each is asked for its models and for one tiny reply.
    """
    if config.debate.mode != "llm" and not config.models.model:
        return ()
    if config.debate.recording == "read":
        found = "replies come from the recordings, no endpoint is asked"
        return (Check(name="language models", status="ok", found=found),)
    from agents.chat.endpoint import api_key, is_local, key_variable, model_spec

    speakers: dict[_Endpoint, list[Role]] = {}
    mistakes: dict[str, Check] = {}
    for role in get_args(Role):
        try:
            endpoint = _Endpoint(
                spec=replace(model_spec(config.models, role, environ), role="bull"),
                key=api_key(config.models, role, environ),
                variable=key_variable(config.models, role),
            )
            speakers.setdefault(endpoint, []).append(role)
        except ConfigError as exc:
            setting = str(exc).partition(":")[0]
            mistakes.setdefault(setting, _failed(f"model of {role}", exc))
    checks = list(mistakes.values())
    for endpoint, roles in speakers.items():
        reached, window = _reached(endpoint, f"endpoint of {', '.join(roles)}")
        checks.append(reached)
        if reached.status != "failed":
            checks.append(_replies(endpoint, config.models.call_seconds, window))
    prices = config.models.usd_per_million_input, config.models.usd_per_million_output
    if not any(prices) and not all(is_local(one.spec.base_url) for one in speakers):
        checks.append(NO_PRICE)
    return tuple(checks)


def _reached(endpoint: _Endpoint, name: str) -> tuple[Check, int | None]:
    """Whether the server is there and has the model; the context window that it tells."""
    spec = endpoint.spec
    try:
        models = _models(spec.base_url, endpoint.key)
    except EndpointError as exc:
        return _failed(name, exc, before=f"{spec.base_url} "), None
    found = f"{spec.base_url} reached, {_key_words(endpoint)}"
    if models is None:
        found += ", it has no list of models"
        longer = f"{spec.base_url}/v1"
        if "/v1" not in urlsplit(spec.base_url).path and _has_models(longer, endpoint.key):
            remedy = f"did you mean {longer}? set models.base_url to it"
            return Check(name=name, status="failed", found=found, remedy=remedy), None
        # it may answer all the same: the reply will tell
        return Check(name=name, status="warning", found=found, remedy="see its replies"), None
    if spec.model not in models:
        remedy = f"set models.model to one of its models: {', '.join(list(models)[:5]) or 'none'}"
        found += f", does not list {spec.model}"
        return Check(name=name, status="warning", found=found, remedy=remedy), None
    found += f", has {spec.model}"
    if "unencrypted" in found:
        remedy = "use an address that begins with https"
        return Check(name=name, status="warning", found=found, remedy=remedy), models[spec.model]
    return Check(name=name, status="ok", found=found), models[spec.model]


def _models(base_url: str, key: str) -> dict[str, int | None] | None:
    from agents.chat.openai_chat import Wire, models_listed

    return models_listed(Wire(base_url, key), LIST_SECONDS)


def _has_models(base_url: str, key: str) -> bool:
    try:
        return _models(base_url, key) is not None
    except EndpointError:
        return False


def _key_words(endpoint: _Endpoint) -> str:
    from agents.chat.endpoint import NO_KEY, is_local

    if endpoint.key == NO_KEY:
        return "no key needed"
    clear = endpoint.spec.base_url.startswith("http:") and not is_local(endpoint.spec.base_url)
    return f"key from {endpoint.variable}{' travels unencrypted' if clear else ''}"


def _replies(endpoint: _Endpoint, call_seconds: float, window: int | None) -> Check:
    """What the endpoint can do, found with one tiny question."""
    from agents.chat.capability import Capabilities
    from agents.chat.openai_chat import OpenAIChat

    tokens = min(PROBE_TOKENS, endpoint.spec.max_output_tokens)
    spec = replace(endpoint.spec, max_output_tokens=tokens)
    name, capabilities = f"replies of {spec.model}", Capabilities()
    chat = OpenAIChat(
        spec,
        key=endpoint.key,
        call_seconds=call_seconds,
        retries=0,
        capabilities=capabilities,
        key_variable=endpoint.variable,
    )
    reply = None
    try:
        reply = chat.ask(PROBE)
    except CutReplyError:
        pass  # it answers, if at length
    except EndpointError as exc:
        return _failed(name, exc)
    words, remedies = _ability(capabilities.of(spec), reply, tokens)
    configured = endpoint.spec.context_tokens
    if window is None:
        words.append("context as configured" if configured else "context unknown")
    else:
        words.append(f"context {window:,} tokens")
        if configured is None or configured > window:
            remedies.append(f"set models.context_tokens to {window}")
    return Check(
        name=name,
        status="warning" if remedies else "ok",
        found=", ".join(words),
        remedy="; ".join(remedies),
    )


def _ability(known: Known, reply: ChatReply | None, tokens: int) -> tuple[list[str], list[str]]:
    """What a probe showed in words, and what to do about it."""
    words, remedies = [f"asked by {known.step}"], []
    if known.left_out:
        words.append(f"without {' and '.join(sorted(known.left_out))}")
    if reply is None:
        words.append(f"a tiny reply was cut at {tokens} tokens")
        remedies.append("models.max_output_tokens must leave room for what it thinks aloud")
        return words, remedies
    words.append(
        "tokens are estimated" if reply.usage and reply.usage.estimated else "tokens are counted"
    )
    if "{" not in reply.text:
        words.append("the reply was no JSON")
        remedies.append("take another model: a reply in no shape ends a debate in NO_GO")
    return words, remedies


def _failed(name: str, error: TraderError, *, before: str = "") -> Check:
    """A failed check; what stands after the last semicolon of our messages is the remedy."""
    found, _, remedy = f"{before}{error}".rpartition("; ")
    return Check(name=name, status="failed", found=found or remedy, remedy=remedy if found else "")
