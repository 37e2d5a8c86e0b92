"""The graph that LangGraph Studio opens: named in langgraph.json, and the debate that it is."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from trader.core.canonical import to_object

AGENTS = Path(__file__).parents[3] / "agents"


def opened():
    """The graph as Studio finds it."""
    named = json.loads((AGENTS / "langgraph.json").read_text())["graphs"]["debate"]
    path, _, name = named.partition(":")
    assert (AGENTS / path).is_file()
    module = importlib.import_module("agents." + path.removeprefix("./")[:-3].replace("/", "."))
    return getattr(module, name)


def test_the_example_is_debated_and_waits_for_a_person():
    graph = opened()
    assert graph.checkpointer is None  # Studio brings its own
    graph.checkpointer = InMemorySaver()
    config = {"configurable": {"thread_id": "1"}}
    try:
        spoken = [step for update in graph.stream({}, config) for step in update]
        assert spoken[:5] == ["begin", "bull", "bear", "bull", "bear"]
        assert spoken[-1] == "__interrupt__"
        ended = graph.invoke(Command(resume="rejected"), config)
    finally:
        graph.checkpointer = None
    assert ended["approval"] == "rejected"
    assert ended["verdict"]["decision"] == "GO"


def test_the_example_is_a_decision_of_the_bundled_bars():
    from datetime import UTC, datetime

    from trader.app import open_app

    held = open_app(environ={}).debate("AAPL", datetime(2026, 2, 24, 23, 59, tzinfo=UTC)).debates[0]
    kept = json.loads((AGENTS / "debate" / "example.json").read_text())
    found = to_object(held.candidate)
    found["signal"]["signal_id"] = "S-example"  # it is derived from the program's own hash
    assert kept["candidate"] == found
    assert kept["evidence"] == [to_object(fact) for fact in held.evidence]
