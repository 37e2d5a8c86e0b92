"""The line to the simulated market: a Broker whose requests and answers get lost, and crashes."""

from __future__ import annotations

import math
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from random import Random
from typing import NoReturn

from tests.simulation.tickets import Ticket
from tests.simulation.world import Market
from trader.core.errors import EndpointError, OrderRefusedError, RateLimitedError
from trader.core.ports import Broker, TradingHalt
from trader.core.trading import (
    AccountState,
    Activity,
    Fill,
    MarketClock,
    Order,
    OrderIntent,
    OrderStatus,
    OrderType,
    Portfolio,
    Side,
)

CRASH = (0.003, 0.008, 0.03)  # at each crash point; one of them for a whole episode
LOST_REQUEST, LOST_ANSWER, RATE_LIMITED, SERVER_ERROR = 0.08, 0.08, 0.04, 0.05
REFUSED, REJECTED, WITHOUT_LEGS, FILLED_FIRST, TAKEN_BUT_REFUSED = 0.03, 0.01, 0.02, 0.05, 0.005
UNSEEN, LOOKUP_LOST, READING_LOST = 0.1, 0.08, 0.02
DUPLICATED, SHUFFLED = 0.1, 0.1


class CrashError(BaseException):
    """The process dies here; no handler of the product may catch this."""


class Fate:
    """Where processes die and what was disturbed; counts what struck.

    trace  lines that tell the episode, or None while nobody reads them
    """

    def __init__(self, rng: Random, *, trace: list[str] | None = None) -> None:
        self.rng, self.trace = rng, trace
        self.is_calm = False
        self.disturbed = False  # since the desk's action began
        self.counts: Counter[str] = Counter()
        self._survival = math.log(1.0 - rng.choice(CRASH))
        self._left = self._draw()

    def _draw(self) -> float:
        """Crash points that are survived before the next crash: geometric."""
        if self.is_calm:
            return math.inf
        return math.log(1.0 - self.rng.random()) // self._survival

    def calm(self) -> None:
        """From now on nothing goes wrong."""
        self.is_calm = True
        self._left = self._draw()

    def point(self, where: str, *, weight: int = 1) -> None:
        """A moment at which the process may die. weight: how many moments it counts for."""
        self._left -= weight
        if self._left >= 0:
            return
        self._left = self._draw()
        self.strike("crash", where)
        raise CrashError(where)

    def strike(self, what: str, where: str) -> None:
        """Something went wrong."""
        self.disturbed = True
        self.counts[what] += 1
        self.tell(f"  ! {what}: {where}")

    def tell(self, line: str) -> None:
        """One line of the trace."""
        if self.trace is not None:
            self.trace.append(line)

    def fail(self, what: str, where: str) -> NoReturn:
        """Something went wrong, and the process sees no answer."""
        self.strike(what, where)
        raise EndpointError(f"{where}: {what}")


class SimulatedWorld(Market):
    """A market with a bad line to it; implements World."""

    def __init__(self, rng: Random, fate: Fate) -> None:
        super().__init__(rng, strict=rng.random() < 0.5)
        self.tell, self._fate = fate.tell, fate

    def broker_of(self, halt: TradingHalt | None) -> Broker:
        """The line of a new process."""
        return Line(self, self._fate, halt)

    def wait(self, seconds: float) -> None:
        """Time passes while a process waits."""
        self.now += timedelta(seconds=seconds)


class Line:
    """Implements Broker over a Market; one for each process."""

    def __init__(self, market: Market, fate: Fate, halt: TradingHalt | None = None) -> None:
        self._market, self._fate, self._halt = market, fate, halt

    # ---- reading

    def portfolio(self) -> Portfolio:
        self._read("portfolio")
        return self._answer("portfolio", self._market.portfolio())

    def account(self) -> AccountState:
        self._read("account")
        cash = self._market.cash
        state = AccountState(
            account_id="account-1",
            blocked="",
            cash=cash,
            equity=cash,
            last_equity=cash,
            buying_power=cash,
        )
        return self._answer("account", state)

    def clock(self) -> MarketClock:
        now = self._market.now
        return MarketClock(now=now, is_open=True, next_open=now, next_close=now)

    def order(self, client_order_id: str) -> Order | None:
        self._read("order", LOOKUP_LOST)
        return self._answer("order", self._seen(self._market.by_client.get(client_order_id)))

    def order_by_id(self, order_id: str) -> Order | None:
        self._read("order_by_id", LOOKUP_LOST)
        return self._answer("order_by_id", self._seen(self._market.tickets.get(order_id)))

    def orders(self, *, open_only: bool = True) -> tuple[Order, ...]:
        self._read("orders")
        trees = self._market.trees() if open_only else self._market.roots
        seen = (self._seen(root) for root in tuple(trees))
        return self._answer("orders", tuple(order for order in seen if order is not None))

    def fills(self, after: str | None = None) -> tuple[Fill, ...]:
        self._read("fills")
        feed, rng = self._market.feed, self._fate.rng
        start = next(
            (
                number + 1
                for number in range(len(feed) - 1, -1, -1)
                if feed[number].execution_id == after
            ),
            0,
        )
        told = feed[start:]
        if told and not self._fate.is_calm:
            if rng.random() < DUPLICATED:
                told = [fill for fill in told for _ in range(2)]
                self._fate.counts["duplicated"] += 1
            if rng.random() < SHUFFLED:
                rng.shuffle(told)
                self._fate.counts["shuffled"] += 1
        return self._answer("fills", tuple(told))

    def activities(self, after: str | None = None) -> tuple[Activity, ...]:
        self._read("activities")
        start = int(after[1:]) if after else 0
        return self._answer("activities", tuple(self._market.moved[start:]))

    def _read(self, name: str, lost: float = READING_LOST) -> None:
        self._fate.point(f"before {name}")
        if not self._fate.is_calm and self._fate.rng.random() < lost:
            self._fate.fail("answer lost", name)

    def _answer(self, name: str, answer):  # type: ignore[no-untyped-def]
        self._fate.point(f"after {name}")
        return answer

    def _seen(self, ticket: Ticket | None) -> Order | None:
        if ticket is None:
            return None
        if ticket.unseen:
            ticket.unseen -= 1
            self._fate.strike("not visible", ticket.client_order_id)
            return None
        self._market.look_at(ticket)
        return ticket.show()

    # ---- writing

    def submit(self, intent: OrderIntent) -> Order:
        fate, market, name = self._fate, self._market, f"submit {intent.client_order_id}"
        fate.counts["submits"] += 1
        fate.tell(f"  {name} {intent.side} {intent.quantity} {intent.symbol} {intent.order_type}")
        self._refuse_when_halted(intent)
        fate.point(f"before {name}")
        chance = 1.0 if fate.is_calm else fate.rng.random()
        if chance < RATE_LIMITED:
            fate.strike("rate limited", name)
            raise RateLimitedError(name)
        chance -= RATE_LIMITED
        if chance < LOST_REQUEST:
            fate.counts["ambiguous"] += 1
            fate.fail("request lost", name)
        chance -= LOST_REQUEST
        known = market.by_client.get(intent.client_order_id)
        if known is None:
            known = self._take(intent)
        elif known.unseen:
            fate.fail("duplicate id that cannot be found", name)
        if chance < LOST_ANSWER + SERVER_ERROR:
            fate.counts["ambiguous"] += 1
            fate.fail("answer lost" if chance < LOST_ANSWER else "5xx after accept", name)
        order = known.show()
        fate.point(f"after {name}")
        return order

    def _refuse_when_halted(self, intent: OrderIntent) -> None:
        if self._halt is None or intent.side is Side.SELL:
            return
        reason = self._halt.blocked(intent.symbol)
        if reason:
            self._market.refused.add((intent.symbol, intent.quantity))
            raise OrderRefusedError(reason)

    def _take(self, intent: OrderIntent) -> Ticket:
        """The market's side of a request: no, or an order, with what may befall it at once."""
        fate, market, name = self._fate, self._market, intent.client_order_id
        chance = 1.0 if fate.is_calm else fate.rng.random()
        try:
            if chance < REFUSED:
                fate.strike("refused", name)
                raise OrderRefusedError("not now", code=40310000)
            chance -= REFUSED
            ticket = market.take(intent, without_legs=chance < WITHOUT_LEGS)
        except OrderRefusedError as exc:
            fate.tell(f"  refused: {exc}")
            if intent.side is Side.BUY:
                market.refused.add((intent.symbol, intent.quantity))
            raise
        chance -= WITHOUT_LEGS
        if chance < REJECTED:
            fate.strike("rejected", name)
            market.end(ticket, OrderStatus.REJECTED)
            return ticket
        chance -= REJECTED
        if chance < FILLED_FIRST:
            fate.counts["filled before the answer"] += 1
            if intent.order_type is OrderType.MARKET:
                market.trade(ticket, market._slice(ticket))
        elif chance < FILLED_FIRST + UNSEEN:
            ticket.unseen = fate.rng.choice((1, 2))
            fate.counts["delayed visibility"] += 1
        elif chance < FILLED_FIRST + UNSEEN + TAKEN_BUT_REFUSED:
            fate.strike("taken but refused", name)
            ticket.is_denied = True
            raise OrderRefusedError("order not found, they said", code=40410000)
        return ticket

    def cancel(self, order_id: str) -> None:
        name = f"cancel {order_id}"
        self._fate.tell(f"  {name}")
        self._fate.point(f"before {name}")
        chance = 1.0 if self._fate.is_calm else self._fate.rng.random()
        if chance < LOST_REQUEST / 2:
            self._fate.fail("request lost", name)
        ticket = self._market.tickets.get(order_id)
        if ticket is None or ticket.unseen:
            raise EndpointError(f"{name}: not found")
        if chance > 1.0 - LOST_ANSWER / 2 and not self._fate.is_calm:
            self._market.ask_to_cancel(ticket)
            self._fate.fail("answer lost", name)
        self._market.ask_to_cancel(ticket)
        self._fate.point(f"after {name}")

    def replace(
        self,
        order_id: str,
        *,
        client_order_id: str,
        quantity: Decimal | None = None,
        limit_price: Decimal | None = None,
        stop_price: Decimal | None = None,
    ) -> Order:
        raise AssertionError("the manager cancels and places anew")
