"""The debate as a LangGraph StateGraph: bull, bear, rounds, arbitrator, hearing, approval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, StateSnapshot

from agents.debate.approval import approvable, approval
from agents.debate.arbitrator import decide, make_arbitrator
from agents.debate.bear import make_bear
from agents.debate.bull import make_bull
from agents.debate.checkpoints import Checkpoints
from agents.debate.concluding import concluded, is_go
from agents.debate.hearing import has_foreign_text, hearing
from agents.debate.rules import DebateLimits
from agents.debate.speaking import transcript
from agents.debate.state import DebateContext, DebateState, Node, empty_state
from trader.core.canonical import from_primitive, sha256_of, to_object
from trader.core.clock import monotonic_seconds
from trader.core.costs import Costs
from trader.core.decision import (
    Answer,
    AwaitedApproval,
    Candidate,
    Debate,
    Evidence,
    EvidenceIndex,
    RiskFlag,
    Verdict,
)
from trader.core.errors import ApprovalPendingError, UsageError
from trader.core.flags import FlagCode
from trader.core.ports import Approvals, ChatModel, DebateEvent, DebateListener, History

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

NODES_BESIDE_ROUNDS = 8  # arbitrator twice, hearing, approval, and room


class DebateGraph:
    """A `Deliberation` held as a graph.

    arbitrator   a model that weighs the verified claims after the table; None: the table alone
    rounds       rebuttal rounds after the opening, in each the bear speaks last
    seconds      deadline of one debate; None where no model is asked
    checkpoints  where a debate is kept while it goes on; None: a run that dies begins it again
    approvals    given: every GO waits for a person, which needs checkpoints; None: nobody is asked
    bear_first   the arbitrator's model reads the bear before the bull
    thread       what its checkpoints are called besides the cycle's id
    """

    def __init__(
        self,
        *,
        bull: ChatModel,
        bear: ChatModel,
        arbitrator: ChatModel | None = None,
        limits: DebateLimits,
        costs: Costs,
        rounds: int,
        seconds: float | None = None,
        checkpoints: Checkpoints | None = None,
        approvals: Approvals | None = None,
        listener: DebateListener | None = None,
        bear_first: bool = False,
        thread: str = "",
    ) -> None:
        self._thread = thread
        self._limits, self._costs, self._rounds = limits, costs, rounds
        self._seconds, self._bear_first = seconds, bear_first
        self._checkpoints, self._approvals, self._listener = checkpoints, approvals, listener
        names = [speaker.name for speaker in (bull, bear, arbitrator) if speaker is not None]
        self.debater = " / ".join(names if len(set(names)) > 1 else names[:1])
        graph = drawn(
            {
                "bull": make_bull(bull),
                "bear": make_bear(bear),
                "arbitrator": make_arbitrator(limits, costs, arbitrator),
                "hearing": hearing,
                "approval": approval,
            },
            rounds=rounds,
            approved=approvals is not None,
        )
        graph.add_edge(START, "bull")
        saver = None if checkpoints is None else checkpoints.saver
        self.compiled = graph.compile(name="debate", checkpointer=saver)

    def mermaid(self) -> str:
        """The graph's picture, drawn from the code."""
        return self.compiled.get_graph().draw_mermaid()

    def deliberate(
        self,
        candidate: Candidate,
        evidence: Sequence[Evidence],
        cycle_id: str,
        history: History,
    ) -> Debate:
        """Hold the debate; the transcript and the verdict, NO_GO for anything that went wrong.

        A debate that was kept goes on where it stopped. Raises ApprovalPendingError when a person
        has to approve, UsageError for an answer after another one, RecordingError when a recorded
        reply is not there, StateError when the checkpoints cannot be used.
        """
        context = DebateContext(
            cycle_id=cycle_id,
            candidate=candidate,
            evidence=EvidenceIndex(evidence),
            history=history,
            deadline=None if self._seconds is None else monotonic_seconds() + self._seconds,
            bear_first=self._bear_first,
            listener=self._listener,
        )
        self._tell(DebateEvent(cycle_id=cycle_id, role=None, round=0, said=candidate))
        debate = concluded(self._held(context), self.debater)
        self._tell(DebateEvent(cycle_id=cycle_id, role=None, round=0, said=debate.verdict))
        return debate

    def _held(self, context: DebateContext) -> dict[str, Any]:
        if self._checkpoints is None:
            return self._run(context)
        with self._checkpoints.sound():
            return self._run(context)

    def _run(self, context: DebateContext) -> dict[str, Any]:
        config: RunnableConfig = {
            "configurable": {"thread_id": context.cycle_id + self._thread},
            "recursion_limit": 4 * (self._rounds + 1) + NODES_BESIDE_ROUNDS,
        }
        # hashing the evidence costs as much as a debate of rules: only where states are kept
        subject = "" if self._checkpoints is None else _subject(context)
        start: Any = empty_state(subject, foreign=has_foreign_text(context))
        if self._checkpoints is not None:
            kept = self._checkpoints.kept(lambda: _readable(self.compiled.get_state(config)))
            if kept.values and kept.values.get("subject") != subject:
                self._checkpoints.forget([context.cycle_id + self._thread])
            # `next` leaves out a speaker who has spoken and whose step is not closed: a run that
            # died there would pass for finished, with what comes after it left out
            elif kept.values and not kept.tasks:
                self._require_same_answer(kept.values["approval"], context.cycle_id)
                return dict(kept.values)
            elif kept.interrupts:
                answer = self._approvals and self._approvals.answer(context.cycle_id)
                if answer is None:
                    raise ApprovalPendingError(_awaited(kept.values, context))
                start = Command(resume=answer)
            elif kept.values:
                start = None  # it was cut short: go on with the next speaker
        state = self._walk(start, config, context)
        if "__interrupt__" in state:
            raise ApprovalPendingError(_awaited(state, context))
        return state

    def _require_same_answer(self, stands: Answer | None, cycle_id: str) -> None:
        given = None if self._approvals is None else self._approvals.answers.get(cycle_id)
        if stands is not None and given not in (None, stands):
            raise UsageError(f"{cycle_id} cannot be {given} any more: it is {stands}")

    def _walk(self, start: Any, config: RunnableConfig, context: DebateContext) -> dict[str, Any]:
        """Run the graph to its end; a debate that does not end is a NO_GO with what was said."""
        state: dict[str, Any] = dict(start) if isinstance(start, dict) else {}
        durable: dict[str, Any] = {} if self._checkpoints is None else {"durability": "sync"}
        try:
            # nodes run in this thread, where Ctrl-C reaches a call that hangs; the mode `custom`
            # would put them in another
            for values in self.compiled.stream(
                start, config, context=context, stream_mode="values", **durable
            ):
                state = values
        except GraphRecursionError:
            return self._stopped(state, context)
        return state

    def _stopped(self, state: dict[str, Any], context: DebateContext) -> dict[str, Any]:
        arguments, rebuttals = transcript(state)  # type: ignore[arg-type]
        stopped = RiskFlag(code=FlagCode.NOT_CONVERGED, detail="the debate did not come to an end")
        failures = [from_primitive(RiskFlag, flag) for flag in state["failures"]]
        verdict: Verdict = decide(
            context,
            arguments,
            rebuttals,
            (*failures, stopped),
            limits=self._limits,
            costs=self._costs,
        )
        return {**state, "verdict": to_object(verdict)}

    def _tell(self, event: DebateEvent) -> None:
        if self._listener is not None:
            self._listener(event)


def drawn(
    nodes: Mapping[str, Node], *, rounds: int, approved: bool
) -> StateGraph[DebateState, DebateContext]:
    """Who speaks after whom; the way from START is left to the caller.

    nodes     bull, bear, arbitrator, hearing, approval
    approved  whether a GO waits for a person
    """

    def after_bear(state: DebateState) -> Literal["bull", "arbitrator"]:
        over = state["failures"] or state["round"] > rounds or not _brought_news(state)
        return "arbitrator" if over else "bull"

    def after_arbitrator(state: DebateState) -> Literal["hearing", "approval", "__end__"]:
        if not is_go(state["verdict"]):
            return "__end__"
        if state["foreign"] and state["facts"] is None:
            return "hearing"
        return "approval" if approved else "__end__"

    graph = StateGraph(DebateState, context_schema=DebateContext)
    for name, node in nodes.items():
        graph.add_node(name, node)
    graph.add_conditional_edges("bull", _after_bull)
    graph.add_conditional_edges("bear", after_bear)
    graph.add_conditional_edges("arbitrator", after_arbitrator)
    graph.add_edge("hearing", "bull")
    graph.add_edge("approval", END)
    return graph


def _after_bull(state: DebateState) -> Literal["bear", "arbitrator"]:
    return "arbitrator" if state["failures"] else "bear"


def _brought_news(state: DebateState) -> bool:
    """Whether the last round verified a fact that nobody had verified before it."""

    def verified(turns: Sequence[Any]) -> set[str]:
        return {
            claim["field"]
            for turn in turns
            for claim in turn["claims"]
            if claim["status"] == "verified"
        }

    arguments, rebuttals = state["arguments"], state["rebuttals"]
    before = verified(arguments[:-1]) | verified(rebuttals[:-1])
    return bool((verified(arguments[-1:]) | verified(rebuttals[-1:])) - before)


def _readable(kept: StateSnapshot) -> StateSnapshot:
    """The kept state, once what was said in it is found to be speeches and not something else."""
    if kept.values:
        transcript(kept.values)  # type: ignore[arg-type]
    return kept


def _subject(context: DebateContext) -> str:
    return sha256_of([context.candidate, context.evidence.items])


def _awaited(state: Mapping[str, Any], context: DebateContext) -> AwaitedApproval:
    verdict = from_primitive(Verdict, approvable(state))
    signal = context.candidate.signal
    return AwaitedApproval(
        cycle_id=context.cycle_id,
        as_of=signal.as_of,
        symbol=signal.symbol,
        strategy=signal.strategy,
        entry_price=verdict.entry_price,
        stop_price=verdict.stop_price,
        target_price=verdict.target_price,
        reward_risk_ratio=verdict.reward_risk_ratio,
        rationale=verdict.rationale,
    )
