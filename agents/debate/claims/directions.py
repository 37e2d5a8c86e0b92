"""Words of direction in a sentence that stand against the claim's operator; only where certain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from trader.core.decision import Claim, Evidence

# one of these makes a sentence too rich to be read by words alone
_STOP = re.compile(
    r"\b(?:not|no|never|nor|without|hardly|barely|cannot|longer|despite|although|though|but|yet"
    r"|however|still|unless|until|if|would|could|might|may|should|after|from|before|once|was|were"
    r"|had|been|instead|rather|than|while|whereas|when|back|return\w*|risk|room|only|except)\b|n't\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:not|no|never|nor|without|cannot)\b|n't\b", re.IGNORECASE)
# with one of these not even a sign is certain
_DOUBT = re.compile(
    r"\b(?:not|no|never|nor|without|cannot|despite|although|though|but|yet|however|still|unless|if"
    r"|would|could|might|may|while|whereas)\b|n't\b",
    re.IGNORECASE,
)
_RISE = re.compile(
    r"\b(?:rose|risen|rises|gained|gains|climbed|climbs|advanced|rallied|increased|grew|added)\b",
    re.IGNORECASE,
)
_FALL = re.compile(
    r"\b(?:fell|fallen|falls|dropped|drops|declined|declines|lost|decreased|slid|sank|shed)\b",
    re.IGNORECASE,
)
_ABOVE = re.compile(r"\b(?:above|exceeds?|exceeding|greater than|higher than)\b", re.IGNORECASE)
_BELOW = re.compile(r"\b(?:below|beneath|less than|lower than)\b", re.IGNORECASE)
_UP = re.compile(r"\bcross\w*\s+(?:back\s+)?(?:above|up|over)\b", re.IGNORECASE)
_DOWN = re.compile(r"\bcross\w*\s+(?:back\s+)?(?:below|down|under)\b", re.IGNORECASE)
_HIGHEST = re.compile(r"\bhighest\b", re.IGNORECASE)
_LOWEST = re.compile(r"\blowest\b", re.IGNORECASE)
_OTHER_DAY = re.compile(
    r"\b(?:yesterday\w*|last (?:week|month|year)|(?:day|week|month|year)s? (?:ago|before|earlier)"
    r"|previous (?:close|session|day|value|reading))\b",
    re.IGNORECASE,
)
_TODAY = re.compile(r"\b(?:today\w*|now|current\w*|latest)\b", re.IGNORECASE)
_OF_THE_BAR = re.compile(
    r"(?:close|open|high|low|volume|atr|macd\w*|bollinger_\w+|(?:[se]ma|rsi|adx|plus_di|minus_di)_\d+)"
    r"(?:_previous)?"
)
_POSITIVE = re.compile(r"\b(?:positive|gain(?:ed)?|(?:up|gapped up)(?= by| \d))\b", re.IGNORECASE)
_NEGATIVE = re.compile(r"\b(?:negative|loss|(?:down|gapped down)(?= by| \d))\b", re.IGNORECASE)
_SIGNED = ("return_", "gap_last", "obv_change_")
_WITH_SIGN = (*_SIGNED, "expected_value_", "signal_average_r", "macd")
_ALIASES = {
    "close": "close[sd]?|price|stock",
    "plus_di_14": r"\+ ?DI|plus[ _]DI",
    "minus_di_14": r"- ?DI|minus[ _]DI",
    "macd": "MACD(?![ _]signal)",
    "macd_signal": "signal",
    "bollinger_upper": "upper",
    "bollinger_lower": "lower",
    "entry_price": "entry",
    "stop_price": "stop",
}
_COMPARISONS = ("<", ">", "<=", ">=")
_RISING_OPERATORS = {"count_up": 1, "count_down": -1}
_SIDES = {">": 1, ">=": 1, "count_above": 1, "<": -1, "<=": -1, "count_below": -1}


def against_direction(text: str, claim: Claim, facts: Sequence[Evidence]) -> str:
    """Why the sentence and the operator cannot both be meant; empty when they may."""
    operator = claim.operator
    wrong = _against_today(text, claim, facts) or _against_sign(text, claim, facts)
    if wrong:
        return wrong
    if operator in ("highest", "lowest"):
        said = _side(text, _HIGHEST, _LOWEST, _DENIAL)
        return _against(said, 1 if operator == "highest" else -1, operator)
    if operator in ("crosses_above", "crosses_below"):
        if len(facts) > 2 and claim.field not in ("close", "rule_value"):
            return ""  # of two moving lines each crosses the other
        said = _side(text, _UP, _DOWN, _DENIAL)
        return _against(said, 1 if operator == "crosses_above" else -1, operator)
    if operator == "change" or (operator == "=" and claim.field.startswith(_SIGNED)):
        value = claim.quoted_value
        sign = (value > 0.0) - (value < 0.0)
        return _against(_side(text, _RISE, _FALL), sign, f"a change of {value:g}")
    if operator in _RISING_OPERATORS:
        return _against(_side(text, _RISE, _FALL), _RISING_OPERATORS[operator], operator)
    if operator in _SIDES and len(facts) == 1:
        return _against(_side(text, _ABOVE, _BELOW), _SIDES[operator], operator)
    if operator in _COMPARISONS and len(facts) == 2:
        return _against(_side_of_two(text, facts), _SIDES[operator], operator)
    return ""


def _side_of_two(text: str, facts: Sequence[Evidence]) -> int:
    """1 when the first fact is said to be above the second, -1 below, 0 where it is not sure."""
    if facts[1].name == f"{facts[0].name}_previous":
        return _side(text, _RISE, _FALL, _DOUBT)
    said = _side(text, _ABOVE, _BELOW)
    word = (_ABOVE if said > 0 else _BELOW).search(text)
    named = [alias.search(text) if (alias := _alias(fact.name)) else None for fact in facts]
    if not said or word is None or named[0] is None or named[1] is None:
        return 0
    first, second = named[0].start(), named[1].start()
    if first < word.start() < second:
        return said
    return -said if second < word.start() < first else 0


@lru_cache(maxsize=1024)
def _alias(name: str) -> re.Pattern[str] | None:
    """How a sentence calls a fact that is held against another."""
    average = re.fullmatch(r"(?:sma|ema)_(\d+)", name)
    if average:
        return re.compile(rf"(?<![\d.,]){average[1]}(?![\d%]|[.,]\d| ?%)")
    words = "target" if name.startswith("target_") else _ALIASES.get(name)
    return re.compile(rf"(?i)(?<![^\W_])(?:{words})(?![^\W_])") if words else None


def _against_today(text: str, claim: Claim, facts: Sequence[Evidence]) -> str:
    """A value of today said of another day, or one of the bar before said of today."""
    if claim.when is not None or not _OF_THE_BAR.fullmatch(claim.field):
        return ""
    before = any(fact.name.endswith("_previous") for fact in facts)
    if not before and _OTHER_DAY.search(text):
        return "the sentence speaks of another day than its fields"
    if before and len(facts) == 1 and _TODAY.search(text) and not _OTHER_DAY.search(text):
        return "the sentence speaks of today, its fields of the bar before"
    return ""


def _against_sign(text: str, claim: Claim, facts: Sequence[Evidence]) -> str:
    """Words for more of a number below zero, or for less of one above it."""
    if claim.when is not None or len(facts) > 1 or not claim.field.startswith(_WITH_SIGN):
        return ""
    value = facts[0].value or 0.0
    said = _side(text, _POSITIVE, _NEGATIVE, _DOUBT)
    if said == 0 and claim.field.startswith(_SIGNED):
        said = _side(text, _RISE, _FALL)
    return _against(said, (value > 0.0) - (value < 0.0), f"{value:.3g}")


def _side(
    text: str, up: re.Pattern[str], down: re.Pattern[str], stop: re.Pattern[str] = _STOP
) -> int:
    """1 when only words of the first kind stand in the sentence, -1 for the second, else 0.

    stop  words with which nothing is certain
    """
    rises, falls = up.search(text), down.search(text)
    if bool(rises) == bool(falls) or stop.search(text):
        return 0
    return 1 if rises else -1


def _against(said: int, meant: int, operator: str) -> str:
    if said * meant >= 0:
        return ""
    return f"the sentence says {'up or above' if said > 0 else 'down or below'}, not {operator}"
