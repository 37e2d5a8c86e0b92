"""Windows and parameters in a sentence: the 200 of a 200-day average is no price."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from agents.debate.claims.written import Numeral
from trader.core.decision import FOREIGN_KINDS, Evidence

YEAR_OF_SESSIONS = 252.0
_GLUED = re.compile(r"[^\W\d_]_?$")  # before the digits of SMA200 or rsi_14
_WINDOW_BEFORE = re.compile(
    r"(?:\b(?:[SE]?MA|RSI|ADX|ATR|[+-]?DI|MACD|SIGNAL|BOLLINGER(?: BANDS?)?|LAST|PAST|PREVIOUS"
    r"|PRIOR|LETZTEN?|DERNI[EÈ]RE?S|[ÚU]LTIM[AO]S)|\w_)[\s(-]*$",
    re.IGNORECASE,
)
_LENGTH = (
    r"(?:trading[- ])?(?:bars?|days?|sessions?|periods?|hours?|Tage[ns]?|Handelstagen?|Sitzungen"
    r"|Perioden|jours|séances|días|sesiones|giorni)"
)
LENGTH_AFTER = re.compile(
    rf"[- ]?(?:{_LENGTH}|weeks?|months?|years?)(?![^\W_])|[- ]?(?:Tage|日|天)", re.IGNORECASE
)
WINDOW_AFTER = re.compile(
    rf"[- ]?(?:{_LENGTH}|(?:[x×] ?)?ATRs?|SMA|EMA|d)(?![^\W_])|[- ]?(?:Tage|日|天)|/\d",
    re.IGNORECASE,
)
# between two windows of a list
LISTED = re.compile(r"\s?[/,;]\s?(?:and\s)?|\s(?:and|und|et|y)\s|-")
_PARAMETERS = {  # windows that a fact's name does not say
    "macd": (12.0, 26.0, 9.0),
    "bollinger": (20.0, 2.0),
    "atr": (14.0,),
    "stop_price": (14.0,),
    "risk_": (14.0,),
    "volatility_rank": (20.0,),
}
_NOT_ALONE = frozenset(("ratio", "change", "worst", "di"))  # words that name no fact on their own
_YEAR = re.compile(r"52[- ]weeks?|12[- ]months?|1[- ]years?", re.IGNORECASE)  # of 252 sessions
_CALENDAR = re.compile(r"[- ]?(?:(weeks?)|months?)(?![^\W_])", re.IGNORECASE)


def windows_of(facts: Sequence[Evidence]) -> frozenset[float]:
    """Windows and parameters of facts, from their names and, if code wrote it, their text."""
    return frozenset().union(
        *(_parameters(fact.name, "" if fact.kind in FOREIGN_KINDS else fact.text) for fact in facts)
    )


def is_window(text: str, numeral: Numeral, windows: frozenset[float], *, listed: bool) -> bool:
    """Whether a number is one of `windows` and is said as one, not as a value.

    listed  it follows another window in a list, as in 12/26
    """
    if numeral.sign or numeral.mark not in ("", "x"):
        return False
    start, stop = numeral.start, numeral.stop
    parts = numeral.text.split(",")
    if len(parts) > 1 and text[start - 1 : start] == "(":  # (12,26,9)
        return all(part.isdigit() and float(part) in windows for part in parts)
    if YEAR_OF_SESSIONS in windows and _YEAR.match(text, start):
        return True
    calendar = _CALENDAR.match(text, stop)
    if calendar:
        sessions = (5.0,) if calendar[1] else (20.0, 21.0)
        return numeral.bare and any(float(numeral.text) * each in windows for each in sessions)
    if not numeral.readings or numeral.readings[0][0] not in windows:
        return False
    return bool(
        listed
        or WINDOW_AFTER.match(text, stop)
        or _WINDOW_BEFORE.search(text, max(0, start - 18), start)
        or _GLUED.search(text, max(0, start - 2), start)
    )


def is_in_name(text: str, numeral: Numeral, facts: Sequence[Evidence]) -> bool:
    """Whether a number ends the name of a fact in words: volume ratio 20, return (60)."""
    if not numeral.bare:
        return False
    ours = [fact.name for fact in facts if fact.kind not in FOREIGN_KINDS]
    before = text[max(0, numeral.start - 40) : numeral.start]
    return any(
        number == numeral.text and words.search(before)
        for name in ours
        for number, words in _words_before(name)
    )


@lru_cache(maxsize=4096)
def _words_before(name: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Every window of a fact's name, and the one or two words that lead up to it."""
    found, parts = [], name.split("_")
    for at in range(1, len(parts)):
        if parts[at].isdigit():
            words = parts[max(0, at - 2) : at]
            optional = "" if len(words) == 1 else f"{words[0]}[ _-]?"
            if len(words) > 1 and words[-1] not in _NOT_ALONE:
                optional = f"(?:{optional})?"
            found.append((parts[at], re.compile(rf"(?i)(?<![^\W_]){optional}{words[-1]}[ _(-]*$")))
    return tuple(found)


@lru_cache(maxsize=4096)
def _parameters(name: str, text: str) -> frozenset[float]:
    """Windows and parameters in a fact's name and description."""
    found = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", f"{name} {text}")}
    for lead, windows in _PARAMETERS.items():
        if name.startswith(lead):
            found.update(windows)
    return frozenset(found)
