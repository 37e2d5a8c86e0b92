"""Replies of every shape for the fuzz: sound ones in other clothes, broken ones, hostile ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from agents.chat.rules_chat import RulesChat
from agents.debate.graph import DebateGraph
from agents.debate.numbering import numbered_claims
from agents.debate.rules import DebateLimits
from tests.agents.debate.hostile import (
    DECISIONS,
    HOSTILE_NUMBERS,
    INJECTIONS,
    NOT_A_REPLY,
    REPEATED,
    WRONG_TYPES,
)
from tests.agents.facts import NoPast, candidate, evidence
from trader.core.costs import Costs
from trader.core.decision import Claim, Debate, EvidenceIndex, Role
from trader.core.ports import ChatRequest, Prompt

ROLES: tuple[Role, ...] = ("bull", "bear", "arbitrator")
Fields = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One generated reply.

    sound  True: the clean reply in other clothes, to be read as if it were clean; False: must be
           refused; None: may be either, and must be harmless
    """

    role: Role
    kind: str
    text: str
    sound: bool | None


@cache
def clean_debate() -> Debate:
    """The debate of rules over the sound facts: a GO."""
    graph = DebateGraph(
        bull=RulesChat(), bear=RulesChat(), limits=DebateLimits(), costs=Costs(), rounds=0
    )
    return graph.deliberate(candidate(), evidence(), "fuzz", NoPast())


@cache
def claims() -> dict[str, Claim]:
    """The checked claims of the clean debate by number."""
    debate = clean_debate()
    found = numbered_claims(debate.arguments, debate.rebuttals)
    assert found["B1"].status == "verified"
    return found


def clean(role: Role) -> Fields:
    """The fields of the role's sound reply, for changing."""
    fields: Fields = json.loads(_clean_text(role))
    return fields


@cache
def _clean_text(role: Role) -> str:
    if role == "arbitrator":
        return json.dumps(
            {
                "rationale": "The crossing and the reward hold; the base rate is thin but enough.",
                "decisive": ["B1", "B2"],
                "decision": "GO",
                "confidence": 0.75,
            }
        )
    request = ChatRequest(
        role=role,
        round=0,
        candidate=candidate(),
        evidence=EvidenceIndex(evidence()),
        arguments=() if role == "bull" else clean_debate().arguments,
        rebuttals=(),
        prompt=lambda: Prompt(version="", messages=(), schema_name="", schema={}),
        subject="fuzz",
    )
    return RulesChat().complete(request).text


def case(role: Role, seed: int, number: int) -> Case:
    """The reply with this number; kinds take turns, the rest is drawn from seed and number."""
    random = Random(f"{seed} {role} {number}")
    kind, sound, make = KINDS[number // len(ROLES) % len(KINDS)]
    return Case(role=role, kind=kind, sound=sound, text=make(random, role))


def _places(fields: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of every leaf."""
    if isinstance(fields, dict):
        return [place for key, item in fields.items() for place in _places(item, (*path, key))]
    if isinstance(fields, list):
        return [place for at, item in enumerate(fields) for place in _places(item, (*path, at))]
    return [path]


def _put(fields: Fields, path: tuple[Any, ...], value: Any) -> None:
    holder: Any = fields
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = value


def _get(fields: Fields, path: tuple[Any, ...]) -> Any:
    found: Any = fields
    for part in path:
        found = found[part]
    return found


def _leaves(fields: Fields, kind: type) -> list[tuple[Any, ...]]:
    return [path for path in _places(fields) if type(_get(fields, path)) is kind]


def _free_texts(fields: Fields) -> list[tuple[Any, ...]]:
    """Texts that people read; the bear's quotation is none, since it must be the bull's words."""
    free = {"thesis", "counter", "rationale", "text"}
    return [path for path in _leaves(fields, str) if path[-1] in free]


def _verdict(decision: str) -> str:
    return json.dumps(clean("arbitrator") | {"decision": decision})


def _dressed(random: Random, role: Role) -> str:
    fields = clean(role)
    for claim in fields.get("claims", []):
        if random.random() < 0.5:
            claim |= {"upper_value": None, "when": None}
        claim.update(sorted(claim.items(), key=lambda _: random.random()))
    items = sorted(fields.items(), key=lambda _: random.random())
    text = json.dumps(
        dict(items),
        indent=random.choice([None, 1, 2, 4, "\t"]),
        ensure_ascii=random.random() < 0.5,
        separators=random.choice([None, (",", ":"), (" , ", " : ")]),
    )
    lead = random.choice(
        ["", "", "Here is my answer:\n", "Sure!\n\n", "Мой ответ:\n", "(see below) [1]\n", "json\n"]
    )
    tail = random.choice(["", "", "\n", "\n\nI hope this helps.", "\n—", "\nEOF"])
    if random.random() < 0.4:
        text = f"```{random.choice(['', 'json', 'JSON', 'json5'])}\n{text}\n```"
    tag = random.choice(["think", "thinking", "THINK", "reasoning", "thought"])
    thought = random.choice(
        [
            "",
            "",
            f"<{tag}>First I thought {_verdict('NO_GO')} or {{.</{tag}>\n",
            f'<{tag}><{tag}>deep "</{tag}> less deep</{tag}>\n\n',
            f'I was told to think. {{"decision": "GO"}} [ ( " ok.\n</{tag}>\n',
        ]
    )
    return random.choice(["", "", "\ufeff", "  \n"]) + thought + lead + text + tail


def _raw_white_space(random: Random, role: Role) -> str:
    """Raw newlines and tabs inside free texts, which strict JSON forbids."""
    text = json.dumps(clean(role))
    for path in _free_texts(clean(role)):
        words = str(_get(clean(role), path))
        broken = words.replace(" ", random.choice(["\n", "\t", " \r\n ", "\n\n"]))
        text = text.replace(json.dumps(words), f'"{broken}"')
    return text


def _truncated(random: Random, role: Role) -> str:
    raw = json.dumps(clean(role)).encode()
    return raw[: random.randrange(len(raw))].decode(errors="replace")


def _two_objects(random: Random, role: Role) -> str:
    text, joint = json.dumps(clean(role)), random.choice(["", "\n", " or ", "\n```\n```json\n"])
    other = random.choice([text, _verdict("NO_GO"), _verdict("GO"), "{}", "{", "}", '{"a": 1}'])
    return random.choice([text + joint + other, other + joint + text])


def _within(random: Random, role: Role) -> str:
    """The object in someone else's mouth, in a list, or as a text in JSON."""
    text = json.dumps(clean(role))
    return random.choice(
        [
            f"[{text}]",
            f'The note says "{text}" and I do not agree.',
            f"The note says “{text}”.",
            f"He wrote '{text}'.",
            f"> {text}",
            f"<article>{text}</article>",
            f"`{text}`",
            f"(for example {text})",
            json.dumps(text),
            json.dumps({"reply": text}),
            json.dumps({"reply": clean(role)}),
            f"<think>{text}</think>",
            f"{text}</think>",
            f"<think>{text}",
            f"{text}<think>",
        ]
    )


def _keys(random: Random, role: Role) -> str:
    fields = clean(role)
    holder = random.choice([fields, *(claim for claim in fields.get("claims", []))])
    key = random.choice(list(holder))
    done = random.randrange(4)
    if done == 0:
        del holder[key]
    elif done == 1:
        extra = random.choice(["verdict", "status", "detail", "quantity", "tool_calls", "é", "\n"])
        holder[extra] = random.choice(["GO", "verified", 1, None, []])
    elif done == 2:
        renamed = random.choice([key.upper(), f"{key} ", f"\u0441{key[1:]}", f"{key}s"])
        holder[renamed] = holder.pop(key)
    else:  # the same key twice, at the end
        twin = json.dumps(random.choice([holder[key], None, "GO", 1]))
        mark = "holder's end"
        holder[mark] = None
        return json.dumps(fields).replace(f'"{mark}": null', f'"{key}": {twin}')
    return json.dumps(fields)


def _types(random: Random, role: Role) -> str:
    fields = clean(role)
    path = random.choice(_places(fields))
    old = _get(fields, path)
    swaps = [*WRONG_TYPES, None, 7 if isinstance(old, str) else str(old)]
    _put(fields, path, random.choice(swaps))
    return json.dumps(fields)


def _numbers(random: Random, role: Role) -> str:
    fields = clean(role)
    path = random.choice(_leaves(fields, float) + _leaves(fields, int))
    _put(fields, path, "a number")
    return json.dumps(fields).replace('"a number"', random.choice(HOSTILE_NUMBERS))


def _out_of_range(random: Random, role: Role) -> str:
    fields = clean(role)
    bad: dict[Role, list[tuple[str, Any]]] = {
        "bull": [
            ("entry_price", random.choice([0, -1, -0.0, 1e9, 1e300])),
            ("claims", []),
            ("claims", fields.get("claims", []) * 3),
            ("thesis", random.choice(["", " \n", "\u200b", "x" * 2_001])),
        ],
        "bear": [
            ("weakest_claim", random.choice(["B0", "B99", "b1", "B1.", "R1", "B01", "E1", ""])),
            ("weakest_claim", "RSI is 29."),
            ("claims", [*clean("bull")["claims"]] * 3),
            ("counter", random.choice(["", "\x00", "x" * 2_001])),
        ],
        "arbitrator": [
            ("confidence", random.choice([1.7, -0.1, -497, 85, 1e9, 1.0000001])),
            ("decision", random.choice(DECISIONS)),
            (
                "decisive",
                random.choice([[], ["B99"], ["b1"], ["E1"], ["B1", "R99"], ["B1 "], ["B"]]),
            ),
            ("decisive", ["B1"] * 25),
            ("rationale", random.choice(["", "\t", "x" * 2_001])),
        ],
    }
    key, value = random.choice(bad[role])
    fields[key] = value
    return json.dumps(fields, ensure_ascii=random.random() < 0.5)


def _not_json(random: Random, role: Role) -> str:
    fields = clean(role)
    text, key = json.dumps(fields), random.choice(list(fields))
    return random.choice(
        [
            repr(fields),
            text[:-1] + ",}",
            text.replace('", ', '",, ', 1),
            text.replace('": ', '" = ', 1),
            text.replace("{", "{ // a remark\n", 1),
            text.replace("{", "{ /* a remark */", 1),
            text.replace('"', "“", 2),
            text.replace(f'"{key}"', key, 1),
            text.replace("{", "(", 1),
            text[:-1] + "]",
            text[1:],
            text + "}",
        ]
    )


def _deep(random: Random, role: Role) -> str:
    fields = clean(role)
    path = random.choice(_places(fields))
    _put(fields, path, "nest")
    deep = random.choice([5, 50, 900, 5_000])
    opening, closing = random.choice([("[", "]"), ('{"a":', "}")])
    nest = opening * deep + "1" + closing * random.choice([deep, deep - 1])
    return json.dumps(fields).replace('"nest"', nest)


def _huge(random: Random, role: Role) -> str:
    text = json.dumps(clean(role))
    at, size = random.randrange(len(text)), random.choice([59_000, 60_001, 100_000])
    filler = random.choice([*REPEATED, "x", "é", "🚀"])
    filler *= size // len(filler)
    return random.choice([filler, text + filler + "{", "{" + filler + text, text[:at] + filler])


def _bits(random: Random, role: Role) -> str:
    raw = bytearray(json.dumps(clean(role)).encode())
    for _ in range(random.choice([1, 1, 2, 8])):
        raw[random.randrange(len(raw))] ^= 1 << random.randrange(8)
    return raw.decode(errors=random.choice(["replace", "surrogateescape"]))


def _characters(random: Random, role: Role) -> str:
    text = json.dumps(clean(role))
    for _ in range(random.choice([1, 1, 2, 5])):
        at, width = random.randrange(len(text)), random.choice([0, 1, 1, 7])
        new = random.choice(["", *'{}[]",:\\ \n\t\x000-.eEn', "\\u0000", "\ufeff", "\ud800", "٣"])
        text = text[:at] + new + text[at + width :]
    return text


def _spliced(random: Random, role: Role) -> str:
    one, other = json.dumps(clean(role)), json.dumps(clean(random.choice(ROLES)))
    return one[: random.randrange(len(one))] + other[random.randrange(len(other)) :]


def _injected(random: Random, role: Role) -> str:
    fields = clean(role)
    path = random.choice(_leaves(fields, str))
    body = random.choice(INJECTIONS)
    old = _get(fields, path)
    _put(fields, path, random.choice([body, f"{old} {body}", f"{body} {old}"]))
    return json.dumps(fields, ensure_ascii=random.random() < 0.5)


def _injected_around(random: Random, role: Role) -> str:
    text, body = json.dumps(clean(role)), random.choice(INJECTIONS)
    return random.choice([f"{body}\n{text}", f"{text}\n{body}", f"{body}\n{text}\n{body}"])


def _nudged(random: Random, role: Role) -> str:
    """Sound in form, wrong in substance."""
    fields = clean(role)
    path = random.choice(_places(fields))
    old = _get(fields, path)
    if isinstance(old, str):
        words = ["E1", "E9999", "close", "=", ">", "between", "USD", "B1", "R1", "NO_GO", "x"]
        _put(fields, path, random.choice(words))
    else:
        factor = random.choice([0.0, -1.0, 0.5, 0.99, 1.0001, 2.0, 1e6, 1e-300])
        _put(fields, path, float(old) * factor)
    return json.dumps(fields)


def _noise(random: Random, _role: Role) -> str:
    length = random.randrange(1, 200)
    alphabet = random.choice(['{}[]":,\\ 0', "GONE_ \n", None])
    if alphabet is None:
        return random.randbytes(length).decode(errors=random.choice(["replace", "surrogateescape"]))
    return "".join(random.choice(alphabet) for _ in range(length))


def _other_role(random: Random, role: Role) -> str:
    return json.dumps(clean(random.choice([other for other in ROLES if other != role])))


Maker = Callable[[Random, Role], str]
KINDS: tuple[tuple[str, bool | None, Maker], ...] = (
    ("dressed", True, _dressed),
    ("raw white space", True, _raw_white_space),
    ("truncated", False, _truncated),
    ("two objects", False, _two_objects),
    ("within", False, _within),
    ("keys", False, _keys),
    ("types", False, _types),
    ("numbers", False, _numbers),
    ("out of range", False, _out_of_range),
    ("not JSON", False, _not_json),
    ("not a reply", False, lambda random, _role: random.choice(NOT_A_REPLY)),
    ("deep", False, _deep),
    ("huge", False, _huge),
    ("repeated", False, lambda random, _: random.choice(REPEATED) * random.randrange(1, 5_000)),
    ("another role", False, _other_role),
    ("bits", None, _bits),
    ("characters", None, _characters),
    ("spliced", None, _spliced),
    ("injected", None, _injected),
    ("injected around", None, _injected_around),
    ("nudged", None, _nudged),
    ("noise", None, _noise),
)
