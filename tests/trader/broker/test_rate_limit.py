"""The rate limit: laws on a virtual clock, what a server says, and threads that share one count."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trader.broker.rate_limit import RateLimit, rate_limit
from trader.core.errors import RateLimitedError

START = datetime(2025, 7, 1, 14, 0, tzinfo=UTC)


class Hands:
    """A clock that sleeping moves."""

    def __init__(self) -> None:
        self.at = 0.0
        self.slept: list[float] = []

    def seconds(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.slept.append(seconds)
        self.at += seconds

    def limit(self, per_minute: int = 180, reserved: int = 20) -> RateLimit:
        return RateLimit(
            per_minute=per_minute,
            reserved=reserved,
            seconds=self.seconds,
            sleep=self.sleep,
            now=lambda: START,
        )


def count(limit: RateLimit, *, urgent: bool) -> int:
    """How many more may go without waiting."""
    for number in range(1000):
        try:
            limit.take(urgent=urgent, patience=0)
        except RateLimitedError:
            return number
    raise AssertionError("there is no limit")


def test_a_minute_holds_180_of_which_20_are_for_cancels_and_lookups():
    hands = Hands()
    limit = hands.limit()
    assert count(limit, urgent=False) == 160
    assert count(limit, urgent=True) == 20
    hands.at = 59.9
    assert count(limit, urgent=True) == 0
    hands.at = 60.0
    assert count(limit, urgent=False) == 160
    assert hands.slept == []


def test_whoever_has_patience_waits_for_the_oldest_to_leave_and_others_are_told_how_long():
    hands = Hands()
    limit = hands.limit(per_minute=3, reserved=1)
    limit.take(urgent=False, patience=0)
    hands.at = 10.0
    limit.take(urgent=False, patience=0)
    with pytest.raises(RateLimitedError, match="nothing was sent") as caught:
        limit.take(urgent=False, patience=20)
    assert caught.value.retry_seconds == 50
    limit.take(urgent=True, patience=0)
    limit.take(urgent=False, patience=60)
    # an ordinary request may go when fewer than two have gone in the minute before
    assert hands.at == 70.0


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 120)), max_size=80),
    st.integers(2, 12),
    st.integers(0, 1),
)
def test_no_minute_ever_holds_more_than_the_limit(requests, per_minute, reserved):
    hands = Hands()
    limit = hands.limit(per_minute, reserved)
    sent: list[tuple[float, bool]] = []
    for urgent, pause in requests:
        hands.at += pause / 4
        limit.take(urgent=urgent, patience=1000)
        sent.append((hands.at, urgent))
    for index, (at, urgent) in enumerate(sent):
        minute = [one for one, _ in sent[: index + 1] if one > at - 60]
        assert len(minute) <= per_minute - (0 if urgent else reserved)


def test_what_the_server_has_left_counts_when_it_is_less_than_ours():
    hands = Hands()
    limit = hands.limit(per_minute=100, reserved=10)
    reset = str(int(START.timestamp()) + 30)
    limit.heard(200, {"X-Ratelimit-Remaining": "12", "X-Ratelimit-Reset": reset})
    assert count(limit, urgent=False) == 2
    assert count(limit, urgent=True) == 10
    hands.at = 30.0
    assert count(limit, urgent=False) == 90 - 12


def test_answers_that_overtake_each_other_do_not_raise_the_count():
    hands = Hands()
    limit = hands.limit(per_minute=100, reserved=0)
    reset = str(int(START.timestamp()) + 30)
    limit.heard(200, {"X-Ratelimit-Remaining": "3", "X-Ratelimit-Reset": reset})
    limit.heard(200, {"X-Ratelimit-Remaining": "50", "X-Ratelimit-Reset": reset})
    assert count(limit, urgent=True) == 3


def test_the_servers_own_clock_tells_when_it_begins_anew():
    hands = Hands()
    limit = hands.limit(per_minute=100, reserved=0)
    headers = {
        "Date": "Tue, 01 Jul 2025 20:00:00 GMT",  # six hours ahead of ours
        "X-Ratelimit-Remaining": "0",
        "X-Ratelimit-Reset": str(int(datetime(2025, 7, 1, 20, 0, 7, tzinfo=UTC).timestamp())),
    }
    limit.heard(200, headers)
    limit.take(urgent=True, patience=10)
    assert hands.at == 7.0


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({"Retry-After": "9"}, 9),
        ({"Retry-After": "0"}, 1),
        ({"Retry-After": "999999"}, 120),
        ({"Retry-After": "soon"}, 5),
        ({"Retry-After": "-4"}, 5),
        ({}, 5),
        ({"X-Ratelimit-Reset": str(int(START.timestamp()) + 11)}, 11),
        ({"X-Ratelimit-Reset": str(int(START.timestamp()) - 11)}, 1),
    ],
)
def test_after_a_429_everybody_is_silent_for_as_long_as_asked(headers, pause):
    hands = Hands()
    limit = hands.limit()
    limit.heard(429, headers)
    for urgent in (True, False):
        with pytest.raises(RateLimitedError) as caught:
            limit.take(urgent=urgent, patience=0.5)
        assert caught.value.retry_seconds == pause
    limit.take(urgent=True, patience=pause)
    assert hands.at == pause


def test_numbers_longer_than_python_reads_are_no_counts():
    hands = Hands()
    limit = hands.limit()
    long = "9" * 5_000
    limit.heard(429, {"X-Ratelimit-Remaining": long, "X-Ratelimit-Reset": long})
    limit.heard(200, {"X-Ratelimit-Remaining": long, "X-Ratelimit-Reset": "7"})
    limit.take(urgent=True, patience=120)
    assert hands.at == 120


@given(
    st.dictionaries(
        st.sampled_from(["X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After", "Date"]),
        st.text(max_size=12),
    ),
    st.integers(100, 599),
)
def test_headers_may_hold_anything(headers, status):
    hands = Hands()
    limit = hands.limit()
    limit.heard(status, headers)
    limit.take(urgent=True, patience=121)
    assert hands.at <= 121


def test_threads_share_one_count():
    hands = Hands()
    limit = hands.limit(per_minute=100, reserved=0)
    passed: list[int] = []

    def many() -> None:
        for number in range(40):
            try:
                limit.take(urgent=False, patience=0)
            except RateLimitedError:
                continue
            passed.append(number)

    threads = [Thread(target=many) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passed) == 100


def test_one_count_for_every_client_of_a_key_and_one_for_each_service():
    assert rate_limit("PKA", "trading") is rate_limit("PKA", "trading")
    assert rate_limit("PKA", "trading") is not rate_limit("PKB", "trading")
    assert rate_limit("PKA", "trading") is not rate_limit("PKA", "data")


def test_a_reserve_that_leaves_nothing_is_a_mistake():
    with pytest.raises(ValueError, match="cannot be kept back"):
        RateLimit(per_minute=20, reserved=20)
