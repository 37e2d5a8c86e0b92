"""The baselines that a debate must beat: nobody decides, or the arbitrator without debaters."""

from __future__ import annotations

from collections.abc import Sequence

from agents.debate.arbitrator import decide_alone
from agents.debate.rules import DebateLimits
from agents.debate.state import DebateContext
from trader.core.canonical import sha256_of
from trader.core.costs import Costs
from trader.core.decision import Candidate, Debate, Decision, Evidence, EvidenceIndex, Verdict
from trader.core.ports import History


class WithoutDebate:
    """A `Deliberation` that passes every signal to the gate, with its stop, without a target."""

    debater = "off"

    def deliberate(
        self,
        candidate: Candidate,
        _evidence: Sequence[Evidence],
        cycle_id: str,
        _history: History,
    ) -> Debate:
        """GO at the candidate's own levels; the evidence is not read."""
        verdict = Verdict(
            verdict_id=f"V-{sha256_of([cycle_id, candidate])[:16]}",
            symbol=candidate.signal.symbol,
            decision=Decision.GO,
            confidence=0.0,
            entry_price=candidate.entry_price,
            stop_price=candidate.stop_price,
            target_price=None,
            reward_risk_ratio=None,
            expected_value_r=None,
            rationale="No debate was held.",
            flags=(),
            rules=(),
            decided_at=candidate.signal.as_of,
        )
        return Debate(debater=self.debater, arguments=(), rebuttals=(), verdict=verdict)


class ArbitratorAlone:
    """A `Deliberation` in which nobody argues: the arbitrator's rules about data and levels decide.

    The target is the level with the best expected value, as the rule-based bull would choose.
    """

    debater = "arbitrator"

    def __init__(self, *, limits: DebateLimits, costs: Costs) -> None:
        self._limits, self._costs = limits, costs

    def deliberate(
        self,
        candidate: Candidate,
        evidence: Sequence[Evidence],
        cycle_id: str,
        history: History,
    ) -> Debate:
        """GO when every rule that needs no claims passes."""
        context = DebateContext(
            cycle_id=cycle_id,
            candidate=candidate,
            evidence=EvidenceIndex(evidence),
            history=history,
        )
        verdict = decide_alone(context, limits=self._limits, costs=self._costs)
        return Debate(debater=self.debater, arguments=(), rebuttals=(), verdict=verdict)
