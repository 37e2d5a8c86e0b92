"""A paper-trading bot whose every trade is argued over first; paper money only."""

import os

# LangGraph reads this when it is first imported; its default deserialiser can run code.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
