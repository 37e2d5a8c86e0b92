"""What an audit finds: one line for each test, and every decision that changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from trader.core.canonical import Primitive, canonical_json, to_primitive
from trader.core.decision import CycleRecord, Debate, Decision, Evidence
from trader.core.flags import FlagCode

NO_ANSWER = frozenset(
    {
        FlagCode.ENDPOINT_FAILURE,
        FlagCode.TIMED_OUT,
        FlagCode.REFUSED_REPLY,
        FlagCode.TRUNCATED_REPLY,
        FlagCode.INVALID_REPLY,
        FlagCode.BUDGET_EXHAUSTED,
        FlagCode.NOT_CONVERGED,
    }
)
ROUNDING = 1e-9  # relative; figures that were only rescaled agree to this
SAME_QUESTION = "another answer to the same question"
SHOWN_FACTS = 3  # names of changed facts in one line

Status = Literal["passed", "leak", "unstable", "statement", "not applicable", "incomplete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A decision that changed although it should not have."""

    cycle_id: str
    as_of: datetime
    symbol: str
    strategy: str
    before: str
    after: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakTest:
    """One test of the lab.

    passed          nothing changed that should not have
    leak            something did
    unstable        a model gave another answer to the very same question, which proves no leak
    statement       two numbers for a person to judge
    not applicable  there was nothing to test
    incomplete      nothing changed, but some debates got no answer and prove nothing

    of          what was checked: decisions, slots, facts
    unanswered  debates that failed, before or after the change; neither equal nor changed
    """

    name: str
    question: str
    status: Status
    of: str
    checked: int
    changed: int
    unanswered: int
    detail: str
    changes: tuple[Changed, ...]


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts one test while it goes on."""

    checked: int = 0
    unanswered: int = 0
    changes: list[Changed]

    def note(self, record: CycleRecord, after: Debate | None, detail: str) -> None:
        """Count one decision; it has changed when `detail` says how."""
        self.checked += 1
        if detail:
            again = "another case" if after is None else str(after.verdict.decision)
            self.changes.append(changed(record, str(record.debate.verdict.decision), again, detail))

    def compare(
        self, record: CycleRecord, again: Debate, how: Callable[[Debate, Debate], str]
    ) -> None:
        """Count one decision that was debated again. how: two debates -> what differs."""
        if without_answer(again):
            self.unanswered += 1
        else:
            self.note(record, again, how(record.debate, again))

    def finished(
        self, name: str, question: str, *, of: str = "decisions", nothing: str
    ) -> LeakTest:
        """The line of the test. nothing: why there was nothing to check, where that is so."""
        if self.changes:
            fickle = all(change.detail.startswith(SAME_QUESTION) for change in self.changes)
            status: Status = "unstable" if fickle else "leak"
        elif self.unanswered:
            status = "incomplete"
        else:
            status = "passed" if self.checked else "not applicable"
        return LeakTest(
            name=name,
            question=question,
            status=status,
            of=of,
            checked=self.checked,
            changed=len(self.changes),
            unanswered=self.unanswered,
            detail=nothing if status == "not applicable" else "",
            changes=tuple(self.changes),
        )


def changed(record: CycleRecord, before: str, after: str, detail: str) -> Changed:
    """The line of one changed decision."""
    return Changed(
        cycle_id=record.cycle_id,
        as_of=record.as_of,
        symbol=record.symbol,
        strategy=record.strategy,
        before=before,
        after=after,
        detail=detail,
    )


def by_model(debate: Debate) -> bool:
    """Whether a model spoke; the same question may then get a reply in other words."""
    return bool(debate.calls)


def without_answer(debate: Debate) -> bool:
    """Whether the debate failed: such a NO_GO says nothing about the agent."""
    flags = (*debate.verdict.flags, *(debate.hearing.verdict.flags if debate.hearing else ()))
    return bool(debate.fallback) or any(flag.code in NO_ANSWER for flag in flags)


def same_words(before: Debate, after: Debate) -> str:
    """How two debates about the same question differ, bit for bit; empty where they do not.

    A model is held to its decision only. Ids, which derive from the name of the case, may differ.
    """
    outcome = same_outcome(before, after)
    if by_model(before):
        return f"{SAME_QUESTION}: {outcome}" if outcome else ""
    if outcome:
        return outcome
    first, second = (canonical_json(_without_ids(to_primitive(held))) for held in (before, after))
    return "" if first == second else "the same evidence is argued in other words"


def same_outcome(before: Debate, after: Debate) -> str:
    """How two decisions differ: GO or NO_GO, and without a model the figures behind it."""
    first, second = before.verdict, after.verdict
    if first.decision is not second.decision:
        flags = ", ".join(str(flag.code) for flag in (*second.flags, *first.flags))
        return f"{first.decision} became {second.decision} ({flags})"
    if by_model(before):
        return ""
    for name in ("confidence", "reward_risk_ratio", "expected_value_r"):
        left, right = getattr(first, name), getattr(second, name)
        if not _close(left, right):
            return f"{name} {_shown(left)} became {_shown(right)}"
    return ""


def same_on_facts(before: Debate, after: Debate) -> str:
    """How two decisions before the hearing differ: it may take a GO away for any text."""
    first, second = _on_facts(before), _on_facts(after)
    return "" if first is second else f"on facts alone {first} became {second}"


def different_facts(before: Sequence[Evidence], after: Sequence[Evidence]) -> str:
    """Names of the facts that are not the same, bit for bit; empty where all are."""
    if canonical_json(before) == canonical_json(after):
        return ""
    known = {fact.name: canonical_json(fact) for fact in before}
    again = {fact.name: canonical_json(fact) for fact in after}
    names = [name for name in {**known, **again} if known.get(name) != again.get(name)]
    more = f" and {len(names) - SHOWN_FACTS} more" if len(names) > SHOWN_FACTS else ""
    return f"other evidence: {', '.join(names[:SHOWN_FACTS])}{more}"


def share(debates: Iterable[Debate]) -> tuple[int, int]:
    """(GO, all) among those that got an answer."""
    answered = [held.verdict.decision for held in debates if not without_answer(held)]
    return answered.count(Decision.GO), len(answered)


def _on_facts(debate: Debate) -> Decision:
    codes = {flag.code for flag in debate.verdict.flags}
    return Decision.GO if codes <= {FlagCode.FOREIGN_TEXT_AGAINST} else Decision.NO_GO


def _close(left: float | None, right: float | None) -> bool:
    if left is None or right is None:
        return left is right
    return math.isclose(left, right, rel_tol=ROUNDING, abs_tol=ROUNDING)


def _shown(value: float | None) -> str:
    return "missing" if value is None else f"{value:.6g}"


def _without_ids(value: Primitive) -> Primitive:
    if isinstance(value, Mapping):
        return {key: _without_ids(item) for key, item in value.items() if key != "verdict_id"}
    return [_without_ids(item) for item in value] if isinstance(value, list) else value
