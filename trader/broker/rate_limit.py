"""How many requests a key may still send: one count for all threads and clients of a key."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from threading import Lock

from trader.core.clock import SystemClock, monotonic_seconds
from trader.core.errors import RateLimitedError

PER_MINUTE = 180  # Alpaca allows 200
RESERVED = 20  # of those, kept for cancels and lookups
MINUTE = 60.0
UNKNOWN_PAUSE = 5.0  # seconds, after a 429 that does not say how long
DIGITS = 10  # of a count that makes sense
LONGEST_PAUSE = 120.0  # seconds; what a server asks for beyond it is not believed


def _wall_time() -> datetime:
    return SystemClock().now()


class RateLimit:
    """At most `per_minute` requests in any 60 seconds; thread-safe.

    Ordinary requests leave `reserved` of them to urgent ones. What the server says of its own
    count holds besides: the same key may be used by another program.
    """

    def __init__(
        self,
        *,
        per_minute: int = PER_MINUTE,
        reserved: int = RESERVED,
        seconds: Callable[[], float] = monotonic_seconds,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], datetime] = _wall_time,
    ) -> None:
        """Count from now on.

        seconds  a clock that only runs forward
        now      wall time, for the moments that a server names
        """
        if not 0 <= reserved < per_minute:
            raise ValueError(f"{reserved} of {per_minute} requests cannot be kept back")
        self._per_minute, self._reserved = per_minute, reserved
        self._seconds, self._sleep, self._now = seconds, sleep, now
        self._sent: deque[float] = deque(maxlen=per_minute)
        self._left: int | None = None  # what the server last said, less what was sent since
        self._left_until = self._silent_until = float("-inf")
        self._lock = Lock()

    def take(self, *, urgent: bool, patience: float) -> None:
        """Wait until one more request may be sent, and count it.

        urgent    a cancel or a lookup
        patience  seconds; RateLimitedError, before anything is sent, when it would take longer
        """
        deadline = self._seconds() + patience
        while True:
            with self._lock:
                now = self._seconds()
                wait = self._wait(now, urgent=urgent)
                if wait <= 0:
                    self._sent.append(now)
                    if self._left is not None:
                        self._left -= 1
                    return
            if now + wait > deadline:
                raise RateLimitedError(
                    f"too many requests in a minute, so nothing was sent; wait {math.ceil(wait)} s",
                    retry_seconds=wait,
                )
            self._sleep(wait)

    def heard(self, status: int, headers: Mapping[str, str]) -> None:
        """What an answer says of the count: X-Ratelimit-Remaining and -Reset, Retry-After."""
        left, reset = headers.get("X-Ratelimit-Remaining", ""), headers.get("X-Ratelimit-Reset", "")
        with self._lock:
            now = self._seconds()
            until = now + self._until_epoch(reset, headers) if reset.isdecimal() else None
            if left.isdecimal() and len(left) < DIGITS and until is not None:
                # answers overtake each other: within one window the smallest count holds
                known = self._left if self._left is not None and now < self._left_until else None
                self._left = min(int(left), known) if known is not None else int(left)
                self._left_until = until
            if status == 429:
                asked = headers.get("Retry-After", "")
                pause = float(asked) if asked.isdecimal() else None
                if pause is None:
                    pause = until - now if until is not None else UNKNOWN_PAUSE
                silent_until = now + min(max(pause, 1.0), LONGEST_PAUSE)
                self._silent_until = max(self._silent_until, silent_until)

    def _wait(self, now: float, *, urgent: bool) -> float:
        """Seconds until one more may go; 0 or less: now."""
        wait = self._silent_until - now
        kept = 0 if urgent else self._reserved
        allowed = self._per_minute - kept
        while self._sent and self._sent[0] <= now - MINUTE:
            self._sent.popleft()
        if len(self._sent) >= allowed:
            # the oldest of the last `allowed` has to be a minute old
            wait = max(wait, self._sent[-allowed] + MINUTE - now)
        if self._left is not None and now >= self._left_until:
            self._left = None
        if self._left is not None and self._left <= kept:
            wait = max(wait, self._left_until - now)
        return wait

    def _until_epoch(self, reset: str, headers: Mapping[str, str]) -> float:
        """Seconds until a moment in epoch seconds, by the server's own clock where it tells it."""
        try:
            there = parsedate_to_datetime(headers.get("Date", ""))
        except ValueError:
            there = self._now()
        return min(max(float(reset) - there.timestamp(), 0.0), LONGEST_PAUSE)


@lru_cache(maxsize=64)
def rate_limit(key_id: str, service: str) -> RateLimit:
    """The one count of a key at a service; trading and market data are counted apart."""
    del key_id, service  # they only tell the counts apart
    return RateLimit()
