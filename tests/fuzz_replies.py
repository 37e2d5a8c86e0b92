"""Generated replies through the parser and the whole debate: python -m tests.fuzz_replies."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter

from agents.chat.rules_chat import RulesChat
from agents.debate.graph import DebateGraph
from agents.debate.rules import DebateLimits
from agents.debate.schemas import (
    InvalidReplyError,
    parse_argument,
    parse_rebuttal,
    parse_weighing,
)
from tests.agents.debate.replies import KINDS, ROLES, Case, case, claims, clean, clean_debate
from tests.agents.facts import NoPast, candidate, evidence
from trader.core.canonical import canonical_json, from_primitive
from trader.core.costs import Costs
from trader.core.decision import Argument, Debate, Decision, FlagCode, Rebuttal, Role, Weighing
from trader.core.ports import ChatReply, ChatRequest

Said = Argument | Rebuttal | Weighing
LONGEST_MESSAGE = 300
UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\ufeff\U000e0000-\U000e007f]")


def parsed(role: Role, text: str) -> Said:
    """What the debate reads in a reply of this role."""
    if role == "bull":
        return parse_argument(text, 0)
    if role == "bear":
        return parse_rebuttal(text, 0, clean_debate().arguments)
    return parse_weighing(text, claims())


def judge_parsing(given: Case) -> str:
    """Parse one reply and hold the result against what its kind promises; "read" or "refused".

    Raises AssertionError where the promise is broken, and whatever escapes from the parser.
    """
    said, refusal = None, ""
    try:
        said = parsed(given.role, given.text)
    except InvalidReplyError as exc:
        refusal = str(exc)
    if said is None:
        assert given.sound is not True, f"a sound reply is refused: {refusal}"
        assert refusal.isprintable(), repr(refusal)
        assert 0 < len(refusal) <= LONGEST_MESSAGE
        return "refused"
    assert given.sound is not False, f"a broken reply is read as {said}"
    if given.sound:
        assert said == parsed(given.role, json.dumps(clean(given.role)))
    record = canonical_json(said)
    assert from_primitive(type(said), json.loads(record)) == said
    told = json.dumps(json.loads(record), ensure_ascii=False).encode().decode()  # no half character
    assert not UNSAFE.search(told), f"not safe to print: {told!r}"
    assert_read_as_written(said, given.text)
    return "read"


def assert_read_as_written(said: Said, text: str) -> None:
    """Read the reply a second way: from its first brace to its last, after the last thought."""
    for tag in ("</think>", "</thinking>", "</reasoning>", "</thought>"):
        at = text.lower().rfind(tag)
        text = text[at + len(tag) :] if at >= 0 and "{" in text[at:] else text
    fields = json.loads(text[text.index("{") : text.rindex("}") + 1], strict=False)
    if isinstance(said, Weighing):
        assert said.decision == fields["decision"]
        assert said.decision in ("GO", "NO_GO")
        assert said.confidence == fields["confidence"]
        assert 0.0 <= said.confidence <= 1.0
        assert set(said.decisive) == set(fields["decisive"])
        assert all(claims()[number].status == "verified" for number in said.decisive)
        assert said.decisive or said.decision is Decision.NO_GO
        return
    if isinstance(said, Argument):
        prices = (said.entry_price, said.stop_price, said.target_price)
        assert prices == tuple(fields[f"{name}_price"] for name in ("entry", "stop", "target"))
        assert all(0.0 < price < 1e9 for price in prices)
    else:
        assert said.weakest_claim in {claim.text for claim in clean_debate().arguments[0].claims}
    assert len(said.claims) == len(fields["claims"])
    for claim, given in zip(said.claims, fields["claims"], strict=True):
        assert claim.status == "unchecked"
        assert list(claim.evidence_ids) == given["evidence_ids"]
        for name in ("field", "operator", "quoted_value", "unit", "upper_value", "when"):
            assert getattr(claim, name) == given.get(name), name


class Saying:
    """A model that says one thing, whatever it is asked."""

    name = "saying"

    def __init__(self) -> None:
        self.text = ""

    def complete(self, request: ChatRequest) -> ChatReply:
        return ChatReply(text=self.text)


class Court:
    """One debate per role in which that role's model says what it is told, the others are sound."""

    def __init__(self) -> None:
        self._saying = Saying()
        self._graphs = {
            role: DebateGraph(
                bull=self._saying if role == "bull" else RulesChat(),
                bear=self._saying if role == "bear" else RulesChat(),
                arbitrator=self._saying if role == "arbitrator" else None,
                limits=DebateLimits(),
                costs=Costs(),
                rounds=0,
            )
            for role in ROLES
        }
        self._clean = {role: self.held(role, json.dumps(clean(role))).verdict for role in ROLES}
        assert all(verdict.decision is Decision.GO for verdict in self._clean.values())

    def held(self, role: Role, text: str) -> Debate:
        """The debate in which this role says `text`, also when asked to repair it."""
        self._saying.text = text
        return self._graphs[role].deliberate(candidate(), evidence(), "fuzz", NoPast())

    def judge(self, given: Case) -> str:
        """Hold one debate; a GO needs a sound reply and every rule. Returns the decision."""
        debate = self.held(given.role, given.text)
        verdict = debate.verdict
        assert verdict.decision in (Decision.GO, Decision.NO_GO)
        assert from_primitive(Debate, json.loads(canonical_json(debate))) == debate
        if given.sound:
            assert verdict == self._clean[given.role]
        if given.sound is False:
            assert FlagCode.INVALID_REPLY in {flag.code for flag in verdict.flags}
        if verdict.decision is Decision.NO_GO:
            assert verdict.flags
            return "NO_GO"
        assert not verdict.flags
        assert all(rule.passed for rule in verdict.rules)
        parsed(given.role, given.text)
        levels = (verdict.entry_price, verdict.stop_price, verdict.target_price)
        assert levels == (100.05, 96.05, 110.0)
        assert all(claim.status == "verified" for claim in debate.arguments[0].claims)
        assert verdict.confidence <= self._clean["bull"].confidence or given.role == "bear"
        return "GO"


def main(arguments: list[str]) -> int:
    """Judge replies until one breaks a promise; 1 and the command that repeats it when one does."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_replies", description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="replies, over all roles")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first reply")
    chosen = parser.parse_args(arguments)
    court, ends = Court(), Counter[tuple[str, str]]()
    for number in range(chosen.first, chosen.first + chosen.count):
        given = case(ROLES[number % len(ROLES)], chosen.seed, number)
        try:
            ends[given.kind, judge_parsing(given)] += 1
            ends[given.kind, court.judge(given)] += 1
        except Exception as exc:  # noqa: BLE001 - whatever escapes is what is looked for
            print(f"{given}\n{type(exc).__name__}: {exc}")  # noqa: T201
            repeat = f"--seed {chosen.seed} --first {number} --count 1"
            print(f"again: python -m tests.fuzz_replies {repeat}")  # noqa: T201
            return 1
    columns = ("read", "refused", "GO", "NO_GO")
    print(f"{'kind':16}" + "".join(f"{column:>9}" for column in columns))  # noqa: T201
    for kind, _, _ in KINDS:
        print(f"{kind:16}" + "".join(f"{ends[kind, column]:9}" for column in columns))  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
