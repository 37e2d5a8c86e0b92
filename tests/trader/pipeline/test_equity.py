"""The equity of an account by session: growth without transfers, the fall since the highest."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trader.ledger.store import Ledger
from trader.pipeline.equity import EquityPast

FIRST = date(2026, 7, 1)


def past(*equities: float, transfers: dict[int, int] | None = None) -> EquityPast:
    """One session after another; transfers: session number -> USD paid in before its slot."""
    found, paid = EquityPast(), Decimal(0)
    for number, equity in enumerate(equities):
        paid += (transfers or {}).get(number, 0)
        found.add(FIRST + timedelta(days=number), Decimal(str(equity)), paid)
    return found


@pytest.mark.parametrize(
    ("equities", "window", "fall", "lowest"),
    [
        ((), 5, 0.0, None),
        ((100,), 5, 0.0, None),
        ((100, 110, 120), 5, 0.0, None),
        ((100, 90), 5, 0.1, 1),
        ((100, 80, 90), 5, 0.2, 1),  # it has recovered in part: the lowest counts
        ((100, 80, 101), 5, 0.0, None),  # a new highest: nothing has fallen since
        ((100, 80, 100), 5, 0.0, None),  # as high as before is a new highest too
        ((100, 80, 80, 80), 5, 0.2, 1),  # standing still is no new low
        ((100, 80, 79), 5, 0.21, 2),
        ((100, 80, 78, 76), 2, 1 - 76 / 78, 3),  # the highest has left the window
        ((100, 80), 0, 0.0, None),
    ],
)
def test_the_fall_is_measured_from_the_highest_of_the_window(equities, window, fall, lowest):
    found, session = past(*equities).fall(window)
    assert found == pytest.approx(fall)
    assert session == (None if lowest is None else FIRST + timedelta(days=lowest))


def test_money_paid_in_is_no_recovery_and_money_paid_out_is_no_loss():
    # 100 -> 90 is a tenth lost; 900 are paid in; 990 -> 891 is another tenth
    assert past(100, 90, 990, 891, transfers={2: 900}).fall(9)[0] == pytest.approx(0.19)
    assert past(100, 50, transfers={1: -50}).fall(9) == (0.0, None)


def test_a_later_slot_of_a_session_takes_the_place_of_the_earlier_one():
    found = past(100, 90)
    found.add(FIRST + timedelta(days=1), Decimal(95), Decimal(0))
    assert found.fall(9)[0] == pytest.approx(0.05)
    assert found.before(FIRST + timedelta(days=1)).equity == 100
    assert found.before(FIRST) is None


def test_the_past_is_read_from_slots_transfers_and_adjustments():
    ledger = Ledger(None)
    ledger.append("slot", "1", {"session": "2026-07-01", "equity": "100"})
    ledger.append("activity", "a", {"kind": "transfer", "amount": "900"})
    ledger.append("activity", "b", {"kind": "dividend", "amount": "5"})
    ledger.append("slot", "2", {"session": "2026-07-02", "equity": "990"})
    ledger.append("adjustment", "c", {"transfer": "-90"})
    ledger.append("slot", "3", {"session": "2026-07-03", "equity": "900"})
    found = EquityPast.of(ledger)
    assert [float(item.transfers) for item in found.sessions] == [0, 900, 810]
    assert found.fall(9)[0] == pytest.approx(0.1)  # 100 -> 90 of what was not paid in


@given(
    st.lists(st.decimals(1, 1000, places=2), min_size=1, max_size=30),
    st.lists(st.integers(0, 500), min_size=30, max_size=30),
    st.integers(1, 30),
)
def test_transfers_never_change_the_fall(equities, paid, window):
    plain = past(*equities)
    with_transfers, total, scale = EquityPast(), Decimal(0), Decimal(1)
    before = None
    for number, equity in enumerate(equities):
        # the same growth, on an account that is topped up before each slot
        worth = equity * scale
        if before is not None:
            total += paid[number]
            scale = (worth + paid[number]) / equity
            worth += paid[number]
        with_transfers.add(FIRST + timedelta(days=number), worth, total)
        before = worth
    assert with_transfers.fall(window)[0] == pytest.approx(plain.fall(window)[0], abs=1e-9)
