"""The debate for LangGraph Studio: the same graph over one decision of the bundled bars, by rules.

Studio brings its own checkpointer, so the graph has none. `agents/langgraph.json` names `graph`.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from langgraph.graph import START
from langgraph.runtime import Runtime

from agents.chat.rules_chat import RulesChat
from agents.debate.approval import approval
from agents.debate.arbitrator import make_arbitrator
from agents.debate.bear import make_bear
from agents.debate.bull import make_bull
from agents.debate.graph import drawn
from agents.debate.hearing import hearing
from agents.debate.rules import DebateLimits
from agents.debate.state import (
    DebateContext,
    DebateState,
    DebateUpdate,
    Node,
    empty_state,
)
from trader.core.canonical import from_primitive
from trader.core.costs import Costs
from trader.core.decision import Candidate, Evidence, EvidenceIndex
from trader.core.past import PastQuestion
from trader.core.ports import History

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


class NoHistory:
    """A past that holds nothing: the example carries its evidence and no bars."""

    def __init__(self) -> None:
        self.answers: dict[str, float | None] = {}

    def ask(self, question: PastQuestion) -> float | None:
        """None, whatever is asked."""
        self.answers[question.key] = None
        return None


def example(history: History) -> DebateContext:
    """The decision that Studio debates."""
    found = json.loads(files("agents.debate").joinpath("example.json").read_text(encoding="utf-8"))
    return DebateContext(
        cycle_id="example",
        candidate=from_primitive(Candidate, found["candidate"]),
        evidence=EvidenceIndex([from_primitive(Evidence, fact) for fact in found["evidence"]]),
        history=history,
    )


def _about(node: Node, context: DebateContext) -> Node:
    def held(state: DebateState, *, runtime: Runtime[DebateContext]) -> DebateUpdate:
        return node(state, runtime=runtime.override(context=context))

    return held


def _begin(state: DebateState) -> DebateState:
    del state  # whatever Studio was given as input
    return empty_state()


def _example_graph(context: DebateContext) -> CompiledStateGraph[Any, Any, Any, Any]:
    rules = RulesChat()
    nodes = {
        "bull": make_bull(rules),
        "bear": make_bear(rules),
        "arbitrator": make_arbitrator(DebateLimits(), Costs(), None),
        "hearing": hearing,
        "approval": approval,
    }
    graph = drawn(
        {name: _about(node, context) for name, node in nodes.items()}, rounds=1, approved=True
    )
    graph.add_node("begin", _begin)
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "bull")
    return graph.compile(name="debate")


graph = _example_graph(example(NoHistory()))
