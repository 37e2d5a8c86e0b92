"""The chat adapter inside an event loop, and behind a resolver that hangs."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from tests.agents.chat.asked import PROMPT, chat
from tests.servers.chat_server import OK, ChatServer
from trader.core.errors import TimedOutError


def test_a_caller_inside_an_event_loop_gets_its_reply():
    async def notebook(base_url: str) -> str:
        return chat(base_url).ask(PROMPT).text

    with ChatServer(lambda _messages, _body: OK) as server:
        assert asyncio.run(notebook(server.base_url)) == OK


def test_a_resolver_that_hangs_does_not_hold_the_deadline(monkeypatch):
    freed = threading.Event()

    def hangs(*_args, **_kwargs):
        freed.wait(20.0)
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    monkeypatch.setattr(socket, "getaddrinfo", hangs)
    try:
        with pytest.raises(TimedOutError, match=r"no whole answer within 0\.2 s"):
            chat("http://localhost:9/v1", seconds=0.2).ask(PROMPT)
        assert not freed.is_set()  # the answer came while the look-up still hung
    finally:
        freed.set()
