"""One decision slot of the paper market: lock, walk, decide, record."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from strategies.kernels.dispatch import kernels
from trader.app.assembly import Account, costs_of, open_account, run_body, run_id_of, starting_cash
from trader.app.context import Context
from trader.app.debaters import Debaters
from trader.app.folder import locked, make_folder
from trader.core.canonical import Primitive, to_object
from trader.core.config import Config, config_primitives
from trader.core.decision import Answer, AwaitedApproval, CycleRecord
from trader.core.errors import (
    ApprovalPendingError,
    ConfigError,
    DataIntegrityError,
    StateError,
    UsageError,
)
from trader.core.market import from_ns
from trader.core.ports import Approvals, DebateListener, Spend
from trader.core.trading import Order, Position
from trader.ledger.book import BookedFill
from trader.ledger.store import Ledger, Record
from trader.orders.journal import OrderJournal
from trader.pipeline.cycle import SlotResult
from trader.pipeline.records import SlotRecord
from trader.pipeline.slots import Slot, next_slot, slots_between

SCHEMA_VERSION = 1
LEDGER, EXCHANGE, CHECKPOINTS = "ledger.db", "exchange.db", "checkpoints.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What `trader run --paper --once` prints.

    slot     None while a GO of it waits for a person
    awaiting  GOs that wait for `trader approve` or `trader reject`
    spend    what model calls used
    """

    schema_version: int
    run_id: str
    market_time: datetime
    simulated: bool
    session: date
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


def run_once(
    app: Context, *, restart_market: bool, listener: DebateListener | None = None
) -> RunResult:
    """Walk the embedded market to its next slot, under the lock of the state folder.

    Nothing is created or moved before configuration, bars and account were found to fit. A slot in
    which a GO still waits for a person is finished by the run that began it; the GO has expired.
    Raises LockHeldError when another run is at work, UsageError when the debate is switched off or
    the account trades another market, DataIntegrityError when the bars end before the next slot or
    are not those that the account has traded on, StateError when its files do not belong together.
    """
    if app.config.debate.mode == "off":
        raise UsageError(
            "trader run never trades without a debate: set debate.mode to rules or llm"
        )
    with locked(app.state_dir):
        notices = []
        if restart_market:
            _require_bars(app, _first_slot(app).as_of, begun=False)
            if kept := _put_aside(app.state_dir):
                notices.append(
                    f"the market begins again; the earlier account was put aside in {kept}"
                )
        app, run_id = _as_begun(app)
        _require_fitting(app)
        # a GO that was kept and not yet shown to a person is shown now: it cannot have expired
        approvals = Approvals(unanswered="expired" if run_id else "waits")
        with paper_account(
            app, approvals=approvals, listener=listener, notices=notices, run_id=run_id
        ) as opened:
            return _walk(app, *opened, approvals, notices, asked=run_id is not None)


def answer_approval(
    app: Context, cycle_id: str, *, approved: bool, listener: DebateListener | None = None
) -> RunResult:
    """Approve or reject a GO that waits, and finish its slot when nothing in it waits any more.

    Raises UsageError when no such GO waits, LockHeldError when another run is at work.
    """
    with locked(app.state_dir):
        waiting = _awaited(app)
        if cycle_id not in waiting:
            known = f"waiting: {', '.join(waiting)}" if waiting else "nothing waits for approval"
            raise UsageError(f"{cycle_id[:80]} does not wait for approval; {known}")
        app, run_id = _as_begun(app)
        _require_fitting(app)
        answers: dict[str, Answer] = {cycle_id: "approved" if approved else "rejected"}
        approvals = Approvals(answers=answers, unanswered="waits")
        notices: list[str] = []
        with paper_account(
            app, approvals=approvals, listener=listener, notices=notices, run_id=run_id
        ) as opened:
            return _walk(app, *opened, approvals, notices, asked=True)


def _awaited(app: Context) -> list[str]:
    """The same of the account in the state folder, where there is one."""
    if not (app.state_dir / LEDGER).exists():
        return []
    ledger = Ledger(app.state_dir / LEDGER, read_only=True)
    try:
        return awaited(ledger)
    finally:
        ledger.close()


def awaited(ledger: Ledger) -> list[str]:
    """Cycle ids of the unfinished slot whose GO a person was asked about and has not answered."""
    return [
        item.record_id for item in _asked(ledger) if ledger.record("answer", item.record_id) is None
    ]


def _asked(ledger: Ledger) -> Iterator[Record]:
    last = ledger.last("slot")
    return ledger.since(last.seq if last else 0, "approval")


def _as_begun(app: Context) -> tuple[Context, str | None]:
    """The place as the run saw it that asked a person about the slot at hand, and its id.

    Such a slot is finished under that id, whatever the settings and the program are now: under
    another one its debates would be held again, and what was approved would not be what is
    ordered. Where nobody was asked: the place as it is, and None.
    """
    if not (app.state_dir / LEDGER).exists():
        return app, None
    ledger = Ledger(app.state_dir / LEDGER, read_only=True)
    try:
        asked = next(_asked(ledger), None)
        if asked is None:
            return app, None
        run_id: str = asked.body["run_id"]
        begun = ledger.record("run", run_id)
    finally:
        ledger.close()
    if begun is None:
        raise StateError("the ledger holds a request for approval without its run")
    return app.under(begun.body["settings"]), run_id


def _first_slot(app: Context) -> Slot:
    """The slot at which a new account begins."""
    session = app.calendar.at_or_after(app.config.market.start)
    return slots_between(app.calendar, app.timeframe, session, session)[0]


def _require_fitting(app: Context) -> None:
    """Check, before anything is opened for writing, that the account and this run fit together."""
    path = app.state_dir / LEDGER
    if not path.exists():
        _require_bars(app, _first_slot(app).as_of, begun=False)
        return
    ledger = Ledger(path, read_only=True)
    try:
        ledger.verify()
        market, last = market_of(ledger), ledger.last("slot")
    finally:
        ledger.close()
    if market is None:
        _require_bars(app, _first_slot(app).as_of, begun=False)
        return
    different = [
        f"{name} {market[name]!r}, now {mine!r}"
        for name, mine in market_settings(config_primitives(app.config)).items()
        if market[name] != mine
    ]
    if different:
        raise UsageError(
            f"this account was begun with {', '.join(different)}: name the same as before, "
            "or begin again with --restart-market"
        )
    if not (app.state_dir / EXCHANGE).exists():
        raise StateError(
            f"{app.state_dir / EXCHANGE} is missing, though the ledger knows this account: bring "
            "it back, or begin again with --restart-market"
        )
    if last is not None:
        _require_same_past(app, last.body)


def _require_same_past(app: Context, slot: Mapping[str, Any]) -> None:
    """Refuse bars that tell another past than the one the account has lived through."""
    as_of = datetime.fromisoformat(slot["as_of"])
    for symbol, known in slot["hashes"].items():
        if app.data.bars(symbol, app.timeframe, as_of).sha256 != known:
            raise DataIntegrityError(
                f"the bars of {symbol} up to {as_of:%Y-%m-%d} are not those that this account has "
                "traded on: bring them back, or begin again with --restart-market"
            )


def _walk(
    app: Context,
    account: Account,
    debaters: Debaters,
    approvals: Approvals,
    notices: list[str],
    *,
    asked: bool,
) -> RunResult:
    """Run the next slot. asked: it was left open on purpose, for a person's answer."""
    slot, cut_short = _next(app, account)
    _require_bars(app, slot.as_of, begun=True)
    if cut_short and not asked:
        notices.append(f"the slot of {slot.session} was cut short; it is finished now")
    if account.ledger.last("slot") is None:
        notices.append(
            "market time is simulated: each call walks the embedded market one decision slot on"
        )
    result: SlotResult | None = None
    waiting: tuple[AwaitedApproval, ...] = ()
    try:
        result = account.cycle.run(slot)
        debaters.forget()
        notices += [
            f"nobody approved {cycle.cycle_id} in time: NO_GO"
            for cycle in result.cycles
            if cycle.debate.approval == "expired"
        ]
    except ApprovalPendingError as exc:
        waiting = exc.requests
        _record_asked(account, waiting, approvals)
    account.ledger.commit()
    portfolio = account.broker.portfolio()
    return RunResult(
        schema_version=SCHEMA_VERSION,
        run_id=account.cycle.run_id,
        market_time=slot.as_of,
        simulated=True,
        session=slot.session,
        source=app.data.name,
        notices=tuple(notices),
        slot=result.slot if result else None,
        awaiting=waiting,
        spend=debaters.spend,
        fills=result.fills if result else (),
        cycles=result.cycles if result else (),
        orders=account.broker.orders(),
        positions=portfolio.positions,
        cash=portfolio.cash,
        equity=portfolio.equity,
        ledger_head=account.ledger.head,
    )


def _record_asked(
    account: Account, waiting: Sequence[AwaitedApproval], approvals: Approvals
) -> None:
    """Keep what a person is asked; and the answer about one GO while another one waits."""
    ledger, run_id = account.ledger, account.cycle.run_id
    requests = {item.cycle_id: item for item in waiting}
    with ledger.transaction():
        for cycle_id, request in requests.items():
            if ledger.record("approval", cycle_id) is None:
                ledger.append("approval", cycle_id, {"run_id": run_id, "request": request})
        for cycle_id, answer in approvals.answers.items():
            if cycle_id not in requests and ledger.record("answer", cycle_id) is None:
                ledger.append("answer", cycle_id, {"run_id": run_id, "answer": answer})


def _next(app: Context, account: Account) -> tuple[Slot, bool]:
    """The first slot that the ledger has not finished, and whether it was begun before.

    The ledger counts, not the exchange's clock: a run that died after moving the clock left a slot
    half done, and its exits must not be lost.
    """
    last = account.ledger.last("slot")
    stands = account.exchange.now()
    finished = datetime.fromisoformat(last.body["as_of"]) if last else account.start
    slot = next_slot(app.calendar, app.timeframe, finished)
    if stands not in (finished, slot.as_of):
        raise StateError(
            f"the exchange stands at {stands} and the ledger at {finished}: these files do not "
            "belong together; bring the right ones back, or begin again with --restart-market"
        )
    return slot, stands == slot.as_of


def _require_bars(app: Context, as_of: datetime, *, begun: bool) -> None:
    """Refuse to walk past the end of every symbol's bars. begun: the account exists already."""
    ends = {
        symbol: app.data.bars(symbol, app.timeframe).available_at[-1] for symbol in app.symbols()
    }
    newest = from_ns(max(ends.values()))
    if as_of <= newest:
        return
    if begun:
        advice = "the market stands there: begin again with --restart-market"
    else:
        advice = f"market.start {app.config.market.start} lies behind: set an earlier one"
    raise DataIntegrityError(
        f"the bars of {app.data.name} end at {newest:%Y-%m-%d %H:%M} UTC, {advice}"
    )


def market_of(ledger: Ledger) -> dict[str, Any] | None:
    """The settings of the market that an account trades; None before it has begun."""
    begun = next(ledger.records("run"), None)
    return None if begun is None else market_settings(begun.body["settings"])


def market_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that an account cannot change while it lives, by dotted name."""
    return {
        f"{section}.{name}": value
        for section in ("data", "costs")
        for name, value in settings[section].items()
    }


@contextmanager
def paper_account(
    app: Context,
    *,
    approvals: Approvals,
    listener: DebateListener | None,
    notices: list[str],
    run_id: str | None = None,
) -> Iterator[tuple[Account, Debaters]]:
    """The paper account of the state folder, opened or begun; closed at the end.

    The caller holds the lock. Models that cannot be asked for want of a setting stop a run that has
    nothing to look after; one with open trades goes on with its exits, and `notices` says so.
    run_id  a run of the ledger that goes on; None: the one of these settings and this program
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
        begun = next(ledger.records("run"), None)
        cash = starting_cash(config) if begun is None else Decimal(begun.body["cash"])
        try:
            deliberation = debaters.deliberation("debate")
        except ConfigError as exc:
            if not _open_trades(ledger, cash, config):
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
        account = open_account(
            config,
            run_id=run_id,
            symbols=app.symbols(),
            data=app.data,
            calendar=app.calendar,
            ledger=ledger,
            kernels=kernels(config.kernels.backend),
            start=_first_slot(app).since,
            cash=cash,
            deliberation=deliberation,
            database=app.state_dir / EXCHANGE,
        )
        yield account, debaters
        account.exchange.close()
    finally:
        debaters.close()
        ledger.close()


def _open_trades(ledger: Ledger, cash: Decimal, config: Config) -> bool:
    """Whether the account holds something whose exit must not wait."""
    journal = OrderJournal(ledger, cash=cash, costs=costs_of(config))
    return bool(journal.book.open_trades())


def _put_aside(state_dir: Path) -> Path | None:
    """Move the account's files to a numbered folder; None when there is no account yet."""
    files = [
        path
        for stem in (LEDGER, EXCHANGE, CHECKPOINTS)
        for path in (state_dir / stem, state_dir / f"{stem}-wal", state_dir / f"{stem}-shm")
        if path.exists()
    ]
    if not files:
        return None
    number = 1
    while (state_dir / "archive" / str(number)).exists():
        number += 1
    kept = make_folder(state_dir / "archive" / str(number))
    for path in files:
        os.rename(path, kept / path.name)
    return kept
