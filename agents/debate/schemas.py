"""What a speaker's reply must look like; anything else is an invalid reply, never a guess."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from agents.debate.extraction import InvalidReplyError, extract, one_line
from trader.core.canonical import Primitive
from trader.core.decision import (
    Argument,
    Claim,
    Decision,
    Operator,
    Rebuttal,
    Role,
    Weighing,
)

__all__ = [
    "SCHEMA_NAMES",
    "InvalidReplyError",
    "parse_argument",
    "parse_rebuttal",
    "parse_weighing",
    "schema_of",
]

SCHEMA_NAMES: Mapping[Role, str] = {
    "bull": "argument",
    "bear": "rebuttal",
    "arbitrator": "weighing",
}
Reply = TypeVar("Reply", bound=BaseModel)


def _cleaned(value: object) -> object:
    return one_line(value) if isinstance(value, str) else value


def _visible(value: str) -> str:
    if not value or one_line(value) != value:
        raise ValueError("must be visible characters on one line; null where null is allowed")
    return value


Text = Annotated[str, Field(min_length=1, max_length=2_000), BeforeValidator(_cleaned)]
Name = Annotated[str, Field(max_length=80), AfterValidator(_visible)]
Word = Annotated[str, Field(max_length=40), AfterValidator(_visible)]
Price = Annotated[float, Field(gt=0, lt=1e9)]
Number = Annotated[float, Field(ge=-1e15, le=1e15)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class ClaimReply(_Strict):
    """One checkable sentence."""

    text: Text
    evidence_ids: Annotated[
        list[Annotated[str, Field(pattern=r"^E[1-9][0-9]{0,3}$")]],
        Field(min_length=1, max_length=4),
    ]
    field: Name
    operator: Operator
    quoted_value: Number
    unit: Word
    upper_value: Number | None = None
    when: Word | None = None


class BullReply(_Strict):
    """The case for the trade, with the levels that are proposed."""

    thesis: Text
    claims: Annotated[list[ClaimReply], Field(min_length=1, max_length=12)]
    entry_price: Price
    stop_price: Price
    target_price: Price


class BearReply(_Strict):
    """The attack on the weakest claim: its number, or its words."""

    weakest_claim: Text
    counter: Text
    claims: Annotated[list[ClaimReply], Field(max_length=12)]


class WeighingReply(_Strict):
    """The judgement; the reasons stand before the decision, since a model writes in this order."""

    rationale: Text
    decisive: Annotated[
        list[Annotated[str, Field(pattern=r"^[BR][1-9][0-9]{0,3}$")]], Field(max_length=24)
    ]
    decision: Literal["GO", "NO_GO"]
    confidence: Annotated[float, Field(ge=0, le=1)]


_REPLIES: Mapping[Role, type[BaseModel]] = {
    "bull": BullReply,
    "bear": BearReply,
    "arbitrator": WeighingReply,
}
_NO_GO = re.compile(r"\bno[\W_]{0,3}go\b", re.IGNORECASE)
# kinds of mistakes for which pydantic's own words name no remedy
_REMEDIES = {
    "missing": "is missing: give every key of the schema",
    "extra_forbidden": "is no key of the schema: leave it out",
    "float_type": "must be a number, without quotes or unit",
    "string_type": "must be a text in quotes",
    "string_unicode": "holds half a character: write it without escapes",
    "list_type": "must be a list",
    "model_type": "must be a JSON object",
}
_MISTAKES_TOLD = 3


def parse_argument(text: str, turn: int) -> Argument:
    """Bull's reply as an Argument with unchecked claims; InvalidReplyError for anything else."""
    reply, _ = _parse(BullReply, text)
    return Argument(
        stance="bull",
        round=turn,
        thesis=reply.thesis,
        claims=_claims(reply.claims),
        entry_price=reply.entry_price,
        stop_price=reply.stop_price,
        target_price=reply.target_price,
    )


def parse_rebuttal(text: str, turn: int, arguments: Sequence[Argument]) -> Rebuttal:
    """Bear's reply as a Rebuttal with unchecked claims.

    arguments  the bull's so far, at least one; the weakest claim is one of the last, named by its
               number (B1, B2 … through all of them) or its exact words; the bull's words are kept
    Raises InvalidReplyError for anything else.
    """
    reply, _ = _parse(BearReply, text)
    words = [claim.text for argument in arguments for claim in argument.claims]
    earlier = len(words) - len(arguments[-1].claims)
    open_claims = {f"B{number}": words[number - 1] for number in range(earlier + 1, len(words) + 1)}
    weakest = open_claims.get(reply.weakest_claim, reply.weakest_claim)
    if weakest not in open_claims.values():
        raise InvalidReplyError(
            f"weakest_claim must be a claim of the bull's last argument, its number alone "
            f"({', '.join(open_claims)}) or its exact words, got {_shown(reply.weakest_claim)}"
        )
    return Rebuttal(
        stance="bear",
        round=turn,
        weakest_claim=weakest,
        counter=reply.counter,
        claims=_claims(reply.claims),
    )


def parse_weighing(text: str, claims: Mapping[str, Claim]) -> Weighing:
    """The arbitrator's reply as a Weighing that rests on verified claims only.

    claims  every claim of the debate by its number (B1, R2), checked
    Raises InvalidReplyError for anything else: a GO that rests on no claim, or beside which the
    same reply says NO_GO, is none.
    """
    reply, around = _parse(WeighingReply, text)
    for number in reply.decisive:
        if number not in claims:
            raise InvalidReplyError(f"decisive: there is no claim {number}: name given ones only")
        if claims[number].status != "verified":
            raise InvalidReplyError(
                f"decisive: claim {number} is {claims[number].status}: name verified claims only"
            )
    if reply.decision == "GO":
        if not reply.decisive:
            raise InvalidReplyError("decisive: a GO names at least one verified claim")
        if _NO_GO.search(around):
            raise InvalidReplyError(
                "the words around the JSON object say NO_GO and the object GO: "
                "answer with one JSON object and nothing else"
            )
    return Weighing(
        decision=Decision(reply.decision),
        confidence=reply.confidence,
        decisive=tuple(dict.fromkeys(reply.decisive)),
        rationale=reply.rationale,
    )


@cache
def schema_of(role: Role) -> Mapping[str, Primitive]:
    """The JSON schema of a role's reply, in the subset that every server takes.

    Every property is required, no object is open, what may be absent may be null, and bounds are
    left to the parser: some servers refuse them, none enforces them.
    """
    schema = _REPLIES[role].model_json_schema()
    return _strict_object(schema, schema.get("$defs", {}))


def _strict_object(schema: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Primitive]:
    properties = {name: _strict(inner, named) for name, inner in schema["properties"].items()}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _strict(schema: Mapping[str, Any], named: Mapping[str, Any]) -> Primitive:
    if "$ref" in schema:
        return _strict_object(named[schema["$ref"].rpartition("/")[2]], named)
    if "anyOf" in schema:
        return {"type": [option["type"] for option in schema["anyOf"]]}
    if "enum" in schema:
        return {"type": "string", "enum": list(schema["enum"])}
    if schema["type"] == "array":
        return {"type": "array", "items": _strict(schema["items"], named)}
    return {"type": schema["type"]}


def _claims(replies: list[ClaimReply]) -> tuple[Claim, ...]:
    return tuple(
        Claim(**{**dict(reply), "evidence_ids": tuple(reply.evidence_ids)}) for reply in replies
    )


def _parse(model: type[Reply], text: str) -> tuple[Reply, str]:
    """The reply, and the words around it."""
    found = extract(text)
    try:
        return model.model_validate(found.fields), found.around
    except ValidationError as exc:
        mistakes = exc.errors(include_url=False, include_context=False)
        told = [_mistake(mistake) for mistake in mistakes[:_MISTAKES_TOLD]]
        if len(mistakes) > _MISTAKES_TOLD:
            told.append(f"{len(mistakes) - _MISTAKES_TOLD} more")
        raise InvalidReplyError("; ".join(told)) from exc


def _mistake(mistake: Mapping[str, Any]) -> str:
    """Where, what is wanted, what was given: claims[0].quoted_value must be a number, got '58'."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part[:40]}" for part in mistake["loc"])
    place = "".join(parts).removeprefix(".")
    said = mistake["msg"].removeprefix("Value error, ").removeprefix("Input ")
    wanted = _REMEDIES.get(mistake["type"], said)
    given = mistake["input"]
    got = f", got {_shown(given)}" if isinstance(given, str | int | float) else ""
    return f"{place or 'the reply'} {wanted}{got}"


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:40]}…"
