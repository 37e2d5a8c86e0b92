"""Twenty real SIGKILLs of `trader run --paper`, a full disk, and whether any harm would be seen."""

from __future__ import annotations

import json
import shutil
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from tests.kills.__main__ import calm_walks
from tests.kills.books import Books, complaints
from tests.kills.fuse import Death
from tests.kills.nursery import Nursery
from tests.kills.walk import Kill, kills, said
from tests.trader.app.conftest import opened
from trader.app.assembly import embedded_exchange
from trader.core.clock import new_york
from trader.data.source import open_data

OF_SINGLE_SLOTS = 16
OF_A_DAEMON = (
    Death(name="done, not answered: POST /v2/orders", occurrence=1),
    Death(name="before the commit of fill", occurrence=1),
    Death(name="done, not answered: DELETE /v2/orders/ID", occurrence=1),
    Death(name="after the commit of intent", occurrence=1),
)


def test_twenty_kills_lose_double_and_unprotect_nothing(tmp_path):
    with calm_walks(tmp_path) as walks:
        chosen = kills(list(walks.values()), runs=OF_SINGLE_SLOTS)
        assert {kill.then for kill in chosen} == {"at once", "moved", "again"}
        assert any("POST" in kill.death.name for kill in chosen)
        done = [walks[kill.scene].kill(kill) for kill in chosen]
        bad = {str(one.kill): one.complaints for one in done if one.complaints}
        assert bad == {}
        assert sum(one.in_doubt for one in done) > 0
        assert walks["whole shares"].follow(OF_A_DAEMON) == ()


def test_a_kill_can_be_told_and_done_again():
    kill = Kill(
        scene="parts of a share",
        slot=2,
        death=Death(name="before sending POST /v2/orders", occurrence=3),
        then="moved",
    )
    assert Kill.of(str(kill)) == kill


@pytest.fixture(scope="module")
def held(tmp_path_factory) -> Path:
    """An account that holds shares, with its stop."""
    folder = tmp_path_factory.mktemp("held")
    for _ in range(3):
        opened(folder).run_once()
    return folder


@pytest.fixture
def market(held, tmp_path):
    """A copy of it: the folder, and the exchange."""
    folder = tmp_path / "state"
    shutil.copytree(held, folder)
    calendar = new_york()
    exchange = embedded_exchange(
        opened(folder).config,
        data=open_data("sample", calendar, seed=7),
        calendar=calendar,
        start=calendar.close(date(2026, 6, 30)),
        cash=Decimal(100_000),
        database=folder / "exchange.db",
    )
    yield folder, exchange
    exchange.close()


def test_harm_is_seen_in_the_exchanges_own_books(market):
    folder, exchange = market

    def heard() -> str:
        return "\n".join(complaints(Books.of(exchange), folder / "ledger.db"))

    assert heard() == ""
    order = json.dumps(
        {"symbol": "AAPL", "qty": "1", "side": "buy", "type": "market", "time_in_force": "day"}
    )
    assert exchange.handle("POST", "/v2/orders", order.encode())[0] == 200
    assert "doubled: nobody meant" in heard()
    stop = next(
        leg
        for one in Books.of(exchange).orders
        for leg in one["legs"] or ()
        if leg["type"] == "stop"
    )
    assert exchange.handle("DELETE", f"/v2/orders/{stop['id']}", None)[0] == 204
    assert "unprotected: 0 of 48 AAPL" in heard()
    exchange.advance(new_york().close(date(2026, 7, 7)))
    assert "lost: nobody booked the fill" in heard()
    assert "lost: the ledger holds" in heard()


def test_a_full_disk_is_named_loses_nothing_and_the_next_run_goes_on(tmp_path):
    calm = tmp_path / "calm"
    words = ["run", "--paper", "--once", "--json", "--set", "kernels.backend=reference"]
    with Nursery() as nursery:

        def run(folder: Path, **options: int) -> int:
            folder.mkdir(exist_ok=True)
            told = [*words, "--state-dir", str(folder)]
            nursery.start(folder, told, log=tmp_path / "points", **options)
            return nursery.ended()

        assert run(calm) == 0, said(calm)
        begun = shutil.copytree(calm, tmp_path / "begun")
        before = opened(begun).journal(1000)
        assert run(calm) == 0
        for largest_file in (12_000, 40_000, 90_000):  # fails sooner and later on the way
            state = shutil.copytree(begun, tmp_path / f"full-{largest_file}")
            assert run(state, largest_file=largest_file) == 7
            assert "disk" in said(state)
            assert opened(state).journal(1000).lines[: before.verified] == before.lines
            assert run(state) == 0, said(state)
            assert opened(state).status().ledger_head == opened(calm).status().ledger_head
