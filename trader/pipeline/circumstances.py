"""What lies behind an account: its guards, its recent past and its activity, as facts for the gate.

Nothing is decided here. The kill switch and the risk gate decide, from what is gathered here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from trader.core.canonical import from_primitive
from trader.core.clock import SessionCalendar
from trader.core.decision import Circumstances, RiskFlag
from trader.core.errors import DataIntegrityError, EndpointError
from trader.core.flags import FlagCode
from trader.core.market import session_of
from trader.core.ports import Broker
from trader.core.trading import ActivityKind, Order, Portfolio, money
from trader.ledger.controls import Control, Controls
from trader.ledger.store import Ledger
from trader.orders.entries import JournaledIntent
from trader.orders.journal import OrderJournal
from trader.orders.killswitch import Activity, KillSwitch
from trader.pipeline.equity import EquityPast
from trader.risk.gate import RiskLimits

MINUTE = timedelta(minutes=1)
BY_STOP = ("stop", "protection")
LatestPrice = Callable[[str], tuple[float, datetime]]  # USD per share, and when it was known


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a session began with; money in USD.

    transfers  paid in less paid out until then, since the account began
    since      entries are counted from here on; None: all of that date
    """

    equity: Decimal
    transfers: Decimal
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTime:
    """What only an account in real time has.

    now           our own clock
    latest_price  the newest price of a symbol; None where nobody can tell
    """

    now: Callable[[], datetime]
    latest_price: LatestPrice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """How an account in real time stands, as far as only others can tell; what blocks an entry.

    quote_seconds  age of the newest price of a symbol; None in closed hours
    """

    blocks: tuple[RiskFlag, ...] = ()
    quote_seconds: float | None = None
    clock_skew_seconds: float | None = None


class AccountWatch:
    """Watches one account: remembers its equity, asks the kill switch, tells the gate.

    real_time  None where market time is simulated
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        journal: OrderJournal,
        broker: Broker,
        controls: Controls,
        switch: KillSwitch,
        calendar: SessionCalendar,
        limits: RiskLimits,
        real_time: RealTime | None = None,
    ) -> None:
        self._ledger, self._journal, self._broker = ledger, journal, broker
        self.controls, self._switch, self._calendar = controls, switch, calendar
        self._limits, self._real_time = limits, real_time
        self._past = EquityPast.of(ledger)
        self._prices: dict[str, Decimal] = {}  # trade id -> USD per share expected at its entry
        self._stops_at: tuple[datetime, tuple[tuple[str, int], ...]] | None = None

    def look(self, portfolio: Portfolio, at: datetime) -> Control | None:
        """Let the kill switch look at the account; the halt in force, whoever ordered it.

        Raises EndpointError when an account in real time cannot be read.
        """
        opening = self._opening(portfolio.equity, at)
        entries = self._entries(at, opening)
        gained = self._transfers() - opening.transfers
        return self._switch.look(
            Activity(
                equity=portfolio.equity - gained,
                opening=opening.equity,
                entries_in_minute=_in_minute(entries, at),
                entry_value=self._value(entries),
            ),
            at,
        )

    def remember(self, portfolio: Portfolio, session: date) -> None:
        """Keep the equity at a slot of `session`, before decisions are taken in it."""
        self._past.add(session, portfolio.equity, self._transfers())

    def of(
        self,
        symbol: str,
        *,
        at: datetime,
        portfolio: Portfolio,
        buying: Collection[str],
        live: Sequence[Order],
        problem: str = "",
        glance: Glance | None = None,
    ) -> Circumstances:
        """The facts about an entry in `symbol` that is decided at `at`.

        buying   symbols of open buys, those of this slot included
        live     orders open at the broker when the slot began, legs included, flat
        problem  why book and broker could not be compared; empty when they agree
        glance   what `glance` saw; None asks it now
        """
        protections = self._limits.protections
        trading = self._trading_session(at)
        opening = self._opening(portfolio.equity, at)
        entries = self._entries(at, opening)
        stops = self._stops(at, trading)
        known = {order.client_order_id for order in live}
        new = sum(item.intent.client_order_id not in known for item in entries if item.as_of == at)
        taken = {held.symbol for held in portfolio.positions} | set(buying)
        fall, lowest = self._past.fall(protections.drawdown_sessions)
        blocks = [*self.controls.flags(symbol, at)]
        if problem:
            blocks.append(RiskFlag(code=FlagCode.NOT_RECONCILED, detail=problem))
        seen = glance or self.glance(symbol)
        blocks += seen.blocks
        return Circumstances(
            blocks=tuple(blocks),
            symbol_stop_age=next((age for name, age in stops if name == symbol), None),
            stop_ages=tuple(age for _, age in stops),
            drawdown=fall,
            drawdown_age=None if lowest is None else self._age(lowest, trading),
            positions=len(taken),
            opens_position=symbol not in taken,
            entries_in_minute=_in_minute(entries, at),
            entry_value=self._value(entries),
            session_equity=opening.equity,
            open_orders=sum(not order.status.is_final for order in live) + new,
            quote_seconds=seen.quote_seconds,
            clock_skew_seconds=seen.clock_skew_seconds,
        )

    # ---- the session's opening

    def _opening(self, equity: Decimal, at: datetime) -> Opening:
        """What the New York date of `at` began with; what no slot has kept is kept now.

        Where the kill switch was overruled on the same date the loss is counted from there: without
        that it would trip again at once.
        """
        day = session_of(at)
        resumed = self.controls.overruled
        if resumed is not None and session_of(resumed.at) != day:
            resumed = None
        key = f"{day}-{resumed.control_id}" if resumed else f"{day}"
        since = resumed.at if resumed else None
        record = self._ledger.record("opening", key)
        if record is not None:
            return from_primitive(Opening, record.body)
        before = self._past.before(day)
        transfers = self._transfers()
        if resumed is None and before is not None:
            equity, transfers = before.equity, before.transfers
            if self._real_time is None:
                return Opening(equity=equity, transfers=transfers, since=since)
        if resumed is None and self._real_time is not None:
            equity = self._broker.account().last_equity or equity
            last = self._calendar.previous(self._calendar.at_or_after(day))
            if before is not None and before.session < last:  # nobody looked at its close
                transfers = self._transfers_until(self._calendar.close(last))
        opening = Opening(equity=equity, transfers=transfers, since=since)
        self._ledger.append("opening", key, opening)
        return opening

    def _transfers(self) -> Decimal:
        """USD that came or went without being earned: paid in or out, or not to be explained."""
        return self._journal.book.transfers + self._journal.book.corrections

    def _transfers_until(self, moment: datetime) -> Decimal:
        """Those of `_transfers` that came or went up to a moment."""
        found = Decimal(0)
        for record in self._ledger.records("activity", "adjustment"):
            body = record.body
            if datetime.fromisoformat(body["at"]) <= moment:
                if record.kind == "adjustment":
                    found += Decimal(body["transfer"])
                elif body["kind"] == ActivityKind.TRANSFER:
                    found += Decimal(body["amount"])
        return found

    # ---- entries

    def _entries(self, at: datetime, opening: Opening) -> list[JournaledIntent]:
        """Entries decided on the New York date of `at` that the broker did not refuse."""
        day, found = session_of(at), []
        for item in reversed(self._journal.intents.values()):
            if session_of(item.as_of) < day:
                break
            outcome = self._journal.outcomes.get(item.intent.client_order_id)
            refused = outcome is not None and bool(outcome.refusal)
            counted = opening.since is None or item.as_of > opening.since
            if item.purpose == "entry" and counted and not refused:
                found.append(item)
        return found

    def _value(self, entries: Sequence[JournaledIntent]) -> Decimal:
        return sum(
            (item.intent.quantity * self._expected_price(item) for item in entries), Decimal(0)
        )

    def _expected_price(self, item: JournaledIntent) -> Decimal:
        """USD per share that the decision expected to pay."""
        if item.trade_id not in self._prices:
            record = self._ledger.record("cycle", item.trade_id)
            said = record.body["candidate"]["entry_price"] if record else 0
            self._prices[item.trade_id] = money(said)
        return self._prices[item.trade_id]

    # ---- sessions

    def _trading_session(self, at: datetime) -> date:
        """The session in which an order of `at` can first be filled."""
        session = self._calendar.at_or_after(session_of(at))
        return session if at < self._calendar.close(session) else self._calendar.next(session)

    def _age(self, session: date, trading: date) -> int:
        return len(self._calendar.between(session, trading)) - 1

    def _stops(self, at: datetime, trading: date) -> tuple[tuple[str, int], ...]:
        """Symbol and age of every stop that a rule may look at, newest first."""
        if self._stops_at is None or self._stops_at[0] != at:
            rules = self._limits.protections
            furthest = max(rules.cooldown_sessions, rules.stops_sessions + rules.lock_sessions)
            first = trading
            for _ in range(furthest):
                first = self._calendar.previous(first)
            hit = sorted(self._hit_since(first), reverse=True)
            self._stops_at = (
                at,
                tuple((symbol, self._age(session_of(left_at), trading)) for left_at, symbol in hit),
            )
        return self._stops_at[1]

    def _hit_since(self, first: date) -> Iterator[tuple[datetime, str]]:
        for trade in self._journal.book.trades.values():
            left_at = trade.exited_at
            if trade.exit_reason in BY_STOP and left_at and session_of(left_at) >= first:
                yield left_at, trade.symbol

    # ---- real time

    def glance(self, symbol: str) -> Glance:
        """Ask broker and market about an entry in `symbol`; what cannot be read blocks it.

        To be called while no transaction of the ledger is open: an answer may take long, and a
        person who wants to halt would have to wait for it.
        """
        if self._real_time is None:
            return Glance()
        blocks: list[RiskFlag] = []
        now, skew, age = self._real_time.now, None, None
        try:
            account = self._broker.account()
            if account.blocked:
                blocks.append(RiskFlag(code=FlagCode.ACCOUNT_BLOCKED, detail=account.blocked))
            asked = now()
            theirs = self._broker.clock().now
            skew = (theirs - (asked + (now() - asked) / 2)).total_seconds()
        except EndpointError as exc:
            blocks.append(RiskFlag(code=FlagCode.ACCOUNT_BLOCKED, detail=str(exc)))
        moment = now()
        if self._real_time.latest_price and self._calendar.session_at(moment) is not None:
            try:
                _, known_at = self._real_time.latest_price(symbol)
                age = (moment - known_at).total_seconds()
            except (EndpointError, DataIntegrityError) as exc:  # nobody answers, or nobody quotes
                blocks.append(RiskFlag(code=FlagCode.STALE_QUOTE, detail=str(exc)))
        return Glance(blocks=tuple(blocks), quote_seconds=age, clock_skew_seconds=skew)


def _in_minute(entries: Sequence[JournaledIntent], at: datetime) -> int:
    return sum(item.as_of > at - MINUTE for item in entries)


def next_opening(calendar: SessionCalendar, at: datetime) -> datetime:
    """The first opening later than `at`."""
    session = calendar.at_or_after(session_of(at))
    opened = calendar.open(session)
    return opened if at < opened else calendar.open(calendar.next(session))
