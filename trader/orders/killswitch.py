"""The kill switch: halts trading on a bad day or on runaway orders; recorded first, then acted on.

It forbids entries and cancels those that wait. Exits, stops and cancels are never held back.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from trader.core.errors import EndpointError, OrderRefusedError
from trader.core.trading import money
from trader.ledger.controls import KILL_SWITCH, Control, Controls
from trader.orders.manager import OrderManager
from trader.orders.protection import exit_waits
from trader.risk.protections import SafetyLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What the kill switch looks at; money in USD.

    equity   now, without what was paid in or out since the opening
    opening  equity at the opening of the session
    """

    equity: Decimal
    opening: Decimal
    entries_in_minute: int = 0
    entry_value: Decimal = Decimal(0)  # of the session's entries


class KillSwitch:
    """Looks at the account and, once it tripped, does at every look what a halt asks for.

    ends  when a halt of its own ends by itself, from when it began; None: a person resumes. A
          backtest goes on at the next session, as a person would have let it.
    """

    def __init__(
        self,
        controls: Controls,
        orders: OrderManager,
        *,
        limits: SafetyLimits,
        ends: Callable[[datetime], datetime] | None = None,
    ) -> None:
        self._controls, self._orders = controls, orders
        self._limits, self._ends = limits, ends

    def look(self, activity: Activity, at: datetime) -> Control | None:
        """Trip when something passes its limit; the halt in force, whoever ordered it.

        What a halt asks for is tried anew at every look while it is in force: it is the same
        whether a process died between recording and acting, or the broker could not be reached.
        """
        halts = [item for item in self._controls.in_force(at) if item.action == "halt"]
        own = next((halt for halt in halts if halt.by == KILL_SWITCH), None)
        if own is None:
            reason = self._reason(activity)
            if reason:
                ends = self._ends(at) if self._ends else None
                own = self._controls.halt(reason, by=KILL_SWITCH, at=at, until=ends)
        halt = own or (halts[0] if halts else None)
        if halt is not None:
            with suppress(EndpointError):
                self._orders.cancel_entries()
        if own is not None and self._limits.liquidate:
            with suppress(OrderRefusedError, EndpointError):
                self._sell(own, at)
        return halt

    def _reason(self, activity: Activity) -> str:
        """Why trading has to stop; empty when it may go on. A number that is none stops it."""
        limits, equity, opening = self._limits, activity.equity, activity.opening
        if not (equity.is_finite() and opening.is_finite() and equity > 0 and opening > 0):
            return f"equity is {equity} USD and was {opening} at the opening: no loss can be told"
        loss = (opening - equity) / opening
        if loss >= money(limits.daily_loss):
            return (
                f"equity is {equity:.2f} USD, {loss:.2%} below the {opening:.2f} of the session's "
                f"opening; allowed are {limits.daily_loss:.2%}"
            )
        # the risk gate keeps entries within these two: whatever sent more did not ask it
        if activity.entries_in_minute > limits.orders_per_minute:
            return (
                f"{activity.entries_in_minute} entries were sent within a minute; allowed are "
                f"{limits.orders_per_minute}"
            )
        allowed = money(limits.notional_per_day) * opening
        if activity.entry_value > allowed:
            return (
                f"entries of {activity.entry_value:.2f} USD were sent in this session; allowed "
                f"are {allowed:.2f}"
            )
        return ""

    def _sell(self, halt: Control, at: datetime) -> None:
        """Sell what we bought, unless its sale is on its way already."""
        journal = self._orders.journal
        ours = [trade for trade in journal.book.open_trades() if not trade.is_imported]
        if not ours:
            return
        live = self._orders.open_orders()
        if not all(exit_waits(journal, trade, live) for trade in ours):
            self._orders.close(None, f"{halt.by}: {halt.reason}", at)
