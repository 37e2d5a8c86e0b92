"""Who decides about a candidate: the configured debate, or one of the baselines without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from trader.app.assembly import costs_of
from trader.core.ports import Spend

if TYPE_CHECKING:
    from agents.debate.rules import DebateLimits
    from trader.core.config import Config
    from trader.core.ports import DebateListener, Deliberation

Who = Literal["debate", "rules", "arbitrator", "nobody"]


class Debaters:
    """Everyone who may decide in one command.

    listener  told what happens in the configured debate while it goes on
    """

    def __init__(self, config: Config, *, listener: DebateListener | None = None) -> None:
        self._config, self._listener = config, listener

    def deliberation(self, who: Who) -> Deliberation:
        """The configured debate, the debate of rules, the arbitrator alone, or nobody."""
        # LangGraph takes most of a second to import; commands that only look do without it
        from agents.debate.without import ArbitratorAlone, WithoutDebate

        if who == "nobody":
            return WithoutDebate()
        limits, costs = self._limits(), costs_of(self._config)
        if who == "arbitrator":
            return ArbitratorAlone(limits=limits, costs=costs)
        from agents.chat.rules_chat import RulesChat
        from agents.debate.graph import DebateGraph

        return DebateGraph(
            bull=RulesChat(),
            bear=RulesChat(),
            limits=limits,
            costs=costs,
            rounds=self._config.debate.rounds,
        )

    def _limits(self) -> DebateLimits:
        from agents.debate.rules import DebateLimits

        return DebateLimits(
            min_reward_risk=self._config.risk.min_reward_risk,
            max_position_weight=self._config.risk.max_position_weight,
            minimum_verified_claims=self._config.debate.minimum_verified_claims,
            minimum_confidence=self._config.debate.minimum_confidence,
        )

    @property
    def spend(self) -> Spend:
        """What model calls have used so far in this command."""
        return Spend()
