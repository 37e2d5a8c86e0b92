"""Leaving trades: whatever their strategy or their target asks for, without asking anybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from trader.core.errors import EndpointError, OrderRefusedError
from trader.core.market import BarSeries, to_ns
from trader.core.trading import Order
from trader.ledger.book import Trade
from trader.orders.entries import Purpose
from trader.orders.manager import OrderManager
from trader.orders.protection import exit_waits, target_waits
from trader.pipeline.candidates import Candidates, bar_of, strategy_of
from trader.pipeline.records import Exit
from trader.pipeline.slots import Slot


class Exits:
    """Sells at the next open what is to be left; a sale that was refused or cut short is retried.

    A strategy that looks for no more entries still leaves what it bought.
    """

    def __init__(self, orders: OrderManager, candidates: Candidates) -> None:
        self._orders, self._candidates = orders, candidates

    def leave(
        self,
        slot: Slot,
        bars: Mapping[str, BarSeries],
        live: Sequence[Order],
    ) -> tuple[Exit, ...]:
        """Every exit that is due. live: orders open at the broker, legs included, flat."""
        found = []
        for trade in self._orders.journal.book.open_trades():
            due = self._leave(trade, slot, bars, live)
            found += [due] if due else []
        return tuple(found)

    def leave_unseen(self, slot: Slot, bars: Mapping[str, BarSeries]) -> None:
        """Every exit that is due, although the broker cannot tell how the account stands.

        Each trade's orders are asked for alone; where even that fails, its stop stays. Where its
        sale was refused, its stop comes back.
        """
        for trade in self._orders.journal.book.open_trades():
            with suppress(EndpointError, OrderRefusedError):
                due = self._leave(trade, slot, bars, self._orders.orders_of(trade))
                if due is not None and due.problem:
                    self._orders.guard(trade, slot.as_of)

    def _leave(
        self,
        trade: Trade,
        slot: Slot,
        bars: Mapping[str, BarSeries],
        live: Sequence[Order],
    ) -> Exit | None:
        series = bars.get(trade.symbol)
        strategy = self._candidates.known.get(strategy_of(trade.trade_id))
        if series is None or strategy is None:
            return None
        first = int(series.timestamp.searchsorted(to_ns(bar_of(trade.trade_id)), side="right"))
        wanted = np.flatnonzero(strategy.crossings(series).exit[first:])
        purpose: Purpose = "exit" if wanted.size else "target"
        if wanted.size:
            reason = strategy.reason(series, first + int(wanted[-1]))
        else:
            reason = self._target_reached(trade, series, first, live)
        waits = exit_waits(self._orders.journal, trade, live)
        sent = [
            item.intent.client_order_id
            for item in self._orders.journal.of_trade(trade.trade_id, "exit", "target")
            if item.as_of == slot.as_of
        ]
        if not reason or (waits and not sent):
            return None
        key, problem = (sent[-1], "") if waits else ("", "")
        if not waits:
            try:
                sold = self._orders.leave(trade, live, slot.as_of, purpose=purpose)
                if sold is None:  # an order of the trade was filled while it was canceled
                    return None
                key = sold.client_order_id
            except (OrderRefusedError, EndpointError) as exc:
                problem = str(exc)
        return Exit(
            trade_id=trade.trade_id,
            symbol=trade.symbol,
            strategy=strategy.name,
            reason=reason,
            client_order_id=key,
            problem=problem,
        )

    def _target_reached(
        self, trade: Trade, series: BarSeries, first: int, live: Sequence[Order]
    ) -> str:
        """Why a trade is left at its target, where no order waits there; empty when it is not."""
        _, target = self._orders.journal.levels(trade.trade_id)
        if target is None or target_waits(self._orders.journal, trade, live):
            return ""
        closes = series.close[first:]
        reached = closes[closes >= float(target)]
        return f"the close {reached[-1]:.2f} reached the target {target:f}" if reached.size else ""
