"""What lies behind an account: opening equity, transfers, quotes, clocks, blocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from trader.core.clock import new_york
from trader.core.costs import Costs
from trader.core.errors import DataIntegrityError, EndpointError
from trader.core.trading import (
    AccountState,
    Activity,
    ActivityKind,
    MarketClock,
    Portfolio,
)
from trader.ledger.controls import KILL_SWITCH, Controls
from trader.ledger.store import Ledger
from trader.orders.journal import OrderJournal
from trader.orders.killswitch import KillSwitch
from trader.orders.manager import OrderManager
from trader.pipeline.circumstances import AccountWatch, RealTime, next_opening
from trader.risk.gate import RiskLimits
from trader.risk.protections import SafetyLimits

CALENDAR = new_york()
NOON = datetime(2026, 7, 1, 16, tzinfo=UTC)  # 12:00 in New York, a Wednesday


class Outside:
    """A broker outside this program, as far as it is asked here."""

    def __init__(self, at: datetime) -> None:
        self.now, self.blocked, self.last_equity, self.away = at, "", Decimal(100_000), False

    def account(self) -> AccountState:
        if self.away:
            raise EndpointError("the broker could not be asked")
        return AccountState(
            account_id="PA-1",
            blocked=self.blocked,
            cash=Decimal(1),
            equity=Decimal(1),
            last_equity=self.last_equity,
            buying_power=Decimal(1),
        )

    def clock(self) -> MarketClock:
        return MarketClock(now=self.now, is_open=True, next_open=self.now, next_close=self.now)

    def orders(self, *, open_only: bool = True):
        return ()

    def fills(self, after=None):
        return ()


class Place:
    """A watched account in real time, with everything a test may turn."""

    def __init__(self, ledger: Ledger | None = None) -> None:
        self.ledger, self.broker, self.at = ledger or Ledger(None), Outside(NOON), NOON
        self.journal = OrderJournal(self.ledger, cash=Decimal(100_000), costs=Costs())
        self.controls = Controls(self.ledger, now=lambda: self.at)
        self.quoted: datetime | None = NOON
        self.no_quote: Exception = EndpointError("nobody answers")
        orders = OrderManager(self.broker, self.journal, controls=self.controls)
        self.watch = AccountWatch(
            ledger=self.ledger,
            journal=self.journal,
            broker=self.broker,
            controls=self.controls,
            switch=KillSwitch(self.controls, orders, limits=SafetyLimits()),
            calendar=CALENDAR,
            limits=RiskLimits(),
            real_time=RealTime(now=lambda: self.at, latest_price=self._price),
        )

    def _price(self, symbol: str) -> tuple[float, datetime]:
        if self.quoted is None:
            raise self.no_quote
        return 100.0, self.quoted

    def look(self, equity: int | str, at: datetime | None = None):
        self.at = at or self.at
        return self.watch.look(worth(equity, self.at), self.at)

    def seen(self, **changes):
        account = worth(100_000, self.at)
        return self.watch.of("AAPL", at=self.at, portfolio=account, buying=(), live=(), **changes)


def worth(equity: int | str, at: datetime) -> Portfolio:
    return Portfolio(cash=Decimal(equity), equity=Decimal(equity), positions=(), as_of=at)


def codes(seen) -> list[str]:
    return [str(flag.code) for flag in seen.blocks]


def test_the_loss_is_counted_from_the_brokers_equity_of_the_day_before():
    place = Place()
    assert place.look("97000.01") is None
    assert place.look(97_000).by == KILL_SWITCH


def test_the_opening_is_kept_for_the_day_whatever_the_broker_says_later():
    place = Place()
    place.look(100_000)
    again = Place(place.ledger)
    again.broker.last_equity = Decimal(50_000)
    assert again.look(97_000) is not None


def test_without_the_brokers_number_the_first_look_of_the_day_is_the_opening():
    place = Place()
    place.broker.last_equity = Decimal(0)
    assert place.look(200_000) is None
    assert place.look(194_001) is None
    assert place.look(194_000) is not None


def test_money_paid_in_hides_no_loss_and_money_paid_out_is_none():
    place = Place()
    place.look(100_000)
    for number, (amount, equity, halted) in enumerate(
        [(-50_000, 50_000, False), (60_000, 110_000, False), (0, 107_000, True)]
    ):
        place.journal.write_activity(
            Activity(
                activity_id=f"a{number}",
                kind=ActivityKind.TRANSFER,
                symbol=None,
                amount=Decimal(amount),
                quantity=Decimal(0),
                at=NOON,
            )
        )
        assert (place.look(equity) is not None) == halted


@pytest.mark.parametrize(
    ("amount", "now", "halted"),
    [(50_000, 150_000, False), (50_000, 145_000, True), (-50_000, 45_000, True)],
)
def test_money_that_moved_while_nobody_looked_is_in_the_brokers_opening(amount, now, halted):
    place = Place()
    place.watch.remember(worth(100_000, NOON), (NOON - timedelta(days=7)).date())
    for name, days, moved in (("a", 5, amount), ("b", 0, 1_000)):
        place.journal.write_activity(
            Activity(
                activity_id=name,
                kind=ActivityKind.TRANSFER,
                symbol=None,
                amount=Decimal(moved),
                quantity=Decimal(0),
                at=NOON - timedelta(days=days),
            )
        )
    place.broker.last_equity = Decimal(100_000 + amount)
    assert (place.look(now + 1_000) is not None) == halted


def test_a_new_day_has_its_own_opening_and_a_halt_lasts_until_it_is_resumed():
    place = Place()
    place.look(97_000)
    tomorrow = NOON + timedelta(days=1)
    place.broker.last_equity = Decimal(97_000)
    assert place.look(97_000, tomorrow) is not None
    place.controls.resume("a new day")
    assert place.look(97_000) is None
    assert place.look("94090.01") is None
    assert place.look(94_090) is not None


def test_after_a_forced_resumption_the_loss_is_counted_from_there():
    place = Place()
    place.look(97_000)
    place.controls.resume("it was a wrong price", force=True)
    assert place.look(97_000) is None
    assert place.look("94090.01") is None
    assert place.look(94_090) is not None


def test_a_halt_and_a_resumption_by_hand_do_not_move_the_opening():
    place = Place()
    place.look(100_000)
    place.controls.halt("looking at something")
    place.look(98_000)
    place.controls.resume("it was nothing")
    assert place.look(97_001) is None
    assert place.look(97_000) is not None


def test_an_account_that_cannot_be_read_is_not_taken_for_a_sound_one():
    place = Place()
    place.broker.away = True
    with pytest.raises(EndpointError):
        place.look(100_000)


def test_a_calm_account_in_real_time_has_no_blocks():
    seen = Place().seen()
    assert (seen.blocks, seen.quote_seconds, seen.clock_skew_seconds) == ((), 0.0, 0.0)
    assert seen.session_equity == 100_000


def test_what_the_broker_and_the_comparison_say_against_the_account_is_told():
    place = Place()
    place.look(100_000)
    place.broker.blocked = "the broker says trading is blocked"
    assert codes(place.seen(problem="10 AAPL more at the broker")) == [
        "NOT_RECONCILED",
        "ACCOUNT_BLOCKED",
    ]
    place.broker.away = True
    assert codes(place.seen()) == ["ACCOUNT_BLOCKED"]


def test_the_age_of_a_price_counts_in_open_hours_and_no_price_at_all_blocks():
    place = Place()
    place.quoted = NOON - timedelta(seconds=901)
    assert place.seen().quote_seconds == 901.0
    place.quoted = None
    assert codes(place.seen()) == ["STALE_QUOTE"]
    place.no_quote = DataIntegrityError("Alpaca has no quote of AAPL")
    assert codes(place.seen()) == ["STALE_QUOTE"]
    place.at = place.broker.now = NOON + timedelta(hours=8)  # 20:00 in New York
    assert (codes(place.seen()), place.seen().quote_seconds) == ([], None)


@pytest.mark.parametrize("skew", [-3.0, 3.0, 0.5])
def test_the_skew_of_the_clocks_is_measured(skew):
    place = Place()
    place.broker.now = NOON + timedelta(seconds=skew)
    assert place.seen().clock_skew_seconds == skew


def test_controls_in_force_are_facts_for_the_gate():
    place = Place()
    place.controls.pause("AAPL", "earnings")
    place.controls.pause("TSLA", "earnings")
    assert codes(place.seen()) == ["TRADING_PAUSED"]


@pytest.mark.parametrize(
    ("at", "opens"),
    [
        ("2026-07-01T12:00", "2026-07-01T13:30"),
        ("2026-07-01T13:30", "2026-07-02T13:30"),
        ("2026-07-01T20:00", "2026-07-02T13:30"),
        ("2026-07-02T20:00", "2026-07-06T13:30"),  # a holiday and a weekend
    ],
)
def test_a_halt_of_a_backtest_ends_with_the_next_opening(at, opens):
    moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
    assert next_opening(CALENDAR, moment) == datetime.fromisoformat(opens).replace(tzinfo=UTC)
