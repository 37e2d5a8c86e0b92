"""The sweeps of the benchmark on little data: what is compared, and what a missing peer means."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.benchmarks import accuracy, million, starts, sweeps, walks
from tests.benchmarks.ceilings import Ceilings
from tests.benchmarks.peers import installed
from tests.benchmarks.rows import agreement

SMALL = sweeps.Scale(bars=320, side=6, levels=3, windows=5, million=(2, 5, 8))
ROOFS = Ceilings(read_gb_s={"L1": 200.0, "L2": 100.0, "L3": 50.0, "DRAM": 20.0}, fma_gflop_s=50.0)


@pytest.mark.parametrize("work", [SMALL.smas(), SMALL.rsis(), SMALL.atr_stops()])
def test_the_sets_of_a_work_are_numbered_as_those_of_our_grid(work):
    found = sweeps.swept(work)
    assert found.trades.size == len(work) == len(sweeps.strategy_and_grid(work)[1])
    assert found.trades.sum() > 0
    assert agreement(found, sweeps.swept(work, engine="bars")).holds


@pytest.mark.parametrize("against", sweeps.AGAINST, ids=lambda against: against.work)
def test_a_sweep_agrees_with_its_peer_or_is_skipped(against, monkeypatch):
    monkeypatch.setattr(sweeps, "LEAST", 0.0)
    row = sweeps.against_peer(against, SMALL)
    missing = [package for package in against.needs if installed(package) is None]
    if missing:
        assert (row.status, row.value) == ("skipped", None)
        assert missing[0] in row.note
        assert row.verdict(row.at_least) == "skipped"
    else:
        assert row.status == "measured", row.note


def test_a_peer_with_other_results_is_never_faster(monkeypatch):
    monkeypatch.setattr(sweeps, "LEAST", 0.0)
    right = sweeps.swept(SMALL.smas())
    wrong = replace(right, trades=right.trades + 1)
    against = replace(sweeps.AGAINST[0], needs=(), theirs=lambda work: lambda: wrong)
    row = sweeps.against_peer(against, SMALL)
    assert row.status == "disagrees"
    assert not row.reaches(0.0)


def test_the_definition_agrees_with_both_engines_whatever_the_threads():
    (row,) = accuracy.rows(sets=12, bars=260)
    assert row.status == "measured", row.note
    assert row.value <= 1e-9
    assert len(row.detail) == 8


def test_one_bit_apart_is_not_identical():
    found = sweeps.swept(SMALL.smas())
    other = replace(found, sharpe=np.nextafter(found.sharpe, np.inf))
    assert accuracy.identical(found, found)
    assert not accuracy.identical(found, other)


def test_the_bar_by_bar_engine_is_checked_before_it_is_timed(monkeypatch):
    monkeypatch.setattr(walks, "LEAST", 0.0)
    row = walks.rows(SMALL)[0]
    assert row.status == "measured", row.note
    assert row.detail["mean_trades"] > 0.0


def test_a_million_sets_tell_their_time_and_their_own_memory(capsys, monkeypatch):
    monkeypatch.setattr(million, "REPEATS", 1)
    million.main(300, 2, 5, 8)
    told = json.loads(capsys.readouterr().out)
    assert (told["sets"], told["bars"], told["symbols"]) == (80, 300, 2)
    assert told["seconds"] > 0.0
    assert 20.0 < told["peak_mb"] < 20_000.0


def test_a_scan_is_held_against_the_time_of_reading():
    row = sweeps.scan_row(SMALL, ROOFS)
    seconds, cells = row.detail["seconds"], row.detail["set_bars"]
    assert cells == 36 * (320 - 13)
    assert row.value == pytest.approx(100.0 * cells * 16 / 100e9 / seconds)


def test_the_first_backtest_is_the_one_that_imports_its_kernels():
    assert "sma_cross_backtest" in starts.FIRST
    assert "strategies" not in starts.ALONE
