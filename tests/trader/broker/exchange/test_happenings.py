"""Splits, dividends, payments, halts and resets: what they change, and what they do not."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from alpaca.trading.requests import GetOrderByIdRequest

from tests.trader.broker.exchange.market import bars_with_splits
from tests.trader.broker.floor import CALENDAR, FLAT, FREE, SESSIONS, Floor, HandBars, opening
from trader.broker.exchange.exchange import Exchange
from trader.broker.exchange.replaying import replayed
from trader.core.errors import DataIntegrityError
from trader.core.market import Timeframe

HALF = (50, 50, 50, 50)
TENFOLD = (1000, 1000, 1000, 1000)


def split_market(ratio: float, after: tuple, session: int = 2, **floor) -> Floor:
    """AAPL at 100, and from `session` on as it stands after a split that the bars show."""
    rows = {"AAPL": [FLAT] * session + [after] * 8}
    data = bars_with_splits(rows, {"AAPL": ((SESSIONS[session], ratio),)})
    return Floor(data=data, **floor)


def amounts(market: Floor) -> tuple[Decimal, Decimal, Decimal]:
    """Shares, cash and equity."""
    portfolio = market.broker.portfolio()
    held = portfolio.position("AAPL")
    return held.quantity if held else Decimal(0), portfolio.cash, portfolio.equity


def rows(market: Floor, kind: str = "") -> list[dict]:
    path = f"/account/activities/{kind}" if kind else "/account/activities"
    return market.client.get(path, {"direction": "asc"})


def test_a_split_that_the_bars_show_doubles_the_shares_and_changes_no_equity():
    market = split_market(2.0, HALF)
    market.buy()
    market.to_close(1)
    assert amounts(market) == (10, 9000, 10_000)
    market.exchange.advance(opening(2))
    assert amounts(market) == (20, 9000, 10_000)
    market.to_close(2)
    assert amounts(market) == (20, 9000, 10_000)
    position = market.client.get_open_position("AAPL")
    assert (position.avg_entry_price, position.cost_basis) == ("50", "1000")
    assert (position.lastday_price, position.change_today) == ("50", "0")
    assert position.unrealized_intraday_pl == "0"
    assert market.client.get_account().last_equity == "10000"


def test_the_split_is_an_activity_with_the_shares_that_it_added():
    market = split_market(2.0, HALF)
    market.buy()
    market.to_close(3)
    (row,) = rows(market, "SPLIT")
    assert (row["symbol"], row["qty"], row["net_amount"]) == ("AAPL", "10", "0")
    assert row["date"] == SESSIONS[2].isoformat()
    (activity,) = market.broker.activities()
    assert (activity.kind, activity.quantity, activity.amount) == ("split", 10, 0)


def test_a_bracket_follows_a_split_and_its_stop_still_protects():
    market = Floor(
        data=bars_with_splits(
            {"AAPL": [FLAT, FLAT, HALF, (50, 50, 47, 48)]}, {"AAPL": ((SESSIONS[2], 2.0),)}
        )
    )
    head = market.bracket(95, 110)
    market.to_close(2)
    order = market.client.get_order_by_id(head, GetOrderByIdRequest(nested=True))
    assert [(leg.qty, leg.limit_price, leg.stop_price) for leg in order.legs] == [
        ("20", "55", None),
        ("20", None, "47.5"),
    ]
    assert (order.qty, order.filled_qty) == ("10", "10")
    names = [(event.name, event.ticket.quantity) for event in market.exchange.events(0)]
    assert names.count(("restated", Decimal(20))) == 2
    market.to_close(3)
    assert market.fills()[-1] == ("sell", Decimal("47.5"))
    assert amounts(market) == (0, 9000 + 20 * Decimal("47.5"), 9950)


def test_an_order_that_waits_for_the_session_of_the_split_is_for_the_new_shares():
    market = split_market(2.0, HALF)
    market.to_close(1)
    market.buy()
    limit = market.buy(type="limit", limit_price="49.99", time_in_force="gtc")
    market.to_close(2)
    assert [(fill.quantity, fill.price) for fill in market.broker.fills()] == [(20, 50)]
    waiting = market.order(limit)
    assert (waiting.quantity, waiting.limit_price) == (20, Decimal("24.99"))


def test_prices_of_orders_are_rounded_away_from_the_market():
    market = split_market(3.0, (33, 34, 33, 33))
    market.buy()
    market.to_close(1)
    stop = market.sell(type="stop", stop_price="95.02", time_in_force="gtc", qty=5)
    target = market.sell(type="limit", limit_price="110.01", time_in_force="gtc", qty=5)
    market.to_close(2)
    assert market.order(stop).stop_price == Decimal("31.67")  # 31.673…
    assert market.order(target).limit_price == Decimal("36.67")


def test_a_trailing_stop_follows_a_split():
    market = split_market(2.0, HALF)
    market.buy()
    market.to_close(1)
    trailing = market.sell(type="trailing_stop", trail_price=6, time_in_force="gtc")
    market.to_close(2)
    order = market.client.get_order_by_id(trailing)
    assert (order.qty, order.trail_price, order.hwm) == ("20", "3", "50")
    assert order.stop_price == "47"


@pytest.mark.parametrize(
    ("bought", "ratio", "after", "shares", "cash"),
    [
        (15, 0.1, TENFOLD, 1, 8500 + 500),  # 1.5 shares: half of one at 1000
        (5, 0.1, TENFOLD, 0, 9500 + 500),
        (5, 1.5, (66.67, 66.67, 66.67, 66.67), 7, Decimal("9533.33")),  # half of one at 66.666…
        (9, 1 / 3, (300, 300, 300, 300), 3, 9100),
        (30, 0.3333333333, (300, 300, 300, 300), 10, 7000),
    ],
)
def test_a_fraction_left_over_is_paid_in_cash(bought, ratio, after, shares, cash):
    market = split_market(ratio, after)
    market.buy(qty=bought)
    market.to_close(1)
    market.exchange.advance(opening(2))
    held, paid, equity = amounts(market)
    assert (held, paid) == (shares, cash)
    assert abs(equity - 10_000) < Decimal("0.005")
    (row,) = rows(market, "SPLIT")
    assert Decimal(row["net_amount"]) == cash - (10_000 - 100 * bought)
    assert Decimal(row["qty"]) == shares - bought


def test_an_order_without_a_share_left_is_canceled_with_its_family():
    market = split_market(0.1, TENFOLD)
    market.buy(qty=5)
    market.to_close(1)
    legs = {"stop_loss": {"stop_price": 95}, "take_profit": {"limit_price": 110}}
    pair = market.sell(type="limit", order_class="oco", time_in_force="gtc", qty=5, **legs)
    market.to_close(2)
    order = market.client.get_order_by_id(pair, GetOrderByIdRequest(nested=True))
    assert {order.status.value, order.legs[0].status.value} == {"canceled"}
    assert amounts(market)[0] == 0


def test_parts_of_a_share_stay_parts():
    market = split_market(1.5, (66.67, 66.67, 66.67, 66.67))
    market.buy(qty="2.5")
    market.to_close(1)
    market.exchange.advance(opening(2))
    assert amounts(market)[0] == Decimal("3.75")
    assert rows(market, "SPLIT")[0]["net_amount"] == "0"


def test_a_day_order_of_the_day_before_is_gone_before_the_split():
    market = split_market(2.0, HALF)
    order = market.buy(type="limit", limit_price=90)
    market.to_close(3)
    assert (market.order(order).status, market.order(order).quantity) == ("expired", 10)


def test_an_announced_split_is_shown_by_the_exchange_in_place_of_the_bars():
    market = Floor(rows={"AAPL": [FLAT] * 6})
    market.exchange.split("AAPL", Decimal(4), SESSIONS[2])
    market.bracket(95, 110)
    market.to_close(1)
    assert market.client.get_open_position("AAPL").current_price == "100"
    market.to_close(2)
    assert amounts(market) == (40, 9000, 10_000)
    assert market.client.get_open_position("AAPL").current_price == "25"
    market.buy(qty=4)
    market.to_close(3)
    assert market.last_fill().price == 25


def test_two_splits_multiply():
    market = Floor(rows={"AAPL": [FLAT] * 6})
    market.exchange.split("AAPL", Decimal(2), SESSIONS[2])
    market.exchange.split("AAPL", Decimal(5), SESSIONS[3])
    market.buy()
    market.to_close(4)
    assert amounts(market) == (100, 9000, 10_000)


@pytest.mark.parametrize(
    ("symbol", "ratio", "session"),
    [
        ("AAPL", "1", SESSIONS[2]),
        ("AAPL", "0", SESSIONS[2]),
        ("AAPL", "-2", SESSIONS[2]),
        ("AAPL", "NaN", SESSIONS[2]),
        ("AAPL", "1000000", SESSIONS[2]),
        ("AAPL", "2", SESSIONS[0]),
        ("AAPL", "2", date(2025, 7, 4)),
        ("XYZ", "2", SESSIONS[2]),
        ("BTC/USD", "2", SESSIONS[2]),
    ],
)
def test_a_split_that_cannot_be_is_refused_and_changes_nothing(symbol, ratio, session):
    market = Floor(rows={"AAPL": [FLAT] * 4, "BTC/USD": [FLAT] * 4})
    before = market.exchange.sha256()
    with pytest.raises((ValueError, DataIntegrityError)):
        market.exchange.split(symbol, Decimal(ratio), session)
    assert market.exchange.sha256() == before


def test_a_second_split_of_one_session_is_refused():
    market = split_market(2.0, HALF)
    with pytest.raises(ValueError, match="already"):
        market.exchange.split("AAPL", Decimal(3), SESSIONS[2])


def test_a_dividend_belongs_to_who_held_at_the_close_before():
    market = Floor(rows={"AAPL": [FLAT] * 6})
    market.exchange.pay_dividend("AAPL", Decimal("0.255"), SESSIONS[2])
    market.exchange.pay_dividend("AAPL", Decimal("1"), SESSIONS[3])
    market.buy()
    market.to_close(1)
    market.sell()  # at the opening at which the first dividend is paid
    market.to_close(3)
    (row,) = rows(market, "DIV")
    assert (row["qty"], row["per_share_amount"], row["net_amount"]) == ("10", "0.255", "2.55")
    assert amounts(market) == (0, Decimal("10002.55"), Decimal("10002.55"))
    (activity,) = market.broker.activities()
    assert (activity.kind, activity.amount, activity.quantity) == ("dividend", Decimal("2.55"), 0)


def test_a_dividend_comes_before_a_split_of_the_same_session():
    market = split_market(2.0, HALF)
    market.exchange.pay_dividend("AAPL", Decimal(1), SESSIONS[2])
    market.buy()
    market.to_close(2)
    assert amounts(market) == (20, 9010, 10_010)
    assert [row["activity_type"] for row in rows(market)] == ["FILL", "DIV", "SPLIT"]


@pytest.mark.parametrize(
    ("symbol", "amount", "session"),
    [
        ("AAPL", "0", 2),
        ("AAPL", "-1", 2),
        ("AAPL", "100", 2),
        ("AAPL", "Infinity", 2),
        ("AAPL", "1", 0),
        ("XYZ", "1", 2),
    ],
)
def test_a_dividend_that_cannot_be_is_refused(symbol, amount, session):
    market = Floor(rows={"AAPL": [FLAT] * 4})
    with pytest.raises(ValueError, match=r"dividend|opened|money|share"):
        market.exchange.pay_dividend(symbol, Decimal(amount), SESSIONS[session])


def test_payments_move_cash_and_are_told_apart_from_gains():
    market = Floor(rows={"AAPL": [FLAT] * 4})
    market.exchange.deposit(Decimal("500.50"))
    market.exchange.deposit(Decimal(-200))
    market.exchange.deposit(Decimal(100), journal=True)
    market.exchange.charge(Decimal("0.35"), "regulatory fee")
    told = [(row["activity_type"], row["net_amount"]) for row in rows(market)]
    assert told == [("CSD", "500.5"), ("CSW", "-200"), ("JNLC", "100"), ("FEE", "-0.35")]
    assert market.cash() == Decimal("10400.15")
    kinds = [activity.kind.value for activity in market.broker.activities()]
    assert kinds == ["transfer", "transfer", "transfer", "fee"]
    assert market.client.get_account().last_equity == "10000"


def test_money_that_open_orders_keep_back_cannot_be_taken_out():
    market = Floor(rows={"AAPL": [FLAT] * 4})
    market.buy(type="limit", limit_price=50, qty=100)
    market.exchange.deposit(Decimal(-5000))
    for amount in ("-0.01", "0", "0.005"):
        with pytest.raises(ValueError, match=r"free|nothing|cents"):
            market.exchange.deposit(Decimal(amount))
    for fee in ("0.01", "-1", "0"):
        with pytest.raises(ValueError, match=r"free|fee"):
            market.exchange.charge(Decimal(fee), "fee")


def test_a_halted_symbol_waits_and_trades_when_it_is_let_go():
    market = Floor(rows={"AAPL": [FLAT] * 5, "MSFT": [FLAT] * 5})
    market.exchange.halt("AAPL", on=True)
    waiting, other = market.buy(time_in_force="gtc"), market.buy(symbol="MSFT")
    market.to_close(2)
    assert not market.order(waiting).status.is_final
    assert market.order(other).status == "filled"
    market.exchange.halt("AAPL", on=False)
    market.to_close(3)
    assert market.order(waiting).status == "filled"
    with pytest.raises(ValueError, match="XYZ"):
        market.exchange.halt("XYZ", on=True)


def test_a_blocked_account_says_so_and_orders_nothing_but_may_cancel():
    market = Floor(rows={"AAPL": [FLAT] * 5})
    waiting = market.buy(type="limit", limit_price=50, time_in_force="gtc")
    market.exchange.block("under review")
    account = market.client.get_account()
    assert account.account_blocked
    assert account.trading_blocked
    assert market.broker.account().blocked
    assert market.post()[0] == 403
    market.client.cancel_order_by_id(waiting)
    market.exchange.block("")
    assert market.post()[0] == 200


def test_a_reset_is_another_account():
    market = Floor(rows={"AAPL": [FLAT] * 5})
    market.bracket(95, 110)
    market.to_close(1)
    market.exchange.deposit(Decimal(5))
    before = market.client.get_account()
    market.exchange.reset(Decimal(50_000))
    after = market.client.get_account()
    assert (after.id != before.id, after.account_number) == (True, "PAEMBEDDED2")
    assert after.cash == after.equity == after.last_equity == "50000"
    assert market.all_orders() == ()
    assert market.client.get_all_positions() == []
    assert rows(market) == []
    assert market.exchange.now() == CALENDAR.close(SESSIONS[1])
    market.buy(client_order_id="c1")  # an id of the account that is gone
    market.to_close(2)
    assert amounts(market) == (10, 49_000, 50_000)
    with pytest.raises(ValueError, match="begin"):
        market.exchange.reset(Decimal(-1))


def everything(exchange: Exchange) -> None:
    """A life with one of each deed."""
    floor = Floor.__new__(Floor)
    floor.exchange, floor.number = exchange, 0
    exchange.split("AAPL", Decimal(2), SESSIONS[2])
    exchange.pay_dividend("AAPL", Decimal("0.5"), SESSIONS[2])
    floor.bracket(95, 110)
    floor.to_close(1)
    exchange.halt("AAPL", on=True)
    exchange.deposit(Decimal("12.34"))
    exchange.charge(Decimal("0.02"), "fee")
    floor.to_close(3)
    floor.send("PATCH", "/v2/account/configurations", {"suspend_trade": True})
    exchange.block("by hand")
    exchange.reset(Decimal(777))
    floor.post()
    floor.to_close(4)


def new_exchange(database: Path) -> Exchange:
    return Exchange(
        data=HandBars({"AAPL": [FLAT] * 6}),
        timeframe=Timeframe.DAY,
        calendar=CALENDAR,
        costs=FREE,
        cash=Decimal(10_000),
        start=CALENDAR.close(SESSIONS[0]),
        database=database,
    )


def test_the_log_of_commands_does_everything_again(tmp_path):
    database = tmp_path / "exchange.db"
    market = new_exchange(database)
    everything(market)
    again = replayed(database, data=HandBars({"AAPL": [FLAT] * 6}), calendar=CALENDAR)
    assert again.sha256() == market.sha256()
    done = {command.path for command in market._store.commands()}
    assert done >= {"split", "dividend", "halt", "deposit", "charge", "block", "reset"}
    market.close()


def test_what_was_announced_survives_a_restart(tmp_path):
    database = tmp_path / "exchange.db"
    market = new_exchange(database)
    market.split("AAPL", Decimal(2), SESSIONS[2])
    market.close()
    market = new_exchange(database)
    market.advance(CALENDAR.close(SESSIONS[2]))
    status, answer = market.handle("GET", "/v2/stocks/bars/latest?symbols=AAPL", None)
    assert (status, answer["bars"]["AAPL"]["c"]) == (200, 50.0)
    market.close()
