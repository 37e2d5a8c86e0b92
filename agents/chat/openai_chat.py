"""Any OpenAI-compatible endpoint as a ChatModel: deadlines, retries, and every odd answer."""

from __future__ import annotations

import asyncio
import email.utils
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from threading import Thread
from typing import Any

import httpx2
import openai

from agents.chat.answers import read_json, read_models, read_text, read_usage
from agents.chat.asking import (
    PATHS,
    least_prompt_tokens,
    most_prompt_tokens,
    plain,
    request_body,
)
from agents.chat.calls import ModelSpec, note_usage
from agents.chat.capability import Capabilities, Known, Step, step_below, without
from agents.chat.complaints import Complaint, complaint_of
from agents.chat.endpoint import is_local
from trader.core.clock import SystemClock, monotonic_seconds
from trader.core.errors import CutReplyError, EndpointError, RefusedReplyError, TimedOutError
from trader.core.ports import ChatReply, ChatRequest, Prompt, Usage
from trader.text.tokens import estimated_tokens

LARGEST_ANSWER = 4_000_000  # bytes; a reply of 100,000 tokens fits
CONNECT_SECONDS = 10.0
GRACE_SECONDS = 0.25  # for an exchange to end by itself at its deadline
LONGEST_BACKOFF = 8.0  # seconds
SHORTEST_SECRET = 8  # characters; a shorter key is no secret, and removing it would garble answers
SENT_HEADERS = ("host", "content-type", "content-length", "connection", "user-agent")


class LostError(EndpointError):
    """The connection could not be made or broke; the call may be made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What came back.

    wait_seconds  how long the server asks to be left alone; None where it does not ask
    """

    status: int
    body: bytes
    content_type: str
    location: str
    wait_seconds: float | None


class Wire:
    """One endpoint and its key, through openai's client; that library's errors stop here.

    The whole exchange has one deadline, however slowly the server drips, and one size limit. The
    key goes to this endpoint only: no redirect is followed, and no header comes from openai's
    environment variables. The proxies of the environment serve endpoints out in the internet; a
    server in one's own network is reached directly, since a proxy could not and need not see it.
    """

    def __init__(
        self, base_url: str, key: str, *, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        self._base_url, self._key, self._transport = base_url, key, transport

    def send(self, method: str, path: str, body: object, seconds: float) -> Answered:
        """The server's answer, whatever its status.

        Raises TimedOutError after `seconds`, LostError, and EndpointError for an answer that
        cannot be taken. The exchange runs in an event loop of our own: the caller may be inside
        another one (a notebook, a server), and a look-up of the host's name, which cannot be
        interrupted, must not hold the deadline.
        """
        exchange = self._within(method, path, body, seconds)
        found = asyncio.run_coroutine_threadsafe(exchange, _loop())
        try:
            return found.result(seconds + GRACE_SECONDS)
        except TimeoutError as exc:
            raise _too_late(seconds) from exc
        finally:
            found.cancel()  # after an interrupt; what has ended is not touched

    def clean(self, text: str) -> str:
        """The text without the key, should a server have sent it back."""
        return text.replace(self._key, "[key]") if len(self._key) >= SHORTEST_SECRET else text

    async def _within(self, method: str, path: str, body: object, seconds: float) -> Answered:
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(method, path, body, seconds)
        except TimeoutError as exc:
            raise _too_late(seconds) from exc
        except openai.APITimeoutError as exc:
            raise LostError("no connection in time") from exc
        except openai.APIConnectionError as exc:
            why = plain(self.clean(str(exc.__cause__ or exc)))
            raise LostError(
                f"cannot be reached ({why}); is the server running, and models.base_url right?"
            ) from exc
        except (
            openai.OpenAIError,
            httpx2.HTTPError,
            httpx2.InvalidURL,
            OSError,
            ValueError,
        ) as exc:
            raise EndpointError(f"the call failed: {plain(self.clean(str(exc)))}") from exc
        except ImportError as exc:  # a SOCKS proxy in the environment
            raise EndpointError(
                "the environment names a proxy that needs a package which is not installed"
            ) from exc

    async def _exchange(self, method: str, path: str, body: object, seconds: float) -> Answered:
        async with openai.AsyncOpenAI(
            api_key=self._key,
            base_url=self._base_url,
            max_retries=0,  # retries have one owner, and it is not the library
            timeout=httpx2.Timeout(  # the deadline of the whole exchange stands above
                None, connect=CONNECT_SECONDS if seconds > CONNECT_SECONDS else None
            ),
            http_client=httpx2.AsyncClient(
                transport=self._transport,
                verify=_tls(),
                follow_redirects=False,
                trust_env=not is_local(self._base_url),
                event_hooks={"request": [self._own_headers], "response": [_limited]},
            ),
        ) as client:
            try:
                if method == "GET":
                    found = await client.get(path, cast_to=httpx2.Response)
                else:
                    found = await client.post(path, cast_to=httpx2.Response, body=body)
            except openai.APIStatusError as exc:
                found = exc.response
            content = await found.aread()
        if len(self._key) >= SHORTEST_SECRET:
            content = content.replace(self._key.encode(), b"[key]")
        return Answered(
            status=found.status_code,
            body=content,
            content_type=found.headers.get("content-type", ""),
            location=self.clean(found.headers.get("location", "")),
            wait_seconds=_wait_seconds(found.headers),
        )

    async def _own_headers(self, request: httpx2.Request) -> None:
        kept = {name: request.headers[name] for name in SENT_HEADERS if name in request.headers}
        request.headers = httpx2.Headers(
            {
                **kept,
                "accept": "application/json",
                "accept-encoding": "identity",  # a small answer must not unfold into a huge one
                "authorization": f"Bearer {self._key}",
            }
        )


class OpenAIChat:
    """A ChatModel that asks an endpoint.

    key           sent to the endpoint, found in no message, repr or reply
    call_seconds  deadline of one call with its retries
    key_variable  named in messages about the key
    sleep, now    for tests: waits between retries, seconds on a clock that runs forward
    """

    def __init__(
        self,
        spec: ModelSpec,
        *,
        key: str,
        call_seconds: float,
        retries: int,
        capabilities: Capabilities,
        key_variable: str = "OPENAI_API_KEY",
        transport: httpx2.AsyncBaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = monotonic_seconds,
    ) -> None:
        self._spec, self._call_seconds, self._retries = spec, call_seconds, retries
        self._capabilities, self._key_variable = capabilities, key_variable
        self._wire = Wire(spec.base_url, key, transport=transport)
        self._sleep, self._now = sleep, now

    @property
    def name(self) -> str:
        """The model's name."""
        return self._spec.model

    def complete(self, request: ChatRequest) -> ChatReply:
        """The endpoint's reply to the request's prompt, with its usage; raises like `ask`."""
        return self.ask(request.prompt(), request.deadline)

    def ask(self, prompt: Prompt, deadline: float | None = None) -> ChatReply:
        """The endpoint's reply with its usage; deadline: on the clock of `monotonic_seconds`.

        Raises TimedOutError, RefusedReplyError, CutReplyError, or EndpointError for all else.
        """
        ends = self._now() + self._call_seconds
        try:
            return self._ask(prompt, ends if deadline is None else min(ends, deadline))
        except EndpointError as exc:
            where = f"{self._spec.base_url}, model {self._spec.model}"
            exc.args = (f"{where}: {self._wire.clean(str(exc))}",)
            raise

    def _ask(self, prompt: Prompt, deadline: float) -> ChatReply:
        known = self._capabilities.of(self._spec)
        step, feeling_down, retries = known.step, not known.proven, 0
        while True:
            self._require_fit(prompt, step)
            body = request_body(self._spec, prompt, step, known)
            wait = None
            try:
                answered = self._wire.send(
                    "POST", PATHS[self._spec.api], body, self._left(deadline)
                )
            except LostError as exc:
                trouble: EndpointError = exc
            else:
                if answered.status == 200:
                    return self._reply(answered, prompt, step, known)
                complaint = self._complaint(answered)
                lower = step_below(self._spec, step)
                outage = answered.status == 500 and known.proven
                if complaint.kind == "format" and lower and not outage:
                    known = replace(known, step=lower, proven=False)
                    self._capabilities.learn(self._spec, known)
                    step = lower
                    continue
                if less := without(known, complaint.parameter, body):
                    known = less
                    self._capabilities.learn(self._spec, known)
                    continue
                if complaint.kind == "vague" and feeling_down:
                    # it may lack the format and not say so; if no step helps, it was an outage
                    feeling_down = lower is not None
                    step = lower or known.step
                    if feeling_down:
                        continue
                trouble = complaint.error()
                if not complaint.may_pass(answered.status):
                    raise trouble
                wait = answered.wait_seconds
            if retries == self._retries:
                raise trouble
            self._pause(wait, retries, deadline, trouble)
            retries += 1

    def _left(self, deadline: float) -> float:
        left = deadline - self._now()
        if left <= 0:
            raise TimedOutError("no time is left for this call")
        return left

    def _pause(
        self, wait: float | None, retries: int, deadline: float, trouble: EndpointError
    ) -> None:
        """Wait as long as the server asks, else longer each time; `trouble` if time ends before."""
        seconds = min(LONGEST_BACKOFF, 0.5 * 2**retries) if wait is None else wait
        left = deadline - self._now()
        if seconds >= left:
            raise type(trouble)(
                f"{trouble}; to ask again in {seconds:.0f} s is too late, {max(left, 0):.0f} s "
                "are left"
            ) from trouble
        self._sleep(seconds)

    def _require_fit(self, prompt: Prompt, step: Step) -> None:
        window, reply = self._spec.context_tokens, self._spec.max_output_tokens
        tokens = most_prompt_tokens(prompt, step)
        if window is not None and tokens + reply > window:
            raise EndpointError(
                f"the prompt may take {tokens} tokens and the reply {reply}, and the context "
                f"window holds {window} (models.context_tokens): not sent; take a model with a "
                "larger window, or fewer debate.rounds"
            )

    def _complaint(self, answered: Answered) -> Complaint:
        return complaint_of(
            answered.status,
            answered.body,
            base_url=self._spec.base_url,
            api=self._spec.api,
            key_variable=self._key_variable,
            location=answered.location,
        )

    def _reply(self, answered: Answered, prompt: Prompt, step: Step, known: Known) -> ChatReply:
        found = read_json(answered.body)
        if found is None:
            kind = plain(answered.content_type.split(";")[0]) or "something without a type"
            raise EndpointError(
                f"answered with {kind} that is not an OpenAI-compatible answer; "
                "is models.base_url right?"
            )
        counted = read_usage(found, self._spec.api)
        try:
            text = self._text(found, prompt, step, known)
        except EndpointError as exc:
            if counted:
                note_usage(exc, _usage(*counted, estimated=False))
            raise
        if counted:
            return ChatReply(text=text, usage=_usage(*counted, estimated=False))
        guessed = most_prompt_tokens(prompt, step), estimated_tokens(text)
        return ChatReply(text=text, usage=_usage(*guessed, estimated=True))

    def _text(self, found: Mapping[str, Any], prompt: Prompt, step: Step, known: Known) -> str:
        try:
            text = read_text(found, self._spec.api)
        except (CutReplyError, RefusedReplyError):
            self._capabilities.learn(self._spec, replace(known, step=step, proven=True))
            raise
        counted, least = read_usage(found, self._spec.api), least_prompt_tokens(prompt, step)
        if counted and counted[0] < least:
            raise EndpointError(
                f"the server cut the prompt: it read {counted[0]} tokens of at least {least}; "
                "serve the model with a larger context window"
            )
        # a server that takes a format and does not keep it is asked one step lower next time
        kept = known.proven or "{" in text
        lower = step if kept else step_below(self._spec, step) or step
        self._capabilities.learn(self._spec, replace(known, step=lower, proven=kept))
        return self._wire.clean(text)


def models_listed(wire: Wire, seconds: float) -> dict[str, int | None] | None:
    """Names of the endpoint's models, with the context window where the server tells it.

    None when the server gives no such list; EndpointError when none can be asked.
    """
    answered = wire.send("GET", "/models", None, seconds)
    found = read_json(answered.body) if answered.status == 200 else None
    return read_models(found) if found is not None else None


def _too_late(seconds: float) -> TimedOutError:
    return TimedOutError(
        f"no whole answer within {seconds:.3g} s; raise models.call_seconds and "
        "debate.seconds, or take a faster model"
    )


def _usage(tokens_in: int, tokens_out: int, *, estimated: bool) -> Usage:
    """Tokens without a price: whoever keeps the budget knows it."""
    return Usage(
        input_tokens=tokens_in, output_tokens=tokens_out, estimated=estimated, cost=Decimal(0)
    )


def _wait_seconds(headers: httpx2.Headers) -> float | None:
    """`retry-after` in seconds, a date included; None when it is absent or nonsense."""
    text = headers.get("retry-after", "")
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", text):
        return float(text)
    try:
        until = email.utils.parsedate_to_datetime(text)
        return max(0.0, (until - SystemClock().now()).total_seconds())
    except (OverflowError, TypeError, ValueError):
        return None


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of every exchange, in a thread that ends with the process."""
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="chat", daemon=True).start()
    return loop


@cache
def _tls() -> ssl.SSLContext:
    """Whom to trust; read from the system once, which takes a tenth of a second."""
    return httpx2.create_ssl_context()


async def _limited(response: httpx2.Response) -> None:
    """Refuse an answer that is packed, and end one that grows beyond the limit."""
    if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise EndpointError("answered with a packed body although none was asked for")
    stream = response.stream
    if isinstance(stream, httpx2.AsyncByteStream):
        response.stream = _LimitedStream(stream)


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > LARGEST_ANSWER:
                raise EndpointError(f"answered with more than {LARGEST_ANSWER:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
