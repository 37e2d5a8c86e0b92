"""What a server answered with status 200, read without trusting any of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from agents.chat.asking import plain, sound
from trader.core.errors import CutReplyError, EndpointError, RefusedReplyError

Api = Literal["chat", "responses"]
WINDOWS = ("max_model_len", "context_length", "context_window")  # vLLM and others
MOST_TOKENS = 10**8  # a count beyond this is nonsense
CUT = "the reply was cut at the output limit; raise models.max_output_tokens"


def read_json(body: bytes) -> dict[str, Any] | None:
    """The JSON object of a body, or None when it is anything else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def read_text(found: Mapping[str, Any], api: Api) -> str:
    """The reply's text in an answer of this API.

    Raises RefusedReplyError, CutReplyError, and EndpointError for an answer without a reply.
    """
    text = _chat_text(found) if api == "chat" else _responses_text(found)
    if not text.strip():
        raise EndpointError("the reply is empty")
    return sound(text)


def read_usage(found: Mapping[str, Any], api: Api) -> tuple[int, int] | None:
    """Tokens in and out as the server counted them; None when it did not, or counted nonsense."""
    usage = found.get("usage")
    kinds = ("prompt", "completion") if api == "chat" else ("input", "output")
    tokens_in, tokens_out = (_count(usage, f"{kind}_tokens") for kind in kinds)
    return (tokens_in, tokens_out) if tokens_in and tokens_out is not None else None


def read_models(found: Mapping[str, Any]) -> dict[str, int | None] | None:
    """Names of the models in a list of them, each with its context window where it is told."""
    rows = found.get("data")
    if not isinstance(rows, list):
        return None
    return {
        plain(row["id"]): next((size for key in WINDOWS if (size := _count(row, key))), None)
        for row in rows
        if isinstance(row, dict) and isinstance(row.get("id"), str)
    }


def _chat_text(found: Mapping[str, Any]) -> str:
    choices = found.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise EndpointError(f"the answer holds no reply{_error_words(found)}")
    choice = choices[0]
    message, finish = choice.get("message"), choice.get("finish_reason")
    if finish == "content_filter":
        raise RefusedReplyError("a content filter withheld the reply")
    if finish == "length":
        raise CutReplyError(CUT)
    if not isinstance(message, dict):
        raise EndpointError("the answer holds no message")
    if message.get("refusal"):
        raise RefusedReplyError(f"the model declined to answer: {plain(str(message['refusal']))}")
    text = _joined(message.get("content"), "text")
    if not text.strip() and (message.get("tool_calls") or message.get("function_call")):
        raise EndpointError("the model asked for a tool in place of a reply, and has none")
    return text


def _responses_text(found: Mapping[str, Any]) -> str:
    details = found.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    if reason == "content_filter":
        raise RefusedReplyError("a content filter withheld the reply")
    if reason is not None or found.get("status") == "incomplete":
        raise CutReplyError(CUT)
    output = found.get("output")
    if not isinstance(output, list) or not output or found.get("status") == "failed":
        raise EndpointError(f"the answer holds no reply{_error_words(found)}")
    items = [item for item in output if isinstance(item, dict)]
    parts: list[Any] = []
    for item in items:
        content = item.get("content")
        if item.get("type") == "message" and isinstance(content, list):
            parts.extend(content)
    for part in parts:
        if isinstance(part, dict) and part.get("type") == "refusal":
            raise RefusedReplyError(
                f"the model declined to answer: {plain(str(part.get('refusal')))}"
            )
    text = _joined(parts, "output_text")
    if not text.strip() and any(str(item.get("type")).endswith("_call") for item in items):
        raise EndpointError("the model asked for a tool in place of a reply, and has none")
    return text


def _joined(content: Any, kind: str) -> str:
    """Text, or the text of a list of parts; some servers answer with parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [
            part.get("text")
            for part in content
            if isinstance(part, dict) and part.get("type") == kind
        ]
        return "".join(text for text in texts if isinstance(text, str))
    return ""


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
        return value
    return None


def _error_words(found: Mapping[str, Any]) -> str:
    error = found.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return f": {plain(message)}" if isinstance(message, str) and message else ""
