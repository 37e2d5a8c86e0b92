"""Switches that make an exchange misbehave as real ones do, by script or by seeded chance.

Faults([Switch(fault=Fault.LOST_ANSWER, where="POST /v2/orders")])     the next order, once
Faults([Switch(fault=Fault.RATE_LIMITED, probability=0.04, times=None)], seed=7)
faults.around(exchange.handle)                                          a handler that misbehaves
faults.delivered(updates)                                               trade updates, some amiss
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import blake2b
from json import dumps
from threading import RLock
from urllib.parse import urlsplit

from trader.broker.exchange.answers import Handler, NoAnswerError, Raw
from trader.broker.exchange.refusal import not_found
from trader.core.clock import SystemClock

Json = dict[str, object]
Answer = tuple[int, object]

PER_MINUTE = 200
UNHEARD_OF = "unheard_of"  # a word that no version of alpaca-py knows
WORDS = ("status", "exchange", "event")
CODES = (402, 404, 406, 409, 429, 500)  # of a stream that is refused; 429 before it is opened
HTML = b"<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>"


class Fault(StrEnum):
    """What can go wrong."""

    LOST_REQUEST = "lost_request"  # it never reaches the exchange; the connection is reset
    LOST_ANSWER = "lost_answer"  # it is carried out; the connection is reset
    SILENCE = "silence"  # it is carried out and never answered
    RATE_LIMITED = "rate_limited"  # 429 with X-Ratelimit headers; it is not carried out
    WRONG_KEYS = "wrong_keys"  # 401; it is not carried out
    GATEWAY_TIMEOUT = "gateway_timeout"  # 504, though it is carried out
    BAD_GATEWAY = "bad_gateway"  # 502 in HTML, though it is carried out
    UNKNOWN_WORD = "unknown_word"  # an answer or an update with a word and a field of the future
    HIDDEN_ORDER = "hidden_order"  # a new order is not found by the next lookups
    FILL_BEFORE_ANSWER = "fill_before_answer"  # the market moves before an order is answered
    MISSING_EVENT = "missing_event"
    DUPLICATE_EVENT = "duplicate_event"
    LATE_EVENT = "late_event"  # it comes after those of the next change
    MUTE_STREAM = "mute_stream"  # connected and subscribed, and nothing comes
    DROPPED_STREAM = "dropped_stream"  # the connection breaks instead of the next message
    REFUSED_STREAM = "refused_stream"  # authentication is answered with the error `code`


SPOILS_ANSWER = (
    Fault.LOST_ANSWER,
    Fault.SILENCE,
    Fault.GATEWAY_TIMEOUT,
    Fault.BAD_GATEWAY,
)
OF_REQUESTS = (
    Fault.LOST_REQUEST,
    Fault.RATE_LIMITED,
    Fault.WRONG_KEYS,
    Fault.UNKNOWN_WORD,
    *SPOILS_ANSWER,
)
OF_NEW_ORDERS = (Fault.HIDDEN_ORDER, Fault.FILL_BEFORE_ANSWER)
OF_EVENTS = (
    Fault.MISSING_EVENT,
    Fault.DUPLICATE_EVENT,
    Fault.LATE_EVENT,
    Fault.UNKNOWN_WORD,
)
NEW_ORDER = "POST /v2/orders"


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """One fault, where it strikes and how often.

    where        "METHOD /path", "EVENT fill" or "STREAM /v2/iex", with * and ? as in a shell
    probability  of striking at a match, a fraction
    times        how often it strikes before it is used up; None for ever
    skip         matches that are left alone first
    reached      whether a request is carried out before its answer is spoilt
    lookups      of HIDDEN_ORDER: how many do not find it
    code         of REFUSED_STREAM: 402 keys, 404 too late, 406 connections, 409 subscription,
                 429 already at the handshake, 500
    Raises ValueError for what makes no sense.
    """

    fault: Fault
    where: str = "*"
    probability: float = 1.0
    times: int | None = 1
    skip: int = 0
    reached: bool = True
    lookups: int = 2
    code: int = 406

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise ValueError(f"probability is a fraction from 0 to 1, not {self.probability}")
        if self.skip < 0 or self.lookups < 1 or (self.times is not None and self.times < 1):
            raise ValueError("skip begins at 0, times and lookups at 1")
        if self.code not in CODES:
            raise ValueError(f"code must be one of {CODES}, not {self.code}")


class Faults:
    """The switches of one exchange; safe to use from several threads.

    What strikes depends on the seed and on the row of matches a switch has seen, on nothing else.
    meanwhile  moves the market, for FILL_BEFORE_ANSWER
    now        the clock of the X-Ratelimit-Reset header; the computer's by default
    """

    def __init__(
        self,
        switches: Iterable[Switch] = (),
        *,
        seed: int = 0,
        meanwhile: Callable[[], object] = lambda: None,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self.meanwhile = meanwhile
        self._now = now or SystemClock().now
        self._lock = RLock()
        self.set(switches, seed=seed)

    def set(self, switches: Iterable[Switch], *, seed: int = 0) -> None:
        """Put these switches in the place of all others, and find every hidden order again."""
        with self._lock:
            self._seed = seed
            self._switches = list(switches)
            self._matches = [0] * len(self._switches)
            self._strikes = [0] * len(self._switches)
            self._hidden: dict[str, int] = {}  # order id -> lookups that will not find it
            self._late: list[Json] = []
            self.struck: Counter[Fault] = Counter()

    def add(self, *switches: Switch) -> None:
        """Set more switches."""
        with self._lock:
            self._switches += switches
            self._matches += [0] * len(switches)
            self._strikes += [0] * len(switches)

    def left(self) -> list[tuple[Switch, int | None]]:
        """Each switch that is not used up, with how often it still strikes."""
        with self._lock:
            found = []
            for switch, strikes in zip(self._switches, self._strikes, strict=True):
                times = None if switch.times is None else switch.times - strikes
                if times != 0:
                    found.append((switch, times))
            return found

    def strikes(self, where: str, *faults: Fault) -> dict[Fault, Switch]:
        """Those of `faults` that strike at this match; each switch counts it."""
        found: dict[Fault, Switch] = {}
        with self._lock:
            for number, switch in enumerate(self._switches):
                if switch.fault not in faults or not fnmatchcase(where, switch.where):
                    continue
                if switch.times is not None and self._strikes[number] >= switch.times:
                    continue
                self._matches[number] += 1
                match = self._matches[number]
                if match > switch.skip and self._chance(number, match) < switch.probability:
                    self._strikes[number] += 1
                    self.struck[switch.fault] += 1
                    found.setdefault(switch.fault, switch)
        return found

    def around(self, handler: Handler) -> Handler:
        """`handler` with the faults of requests; raises NoAnswerError where none is given."""

        def faulty(method: str, path_url: str, body: bytes | None) -> Answer:
            where = f"{method} {urlsplit(path_url).path}"
            struck = self.strikes(where, *OF_REQUESTS)
            if where == NEW_ORDER:
                struck |= self.strikes(where, *OF_NEW_ORDERS)
            if Fault.LOST_REQUEST in struck:
                raise NoAnswerError("the connection was reset before the request was received")
            if Fault.RATE_LIMITED in struck:
                return 429, self._too_many()
            if Fault.WRONG_KEYS in struck:
                return 401, {"code": 40110000, "message": "request is not authorized"}
            spoilt = next((struck[fault] for fault in SPOILS_ANSWER if fault in struck), None)
            answer: Answer = (200, None)
            if spoilt is None or spoilt.reached:
                answer = handler(method, path_url, body)
                if where == NEW_ORDER and answer[0] == 200:
                    self._after_order(answer, struck)
            if spoilt is not None:
                return _spoilt(spoilt.fault)
            answer = self._as_visible(where, answer)
            return _of_the_future(answer) if Fault.UNKNOWN_WORD in struck else answer

        return faulty

    def delivered(self, updates: Sequence[Json]) -> list[Json]:
        """What a subscriber gets of these trade updates, in the order in which it gets them."""
        with self._lock:
            sent: list[Json] = []
            late: list[Json] = []
            for update in updates:
                struck = self.strikes(f"EVENT {update['event']}", *OF_EVENTS)
                if Fault.MISSING_EVENT in struck:
                    continue
                told = update
                if Fault.UNKNOWN_WORD in struck:
                    told = {**update, "order": _with_unheard_of(update["order"])}
                copies = [told] * (2 if Fault.DUPLICATE_EVENT in struck else 1)
                (late if Fault.LATE_EVENT in struck else sent).extend(copies)
            if updates:
                sent += self._late
                self._late = late
            return sent

    def _chance(self, number: int, match: int) -> float:
        """A number from 0 to 1, the same in every run."""
        text = f"{self._seed}:{number}:{match}".encode()
        return int.from_bytes(blake2b(text, digest_size=8).digest()) / 2**64

    def _too_many(self) -> Raw:
        reset = int(self._now().timestamp()) // 60 * 60 + 60
        return Raw(
            body=dumps({"code": 42910000, "message": "rate limit exceeded"}).encode(),
            headers={
                "X-Ratelimit-Limit": str(PER_MINUTE),
                "X-Ratelimit-Remaining": "0",
                "X-Ratelimit-Reset": str(reset),
            },
        )

    def _after_order(self, answer: Answer, struck: dict[Fault, Switch]) -> None:
        if Fault.HIDDEN_ORDER in struck and isinstance(answer[1], dict):
            with self._lock:
                self._hidden[str(answer[1]["id"])] = struck[Fault.HIDDEN_ORDER].lookups
        if Fault.FILL_BEFORE_ANSWER in struck:
            self.meanwhile()

    def _as_visible(self, where: str, answer: Answer) -> Answer:
        """The answer to a lookup without the orders that are hidden from it."""
        status, payload = answer
        if not self._hidden or not where.startswith("GET /v2/orders") or status != 200:
            return answer
        if isinstance(payload, list):
            return status, [order for order in payload if not self._is_hidden(order)]
        if self._is_hidden(payload):
            return 404, not_found("order not found").body
        return answer

    def _is_hidden(self, order: object) -> bool:
        if not isinstance(order, dict):
            return False
        with self._lock:
            order_id = str(order["id"])
            left = self._hidden.pop(order_id, 0)
            if left > 1:
                self._hidden[order_id] = left - 1
            return left > 0


def _spoilt(fault: Fault) -> Answer:
    if fault is Fault.GATEWAY_TIMEOUT:
        return 504, {"code": 50410000, "message": "gateway timeout"}
    if fault is Fault.BAD_GATEWAY:
        return 502, Raw(body=HTML, content_type="text/html")
    if fault is Fault.SILENCE:
        raise NoAnswerError("no answer came in time", waits=True)
    raise NoAnswerError("the connection was reset before the answer was received")


def _of_the_future(answer: Answer) -> Answer:
    status, payload = answer
    if isinstance(payload, list) and payload:
        return status, [_with_unheard_of(payload[0]), *payload[1:]]
    return status, _with_unheard_of(payload)


def _with_unheard_of(payload: object) -> object:
    """The object with a field that nobody knows, and such a word in the first field of words."""
    if not isinstance(payload, dict):
        return payload
    word = next((name for name in WORDS if name in payload), None)
    changed = {} if word is None else {word: UNHEARD_OF}
    return payload | changed | {"field_of_the_future": {"value": 1}}
