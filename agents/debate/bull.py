"""Bull states a thesis with levels and claims, then answers the bear."""

from __future__ import annotations

from dataclasses import replace

from langgraph.runtime import Runtime

from agents.debate.claims import check_claims
from agents.debate.schemas import InvalidReplyError, parse_argument
from agents.debate.speaking import failure, request
from agents.debate.state import DebateContext, DebateState, DebateUpdate, Node
from trader.core.canonical import to_object
from trader.core.errors import EndpointError
from trader.core.ports import ChatModel


def make_bull(chat: ChatModel) -> Node:
    """Bull reads the evidence and the bear's last rebuttal, and argues for the trade.

    Its claims are checked before anyone reads them.
    """

    def bull(state: DebateState, *, runtime: Runtime[DebateContext]) -> DebateUpdate:
        try:
            reply = chat.complete(request("bull", state, runtime.context))
            argument = parse_argument(reply.text, state["round"])
        except (InvalidReplyError, EndpointError) as exc:
            return {"failures": [failure("bull", exc)]}
        checked = replace(
            argument,
            claims=check_claims(argument.claims, runtime.context.evidence, runtime.context.history),
        )
        return {"arguments": [to_object(checked)]}

    return bull
