"""A debate made by hand, and the events that a listener hears of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from trader.core.decision import (
    Argument,
    Candidate,
    Claim,
    Debate,
    Decision,
    FlagCode,
    Instrument,
    Rebuttal,
    RiskFlag,
    RuleCheck,
    SideRecord,
    Signal,
    Verdict,
    Weighing,
)
from trader.core.ports import DebateEvent

AS_OF = datetime(2026, 3, 2, 21, tzinfo=UTC)

CANDIDATE = Candidate(
    signal=Signal(
        signal_id="S-1",
        strategy="atr_trend",
        style="trend",
        symbol="AAPL",
        side="buy",
        strength=1.0,
        bar_at=AS_OF,
        as_of=AS_OF,
        features={},
        reason="close 272 crossed above 268",
    ),
    instrument=Instrument(symbol="AAPL", name="Apple", exchange="NASDAQ", currency="USD"),
    entry_price=272.0,
    stop_price=258.75,
)


def claim(text: str, status: str = "verified", detail: str = "") -> Claim:
    return Claim(
        text=text,
        evidence_ids=("E1",),
        field="close",
        operator="=",
        quoted_value=272.0,
        unit="USD",
        status=status,  # type: ignore[arg-type]
        detail=detail,
    )


OPENING = Argument(
    stance="bull",
    round=0,
    thesis="It rises because it rose.",
    claims=(
        claim("The close is 272."),
        claim("The close is 300.", "contradicted", "E1 close is 272"),
        claim("The moon is full.", "unverifiable", "there is no evidence E99"),
    ),
    entry_price=272.0,
    stop_price=258.75,
    target_price=312.0,
)
ATTACK = Rebuttal(
    stance="bear",
    round=0,
    weakest_claim="The close is 300.",
    counter="It is not.",
    claims=(claim("It stands at 272."),),
)
ANSWER = Argument(
    stance="bull",
    round=1,
    thesis="Still.",
    claims=(claim("It is above its average."),),
    entry_price=272.0,
    stop_price=258.75,
    target_price=312.0,
)
WEIGHING = Weighing(
    decision=Decision.GO,
    confidence=0.71,
    decisive=("B1", "R1"),
    rationale="The bull has the facts.",
)
TIMED_OUT = RiskFlag(code=FlagCode.TIMED_OUT, detail="bear: no answer within 60 s")
VERDICT = Verdict(
    verdict_id="V-1",
    symbol="AAPL",
    decision=Decision.NO_GO,
    confidence=0.5,
    entry_price=272.0,
    stop_price=258.75,
    target_price=312.0,
    reward_risk_ratio=1.5,
    expected_value_r=0.1,
    rationale="NO_GO, 1 of 2 rules fail: reward:risk is 1.50, wanted >= 2.00.",
    flags=(
        RiskFlag(code=FlagCode.REWARD_RISK_BELOW_MINIMUM, detail="reward:risk: 1.50"),
        TIMED_OUT,
    ),
    rules=(
        RuleCheck(code=FlagCode.STALE_DATA, rule="newest bar", value="0", limit="0", passed=True),
        RuleCheck(
            code=FlagCode.REWARD_RISK_BELOW_MINIMUM,
            rule="reward:risk",
            value="1.50",
            limit=">= 2.00",
            passed=False,
        ),
    ),
    decided_at=AS_OF,
)
DEBATE = Debate(
    debater="rules",
    arguments=(OPENING,),
    rebuttals=(ATTACK,),
    verdict=VERDICT,
    sides=(
        SideRecord(role="bull", verified=1, contradicted=1, unverifiable=1, weight=0.5),
        SideRecord(role="bear", verified=1, contradicted=0, unverifiable=0, weight=1.0),
    ),
)


def event(role: object, said: object = None, turn: int = 0) -> DebateEvent:
    return DebateEvent(cycle_id="c", role=role, round=turn, said=said)  # type: ignore[arg-type]


def events() -> Iterator[DebateEvent]:
    """A whole debate in which the bear is late at the end."""
    yield event(None, CANDIDATE)
    yield event("bull")
    yield event("bull", OPENING)
    yield event("bear")
    yield event("bear", ATTACK)
    yield event("bull", None, 1)
    yield event("bull", ANSWER, 1)
    yield event("bear", None, 1)
    yield event("bear", TIMED_OUT, 1)
    yield event("arbitrator", None, 1)
    yield event("arbitrator", WEIGHING, 1)
    yield event(None, "the GO is put to the texts among the evidence")
    yield event(None, VERDICT)
