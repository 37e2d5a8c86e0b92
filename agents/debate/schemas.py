"""What a debater's reply must look like; anything else is an invalid reply, never a guess."""

from __future__ import annotations

import json
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trader.core.decision import Argument, Claim, Operator, Rebuttal

Text = Annotated[str, Field(min_length=1, max_length=2_000)]
Price = Annotated[float, Field(gt=0, lt=1e9, allow_inf_nan=False)]
Reply = TypeVar("Reply", bound=BaseModel)
MAXIMUM_REPLY_CHARACTERS = 60_000


class InvalidReplyError(ValueError):
    """A reply that is not what was asked for; the debate ends in NO_GO with INVALID_REPLY."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ClaimReply(_Strict):
    """One checkable sentence."""

    text: Text
    evidence_ids: Annotated[
        list[Annotated[str, Field(pattern=r"^E[1-9][0-9]{0,3}$")]],
        Field(min_length=1, max_length=4),
    ]
    field: Annotated[str, Field(min_length=1, max_length=80)]
    operator: Operator
    quoted_value: Annotated[float, Field(allow_inf_nan=False)]
    unit: Annotated[str, Field(min_length=1, max_length=40)]


class BullReply(_Strict):
    """The case for the trade, with the levels that are proposed."""

    thesis: Text
    claims: Annotated[list[ClaimReply], Field(min_length=1, max_length=12)]
    entry_price: Price
    stop_price: Price
    target_price: Price


class BearReply(_Strict):
    """The attack on the weakest claim, quoted word for word."""

    weakest_claim: Text
    counter: Text
    claims: Annotated[list[ClaimReply], Field(max_length=12)]


def parse_argument(text: str, turn: int) -> Argument:
    """Bull's reply as an Argument with unchecked claims; InvalidReplyError for anything else."""
    reply = _parse(BullReply, text)
    return Argument(
        stance="bull",
        round=turn,
        thesis=reply.thesis,
        claims=_claims(reply.claims),
        entry_price=reply.entry_price,
        stop_price=reply.stop_price,
        target_price=reply.target_price,
    )


def parse_rebuttal(text: str, turn: int, against: Argument) -> Rebuttal:
    """Bear's reply as a Rebuttal with unchecked claims.

    Raises InvalidReplyError for anything else, and when the claim it attacks is not one that
    `against` makes.
    """
    reply = _parse(BearReply, text)
    if reply.weakest_claim not in {claim.text for claim in against.claims}:
        raise InvalidReplyError(
            f"the bear attacks a claim that the bull never made: {reply.weakest_claim!r}"
        )
    return Rebuttal(
        stance="bear",
        round=turn,
        weakest_claim=reply.weakest_claim,
        counter=reply.counter,
        claims=_claims(reply.claims),
    )


def _claims(replies: list[ClaimReply]) -> tuple[Claim, ...]:
    return tuple(
        Claim(
            text=reply.text,
            evidence_ids=tuple(reply.evidence_ids),
            field=reply.field,
            operator=reply.operator,
            quoted_value=reply.quoted_value,
            unit=reply.unit,
        )
        for reply in replies
    )


def _parse(model: type[Reply], text: str) -> Reply:
    if len(text) > MAXIMUM_REPLY_CHARACTERS:
        raise InvalidReplyError(
            f"the reply has {len(text)} characters, {MAXIMUM_REPLY_CHARACTERS} is the limit"
        )
    try:
        return model.model_validate(
            json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
        )
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidReplyError(f"{where or 'the reply'}: {first['msg']}") from exc
    except (ValueError, RecursionError) as exc:
        raise InvalidReplyError(f"the reply is not JSON: {exc}") from exc


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidReplyError("the reply repeats a key")
    return found


def _refuse(constant: str) -> NoReturn:
    raise InvalidReplyError(f"{constant} is not a number")
