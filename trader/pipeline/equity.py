"""The equity of an account, session by session, without what was paid in or out."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from trader.ledger.store import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEquity:
    """Where an account stood at the last slot of a session.

    transfers  USD paid in less paid out until then, and cash that nobody can explain
    growth     of one dollar since the account began; transfers are no growth
    """

    session: date
    equity: Decimal
    transfers: Decimal
    growth: float


@dataclass(slots=True)
class EquityPast:
    """The sessions of one account, oldest first."""

    sessions: list[SessionEquity] = field(default_factory=list)

    @classmethod
    def of(cls, ledger: Ledger) -> EquityPast:
        """The past as the ledger's slots and transfers tell it."""
        past, transfers = cls(), Decimal(0)
        for record in ledger.records("slot", "activity", "adjustment"):
            body = record.body
            if record.kind == "slot":
                session = date.fromisoformat(body["session"])
                past.add(session, Decimal(body["equity"]), transfers)
            elif record.kind == "adjustment":
                transfers += Decimal(body["transfer"])
            elif body["kind"] == "transfer":
                transfers += Decimal(body["amount"])
        return past

    def add(self, session: date, equity: Decimal, transfers: Decimal) -> None:
        """Keep where the account stands in a session; a later slot of it takes the place."""
        if self.sessions and self.sessions[-1].session == session:
            self.sessions.pop()
        growth = 1.0
        if self.sessions:
            last = self.sessions[-1]
            kept = equity - (transfers - last.transfers)
            growth = last.growth * (float(kept / last.equity) if last.equity > 0 else 1.0)
        self.sessions.append(
            SessionEquity(session=session, equity=equity, transfers=transfers, growth=growth)
        )

    def before(self, day: date) -> SessionEquity | None:
        """The newest session earlier than `day`."""
        return next((item for item in reversed(self.sessions) if item.session < day), None)

    def fall(self, window: int) -> tuple[float, date | None]:
        """The deepest fall since the highest of the last `window` sessions, and when it was lowest.

        A fraction of the highest; 0 and None where nothing has fallen since. Of equal highest the
        last counts, of equal lowest the first: standing still is no new low.
        """
        recent = self.sessions[-window:] if window else []
        if not recent:
            return 0.0, None
        highest = max(item.growth for item in recent)
        peak = max(at for at, item in enumerate(recent) if item.growth == highest)
        lowest = min(recent[peak:], key=lambda item: item.growth)
        if lowest.growth >= highest:
            return 0.0, None
        return 1.0 - lowest.growth / highest, lowest.session
