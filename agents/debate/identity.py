"""Whether a text speaks of the instrument that is debated, or of another issuer.

A false alarm costs a sound trade, so a word counts only where it can hardly mean anything else:
MA is a moving average until somebody writes $MA, (NYSE: MA) or MA shares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from agents.debate.envelope import READ_CHARACTERS, plain
from trader.core.decision import Evidence, Instrument
from trader.core.instruments import KNOWN

# what people also call an issuer or an index fund of the table
ALIASES: Mapping[str, str] = {
    "Berkshire": "BRK.B",
    "BRK.A": "BRK.B",
    "Citi": "C",
    "Coke": "KO",
    "Disney": "DIS",
    "Dow Jones": "DIA",
    "Exxon": "XOM",
    "ExxonMobil": "XOM",
    "Facebook": "META",
    "Ford": "F",
    "Goldman": "GS",
    "Google": "GOOGL",
    "J&J": "JNJ",
    "JP Morgan": "JPM",
    "JPMorgan": "JPM",
    "Lilly": "LLY",
    "Meta": "META",
    "Nasdaq 100": "QQQ",
    "P&G": "PG",
    "Pepsi": "PEP",
    "Russell 2000": "IWM",
    "S&P 500": "SPY",
    "TSMC": "TSM",
}
# names that are words too: they count with a capital letter, and not as half of a compound
_WORDS = frozenset(
    """
    Adobe Alphabet Amazon Apple Berkshire Chevron Cisco Citi Coke Ford Goldman Intel Lilly Meta Nike
    Oracle Salesforce Uber Visa
    """.split()  # noqa: SIM905 - one name a line would say no more
)
# tickers that are words or terms too: they need a sign that a ticker is meant
_AMBIGUOUS = frozenset({"COIN", "COST", "CRM", "DIS", "PEP"})
_WORDS_WHEN_SMALL = _AMBIGUOUS | {"META", "SPY", "UBER"}
_SHORTEST_BARE = 3
# what may follow a dollar sign or an exchange and is no ticker
_NO_TICKER = frozenset({"ADR", "ATR", "ETF", "EUR", "GBP", "IPO", "JPY", "NAV", "US", "USD"})

_SYMBOL = r"[A-Za-z]{1,5}(?:[.-][A-Za-z])?(?!\w)"
_EXCHANGE = r"(?:NASDAQ|NYSE(?: ?(?:Arca|American|MKT))?|AMEX|CBOE|OTC)"
_CASHTAG = re.compile(rf"(?<![\w$])\$({_SYMBOL})")
_BRACKETED = re.compile(rf"(?i)\(\s*{_EXCHANGE}\s*:\s*({_SYMBOL})\s*\)")
_LISTED = re.compile(rf"(?i:\b{_EXCHANGE}):\s*({_SYMBOL})")
_CALLED = re.compile(
    r"(?<!\w)(?<!\$)(?<![Cc]lass )([A-Z]{1,5})(?:['’]s)? (?:shares|stock)\b"
    r"|\b(?:shares|stock) of ([A-Z]{1,5})(?!\w)"
)
_BARE = re.compile(r"(?<![\w$])[A-Za-z]{3,5}(?:[.-][A-Za-z])?(?!\w)")
_TOKENS = re.compile(r"[a-z0-9&]+")


def other_issuers(text: str, instrument: Instrument) -> tuple[str, ...]:
    """Symbols of other issuers that a text speaks of, sorted; index funds count as issuers.

    They are found by name (Tesla's, TESLA, Tesla Inc), cashtag ($TSLA), listing (NASDAQ: TSLA) and
    bare ticker, as far as the table of instruments knows them.
    """
    return tuple(sorted(_issuers(text) - _own(instrument)))


def usable(fact: Evidence, instrument: Instrument) -> str:
    """Why a fact with a stranger's text is withheld; empty when it may be read."""
    if fact.symbol != instrument.symbol:
        return f"it is about {fact.symbol}"
    if fact.known_at > fact.as_of:
        return "it was not known yet"
    text = plain(fact.text[:READ_CHARACTERS]).strip()
    if not text:
        return "" if fact.value is not None else "it is empty"
    spoken, own = _issuers(text), _own(instrument)
    named = spoken & own or re.search(rf"(?<!\w){re.escape(instrument.symbol)}(?!\w)", text)
    return f"it speaks of {', '.join(sorted(spoken - own))} only" if spoken and not named else ""


@cache
def _own(instrument: Instrument) -> frozenset[str]:
    """The instrument's symbol and those of its issuer's other shares: GOOG and GOOGL."""
    same = (symbol for symbol, (name, _) in KNOWN.items() if name == instrument.name)
    return frozenset({instrument.symbol, *same})


def _issuers(text: str) -> frozenset[str]:
    text = plain(text)
    return frozenset((*_by_name(text), *_by_sign(text), *_by_ticker(text)))


def _by_name(text: str) -> Iterator[str]:
    for token in set(_TOKENS.findall(text.lower())) & _FIRST_WORDS.keys():
        for pattern, symbol in _FIRST_WORDS[token]:
            if pattern.search(text):
                yield symbol


def _by_sign(text: str) -> Iterator[str]:
    """Tickers that are marked as such; in brackets or after a dollar sign also unknown ones."""
    for sign, pattern in (("$", _CASHTAG), ("(", _BRACKETED)):
        for said in pattern.findall(text) if sign in text else ():
            symbol = said.upper().replace("-", ".")
            known = symbol in KNOWN and (len(symbol) > 1 or said.isupper())
            if known or (said.isupper() and len(said) > 1 and symbol not in _NO_TICKER):
                yield symbol
    for said in _LISTED.findall(text) if ":" in text else ():
        if said in KNOWN:
            yield said
    for found in _CALLED.finditer(text) if "share" in text or "stock" in text else ():
        if (said := found[1] or found[2]) in KNOWN:
            yield said


def _by_ticker(text: str) -> Iterator[str]:
    for said in _BARE.findall(text):
        symbol = said.upper().replace("-", ".")
        unclear = _AMBIGUOUS if said.isupper() else _WORDS_WHEN_SMALL
        if len(symbol) >= _SHORTEST_BARE and symbol in KNOWN and symbol not in unclear:
            yield symbol


def _name_pattern(name: str) -> re.Pattern[str]:
    """A whole name, with any space or hyphen between its words, either apostrophe, `and` for &."""
    escaped = "".join(
        r"\s*(?:&|and)\s*" if word == " & " else r"['’]?" if word == "'" else re.escape(word)
        for word in re.split(r"( & |'|[ -])", name)
    )
    escaped = re.sub(r"\\[ -]", r"[\\s-]+", escaped)
    if name in _WORDS:
        return re.compile(rf"(?<![\w-])(?:{escaped}|{escaped.upper()})(?!-?\w)")
    return re.compile(rf"(?i)(?<!\w){escaped}(?!\w)")


def _first_words() -> Mapping[str, Sequence[tuple[re.Pattern[str], str]]]:
    """The first word of every name -> the names that begin with it, for a quick look."""
    found: dict[str, list[tuple[re.Pattern[str], str]]] = {}
    names = [(name, symbol) for symbol, (name, _) in KNOWN.items()]
    for name, symbol in (*names, *ALIASES.items()):
        row = (_name_pattern(name), symbol)
        plainly = name.lower().replace("'", "")
        for first in {_TOKENS.findall(name.lower())[0], _TOKENS.findall(plainly)[0]}:
            found.setdefault(first, []).append(row)
    return found


_FIRST_WORDS = _first_words()
