"""What one decision costs: five calls over real evidence, replies of real length."""

from __future__ import annotations

import json

import pytest

from agents.debate.identity import other_issuers
from tests.agents.debate.sampled import Turn, debated, decisions
from trader.core.ports import Prompt
from trader.text.tokens import estimated_tokens

INPUT_TOKENS, OUTPUT_TOKENS = 8_000, 2_500
PEERS_TOKENS = 115_000


def text_of(prompt: Prompt) -> str:
    return "\n".join(message.content for message in prompt.messages)


def sent(prompt: Prompt) -> str:
    """Everything that a call sends: the messages and the schema of the reply."""
    return f"{text_of(prompt)}\n{json.dumps(prompt.schema)}"


@pytest.fixture(scope="module")
def debates() -> list[tuple[Turn, ...]]:
    return [debated(prepared) for prepared in decisions()]


def test_a_decision_stays_within_its_tokens_by_the_cautious_estimate(debates):
    assert len(debates) >= 10
    for turns in debates:
        assert [turn.role for turn in turns] == ["bull", "bear", "bull", "bear", "arbitrator"]
        asked = sum(estimated_tokens(sent(turn.prompt)) for turn in turns)
        answered = sum(estimated_tokens(turn.reply) for turn in turns)
        assert asked <= INPUT_TOKENS
        assert answered <= OUTPUT_TOKENS
        assert 10 * (asked + answered) < PEERS_TOKENS
        # replies of real length, not tokens of one
        assert answered > OUTPUT_TOKENS / 2


def test_a_decision_stays_within_its_tokens_by_a_real_vocabulary(debates):
    encode = pytest.importorskip("rs_bpe.bpe").openai.o200k_base().encode
    for turns in debates:
        asked = [sent(turn.prompt) for turn in turns]
        assert sum(len(encode(text)) for text in asked) <= INPUT_TOKENS
        assert sum(len(encode(turn.reply)) for turn in turns) <= OUTPUT_TOKENS
        for text in asked:
            assert estimated_tokens(text) >= len(encode(text))


def test_sentences_over_the_sample_speak_of_no_other_issuer(debates):
    for prepared, turns in zip(decisions(), debates, strict=True):
        own = prepared.candidate.instrument
        assert other_issuers(prepared.candidate.signal.reason, own) == ()
        for turn in turns:
            assert other_issuers(turn.reply, own) == ()
            assert other_issuers(text_of(turn.prompt), own) == ()
