"""A market that moves by itself: exactly as fast as told, not beyond its bars, and why it stops."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Event

import pytest

from trader.broker.exchange.pace import Pace
from trader.core.errors import DataIntegrityError

START = datetime(2025, 7, 1, 20, tzinfo=UTC)


class Market:
    """A clock that can be walked on."""

    def __init__(self) -> None:
        self.time, self.fails = START, False

    def walk(self, goal) -> None:
        if self.fails:
            raise DataIntegrityError("AAPL bar 2025-07-02 has the price nan")
        self.time = goal(self.time)


def paced(market, seconds, **more):
    told = []
    usual = {"speed": 3600.0, "end": START + timedelta(days=1), "tell": told.append}
    return Pace(market.walk, clock=iter(seconds).__next__, **(usual | more)), told


def test_each_second_moves_the_market_by_the_speed():
    market = Market()
    pace, told = paced(market, [100.0, 101.0, 101.5, 101.5])
    assert [pace.step(), market.time] == [True, START + timedelta(hours=1)]
    assert [pace.step(), market.time] == [True, START + timedelta(minutes=90)]
    assert [pace.step(), market.time] == [True, START + timedelta(minutes=90)]
    assert told == []


def test_a_market_that_was_walked_by_hand_goes_on_from_there():
    market = Market()
    pace, _ = paced(market, [0.0, 1.0])
    market.time += timedelta(hours=5)
    pace.step()
    assert market.time == START + timedelta(hours=6)


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=3)])
def test_it_stands_still_where_the_bars_end_and_never_goes_back(ahead):
    market = Market()
    market.time += ahead
    pace, told = paced(market, [0.0, 1e6])
    assert pace.step() is False
    assert market.time == START + max(ahead, timedelta(days=1))
    assert told == ["the bars end at 2025-07-02 20:00 UTC: the market stands still"]


def test_a_bar_that_cannot_be_traded_on_stops_it_with_the_reason():
    market = Market()
    market.fails = True
    pace, told = paced(market, [0.0, 1.0])
    assert pace.step() is False
    assert told == ["the market stands still: AAPL bar 2025-07-02 has the price nan"]


def test_it_runs_by_itself_until_its_end():
    market, ended = Market(), Event()
    with Pace(market.walk, speed=1e9, end=START + timedelta(days=1), tell=lambda _: ended.set()):
        assert ended.wait(20)
    assert market.time == START + timedelta(days=1)
