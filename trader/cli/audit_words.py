"""An audit in words: one line for each test, then every decision that changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trader.cli.output import day, lines, table
from trader.cli.telling import tell_spend
from trader.core.decision import debater_words

if TYPE_CHECKING:
    from trader.app.auditing import AuditResult, LeakTest

VERDICTS = {
    "passed": "passed",
    "leak": "LEAK",
    "unstable": "UNSTABLE",
    "statement": "for you to judge",
    "not applicable": "not applicable",
    "incomplete": "INCOMPLETE",
}
MOST_CHANGES = 20  # lines of one test; --json has them all


def tell_audit(result: AuditResult) -> None:
    """What was audited, a line for each test, the changes, the outcome."""
    source = result.source
    lines(
        f"PAPER audit of {', '.join(source.symbols)} on {source.name} "
        f"(sha256 {source.sha256[:12]})",
        f"period   {result.first_session} to {result.last_session}, {result.slots} slots",
        f"agent    {', '.join(result.strategies)}; debated by {debater_words(result.debater)}",
        f"sample   {result.audited} of {result.decisions} decisions, taken again by each test",
        "",
    )
    table(
        "",
        ("test", "question", "checked", "changed", "verdict"),
        [
            (
                test.name.replace("_", " "),
                test.question,
                f"{test.checked} {test.of}",
                "" if test.status in ("statement", "not applicable") else str(test.changed),
                _verdict(test),
            )
            for test in result.tests
        ],
        left=(0, 1, 4),
        spare=(1,),
    )
    for test in result.tests:
        _changes(test)
    lines(_outcome(result))
    tell_spend(result.spend)


def _verdict(test: LeakTest) -> str:
    words = VERDICTS[test.status]
    if test.unanswered:
        words += f", {test.unanswered} without an answer"
    return f"{words}: {test.detail}" if test.detail else words


def _changes(test: LeakTest) -> None:
    if not test.changes:
        return
    table(
        f"{test.name.replace('_', ' ')}: changed and should not have",
        ("day", "symbol", "strategy", "was", "became", "how"),
        [
            (
                day(change.as_of),
                change.symbol,
                change.strategy,
                change.before,
                change.after,
                change.detail,
            )
            for change in test.changes[:MOST_CHANGES]
        ],
        left=range(6),
    )
    rest = len(test.changes) - MOST_CHANGES
    if rest > 0:
        lines(f"and {rest} more (--json lists all)", "")


def _outcome(result: AuditResult) -> str:
    leaks = [test.name.replace("_", " ") for test in result.tests if test.status == "leak"]
    if leaks:
        return f"A LEAK: {', '.join(leaks)}. What this agent earned in the past proves nothing."
    if result.leak:
        return "The model gives two answers to one question: its decisions cannot be repeated."
    if not result.complete:
        return "No decision changed, but some debates got no answer: the audit is not complete."
    return "Nothing changed that should not have."
