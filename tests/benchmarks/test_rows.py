"""The table judges what was measured: results first, then ratios; a missing peer passes nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.benchmarks.__main__ import report, verdict
from tests.benchmarks.rows import Row, agreement, compared, table


@dataclass(frozen=True)
class Some:
    final_equity: np.ndarray
    sharpe: np.ndarray
    max_drawdown: np.ndarray
    trades: np.ndarray


def some(**changed: list[float]) -> Some:
    right = {
        "final_equity": [100.0, 200.0],
        "sharpe": [0.5, -3.0],
        "max_drawdown": [-0.1, -0.2],
        "trades": [3, 4],
    }
    return Some(**{name: np.array(values) for name, values in (right | changed).items()})


ROW = Row(work="w", unit="×", at_least=2.0, aim=3.0)
UNDER = Row(work="w", unit="ns", at_least=2.0, aim=1.0, less_is_better=True)


def test_equal_results_agree():
    assert agreement(some(), some()).holds


@pytest.mark.parametrize(
    "changed",
    [
        {"trades": [3, 5]},
        {"final_equity": [100.0, 200.0 * (1.0 + 2e-9)]},
        {"sharpe": [0.5 + 2e-9, -3.0]},
        {"max_drawdown": [-0.1, -0.2 - 2e-9]},
        {"sharpe": [math.nan, -3.0]},
    ],
)
def test_one_number_that_differs_is_a_disagreement(changed):
    assert not agreement(some(**changed), some()).holds
    assert not agreement(some(), some(**changed)).holds


def test_rounding_and_two_missing_numbers_are_none():
    ours = some(final_equity=[100.0, 200.0 * (1.0 + 1e-10)], sharpe=[math.nan, -3.0])
    assert agreement(ours, some(sharpe=[math.nan, -3.0])).holds


def test_results_of_other_sets_cannot_be_compared():
    with pytest.raises(ValueError, match="2 and 1 sets"):
        agreement(some(), Some(*(np.ones(1) for _ in range(4))))


@pytest.mark.parametrize(
    ("row", "value", "least", "aim"),
    [
        (ROW, 1.9, "missed", "missed"),
        (ROW, 2.0, "met", "missed"),
        (ROW, 3.0, "met", "met"),
        (UNDER, 2.1, "missed", "missed"),
        (UNDER, 2.0, "met", "missed"),
        (UNDER, 1.0, "met", "met"),
    ],
)
def test_a_figure_is_met_or_missed(row, value, least, aim):
    measured = replace(row, value=value)
    assert (measured.verdict(row.at_least), measured.verdict(row.aim)) == (least, aim)


@pytest.mark.parametrize("status", ["skipped", "disagrees", "failed"])
def test_what_was_not_measured_soundly_meets_nothing(status):
    row = replace(ROW, value=1e9, status=status)
    assert not row.reaches(row.at_least)
    assert row.verdict(row.at_least) == status
    assert status in table([row])


def test_a_faster_engine_with_other_results_is_no_ratio():
    row = compared(
        ROW,
        agreement(some(trades=[3, 5]), some()),
        seconds=1.0,
        peer="peer",
        peer_seconds=9.0,
        bars=10,
        trades=4.0,
    )
    assert row.verdict(row.at_least) == "disagrees"
    assert "1 of 2 trade counts differ" in row.note


def test_a_ratio_is_the_time_of_the_peer_over_ours():
    row = compared(
        ROW,
        agreement(some(), some()),
        seconds=2.0,
        peer="peer",
        peer_seconds=5.0,
        bars=100,
        trades=4.0,
    )
    assert row.value == 2.5
    assert row.detail["ns"] == pytest.approx(2.0 / 200 * 1e9)
    assert row.as_json()["least"] == "met"
    assert row.as_json()["aimed"] == "missed"


@pytest.mark.parametrize(
    ("rows", "busy", "code"),
    [
        ([replace(ROW, value=2.5)], False, 0),
        ([replace(ROW, value=1.0)], False, 1),
        ([replace(ROW, value=1.0)], True, 0),
        ([replace(ROW, status="skipped")], False, 0),
        ([replace(ROW, value=9.0, status="disagrees")], True, 1),
    ],
)
def test_the_exit_code_is_one_where_results_differ_or_a_machine_at_rest_is_too_slow(
    rows, busy, code
):
    assert verdict(rows, busy=busy) == code


def test_a_busy_machine_is_named_above_the_table():
    body = {
        "machine": {
            "processor": "P",
            "cores": 2,
            "python": "3",
            "packages": {"vectorbt": "missing"},
        },
        "load_before": 1.5,
        "busy": True,
        "ceilings": {"read_gb_s": {"L1": 100.0}, "fma_gflop_s": 50.0},
    }
    text = report(body, [replace(ROW, value=2.5)])
    assert "BUSY" in text
    assert "vectorbt missing" in text
    assert "L1 100" in text
    assert "BUSY" not in report(body | {"busy": False}, [])
