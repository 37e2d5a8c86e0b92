"""Portfolio history: exact points, every period, and its laws over any account's life."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from alpaca.trading.requests import GetPortfolioHistoryRequest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trader.broker.exchange.market import bars_with_splits
from tests.trader.broker.exchange.test_properties import BARS, COSTS, STORIES, Advance, act, bars
from tests.trader.broker.floor import FLAT, SESSIONS, Floor, closing, opening
from trader.core.market import Timeframe

RISE = [FLAT, FLAT, (100, 103, 100, 102), (102, 106, 102, 105), *[(105,) * 4] * 40]


@pytest.fixture
def market() -> Floor:
    """10 AAPL at 100 on session 1; 500 paid in after its close."""
    market = Floor(*RISE)
    market.buy()
    market.exchange.advance(closing(1) + timedelta(minutes=1))
    market.exchange.deposit(Decimal(500))
    market.to_close(3)
    return market


def history(market: Floor, **wanted: object):
    return market.client.get_portfolio_history(GetPortfolioHistoryRequest(**wanted))


def days(answer) -> list[date]:
    return [datetime.fromtimestamp(at, tz=UTC).date() for at in answer.timestamp]


def test_a_history_has_a_point_for_each_session_without_money_paid_in_as_profit(market):
    answer = history(market, timeframe="1D")
    assert days(answer) == SESSIONS[:4]
    assert answer.equity == [10_000, 10_000, 10_520, 10_550]
    assert answer.profit_loss == [0, 0, 20, 50]
    assert answer.profit_loss_pct == [0, 0, 0.002, 0.005]
    assert (answer.base_value, answer.timeframe) == (10_000, "1D")
    assert answer.cashflow == {}


def test_money_paid_in_can_be_shown_where_it_came(market):
    market.exchange.charge(Decimal(3), "fee")
    answer = history(market, timeframe="1D", cashflow_types="ALL")
    assert answer.cashflow == {"CSD": [0, 0, 500, 0], "FEE": [0, 0, 0, -3]}
    assert answer.profit_loss[-1] == 47
    only = history(market, timeframe="1D", cashflow_types="FEE")
    assert list(only.cashflow) == ["FEE"]


def test_the_newest_point_is_the_present_moment(market):
    market.exchange.deposit(Decimal(1))
    market.exchange.advance(closing(3) + timedelta(hours=2))
    assert history(market, timeframe="1D").equity[-1] == 10_551
    market.exchange.advance(opening(4))
    answer = history(market, timeframe="1D")
    assert (days(answer)[-1], answer.equity[-1]) == (SESSIONS[3], 10_551)


@pytest.mark.parametrize(
    ("wanted", "first"),
    [
        ({"period": "1D"}, 30),
        ({"period": "3D"}, 30),  # a weekend lies before
        ({"period": "4D"}, 29),
        ({"period": "1W"}, 26),
        ({"period": "1M"}, 10),
        ({"period": "1A"}, 0),
        ({"period": "all"}, 0),
        ({}, 10),
        ({"start": opening(20)}, 20),
        ({"start": opening(20), "period": "1W"}, 20),
        ({"period": "1W", "date_end": SESSIONS[30]}, 26),
    ],
)
def test_a_period_counts_back_from_its_end(wanted, first):
    market = Floor(*RISE)
    market.to_close(30)
    answer = history(market, timeframe="1D", **wanted)
    assert days(answer)[0] == SESSIONS[first]
    if "period" not in wanted or "start" not in wanted:
        assert days(answer)[-1] == SESSIONS[30]


def test_a_history_may_end_before_now(market):
    answer = history(market, timeframe="1D", end=closing(2))
    assert answer.equity == [10_000, 10_000, 10_520]
    answer = history(market, timeframe="1D", date_end=SESSIONS[1])
    assert answer.equity == [10_000, 10_500]  # what was paid in after the close


def test_short_windows_begin_anew_each_session():
    rows = [(100, 100, 100, 100)] * 7 + [(100, 100, 100, 101)] * 7 + [(101, 101, 101, 103)] * 7
    market = Floor(*rows, timeframe=Timeframe.HOUR, start=opening(0) + timedelta(hours=1))
    market.buy()
    market.to_close(2)
    answer = history(market, timeframe="1H", period="3D")
    assert days(answer)[0] == SESSIONS[1]  # the weekend took one of the three days
    everything = history(market, timeframe="1H", period="all")
    assert len(everything.equity) == 21
    assert [everything.profit_loss[index] for index in (6, 7, 13, 14, 20)] == [0, 10, 10, 20, 20]
    whole = history(market, timeframe="1H", period="all", pnl_reset="no_reset")
    assert [whole.profit_loss[index] for index in (6, 7, 13, 14, 20)] == [0, 10, 10, 30, 30]
    assert everything.timestamp[0] == opening(0).timestamp()
    assert everything.timestamp[1] - everything.timestamp[0] == 3600


def test_without_a_word_short_periods_have_short_windows():
    market = Floor(*RISE)
    market.to_close(30)
    assert history(market, period="1D").timeframe == "1Min"
    assert history(market, period="2W").timeframe == "15Min"
    assert history(market, period="3M").timeframe == "1D"
    assert len(history(market, period="1D").equity) == 390


def test_an_account_that_has_only_begun_has_one_point():
    market = Floor(*RISE)
    answer = history(market, timeframe="1D")
    assert (answer.equity, answer.profit_loss) == ([10_000], [0])


@pytest.mark.parametrize(
    "query",
    [
        "period=1X",
        "period=0D",
        "period=D",
        "period=9999A",
        "timeframe=2H",
        "timeframe=1Min&period=1A",
        "timeframe=1H&period=3M",
        "start=2025-07-02&end=2025-07-01",
        "start=2025-07-01&end=2025-07-02&period=1D",
        "end=2025-07-01&date_end=2025-07-01",
        "start=x",
        "pnl_reset=x",
        "extended_hours=true",
        "intraday_reporting=extended_hours",
        "cashflow_types=GIFT",
        "colour=red",
    ],
)
def test_a_wrong_question_is_refused(query):
    market = Floor(*RISE)
    market.to_close(40)
    status, answer = market.send("GET", f"/v2/account/portfolio/history?{query}")
    assert status == 422, answer


PAYMENTS = st.lists(st.integers(-3000, 3000).filter(bool), max_size=4)


@settings(deadline=None, max_examples=40)
@given(aapl=bars(), msft=bars(), costs=COSTS, story=STORIES, payments=PAYMENTS)
def test_equity_changes_by_profit_and_payments_alone(aapl, msft, costs, story, payments):
    market = Floor(rows={"AAPL": aapl, "MSFT": msft}, costs=costs)
    market.exchange.pay_dividend("AAPL", Decimal("0.37"), SESSIONS[3])
    market.exchange.split("MSFT", Decimal(2), SESSIONS[4])
    at, paid, pending = 0, Decimal(0), list(payments)
    for action in [*story, Advance(2)]:
        at = act(market, action, at, in_many_steps=False)
        if pending:
            amount = Decimal(pending.pop())
            try:
                market.exchange.deposit(amount)
            except ValueError:
                continue  # not free
            paid += amount
    answer = history(market, timeframe="1D", period="all", cashflow_types="CSD,CSW")
    equity = Decimal(market.client.get_account().equity)
    assert answer.equity[-1] == float(equity)
    assert answer.base_value == 10_000
    assert answer.profit_loss[-1] == pytest.approx(float(equity - 10_000 - paid), abs=1e-6)
    shown = sum(sum(row) for row in answer.cashflow.values())
    assert shown == pytest.approx(float(paid), abs=1e-6)


@settings(deadline=None, max_examples=40)
@given(aapl=bars(), msft=bars(), costs=COSTS, story=STORIES)
def test_activities_rebuild_cash_and_shares_from_the_start(aapl, msft, costs, story):
    market = Floor(rows={"AAPL": aapl, "MSFT": msft}, costs=costs)
    market.exchange.pay_dividend("AAPL", Decimal("0.37"), SESSIONS[3])
    market.exchange.split("MSFT", Decimal("1.5"), SESSIONS[4])
    market.exchange.deposit(Decimal("12.34"))
    at = 0
    for action in [*story, Advance(BARS)]:
        at = act(market, action, at, in_many_steps=False)
    cash, shares, token = Decimal(10_000), {}, None
    while True:
        query = {"direction": "asc", "page_size": 7} | ({"page_token": token} if token else {})
        page = market.client.get("/account/activities", query)
        for row in page:
            if row["activity_type"] == "FILL":
                sign = 1 if row["side"] == "buy" else -1
                quantity = sign * Decimal(row["qty"])
                cash -= quantity * Decimal(row["price"]) + Decimal(row["fee"])
            else:
                quantity = Decimal(row.get("qty", 0)) if row["activity_type"] == "SPLIT" else 0
                cash += Decimal(row["net_amount"])
            symbol = row.get("symbol")
            shares[symbol] = shares.get(symbol, Decimal(0)) + quantity
        if len(page) < 7:
            break
        token = page[-1]["id"]
    portfolio = market.broker.portfolio()
    assert portfolio.cash == cash
    held = {position.symbol: position.quantity for position in portfolio.positions}
    assert held == {symbol: count for symbol, count in shares.items() if count}


@settings(deadline=None, max_examples=40)
@given(story=STORIES, ratio=st.sampled_from((2.0, 3.0, 1.5, 0.5, 0.1, 7 / 3)))
def test_a_split_changes_no_equity_whatever_is_held_and_ordered(story, ratio):
    before = [(100, 108, 92, 103)] * 5
    after = [tuple(price / ratio for price in before[0])] * 5
    splits = ((SESSIONS[5], ratio),)
    data = bars_with_splits(
        {"AAPL": before + after, "MSFT": before + after}, {"AAPL": splits, "MSFT": splits}
    )
    market = Floor(data=data)
    at = 0
    for action in story:
        if isinstance(action, Advance) and at + action.sessions > 4:
            break
        at = act(market, action, at, in_many_steps=False)
    market.to_close(4)
    equity = market.broker.portfolio().equity
    market.exchange.advance(opening(5))
    assert abs(market.broker.portfolio().equity - equity) < Decimal("0.011")
    for symbol in ("AAPL", "MSFT"):
        status, position = market.send("GET", f"/v2/positions/{symbol}")
        assert status == 404 or Decimal(position["qty_available"]) >= 0
