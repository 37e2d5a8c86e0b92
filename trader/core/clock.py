"""Wall time, the sessions of the New York Stock Exchange and those of a market that never closes.

The only module that reads wall time.
"""

from __future__ import annotations

import time
import warnings
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trader.core.errors import DataIntegrityError
from trader.core.market import EXCHANGE_TIME_ZONE, from_ns, session_of, to_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

FIRST_YEAR = 1980
FIRST_YEAR_OF_COINS = 2009


class SystemClock:
    """The computer's clock."""

    def now(self) -> datetime:
        """The present moment, UTC."""
        return datetime.now(UTC)


def monotonic_seconds() -> float:
    """Seconds on a clock that only runs forward, for telling how long something took."""
    return time.monotonic()


class SessionCalendar:
    """Sessions with their real opening and closing times: those of the NYSE, half days included,
    or the days of a market that never closes.
    """

    def __init__(
        self, sessions: NDArray[np.datetime64], opens: NDArray[np.int64], closes: NDArray[np.int64]
    ) -> None:
        self._days = sessions.astype("datetime64[D]")
        self._opens = opens
        self._closes = closes
        self._never_closes = opens.size > 1 and bool((opens[1:] == closes[:-1]).all())

    @property
    def never_closes(self) -> bool:
        """Whether every session opens in the moment in which the one before it closes."""
        return self._never_closes

    @property
    def first(self) -> date:
        """Oldest session known."""
        return self._days[0].item()  # type: ignore[no-any-return]

    @property
    def last(self) -> date:
        """Newest session known, about a year ahead."""
        return self._days[-1].item()  # type: ignore[no-any-return]

    def _require_covered(self, day: date) -> None:
        if not self.first <= day <= self.last:
            raise DataIntegrityError(
                f"{day} is outside the exchange calendar, which covers {self.first} to {self.last}"
            )

    def _at_or_after(self, day: date) -> int:
        self._require_covered(day)
        return int(np.searchsorted(self._days, np.datetime64(day, "D")))

    def _index(self, session: date) -> int:
        index = self._at_or_after(session)
        if self._days[index] != np.datetime64(session, "D"):
            raise DataIntegrityError(
                f"{session} is not a session of the exchange (weekend or holiday)"
            )
        return index

    def is_session(self, day: date) -> bool:
        """Whether the exchange opens on `day`."""
        return bool(self._days[self._at_or_after(day)] == np.datetime64(day, "D"))

    def at_or_after(self, day: date) -> date:
        """`day` itself when it is a session, else the next session."""
        return self._days[self._at_or_after(day)].item()  # type: ignore[no-any-return]

    def next(self, session: date) -> date:
        """The session after `session`, which must be one."""
        index = self._index(session) + 1
        if index == self._days.size:
            self._require_covered(session + timedelta(days=1))
        return self._days[index].item()  # type: ignore[no-any-return]

    def previous(self, day: date) -> date:
        """The last session before `day`."""
        index = self._at_or_after(day) - 1
        if index < 0:
            self._require_covered(day - timedelta(days=1))
        return self._days[index].item()  # type: ignore[no-any-return]

    def between(self, first: date, last: date) -> list[date]:
        """Every session from `first` to `last`, both included."""
        return self._days[self._span(first, last)].tolist()  # type: ignore[no-any-return]

    def hours_between(self, first: date, last: date) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """[T] opening and [T] closing times, nanoseconds since 1970, of the sessions `between`."""
        span = self._span(first, last)
        return self._opens[span].copy(), self._closes[span].copy()

    def _span(self, first: date, last: date) -> slice:
        self._require_covered(first)
        self._require_covered(last)
        return slice(
            int(np.searchsorted(self._days, np.datetime64(first, "D"))),
            int(np.searchsorted(self._days, np.datetime64(last, "D"), side="right")),
        )

    def open(self, session: date) -> datetime:
        """When `session` opens, UTC."""
        return from_ns(self._opens[self._index(session)])

    def close(self, session: date) -> datetime:
        """When `session` closes, UTC; earlier on half days."""
        return from_ns(self._closes[self._index(session)])

    def opens_ns(self, sessions: Sequence[date]) -> NDArray[np.int64]:
        """[T] opening times in nanoseconds since 1970."""
        return self._opens[self._indices(sessions)]

    def closes_ns(self, sessions: Sequence[date]) -> NDArray[np.int64]:
        """[T] closing times in nanoseconds since 1970."""
        return self._closes[self._indices(sessions)]

    def _indices(self, sessions: Sequence[date]) -> NDArray[np.int64]:
        wanted = np.array(sessions, dtype="datetime64[D]")
        found = np.searchsorted(self._days, wanted)
        found = np.minimum(found, self._days.size - 1)
        strangers = np.flatnonzero(self._days[found] != wanted)
        if strangers.size:
            self._index(wanted[strangers[0]].item())  # raises, and says why
        return found

    def session_at(self, moment: datetime) -> date | None:
        """The session that is open at `moment` (opening included, closing excluded), or None."""
        day = session_of(moment)
        if self.is_session(day) and self.open(day) <= moment < self.close(day):
            return day
        return None


@lru_cache(maxsize=1)
def new_york() -> SessionCalendar:
    """The NYSE calendar from 1980 to about a year ahead (exchange_calendars, no network)."""
    import exchange_calendars

    end = date(datetime.now(UTC).year + 1, 12, 31)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # its use of pandas, not ours
        calendar = exchange_calendars.get_calendar(
            "XNYS", start=f"{FIRST_YEAR}-01-01", end=end.isoformat()
        )
    return SessionCalendar(
        calendar.sessions.to_numpy().astype("datetime64[D]"),
        np.asarray(calendar.opens_nanos, dtype=np.int64),
        np.asarray(calendar.closes_nanos, dtype=np.int64),
    )


@lru_cache(maxsize=1)
def always_open() -> SessionCalendar:
    """A market that never closes, such as that of coins: its sessions are New York's days.

    They last from midnight to midnight there, 23 or 25 hours when clocks change, so that
    `session_of` names the session of a moment here too. From 2009 to the end of next year.
    """
    first, end = date(FIRST_YEAR_OF_COINS, 1, 1), date(datetime.now(UTC).year + 2, 1, 1)
    days = [first + timedelta(days=n) for n in range((end - first).days + 1)]
    midnights = np.array([to_ns(_midnight(day)) for day in days], dtype=np.int64)
    return SessionCalendar(
        np.array(days[:-1], dtype="datetime64[D]"), midnights[:-1], midnights[1:]
    )


def _midnight(day: date) -> datetime:
    """The first moment of a New York day."""
    return datetime(day.year, day.month, day.day, tzinfo=EXCHANGE_TIME_ZONE).astimezone(UTC)
