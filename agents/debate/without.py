"""No debate: the baseline a debate must beat. Backtests only; a paper run always holds a debate."""

from __future__ import annotations

from collections.abc import Sequence

from trader.core.canonical import sha256_of
from trader.core.decision import Candidate, Debate, Decision, Evidence, Verdict


class WithoutDebate:
    """A `Deliberation` that passes every signal to the gate, with its stop, without a target."""

    debater = "off"

    def deliberate(
        self, candidate: Candidate, _evidence: Sequence[Evidence], cycle_id: str
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
