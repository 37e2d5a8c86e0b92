"""Replay of one decision: from its record, and from the bars where they are at hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from strategies.kernels.dispatch import kernels
from trader.app.assembly import costs_of, limits_of, open_account
from trader.app.context import Context
from trader.app.debaters import Debaters
from trader.app.fitting import waiting
from trader.app.folder import LEDGER
from trader.core.canonical import Primitive, canonical_json, from_primitive, to_object
from trader.core.config import Config
from trader.core.decision import CycleRecord, Debate
from trader.core.errors import RecordingError, StateError, TraderError, UsageError
from trader.core.market import Timeframe
from trader.core.trading import money
from trader.ledger.store import Ledger
from trader.pipeline.evidence import AccountView
from trader.pipeline.history import RecordedHistory
from trader.pipeline.intents import order_intent
from trader.pipeline.slots import next_slot
from trader.risk.gate import review

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One part of a decision, taken again.

    equal   None where it could not be taken again
    detail  says why
    """

    part: str
    equal: bool | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """What `trader replay` prints."""

    schema_version: int
    cycle_id: str
    ledger: str
    record: CycleRecord
    comparisons: tuple[Comparison, ...]
    reproduced: bool

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self)


def replay_cycle(app: Context, cycle_id: str) -> ReplayResult:
    """Take the decision again: evidence from the bars, debate from the evidence, gate from both.

    `reproduced` only when every part was taken again and is equal: a part that could not be, for
    want of the bars, is not reproduced. Raises UsageError when no ledger holds the cycle.
    """
    path, record, run, chain = _find(app.state_dir, cycle_id)
    config = app.under(run["settings"]).config
    comparisons = (
        chain,
        _compare_evidence(app.over(run["settings"]), config, record),
        *_compare_decision(config, record, debated=bool(run["debated"])),
    )
    return ReplayResult(
        schema_version=SCHEMA_VERSION,
        cycle_id=cycle_id,
        ledger=str(path),
        record=record,
        comparisons=comparisons,
        reproduced=all(part.equal for part in comparisons),
    )


def _ledgers(state_dir: Path) -> Iterator[Path]:
    """Every ledger of the state folder: the paper account's, then backtests', then the archived."""
    for pattern in ("ledger.db", "reports/[!.]*/ledger.db", "archive/*/ledger.db"):
        yield from sorted(state_dir.glob(pattern))


def _find(state_dir: Path, cycle_id: str) -> tuple[Path, CycleRecord, dict[str, Any], Comparison]:
    unreadable = []
    for path in _ledgers(state_dir):
        try:
            ledger = Ledger(path, read_only=True)
        except StateError as exc:
            unreadable.append(str(exc))
            continue
        try:
            found = ledger.record("cycle", cycle_id)
            if found is None:
                continue
            record = from_primitive(CycleRecord, found.body)
            run = ledger.record("run", _run_id(record))
            if run is None:
                raise StateError(f"{path} holds the cycle {cycle_id} without its run")
            return path, record, run.body, _verify(ledger)
        finally:
            ledger.close()
    besides = f" ({'; '.join(unreadable)})" if unreadable else ""
    if _waits(state_dir, cycle_id):
        raise UsageError(
            f"{cycle_id} waits for `trader approve` or `trader reject`; it is no decision yet"
        )
    raise UsageError(
        f"no ledger below {state_dir} holds the cycle {cycle_id[:80]}{besides}: `trader journal` "
        "lists the cycles of the paper account, cycles.jsonl those of a backtest"
    )


def _waits(state_dir: Path, cycle_id: str) -> bool:
    """Whether the paper account asked a person about this cycle and has no decision yet."""
    if not (state_dir / LEDGER).exists():
        return False
    try:
        ledger = Ledger(state_dir / LEDGER, read_only=True)
    except StateError:
        return False
    try:
        return cycle_id in waiting(ledger)
    finally:
        ledger.close()


def _run_id(record: CycleRecord) -> str:
    """The run that decided: an account may change its settings, and change them back."""
    return record.cycle_id.split(f"-{record.candidate.signal.bar_at:%Y%m%dT%H%M}-")[0]


def _verify(ledger: Ledger) -> Comparison:
    """Whether the record is one that nobody has changed."""
    try:
        count = ledger.verify()
    except StateError as exc:
        return Comparison(part="ledger", equal=False, detail=str(exc))
    return Comparison(part="ledger", equal=True, detail=f"the chain of {count} records fits")


def _same(part: str, recorded: object, again: object) -> Comparison:
    equal = canonical_json(recorded) == canonical_json(again)
    return Comparison(part=part, equal=equal, detail="bit for bit" if equal else "differs")


def _compare_evidence(app: Context, config: Config, record: CycleRecord) -> Comparison:
    """Evidence computed anew from the bars, if the bars at hand are the recorded ones."""
    timeframe = Timeframe(config.data.timeframe)
    signal = record.candidate.signal
    try:
        series = app.data.bars(record.symbol, timeframe, record.as_of)
    except TraderError as exc:
        return Comparison(part="evidence", equal=None, detail=f"not computed: {exc}")
    if series.sha256 != record.data_hashes[record.symbol]:
        return Comparison(
            part="evidence",
            equal=None,
            detail=(
                f"not computed: the bars of {app.data.name} are not the recorded ones of "
                f"{record.source}"
            ),
        )
    slot = next_slot(app.calendar, timeframe, record.as_of - timedelta.resolution)
    account = open_account(
        config,
        run_id=_run_id(record),
        symbols=(record.symbol,),
        data=app.data,
        calendar=app.calendar,
        ledger=Ledger(None),
        kernels=kernels(config.kernels.backend),
        start=record.as_of,
        cash=money(config.account.cash),
        deliberation=Debaters(config).deliberation("nobody"),
    )
    view = AccountView(
        portfolio=record.risk_inputs.portfolio,
        open_buy_value_symbol=record.open_buy_value_seen,
    )
    again = next(
        (
            item
            for item in account.cycle.candidates.prepare_all(slot, series, view)
            if item.candidate.signal.strategy == signal.strategy
        ),
        None,
    )
    if again is None:
        return Comparison(part="evidence", equal=False, detail="the signal does not fire again")
    return _same("evidence", (record.candidate, record.evidence), (again.candidate, again.evidence))


def _debated_again(config: Config, record: CycleRecord, *, debated: bool) -> Debate:
    """The debate from the record: model replies from the recordings, a person's answer as given."""
    held = record.debate
    calls = (*held.calls, *(held.hearing.calls if held.hearing else ()))
    from agents.debate.concluding import answered

    debaters = Debaters(config, recorded=calls)
    deliberation = debaters.deliberation("debate" if debated else "nobody")
    try:
        again = deliberation.deliberate(
            record.candidate, record.evidence, record.cycle_id, RecordedHistory(held.looked_up)
        )
    finally:
        debaters.close()
    return again if held.approval is None else answered(again, held.approval)


def _compare_decision(
    config: Config, record: CycleRecord, *, debated: bool
) -> tuple[Comparison, ...]:
    try:
        again = _debated_again(config, record, debated=debated)
    except RecordingError as exc:
        return (Comparison(part="transcript", equal=None, detail=f"not debated again: {exc}"),)
    risk = review(
        again.verdict,
        record.risk_inputs,
        limits=limits_of(config),
        costs=costs_of(config),
        target_required=debated,
    )
    intent = order_intent(record.candidate, again, risk) if risk.approved else None
    return (
        # all that was said, the hearing and the calls included; the verdict is the next part
        _same("transcript", replace(record.debate, verdict=again.verdict), again),
        _same("verdict", record.debate.verdict, again.verdict),
        _same("risk decision", record.risk, risk),
        _same("order", record.intent, intent),
    )
