"""The operator's hand: a person may forbid, leave and cancel; nothing here can enter.

Every word is in the ledger before anything acts on it. The lock of the state folder is not needed
for that, so that a running daemon hears it; where none runs, it is carried out at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from trader.app.assembly import costs_of
from trader.app.context import Context
from trader.app.fitting import as_begun, as_traded, first_slot, require_fitting
from trader.app.folder import LEDGER, locked
from trader.app.paper import paper_trader
from trader.app.viewing import NO_ACCOUNT
from trader.core.canonical import Primitive, to_object
from trader.core.clock import SystemClock
from trader.core.errors import LockHeldError, StateError, TraderError, UsageError
from trader.core.ports import Approvals
from trader.ledger.controls import Control, Controls
from trader.ledger.store import Ledger, Record
from trader.orders.journal import OrderJournal

SCHEMA_VERSION = 1
LONGEST_REASON = 500
Order = Literal["halt", "resume", "pause", "unpause", "close", "cancel", "acknowledge"]
ACTED_ON: tuple[Order, ...] = ("halt", "close", "cancel", "acknowledge")


@dataclass(frozen=True, slots=True, kw_only=True)
class Controlled:
    """What a person's word came to.

    outcome  of what was to be carried out; empty while that is open
    """

    schema_version: int
    control: Control
    words: str
    outcome: str
    notices: tuple[str, ...]

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self)


def control(
    app: Context,
    order: Order,
    *,
    target: str | None = None,
    reason: str,
    until: date | None = None,
    force: bool = False,
) -> Controlled:
    """Record what a person orders; carry it out unless a run that holds the folder does.

    target  the symbol to pause, unpause or close (None: all), the order to cancel
    until   a pause ends with the opening of this session; None: with `unpause`
    force   resume on the day of the kill switch

    Raises UsageError where there is no account, nothing of that name or nothing to undo, and
    OrderRefusedError for a resumption that is too early.
    """
    reason = _one_line(reason)
    path = app.state_dir / LEDGER
    if not path.exists():
        raise UsageError(NO_ACCOUNT)
    ledger = Ledger(path)
    try:
        begun = next(ledger.records("run"), None)
        if begun is None:
            raise UsageError(NO_ACCOUNT)
        at = _market_time(app, ledger, begun)
        _require_known(app, ledger, begun, order, target)
        controls = Controls(ledger, now=lambda: at)
        if order == "halt":
            recorded = controls.halt(reason)
        elif order == "resume":
            recorded = controls.resume(reason, force=force)
        elif order == "pause" and until is None:
            recorded = controls.pause(target, reason)
        elif order == "pause":
            sessions = as_traded(app).calendar
            opened = sessions.open(sessions.at_or_after(until or date.max))
            recorded = controls.lock(target, opened, reason)
        elif order == "unpause":
            recorded = controls.unpause(target, reason)
        elif order == "acknowledge":
            recorded = controls.acknowledge(reason)
        else:
            recorded = controls.wish(order, target, reason)
    finally:
        ledger.close()
    notices = _carry_out(app) if order in ACTED_ON else ()
    return Controlled(
        schema_version=SCHEMA_VERSION,
        control=recorded,
        words=recorded.words,
        outcome=_outcome(app, recorded),
        notices=notices,
    )


def _one_line(reason: str) -> str:
    written = " ".join(reason.split())
    if not written or len(written) > LONGEST_REASON:
        raise UsageError(f"--reason wants 1 to {LONGEST_REASON} characters")
    return written


def _market_time(app: Context, ledger: Ledger, begun: Record) -> datetime:
    """The moment as the account counts it; no broker is asked, it may be out of reach."""
    if begun.body.get("broker", "embedded") != "embedded":
        return SystemClock().now()
    last = ledger.last("slot")
    if last is None:
        return first_slot(app.over(begun.body["settings"])).since
    return datetime.fromisoformat(last.body["as_of"])


def _require_known(
    app: Context, ledger: Ledger, begun: Record, order: Order, target: str | None
) -> None:
    """Refuse a symbol or an order that the account has nothing to do with."""
    if order not in ("pause", "unpause", "close", "cancel"):
        return
    costs = costs_of(app.over(begun.body["settings"]).config)
    journal = OrderJournal(ledger, cash=Decimal(begun.body["cash"]), costs=costs)
    if order == "cancel":
        _require_cancelable(ledger, journal, target or "")
        return
    waiting = {journal.intents[key].intent.symbol for key in journal.unsettled()}
    here = sorted({*journal.book.quantities, *waiting})
    if order == "close":
        if target is None and not here:
            raise UsageError("nothing is held or ordered")
        if target is not None and target not in here:
            held = f"there are {', '.join(here)}" if here else "nothing is"
            raise UsageError(f"{target[:20]} is neither held nor ordered; {held}")
        return
    ever = {symbol for run in ledger.records("run") for symbol in run.body["symbols"]}
    traded = {*ever, *app.symbols(), *here}
    if target is not None and target not in traded:
        raise UsageError(
            f"{target[:20]} is neither traded nor held; there are {', '.join(sorted(traded))}"
        )


def _require_cancelable(ledger: Ledger, journal: OrderJournal, order: str) -> None:
    open_still = set(journal.unsettled()) | {
        item.intent.client_order_id for item in journal.unresolved()
    }
    for key, outcome in journal.outcomes.items():
        legs = {outcome.stop_loss_id, outcome.take_profit_id}
        item = journal.intents[key]
        protects = item.purpose == "protection" and order in (key, outcome.order_id)
        if order in legs or protects:
            raise UsageError(
                f"order {order[:80]} protects {item.intent.symbol}: "
                f"`trader close {item.intent.symbol}` leaves the position"
            )
        if order in (key, outcome.order_id):
            if key not in open_still:
                raise UsageError(f"order {order[:80]} is final already")
            return
    if order not in open_still and order not in _imported(ledger):
        raise UsageError(f"there is no order {order[:80]}; `trader orders` lists them")


def _imported(ledger: Ledger) -> Iterator[str]:
    for record in ledger.records("import"):
        if record.body["order_id"] is not None:
            yield record.body["order_id"]


def _carry_out(app: Context) -> tuple[str, ...]:
    """Look after the account once, as a daemon does; what a person should know about it."""
    notices: list[str] = []
    try:
        with locked(app.state_dir):
            app, run_id = as_begun(as_traded(app))
            require_fitting(app)
            with paper_trader(
                app,
                approvals=Approvals(unanswered="waits"),
                listener=None,
                notices=notices,
                run_id=run_id,
                needs_models=False,
            ) as trader:
                trader.watch()
    except LockHeldError:
        notices.append("recorded; the run that holds the state folder carries it out")
    except StateError:
        raise
    except TraderError as exc:
        notices.append(f"recorded; the next run carries it out, now it could not be: {exc}")
    return tuple(notices)


def _outcome(app: Context, recorded: Control) -> str:
    ledger = Ledger(app.state_dir / LEDGER, read_only=True)
    try:
        return Controls(ledger).outcome(recorded.control_id)
    finally:
        ledger.close()
