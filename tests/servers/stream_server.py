"""A websocket server on loopback whose every connection follows a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from threading import Event, Thread
from typing import Any

import msgpack
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

Script = Callable[["Talk"], None]


class Talk:
    """One connection, in Alpaca's manners."""

    def __init__(self, connection: ServerConnection, over: Event) -> None:
        self.connection, self._over = connection, over
        self.received: list[Any] = []

    def authorize(self, status: str = "authorized") -> None:
        """Take the key of a stream of trade updates."""
        self.hear()
        self.say({"stream": "authorization", "data": {"status": status, "action": "authenticate"}})

    def listen(self) -> None:
        """Take the key, and say that trade updates are sent."""
        self.authorize()
        self.hear()
        self.say({"stream": "listening", "data": {"streams": ["trade_updates"]}})

    def subscribe(self) -> None:
        """Take the key of a stream of market data, and what it asks for."""
        self.pack({"T": "success", "msg": "connected"})
        self.hear_packed()
        self.pack({"T": "success", "msg": "authenticated"})
        self.hear_packed()
        self.pack({"T": "subscription", "bars": ["AAPL"], "trades": [], "quotes": []})

    def hear(self) -> None:
        self.received.append(json.loads(self.connection.recv(timeout=5)))

    def hear_packed(self) -> None:
        self.received.append(msgpack.unpackb(self.connection.recv(timeout=5)))

    def say(self, message: object) -> None:
        self.connection.send(json.dumps(message).encode())

    def pack(self, *messages: Mapping[str, object]) -> None:
        self.connection.send(msgpack.packb(list(messages)))

    def wait(self) -> None:
        """Say nothing more; pings are answered."""
        try:
            while not self._over.is_set():
                self.connection.recv(timeout=0.05)
        except TimeoutError:
            self.wait()
        except ConnectionClosed:
            return


class StreamServer:
    """with StreamServer(first, second) as server: each connection follows the next script."""

    def __init__(self, *scripts: Script, refuse: Mapping[int, HTTPStatus] | None = None) -> None:
        """Refuse: HTTP status of the connections with these numbers, from 0 on."""
        self._scripts, self._over = scripts, Event()
        self.talks: list[Talk] = []
        self.agents: list[str] = []
        refused = refuse or {}

        def request(connection: ServerConnection, asked: Any) -> Any:
            number = len(self.agents)
            self.agents.append(asked.path)
            if number in refused:
                response = connection.respond(refused[number], "")
                if refused[number] == HTTPStatus.TEMPORARY_REDIRECT:
                    response.headers["Location"] = f"ws://127.0.0.1:{self.port}/elsewhere"
                return response
            return None

        self._server = serve(self._follow, "127.0.0.1", 0, process_request=request)
        self.port: int = self._server.socket.getsockname()[1]
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    def _follow(self, connection: ServerConnection) -> None:
        talk = Talk(connection, self._over)
        self.talks.append(talk)
        try:
            self._scripts[min(len(self.talks), len(self._scripts)) - 1](talk)
        except (ConnectionClosed, TimeoutError):
            return

    @property
    def base_url(self) -> str:
        """The address of an exchange whose websockets are at this port: its own is one below."""
        return f"http://127.0.0.1:{self.port - 1}"

    def __enter__(self) -> StreamServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._thread.join()
