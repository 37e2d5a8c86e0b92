"""A REST request taken apart: path, query parameters and body, read without trusting them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import UUID

from trader.broker.exchange.refusal import bad_field, not_offered
from trader.core.market import to_ns

FARTHEST_NS = 2**62  # the year 2116: beyond every session, and SQLite can hold it


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Path words ("v2", "orders", id), query parameters and body."""

    method: str
    words: tuple[str, ...]
    query: Mapping[str, str]
    body: bytes | None

    @classmethod
    def of(cls, method: str, path_url: str, body: bytes | None) -> Request:
        """Split "/v2/orders/ID?nested=true"; a word may hold an escaped slash."""
        parts = urlsplit(path_url)
        return cls(
            method=method.upper(),
            words=tuple(unquote(word) for word in parts.path.split("/")[1:]),
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            body=body,
        )

    @property
    def only_reads(self) -> bool:
        """Whether nothing can change."""
        return self.method == "GET"

    def only(self, *known: str) -> None:
        """Refuse a parameter that would be ignored."""
        for name in self.query:
            if name not in known:
                raise not_offered(f"the parameter {name} of /{'/'.join(self.words)}")

    def flag(self, name: str) -> bool:
        """A yes or no; False when absent. The official client writes True with a capital."""
        value = self.query.get(name, "false").lower()
        if value not in ("true", "false"):
            raise bad_field(f"{name} must be true or false, not {value!r}")
        return value == "true"

    def choice(self, name: str, *words: str) -> str:
        """One of `words`, the first when absent."""
        value = self.query.get(name, words[0])
        if value not in words:
            raise bad_field(f"{name} must be one of {', '.join(words)}, not {value!r}")
        return value

    def count(self, name: str, usual: int, most: int) -> int:
        """A whole number from 1 to `most`, `usual` when absent."""
        value = self.query.get(name, str(usual))
        number = int(value) if re.fullmatch(r"\d{1,9}", value, re.ASCII) else 0
        if not 1 <= number <= most:
            raise bad_field(f"{name} must be a whole number from 1 to {most}, not {value!r}")
        return number

    def moment(self, name: str) -> int | None:
        """An RFC 3339 moment as UTC nanoseconds, a plain date as its midnight UTC."""
        if name not in self.query:
            return None
        value = self.query[name]
        try:
            parsed = datetime.fromisoformat(value)
        except ValueError as exc:
            raise bad_field(f"{name} must be a moment in RFC 3339, not {value!r}") from exc
        ns = to_ns(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))
        return max(-FARTHEST_NS, min(ns, FARTHEST_NS))

    def date(self, name: str) -> date | None:
        """A date, or the date of a moment."""
        if name not in self.query:
            return None
        try:
            return datetime.fromisoformat(self.query[name]).date()
        except ValueError as exc:
            value = self.query[name]
            raise bad_field(f"{name} must be a date, not {value!r}") from exc

    def order_id(self) -> str:
        """The last path word as a UUID in its usual spelling."""
        try:
            return str(UUID(self.words[-1]))
        except ValueError as exc:
            raise bad_field(f"order id {self.words[-1]!r} is not a UUID") from exc
