"""Bear reads the bull's checked claims and attacks the weakest one."""

from __future__ import annotations

from dataclasses import replace

from langgraph.runtime import Runtime

from agents.debate.schemas import parse_rebuttal
from agents.debate.speaking import after, ask, checked, request, require_identity, tell
from agents.debate.state import DebateContext, DebateState, DebateUpdate, Node
from trader.core.canonical import to_object
from trader.core.decision import Rebuttal
from trader.core.ports import ChatModel


def make_bear(chat: ChatModel) -> Node:
    """Bear answers the bull's last argument; the round is over when it has spoken."""

    def bear(state: DebateState, *, runtime: Runtime[DebateContext]) -> DebateUpdate:
        context, turn = runtime.context, state["round"]
        asked = request("bear", state, context)

        def parse(text: str) -> Rebuttal:
            rebuttal = parse_rebuttal(text, turn, asked.arguments)
            require_identity(context, rebuttal.counter, *(said.text for said in rebuttal.claims))
            return rebuttal

        tell(runtime, "bear", turn)
        heard = ask(chat, asked, parse)
        if heard.said is None:
            tell(runtime, "bear", turn, heard.failure)
            return after(state, context, heard)
        rebuttal = replace(heard.said, claims=checked(heard.said.claims, state, context))
        tell(runtime, "bear", turn, rebuttal)
        said = [*state["rebuttals"], to_object(rebuttal)]
        return {"rebuttals": said, "round": turn + 1, **after(state, context, heard)}

    return bear
