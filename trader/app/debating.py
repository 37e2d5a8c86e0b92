"""A debate on demand: argue over one symbol at one moment, order nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import numpy as np

from strategies.kernels.dispatch import kernels
from trader.app.assembly import open_account, run_body, run_id_of, starting_cash
from trader.app.context import Context
from trader.app.debaters import Debaters
from trader.core.canonical import Primitive, to_object
from trader.core.decision import Candidate, Debate, Evidence
from trader.core.errors import DataIntegrityError, UsageError
from trader.core.market import from_ns, session_of
from trader.core.ports import DebateListener, Spend
from trader.ledger.store import Ledger
from trader.pipeline.candidates import Prepared
from trader.pipeline.evidence import AccountView
from trader.pipeline.freshness import unfit
from trader.pipeline.slots import Slot, slots_between

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldDebate:
    """One debate with what it was about."""

    candidate: Candidate
    evidence: tuple[Evidence, ...]
    debate: Debate


@dataclass(frozen=True, slots=True, kw_only=True)
class DebateResult:
    """What `trader debate` prints."""

    schema_version: int
    symbol: str
    as_of: datetime
    source: str
    adjustment: str
    notices: tuple[str, ...]
    debates: tuple[HeldDebate, ...]
    spend: Spend

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self)


def debate(
    app: Context, symbol: str, as_of: datetime | None, *, listener: DebateListener | None = None
) -> DebateResult:
    """Debate every enabled strategy that fired in the last slot up to `as_of`, else the first one.

    The account is imagined: all of the configured cash, nothing held. Raises UsageError for an
    unknown symbol and DataIntegrityError when no slot with sound bars lies at or before `as_of`.
    """
    config = app.config
    if config.debate.mode == "off":
        raise UsageError("the debate is switched off: set debate.mode to rules or llm")
    whole = app.data.bars(symbol, app.timeframe)
    moment = as_of or from_ns(whole.available_at[-1])
    slot = _slot_at(app, moment)
    series = app.data.bars(symbol, app.timeframe, slot.as_of)
    problem = unfit(series, app.calendar, slot)
    if problem:
        raise DataIntegrityError(problem)
    cash = starting_cash(config)
    body = run_body(config, symbols=(series.symbol,), source=app.data.name, cash=cash, debated=True)
    debaters = Debaters(config, environ=app.environ, listener=listener)
    deliberation = debaters.deliberation("debate")
    account = open_account(
        config,
        run_id=run_id_of("debate-", body),
        symbols=(series.symbol,),
        data=app.data,
        calendar=app.calendar,
        ledger=Ledger(None),
        kernels=kernels(config.kernels.backend),
        start=slot.as_of,
        cash=cash,
        deliberation=deliberation,
    )
    view = AccountView(portfolio=account.broker.portfolio(), open_buy_value_symbol=Decimal(0))
    prepared = account.cycle.candidates.prepare_all(slot, series, view)
    if not prepared:
        raise DataIntegrityError(
            f"{series.symbol}: {len(series)} bars are too few "
            f"for an ATR of {config.risk.atr_window}"
        )
    fired = [item for item in prepared if item.candidate.fired]
    notices = list(app.data_notices)
    if not fired:
        notices.append(
            f"no strategy fired on {slot.session}; the debate about "
            f"{config.strategies.enabled[0]} is hypothetical and cannot end in GO"
        )

    def held(item: Prepared) -> HeldDebate:
        argued = deliberation.deliberate(item.candidate, item.evidence, item.cycle_id, item.history)
        return HeldDebate(candidate=item.candidate, evidence=item.evidence, debate=argued)

    debates = tuple(held(item) for item in (fired or prepared[:1]))
    return DebateResult(
        schema_version=SCHEMA_VERSION,
        symbol=series.symbol,
        as_of=slot.as_of,
        source=series.source,
        adjustment=series.adjustment,
        notices=tuple(notices),
        debates=debates,
        spend=debaters.spend,
    )


def _slot_at(app: Context, moment: datetime) -> Slot:
    """The newest slot at or before `moment`."""
    day = session_of(moment)
    first = app.calendar.previous(app.calendar.previous(app.calendar.at_or_after(day)))
    times = list(slots_between(app.calendar, app.timeframe, first, day))
    found = int(
        np.searchsorted(
            [slot.as_of.timestamp() for slot in times], moment.timestamp(), side="right"
        )
    )
    if not found:
        raise DataIntegrityError(f"no decision slot lies at or before {moment}")
    return times[found - 1]
