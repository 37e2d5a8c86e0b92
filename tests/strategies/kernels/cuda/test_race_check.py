"""The race checker finds what was planted, and nothing in the product's kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from strategies.kernels.cuda.race_check import crowded_lines, watching
from tests.strategies.kernels.processes import ROOT, told_by
from trader.core.errors import EndpointError

SOURCES = sorted((ROOT / "strategies" / "kernels" / "cuda").glob("*.py"))


def test_planted_faults_are_found_and_the_products_kernels_have_none():
    told = told_by("tests.strategies.kernels.cuda.simulated_races", simulator=True)
    assert told["planted"] == {
        "reverse": [],
        "reverse_without_barrier": ["race", "unwritten"],
        "reverse_through_memory": ["race", "unwritten"],
        "shift_down": ["negative"],
        "half_loaded": ["unwritten"],
        "adds_to_garbage": ["unwritten"],
        "barrier_in_a_branch": ["barrier"],
        "barriers_apart": ["barrier"],
        "leaves_before_the_barrier": ["barrier"],
        "barrier_only_before_reading": ["race"],
        "two_share_a_cell": ["race"],
        "one_too_far": ["unwritten"],
        "copies_without_barrier": ["race", "unwritten"],
        "copies_through_memory": ["race", "unwritten"],
        "copies_within_shared_memory": ["race", "unwritten"],
        "sums_without_barrier": ["race", "unwritten"],
        "forgets_its_own": ["unwritten"],
        "all_write_one": ["race"],
        "fills_a_row": [],
        "rows_overlap": ["race"],
    }
    assert told["filled"] == {
        "copied to": [],
        "assigned to": [],
        "like another": ["unwritten"],
        "given out again": ["unwritten"],
    }
    ours = told["ours"]
    assert ours["findings"] == []
    assert ours["watched"] == ours["kernels"], "a kernel is not watched"
    assert ours["accesses"] > 10_000


def test_races_cannot_be_looked_for_outside_the_simulator():
    with pytest.raises(EndpointError, match="set NUMBA_ENABLE_CUDASIM=1"), watching():
        pass


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_no_line_of_ours_makes_two_shared_arrays(source: Path):
    assert crowded_lines(source.read_text(encoding="utf-8")) == ()


def test_two_shared_arrays_on_one_line_are_found():
    crowded = (
        "a = cuda.shared.array(8, t); b = cuda.shared.array(8, t)\nc = cuda.shared.array(8, t)\n"
    )
    assert crowded_lines(crowded) == (1,)
    assert crowded_lines("cuda.shared.array(8, t)\ncuda.local.array(8, t)\n") == ()
