"""The rule-based bear: finds the weakest claim that the bull made and sets facts against it."""

from __future__ import annotations

from agents.chat.bull_rules import SOUGHT_REWARD_RISK, Target, targets
from agents.chat.patterns import (
    FOLLOWING,
    REVERTING,
    ClaimFields,
    Pattern,
    level_words,
    used_fields,
)
from trader.core.decision import Argument, Claim, EvidenceIndex, Style
from trader.core.ports import ChatRequest

OPENING_CLAIMS = 4
ANSWERING_CLAIMS = 2
FALSE_CLAIM, UNCHECKED_CLAIM = 3.0, 2.9  # weaker than any true claim, whose weakness ends at 2

# field of the bull's claim -> rows that speak against it
COUNTERS: dict[str, tuple[Pattern, ...]] = {
    "rule_value": (
        Pattern(
            field="adx_14",
            operator="<",
            line=20.0,
            text="ADX at {value} shows no trend: crossings in a range mean little.",
            styles=FOLLOWING,
        ),
        Pattern(
            field="volatility_rank_252",
            operator=">",
            line=0.8,
            text="Volatility ranks at {value} of the last 252 bars: such crossings whip.",
        ),
        Pattern(
            field="minus_di_14",
            operator=">",
            line="plus_di_14",
            text="Downward movement {value} still outweighs upward movement {line}.",
        ),
    ),
    "signal_average_r": (
        Pattern(
            field="signal_closed",
            operator="<",
            line=30.0,
            text="Only {value} past trades stand behind that average.",
        ),
        Pattern(
            field="signal_hit_rate",
            operator="<",
            line=0.5,
            text="Most of them lost: the hit rate is {value}.",
        ),
    ),
    "close": (
        Pattern(
            field="return_20",
            operator=">",
            line=0.08,
            text="The price has already run {value} in 20 bars.",
            styles=FOLLOWING,
        ),
        Pattern(
            field="drawdown_252",
            operator="<",
            line=-0.1,
            text="It still stands {value} from its 252-bar high.",
        ),
    ),
    "sma_50": (
        Pattern(
            field="return_20",
            operator="<",
            line=0.0,
            text="The averages look back; the last 20 bars brought {value}.",
        ),
    ),
    "volume_ratio_20": (
        Pattern(
            field="obv_change_20",
            operator="<",
            line=0.0,
            text="Yet over 20 bars volume flowed out: {value} of all that traded.",
        ),
    ),
    "rsi_14": (
        Pattern(
            field="rsi_14",
            operator=">",
            line=60.0,
            text="RSI at {value} leaves little before it is overbought.",
            styles=FOLLOWING,
        ),
        Pattern(
            field="close",
            operator="<",
            line="sma_200",
            text="Cheap can get cheaper: {value} is below the 200-bar average of {line}.",
            styles=REVERTING,
        ),
    ),
    "volatility_rank_252": (
        Pattern(
            field="max_drawdown_252",
            operator="<",
            line=-0.2,
            text="Calm ends: the last 252 bars held a fall of {value}.",
        ),
    ),
}

GENERAL = (
    Pattern(
        field="close",
        operator="<",
        line="sma_200",
        text="The price of {value} is below its 200-bar average of {line}.",
    ),
    Pattern(
        field="minus_di_14",
        operator=">",
        line="plus_di_14",
        text="Downward movement {value} outweighs upward movement {line}.",
    ),
    Pattern(
        field="signal_average_r",
        operator="<",
        line=0.0,
        text="This signal has lost on average: {value} a trade.",
    ),
    Pattern(
        field="signal_hit_rate",
        operator="<",
        line=0.4,
        text="It rarely pays: the hit rate is {value}.",
    ),
    Pattern(
        field="volume_ratio_20",
        operator="<",
        line=0.8,
        text="Volume does not confirm: {value} times its 20-bar mean.",
    ),
    Pattern(
        field="volatility_rank_252",
        operator=">",
        line=0.8,
        text="Volatility ranks at {value} of the last 252 bars.",
    ),
    Pattern(
        field="rsi_14",
        operator=">",
        line=70.0,
        text="RSI at {value} is overbought.",
        styles=FOLLOWING,
    ),
    Pattern(
        field="max_drawdown_252",
        operator="<",
        line=-0.25,
        text="The last 252 bars held a fall of {value}.",
    ),
    Pattern(
        field="position_weight",
        operator=">",
        line=0.0,
        text="The account already holds {value} of its equity here.",
    ),
)


def bear_reply(request: ChatRequest) -> dict[str, object]:
    """The bear's answer to the bull's last argument, as the fields of a reply."""
    evidence, argument = request.evidence, request.arguments[-1]
    style = request.candidate.signal.style
    way = _obstacle(evidence, argument)
    against = {claim.text: _counters(claim, way, evidence, style) for claim in argument.claims}
    attacked = {rebuttal.weakest_claim for rebuttal in request.rebuttals}
    open_claims = [claim for claim in argument.claims if claim.text not in attacked] or list(
        argument.claims
    )
    weakest = max(open_claims, key=lambda claim: _weakness(claim, against[claim.text], evidence))
    counters = against[weakest.text]
    counter = " ".join(str(claim["text"]) for claim in counters) or _concession(weakest)
    used = used_fields(request, "bear")
    rows = counters + [claim for row in (*way, *GENERAL) if (claim := row.claim(evidence, style))]
    fresh: list[ClaimFields] = []
    for claim in rows:
        if claim["field"] not in used:
            used.add(str(claim["field"]))
            fresh.append(claim)
    wanted = OPENING_CLAIMS if request.round == 0 else ANSWERING_CLAIMS
    return {"weakest_claim": weakest.text, "counter": counter, "claims": fresh[:wanted]}


def _weakness(claim: Claim, counters: list[ClaimFields], evidence: EvidenceIndex) -> float:
    """How easily a claim falls: false ones first, then those with facts against them, then the
    narrow ones.
    """
    if claim.status == "contradicted":
        return FALSE_CLAIM
    if claim.status == "unverifiable":
        return UNCHECKED_CLAIM
    fact = evidence.by_id(claim.evidence_ids[0])
    margin = 1.0
    if fact is not None and fact.value is not None and claim.operator != "=":
        margin = min(1.0, abs(fact.value - claim.quoted_value) / max(abs(claim.quoted_value), 0.1))
    return (1.0 if counters else 0.0) + (1.0 - margin)


def _counters(
    claim: Claim, way: tuple[Pattern, ...], evidence: EvidenceIndex, style: Style
) -> list[ClaimFields]:
    """The facts that speak against a claim. way: rows about what stands before the target."""
    aims = claim.field.startswith(("reward_risk_", "expected_value_"))
    rows = way if aims else COUNTERS.get(claim.field, ())
    return [found for row in rows if (found := row.claim(evidence, style))]


def _obstacle(evidence: EvidenceIndex, argument: Argument) -> tuple[Pattern, ...]:
    """Rows on the way to the target: how often it is reached, and the nearest level before it."""
    known = targets(evidence)
    aimed = next(
        (target for target in known if abs(target.price - argument.target_price) < 0.005), None
    )
    rows: list[Pattern] = []
    if aimed is not None:
        rows += _base_rate(evidence, aimed)
    before = [
        target
        for target in known
        if argument.entry_price < target.price < argument.target_price - 0.005
    ]
    if before:
        nearest = min(before, key=lambda target: target.price)
        text = (
            f"The {level_words(nearest.name)} at {nearest.price:,.2f} USD stands in the way: "
            "up to there only {value} for each 1 at risk."
        )
        rows.append(
            Pattern(
                field=f"reward_risk_{nearest.name}",
                operator="<",
                line=SOUGHT_REWARD_RISK,
                text=text,
            )
        )
    return tuple(rows)


def _base_rate(evidence: EvidenceIndex, aimed: Target) -> tuple[Pattern, ...]:
    """How rarely earlier trades got that far; no row where there is no past to speak of."""
    hits, closed = evidence.value(f"hits_{aimed.name}"), evidence.value("signal_closed")
    if hits is None or not closed:
        return ()
    text = (
        f"{hits:.0f} of {closed:.0f} past trades got as far as that target before they ended: "
        "counted cautiously, a chance of {value}."
    )
    return (Pattern(field=f"probability_{aimed.name}", operator="<", line=0.5, text=text),)


def _concession(claim: Claim) -> str:
    if claim.status in ("contradicted", "unverifiable"):
        return f"This does not stand: {claim.detail}."
    return "No fact at hand speaks against it; it is only the narrowest of the claims."
