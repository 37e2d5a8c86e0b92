"""The state in its file: what a crash at any moment leaves, and what a new process goes on with."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from tests.trader.broker.floor import CALENDAR, FLAT, Floor, HandBars, closing
from trader.broker.exchange.replaying import replayed
from trader.broker.exchange.schema import MIGRATIONS
from trader.broker.exchange.state import erase
from trader.core.costs import Costs
from trader.core.errors import DataIntegrityError, StateError
from trader.core.market import Timeframe, to_ns

BARS = [FLAT, (100, 104, 99, 103), (103, 106, 94, 101), (101, 103, 100, 102), FLAT, FLAT]


ROOT = Path(__file__).parents[4]
DOOMED = """
import os, sys
from pathlib import Path
from tests.trader.broker.exchange.test_state import BARS
from tests.trader.broker.floor import Floor
market = Floor(*BARS, database=Path(sys.argv[1]))
market.exchange._store._connection.create_function("die", 0, lambda: os._exit(9))
market.to_close(3)
"""


def everything(market: Floor) -> tuple:
    """All that can be seen from outside."""
    return (
        market.exchange.now(),
        market.send("GET", "/v2/account"),
        market.send("GET", "/v2/positions"),
        market.send("GET", "/v2/orders?status=all&nested=true&limit=500"),
        market.send("GET", "/v2/account/activities"),
    )


def as_left_by_a_kill(database: Path, folder: Path) -> Path:
    """A copy of the file and its log at this very moment."""
    folder.mkdir()
    for part in database.parent.glob(f"{database.name}*"):
        shutil.copy(part, folder / part.name)
    return folder / database.name


STEPS = (
    lambda market: market.bracket(95, 110, client_order_id="a"),
    lambda market: market.to_close(1),
    lambda market: market.buy(client_order_id="b", type="limit", limit_price=90),
    lambda market: market.post(client_order_id="c", qty=-1),
    lambda market: market.client.cancel_orders(),
    lambda market: market.to_close(2),
    lambda market: market.buy(client_order_id="d"),
    lambda market: market.to_close(3),
    lambda market: market.client.close_position("AAPL"),
    lambda market: market.to_close(4),
)


def test_a_new_process_goes_on_exactly_where_the_old_one_was_killed(tmp_path):
    database = tmp_path / "exchange.db"
    undisturbed = Floor(*BARS)
    market = Floor(*BARS, database=database)
    for number, step in enumerate(STEPS):
        step(undisturbed)
        step(market)
        assert everything(market) == everything(undisturbed)
        database = as_left_by_a_kill(database, tmp_path / f"killed{number}")
        market = Floor(*BARS, database=database)
        assert everything(market) == everything(undisturbed)
    assert len(market.fills()) == 3


def test_two_exchanges_on_one_file_see_the_same_market(tmp_path):
    one = Floor(*BARS, database=tmp_path / "exchange.db")
    two = Floor(*BARS, database=tmp_path / "exchange.db")
    one.buy()
    two.to_close(1)
    assert everything(one) == everything(two)
    assert one.fills() == [("buy", Decimal(100))]


def test_stored_clock_cash_and_costs_win_over_what_is_asked_for(tmp_path):
    database = tmp_path / "exchange.db"
    first = Floor(*BARS, database=database, costs=Costs(slippage_bps=100.0))
    first.buy()
    first.to_close(1)
    first.exchange.close()
    again = Floor(*BARS, database=database, cash=5, start=closing(0))
    assert again.exchange.now() == closing(1)
    assert again.cash() == 8990
    assert again.exchange.initial_cash == 10_000
    assert again.exchange.costs == Costs(slippage_bps=100.0)


def test_an_advance_that_fails_in_the_middle_changes_nothing(tmp_path):
    """The second bar is unsound: the fill on the first one must not stay."""
    database = tmp_path / "exchange.db"
    broken = HandBars({"AAPL": [*BARS[:2], (0, 1, 0, 1), *BARS[3:]]})
    market = Floor(data=broken, database=database)
    market.bracket(95, 110)
    before = everything(market)
    with pytest.raises(DataIntegrityError):
        market.to_close(3)
    assert everything(market) == before
    market.exchange.close()
    mended = Floor(*BARS, database=database)
    assert everything(mended) == before
    mended.to_close(3)
    assert mended.fills() == [("buy", Decimal(100)), ("sell", Decimal(95))]


def test_an_advance_that_fails_while_writing_changes_nothing(tmp_path):
    database = tmp_path / "exchange.db"
    market = Floor(*BARS, database=database)
    market.bracket(95, 110)
    before = everything(market)
    side = sqlite3.connect(database)
    side.execute(
        "CREATE TRIGGER full BEFORE INSERT ON trades WHEN (SELECT count(*) FROM trades) = 1"
        " BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    )
    with pytest.raises(StateError, match=r"exchange\.db cannot be used, nothing was changed"):
        market.to_close(3)
    assert everything(market) == before
    side.execute("DROP TRIGGER full")
    side.close()
    market.to_close(3)
    undisturbed = Floor(*BARS)
    undisturbed.bracket(95, 110)
    undisturbed.to_close(3)
    assert everything(market) == everything(undisturbed)


def test_a_process_killed_between_two_fills_of_one_advance_leaves_the_state_before_it(tmp_path):
    database = tmp_path / "exchange.db"
    market = Floor(*BARS, database=database)
    market.bracket(95, 110)
    before = everything(market)
    market.exchange.close()
    side = sqlite3.connect(database)
    side.execute(
        "CREATE TRIGGER killed AFTER INSERT ON trades WHEN NEW.sequence = 2 BEGIN SELECT die(); END"
    )
    killed = subprocess.run([sys.executable, "-c", DOOMED, str(database)], cwd=ROOT, check=False)
    assert killed.returncode == 9
    side.execute("DROP TRIGGER killed")
    side.close()
    revived = Floor(*BARS, database=database)
    assert everything(revived) == before
    revived.to_close(3)
    assert revived.fills() == [("buy", Decimal(100)), ("sell", Decimal(95))]


def test_the_file_is_private_durable_and_numbered(tmp_path):
    database = tmp_path / "exchange.db"
    market = Floor(*BARS, database=database)
    market.buy()
    for part in tmp_path.iterdir():
        assert stat.S_IMODE(part.stat().st_mode) == 0o600, part
    side = sqlite3.connect(database)
    assert side.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert side.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    side.close()


@pytest.mark.parametrize(
    "other",
    [
        {"data": HandBars({"AAPL": BARS}, name="csv:mine.csv")},
        {"timeframe": Timeframe.HOUR, "data": HandBars({"AAPL": BARS}, timeframe=Timeframe.HOUR)},
    ],
)
def test_a_file_of_another_market_is_refused_with_the_remedy(tmp_path, other):
    database = tmp_path / "exchange.db"
    Floor(*BARS, database=database).exchange.close()
    with pytest.raises(StateError, match=r"1Day bars from hand, not .* --restart-market"):
        Floor(database=database, **other)


def test_an_erased_market_begins_anew(tmp_path):
    database = tmp_path / "exchange.db"
    market = Floor(*BARS, database=database)
    market.buy()
    market.to_close(1)
    erase(database)
    assert list(tmp_path.iterdir()) == []
    anew = Floor(*BARS, database=database)
    assert (anew.exchange.now(), anew.cash()) == (closing(0), 10_000)
    erase(tmp_path / "never")


def test_a_file_that_is_no_database_or_cannot_be_made_is_a_state_error(tmp_path):
    stranger = tmp_path / "notes.txt"
    stranger.write_text("not a database, but long enough to be looked at as one" * 20)
    with pytest.raises(StateError, match=r"notes\.txt cannot be opened"):
        Floor(*BARS, database=stranger)
    with pytest.raises(StateError, match="cannot be opened"):
        Floor(*BARS, database=tmp_path / "missing" / "exchange.db")


def test_a_file_of_a_newer_version_is_refused(tmp_path):
    database = tmp_path / "exchange.db"
    Floor(*BARS, database=database).exchange.close()
    side = sqlite3.connect(database)
    side.execute("PRAGMA user_version = 99")
    side.close()
    with pytest.raises(StateError, match=r"newer version .*schema 99"):
        Floor(*BARS, database=database)


@pytest.mark.parametrize("cash", ["-1", "NaN", "Infinity"])
def test_a_market_cannot_begin_with_impossible_cash_or_without_a_time_zone(cash):
    with pytest.raises(ValueError, match="cannot begin"):
        Floor(*BARS, cash=cash)
    with pytest.raises(ValueError, match="time zone"):
        Floor(*BARS, start=closing(0).replace(tzinfo=None))


def test_reading_writes_nothing(tmp_path):
    database = tmp_path / "exchange.db"
    market = Floor(*BARS, database=database)
    market.buy()
    files = (database, tmp_path / "exchange.db-wal")
    before = [part.read_bytes() for part in files]
    everything(market)
    assert [part.read_bytes() for part in files] == before


def test_a_file_of_the_first_version_is_brought_up_to_date(tmp_path):
    """Its orders had no parts: what was filled was filled whole, at a price of its own."""
    database = tmp_path / "exchange.db"
    side = sqlite3.connect(database)
    side.executescript(MIGRATIONS[0])
    at = to_ns(closing(0))
    side.execute(
        "INSERT INTO market VALUES (1, 'hand', '1Day', 0.0, 0.0, 0.0, '10000', '8745.2', ?, ?)",
        (at, at),
    )
    row = "'AAPL', 'buy', '12', 'market', 'simple', 'gtc', NULL, NULL"
    side.execute(
        "INSERT INTO tickets VALUES (1, '11111111-2222-3333-4444-555555555555', 'old',"
        " '11111111-2222-3333-4444-555555555555',"
        f" {row}, 'filled', 0, '1248', ?, ?, NULL, ?, '104.5667', '', 0)",
        (at, at, at),
    )
    side.execute(
        "INSERT INTO tickets VALUES (2, '21111111-2222-3333-4444-555555555555', 'open',"
        " '21111111-2222-3333-4444-555555555555',"
        f" {row}, 'accepted', 1, '1248', ?, ?, NULL, NULL, NULL, '', 1)",
        (at, at),
    )
    side.execute(
        "INSERT INTO trades VALUES (1, 'x1', '11111111-2222-3333-4444-555555555555', 'AAPL',"
        " 'buy', '12', '104.5667', '0.25', ?)",
        (at,),
    )
    side.execute("INSERT INTO holdings VALUES ('AAPL', '12', '104.5667', ?)", (at,))
    side.execute("PRAGMA user_version = 1")
    side.commit()
    side.close()
    market = Floor(*BARS, database=database)
    old = market.order("11111111-2222-3333-4444-555555555555")
    assert (old.filled_quantity, old.filled_average_price) == (12, Decimal("104.5667"))
    assert market.send("GET", "/v2/account/activities")[1][0]["cum_qty"] == "12"
    market.to_close(1)
    waited = market.order("21111111-2222-3333-4444-555555555555")
    assert (waited.filled_quantity, waited.filled_average_price) == (12, 100)
    with pytest.raises(StateError, match="kept no log of commands; it cannot be replayed"):
        replayed(database, data=market.data, calendar=CALENDAR)
