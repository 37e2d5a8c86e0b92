"""The doctor's look at Alpaca: key, host, account, clock, market data, stream; never an order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trader.app.checking import Check
from trader.core.clock import SystemClock
from trader.core.errors import ConfigError, EndpointError, TraderError, UsageError

if TYPE_CHECKING:
    from trader.broker.alpaca_broker import AlpacaBroker
    from trader.broker.credentials import Credentials
    from trader.core.config import Config

KEY, HOST, ACCOUNT = "paper key", "paper host", "paper account"
CLOCK, DATA, STREAM = "broker's clock", "market data of Alpaca", "trade updates"
STREAM_SECONDS = 15.0
PROBE = "SPY"  # asked for where no symbol is configured


def broker_checks(config: Config, environ: Mapping[str, str]) -> tuple[Check, ...]:
    """One check a link, each proven by a request that changes nothing; never raises TraderError."""
    trades, reads = config.broker.name == "alpaca", config.data.source == "alpaca"
    key, keys = _key(config, environ, needed=trades or reads)
    found = [key]
    if not trades:
        found += [_unused(name) for name in (HOST, ACCOUNT, CLOCK)]
    elif keys is None:
        found += [_not_asked(name, "there is no usable key") for name in (HOST, ACCOUNT, CLOCK)]
    else:
        found += _account(config, keys)
    found.append(_data(config, keys) if reads else _other_bars(config))
    if not trades:
        found.append(_unused(STREAM))
    elif keys is None or found[1].status == "failed":
        found.append(_not_asked(STREAM, "see above"))
    else:
        found.append(_stream(config, keys))
    return tuple(found)


def _key(
    config: Config, environ: Mapping[str, str], *, needed: bool
) -> tuple[Check, Credentials | None]:
    from trader.broker.credentials import Credentials, credentials, require_paper

    if not needed:
        return _unused(KEY), None
    settings = config.broker
    names = f"{settings.key_id_variable} and {settings.secret_key_variable}"
    try:
        keys = credentials(settings, environ)
        if keys is None and settings.name == "alpaca" and settings.base_url is not None:
            local = Credentials(key_id="PKLOCAL", secret_key="local", source="nowhere")  # noqa: S106
            found = "none; an exchange on this computer takes any"
            return Check(name=KEY, status="ok", found=found), local
        if keys is None:
            coins = config.broker.name != "alpaca" and _coins(config)
            return Check(
                name=KEY,
                status="ok" if coins else "failed",
                found="none; the bars of coins need none" if coins else "there is none",
                remedy=""
                if coins
                else f"make a key of the paper account, and set {names} or broker.key_file",
            ), None
        if settings.name == "alpaca" and settings.base_url is None:
            require_paper(keys)
    except ConfigError as exc:
        return _failed(KEY, exc), None
    if not keys.is_paper:
        return Check(
            name=KEY,
            status="warning",
            found=f"from {keys.source}; its id does not begin like that of a paper key",
            remedy="use a key of the paper account",
        ), keys
    return Check(name=KEY, status="ok", found=f"from {keys.source}"), keys


def _account(config: Config, keys: Credentials) -> list[Check]:
    """The host, the account and the clock, from two requests."""
    from trader.broker.alpaca_broker import AlpacaBroker
    from trader.broker.session import PAPER_URL, paper_client

    address = config.broker.base_url or PAPER_URL
    broker = AlpacaBroker(paper_client(config.broker, keys))
    before = SystemClock().now()
    try:
        there = broker.clock()
    except EndpointError as exc:
        host = _failed(HOST, exc, before=f"{address}: ")
        return [host, *(_not_asked(name, "the host did not answer") for name in (ACCOUNT, CLOCK))]
    after = SystemClock().now()
    opened = "the market is open" if there.is_open else f"it opens {there.next_open:%Y-%m-%d %H:%M}"
    reached = f"{address} reached; no other host is ever called"
    host = Check(name=HOST, status="ok", found=reached)
    if config.broker.base_url is not None:
        words = f"{there.now:%Y-%m-%d %H:%M:%S} UTC, the time of an exchange on this computer"
        return [host, _state(broker), Check(name=CLOCK, status="ok", found=f"{words}; {opened}")]
    middle = before + (after - before) / 2
    skew, limit = abs((there.now - middle).total_seconds()), config.safety.clock_skew_seconds
    apart = skew > limit + (after - before).total_seconds() / 2
    clock = Check(
        name=CLOCK,
        status="failed" if apart else "ok",
        found=f"{skew:.1f} s from this computer's; {opened} UTC",
        remedy=f"set this computer's clock: beyond {limit:g} s nothing is bought" if apart else "",
    )
    return [host, _state(broker), clock]


def _state(broker: AlpacaBroker) -> Check:
    try:
        state, notices = broker.account(), broker.notices()
    except EndpointError as exc:
        return _failed(ACCOUNT, exc)
    worth = f"equity {state.equity:,.2f} USD, cash {state.cash:,.2f} USD"
    if not notices:
        return Check(name=ACCOUNT, status="ok", found=worth)
    return Check(
        name=ACCOUNT,
        status="failed" if state.blocked else "warning",
        found=f"{worth}; {'; '.join(notices)}",
        remedy="look at the account on Alpaca's own pages",
    )


def _data(config: Config, keys: Credentials | None) -> Check:
    """The newest bar of one symbol, by the configured feed."""
    from trader.broker.market_reads import MarketReads
    from trader.broker.session import crypto_data_client, stock_data_client

    symbol = config.symbols[0] if config.symbols else PROBE
    base_url, coins = config.data.base_url, _coins(config)
    if keys is None and not coins:
        return _not_asked(DATA, "there is no usable key")
    asked: dict[str, object] = {"symbols": symbol}
    try:
        if coins:
            what, path = "coins", "/crypto/us/latest/bars"
            reads = MarketReads(crypto_data_client(keys, base_url))
        else:
            assert keys is not None
            what, path = f"feed {config.data.feed}", "/stocks/bars/latest"
            asked["feed"] = config.data.feed
            reads = MarketReads(stock_data_client(keys, base_url))
        answer = reads.get(path, asked, f"newest bar of {symbol}")
    except TraderError as exc:
        sip = config.data.feed == "sip" and not coins
        return _failed(DATA, exc, remedy="set data.feed to iex, the free one" if sip else "")
    bar = _bar(answer, symbol)
    if bar is None:
        return Check(
            name=DATA,
            status="failed",
            found=f"{what}: no bar of {symbol}",
            remedy="name a symbol that Alpaca has, as in BRK.B or BTC/USD",
        )
    return Check(name=DATA, status="ok", found=f"{what}: {symbol} {bar.get('c')} of {bar.get('t')}")


def _other_bars(config: Config) -> Check:
    """Bars that are not Alpaca's: whether orders may be decided on them."""
    from trader.app.fitting import require_real_bars

    try:
        require_real_bars(config)
    except UsageError as exc:
        found, _, remedy = str(exc).partition(": ")
        return Check(name=DATA, status="failed", found=found, remedy=remedy)
    return _unused(DATA)


def _bar(answer: Mapping[str, Any], symbol: str) -> Mapping[str, Any] | None:
    bars = answer.get("bars")
    bar = bars.get(symbol) if isinstance(bars, dict) else None
    return bar if isinstance(bar, dict) else None


def _stream(config: Config, keys: Credentials) -> Check:
    """Connect, give the key, ask for the updates, and leave."""
    from trader.broker.session import trading_stream
    from trader.broker.streams import Ended, Opened

    connection = trading_stream(config.broker, keys)
    connection.start()
    news = connection.news(STREAM_SECONDS)
    connection.stop()
    if isinstance(news, Opened):
        return Check(name=STREAM, status="ok", found="connected, authorized, listening")
    reason = news.reason if isinstance(news, Ended) else f"no answer in {STREAM_SECONDS:g} s"
    return Check(
        name=STREAM,
        status="warning",
        found=reason,
        remedy="fills are learned by asking until it works; look for another program with this key",
    )


def _coins(config: Config) -> bool:
    from trader.core.instruments import is_crypto

    return bool(config.symbols) and all(is_crypto(symbol) for symbol in config.symbols or ())


def _unused(name: str) -> Check:
    return Check(name=name, status="ok", found="not used")


def _not_asked(name: str, why: str) -> Check:
    return Check(name=name, status="warning", found=f"not asked: {why}")


def _failed(name: str, error: TraderError, *, before: str = "", remedy: str = "") -> Check:
    """A failed check; what stands after the last semicolon of our messages is the remedy."""
    found, _, said = f"{before}{error}".rpartition("; ")
    return Check(
        name=name, status="failed", found=found or said, remedy=remedy or said * bool(found)
    )
