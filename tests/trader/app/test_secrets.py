"""A key is sent to its endpoint and stays out of everything that is kept, printed or shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.chat_server import Behaviour, ChatServer, Exchange
from tests.servers.debater import debater
from trader.app import open_app

CANARY = "sk-canary-2718281828459045"
ESCAPED = "".join(f"\\u{ord(letter):04x}" for letter in CANARY)


def telling(exchange: Exchange) -> None:
    """Argue like a model, and say the key aloud in the words that are kept."""
    said = json.loads(debater(exchange.body["messages"], exchange.body))
    for name in ("thesis", "counter", "rationale"):
        if name in said:
            said[name] += f" The key is {CANARY}."
    exchange.reply(json.dumps(said))


def refusing(exchange: Exchange) -> None:
    """Refuse, and repeat the key in another spelling of JSON."""
    exchange.send(400, f'{{"error": {{"message": "bad key {ESCAPED}"}}}}'.encode())


def kept(state: Path) -> dict[str, bytes]:
    files = {str(path): path.read_bytes() for path in state.rglob("*") if path.is_file()}
    assert any(name.endswith("chats.db") for name in files)
    return files


@pytest.mark.parametrize("way", [telling, refusing])
def test_no_file_of_a_paper_run_holds_the_key(tmp_path, way, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with ChatServer(Behaviour((way,))) as server:
        app = open_app(
            environ={"OPENAI_API_KEY": CANARY},
            overrides=[
                f"state_dir={tmp_path}",
                f"models.base_url={server.base_url}",
                "models.model=test-model",
                "debate.mode=llm",
                "kernels.backend=reference",
            ],
        )
        results = [app.run_once(), app.run_once(), app.doctor()]
        sent = {received.headers["authorization"] for received in server.requests}
    assert sent == {f"Bearer {CANARY}"}
    assert results[1].cycles
    assert CANARY not in repr(app.loaded) + repr(results)
    for name, content in kept(tmp_path).items():
        assert CANARY.encode() not in content, name
        assert CANARY.encode("utf-16-le") not in content, name


def test_no_output_of_a_debate_shows_the_key(tmp_path):
    with ChatServer(Behaviour((refusing,))) as server:
        settings = {
            "state_dir": tmp_path,
            "models.base_url": server.base_url,
            "models.model": "test-model",
            "kernels.backend": "reference",
        }
        given = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        done = subprocess.run(
            [sys.executable, "-m", "trader", "-vv", "debate", "AAPL", "--debate", "llm", *given],
            env={**os.environ, "OPENAI_API_KEY": CANARY},
            capture_output=True,
            text=True,
            check=False,
        )
        assert server.requests
    assert "[key]" in done.stdout
    assert CANARY not in done.stdout + done.stderr
