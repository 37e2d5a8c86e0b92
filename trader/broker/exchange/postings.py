"""What moves cash and shares without an order, booked and still to come, in the exchange's file."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from trader.broker.exchange.records import derived_id
from trader.core.market import from_ns

Kind = Literal["DIV", "SPLIT", "CSD", "CSW", "JNLC", "FEE"]
MOVEMENTS = (
    "SELECT sequence, activity_id, kind, symbol, amount, quantity, shares, per_share, description,"
    " at_ns, after_trade FROM movements "
)
# Fills and movements in the order they were booked: a movement comes after the fills of its time.
BOOKED = """
    SELECT sequence AS place, 0 AS step, 'FILL' AS kind, filled_ns AS at_ns, sequence FROM trades
    UNION ALL
    SELECT after_trade, sequence, kind, at_ns, sequence FROM movements
"""
CHOSEN = f"""
    SELECT kind, sequence FROM ({BOOKED})
    WHERE (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
      AND at_ns > :after AND at_ns < :until
      AND (:place IS NULL OR (place, step) > (:place, :step) = (:direction > 0)
           AND (place, step) <> (:place, :step))
    ORDER BY place * :direction, step * :direction LIMIT :limit
"""  # noqa: S608  # the tables are this module's own words


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """Cash or shares that came or went.

    amount     USD, negative when it was paid
    quantity   shares added, negative when taken away
    shares     those that earned a dividend, with what each earned in USD as `per_share`
    """

    sequence: int
    activity_id: str
    kind: str
    symbol: str | None
    amount: Decimal
    quantity: Decimal
    shares: Decimal | None
    per_share: Decimal | None
    description: str
    at_ns: int
    after_trade: int  # how many fills had been booked before


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """A split, or a cash dividend when `per_share` (USD) is not zero.

    at_ns  the opening of its session, from which on it holds
    ratio  new shares for each old one
    """

    symbol: str
    session: date
    at_ns: int
    ratio: Fraction = Fraction(1)
    per_share: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Which account this is and what its owner has set.

    generation  1 for the first account, one more after each reset
    suspended   the owner wants no new orders
    fractional  parts of a share may be ordered
    """

    generation: int
    suspended: bool
    fractional: bool


class Postings:
    """What the tables hold; every method is called inside a transaction of the store."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def book(
        self,
        kind: Kind,
        *,
        at_ns: int,
        after_trade: int,
        symbol: str | None = None,
        amount: Decimal = Decimal(0),
        quantity: Decimal = Decimal(0),
        shares: Decimal | None = None,
        per_share: Decimal | None = None,
        description: str = "",
    ) -> None:
        """Write down a movement; the caller moves the cash and the shares."""
        newest = self._connection.execute("SELECT max(sequence) FROM movements").fetchone()[0] or 0
        number = int(newest) + 1
        moment = from_ns(at_ns)
        name = derived_id("movement", f"{self.standing().generation}:{number}")
        self._connection.execute(
            "INSERT INTO movements VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number,
                f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}::{name}",
                kind,
                symbol,
                str(amount),
                str(quantity),
                None if shares is None else str(shares),
                None if per_share is None else str(per_share),
                description,
                at_ns,
                after_trade,
            ),
        )

    def movements(self, *, after_ns: int = -(2**62)) -> list[Movement]:
        """Movements after a moment, as they were booked."""
        return self._movements("WHERE at_ns > ? ORDER BY sequence", after_ns)

    def movement(self, sequence: int) -> Movement:
        """The movement with this number."""
        return self._movements("WHERE sequence = ?", sequence)[0]

    def chosen(self, **wanted: Any) -> list[tuple[str, int]]:
        """(kind, sequence) of fills and movements.

        kinds         JSON list, or None for all
        after, until  UTC nanoseconds, both excluded
        place, step   where the page before ended, or None
        direction     1 for the oldest first, -1 for the newest
        """
        return list(self._connection.execute(CHOSEN, wanted))

    def place(self, activity_id: str) -> tuple[int, int] | None:
        """Where an activity stands in the order of booking."""
        row = self._connection.execute(
            "SELECT sequence, 0 FROM trades WHERE execution_id = ?"
            " UNION ALL SELECT after_trade, sequence FROM movements WHERE activity_id = ?",
            (activity_id, activity_id),
        ).fetchone()
        return None if row is None else (int(row[0]), int(row[1]))

    def announce(self, happening: Happening) -> None:
        """Write down what will happen; sqlite3.IntegrityError when it stands there already."""
        self._connection.execute(
            "INSERT INTO happenings"
            " (symbol, session, at_ns, new_rate, old_rate, per_share) VALUES (?, ?, ?, ?, ?, ?)",
            (
                happening.symbol,
                happening.session.isoformat(),
                happening.at_ns,
                happening.ratio.numerator,
                happening.ratio.denominator,
                str(happening.per_share),
            ),
        )

    def announced(self) -> list[Happening]:
        """Everything that was announced, past and to come, in order of time."""
        rows = self._connection.execute(
            "SELECT symbol, session, at_ns, new_rate, old_rate, per_share FROM happenings"
            " ORDER BY at_ns, sequence"
        )
        return [
            Happening(
                symbol=row[0],
                session=date.fromisoformat(row[1]),
                at_ns=row[2],
                ratio=Fraction(row[3], row[4]),
                per_share=Decimal(row[5]),
            )
            for row in rows
        ]

    def standing(self) -> Standing:
        """The account's standing."""
        row = self._connection.execute(
            "SELECT generation, suspended, fractional FROM standing"
        ).fetchone()
        return Standing(generation=row[0], suspended=bool(row[1]), fractional=bool(row[2]))

    def stand(self, standing: Standing) -> None:
        """Write down the account's standing."""
        self._connection.execute(
            "UPDATE standing SET generation = ?, suspended = ?, fractional = ?",
            (standing.generation, standing.suspended, standing.fractional),
        )

    def _movements(self, where: str, *values: object) -> list[Movement]:
        return [
            Movement(
                sequence=row[0],
                activity_id=row[1],
                kind=row[2],
                symbol=row[3],
                amount=Decimal(row[4]),
                quantity=Decimal(row[5]),
                shares=None if row[6] is None else Decimal(row[6]),
                per_share=None if row[7] is None else Decimal(row[7]),
                description=row[8],
                at_ns=row[9],
                after_trade=row[10],
            )
            for row in self._connection.execute(MOVEMENTS + where, values)
        ]
