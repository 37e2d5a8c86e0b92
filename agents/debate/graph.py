"""The debate as a LangGraph StateGraph: bull, bear, rebuttal rounds, arbitrator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from langgraph.graph import END, START, StateGraph

from agents.debate.arbitrator import decide, make_arbitrator
from agents.debate.bear import make_bear
from agents.debate.bull import make_bull
from agents.debate.rules import DebateLimits
from agents.debate.speaking import transcript
from agents.debate.state import DebateContext, DebateState, empty_state
from trader.core.canonical import from_primitive
from trader.core.costs import Costs
from trader.core.decision import (
    Candidate,
    Debate,
    Evidence,
    EvidenceIndex,
    FlagCode,
    RiskFlag,
    Verdict,
)
from trader.core.ports import ChatModel, History


class DebateGraph:
    """A `Deliberation` held as a graph.

    rounds  rebuttal rounds after the opening; each lets the bull answer and the bear speak last
    """

    def __init__(
        self, *, bull: ChatModel, bear: ChatModel, limits: DebateLimits, costs: Costs, rounds: int
    ) -> None:
        self._limits, self._costs, self._rounds = limits, costs, rounds
        self.debater = bull.name if bull.name == bear.name else f"{bull.name} / {bear.name}"
        graph = StateGraph(DebateState, context_schema=DebateContext)
        graph.add_node("bull", make_bull(bull))
        graph.add_node("bear", make_bear(bear))
        graph.add_node("arbitrator", make_arbitrator(limits, costs))
        graph.add_edge(START, "bull")
        graph.add_conditional_edges("bull", _after_bull)
        graph.add_conditional_edges("bear", self._after_bear)
        graph.add_edge("arbitrator", END)
        self._graph = graph.compile(name="debate")

    def _after_bear(self, state: DebateState) -> Literal["bull", "arbitrator"]:
        return "arbitrator" if state["failures"] or state["round"] > self._rounds else "bull"

    def mermaid(self) -> str:
        """The graph's picture, drawn from the code."""
        return self._graph.get_graph().draw_mermaid()

    def deliberate(
        self,
        candidate: Candidate,
        evidence: Sequence[Evidence],
        cycle_id: str,
        history: History,
    ) -> Debate:
        """Hold the debate; the transcript and the verdict, NO_GO for anything that went wrong."""
        context = DebateContext(
            cycle_id=cycle_id,
            candidate=candidate,
            evidence=EvidenceIndex(evidence),
            history=history,
        )
        state = self._graph.invoke(
            empty_state(),
            {"recursion_limit": 2 * self._rounds + 10},
            context=context,
        )
        arguments, rebuttals = transcript(state)  # type: ignore[arg-type]
        if state["verdict"] is None:
            stopped = RiskFlag(
                code=FlagCode.INVALID_REPLY, detail="the debate ended without a verdict"
            )
            verdict = decide(
                context, arguments, rebuttals, (stopped,), limits=self._limits, costs=self._costs
            )
        else:
            verdict = from_primitive(Verdict, state["verdict"])
        return Debate(
            debater=self.debater, arguments=arguments, rebuttals=rebuttals, verdict=verdict
        )


def _after_bull(state: DebateState) -> Literal["bear", "arbitrator"]:
    return "arbitrator" if state["failures"] else "bear"
