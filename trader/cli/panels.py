"""The debate while it goes on, on stderr: panels on a terminal, one line a turn elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trader.cli import output
from trader.cli.telling import MARKS, levels, said
from trader.core.decision import (
    Argument,
    Candidate,
    Claim,
    Decision,
    Rebuttal,
    RiskFlag,
    Role,
    Verdict,
    Weighing,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.status import Status
    from rich.text import Text

    from trader.core.ports import DebateEvent, DebateListener

WIDEST = 120  # columns; longer lines are hard to read
LONGEST_LINE = 400  # characters of a turn where there is no terminal
COLOURS = {"verified": "green", "contradicted": "red", "unverifiable": "yellow", "unchecked": ""}
SIDES: dict[Role | None, str] = {"bull": "green", "bear": "red", "arbitrator": "cyan", None: ""}


@contextmanager
def watching() -> Iterator[DebateListener | None]:
    """A listener that shows a debate on stderr; None with -q."""
    if output.SPEECH.quiet:
        yield None
    elif sys.stderr.isatty():
        panels = Panels(output.console(sys.stderr))
        try:
            yield panels
        finally:
            panels.rest()
    else:
        yield Lines()


def drawn(listener: DebateListener | None) -> bool:
    """Whether this listener draws what is said on a terminal."""
    return isinstance(listener, Panels)


class Numbers:
    """Claims counted through a debate as its speakers count them: B1, B2 … and R1, R2 …"""

    def __init__(self) -> None:
        self._bull: list[Claim] = []
        self._bear: list[Claim] = []

    def of(self, turn: Argument | Rebuttal) -> list[str]:
        """Numbers of the claims of a turn; the bull's opening begins anew."""
        if isinstance(turn, Argument) and turn.round == 0:
            self._bull, self._bear = [], []
        letter, known = ("B", self._bull) if isinstance(turn, Argument) else ("R", self._bear)
        first = len(known) + 1
        known.extend(turn.claims)
        return [f"{letter}{number}" for number in range(first, len(known) + 1)]

    def attacked(self, words: str) -> str:
        """The number of the bull's claim in these words; empty when it made no such claim."""
        found = [number for number, claim in enumerate(self._bull, 1) if claim.text == words]
        return f"B{found[-1]} " if found else ""


class Listener:
    """What both ways of showing have in common: a terminal that goes away stops no debate."""

    def __init__(self) -> None:
        self.numbers = Numbers()
        self._gone = False

    def __call__(self, event: DebateEvent) -> None:
        """Show one event; nothing more once the stream is closed."""
        if self._gone:
            return
        try:
            self.show(event)
        except OSError:
            self._gone = True

    def show(self, event: DebateEvent) -> None:
        """Show one event."""


class Lines(Listener):
    """One line a turn."""

    def __init__(self) -> None:
        super().__init__()
        self._about = ""

    def show(self, event: DebateEvent) -> None:
        """One line for what was said; none for who begins to speak."""
        text = self._text(event)
        if text:
            output.notice(said(f"{self._about}: {text}", LONGEST_LINE))

    def _text(self, event: DebateEvent) -> str:
        found = event.said
        if isinstance(found, Candidate):
            signal = found.signal
            self._about = f"{signal.symbol} {signal.strategy}"
            return f"{signal.reason}; entry {found.entry_price:,.2f}, stop {found.stop_price:,.2f}"
        if isinstance(found, Argument):
            self.numbers.of(found)
            return f"bull ({_count(found.claims)}): {found.thesis}"
        if isinstance(found, Rebuttal):
            attacked = self.numbers.attacked(found.weakest_claim)
            return (
                f"bear ({_count(found.claims)}) attacks {attacked}“{found.weakest_claim}”: "
                f"{found.counter}"
            )
        if isinstance(found, Weighing):
            return f"arbitrator: {_weighed(found)}: {found.rationale}"
        if isinstance(found, RiskFlag):
            return f"{event.role or 'debate'} failed, {found.code}: {found.detail}"
        if isinstance(found, Verdict):
            return f"verdict {found.rationale}"
        return found or ""


class Panels(Listener):
    """A panel a turn, and who is speaking in between. Call `rest` when it is over."""

    def __init__(self, screen: Console) -> None:
        super().__init__()
        self._screen = screen
        self._status: Status | None = None

    def rest(self) -> None:
        """Take the line that says who is speaking off the terminal."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def show(self, event: DebateEvent) -> None:
        """One panel for what was said, or the line that says who begins to speak."""
        self.rest()
        found = event.said
        if found is None:
            if event.role is not None:
                self._speaking(event.role)
        elif isinstance(found, Candidate):
            self._candidate(found)
        elif isinstance(found, Argument | Rebuttal):
            self._turn(found)
        elif isinstance(found, Weighing):
            words = [_text(found.rationale)]
            self._panel(f"ARBITRATOR weighs: {_weighed(found)}", words, SIDES["arbitrator"])
        elif isinstance(found, RiskFlag):
            who = (event.role or "debate").upper()
            self._panel(f"{who} failed: {found.code}", [_text(found.detail)], "yellow")
        elif isinstance(found, Verdict):
            self._verdict(found)
        else:
            self._screen.print(_text(f"· {found}", style="bold"))

    def _speaking(self, role: Role) -> None:
        # drawn with ASCII, which every terminal has
        self._status = self._screen.status(_text(f"{role} is speaking…"), spinner="line")
        self._status.start()

    def _candidate(self, candidate: Candidate) -> None:
        signal, who = candidate.signal, candidate.instrument
        known = ", ".join(filter(None, (who.name, who.exchange, who.currency)))
        risk = candidate.entry_price - candidate.stop_price
        self._panel(
            f"{signal.symbol} · {known} · {signal.strategy}",
            [
                _text(signal.reason),
                _text(
                    f"entry {candidate.entry_price:,.2f}, stop {candidate.stop_price:,.2f}, "
                    f"at risk {risk:,.2f} a share, as of {signal.as_of:%Y-%m-%d %H:%M} UTC"
                ),
                *([] if candidate.fired else [_text("no signal fired: it cannot end in GO")]),
            ],
            "bold",
        )

    def _turn(self, turn: Argument | Rebuttal) -> None:
        numbers = self.numbers.of(turn)
        which = "opens" if turn.round == 0 else f"in round {turn.round}"
        if isinstance(turn, Argument):
            title = f"BULL {which}"
            body = [
                _text(turn.thesis),
                _text(levels(turn.entry_price, turn.stop_price, turn.target_price)),
            ]
        else:
            title = f"BEAR {which}"
            attacked = self.numbers.attacked(turn.weakest_claim)
            body = [
                _text(f"attacks {attacked}“{turn.weakest_claim}”", style="italic"),
                _text(turn.counter),
            ]
        self._panel(title, [*body, _claims(numbers, turn.claims)], SIDES[turn.stance])

    def _verdict(self, verdict: Verdict) -> None:
        failed = [rule for rule in verdict.rules if not rule.passed]
        codes = {rule.code for rule in failed}
        body = [
            _text(f"{MARKS['contradicted']} {rule.rule}: {rule.value}, wanted {rule.limit}")
            for rule in failed
        ]
        others = [flag for flag in verdict.flags if flag.code not in codes]
        body += [_text(f"{flag.code}: {flag.detail}") for flag in others]
        if not body:
            body.append(_text(verdict.rationale))
        if verdict.entry_price is not None and verdict.stop_price is not None:
            words = levels(verdict.entry_price, verdict.stop_price, verdict.target_price)
            body.append(_text(f"{words}, confidence {verdict.confidence:.2f}"))
        passed = f"{len(verdict.rules) - len(failed)} of {len(verdict.rules)} rules pass"
        colour = "bold green" if verdict.decision is Decision.GO else "bold red"
        self._panel(f"{verdict.decision} {verdict.symbol} · {passed}", body, colour)

    def _panel(self, title: str, body: Sequence[RenderableType], style: str) -> None:
        from rich.console import Group
        from rich.panel import Panel

        drawn = Panel(
            Group(*body),
            title=_text(title, style=style),
            title_align="left",
            border_style=style,
            width=min(self._screen.width, WIDEST),
        )
        self._screen.print(drawn, soft_wrap=False)


def _text(words: str, *, style: str = "") -> Text:
    """Words as they stand, never as markup; they may be a model's."""
    from rich.text import Text

    return Text(said(words), style=style, overflow="fold")


def _claims(numbers: Sequence[str], claims: Sequence[Claim]) -> RenderableType:
    """Each claim with its number and mark, and what the checker found where it is not true."""
    from rich.table import Table

    drawn = Table.grid(padding=(0, 1))
    drawn.add_column(no_wrap=True, justify="right")
    drawn.add_column(no_wrap=True)
    drawn.add_column(overflow="fold")
    for number, claim in zip(numbers, claims, strict=True):
        why = "" if claim.status == "verified" else f" ({claim.status}: {claim.detail})"
        mark = _text(MARKS[claim.status], style=COLOURS[claim.status])
        drawn.add_row(_text(number), mark, _text(claim.text + why))
    return drawn


def _count(claims: Sequence[Claim]) -> str:
    verified = sum(claim.status == "verified" for claim in claims)
    return f"{verified} of {len(claims)} claims verified"


def _weighed(weighing: Weighing) -> str:
    on = ", ".join(weighing.decisive) or "nothing"
    return f"{weighing.decision} at {weighing.confidence:.2f}, rests on {on}"
