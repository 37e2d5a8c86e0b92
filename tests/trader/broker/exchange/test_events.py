"""Trade updates as they are told, and the log of commands from which a market is done again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from tests.trader.broker.floor import CALENDAR, FLAT, Floor, HandBars, closing, opening
from trader.broker.exchange.liquidity import Liquidity
from trader.broker.exchange.replaying import replayed
from trader.core.errors import StateError
from trader.core.market import to_ns
from trader.core.trading import OrderStatus

QUIET = [FLAT] * 6
BARS = [FLAT, FLAT, (100, 104, 99, 103), (103, 106, 94, 101), (101, 103, 100, 102), FLAT, FLAT]


def short(market: Floor) -> list[str]:
    """Events by name and kind of order."""
    return [f"{one.name} {one.ticket.order_type}" for one in market.exchange.events(0)]


def test_an_order_sent_at_night_is_accepted_then_new_at_the_opening_then_filled():
    market = Floor(*QUIET)
    market.buy()
    assert market.events() == ["accepted c1"]
    market.to_close(1)
    assert market.events() == ["accepted c1", "new c1", "fill c1"]
    _, new, fill = market.exchange.events(0)
    assert new.at_ns == fill.at_ns == to_ns(opening(1))
    assert (new.ticket.status, fill.ticket.status) == (OrderStatus.NEW, OrderStatus.FILLED)
    assert (fill.price, fill.quantity, fill.position_quantity) == (100, 10, 10)
    assert fill.execution_id == market.last_fill().execution_id


def test_an_order_sent_in_the_session_is_new_at_once():
    market = Floor(*QUIET, start=opening(1))
    order = market.buy(type="limit", limit_price=90)
    market.client.cancel_order_by_id(order)
    assert market.events() == ["new c1", "canceled c1"]


def test_waiting_legs_tell_nothing_until_they_wake():
    market = Floor(FLAT, FLAT, (100, 111, 99, 105))
    market.bracket(95, 110)
    market.to_close(1)
    assert short(market)[3:] == ["new limit"]
    market.to_close(2)
    assert short(market)[4:] == ["fill limit", "canceled stop"]


def test_expired_and_rejected_orders_are_told_of():
    market = Floor(FLAT, (104.01, 105, 104, 104), cash=10_400)
    market.bracket(95, 110, qty=100)
    market.to_close(1)
    assert short(market) == [
        "accepted market",
        "new market",
        "canceled limit",
        "canceled stop",
        "rejected market",
    ]
    market = Floor(*QUIET)
    market.buy(type="limit", limit_price=90)
    market.to_close(1)
    assert short(market)[-1] == "expired limit"
    assert market.exchange.events(0)[-1].at_ns == to_ns(closing(1))


def test_parts_are_told_of_with_what_is_held_after_each():
    data = HandBars({"AAPL": [FLAT] * 5}, volume=100)
    market = Floor(data=data, liquidity=Liquidity(volume_share=0.04))
    market.buy(time_in_force="gtc")
    market.to_close(4)
    told = market.exchange.events(2)
    assert [one.name for one in told] == ["partial_fill", "partial_fill", "fill"]
    assert [one.quantity for one in told] == [4, 4, 2]
    assert [one.position_quantity for one in told] == [4, 8, 10]
    assert [one.ticket.filled_quantity for one in told] == [4, 8, 10]


def test_a_stop_beside_a_target_that_traded_in_part_is_restated():
    bars = [FLAT, FLAT, FLAT, (110, 111, 110, 110), FLAT]
    market = Floor(
        data=HandBars({"AAPL": bars}, volume=120), liquidity=Liquidity(volume_share=0.05)
    )
    market.buy(qty=6)
    market.to_close(1)
    market.buy(qty=4)
    market.to_close(2)
    legs = {"stop_loss": {"stop_price": 95}, "take_profit": {"limit_price": 110}}
    market.sell(type="limit", order_class="oco", time_in_force="gtc", **legs)
    market.to_close(3)
    pair = [one for one in market.exchange.events(0) if one.ticket.order_class == "oco"]
    assert [one.name for one in pair] == ["accepted", "new", "partial_fill"]
    assert market.raw(pair[0].ticket.order_id)["legs"][0]["qty"] == "4"


def test_a_target_beside_a_stop_that_traded_in_part_is_restated():
    bars = [FLAT, FLAT, (100, 100, 94, 95), FLAT]
    data = HandBars({"AAPL": bars}, volume=[1e6, 1e6, 6, 1e6])
    market = Floor(data=data, liquidity=Liquidity(volume_share=1.0))
    market.bracket(95, 110)
    market.to_close(2)
    assert short(market)[-2:] == ["partial_fill stop", "restated limit"]
    assert market.exchange.events(0)[-1].ticket.quantity == 4


def test_events_after_a_number_are_those_that_came_later():
    market = Floor(*QUIET)
    market.buy()
    market.to_close(1)
    everything = market.exchange.events(0)
    assert [one.sequence for one in everything] == [1, 2, 3]
    assert market.exchange.events(2) == everything[2:]
    assert market.exchange.events(3) == []


def test_a_refused_order_leaves_no_event_and_no_command(tmp_path):
    market = Floor(*QUIET, database=tmp_path / "exchange.db")
    before = market.exchange.sha256()
    market.post(qty=-1)
    market.post(side="sell")
    market.send("DELETE", "/v2/orders/11111111-2222-3333-4444-555555555555")
    with pytest.raises(ValueError, match="cannot go back"):
        market.exchange.advance(closing(0) - timedelta(seconds=1))
    assert market.exchange.sha256() == before


def story(market: Floor) -> None:
    """A bit of everything."""
    market.bracket(95, 110)
    market.buy(qty="1.5")
    market.to_close(1)
    market.exchange.advance(opening(2))
    order = market.buy(type="limit", limit_price=90, time_in_force="gtc")
    market.replace(order, limit_price=91)
    market.post(qty=-1)
    market.exchange.halt("AAPL", on=True)
    market.exchange.deposit(Decimal("12.34"))
    market.to_close(2)
    market.exchange.halt("AAPL", on=False)
    market.exchange.split("AAPL", Decimal(2), CALENDAR.next(closing(2).date()))
    market.to_close(4)
    market.send("DELETE", "/v2/positions?cancel_orders=true")
    market.to_close(5)


def test_the_log_of_commands_is_all_there_is_to_a_market(tmp_path):
    database = tmp_path / "exchange.db"
    liquidity = Liquidity(seed=5, partial_fills=0.5, volume_share=0.9)
    market = Floor(*BARS, database=database, liquidity=liquidity)
    story(market)
    again = replayed(database, data=market.data, calendar=CALENDAR)
    assert again.sha256() == market.exchange.sha256()
    assert again.events(0) == market.exchange.events(0)
    assert len(again.events(0)) > 10


def test_the_same_story_ends_the_same_in_a_file_and_in_memory(tmp_path):
    markets = [Floor(*BARS, database=path) for path in (None, tmp_path / "exchange.db")]
    for market in markets:
        story(market)
    assert len({market.exchange.sha256() for market in markets}) == 1
    markets[0].buy()
    assert markets[0].exchange.sha256() != markets[1].exchange.sha256()


def test_a_market_that_was_reset_is_done_again_from_its_very_beginning(tmp_path):
    database = tmp_path / "exchange.db"
    market = Floor(*BARS, database=database)
    story(market)
    market.exchange.reset(Decimal(5000))
    market.buy(qty=3)
    again = replayed(database, data=market.data, calendar=CALENDAR)
    assert again.sha256() == market.exchange.sha256()


def test_a_log_that_does_not_fit_is_refused_by_name(tmp_path):
    database = tmp_path / "exchange.db"
    market = Floor(*BARS, database=database)
    market.buy(qty=90)
    market.to_close(2)
    market.exchange.close()
    dear = HandBars({"AAPL": [(300, 300, 300, 300)] * 6})
    with pytest.raises(StateError, match="POST /v2/orders is refused now: 403"):
        replayed(database, data=dear, calendar=CALENDAR)
    with pytest.raises(StateError, match="does not exist"):
        replayed(tmp_path / "none.db", data=dear, calendar=CALENDAR)


def test_an_event_reads_back_as_it_was_told(tmp_path):
    market = Floor(*BARS, database=tmp_path / "exchange.db")
    market.buy(qty=None, notional="500")
    (told,) = market.exchange.events(0)
    assert told.ticket.notional == 500
    assert told.ticket.limit_price is None
    assert replace(told.ticket) == told.ticket
