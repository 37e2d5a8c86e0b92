"""Calibration: Brier score and reliability table, by hand and for any outcomes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trader.backtest.calibration import calibrate

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=60)


def test_the_score_and_the_table_by_hand():
    found = calibrate([(0.9, True), (0.7, False), (0.2, False), (1.0, True)], left_out=3)
    assert found.brier == pytest.approx((0.01 + 0.49 + 0.04 + 0.0) / 4)
    assert found.base_brier == 0.25
    assert (found.verdicts, found.won, found.left_out) == (4, 2, 3)
    assert [item.count for item in found.bins] == [0, 1, 0, 1, 2]  # 0.2 opens the second bin
    last = found.bins[-1]
    assert (last.low, last.high, last.won) == (0.8, 1.0, 1.0)
    assert last.mean_confidence == pytest.approx(0.95)
    assert found.bins[0].won is None


def test_no_outcome_has_no_score():
    found = calibrate([], left_out=2)
    assert (found.brier, found.base_brier, found.verdicts, found.left_out) == (None, None, 0, 2)


@pytest.mark.parametrize("confidence", [-0.1, 1.1, float("nan")])
def test_a_confidence_outside_its_range_is_refused(confidence):
    with pytest.raises(ValueError, match="outside 0 to 1"):
        calibrate([(confidence, True)])


@given(PAIRS)
def test_every_verdict_stands_in_one_bin_and_the_score_in_its_range(pairs):
    found = calibrate(pairs)
    assert sum(item.count for item in found.bins) == found.verdicts == len(pairs)
    for item in found.bins:
        if item.mean_confidence is not None:
            assert item.low - 1e-9 <= item.mean_confidence <= item.high + 1e-9
    if pairs:
        assert 0.0 <= found.brier <= 1.0
        assert 0.0 <= found.base_brier <= 0.25


@given(PAIRS.filter(bool))
def test_always_saying_the_share_that_won_scores_the_base(pairs):
    share = sum(won for _, won in pairs) / len(pairs)
    found = calibrate([(share, won) for _, won in pairs])
    assert found.brier == pytest.approx(found.base_brier)
