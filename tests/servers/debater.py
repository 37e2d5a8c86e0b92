"""A debater that knows nothing but its prompt: it reads the facts there and argues from them."""

from __future__ import annotations

import json
import re
from typing import Any

FACT = re.compile(r"^(E\d+) (\w+) (-?[\d.e-]+)$")
TARGET = re.compile(r"^(\w+): (E\d+) ([\d.]+), (E\d+) (-?[\d.]+), .*, (E\d+) (-?[\d.e-]+)$")
CLAIM = re.compile(r"^([BR]\d+) (?!unverifiable|contradicted)")
UNIT = re.compile(r"^\[(\w+)\]$")
FOR = ["close", "sma_50", "adx_14", "plus_di_14", "signal_average_r", "return_20", "volume"]
AGAINST = ["volatility_rank_252", "drawdown_252", "minus_di_14", "signal_hit_rate", "return_60"]


def facts_of(prompt: str) -> dict[str, tuple[str, str, str]]:
    """Name -> number, value as shown, unit, of every fact in a prompt."""
    found, unit = {}, ""
    for line in prompt.splitlines():
        if head := UNIT.match(line):
            unit = head[1]
        elif line.startswith("["):
            unit = ""
        elif unit and (fact := FACT.match(line)):
            found[fact[2]] = (fact[1], fact[3], unit)
    return found


def claim(prompt: str, name: str) -> dict[str, Any] | None:
    """The claim that a fact is what the prompt says it is."""
    fact = facts_of(prompt).get(name)
    if fact is None:
        return None
    number, value, unit = fact
    return {
        "text": f"{name} is {value}, which speaks plainly.",
        "evidence_ids": [number],
        "field": name,
        "operator": "=",
        "quoted_value": float(value),
        "unit": unit,
        "upper_value": None,
        "when": None,
    }


def best_target(prompt: str) -> float:
    """The level worth most among those that offer twice the risk, else the farthest."""
    levels = [found for line in prompt.splitlines() if (found := TARGET.match(line))]
    wide = [level for level in levels if float(level[5]) >= 2.0]
    best = max(wide or levels, key=lambda level: float(level[7]) if wide else float(level[5]))
    return float(best[3])


def debater(messages: list[dict[str, Any]], _body: dict[str, Any]) -> str:
    """The reply to a prompt of bull, bear or arbitrator, as a model would send it."""
    system = messages[0]["content"]
    prompt = next(m["content"] for m in messages if m["role"] == "user")
    first = "Your own claims were about" not in prompt
    if system.startswith("You are the bull"):
        facts = facts_of(prompt)
        names = FOR[:4] if first else FOR[4:]
        reply: dict[str, Any] = {
            "thesis": "The signal fired with the trend behind it, and its past paid for the risk.",
            "claims": [found for name in names if (found := claim(prompt, name))],
            "entry_price": float(facts["entry_price"][1]),
            "stop_price": float(facts["stop_price"][1]),
            "target_price": best_target(prompt),
        }
    elif system.startswith("You are the bear"):
        numbers = re.findall(r"^(B\d+) ", prompt, re.MULTILINE)
        names = AGAINST[:2] if first else AGAINST[2:3]
        reply = {
            "weakest_claim": numbers[-1],
            "counter": "That number looks back; the market was rougher than the bull admits.",
            "claims": [found for name in names if (found := claim(prompt, name))],
        }
    else:
        sound = [found[1] for line in prompt.splitlines() if (found := CLAIM.match(line))]
        reply = {
            "rationale": "The bull's verified claims bear more directly on the target.",
            "decisive": sound[:3],
            "decision": "GO",
            "confidence": 0.62,
        }
    return json.dumps(reply)
