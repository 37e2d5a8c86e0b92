"""One decision slot of the paper account: lock, walk, decide, record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from trader.app.context import Context
from trader.app.fitting import (
    as_begun,
    first_slot,
    put_aside,
    require_bars,
    require_fitting,
    waiting_in,
)
from trader.app.folder import LEDGER, locked
from trader.app.heartbeat import status_of
from trader.app.paper import SCHEMA_VERSION, PaperTrader, RunResult, paper_trader
from trader.core.canonical import Primitive, to_object
from trader.core.decision import Answer
from trader.core.errors import EndpointError, LockHeldError, UsageError
from trader.core.ports import Approvals, DebateListener
from trader.ledger.store import Ledger


def run_once(
    app: Context, *, restart_market: bool, listener: DebateListener | None = None
) -> RunResult:
    """Run the slot that is due, under the lock of the state folder.

    The embedded market is walked to its next slot; at Alpaca the newest slot is run once its moment
    has come, and where none is due the account is only looked after.
    Nothing is created or moved before configuration, bars and account were found to fit. A slot in
    which a GO still waits for a person is finished by the run that began it; the GO has expired.
    Raises LockHeldError when another run is at work, UsageError when the debate is switched off or
    the account trades another market, DataIntegrityError when the bars end before the next slot or
    are not those that the account has traded on, StateError when its files do not belong together.
    """
    require_debate(app)
    with locked(app.state_dir):
        notices: list[str] = []
        if restart_market:
            begin_again(app, notices)
        app, run_id = as_begun(app)
        require_fitting(app)
        # a GO that was kept and not yet shown to a person is shown now: it cannot have expired
        approvals = Approvals(unanswered="expired" if run_id else "waits")
        with paper_trader(
            app, approvals=approvals, listener=listener, notices=notices, run_id=run_id
        ) as trader:
            return _walk(trader, notices, asked=run_id is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecorded:
    """What `trader approve` and `trader reject` print while a daemon holds the account."""

    schema_version: int
    cycle_id: str
    answer: Answer

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self)


def answer_approval(
    app: Context, cycle_id: str, *, approved: bool, listener: DebateListener | None = None
) -> RunResult | AnswerRecorded:
    """Approve or reject a GO that waits, and finish its slot when nothing in it waits any more.

    While a daemon runs the answer is written down, and the daemon goes on with it.
    Raises UsageError when no such GO waits, LockHeldError when another run is at work.
    """
    answer: Answer = "approved" if approved else "rejected"
    try:
        with locked(app.state_dir):
            _require_waiting(app, cycle_id)
            app, run_id = as_begun(app)
            require_fitting(app)
            approvals = Approvals(answers={cycle_id: answer}, unanswered="waits")
            notices: list[str] = []
            with paper_trader(
                app, approvals=approvals, listener=listener, notices=notices, run_id=run_id
            ) as trader:
                return _walk(trader, notices, asked=True)
    except LockHeldError:
        if status_of(app.state_dir).state != "running":
            raise
    _require_waiting(app, cycle_id)
    _record(app, cycle_id, answer)
    return AnswerRecorded(schema_version=SCHEMA_VERSION, cycle_id=cycle_id, answer=answer)


def _require_waiting(app: Context, cycle_id: str) -> None:
    waiting = waiting_in(app)
    if cycle_id not in waiting:
        known = f"waiting: {', '.join(waiting)}" if waiting else "nothing waits for approval"
        raise UsageError(f"{cycle_id[:80]} does not wait for approval; {known}")


def _record(app: Context, cycle_id: str, answer: Answer) -> None:
    """Write an answer into the ledger that a daemon reads."""
    ledger = Ledger(app.state_dir / LEDGER)
    try:
        request = ledger.record("approval", cycle_id)
        run_id = request.body["run_id"] if request else ""
        ledger.append("answer", cycle_id, {"run_id": run_id, "answer": answer})
    finally:
        ledger.close()


def require_debate(app: Context) -> None:
    """Raise UsageError where nobody debates: a paper run never trades without."""
    if app.config.debate.mode == "off":
        raise UsageError(
            "trader run never trades without a debate: set debate.mode to rules or llm"
        )


def begin_again(app: Context, notices: list[str]) -> None:
    """Put the account's files aside, so that the next run begins another one."""
    if app.config.broker.name == "embedded":
        require_bars(app, first_slot(app).as_of, begun=False)
    if kept := put_aside(app.state_dir):
        notices.append(f"the market begins again; the earlier account was put aside in {kept}")


def _without_legs(result: RunResult) -> dict[str, str]:
    """Entries that carry no stop of their own, of coins or parts of a share: id and symbol."""
    intents = [cycle.intent for cycle in result.cycles if cycle.intent is not None]
    bare = [intent for intent in intents if intent.stop_loss_price is None]
    return {intent.client_order_id: intent.symbol for intent in bare}


def _naked_soon(symbols: Iterable[str]) -> list[str]:
    """What a person must know about entries that will be filled when this run has ended."""
    named = ", ".join(sorted(set(symbols)))
    if not named:
        return []
    return [
        f"{named}: the stop is placed by the first run after the entry is filled; "
        "`trader daemon start` looks after it all the time"
    ]


def _walk(trader: PaperTrader, notices: list[str], *, asked: bool) -> RunResult:
    """Run the slot that is due. asked: it was left open on purpose, for a person's answer."""
    slot = trader.due_slot(trader.now())
    if slot is None:
        following = trader.next_slot().as_of
        notices.append(f"no slot is due; the next one is that of {following:%Y-%m-%d %H:%M} UTC")
        return trader.look(notices=notices)
    if trader.cut_short(slot) and not asked:
        notices.append(f"the slot of {slot.session} was cut short; it is finished now")
    if trader.simulated and trader.ledger.last("slot") is None:
        notices.append(
            "market time is simulated: each call walks the embedded market one decision slot on"
        )
    newest = trader.ledger.last("control")
    result = trader.run_slot(slot, notices=notices)
    bare = {} if trader.simulated else _without_legs(result)
    if trader.ledger.last("control") == newest and not bare:
        return result
    try:
        # a person who spoke meanwhile was told that this run sees to it, and an entry without legs
        # may be filled already
        trader.watch()
        seen = trader.look()
    except EndpointError:  # the slot is done; what is wanted still stands in the ledger
        return replace(result, notices=(*result.notices, *_naked_soon(bare.values())))
    open_buys = (
        bare[order.client_order_id] for order in seen.orders if order.client_order_id in bare
    )
    return replace(
        result,
        notices=(*result.notices, *_naked_soon(open_buys)),
        orders=seen.orders,
        positions=seen.positions,
        cash=seen.cash,
        equity=seen.equity,
        ledger_head=seen.ledger_head,
    )
