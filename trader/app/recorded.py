"""One recorded run as its ledger holds it: what was set, what came of it, what was decided."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trader.core.canonical import Primitive
from trader.core.errors import StateError
from trader.ledger.store import Ledger, Record

NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
Key = tuple[str, str, str]  # symbol, strategy, opening time of the signal's bar


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSide:
    """One of the two runs.

    bars_sha256  of all bars, where the run knew them from its start; a paper account does not
    first, last  sessions of its first and last slot
    """

    name: str  # as it was asked for
    ledger: str
    ledger_head: str
    run_id: str
    version: str
    code_sha256: str
    source: str
    symbols: tuple[str, ...]
    cash: str
    bars_sha256: str | None
    first: str | None
    last: str | None
    slots: int
    debaters: tuple[str, ...]
    decisions: int
    sizing: str  # "risk", or "all_in" where no gate stood between


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDecision:
    """What is compared of one decision; pieces by name, so that numbering does not matter."""

    cycle_id: str
    as_of: str
    bars: Mapping[str, str]
    evidence: Mapping[str, tuple[Any, str, str]]  # name -> value, unit, text
    debaters: str
    claims: tuple[str, ...]
    levels: str
    confidence: str
    flags: tuple[str, ...]
    verdict: str
    size: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """What is compared of one run.

    settings  by dotted name
    figures   by column and name
    slots     moment of decision -> what was skipped and refused there
    """

    side: RunSide
    settings: Mapping[str, Primitive]
    figures: Mapping[tuple[str, str], float]
    decisions: Mapping[Key, RecordedDecision]
    slots: Mapping[str, Mapping[str, Any]]

    def why_not(self, key: Key, as_of: str) -> str:
        """Why this run did not decide about a signal that the other one decided about."""
        symbol, strategy, _ = key
        slot = self.slots.get(as_of)
        if symbol not in self.side.symbols:
            return f"{symbol} is not among its symbols"
        enabled = self.settings.get("strategies.enabled")
        if isinstance(enabled, list) and strategy not in enabled:
            return f"{strategy} does not look for entries there"
        if slot is None:
            return "it has no slot at that time"
        if symbol in slot["refused"]:
            return str(slot["refused"][symbol])
        skipped = (
            item["reason"]
            for item in slot["skipped"]
            if (item["symbol"], item["strategy"]) == (symbol, strategy)
        )
        return next(skipped, "the signal did not fire")


def _run_of(ledger: Ledger, cycles: Sequence[Mapping[str, Any]]) -> Record | None:
    """The run that decided last: an account may go back to settings that it had before."""
    newest = ledger.last("run")
    if not cycles:
        return newest
    owners = (run for run in ledger.records("run") if _owns(run, str(cycles[-1]["cycle_id"])))
    return next(owners, newest)


def _owns(run: Record, cycle_id: str) -> bool:
    return cycle_id.startswith(f"{run.record_id}-")


def read_run(name: str, path: Path) -> RecordedRun:
    """One run from its ledger, whose chain is walked first.

    The rows are read as they stand, not as today's types: an older program wrote other ones.
    """
    ledger = Ledger(path, read_only=True)
    try:
        ledger.verify()
        slots = [record.body for record in ledger.records("slot")]
        cycles = [record.body for record in ledger.records("cycle")]
        begun = _run_of(ledger, cycles)
        if begun is None:
            raise StateError(f"the ledger {path} holds no run")
        result = ledger.last("result")
        decisions = {_key(body): _decision(body) for body in cycles}
        bars = begun.body.get("data")
        sessions = [slot["session"] for slot in slots]
        side = RunSide(
            name=name,
            ledger=str(path),
            ledger_head=ledger.head,
            run_id=begun.record_id,
            version=begun.body["version"],
            code_sha256=begun.body["code_sha256"],
            source=begun.body["source"],
            symbols=tuple(begun.body["symbols"]),
            cash=begun.body["cash"],
            bars_sha256=bars["sha256"] if bars else None,
            first=begun.body.get("first") or min(sessions, default=None),
            last=begun.body.get("last") or max(sessions, default=None),
            slots=len(slots),
            debaters=tuple(sorted({decision.debaters for decision in decisions.values()})),
            decisions=len(decisions),
            sizing=begun.body.get("sizing", "risk"),
        )
        return RecordedRun(
            side=side,
            settings=dict(_flat(begun.body["settings"])),
            figures=_account(begun.body, slots) if result is None else _result(result.body),
            decisions=decisions,
            slots={
                slot["as_of"]: {"skipped": slot["skipped"], "refused": slot["refused"]}
                for slot in slots
            },
        )
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise StateError(f"the records of {path} are not those of a run: {exc!r}") from exc
    finally:
        ledger.close()


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves of nested mappings with their dotted names."""
    for name, item in value.items():
        if isinstance(item, Mapping):
            yield from _flat(item, f"{prefix}{name}.")
        else:
            yield prefix + name, item


def _numbers(column: str, body: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], float]]:
    for name, value in _flat(body):
        money = isinstance(value, str) and NUMBER.fullmatch(value)
        if money or (isinstance(value, int | float) and not isinstance(value, bool)):
            yield (column, name), float(value)


def _result(body: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """Every number of a backtest's result, the columns first."""
    columns = {key: column for key, column in body["columns"].items() if column is not None}
    others = {
        key: part for key, part in body.items() if key != "columns" and isinstance(part, Mapping)
    }
    parts = [*columns.items(), *others.items()]
    return {key: number for name, part in parts for key, number in _numbers(name, part)}


def _account(body: Mapping[str, Any], slots: list[dict[str, Any]]) -> dict[tuple[str, str], float]:
    """What a paper account has made so far; it stands beside the debate column of a backtest."""
    cash = float(body["cash"])
    equity = float(slots[-1]["equity"]) if slots else cash
    made = {
        "initial_equity": cash,
        "final_equity": equity,
        "total_return": equity / cash - 1.0,
    }
    return dict(_numbers("debate", made))


def _key(body: Mapping[str, Any]) -> Key:
    return body["symbol"], body["strategy"], body["candidate"]["signal"]["bar_at"]


def _decision(body: Mapping[str, Any]) -> RecordedDecision:
    debate, risk = body["debate"], body["risk"]
    verdict, hearing = debate["verdict"], debate.get("hearing")
    names = {fact["evidence_id"]: fact["name"] for fact in body["evidence"]}
    turns = [*debate["arguments"], *debate["rebuttals"]]
    if hearing is not None:
        turns += [*hearing["arguments"], *hearing["rebuttals"]]
    size = f"{risk['quantity']} shares"
    if risk["reasons"]:
        size += f" ({', '.join(reason['code'] for reason in risk['reasons'])})"
    return RecordedDecision(
        cycle_id=body["cycle_id"],
        as_of=body["as_of"],
        bars=body["data_hashes"],
        evidence={
            fact["name"]: (fact["value"], fact["unit"], fact["text"]) for fact in body["evidence"]
        },
        debaters=_debaters(debate),
        claims=tuple(
            f"{turn['stance']}: {_claim(claim, names)}"
            for turn in turns
            for claim in turn["claims"]
        ),
        levels=_levels(verdict, body["candidate"]),
        confidence=f"{verdict['confidence']:g}",
        flags=tuple(flag["code"] for flag in verdict["flags"]),
        verdict=verdict["decision"],
        size=size,
    )


def _claim(claim: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """The checked fields of a claim; its sentence is for people."""
    upper = claim.get("upper_value")
    others = [names.get(key, key) for key in claim["evidence_ids"][1:]]
    return " ".join(
        [
            claim["field"],
            claim["operator"],
            f"{claim['quoted_value']:.12g}" + ("" if upper is None else f" to {upper:.12g}"),
            *([f"({', '.join(others)})"] if others else []),
            *([claim["when"]] if claim.get("when") else []),
            claim["status"],
        ]
    )


def _levels(verdict: Mapping[str, Any], candidate: Mapping[str, Any]) -> str:
    entry, stop = verdict["entry_price"], verdict["stop_price"]
    if entry is None:  # nobody proposed any; the candidate's stand
        entry, stop = candidate["entry_price"], candidate["stop_price"]
    target = verdict["target_price"]
    words = "no target" if target is None else f"target {target:.4f}"
    return f"entry {entry:.4f}, stop {stop:.4f}, {words}"


def _debaters(debate: Mapping[str, Any]) -> str:
    """Who was to debate, and whether rules stepped in; an arbitrator need not have been asked."""
    if debate.get("fallback"):
        models = " / ".join(dict.fromkeys(call["model"] for call in debate.get("calls", ())))
        return f"rules in place of {models or 'models'}"
    return str(debate["debater"])
