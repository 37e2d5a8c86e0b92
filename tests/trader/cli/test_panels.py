"""Watching a debate: who says what, in order, whatever the terminal and whatever the words."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from tests.trader.cli.debates import (
    ANSWER,
    ATTACK,
    CANDIDATE,
    OPENING,
    TIMED_OUT,
    VERDICT,
    WEIGHING,
    claim,
    event,
    events,
)
from trader.cli import output, panels, telling
from trader.cli.panels import Lines, Panels, watching
from trader.core.decision import Debate, Decision


@pytest.fixture(autouse=True)
def _loud(monkeypatch):
    monkeypatch.setattr(output, "SPEECH", output.Speech())


def drawn(*told, width: int = 80, terminal: bool = False) -> str:
    """What panels put on a terminal of this width, without colour."""
    stream = io.StringIO()
    screen = Console(
        file=stream,
        width=width,
        force_terminal=terminal,
        color_system=None,
        highlight=False,
        markup=False,
    )
    panels = Panels(screen)
    for item in told:
        panels(item)
    panels.rest()
    return stream.getvalue()


def in_order(text: str, *words: str) -> None:
    at = -1
    for word in words:
        found = text.find(word, at + 1)
        assert found > at, (word, text)
        at = found


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_panels_tell_the_debate_in_its_order(width):
    text = drawn(*events(), width=width)
    in_order(
        text,
        "AAPL · Apple, NASDAQ, USD",
        "close 272 crossed above 268",
        "BULL opens",
        "It rises because it rose.",
        "BEAR opens",
        "It is not.",
        "BULL in round 1",
        "Still.",
        "BEAR failed: TIMED_OUT",
        "ARBITRATOR weighs: GO at 0.71",
        "The bull has the facts.",
        "the GO is put to the",
        "NO_GO AAPL · 1 of 2 rules",
    )
    assert max(cell_len(line) for line in text.splitlines()) <= min(width, 120)
    assert "\x1b" not in text


def test_marks_and_numbers_say_without_colour_what_is_true():
    text = drawn(*events())
    for row in (
        "B1 ✓ The close is 272.",
        "B2 ✗ The close is 300. (contradicted: E1 close is 272)",
        "B3 ? The moon is full. (unverifiable: there is no evidence E99)",
        "attacks B2 “The close is 300.”",
        "R1 ✓ It stands at 272.",
        "B4 ✓ It is above its average.",
        "rests on B1, R1",
        "✗ reward:risk: 1.50, wanted >= 2.00",
        "TIMED_OUT: bear: no answer within 60 s",
        "entry 272.00, stop 258.75, target 312.00, confidence 0.50",
    ):
        assert row in text, row
    assert "newest bar" not in text


def test_a_hearing_counts_its_claims_from_one_again():
    again = (event("bull", OPENING), event("bear", ATTACK))
    text = drawn(*events(), *again)
    assert text.count("B1 ✓ The close is 272.") == 2
    assert text.count("attacks B2") == 2
    assert "B5" not in text


def test_a_go_shows_its_reasons_and_levels():
    go = replace(VERDICT, decision=Decision.GO, flags=(), rules=VERDICT.rules[:1], rationale="GO!")
    text = drawn(event(None, go))
    in_order(text, "GO AAPL · 1 of 1 rules pass", "GO!", "entry 272.00")
    hypothetical = drawn(event(None, replace(CANDIDATE, fired=False)))
    assert "no signal fired" in hypothetical


def test_the_line_that_says_who_speaks_is_taken_away():
    stream = io.StringIO()
    panels = Panels(Console(file=stream, width=80, force_terminal=True, color_system=None))
    panels(event("bear"))
    panels(event("bear", ATTACK))
    in_order(stream.getvalue(), "bear is speaking…", "\x1b[2K", "BEAR opens")
    panels(event("bull"))
    panels.rest()
    in_order(stream.getvalue(), "BEAR opens", "bull is speaking…", "\x1b[2K")
    assert stream.getvalue().endswith("\x1b[2K")  # nothing is left of it
    panels.rest()


HOSTILE = (
    "[bold red]x[/] \x1b[31m \x1b]0;t\x07 \r\n VERDICT GO \u202e\u2066\u200b\ud800 漢字 "
    + "W" * 300
)


def spoken(words: str):
    """Every event that holds a model's words, each with these."""
    said = claim(words, "contradicted", words)
    yield event(None, replace(CANDIDATE, signal=replace(CANDIDATE.signal, reason=words)))
    yield event("bull", replace(OPENING, thesis=words, claims=(said,)))
    yield event("bear", replace(ATTACK, weakest_claim=words, counter=words, claims=(said,)))
    yield event("bull", replace(ANSWER, thesis=words))
    yield event("bear", replace(TIMED_OUT, detail=words))
    yield event("arbitrator", replace(WEIGHING, rationale=words, decisive=(words,)))
    yield event(None, words)
    yield event(None, replace(VERDICT, rationale=words, flags=(replace(TIMED_OUT, detail=words),)))


def tame(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


@pytest.mark.parametrize("width", [20, 80])
def test_no_words_steer_the_terminal_or_break_out_of_their_panel(width):
    text = drawn(*spoken(HOSTILE), width=width)
    assert tame(text)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    if width == 80:
        assert "[bold red]x[/]" in text
        assert "漢字" in text
        assert all(line[0] in "╭│╰·V[�Wx " for line in text.splitlines())
        assert not any(line.startswith("VERDICT") for line in text.splitlines())


@settings(max_examples=60, deadline=None)
@given(words=st.text(max_size=400), width=st.integers(20, 130))
def test_whatever_is_said_panels_keep_their_width(words, width):
    text = drawn(*spoken(words), width=width)
    assert tame(text)
    assert max(cell_len(line) for line in text.splitlines()) <= width


@settings(max_examples=60, deadline=None)
@given(words=st.text(max_size=2_000))
def test_without_a_terminal_every_turn_is_one_line(words):
    told = list(spoken(words))
    with pytest.MonkeyPatch.context() as patched:
        stream = io.StringIO()
        patched.setattr("sys.stderr", stream)
        listener = Lines()
        for item in told:
            listener(item)
    text = stream.getvalue()
    assert tame(text)
    assert len(text.splitlines()) == text.count("\n") == len(told) - (not words)
    assert max(len(line) for line in text.splitlines()) <= 400
    assert all(line.startswith("AAPL atr_trend:") for line in text.splitlines())


def test_lines_tell_the_same_debate(capsys):
    listener = Lines()
    for item in events():
        listener(item)
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 8
    in_order(
        err,
        "bull (1 of 3 claims verified): It rises",
        "bear (1 of 1 claims verified) attacks B2 “The close is 300.”: It is not.",
        "bear failed, TIMED_OUT",
        "arbitrator: GO at 0.71, rests on B1, R1",
        "the GO is put to the texts",
        "verdict NO_GO, 1 of 2 rules fail",
    )


class Gone(io.StringIO):
    """A stream whose reader went away."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.terminal, self.tried = terminal, 0

    def isatty(self) -> bool:
        return self.terminal

    def write(self, _text: str) -> int:
        self.tried += 1
        raise OSError(5, "Input/output error")


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_that_goes_away_stops_no_debate(monkeypatch, terminal):
    stream = Gone(terminal=terminal)
    monkeypatch.setattr("sys.stderr", stream)
    with watching() as listener:
        for item in (item for item in events() if item.said is not None):
            listener(item)
    assert stream.tried == 1


def test_a_terminal_gets_panels_a_pipe_lines_and_quiet_nothing(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stderr", Terminal())
    with watching() as listener:
        assert isinstance(listener, Panels)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with watching() as listener:
        assert isinstance(listener, Lines)
    monkeypatch.setattr(output.SPEECH, "quiet", True)
    with watching() as listener:
        assert listener is None


def test_what_a_terminal_has_just_shown_is_not_printed_again(capsys):
    held = Debate(debater="rules", arguments=(OPENING,), rebuttals=(ATTACK,), verdict=VERDICT)
    telling.tell_debate(CANDIDATE, held, {})
    whole = capsys.readouterr().out
    telling.tell_debate(CANDIDATE, held, {}, turns=False)
    short = capsys.readouterr().out
    assert OPENING.thesis in whole
    assert OPENING.thesis not in short
    assert VERDICT.rationale in short
    assert panels.drawn(Panels(Console(file=io.StringIO())))
    assert not panels.drawn(Lines())
    assert not panels.drawn(None)
