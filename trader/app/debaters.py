"""Who decides about a candidate: the configured debate, or one of the baselines without it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from trader.app.assembly import costs_of
from trader.app.folder import make_folder
from trader.core.ports import Spend

if TYPE_CHECKING:
    from agents.chat.budget import Budget
    from agents.chat.capability import Capabilities
    from agents.chat.recorded_chat import Meter
    from agents.chat.store import ChatStore
    from agents.debate.checkpoints import Checkpoints
    from agents.debate.rules import DebateLimits
    from trader.core.config import Config
    from trader.core.decision import ChatCall, Role
    from trader.core.ports import Approvals, ChatModel, DebateListener, Deliberation

Who = Literal["debate", "rules", "arbitrator", "nobody"]
RULES_THREAD = "/rules"  # the fallback's own thread among the checkpoints


class Debaters:
    """Everyone who may decide in one command.

    listener     told what happens in the configured debate while it goes on
    checkpoints  file that keeps a debate while it goes on; None: a run that dies begins it again
    approvals    given: every GO of the configured debate waits for a person
    recorded     calls of one decision that is taken again, answered exactly as they were then
    """

    def __init__(
        self,
        config: Config,
        *,
        environ: Mapping[str, str] | None = None,
        listener: DebateListener | None = None,
        checkpoints: Path | None = None,
        approvals: Approvals | None = None,
        recorded: Sequence[ChatCall] | None = None,
    ) -> None:
        self._config, self._listener, self._approvals = config, listener, approvals
        self._environ = os.environ if environ is None else environ
        self._checkpoints_path, self._recorded = checkpoints, recorded
        self._unreachable = ""

    def without_models(self, reason: str) -> Deliberation:
        """The configured debate of models when none of them can be asked.

        Every entry ends in NO_GO for `reason`, or is debated by rules where `debate.fallback` says
        so; whoever holds it can go on with the exits.
        """
        self._unreachable = reason
        return self.deliberation("debate")

    def deliberation(self, who: Who, *, bear_first: bool = False) -> Deliberation:
        """The configured debate, the debate of rules, the arbitrator alone, or nobody.

        bear_first  the arbitrator's model reads the bear before the bull: for an audit
        Raises ConfigError when models are to debate and one is not named, or its key is missing.
        """
        # LangGraph takes most of a second to import; commands that only look do without it
        from agents.debate.without import ArbitratorAlone, WithoutDebate

        if who == "nobody":
            return WithoutDebate()
        if who == "arbitrator":
            return ArbitratorAlone(limits=self._limits(), costs=costs_of(self._config))
        if who == "rules" or self._config.debate.mode != "llm":
            return self._by_rules(told=who == "debate", bear_first=bear_first)
        models = self._by_models(bear_first=bear_first)
        if self._config.debate.fallback == "none":
            return models
        from agents.debate.fallback import WithFallback

        return WithFallback(models, self._by_rules(told=True, thread=RULES_THREAD))

    def _by_rules(self, *, told: bool, bear_first: bool = False, thread: str = "") -> Deliberation:
        from agents.chat.rules_chat import RulesChat
        from agents.debate.graph import DebateGraph

        return DebateGraph(
            bull=RulesChat(),
            bear=RulesChat(),
            limits=self._limits(),
            costs=costs_of(self._config),
            rounds=self._config.debate.rounds,
            checkpoints=self._checkpoints if told else None,
            approvals=self._approvals if told else None,
            listener=self._listener if told else None,
            bear_first=bear_first,
            thread=thread,
        )

    def _by_models(self, *, bear_first: bool) -> Deliberation:
        from agents.debate.graph import DebateGraph

        return DebateGraph(
            bull=self._model("bull"),
            bear=self._model("bear"),
            arbitrator=self._model("arbitrator"),
            limits=self._limits(),
            costs=costs_of(self._config),
            rounds=self._config.debate.rounds,
            seconds=self._config.debate.seconds,
            checkpoints=self._checkpoints,
            approvals=self._approvals,
            listener=self._listener,
            bear_first=bear_first,
        )

    def _model(self, role: Role) -> ChatModel:
        """The endpoint of a role, recorded and within the budget; or its recorded replies."""
        if self._unreachable:
            from agents.chat.unreachable import Unreachable

            return Unreachable(self._config.models.model or "no model", self._unreachable)
        from agents.chat.endpoint import api_key, key_variable, model_spec
        from agents.chat.recorded_chat import RecordedChat, RecordingChat, recorded_spec

        models, chats = self._config.models, self._chats
        if self._recorded is not None:
            spec = recorded_spec(chats.store, self._recorded, role)
            if spec is None:  # the debate ended before this role was asked
                spec = model_spec(models, role, self._environ)
            return RecordedChat(spec, chats.store, self._recorded, meter=chats.meter)
        spec = model_spec(models, role, self._environ)
        if self._config.debate.recording == "read":
            return RecordedChat(spec, chats.store, meter=chats.meter)
        from agents.chat.budget import BudgetedChat, Prices
        from agents.chat.openai_chat import OpenAIChat

        prices = Prices.of(models)
        endpoint = OpenAIChat(
            spec,
            key=api_key(models, role, self._environ),
            key_variable=key_variable(models, role),
            call_seconds=models.call_seconds,
            retries=models.retries,
            capabilities=chats.capabilities,
        )
        budgeted = BudgetedChat(endpoint, spec, chats.budget, prices)
        return RecordingChat(budgeted, spec, chats.store, meter=chats.meter)

    def _limits(self) -> DebateLimits:
        from agents.debate.rules import DebateLimits

        return DebateLimits(
            min_reward_risk=self._config.risk.min_reward_risk,
            max_position_weight=self._config.risk.max_position_weight,
            minimum_verified_claims=self._config.debate.minimum_verified_claims,
            minimum_confidence=self._config.debate.minimum_confidence,
        )

    @cached_property
    def _chats(self) -> _Chats:
        from agents.chat.budget import Budget, BudgetLimits
        from agents.chat.capability import Capabilities
        from agents.chat.recorded_chat import Meter
        from agents.chat.store import ChatStore

        folder = Path(self._config.state_dir).expanduser() / "chats"
        reading = self._recorded is not None or self._config.debate.recording == "read"
        store = ChatStore(
            (folder if reading else make_folder(folder)) / "chats.db", read_only=reading
        )
        return _Chats(
            store=store,
            budget=Budget(BudgetLimits.of(self._config.models.budget), store),
            meter=Meter(),
            capabilities=Capabilities(),
        )

    @cached_property
    def _checkpoints(self) -> Checkpoints | None:
        if self._checkpoints_path is None:
            return None
        from agents.debate.checkpoints import Checkpoints

        return Checkpoints(self._checkpoints_path)

    @property
    def spend(self) -> Spend:
        """What model calls have used so far in this command; replayed ones as they were then."""
        return self._chats.meter.spend if "_chats" in self.__dict__ else Spend()

    def forget(self) -> None:
        """Drop every checkpoint: the slot is finished, its debates are in the ledger."""
        if "_checkpoints" in self.__dict__ and self._checkpoints is not None:
            self._checkpoints.forget_all()

    def close(self) -> None:
        """Close the files that were opened."""
        if "_checkpoints" in self.__dict__ and self._checkpoints is not None:
            self._checkpoints.close()
        if "_chats" in self.__dict__:
            self._chats.store.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chats:
    """What all models of a command share."""

    store: ChatStore
    budget: Budget
    meter: Meter
    capabilities: Capabilities
