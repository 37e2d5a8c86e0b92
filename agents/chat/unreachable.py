"""A speaker that cannot be asked, so that a run may go on with its exits."""

from __future__ import annotations

from trader.core.errors import EndpointError
from trader.core.ports import ChatReply, ChatRequest


class Unreachable:
    """A `ChatModel` whose every call fails with the same reason: each entry becomes a NO_GO."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self._reason = name, reason

    def complete(self, request: ChatRequest) -> ChatReply:
        """Raise EndpointError."""
        del request
        raise EndpointError(self._reason)
