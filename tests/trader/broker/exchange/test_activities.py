"""Account activities: every kind, every filter, page by page in the order of booking."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.trader.broker.floor import FLAT, SESSIONS, Floor, closing
from trader.broker.exchange.liquidity import Liquidity


@pytest.fixture
def market() -> Floor:
    """Deposit, buy, dividend, split, sale and fee, in this order, on sessions 0 to 4."""
    market = Floor(rows={"AAPL": [FLAT] * 8})
    market.exchange.pay_dividend("AAPL", Decimal(1), SESSIONS[2])
    market.exchange.split("AAPL", Decimal(2), SESSIONS[3])
    market.exchange.deposit(Decimal(50))
    market.buy()
    market.to_close(3)
    market.sell(qty=4)
    market.to_close(4)
    market.exchange.charge(Decimal("0.01"), "regulatory fee")
    return market


def kinds(market: Floor, path: str = "/account/activities", **query: object) -> list[str]:
    rows = market.client.get(path, {"direction": "asc"} | query)
    return [row["activity_type"] for row in rows]


def test_everything_that_moved_cash_or_shares_is_told_in_order(market):
    told = ["CSD", "FILL", "DIV", "SPLIT", "FILL", "FEE"]
    assert kinds(market) == told
    assert kinds(market, direction="desc") == told[::-1]
    assert market.client.get("/account/activities")[0]["activity_type"] == "FEE"


def test_activities_can_be_asked_for_by_kind_and_category(market):
    assert kinds(market, "/account/activities/DIV") == ["DIV"]
    assert kinds(market, activity_types="SPLIT,DIV") == ["DIV", "SPLIT"]
    assert kinds(market, category="trade_activity") == ["FILL", "FILL"]
    assert kinds(market, category="non_trade_activity") == ["CSD", "DIV", "SPLIT", "FEE"]
    assert kinds(market, activity_types="INT") == []


def test_activities_can_be_asked_for_by_time(market):
    assert kinds(market, after=closing(2).isoformat()) == ["SPLIT", "FILL", "FEE"]
    assert kinds(market, until=closing(2).isoformat()) == ["CSD", "FILL", "DIV"]
    assert kinds(market, date=SESSIONS[4].isoformat()) == ["FILL", "FEE"]
    assert kinds(market, date="2025-07-05") == []


@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 100])
def test_pages_join_to_the_whole(market, direction, size):
    whole = market.client.get("/account/activities", {"direction": direction})
    joined: list[dict] = []
    while True:
        query = {"direction": direction, "page_size": size}
        if joined:
            query["page_token"] = joined[-1]["id"]
        page = market.client.get("/account/activities", query)
        joined += page
        if len(page) < size:
            break
    assert joined == whole


def test_a_token_of_one_kind_finds_its_place_among_another(market):
    """Whoever reads fills only may go on from an activity that is none."""
    split = market.client.get("/account/activities/SPLIT")[0]["id"]
    rows = market.client.get("/account/activities/FILL", {"direction": "asc", "page_token": split})
    assert [row["side"] for row in rows] == ["sell"]


def test_what_is_booked_later_comes_after_a_token_even_at_the_same_moment():
    market = Floor(FLAT, FLAT)
    market.exchange.deposit(Decimal(1))
    (first,) = market.client.get("/account/activities", {"direction": "asc"})
    market.exchange.deposit(Decimal(2))
    query = {"direction": "asc", "page_token": first["id"]}
    (second,) = market.client.get("/account/activities", query)
    assert (second["net_amount"], second["id"] > "2025") == ("2", True)
    assert second["id"] != first["id"]


@pytest.mark.parametrize(
    "query",
    [
        "activity_types=DIVIDEND",
        "activity_types=",
        "category=x",
        "category=trade_activity&activity_types=DIV",
        "date=2025-07-01&after=2025-07-01",
        "date=x",
        "after=x",
        "direction=up",
        "page_size=0",
        "page_size=101",
        "page_token=x",
        "colour=red",
    ],
)
def test_a_wrong_question_is_refused(market, query):
    status, answer = market.send("GET", f"/v2/account/activities?{query}")
    assert status == (200 if query == "activity_types=" else 422), answer


@pytest.mark.parametrize("path", ["DIVIDEND", "FILL?activity_types=FILL", "DIV?category=x"])
def test_a_wrong_path_is_refused(market, path):
    assert market.send("GET", f"/v2/account/activities/{path}")[0] == 422


def test_a_fill_in_parts_says_what_is_done_and_what_is_left():
    market = Floor(*[FLAT] * 6)
    market.exchange.liquidity = Liquidity(seed=1, partial_fills=1.0)
    market.buy(time_in_force="gtc")
    market.to_close(3)
    rows = market.client.get("/account/activities/FILL", {"direction": "asc"})
    assert [row["type"] for row in rows] == ["partial_fill", "fill"]
    assert [row["order_status"] for row in rows] == ["partially_filled", "filled"]
    first, last = (Decimal(row["qty"]) for row in rows)
    assert first + last == 10
    assert [(row["cum_qty"], row["leaves_qty"]) for row in rows] == [
        (str(first), str(last)),
        ("10", "0"),
    ]
