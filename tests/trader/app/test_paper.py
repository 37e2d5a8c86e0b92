"""The paper account: one slot a call, kept across processes, every decision can be taken again."""

from __future__ import annotations

import fcntl
import gzip
import re
import sqlite3
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from tests.trader.app.conftest import opened
from trader.app.journaling import SENTENCES
from trader.app.replaying import replay_cycle
from trader.core.canonical import canonical_json
from trader.core.decision import Decision
from trader.core.errors import DataIntegrityError, LockHeldError, StateError, UsageError
from trader.data import sample
from trader.ledger.store import Ledger


def slots(state_dir, count, *settings):
    """So many calls, each as a new process would make it."""
    return [opened(state_dir, *settings).run_once() for _ in range(count)]


def test_three_calls_show_a_quiet_slot_a_debate_with_its_order_and_the_fill_with_its_stop(tmp_path):
    first, second, third = slots(tmp_path, 3)
    assert [run.session for run in (first, second, third)] == [
        date(2026, 7, 1),
        date(2026, 7, 2),
        date(2026, 7, 6),
    ]
    assert first.cycles == ()
    assert first.positions == ()
    assert Decision.GO in {cycle.debate.verdict.decision for cycle in second.cycles}
    assert second.orders
    assert second.positions == ()
    assert [booked.reason for booked in third.fills] == ["entry"]
    assert third.simulated

    held = opened(tmp_path).positions().positions
    assert [(line.symbol, line.strategy) for line in held] == [("AAPL", "atr_trend")]
    assert held[0].stop_price is not None
    assert held[0].target_price is not None
    status = opened(tmp_path).status()
    assert (status.slots, status.positions, status.ledger_head) == (3, 1, third.ledger_head)
    assert status.open_orders == 2  # the stop and the target
    orders = opened(tmp_path).orders().orders
    assert orders[0].purpose == "entry"
    assert len(orders[0].order.legs) == 2


def test_two_fresh_accounts_come_to_the_same_head(tmp_path):
    one = slots(tmp_path / "one", 3)[-1]
    two = slots(tmp_path / "two", 3)[-1]
    assert one.ledger_head == two.ledger_head


def test_a_walk_and_a_backtest_take_the_same_decisions(tmp_path):
    walked = [cycle for run in slots(tmp_path, 3) for cycle in run.cycles]
    app = opened(tmp_path / "other")
    result = app.backtest(start=date(2026, 7, 1), end=date(2026, 7, 6))
    ledger = Ledger(app.state_dir / "reports" / result.run_id / "ledger.db")
    replayed = [record.body for record in ledger.records("cycle")]
    assert [c.debate.verdict.decision for c in walked] == [
        c["debate"]["verdict"]["decision"] for c in replayed
    ]
    assert walked[0].evidence
    assert [canonical_json(c.evidence) for c in walked] == [
        canonical_json(c["evidence"]) for c in replayed
    ]


def test_another_run_on_the_folder_is_turned_away_and_nothing_moves(tmp_path):
    slots(tmp_path, 1)
    head = opened(tmp_path).status().ledger_head
    with (tmp_path / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(LockHeldError, match="in use by another run"):
            opened(tmp_path).run_once()
    assert opened(tmp_path).status().ledger_head == head
    opened(tmp_path).run_once()


def test_beginning_again_keeps_the_old_account_aside_and_replayable(tmp_path):
    second = slots(tmp_path, 2)[1]
    again = opened(tmp_path).run_once(restart_market=True)
    assert again.session == date(2026, 7, 1)
    assert "put aside" in again.notices[0]
    kept = Ledger(tmp_path / "archive" / "1" / "ledger.db")
    assert kept.verify() > 0
    assert replay_cycle(opened(tmp_path), second.cycles[0].cycle_id).reproduced


def test_the_market_ends_with_its_bars_and_says_how_to_go_on(tmp_path):
    late = ("market.start=2026-08-04",)
    slots(tmp_path, 2, *late)
    with pytest.raises(DataIntegrityError, match="--restart-market"):
        opened(tmp_path, *late).run_once()


def test_a_paper_run_without_a_debate_is_refused(tmp_path):
    with pytest.raises(UsageError, match="never trades without a debate"):
        opened(tmp_path, "debate.mode=off").run_once()


def test_views_of_an_empty_folder_say_how_to_begin(app):
    for view in (app.status(), app.orders(), app.positions(), app.journal(5)):
        assert "trader run --paper --once" in view.notices[0]


def test_the_journal_tells_each_kind_of_record(tmp_path):
    slots(tmp_path, 3)
    view = opened(tmp_path).journal(50)
    told = {line.kind: line.text for line in view.lines}
    kinds = {"run", "account", "opening", "slot", "intent", "order", "fill", "cycle"}
    assert set(told) == kinds
    assert all(told.values())
    assert view.verified == len(view.lines)


def test_every_decision_of_a_backtest_is_reproduced_bit_for_bit(whole):
    app, result = whole
    ledger = Ledger(app.state_dir / "reports" / result.run_id / "ledger.db")
    ids = [record.record_id for record in ledger.records("cycle")]
    for cycle_id in ids:
        again = app.replay(cycle_id)
        assert again.reproduced
        assert [part.equal for part in again.comparisons] == [True] * 6, cycle_id


def test_a_replay_notices_a_decision_that_does_not_follow_from_its_record(tmp_path):
    second = slots(tmp_path, 2)[1]
    path = tmp_path / "ledger.db"
    bought = next(c for c in second.cycles if c.intent is not None)
    forged = replace(bought, risk=replace(bought.risk, quantity=bought.risk.quantity + 1))
    raw = sqlite3.connect(path)
    raw.executescript("DROP TRIGGER records_never_change;")
    raw.execute(
        "UPDATE records SET body = ? WHERE record_id = ?", (canonical_json(forged), bought.cycle_id)
    )
    raw.commit()
    raw.close()
    again = opened(tmp_path).replay(bought.cycle_id)
    assert not again.reproduced
    differ = [part.part for part in again.comparisons if part.equal is False]
    assert differ == ["ledger", "risk decision"]


def test_a_replay_takes_the_recorded_market_whatever_is_configured_now(tmp_path):
    second = slots(tmp_path, 2)[1]
    other = opened(tmp_path, "data.source=synthetic", "costs.slippage_bps=50")
    assert other.replay(second.cycles[0].cycle_id).reproduced


def test_a_replay_without_its_bars_does_not_say_reproduced(tmp_path):
    bars = (Path(sample.__file__).parent / "AAPL_1Day.csv.gz").read_bytes()
    mine = tmp_path / "bars"
    mine.mkdir()
    (mine / "AAPL.csv.gz").write_bytes(bars)
    second = slots(tmp_path / "state", 2, f"data.source=csv:{mine}")[1]
    cycle_id = second.cycles[0].cycle_id
    assert opened(tmp_path / "state").replay(cycle_id).reproduced
    (mine / "AAPL.csv.gz").unlink()
    (mine / "MSFT.csv.gz").write_bytes(bars)
    again = opened(tmp_path / "state").replay(cycle_id)
    assert not again.reproduced
    assert {part.part: part.equal for part in again.comparisons}["evidence"] is None
    assert all(part.equal is not False for part in again.comparisons)


def test_an_account_keeps_to_its_market_its_costs_and_its_past(tmp_path):
    bars = gzip.decompress(
        (Path(sample.__file__).parent / "AAPL_1Day.csv.gz").read_bytes()
    ).decode()
    mine, state = tmp_path / "AAPL.csv", tmp_path / "state"
    mine.write_text(bars)
    market = f"data.source=csv:{mine}"
    slots(state, 2, market)
    head = opened(state).status().ledger_head
    for other in ("data.source=sample", "data.timeframe=1Hour", "costs.slippage_bps=0"):
        with pytest.raises(UsageError, match="name the same as before"):
            opened(state, market, other).run_once()
    mine.write_text("\n".join(_doubled(line) for line in bars.splitlines()) + "\n")
    with pytest.raises(DataIntegrityError, match="are not those that this account has traded on"):
        opened(state, market).run_once()
    assert opened(state).status().ledger_head == head


def _doubled(line: str) -> str:
    """A line of bars with all four prices doubled: as sound as before, another past."""
    cells = line.split(",")
    if not line[:1].isdigit():
        return line
    return ",".join([cells[0], *(str(float(cell) * 2) for cell in cells[1:5]), *cells[5:]])


def test_a_refused_first_run_leaves_nothing_behind(tmp_path):
    with pytest.raises(DataIntegrityError, match=r"market\.start 2027-06-01 lies behind"):
        opened(tmp_path, "market.start=2027-06-01").run_once()
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]
    opened(tmp_path).run_once()


def test_a_lost_or_foreign_exchange_is_named_and_nothing_is_made(tmp_path):
    slots(tmp_path, 3)
    exchange = tmp_path / "exchange.db"
    kept = exchange.read_bytes()
    exchange.unlink()
    for act in (lambda: opened(tmp_path).run_once(), lambda: opened(tmp_path).positions()):
        with pytest.raises(StateError, match=r"exchange\.db is missing"):
            act()
        assert not exchange.exists()
    exchange.write_bytes(kept)
    opened(tmp_path).run_once()


def test_a_strategy_that_is_switched_off_still_leaves_what_it_bought(tmp_path):
    start = "market.start=2026-02-24"
    slots(tmp_path, 3, start, "strategies.enabled=atr_trend")
    later = [opened(tmp_path, start, "strategies.enabled=rsi_reversion").run_once()]
    while not later[-1].slot.exits and len(later) < 4:
        later.append(opened(tmp_path, start, "strategies.enabled=rsi_reversion").run_once())
    assert [leave.strategy for leave in later[-1].slot.exits] == ["atr_trend"]


def test_an_unknown_cycle_is_named(app):
    with pytest.raises(UsageError, match="no ledger below"):
        app.replay("bt-nothing")


def test_a_debate_on_demand_about_a_day_without_signal_cannot_be_a_go(app):
    quiet = app.debate("AAPL", datetime(2026, 7, 1, 23, tzinfo=UTC))
    assert len(quiet.debates) == 1
    assert quiet.debates[0].debate.verdict.decision is Decision.NO_GO
    assert "hypothetical" in quiet.notices[0]
    fired = app.debate("AAPL", datetime(2026, 7, 2, 23, tzinfo=UTC))
    assert [held.candidate.signal.strategy for held in fired.debates] == [
        "atr_trend",
        "macd_momentum",
    ]
    assert not (app.state_dir / "ledger.db").exists()


def test_a_debate_sees_nothing_later_than_its_moment(app):
    before_close = app.debate("AAPL", datetime(2026, 7, 2, 19, 59, tzinfo=UTC))
    assert before_close.as_of == datetime(2026, 7, 1, 20, tzinfo=UTC)
    known = {fact.known_at for held in before_close.debates for fact in held.evidence}
    assert max(known) <= before_close.as_of


def test_the_doctor_finds_nothing_wrong_here_and_says_what_is(app, tmp_path):
    assert all(check.status == "ok" or check.name == "configuration" for check in app.doctor())
    broken = opened(tmp_path, "symbols=APPL").doctor()
    failed = [check for check in broken if check.status == "failed"]
    assert [check.name for check in failed] == ["data"]
    assert failed[0].remedy


def test_any_indicator_of_the_library_can_be_put_in_evidence_by_name(tmp_path):
    app = opened(tmp_path, "evidence.indicators=TSIIndicator,ta.volatility.UlcerIndex")
    held = app.debate("AAPL", datetime(2026, 7, 2, 23, tzinfo=UTC)).debates[0]
    values = {fact.name: fact.value for fact in held.evidence}
    assert values["TSIIndicator.tsi"] is not None
    assert values["UlcerIndex.ulcer_index"] is not None
    with pytest.raises(UsageError, match="did you mean"):
        opened(tmp_path, "evidence.indicators=TSIIndicatr").debate("AAPL")


def test_every_kind_of_record_that_is_written_has_its_sentence():
    pattern = re.compile(r'\.append\(\s*"([a-z_]+)",')
    source = Path(sample.__file__).parents[2]
    written = {
        kind
        for room in ("app", "ledger", "orders", "pipeline")
        for path in (source / room).glob("*.py")
        for kind in pattern.findall(path.read_text())
    }
    assert {"slot", "cycle", "intent", "fill", "job", "reconciliation"} <= written
    assert written <= set(SENTENCES) | {"result"}
