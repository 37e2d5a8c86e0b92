"""The hearing: a debate that ended in GO is held again with the words of strangers in it.

In the debate that decides, nobody reads a free word: not of a paper, a news item, a memory or a
disclosure, and not the other side's. Where such texts are among the evidence, a GO is put to them
afterwards. The hearing can take the GO away; it can neither give one nor change a level. So
whatever a text says, the order is the one that would have been sent without it, or none.
"""

from __future__ import annotations

from langgraph.runtime import Runtime

from agents.debate.identity import usable
from agents.debate.speaking import tell
from agents.debate.state import DebateContext, DebateState, DebateUpdate
from trader.core.decision import FOREIGN_KINDS


def has_foreign_text(context: DebateContext) -> bool:
    """Whether a text of a stranger may be read in this debate."""
    return any(
        fact.kind in FOREIGN_KINDS and not usable(fact, context.candidate.instrument)
        for fact in context.evidence.items
    )


def hearing(state: DebateState, *, runtime: Runtime[DebateContext]) -> DebateUpdate:
    """Keep the debate over facts and begin again, this time with the texts."""
    tell(runtime, None, 0, "the GO is put to the texts among the evidence")
    kept = ("arguments", "rebuttals", "calls", "weighing", "verdict")
    return {
        "facts": {name: state[name] for name in kept},  # type: ignore[literal-required]
        "round": 0,
        "arguments": [],
        "rebuttals": [],
        "failures": [],
        "calls": [],
        "weighing": None,
        "verdict": None,
    }
