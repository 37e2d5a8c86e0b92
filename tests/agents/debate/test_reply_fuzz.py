"""Generated replies: each is read exactly or refused, and none but a sound one ends in a GO.

More of them: python -m tests.fuzz_replies --count 100000 --seed 1.
"""

from __future__ import annotations

import json

import pytest

from tests.agents.debate.replies import KINDS, ROLES, Case, case, clean
from tests.fuzz_replies import Court, judge_parsing, main

PARSED, DEBATED = 20_000, 1_500
SEED = 20_261_130


@pytest.mark.parametrize("role", ROLES)
def test_generated_replies_are_read_exactly_or_refused(role):
    numbers = range(ROLES.index(role), PARSED, len(ROLES))
    ends = {(given.kind, judge_parsing(given)) for given in (case(role, SEED, n) for n in numbers)}
    for kind, sound, _ in KINDS:
        if sound is not None:
            assert {end for name, end in ends if name == kind} == {"read" if sound else "refused"}
    assert ("nudged", "read") in ends
    assert ("bits", "read") in ends
    assert ("bits", "refused") in ends


@pytest.mark.parametrize("role", ROLES)
def test_generated_replies_in_a_debate_end_in_go_only_when_sound_and_every_rule_passes(role):
    court = Court()
    numbers = range(ROLES.index(role), DEBATED, len(ROLES))
    ends = {(given.sound, court.judge(given)) for given in (case(role, SEED, n) for n in numbers)}
    assert ends >= {(True, "GO"), (False, "NO_GO"), (None, "NO_GO")}
    assert not ends & {(True, "NO_GO"), (False, "GO")}


@pytest.mark.parametrize("role", ROLES)
def test_a_reply_cut_at_any_byte_is_refused(role):
    raw = json.dumps(clean(role), ensure_ascii=False).encode()
    for length in range(len(raw)):
        text = raw[:length].decode(errors="replace")
        given = Case(role=role, kind="cut", text=text, sound=False)
        assert judge_parsing(given) == "refused"


def test_a_case_is_the_same_whenever_it_is_asked_for():
    assert [case("bull", 5, number) for number in range(99)] == [
        case("bull", 5, number) for number in range(99)
    ]


def test_the_command_counts_the_ends_and_repeats_one_case(capsys):
    assert main(["--count", "3", "--first", "3", "--seed", "7"]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[0].split() == ["kind", "read", "refused", "GO", "NO_GO"]
    assert "raw white space" not in printed.splitlines()[0]
