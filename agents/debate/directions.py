"""Words of direction in a sentence that stand against the claim's operator; only where certain."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trader.core.decision import Claim, Evidence

# one of these makes a sentence too rich to be read by words alone
_STOP = re.compile(
    r"\b(?:not|no|never|nor|without|hardly|barely|cannot|longer|despite|although|though|but|yet"
    r"|however|still|unless|until|if|would|could|might|may|should|after|from|before|once|was|were"
    r"|had|been|instead|rather|than|while|whereas|when|back|return\w*|risk|room|only|except)\b|n't\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:not|no|never|nor|without|cannot)\b|n't\b", re.IGNORECASE)
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
_SIGNED = ("return_", "gap_last", "obv_change_")
_RISING_OPERATORS = {"count_up": 1, "count_down": -1}
_SIDES = {">": 1, ">=": 1, "count_above": 1, "<": -1, "<=": -1, "count_below": -1}


def against_direction(text: str, claim: Claim, facts: Sequence[Evidence]) -> str:
    """Why the sentence and the operator cannot both be meant; empty when they may."""
    operator = claim.operator
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
    return ""


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
