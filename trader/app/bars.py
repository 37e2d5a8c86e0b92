"""Market data at hand: fetching bars, looking at what is kept, and asking for what is new."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import NoReturn

from trader.app.alpaca_market import alpaca_data, bar_cache, services
from trader.app.context import Context
from trader.core.canonical import Primitive, to_object
from trader.core.clock import SystemClock, always_open, new_york
from trader.core.errors import DataIntegrityError, EndpointError, UsageError
from trader.core.instruments import is_crypto, standard_symbol
from trader.core.market import BarSeries, Timeframe, from_ns, session_of
from trader.data.alpaca_data import COIN_FEED, AlpacaData
from trader.data.alpaca_reads import (
    CorporateAction,
    NewsItem,
    NoKeyError,
    Snapshot,
    read_actions,
    read_news,
    read_snapshot,
)
from trader.data.cache import BarCache, Kept

SCHEMA_VERSION = 1
MADE_OF = {"1Day": Timeframe.DAY, "30Min": Timeframe.HOUR, "1Hour": Timeframe.HOUR}
PAST_OF_ACTIONS = timedelta(days=365)


class _Shown:
    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return {"schema_version": SCHEMA_VERSION, **to_object(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadedBars:
    """What is kept of one symbol now; or why it was refused or not to be had (problem)."""

    symbol: str
    timeframe: str
    source: str
    adjustment: str
    bars: int
    first: datetime | None
    last: datetime | None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloaded(_Shown):
    """What `trader data download` prints. exit_code: 5 data refused, 4 Alpaca did not answer."""

    symbols: tuple[DownloadedBars, ...]
    notices: tuple[str, ...]
    exit_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBars:
    """One file of kept bars; or what is wrong with it (problem).

    first, last  when its first and its last bar opened
    through      every bar that was complete then is there
    """

    file: str
    symbol: str
    timeframe: str
    adjustment: str
    feed: str
    bars: int
    first: datetime | None
    last: datetime | None
    through: datetime | None
    bytes: int
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFiles(_Shown):
    """What `trader data list` and `trader data verify` print."""

    folder: str
    files: tuple[KeptBars, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong with any."""
        return not any(file.problem for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped(_Shown):
    """What `trader data drop` prints."""

    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted(_Shown):
    """What `trader data quote` prints."""

    source: str
    asked_at: datetime
    snapshot: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class News(_Shown):
    """What `trader data news` prints, the newest first."""

    symbol: str
    items: tuple[NewsItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions(_Shown):
    """What `trader data actions` prints, the oldest first."""

    symbol: str
    first: date
    last: date
    actions: tuple[CorporateAction, ...]


def download(app: Context, *, first: date | None, last: date | None) -> Downloaded:
    """Fetch and keep the bars of every symbol named, each for itself.

    Raises ConfigError without a key where one is needed, UsageError for days in the wrong order.
    """
    data = alpaca_data(app)
    found: list[DownloadedBars] = []
    code = 0
    for symbol in app.config.symbols or data.symbols(app.timeframe):
        try:
            series = data.download(symbol, app.timeframe, first=first, last=last)
        except (DataIntegrityError, EndpointError) as exc:
            code = max(code, 5 if isinstance(exc, DataIntegrityError) else 4)
            found.append(_refused(symbol, app.timeframe, data, str(exc)))
        else:
            found.append(_downloaded(series))
    return Downloaded(symbols=tuple(found), notices=data.notices, exit_code=code)


def kept_files(app: Context) -> KeptFiles:
    """Every file of kept bars; nobody is asked."""
    cache = bar_cache(app)
    files = tuple(_kept(*file) for file in cache.files())
    return KeptFiles(folder=str(cache.folder), files=files)


def verify(app: Context) -> KeptFiles:
    """The same with every checksum and every bar checked."""
    cache = bar_cache(app)
    files = []
    for name, kept, wrong in cache.files():
        problem = wrong
        if kept is not None and not kept.cut:
            problem = _unsound(cache, kept)
        files.append(_kept(name, kept, problem))
    return KeptFiles(folder=str(cache.folder), files=tuple(files))


def drop(app: Context, symbol: str) -> Dropped:
    """Remove the kept bars of a symbol, or of `all`; UsageError when there are none."""
    cache = bar_cache(app)
    removed = cache.drop(None if symbol.lower() == "all" else standard_symbol(symbol))
    if not removed:
        known = sorted({name.split("_")[0].replace("-", "/") for name, _, _ in cache.files()})
        there = f"there are those of {', '.join(known)}" if known else "there are none at all"
        raise UsageError(f"no bars of {symbol[:40]} are kept; {there}")
    return Dropped(removed=removed)


def quote(app: Context, symbol: str) -> Quoted:
    """The market of one symbol as Alpaca sees it now."""
    name = standard_symbol(symbol)
    feed = COIN_FEED if is_crypto(name) else app.config.data.feed
    return Quoted(
        source=f"alpaca {feed}",
        asked_at=SystemClock().now(),
        snapshot=read_snapshot(services(app), name, feed),
    )


def news(app: Context, symbol: str, *, limit: int) -> News:
    """The newest items about a symbol."""
    name = standard_symbol(symbol)
    return News(symbol=name, items=read_news(services(app), name, limit))


def actions(app: Context, symbol: str, *, first: date | None, last: date | None) -> Actions:
    """Corporate actions of a symbol, of the last year when no day is named."""
    name = standard_symbol(symbol)
    if is_crypto(name):
        raise UsageError(f"{name} is a coin: no company stands behind it")
    end = last or session_of(SystemClock().now())
    begin = first or end - PAST_OF_ACTIONS
    if end < begin:
        raise UsageError(f"--to {end} is before --from {begin}")
    found = read_actions(services(app), name, begin, end)
    return Actions(symbol=name, first=begin, last=end, actions=found)


def _downloaded(series: BarSeries) -> DownloadedBars:
    return DownloadedBars(
        symbol=series.symbol,
        timeframe=str(series.timeframe),
        source=series.source,
        adjustment=series.adjustment,
        bars=len(series),
        first=from_ns(series.timestamp[0]),
        last=from_ns(series.timestamp[-1]),
    )


def _refused(symbol: str, timeframe: Timeframe, data: AlpacaData, why: str) -> DownloadedBars:
    return DownloadedBars(
        symbol=symbol,
        timeframe=str(timeframe),
        source=data.name,
        adjustment="",
        bars=0,
        first=None,
        last=None,
        problem=why,
    )


def _kept(name: str, kept: Kept | None, wrong: str) -> KeptBars:
    if kept is None:
        parts = [*name.removesuffix(".bars").split("_"), "", "", ""]
        return KeptBars(
            file=name,
            symbol=parts[0].replace("-", "/"),
            timeframe=parts[1],
            adjustment=parts[2],
            feed=parts[3],
            bars=0,
            first=None,
            last=None,
            through=None,
            bytes=0,
            problem=wrong or "is cut short and holds nothing; it is fetched again",
        )
    cut = f"{kept.cut} bytes at its end are cut short or damaged; they are fetched again"
    return KeptBars(
        file=name,
        symbol=kept.key.symbol,
        timeframe=kept.key.timeframe,
        adjustment=kept.key.adjustment,
        feed=kept.key.feed,
        bars=int(kept.bars.size),
        first=from_ns(kept.bars["t"][0]) if kept.bars.size else None,
        last=from_ns(kept.bars["t"][-1]) if kept.bars.size else None,
        through=from_ns(kept.through),
        bytes=kept.size,
        problem=cut if kept.cut else wrong,
    )


def _unsound(cache: BarCache, kept: Kept) -> str:
    """Why the bars of a file must not be traded on; empty when they may."""
    key = kept.key
    data = AlpacaData(
        calendar=always_open() if is_crypto(key.symbol) else new_york(),
        open_service=_nobody,
        cache=cache,
        symbols=(key.symbol,),
        feed=key.feed,
        adjustment=key.adjustment,
        now=SystemClock().now,
    )
    try:
        data.kept(key.symbol, MADE_OF[key.timeframe])
    except DataIntegrityError as exc:
        return str(exc)
    return ""


def _nobody(_: object) -> NoReturn:
    raise NoKeyError("nobody is asked while files are verified")
