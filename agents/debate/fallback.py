"""What follows a debate of models that failed, where a person has asked for it: rules debate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trader.core.decision import Candidate, Debate, Evidence
from trader.core.flags import FlagCode
from trader.core.ports import Deliberation, History

FAILURES = frozenset(
    {
        FlagCode.ENDPOINT_FAILURE,
        FlagCode.TIMED_OUT,
        FlagCode.REFUSED_REPLY,
        FlagCode.TRUNCATED_REPLY,
        FlagCode.INVALID_REPLY,
        FlagCode.OTHER_ISSUER,
        FlagCode.BUDGET_EXHAUSTED,
        FlagCode.NOT_CONVERGED,
    }
)


class WithFallback:
    """A `Deliberation` that holds a failed debate again, by `second`, and says so in the record.

    Only a failure is followed by another debate: a NO_GO that was argued stands.
    """

    def __init__(self, first: Deliberation, second: Deliberation) -> None:
        self._first, self._second = first, second

    @property
    def debater(self) -> str:
        """Who debates first."""
        return self._first.debater

    def deliberate(
        self,
        candidate: Candidate,
        evidence: Sequence[Evidence],
        cycle_id: str,
        history: History,
    ) -> Debate:
        """The first debate, or the second with the reason why the first cannot count."""
        debate = self._first.deliberate(candidate, evidence, cycle_id, history)
        failed = next((flag for flag in debate.verdict.flags if flag.code in FAILURES), None)
        if failed is None:
            return debate
        again = self._second.deliberate(candidate, evidence, cycle_id, history)
        return replace(
            again,
            calls=debate.calls,
            looked_up={**debate.looked_up, **again.looked_up},
            fallback=f"{failed.code}: {failed.detail}",
        )
