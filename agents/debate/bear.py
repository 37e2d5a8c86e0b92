"""Bear reads the bull's checked claims and attacks the weakest one."""

from __future__ import annotations

from dataclasses import replace

from langgraph.runtime import Runtime

from agents.debate.claims import check_claims
from agents.debate.schemas import InvalidReplyError, parse_rebuttal
from agents.debate.speaking import failure, request
from agents.debate.state import DebateContext, DebateState, DebateUpdate, Node
from trader.core.canonical import to_object
from trader.core.errors import EndpointError
from trader.core.ports import ChatModel


def make_bear(chat: ChatModel) -> Node:
    """Bear answers the bull's last argument; the round is over when it has spoken."""

    def bear(state: DebateState, *, runtime: Runtime[DebateContext]) -> DebateUpdate:
        asked = request("bear", state, runtime.context)
        try:
            reply = chat.complete(asked)
            rebuttal = parse_rebuttal(reply.text, state["round"], against=asked.arguments[-1])
        except (InvalidReplyError, EndpointError) as exc:
            return {"failures": [failure("bear", exc)]}
        checked = replace(
            rebuttal,
            claims=check_claims(rebuttal.claims, runtime.context.evidence, runtime.context.history),
        )
        return {
            "rebuttals": [to_object(checked)],
            "round": state["round"] + 1,
        }

    return bear
