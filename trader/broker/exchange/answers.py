"""What a request ends with: a status and JSON, a body of another kind, or no answer at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from json import dumps

Handler = Callable[[str, str, bytes | None], tuple[int, object]]  # method, path with query, body
JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A body as it goes over the wire, with headers of its own."""

    body: bytes
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


class NoAnswerError(Exception):
    """The client gets no answer; whether the request was carried out, it cannot know.

    waits  it waits for one until its patience ends, instead of being cut off at once
    """

    def __init__(self, message: str, *, waits: bool = False) -> None:
        super().__init__(message)
        self.waits = waits


def raw(payload: object) -> Raw:
    """The body of an answer as `Handler` returns it; None is an empty one."""
    if isinstance(payload, Raw):
        return payload
    return Raw(body=b"" if payload is None else dumps(payload).encode())
