"""Alpaca's bars as it sends them: kept on disk, and added to when newer ones are due."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from trader.core.errors import DataIntegrityError, EndpointError
from trader.core.instruments import is_crypto
from trader.core.market import EXCHANGE_TIME_ZONE, from_ns, session_of, to_ns
from trader.data.alpaca_grid import STEP_NS
from trader.data.alpaca_reads import (
    CorporateAction,
    NoKeyError,
    OpenService,
    actions_from_json,
    actions_to_json,
    read_actions,
)
from trader.data.alpaca_rows import fetch_bars
from trader.data.cache import BarCache, BarKey, Kept, Raw, continues

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST_DAY, FIRST_DAY_OF_COINS = date(2016, 1, 1), date(2021, 1, 1)  # Alpaca's bars begin there
SPELLING = "shares are written like BRK.B, coins like BTC/USD"
FREE_DELAY = timedelta(minutes=16)  # the free plan gives no bar of all exchanges within 15 minutes
EARLIER = timedelta(hours=1)  # when that was not enough: this computer's clock is fast
SETTLED = timedelta(minutes=16)  # until a bar is taken for final and kept
PAUSE = timedelta(seconds=60)  # until the same is asked again
LATE_NS = 6 * 3_600 * 10**9  # how late a bar may come
OVERLAP = 5  # kept bars that are asked for again, to see whether the past still is what it was


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Held:
    """Bars at hand, oldest first, every one that was complete at `through` (ns).

    actions        corporate actions, None when nobody has asked
    due, asked_at  the newest bar that was wanted, and when
    """

    bars: Raw
    through: int
    actions: tuple[CorporateAction, ...] | None
    due: int
    asked_at: datetime


class AlpacaBars:
    """The bars of each file of the cache, brought up to date when something newer is due.

    Bars that may still change are handed out and not kept: those of the last 16 minutes, and
    today's daily ones, whose volume grows until the evening. A few kept bars are asked for again
    each time: when they differ, all of the past has been adjusted anew and is fetched whole.
    """

    def __init__(
        self,
        *,
        open_service: OpenService,
        cache: BarCache,
        now: Callable[[], datetime],
        tell: Callable[[str], None],
    ) -> None:
        """Tell what a person should know about how the bars came here through `tell`."""
        self._open, self._cache, self._now, self._tell = open_service, cache, now, tell
        self._held: dict[BarKey, Held] = {}
        self._silent: tuple[datetime, EndpointError] | None = None  # since when nobody answers

    def horizon(self, feed: str) -> int:
        """The moment, ns, up to which bars of a feed may be asked for."""
        if feed != "sip":
            return to_ns(self._now())
        self._tell("bars of the feed sip end 16 minutes ago: the free plan gives no newer ones")
        return to_ns(self._now() - FREE_DELAY)

    def up_to(self, key: BarKey, due: int) -> Held:
        """Bars among which the one that was complete at `due` (ns) is, where Alpaca has it.

        While Alpaca cannot be asked: what is kept or was at hand. Raises its errors when that is
        nothing, and those of the cache.
        """
        held = self._held.get(key)
        if held is not None:
            waits = held.due == due and self._now() - held.asked_at < PAUSE
            if waits or _covers(key, held, due):
                return held
        kept = self._read(key)
        try:
            held = self._fetched(key, kept, None, self.horizon(key.feed), due)
        except (EndpointError, NoKeyError) as exc:
            before = held or (None if kept is None else self._as_kept(kept, due))
            if before is None:
                raise
            known = from_ns(before.through)
            self._tell(f"{key.symbol}: bars as known at {known:%Y-%m-%d %H:%M} UTC, because {exc}")
            held = replace(before, due=due, asked_at=self._now())
        self._held[key] = held
        return held

    def download(self, key: BarKey, *, first: date | None, last: date | None) -> Held:
        """Fetch what is missing up to the end of `last`, up to now when None.

        first  the day on which the kept bars shall begin; None: as they do, or as far back as
               Alpaca goes
        """
        horizon = self.horizon(key.feed)
        if last is not None and last < session_of(self._now()):
            horizon = min(horizon, midnight(last + timedelta(days=1)))
        self._silent = None
        held = self._fetched(key, self._read(key), first, horizon, due=0)
        self._held[key] = held
        return held

    def kept(self, key: BarKey) -> Held | None:
        """What is kept, without asking anybody; None when nothing is."""
        kept = self._read(key)
        return None if kept is None else self._as_kept(kept, due=0)

    def actions(self, key: BarKey, first: date) -> tuple[CorporateAction, ...]:
        """Corporate actions since `first`, asked for now and kept."""
        found = read_actions(self._open, key.symbol, first, session_of(self._now()))
        kept = self._cache.read(key)
        if kept is not None:
            self._cache.append(key, kept.bars[-1:], kept.through, actions_to_json(found))
        return found

    def _read(self, key: BarKey) -> Kept | None:
        kept = self._cache.read(key)
        if kept is not None and kept.cut:
            self._tell(
                f"{key.file}: {kept.cut} bytes at its end were cut short or damaged and removed; "
                "their bars are fetched again"
            )
        return kept

    def _fetched(
        self, key: BarKey, kept: Kept | None, first: date | None, horizon: int, due: int
    ) -> Held:
        """Everything up to `horizon`; what is final by now is kept."""
        if kept is not None and first in (None, kept.first):
            if kept.through >= horizon:
                return self._as_kept(kept, due)
            held = self._continued(key, kept, horizon, due)
            if held is not None:
                return held
        begins = first or (kept.first if kept else _first_day(key))
        bars, horizon = self._ask(key, midnight(begins), horizon)
        _require_as_much(key, bars, kept if first is None else None)
        actions = self._splits(key, begins)
        final, through = self._final(key, bars, horizon)
        if final.size:
            fresh = Kept(
                key=key,
                first=begins,
                through=through,
                bars=final,
                actions=None if actions is None else actions_to_json(actions),
            )
            self._keep(key, lambda: self._cache.start(fresh))
        return Held(bars=bars, through=horizon, actions=actions, due=due, asked_at=self._now())

    def _continued(self, key: BarKey, kept: Kept, horizon: int, due: int) -> Held | None:
        """What is kept and what is newer; None when the past has changed."""
        added, horizon = self._ask(key, int(kept.bars["t"][-OVERLAP:][0]), horizon)
        if not added.size:
            raise EndpointError(f"Alpaca has none of the bars of {key.symbol} that it had")
        if not continues(kept.bars, added):
            self._tell(
                f"{key.symbol}: Alpaca's past has changed (a split, a dividend or a correction), "
                "so all its bars were fetched again"
            )
            return None
        actions = self._splits(key, kept.first) or _actions_of(kept)
        final, through = self._final(key, added, horizon)
        words = None if actions is None else actions_to_json(actions)
        self._keep(key, lambda: self._cache.append(key, final, through, words))
        return Held(
            bars=np.concatenate([kept.bars, added[added["t"] > kept.bars["t"][-1]]]),
            through=horizon,
            actions=actions,
            due=due,
            asked_at=self._now(),
        )

    def _ask(self, key: BarKey, start: int, end: int) -> tuple[Raw, int]:
        """Bars from `start` to `end`, and the end that was taken: an earlier one on a free plan."""
        from trader.broker.market_reads import RecentDataError

        if self._silent is not None and self._now() - self._silent[0] < PAUSE:
            raise self._silent[1]  # the others of a list need not wait for the same silence
        reads = self._open("coins" if is_crypto(key.symbol) else "stocks")
        try:
            return fetch_bars(reads, key, start, end), end
        except RecentDataError:
            allowed = to_ns(self._now() - FREE_DELAY)
            end = allowed if end > allowed else end - int(EARLIER.total_seconds()) * 10**9
            self._tell(
                "the plan gives no bars as new as those asked for; they end at "
                f"{from_ns(end):%Y-%m-%d %H:%M} UTC"
            )
            return fetch_bars(reads, key, start, end), end
        except EndpointError as exc:
            self._silent = self._now(), exc
            raise

    def _splits(self, key: BarKey, first: date) -> tuple[CorporateAction, ...] | None:
        """Corporate actions where the prices still show them; None elsewhere."""
        if key.adjustment != "raw" or is_crypto(key.symbol):
            return None
        return read_actions(self._open, key.symbol, first, session_of(self._now()))

    def _final(self, key: BarKey, bars: Raw, horizon: int) -> tuple[Raw, int]:
        """Bars that change no more, and the moment up to which they are all."""
        if key.timeframe == "1Day":
            through = min(horizon, midnight(session_of(self._now())))
            return bars[bars["t"] < through], through
        through = min(horizon, to_ns(self._now() - SETTLED))
        return bars[_ends(key, bars) <= through], through

    def _keep(self, key: BarKey, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as exc:
            self._tell(f"{key.file} could not be written ({exc.strerror}); its bars are not kept")

    def _as_kept(self, kept: Kept, due: int) -> Held:
        return Held(
            bars=kept.bars,
            through=kept.through,
            actions=_actions_of(kept),
            due=due,
            asked_at=self._now(),
        )


def _covers(key: BarKey, held: Held, due: int) -> bool:
    """Whether asking again could not bring the bar that was complete at `due`.

    One that was not there soon after it was due is late; long after, it does not exist.
    """
    if due > held.through:
        return False
    if due <= held.through - LATE_NS:
        return True
    newest = int(held.bars["t"][-1])
    if key.timeframe == "1Day":
        return newest >= midnight(session_of(from_ns(due)))
    return newest + STEP_NS[key.timeframe] >= due


def midnight(day: date) -> int:
    """The first moment of a New York day, ns."""
    return to_ns(datetime(day.year, day.month, day.day, tzinfo=EXCHANGE_TIME_ZONE))


def _first_day(key: BarKey) -> date:
    return FIRST_DAY_OF_COINS if is_crypto(key.symbol) else FIRST_DAY


def _actions_of(kept: Kept) -> tuple[CorporateAction, ...] | None:
    return None if kept.actions is None else actions_from_json(kept.actions)


def _ends(key: BarKey, bars: Raw) -> NDArray[np.int64]:
    return np.asarray(bars["t"] + STEP_NS[key.timeframe])


def _require_as_much(key: BarKey, bars: Raw, kept: Kept | None) -> None:
    """Refuse an answer without bars, and one that would make what is kept shorter."""
    if not bars.size:
        raise DataIntegrityError(
            f"Alpaca has no {key.timeframe} bars of {key.symbol} in the feed {key.feed}: {SPELLING}"
        )
    if kept is not None and (
        bars["t"][0] > kept.bars["t"][0] or bars["t"][-1] < kept.bars["t"][-1]
    ):
        raise EndpointError(
            f"Alpaca sent fewer bars of {key.symbol} than it had; `trader data drop {key.symbol}` "
            "takes them as they are"
        )
