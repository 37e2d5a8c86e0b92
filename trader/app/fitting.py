"""Whether the account of a state folder and this run fit together, before anything is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from trader.app.context import Context
from trader.app.folder import CHECKPOINTS, EXCHANGE, LEDGER, make_folder
from trader.core.config import Config, config_primitives
from trader.core.errors import DataIntegrityError, StateError, UsageError
from trader.core.market import from_ns
from trader.ledger.store import Ledger, Record
from trader.pipeline.slots import Slot, newest_slot, slots_between, usable_until

Usable = Callable[[Record], bool]


def waiting_in(app: Context) -> list[str]:
    """Cycle ids of GOs of the account in the state folder that a person can still answer.

    Raises EndpointError when the broker, whose time counts, cannot be asked.
    """
    if not (app.state_dir / LEDGER).exists():
        return []
    ledger = Ledger(app.state_dir / LEDGER, read_only=True)
    try:
        request = _newest(asked(ledger))
        if request is None:
            return []
        own, now = _own(app, ledger, request)
        return waiting(ledger, usable_at(own, now))
    finally:
        ledger.close()


def waiting(ledger: Ledger, usable: Usable = lambda _: True) -> list[str]:
    """Cycle ids of the unfinished slot whose GO a person was asked about and has not answered."""
    return [
        item.record_id
        for item in asked(ledger)
        if usable(item) and ledger.record("answer", item.record_id) is None
    ]


def usable_at(app: Context, now: datetime | None) -> Usable:
    """Whether what a person was asked can still be decided: its slot may be over.

    now  the broker's time; None: in an embedded market, which waits for the answer
    """

    def usable(request: Record) -> bool:
        if now is None:
            return True
        as_of = datetime.fromisoformat(request.body["request"]["as_of"])
        slot = newest_slot(app.calendar, app.timeframe, as_of)
        return slot is not None and now < usable_until(app.calendar, app.timeframe, slot)

    return usable


def _newest(records: Iterator[Record]) -> Record | None:
    return max(records, key=lambda record: record.seq, default=None)


def _own(app: Context, ledger: Ledger, request: Record) -> tuple[Context, datetime | None]:
    """The place of the run that asked, and the time there; None in an embedded market."""
    begun = ledger.record("run", request.body["run_id"])
    if begun is None:
        raise StateError("the ledger holds a request for approval without its run")
    own = app.under(begun.body["settings"]).trading_at(begun.body)
    if own.config.broker.name == "embedded":
        return own, None
    from trader.app.venue import alpaca_broker

    return own, alpaca_broker(own).clock().now


def asked(ledger: Ledger) -> Iterator[Record]:
    """What a person was asked about the slot that is not finished."""
    last = ledger.last("slot")
    return ledger.since(last.seq if last else 0, "approval")


def as_begun(app: Context) -> tuple[Context, str | None]:
    """The place as the run saw it that asked a person about the slot at hand, and its id.

    Such a slot is finished under that id, whatever the settings and the program are now: under
    another one its debates would be held again, and what was approved would not be what is
    ordered. Where nobody was asked, or that slot is over: the place as it is, and None.
    Raises EndpointError when the broker, whose time counts, cannot be asked.
    """
    if not (app.state_dir / LEDGER).exists():
        return app, None
    ledger = Ledger(app.state_dir / LEDGER, read_only=True)
    try:
        request = _newest(asked(ledger))
        if request is None:
            return app, None
        own, now = _own(app, ledger, request)
        return (own, request.body["run_id"]) if usable_at(own, now)(request) else (app, None)
    finally:
        ledger.close()


def as_traded(app: Context) -> Context:
    """The place with the market and the broker that the account's newest run was begun with.

    A command about the account takes no option that names them. The place as it is where there is
    no account.
    """
    if not (app.state_dir / LEDGER).exists():
        return app
    ledger = Ledger(app.state_dir / LEDGER, read_only=True)
    try:
        begun = ledger.last("run")
    finally:
        ledger.close()
    if begun is None:
        return app
    return app.over(begun.body["settings"]).trading_at(begun.body)


def first_slot(app: Context) -> Slot:
    """The slot at which a new account begins."""
    session = app.calendar.at_or_after(app.config.market.start)
    return slots_between(app.calendar, app.timeframe, session, session)[0]


def require_fitting(app: Context) -> None:
    """Check, before anything is opened for writing, that the account and this run fit together.

    Raises UsageError when the account trades another market, StateError when its files do not
    belong together, DataIntegrityError for bars that are not those it has traded on.
    """
    config = app.config
    require_real_bars(config)
    path = app.state_dir / LEDGER
    begun, last = None, None
    if path.exists():
        ledger = Ledger(path, read_only=True)
        try:
            ledger.verify()
            begun, last = market_of(ledger), ledger.last("slot")
        finally:
            ledger.close()
    simulated = config.broker.name == "embedded"
    if begun is None:
        if simulated:
            _require_nothing_lost(app)
            require_bars(app, first_slot(app).as_of, begun=False)
        return
    mine = market_settings(config_primitives(config), config.broker.name)
    different = [
        f"{name} {begun[name]!r}, now {value!r}"
        for name, value in mine.items()
        if begun.get(name, value) != value
    ]
    if different:
        raise UsageError(
            f"this account was begun with {', '.join(different)}: name the same as before, "
            "or begin again with --restart-market"
        )
    if not simulated:
        return  # the broker keeps its own books; adjusted bars of the past may change
    if not (app.state_dir / EXCHANGE).exists():
        raise StateError(
            f"{app.state_dir / EXCHANGE} is missing, though the ledger knows this account: bring "
            "it back, or begin again with --restart-market"
        )
    # Alpaca adjusts its bars anew after every dividend: there the past is not the same for ever
    if last is not None and config.data.source != "alpaca":
        _require_same_past(app, last.body)


def _require_nothing_lost(app: Context) -> None:
    """A market without its ledger is not begun again in silence: the ledger is made first."""
    if (app.state_dir / EXCHANGE).exists():
        raise StateError(
            f"{app.state_dir / LEDGER} is missing or empty, though {EXCHANGE} knows an account: "
            "bring a backup back with `trader ledger restore`, or begin again with --restart-market"
        )


def require_real_bars(config: Config) -> None:
    """UsageError for orders at Alpaca that would be decided on bars of the past, or on none."""
    source, broker = config.data.source, config.broker
    if broker.name == "alpaca" and broker.base_url is None and source in ("sample", "synthetic"):
        raise UsageError(
            f"orders for Alpaca are not decided on {source} bars, which are not of today: "
            "say --data alpaca, or --broker embedded"
        )


def _require_same_past(app: Context, slot: Mapping[str, Any]) -> None:
    """Refuse bars that tell another past than the one the account has lived through."""
    as_of = datetime.fromisoformat(slot["as_of"])
    for symbol, known in slot["hashes"].items():
        if app.data.bars(symbol, app.timeframe, as_of).sha256 != known:
            raise DataIntegrityError(
                f"the bars of {symbol} up to {as_of:%Y-%m-%d} are not those that this account has "
                "traded on: bring them back, or begin again with --restart-market"
            )


def require_bars(app: Context, as_of: datetime, *, begun: bool) -> None:
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
    if begun is None:
        return None
    return market_settings(begun.body["settings"], begun.body.get("broker", "embedded"))


def market_settings(settings: Mapping[str, Any], broker: str) -> dict[str, Any]:
    """What an account cannot change while it lives, by dotted name."""
    fixed = {
        f"{section}.{name}": value
        for section in ("data", "costs")
        for name, value in settings[section].items()
    }
    return {**fixed, "broker.name": broker}


def put_aside(state_dir: Path) -> Path | None:
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
