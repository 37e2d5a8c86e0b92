"""A paper run against an exchange that another program serves on this computer."""

from __future__ import annotations

import pytest

from tests.kills.books import Books, complaints
from tests.kills.market import FIRST, free_port, served
from tests.trader.app.conftest import opened
from trader.app import App
from trader.broker.exchange.faults import NEW_ORDER
from trader.core.config import Config
from trader.core.trading import OrderType

SETTINGS = Config.model_validate({"market": {"start": FIRST}})


def beside(state, port: int, *settings: str) -> App:
    return opened(
        state,
        "broker.name=alpaca",
        f"broker.base_url=http://127.0.0.1:{port}",
        f"market.start={FIRST}",
        "strategies.enabled=atr_trend",
        *settings,
    )


def port_of(app: App) -> int:
    """Where the market of an app is served."""
    return int(app.config.broker.base_url.rpartition(":")[2])


@pytest.fixture
def market(tmp_path):
    state, port = tmp_path / "state", free_port()
    with served(tmp_path, SETTINGS, port=port, ledger=state / "ledger.db") as opened_market:
        yield opened_market, beside(state, port)


def test_an_entry_its_fill_and_its_exit_go_over_http_and_every_view_shows_them(market):
    exchange, app = market
    runs = []
    for _ in range(5):
        exchange.control("advance", slots=1)
        runs.append(app.run_once())
    entered = runs[0]
    assert not entered.simulated
    assert [len(run.orders) for run in runs] == [1, 1, 1, 1, 0]
    assert [[booked.reason for booked in run.fills] for run in runs] == [
        [],
        ["entry"],
        [],
        [],
        ["signal"],
    ]
    assert [leave.strategy for leave in runs[3].slot.exits] == ["atr_trend"]
    assert complaints(Books.of(exchange.exchange), app.state_dir / "ledger.db") == []
    status = app.status()
    assert (status.slots, status.closed_trades, status.simulated) == (5, 1, False)
    assert [line.purpose for line in app.orders().orders] == ["entry", "exit"]
    assert app.positions().positions == ()
    assert app.journal(100).verified == status.records
    assert app.replay(entered.cycles[0].cycle_id).reproduced


def test_where_no_slot_is_due_the_next_one_is_told_and_not_one_that_has_passed(market):
    exchange, app = market
    exchange.control("advance", slots=1)
    app.run_once()
    exchange.control("advance", slots=2)
    exchange.control("advance", seconds=18 * 3600)  # into the next session: that slot has passed
    looked = app.run_once()
    assert looked.slot is None
    assert looked.notices == ("no slot is due; the next one is that of 2026-02-27 21:00 UTC",)


def test_an_entry_without_legs_that_is_filled_at_once_has_its_stop_before_the_run_ends(
    market, tmp_path
):
    exchange, plain = market
    app = beside(tmp_path / "state", port_of(plain), "risk.fractional=true")
    exchange.control("advance", slots=1)
    exchange.control("faults", faults=[{"fault": "fill_before_answer", "where": NEW_ORDER}])
    run = app.run_once()
    (held,) = run.positions
    (stop,) = run.orders
    assert (stop.order_type, stop.quantity) == (OrderType.STOP, held.quantity)
    assert run.notices == ()


def test_an_entry_without_legs_that_waits_says_who_will_place_its_stop(market, tmp_path):
    exchange, plain = market
    app = beside(tmp_path / "state", port_of(plain), "risk.fractional=true")
    exchange.control("advance", slots=1)
    run = app.run_once()
    assert run.positions == ()
    (notice,) = run.notices
    assert "AAPL: the stop is placed by the first run after the entry is filled" in notice


def test_commands_about_the_account_find_its_broker_and_tell_what_is_known_when_it_is_gone(
    tmp_path,
):
    state, port = tmp_path / "state", free_port()
    with served(tmp_path, SETTINGS, port=port, ledger=state / "ledger.db") as exchange:
        exchange.control("advance", slots=1)
        beside(state, port).run_once()
        exchange.control("advance", slots=1)
        entered = beside(state, port).run_once()
        found = opened(state).status()  # neither broker nor address is named
        assert (found.simulated, found.positions, found.equity) == (False, 1, entered.equity)
    gone = opened(state).status()
    assert (gone.positions, gone.equity, gone.cash) == (1, entered.equity, entered.cash)
    assert "the broker cannot be asked" in gone.notices[0]
    assert gone.records == found.records
