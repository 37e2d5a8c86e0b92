"""Who stands behind a symbol: name, exchange and currency, fixed before any model speaks."""

from __future__ import annotations

import re

from trader.core.decision import Instrument

_NASDAQ, _NYSE, _ARCA = "NASDAQ", "NYSE", "NYSE Arca"
KNOWN: dict[str, tuple[str, str]] = {  # symbol -> name, exchange
    "AAPL": ("Apple", _NASDAQ),
    "ABNB": ("Airbnb", _NASDAQ),
    "ADBE": ("Adobe", _NASDAQ),
    "AMD": ("Advanced Micro Devices", _NASDAQ),
    "AMZN": ("Amazon", _NASDAQ),
    "AVGO": ("Broadcom", _NASDAQ),
    "BA": ("Boeing", _NYSE),
    "BABA": ("Alibaba", _NYSE),
    "BAC": ("Bank of America", _NYSE),
    "BRK.B": ("Berkshire Hathaway", _NYSE),
    "C": ("Citigroup", _NYSE),
    "COIN": ("Coinbase", _NASDAQ),
    "COST": ("Costco", _NASDAQ),
    "CRM": ("Salesforce", _NYSE),
    "CSCO": ("Cisco", _NASDAQ),
    "CVX": ("Chevron", _NYSE),
    "DIS": ("Walt Disney", _NYSE),
    "F": ("Ford Motor", _NYSE),
    "GE": ("General Electric", _NYSE),
    "GM": ("General Motors", _NYSE),
    "GOOG": ("Alphabet", _NASDAQ),
    "GOOGL": ("Alphabet", _NASDAQ),
    "GS": ("Goldman Sachs", _NYSE),
    "HD": ("Home Depot", _NYSE),
    "IBM": ("International Business Machines", _NYSE),
    "INTC": ("Intel", _NASDAQ),
    "IWM": ("iShares Russell 2000 ETF", _ARCA),
    "JNJ": ("Johnson & Johnson", _NYSE),
    "JPM": ("JPMorgan Chase", _NYSE),
    "KO": ("Coca-Cola", _NYSE),
    "LLY": ("Eli Lilly", _NYSE),
    "MA": ("Mastercard", _NYSE),
    "MCD": ("McDonald's", _NYSE),
    "META": ("Meta Platforms", _NASDAQ),
    "MRK": ("Merck", _NYSE),
    "MS": ("Morgan Stanley", _NYSE),
    "MSFT": ("Microsoft", _NASDAQ),
    "NFLX": ("Netflix", _NASDAQ),
    "NKE": ("Nike", _NYSE),
    "NVDA": ("NVIDIA", _NASDAQ),
    "ORCL": ("Oracle", _NYSE),
    "PEP": ("PepsiCo", _NASDAQ),
    "PFE": ("Pfizer", _NYSE),
    "PG": ("Procter & Gamble", _NYSE),
    "PLTR": ("Palantir", _NASDAQ),
    "PYPL": ("PayPal", _NASDAQ),
    "QCOM": ("Qualcomm", _NASDAQ),
    "QQQ": ("Invesco QQQ Trust", _NASDAQ),
    "SBUX": ("Starbucks", _NASDAQ),
    "SPY": ("SPDR S&P 500 ETF", _ARCA),
    "T": ("AT&T", _NYSE),
    "TSLA": ("Tesla", _NASDAQ),
    "TSM": ("Taiwan Semiconductor", _NYSE),
    "UBER": ("Uber", _NYSE),
    "UNH": ("UnitedHealth", _NYSE),
    "V": ("Visa", _NYSE),
    "WFC": ("Wells Fargo", _NYSE),
    "WMT": ("Walmart", _NYSE),
    "XOM": ("Exxon Mobil", _NYSE),
}


COIN_CURRENCIES = ("USDT", "USDC", "USD", "BTC")  # what a coin is priced in
LONGEST_TICKER = 5  # letters of a share; a longer word that ends in a currency is a pair of coins
SHARE_CLASS = re.compile(r"([A-Z]{1,5})[-.]([A-Z])")  # BRK-B, written BRK.B here


def standard_symbol(symbol: str, *, asset_class: str | None = None) -> str:
    """The one spelling used in this product: BRK.B for a share, BTC/USD for a pair of coins.

    Brokers and charts also write BRK-B, BTCUSD and BTC-USD.
    asset_class  what the broker says that it is ("crypto", "us_equity"); without a word of it a
                 name is a pair when it is longer than a ticker and ends in a currency
    """
    name = symbol.strip().upper()
    if "/" in name or asset_class not in (None, "", "crypto"):
        return name
    share = SHARE_CLASS.fullmatch(name)
    if share and asset_class != "crypto":
        return f"{share[1]}.{share[2]}"
    for currency in COIN_CURRENCIES:
        coin = name.removesuffix(currency).removesuffix("-")
        if coin not in ("", name) and (asset_class == "crypto" or len(name) > LONGEST_TICKER):
            return f"{coin}/{currency}"
    return name


def is_crypto(symbol: str) -> bool:
    """Whether `symbol` is a pair such as BTC/USD, which trades at any hour and in parts."""
    return "/" in symbol


def instrument_of(symbol: str) -> Instrument:
    """The instrument of a symbol, priced in USD; one that is not known is named by its symbol."""
    name, exchange = KNOWN.get(symbol, (symbol, ""))
    return Instrument(symbol=symbol, name=name, exchange=exchange, currency="USD")
