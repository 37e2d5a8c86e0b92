"""The settings of the debate and of the language models that may hold it."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from trader.core.config.sections import FRACTION, ONE_LINE, Section, day, problem
from trader.core.config.wording import shown


def _base_url(value: Any) -> Any:
    """An address of an OpenAI-compatible server; a key never stands in it."""
    if value is None or not isinstance(value, str):
        return value
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError as exc:
        raise problem("url", f"{shown(value)} is no address: {exc}") from exc
    if parts.scheme not in ("http", "https") or not host:
        plain = value.isprintable() and "//" not in value
        hint = f", did you mean http://{value}?" if plain else ""
        raise problem(
            "url", f"{shown(value)} is no address: it begins with http:// or https://{hint}"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise problem(
            "url", "an address holds no user, key or query; a key comes from the environment"
        )
    return value.rstrip("/")


def _variable(value: Any) -> Any:
    """The name of an environment variable; what stands there by mistake may be a key: not shown."""
    if value is None or (isinstance(value, str) and re.fullmatch(r"[A-Z][A-Z0-9_]{0,79}", value)):
        return value
    raise problem(
        "variable",
        "it is not the name of an environment variable (capital letters, digits, _); "
        "a key itself never stands here",
    )


def _model(value: Any) -> Any:
    """A model may not be called like a debater that is none: records would say who it was not."""
    if value in ("rules", "off", "arbitrator", "nobody"):
        raise problem("model", f"{shown(value)} is a debater that is no model; name another model")
    return value


Url = Annotated[str | None, BeforeValidator(_base_url)]
ModelName = Annotated[str, Field(pattern=ONE_LINE, max_length=200), BeforeValidator(_model)]
Variable = Annotated[str, BeforeValidator(_variable)]
Usd = Annotated[float, Field(ge=0, le=1e6)]
Tokens = Annotated[int, Field(ge=1, le=10**12)]


class Debate(Section):
    """How an entry is argued over."""

    mode: Literal["rules", "llm", "off"] = Field(
        default="rules",
        description="Who debates: rules, llm (language models) or off for no debate",
    )
    rounds: int = Field(default=1, ge=0, le=5, description="Rebuttal rounds after the opening")
    minimum_verified_claims: int = Field(
        default=3, ge=1, le=100, description="Verified claims without which there is no GO"
    )
    minimum_confidence: float = Field(
        default=0.4,
        ge=0,
        le=1,
        description="Confidence below which there is no GO, a fraction",
        json_schema_extra=FRACTION,
    )
    fallback: Literal["none", "rules"] = Field(
        default="none", description="What follows a model debate that failed: none (NO_GO) or rules"
    )
    approval: bool = Field(
        default=False, description="Whether a person must approve every GO of a paper run"
    )
    recording: Literal["write", "read"] = Field(
        default="write",
        description="Model replies: write (ask and keep them) or read (answer from those kept)",
    )
    seconds: float = Field(
        default=300.0, gt=0, le=3600, description="Deadline of one debate with models, seconds"
    )


class Budget(Section):
    """What model calls may cost; a call that does not fit is not made."""

    tokens_per_call: Tokens = Field(default=8_000, description="Tokens of one call, in and out")
    tokens_per_decision: Tokens = Field(default=30_000, description="Tokens of one debate")
    tokens_per_run: Tokens = Field(default=5_000_000, description="Tokens of one command")
    tokens_per_day: Tokens = Field(default=10_000_000, description="Tokens of one day, UTC")
    usd_per_call: Usd = Field(default=0.25, description="Money of one call, USD")
    usd_per_decision: Usd = Field(default=0.5, description="Money of one debate, USD")
    usd_per_run: Usd = Field(default=10.0, description="Money of one command, USD")
    usd_per_day: Usd = Field(default=20.0, description="Money of one day, UTC, USD")


class RoleModel(Section):
    """One speaker's own endpoint and model; null takes the common setting."""

    base_url: Url = Field(
        default=None, description="Address of its server; null for the common one"
    )
    model: ModelName | None = Field(default=None, description="Its model; null for the common one")
    api_key_variable: Variable | None = Field(
        default=None, description="Environment variable with its key; null for the common one"
    )


class Models(Section):
    """The language models that debate when debate.mode is llm."""

    base_url: Url = Field(
        default=None, description="Address of the server; null for OPENAI_BASE_URL, else OpenAI"
    )
    model: ModelName | None = Field(
        default=None, description="Model that speaks; it must be named for debate.mode llm"
    )
    api: Literal["chat", "responses"] = Field(
        default="chat", description="chat completions, or responses where the server has them"
    )
    api_key_variable: Variable = Field(
        default="OPENAI_API_KEY", description="Environment variable that holds the key"
    )
    temperature: float | None = Field(
        default=0.0, ge=0, le=2, description="Sampling temperature; null leaves it to the server"
    )
    seed: int | None = Field(
        default=7, ge=0, le=2**31 - 1, description="Sampling seed; null leaves it out"
    )
    max_output_tokens: int = Field(
        default=1_200, ge=64, le=100_000, description="Longest reply, tokens"
    )
    context_tokens: Annotated[int, Field(ge=512, le=10**8)] | None = Field(
        default=None, description="Context window of the model, tokens; null when unknown"
    )
    call_seconds: float = Field(
        default=60.0, gt=0, le=3600, description="Deadline of one call with its retries, seconds"
    )
    retries: int = Field(
        default=2, ge=0, le=5, description="Retries of a call that may be repeated"
    )
    knowledge_cutoff: Annotated[date | None, BeforeValidator(day)] = Field(
        default=None, description="Last day the model may have read about; null when unknown"
    )
    usd_per_million_input: Usd = Field(
        default=0.0, description="Price of a million prompt tokens, USD; 0 for a local model"
    )
    usd_per_million_output: Usd = Field(
        default=0.0, description="Price of a million reply tokens, USD"
    )
    budget: Budget = Field(default=Budget(), description="What model calls may cost")
    bull: RoleModel = Field(default=RoleModel(), description="The bull's own model")
    bear: RoleModel = Field(default=RoleModel(), description="The bear's own model")
    arbitrator: RoleModel = Field(default=RoleModel(), description="The arbitrator's own model")
