"""The paper account of a state folder, opened once: what one run and the daemon stand on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

from strategies.kernels.dispatch import kernels
from trader.app.assembly import (
    Account,
    costs_of,
    embedded_exchange,
    open_account,
    run_body,
    run_id_of,
    starting_cash,
)
from trader.app.context import Context
from trader.app.debaters import Debaters
from trader.app.fitting import asked, first_slot, require_bars
from trader.app.folder import CHECKPOINTS, EXCHANGE, LEDGER, make_folder
from trader.core.canonical import Primitive, to_object
from trader.core.clock import SessionCalendar
from trader.core.config import Config
from trader.core.decision import AwaitedApproval, CycleRecord
from trader.core.errors import ApprovalPendingError, ConfigError, EndpointError, StateError
from trader.core.market import Timeframe
from trader.core.ports import Approvals, DebateListener, Spend
from trader.core.trading import Order, Position
from trader.ledger.book import BookedFill
from trader.ledger.store import Ledger
from trader.orders.journal import OrderJournal
from trader.orders.manager import Watched
from trader.orders.wishes import carry_out
from trader.pipeline.cycle import SlotResult
from trader.pipeline.records import SlotRecord
from trader.pipeline.slots import Slot, newest_slot, next_slot

if TYPE_CHECKING:
    from trader.app.venue import LatestPrices, Venue

SCHEMA_VERSION = 1
MOST_STREAMED = 30  # symbols of one connection on Alpaca's free plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What `trader run --paper --once` prints.

    session   None where no slot was due
    slot      None while a GO of it waits for a person, and where none was due
    awaiting  GOs that wait for `trader approve` or `trader reject`
    spend     what model calls used
    """

    schema_version: int
    run_id: str
    market_time: datetime
    simulated: bool
    session: date | None
    source: str
    notices: tuple[str, ...]
    slot: SlotRecord | None
    awaiting: tuple[AwaitedApproval, ...]
    spend: Spend
    fills: tuple[BookedFill, ...]
    cycles: tuple[CycleRecord, ...]
    orders: tuple[Order, ...]
    positions: tuple[Position, ...]
    cash: Decimal
    equity: Decimal
    ledger_head: str

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self)


class PaperTrader:
    """One opened paper account; whoever made it holds the lock of the state folder.

    simulated  the embedded market, whose time is moved by its slots; else the broker's time
    prices     what the stream of bars is told to, where there is one
    """

    def __init__(
        self,
        app: Context,
        *,
        account: Account,
        debaters: Debaters,
        approvals: Approvals,
        prices: LatestPrices | None = None,
    ) -> None:
        self._app, self._debaters, self.approvals = app, debaters, approvals
        self.account, self.ledger, self.prices = account, account.ledger, prices
        self.simulated = account.exchange is not None

    @property
    def calendar(self) -> SessionCalendar:
        """Sessions of what is traded."""
        return self._app.calendar

    @property
    def timeframe(self) -> Timeframe:
        """Length of a bar."""
        return self._app.timeframe

    def streamed(self) -> tuple[str, ...]:
        """Symbols whose bars are worth listening to, as many as one connection may have."""
        return self._app.symbols()[:MOST_STREAMED]

    def now(self) -> datetime:
        """Market time, UTC."""
        if self.account.exchange is not None:
            return self.account.exchange.now()
        return self.account.broker.clock().now

    def finished(self) -> datetime:
        """The moment of the last slot that the ledger has finished, else when the account began."""
        last = self.ledger.last("slot")
        return datetime.fromisoformat(last.body["as_of"]) if last else self.account.start

    def next_slot(self) -> Slot:
        """The first slot that can still be run and that the ledger has not finished.

        Those that have passed are not: in real time, and where a ledger was brought back from a
        backup in an embedded market that has gone on since.
        """
        finished, now = self.finished(), self.now()
        if not self.simulated:
            return next_slot(self.calendar, self.timeframe, max(finished, now))
        following = next_slot(self.calendar, self.timeframe, finished)
        if now > following.as_of and self._brought_back():
            return newest_slot(self.calendar, self.timeframe, now) or following
        return following

    def _brought_back(self) -> bool:
        """Whether the ledger is a backup that has not finished a slot since."""
        restored, last = self.ledger.last("restored"), self.ledger.last("slot")
        return restored is not None and (last is None or last.seq < restored.seq)

    def due_slot(self, now: datetime) -> Slot | None:
        """The slot to run at `now`: in the embedded market the next one, else the newest.

        Older ones have passed: their bars are not the newest any more.
        """
        if self.simulated:
            return self.next_slot()
        newest = newest_slot(self.calendar, self.timeframe, now)
        return newest if newest is not None and newest.as_of > self.finished() else None

    def cut_short(self, slot: Slot) -> bool:
        """Whether the embedded market was moved to this slot already, by a run that died.

        The ledger counts, not the exchange's clock: what that run left half done must not be lost.
        Raises StateError when the exchange stands elsewhere: its file belongs to another ledger.
        """
        if self.account.exchange is None:
            return False
        stands, finished = self.account.exchange.now(), self.finished()
        if not finished <= stands <= slot.as_of:
            raise StateError(
                f"the exchange stands at {stands} and the ledger at {finished}: these files do not "
                "belong together; bring the right ones back, or begin again with --restart-market"
            )
        return stands == slot.as_of

    def run_slot(self, slot: Slot, *, notices: Sequence[str] = ()) -> RunResult:
        """Run one slot, or go on with it; what a person has answered since counts.

        Raises DataIntegrityError when the embedded market's bars end before the slot.
        """
        if self.simulated:
            require_bars(self._app, slot.as_of, begun=True)
        said = list(notices)
        for request in asked(self.ledger):
            answer = self.ledger.record("answer", request.record_id)
            if answer is not None:
                self.approvals.answers[request.record_id] = answer.body["answer"]
        if self.account.controls.wishes():
            try:
                self.watch()  # what a person wanted closed or canceled comes before anything new
            except EndpointError:
                self.account.cycle.leave_unseen(slot)
                raise
        result: SlotResult | None = None
        awaited: tuple[AwaitedApproval, ...] = ()
        try:
            result = self.account.cycle.run(slot)
            self._debaters.forget()
            said += [
                f"nobody approved {cycle.cycle_id} in time: NO_GO"
                for cycle in result.cycles
                if cycle.debate.approval == "expired"
            ]
        except ApprovalPendingError as exc:
            awaited = exc.requests
            self._record_asked(awaited)
        self.ledger.commit()
        return self._result(slot, said, result, awaited)

    def watch(self) -> Watched:
        """Between slots: compare with the broker, then stops, limits and a person's wishes.

        Raises EndpointError when the broker cannot be asked; the next look begins anew.
        """
        account, as_of = self.account, self.finished()
        watched = account.orders.watch(as_of)
        halt = account.watch.look(watched.compared.portfolio, self.now())
        if carry_out(account.controls, account.orders, as_of) or halt is not None:
            watched = account.orders.watch(as_of)  # what that left open has its stop again
        return watched

    def look(self, *, notices: Sequence[str] = ()) -> RunResult:
        """The account as it is, when no slot is due."""
        return self._result(None, notices, None, ())

    def _result(
        self,
        slot: Slot | None,
        notices: Sequence[str],
        result: SlotResult | None,
        awaited: tuple[AwaitedApproval, ...],
    ) -> RunResult:
        portfolio = self.account.broker.portfolio()
        return RunResult(
            schema_version=SCHEMA_VERSION,
            run_id=self.account.cycle.run_id,
            market_time=slot.as_of if slot and self.simulated else portfolio.as_of,
            simulated=self.simulated,
            session=slot.session if slot else None,
            source=self._app.data.name,
            notices=(*notices, *self._app.data_notices),
            slot=result.slot if result else None,
            awaiting=awaited,
            spend=self._debaters.spend,
            fills=result.fills if result else (),
            cycles=result.cycles if result else (),
            orders=self.account.broker.orders(),
            positions=portfolio.positions,
            cash=portfolio.cash,
            equity=portfolio.equity,
            ledger_head=self.ledger.head,
        )

    def _record_asked(self, awaited: Sequence[AwaitedApproval]) -> None:
        """Keep what a person is asked; and the answer about one GO while another one waits."""
        ledger, run_id = self.ledger, self.account.cycle.run_id
        requests = {item.cycle_id: item for item in awaited}
        with ledger.transaction():
            for cycle_id, request in requests.items():
                if ledger.record("approval", cycle_id) is None:
                    ledger.append("approval", cycle_id, {"run_id": run_id, "request": request})
            for cycle_id, answer in self.approvals.answers.items():
                if cycle_id not in requests and ledger.record("answer", cycle_id) is None:
                    ledger.append("answer", cycle_id, {"run_id": run_id, "answer": answer})


@contextmanager
def paper_trader(
    app: Context,
    *,
    approvals: Approvals,
    listener: DebateListener | None,
    notices: list[str],
    run_id: str | None = None,
    needs_models: bool = True,
) -> Iterator[PaperTrader]:
    """The paper account of the state folder, opened or begun; closed at the end.

    The caller holds the lock. Models that cannot be asked for want of a setting stop a run that has
    nothing to look after; one with open trades or orders goes on with them, and `notices` says so.
    run_id        a run of the ledger that goes on; None: that of these settings and this program
    needs_models  False: nothing is to be decided, so that run goes on in any case
    """
    config = app.config
    ledger = Ledger(make_folder(app.state_dir) / LEDGER)
    debaters = Debaters(
        config,
        environ=app.environ,
        listener=listener,
        checkpoints=app.state_dir / CHECKPOINTS,
        approvals=approvals if config.debate.approval else None,
    )
    try:
        venue = _venue(app, ledger)
        notices += venue.broker.notices() if venue is not None else ()
        begun = next(ledger.records("run"), None)
        cash = _starting_cash(config, venue) if begun is None else Decimal(begun.body["cash"])
        try:
            deliberation = debaters.deliberation("debate")
        except ConfigError as exc:
            if needs_models and not _in_hand(ledger, cash, config):
                raise
            deliberation = debaters.without_models(str(exc))
            notices.append(f"no model can be asked, so nothing is bought; exits go on: {exc}")
        if run_id is None:
            body = run_body(
                config, symbols=app.symbols(), source=app.data.name, cash=cash, debated=True
            )
            run_id = run_id_of("paper-", body)
            if ledger.record("run", run_id) is None:
                ledger.append("run", run_id, body)
        start = first_slot(app).since
        opened = partial(
            open_account,
            config,
            run_id=run_id,
            symbols=app.symbols(),
            data=app.data,
            calendar=app.calendar,
            ledger=ledger,
            kernels=kernels(config.kernels.backend),
            start=start,
            cash=cash,
            deliberation=deliberation,
        )
        exchange = None
        if venue is None:
            exchange = embedded_exchange(
                config,
                data=app.data,
                calendar=app.calendar,
                start=start,
                cash=cash,
                database=app.state_dir / EXCHANGE,
            )
            account = opened(exchange=exchange)
        else:
            account = opened(
                broker=venue.broker,
                controls=venue.controls,
                now=venue.now,
                latest_price=venue.prices,
            )
        yield PaperTrader(
            app,
            account=account,
            debaters=debaters,
            approvals=approvals,
            prices=venue.prices if venue is not None else None,
        )
        if exchange is not None:
            exchange.close()
    finally:
        debaters.close()
        ledger.close()


def _venue(app: Context, ledger: Ledger) -> Venue | None:
    """The broker outside this program, or None for the embedded market."""
    if app.config.broker.name == "embedded":
        return None
    from trader.app.venue import Venue

    return Venue(app, ledger)


def _starting_cash(config: Config, venue: Venue | None) -> Decimal:
    """USD that the account begins with: the broker's own where it is not embedded."""
    return starting_cash(config) if venue is None else venue.broker.portfolio().cash


def _in_hand(ledger: Ledger, cash: Decimal, config: Config) -> bool:
    """Whether the account holds or has ordered something: no exit and no cancel must wait."""
    journal = OrderJournal(ledger, cash=cash, costs=costs_of(config))
    return bool(journal.book.open_trades() or journal.unsettled() or journal.unresolved())
