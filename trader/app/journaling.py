"""The journal: every kind of record in the ledger, told in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trader.app.context import Context
from trader.app.folder import LEDGER
from trader.app.viewing import NO_ACCOUNT, SCHEMA_VERSION, View
from trader.core.canonical import from_primitive
from trader.core.decision import Decision
from trader.ledger.book import ExitReason
from trader.ledger.controls import Control
from trader.ledger.store import Ledger

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLine:
    """One ledger record in a sentence."""

    seq: int
    kind: str
    record_id: str
    at: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalView(View):
    """What `trader journal` prints, oldest first. verified: records whose hash chain was walked."""

    schema_version: int
    notices: tuple[str, ...]
    lines: tuple[JournalLine, ...]
    verified: int
    ledger_head: str | None


def journal(app: Context, last: int) -> JournalView:
    """The newest `last` records of the account's ledger, each in a sentence."""
    path = app.state_dir / LEDGER
    if not path.exists():
        return JournalView(
            schema_version=SCHEMA_VERSION,
            notices=(NO_ACCOUNT,),
            lines=(),
            verified=0,
            ledger_head=None,
        )
    ledger = Ledger(path, read_only=True)
    try:
        records = list(ledger.records())[-last:] if last > 0 else []
        return JournalView(
            schema_version=SCHEMA_VERSION,
            notices=(),
            lines=tuple(
                JournalLine(
                    seq=record.seq,
                    kind=record.kind,
                    record_id=record.record_id,
                    at=_at(record.body),
                    text=_sentence(record.kind, record.body),
                )
                for record in records
            ),
            verified=ledger.verify(),
            ledger_head=ledger.head,
        )
    finally:
        ledger.close()


def _at(body: Mapping[str, Any]) -> str:
    fill = body.get("fill")
    return str(
        body.get("as_of") or body.get("at") or (fill["filled_at"] if isinstance(fill, dict) else "")
    )


LEFT_BY: Mapping[ExitReason | str, str] = {
    "entry": "bought to open",
    "stop": "sold by the stop",
    "target": "sold at the target",
    "signal": "sold on the exit signal",
    "protection": "sold at market because no stop could stand",
    "other": "sold",
}


def _slot(body: Body) -> str:
    held = ", ".join(f"{quantity} {symbol}" for symbol, quantity in body["positions"].items())
    told = [f"equity {body['equity']}, cash {body['cash']}, holds {held or 'nothing'}"]
    if body.get("problem"):
        told.append(f"nothing could be bought: {body['problem']}")
    for name, words in (("naked", "without a stop"), ("emergencies", "sold at market")):
        told += [f"{trade}: {words}, {why}" for trade, why in body.get(name, {}).items()]
    return "; ".join(told)


def _cycle(body: Body) -> str:
    verdict, risk = body["debate"]["verdict"], body["risk"]
    told = f"{body['symbol']} {body['strategy']}: {verdict['rationale']}"
    if verdict["decision"] != Decision.GO or risk["approved"]:
        return told
    return f"{told} Nothing is bought: {'; '.join(flag['detail'] for flag in risk['reasons'])}"


def _intent(body: Body) -> str:
    intent, why = body["intent"], body.get("reason")
    told = (
        f"{body['purpose']}: {intent['side']} {intent['quantity']} {intent['symbol']}, "
        f"{intent['order_class']} {intent['order_type']}"
    )
    return f"{told}: {why}" if why else told


def _order(body: Body) -> str:
    return f"refused: {body['refusal']}" if body["refusal"] else f"accepted as {body['order_id']}"


def _fill(body: Body) -> str:
    fill = body["fill"]
    return f"{fill['quantity']} {fill['symbol']} at {fill['price']}: {LEFT_BY[body['reason']]}"


def _late_fill(body: Body) -> str:
    fill = body["fill"]
    return f"{fill['quantity']} {fill['symbol']} at {fill['price']}: booked before by an estimate"


def _import(body: Body) -> str:
    if body["order_id"] is not None:
        return f"an order that is not ours: {body['order_id']} in {body['symbol']}"
    return f"{body['quantity']} {body['symbol']} that no order of ours bought, at {body['price']}"


def _activity(body: Body) -> str:
    of = f" of {body['symbol']}" if body["symbol"] else ""
    return f"{body['kind']}{of}: {body['amount']} USD, {body['quantity']} shares"


def _adjustment(body: Body) -> str:
    moved = [f"{quantity} {symbol}" for symbol, quantity in body["quantities"].items()]
    moved.append(f"{body['cash']} USD")
    return f"made equal to the broker: {', '.join(moved)}; {body['reason']}"


def _reconciliation(body: Body) -> str:
    differs = [
        f"{name} {theirs} at the broker, {ours} here"
        for name, (theirs, ours) in body["differences"].items()
    ]
    counted = [
        f"{len(body[name])} {words}"
        for name, words in (
            ("adopted", "orders appeared late"),
            ("estimated", "fills estimated"),
            ("late", "fills came late"),
            ("imported", "not ours"),
            ("activities", "activities"),
        )
        if body[name]
    ]
    return "; ".join([*differs, *counted, *filter(None, [body["problem"]])]) or "compared"


def _reflection(body: Body) -> str:
    chance = "" if body["probability"] is None else f" at a chance of {body['probability']:.0%}"
    planned = "" if body["planned_r"] is None else f", {body['planned_r']:.2f} R were planned"
    return f"{body['symbol']}: {body['realised_r']:+.2f} R realised{planned}{chance}"


SENTENCES: Mapping[str, Callable[[Body], str]] = {
    "run": lambda body: f"{', '.join(body['symbols'])} from {body['source']}, {body['cash']} USD",
    "account": lambda body: f"the broker's account {body['account_id']}",
    "opening": lambda body: f"the session began with {body['equity']} USD",
    "slot": _slot,
    "cycle": _cycle,
    "approval": lambda body: f"a person is asked: {body['request']['rationale']}",
    "answer": lambda body: f"a person answered: {body['answer']}",
    "intent": _intent,
    "order": _order,
    "fill": _fill,
    "late_fill": _late_fill,
    "import": _import,
    "activity": _activity,
    "adjustment": _adjustment,
    "reconciliation": _reconciliation,
    "control": lambda body: from_primitive(Control, body).words,
    "job": lambda body: str(body["outcome"]),
    "reflection": _reflection,
    "restored": lambda body: f"brought back from {body['backup']}, {body['records']} records",
}


def _sentence(kind: str, body: Body) -> str:
    return SENTENCES[kind](body) if kind in SENTENCES else ""
