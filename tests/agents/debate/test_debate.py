"""The debate as a whole: who may win, what is refused, and that nothing malformed ever trades."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from threading import current_thread

import pytest

import agents.debate.graph as graph_module
from agents.chat.rules_chat import RulesChat
from agents.debate.arbitrator import confidence_of
from agents.debate.graph import DebateGraph
from agents.debate.rules import DebateLimits
from agents.debate.state import DebateContext, DebateState, empty_state
from tests.agents.facts import SOUND, NoPast, candidate, evidence, id_of
from trader.core.canonical import canonical_json
from trader.core.costs import Costs
from trader.core.decision import Claim, Debate, Decision, EvidenceIndex, FlagCode
from trader.core.errors import EndpointError
from trader.core.ports import ChatReply, ChatRequest


@dataclass
class ScriptedChat:
    """Says what it was told to say; remembers what it was asked."""

    replies: list[str | Exception]
    name: str = "script"
    asked: list[ChatRequest] = field(default_factory=list)

    def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return ChatReply(text=reply)


def graph(bull=None, bear=None, *, rounds=1, limits=None, costs=None) -> DebateGraph:
    return DebateGraph(
        bull=bull or RulesChat(),
        bear=bear or RulesChat(),
        limits=limits or DebateLimits(),
        costs=costs or Costs(),
        rounds=rounds,
    )


def context_of(facts) -> DebateContext:
    return DebateContext(
        cycle_id="c", candidate=candidate(), evidence=EvidenceIndex(facts), history=NoPast()
    )


def codes(debate: Debate) -> set[str]:
    return {str(flag.code) for flag in debate.verdict.flags}


def test_a_sound_breakout_is_a_go_that_shows_every_rule():
    debate = graph().deliberate(candidate(), evidence(), "c1", NoPast())
    assert debate.verdict.decision is Decision.GO, debate.verdict.rationale
    assert all(rule.passed for rule in debate.verdict.rules)
    assert len(debate.verdict.rules) >= 12
    assert debate.verdict.target_price == 110.0
    assert len(debate.arguments) == len(debate.rebuttals) == 2
    assert debate.debater == "rules"


def test_price_zero_and_a_missing_rsi_that_the_bull_still_quotes_is_no_go_with_both_flags():
    facts = evidence(close=0.0, rsi_14=None)
    bull = ScriptedChat(
        [
            json.dumps(
                {
                    "thesis": "RSI 29 is oversold.",
                    "claims": [
                        {
                            "text": "RSI is 29.",
                            "evidence_ids": [id_of(facts, "rsi_14")],
                            "field": "rsi_14",
                            "operator": "=",
                            "quoted_value": 29.0,
                            "unit": "index_0_100",
                        }
                    ],
                    "entry_price": 100.05,
                    "stop_price": 96.05,
                    "target_price": 110.0,
                }
            )
        ]
    )
    debate = graph(bull, rounds=0).deliberate(candidate(), facts, "c1", NoPast())
    assert debate.verdict.decision is Decision.NO_GO
    assert {FlagCode.DATA_INTEGRITY_FAILURE, FlagCode.UNVERIFIABLE_THESIS} <= codes(debate)
    assert debate.rebuttals[0].weakest_claim == "RSI is 29."


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"close": None}, FlagCode.DATA_INTEGRITY_FAILURE),
        ({"atr": 0.0}, FlagCode.DATA_INTEGRITY_FAILURE),
        ({"bars_behind": 1.0}, FlagCode.STALE_DATA),
        ({"bars_behind": None}, FlagCode.STALE_DATA),
        ({"target_high_60": 107.0}, FlagCode.REWARD_RISK_BELOW_MINIMUM),
        ({"probability_high_60": 0.25}, FlagCode.NEGATIVE_EXPECTED_VALUE),
        ({"probability_high_60": None}, FlagCode.NEGATIVE_EXPECTED_VALUE),
        ({"position_weight": 0.15}, FlagCode.POSITION_CAP),
        ({"position_weight": 0.1, "open_buy_weight": 0.05}, FlagCode.POSITION_CAP),
        ({"position_weight": None}, FlagCode.POSITION_CAP),
        ({"entry_price": 101.0}, FlagCode.INVALID_LEVELS),
        ({"stop_price": 95.0}, FlagCode.INVALID_LEVELS),
    ],
)
def test_one_broken_fact_vetoes_an_otherwise_sound_trade(changes, code):
    debate = graph().deliberate(candidate(), evidence(**changes), "c1", NoPast())
    assert debate.verdict.decision is Decision.NO_GO
    assert code in codes(debate)


def test_reward_risk_is_measured_after_costs_on_both_sides_of_the_limit():
    # entry 100.05, stop 96.05 sold at 96.001975: 4.048025 at risk, so 2.0 is reached at 108.14605
    assert (
        graph()
        .deliberate(candidate(), evidence(target_high_60=108.15), "c", NoPast())
        .verdict.decision
        is Decision.GO
    )
    thin = graph().deliberate(candidate(), evidence(target_high_60=108.14), "c", NoPast())
    assert FlagCode.REWARD_RISK_BELOW_MINIMUM in codes(thin)


def test_a_target_that_is_no_level_of_the_evidence_is_refused():
    made_up = json.loads(RulesChat().complete(_request()).text) | {"target_price": 130.0}
    debate = graph(ScriptedChat([json.dumps(made_up)]), rounds=0).deliberate(
        candidate(), evidence(), "c", NoPast()
    )
    assert FlagCode.INVALID_LEVELS in codes(debate)


def _request() -> ChatRequest:
    return ChatRequest(
        role="bull",
        round=0,
        candidate=candidate(),
        evidence=EvidenceIndex(evidence()),
        arguments=(),
        rebuttals=(),
        prompt=lambda: pytest.fail("rules read no prompt"),
        subject="c",
    )


def test_where_the_bull_was_not_heard_only_the_failure_is_told():
    debate = graph(ScriptedChat([EndpointError("http://test/v1 cannot be reached")])).deliberate(
        candidate(), evidence(), "c", NoPast()
    )
    assert codes(debate) == {FlagCode.ENDPOINT_FAILURE}
    assert debate.verdict.rationale == (
        "NO_GO, 1 of 6 rules fail: bull: http://test/v1 cannot be reached."
    )


def test_mean_reversion_against_a_strong_down_trend_is_a_momentum_trap():
    falling = {
        "close": 100.0,
        "sma_200": 120.0,
        "adx_14": 30.0,
        "plus_di_14": 10.0,
        "minus_di_14": 30.0,
    }
    trap = graph().deliberate(candidate("mean_reversion"), evidence(**falling), "c", NoPast())
    assert FlagCode.MOMENTUM_TRAP_RISK in codes(trap)
    calm = graph().deliberate(
        candidate("mean_reversion"), evidence(**falling | {"adx_14": 24.9}), "c", NoPast()
    )
    assert FlagCode.MOMENTUM_TRAP_RISK not in codes(calm)
    trend = graph().deliberate(candidate("trend"), evidence(**falling), "c", NoPast())
    assert FlagCode.MOMENTUM_TRAP_RISK not in codes(trend)


def test_a_debate_about_a_signal_that_did_not_fire_cannot_end_in_go():
    debate = graph().deliberate(candidate(fired=False), evidence(), "c", NoPast())
    assert codes(debate) == {FlagCode.NO_SIGNAL}


@pytest.mark.parametrize("side", ["bull", "bear"])
@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("GO", FlagCode.INVALID_REPLY),
        ('{"verdict": "GO"}', FlagCode.INVALID_REPLY),
        ("", FlagCode.INVALID_REPLY),
        (EndpointError("nothing answers at 127.0.0.1:9"), FlagCode.ENDPOINT_FAILURE),
    ],
)
@pytest.mark.parametrize("turn", [0, 1])
def test_an_unusable_reply_of_either_side_in_any_round_is_no_go_with_the_partial_transcript(
    side, reply, code, turn
):
    class Failing(RulesChat):
        def complete(self, request: ChatRequest) -> ChatReply:
            if request.round < turn:
                return super().complete(request)
            if isinstance(reply, Exception):
                raise reply
            return ChatReply(text=reply)

    debate = graph(**{side: Failing()}).deliberate(candidate(), evidence(), "c", NoPast())
    assert debate.verdict.decision is Decision.NO_GO
    assert code in codes(debate)
    assert len(debate.arguments) == turn + (side == "bear")


def test_one_false_claim_among_true_ones_is_enough():
    honest = json.loads(RulesChat().complete(_request()).text)
    honest["claims"][1] |= {"quoted_value": 9.0, "operator": ">="}
    debate = graph(ScriptedChat([json.dumps(honest)]), rounds=0).deliberate(
        candidate(), evidence(), "c", NoPast()
    )
    assert FlagCode.CONTRADICTED_CLAIM in codes(debate)
    assert debate.rebuttals[0].weakest_claim == honest["claims"][1]["text"]


def test_too_few_verified_claims_are_not_enough():
    debate = graph(limits=DebateLimits(minimum_verified_claims=20)).deliberate(
        candidate(), evidence(), "c", NoPast()
    )
    assert codes(debate) == {FlagCode.INSUFFICIENT_EVIDENCE}


def test_the_bear_reads_checked_claims_and_the_bull_reads_the_rebuttal():
    bull, bear = RulesChat(), ScriptedChat([])

    class Bear(RulesChat):
        def complete(self, request: ChatRequest) -> ChatReply:
            bear.asked.append(request)
            return super().complete(request)

    graph(bull, Bear(), rounds=2).deliberate(candidate(), evidence(), "c", NoPast())
    assert [request.round for request in bear.asked] == [0, 1, 2]
    assert all(claim.status != "unchecked" for claim in bear.asked[0].arguments[-1].claims)
    attacked = [request.rebuttals[-1].weakest_claim for request in bear.asked[1:]]
    assert len(set(attacked)) == len(attacked)


def test_confidence_falls_with_every_verified_claim_of_the_bear():
    claim = Claim(
        text="",
        evidence_ids=("E1",),
        field="close",
        operator="=",
        quoted_value=1.0,
        unit="USD",
        status="verified",
    )
    values = [confidence_of([claim] * 4, [claim] * count) for count in range(6)]
    assert values == sorted(values, reverse=True)
    assert confidence_of([], []) == 0.5
    assert confidence_of([replace(claim, status="contradicted")], []) == 0.0


def test_a_false_claim_lowers_the_weight_of_its_speaker_and_never_helps_the_other_side():
    claims = [
        Claim(
            text="",
            evidence_ids=("E1",),
            field=f"fact_{number}",
            operator="=",
            quoted_value=1.0,
            unit="USD",
            status="verified",
        )
        for number in range(4)
    ]
    false = replace(claims[0], status="contradicted", field="false")
    honest = confidence_of(claims, claims[:2])
    assert honest == 5 / 8
    assert confidence_of([*claims, false], claims[:2]) == (5 * 0.8) / (5 * 0.8 + 3)
    assert confidence_of(claims, [*claims[:2], false]) == 5 / (5 + 2 * 2 / 3 + 1)
    silent = confidence_of(claims, [])
    assert confidence_of(claims, [false] * 5) == silent  # lying is no better than saying nothing


def test_the_same_debate_twice_is_equal_to_the_last_bit():
    first = graph().deliberate(candidate(), evidence(), "c", NoPast())
    second = graph().deliberate(candidate(), evidence(), "c", NoPast())
    assert canonical_json(first) == canonical_json(second)


@pytest.mark.parametrize("rounds", [0, 1])
def test_the_debate_ends_after_the_rounds_that_were_asked_for(rounds):
    debate = graph(rounds=rounds).deliberate(candidate(), evidence(), "c", NoPast())
    assert len(debate.arguments) == len(debate.rebuttals) == rounds + 1


def test_the_debate_ends_early_when_a_round_verifies_nothing_new():
    debate = graph(rounds=5).deliberate(candidate(), evidence(), "c", NoPast())
    assert len(debate.arguments) < 6
    turns = [*debate.arguments, *debate.rebuttals]

    def verified(rounds):
        return {
            claim.field
            for turn in turns
            for claim in turn.claims
            if turn.round in rounds and claim.status == "verified"
        }

    last = debate.arguments[-1].round
    assert verified({last}) <= verified(range(last))
    for earlier in range(1, last):
        assert not verified({earlier}) <= verified(range(earlier))
    assert debate.verdict.decision is Decision.GO


def test_a_debate_that_does_not_come_to_an_end_is_no_go_with_what_was_said(monkeypatch):
    monkeypatch.setattr(graph_module, "NODES_BESIDE_ROUNDS", -5)  # three steps instead of five
    debate = graph().deliberate(candidate(), evidence(), "c", NoPast())
    assert debate.verdict.decision is Decision.NO_GO
    assert codes(debate) == {"NOT_CONVERGED"}
    assert (len(debate.arguments), len(debate.rebuttals)) == (2, 1)


def test_every_speaker_is_heard_in_the_thread_that_waits_so_that_ctrl_c_reaches_it():
    threads, told = [], []

    class Here(RulesChat):
        def complete(self, request: ChatRequest) -> ChatReply:
            threads.append(current_thread())
            return super().complete(request)

    speaking = DebateGraph(
        bull=Here(),
        bear=Here(),
        limits=DebateLimits(),
        costs=Costs(),
        rounds=1,
        listener=told.append,
    )
    speaking.deliberate(candidate(), evidence(), "c", NoPast())
    assert set(threads) == {current_thread()}
    assert [event.role for event in told if event.said is None] == ["bull", "bear"] * 2


def test_rule_debaters_make_no_claim_that_is_false_whatever_is_missing():
    for name in SOUND:
        debate = graph().deliberate(candidate(), evidence(**{name: None}), "c", NoPast())
        said = [c for turn in (*debate.arguments, *debate.rebuttals) for c in turn.claims]
        false = [c for c in said if c.status == "contradicted"]
        assert not false, (name, false)


def test_the_state_of_the_graph_holds_json_primitives_only():
    hints = DebateState.__annotations__
    assert not {"candidate", "evidence", "bars", "model", "key"} & set(hints)
    kept = {}
    speaking = graph()
    for chunk in speaking.compiled.stream(
        empty_state(), context=context_of(evidence()), stream_mode="values"
    ):
        kept = chunk
    assert json.loads(json.dumps(kept)) == kept
    assert all(node in speaking.mermaid() for node in ("bull", "bear", "hearing", "approval"))


def test_saying_a_thing_again_adds_neither_evidence_nor_confidence():
    honest = json.loads(RulesChat().complete(_request()).text)
    honest["claims"] = [honest["claims"][0]] * 12
    debate = graph(ScriptedChat([json.dumps(honest)]), rounds=0).deliberate(
        candidate(), evidence(), "c", NoPast()
    )
    assert FlagCode.INSUFFICIENT_EVIDENCE in codes(debate)
    once = honest | {"claims": honest["claims"][:1]}
    single = graph(ScriptedChat([json.dumps(once)]), rounds=0).deliberate(
        candidate(), evidence(), "c", NoPast()
    )
    assert debate.verdict.confidence == single.verdict.confidence


def test_the_verdict_carries_the_evidence_own_numbers():
    near = json.loads(RulesChat().complete(_request()).text)
    near |= {"stop_price": 96.0451, "target_price": 109.9951, "entry_price": 100.0541}
    debate = graph(ScriptedChat([json.dumps(near)]), rounds=0).deliberate(
        candidate(), evidence(), "c", NoPast()
    )
    verdict = debate.verdict
    assert (verdict.entry_price, verdict.stop_price, verdict.target_price) == (100.05, 96.05, 110.0)
