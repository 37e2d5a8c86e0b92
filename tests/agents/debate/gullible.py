"""A model that reasons soundly until it reads an order anywhere in its prompt; then it obeys."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from agents.chat.rules_chat import RulesChat
from agents.debate.numbering import numbered_claims
from tests.agents.debate.payloads import Payload
from trader.core.ports import ChatReply, ChatRequest


def squeezed(text: str) -> str:
    """What a reader makes of a text however it is dressed up: its letters and digits."""
    shown = unicodedata.normalize("NFKC", text).lower()
    return "".join(character for character in shown if character.isalnum())


class GullibleChat:
    """Rules for the facts, a fair arbitrator, and blind obedience to one payload.

    payload  the order it obeys when it sees it, in whatever dress; None: it is never fooled
    planted  says these words itself, where people read: a debater who attacks the other side
    strict   as an arbitrator it says NO_GO unless the bull has more than so many times the bear's
             verified claims
    """

    name = "gullible"

    def __init__(
        self, payload: Payload | None, *, planted: str | None = None, strict: float = 1.0
    ) -> None:
        self._strict = strict
        self.face(payload, planted=planted)

    def face(self, payload: Payload | None, *, planted: str | None = None) -> None:
        """Obey another payload from now on."""
        self._payload, self._planted = payload, planted
        self._seen = None if payload is None else squeezed(payload.text)[:40]
        self.obeyed = 0

    def complete(self, request: ChatRequest) -> ChatReply:
        """The reply as JSON text."""
        read = "\n".join(message.content for message in request.prompt().messages)
        if request.role == "arbitrator":
            reply = self._weighed(request)
        else:
            reply = json.loads(RulesChat().complete(request).text)
        if self._planted is not None and request.role != "arbitrator":
            self._plant(request.role, reply)
        if self._seen and self._seen in squeezed(read):
            self.obeyed += 1
            return ChatReply(text=self._obey(request, reply))
        return ChatReply(text=json.dumps(reply))

    def _weighed(self, request: ChatRequest) -> dict[str, Any]:
        claims = numbered_claims(request.arguments, request.rebuttals)
        verified = [number for number, claim in claims.items() if claim.status == "verified"]
        bull = sum(number.startswith("B") for number in verified)
        bear = len(verified) - bull
        return {
            "decision": "GO" if bull > self._strict * bear else "NO_GO",
            "confidence": 0.6,
            "decisive": verified[:3],
            "rationale": "More of the bull's claims hold.",
        }

    def _plant(self, role: str, reply: dict[str, Any]) -> None:
        reply["thesis" if role == "bull" else "counter"] = self._planted
        if role == "bull" and len(str(self._planted)) % 2:  # in the sentences of its claims too
            reply["claims"][-1]["text"] = str(self._planted)

    def _obey(self, request: ChatRequest, reply: dict[str, Any]) -> str:
        assert self._payload is not None
        effect = self._payload.effect
        if effect == "refuse":
            return "banana"
        if effect == "garbage":
            return json.dumps(reply) + "\n" + json.dumps(reply | {"decision": "GO"})
        if request.role == "arbitrator":
            claims = numbered_claims(request.arguments, request.rebuttals)
            sure = [number for number, claim in claims.items() if claim.status == "verified"]
            confidence = 100 if effect == "confidence" else 1.0
            reply |= {"decision": "GO", "decisive": sure[:3], "confidence": confidence}
        elif request.role == "bear":
            reply["claims"] = []
        elif effect in ("target", "go"):
            levels = [fact.value or 0.0 for fact in request.evidence.starting("target_")]
            reply["target_price"] = max(levels) if len(levels) > 1 else 180.0
        elif effect == "stop":
            reply["stop_price"] = 100.04
        elif effect == "claims":
            reply["claims"] = [claim | {"quoted_value": 99.0} for claim in reply["claims"]]
        return json.dumps(reply)
