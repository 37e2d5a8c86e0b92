"""One decision slot of the paper market: lock, walk, decide, record."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

from strategies.kernels.dispatch import kernels
from trader.app.assembly import Account, open_account, run_body, run_id_of, starting_cash
from trader.app.context import Context
from trader.app.folder import locked, make_folder
from trader.core.canonical import Primitive, to_object
from trader.core.decision import CycleRecord
from trader.core.errors import DataIntegrityError, StateError, UsageError
from trader.core.market import from_ns
from trader.core.trading import Order, Position
from trader.ledger.book import BookedFill
from trader.ledger.store import Ledger
from trader.pipeline.records import SlotRecord
from trader.pipeline.slots import Slot, next_slot, slot_times

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What `trader run --paper --once` prints."""

    schema_version: int
    run_id: str
    market_time: datetime
    simulated: bool
    session: date
    source: str
    notices: tuple[str, ...]
    slot: SlotRecord
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


def run_once(app: Context, *, restart_market: bool) -> RunResult:
    """Walk the embedded market to its next slot, under the lock of the state folder.

    Raises LockHeldError when another run is at work, UsageError when the debate is switched off,
    and DataIntegrityError when the bars end before the next slot.
    """
    if app.config.debate.mode == "off":
        raise UsageError("trader run never trades without a debate: set debate.mode to rules")
    with locked(app.state_dir):
        notices = []
        if restart_market and (kept := _put_aside(app.state_dir)):
            notices.append(f"the market begins again; the earlier account was put aside in {kept}")
        with paper_account(app) as account:
            return _walk(app, account, notices)


def _walk(app: Context, account: Account, notices: list[str]) -> RunResult:
    slot, cut_short = _next(app, account)
    _require_bars(app, slot.as_of)
    if cut_short:
        notices.append(f"the slot of {slot.session} was cut short; it is finished now")
    if not any(account.ledger.records("slot")):
        notices.append(
            "market time is simulated: each call walks the embedded market one decision slot on"
        )
    result = account.cycle.run(slot)
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
        slot=result.slot,
        fills=result.fills,
        cycles=result.cycles,
        orders=account.broker.orders(),
        positions=portfolio.positions,
        cash=portfolio.cash,
        equity=portfolio.equity,
        ledger_head=account.ledger.head,
    )


def _next(app: Context, account: Account) -> tuple[Slot, bool]:
    """The first slot that the ledger has not finished, and whether it was begun before.

    The ledger counts, not the exchange's clock: a run that died after moving the clock left a slot
    half done, and its exits must not be lost.
    """
    last = account.ledger.last("slot")
    begun = account.exchange.now()
    finished = datetime.fromisoformat(last.body["as_of"]) if last else account.start
    slot = next_slot(app.calendar, app.timeframe, finished)
    if begun > slot.as_of:
        raise StateError(
            f"the exchange stands at {begun} and the ledger at {finished}: "
            "these files do not belong together; begin again with --restart-market"
        )
    return slot, begun == slot.as_of


def _require_bars(app: Context, as_of: datetime) -> None:
    """Refuse to walk past the end of every symbol's bars."""
    ends = {
        symbol: app.data.bars(symbol, app.timeframe).available_at[-1] for symbol in app.symbols()
    }
    newest = from_ns(max(ends.values()))
    if as_of > newest:
        raise DataIntegrityError(
            f"the bars of {app.data.name} end at {newest:%Y-%m-%d %H:%M} UTC, "
            "the market stands there: begin again with --restart-market"
        )


@contextmanager
def paper_account(app: Context) -> Iterator[Account]:
    """The paper account of the state folder, opened or begun; closed at the end.

    The caller holds the lock.
    """
    config = app.config
    ledger = Ledger(make_folder(app.state_dir) / "ledger.db")
    try:
        begun = next(ledger.records("run"), None)
        cash = starting_cash(config) if begun is None else Decimal(begun.body["cash"])
        body = run_body(
            config, symbols=app.symbols(), source=app.data.name, cash=cash, debated=True
        )
        run_id = run_id_of("paper-", body)
        if ledger.record("run", run_id) is None:
            ledger.append("run", run_id, body)
        session = app.calendar.at_or_after(config.market.start)
        start = slot_times(app.calendar, app.timeframe, app.calendar.previous(session))[-1]
        account = open_account(
            config,
            run_id=run_id,
            symbols=app.symbols(),
            data=app.data,
            calendar=app.calendar,
            ledger=ledger,
            kernels=kernels(config.kernels.backend),
            start=start,
            cash=cash,
            debated=True,
            database=app.state_dir / "exchange.db",
        )
        yield account
        account.exchange.close()
    finally:
        ledger.close()


def _put_aside(state_dir: Path) -> Path | None:
    """Move the account's files to a numbered folder; None when there is no account yet."""
    files = [
        path
        for stem in ("ledger.db", "exchange.db")
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
