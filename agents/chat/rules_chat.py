"""The default debater: rules, no model. It says so wherever it speaks."""

from __future__ import annotations

import json

from agents.chat.bear_rules import bear_reply
from agents.chat.bull_rules import bull_reply
from trader.core.ports import ChatReply, ChatRequest


class RulesChat:
    """A deterministic `ChatModel` arguing from a catalogue of patterns, without key or network."""

    name = "rules"

    def complete(self, request: ChatRequest) -> ChatReply:
        """Bull's or bear's reply as JSON text, parsed and checked like anyone else's."""
        fields = bull_reply(request) if request.role == "bull" else bear_reply(request)
        return ChatReply(text=json.dumps(fields))
