"""The rest of the broker's port: account, clock, activities, replacing, the halt, foreign rows."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from alpaca.trading.client import TradingClient
from requests.adapters import BaseAdapter

from tests.trader.broker.test_alpaca_broker import ENTRY, a_row
from trader.broker.alpaca_broker import AlpacaBroker
from trader.broker.session import EMBEDDED_URL, guarded
from trader.core.errors import EndpointError, OrderRefusedError, RateLimitedError
from trader.core.trading import ActivityKind, OrderStatus, Side

ID, NEW_ID = "11111111-2222-3333-4444-555555555555", "66666666-2222-3333-4444-555555555555"
ACCOUNT = {
    "id": "an-account",
    "account_number": "PA123",
    "status": "ACTIVE",
    "cash": "1000.5",
    "equity": "2000",
    "last_equity": "1990",
    "buying_power": "1000.5",
}
Answers = dict[tuple[str, str], object]


class Desk(BaseAdapter):
    """Answers by method and path: (status, JSON or text), a function of the query, or an error."""

    def __init__(self, answers: Answers) -> None:
        super().__init__()
        self.answers = answers
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[dict[str, object]] = []

    def send(self, request, **_):
        parts = urlsplit(request.path_url)
        key = (request.method, parts.path.removeprefix("/v2"))
        self.asked.append(key)
        if request.body:
            self.bodies.append(json.loads(request.body))
        found = self.answers.get(key, (404, {"code": 40410000, "message": "not found"}))
        if callable(found):
            found = found({name: one for name, (one,) in parse_qs(parts.query).items()})
        if isinstance(found, Exception):
            raise found
        status, body = found
        response = requests.Response()
        response.status_code, response.url, response.request = status, request.url, request
        response._content = (body if isinstance(body, str) else json.dumps(body)).encode()
        if status == 429:
            response.headers["Retry-After"] = "7"
        return response

    def close(self):
        pass


def at_desk(answers: Answers, halt: object = None) -> tuple[AlpacaBroker, Desk]:
    desk = Desk(answers)
    client = guarded(TradingClient("PK", "x", url_override=EMBEDDED_URL), {EMBEDDED_URL: desk})
    return AlpacaBroker(client, halt=halt), desk


class Halt:
    """A TradingHalt that says this."""

    def __init__(self, reason: str) -> None:
        self.reason, self.asked = reason, []

    def blocked(self, symbol: str) -> str:
        self.asked.append(symbol)
        return self.reason


def test_the_account_tells_who_it_is_and_what_it_is_worth():
    broker, _ = at_desk({("GET", "/account"): (200, ACCOUNT)})
    state = broker.account()
    assert (state.account_id, state.blocked) == ("an-account", "")
    assert (state.cash, state.equity) == (Decimal("1000.5"), 2000)
    assert (state.last_equity, state.buying_power) == (1990, Decimal("1000.5"))
    assert broker.notices() == ()


@pytest.mark.parametrize(
    ("changes", "blocked"),
    [
        ({"trading_blocked": True}, "trading is blocked"),
        ({"account_blocked": True}, "the account is blocked"),
        ({"trade_suspended_by_user": True}, "trading is suspended in the account's settings"),
        ({"status": "ACCOUNT_CLOSED"}, "the account is ACCOUNT_CLOSED"),
        (
            {"status": "NEW_WORD", "account_blocked": True},
            "the account is blocked, the account is NEW_WORD",
        ),
    ],
)
def test_an_account_that_may_not_trade_says_why(changes, blocked):
    broker, _ = at_desk({("GET", "/account"): (200, ACCOUNT | changes)})
    assert broker.account().blocked == blocked
    assert broker.notices() == (blocked,)


@pytest.mark.parametrize("number", ["123456", None, "LA1"])
def test_an_account_that_is_not_numbered_like_a_paper_account_is_a_notice(number):
    broker, _ = at_desk({("GET", "/account"): (200, ACCOUNT | {"account_number": number})})
    (notice,) = broker.notices()
    assert "does not begin with PA" in notice


@pytest.mark.parametrize("name", ["id", "status", "cash", "equity", "last_equity", "buying_power"])
def test_an_account_that_lacks_what_limits_losses_is_not_guessed_at(name):
    broker, _ = at_desk({("GET", "/account"): (200, ACCOUNT | {name: None})})
    with pytest.raises(EndpointError, match=name):
        broker.account()


def test_fields_of_day_trading_may_be_missing_null_or_odd():
    odd = {"daytrade_count": None, "pattern_day_trader": "maybe", "dtbp_check": 7}
    broker, _ = at_desk({("GET", "/account"): (200, ACCOUNT | odd)})
    assert broker.account().blocked == ""


def test_the_clock_is_told_in_utc():
    row = {
        "timestamp": "2025-07-01T09:30:00.123456789-04:00",
        "is_open": True,
        "next_open": "2025-07-02T09:30:00-04:00",
        "next_close": "2025-07-01T16:00:00-04:00",
    }
    broker, _ = at_desk({("GET", "/clock"): (200, row)})
    clock = broker.clock()
    assert clock.now == datetime(2025, 7, 1, 13, 30, 0, 123456, tzinfo=UTC)
    assert (clock.is_open, clock.next_close.hour, clock.next_open.day) == (True, 20, 2)
    for bad in ({"is_open": "yes"}, {"timestamp": "2025-07-01T09:30:00"}, {"next_open": None}):
        broken, _ = at_desk({("GET", "/clock"): (200, row | bad)})
        with pytest.raises(EndpointError, match=next(iter(bad))):
            broken.clock()


def an_activity(number: int, kind: str = "DIV", **more: object) -> dict[str, object]:
    row = {"id": f"2025::{number}", "activity_type": kind, "date": "2025-07-01"}
    return row | {"net_amount": "1.5"} | more


@pytest.mark.parametrize(
    ("kind", "meant"),
    [
        ("DIV", ActivityKind.DIVIDEND),
        ("DIVNRA", ActivityKind.DIVIDEND),
        ("SPLIT", ActivityKind.SPLIT),
        ("SSP", ActivityKind.SPLIT),
        ("FEE", ActivityKind.FEE),
        ("CFEE", ActivityKind.FEE),
        ("CSD", ActivityKind.TRANSFER),
        ("CSW", ActivityKind.TRANSFER),
        ("JNLC", ActivityKind.TRANSFER),
        ("INT", ActivityKind.OTHER),
        ("TELEPORT", ActivityKind.OTHER),
    ],
)
def test_every_kind_of_activity_is_read_and_new_ones_are_other(kind, meant):
    rows = [an_activity(1, kind, symbol="AAPL", qty="4")]
    broker, _ = at_desk({("GET", "/account/activities"): (200, rows)})
    (read,) = broker.activities()
    moved = 0 if meant in (ActivityKind.DIVIDEND, ActivityKind.TRANSFER) else 4
    assert (read.kind, read.symbol, read.amount) == (meant, "AAPL", Decimal("1.5"))
    assert read.quantity == moved  # a dividend's qty is what was held, not what came
    assert read.at == datetime(2025, 7, 1, 4, tzinfo=UTC)  # midnight in New York


def test_activities_are_paged_begin_after_the_last_one_and_leave_fills_out():
    rows = [an_activity(number) for number in range(250)]
    rows[120] = an_activity(120, "FILL")

    def page(query: dict[str, str]) -> tuple[int, object]:
        assert (query["direction"], query["category"]) == ("asc", "non_trade_activity")
        first = int(query["page_token"].split("::")[1]) + 1 if "page_token" in query else 0
        return 200, rows[first : first + int(query["page_size"])]

    broker, desk = at_desk({("GET", "/account/activities"): page})
    assert [one.activity_id for one in broker.activities()] == [
        f"2025::{number}" for number in range(250) if number != 120
    ]
    assert len(desk.asked) == 3
    assert [one.activity_id for one in broker.activities("2025::247")] == ["2025::248", "2025::249"]


def test_pages_that_do_not_end_are_an_error():
    broker, desk = at_desk({("GET", "/account/activities"): (200, [an_activity(1)] * 100)})
    with pytest.raises(EndpointError, match="do not end"):
        broker.activities()
    assert len(desk.asked) == 2


def test_a_position_of_coins_is_told_in_the_spelling_of_its_orders():
    row = {"symbol": "BTCUSD", "asset_class": "crypto", "qty": "0.5", "avg_entry_price": "100000"}
    clock = {"timestamp": "2025-07-01T09:30:00Z"}
    broker, _ = at_desk(
        {
            ("GET", "/clock"): (200, clock),
            ("GET", "/account"): (200, ACCOUNT),
            ("GET", "/positions"): (200, [row | {"current_price": None, "lastday_price": None}]),
        }
    )
    (held,) = broker.portfolio().positions
    assert (held.symbol, held.current_price) == ("BTC/USD", 100000)


def test_orders_of_coins_are_told_in_one_spelling():
    row = a_row(symbol="SOLUSD", asset_class="crypto")
    broker, _ = at_desk({("GET", "/orders"): (200, [row])})
    assert broker.orders()[0].symbol == "SOL/USD"


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "pegged"},
        {"side": "sell_short"},
        {"side": None},
        {"side": ["buy"]},
        {"type": {"of": "a kind"}},
        {"time_in_force": "gtd"},
        {"order_class": "mleg", "symbol": None, "side": "", "legs": [{"symbol": "AAPL250101C1"}]},
    ],
)
def test_an_order_that_this_product_could_not_have_placed_loses_no_other(changes, caplog):
    rows = [a_row(), a_row(id="odd", **changes), a_row(id="z", client_order_id="last")]
    broker, _ = at_desk({("GET", "/orders"): (200, rows), ("GET", f"/orders/{ID}"): (200, rows[1])})
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert [one.client_order_id for one in broker.orders()] == ["row", "last"]
    assert len([one for one in caplog.records if "odd was placed elsewhere" in one.message]) == 1
    with pytest.raises(EndpointError):
        broker.order_by_id(ID)  # asked for by name, it is not swept aside


def test_an_order_by_amount_of_money_is_listed_with_what_was_filled_of_it():
    row = a_row(qty=None, notional="100", filled_qty="0.25", status="partially_filled")
    broker, _ = at_desk({("GET", "/orders"): (200, [row])})
    assert broker.orders()[0].quantity == Decimal("0.25")


def test_an_order_by_its_own_id_or_none():
    broker, desk = at_desk({("GET", f"/orders/{ID}"): (200, a_row(id=ID))})
    assert broker.order_by_id(ID).order_id == ID
    assert broker.order_by_id(NEW_ID) is None
    desk.answers["GET", f"/orders/{NEW_ID}"] = (500, "")
    with pytest.raises(EndpointError):
        broker.order_by_id(NEW_ID)


def replaced(**more: object) -> dict[str, object]:
    return a_row(id=ID, status="replaced", replaced_by=NEW_ID, **more)


def test_a_replacement_carries_exact_numbers_and_its_own_client_id():
    new = a_row(id=NEW_ID, client_order_id="tr-1-r1", limit_price="41.08", qty="3")
    broker, desk = at_desk({("PATCH", f"/orders/{ID}"): (200, new)})
    found = broker.replace(
        ID, client_order_id="tr-1-r1", quantity=Decimal(3), stop_price=Decimal("40.10")
    )
    assert found.order_id == NEW_ID
    assert desk.bodies == [{"qty": "3", "stop_price": "40.10", "client_order_id": "tr-1-r1"}]
    assert desk.asked == [("PATCH", f"/orders/{ID}")]


REFUSED = (422, {"code": 42210000, "message": "unable to replace order, order isn't sent yet"})


@pytest.mark.parametrize(
    "fault", [REFUSED, (504, ""), (502, "<html>"), requests.Timeout("slow"), (200, "<html>")]
)
def test_a_replacement_that_was_refused_or_lost_and_happened_all_the_same_is_found(fault):
    new = a_row(id=NEW_ID, client_order_id="of-the-broker")
    answers = {
        ("PATCH", f"/orders/{ID}"): fault,
        ("GET", f"/orders/{ID}"): (200, replaced()),
        ("GET", f"/orders/{NEW_ID}"): (200, new),
    }
    broker, desk = at_desk(answers)
    assert broker.replace(ID, client_order_id="tr-2").order_id == NEW_ID
    answers["GET", "/orders:by_client_order_id"] = (200, new)
    assert broker.replace(ID, client_order_id="tr-2").order_id == NEW_ID
    assert desk.asked.count(("PATCH", f"/orders/{ID}")) == 2


def test_a_replacement_that_did_not_happen_is_refused_or_unknown():
    answers = {("PATCH", f"/orders/{ID}"): REFUSED, ("GET", f"/orders/{ID}"): (200, a_row(id=ID))}
    broker, _ = at_desk(answers)
    with pytest.raises(OrderRefusedError, match="refused to replace it: unable to replace"):
        broker.replace(ID, client_order_id="tr-2")
    answers["PATCH", f"/orders/{ID}"] = (504, "")
    with pytest.raises(EndpointError, match="replaced is unknown"):
        broker.replace(ID, client_order_id="tr-2")
    answers["GET", "/orders:by_client_order_id"] = (429, "{}")
    with pytest.raises(EndpointError, match="replaced is unknown") as caught:
        broker.replace(ID, client_order_id="tr-2")
    assert not isinstance(caught.value, RateLimitedError)  # something may have been done


def test_what_took_the_place_of_a_replaced_leg_stands_beside_it():
    """A triggered stop may show up as replaced by another order, which then fills."""
    third = "99999999-2222-3333-4444-555555555555"
    leg = a_row(id=ID, client_order_id="leg", status="replaced", replaced_by=NEW_ID, side="sell")
    entry = a_row(id="e", order_class="oto", status="filled", legs=[leg])
    heirs = {
        ("GET", f"/orders/{NEW_ID}"): (200, a_row(id=NEW_ID, status="replaced", replaced_by=third)),
        ("GET", f"/orders/{third}"): (200, a_row(id=third, client_order_id="heir", status="new")),
    }
    broker, desk = at_desk({("GET", "/orders"): (200, [entry]), **heirs})
    (family,) = broker.orders()
    assert [one.status for one in family.legs] == [OrderStatus.REPLACED, OrderStatus.NEW]
    assert family.legs[1].order_id == third
    broker.orders()
    assert desk.asked.count(("GET", f"/orders/{NEW_ID}")) == 1  # what is final is asked for once
    assert desk.asked.count(("GET", f"/orders/{third}")) == 2


def test_replacements_that_go_round_in_circles_are_an_error():
    leg = a_row(id=ID, status="replaced", replaced_by=NEW_ID)
    other = a_row(id=NEW_ID, status="replaced", replaced_by=ID)
    entry = a_row(id="e", order_class="oto", status="filled", legs=[leg])
    answers = {
        ("GET", "/orders"): (200, [entry]),
        ("GET", f"/orders/{ID}"): (200, leg),
        ("GET", f"/orders/{NEW_ID}"): (200, other),
    }
    broker, _ = at_desk(answers)
    with pytest.raises(EndpointError, match="replaced more than 100 times"):
        broker.orders()


def test_canceling_a_replaced_order_cancels_what_took_its_place():
    broker, desk = at_desk(
        {
            ("DELETE", f"/orders/{ID}"): (422, {"message": 'order is already in "replaced" state'}),
            ("GET", f"/orders/{ID}"): (200, replaced()),
            ("DELETE", f"/orders/{NEW_ID}"): (204, ""),
        }
    )
    broker.cancel(ID)
    assert desk.asked[-1] == ("DELETE", f"/orders/{NEW_ID}")


def test_a_halt_refuses_what_buys_before_any_request_and_nothing_else():
    halt = Halt("trading is halted: lost too much")
    broker, desk = at_desk({}, halt)
    with pytest.raises(OrderRefusedError, match="AAPL: nothing may be bought: trading is halted"):
        broker.submit(ENTRY)
    assert desk.asked == []
    assert halt.asked == ["AAPL"]
    desk.answers["POST", "/orders"] = (200, a_row(id=ID, side="sell", client_order_id="x"))
    desk.answers["DELETE", f"/orders/{ID}"] = (204, "")
    desk.answers["PATCH", f"/orders/{ID}"] = (200, a_row(id=NEW_ID, side="sell"))
    broker.submit(replace(ENTRY, side=Side.SELL, client_order_id="x"))
    broker.replace(ID, client_order_id="y", quantity=Decimal(1))
    broker.cancel(ID)
    assert [method for method, _ in desk.asked] == ["POST", "PATCH", "DELETE"]
    assert halt.asked == ["AAPL"]  # exits, cancels and protection are never asked about


def test_a_halt_refuses_to_replace_an_order_that_buys():
    halt = Halt("")
    row = a_row(id=ID)
    broker, desk = at_desk({("GET", f"/orders/{ID}"): (200, row)}, halt)
    halt.reason = "paused"
    with pytest.raises(OrderRefusedError, match="nothing may be bought: paused"):
        broker.replace(ID, client_order_id="y", quantity=Decimal(100))
    with pytest.raises(OrderRefusedError, match="there is none"):
        broker.replace(NEW_ID, client_order_id="y", quantity=Decimal(100))
    assert all(method == "GET" for method, _ in desk.asked)
    halt.reason = ""
    desk.answers["PATCH", f"/orders/{ID}"] = (200, a_row(id=NEW_ID))
    assert broker.replace(ID, client_order_id="y").order_id == NEW_ID


def test_a_429_means_that_nothing_was_done_and_says_how_long_to_wait():
    broker, desk = at_desk({("POST", "/orders"): (429, {"message": "too many requests"})})
    with pytest.raises(RateLimitedError, match="nothing was done about AAPL: buy 10") as caught:
        broker.submit(ENTRY)
    assert caught.value.retry_seconds == 7
    assert desk.asked == [("POST", "/orders")]


@pytest.mark.parametrize(
    "answer",
    [
        (401, {"code": 40110000, "message": "request is not authorized"}),
        (401, "unauthorized"),
        (403, {"message": "forbidden."}),
    ],
)
def test_a_key_that_is_not_taken_is_no_word_about_the_order_and_names_the_remedy(answer):
    everywhere = {("POST", "/orders"): answer, ("GET", "/account"): answer}
    broker, desk = at_desk(everywhere)
    for call in (lambda: broker.submit(ENTRY), broker.account):
        with pytest.raises(EndpointError, match="does not take the key; check the two variables"):
            call()
    assert desk.asked == [("POST", "/orders"), ("GET", "/account")]


def test_a_blocked_account_refuses_the_order_and_reading_says_where_to_look():
    blocked = (403, {"code": 40310000, "message": "account is blocked"})
    broker, _ = at_desk({("POST", "/orders"): blocked, ("GET", "/positions"): blocked})
    with pytest.raises(OrderRefusedError, match="account is blocked"):
        broker.submit(ENTRY)
    broker, _ = at_desk({("GET", "/account"): blocked})
    with pytest.raises(EndpointError, match=r"account is blocked; .*trader doctor"):
        broker.account()


def test_a_fill_of_an_order_that_the_broker_does_not_show_is_an_error():
    fill = {
        "id": "f1",
        "order_id": ID,
        "symbol": "AAPL",
        "side": "buy",
        "qty": "1",
        "price": "100",
        "transaction_time": "2025-07-01T13:30:00Z",
    }
    broker, _ = at_desk({("GET", "/account/activities/FILL"): (200, [fill])})
    with pytest.raises(EndpointError, match="no such order"):
        broker.fills()
