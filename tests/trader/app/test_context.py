"""What a command works with: the calendar that its symbols trade by, and the data behind it."""

from __future__ import annotations

import pytest

from trader.app.opening import open_app
from trader.core.clock import always_open, new_york
from trader.core.config import config_primitives
from trader.core.errors import UsageError
from trader.core.market import Timeframe
from trader.data.alpaca_data import AlpacaData


def opened(tmp_path, *overrides, environ=None):
    return open_app(overrides=(f"state_dir={tmp_path}", *overrides), environ=environ or {})


def test_shares_trade_by_the_exchange_and_coins_at_any_hour(tmp_path):
    assert opened(tmp_path).calendar is new_york()
    assert opened(tmp_path, "symbols=AAPL,BRK.B").calendar is new_york()
    assert opened(tmp_path, "symbols=BTC/USD,ETH/USD").calendar is always_open()


def test_coins_beside_shares_are_refused(tmp_path):
    app = opened(tmp_path, "symbols=BTC/USD,AAPL,ETH/USD", "data.source=alpaca")
    with pytest.raises(UsageError, match="BTC/USD, ETH/USD trade at any hour and AAPL do not"):
        app.data.symbols(Timeframe.DAY)


def test_a_symbol_of_the_other_kind_is_looked_at_by_its_own_hours(tmp_path):
    app = opened(tmp_path, "data.source=alpaca")
    coin = app.about("BTC/USD")
    assert coin.calendar is always_open()
    assert coin.symbols() == ("BTC/USD",)
    assert coin.about("AAPL").calendar is new_york()
    assert app.about("MSFT") is app


def test_a_record_is_read_over_the_calendar_of_its_symbols(tmp_path):
    recorded = config_primitives(opened(tmp_path, "symbols=BTC/USD", "data.source=alpaca").config)
    assert opened(tmp_path).over(recorded).calendar is always_open()


def test_alpacas_data_is_opened_without_asking_anybody(tmp_path):
    app = opened(tmp_path, "data.source=alpaca", "data.feed=sip")
    assert isinstance(app.data, AlpacaData)
    assert app.data.name == "alpaca sip"
    assert app.symbols() == ("AAPL", "NVDA", "QQQ", "SPY", "TSLA")
    assert app.data_notices == ()
    assert opened(tmp_path).data_notices == ()
