"""What holds for every test: no network but loopback, no deadline for hypothesis, golden files."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

GOLDEN = Path(__file__).parent / "golden"
KERNELS = Path(__file__).parents[1] / "strategies" / "kernels" / "__pycache__"
LOOPBACK = ("127.", "::1", "localhost")

# Compiled kernels are kept from run to run, whatever state folders tests open, and for children.
os.environ.setdefault("NUMBA_CACHE_DIR", str(KERNELS))

# A first compile is slow. The same examples on every run: a red one is a change that made it red;
# `pytest --hypothesis-profile=explore` looks for new ones.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1_000)
settings.load_profile("steady")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --regold, which writes golden files anew."""
    parser.addoption("--regold", action="store_true", help="write tests/golden anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest):
    """Compare a text with the golden file of this name, or write it with --regold."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--regold"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), f"{name} differs; look, then --regold"

    return compare


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refuse every connection that would leave this machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = str(address[0]) if isinstance(address, tuple) else str(address)
            assert host.startswith(LOOPBACK), f"a test tried to reach {host}"
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    return
