"""What the account was worth over time, worked out from its books and the closes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from trader.broker.exchange.activities import OTHERS
from trader.broker.exchange.bar_frames import DAY_NS, HOUR_NS, MINUTE_NS, midnight_ns
from trader.broker.exchange.postings import Movement
from trader.broker.exchange.records import Trade
from trader.broker.exchange.refusal import bad_field, not_offered
from trader.broker.exchange.request import FARTHEST_NS, Request
from trader.broker.exchange.wire import Json
from trader.core.market import from_ns, session_of, to_ns
from trader.core.trading import Side

if TYPE_CHECKING:
    from trader.broker.exchange.desk import Desk

STEPS_NS = {
    "1Min": MINUTE_NS,
    "5Min": 5 * MINUTE_NS,
    "15Min": 15 * MINUTE_NS,
    "1H": HOUR_NS,
    "1D": DAY_NS,
}
MOST_DAYS = {"1Min": 7, "5Min": 30, "15Min": 30, "1H": 30}  # of a period with so short steps
PERIOD = re.compile(r"(\d{1,4})([DWMA])", re.ASCII)
TRANSFERS = ("CSD", "CSW", "JNLC")  # money paid in or out is no profit
BILLION = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a session, UTC nanoseconds; the newest one ends now."""

    session: date
    starts_ns: int
    ends_ns: int


class Books:
    """Cash and shares as they were at moments that only move forward."""

    def __init__(
        self, cash: Decimal, trades: Iterable[Trade], movements: Iterable[Movement]
    ) -> None:
        self.cash = cash
        self.paid_in = Decimal(0)  # USD, without the opening balance
        self.shares: dict[str, Decimal] = {}
        entries: list[Trade | Movement] = [*trades, *movements]
        self._ahead = sorted(entries, key=_booked_ns, reverse=True)

    def move_to(self, moment_ns: int) -> None:
        """Book everything that had happened by `moment_ns`."""
        while self._ahead and _booked_ns(self._ahead[-1]) <= moment_ns:
            entry = self._ahead.pop()
            if isinstance(entry, Movement):
                self._move(entry.symbol, entry.amount, entry.quantity)
                self.paid_in += entry.amount if entry.kind in TRANSFERS else 0
            else:
                sign = 1 if entry.side is Side.BUY else -1
                cost = sign * entry.quantity * entry.price + entry.fee
                self._move(entry.symbol, -cost, sign * entry.quantity)

    def _move(self, symbol: str | None, amount: Decimal, quantity: Decimal) -> None:
        self.cash += amount
        if symbol is not None and quantity:
            self.shares[symbol] = self.shares.get(symbol, Decimal(0)) + quantity


def _booked_ns(entry: Trade | Movement) -> int:
    return entry.at_ns if isinstance(entry, Movement) else entry.filled_ns


def portfolio_history(desk: Desk, request: Request) -> tuple[int, object]:
    """GET /v2/account/portfolio/history: one point for each window of the sessions asked for.

    timestamp    seconds; where the window begins
    equity       USD where it ends, of the newest window now
    profit_loss  USD since `base_value`, or since the session before with `pnl_reset=per_day`
                 (the rule for windows shorter than a day); money paid in or out is no profit
    base_value   USD before the first window
    """
    request.only(
        *("period", "timeframe", "intraday_reporting", "start", "end", "date_end", "pnl_reset"),
        *("extended_hours", "cashflow_types"),
    )
    if request.choice("intraday_reporting", "market_hours", "extended_hours", "continuous") == (
        "extended_hours"
    ) or request.flag("extended_hours"):
        raise not_offered("a portfolio history of extended hours")
    first_ns, last_ns = _span(desk, request)
    timeframe = _timeframe(request, last_ns - first_ns)
    resets = request.choice("pnl_reset", "per_day", "no_reset") == "per_day" and timeframe != "1D"
    kinds = _cashflow_kinds(request)
    windows = list(_windows(desk, timeframe, first_ns, last_ns))
    movements = desk.store.postings.movements()
    books = Books(desk.store.initial_cash(), desk.store.trades_since(-FARTHEST_NS), movements)
    base = base_value = _worth(desk, books, first_ns)
    paid_in, session = books.paid_in, None
    equity, profit = [], []
    for window in windows:
        if resets and window.session != session:
            base = _worth(desk, books, max(first_ns, midnight_ns(window.session)))
            paid_in, session = books.paid_in, window.session
        worth = _worth(desk, books, window.ends_ns)
        equity.append(worth)
        profit.append((worth - base - (books.paid_in - paid_in), base))
    return 200, {
        "timestamp": [window.starts_ns // BILLION for window in windows],
        "equity": [float(worth) for worth in equity],
        "profit_loss": [float(gain) for gain, _ in profit],
        "profit_loss_pct": [float(gain / by) if by else None for gain, by in profit],
        "base_value": float(base_value),
        "base_value_asof": session_of(from_ns(first_ns)).isoformat(),
        "timeframe": timeframe,
        "cashflow": _cashflow(movements, kinds, windows, first_ns),
    }


def _worth(desk: Desk, books: Books, moment_ns: int) -> Decimal:
    """Equity at a moment no earlier than the last one asked for."""
    books.move_to(moment_ns)
    held = ((symbol, shares) for symbol, shares in books.shares.items() if shares)
    return books.cash + sum(
        (shares * desk.price(symbol, moment_ns) for symbol, shares in held), Decimal(0)
    )


def _span(desk: Desk, request: Request) -> tuple[int, int]:
    """From the moment whose equity is the base up to the end, UTC nanoseconds.

    An account that is younger has its opening balance as the base.
    """
    now_ns, begun_ns = desk.store.clock_ns(), desk.store.begun_ns()
    start, end, day = request.moment("start"), request.moment("end"), request.date("date_end")
    if end is not None and day is not None:
        raise bad_field("end and date_end cannot be given together")
    if day is not None:
        end = midnight_ns(day + timedelta(days=1)) - 1
    if start is not None and end is not None and "period" in request.query:
        raise bad_field("only two of start, end and period can be given together")
    if start is not None:
        if end is None and "period" in request.query:
            end = midnight_ns(_moved(session_of(from_ns(start)), request, 1))
    else:
        newest = session_of(from_ns(min(now_ns, now_ns if end is None else end)))
        if request.query.get("period") == "all":
            start = begun_ns
        else:
            start = midnight_ns(_moved(newest, request, -1) + timedelta(days=1))
    last_ns = now_ns if end is None else min(now_ns, end)
    if last_ns < start:
        raise bad_field("the end of a portfolio history cannot lie before its start")
    return min(start if start > begun_ns else begun_ns - 1, last_ns), last_ns


def _moved(day: date, request: Request, sign: int) -> date:
    """`day` moved by the period, forward or back."""
    found = PERIOD.fullmatch(request.query.get("period", "1M"))
    if found is None or not int(found[1]):
        raise bad_field(f"invalid period {request.query['period']!r}")
    count = sign * int(found[1])
    try:
        if found[2] in "DW":
            return day + timedelta(days=count * (7 if found[2] == "W" else 1))
        months = day.year * 12 + day.month - 1 + count * (12 if found[2] == "A" else 1)
        first = date(months // 12, months % 12 + 1, 1)
        following = date((months + 1) // 12, (months + 1) % 12 + 1, 1)
        return min(first + timedelta(days=day.day - 1), following - timedelta(days=1))
    except (ValueError, OverflowError) as exc:
        raise bad_field(f"the period {request.query['period']} is too long") from exc


def _timeframe(request: Request, length_ns: int) -> str:
    """The step asked for; without one the shorter the period, the shorter."""
    days = length_ns / DAY_NS
    if "timeframe" not in request.query:
        return "1Min" if days < 7 else "15Min" if days < 30 else "1D"
    timeframe = request.choice("timeframe", *STEPS_NS)
    if days > MOST_DAYS.get(timeframe, days) + 1:
        raise bad_field(
            f"timeframe {timeframe} is for periods of up to {MOST_DAYS[timeframe]} days"
        )
    return timeframe


def _windows(desk: Desk, timeframe: str, first_ns: int, last_ns: int) -> Iterator[Window]:
    """The windows that begin before `last_ns` and end after `first_ns`."""
    step = STEPS_NS[timeframe]
    found: list[Window] = []
    first, last = session_of(from_ns(first_ns)), session_of(from_ns(last_ns))
    for session in desk.calendar.between(first, last):
        opened, closed = to_ns(desk.calendar.open(session)), to_ns(desk.calendar.close(session))
        for starts in range(opened, closed, min(step, closed - opened)):
            ends = min(starts + step, closed)
            if starts < last_ns and ends > first_ns:
                found.append(Window(session, starts, min(ends, last_ns)))
    yield from found[:-1]
    if found:
        yield Window(found[-1].session, found[-1].starts_ns, last_ns)


def _cashflow_kinds(request: Request) -> list[str]:
    named = request.query.get("cashflow_types", "NONE")
    if named == "NONE":
        return []
    kinds = list(OTHERS) if named == "ALL" else named.split(",")
    for kind in kinds:
        if kind not in OTHERS:
            raise bad_field(f"invalid cashflow type {kind!r}")
    return kinds


def _cashflow(
    movements: list[Movement], kinds: list[str], windows: list[Window], first_ns: int
) -> Json:
    """USD of each kind in each window; what came between two windows belongs to the later one."""
    flows: dict[str, list[Decimal]] = {}
    for movement in movements:
        if movement.kind not in kinds or movement.at_ns <= first_ns:
            continue
        place = next((n for n, one in enumerate(windows) if movement.at_ns <= one.ends_ns), None)
        if place is not None:
            row = flows.setdefault(movement.kind, [Decimal(0)] * len(windows))
            row[place] += movement.amount
    return {kind: [float(amount) for amount in row] for kind, row in flows.items()}
