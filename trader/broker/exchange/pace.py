"""A market that moves by itself: so many of its seconds for each second of the computer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Event as Flag
from threading import Thread

from trader.core.clock import monotonic_seconds
from trader.core.errors import TraderError

STEP_SECONDS = 0.2
Walk = Callable[[Callable[[datetime], datetime]], None]


class Pace:
    """Moves a market on until its bars end; a context manager that moves it while it is entered.

    walk   moves the market from now to where a function of now says
    speed  market seconds per second, more than 0
    end    where the market stands still
    tell   hears once why it does
    """

    def __init__(
        self,
        walk: Walk,
        *,
        speed: float,
        end: datetime,
        tell: Callable[[str], None],
        clock: Callable[[], float] = monotonic_seconds,
    ) -> None:
        self._walk = walk
        self._speed = speed
        self._end = end
        self._tell = tell
        self._clock = clock
        self._last = clock()
        self._stopping = Flag()
        self._thread = Thread(target=self._run, name="exchange-pace", daemon=True)

    def __enter__(self) -> Pace:
        """Begin to move."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stand still."""
        self._stopping.set()
        self._thread.join()

    def step(self) -> bool:
        """Move by what has passed since the last step; False once the market stands still."""
        now = self._clock()
        passed, self._last = now - self._last, now
        reached: list[datetime] = []

        def goal(market: datetime) -> datetime:
            left = max(self._end - market, timedelta(0))
            reached.append(market + min(timedelta(seconds=passed * self._speed), left))
            return reached[-1]

        try:
            self._walk(goal)
        except TraderError as exc:
            self._tell(f"the market stands still: {exc}")
            return False
        if reached[-1] >= self._end:
            self._tell(f"the bars end at {self._end:%Y-%m-%d %H:%M} UTC: the market stands still")
            return False
        return True

    def _run(self) -> None:
        while not self._stopping.wait(STEP_SECONDS) and self.step():
            pass
