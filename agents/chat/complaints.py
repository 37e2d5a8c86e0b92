"""What a server's refusal means: a missing capability, a passing trouble, or the end."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from agents.chat.answers import CUT, read_json
from agents.chat.asking import plain
from trader.core.errors import CutReplyError, EndpointError, RefusedReplyError

Kind = Literal["format", "parameter", "vague", "busy", "refused", "cut", "final"]

_FORMAT = re.compile(r"response_format|json_schema|json_object|text\.format", re.IGNORECASE)
_PERHAPS_FORMAT = re.compile(
    r"structured.?output|grammar|schema|requested parameters|json mode", re.IGNORECASE
)
_CONTEXT = re.compile(
    r"context[ _-]?(length|window|size)|maximum context|prompt is too long|too many tokens"
    r"|maximum (prompt|input) length",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model\b.{0,220}?(not found|not exist|unknown|no such|not available|invalid)"
    r"|(unknown|invalid|no such) model",
    re.IGNORECASE | re.DOTALL,
)
_UNSUPPORTED = re.compile(
    r"(not|n't|un) ?support|unknown|unrecogni[sz]ed|unexpected|extra|not (permitted|allowed)"
    r"|forbid|only the default|deprecat",
    re.IGNORECASE,
)
_QUOTA = re.compile(r"insufficient_quota|current quota|billing|insufficient.{0,12}(balance|credit)")
_FILTERED = ("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation")
PARAMETERS = ("temperature", "seed", "max_tokens", "max_completion_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """A refusal.

    kind       format, parameter: the server lacks something that can be left out;
               vague: it does not say what it lacks, if anything; busy: it may pass
    parameter  the one that it refuses
    """

    kind: Kind
    words: str
    parameter: str = ""

    def may_pass(self, status: int) -> bool:
        """Whether the same call may succeed a little later."""
        return self.kind == "busy" or (status == 500 and self.kind in ("vague", "format"))

    def error(self) -> EndpointError:
        """The error it becomes when nothing helps."""
        kinds = {"refused": RefusedReplyError, "cut": CutReplyError}
        return kinds.get(self.kind, EndpointError)(self.words)


def complaint_of(
    status: int, body: bytes, *, base_url: str, api: str, key_variable: str, location: str = ""
) -> Complaint:
    """What an answer with a status other than 200 means."""
    text, code, param = _said(body)
    said = f"answered {status}{': ' if text else ''}{plain(text)}"
    if 300 <= status < 400:
        to = f" to {plain(location.partition('?')[0])}" if location else ""
        return _final(
            f"redirects{to}, and a key follows no redirect; name the right address in "
            "models.base_url"
        )
    if status == 401:
        return _final(f"refused the key (401); check the environment variable {key_variable}")
    if status == 403:
        return _final(f"{said}; the key in the environment variable {key_variable} may not do this")
    if status == 402 or (status == 429 and _QUOTA.search(f"{code} {text}".lower())):
        return _final(f"{said}; the quota is used up, so asking again does not help")
    if status in (408, 409, 429) or status > 500:
        return Complaint(kind="busy", words=said)
    if code in _FILTERED:
        return Complaint(kind="refused", words=f"a content filter withheld the reply ({said})")
    if "output limit was reached" in text:
        return Complaint(kind="cut", words=CUT)
    if _CONTEXT.search(f"{code} {text}"):
        return _final(
            f"{said}; the prompt does not fit: serve the model with a larger context window"
        )
    if status in (400, 404, 422, 500):
        found = _about(status, text, code, param, said)
        if found:
            return found
    if status in (404, 405):
        return _final(_nothing_there(base_url, api, said))
    return Complaint(kind="vague", words=said) if status in (400, 422, 500) else _final(said)


def _about(status: int, text: str, code: str, param: str, said: str) -> Complaint | None:
    """A refusal that names what it does not like, or None."""
    words = f"{param} {text}"
    if code != "model_not_found":
        if _FORMAT.search(words):
            return Complaint(kind="format", words=said)
        named = [name for name in PARAMETERS if re.search(rf"\b{name}\b", words)]
        if named and _UNSUPPORTED.search(f"{code} {text}"):
            first = min(named, key=words.index)  # the other one is named as the remedy
            return Complaint(kind="parameter", words=said, parameter=first)
        if _PERHAPS_FORMAT.search(words):
            return Complaint(kind="format", words=said)
    if code == "model_not_found" or (status != 500 and _NO_MODEL.search(text)):
        return _final(f"{said}; correct models.model: `trader doctor` lists the models it has")
    return None


def _nothing_there(base_url: str, api: str, said: str) -> str:
    if api == "responses":
        return f"{said}; it may have no responses API, set models.api to chat"
    if "/v1" not in urlsplit(base_url).path:
        return f"{said}; did you mean {base_url}/v1?"
    return f"{said}; there are no chat completions, is models.base_url right?"


def _final(words: str) -> Complaint:
    return Complaint(kind="final", words=words)


def _said(body: bytes) -> tuple[str, str, str]:
    """Message, code and parameter of an error body, in the shapes that servers use."""
    found = read_json(body)
    if found is None:
        text = body[:4_000].decode("utf-8", "replace").strip()
        return ("an HTML page" if text[:1] == "<" else text), "", ""
    error: Any = found.get("error", found)
    if not isinstance(error, dict):
        return str(error)[:4_000], "", ""
    message = error.get("message", error.get("detail", ""))
    text = message if isinstance(message, str) else json.dumps(message)
    code = error.get("code") or error.get("type")
    param = error.get("param")
    return (
        text[:4_000],
        code if isinstance(code, str) else "",
        param if isinstance(param, str) else "",
    )
