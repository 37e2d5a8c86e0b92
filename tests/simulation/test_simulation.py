"""No order is lost, doubled or unprotected, whatever fails and whenever the process dies."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from tests.simulation.__main__ import Report, command, main, simulate, told
from tests.simulation.desk import ManagedDesk
from tests.simulation.episodes import Episode, run_episode
from tests.simulation.oracle import Truth, exposed, settled, stale
from tests.simulation.world import START
from trader.core.trading import (
    Order,
    OrderClass,
    OrderStatus,
    OrderType,
    Side,
    TimeInForce,
)

EPISODES, PARTS = 5_000, 10  # every run; `python -m tests.simulation` runs any number
CRASHES, AMBIGUOUS = 10_000, 5_000  # the least that these episodes hold
DUE = {("AAPL", Decimal(10)): "0001"}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_order_is_lost_doubled_or_unprotected(part):
    size = EPISODES // PARTS
    report = simulate(range(1 + part * size, 1 + (part + 1) * size))
    assert report.episodes_failed == 0, told(report)
    assert report.counts["episodes"] == size
    assert report.counts["crash"] >= CRASHES // PARTS
    assert report.counts["ambiguous"] >= AMBIGUOUS // PARTS
    assert report.counts["undisturbed actions"] > 5 * size


def test_the_same_holds_through_alpaca_py_and_the_embedded_exchange():
    report = simulate(range(1, 13), exchange=True)
    assert report.episodes_failed == 0, told(report, exchange=True)
    assert report.counts["crash"] > 12
    assert report.counts["ambiguous"] > 12


def test_the_canary_is_caught():
    report = simulate(range(1, 101), naive=True)
    assert report.caught
    assert report.failures["mismatch"]
    assert report.episodes_failed > 90


class CarelessDesk(ManagedDesk):
    """Compares, and never looks after a stop."""

    def watch(self, as_of):
        self.orders.reconcile(as_of, full=True)


class ForgetfulDesk(ManagedDesk):
    """Takes what it could not send for sent."""

    def slot(self, decisions, leaving, as_of):
        super().slot(decisions, leaving, as_of)
        for item in self.orders.journal.unresolved():
            self.orders.journal.write_refusal(item.intent.client_order_id, "sent, surely")


@pytest.mark.parametrize(
    ("desk_of", "kind"), [(CarelessDesk, "unprotected"), (ForgetfulDesk, "lost")]
)
def test_a_desk_that_leaves_one_thing_out_is_caught(desk_of, kind):
    found = Report()
    for seed in range(1, 101):
        found.add(run_episode(seed, desk_of=desk_of))
    assert found.failures[kind]


def test_an_episode_follows_from_its_seed_alone():
    first, second = (Episode(7, traced=True).run() for _ in range(2))
    assert first.trace
    assert first == second
    assert Episode(8, traced=True).run().trace != first.trace


def test_a_failing_seed_tells_its_trace_and_the_command_that_replays_it(capsys):
    report = Report()
    for seed in range(1, 30):
        report.add(run_episode(seed, desk_of=CarelessDesk))
    seed = report.failed[0].seed
    words = told(report)
    assert f"replay: python -m tests.simulation --seed {seed} --episodes 1" in words
    assert "FAILED unprotected" in words
    assert "submit tr-" in words
    assert command(3, exchange=True).endswith("--seed 3 --episodes 1 --exchange")
    assert main(["--seed", str(seed), "--episodes", "1"]) == 0
    assert "0 of 1 episodes failed" in capsys.readouterr().out
    assert main(["--naive", "--episodes", "60"]) == 0
    assert main(["--naive", "--episodes", "1"]) == 1, "a canary that was not caught is a failure"


# ---- the oracle

BUY = Order(
    order_id="o1",
    client_order_id="c1",
    symbol="AAPL",
    side=Side.BUY,
    quantity=Decimal(10),
    filled_quantity=Decimal(10),
    filled_average_price=Decimal(100),
    order_type=OrderType.MARKET,
    order_class=OrderClass.BRACKET,
    time_in_force=TimeInForce.GTC,
    status=OrderStatus.FILLED,
    limit_price=None,
    stop_price=None,
    submitted_at=START,
    filled_at=None,
)
STOP = replace(
    BUY,
    order_id="o2",
    side=Side.SELL,
    filled_quantity=Decimal(0),
    order_type=OrderType.STOP,
    status=OrderStatus.HELD,
)
TARGET = replace(STOP, order_id="o3", order_type=OrderType.LIMIT, status=OrderStatus.NEW)
SALE = replace(STOP, order_id="o4", order_type=OrderType.MARKET, status=OrderStatus.NEW)
ENTRY = replace(BUY, legs=(TARGET, STOP))
PARTLY = replace(ENTRY, filled_quantity=Decimal(4), status=OrderStatus.PARTIALLY_FILLED)


def account(*trees: Order, held: int = 10) -> Truth:
    shares = {"AAPL": Decimal(held)}
    return Truth(trees=trees, held=shares, ours=shares, cash=Decimal(0))


def kinds(failures) -> list[str]:
    return [failure.kind for failure in failures]


@pytest.mark.parametrize(
    ("truth", "expected"),
    [
        (account(ENTRY), []),
        (account(BUY), ["unprotected"]),
        (account(BUY, SALE), []),
        (account(BUY, TARGET), ["unprotected"]),
        (account(PARTLY, held=4), ["unprotected"]),
        (account(ENTRY, SALE), ["oversold"]),
        (account(ENTRY, held=7), ["oversold"]),
        (account(BUY, held=-1), ["oversold"]),
        (account(BUY, held=0), []),
    ],
)
def test_shares_want_a_stop_that_works_and_no_share_is_for_sale_twice(truth, expected):
    assert kinds(exposed(truth, {})) == expected


def test_what_was_bought_in_this_very_step_may_wait_for_the_next():
    assert kinds(exposed(account(BUY), {"AAPL": Decimal(10)})) == []
    assert kinds(exposed(account(BUY), {"AAPL": Decimal(9)})) == ["unprotected"]


@pytest.mark.parametrize(
    ("trees", "expected"),
    [
        ([ENTRY], []),
        ([], ["lost"]),
        ([replace(BUY, quantity=Decimal(11))], ["lost"]),
        ([BUY, replace(BUY, order_id="o9")], ["doubled"]),
        ([BUY, replace(BUY, order_id="o9", status=OrderStatus.REJECTED)], []),
        ([replace(BUY, status=OrderStatus.REJECTED)], []),
        ([replace(BUY, filled_quantity=Decimal(11))], ["doubled"]),
    ],
)
def test_a_decision_is_one_order_and_no_more_shares_than_were_decided(trees, expected):
    assert kinds(settled(account(*trees), DUE, ())) == expected
    assert kinds(settled(account(), DUE, DUE)) == []


def test_an_order_that_is_sent_after_its_slot_is_stale():
    assert stale(account(BUY), {}) == []
    assert stale(account(BUY), {("AAPL", Decimal(10)): START + timedelta(seconds=1)}) == []
    assert kinds(stale(account(BUY), {("AAPL", Decimal(10)): START})) == ["stale"]
