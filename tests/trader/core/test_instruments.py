"""One spelling for every symbol, whoever writes it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trader.core.config.schema import SYMBOL_PATTERN
from trader.core.instruments import is_crypto, standard_symbol


@pytest.mark.parametrize(
    ("written", "asset_class", "standard"),
    [
        ("AAPL", None, "AAPL"),
        ("aapl", None, "AAPL"),
        (" SPY ", None, "SPY"),
        ("BRK.B", None, "BRK.B"),
        ("BRK-B", None, "BRK.B"),
        ("brk-b", None, "BRK.B"),
        ("BRK.B", "us_equity", "BRK.B"),
        ("BF-A", None, "BF.A"),
        ("GOOGL", None, "GOOGL"),
        ("BTC/USD", None, "BTC/USD"),
        ("BTC/USD", "crypto", "BTC/USD"),
        ("BTCUSD", None, "BTC/USD"),
        ("BTCUSD", "crypto", "BTC/USD"),
        ("BTC-USD", None, "BTC/USD"),
        ("SOLUSD", None, "SOL/USD"),
        ("ETHUSDT", None, "ETH/USDT"),
        ("ETHUSDC", "crypto", "ETH/USDC"),
        ("USDTUSD", "crypto", "USDT/USD"),
        ("ETHBTC", "crypto", "ETH/BTC"),
        ("YFIUSD", "crypto", "YFI/USD"),
        ("SHIBUSD", "crypto", "SHIB/USD"),
        ("MUSD", "crypto", "M/USD"),
        ("MUSD", None, "MUSD"),  # as long as a ticker: nobody said that it is a coin
        ("XBUSD", None, "XBUSD"),
        ("BTCUSD", "us_equity", "BTCUSD"),
        ("USD", "crypto", "USD"),
        ("USD", None, "USD"),
        ("AAPL250620C00200000", "us_option", "AAPL250620C00200000"),
    ],
)
def test_each_spelling_has_one_meaning(written, asset_class, standard):
    assert standard_symbol(written, asset_class=asset_class) == standard


@given(st.from_regex(SYMBOL_PATTERN, fullmatch=True), st.sampled_from([None, "crypto", ""]))
def test_what_is_standard_stays_so(symbol, asset_class):
    once = standard_symbol(symbol, asset_class=asset_class)
    assert standard_symbol(once, asset_class=asset_class) == once


@given(st.from_regex(r"[A-Z]{2,5}", fullmatch=True), st.sampled_from(["USD", "USDT", "USDC"]))
def test_a_pair_written_without_its_slash_gets_it_back(coin, currency):
    pair = standard_symbol(f"{coin}{currency}", asset_class="crypto")
    assert is_crypto(pair)
    assert pair.replace("/", "") == f"{coin}{currency}"
    assert re.fullmatch(SYMBOL_PATTERN, pair)
