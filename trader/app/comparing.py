"""Two runs beside each other: what was set, what came of it, and which decisions changed where."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from trader.app.context import Context
from trader.app.recorded import Key, RecordedDecision, RecordedRun, RunSide, read_run
from trader.core.canonical import Primitive, to_object
from trader.core.errors import UsageError

SCHEMA_VERSION = 1
LEDGER, PAPER = "ledger.db", "paper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A value that is not the same in both; a setting has its dotted name."""

    name: str
    a: Primitive
    b: Primitive


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number of a column (debate, buy_and_hold, funnel, …) in both; None where one has it not."""

    column: str
    name: str
    a: float | None
    b: float | None
    difference: float | None  # b - a


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChange:
    """A part of a decision that came out differently, in words. count: how many pieces of it."""

    part: str
    a: str
    b: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionChange:
    """One signal that both runs decided about, not in the same way. parts: in the order taken."""

    symbol: str
    strategy: str
    bar_at: str
    as_of: str
    a: str  # cycle ids
    b: str
    verdict_a: str
    verdict_b: str
    changed_first: str
    parts: tuple[PartChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoneDecision:
    """A decision that only one run took, and why the other did not."""

    cycle_id: str
    symbol: str
    strategy: str
    bar_at: str
    as_of: str
    verdict: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareResult:
    """What `trader compare` prints. differences: of the runs; settings: of their settings."""

    schema_version: int
    a: RunSide
    b: RunSide
    nothing_differs: bool
    differences: tuple[Difference, ...]
    settings: tuple[Difference, ...]
    figures: tuple[Figure, ...]
    equal: int
    changed: tuple[DecisionChange, ...]
    only_a: tuple[LoneDecision, ...]
    only_b: tuple[LoneDecision, ...]

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self)


def compare(app: Context, a: str, b: str) -> CompareResult:
    """What differs between two runs, named by run id, `paper`, `archive/N` or a report folder.

    Decisions are the same when evidence, debaters, claims, levels, confidence, flags, verdict and
    size are; the words of models are for people and are not compared. Raises UsageError for a run
    that is not there and StateError for a ledger that cannot be read or was changed.
    """
    known = _known(app.state_dir)
    paths = _path_of(a, known, app.state_dir), _path_of(b, known, app.state_dir)
    one, two = read_run(a, paths[0]), read_run(b, paths[1])
    differences = tuple(_differences(_facts(one.side), _facts(two.side)))
    settings = tuple(_differences(one.settings, two.settings))
    figures = tuple(_figures(one.figures, two.figures))
    both = [key for key in one.decisions if key in two.decisions]
    pairs = ((key, one.decisions[key], two.decisions[key]) for key in both)
    changed = tuple(change for pair in pairs if (change := _change(*pair)) is not None)
    only_a, only_b = tuple(_lone(one, two)), tuple(_lone(two, one))
    same_figures = all(figure.a == figure.b for figure in figures)
    return CompareResult(
        schema_version=SCHEMA_VERSION,
        a=one.side,
        b=two.side,
        nothing_differs=same_figures
        and not (differences or settings or changed or only_a or only_b),
        differences=differences,
        settings=settings,
        figures=figures,
        equal=len(both) - len(changed),
        changed=changed,
        only_a=only_a,
        only_b=only_b,
    )


def _known(state_dir: Path) -> dict[str, Path]:
    """Every ledger of the state folder by its name on the command line."""
    found = {}
    if os.path.isfile(state_dir / LEDGER):
        found[PAPER] = state_dir / LEDGER
    for path in sorted(state_dir.glob(f"archive/*/{LEDGER}")):
        found[f"archive/{path.parent.name}"] = path
    for path in sorted(state_dir.glob(f"reports/[!.]*/{LEDGER}")):
        found[path.parent.name] = path
    return found


def _path_of(name: str, known: Mapping[str, Path], state_dir: Path) -> Path:
    if name in known:
        return known[name]
    folder = os.path.expanduser(name)
    for path in (os.path.join(folder, LEDGER), folder):
        if os.path.isfile(path):
            return Path(path)
    if name == PAPER:
        raise UsageError(
            f"there is no paper account below {state_dir}: `trader run --paper --once` begins one"
        )
    begun = [other for other in known if name and other.startswith(name)]
    near = list(dict.fromkeys([*begun, *get_close_matches(name, known, n=3, cutoff=0.5)]))[:5]
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    elif known:
        hint = f"there are {_few(known, 5)}"
    else:
        hint = "there is none at all; `trader backtest` makes one"
    raise UsageError(f"no run {name[:80]} below {state_dir}, and no report folder: {hint}")


def _facts(side: RunSide) -> dict[str, Primitive]:
    names = ("version", "code_sha256", "source", "cash", "bars_sha256", "first", "last", "slots")
    found = {name: getattr(side, name) for name in (*names, "sizing")}
    return found | {"symbols": ", ".join(side.symbols), "debaters": ", ".join(side.debaters)}


def _differences(a: Mapping[str, Primitive], b: Mapping[str, Primitive]) -> Iterator[Difference]:
    for name in dict.fromkeys((*a, *b)):
        one, two = a.get(name), b.get(name)
        unknown = name == "bars_sha256" and None in (one, two)
        if one != two and not unknown:
            yield Difference(name=name, a=one, b=two)


def _figures(
    a: Mapping[tuple[str, str], float], b: Mapping[tuple[str, str], float]
) -> Iterator[Figure]:
    columns = {column for column, _ in a} & {column for column, _ in b}
    for column, name in dict.fromkeys((*a, *b)):
        # a count that never happened is not written down
        absent = 0.0 if column == "funnel" and column in columns else None
        one, two = a.get((column, name), absent), b.get((column, name), absent)
        difference = None if one is None or two is None else two - one
        yield Figure(column=column, name=name, a=one, b=two, difference=difference)


def _change(key: Key, a: RecordedDecision, b: RecordedDecision) -> DecisionChange | None:
    """What came out differently, in the order in which it is taken; None when nothing did."""
    parts = []
    named = [name for name in {**a.evidence, **b.evidence} if _differs(name, a, b)]
    if named:
        facts = [_facts_in_words(name, a, b) for name in named]
        whose = "" if a.bars == b.bars else "; from other bars"
        said = _few(one for one, _ in facts), _few(two for _, two in facts) + whose
        parts.append(PartChange(part="evidence", a=said[0], b=said[1], count=len(named)))
    for part in ("debaters", "claims", "levels", "confidence", "flags", "verdict", "size"):
        one, two = getattr(a, part), getattr(b, part)
        if isinstance(one, str):
            said, count = (one, two), 1
        else:  # pieces without an order: those that the other one lacks
            lost, won = Counter(one) - Counter(two), Counter(two) - Counter(one)
            said, count = (_few(lost.elements()), _few(won.elements())), lost.total() + won.total()
        if said[0] != said[1]:
            parts.append(PartChange(part=part, a=said[0], b=said[1], count=count))
    if not parts:
        return None
    symbol, strategy, bar_at = key
    return DecisionChange(
        symbol=symbol,
        strategy=strategy,
        bar_at=bar_at,
        as_of=a.as_of,
        a=a.cycle_id,
        b=b.cycle_id,
        verdict_a=a.verdict,
        verdict_b=b.verdict,
        changed_first=parts[0].part,
        parts=tuple(parts),
    )


def _differs(name: str, a: RecordedDecision, b: RecordedDecision) -> bool:
    return a.evidence.get(name) != b.evidence.get(name)


def _facts_in_words(name: str, a: RecordedDecision, b: RecordedDecision) -> tuple[str, str]:
    """The fact on both sides, rounded as far as it still shows a difference."""

    def words(fact: tuple[Any, str, str] | None, digits: int) -> str:
        if fact is None:
            return f"{name} absent"
        value, unit, text = fact
        number = "missing" if value is None else f"{value:.{digits}g}"
        return " ".join(filter(None, (name, number, unit, text)))

    rounded = words(a.evidence.get(name), 6), words(b.evidence.get(name), 6)
    if rounded[0] != rounded[1]:
        return rounded
    return words(a.evidence.get(name), 17), words(b.evidence.get(name), 17)


def _lone(one: RecordedRun, other: RecordedRun) -> Iterator[LoneDecision]:
    for key, decision in one.decisions.items():
        if key not in other.decisions:
            symbol, strategy, bar_at = key
            yield LoneDecision(
                cycle_id=decision.cycle_id,
                symbol=symbol,
                strategy=strategy,
                bar_at=bar_at,
                as_of=decision.as_of,
                verdict=decision.verdict,
                why=other.why_not(key, decision.as_of),
            )


def _few(items: Iterable[str], limit: int = 3) -> str:
    """The first few pieces and how many more there are."""
    listed = list(items)
    more = f" and {len(listed) - limit} more" if len(listed) > limit else ""
    return ", ".join(listed[:limit]) + more
