"""The debaters: they read evidence and argue; they cannot reach a broker."""

import os

# LangGraph reads this when it is first imported; its default deserialiser can run code.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
