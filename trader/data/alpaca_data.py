"""Alpaca's bars as market data: on the grid of our sessions, and refused where they are unsound."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING

import numpy as np

from trader.core.errors import DataIntegrityError, EndpointError, UsageError
from trader.core.instruments import is_crypto, standard_symbol
from trader.core.market import BarSeries, Timeframe, from_ns, session_of, to_ns
from trader.data.alpaca_bars import SPELLING, AlpacaBars, Held, midnight
from trader.data.alpaca_grid import on_our_grid
from trader.data.alpaca_reads import SPLITS, CorporateAction, NoKeyError, OpenService, read_quote
from trader.data.cache import BarCache, BarKey
from trader.data.grid import expected_bars
from trader.data.integrity import EXTREME_MOVE, require_sound
from trader.data.lookup import complete_bars

if TYPE_CHECKING:
    from trader.core.clock import SessionCalendar

DEFAULT_SYMBOLS = ("AAPL", "NVDA", "QQQ", "SPY", "TSLA")
SYMBOL = re.compile(r"[A-Z][A-Z0-9.]{0,9}(/[A-Z]{3,5})?")
ADJUSTED_FOR = {"all": "splits and dividends", "split": "splits", "raw": "none"}
COIN_FEED = "crypto"
MOST_NOTICES = 50  # the newest; a daemon runs for weeks

log = logging.getLogger(__name__)


class AlpacaData:
    """Bars of Alpaca's market data service; from the cache alone while it cannot be asked.

    A bar is given away only when it was complete at the clock. The source of a series names the
    feed ("alpaca iex"): volumes of two feeds are not comparable.
    """

    def __init__(
        self,
        *,
        calendar: SessionCalendar,
        open_service: OpenService,
        cache: BarCache,
        symbols: Sequence[str] | None,
        feed: str,
        adjustment: str,
        now: Callable[[], datetime],
    ) -> None:
        """Bars over `calendar`: of coins when it never closes, else of shares.

        feed        "iex" or "sip", of shares
        adjustment  "all", "split" or "raw", of shares; coins need none
        """
        self._calendar, self._open = calendar, open_service
        self._symbols = tuple(sorted(symbols or DEFAULT_SYMBOLS))
        self._coins = calendar.never_closes
        self._feed = COIN_FEED if self._coins else feed
        self._adjustment = "raw" if self._coins else adjustment
        self._notices: dict[str, None] = {}
        self._bars = AlpacaBars(open_service=open_service, cache=cache, now=now, tell=self._tell)
        self._made: dict[tuple[str, Timeframe], tuple[Held, BarSeries]] = {}

    @property
    def name(self) -> str:
        """Service and feed, "alpaca iex"."""
        return f"alpaca {self._feed}"

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know about how the bars came here, each once."""
        return tuple(self._notices)

    def symbols(self, timeframe: Timeframe) -> tuple[str, ...]:  # noqa: ARG002  alike for both
        """Those configured, sorted; Alpaca has thousands more."""
        return self._symbols

    def bars(self, symbol: str, timeframe: Timeframe, until: datetime | None = None) -> BarSeries:
        """Sound bars of `symbol` that were complete at `until` (all bars when None).

        Raises DataIntegrityError for an unknown symbol and for bars that must not be traded on,
        EndpointError when Alpaca cannot be asked and nothing is kept, UsageError for a coin among
        shares.
        """
        key = self.key(symbol, timeframe)
        made = self._made.get((key.symbol, timeframe))
        if made is not None and until is not None and to_ns(until) <= made[1].available_at[-1]:
            return complete_bars(made[1], until)
        held = self._bars.up_to(key, self._due(timeframe, until))
        return complete_bars(self._series(key, timeframe, held), until)

    def download(
        self, symbol: str, timeframe: Timeframe, *, first: date | None, last: date | None
    ) -> BarSeries:
        """Fetch what is missing from `first` to `last`, keep it, and check it.

        first  None: where the kept bars begin, or as far back as Alpaca goes
        last   None: today
        """
        if first is not None and last is not None and last < first:
            raise UsageError(f"--to {last} is before --from {first}")
        key = self.key(symbol, timeframe)
        return self._series(key, timeframe, self._bars.download(key, first=first, last=last))

    def kept(self, symbol: str, timeframe: Timeframe) -> BarSeries:
        """The kept bars, checked; nobody is asked for newer ones.

        Raises DataIntegrityError when nothing is kept, too.
        """
        key = self.key(symbol, timeframe)
        held = self._bars.kept(key)
        if held is None:
            raise DataIntegrityError(f"no {timeframe} bars of {key.symbol} are kept")
        return self._series(key, timeframe, held)

    def latest_price(self, symbol: str) -> tuple[float, datetime]:
        """The middle of the newest quote, USD, and when it was made.

        Raises DataIntegrityError when there is none, EndpointError when Alpaca cannot be asked.
        """
        quote = read_quote(self._open, self._spelled(symbol), self._feed)
        return quote.price, quote.at

    def key(self, symbol: str, timeframe: Timeframe) -> BarKey:
        """What is kept of a symbol to make the bars of a timeframe from."""
        wire = "1Hour" if self._coins else "30Min" if timeframe is Timeframe.HOUR else "1Day"
        return BarKey(
            symbol=self._spelled(symbol),
            timeframe=wire,
            adjustment=self._adjustment,
            feed=self._feed,
        )

    def _spelled(self, symbol: str) -> str:
        wanted = standard_symbol(symbol)
        if not SYMBOL.fullmatch(wanted):
            raise DataIntegrityError(f"alpaca has no bars of {symbol[:40]!r}: {SPELLING}")
        if is_crypto(wanted) and not is_crypto(symbol) and not self._coins:
            raise UsageError(f"{symbol[:40]} is a pair of coins, which is written {wanted} here")
        if is_crypto(wanted) != self._coins:
            raise UsageError(
                f"{wanted} cannot be looked at beside {', '.join(self._symbols)}: coins trade at "
                "any hour, shares do not; name one kind with --symbols"
            )
        return wanted

    def _due(self, timeframe: Timeframe, until: datetime | None) -> int:
        """When the newest bar that could be known at `until` was complete, ns."""
        moment = self._bars.horizon(self._feed)
        if until is not None:
            moment = min(moment, to_ns(until))
        today = self._calendar.at_or_after(session_of(from_ns(moment)))
        first = self._calendar.previous(self._calendar.previous(today))
        complete = expected_bars(first, today, timeframe, self._calendar).available_at
        return int(complete[complete <= moment][-1])

    def _series(self, key: BarKey, timeframe: Timeframe, held: Held) -> BarSeries:
        """The series of what is held, checked; made once."""
        made = self._made.get((key.symbol, timeframe))
        if made is not None and made[0].bars is held.bars and made[0].through == held.through:
            return made[1]
        series = on_our_grid(
            held.bars,
            symbol=key.symbol,
            wire_timeframe=key.timeframe,
            timeframe=timeframe,
            calendar=self._calendar,
            complete_at=held.through,
            source=self.name,
            adjustment=ADJUSTED_FOR[self._adjustment],
        )
        if not len(series):
            raise DataIntegrityError(f"{key.symbol}: Alpaca has no complete {timeframe} bar yet")
        try:
            if self._adjustment == "raw" and not self._coins:
                series = replace(series, splits=self._splits(held, series))
            require_sound(series, self._calendar)
            if not self._coins:
                self._require_explained(key, held, series)
        except DataIntegrityError as exc:
            raise DataIntegrityError(
                f"{exc}; `trader data drop {key.symbol}` has them fetched anew, `trader data "
                f"download --symbols {key.symbol} --from DAY` begins later"
            ) from exc
        self._made[key.symbol, timeframe] = held, series
        return series

    def _splits(self, held: Held, series: BarSeries) -> tuple[tuple[date, float], ...]:
        """Splits that raw prices show, each on its session."""
        first, last = (session_of(from_ns(series.timestamp[at])) for at in (0, -1))
        days = [
            (self._calendar.at_or_after(one.day), one.ratio)
            for one in held.actions or ()
            if one.kind in SPLITS and one.ratio is not None and first < one.day <= last
        ]
        return tuple((day, ratio) for day, ratio in days if day <= last)

    def _require_explained(self, key: BarKey, held: Held, series: BarSeries) -> None:
        """Refuse a leap over night that no corporate action explains: Alpaca has missed one.

        A split explains nothing: prices are adjusted for it, or it is on record.
        """
        leaps = _leaps(series)
        known, doubt = _telling(held.actions or ()), ""
        if any(not _explained(leap, known) for leap in leaps):
            try:
                first = session_of(from_ns(series.timestamp[0]))
                known = _telling(self._bars.actions(key, first))
            except (EndpointError, NoKeyError) as exc:
                doubt = f" (it cannot be asked: {exc})"
        for before, day, bar in leaps:
            if not _explained((before, day, bar), known):
                raise DataIntegrityError(
                    f"{series.symbol} {series.timeframe} {day}: open {series.open[bar]:g} after "
                    f"close {series.close[bar - 1]:g}, and Alpaca knows no corporate action that "
                    f"explains it{doubt}"
                )

    def _tell(self, text: str) -> None:
        if text not in self._notices:
            log.info("%s", text)
            self._notices[text] = None
        while len(self._notices) > MOST_NOTICES:
            del self._notices[next(iter(self._notices))]


def _leaps(series: BarSeries) -> list[tuple[date, date, int]]:
    """Session before, session, and place of bars that open a session far from the close before.

    Splits on record are taken out.
    """
    ratio = series.open[1:] / series.close[:-1]
    for day, new_shares in series.splits:
        at = int(np.searchsorted(series.timestamp, midnight(day)))
        if 0 < at < len(series):
            ratio[at - 1] *= new_shares
    found = []
    for bar in (np.flatnonzero(np.abs(ratio - 1.0) > EXTREME_MOVE) + 1).tolist():
        before, day = (session_of(from_ns(series.timestamp[at])) for at in (bar - 1, bar))
        if before < day:
            found.append((before, day, bar))
    return found


def _telling(actions: Sequence[CorporateAction]) -> set[date]:
    return {one.day for one in actions if one.kind not in SPLITS}


def _explained(leap: tuple[date, date, int], days: set[date]) -> bool:
    return any(leap[0] < day <= leap[1] for day in days)
