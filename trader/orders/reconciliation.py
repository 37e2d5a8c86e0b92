"""Comparing with the broker, in an order in which nothing can be missed; the broker is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from trader.core.errors import StateError
from trader.core.ports import Broker
from trader.core.trading import Order, Portfolio
from trader.ledger.book import CASH, CENT, disagreement
from trader.ledger.controls import Controls
from trader.orders.entries import AccountBegun, Adjustment, Reconciliation
from trader.orders.journal import OrderJournal
from trader.orders.sending import Sender
from trader.orders.tracking import News, Tracker, flat

ROUNDS = 3  # a fill may come between two answers; a difference has to last
NOT_COMPARED = "the broker has not been compared with the ledger"

Differences = dict[str, tuple[Decimal, Decimal]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What a comparison with the broker came to.

    live      orders open at the broker, legs included, flat
    resolved  client order ids of intents whose outcome was settled
    problem   why nothing may be bought; empty when something may
    lacking   trade -> shares of it in the book that the broker does not have
    surplus   symbol -> shares the broker has beyond the book's
    news      what the comparison changed or found, as recorded; None when that is nothing
    """

    portfolio: Portfolio
    live: tuple[Order, ...]
    resolved: tuple[str, ...]
    problem: str
    lacking: Mapping[str, Decimal]
    surplus: Mapping[str, Decimal]
    news: Reconciliation | None


class Reconciler:
    """Account, positions, orders, fills, activities, intents in doubt, and then the difference.

    controls  where a lasting disagreement freezes trading until a person acknowledges it
    """

    def __init__(
        self,
        broker: Broker,
        journal: OrderJournal,
        tracker: Tracker,
        sender: Sender,
        controls: Controls | None,
    ) -> None:
        self._broker, self._journal = broker, journal
        self._tracker, self._sender, self._controls = tracker, sender, controls
        self._checked = False  # whether this process knows whose account it is
        self._blocked = ""
        self.problem = NOT_COMPARED

    def compare(self, as_of: datetime, *, full: bool) -> Comparison:
        """Make the journal know what the broker knows, and say whether the two agree.

        as_of  the newest slot; entries of older ones that never arrived are given up
        full   ask also for what is asked at the start and when numbers differ: the account itself
               and its activities

        Raises EndpointError when the broker cannot be asked: nothing may be bought then. StateError
        when it is another account than the ledger's.
        """
        self.problem = NOT_COMPARED
        full = full or not self._checked
        if full:
            self._check_account()
        resolved: list[str] = []
        differences: Differences = {}
        for number in range(ROUNDS):
            if differences:
                self._tracker.pause()  # what the broker tells of one moment may come in parts
            portfolio = self._broker.portfolio()
            trees = self._tracker.open_trees(portfolio.as_of)
            if not self._tracker.waits_for:
                self._tracker.import_strangers(trees)
            if full or number:
                self._book_activities()
            held = {position.symbol: position.quantity for position in portfolio.positions}
            agreed = not self._problem(self._differences(portfolio))
            settled = self._sender.resolve(as_of, flat(trees), held, buying=agreed)
            resolved += settled
            moved = self._undo_given_up() or bool(settled)
            differences = self._differences(portfolio)
            if not differences and not moved:
                break
        news = self._tracker.fresh_news()
        if not self._tracker.waits_for:
            differences = self._settle(differences, portfolio)
        self.problem = self._problem(differences)
        return Comparison(
            portfolio=portfolio,
            live=flat(trees),
            resolved=tuple(dict.fromkeys((*news.resolved, *resolved))),
            problem=self.problem,
            lacking=self._lacking(differences),
            surplus={
                symbol: theirs - ours
                for symbol, (theirs, ours) in differences.items()
                if symbol != CASH and theirs > ours
            },
            news=self._record(news, differences, portfolio.as_of),
        )

    def adjust(self, portfolio: Portfolio, reason: str) -> bool:
        """Make the book equal to the broker's; whether that changed anything."""
        differences = self._differences(portfolio)
        if not differences:
            return False
        prices = {held.symbol: held.average_entry_price for held in portfolio.positions}
        gaps = {what: theirs - ours for what, (theirs, ours) in differences.items()}
        cash = gaps.pop(CASH, Decimal(0))
        self._journal.write_adjustment(
            Adjustment(
                at=portfolio.as_of,
                reason=reason,
                quantities=gaps,
                prices={symbol: prices[symbol] for symbol in gaps if symbol in prices},
                cash=cash,
                transfer=cash + self._traded(gaps, cash, portfolio),
            )
        )
        return True

    def _traded(self, gaps: Mapping[str, Decimal], cash: Decimal, portfolio: Portfolio) -> Decimal:
        """What of `cash` shares were sold for (negative) or bought with, in trades nobody told of.

        gaps  shares added, negative: taken, by symbol
        """
        newest = {held.symbol: held.current_price for held in portfolio.positions}
        worth = Decimal(0)
        for symbol, gap in gaps.items():
            entries = [trade.entry_price for trade in self._journal.book.open_trades(symbol)]
            worth += gap * newest.get(symbol, entries[-1] if entries else Decimal(0))
        return (
            max(-cash, min(worth, Decimal(0))) if cash > 0 else min(-cash, max(worth, Decimal(0)))
        )

    def _check_account(self) -> None:
        """Whose account this is; the first time, what had happened in it before the ledger."""
        account, begun = self._broker.account(), self._journal.account
        if begun is None:
            fresh = not self._journal.intents
            portfolio = self._broker.portfolio()
            fills = self._broker.fills() if fresh else ()
            activities = self._broker.activities()
            imported = self._journal.begin_account(
                AccountBegun(
                    account_id=account.account_id,
                    at=portfolio.as_of,
                    execution_id=fills[-1].execution_id if fills else None,
                    activity_id=activities[-1].activity_id if activities else None,
                ),
                portfolio.positions if fresh else (),
            )
            self._tracker.news.imported += imported
        elif begun.account_id != account.account_id:
            raise StateError(
                f"the broker's account is {account.account_id} now, this ledger belongs to "
                f"{begun.account_id}: the account was reset, or the keys are of another one; "
                "begin again with --restart-market, which keeps the old ledger, or bring the keys "
                "of the old account back"
            )
        self._blocked = account.blocked
        self._checked = True

    def _book_activities(self) -> None:
        for activity in self._broker.activities(after=self._journal.last_activity_id):
            if self._journal.write_activity(activity):
                self._tracker.news.activities.append(activity.activity_id)

    def _undo_given_up(self) -> bool:
        """Cancel entries that appeared after they were given up; whether there was one."""
        found = False
        for key in self._tracker.news.adopted:
            if self._journal.intents[key].purpose != "entry":
                continue
            order = self._broker.order(key)
            if order is not None and not order.status.is_final:
                self._sender.cancel([order])
                found = True
        return found

    def _differences(self, portfolio: Portfolio) -> Differences:
        # an estimated fill may be off by less than a cent: brokers round the average they show
        tolerance = CENT * (1 + self._journal.estimates)
        return self._journal.book.differences(portfolio, tolerance=tolerance)

    def _settle(self, differences: Differences, portfolio: Portfolio) -> Differences:
        """Freeze trading over a difference, or take the broker's numbers when told to."""
        controls = self._controls
        if controls is None:
            return differences
        words, wish = disagreement(differences), controls.acknowledged
        if differences and wish is not None and controls.frozen == words:
            self.adjust(portfolio, wish.reason)
            controls.done(wish.control_id, f"taken over: {words}", at=portfolio.as_of)
            return {}
        if differences:
            controls.freeze(words, at=portfolio.as_of)
        elif wish is not None:
            controls.done(wish.control_id, "broker and ledger agree", at=portfolio.as_of)
        return differences

    def _problem(self, differences: Differences) -> str:
        if self._tracker.waits_for:
            return self._tracker.waits_for
        if differences:
            return disagreement(differences)
        return f"the broker has blocked the account: {self._blocked}" if self._blocked else ""

    def _lacking(self, differences: Differences) -> dict[str, Decimal]:
        """What is left over when the broker's shares are dealt out, to the oldest of ours first."""
        found: dict[str, Decimal] = {}
        for symbol, (theirs, ours) in differences.items():
            if symbol == CASH or theirs >= ours:
                continue
            left = max(theirs, Decimal(0))
            trades = self._journal.book.open_trades(symbol)
            for trade in sorted(trades, key=lambda one: one.is_imported):
                dealt = min(left, trade.open_quantity)
                left -= dealt
                if dealt < trade.open_quantity:
                    found[trade.trade_id] = trade.open_quantity - dealt
        return found

    def _record(self, news: News, differences: Differences, at: datetime) -> Reconciliation | None:
        """Write down what changed; a difference that was recorded and lasts is not news."""
        last = self._journal.reconciliation
        known = dict(last.differences) if last is not None else {}
        found = Reconciliation(
            at=at,
            adopted=tuple(news.adopted),
            estimated=tuple(news.estimated),
            late=tuple(news.late),
            imported=tuple(news.imported),
            activities=tuple(news.activities),
            differences=differences,
            problem=self.problem,
        )
        told = (news.adopted, news.estimated, news.late, news.imported, news.activities)
        if not any(told) and known == differences:
            return None
        self._journal.write_reconciliation(found)
        return found
