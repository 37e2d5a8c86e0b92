"""The rule-based bull: picks the target worth most and argues for it from what is true."""

from __future__ import annotations

from dataclasses import dataclass

from agents.chat.patterns import (
    ALL_STYLES,
    FOLLOWING,
    REVERTING,
    ClaimFields,
    Pattern,
    crossing,
    level_words,
    shown,
    used_fields,
)
from trader.core.decision import EvidenceIndex
from trader.core.ports import ChatRequest

OPENING_CLAIMS = 5
ANSWERING_CLAIMS = 3
FEWEST_PAST_TRADES = 5  # below this a track record is an anecdote
SOUGHT_REWARD_RISK = 2.0

CATALOGUE = (
    Pattern(
        field="close",
        operator=">",
        line="sma_200",
        text="The close stands at {value}, above the 200-bar average of {line}.",
        styles=FOLLOWING,
    ),
    Pattern(
        field="sma_50",
        operator=">",
        line="sma_200",
        text="The 50-bar average of {value} is above the 200-bar average of {line}.",
        styles=FOLLOWING,
    ),
    Pattern(
        field="plus_di_14",
        operator=">",
        line="minus_di_14",
        text="Upward movement {value} outweighs downward movement {line}.",
        styles=FOLLOWING,
    ),
    Pattern(
        field="adx_14",
        operator=">",
        line=25.0,
        text="ADX at {value} shows a trend worth following.",
        styles=FOLLOWING,
    ),
    Pattern(
        field="rsi_14",
        operator="<",
        line=40.0,
        text="RSI at {value} says that the selling is stretched.",
        styles=REVERTING,
    ),
    Pattern(
        field="close",
        operator="<",
        line="bollinger_middle",
        text="The close at {value} leaves room back to the 20-bar mean of {line}.",
        styles=REVERTING,
    ),
    Pattern(
        field="close",
        operator=">",
        line="sma_200",
        text="The long trend is intact: {value} against a 200-bar average of {line}.",
        styles=REVERTING,
    ),
    Pattern(
        field="volume_ratio_20",
        operator=">",
        line=1.0,
        text="Volume confirms: {value} times its 20-bar mean.",
    ),
    Pattern(
        field="obv_change_20",
        operator=">",
        line=0.0,
        text="Over 20 bars volume flowed in: {value} of all that traded.",
    ),
    Pattern(
        field="return_60",
        operator=">",
        line=0.0,
        text="Sixty bars have brought {value}.",
        styles=FOLLOWING,
    ),
    Pattern(
        field="volatility_rank_252",
        operator="<",
        line=0.5,
        text="Volatility is calm: higher than now in most of the last 252 bars (rank {value}).",
    ),
    Pattern(
        field="rsi_14",
        operator="<",
        line=70.0,
        text="RSI at {value} is not overbought.",
        styles=FOLLOWING,
    ),
    Pattern(
        field="position_weight",
        operator="=",
        line=0.0,
        text="Nothing is held in this symbol yet ({value} of equity).",
        styles=ALL_STYLES,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A level from the evidence that may be proposed; `name` without the prefix."""

    name: str
    price: float
    reward_risk: float
    expected_value: float


def targets(evidence: EvidenceIndex) -> tuple[Target, ...]:
    """Every target with known price, reward:risk and expected value, in the evidence's order."""
    found = []
    for fact in evidence.starting("target_"):
        name = fact.name.removeprefix("target_")
        ratio, value = (
            evidence.value(f"reward_risk_{name}"),
            evidence.value(f"expected_value_{name}"),
        )
        if fact.value is not None and ratio is not None and value is not None:
            found.append(
                Target(name=name, price=fact.value, reward_risk=ratio, expected_value=value)
            )
    return tuple(found)


def best_target(evidence: EvidenceIndex) -> Target | None:
    """The level with the best expected value at reward:risk >= 2, else the best reward:risk."""
    known = targets(evidence)
    wide = [target for target in known if target.reward_risk >= SOUGHT_REWARD_RISK]
    if wide:
        return max(wide, key=lambda target: target.expected_value)
    return max(known, key=lambda target: target.reward_risk, default=None)


def bull_reply(request: ChatRequest) -> dict[str, object]:
    """The bull's opening or its answer to the bear's last rebuttal, as the fields of a reply."""
    evidence = request.evidence
    candidate = request.candidate
    target = best_target(evidence)
    claims = _claims(request, evidence, target)
    if not claims:
        claims = [_price_claim(request, evidence)]
    return {
        "thesis": _thesis(request, target),
        "claims": claims,
        "entry_price": candidate.entry_price,
        "stop_price": candidate.stop_price,
        # without any level there is nothing to aim at; the arbitrator rightly refuses this target
        "target_price": target.price if target else candidate.entry_price,
    }


def _claims(
    request: ChatRequest, evidence: EvidenceIndex, target: Target | None
) -> list[ClaimFields]:
    style = request.candidate.signal.style
    rows: list[ClaimFields | None] = [crossing(evidence, request.candidate.signal.reason)]
    if target is not None:
        rows += [row.claim(evidence, style) for row in _target_rows(target)]
    record = evidence.value("signal_closed")
    if record is not None and record >= FEWEST_PAST_TRADES:
        text = f"The {record:.0f} closed trades of this signal brought {{value}} each on average."
        rows.append(
            Pattern(field="signal_average_r", operator=">", line=0.0, text=text).claim(
                evidence, style
            )
        )
    rows += [row.claim(evidence, style) for row in CATALOGUE]
    used = used_fields(request, "bull")
    fresh = [row for row in rows if row is not None and row["field"] not in used]
    wanted = OPENING_CLAIMS if request.round == 0 else ANSWERING_CLAIMS
    return fresh[:wanted] or [row for row in rows if row is not None][:1]


def _target_rows(target: Target) -> tuple[Pattern, ...]:
    return (
        Pattern(
            field=f"reward_risk_{target.name}",
            operator=">=",
            line=SOUGHT_REWARD_RISK,
            text=f"The target at {target.price:,.2f} USD offers {{value}} for each 1 at risk.",
        ),
        Pattern(
            field=f"expected_value_{target.name}",
            operator=">",
            line=0.0,
            text="By this signal's own past the trade is worth {value}.",
        ),
    )


def _price_claim(request: ChatRequest, evidence: EvidenceIndex) -> ClaimFields:
    entry = evidence.named("entry_price")
    return {
        "text": f"An entry would cost {request.candidate.entry_price:,.2f} USD.",
        "evidence_ids": [entry.evidence_id if entry else "E1"],
        "field": "entry_price",
        "operator": "=",
        "quoted_value": round(request.candidate.entry_price, 2),
        "unit": "USD",
    }


def _thesis(request: ChatRequest, target: Target | None) -> str:
    candidate, signal = request.candidate, request.candidate.signal
    if target is None:
        return f"{signal.reason}, but no level above the entry gives a target."
    levels = (
        f"buy {signal.symbol} near {candidate.entry_price:,.2f}, stop {candidate.stop_price:,.2f}, "
        f"target {target.price:,.2f} ({level_words(target.name)})"
    )
    if request.rebuttals:
        attacked = request.rebuttals[-1].weakest_claim.rstrip(".")
        return f"Against “{attacked}” stands more evidence; I keep to it: {levels}."
    return f"{signal.reason}: {levels}, {shown(target.expected_value, 'R')} expected."
