"""Account, calendar, assets, history and market data through the unmodified clients."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from alpaca.common.enums import Sort
from alpaca.common.exceptions import APIError
from alpaca.data.enums import Adjustment, DataFeed, MarketType, MostActivesBy
from alpaca.data.historical import NewsClient, ScreenerClient
from alpaca.data.historical.corporate_actions import CorporateActionsClient
from alpaca.data.requests import (
    CorporateActionsRequest,
    CryptoBarsRequest,
    CryptoLatestBarRequest,
    CryptoLatestQuoteRequest,
    CryptoLatestTradeRequest,
    CryptoQuoteRequest,
    CryptoSnapshotRequest,
    CryptoTradesRequest,
    MarketMoversRequest,
    MostActivesRequest,
    NewsRequest,
    StockBarsRequest,
    StockLatestBarRequest,
    StockLatestQuoteRequest,
    StockLatestTradeRequest,
    StockQuotesRequest,
    StockSnapshotRequest,
    StockTradesRequest,
)
from alpaca.data.timeframe import TimeFrame
from alpaca.trading.enums import AssetClass, AssetStatus
from alpaca.trading.requests import (
    GetAssetsRequest,
    GetCalendarRequest,
    GetPortfolioHistoryRequest,
    MarketOrderRequest,
)

from tests.trader.broker.conformity.venue import AAPL, BARS, MSFT
from tests.trader.broker.floor import SESSIONS, closing, opening
from trader.core.market import EXCHANGE_TIME_ZONE

EVERYTHING = {"start": datetime(2025, 6, 1, tzinfo=UTC)}


def midnight(session: int) -> datetime:
    """Midnight in New York at which a daily bar begins."""
    return datetime.combine(SESSIONS[session], datetime.min.time(), EXCHANGE_TIME_ZONE)


def buy(venue, quantity=10):
    order = MarketOrderRequest(symbol="AAPL", qty=quantity, side="buy", time_in_force="day")
    return venue.trading.submit_order(order)


def test_the_account_is_a_cash_account_on_paper(venue):
    account = venue.trading.get_account()
    assert account.account_number.startswith("PA")
    assert account.status.value == "ACTIVE"
    assert (account.cash, account.equity, account.buying_power) == ("10000", "10000", "10000")
    assert (account.multiplier, account.trading_blocked, account.account_blocked) == (
        "1",
        False,
        False,
    )
    assert account.daytrade_count is None
    buy(venue)
    venue.to_close(1)
    account = venue.trading.get_account()
    assert (account.cash, account.equity, account.last_equity) == ("8990", "10030", "10000")


def test_the_configuration_of_the_account_is_read_and_set(venue):
    configuration = venue.trading.get_account_configurations()
    assert configuration.suspend_trade is False
    configuration.suspend_trade = True
    assert venue.trading.set_account_configurations(configuration).suspend_trade is True
    with pytest.raises(APIError) as caught:
        buy(venue)
    assert caught.value.status_code == 403


def test_the_clock_is_aware_and_the_calendar_knows_half_days(venue):
    clock = venue.trading.get_clock()
    assert (clock.timestamp, clock.is_open) == (closing(0), False)
    assert (clock.next_open, clock.next_close) == (opening(1), closing(1))
    days = venue.trading.get_calendar(
        GetCalendarRequest(start=date(2025, 7, 1), end=date(2025, 7, 7))
    )
    assert [(f"{day.date:%m-%d}", f"{day.close:%H:%M}") for day in days] == [
        ("07-01", "16:00"),
        ("07-02", "16:00"),
        ("07-03", "13:00"),
        ("07-07", "16:00"),
    ]


def test_assets_are_listed_by_class_and_found_by_symbol_and_id(venue):
    stocks = venue.trading.get_all_assets(
        GetAssetsRequest(status=AssetStatus.ACTIVE, asset_class=AssetClass.US_EQUITY)
    )
    assert [asset.symbol for asset in stocks] == ["AAPL", "MSFT"]
    coins = venue.trading.get_all_assets(GetAssetsRequest(asset_class=AssetClass.CRYPTO))
    assert [asset.symbol for asset in coins] == ["BTC/USD"]
    for name in ("AAPL", "BTC/USD"):
        asset = venue.trading.get_asset(name)
        assert (asset.symbol, asset.tradable) == (name, True)
        assert venue.trading.get_asset(str(asset.id)).symbol == name
    with pytest.raises(APIError) as caught:
        venue.trading.get_asset("NOPE")
    assert caught.value.status_code == 404


def test_activities_are_asked_for_by_hand_and_paged(venue):
    for _ in range(3):
        buy(venue, 1)
    venue.to_close(1)
    first = venue.trading.get("/account/activities/FILL", {"direction": "asc", "page_size": 2})
    rest = venue.trading.get(
        "/account/activities/FILL",
        {"direction": "asc", "page_size": 2, "page_token": first[-1]["id"]},
    )
    assert [len(first), len(rest)] == [2, 1]
    assert {row["activity_type"] for row in first + rest} == {"FILL"}
    assert {(row["symbol"], row["side"], row["qty"], row["price"]) for row in rest} == {
        ("AAPL", "buy", "1", "101")
    }
    assert venue.trading.get("/account/activities", {"activity_types": "DIV"}) == []


def test_the_history_of_the_account_ends_at_its_equity(venue):
    buy(venue)
    venue.to_close(3)
    history = venue.trading.get_portfolio_history(
        GetPortfolioHistoryRequest(period="1M", timeframe="1D")
    )
    assert history.equity[-1] == float(venue.trading.get_account().equity) == 9950.0
    assert len(history.timestamp) == len(history.equity) == len(history.profit_loss)
    assert history.timeframe == "1D"


@pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning:alpaca")
def test_daily_bars_begin_at_midnight_in_new_york_and_end_with_the_market(venue):
    venue.to_close(2)
    answer = venue.stocks.get_stock_bars(
        StockBarsRequest(
            symbol_or_symbols=["AAPL", "MSFT"],
            timeframe=TimeFrame.Day,
            adjustment=Adjustment.RAW,
            feed=DataFeed.IEX,
            **EVERYTHING,
        )
    )
    assert [(bar.open, bar.high, bar.low, bar.close) for bar in answer["AAPL"]] == AAPL[:3]
    assert [bar.close for bar in answer["MSFT"]] == [row[3] for row in MSFT[:3]]
    assert [bar.timestamp for bar in answer["AAPL"]] == [midnight(n) for n in range(3)]
    frame = answer.df
    assert list(frame.index.names) == ["symbol", "timestamp"]
    assert len(frame) == 6


def test_a_limit_counts_over_all_symbols_and_pages_are_followed(venue):
    venue.to_close(2)
    usual = {"symbol_or_symbols": ["AAPL", "MSFT"], "timeframe": TimeFrame.Day, **EVERYTHING}
    answer = venue.stocks.get_stock_bars(StockBarsRequest(**usual, limit=4))
    assert {symbol: len(bars) for symbol, bars in answer.data.items()} == {"AAPL": 3, "MSFT": 1}
    newest = venue.stocks.get_stock_bars(
        StockBarsRequest(**usual | {"symbol_or_symbols": "AAPL"}, limit=1, sort=Sort.DESC)
    )
    assert [bar.close for bar in newest["AAPL"]] == [110]


def test_the_newest_trade_quote_bar_and_snapshot_stand_at_the_close(venue):
    venue.to_close(1)
    trade = venue.stocks.get_stock_latest_trade(StockLatestTradeRequest(symbol_or_symbols="AAPL"))
    assert (trade["AAPL"].price, trade["AAPL"].timestamp) == (104, closing(1))
    quote = venue.stocks.get_stock_latest_quote(StockLatestQuoteRequest(symbol_or_symbols="AAPL"))
    assert quote["AAPL"].bid_price <= 104 <= quote["AAPL"].ask_price
    bar = venue.stocks.get_stock_latest_bar(StockLatestBarRequest(symbol_or_symbols="AAPL"))
    assert bar["AAPL"].close == 104
    shots = venue.stocks.get_stock_snapshot(
        StockSnapshotRequest(symbol_or_symbols=["AAPL", "MSFT"])
    )
    assert shots["AAPL"].latest_trade.price == 104
    assert shots["AAPL"].daily_bar.open == 101
    assert shots["AAPL"].previous_daily_bar.close == 100
    assert shots["MSFT"].latest_trade.price == 302
    for found in (
        venue.stocks.get_stock_trades(StockTradesRequest(symbol_or_symbols="AAPL", **EVERYTHING)),
        venue.stocks.get_stock_quotes(StockQuotesRequest(symbol_or_symbols="AAPL", **EVERYTHING)),
    ):
        assert [row.timestamp for row in found["AAPL"]] == [closing(0), closing(1)]


def test_coins_need_no_key_and_are_told_the_same_way(venue):
    venue.to_close(1)
    one = {"symbol_or_symbols": "BTC/USD"}
    bars = venue.coins.get_crypto_bars(
        CryptoBarsRequest(**one, timeframe=TimeFrame.Day, **EVERYTHING)
    )
    assert [bar.close for bar in bars["BTC/USD"]] == [50_000, 50_500]
    trade = venue.coins.get_crypto_latest_trade(CryptoLatestTradeRequest(**one))
    assert trade["BTC/USD"].price == 50_500
    quote = venue.coins.get_crypto_latest_quote(CryptoLatestQuoteRequest(**one))
    assert quote["BTC/USD"].bid_price <= 50_500
    assert (
        venue.coins.get_crypto_latest_bar(CryptoLatestBarRequest(**one))["BTC/USD"].close == 50_500
    )
    shot = venue.coins.get_crypto_snapshot(CryptoSnapshotRequest(**one))["BTC/USD"]
    assert shot.daily_bar.high == 51_000
    assert (
        len(venue.coins.get_crypto_trades(CryptoTradesRequest(**one, **EVERYTHING))["BTC/USD"]) == 2
    )
    assert (
        len(venue.coins.get_crypto_quotes(CryptoQuoteRequest(**one, **EVERYTHING))["BTC/USD"]) == 2
    )
    with pytest.raises(APIError) as caught:
        venue.coins.get_crypto_latest_trade(CryptoLatestTradeRequest(symbol_or_symbols="BTCUSD"))
    assert caught.value.status_code == 400


def test_there_are_no_news_and_no_corporate_actions_that_did_not_happen(venue):
    news = venue.client(NewsClient).get_news(NewsRequest(symbols="AAPL", limit=5))
    assert news.data["news"] == []
    request = CorporateActionsRequest(
        symbols=["AAPL"], start=date(2025, 6, 1), end=date(2025, 12, 31)
    )
    actions = venue.client(CorporateActionsClient)
    assert actions.get_corporate_actions(request).data == {}
    venue.exchange.pay_dividend("AAPL", Decimal("0.25"), SESSIONS[2])
    venue.to_close(2)
    [dividend] = actions.get_corporate_actions(request).data["cash_dividends"]
    assert (dividend.symbol, dividend.rate, dividend.ex_date) == ("AAPL", 0.25, SESSIONS[2])


def test_the_screeners_see_what_was_traded(venue):
    venue.to_close(1)
    screener = venue.client(ScreenerClient)
    active = screener.get_most_actives(MostActivesRequest(top=2, by=MostActivesBy.VOLUME))
    assert [row.symbol for row in active.most_actives] == ["AAPL", "MSFT"]
    movers = screener.get_market_movers(MarketMoversRequest(top=1, market_type=MarketType.STOCKS))
    assert [(row.symbol, row.percent_change) for row in movers.gainers] == [("AAPL", 4.0)]


def test_nothing_later_than_the_market_is_told(venue):
    ahead = {"start": closing(0) + timedelta(seconds=1), "end": closing(5)}
    request = StockBarsRequest(symbol_or_symbols="AAPL", timeframe=TimeFrame.Day, **ahead)
    assert venue.stocks.get_stock_bars(request).data.get("AAPL", []) == []
    assert len(BARS["AAPL"]) == 6


def test_an_unknown_symbol_of_the_data_is_refused_or_empty(venue):
    request = StockBarsRequest(symbol_or_symbols="NOPE", timeframe=TimeFrame.Day, **EVERYTHING)
    assert venue.stocks.get_stock_bars(request).data.get("NOPE", []) == []
    with pytest.raises(APIError) as caught:
        venue.stocks.get_stock_latest_trade(StockLatestTradeRequest(symbol_or_symbols="no pe"))
    assert caught.value.status_code == 400
    with pytest.raises(APIError) as caught:
        venue.trading.get("/unheard-of")
    assert caught.value.status_code == 404
