"""A run may die anywhere: the next one finishes its slot, and nothing is lost or doubled."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from agents.chat.rules_chat import RulesChat
from agents.debate.checkpoints import Checkpoints
from agents.debate.graph import DebateGraph
from agents.debate.rules import DebateLimits
from strategies.kernels.dispatch import kernels
from trader.app.assembly import costs_of, embedded_broker, embedded_exchange, open_account
from trader.app.debaters import Debaters
from trader.broker.exchange.exchange import Exchange
from trader.core.clock import new_york
from trader.core.config import Config
from trader.core.market import Timeframe
from trader.data.source import open_data
from trader.ledger.store import Ledger
from trader.orders.protection import unprotected
from trader.pipeline.slots import slots_between

CALENDAR = new_york()
DATA = open_data("sample", CALENDAR, seed=7)
CONFIG = Config.model_validate({"strategies": {"enabled": ["atr_trend"]}})
# a debate with its order, the fill, an exit signal, the sale
SLOTS = slots_between(CALENDAR, Timeframe.DAY, date(2026, 2, 24), date(2026, 3, 2))


class Crash(BaseException):
    """The process dies here."""


class Fuse:
    """Counts steps and dies at one of them."""

    def __init__(self, dies_at: int | None) -> None:
        self.steps, self.dies_at = 0, dies_at

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.dies_at:
            raise Crash


class FusedBroker:
    """A broker whose every call may be the last, before it is made or after it was answered."""

    def __init__(self, inner: object, fuse: Fuse) -> None:
        self._inner, self._fuse = inner, fuse

    def __getattr__(self, name: str) -> Callable[..., object]:
        def call(*args: object, **options: object) -> object:
            self._fuse.step()
            answer = getattr(self._inner, name)(*args, **options)
            self._fuse.step()
            return answer

        return call


class FusedChat(RulesChat):
    """A debater whose every question may be the last one asked, or the last one answered."""

    def __init__(self, fuse: Fuse) -> None:
        self._fuse = fuse

    def complete(self, request):
        self._fuse.step()
        reply = super().complete(request)
        self._fuse.step()
        return reply


class FusedLedger(Ledger):
    """A ledger whose every record may be the last thing written, or the first that is not."""

    fuse = Fuse(None)

    def append(self, kind, record_id, body):
        self.fuse.step()
        digest = super().append(kind, record_id, body)
        self.fuse.step()
        return digest


def market(folder: Path) -> Exchange:
    return embedded_exchange(
        CONFIG,
        data=DATA,
        calendar=CALENDAR,
        start=SLOTS[0].since,
        cash=Decimal(100_000),
        database=folder / "exchange.db",
    )


def walk(folder: Path, fuse: Fuse):
    """What `trader run --paper --once` does until every slot is finished, as a new process."""
    ledger = FusedLedger(folder / "ledger.db")
    ledger.fuse = fuse
    done = sum(1 for _ in ledger.records("slot"))
    checkpoints = Checkpoints(folder / "checkpoints.db")
    exchange = market(folder)
    account = open_account(
        CONFIG,
        run_id="paper-test",
        symbols=("AAPL",),
        data=DATA,
        calendar=CALENDAR,
        ledger=ledger,
        kernels=kernels("reference"),
        start=SLOTS[0].since,
        cash=Decimal(100_000),
        deliberation=DebateGraph(
            bull=FusedChat(fuse),
            bear=FusedChat(fuse),
            limits=DebateLimits(),
            costs=costs_of(CONFIG),
            rounds=CONFIG.debate.rounds,
            checkpoints=checkpoints,
        ),
        exchange=exchange,
        broker=FusedBroker(embedded_broker(exchange), fuse),
    )
    try:
        for slot in SLOTS[done:]:
            account.cycle.run(slot)
    finally:
        checkpoints.close()
        account.exchange.close()
        ledger.close()
    return account


def outcome(folder: Path) -> dict[str, object]:
    """The account as its files tell it, in a new process."""
    account = walk(folder, Fuse(None))
    again = open_account(
        CONFIG,
        run_id="paper-test",
        symbols=("AAPL",),
        data=DATA,
        calendar=CALENDAR,
        ledger=Ledger(folder / "ledger.db"),
        kernels=kernels("reference"),
        start=SLOTS[0].since,
        cash=Decimal(100_000),
        deliberation=Debaters(CONFIG).deliberation("debate"),
        exchange=market(folder),
    )
    ledger = again.ledger
    ledger.verify()
    orders = again.broker.orders(open_only=False)
    live = [leg for order in again.broker.orders() for leg in order.with_legs()]
    assert unprotected(again.journal, live) == ()
    assert again.journal.unresolved() == ()
    again.journal.book.require_agreement(again.broker.portfolio())
    del account
    return {
        "cash": again.journal.book.cash,
        "trades": [
            (trade.trade_id, trade.entry_value, trade.exit_value, trade.exit_reason)
            for trade in again.journal.book.trades.values()
        ],
        "entries": [o.client_order_id for o in orders if o.client_order_id.endswith("-e")],
        "slots": [
            {
                name: record.body[name]
                for name in ("as_of", "cash", "equity", "fills", "exits", "cycles", "hashes")
            }
            for record in ledger.records("slot")
        ],
        "decisions": [record.body for record in ledger.records("cycle")],
        "cycles": [record.record_id for record in ledger.records("cycle")],
    }


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calm")
    fuse = Fuse(None)
    walk(folder, fuse)
    return outcome(folder), fuse.steps


def test_the_walk_has_an_entry_and_an_exit_to_lose(calm):
    expected, steps = calm
    assert [trade[3] for trade in expected["trades"]] == ["signal"]
    assert len(expected["entries"]) == 1
    assert steps > 60


@pytest.mark.parametrize("part", range(8))
def test_dying_at_any_step_changes_nothing_in_the_end(calm, tmp_path, part):
    expected, steps = calm
    for dies_at in range(1 + part, steps + 1, 8):
        folder = tmp_path / str(dies_at)
        folder.mkdir()
        with pytest.raises(Crash):
            walk(folder, Fuse(dies_at))
        assert outcome(folder) == expected, f"died at step {dies_at}"


@pytest.mark.parametrize("seed", range(6))
def test_dying_again_and_again_changes_nothing_either(calm, tmp_path, seed):
    expected, _ = calm
    for step in range(3 + seed, 60, 7):
        try:
            walk(tmp_path, Fuse(step))
        except Crash:
            continue
        break
    assert outcome(tmp_path) == expected
