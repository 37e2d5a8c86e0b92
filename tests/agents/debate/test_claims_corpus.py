"""Hundreds of statements about real bars: no true one falls, no invented one stands."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.debate.claims.checker import check_claims
from tests.agents.debate.corpus import World, worlds
from tests.agents.debate.corpus_false import FABRICATIONS, fabrications
from tests.agents.debate.corpus_true import KINDS, true_statements
from trader.core.decision import Claim
from trader.pipeline.history import RecordedHistory

STATEMENTS = 26  # of each kind


def checked(world: World, said: Claim) -> Claim:
    return check_claims([said], world.evidence, world.history())[0]


def test_no_true_statement_is_rejected():
    told = list(true_statements(seed=20260302, each=STATEMENTS))
    assert len(told) >= 300
    fallen = [
        (kind, said.text, result.detail)
        for world, kind, said in told
        if (result := checked(world, said)).status != "verified"
    ]
    assert fallen == []
    assert set(Counter(kind for _, kind, _ in told).values()) == {STATEMENTS}


def test_every_fabrication_is_caught():
    told = list(fabrications(seed=20260302, each=STATEMENTS))
    assert len(told) >= 300
    statuses = Counter()
    stood = []
    for world, kind, said in told:
        status = checked(world, said).status
        statuses[status] += 1
        if status not in ("contradicted", "unverifiable"):
            stood.append((kind, said.text, said.field, said.operator, said.quoted_value))
    assert stood == []
    assert min(statuses["contradicted"], statuses["unverifiable"]) >= 100


@given(st.integers(0, 2**32), st.sampled_from(KINDS), st.integers(0, 17))
@settings(max_examples=150)
def test_whatever_the_seed_a_true_statement_stands(seed, kind, number):
    world = worlds()[number % len(worlds())]
    said = kind(world, np.random.default_rng(seed))
    result = checked(world, said)
    assert result.status == "verified", (said, result.detail)


@given(st.integers(0, 2**32), st.sampled_from(FABRICATIONS), st.integers(0, 17))
@settings(max_examples=200)
def test_whatever_the_seed_a_fabrication_falls(seed, kind, number):
    world = worlds()[number % len(worlds())]
    said = kind(world, np.random.default_rng(seed))
    result = checked(world, said)
    assert result.status in ("contradicted", "unverifiable"), (said, result.detail)


def test_the_record_of_what_was_looked_up_gives_the_same_statuses_without_bars():
    told = [*true_statements(seed=5, each=6), *fabrications(seed=5, each=4)]
    asked = 0
    for world, _, said in told:
        history = world.history()
        live = check_claims([said], world.evidence, history)
        again = RecordedHistory(dict(history.answers))
        assert check_claims([said], world.evidence, again) == live
        assert again.answers == history.answers
        asked += len(history.answers)
    assert asked > 100
