"""Bull states a thesis with levels and claims, then answers the bear."""

from __future__ import annotations

from dataclasses import replace

from langgraph.runtime import Runtime

from agents.debate.schemas import parse_argument
from agents.debate.speaking import after, ask, checked, request, require_identity, tell
from agents.debate.state import DebateContext, DebateState, DebateUpdate, Node
from trader.core.canonical import to_object
from trader.core.decision import Argument
from trader.core.ports import ChatModel


def make_bull(chat: ChatModel) -> Node:
    """Bull reads the evidence and the bear's last rebuttal, and argues for the trade.

    Its claims are checked before anyone reads them.
    """

    def bull(state: DebateState, *, runtime: Runtime[DebateContext]) -> DebateUpdate:
        context, turn = runtime.context, state["round"]

        def parse(text: str) -> Argument:
            argument = parse_argument(text, turn)
            require_identity(context, argument.thesis, *(said.text for said in argument.claims))
            return argument

        tell(runtime, "bull", turn)
        heard = ask(chat, request("bull", state, context), parse)
        if heard.said is None:
            tell(runtime, "bull", turn, heard.failure)
            return after(state, context, heard)
        argument = replace(heard.said, claims=checked(heard.said.claims, state, context))
        tell(runtime, "bull", turn, argument)
        said = [*state["arguments"], to_object(argument)]
        return {"arguments": said, **after(state, context, heard)}

    return bull
