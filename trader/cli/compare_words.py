"""Two runs beside each other in words and tables: settings, columns, decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from trader.cli.output import lines, percent, table, usd

if TYPE_CHECKING:
    from trader.app.comparing import (
        CompareResult,
        DecisionChange,
        Difference,
        Figure,
        LoneDecision,
    )
    from trader.app.recorded import RunSide

COLUMNS = {"buy_and_hold": "buy & hold"}
MOST = 20  # decisions told one by one; the JSON has all
NAMING = {"models.model", "models.base_url"}
SHARES = {"total_return", "annual_return", "max_drawdown", "hit_rate", "exposure"}
MONEY = {"initial_equity", "final_equity", "costs"}


def tell_compare(result: CompareResult) -> None:
    """What differs, from the settings down to single decisions."""
    lines(_side("A", result.a), _side("B", result.b), "")
    if result.nothing_differs:
        exact = result.a.ledger_head == result.b.ledger_head
        again = ": the ledgers are the same to the last bit" if exact else ""
        lines(f"nothing differs{again}")
        return
    _differences("run", result.differences)
    _settings(result.settings)
    _figures(result.figures)
    _decisions(result)


def _side(letter: str, side: RunSide) -> str:
    debaters = ", ".join(side.debaters) or "nobody yet"
    return (
        f"{letter}  {side.run_id}: {side.source} {', '.join(side.symbols)}, "
        f"{side.first or 'no slot'} to {side.last or 'now'}, {_count(side.slots, 'slot')}, "
        f"{_count(side.decisions, 'decision')}, debated by {debaters}"
    )


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _settings(found: Sequence[Difference]) -> None:
    """Settings that differ; of models that only one run had, the ones that name them."""
    of_models = [item for item in found if item.name.startswith("models.")]
    letter = "A" if all(item.b is None for item in of_models) else "B"
    lone = letter == "A" or all(item.a is None for item in of_models)
    if not lone or "models.model" not in {item.name for item in of_models}:
        _differences("settings", found)
        return
    left_out = [item for item in of_models if item.name not in NAMING]
    _differences("settings", [item for item in found if item not in left_out])
    if left_out:
        one = len(left_out) == 1
        told = ("stands", "it") if one else ("stand", "them")
        more = _count(len(left_out), "more setting")
        lines(f"{more} of the models {told[0]} only in {letter}; --json has {told[1]}", "")


def _differences(title: str, found: Iterable[Difference]) -> None:
    rows = [
        (item.name, *(_value(item.name, value) for value in (item.a, item.b))) for item in found
    ]
    if rows:
        table("", (title, "A", "B"), rows, left=range(3))


def _value(name: str, value: object) -> str:
    if name.endswith("sha256") and value is not None:
        return str(value)[:12]
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)


def _figures(found: Sequence[Figure]) -> None:
    columns = dict.fromkeys(figure.column for figure in found)
    alone: dict[str, list[str]] = {"A": [], "B": [], "both": []}
    for column in columns:
        own = [figure for figure in found if figure.column == column]
        if all(figure.a == figure.b for figure in own):
            alone["both"].append(column)
        elif all(figure.a is None for figure in own):
            alone["B"].append(column)
        elif all(figure.b is None for figure in own):
            alone["A"].append(column)
    told = {column for names in alone.values() for column in names}
    rows = [
        (
            _column(item.column),
            item.name.replace("_", " ").replace(".", ", "),
            *(_figure(item.name)(value) for value in (item.a, item.b, item.difference)),
        )
        for item in found
        if item.column not in told and item.a != item.b
    ]
    if rows:
        table("", ("column", "figure", "A", "B", "B − A"), rows, left=(0, 1))
    for where, names in alone.items():
        if names:
            words = "the same in both" if where == "both" else f"only in {where}"
            lines(f"{words}: {', '.join(map(_column, names))}", "")


def _column(key: str) -> str:
    return COLUMNS.get(key, key.replace("_", " "))


def _figure(name: str) -> Callable[[float | None], str]:
    if name in SHARES:
        return percent
    if name in MONEY:
        return usd
    return _plain


def _plain(value: float | None) -> str:
    if value is None:
        return "n/a"
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.4g}"


def _decisions(result: CompareResult) -> None:
    lines(
        f"decisions  {result.equal} equal, {len(result.changed)} changed, "
        f"{len(result.only_a)} only in A, {len(result.only_b)} only in B"
    )
    if result.changed:
        firsts = Counter(change.changed_first for change in result.changed)
        lines(f"changed first  {', '.join(f'{part} {n}' for part, n in firsts.most_common())}")
    for change in result.changed[:MOST]:
        _change(change)
    _rest(result.changed)
    for letter, found in (("A", result.only_a), ("B", result.only_b)):
        _alone(letter, "B" if letter == "A" else "A", found)


def _change(change: DecisionChange) -> None:
    verdicts = (
        f"{change.verdict_a} in both"
        if change.verdict_a == change.verdict_b
        else f"{change.verdict_a} → {change.verdict_b}"
    )
    lines(
        "",
        f"{_when(change.bar_at)} {change.symbol} {change.strategy}: {verdicts}, "
        f"changed first in {change.changed_first}",
    )
    for part in change.parts:
        short = len(part.a) + len(part.b) <= 60
        if short:
            lines(f"  {part.part:<10}  {part.a or 'none'} → {part.b or 'none'}")
        else:
            lines(f"  {part.part:<10}  A {part.a or 'none'}", f"{'':<12}  B {part.b or 'none'}")


def _alone(letter: str, other: str, found: tuple[LoneDecision, ...]) -> None:
    if not found:
        return
    table(
        "",
        (f"only in {letter}", "symbol", "strategy", "verdict", f"in {other}"),
        [
            (_when(item.bar_at), item.symbol, item.strategy, item.verdict, item.why)
            for item in found[:MOST]
        ],
        left=range(5),
    )
    _rest(found)


def _when(moment: str) -> str:
    return moment[:16].replace("T", " ")


def _rest(found: tuple[object, ...]) -> None:
    if len(found) > MOST:
        lines("", f"and {len(found) - MOST} more; --json has all of them")
